//! The tail loss probe (RFC 8985 §7): if no ACK arrives for two round trips, a segment is sent to provoke one.
//!
//! From the ACK of the probe, RACK detects losses at the end of a flight without a timeout, which would reduce the
//! window to one segment.

use crate::rtt::RttEstimator;
use crate::tcp::sequence::SequenceSpace;
use crate::units::{Duration, Time};

/// How long a receiver may delay the ACK of a single segment (RFC 8985 §7.2: TLP.max_ack_delay, 200 ms without negotiation).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// The probe timeout before the round trip is known.
const FIRST: Duration = Duration::from_secs(1);

/// What an ACK shows about the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum ProbeVerdict {
    /// Nothing, or nothing was lost.
    Nothing,
    /// The probe repaired a loss that nothing else has shown: congestion control must be told.
    Repaired,
}

/// The state of the probe.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct TailProbe {
    is_enabled: bool,
    /// How much longer than two round trips the timer waits.
    slack: Duration,
    at: Time,
    /// When the timer was started, if more than one segment was outstanding; otherwise unknown.
    started: Time,
    /// A segment sent at this instant limits the time of the probe.
    is_unbounded: bool,
    is_due: bool,
    /// `snd_max` after the outstanding probe, and whether it is a retransmission.
    out: Option<(u64, bool)>,
    /// The last ACK that covers the probe advanced no further.
    is_acked: bool,
}

impl TailProbe {
    pub(in crate::tcp) fn new(is_enabled: bool, slack: Duration) -> Self {
        TailProbe {
            is_enabled,
            slack,
            at: Time::NEVER,
            started: Time::NEVER,
            is_unbounded: false,
            is_due: false,
            out: None,
            is_acked: false,
        }
    }

    /// When the probe is due.
    #[inline(always)]
    pub(in crate::tcp) fn deadline(&self) -> Time {
        self.at
    }

    /// Starts the timer (RFC 8985 §7.2). `is_single`: a lone segment is outstanding; `rto_at`: when the retransmission timer expires.
    #[inline(always)]
    pub(in crate::tcp) fn start(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        seq: &SequenceSpace,
        is_single: bool,
        rto_at: Time,
    ) {
        if !self.is_enabled {
            return;
        }
        if seq.flight() == 0 || self.out.is_some() {
            (self.at, self.started) = (Time::NEVER, Time::NEVER);
            return;
        }
        //= RFC 8985 §7.2: "PTO = 2 * SRTT", and for a single segment "PTO += TLP.max_ack_delay"; without SRTT one second
        let more = if is_single { MAX_ACK_DELAY } else { self.slack };
        let after = rtt.srtt().map_or(FIRST, |srtt| srtt.saturating_mul(2) + more);
        self.started = if is_single { Time::NEVER } else { now };
        self.is_unbounded = false;
        self.at = rtt.expiry(now, after).min(rto_at);
    }

    /// True if the timer was started at `now`, so that another segment sent now would not change it.
    #[inline(always)]
    pub(in crate::tcp) fn has_just_started(&self, now: Time) -> bool {
        self.started == now
    }

    /// Lets a segment that is sent now limit the time of the probe ([`Self::bound`]).
    #[inline(always)]
    pub(in crate::tcp) fn expect_bound(&mut self) {
        self.is_unbounded = true;
    }

    /// True if the timer waits for that limit.
    #[inline(always)]
    pub(in crate::tcp) fn is_unbounded(&self) -> bool {
        self.is_unbounded
    }

    /// Sets the latest time of the probe to `limit`, if there is to be a probe.
    #[inline(always)]
    pub(in crate::tcp) fn bound(&mut self, limit: Time) {
        self.is_unbounded = false;
        if self.at != Time::NEVER {
            self.at = self.at.min(limit);
        }
    }

    /// Stops the timer: there is no probe while a loss is repaired, or after the probe's time has passed.
    pub(in crate::tcp) fn stop(&mut self) {
        (self.at, self.started, self.is_due) = (Time::NEVER, Time::NEVER, false);
    }

    /// Handles the timer's expiry: a probe must be sent regardless of the window.
    pub(in crate::tcp) fn expire(&mut self) {
        (self.at, self.started, self.is_due) = (Time::NEVER, Time::NEVER, true);
    }

    /// True if a probe is to be sent.
    #[inline(always)]
    pub(in crate::tcp) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Records that the probe is sent; everything sent is then below `snd_max`.
    pub(in crate::tcp) fn sent(&mut self, snd_max: u64, is_retransmission: bool) {
        (self.is_due, self.out, self.is_acked) = (false, Some((snd_max, is_retransmission)), false);
    }

    /// True if a probe is outstanding.
    #[inline(always)]
    pub(in crate::tcp) fn is_out(&self) -> bool {
        self.out.is_some()
    }

    /// True if the segment ending at `end` is the outstanding probe.
    pub(in crate::tcp) fn is_probe(&self, end: u64) -> bool {
        self.out.is_some_and(|(end_seq, _)| end == end_seq)
    }

    /// The end of the outstanding probe, if it is a retransmission.
    pub(in crate::tcp) fn resent(&self) -> Option<u64> {
        self.out.and_then(|(end, is_retransmission)| is_retransmission.then_some(end))
    }

    /// Forgets the probe, because its round has ended in another way.
    pub(in crate::tcp) fn forget(&mut self) {
        self.stop();
        self.out = None;
    }

    /// Takes an ACK (RFC 8985 §7.4.2). `duplicate`: the end of the data that it reports as received twice. `bare`: it
    /// has no SACK block and no data.
    pub(in crate::tcp) fn on_ack(&mut self, ack: u64, duplicate: Option<u64>, bare: bool) -> ProbeVerdict {
        let Some((end_seq, is_retransmission)) = self.out.filter(|&(end_seq, _)| ack >= end_seq) else {
            return ProbeVerdict::Nothing;
        };
        let duplicate = duplicate == Some(end_seq);
        let bare = bare && ack == end_seq && self.is_acked;
        self.is_acked = ack == end_seq;
        if !is_retransmission || duplicate || ack > end_seq || bare {
            self.out = None;
        }
        if is_retransmission && !duplicate && ack > end_seq { ProbeVerdict::Repaired } else { ProbeVerdict::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtt::{RtoConfig, RttClock};

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn outstanding(bytes: u64) -> SequenceSpace {
        let mut seq = SequenceSpace::new(1, 1 << 20);
        seq.snd_max = 1 + bytes;
        seq
    }

    fn measured() -> RttEstimator {
        let mut rtt = RttEstimator::new(RtoConfig::RFC6298);
        rtt.sample(at(0), at(100));
        rtt
    }

    /// RFC 8985 §7.2: two round trips; for a single segment, plus the delay of its ACK; never after the timeout.
    #[test]
    fn the_probe_waits_two_round_trips() {
        for (bytes, rto, expected) in [(5000, 1000, 210), (1000, 1000, 410), (5000, 150, 150)] {
            let mut probe = TailProbe::new(true, Duration::ZERO);
            probe.start(at(10), &measured(), &outstanding(bytes), bytes <= 1000, at(rto));
            assert_eq!(probe.deadline(), at(expected), "{bytes} bytes");
        }
        let mut linux = TailProbe::new(true, Duration::from_millis(2));
        linux.start(at(10), &measured(), &outstanding(5000), false, at(1000));
        assert_eq!(linux.deadline(), at(212));
        linux.start(at(10), &measured(), &outstanding(1000), true, at(1000));
        assert_eq!(linux.deadline(), at(410), "the delay of the ACK instead");
        // RFC 8985 §7.2: one second before there is a round trip, also for a single segment.
        for is_single in [false, true] {
            linux.start(at(10), &RttEstimator::new(RtoConfig::RFC6298), &outstanding(1000), is_single, at(3000));
            assert_eq!(linux.deadline(), at(1010));
        }
        let jiffies =
            RttEstimator::new(RtoConfig { clock: RttClock::Wheel(Duration::from_millis(4)), ..RtoConfig::RFC6298 });
        linux.start(at(10), &jiffies, &outstanding(1000), true, at(3000));
        assert_eq!(linux.deadline(), at(1024), "as the wheel turns");
        let mut off = TailProbe::new(false, Duration::ZERO);
        off.start(at(10), &measured(), &outstanding(5000), false, at(1000));
        assert_eq!(off.deadline(), Time::NEVER);
    }

    /// RFC 8985 §7.4.2: a probe that retransmitted data and repaired a loss is a sign of congestion; new data,
    /// duplicates and ACKs of both copies are not.
    #[test]
    fn only_a_repair_is_congestion() {
        let verdict = |is_retransmission, ack, duplicate: bool, again: bool| {
            let mut probe = TailProbe::new(true, Duration::ZERO);
            probe.sent(5001, is_retransmission);
            if again {
                probe.on_ack(ack, None, true);
            }
            let verdict = probe.on_ack(ack, duplicate.then_some(5001), true);
            (verdict, probe.out.is_some())
        };
        assert_eq!(verdict(false, 5001, false, false), (ProbeVerdict::Nothing, false));
        assert_eq!(verdict(false, 5000, false, false), (ProbeVerdict::Nothing, true), "of data before the probe");
        assert_eq!(verdict(true, 4001, false, false), (ProbeVerdict::Nothing, true));
        assert_eq!(verdict(true, 5001, true, false), (ProbeVerdict::Nothing, false));
        assert_eq!(verdict(true, 5001, false, false), (ProbeVerdict::Nothing, true), "either copy");
        assert_eq!(verdict(true, 5001, false, true), (ProbeVerdict::Nothing, false), "both copies");
        assert_eq!(verdict(true, 6001, false, false), (ProbeVerdict::Repaired, false));
    }

    /// Only one probe is outstanding at a time.
    #[test]
    fn no_second_probe_is_sent() {
        let mut probe = TailProbe::new(true, Duration::ZERO);
        probe.sent(5001, true);
        probe.start(at(10), &measured(), &outstanding(5000), false, at(1000));
        assert_eq!(probe.deadline(), Time::NEVER);
    }
}
