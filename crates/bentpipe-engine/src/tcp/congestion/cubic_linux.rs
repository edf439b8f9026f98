//! CUBIC in the form of its authors (Ha, Rhee and Xu, "CUBIC: A new TCP-friendly high-speed TCP variant", SIGOPS
//! Operating Systems Review 42(5), 2008, algorithm 1), as in Linux. `cubic.rs` is RFC 9438.
//!
//! Windows are whole segments. The function yields `cnt`, the number of acknowledged segments for which the window
//! grows by one. Visible differences from RFC 9438:
//!
//! - Before the first loss, and after a timeout, the window grows by at least a twentieth per round trip.
//! - Time continues while the window is not in use, and the target is that of one minimum round trip from now.
//! - Reno's window grows by 8/15 segments per round trip, even above the window of the last loss.
//! - A loss reduces the window before it, not the data in flight.
//! - Undoing a needless reduction restores the window, but not the state of the function.

use super::reduction::{Factors, Reduces, react};
use super::{AckSample, CongestionRules, Properties, Window};
use crate::tcp::config::TcpConfig;
use crate::tcp::loss::LossReport;
use crate::tcp::startup::SlowStart;
use crate::units::{Duration, Time};

/// Units of the factors.
const SCALE: f64 = 1024.0;
/// C, in segments per second cubed.
const C: f64 = 410.0 / SCALE;
/// The window after a loss, as a fraction of that before it.
const BETA: f64 = 717.0 / SCALE;
/// The same fraction after a mark, with ABE (RFC 8511 §3), which Linux does not have.
const BETA_ECN: f64 = 0.85;
/// Reno's window grows by one for this many windows of acknowledged segments: about (1+BETA)/(3(1-BETA)).
const RENO: f64 = 15.0 / 8.0;
/// Maximum of `cnt` before a loss is known: a twentieth of the window per round trip.
const SEARCHING: f64 = 20.0;
/// Minimum of `cnt`: half of the window per round trip.
const STEEPEST: f64 = 2.0;
/// The interval at which the function is computed.
const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 32);
/// Round trips measured this soon after a loss do not count for the minimum.
const SETTLING: Duration = Duration::from_secs(1);

/// A non-negative count of segments, rounded down.
fn whole(count: f64) -> f64 {
    // Larger values are already whole.
    if count < (1u64 << 53) as f64 { count as i64 as f64 } else { count }
}

/// The growth since the last loss.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Seconds until the window is `origin`.
    k: f64,
    /// Where the function is flat, segments.
    origin: f64,
    /// Reno's window, and the segments acknowledged towards its next increase.
    reno: f64,
    reno_count: f64,
}

/// State that a loss changes. It is not restored after a needless loss, as in Linux.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// The window before the last loss, lowered by fast convergence; 0 if unknown. Segments.
    last_max: f64,
    epoch: Option<Epoch>,
}

/// The state of CUBIC.
#[derive(Clone, Debug)]
pub(super) struct CubicLinux {
    memory: Memory,
    factors: Factors,
    delay_min: Option<Duration>,
    cnt: u64,
    /// When `cnt` was computed, and for which window.
    computed: Option<(Time, f64)>,
    /// Segments acknowledged towards the window's next increase, and bytes towards the next segment.
    count: u64,
    bytes: u64,
}

impl CubicLinux {
    pub(super) fn new(config: &TcpConfig) -> Self {
        CubicLinux::beginning(Memory::default(), Factors::new(config, BETA, BETA_ECN))
    }

    /// The state before anything is measured.
    fn beginning(memory: Memory, factors: Factors) -> Self {
        CubicLinux { memory, factors, delay_min: None, cnt: 0, computed: None, count: 0, bytes: 0 }
    }

    fn measure(&mut self, ack: &AckSample) {
        let settling = self.memory.epoch.is_some_and(|epoch| ack.now < epoch.start + SETTLING);
        if let Some(rtt) = ack.latest_rtt.filter(|_| !settling) {
            self.delay_min = Some(self.delay_min.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Computes `cnt` for a window of `cwnd` segments after `acked` more are acknowledged.
    fn update(&mut self, cwnd: f64, acked: f64, now: Time) {
        let Memory { last_max, epoch } = &mut self.memory;
        if let Some(epoch) = epoch {
            epoch.reno_count += acked;
        }
        if self.computed.is_some_and(|(at, window)| window == cwnd && now.saturating_since(at) <= INTERVAL) {
            return;
        }
        self.computed = Some((now, cwnd));
        let epoch = epoch.get_or_insert_with(|| {
            self.count = 0;
            let k = if *last_max > cwnd { libm::cbrt((*last_max - cwnd) / C) } else { 0.0 };
            Epoch { start: now, k, origin: last_max.max(cwnd), reno: cwnd, reno_count: acked }
        });
        let ahead = now.saturating_since(epoch.start) + self.delay_min.unwrap_or(Duration::ZERO);
        let t = ahead.as_secs_f64() - epoch.k;
        // The distance from the flat point is in whole segments, so a small window grows as soon as it is a fraction
        // nearer.
        let distance = whole(C * (t * t * t).abs());
        let target = if t < 0.0 { epoch.origin - distance } else { epoch.origin + distance };
        let mut cnt = if target > cwnd { cwnd / (target - cwnd) } else { 100.0 * cwnd };
        if *last_max == 0.0 {
            cnt = cnt.min(SEARCHING);
        }
        let delta = whole(cwnd * RENO).max(1.0);
        while epoch.reno_count > delta {
            epoch.reno_count -= delta;
            epoch.reno += 1.0;
        }
        if epoch.reno > cwnd {
            cnt = cnt.min(whole(cwnd / (epoch.reno - cwnd)));
        }
        self.cnt = whole(cnt).max(STEEPEST) as u64;
    }
}

impl Reduces for CubicLinux {
    /// Sets the start values of the next epoch, and the threshold.
    fn reduce(&mut self, window: &mut Window, loss: &LossReport) {
        let mss = window.exact_mss();
        let cwnd = f64::from(window.segments());
        let falls_behind = cwnd < self.memory.last_max;
        let last_max = if falls_behind { whole(cwnd * (1.0 + self.factors.loss) / 2.0) } else { cwnd };
        self.memory = Memory { last_max, epoch: None };
        window.set_ssthresh(whole(cwnd * self.factors.of(loss)).max(2.0) * mss);
    }

    fn after_timeout(&mut self) {
        *self = CubicLinux::beginning(Memory::default(), self.factors);
    }
}

impl CongestionRules for CubicLinux {
    const NAME: &'static str = "CUBIC (Linux)";

    const PROPERTIES: Properties = Properties { heeds_unused: true, ..Properties::WINDOW_ONLY };

    fn on_ack(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        self.measure(ack);
        let bytes = if window.in_slow_start() { start.on_ack(window, ack) } else { ack.acked };
        if bytes == 0 {
            return;
        }
        let mss = window.mss();
        self.bytes += bytes;
        let acked = self.bytes / mss;
        self.bytes %= mss;
        let cwnd = f64::from(window.segments());
        self.update(cwnd, acked as f64, ack.now);
        let cnt = self.cnt;
        let mut more = 0;
        if self.count >= cnt {
            self.count = 0;
            more += 1;
        }
        self.count += acked;
        if self.count >= cnt {
            more += self.count / cnt;
            self.count %= cnt;
        }
        let to = (cwnd + more as f64) * window.exact_mss();
        if to != window.exact() {
            window.set(to);
        }
    }

    fn on_unused(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        self.measure(ack);
        if window.in_slow_start() {
            start.on_unused(window, ack);
        }
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossReport) {
        react(self, window, loss);
    }

    /// Continues the function where it was: idle time does not count (`cubictcp_cwnd_event`).
    fn on_idle(&mut self, now: Time, idle: Duration) {
        if let Some(epoch) = &mut self.memory.epoch {
            epoch.start = (epoch.start + idle).min(now);
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

    fn window(segments: u32) -> Window {
        let mut window = Window::new(&TcpConfig { mss: MSS, ..TcpConfig::default() }, segments);
        window.set_ssthresh(2.0 * MSS as f64);
        window
    }

    fn lost() -> LossReport {
        LossReport { found_by: FoundBy::DuplicateAcks, flight: 0, peer_window: u64::MAX }
    }

    /// Runs ACKs of one segment each, a window of them per round trip, until `seconds` have passed.
    fn run(cubic: &mut CubicLinux, window: &mut Window, from: f64, seconds: f64) {
        let mut start = SlowStart::new(&TcpConfig::default().variant);
        let mut now = from;
        while now < from + seconds {
            let sample = AckSample { acked: MSS as u64, now: at(now), latest_rtt: Some(RTT), ..AckSample::default() };
            cubic.on_ack(window, &mut start, &sample);
            now += 0.1 / f64::from(window.segments());
        }
    }

    /// 1000 segments become 700, K = cbrt(300 / 0.4004) = 9.083 s, and the window is 1000 again then.
    #[test]
    fn the_window_follows_the_cubic_function() {
        let (mut cubic, mut window) = (CubicLinux::new(&TcpConfig::default()), window(1000));
        cubic.on_loss(&mut window, &lost());
        assert_eq!((window.segments(), window.ssthresh()), (700, 700_000));
        let mut now = 0.0;
        for (until, expected) in [(3.0, 910.0), (6.0, 988.0), (9.0, 1000.0), (12.0, 1010.0), (15.0, 1083.0)] {
            run(&mut cubic, &mut window, now, until - now);
            now = until;
            // One round trip later, the function has changed by at most 3 C (t-K)² RTT; the rest is rounding to whole
            // segments.
            let steepest = 3.0 * C * (until - 9.083) * (until - 9.083) * 0.1;
            let cwnd = f64::from(window.segments());
            assert!((cwnd - expected).abs() <= steepest + 2.0, "{until} s: {cwnd}");
        }
    }

    /// Without a loss the window of 100 grows by a twentieth per round trip: to 105 after one, 110 after two.
    #[test]
    fn before_a_loss_the_window_grows_by_a_twentieth() {
        let (mut cubic, mut window) = (CubicLinux::new(&TcpConfig::default()), window(100));
        run(&mut cubic, &mut window, 0.0, 0.2);
        assert!((109..=111).contains(&window.segments()), "{}", window.segments());
    }

    /// 10 segments become 7; Reno's window has grown by 8/15 per round trip, and by about 2 after four.
    #[test]
    fn a_small_window_grows_as_renos() {
        let (mut cubic, mut window) = (CubicLinux::new(&TcpConfig::default()), window(10));
        cubic.on_loss(&mut window, &lost());
        assert_eq!(window.segments(), 7);
        run(&mut cubic, &mut window, 0.0, 0.45);
        let epoch = cubic.memory.epoch.expect("it has begun");
        assert!((1.0..=3.0).contains(&(epoch.reno - 7.0)), "{}", epoch.reno);
    }

    /// A loss at a smaller window than the last one leaves room to other flows: 80 * (1 + 717/1024) / 2 = 68, of which
    /// 56 remain.
    #[test]
    fn fast_convergence_lowers_the_plateau() {
        let (mut cubic, mut window) = (CubicLinux::new(&TcpConfig::default()), window(100));
        cubic.on_loss(&mut window, &lost());
        window.set(80_000.0);
        cubic.on_loss(&mut window, &lost());
        assert_eq!((cubic.memory.last_max, window.segments()), (68.0, 56));
    }

    /// A spurious timeout restores the window, but the function's state is lost: Linux undoes only the window.
    #[test]
    fn a_spurious_timeout_is_undone() {
        let (mut cubic, mut window) = (CubicLinux::new(&TcpConfig::default()), window(1000));
        cubic.on_loss(&mut window, &lost());
        run(&mut cubic, &mut window, 0.0, 2.0);
        let cwnd = window.cwnd();
        cubic.on_loss(&mut window, &LossReport { found_by: FoundBy::Timeout { repeated: false }, ..lost() });
        assert!(cubic.memory.last_max == 0.0 && window.segments() == 1);
        cubic.on_spurious_timeout(&mut window, cwnd, 700_000);
        assert_eq!((cubic.memory.last_max, window.cwnd(), window.ssthresh()), (0.0, cwnd, 700_000));
    }

    /// 1000 segments become 700, and the function advances for 2 s. After 60 idle seconds it continues from the same
    /// point, even if the window has decayed; without the shift it would be far beyond.
    #[test]
    fn idle_time_does_not_count() {
        let (mut cubic, mut window) = (CubicLinux::new(&TcpConfig::default()), window(1000));
        cubic.on_loss(&mut window, &lost());
        run(&mut cubic, &mut window, 0.0, 2.0);
        let start = cubic.memory.epoch.expect("it has begun").start;
        let now = start + Duration::from_secs(62);
        cubic.restart(&mut window, 100);
        cubic.on_idle(now, Duration::from_secs(60));
        let epoch = cubic.memory.epoch.expect("it goes on");
        assert_eq!((epoch.start, epoch.origin), (start + Duration::from_secs(60), 1000.0));
        // An epoch that began during the pause starts at its end.
        cubic.on_idle(now, Duration::from_secs(60));
        assert_eq!(cubic.memory.epoch.map(|epoch| epoch.start), Some(now));
    }

    /// A window of 960 segments 7 s after the start, with K = 9.0826 s. In one minimum round trip of 0.6 s the function is one
    /// segment below 1000, and 960 / 39 segments make the window grow by one. Without the round trip it would be three below:
    /// 960 / 37.
    #[test]
    fn the_target_is_that_of_a_round_trip_from_now() {
        let epoch = Epoch { start: at(0.0), k: libm::cbrt(300.0 / C), origin: 1000.0, reno: 700.0, reno_count: 0.0 };
        let memory = Memory { last_max: 1000.0, epoch: Some(epoch) };
        let new = || CubicLinux { memory, ..CubicLinux::new(&TcpConfig::default()) };
        let mut cubic = CubicLinux { delay_min: Some(at(0.6) - at(0.0)), ..new() };
        cubic.update(960.0, 1.0, at(7.0));
        assert_eq!((cubic.cnt, cubic.computed), (24, Some((at(7.0), 960.0))));
        // The same window: computed again only after a 32nd of a second.
        for (now, computed) in [(7.03125, 7.0), (7.0313, 7.0313)] {
            cubic.update(960.0, 1.0, at(now));
            assert_eq!(cubic.computed, Some((at(computed), 960.0)));
        }
        // Far below the function: at most half of the window more per round trip.
        cubic.update(10.0, 1.0, at(7.1));
        assert_eq!(cubic.cnt, 2);
        // At the flat point the function hardly grows. Reno's window is 4 segments larger: it is reached in a round trip.
        let reno = Epoch { origin: 100.0, k: 0.0, reno: 104.0, ..epoch };
        let mut cubic = CubicLinux { memory: Memory { last_max: 100.0, epoch: Some(reno) }, ..new() };
        cubic.update(100.0, 1.0, at(0.0));
        assert_eq!(cubic.cnt, 25);
    }

    /// Round trips of the first second after a loss do not count (`cubictcp_acked`), and a timeout forgets the minimum (`bictcp_reset`).
    #[test]
    fn the_minimum_round_trip() {
        let (mut cubic, mut window) = (CubicLinux::new(&TcpConfig::default()), window(100));
        cubic.on_loss(&mut window, &lost());
        run(&mut cubic, &mut window, 1.0, 0.1);
        let start = cubic.memory.epoch.expect("it has begun").start;
        let mut measure = |after, millis| {
            let (now, rtt) = (start + Duration::from_millis(after), Duration::from_millis(millis));
            cubic.measure(&AckSample { now, latest_rtt: Some(rtt), ..AckSample::default() });
            cubic.delay_min
        };
        assert_eq!([measure(999, 50), measure(1000, 60)], [Some(RTT), Some(Duration::from_millis(60))]);
        cubic.on_loss(&mut window, &LossReport { found_by: FoundBy::Timeout { repeated: false }, ..lost() });
        assert_eq!(cubic.delay_min, None);
    }

    /// In slow start, round trips end the search for its end even while the window is not in use.
    #[test]
    fn an_unused_window_is_searched_too() {
        let mut config = TcpConfig { mss: MSS, ..TcpConfig::default() };
        config.variant.slow_start_exit = crate::tcp::variant::SlowStartExit::HyStart;
        let (mut cubic, mut start) = (CubicLinux::new(&config), SlowStart::new(&config.variant));
        let mut window = Window::new(&config, 100);
        for n in 1..60 {
            let rtt = Some(Duration::from_millis(if n < 30 { 100 } else { 120 }));
            let (una, max) = (n * 1000, (n / 30 + 1) * 30_000);
            let now = at(n as f64 / 200.0);
            let ack =
                AckSample { now, acked: 1000, latest_rtt: rtt, snd_una: una, snd_max: max, ..AckSample::default() };
            cubic.on_unused(&mut window, &mut start, &ack);
        }
        assert_eq!(window.ssthresh(), 100_000);
    }
}
