//! BBR v1 (draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell et al., "BBR: Congestion-based congestion control", ACM Queue
//! 14(5), 2016), with what Linux adds to it.
//!
//! The sender paces at the maximum rate at which data was delivered recently, and keeps twice the product of that rate
//! and the minimum round trip in flight. It probes for more bandwidth in one of every eight round trips, and for a
//! lower round trip every ten seconds. Losses limit the window for one round trip and change nothing else.
//!
//! Linux adds two things: it paces 1 % below the measured rate, so that the queue drains, and the window has room for
//! the sender's bursts and for bunched ACKs. The estimate of policers ("long-term bandwidth") is not implemented.

pub(super) mod aggregation;

use self::aggregation::Aggregation;
use super::{AckSample, CongestionRules, Delivered, Properties, Window};
use crate::stream::TimeNoise;
use crate::tcp::config::TcpConfig;
use crate::tcp::delivery::rate_of;
use crate::tcp::loss::{FoundBy, LossReport};
use crate::tcp::pacing::{MAX_TOGETHER, min_together};
use crate::tcp::recovery::Phase;
use crate::tcp::startup::SlowStart;
use crate::tcp::windowed::MaxFilter;
use crate::units::{Duration, Rate, Time};

/// 2/ln 2: doubles the rate each round trip, even if samples are a round trip old (draft §4.3.2.1). In 256ths, as `ss
/// -ti` shows it on Linux.
const HIGH_GAIN: f64 = 739.0 / 256.0;
/// Drains in one round trip the queue that [`HIGH_GAIN`] has built; in 256ths.
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// The gains of a cycle, each for a round trip (§4.3.4.1).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Bandwidth-delay products in flight while probing for bandwidth: leaves room for delayed ACKs.
const CWND_GAIN: f64 = 2.0;
/// Number of round trips that the rate filter covers (§4.1.1.3).
const BW_ROUNDS: u64 = 10;
/// How long the minimum round trip stays valid, and how long the sender then keeps few segments in flight (§4.1.2.1,
/// §4.3.5).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Segments in flight during that probe, and the minimum at any time.
const MIN_WINDOW: f64 = 4.0;
/// The pipe is full after this many round trips in which the rate has grown by less than this factor (§4.3.2.2).
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: f64 = 1.25;
/// Linux paces at this fraction of the rate.
const MARGIN: f64 = 0.99;
/// A burst of Linux's sender is what it sends in this part of a second, at least two segments, or one at a low rate, and at most so many.
const BURSTS_PER_SECOND: f64 = 1024.0;
const MAX_BURST: f64 = 127.0;
/// Bursts that the window has room for besides the products: at the sender, on the line, at the receiver.
const BURSTS: f64 = 3.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Startup,
    Drain,
    /// The phase of the cycle, and when the phase began.
    ProbeBw(usize, Time),
    /// When the probe ends, once few segments are in flight, and whether a round trip has passed since.
    ProbeRtt(Option<(Time, bool)>),
}

/// The state of BBR. Rates are bytes per second.
#[derive(Clone, Debug)]
pub(super) struct Bbr {
    mode: Mode,
    rate: MaxFilter,
    aggregation: Aggregation,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    /// A round trip ends when the data delivered at its start has been acknowledged.
    round_end: u64,
    rounds: u64,
    round_starts: bool,
    /// The rate at the last growth, the number of round trips since then, and whether the pipe is full.
    full_rate: f64,
    full_rounds: u32,
    is_full: bool,
    /// The window before a loss or a round-trip probe, to be restored afterwards.
    prior: f64,
    phase: Phase,
    /// In the first round trip of a recovery, the window equals the data in flight.
    conserves: bool,
    pacing: Option<f64>,
    initial_window: f64,
    /// Sending has restarted after a pause, and nothing has been delivered since.
    restarts: bool,
    noise: TimeNoise,
}

impl Bbr {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Bbr {
            mode: Mode::Startup,
            rate: MaxFilter::new(BW_ROUNDS),
            aggregation: Aggregation::default(),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            round_end: 0,
            rounds: 0,
            round_starts: false,
            full_rate: 0.0,
            full_rounds: 0,
            is_full: false,
            prior: 0.0,
            phase: Phase::Open,
            conserves: false,
            pacing: None,
            initial_window: f64::from(config.variant.initial_window),
            restarts: false,
            noise: TimeNoise::named(0, "bbr"),
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw(phase, _) => CYCLE[phase],
            Mode::ProbeRtt(_) => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw(..) => CWND_GAIN,
            Mode::ProbeRtt(_) => 1.0,
        }
    }

    /// Segments of a burst of Linux's sender (`bbr_tso_segs_goal`).
    fn burst(&self, mss: f64) -> f64 {
        let rate = self.pacing.unwrap_or(0.0);
        let bytes = (rate / BURSTS_PER_SECOND).min(MAX_TOGETHER as f64);
        libm::floor(bytes / mss).max(min_together(rate_of(rate)) as f64).min(MAX_BURST)
    }

    /// Segments that may be in flight: `gain` bandwidth-delay products, and room for bursts (§4.2.3.2).
    fn inflight(&self, gain: f64, mss: f64) -> f64 {
        self.with_room(self.product(gain, mss), mss)
    }

    /// Segments of `gain` products of the rate and the minimum round trip.
    fn product(&self, gain: f64, mss: f64) -> f64 {
        let Some(rtt) = self.min_rtt else { return self.initial_window };
        libm::ceil(self.rate.max() * rtt.as_secs_f64() / mss * gain)
    }

    /// So many segments, and room for bursts (`bbr_quantization_budget`).
    fn with_room(&self, segments: f64, mss: f64) -> f64 {
        // Even numbers, because a receiver acknowledges every second segment.
        let whole = libm::ceil((segments + BURSTS * self.burst(mss)) / 2.0) * 2.0;
        let probes_up = matches!(self.mode, Mode::ProbeBw(0, _));
        whole + if probes_up { 2.0 } else { 0.0 }
    }

    /// §4.1.1: updates the round trip and the maximum rate.
    fn update_rate(&mut self, seen: &Delivered) {
        self.round_starts = false;
        let Some(sample) = seen.sample else { return };
        if sample.prior_delivered >= self.round_end {
            self.round_end = seen.delivered;
            self.rounds += 1;
            self.round_starts = true;
            self.conserves = false;
        }
        let rate = sample.rate();
        if !sample.is_app_limited || rate >= self.rate.max() {
            self.rate.update(self.rounds, rate);
        }
    }

    /// §4.3.2.2: checks whether the pipe is full.
    fn check_full(&mut self, is_app_limited: bool) {
        if self.is_full || !self.round_starts || is_app_limited {
            return;
        }
        if self.rate.max() >= self.full_rate * FULL_GROWTH {
            (self.full_rate, self.full_rounds) = (self.rate.max(), 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    /// Of `pipe` bytes in flight, the segments that will still be there when the next packet leaves: minus what is
    /// delivered by then, plus that packet if the gain is above 1 (Linux's `bbr_packets_in_net_at_edt`).
    fn inflight_at_departure(&self, seen: &Delivered, gain: f64, pipe: u64, mss: f64) -> f64 {
        let delivered = self.rate.max() * seen.departure.saturating_since(seen.now).as_secs_f64() / mss;
        let packet = if gain > 1.0 { self.burst(mss) } else { 0.0 };
        (pipe as f64 / mss + packet - libm::floor(delivered)).max(0.0)
    }

    /// §4.3.4: moves from one phase of the cycle to the next.
    fn advance_cycle(&mut self, seen: &Delivered, mss: f64) {
        let Mode::ProbeBw(phase, since) = self.mode else { return };
        let gain = CYCLE[phase];
        let before = self.inflight_at_departure(seen, gain, seen.pipe_before, mss);
        let is_long = self.min_rtt.is_some_and(|rtt| seen.now.saturating_since(since) > rtt);
        let is_over = if gain > 1.0 {
            is_long && (seen.lost > 0 || before >= self.inflight(gain, mss))
        } else {
            is_long || (gain < 1.0 && before <= self.inflight(1.0, mss))
        };
        if is_over {
            self.mode = Mode::ProbeBw((phase + 1) % CYCLE.len(), seen.now);
        }
    }

    /// §4.3.3: moves from startup to the cycle, once the pipe is full and the queue has then drained.
    fn check_drain(&mut self, seen: &Delivered, mss: f64) {
        // The gain at which segments have left so far.
        let gain = self.pacing_gain();
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
        }
        let in_flight = self.inflight_at_departure(seen, gain, seen.pipe, mss);
        if self.mode == Mode::Drain && in_flight <= self.inflight(1.0, mss) {
            self.probe_bw(seen.now);
        }
    }

    /// Begins the cycle at any phase but the draining one, so that senders do not probe together (§4.3.4.2).
    fn probe_bw(&mut self, now: Time) {
        let draw = (self.noise.at(now.as_nanos(), 0) * 7.0) as usize;
        self.mode = Mode::ProbeBw((CYCLE.len() - draw.min(6)) % CYCLE.len(), now);
    }

    /// §4.1.2, §4.3.5. As in Linux, and unlike §4.1.2.3, an equal round trip does not count as a new minimum: without a
    /// queue, all round trips are equal, and there would never be a probe.
    fn update_min_rtt(&mut self, window: &mut Window, seen: &Delivered) {
        let has_expired = self.min_rtt.is_some() && seen.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = seen.rtt
            && ((has_expired && !may_be_delayed(seen, window.exact_mss())) || self.min_rtt.is_none_or(|min| rtt < min))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), seen.now);
        }
        let mss = window.exact_mss();
        // A pause has emptied the queue, so the round trip after it needs no probe.
        if has_expired && self.rounds > 0 && !self.restarts && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.mode = Mode::ProbeRtt(None);
            self.save(window);
        }
        match &mut self.mode {
            Mode::ProbeRtt(until @ None) if seen.pipe as f64 <= MIN_WINDOW * mss => {
                *until = Some((seen.now + PROBE_RTT_TIME, false));
                self.round_end = seen.delivered;
            }
            Mode::ProbeRtt(Some((_, has_round))) => {
                *has_round |= self.round_starts;
                if *has_round {
                    self.leave_probe_rtt(window, seen.now);
                }
            }
            _ => {}
        }
        self.restarts &= seen.newly == 0;
    }

    /// Ends a round-trip probe that has lasted long enough.
    fn leave_probe_rtt(&mut self, window: &mut Window, now: Time) {
        let Mode::ProbeRtt(Some((until, _))) = self.mode else { return };
        if now > until {
            self.min_rtt_at = now;
            window.set(window.exact().max(self.prior));
            self.mode = Mode::Startup;
            if self.is_full {
                self.probe_bw(now);
            }
        }
    }

    /// Remembers the window before a recovery or a round-trip probe (§4.2.3.4).
    fn save(&mut self, window: &Window) {
        let is_calm = self.phase == Phase::Open && !matches!(self.mode, Mode::ProbeRtt(_));
        self.prior = if is_calm { window.exact() } else { self.prior.max(window.exact()) };
    }

    /// §4.2.2. The rate falls only once the pipe is known to be full. Nothing is paced before the first round trip is
    /// measured: the delivery rate of a small first segment would delay the next one for minutes.
    fn set_pacing(&mut self, window: &Window, seen: &Delivered) {
        if self.pacing.is_none()
            && let Some(srtt) = seen.srtt
        {
            self.pacing = Some(window.exact() / srtt.as_secs_f64() * HIGH_GAIN * MARGIN);
        }
        self.pace(self.pacing_gain());
    }

    /// Paces at `gain` times the rate.
    fn pace(&mut self, gain: f64) {
        let rate = self.rate.max() * gain * MARGIN;
        if let Some(known) = self.pacing
            && rate > 0.0
            && (self.is_full || rate > known)
        {
            self.pacing = Some(rate);
        }
    }

    /// §4.2.3: sets the window.
    fn set_window(&mut self, window: &mut Window, seen: &Delivered) {
        let mss = window.exact_mss();
        let (acked, pipe) = (seen.newly as f64, seen.pipe as f64);
        // As in Linux, a recovery begins and ends here with an ACK that delivers data.
        if acked > 0.0 {
            let entered = self.phase != Phase::Recovery && seen.phase == Phase::Recovery;
            let left = self.phase != Phase::Open && seen.phase == Phase::Open;
            self.phase = seen.phase;
            let mut cwnd = (window.exact() - seen.lost as f64).max(mss);
            if entered {
                self.conserves = true;
                self.round_end = seen.delivered;
                cwnd = pipe + acked;
            } else if left {
                cwnd = cwnd.max(self.prior);
                self.conserves = false;
            }
            if self.conserves {
                cwnd = cwnd.max(pipe + acked);
            } else {
                let product = self.product(self.window_gain(), mss);
                let target = self.with_room(product + self.room_for_bunches(mss), mss) * mss;
                if self.is_full {
                    cwnd = (cwnd + acked).min(target);
                } else if cwnd < target || (seen.delivered as f64) < self.initial_window * mss {
                    cwnd += acked;
                }
                cwnd = cwnd.max(MIN_WINDOW * mss);
            }
            window.set(cwnd.max(mss));
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            window.set(window.exact().min(MIN_WINDOW * mss));
        }
    }

    /// Whole segments by which ACKs came in bunches, at most a tenth of a second's (`bbr_ack_aggregation_cwnd`).
    fn room_for_bunches(&self, mss: f64) -> f64 {
        if !self.is_full {
            return 0.0;
        }
        let extra = libm::ceil(self.aggregation.extra() / mss);
        extra.min(libm::floor(self.rate.max() / 10.0 / mss))
    }
}

impl CongestionRules for Bbr {
    const NAME: &'static str = "BBR v1";
    const PROPERTIES: Properties =
        Properties { paces: true, measures_rate: true, sets_rate: true, resumes: false, ..Properties::WINDOW_ONLY };

    fn on_ack(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        if ack.latest_rtt.is_none() {
            // Without SACK, the rate is not measured.
            start.on_ack(window, ack);
        }
    }

    fn on_delivered(&mut self, window: &mut Window, seen: &Delivered) {
        let is_app_limited = seen.sample.is_some_and(|sample| sample.is_app_limited);
        self.update_rate(seen);
        self.aggregation.update(seen, self.rate.max(), window.exact(), self.round_starts);
        self.advance_cycle(seen, window.exact_mss());
        self.check_full(is_app_limited);
        self.check_drain(seen, window.exact_mss());
        self.update_min_rtt(window, seen);
        self.set_pacing(window, seen);
        self.set_window(window, seen);
    }

    /// §4.3.4.4: the queue is empty, so there is no need to send faster than the path.
    fn on_restart_from_idle(&mut self, window: &mut Window, now: Time) {
        self.restarts = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBw(..) => self.pace(1.0),
            Mode::ProbeRtt(_) => self.leave_probe_rtt(window, now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn holds_back(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt(_))
    }

    /// BBR v1 ignores marks.
    fn on_loss(&mut self, window: &mut Window, loss: &LossReport) {
        if loss.found_by == FoundBy::Mark {
            return;
        }
        self.save(window);
        if let FoundBy::Timeout { .. } = loss.found_by {
            (self.full_rate, self.full_rounds) = (0.0, 0);
            self.phase = Phase::Loss;
            window.set_segments(1);
        }
    }

    fn restart(&mut self, window: &mut Window, segments: u32) {
        if self.rounds == 0 {
            // What a lost SYN has changed does not count: the rate is that of this window (Linux, `bbr_init`).
            let before = window.exact();
            window.set_segments(segments);
            self.pacing = self.pacing.map(|rate| rate * window.exact() / before);
            (self.phase, self.prior) = (Phase::Open, 0.0);
        }
    }

    fn on_recovered(&mut self, _: &mut Window, _: u64) {}

    fn on_spurious_timeout(&mut self, window: &mut Window, _: u64, _: u64) {
        (self.full_rate, self.full_rounds) = (0.0, 0);
        window.set(window.exact().max(self.prior));
    }

    #[inline(always)]
    fn pacing_rate(&self, _: &Window) -> Option<Rate> {
        self.pacing.map(rate_of)
    }
}

/// True if an ACK is of a lone segment that is not full, so that the receiver may have delayed it.
fn may_be_delayed(seen: &Delivered, mss: f64) -> bool {
    seen.sample.is_some_and(|sample| sample.delivered == seen.newly && (seen.newly as f64) < mss)
}

#[cfg(test)]
#[path = "bbr/tests.rs"]
mod tests;
