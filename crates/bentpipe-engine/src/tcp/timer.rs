//! The retransmission timer (RFC 6298 §5), and the segment whose round trip is being measured (§3).

use crate::rtt::{GiveUp, RtoConfig, RtoTiming, RttEstimator};
use crate::units::{Duration, Time};

/// What has been sent and awaits an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Awaited {
    /// A SYN; the peer has not answered at all.
    FirstSyn,
    /// The answer to the peer's SYN.
    SynAck,
    /// Data; `closed`: the program has closed.
    Data { closed: bool },
}

/// The timer for retransmitting the oldest segment, and its state.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::tcp) struct RetransmissionTimer {
    /// When it expires; [`Time::NEVER`] while it is off.
    at: Time,
    /// The segment being timed: its end, and when it was sent.
    timed: Option<(u64, Time)>,
    /// Since when losses are being repaired ([`Time::NEVER`]: they are not), and how often the timer has expired since new data was
    /// acknowledged.
    since: Time,
    retries: u32,
    /// The timer follows segments: [`RtoTiming::Segments`].
    by_segments: bool,
    pub(in crate::tcp) rtt: RttEstimator,
}

impl RetransmissionTimer {
    pub(in crate::tcp) fn new(config: RtoConfig) -> Self {
        RetransmissionTimer {
            rtt: RttEstimator::new(config),
            at: Time::NEVER,
            timed: None,
            retries: 0,
            since: Time::NEVER,
            by_segments: config.timing == RtoTiming::Segments,
        }
    }

    /// Stops the timer. The estimate stays.
    pub(in crate::tcp) fn reset(&mut self) {
        (self.at, self.timed, self.retries) = (Time::NEVER, None, 0);
    }

    /// True if the timer follows segments ([`RtoTiming::Segments`]).
    #[inline(always)]
    pub(in crate::tcp) fn is_by_segments(&self) -> bool {
        self.by_segments
    }

    /// Makes the timer follow ACKs, because without SACK blocks from the peer there is no RACK.
    pub(in crate::tcp) fn without_sack(&mut self) {
        self.by_segments = false;
    }

    /// True if a segment is being timed.
    pub(in crate::tcp) fn is_timing(&self) -> bool {
        self.timed.is_some()
    }

    /// When it expires; [`Time::NEVER`] while it is off.
    #[inline(always)]
    pub(in crate::tcp) fn deadline(&self) -> Time {
        self.at
    }

    #[inline(always)]
    pub(in crate::tcp) fn is_running(&self) -> bool {
        self.at != Time::NEVER
    }

    /// Starts or restarts the timer.
    #[inline(always)]
    pub(in crate::tcp) fn start(&mut self, now: Time) {
        self.at = self.rtt.deadline(now);
    }

    //= RFC 6298 §5.2, §5.3: off when all is acknowledged, restarted by an ACK of new data
    #[inline(always)]
    pub(in crate::tcp) fn restart(&mut self, now: Time, is_outstanding: bool) {
        self.at = if is_outstanding { self.rtt.deadline(now) } else { Time::NEVER };
    }

    /// How many times the timer has expired since new data was acknowledged.
    pub(in crate::tcp) fn retries(&self) -> u32 {
        self.retries
    }

    /// True if, before this expiry at `now`, the timer had already expired as often, or for as long, as allowed.
    pub(in crate::tcp) fn is_exhausted(&self, now: Time, awaited: Awaited) -> bool {
        let config = self.rtt.config();
        let limit = |own: Option<u8>| own.map_or(config.max_retries, u32::from);
        let closed = match awaited {
            Awaited::FirstSyn => {
                let more = config.linear_syn_timeouts.into();
                return self.retries >= limit(config.max_syn_retries).saturating_add(more);
            }
            Awaited::SynAck => return self.retries >= limit(config.max_syn_ack_retries),
            Awaited::Data { closed } => closed,
        };
        let max = if closed { limit(config.max_closed_retries) } else { config.max_retries };
        match config.give_up {
            GiveUp::Count => self.retries >= max,
            GiveUp::Time => {
                let elapsed = now.saturating_since(self.since);
                max != u32::MAX && self.retries > 0 && elapsed >= config.time_of(max)
            }
        }
    }

    /// True if losses have been repaired for longer than `max`, and it has expired before.
    pub(in crate::tcp) fn lasts_longer(&self, now: Time, max: Duration) -> bool {
        self.retries > 0 && now.saturating_since(self.since) > max
    }

    /// A loss is being repaired from now on, if none is yet (Linux's `retrans_stamp`).
    pub(in crate::tcp) fn begin_repair(&mut self, now: Time) {
        self.since = self.since.min(now);
    }

    /// All losses are repaired.
    pub(in crate::tcp) fn end_repair(&mut self) {
        self.since = Time::NEVER;
    }

    /// New data was acknowledged.
    #[inline(always)]
    pub(in crate::tcp) fn forget_retries(&mut self) {
        self.retries = 0;
    }

    /// Counts an expiry.
    pub(in crate::tcp) fn count_expiry(&mut self, now: Time) {
        self.begin_repair(now);
        self.retries = self.retries.saturating_add(1);
    }

    /// Restarts with twice the timeout. If so configured, the first timeouts of an unanswered SYN keep it.
    pub(in crate::tcp) fn back_off(&mut self, now: Time, is_first_syn: bool) {
        if !is_first_syn || self.retries > u32::from(self.rtt.config().linear_syn_timeouts) {
            self.rtt.back_off();
        }
        self.start(now);
    }

    /// Times the segment that is sent now and ends at `end`, unless another is being timed.
    #[inline(always)]
    pub(in crate::tcp) fn time(&mut self, end: u64, now: Time) {
        if self.timed.is_none() {
            self.timed = Some((end, now));
        }
    }

    //= RFC 6298 §3: "RTT samples MUST NOT be made using segments that were retransmitted"
    /// Data from `seq` on is retransmitted.
    #[inline(always)]
    pub(in crate::tcp) fn retransmitted(&mut self, seq: u64) {
        if self.timed.is_some_and(|(end, _)| seq < end) {
            self.timed = None;
        }
    }

    /// Stops timing.
    pub(in crate::tcp) fn forget_timed(&mut self) {
        self.timed = None;
    }

    /// Takes an ACK of everything before `ack`; `sample` is the round trip measured by timestamps. Returns true if the
    /// estimate has a new sample.
    #[inline(always)]
    pub(in crate::tcp) fn on_ack(&mut self, now: Time, ack: u64, sample: Option<Duration>) -> bool {
        let sent = match (sample, self.timed) {
            (Some(elapsed), _) => now.saturating_sub(elapsed),
            (None, Some((end, sent))) if ack >= end => sent,
            _ => return false,
        };
        self.timed = None;
        self.measure(sent, now);
        true
    }

    /// Records that a segment was delivered after `elapsed`, though no new data is acknowledged or losses are being
    /// repaired.
    pub(in crate::tcp) fn on_delivery(&mut self, now: Time, elapsed: Duration) {
        self.measure(now.saturating_sub(elapsed), now);
    }

    /// Takes a round trip, which ends the backoff.
    #[inline(always)]
    fn measure(&mut self, sent: Time, now: Time) {
        self.rtt.reset_backoff();
        self.rtt.sample(sent, now);
    }

    /// Takes a partial ACK. It ends the backoff if it covers the timed segment, and gives no sample.
    pub(in crate::tcp) fn on_partial_ack(&mut self, ack: u64) {
        if self.timed.is_some_and(|(end, _)| ack >= end) {
            self.timed = None;
            self.rtt.reset_backoff();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expiry times in milliseconds for something sent at time 0, up to the expiry that ends the connection.
    fn expiries(config: RtoConfig, awaited: Awaited) -> Vec<u64> {
        let mut timer = RetransmissionTimer::new(config);
        timer.start(Time::ZERO);
        let mut at = Vec::new();
        loop {
            let now = timer.deadline();
            at.push(now.as_nanos() / 1_000_000);
            if timer.is_exhausted(now, awaited) {
                return at;
            }
            timer.count_expiry(now);
            timer.back_off(now, awaited == Awaited::FirstSyn);
        }
    }

    const SECOND: u64 = 1000;

    /// The kernel's documentation of `tcp_syn_retries`: with 6 retries and `tcp_syn_linear_timeouts` 4, the last
    /// retransmission is after 67 s, and the connection is given up after 131 s.
    #[test]
    fn a_syn_is_repeated_as_linux_says() {
        let seconds =
            |config, awaited| -> Vec<u64> { expiries(config, awaited).into_iter().map(|at| at / SECOND).collect() };
        assert_eq!(seconds(RtoConfig::LINUX, Awaited::FirstSyn), [1, 2, 3, 4, 5, 7, 11, 19, 35, 67, 131]);
        // The same document on `tcp_synack_retries`: 5 retries, the last after 31 s; given up after 63 s.
        assert_eq!(seconds(RtoConfig::LINUX, Awaited::SynAck), [1, 3, 7, 15, 31, 63]);
        // RFC 6298 §5.5 doubles every timeout.
        let rfc = RtoConfig { max_retries: 6, ..RtoConfig::RFC6298 };
        let doubled = [1, 3, 7, 15, 31, 63, 123];
        assert_eq!(
            (seconds(rfc, Awaited::FirstSyn), seconds(rfc, Awaited::SynAck)),
            (doubled.to_vec(), doubled.to_vec())
        );
    }

    /// The kernel's documentation of `tcp_retries2`: 15 "yields a hypothetical timeout of 924.6 seconds and is a lower
    /// bound for the effective timeout". For `tcp_orphan_retries` the default is 8.
    #[test]
    fn data_is_given_up_by_time() {
        let linux = RtoConfig::LINUX;
        assert_eq!(linux.time_of(15), Duration::from_millis(924_600));
        assert_eq!(linux.time_of(8), Duration::from_millis(102_200));
        assert_eq!(linux.time_of(u32::MAX - 1), Duration::MAX);
        // A timeout of 201 ms doubles up to 102.9 s, and is 120 s from then on. The first expiry after the time limit
        // ends the connection.
        let ends = |initial, closed| {
            let config = RtoConfig { initial: Duration::from_millis(initial), ..linux };
            let at = expiries(config, Awaited::Data { closed });
            (at.len(), at.last().copied())
        };
        assert_eq!(ends(201, false), (16, Some(201 * 1023 + 6 * 120_000)));
        assert_eq!(ends(201, true), (9, Some(201 * 511)));
        // Over GEO this takes 15 expiries, not 16.
        assert_eq!(ends(800, false), (15, Some(800 * 255 + 7 * 120_000)));
        assert_eq!(ends(800, true), (8, Some(800 * 255)));
        // RFC 9293 counts expiries.
        let rfc = RtoConfig { max_retries: 3, ..RtoConfig::RFC6298 };
        assert_eq!(expiries(rfc, Awaited::Data { closed: true }).len(), 4);
    }
}
