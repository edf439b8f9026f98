//! The `link` shape: IP packets between a TUN device and the carrier.

mod readings;

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use bentpipe_engine::units::Time;
use bentpipe_io::{Buffers, TrainTun};
use mio::event::Event as Ready;
use mio::unix::SourceFd;
use mio::{Interest, Token};

use super::access::Access;
use super::policy::Policy;
use super::readings::Readings;
use super::run::FIRST_TOKEN;
use super::shape::{Shape, Turn};
use crate::tunnel::Event;

/// Packets or trains of them taken from the device in one turn of the loop: what is read goes out before more is. So many
/// that of the ACKs that the host gives at once to what was held up, one in 64 remains.
const BATCH: usize = 64;

/// The least MTU of a device that carries IPv6 (RFC 8200 §5).
const MIN_MTU: u16 = 1280;

/// IP packets in, IP packets out; the host routes into the device what is to go this way.
#[derive(Debug)]
pub struct LinkShape {
    tun: TrainTun,
    is_readable: bool,
    /// How many may be read yet in the turn of this instant.
    left: usize,
    filled_at: Time,
    buffers: Buffers,
    /// The packet of a train that is being read.
    packet: Vec<u8>,
    /// Packets that are too long for a frame.
    too_long: u64,
    access: Access,
}

impl LinkShape {
    /// The shape over a device whose MTU is at most [`super::max_packet`] of the path.
    pub fn new(tun: TrainTun) -> Self {
        LinkShape {
            tun,
            is_readable: true,
            left: BATCH,
            filled_at: Time::ZERO,
            buffers: Buffers::default(),
            packet: Vec::new(),
            too_long: 0,
            access: Access::default(),
        }
    }

    /// Which sources the peer's packets may have from now on; before, all that are somebody's.
    pub fn set_policy(&mut self, policy: Policy) {
        self.access.set_policy(policy);
    }

    /// Packets from the other box for which the host had no room.
    pub fn refused_by_host(&self) -> u64 {
        self.tun.refused()
    }

    /// Packets and trains of the host that the kernel dropped because the device's queue was full.
    ///
    /// # Errors
    /// Fails if the device is gone.
    pub fn overruns(&self) -> io::Result<u64> {
        self.tun.overruns()
    }

    /// Packets of the host that no frame has room for.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }
}

/// What a device says that cannot be read, for people.
pub(crate) fn device_error(error: io::Error) -> io::Error {
    // EBADFD: the descriptor's device is not there any more.
    match error.raw_os_error() == Some(nix::libc::EBADFD) {
        true => io::Error::new(io::ErrorKind::NotFound, "the TUN device was deleted; a restart makes it again"),
        false => io::Error::new(error.kind(), format!("the TUN device cannot be read: {error}")),
    }
}

impl Shape for LinkShape {
    fn name(&self) -> &'static str {
        "link"
    }

    fn read(&self, readings: &mut Readings) {
        // A device that is gone ends the loop; what it counted is not known any more.
        readings.add_link(self.tun.refused(), self.tun.overruns().ok(), self.too_long);
        readings.add_forbidden("link", self.access.refused());
    }

    fn start(&mut self, turn: &mut Turn<'_>) -> io::Result<()> {
        let fd = self.tun.as_fd().as_raw_fd();
        turn.registry.register(&mut SourceFd(&fd), Token(FIRST_TOKEN), Interest::READABLE)
    }

    fn ready(&mut self, _: &mut Turn<'_>, _: Token, ready: &Ready) -> io::Result<()> {
        // A device that was deleted is an error, which reading tells.
        self.is_readable |= ready.is_readable() || ready.is_error();
        Ok(())
    }

    fn on_event(&mut self, _: &mut Turn<'_>, _: Event) -> io::Result<()> {
        Ok(())
    }

    fn on_path_mtu(&mut self, _: &mut Turn<'_>, max_packet: u16) -> io::Result<()> {
        // Hosts of IPv6 send 1280 bytes whatever they are told (RFC 8200 §5): such packets go in parts.
        self.tun.set_mtu(max_packet.max(MIN_MTU))
    }

    fn on_packet(&mut self, _: &mut Turn<'_>, packet: &[u8]) -> io::Result<()> {
        // The peer speaks for its own hosts, and for nobody else's.
        if !self.access.packet_of_peer(packet) {
            return Ok(());
        }
        self.tun.put_whole(packet)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tun.hand_over()
    }

    fn fill(&mut self, turn: &mut Turn<'_>) -> io::Result<bool> {
        if self.filled_at != turn.now {
            (self.filled_at, self.left) = (turn.now, BATCH);
        }
        while self.is_readable && self.left > 0 {
            self.left -= 1;
            let LinkShape { tun, buffers, packet, too_long, .. } = self;
            let (carrier, now) = (&mut *turn.carrier, turn.now);
            let read = tun.read(buffers, |buffers, train| {
                train.each(packet, |packet| *too_long += u64::from(carrier.send(now, packet).is_err()));
                buffers.give_read(train);
            });
            self.is_readable = read.map_err(device_error)?;
        }
        Ok(self.is_readable)
    }

    fn drain(&mut self, _: &mut Turn<'_>) -> io::Result<bool> {
        Ok(true)
    }
}
