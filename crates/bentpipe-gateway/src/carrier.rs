//! One end of the link between two boxes: a tunnel around an S-LACP end. Both shapes use it. It has no clock and no
//! socket.
//!
//! The link lasts as long as both ends remember it. An [`Event::Up`] begins a new link, and nothing of the old one is
//! delivered after it.

mod path;
pub(crate) mod readings;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;

use bentpipe_engine::gateway::{FRAME_OVERHEAD, datagram, udp_overhead};
use bentpipe_engine::slacp::{ChannelStats, Overhead, RateControl, Stats};
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_engine::wire::EmitError;
use bentpipe_engine::{Context, Step};
use bentpipe_io::{Emitted, LinkEndpoint, LinkEndpointConfig};

use crate::parts::{Cutter, Joiner, PART_HEADER};
use crate::path_mtu::Paths;
use crate::tunnel::{
    DATA_HEADER, DATA_OVERHEAD, Event, Heard, Note, PresharedKey, Sealed, Todo, Tunnel, TunnelConfig, What,
};

/// A request of a [`Carrier`] to its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Send the datagram in the buffer.
    Send(Sealed),
    /// A packet from the far end occupies this range of the buffer.
    Packet(Range<usize>),
    /// The tunnel, and the link with it, came up or went down.
    Event(Event),
    /// Tell the operator.
    Log(Note),
    /// The largest datagram of the path changed, and with it the largest packet.
    PathMtu(PathChange),
}

/// The new limits of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The path's MTU, including IP headers.
    pub mtu: u16,
    /// The longest packet that fits one datagram.
    pub max_packet: u16,
    /// True if the limit fell because larger datagrams were lost.
    pub black_hole: bool,
}

/// Counters of an end, summed over all its links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarrierStats {
    /// Counters of the link layer, by channel.
    pub channels: Vec<ChannelStats>,
    /// Frames sent.
    pub frames: u64,
    /// Bytes of these frames, including the tunnel's headers.
    pub frame_bytes: u64,
    /// The round trip of the current link, if measured.
    pub srtt: Option<Duration>,
    /// Packets dropped because there was no link.
    pub no_link: u64,
    /// Frames refused on arrival.
    pub refused: u64,
    /// Frames refused for lack of memory.
    pub no_room: u64,
    /// Bytes of packets from the far end.
    pub received_bytes: u64,
    /// Header bytes saved by compression. Retransmissions do not count.
    pub headers_saved: u64,
    /// Packets from the far end whose headers could not be expanded.
    pub unexpanded: u64,
    /// Frames sent in parts.
    pub cut: u64,
    /// Black holes found: datagrams of a length that used to pass were lost.
    pub black_holes: u64,
}

/// One end.
#[derive(Debug)]
pub struct Carrier {
    tunnel: Tunnel,
    config: LinkEndpointConfig,
    endpoint: Option<LinkEndpoint>,
    /// The link's memory limit.
    room: u64,
    events: VecDeque<Event>,
    past: CarrierStats,
    paths: Paths,
    cutter: Cutter,
    joiner: Joiner,
    /// Probes of the peer that are still to be acknowledged.
    acks: VecDeque<u32>,
    shape: SameShape,
}

/// Whether the peer's packets can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SameShape {
    Assumed,
    /// It is in doubt, and the operator is to be told, once.
    Doubted,
    Told,
}

/// If this many packets have arrived and none could be expanded, the peer does not send IP packets.
const UNEXPANDED: u64 = 3;

/// Maximum number of waiting acknowledgements: more than a round of probes has.
const MAX_ACKS: usize = 16;

impl Carrier {
    /// Creates an end that has received nothing yet.
    pub fn new(tunnel: TunnelConfig, link: LinkEndpointConfig, now: Time) -> Self {
        let max_datagram = link.max_packet + FRAME_OVERHEAD + DATA_OVERHEAD as u16;
        Carrier {
            tunnel: Tunnel::new(tunnel, now),
            past: CarrierStats {
                channels: vec![ChannelStats::default(); link.layer.channels.len()],
                ..CarrierStats::default()
            },
            config: link,
            endpoint: None,
            room: u64::MAX,
            events: VecDeque::new(),
            paths: Paths::new(max_datagram, now),
            cutter: Cutter::default(),
            joiner: Joiner::new(usize::from(max_datagram)),
            acks: VecDeque::new(),
            shape: SameShape::Assumed,
        }
    }

    /// Sets `slot` as the lower half of the tunnel's session numbers: [`Tunnel::in_slot`].
    pub(crate) fn in_slot(self, slot: u16) -> Self {
        Carrier { tunnel: self.tunnel.in_slot(slot), ..self }
    }

    /// The tunnel.
    pub fn tunnel(&self) -> &Tunnel {
        &self.tunnel
    }

    /// Changes the preshared key: [`Tunnel::set_preshared`].
    pub(crate) fn set_preshared(&mut self, preshared: Option<PresharedKey>) {
        self.tunnel.set_preshared(preshared);
    }

    /// The path MTU found so far, including IP headers.
    pub fn path_mtu(&self) -> u16 {
        self.paths.current.told() + udp_overhead(self.tunnel.endpoint().is_some_and(|at| at.is_ipv6()))
    }

    /// True if the path MTU is known; until then it is assumed to be as large as the settings allow.
    pub fn path_mtu_is_known(&self) -> bool {
        self.paths.current.is_known()
    }

    /// The longest packet that fits one datagram on the current path.
    pub fn max_packet(&self) -> u16 {
        (self.paths.current.told() - FRAME_OVERHEAD - DATA_OVERHEAD as u16).min(self.config.max_packet)
    }

    /// Called when the kernel refused a datagram of this size as too long.
    pub(crate) fn on_too_long(&mut self, now: Time, size: usize) {
        self.paths.current.on_too_long(now, size);
    }

    /// Makes new keys before anything else is sent: [`Tunnel::renew`].
    pub(crate) fn renew(&mut self, now: Time) {
        self.tunnel.renew(now);
    }

    /// True if the link is up.
    pub fn is_up(&self) -> bool {
        self.endpoint.is_some()
    }

    /// Number of packets of a channel that wait for their first transmission.
    pub fn waiting(&self, channel: u8) -> usize {
        self.endpoint.as_ref().map_or(0, |endpoint| endpoint.end().waiting(channel))
    }

    /// True if an event or a packet waits to be taken.
    pub(crate) fn has_arrived(&self) -> bool {
        !self.events.is_empty() || self.endpoint.as_ref().is_some_and(|endpoint| endpoint.end().has_output())
    }

    /// Number of outputs of the layer that wait for the next poll.
    pub fn outputs(&self) -> usize {
        self.endpoint.as_ref().map_or(0, |endpoint| endpoint.end().outputs())
    }

    /// The last change of the link, if it has not been reported yet.
    pub(crate) fn take_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Number of packets that are not known to have arrived.
    pub fn unconfirmed(&self) -> usize {
        self.endpoint.as_ref().map_or(0, LinkEndpoint::unconfirmed)
    }

    /// Memory in bytes of packets that are queued, unacknowledged, or behind a gap.
    pub fn held_bytes(&self) -> u64 {
        self.endpoint.as_ref().map_or(0, LinkEndpoint::held_bytes)
    }

    /// The part of these bytes that the link cannot drop: [`LinkEndpoint::needed_bytes`].
    pub fn needed_bytes(&self) -> u64 {
        self.endpoint.as_ref().map_or(0, LinkEndpoint::needed_bytes)
    }

    /// Memory of the flow contexts of header compression, in bytes: [`LinkEndpoint::context_bytes`].
    pub fn context_bytes(&self) -> u64 {
        self.endpoint.as_ref().map_or(0, LinkEndpoint::context_bytes)
    }

    /// Memory of packets for the far end, bytes.
    pub fn given_bytes(&self) -> u64 {
        self.endpoint.as_ref().map_or(0, LinkEndpoint::given_bytes)
    }

    /// Limits the memory of packets: [`LinkEndpoint::set_room`].
    pub fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.set_room(bytes);
        }
    }

    /// The configured rate of this end.
    pub(crate) fn rate_told(&self) -> Option<Rate> {
        self.config.layer.rate
    }

    /// The current rate; `None` without a link.
    pub(crate) fn rate_used(&self) -> Option<Rate> {
        self.endpoint.as_ref().and_then(|endpoint| endpoint.end().rate())
    }

    /// True if the sender finds its share of the configured rate; false if it expects all of it.
    pub(crate) fn is_shared(&self) -> bool {
        self.config.layer.rate_control != RateControl::Provisioned
    }

    /// The configured rate and the current one, if the link is up and the sender expects all of the configured one.
    pub(crate) fn provisioned(&self) -> Option<(Rate, Rate)> {
        self.rate_told().zip(self.rate_used()).filter(|_| !self.is_shared())
    }

    /// The counters.
    pub fn stats(&self) -> CarrierStats {
        let mut sum = self.past.clone();
        if let Some(endpoint) = &self.endpoint {
            add(&mut sum, endpoint);
        }
        sum
    }

    /// Takes an IP packet for the far end.
    ///
    /// # Errors
    /// Returns [`EmitError::TooLong`] if the packet is longer than the link allows.
    pub fn send(&mut self, now: Time, packet: &[u8]) -> Result<(), EmitError> {
        match &mut self.endpoint {
            Some(endpoint) => endpoint.send(&mut Context::silent(now), packet),
            None => {
                self.past.no_link += 1;
                Ok(())
            }
        }
    }

    /// Takes a packet for the far end whose channel and flow are known.
    ///
    /// # Errors
    /// Returns [`EmitError::TooLong`] if the packet is longer than the link allows.
    pub fn send_on(&mut self, now: Time, channel: u8, flow: u64, packet: &[u8]) -> Result<(), EmitError> {
        debug_assert!(
            self.events.is_empty(),
            "a caller that has not taken the event would send the old link's data on the new one"
        );
        match &mut self.endpoint {
            Some(endpoint) => endpoint.send_on(&mut Context::silent(now), channel, flow, packet),
            None => {
                self.past.no_link += 1;
                Ok(())
            }
        }
    }

    /// Takes a datagram received by the socket.
    pub fn receive(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) {
        let Heard { event, what, payload } = self.tunnel.receive(now, from, datagram);
        if let Some(event) = event {
            self.on_event(event);
        }
        self.paths.lead_to(now, self.tunnel.endpoint().map(|at| at.ip()));
        if self.tunnel.take_moved()
            && let Some(endpoint) = &mut self.endpoint
        {
            // What was sent to the old address is lost, which says nothing of the new path (RFC 9000 §9.4).
            endpoint.on_path_change();
        }
        let Some(payload) = payload.map(|at| &datagram[at]) else { return };
        let id = || payload.first_chunk().copied().map(u32::from_le_bytes);
        match what {
            What::Frame => self.on_frame(now, payload),
            What::Part => {
                if let Some(frame) = self.joiner.take(payload) {
                    self.on_frame(now, &frame);
                }
            }
            What::Probe => self.acks.extend(id().filter(|_| self.acks.len() < MAX_ACKS)),
            What::Ack => {
                if let Some(id) = id() {
                    self.paths.on_ack(now, id);
                }
            }
        }
    }

    fn on_frame(&mut self, now: Time, frame: &[u8]) {
        if let Some(endpoint) = &mut self.endpoint {
            // The endpoint counts malformed frames. They are treated like lost ones.
            let _ = endpoint.receive(&mut Context::silent(now), frame);
            if let (longest @ 1.., Overhead::Bytes(overhead)) =
                (endpoint.take_longest_arrived(), self.config.layer.overhead)
            {
                self.paths.current.on_arrived(now, datagram(longest, overhead) as usize);
            }
            if endpoint.end().is_stuck() {
                self.tunnel.start_over(now);
            }
            if endpoint.stats().unexpanded >= UNEXPANDED && self.past.received_bytes == 0 {
                self.doubt_shape();
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        if let Some(endpoint) = self.endpoint.take() {
            add(&mut self.past, &endpoint);
            self.past.srtt = None;
        }
        // A frame of the old link would be taken for one of the new link with the same number.
        self.cutter.clear();
        self.joiner.clear();
        self.endpoint = (event == Event::Up).then(|| LinkEndpoint::new(&self.config));
        self.set_room(self.room);
        self.events.push_back(event);
    }

    /// Called when a packet of the peer cannot be read.
    pub(crate) fn doubt_shape(&mut self) {
        if self.shape == SameShape::Assumed {
            self.shape = SameShape::Doubted;
        }
    }

    /// The next request of this end. Datagrams and packets are written to `out`, which must have at least 64 KiB.
    /// `wall` is as in [`Tunnel::poll`].
    pub fn poll(&mut self, now: Time, wall: u64, out: &mut [u8]) -> Step<Carried> {
        if let Some(event) = self.events.pop_front() {
            return Step::Do(Carried::Event(event));
        }
        if self.shape == SameShape::Doubted {
            self.shape = SameShape::Told;
            return Step::Do(Carried::Log(Note::Unreadable));
        }
        let tunnel = match self.tunnel.poll(now, wall, out) {
            Step::Do(Todo::Send(sealed)) => return Step::Do(Carried::Send(sealed)),
            Step::Do(Todo::Tell(event)) => {
                self.on_event(event);
                return self.poll(now, wall, out);
            }
            Step::Do(Todo::Log(note)) => return Step::Do(Carried::Log(note)),
            Step::Wait(until) => until,
        };
        let tunnel = match self.poll_path(now, out) {
            Step::Do(carried) => return Step::Do(carried),
            Step::Wait(until) => Time::earliest(tunnel, until),
        };
        while let Some(endpoint) = &mut self.endpoint {
            let may_send = self.tunnel.may_seal(now) && self.tunnel.allowance() >= u64::from(self.paths.current.size());
            if !may_send {
                // A frame that could not be sent would count as lost. New keys take a round trip.
                let received = endpoint.poll_received(&mut Context::silent(now), &mut out[DATA_HEADER..]);
                return match received.expect("the buffer takes every packet") {
                    Step::Wait(until) => Step::Wait(Time::earliest(tunnel, until)),
                    Step::Do(length) => {
                        self.past.received_bytes += length as u64;
                        Step::Do(Carried::Packet(DATA_HEADER..DATA_HEADER + length))
                    }
                };
            }
            // Writes the frame to where the tunnel seals it.
            match endpoint
                .poll(&mut Context::silent(now), &mut out[DATA_HEADER..])
                .expect("the buffer takes every frame")
            {
                Step::Wait(until) => return Step::Wait(Time::earliest(tunnel, until)),
                Step::Do(Emitted::Packet(length)) => {
                    self.past.received_bytes += length as u64;
                    return Step::Do(Carried::Packet(DATA_HEADER..DATA_HEADER + length));
                }
                Step::Do(Emitted::Frame(length)) => {
                    let max = usize::from(self.paths.current.size()) - DATA_OVERHEAD;
                    debug_assert!(max > PART_HEADER);
                    if length > max && self.cutter.take(&out[DATA_HEADER..DATA_HEADER + length], max) {
                        self.past.cut += 1;
                        if let Some(sealed) = self.next_part(now, out) {
                            return Step::Do(Carried::Send(sealed));
                        }
                        continue;
                    }
                    if let Some(sealed) = self.tunnel.seal(now, What::Frame, length, out) {
                        self.paths.current.on_sent(sealed.len);
                        return Step::Do(Carried::Send(sealed));
                    }
                }
            }
        }
        Step::Wait(tunnel)
    }
}

#[cfg(test)]
mod tests;

fn add(sum: &mut CarrierStats, endpoint: &LinkEndpoint) {
    let stats: Stats = endpoint.layer_stats();
    for (sum, &more) in sum.channels.iter_mut().zip(&stats.channels) {
        *sum += more;
    }
    sum.frames += stats.frames;
    sum.frame_bytes += stats.bytes;
    sum.srtt = stats.srtt;
    let endpoint = endpoint.stats();
    sum.refused += endpoint.refused;
    sum.no_room += endpoint.no_room;
    sum.headers_saved += endpoint.headers_saved;
    sum.unexpanded += endpoint.unexpanded;
}
