//! What a connection asks of its sending half, whichever protocol it is of.
//!
//! TCP's congestion-controlled sender is one; STP's sender of constant window is another. Opening, closing, resets and
//! the receiver are the same for both (ESA's STP "adopts the same procedures implemented in TCP"), so they stand once,
//! in [`Duplex`](super::Duplex).

use super::connection::Abort;
use super::segment::Segment;
use crate::machine::Context;
use crate::probe::Probe;
use crate::units::{Duration, Time};

/// Whose segments a connection exchanges: what differs in their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP (RFC 9293): 16-bit windows with an agreed shift, options agreed in the SYNs.
    Tcp,
    /// STP ([`wire::stp`](crate::wire::stp)): windows in full, SACK always.
    Stp,
}

impl Protocol {
    /// The greatest window that a header says without a shift.
    pub(super) const fn window_limit(self) -> u64 {
        match self {
            Protocol::Tcp => u16::MAX as u64,
            Protocol::Stp => u32::MAX as u64,
        }
    }
}

/// What sequence numbers go out in one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first of them.
    pub seq: u64,
    /// Bytes of payload.
    pub len: u16,
    /// It is the SYN.
    pub syn: bool,
    /// A FIN follows the payload.
    pub fin: bool,
    /// Nothing more is written behind it.
    pub push: bool,
    /// Its first number has been sent before.
    pub retransmission: bool,
}

impl Span {
    /// The segment that starts at `seq` and ends before `edge`, of what has been written up to `data_end`, at most `mss`
    /// bytes; `fin`: behind the data stands a FIN.
    #[inline(always)]
    pub(crate) fn at(seq: u64, edge: u64, mss: u16, data_end: u64, fin: bool) -> Span {
        if seq == 0 {
            return Span { seq, len: 0, syn: true, fin: false, push: false, retransmission: false };
        }
        let data = data_end.min(edge).saturating_sub(seq).min(mss as u64);
        let end = seq + data;
        let fin = fin && end == data_end && (edge > end || data == 0);
        Span { seq, len: data as u16, syn: false, fin, push: data > 0 && end == data_end, retransmission: false }
    }

    /// The sequence number after it.
    #[inline(always)]
    pub(crate) fn end(&self) -> u64 {
        self.seq + self.len as u64 + self.syn as u64 + self.fin as u64
    }
}

/// Counters of a sender; their meaning stands at [`TcpStats`](super::TcpStats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields of TcpStats")]
pub struct SenderCounters {
    pub segments: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    pub fast_retransmits: u64,
    pub spurious_timeouts: u64,
    pub acks: u64,
    pub duplicate_acks: u64,
    pub max_flight: u64,
    pub max_cwnd: u64,
    pub max_burst: u32,
}

/// The sending half of a connection. Sequence numbers, SYN and FIN included, are one space from 0 on.
pub trait SendingHalf {
    /// Whose segments it sends.
    const PROTOCOL: Protocol;

    /// First sequence number not acknowledged.
    fn snd_una(&self) -> u64;
    /// Next sequence number to send.
    fn snd_nxt(&self) -> u64;
    /// One past the highest sequence number ever sent.
    fn snd_max(&self) -> u64;
    /// The sequence number of a segment without data.
    fn seq_of_bare_ack(&self) -> u64;
    /// SND.UNA - MAX.SND.WND (RFC 5961 §5.2).
    fn oldest_acceptable_ack(&self) -> u64;
    /// Bytes written.
    fn written(&self) -> u64;
    /// Bytes written and acknowledged.
    fn acknowledged(&self) -> u64;
    /// Whether the user has closed: a FIN follows the data.
    fn is_closed(&self) -> bool;
    /// Whether the peer has acknowledged our FIN.
    fn fin_acknowledged(&self) -> bool;
    /// Bytes of payload in a full segment.
    fn mss(&self) -> u16;
    /// The window that the sender sets itself, bytes.
    fn cwnd(&self) -> u64;
    /// Its slow start threshold, bytes; `u64::MAX` where there is none.
    fn ssthresh(&self) -> u64;
    /// Smoothed round trip, where one is measured.
    fn srtt(&self) -> Option<Duration>;
    /// What it counted.
    fn counters(&self) -> &SenderCounters;

    /// The user has so many more bytes to send.
    fn write(&mut self, bytes: u64);
    /// The user sends no more.
    fn close(&mut self);
    /// The handshake is done: data may go out.
    fn established(&mut self, mss: u16, initial_window: u32, sack: bool);
    /// The peer's SYN has told its MSS; data cannot go out yet.
    fn set_peer_mss(&mut self, mss: u16);
    /// This end sends no SYN: the opening is one-way.
    fn skip_syn(&mut self);
    /// Sends the SYN once more: it crossed the peer's, or the peer repeats its own.
    fn resend_syn(&mut self);
    /// Forgets the peer: a passive connection returns to LISTEN. Bytes written stay.
    fn relisten(&mut self);
    /// Takes the window that a segment offers. Whether it changed.
    fn update_window(&mut self, segment: &Segment) -> bool;
    /// Takes an acceptable ACK, `snd_una <= ack <= snd_max`; `sample` is the round trip that timestamps give.
    fn on_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        window_changed: bool,
        sample: Option<Duration>,
    );
    /// When a timer runs out next.
    fn deadline(&self) -> Option<Time>;
    /// Lets timers that are due act.
    ///
    /// # Errors
    /// A segment was retransmitted as often as allowed.
    fn on_time<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Result<(), Abort>;
    /// The next segment to send now, if any, with `reserved` bytes of a full segment left free for options that change
    /// from segment to segment (RFC 6691 §2).
    fn next(&mut self, now: Time, reserved: u16) -> Option<Span>;
    /// The probe of a closed window, where one is due (RFC 9293 §3.8.6.1).
    fn window_probe(&mut self) -> Option<Span>;
    /// A segment goes to the driver now: one of [`SendingHalf::next`]'s, an ACK or a reset.
    #[inline(always)]
    fn on_transmit(&mut self, _now: Time, _segment: &Segment) {}
    /// The number of the last poll sent, of a sender that polls instead of keeping timers (STP).
    fn poll_number(&self) -> Option<u32> {
        None
    }
    /// Bytes of memory for what the peer has reported by SACK.
    fn memory(&self) -> usize;
    /// Invariants that hold between events.
    fn check(&self);
}
