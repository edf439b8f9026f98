//! The `link` shape: IP packets between a TUN device and the carriers.
//!
//! A packet goes to the peer whose prefixes contain its destination. A packet from a peer is dropped unless the peer's
//! prefixes contain its source. If configured, a rate is written into the SCONE packets of QUIC that go to a peer.
//!
//! Memory is bounded. Packets that wait for the link, are in flight, or wait for earlier packets count against
//! `memory`, and so do the contexts of header compression. The peers share it by a [`Pool`]. If a packet does not fit,
//! the host that holds the most loses one.

mod readings;
mod unreachable;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::scone::{self, Signal};
use bentpipe_io::{Buffers, TrainTun, tun};
use mio::event::Event as Ready;
use mio::unix::SourceFd;
use mio::{Interest, Token};

use super::bucket::Bucket;
use super::carrier::Carrier;
use super::hub::{Hub, Slot};
use super::peers::{Reach, Routes};
use super::policy::Sources;
use super::pool::Pool;
use super::readings::Readings;
use super::run::DEVICE;
use super::shape::{Shape, Turn};
use crate::tunnel::Event;

/// The minimum MTU of a device that carries IPv6 (RFC 8200 §5).
const MIN_MTU: u16 = 1280;

/// Burst of ICMP messages to hosts whose packets cannot be carried, and the time for each further one.
const MESSAGES: u32 = 100;
const MESSAGE_REFILL: Duration = Duration::from_millis(10);

/// No further train is read in a turn once the trains had this many packets: those of 512 trains of 64 kB over an MTU of 1500. While
/// they are read, nothing is received from peers.
const MAX_PACKETS: usize = 512 * 45;

/// Carries IP packets. The host routes traffic for the link into the device.
#[derive(Debug)]
pub struct LinkShape {
    tun: TrainTun,
    is_readable: bool,
    /// How many more packets or trains may be read in the current turn; at first, as many as the device's queue holds.
    /// If the box is too slow for the hosts, FQ-CoDel then decides what is dropped. The device's queue would not do: it
    /// may drop retransmissions of the same connection many times in a row.
    left: usize,
    /// How many more packets they may have.
    left_packets: usize,
    filled_at: Time,
    buffers: Buffers,
    /// The current packet of the train being read.
    packet: Vec<u8>,
    /// The MTU set on the device.
    mtu: Option<u16>,
    routes: Routes,
    peers: BTreeMap<Slot, Peer>,
    /// The memory that peers share, in bytes.
    memory: Pool,
    /// Peers that were given packets in this turn.
    given: Vec<Slot>,
    /// Packets dropped because no peer has their destination.
    unrouted: u64,
    /// ICMP messages that may still be sent.
    messages: Bucket,
}

/// The prefixes of a peer, and its counters.
#[derive(Debug, Default)]
struct Peer {
    from: Sources,
    /// The rate written into SCONE packets to this peer.
    advice: Option<Signal>,
    /// Number of packets into which it was written.
    advised: u64,
    /// Packets dropped because they are too long for a frame.
    too_long: u64,
    /// Packets from the peer whose sources are outside its prefixes.
    forbidden: u64,
}

impl LinkShape {
    /// The shape for a device whose MTU is at most [`super::max_packet`] of the path. Packets of all peers together
    /// take at most `memory` bytes.
    pub fn new(tun: TrainTun, memory: u64) -> Self {
        LinkShape {
            tun,
            is_readable: true,
            left: tun::QUEUE,
            left_packets: MAX_PACKETS,
            filled_at: Time::ZERO,
            buffers: Buffers::default(),
            packet: Vec::new(),
            mtu: None,
            routes: Routes::default(),
            peers: BTreeMap::new(),
            memory: Pool::new(memory),
            given: Vec::new(),
            unrouted: 0,
            messages: Bucket::new(MESSAGES, MESSAGE_REFILL, Time::ZERO),
        }
    }

    /// Packets from the other box that the host's kernel refused.
    pub fn refused_by_host(&self) -> u64 {
        self.tun.refused()
    }

    /// Records a peer's use of memory, and sets the limit for its packets.
    fn settle(&mut self, hub: &mut Hub, slot: Slot) {
        if self.peers.contains_key(&slot) {
            let [packets, contexts] =
                [Carrier::held_bytes, Carrier::context_bytes].map(|bytes| hub.carrier(slot).map_or(0, bytes));
            hub.set_room(slot, take(&mut self.memory, slot, packets, contexts));
        }
    }

    /// Number of packets and trains of hosts that the kernel dropped because the device's queue was full.
    ///
    /// # Errors
    /// Fails if the device no longer exists.
    pub fn overruns(&self) -> io::Result<u64> {
        self.tun.overruns()
    }
}

/// Records the memory of a peer's packets and of the contexts of its link. Returns the limit for the packets.
fn take(memory: &mut Pool, slot: Slot, packets: u64, contexts: u64) -> u64 {
    memory.set(slot, packets + contexts);
    memory.limit(slot).saturating_sub(contexts)
}

/// A readable message for an error of the device.
pub(crate) fn device_error(error: io::Error) -> io::Error {
    // EBADFD: the descriptor's device no longer exists.
    match error.raw_os_error() == Some(nix::libc::EBADFD) {
        true => io::Error::new(
            io::ErrorKind::NotFound,
            "the TUN device was deleted: restart the gateway to create it again",
        ),
        false => io::Error::new(error.kind(), format!("the TUN device cannot be read: {error}")),
    }
}

impl Shape for LinkShape {
    fn name(&self) -> &'static str {
        "link"
    }

    fn read(&self, slot: Slot, readings: &mut Readings) {
        if let Some(Peer { too_long, forbidden, advised, .. }) = self.peers.get(&slot) {
            readings.add_link_peer(*too_long, *advised, self.memory.limit(slot));
            readings.add_forbidden("link", *forbidden);
        }
    }

    fn read_common(&self, readings: &mut Readings) {
        readings.add_link(self.tun.refused(), self.unrouted, self.memory.in_use());
        // If the device was removed, the loop ends, and the device's counters are lost.
        readings.add_overruns("link", self.tun.overruns().ok());
    }

    fn start(&mut self, turn: &mut Turn<'_>) -> io::Result<()> {
        let fd = self.tun.as_fd().as_raw_fd();
        turn.registry.register(&mut SourceFd(&fd), DEVICE, Interest::READABLE)
    }

    fn join(&mut self, slot: Slot, reach: Reach) {
        self.routes.set(slot, reach.to.as_deref());
        let peer = self.peers.entry(slot).or_default();
        (peer.from, peer.advice) = (reach.from, reach.advice);
        self.memory.join(slot);
    }

    fn leave(&mut self, slot: Slot) {
        self.routes.remove(slot);
        self.peers.remove(&slot);
        self.memory.leave(slot);
    }

    fn ready(&mut self, _: &mut Turn<'_>, _: Token, ready: &Ready) -> io::Result<()> {
        // If the device was deleted, reading fails.
        self.is_readable |= ready.is_readable() || ready.is_error();
        Ok(())
    }

    fn on_event(&mut self, turn: &mut Turn<'_>, slot: Slot, _: Event) -> io::Result<()> {
        self.settle(turn.hub, slot);
        self.on_path_mtu(turn, slot)
    }

    fn on_path_mtu(&mut self, turn: &mut Turn<'_>, _: Slot) -> io::Result<()> {
        // The longest packet that some peer receives whole. Other peers receive such packets in parts, so that one path
        // does not shorten the packets of all. In any case, IPv6 hosts send 1280 bytes (RFC 8200 §5).
        let of_peers = self.peers.keys().filter_map(|slot| turn.hub.carrier(*slot)).filter(|carrier| carrier.is_up());
        let Some(max_packet) = of_peers.map(Carrier::max_packet).max() else { return Ok(()) };
        let mtu = max_packet.max(MIN_MTU);
        if self.mtu != Some(mtu) {
            self.tun.set_mtu(mtu)?;
            self.mtu = Some(mtu);
        }
        Ok(())
    }

    fn on_packet(&mut self, _: &mut Turn<'_>, slot: Slot, packet: &[u8]) -> io::Result<()> {
        // The peer may only send from its own prefixes.
        let Some(peer) = self.peers.get_mut(&slot) else { return Ok(()) };
        if !peer.from.permit_packet(packet) {
            peer.forbidden += 1;
            return Ok(());
        }
        self.tun.put_whole(packet)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tun.hand_over()
    }

    fn fill(&mut self, turn: &mut Turn<'_>, sent: Option<Slot>) -> io::Result<bool> {
        if sent.is_none() {
            let heard: Vec<_> = turn.hub.heard().collect();
            heard.into_iter().for_each(|slot| self.settle(turn.hub, slot));
        }
        if self.filled_at != turn.now {
            (self.filled_at, self.left, self.left_packets) = (turn.now, tun::QUEUE, MAX_PACKETS);
        }
        while self.is_readable && self.left > 0 && self.left_packets > 0 {
            self.left -= 1;
            let LinkShape { tun, buffers, packet, routes, peers, given, unrouted, messages, left_packets, .. } = self;
            let (hub, now) = (&mut *turn.hub, turn.now);
            let mut answers = Vec::new();
            let read = tun.read(buffers, |buffers, train| {
                train.each(packet, |packet| {
                    *left_packets = left_packets.saturating_sub(1);
                    let Some(slot) = routes.of_packet(packet) else {
                        *unrouted += 1;
                        return;
                    };
                    if given.last() != Some(&slot) {
                        given.push(slot);
                    }
                    let mut peer = peers.get_mut(&slot);
                    if let Some(Peer { advice: Some(advice), advised, .. }) = &mut peer {
                        *advised += u64::from(scone::advise_packet(packet, *advice));
                    }
                    let carrier = hub.carrier_mut(slot);
                    if carrier.as_ref().is_some_and(|carrier| carrier.tunnel().other_shape().is_some())
                        && messages.take(now)
                    {
                        answers.extend(unreachable::unreachable(packet));
                    }
                    let sent = carrier.map(|carrier| carrier.send(now, packet));
                    if let (Some(Err(_)), Some(peer)) = (sent, peer) {
                        peer.too_long += 1;
                    }
                });
                buffers.give_read(train);
            });
            self.is_readable = read.map_err(device_error)?;
            for answer in &answers {
                self.tun.put_whole(answer)?;
            }
            if !answers.is_empty() {
                self.tun.hand_over()?;
            }
        }
        for slot in std::mem::take(&mut self.given) {
            self.settle(turn.hub, slot);
        }
        Ok(self.is_readable)
    }

    fn drain(&mut self, _: &mut Turn<'_>) -> io::Result<bool> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer whose hosts, or whose own box, fill the tables of its link has less room for packets, and takes nothing
    /// from another peer's part.
    #[test]
    fn contexts_take_room_from_packets() {
        let mut pool = Pool::new(1000);
        pool.join(Slot(0));
        assert_eq!(take(&mut pool, Slot(0), 200, 300), 700);
        pool.join(Slot(1));
        assert_eq!(take(&mut pool, Slot(0), 200, 300), 450);
        assert_eq!(take(&mut pool, Slot(1), 0, 0), 500);
        assert_eq!(take(&mut pool, Slot(0), 450, 300), 450);
        assert_eq!((take(&mut pool, Slot(1), 0, 0), pool.in_use()), (250, 750));
    }
}
