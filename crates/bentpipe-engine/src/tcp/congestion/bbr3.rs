//! BBRv3 (draft-ietf-ccwg-bbr-05).
//!
//! As version 1 (`bbr.rs`) it paces at the measured rate of delivery and keeps a product of rate and round trip in flight. New: losses
//! bound the volume and the rate (`bbr3/bounds.rs`), a probe for more rate begins with a round trip that fills the path and ends
//! when the rate no longer grows, and the round trip is probed every five seconds with half a product in flight.
//!
//! The draft says nothing about ECN. Here an echoed mark counts as a loss: outside probes it bounds rate and volume by what was
//! delivered, a probe it ends. Of the segments that an ACK shows to be lost, the one with the largest share of losses decides (§5.5.10.2).

mod bounds;
mod filled;

use self::bounds::Bounds;
use self::filled::Filled;
use super::bbr::aggregation::{Aggregation, SPAN};
use super::bbr::windowed::MaxFilter;
use super::{AckSample, CongestionRules, Delivered, FoundLost, Properties, Window};
use crate::stream::TimeNoise;
use crate::tcp::config::TcpConfig;
use crate::tcp::delivery::{LostSample, RateSample, rate_of};
use crate::tcp::loss::{FoundBy, LossReport};
use crate::tcp::recovery::Phase;
use crate::tcp::startup::SlowStart;
use crate::units::{Duration, Rate, Time};

/// The gains of the pacing rate (§5.6.1), and 1 in the other states.
const STARTUP_GAIN: f64 = 2.77;
const DRAIN_GAIN: f64 = 0.5;
const DOWN_GAIN: f64 = 0.9;
const UP_GAIN: f64 = 1.25;
/// Products in flight, while probing for rate, and while probing for the round trip.
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_GAIN: f64 = 0.5;
/// Share of losses beyond which a volume is too great, and part of that volume which stays free for others (§2.7).
const LOSS_THRESH: f64 = 0.02;
const HEADROOM: f64 = 0.15;
/// ACKs with losses in a round trip that end startup (§5.3.1.3).
const FULL_LOSSES: u32 = 6;
/// Round trips of draining at most (§5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// How long the minimum round trip counts; how often it is probed, and how long (§2.13, §5.3.4).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Between probes for rate: 2 to 3 s, or as many round trips as the window has segments, at most this many (§5.3.3.5.2).
const MIN_PROBE_WAIT: Duration = Duration::from_secs(2);
const MAX_PROBE_ROUNDS: f64 = 63.0;
/// Segments in flight at least (§5.6.4.3).
const MIN_PIPE: f64 = 4.0;
/// The sender paces at this part of the rate (§5.6.2).
const MARGIN: f64 = 0.99;
/// A burst is what is sent in a millisecond, between two segments and this; the window has room for three (§5.6.3, §5.5.8.1).
const MAX_BURST: f64 = 65_536.0;
const BURSTS: f64 = 3.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    /// Until the round trip with this number.
    Drain(u64),
    Down,
    Cruise,
    Refill,
    Up,
    /// When it ends, once few segments are in flight, and whether a round trip has passed since.
    ProbeRtt(Option<(Time, bool)>),
}

impl State {
    fn is_probing(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }

    fn is_of_cycle(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }
}

/// Which part of a probe the ACKs now tell about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// The state of BBRv3. Rates are bytes per second, volumes bytes.
#[derive(Clone, Debug)]
pub(super) struct Bbr3 {
    state: State,
    /// Greatest rate of this cycle of probes and the last.
    max_bw: MaxFilter,
    cycle: u64,
    aggregation: Aggregation,
    bounds: Bounds,
    /// The bounds when the last recovery began.
    before_loss: Bounds,
    filled: Filled,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    /// The minimum round trip since the last probe for it.
    recent_rtt: Option<Duration>,
    recent_rtt_at: Time,
    round_end: u64,
    rounds: u64,
    round_starts: bool,
    /// The cycle: when it began, how long until the next probe, and the round trips since the last.
    cycle_at: Time,
    wait: Duration,
    rounds_since_probe: u64,
    ack_phase: AckPhase,
    /// ACKs tell about a probe that nothing has ended yet.
    is_judging: bool,
    /// The window was in use at some time of this round trip.
    is_limited: bool,
    /// The growth of the long-term bound: bytes acknowledged for a segment more, those so far, and how often it has doubled.
    up_count: f64,
    up_acks: f64,
    up_rounds: u32,
    /// The window before a recovery or a probe of the round trip, to which it returns, and the state before the losses.
    prior: f64,
    state_before_loss: State,
    /// When the last ACK came, and what had been delivered with it.
    last: (Time, u64),
    phase: Phase,
    pacing: Option<f64>,
    initial_window: f64,
    /// Sending has begun again after a pause, and nothing has been delivered since.
    restarts: bool,
    noise: TimeNoise,
}

impl Bbr3 {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Bbr3 {
            state: State::Startup,
            max_bw: MaxFilter::new(1),
            cycle: 0,
            aggregation: Aggregation::default(),
            bounds: Bounds::NONE,
            before_loss: Bounds::NONE,
            filled: Filled::default(),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            recent_rtt: None,
            recent_rtt_at: Time::ZERO,
            round_end: 0,
            rounds: 0,
            round_starts: false,
            cycle_at: Time::ZERO,
            wait: Duration::ZERO,
            rounds_since_probe: 0,
            ack_phase: AckPhase::Init,
            is_judging: false,
            is_limited: false,
            up_count: f64::INFINITY,
            up_acks: 0.0,
            up_rounds: 0,
            prior: 0.0,
            state_before_loss: State::Startup,
            last: (Time::ZERO, 0),
            phase: Phase::Open,
            pacing: None,
            initial_window: f64::from(config.variant.initial_window),
            restarts: false,
            noise: TimeNoise::named(0, "bbr3"),
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => STARTUP_GAIN,
            State::Drain(_) => DRAIN_GAIN,
            State::Down => DOWN_GAIN,
            State::Up => UP_GAIN,
            State::Cruise | State::Refill | State::ProbeRtt(_) => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => UP_CWND_GAIN,
            State::ProbeRtt(_) => PROBE_RTT_GAIN,
            _ => CWND_GAIN,
        }
    }

    /// BBRBoundBWForModel.
    fn bw(&self) -> f64 {
        self.max_bw.max().min(self.bounds.bw)
    }

    /// The product of a rate and the minimum round trip; the initial window before one is known.
    fn product(&self, bw: f64, mss: f64) -> f64 {
        self.min_rtt.map_or(self.initial_window * mss, |rtt| bw * rtt.as_secs_f64())
    }

    /// BBRQuantizationBudget.
    fn budget(&self, volume: f64, mss: f64) -> f64 {
        let burst = (self.pacing.unwrap_or(0.0) / 1000.0).min(MAX_BURST).max(2.0 * mss);
        let probe = if self.state == State::Up { 2.0 * mss } else { 0.0 };
        volume.max(BURSTS * burst).max(MIN_PIPE * mss) + probe
    }

    /// BBRInflightWithHeadroom.
    fn with_headroom(&self, mss: f64) -> f64 {
        let longterm = self.bounds.longterm;
        if longterm.is_infinite() {
            return longterm;
        }
        (longterm - mss.max(HEADROOM * longterm)).max(MIN_PIPE * mss)
    }

    /// BBRTargetInflight.
    fn target(&self, window: &Window) -> f64 {
        self.product(self.bw(), window.exact_mss()).min(window.exact())
    }

    fn start_round(&mut self, delivered: u64) {
        self.round_end = delivered;
    }

    /// §5.5.1, §5.5.5: the round trip, and the maximum rate.
    fn update_max_bw(&mut self, seen: &Delivered) {
        self.round_starts = false;
        let Some(sample) = seen.sample else { return };
        if sample.prior_delivered >= self.round_end {
            self.start_round(seen.delivered);
            self.rounds += 1;
            self.rounds_since_probe += 1;
            self.round_starts = true;
        }
        let rate = sample.rate();
        if !sample.is_app_limited || rate >= self.max_bw.max() {
            self.max_bw.update(self.cycle, rate);
        }
    }

    /// BBRUpdateCongestionSignals, without the maximum rate.
    fn update_signals(&mut self, window: &Window) {
        if !self.bounds.round_starts {
            return;
        }
        if !self.state.is_probing() {
            self.bounds.adapt(self.max_bw.max(), window.exact());
        }
    }

    /// §5.3.1.3: startup ends, too, if a round trip of a recovery loses more than a path that is not full.
    fn check_startup_loss(&mut self, window: &Window, seen: &Delivered) {
        let in_recovery = self.phase == Phase::Recovery && seen.phase == Phase::Recovery;
        let is_lossy = self.bounds.events >= FULL_LOSSES && seen.sample.is_some_and(|sample| is_too_high(&sample));
        if self.state == State::Startup && self.bounds.round_starts && in_recovery && is_lossy {
            self.filled.ever = true;
            let product = self.product(self.bw(), window.exact_mss());
            self.bounds.longterm = product.max(self.bounds.inflight_latest());
        }
    }

    /// BBRCheckStartupDone, BBRCheckDrainDone.
    fn leave_startup(&mut self, seen: &Delivered, mss: f64) {
        if self.state == State::Startup && self.filled.ever {
            self.state = State::Drain(self.rounds + DRAIN_ROUNDS);
        }
        if let State::Drain(until) = self.state {
            let drained = seen.pipe as f64 <= self.budget(self.product(self.bw(), mss), mss);
            if drained || self.rounds > until {
                self.start_down(seen.now, seen.delivered);
            }
        }
    }

    fn start_down(&mut self, now: Time, delivered: u64) {
        self.bounds.reset_signals();
        self.up_count = f64::INFINITY;
        // BBRPickProbeWait.
        let draw = self.noise.at(now.as_nanos(), 0);
        self.rounds_since_probe = u64::from(draw >= 0.5);
        self.wait = MIN_PROBE_WAIT + Duration::from_secs_f64_rounded(draw);
        self.cycle_at = now;
        self.ack_phase = AckPhase::Stopping;
        self.start_round(delivered);
        self.state = State::Down;
    }

    fn start_refill(&mut self, delivered: u64) {
        self.bounds.reset_short_term();
        (self.up_rounds, self.up_acks) = (0, 0.0);
        self.ack_phase = AckPhase::Refilling;
        self.start_round(delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, window: &Window, seen: &Delivered) {
        self.ack_phase = AckPhase::Starting;
        self.start_round(seen.delivered);
        self.filled.restart(seen.sample.map_or(0.0, |sample| sample.rate()));
        self.state = State::Up;
        self.raise_slope(window);
    }

    /// BBRRaiseInflightLongtermSlope: one segment more per window of ACKs, then 2, 4 and so on.
    fn raise_slope(&mut self, window: &Window) {
        let segments = f64::from(1u32 << self.up_rounds);
        self.up_rounds = (self.up_rounds + 1).min(30);
        self.up_count = (window.exact() / segments).max(window.exact_mss());
    }

    /// BBRIsTimeToProbeBW.
    fn probes_again(&self, window: &Window, seen: &Delivered) -> bool {
        let rounds = (self.target(window) / window.exact_mss()).min(MAX_PROBE_ROUNDS);
        seen.now > self.cycle_at + self.wait || self.rounds_since_probe as f64 >= rounds
    }

    /// BBRUpdateProbeBWCyclePhase.
    fn advance(&mut self, window: &Window, seen: &Delivered) {
        if !self.filled.ever {
            return;
        }
        let is_limited = seen.pipe_before as f64 + window.exact_mss() > window.exact();
        self.is_limited = is_limited || self.is_limited && !self.round_starts;
        let at_bound = self.is_limited && window.exact() >= self.bounds.longterm;
        self.adapt_long_term(window, seen, at_bound);
        match self.state {
            State::Down | State::Cruise if self.probes_again(window, seen) => self.start_refill(seen.delivered),
            State::Down => {
                let mss = window.exact_mss();
                let product = self.budget(self.product(self.max_bw.max(), mss), mss);
                if seen.pipe as f64 <= self.with_headroom(mss).min(product) {
                    self.state = State::Cruise;
                }
            }
            State::Refill if self.round_starts => {
                self.is_judging = true;
                self.start_up(window, seen);
            }
            // BBRIsTimeToGoDown: the bound, not the path, limits the rate.
            State::Up if at_bound => self.filled.restart(seen.sample.map_or(0.0, |sample| sample.rate())),
            State::Up if self.filled.now => self.start_down(seen.now, seen.delivered),
            _ => {}
        }
    }

    /// BBRAdaptLongTermModel.
    fn adapt_long_term(&mut self, window: &Window, seen: &Delivered, at_bound: bool) {
        match self.ack_phase {
            AckPhase::Starting if self.round_starts => self.ack_phase = AckPhase::Feedback,
            AckPhase::Stopping if self.round_starts => {
                self.ack_phase = AckPhase::Init;
                self.is_judging = false;
                if self.state.is_of_cycle() && seen.sample.is_some_and(|sample| !sample.is_app_limited) {
                    self.cycle += 1;
                    // The filter forgets what is two cycles old.
                    self.max_bw.update(self.cycle, 0.0);
                }
            }
            _ => {}
        }
        let Some(sample) = seen.sample.filter(|sample| !is_too_high(sample)) else { return };
        if self.bounds.longterm.is_infinite() {
            return;
        }
        self.bounds.longterm = self.bounds.longterm.max(sample.tx_in_flight as f64);
        // BBRProbeInflightLongtermUpward.
        if self.state == State::Up && at_bound {
            self.up_acks += seen.newly as f64;
            let more = (self.up_acks / self.up_count).floor();
            self.up_acks -= more * self.up_count;
            self.bounds.longterm += more * window.exact_mss();
            if self.round_starts {
                self.raise_slope(window);
            }
        }
    }

    /// BBRSaveStateUponLoss, before the first loss or mark of a round trip.
    fn save_state(&mut self) {
        if self.bounds.events == 0 {
            (self.before_loss, self.state_before_loss) = (self.bounds, self.state);
        }
    }

    /// BBRHandleLostPacket, for the segment of which most was lost besides.
    fn on_lost(&mut self, window: &Window, lost: &FoundLost) {
        self.save_state();
        self.bounds.note_loss(lost.delivered);
        if let Some(worst) = lost.worst.filter(|worst| self.is_judging && worst.share() > LOSS_THRESH) {
            let volume = (!worst.is_app_limited).then(|| in_flight_at_loss(&worst));
            self.end_probe(volume, window, (lost.now, lost.delivered));
        }
    }

    /// BBRHandleInflightTooHigh: a probe has lost too much with `volume` in flight, if that was not limited by the application.
    fn end_probe(&mut self, volume: Option<f64>, window: &Window, (now, delivered): (Time, u64)) {
        self.is_judging = false;
        if let Some(volume) = volume {
            self.bounds.too_high(volume, self.target(window));
        }
        if self.state == State::Up {
            self.start_down(now, delivered);
        }
    }

    /// BBRSaveCwnd.
    fn save(&mut self, window: &Window) {
        let is_calm = self.phase == Phase::Open && !matches!(self.state, State::ProbeRtt(_));
        self.prior = if is_calm { window.exact() } else { self.prior.max(window.exact()) };
    }
}

mod control;
mod probe_rtt;

/// True if more was lost since a segment was sent than a path that is not full loses.
fn is_too_high(sample: &RateSample) -> bool {
    sample.lost as f64 > sample.tx_in_flight as f64 * LOSS_THRESH
}

/// BBRInflightAtLoss: what was in flight when the share of losses passed the threshold.
fn in_flight_at_loss(lost: &LostSample) -> f64 {
    let (size, before) = (lost.size as f64, lost.tx_in_flight as f64);
    let (inflight, lost) = (before - size, lost.lost as f64 - size);
    inflight + ((LOSS_THRESH * inflight - lost) / (1.0 - LOSS_THRESH)).max(0.0)
}

#[cfg(test)]
mod tests;
