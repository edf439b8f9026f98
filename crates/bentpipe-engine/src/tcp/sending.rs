//! The interface of a connection to its sending half, for both protocols.
//!
//! TCP's congestion-controlled sender is one; STP's sender with its constant window is the other. Opening, closing,
//! resets and the receiver are the same for both (ESA's STP "adopts the same procedures implemented in TCP"), so they
//! are implemented once, in [`Duplex`](super::Duplex).

use super::abort::Abort;
use super::ecn::EcnMode;
use super::segment::{FIRST_BYTE, Flags, Segment};
use super::sequence::SequenceSpace;
use super::span::Span;
use crate::machine::Context;
use crate::probe::Probe;
use crate::units::{Duration, Time};
use crate::wire::ecn::Ecn;

/// The protocol of a connection, which determines the headers of its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP (RFC 9293): 16-bit windows with a negotiated shift, options negotiated in the SYNs.
    Tcp,
    /// STP ([`wire::stp`](crate::wire::stp)): unscaled 32-bit windows, and always SACK.
    Stp,
}

impl Protocol {
    /// The maximum window in a header without a shift.
    pub(super) const fn window_limit(self) -> u64 {
        match self {
            Protocol::Tcp => u16::MAX as u64,
            Protocol::Stp => u32::MAX as u64,
        }
    }
}

/// Counters of a sender. [`TcpStats`](super::TcpStats) describes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields of TcpStats")]
#[repr(C)]
pub struct SenderCounters {
    pub segments: u64,
    pub acks: u64,
    pub max_flight: u64,
    pub max_cwnd: u64,
    pub max_burst: u32,
    pub retransmits: u64,
    pub timeouts: u64,
    pub fast_retransmits: u64,
    pub spurious_timeouts: u64,
    pub spurious_recoveries: u64,
    pub ecn_reductions: u64,
    pub marks_told: u64,
    pub duplicate_acks: u64,
}

/// The sending half of a connection: [`Sender`](super::Sender) of TCP or [`stp::Sender`](crate::stp::Sender). Sealed,
/// because its methods are private to this crate.
pub trait SendingHalf: Half {}

impl<S: Half> SendingHalf for S {}

/// What a connection requires of its sending half.
pub trait Half {
    /// The protocol whose segments it sends.
    const PROTOCOL: Protocol;

    /// The sequence numbers sent.
    fn sequence(&self) -> &SequenceSpace;
    /// The sequence numbers sent, mutable.
    fn sequence_mut(&mut self) -> &mut SequenceSpace;

    /// The first sequence number not acknowledged.
    #[inline(always)]
    fn snd_una(&self) -> u64 {
        self.sequence().snd_una
    }

    /// One past the highest sequence number ever sent.
    #[inline(always)]
    fn snd_max(&self) -> u64 {
        self.sequence().snd_max
    }

    /// True once the user has closed: a FIN follows the data.
    #[inline(always)]
    fn is_closed(&self) -> bool {
        self.sequence().fin
    }

    /// Opens without a SYN, because the opening is one-way.
    fn skip_syn(&mut self) {
        self.sequence_mut().restart_at(FIRST_BYTE);
    }

    /// Bytes of payload in a full segment.
    fn mss(&self) -> u16;
    /// The sender's own window, bytes.
    fn cwnd(&self) -> u64;
    /// Its slow start threshold, bytes; `u64::MAX` if it has none.
    fn ssthresh(&self) -> u64;
    /// The smoothed round trip, if the sender measures one.
    fn srtt(&self) -> Option<Duration>;
    /// The latest round trip, as exactly as the sender measures it.
    fn latest_rtt(&self) -> Option<Duration> {
        self.srtt()
    }
    /// Its counters.
    fn counters(&self) -> &SenderCounters;

    /// Bytes that the user may write now.
    fn room(&self) -> u64 {
        u64::MAX
    }
    /// Bytes that the user may write before segments leave.
    fn room_in_piece(&self) -> u64 {
        u64::MAX
    }
    /// Records that the user waits until it may write.
    fn wait_for_room(&mut self) {}
    /// Looks for room after an event, if the user waits for it.
    #[inline(always)]
    fn look_for_room(&mut self, _now: Time) {}
    /// Records that the user has this many more bytes to send.
    fn write(&mut self, bytes: u64);
    /// Records that the user ends the stream.
    fn close(&mut self);
    /// Completes the handshake: data may be sent.
    fn established(&mut self, mss: u16, initial_window: u32, sack: bool);
    /// Sets the ECN mode that both ends use. `handshake`: the next ACK ends a passive opening. `control`: segments
    /// without new data take part.
    fn use_ecn(&mut self, _mode: EcnMode, _handshake: bool, _control: bool) {}
    /// Takes what the SYN-ACK that completed an active opening reports about marks.
    fn take_syn_ack(&mut self, _segment: &Segment) {}
    /// Stops sending ECT. Reported marks still count.
    fn send_not_ect(&mut self) {}
    /// The ECN field of a segment without new data.
    fn ect_of_control(&self) -> Ecn {
        Ecn::NotEct
    }
    /// The ECN field and ECN flag of a segment with data, if both ends use ECN.
    fn marks_of(&mut self, _span: &Span) -> (Ecn, Flags) {
        (Ecn::NotEct, Flags::NONE)
    }
    /// Sets the MSS from the peer's SYN, before data can be sent.
    fn set_peer_mss(&mut self, mss: u16);
    /// Sends the SYN again, because it crossed the peer's or the peer repeated its own.
    fn resend_syn(&mut self);
    /// Forgets the peer, because a passive connection returns to LISTEN. Written bytes stay.
    fn relisten(&mut self);
    /// Takes the window that a segment offers. Returns whether it changed.
    fn update_window(&mut self, segment: &Segment) -> bool;
    /// Takes an acceptable ACK, `snd_una <= ack <= snd_max`. `sample` is the round trip measured by timestamps.
    fn on_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        window_changed: bool,
        sample: Option<Duration>,
    );
    /// Does the same, by a shorter way, for a bare ACK of new data while no loss is being repaired, if it knows that way.
    /// Otherwise returns false and has no effect.
    #[inline(always)]
    fn take_ordinary_ack<P: Probe>(
        &mut self,
        _cx: &mut Context<'_, P>,
        _segment: &Segment,
        _sample: Option<Duration>,
    ) -> bool {
        false
    }
    /// Takes an ACK below `snd_una` with SACK blocks.
    fn on_overtaken_ack<P: Probe>(&mut self, _cx: &mut Context<'_, P>, _segment: &Segment) {}
    /// True while no loss is being repaired: predicted segments then take the fast path. Always false for a sender
    /// without a fast path.
    #[inline(always)]
    fn is_calm(&self) -> bool {
        false
    }
    /// Takes the ACK of a predicted segment with data. It acknowledges nothing new. `rests`: the sender has done nothing since an
    /// event that needs nothing of it, as this one.
    #[inline(always)]
    fn on_ack_beside_data(&mut self, _rests: bool) {}

    /// When the next timer expires; [`Time::NEVER`] if none runs.
    fn deadline(&self) -> Time;
    /// Runs the timers that are due.
    ///
    /// # Errors
    /// Returns [`Abort::RetriesExhausted`] if a segment was retransmitted as often as allowed.
    fn on_time<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Result<(), Abort>;
    /// The next segment to send now, if any. `reserved` bytes of a full segment stay free for options that change from
    /// segment to segment (RFC 6691 §2).
    fn next(&mut self, now: Time, reserved: u16) -> Option<Span>;
    /// The probe of a closed window, if one is due (RFC 9293 §3.8.6.1).
    fn window_probe(&mut self) -> Option<Span>;
    /// Records that a segment goes to the driver now: one returned by [`Half::next`], an ACK or a reset.
    #[inline(always)]
    fn on_transmit(&mut self, _now: Time, _segment: &Segment) {}
    /// The number of the last poll sent, for a sender that polls instead of keeping timers (STP).
    fn poll_number(&self) -> Option<u32> {
        None
    }
    /// Heap memory of the peer's SACK blocks in bytes.
    fn memory(&self) -> usize;
    /// Checks the invariants that hold between events.
    fn check(&self);
}
