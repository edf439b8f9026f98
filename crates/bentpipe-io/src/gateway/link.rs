//! The `link` shape: IP packets between a TUN device and the carrier.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use mio::event::Event as Ready;
use mio::unix::SourceFd;
use mio::{Interest, Token};

use super::readings::{Readings, Value};
use super::run::FIRST_TOKEN;
use super::shape::{Shape, Turn};
use crate::offload::{OffloadTun, Pool};
use crate::tunnel::Event;

/// Packets or trains of them taken from the device before others have their turn.
const BATCH: usize = 16;

/// IP packets in, IP packets out; the host routes into the device what is to go this way.
#[derive(Debug)]
pub struct LinkShape {
    tun: OffloadTun,
    is_readable: bool,
    pool: Pool,
    /// Packets that are too long for a frame.
    too_long: u64,
}

impl LinkShape {
    /// The shape over a device whose MTU is at most [`super::most_packet`] of the path.
    pub fn new(tun: OffloadTun) -> Self {
        LinkShape { tun, is_readable: true, pool: Pool::default(), too_long: 0 }
    }

    /// Packets from the other box for which the host had no room.
    pub fn refused_by_host(&self) -> u64 {
        self.tun.refused()
    }

    /// Packets of the host that no frame has room for.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }
}

impl Shape for LinkShape {
    fn name(&self) -> &'static str {
        "link"
    }

    fn read(&self, readings: &mut Readings) {
        let help = "Packets from the peer for which the host had no room.";
        let refused = Value::Total(self.tun.refused());
        readings.add("link", "refused_by_host", "bentpipe_gateway_packets_refused_by_host_total", help, refused);
        let help = "Packets of the host that no frame has room for.";
        readings.add("link", "too_long", "bentpipe_gateway_packets_too_long_total", help, Value::Total(self.too_long));
    }

    fn start(&mut self, turn: &mut Turn<'_>) -> io::Result<()> {
        let fd = self.tun.as_fd().as_raw_fd();
        turn.registry.register(&mut SourceFd(&fd), Token(FIRST_TOKEN), Interest::READABLE)
    }

    fn ready(&mut self, _: &mut Turn<'_>, _: Token, ready: &Ready) -> io::Result<()> {
        self.is_readable |= ready.is_readable();
        Ok(())
    }

    fn on_event(&mut self, _: &mut Turn<'_>, _: Event) -> io::Result<()> {
        Ok(())
    }

    fn on_packet(&mut self, _: &mut Turn<'_>, packet: &[u8]) -> io::Result<()> {
        let buffer = self.pool.copy(packet);
        self.tun.put(buffer);
        Ok(())
    }

    fn fill(&mut self, turn: &mut Turn<'_>) -> io::Result<bool> {
        // What has come goes to the host in trains.
        self.tun.flush(&mut self.pool)?;
        for _ in 0..BATCH {
            if !self.is_readable {
                return Ok(false);
            }
            let (carrier, too_long) = (&mut *turn.carrier, &mut self.too_long);
            self.is_readable = self.tun.read(&mut self.pool, |pool, buffer| {
                *too_long += u64::from(carrier.send(turn.now, buffer.packet()).is_err());
                pool.give(buffer);
            })?;
        }
        Ok(true)
    }

    fn drain(&mut self, _: &mut Turn<'_>) -> io::Result<bool> {
        Ok(true)
    }
}
