//! One end of an S-LACP link with its bytes: IP packets above, frames below.
//!
//! The driver provides the clock and the socket. The engine's machine handles numbers; this module adds the packets,
//! the wire format and the arithmetic of the erasure code. Packets that the machine no longer needs are dropped. So an
//! end holds its queues, a window of packets in flight, and the packets of unfinished blocks.

mod bytes;
mod erasure;
mod incoming;
mod numbered;
mod outgoing;
mod room;
mod stats;
mod variation;

use bentpipe_engine::compression::{Announcement, Headers};
use bentpipe_engine::gateway::packet_memory;
use bentpipe_engine::slacp::classify::{self, Flow, FlowHash, Rule};
use bentpipe_engine::slacp::{DATA_HEADER, End, Frame, Input, Output, PROTECTED_HEADER, SlacpConfig, Stats, Verdict};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::slacp::{self, Integrity, SlacpError};
use bentpipe_engine::wire::{EmitError, WireError};
use bentpipe_engine::{Context, Machine, Probe, Step};

use bytes::Bytes;
use incoming::Incoming;
use outgoing::{Given, Outgoing};
pub use stats::LinkEndpointStats;
use variation::{Variation, microseconds};

const fn cost(len: usize) -> u64 {
    packet_memory(len as u64)
}

/// Packets kept for repair frames are dropped if no packet has arrived for this much longer than repair frames may be
/// late. So they can still repair losses from before an outage of this length.
const PAUSE: Duration = Duration::from_secs(10);

/// A packet, and the distance back to the previous packet of its flow.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    bytes: Bytes,
    behind: u16,
}

/// Settings of a [`LinkEndpoint`].
#[derive(Clone, Debug, PartialEq)]
pub struct LinkEndpointConfig {
    /// The link layer; the far end must have the same.
    pub layer: SlacpConfig,
    /// Rules that assign packets to channels.
    pub rules: Vec<(Rule, u8)>,
    /// The channel of all other packets.
    pub default_channel: u8,
    /// A secret for sorting packets by flow and host; `None`: hosts are not distinguished.
    pub flows: Option<FlowHash>,
    /// Maximum packet length in bytes.
    pub max_packet: u16,
    /// True to compress headers. The default channel must then retransmit.
    pub compresses: bool,
    /// How damaged frames are detected.
    pub integrity: Integrity,
}

/// What [`LinkEndpoint::poll`] has written to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emitted {
    /// A frame for the far end, with its length in bytes.
    Frame(usize),
    /// A packet from the far end, with its length in bytes.
    Packet(usize),
}

/// One end of a link.
#[derive(Debug)]
pub struct LinkEndpoint {
    end: End,
    rules: Vec<(Rule, u8)>,
    default_channel: u8,
    flows: Option<FlowHash>,
    max_packet: usize,
    integrity: Integrity,
    headers: Option<Headers>,
    given: Given,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    /// Memory of packets for the far end.
    given_bytes: u64,
    /// Maximum memory of all packets and symbols.
    room: u64,
    /// How long after the last packet the packets kept for repair frames are dropped, and when that is.
    keeps_for: Duration,
    keeps_until: Option<Time>,
    /// When memory left behind by bursts is freed.
    trims_at: Option<Time>,
    variation: Variation,
    stats: LinkEndpointStats,
}

impl LinkEndpoint {
    /// Maximum packet length in bytes: with its length and distance fields, a symbol has an even length of at most
    /// 65535 bytes.
    pub const MAX_PACKET: u16 = u16::MAX - 1 - PROTECTED_HEADER as u16;

    /// Creates an end that has not sent or received anything.
    ///
    /// # Panics
    /// Panics if the layer is weightless or has no channels, if packets may be longer than [`LinkEndpoint::MAX_PACKET`],
    /// or if headers are compressed and the default channel does not retransmit.
    pub fn new(config: &LinkEndpointConfig) -> Self {
        let LinkEndpointConfig { layer, rules, default_channel, flows, max_packet, compresses, integrity } = config;
        assert!(!layer.shortcuts.weightless, "frames with bytes are not weightless");
        assert!(!layer.channels.is_empty(), "a packet needs a channel");
        assert!(*max_packet <= Self::MAX_PACKET, "packets of {max_packet} bytes do not fit a symbol");
        let repeats = layer.channels.get(usize::from(*default_channel)).is_some_and(|channel| channel.arq.is_some());
        assert!(!compresses || repeats, "compressed headers need a channel that retransmits");
        if layer.channels.iter().any(|channel| channel.fec.is_some()) {
            erasure::prepare();
        }
        LinkEndpoint {
            end: End::new(layer),
            rules: rules.clone(),
            default_channel: *default_channel,
            flows: *flows,
            max_packet: usize::from(*max_packet),
            integrity: *integrity,
            headers: compresses.then(Headers::default),
            given: Given::default(),
            outgoing: layer.channels.iter().map(|channel| Outgoing::new(channel.fec)).collect(),
            incoming: layer.channels.iter().map(|_| Incoming::new()).collect(),
            given_bytes: 0,
            room: u64::MAX,
            keeps_for: layer.repairable + PAUSE,
            keeps_until: None,
            trims_at: None,
            variation: Variation::default(),
            stats: LinkEndpointStats::default(),
        }
    }

    /// The machine: its counters and numbers.
    pub fn end(&self) -> &End {
        &self.end
    }

    /// As of [`End::take_longest_arrived`].
    pub fn take_longest_arrived(&mut self) -> u32 {
        self.end.take_longest_arrived()
    }

    /// Counters of the machine.
    pub fn layer_stats(&self) -> Stats {
        self.end.stats()
    }

    /// Counters of lost and refused frames and packets.
    pub fn stats(&self) -> LinkEndpointStats {
        self.stats
    }

    /// Smoothed variation of the one-way delay of received frames, as in RFC 3550 §6.4.1.
    pub fn delay_variation(&self) -> Duration {
        self.variation.get()
    }

    /// Called when the path has changed: what the reports said about the rate no longer holds.
    pub fn on_path_change(&mut self) {
        self.end.on_path_change();
    }

    /// Buffer size for [`LinkEndpoint::poll`]: the longest frame. A report has up to 276 bytes.
    pub fn max_frame(&self) -> usize {
        (self.max_packet + 1 + (DATA_HEADER + PROTECTED_HEADER) as usize).max(276)
    }

    /// Number of our packets whose fate is unknown.
    pub fn unconfirmed(&self) -> usize {
        self.given.len()
    }

    /// Queues a packet for the far end. The layer's counters show whether the queue had room.
    ///
    /// # Errors
    /// Returns [`EmitError::TooLong`] if the packet is longer than the link allows.
    pub fn send<P: Probe>(&mut self, cx: &mut Context<'_, P>, packet: &[u8]) -> Result<(), EmitError> {
        if packet.len() > self.max_packet {
            return Err(EmitError::TooLong(packet.len()));
        }
        let (seen, flow) = classify::read_with(packet, self.flows.as_ref());
        let channel = classify::classify(&self.rules, self.default_channel, &seen, packet.len() as u32);
        let acknowledges = seen.acknowledges;
        self.limit_queue(channel);
        let Some(headers) = &mut self.headers else {
            self.give(cx, channel, flow, acknowledges, packet.into());
            return Ok(());
        };
        let (form, announcement) = headers.compress(flow.flow, packet)?;
        let form = Bytes::from(form);
        self.stats.headers_saved += (packet.len() - form.len()) as u64;
        self.give(cx, channel, flow, acknowledges, form);
        if let Some(Announcement { base, message }) = announcement {
            // It gets a flow of its own, so that nothing waits for it.
            let handle =
                self.give(cx, self.default_channel, Flow { flow: !flow.flow, ..flow }, None, message[..].into());
            self.headers.as_mut().expect("just used").announced(handle, base);
        }
        Ok(())
    }

    /// Queues a packet for the far end, with an explicit channel and flow.
    ///
    /// # Errors
    /// Returns [`EmitError::TooLong`] if the packet is longer than the link allows.
    pub fn send_on<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        channel: u8,
        flow: u64,
        packet: &[u8],
    ) -> Result<(), EmitError> {
        if packet.len() > self.max_packet {
            return Err(EmitError::TooLong(packet.len()));
        }
        self.give(cx, channel, Flow { flow, host: 0 }, None, packet.into());
        Ok(())
    }

    fn give<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        channel: u8,
        Flow { flow, host }: Flow,
        acknowledges: Option<u32>,
        bytes: Bytes,
    ) -> u32 {
        let len = bytes.len() as u32;
        self.trims_at.get_or_insert(cx.now + self.keeps_for);
        self.given_bytes += cost(bytes.len());
        let handle = self.given.keep(bytes);
        self.end.handle(cx, Input::Packet { channel, handle, len, flow, host, acknowledges });
        handle
    }

    /// Handles a frame from the far end.
    ///
    /// # Errors
    /// Fails if the frame is malformed; it then counts as lost.
    pub fn receive<P: Probe>(&mut self, cx: &mut Context<'_, P>, bytes: &[u8]) -> Result<(), SlacpError> {
        let parsed = slacp::parse(bytes, &self.end.near(), self.integrity).and_then(|parsed| self.judge(parsed));
        let slacp::Parsed { frame, time, body } = parsed.inspect_err(|_| self.stats.refused += 1)?;
        if !self.has_room(&frame, body.len()) {
            self.stats.no_room += 1;
            return Ok(());
        }
        self.trims_at.get_or_insert(cx.now + self.keeps_for);
        let verdict = match frame {
            Frame::Data { channel, seq, behind, .. } => {
                let verdict = self.end.handle(cx, Input::Frame(frame));
                if verdict == Verdict::Kept {
                    let held = Held { bytes: bytes[body].into(), behind: behind as u16 };
                    self.learn(&held.bytes);
                    self.incoming[usize::from(channel)].keep(seq, held);
                    self.incoming[usize::from(channel)].earn();
                    self.keeps_until = Some(cx.now + self.keeps_for);
                }
                verdict
            }
            // The packets that it protects are no longer kept, so it counts as lost.
            Frame::Repair { channel, first, .. } if !self.incoming[usize::from(channel)].protects(first) => {
                Verdict::Refused
            }
            Frame::Repair { channel, first, count, index, .. } => {
                let verdict = self.end.handle(cx, Input::Frame(frame));
                if verdict == Verdict::Kept {
                    self.incoming[usize::from(channel)].keep_symbol(first, count, index, &bytes[body]);
                    self.incoming[usize::from(channel)].earn();
                }
                verdict
            }
            Frame::Sync { .. } | Frame::Report(_) => self.end.handle(cx, Input::Frame(frame)),
        };
        if verdict != Verdict::Refused {
            self.variation.note(cx.now, time);
        }
        Ok(())
    }

    /// Refuses frames that are longer than the far end can send, and symbols that do not match their block.
    fn judge(&self, parsed: slacp::Parsed) -> Result<slacp::Parsed, SlacpError> {
        let have = parsed.body.len();
        let fits = match parsed.frame {
            Frame::Data { .. } => have <= self.max_packet,
            Frame::Repair { channel, first, len, .. } => {
                have <= self.max_packet + 1 + PROTECTED_HEADER as usize
                    && self.incoming[usize::from(channel)].fits(first, len)
            }
            Frame::Sync { .. } | Frame::Report(_) => true,
        };
        if fits { Ok(parsed) } else { Err(WireError::PayloadLength(have).into()) }
    }

    /// Polls this end. `Do` describes the content of `out`: pass it on and poll again.
    ///
    /// # Errors
    /// Returns [`EmitError::NoRoom`] if `out` is shorter than [`LinkEndpoint::max_frame`]; nothing is lost.
    pub fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>, out: &mut [u8]) -> Result<Step<Emitted>, EmitError> {
        let (needed, have) = (self.max_frame(), out.len());
        if have < needed {
            return Err(EmitError::NoRoom { needed, have });
        }
        loop {
            match self.end.poll(cx) {
                Step::Wait(until) => return Ok(Step::Wait(self.rest(cx.now, until))),
                Step::Do(Output::Transmit { frame, handle }) => match self.emit(cx.now, &frame, handle, out) {
                    Some(length) => return Ok(Step::Do(Emitted::Frame(length))),
                    None => self.stats.unsaid += 1,
                },
                Step::Do(output) => {
                    if let Some(length) = self.follow(cx, output, out) {
                        return Ok(Step::Do(Emitted::Packet(length)));
                    }
                }
            }
        }
    }

    /// Like [`LinkEndpoint::poll`], if no frame may be sent now. `Do` has the length of a packet from the far end.
    ///
    /// # Errors
    /// Returns the same errors as [`LinkEndpoint::poll`].
    pub fn poll_received<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        out: &mut [u8],
    ) -> Result<Step<usize>, EmitError> {
        let (needed, have) = (self.max_frame(), out.len());
        if have < needed {
            return Err(EmitError::NoRoom { needed, have });
        }
        loop {
            match self.end.poll_received(cx.now) {
                Step::Wait(until) => return Ok(Step::Wait(self.rest(cx.now, until))),
                Step::Do(output) => {
                    if let Some(length) = self.follow(cx, output, out) {
                        return Ok(Step::Do(length));
                    }
                }
            }
        }
    }

    /// Frees what is no longer needed. Returns when this, or the machine, must be polled again.
    fn rest(&mut self, now: Time, until: Option<Time>) -> Option<Time> {
        self.tidy(now);
        Time::earliest(Time::earliest(until, self.keeps_until), self.trims_at)
    }

    /// Carries out an output of the machine, other than to transmit. Returns the length of a packet to be passed on.
    #[inline]
    fn follow<P: Probe>(&mut self, cx: &mut Context<'_, P>, output: Output, out: &mut [u8]) -> Option<usize> {
        match output {
            Output::Deliver { channel, seq } => {
                let packet = self.incoming[usize::from(channel)].deliver(seq);
                let Some(headers) = &self.headers else {
                    out[..packet.len()].copy_from_slice(packet);
                    return Some(packet.len());
                };
                match headers.expand(packet, &mut out[..self.max_packet]) {
                    Ok(Some(length)) => return Some(length),
                    Ok(None) => {}
                    Err(_) => self.stats.unexpanded += 1,
                }
            }
            Output::Recover { channel, seq, first, count } => self.recover(cx, channel, seq, first, count),
            Output::Transmit { .. } | Output::Skip { .. } => {}
            Output::Release { handle, how } => {
                self.given_bytes -= self.given.release(handle);
                if let Some(headers) = &mut self.headers {
                    headers.released(handle, how);
                }
            }
        }
        None
    }

    /// Writes a frame; `None` if it cannot be encoded.
    fn emit(&mut self, now: Time, frame: &Frame, handle: Option<u32>, out: &mut [u8]) -> Option<usize> {
        let time = microseconds(now);
        match (frame, handle) {
            (&Frame::Data { channel, seq, behind, .. }, Some(handle)) => {
                let packet = self.given.get(handle);
                self.outgoing[usize::from(channel)].on_sent(seq, behind, packet);
                slacp::emit(frame, time, &[&packet[..]], self.integrity, out).ok()
            }
            (&Frame::Repair { channel, first, count, index, len, .. }, _) => {
                let symbol = self.outgoing[usize::from(channel)].symbol(first, count, index, len)?;
                slacp::emit(frame, time, &[symbol], self.integrity, out).ok()
            }
            _ => slacp::emit(frame, time, &[], self.integrity, out).ok(),
        }
    }

    fn recover<P: Probe>(&mut self, cx: &mut Context<'_, P>, channel: u8, seq: u64, first: u64, count: u8) {
        if self.end.has(channel, seq) {
            return;
        }
        let incoming = &mut self.incoming[usize::from(channel)];
        let recovered = incoming.recover(seq, first, count);
        let Some(packet) = recovered.filter(|packet| packet.bytes.len() <= self.max_packet) else {
            incoming.fail(first);
            self.stats.undecodable += 1;
            return;
        };
        let (behind, len) = (packet.behind.into(), packet.bytes.len() as u32);
        if self.end.handle(cx, Input::Recovered { channel, seq, behind, len }) == Verdict::Kept {
            self.learn(&packet.bytes);
            self.incoming[usize::from(channel)].keep(seq, packet);
        }
    }

    /// Applies a header base as soon as it arrives, because later packets may be delivered before it.
    fn learn(&mut self, bytes: &[u8]) {
        if let Some(headers) = &mut self.headers
            && !headers.learn(bytes)
        {
            self.stats.unexpanded += 1;
        }
    }

    fn tidy(&mut self, now: Time) {
        if self.keeps_until.take_if(|until| *until <= now).is_some() {
            incoming::spare_all(&mut self.incoming);
        }
        if self.trims_at.take_if(|at| *at <= now).is_some() && self.end.trim() {
            self.trims_at = Some(now + self.keeps_for);
        }
        let end = &self.end;
        for (channel, (outgoing, incoming)) in (0..=u8::MAX).zip(self.outgoing.iter_mut().zip(&mut self.incoming)) {
            self.given_bytes -= outgoing.forget(end.protects_from(channel).expect("one of ours"));
            incoming.tidy(|seq| end.needs(channel, seq), |first| end.awaits(channel, first));
        }
    }
}

#[cfg(test)]
mod tests;
