//! Checks whether a segment is acceptable in the current state (RFC 9293 §3.10.7), without changing the connection.

use super::{Duplex, State};
use crate::tcp::config::Handshake;
use crate::tcp::segment::{FIRST_BYTE, Flags, Segment};
use crate::tcp::sending::SendingHalf;
use crate::units::{Duration, Time};

/// What to do with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Accept it.
    Accept,
    /// Drop it silently.
    Drop,
    /// Answer with a reset, and drop it.
    Refuse,
    /// A reset; the state decides whether it counts.
    Reset,
    /// A SYN, though the peer's sequence numbers are known.
    Syn,
    /// Its timestamp is older than the last one received.
    Old,
    /// It is outside the window.
    OutsideWindow,
    /// Its ACK is not acceptable.
    BadAck,
}

/// How long TS.Recent stays valid on an idle connection (RFC 7323 §5.5).
const TS_RECENT_LIFETIME: Duration = Duration::from_secs(24 * 24 * 3600);

impl<S: SendingHalf> Duplex<S> {
    /// True if a segment would be accepted, with its payload as data. A driver can call this before it allocates memory
    /// for the payload.
    pub fn would_accept(&self, now: Time, segment: &Segment) -> bool {
        self.check(now, segment) == Check::Accept
    }

    /// What to do with a segment.
    #[inline(always)]
    pub(super) fn check(&self, now: Time, segment: &Segment) -> Check {
        if self.is_synchronized() { self.check_synchronized(now, segment) } else { self.check_unsynchronized(segment) }
    }

    /// True from the time the peer's sequence numbers are known until the end.
    #[inline(always)]
    fn is_synchronized(&self) -> bool {
        !matches!(self.state, State::Closed | State::Listen | State::SynSent)
    }

    #[cold]
    fn check_unsynchronized(&self, segment: &Segment) -> Check {
        match self.state {
            State::Listen => check_listen(segment),
            State::SynSent => self.check_syn_sent(segment),
            _ => self.check_closed(segment),
        }
    }

    fn check_closed(&self, segment: &Segment) -> Check {
        if self.if_closed().refuses(segment) { Check::Refuse } else { Check::Drop }
    }

    /// RFC 9293 §3.10.7.3.
    fn check_syn_sent(&self, segment: &Segment) -> Check {
        let flags = segment.flags;
        let acks_syn = flags.has(Flags::ACK) && segment.ack == FIRST_BYTE;
        if flags.has(Flags::ACK) && !acks_syn {
            return if flags.has(Flags::RST) { Check::Drop } else { Check::Refuse };
        }
        if flags.has(Flags::RST) {
            return if acks_syn { Check::Reset } else { Check::Drop };
        }
        let is_bare_ack_enough = self.config.shortcuts.handshake == Handshake::OneWay && acks_syn;
        if flags.has(Flags::SYN) || is_bare_ack_enough { Check::Accept } else { Check::Drop }
    }

    /// RFC 9293 §3.10.7.4. No part of a segment takes effect before these checks, so a forged one changes neither the
    /// received bytes nor TS.Recent.
    #[inline(always)]
    fn check_synchronized(&self, now: Time, segment: &Segment) -> Check {
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            return Check::Reset;
        }
        if flags.has(Flags::SYN) {
            return Check::Syn;
        }
        // RFC 9293 §3.10.7.4 drops a segment without ACK only after the window check, so it would answer one outside
        // the window. No TCP sends such a segment, so here it gets no answer.
        if !flags.has(Flags::ACK) {
            return Check::Drop;
        }
        if self.kept.timestamps {
            //= RFC 7323 §3.2: "If a non-<RST> segment is received without a TSopt, a TCP SHOULD silently drop the segment."
            let Some(timestamps) = segment.timestamps else { return Check::Drop };
            //= RFC 7323 §5.3: "Send an acknowledgment in reply [...] and drop the segment."
            if self.is_old(now, timestamps.value) {
                return Check::Old;
            }
        }
        if !self.receiver.acceptable(segment.seq, segment.sequence_len()) {
            return Check::OutsideWindow;
        }
        if self.ack_is_acceptable(segment.ack) { Check::Accept } else { Check::BadAck }
    }

    /// True if a segment has a timestamp that is not old.
    #[inline(always)]
    pub(super) fn is_recent(&self, now: Time, segment: &Segment) -> bool {
        segment.timestamps.is_some_and(|timestamps| !self.is_old(now, timestamps.value))
    }

    /// PAWS (RFC 7323 §5.3): true if a TSval is older than TS.Recent.
    #[inline(always)]
    fn is_old(&self, now: Time, value: u32) -> bool {
        // RFC 7323 §5.5: after 24 days without a segment, the peer's clock may have wrapped.
        (value.wrapping_sub(self.kept.ts_recent) as i32) < 0
            && now.saturating_since(self.kept.ts_recent_at) <= TS_RECENT_LIFETIME
    }

    /// True if an ACK is acceptable in the current state.
    #[inline(always)]
    pub(super) fn ack_is_acceptable(&self, ack: u64) -> bool {
        if self.state == State::SynReceived {
            return ack >= FIRST_BYTE && ack <= self.sender.snd_max();
        }
        //= RFC 5961 §5.2: "The ACK value is considered acceptable only if it is in the range of ((SND.UNA - MAX.SND.WND) <=
        //= SEG.ACK <= SND.NXT)."
        let wire_true = self.config.shortcuts.handshake == Handshake::ThreeWay;
        ack <= self.sender.snd_max() && (!wire_true || ack >= self.sender.sequence().oldest_acceptable_ack())
    }
}

/// RFC 9293 §3.10.7.2.
fn check_listen(segment: &Segment) -> Check {
    if segment.flags.has(Flags::RST) {
        Check::Drop
    } else if segment.flags.has(Flags::ACK) {
        Check::Refuse
    } else if segment.flags.has(Flags::SYN) {
        Check::Accept
    } else {
        Check::Drop
    }
}
