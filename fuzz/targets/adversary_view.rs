//! What the segments of an end tell about its state, and which segments must change nothing in it.
//!
//! Everything here is derived from the packets that the end has sent and been given, from its configuration, and from three
//! variables that it shows: the state, RCV.NXT and SND.UNA. What it thinks of a segment is not asked.

use std::collections::VecDeque;

use bentpipe_engine::tcp::{FIRST_BYTE, Flags, Segment, State};
use bentpipe_engine::wire::ip;
use bentpipe_engine::wire::seq::Numbering;
use bentpipe_engine::wire::tcp::{Near, Translation};
use bentpipe_io::Endpoint;

/// SACKed blocks that are remembered.
const BLOCKS: usize = 32;

/// One end, seen from outside.
pub(crate) struct View {
    /// How its peer writes what it sends to this end, and reads what comes from it.
    pub(crate) wire: Translation,
    /// One past the highest number that it has sent.
    pub(crate) snd_max: u64,
    /// Right edge of the widest window that it has offered.
    pub(crate) edge: u64,
    /// TSecr of its last segment: TS.Recent is this, or newer.
    pub(crate) echo: Option<u32>,
    /// Blocks that it has reported: these bytes it has.
    pub(crate) sacked: VecDeque<(u64, u64)>,
    /// The widest window that it was offered, at most.
    pub(crate) max_window: u64,
    /// Bytes of its receive buffer.
    pub(crate) buffer: u64,
    /// Both SYNs carry timestamps.
    pub(crate) timestamps: bool,
}

/// Numbers are 32 bits on the wire: how far one lies after another, negative if before.
pub(crate) fn distance(number: u64, from: u64) -> i64 {
    i64::from(number.wrapping_sub(from) as u32 as i32)
}

impl View {
    /// Reads a segment that the end sends, whose peer has sent up to `peer_max`, and learns from it.
    pub(crate) fn on_sent(&mut self, bytes: &[u8], peer_max: u64) -> Segment {
        let near = Near { rcv_nxt: self.snd_max, snd_una: peer_max };
        let (mut segment, _) = self.wire.parse(bytes, near).expect("what an end sends is a segment");
        if segment.flags.has(Flags::SYN) {
            self.wire.synchronize(bytes, &segment).expect("it has been parsed");
            segment.seq = 0;
            self.edge = self.edge.max(FIRST_BYTE + u64::from(segment.window));
        }
        // The numbers of a reset are those of what it answers.
        if segment.flags.has(Flags::RST) {
            return segment;
        }
        self.snd_max = self.snd_max.max(segment.end());
        if segment.flags.has(Flags::ACK) {
            self.edge = self.edge.max(segment.ack + u64::from(segment.window));
            self.echo = segment.timestamps.map(|timestamps| timestamps.echo).or(self.echo);
            self.sacked.extend(segment.sack.iter(segment.ack));
            self.sacked.drain(..self.sacked.len().saturating_sub(BLOCKS));
        }
        segment
    }

    /// The initial sequence number of the peer and its window scale, which every observer of its SYN knows.
    pub(crate) fn on_peer_syn(&mut self, iss: Numbering, scale: Option<u8>) {
        (self.wire.iss, self.wire.our_scale) = (iss, scale);
    }

    /// Whether a segment that arrives now is not acceptable, or brings nothing but text that the end has, so that nothing in
    /// it may be acted on but by an answer. False where in doubt.
    pub(crate) fn is_harmless(&self, endpoint: &Endpoint, segment: &Segment) -> bool {
        let connection = endpoint.connection();
        let has = |flag| segment.flags.has(flag);
        match connection.state() {
            State::Closed => true,
            // RFC 9293 §3.10.7.2: a RST is ignored, an ACK is answered by a RST, and what is no SYN is dropped.
            State::Listen => has(Flags::RST) || has(Flags::ACK) || !has(Flags::SYN),
            // §3.10.7.3: an ACK of anything but our SYN is refused; without one a RST counts for nothing, and a SYN opens.
            State::SynSent if has(Flags::ACK) => {
                distance(segment.ack, FIRST_BYTE) != 0 || !has(Flags::SYN) && !has(Flags::RST)
            }
            State::SynSent => has(Flags::RST) || !has(Flags::SYN),
            state => self.is_harmless_when_synchronized(endpoint, state, segment),
        }
    }

    fn is_harmless_when_synchronized(&self, endpoint: &Endpoint, state: State, segment: &Segment) -> bool {
        let has = |flag| segment.flags.has(flag);
        let (rcv_nxt, snd_una) = (endpoint.connection().rcv_nxt(), endpoint.connection().snd_una());
        // The ACK of a segment that ends at RCV.NXT counts, although the segment brings nothing new: whoever writes it knows
        // the sequence number (docs/specs/rfc9293.md, departures).
        if has(Flags::ACK) && distance(segment.seq.wrapping_add(segment.sequence_len()), rcv_nxt) == 0 {
            return false;
        }
        let (seq, ack) = (distance(segment.seq, rcv_nxt), distance(segment.ack, snd_una));
        // RFC 5961 §3.2, RFC 1337 §3.
        if has(Flags::RST) {
            return seq != 0 || state == State::TimeWait;
        }
        // RFC 5961 §4.2: a SYN is challenged. RFC 9293 §3.10.7.4: what has no ACK is dropped.
        if has(Flags::SYN) || !has(Flags::ACK) {
            return true;
        }
        // RFC 7323 §3.2, §5.3. Beyond half of the circle TS.Recent may be too far ahead of its last echo to say.
        if self.timestamps {
            let Some(timestamps) = segment.timestamps else { return true };
            let age = self.echo.map(|echo| timestamps.value.wrapping_sub(echo) as i32);
            if age.is_some_and(|age| (-1 << 30..0).contains(&age)) {
                return true;
            }
        }
        // RFC 5961 §5.2; in SYN-RECEIVED RFC 9293 §3.10.7.4 is stricter.
        let unsent = ack > distance(self.snd_max, snd_una);
        let oldest = if state == State::SynReceived { 1 } else { -(self.max_window as i64) };
        if unsent || ack < oldest {
            return true;
        }
        // RFC 9293 §3.10.7.4, first check. At RCV.NXT itself the ACK in a probe counts, though the window is shut.
        let end = seq + segment.sequence_len() as i64;
        let edge = distance(self.edge, rcv_nxt).max(self.buffer as i64 + 1);
        let before = if segment.sequence_len() == 0 { seq < 0 } else { end <= 0 };
        if seq != 0 && (before || seq >= edge) {
            return true;
        }
        // Text that has been SACKed, with an ACK so old that it tells nothing.
        let start = rcv_nxt.saturating_add_signed(seq);
        let has_it = self.sacked.iter().any(|&(from, to)| from <= start && start + u64::from(segment.len) <= to);
        seq > 0 && segment.len > 0 && !has(Flags::FIN) && ack < 0 && has_it
    }
}

/// An IP packet with a right checksum.
pub(super) fn emit(wire: &Translation, segment: &Segment, text: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 2048];
    let header = wire.addresses.header_len();
    // A copy: the scale of a forged SYN is not the peer's.
    let length = { *wire }.emit(segment, &[text], &mut packet[header..]).expect("there is room");
    ip::emit(&wire.addresses, ip::TCP, length, &mut packet).expect("there is room");
    packet.truncate(header + length);
    packet
}
