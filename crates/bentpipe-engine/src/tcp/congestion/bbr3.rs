//! BBRv3 (draft-ietf-ccwg-bbr-06).
//!
//! Like version 1 (`bbr.rs`), it paces at the measured delivery rate and keeps a multiple of rate times round trip in
//! flight. New in version 3: losses bound the volume and the rate (`bbr3/bounds.rs`). A bandwidth probe begins with a
//! round trip that fills the path and ends when the rate no longer grows (`bbr3/cycle.rs`). The round trip is probed
//! every five seconds with half a product in flight.
//!
//! Comments name the functions of the draft's pseudocode. The draft leaves the response to ECN open (§3.7). Here an
//! echoed mark counts as a loss: outside probes, it bounds rate and volume by the amounts delivered; during a probe, it
//! ends the probe.

mod bounds;
mod control;
mod cycle;
mod extra_acked;
mod filled;
mod losses;
mod probe_rtt;

use self::bounds::Bounds;
use self::extra_acked::ExtraAcked;
use self::filled::Filled;
use self::losses::Undo;
use super::{AckSample, CongestionRules, Delivered, FoundLost, Properties, Window};
use crate::stream::TimeNoise;
use crate::tcp::config::TcpConfig;
use crate::tcp::delivery::{LOSS_THRESH, rate_of};
use crate::tcp::loss::{FoundBy, LossReport};
use crate::tcp::recovery::Phase;
use crate::tcp::startup::SlowStart;
use crate::tcp::windowed::MaxFilter;
use crate::units::{Duration, Rate, Time};

/// The gains of the pacing rate (§5.6.1), and 1 in the other states.
const STARTUP_GAIN: f64 = 2.77;
const DRAIN_GAIN: f64 = 0.5;
const DOWN_GAIN: f64 = 0.9;
const UP_GAIN: f64 = 1.25;
/// Bandwidth-delay products in flight: in general, while probing for bandwidth, and while probing for the round trip.
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_GAIN: f64 = 0.5;
/// The fraction of a volume that lost too much which is left free for other flows (§2.8).
const HEADROOM: f64 = 0.15;
/// Number of ACKs with losses in a round trip that ends startup (§5.3.1.3).
const FULL_LOSSES: u32 = 6;
/// Maximum number of round trips spent draining (§5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// How long the minimum round trip stays valid, how often it is probed, and for how long (§2.16, §5.3.4).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Time between bandwidth probes: 2 to 3 s, or as many round trips as the window has segments, up to this many
/// (§5.3.3.8.2).
const MIN_PROBE_WAIT: Duration = Duration::from_secs(2);
const MAX_PROBE_ROUNDS: f64 = 63.0;
/// Minimum number of segments in flight (§5.6.4.3).
const MIN_PIPE: f64 = 4.0;
/// The sender paces at this fraction of the rate (§5.6.2).
const MARGIN: f64 = 0.99;
/// A burst is the data sent in a millisecond, between two segments and this; the window has room for three bursts
/// (§5.6.3, §5.5.8.1).
const MAX_BURST: f64 = 65_536.0;
const BURSTS: f64 = 3.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    /// Lasts until the round trip with this number.
    Drain(u64),
    Down,
    Cruise,
    Refill,
    Up,
    /// When the probe ends, once few segments are in flight, and whether a round trip has passed since.
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

/// The part of a probe to which the arriving ACKs belong.
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
    /// Maximum rate of the current and the previous probe cycle.
    max_bw: MaxFilter,
    cycle: u64,
    /// The smaller of the maximum rate and the bound from the last round trips, at the last ACK.
    bw: f64,
    extra_acked: ExtraAcked,
    bounds: Bounds,
    undo: Undo,
    filled: Filled,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    /// The minimum round trip since the last probe for it.
    recent_rtt: Option<Duration>,
    recent_rtt_at: Time,
    round_end: u64,
    rounds: u64,
    round_starts: bool,
    /// The cycle: when it began, the time until the next probe, and the round trips since the last probe.
    cycle_at: Time,
    wait: Duration,
    rounds_since_probe: u64,
    ack_phase: AckPhase,
    /// ACKs still belong to a probe that has not been ended.
    is_judging: bool,
    /// The last probe lost too much.
    was_too_high: bool,
    /// The last probe ended because it reached the volume at which the one before had lost too much.
    was_precautionary: bool,
    /// The window was in use when this much was delivered. It counts as used for a round trip.
    limited_at: Option<u64>,
    /// Growth of the long-term bound: bytes to acknowledge per additional segment, bytes so far, and the number of
    /// doublings.
    up_count: f64,
    up_acks: f64,
    up_rounds: u32,
    /// The window before a recovery or a round-trip probe, to be restored afterwards.
    prior: f64,
    /// When the last ACK arrived, and the bytes delivered by then.
    last: (Time, u64),
    phase: Phase,
    /// The bytes delivered when fast recovery began.
    recovery_at: u64,
    pacing: Option<f64>,
    initial_window: f64,
    /// Sending has restarted after a pause, and nothing has been delivered since.
    restarts: bool,
    noise: TimeNoise,
}

impl Bbr3 {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Bbr3 {
            state: State::Startup,
            max_bw: MaxFilter::new(1),
            cycle: 0,
            bw: 0.0,
            extra_acked: ExtraAcked::new(),
            bounds: Bounds::NONE,
            undo: Undo::default(),
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
            was_too_high: false,
            was_precautionary: false,
            limited_at: None,
            up_count: f64::INFINITY,
            up_acks: 0.0,
            up_rounds: 0,
            prior: 0.0,
            last: (Time::ZERO, 0),
            phase: Phase::Open,
            recovery_at: 0,
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

    /// BoundBWForModel.
    fn bound_bw(&mut self) {
        self.bw = self.max_bw.max().min(self.bounds.bw);
    }

    /// BDPMultiple, for a given rate. The initial window before a round trip is known.
    fn products(&self, gain: f64, bw: f64, mss: f64) -> f64 {
        self.min_rtt.map_or(self.initial_window * mss, |rtt| gain * bw * rtt.as_secs_f64())
    }

    /// QuantizationBudget.
    fn budget(&self, volume: f64, mss: f64) -> f64 {
        let burst = (self.pacing.unwrap_or(0.0) / 1000.0).min(MAX_BURST).max(2.0 * mss);
        let probe = if self.state == State::Up { 2.0 * mss } else { 0.0 };
        volume.max(BURSTS * burst).max(MIN_PIPE * mss) + probe
    }

    /// TargetInflight.
    fn target(&self, window: &Window) -> f64 {
        self.products(1.0, self.bw, window.exact_mss()).min(window.exact())
    }

    /// StartRound.
    fn start_round(&mut self, delivered: u64) {
        self.round_end = delivered;
    }

    /// UpdateMaxBw, UpdateRound.
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

    /// UpdateCongestionSignals.
    fn update_signals(&mut self, window: &Window, seen: &Delivered) {
        self.update_max_bw(seen);
        if self.bounds.round_starts && !self.state.is_probing() {
            self.bounds.adapt(self.max_bw.max(), window.exact());
        }
    }

    /// CheckStartupHighLoss: startup also ends if a round trip of a recovery loses more than the tolerated share.
    fn check_startup_loss(&mut self, seen: &Delivered, mss: f64) {
        let Some(sample) = seen.sample.filter(|_| self.state == State::Startup && self.bounds.round_starts) else {
            return;
        };
        let in_recovery = self.phase == Phase::Recovery && seen.phase == Phase::Recovery;
        let for_a_round = in_recovery && sample.prior_delivered >= self.recovery_at;
        if for_a_round && self.bounds.events >= FULL_LOSSES && sample.is_too_high() {
            self.undo.left(State::Startup);
            self.filled.ever = true;
            self.bounds.longterm = self.products(1.0, self.bw, mss).max(self.bounds.inflight_latest());
        }
    }

    /// CheckStartupDone, CheckDrainDone.
    fn leave_startup(&mut self, seen: &Delivered, mss: f64) {
        self.check_startup_loss(seen, mss);
        if self.state == State::Startup && self.filled.ever {
            self.state = State::Drain(self.rounds + DRAIN_ROUNDS);
        }
        if let State::Drain(until) = self.state {
            let drained = seen.pipe as f64 <= self.budget(self.products(1.0, self.bw, mss), mss);
            if drained || self.rounds > until {
                self.start_down(seen.now, seen.delivered);
            }
        }
    }

    /// SaveCwnd.
    fn save(&mut self, window: &Window) {
        let is_calm = self.phase == Phase::Open && !matches!(self.state, State::ProbeRtt(_));
        self.prior = if is_calm { window.exact() } else { self.prior.max(window.exact()) };
    }

    /// RestoreCwnd.
    fn restore(&self, window: &mut Window) {
        window.set(window.exact().max(self.prior));
    }
}

#[cfg(test)]
mod tests;
