//! CUBIC (RFC 9438): after a loss, the window follows a cubic function of time that is flat around the window at the
//! loss.
//!
//! Windows are counted in segments and times in seconds, as in the RFC. Growth within a round trip follows §4.4 and
//! §4.5, but for each segment acknowledged instead of each ACK: a receiver that delays ACKs must not slow the sender
//! down.

use alloc::borrow::ToOwned;
use alloc::string::String;

use super::reduction::{Factors, Reduces, Undoable, react};
use super::{AckSample, CongestionRules, Properties, Window};
use crate::tcp::config::{SsthreshBase, TcpConfig};
use crate::tcp::loss::LossReport;
use crate::tcp::startup::SlowStart;
use crate::tcp::variant::Growth;
use crate::units::{Duration, Time};

/// C, in segments per second cubed (RFC 9438 §5).
const C: f64 = 0.4;
/// The window after a loss, as a fraction of that before it (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// The same fraction after a mark, with ABE (RFC 8511 §3).
const BETA_ECN: f64 = 0.85;
/// Growth in segments per round trip at which an AIMD flow with [`BETA`] is as fast as Reno (RFC 9438 §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The growth since the last reduction of the window.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When the epoch began. Moved forward by each pause in which the window is not used.
    start: Time,
    /// Seconds from the start until the window reaches `w_max` again.
    k: f64,
    /// The window at which the function is flat, segments.
    w_max: f64,
    /// The window that Reno would have now, segments.
    w_est: f64,
}

impl Epoch {
    /// Begins an epoch at the first ACK of congestion avoidance, with a window of `cwnd` (RFC 9438 §4.2). A window that
    /// is beyond `w_max` already begins at the flat point.
    fn begin(w_max: f64, now: Time, cwnd: f64) -> Epoch {
        let w_max = w_max.max(cwnd);
        Epoch { start: now, k: libm::cbrt((w_max - cwnd) / C), w_max, w_est: cwnd }
    }

    /// W_cubic, `t` seconds after the start (RFC 9438 §4.2, figure 1).
    fn w_cubic(&self, t: f64) -> f64 {
        let t = t - self.k;
        C * t * t * t + self.w_max
    }
}

/// State that a loss changes, kept so that a spurious loss can be undone.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// The window before the last reduction, lowered by fast convergence; 0 if unknown. Segments.
    w_max: f64,
    /// The window before the last reduction, segments.
    cwnd_prior: f64,
    /// The next epoch begins at its flat point, because a timeout came before it (RFC 9438 §4.8).
    is_flat: bool,
    epoch: Option<Epoch>,
}

/// The state of CUBIC.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    memory: Undoable<Memory>,
    /// The time since which the window has not been in use.
    unused_since: Option<Time>,
    /// The time of the last ACK in congestion avoidance that found the window in use.
    last_used: Time,
    base: SsthreshBase,
    factors: Factors,
}

impl Cubic {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Cubic {
            memory: Undoable::default(),
            unused_since: None,
            last_used: Time::ZERO,
            base: config.shortcuts.ssthresh_base,
            factors: Factors::new(config, BETA, BETA_ECN),
        }
    }

    /// Processes an ACK of `acked` segments in congestion avoidance. Returns the new window in segments.
    fn avoid_congestion(&mut self, cwnd: f64, acked: f64, ack: &AckSample) -> f64 {
        let unused_since = self.unused_since.take();
        self.last_used = ack.now;
        let memory = &mut self.memory.now;
        if memory.epoch.is_none() && core::mem::take(&mut memory.is_flat) {
            //= RFC 9438 §4.8: "_K_ is set to 0, and _W_max_ is set to the congestion window size at the beginning of the
            //= current congestion avoidance stage"
            memory.w_max = cwnd;
        }
        let Memory { w_max, cwnd_prior, .. } = *memory;
        let epoch = memory.epoch.get_or_insert_with(|| Epoch::begin(w_max, ack.now, cwnd));
        if let Some(since) = unused_since {
            //= RFC 9438 §4.2: "The elapsed time _t_ in Figure 1 MUST NOT include periods during which _cwnd_ has not been
            //= updated due to application-limited behavior"
            epoch.start = (epoch.start + ack.now.saturating_since(since)).min(ack.now);
        }
        let alpha = if epoch.w_est < cwnd_prior { ALPHA } else { 1.0 };
        epoch.w_est += alpha * acked / cwnd;

        let t = ack.now.saturating_since(epoch.start).as_secs_f64();
        if epoch.w_cubic(t) < epoch.w_est {
            // The Reno-friendly region (RFC 9438 §4.3). An ACK never reduces the window.
            return epoch.w_est.max(cwnd);
        }
        let rtt = ack.srtt.map_or(0.0, |srtt| srtt.as_secs_f64());
        let target = epoch.w_cubic(t + rtt).clamp(cwnd, 1.5 * cwnd);
        cwnd + acked * (target - cwnd) / cwnd
    }
}

impl Reduces for Cubic {
    /// Sets the start values of the next epoch, and the threshold (RFC 9438 §4.6, §4.7).
    fn reduce(&mut self, window: &mut Window, loss: &LossReport) {
        let mss = window.exact_mss();
        let cwnd = window.exact() / mss;
        let falls_behind = cwnd < self.memory.now.w_max;
        let w_max = if falls_behind { cwnd * (1.0 + self.factors.loss) / 2.0 } else { cwnd };
        self.memory.replace(Memory { w_max, cwnd_prior: cwnd, is_flat: false, epoch: None });
        self.unused_since = None;
        let before = match self.base {
            SsthreshBase::FlightSize => loss.flight as f64,
            _ => window.exact(),
        };
        window.set_ssthresh((window.whole_units(self.factors.of(loss) * before) as f64).max(2.0 * mss));
    }

    fn after_timeout(&mut self) {
        self.memory.now.is_flat = true;
    }
}

impl CongestionRules for Cubic {
    const NAME: &'static str = "CUBIC (RFC 9438)";

    const PROPERTIES: Properties = Properties { heeds_unused: true, ..Properties::WINDOW_ONLY };

    fn describe(growth: Growth) -> String {
        match growth {
            Growth::PerAck => Self::NAME.to_owned(),
            Growth::Bytes(limit) => format!("{}, L = {limit}", Self::NAME),
            Growth::All => format!("{}, per byte", Self::NAME),
        }
    }

    fn on_ack(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        if window.in_slow_start() {
            start.on_ack(window, ack);
            return;
        }
        let mss = window.exact_mss();
        let cwnd = self.avoid_congestion(window.exact() / mss, ack.acked as f64 / mss, ack);
        window.set(cwnd * mss);
    }

    fn on_unused(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        if window.in_slow_start() {
            return start.on_unused(window, ack);
        }
        self.unused_since.get_or_insert(ack.now);
    }

    /// Nothing is outstanding, so the window has not been in use between the last ACK and now.
    fn on_idle(&mut self, now: Time, _: Duration) {
        if self.unused_since.is_none()
            && let Some(epoch) = &mut self.memory.now.epoch
        {
            epoch.start = (epoch.start + now.saturating_since(self.last_used)).min(now);
        }
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossReport) {
        react(self, window, loss);
    }

    fn restart(&mut self, window: &mut Window, segments: u32) {
        self.memory.now.epoch = None;
        window.set_segments(segments);
    }

    //= RFC 9438 §4.9.2: "the current _cwnd_ is already higher than _cwnd_prior_, CUBIC SHOULD continue to use the current
    //= and the most recent values of these variables"
    fn on_spurious_timeout(&mut self, window: &mut Window, cwnd: u64, ssthresh: u64) {
        if window.exact() <= self.memory.now.cwnd_prior * window.exact_mss() {
            self.memory.undo(window, cwnd, ssthresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::loss::FoundBy;

    const MSS: u16 = 1000;
    const RTT: Duration = Duration::from_millis(100);

    fn at(seconds: f64) -> Time {
        Time::ZERO + Duration::from_secs_f64_rounded(seconds)
    }

    /// A window of `segments` segments, in congestion avoidance.
    fn window(segments: f64) -> Window {
        let mut window = Window::new(&TcpConfig { mss: MSS, ..TcpConfig::default() }, 10);
        window.set_ssthresh(2.0 * MSS as f64);
        window.set(segments * MSS as f64);
        window
    }

    fn cubic() -> (Cubic, SlowStart) {
        let config = TcpConfig { mss: MSS, ..TcpConfig::default() };
        (Cubic::new(&config), SlowStart::new(&config.variant))
    }

    fn ack(now: Time, acked: u64) -> AckSample {
        AckSample { acked, now, srtt: Some(RTT), ..AckSample::default() }
    }

    fn lost(flight: u64) -> LossReport {
        LossReport { found_by: FoundBy::DuplicateAcks, flight, peer_window: u64::MAX }
    }

    fn segments(window: &Window) -> f64 {
        window.exact() / MSS as f64
    }

    /// Runs ACKs of one segment each, a window of them per round trip, until `seconds` have passed.
    fn run(cubic: &mut Cubic, window: &mut Window, from: f64, seconds: f64) {
        let (_, mut start) = self::cubic();
        let mut now = from;
        while now < from + seconds {
            cubic.on_ack(window, &mut start, &ack(at(now), MSS as u64));
            now += 0.1 / segments(window);
        }
    }

    /// RFC 9438 §4.2 and §4.6 by hand: 1000 segments become 700, K = cbrt(300 / 0.4) = 9.086 s, and W_cubic leads back
    /// there and beyond.
    #[test]
    fn the_window_follows_the_cubic_function() {
        let (mut cubic, _) = cubic();
        let mut window = window(1000.0);
        cubic.on_loss(&mut window, &lost(1_000_000));
        assert_eq!((segments(&window), window.ssthresh()), (700.0, 700_000));
        let mut now = 0.0;
        for (until, expected) in [(3.0, 909.86), (6.0, 988.24), (9.0, 1000.0), (12.0, 1009.90), (15.0, 1082.75)] {
            run(&mut cubic, &mut window, now, until - now);
            now = until;
            // The ACKs of a round trip aim at its end, and W_cubic changes by at most 3 C (t-K)² RTT = 10 segments per
            // round trip.
            let steepest = 3.0 * C * (until - 9.086) * (until - 9.086) * 0.1;
            assert!((segments(&window) - expected).abs() <= steepest + 0.1, "{until} s: {}", segments(&window));
        }
    }

    /// RFC 9438 §4.3: where Reno is faster, as it is over short round trips, the window is Reno's. Of 10 segments, 7
    /// remain; the window grows by 0.529 segments per round trip up to 10, and by one from there on.
    #[test]
    fn a_small_window_grows_as_renos() {
        let (mut cubic, _) = cubic();
        let mut window = window(10.0);
        cubic.on_loss(&mut window, &lost(10_000));
        assert_eq!(segments(&window), 7.0);
        let expected = |rounds: f64| 7.0 + ALPHA * rounds;
        // Four round trips take 0.4 s. W_cubic is then 9.0: K = cbrt(3 / 0.4) = 1.957 s.
        run(&mut cubic, &mut window, 0.0, 0.4);
        assert!((ALPHA - 0.529).abs() < 0.001);
        let cubic_there = 10.0 - C * (1.957f64 - 0.4).powi(3);
        assert!(segments(&window) >= expected(4.0).max(cubic_there) - 0.2, "{}", segments(&window));
        let epoch = cubic.memory.now.epoch.expect("it has begun");
        // A round trip has as many ACKs as segments, give or take one.
        assert!((epoch.w_est - expected(4.0)).abs() <= ALPHA / 7.0 + 0.05, "{}", epoch.w_est);
    }

    /// RFC 9438 §4.7: a loss at a smaller window than the last one leaves room to other flows.
    #[test]
    fn fast_convergence_lowers_the_plateau() {
        let (mut cubic, _) = cubic();
        let mut window = window(100.0);
        cubic.on_loss(&mut window, &lost(100_000));
        assert_eq!(cubic.memory.now.w_max, 100.0);
        window.set(80_000.0);
        cubic.on_loss(&mut window, &lost(80_000));
        assert_eq!(cubic.memory.now.w_max, 80.0 * 1.7 / 2.0);
        assert_eq!(segments(&window), 56.0);
    }

    /// RFC 8511 §3: with ABE, a mark leaves 0.85 of the window, and a loss 0.7. Without it, both leave 0.7.
    #[test]
    fn a_mark_takes_less_than_a_loss() {
        for (abe, found_by, expected) in
            [(true, FoundBy::Mark, 85.0), (true, FoundBy::DuplicateAcks, 70.0), (false, FoundBy::Mark, 70.0)]
        {
            let mut cubic = Cubic::new(&TcpConfig { mss: MSS, abe, ..TcpConfig::default() });
            let mut window = window(100.0);
            cubic.on_loss(&mut window, &LossReport { found_by, ..lost(100_000) });
            assert_eq!(segments(&window), expected, "{abe} {found_by:?}");
        }
    }

    /// RFC 9438 §4.8: after a timeout, the window is one segment, the threshold is 0.7 of the flight, and the next
    /// epoch has K = 0.
    #[test]
    fn a_timeout_begins_at_the_flat_point() {
        let (mut cubic, mut start) = cubic();
        let mut window = window(100.0);
        let timeout = |repeated| LossReport { found_by: FoundBy::Timeout { repeated }, ..lost(100_000) };
        cubic.on_loss(&mut window, &timeout(false));
        assert_eq!((segments(&window), window.ssthresh()), (1.0, 70_000));
        cubic.on_loss(&mut window, &timeout(true));
        assert_eq!(window.ssthresh(), 70_000, "held constant");
        window.set(70_000.0);
        cubic.on_ack(&mut window, &mut start, &ack(at(9.0), 1000));
        let epoch = cubic.memory.now.epoch.expect("it has begun");
        assert_eq!((epoch.k, epoch.w_max), (0.0, 70.0));
    }

    /// RFC 9438 §4.7, §4.8: until the first congestion avoidance after a timeout, W_max is the window of before. So a loss in the slow
    /// start after it, at 50 segments of the former 100, leaves room to other flows: 50 * 1.7 / 2. After that the flat window counts.
    #[test]
    fn a_timeout_keeps_the_plateau_until_the_flat_point() {
        for (avoids, w_max) in [(false, 42.5), (true, 71.0)] {
            let (mut cubic, mut start) = cubic();
            let mut window = window(100.0);
            cubic.on_loss(&mut window, &LossReport { found_by: FoundBy::Timeout { repeated: false }, ..lost(100_000) });
            assert_eq!(cubic.memory.now.w_max, 100.0);
            if avoids {
                window.set(70_000.0);
                cubic.on_ack(&mut window, &mut start, &ack(at(9.0), 1000));
                assert_eq!(cubic.memory.now.w_max, 70.0);
                window.set(71_000.0);
            } else {
                window.set(50_000.0);
            }
            cubic.on_loss(&mut window, &lost(50_000));
            assert_eq!(cubic.memory.now.w_max, w_max);
        }
    }

    /// RFC 9438 §4.9.2: a needless recovery is undone while the window is at most what it was before. Afterwards the current state counts.
    #[test]
    fn a_window_that_has_outgrown_the_loss_is_not_undone() {
        for (now, undone) in [(1000.0, true), (1001.0, false)] {
            let (mut cubic, _) = cubic();
            let mut window = window(1000.0);
            let ssthresh = window.ssthresh();
            cubic.on_loss(&mut window, &lost(1_000_000));
            run(&mut cubic, &mut window, 0.0, 1.0);
            window.set(now * MSS as f64);
            let restored = window.cwnd().max(1_000_000);
            cubic.on_spurious_timeout(&mut window, restored, ssthresh);
            assert_eq!(window.ssthresh() == ssthresh, undone, "{now}");
            assert_eq!(cubic.memory.now.w_max == 0.0, undone, "{now}");
        }
    }

    /// RFC 9438 §4.9.1: a spurious timeout leaves no trace.
    #[test]
    fn a_spurious_timeout_is_undone() {
        let (mut cubic, _) = cubic();
        let mut window = window(1000.0);
        cubic.on_loss(&mut window, &lost(1_000_000));
        run(&mut cubic, &mut window, 0.0, 2.0);
        let (cwnd, ssthresh, k) = (window.cwnd(), window.ssthresh(), cubic.memory.now.epoch.expect("it has begun").k);
        cubic.on_loss(&mut window, &LossReport { found_by: FoundBy::Timeout { repeated: false }, ..lost(800_000) });
        assert!(cubic.memory.now.epoch.is_none());
        cubic.on_spurious_timeout(&mut window, cwnd, ssthresh);
        assert_eq!((window.cwnd(), window.ssthresh()), (cwnd, ssthresh));
        assert_eq!((cubic.memory.now.w_max, cubic.memory.now.epoch.map(|epoch| epoch.k)), (1000.0, Some(k)));
    }

    /// RFC 9438 §4.2: time in which the window is not used does not count.
    #[test]
    fn a_pause_is_left_out() {
        let (mut cubic, mut start) = cubic();
        let mut window = window(1000.0);
        cubic.on_loss(&mut window, &lost(1_000_000));
        cubic.on_ack(&mut window, &mut start, &ack(at(1.0), 1000));
        cubic.on_unused(&mut window, &mut start, &ack(at(2.0), 1000));
        cubic.on_unused(&mut window, &mut start, &ack(at(30.0), 1000));
        cubic.on_ack(&mut window, &mut start, &ack(at(62.0), 1000));
        assert_eq!(cubic.memory.now.epoch.expect("it has begun").start, at(61.0));
        assert!(segments(&window) < 701.0, "{}", segments(&window));
    }

    /// RFC 9438 §4.2, §5.8: a sender with nothing to send does not age either. The last ACK comes at 1 s, the next flight leaves at 61 s
    /// and is acknowledged at 61.1 s.
    #[test]
    fn an_idle_time_is_left_out() {
        let (mut cubic, mut start) = cubic();
        let mut window = window(1000.0);
        cubic.on_loss(&mut window, &lost(1_000_000));
        cubic.on_ack(&mut window, &mut start, &ack(at(0.0), 1000));
        cubic.on_ack(&mut window, &mut start, &ack(at(1.0), 1000));
        cubic.on_idle(at(61.0), Duration::from_secs(60));
        cubic.on_ack(&mut window, &mut start, &ack(at(61.1), 1000));
        assert_eq!(cubic.memory.now.epoch.expect("it has begun").start, at(60.0));
        assert!(segments(&window) < 701.0, "{}", segments(&window));
    }

    /// RFC 9438 §4.3: Reno's window grows by 0.529 segments per round trip only until it reaches the window of the last loss, and by one
    /// from there on. From 7 to 10 it takes 5.7 of twenty round trips: 10 + 14.3 at the end.
    #[test]
    fn renos_window_grows_faster_above_the_last_one() {
        let (mut cubic, _) = cubic();
        let mut window = window(10.0);
        cubic.on_loss(&mut window, &lost(10_000));
        run(&mut cubic, &mut window, 0.0, 2.0);
        // A round trip has as many ACKs as segments, give or take one.
        assert!((segments(&window) - 24.3).abs() < 0.7, "{}", segments(&window));
    }

    /// RFC 9438 §4.4: the target is at most one and a half windows. A hundred seconds after its start the function is far above a window of
    /// ten; an ACK of one segment still adds at most half a segment.
    #[test]
    fn growth_is_at_most_half_a_window_per_round_trip() {
        let (mut cubic, mut start) = cubic();
        let mut window = window(10.0);
        cubic.on_ack(&mut window, &mut start, &ack(at(0.0), 1000));
        let before = segments(&window);
        cubic.on_ack(&mut window, &mut start, &ack(at(100.0), 1000));
        assert!((segments(&window) - before - 0.5).abs() < 1e-9, "{}", segments(&window));
    }

    /// After a pause the sender begins again with a small window. The function begins with congestion avoidance, not where it was.
    #[test]
    fn a_restart_begins_an_epoch() {
        let (mut cubic, mut start) = cubic();
        let mut window = window(1000.0);
        cubic.on_loss(&mut window, &lost(1_000_000));
        cubic.on_ack(&mut window, &mut start, &ack(at(1.0), 1000));
        cubic.restart(&mut window, 10);
        window.set(700_000.0);
        cubic.on_ack(&mut window, &mut start, &ack(at(60.0), 1000));
        assert_eq!(cubic.memory.now.epoch.expect("it has begun").start, at(60.0));
    }
}
