//! Round-trip estimator and retransmission timeout (RFC 6298), with an exact and a coarse clock.
//!
//! The coarse clock keeps estimates as 4.3BSD and ns-2 do: in whole ticks, srtt with three fraction bits and rttvar
//! with two (Jacobson 1988, appendix A).

use crate::units::{Duration, Time};

/// How time is measured for the estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttClock {
    /// With the driver's resolution.
    Exact,
    /// Exactly; but retransmission timers and tail loss probes expire late, as by Linux's timer wheel: it counts in jiffies of this
    /// length, in steps of 1, 8, 64 and 512 of them for timers of up to 63, 504, 4032 and more.
    Wheel(Duration),
    /// In whole ticks of this length.
    Ticks {
        /// Length of a tick: 500 ms in 4.3BSD.
        tick: Duration,
        /// Phase of the host's clock within a tick. It decides which events fall into the same tick.
        phase: Duration,
        /// True if timers also expire only on ticks, as with BSD's `tcp_slowtimo`; otherwise they expire exactly.
        fire_on_tick: bool,
        /// True if a sample is the number of ticks that passed, possibly 0, and the first sample is one more, as in
        /// 4.3BSD. Otherwise a sample is at least one tick (ns-2).
        bsd: bool,
    },
}

/// The quantity that [`RtoConfig::min`] limits from below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoFloor {
    /// The timeout (RFC 6298 §2.4).
    Timeout,
    /// The variance term: the timeout is at least `min` longer than a round trip. The variance is the largest deviation
    /// of a round trip, and falls by at most a quarter per round trip (Sarolahti and Kuznetsov, "Congestion control in
    /// Linux TCP", USENIX 2002, §4).
    Variance,
}

/// What restarts the retransmission timer, and what measures the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoTiming {
    /// ACKs of new data (RFC 6298 §5.3). During a recovery, they measure nothing.
    Acks,
    /// Segments, as in Linux. The timer also restarts when the oldest segment is retransmitted. With RACK, each ACK
    /// measures the round trip of the first segment that it delivers, even by SACK blocks or during recoveries. SACK
    /// blocks for data sent before the last transmission of the oldest segment restart the timer, and a tail loss probe
    /// leaves at most a timeout after that transmission.
    Segments,
}

/// The meaning of [`RtoConfig::max_retries`] for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUp {
    /// This many retransmissions of a segment (RFC 9293 §3.8.3, R2).
    Count,
    /// The time that this many retransmissions would take if timeouts doubled from [`RtoConfig::min`] to
    /// [`RtoConfig::max`]. It is counted from the first retransmission; a timeout after this time ends the connection
    /// (Linux's `retransmits_timed_out`).
    Time,
}

/// Settings of the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// The timeout before the first sample (RFC 6298 §2.1: 1 s).
    pub initial: Duration,
    /// Minimum timeout before backoff (RFC 6298 §2.4: 1 s).
    pub min: Duration,
    /// The quantity that `min` limits.
    pub floor: RtoFloor,
    /// What the timer follows.
    pub timing: RtoTiming,
    /// Maximum timeout (RFC 6298 §2.5: at least 60 s).
    pub max: Duration,
    /// The clock.
    pub clock: RttClock,
    /// Maximum number of retransmissions of one segment before the connection is aborted (RFC 9293 §3.8.3, R2).
    pub max_retries: u32,
    /// The meaning of `max_retries` for data.
    pub give_up: GiveUp,
    /// Maximum number of retransmissions of a SYN. `None`: `max_retries`.
    pub max_syn_retries: Option<u8>,
    /// Maximum number of retransmissions of a SYN-ACK, after which the passive connection returns to listening. `None`:
    /// `max_retries`, after which it is aborted.
    pub max_syn_ack_retries: Option<u8>,
    /// Replaces `max_retries` once the program has closed. `None`: `max_retries` still applies.
    pub max_closed_retries: Option<u8>,
    /// Max probes of a closed window without an answer before the connection is aborted; once the program has closed it is
    /// `max_closed_retries`, and none at intervals of `max` (Linux). `None`: it is probed for ever (RFC 9293 §3.8.6.1).
    pub max_probes: Option<u8>,
    /// Timeouts of the first SYN after which the timer is not doubled (RFC 6298 §5.5: 0), as Linux's `tcp_syn_linear_timeouts`. As many
    /// retransmissions are allowed besides `max_syn_retries`.
    pub linear_syn_timeouts: u8,
}

impl RtoConfig {
    /// RFC 6298 with its recommended values, and 15 retries as in Linux.
    pub const RFC6298: RtoConfig = RtoConfig {
        initial: Duration::from_secs(1),
        min: Duration::from_secs(1),
        floor: RtoFloor::Timeout,
        timing: RtoTiming::Acks,
        max: Duration::from_secs(60),
        clock: RttClock::Exact,
        max_retries: 15,
        give_up: GiveUp::Count,
        max_syn_retries: None,
        max_syn_ack_retries: None,
        max_closed_retries: None,
        max_probes: None,
        linear_syn_timeouts: 0,
    };
    /// Linux's values: `TCP_TIMEOUT_INIT`, `TCP_RTO_MIN`, `TCP_RTO_MAX`, `tcp_retries2`, `tcp_syn_retries`,
    /// `tcp_synack_retries`, `tcp_orphan_retries` (0 means 8), `tcp_syn_linear_timeouts`.
    pub const LINUX: RtoConfig = RtoConfig {
        min: Duration::from_millis(200),
        floor: RtoFloor::Variance,
        timing: RtoTiming::Segments,
        max: Duration::from_secs(120),
        give_up: GiveUp::Time,
        max_syn_retries: Some(6),
        max_syn_ack_retries: Some(5),
        max_closed_retries: Some(8),
        max_probes: Some(15),
        linear_syn_timeouts: 4,
        ..RtoConfig::RFC6298
    };

    /// The time limit of [`GiveUp::Time`] for `retries` retransmissions.
    pub(crate) fn time_of(&self, retries: u32) -> Duration {
        let (mut sum, mut timeout) = (self.min, self.min);
        // The longest time is less than 2^64 ticks.
        let doubled = retries.min(64);
        for _ in 0..doubled {
            timeout = timeout.saturating_mul(2).min(self.max);
            sum += timeout;
        }
        sum + timeout.saturating_mul((retries - doubled).into())
    }
}

/// G of RFC 6298 for the exact clock: one millisecond, as in Linux and most other stacks.
const GRANULARITY: Duration = Duration::from_millis(1);

/// A round trip of fewer ticks of a coarse clock is not known well enough to pace by it: it may be off by one.
const FEW_TICKS: u64 = 8;

/// The variance of [`RtoFloor::Variance`], in ticks of [`Time`]: four times the mean deviation, as RTTVAR counts in the
/// timeout.
#[derive(Clone, Copy, Debug, Default)]
struct Variance {
    /// The mean.
    mean: u64,
    /// The maximum of the mean in this round, and when the round began.
    peak: u64,
    round: Time,
    /// The value used in the timeout.
    in_force: u64,
}

impl Variance {
    /// Takes the deviation of a round trip from the mean; `falls`: the round trip is below the mean.
    fn sample(&mut self, error: u64, falls: bool, min: u64, sent: Time, now: Time) {
        // Moves by a quarter of the difference, in units of a quarter. If the round trip falls, a larger deviation
        // counts only an eighth, because the timeout need not grow then.
        let more = error.saturating_sub(self.mean / 4);
        self.mean = self.mean + if falls { more / 8 } else { more } - (self.mean / 4).saturating_sub(error);
        self.peak = self.peak.max(self.mean);
        self.in_force = self.in_force.max(self.peak);
        if sent >= self.round {
            self.in_force -= self.in_force.saturating_sub(self.peak) / 4;
            (self.peak, self.round) = (min, now);
        }
    }
}

/// The estimator of one connection.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RttEstimator {
    /// Exact clock: ticks of [`Time`]. Coarse clock: eighths of a tick.
    srtt: u64,
    /// Exact clock: ticks of [`Time`]. Coarse clock: quarters of a tick.
    rttvar: u64,
    /// RTO before backoff and limits.
    base: Duration,
    backoff: u64,
    /// [`Duration::MAX`] before the first sample.
    last_sample: Duration,
    config: RtoConfig,
    /// Used with [`RtoFloor::Variance`].
    variance: Variance,
}

impl RttEstimator {
    /// An estimator without samples.
    pub fn new(config: RtoConfig) -> Self {
        RttEstimator {
            config,
            srtt: 0,
            rttvar: 0,
            variance: Variance::default(),
            base: config.initial,
            backoff: 1,
            last_sample: Duration::MAX,
        }
    }

    /// The handshake is done, and earlier connections to the same host have measured `expected`. If the SYN's round trip is shorter, the
    /// first timeout is three times what is expected, and at least `min` more than that, until the next sample (Linux's
    /// `tcp_init_metrics`).
    pub(crate) fn after_handshake(&mut self, expected: Duration) {
        if expected > self.srtt().unwrap_or_default() {
            self.base = expected + expected.saturating_mul(2).max(self.config.min);
            self.backoff = 1;
        }
    }

    /// True if the timer has been doubled since the last sample.
    pub(crate) fn is_backed_off(&self) -> bool {
        self.backoff > 1
    }

    /// Takes the round trip of a segment sent at `sent` and acknowledged `now`; neither may be ambiguous (Karn).
    pub fn sample(&mut self, sent: Time, now: Time) {
        let elapsed = now - sent;
        match self.config.clock {
            RttClock::Exact | RttClock::Wheel(_) if self.config.floor == RtoFloor::Variance => {
                self.sample_variance(sent, now)
            }
            RttClock::Exact | RttClock::Wheel(_) => self.sample_exact(elapsed.as_ticks()),
            RttClock::Ticks { tick, phase, bsd, .. } => {
                let (tick, phase) = (tick.as_ticks(), phase.as_ticks());
                let into_tick = (sent.as_ticks() + phase) % tick;
                let passed = (elapsed.as_ticks() + into_tick) / tick;
                let sample = match (bsd, self.srtt) {
                    // The counter begins at 1, which later samples subtract again (`tcp_xmit_timer`).
                    (true, 0) => passed + 1,
                    (true, _) => passed,
                    (false, _) => passed.max(1),
                };
                self.sample_ticks(sample, tick);
            }
        }
        self.last_sample = elapsed;
    }

    /// True if there was a sample.
    #[inline(always)]
    fn is_measured(&self) -> bool {
        self.last_sample != Duration::MAX
    }

    //= RFC 6298 §2.2, §2.3: SRTT <- R, RTTVAR <- R/2 at the first measurement, then gains of 1/8 and 1/4
    fn sample_exact(&mut self, r: u64) {
        if self.is_measured() {
            self.rttvar = self.rttvar - self.rttvar / 4 + self.srtt.abs_diff(r) / 4;
            self.srtt = self.srtt - self.srtt / 8 + r / 8;
        } else {
            self.srtt = r;
            self.rttvar = r / 2;
        }
        let deviation = self.rttvar.saturating_mul(4).max(GRANULARITY.as_ticks());
        self.base = Duration::from_ticks(self.srtt.saturating_add(deviation));
    }

    fn sample_variance(&mut self, sent: Time, now: Time) {
        let (r, min) = ((now - sent).as_ticks(), self.config.min.as_ticks());
        if self.is_measured() {
            let falls = r < self.srtt;
            let error = self.srtt.abs_diff(r);
            self.srtt = self.srtt - self.srtt / 8 + r / 8;
            self.variance.sample(error, falls, min, sent, now);
        } else {
            self.srtt = r;
            self.variance = Variance { mean: 2 * r, peak: min.max(2 * r), in_force: min.max(2 * r), round: now };
        }
        self.base = Duration::from_ticks(self.srtt.saturating_add(self.variance.in_force));
    }

    fn sample_ticks(&mut self, r: u64, tick: u64) {
        if self.srtt != 0 {
            let delta = r as i64 - (self.srtt >> 3) as i64;
            self.srtt = (self.srtt as i64 + delta).max(1) as u64;
            let delta = delta.abs() - (self.rttvar >> 2) as i64;
            self.rttvar = (self.rttvar as i64 + delta).max(1) as u64;
        } else {
            self.srtt = r << 3;
            self.rttvar = r << 1;
        }
        // srtt + 4 rttvar with both at their scales: (8 srtt + 4 rttvar * 2) / 8.
        self.base = Duration::from_ticks((((self.rttvar << 3) + self.srtt) >> 3).saturating_mul(tick));
    }

    //= RFC 6298 §5.7: "the RTO MUST be re-initialized to 3 seconds when data transmission begins"
    /// Called after the SYN was retransmitted: unless timestamps have measured the round trip, data starts with 3 s.
    pub(crate) fn after_lost_syn(&mut self) {
        if !self.is_measured() {
            self.base = self.config.initial.max(Duration::from_secs(3));
            self.backoff = 1;
        }
    }

    /// Ends the backoff after an unambiguous ACK.
    pub(crate) fn reset_backoff(&mut self) {
        self.backoff = 1;
    }

    //= RFC 6298 §5.5: "The host MUST set RTO <- RTO * 2 ("back off the timer")."
    /// Doubles the timeout after it has expired.
    pub(crate) fn back_off(&mut self) {
        if self.rto() < self.config.max {
            self.backoff *= 2;
        }
        if let RttClock::Ticks { .. } = self.config.clock
            && self.backoff > 8
        {
            // 4.3BSD: the estimate is useless by now, and the next sample restarts it.
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
    }

    /// Its settings.
    pub(crate) fn config(&self) -> &RtoConfig {
        &self.config
    }

    /// The current timeout.
    #[inline(always)]
    pub fn rto(&self) -> Duration {
        self.base.max(self.config.min).saturating_mul(self.backoff).min(self.config.max)
    }

    /// When a timer that is started now expires.
    #[inline(always)]
    pub fn deadline(&self, now: Time) -> Time {
        self.expiry(now, self.rto())
    }

    /// When a timer of this length expires that is started now.
    #[inline(always)]
    pub(crate) fn expiry(&self, now: Time, length: Duration) -> Time {
        match self.config.clock {
            RttClock::Ticks { tick, phase, fire_on_tick: true, .. } => on_tick(now + length, tick, phase),
            RttClock::Wheel(jiffy) => on_wheel(now, length, jiffy),
            RttClock::Exact | RttClock::Ticks { .. } => now + length,
        }
    }

    /// The smoothed round trip, if one has been measured. A coarse clock says little about one of a few ticks: then it is the
    /// last sample, if that is shorter, as pacing by ticks of 500 ms would send a window of 40 ms in 500.
    pub fn srtt(&self) -> Option<Duration> {
        if !self.is_measured() {
            return None;
        }
        Some(match self.config.clock {
            RttClock::Exact | RttClock::Wheel(_) => Duration::from_ticks(self.srtt),
            RttClock::Ticks { tick, .. } => {
                let smoothed = Duration::from_ticks(self.srtt.saturating_mul(tick.as_ticks()) >> 3);
                match self.srtt {
                    // Forgotten by a timeout.
                    0 => self.last_sample,
                    srtt if srtt < FEW_TICKS << 3 => smoothed.min(self.last_sample),
                    _ => smoothed,
                }
            }
        })
    }

    /// The last sample taken.
    pub(crate) fn last_sample(&self) -> Duration {
        self.last_sample
    }

    /// Starts from the estimate of an earlier connection (RFC 9040 §6).
    pub fn inherit(&mut self, other: &RttEstimator) {
        if other.is_measured() {
            (self.srtt, self.rttvar, self.base) = (other.srtt, other.rttvar, other.base);
            self.last_sample = other.last_sample;
            self.variance = other.variance;
        }
    }
}

/// The first tick from `exact` on.
#[inline(never)]
fn on_tick(exact: Time, tick: Duration, phase: Duration) -> Time {
    let (tick, phase) = (tick.as_ticks(), phase.as_ticks());
    let into_tick = (exact.as_ticks() + phase) % tick;
    if into_tick == 0 { exact } else { exact + Duration::from_ticks(tick - into_tick) }
}

/// When a timer of Linux's wheel expires. Its slots are the wider, the further they are away, and it never fires early: the time is
/// rounded up to a slot, and one more jiffy or slot if it is on one (`calc_index` in Linux's `kernel/time/timer.c`).
#[inline(never)]
fn on_wheel(now: Time, length: Duration, jiffy: Duration) -> Time {
    /// Jiffies up to which a level reaches, and the number of bits of its steps.
    const LEVELS: [(u64, u32); 3] = [(63, 0), (63 << 3, 3), (63 << 6, 6)];
    let jiffy = jiffy.as_ticks();
    let length = length.as_ticks().div_ceil(jiffy);
    let shift = LEVELS.into_iter().find(|level| length < level.0).map_or(9, |level| level.1);
    let slot = ((now.as_ticks() / jiffy).saturating_add(length) >> shift) + 1;
    Time::from_ticks(slot.saturating_mul(jiffy.saturating_mul(1 << shift)))
}

#[cfg(test)]
#[path = "rtt_tests.rs"]
mod tests;
