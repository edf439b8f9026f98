//! DualPI2 (RFC 9332, appendix A): coupled marking of two queues before one line.
//!
//! One controller holds the waiting time at a target. Its output p' is linear in the load. Classic packets are dropped
//! or marked with probability p'², L4S packets are marked with k p', so that flows of both kinds get about the same
//! rate. The L4S queue also marks on its own if a packet has waited longer than a threshold, which is far below the
//! target.
//!
//! No randomness is used: the appendix spreads drops and marks evenly by adding up their probabilities (`recur`).

use crate::units::{Duration, Probability, Time};

/// The settings of DualPI2 (RFC 9332 §A.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2 {
    /// The acceptable waiting time in the classic queue.
    pub target: Duration,
    /// The longest expected round trip. The controller's gains follow from it.
    pub max_rtt: Duration,
    /// k: the ratio of L4S marks to the square root of the classic probability.
    pub coupling: f64,
    /// The waiting time from which on an L4S packet may be marked by its own queue.
    pub l4s_threshold: Duration,
    /// The additional waiting time over which that probability rises to 1. Zero makes it a step.
    pub l4s_range: Duration,
    /// The minimum share of the line that waiting classic packets get.
    pub classic_share: Probability,
}

impl DualPi2 {
    /// The settings of RFC 9332 §A.1. §4.2.2 says only that the scheduler's weight is small, such as 1/16; the 10 %
    /// here is Linux's (tc-dualpi2).
    pub fn standard() -> DualPi2 {
        DualPi2 {
            target: Duration::from_millis(15),
            max_rtt: Duration::from_millis(100),
            coupling: 2.0,
            l4s_threshold: Duration::from_micros(800),
            l4s_range: Duration::from_micros(400),
            classic_share: Probability::new(0.1).expect("in range"),
        }
    }

    /// Tupdate: the time between two updates of p'.
    pub fn update(&self) -> Duration {
        self.target.min(self.max_rtt.div_floor(3))
    }
}

/// The fate of a packet that is about to leave its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Pass,
    Mark,
    Drop,
}

/// Spreads decisions evenly (RFC 9332 §A.1, `recur`).
#[derive(Clone, Copy, Debug, Default)]
struct Recurrence(f64);

impl Recurrence {
    fn is_due(&mut self, likelihood: f64) -> bool {
        self.0 += likelihood;
        let due = self.0 > 1.0;
        if due {
            self.0 -= 1.0;
        }
        due
    }
}

/// The controller and the decisions.
#[derive(Clone, Debug)]
pub(crate) struct Coupled {
    config: DualPi2,
    /// Integral and proportional gain, per update and second of waiting time.
    alpha: f64,
    beta: f64,
    /// p'.
    base: f64,
    /// The waiting time at the last update, in seconds.
    previous: f64,
    /// When p' is updated next.
    next: Time,
    classic: Recurrence,
    l4s: Recurrence,
    /// Drops of L4S packets in overload. The appendix adds them up together with the marks, and with p_CL above 1 would
    /// drop more than p_C.
    l4s_drops: Recurrence,
}

impl Coupled {
    pub(crate) fn new(config: DualPi2) -> Self {
        let (update, max_rtt) = (config.update().as_secs_f64(), config.max_rtt.as_secs_f64());
        Coupled {
            config,
            alpha: 0.1 * update / (max_rtt * max_rtt),
            beta: 0.3 / max_rtt,
            base: 0.0,
            previous: 0.0,
            next: Time::ZERO + config.update(),
            classic: Recurrence::default(),
            l4s: Recurrence::default(),
            l4s_drops: Recurrence::default(),
        }
    }

    /// Performs all updates of p' that are due until `now`. `oldest` is the arrival of the packet that has waited
    /// longest in either queue.
    //= RFC 9332 §A.1 and, for the longer wait of both queues, §A.2: the update
    pub(crate) fn update_until(&mut self, now: Time, oldest: Option<Time>) {
        let period = self.config.update();
        while self.next <= now {
            let wait = oldest.map_or(Duration::ZERO, |since| self.next.saturating_since(since)).as_secs_f64();
            if wait == 0.0 && self.previous == 0.0 && self.base == 0.0 {
                // Nothing changes until a packet has waited, so this skips to the first update after its arrival, or
                // after now.
                let idle = oldest.map_or(now, |since| since.min(now)).saturating_since(self.next);
                self.next += period.saturating_mul(idle.as_ticks() / period.as_ticks() + 1);
                continue;
            }
            let change = self.alpha * (wait - self.config.target.as_secs_f64()) + self.beta * (wait - self.previous);
            self.base = (self.base + change).clamp(0.0, 1.0);
            self.previous = wait;
            self.next += period;
        }
    }

    /// p_C, the probability with which classic packets are dropped or marked.
    pub(crate) fn classic_probability(&self) -> f64 {
        self.base * self.base
    }

    /// p_CL, the probability with which L4S packets are marked for the load of both queues.
    pub(crate) fn coupled_probability(&self) -> f64 {
        self.config.coupling * self.base
    }

    /// True if marks no longer suffice: all L4S packets would be marked.
    //= RFC 9331 §5.1: "During overload, it MUST apply the same drop probability to L4S traffic as it would to Classic traffic."
    fn is_overloaded(&self) -> bool {
        self.coupled_probability() >= 1.0
    }

    /// Decides on a classic packet. `is_ect`: it may be marked.
    pub(crate) fn judge_classic(&mut self, is_ect: bool) -> Judgement {
        if !self.classic.is_due(self.classic_probability()) {
            Judgement::Pass
        } else if is_ect && !self.is_overloaded() {
            Judgement::Mark
        } else {
            Judgement::Drop
        }
    }

    /// Decides on an L4S packet that has waited for `wait`. `is_alone`: no other packet is behind it.
    pub(crate) fn judge_l4s(&mut self, wait: Duration, is_alone: bool) -> Judgement {
        if self.is_overloaded() {
            return if self.l4s_drops.is_due(self.classic_probability()) { Judgement::Drop } else { Judgement::Mark };
        }
        //= RFC 9332 §A.2: "p'_L, is zeroed if the queue is only 1 packet"
        let own = if is_alone { 0.0 } else { self.ramp(wait) };
        if self.l4s.is_due(own.max(self.coupled_probability())) { Judgement::Mark } else { Judgement::Pass }
    }

    /// p'_L (RFC 9332 §A.1, `laqm`).
    fn ramp(&self, wait: Duration) -> f64 {
        let DualPi2 { l4s_threshold, l4s_range, .. } = self.config;
        if wait < l4s_threshold {
            return 0.0;
        }
        let above = wait - l4s_threshold;
        if above >= l4s_range { 1.0 } else { above.as_secs_f64() / l4s_range.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// RFC 9332 §A.1 with its defaults: 15 ms between updates, alpha = 0.1 * 0.015 / 0.1^2 = 0.15, beta = 0.3 / 0.1 =
    /// 3, per second of waiting time. A wait of 25 ms after none, and then the same again: 0.15 * 0.010 + 3 * 0.025 =
    /// 0.0765, and 0.0015 more.
    #[test]
    fn the_controller_by_hand() {
        let mut coupled = Coupled::new(DualPi2::standard());
        coupled.next = at(25);
        coupled.update_until(at(25), Some(at(0)));
        assert!((coupled.base - 0.0765).abs() < 1e-12, "{}", coupled.base);
        assert_eq!(coupled.next, at(40));
        coupled.update_until(at(40), Some(at(15)));
        assert!((coupled.base - 0.078).abs() < 1e-12, "{}", coupled.base);
        assert!((coupled.classic_probability() - 0.006_084).abs() < 1e-12);
        assert!((coupled.coupled_probability() - 0.156).abs() < 1e-12);
        // Without packets, each update subtracts 0.15 * 0.015; the first one also subtracts 3 * 0.025.
        coupled.update_until(at(55), None);
        assert!((coupled.base - (0.078 - 0.00225 - 0.075)).abs() < 1e-12, "{}", coupled.base);
        coupled.update_until(at(600_000), None);
        assert_eq!((coupled.base, coupled.next), (0.0, at(600_010)), "updates at 40 ms and every 15 ms");
    }

    /// Updates made late and in one go give the same result as each at its time.
    #[test]
    fn updates_may_be_late() {
        let (mut early, mut late) = (Coupled::new(DualPi2::standard()), Coupled::new(DualPi2::standard()));
        for millis in 0..=300 {
            early.update_until(at(millis), (millis >= 37).then_some(at(37)));
        }
        late.update_until(at(300), Some(at(37)));
        assert!(late.base > 0.0);
        assert_eq!((early.base, early.next), (late.base, late.next));
    }

    /// 800 µs give zero, 1 ms a half, 1.2 ms one. A packet that is alone is never marked by the ramp.
    #[test]
    fn the_ramp_by_hand() {
        let mut coupled = Coupled::new(DualPi2::standard());
        let of = |coupled: &Coupled, micros| coupled.ramp(Duration::from_micros(micros));
        assert_eq!([0, 800, 1000, 1200, 9000].map(|micros| of(&coupled, micros)), [0.0, 0.0, 0.5, 1.0, 1.0]);
        let mut judge = |alone| coupled.judge_l4s(Duration::from_millis(1), alone);
        assert_eq!(
            [false; 6].map(&mut judge).map(|judged| judged == Judgement::Mark),
            [false, false, true, false, true, false]
        );
        assert_eq!([true; 6].map(judge), [Judgement::Pass; 6]);
        let step = Coupled::new(DualPi2 { l4s_range: Duration::ZERO, ..DualPi2::standard() });
        assert_eq!([799, 800].map(|micros| of(&step, micros)), [0.0, 1.0]);
    }

    /// Classic and L4S packets alternate, and half of each is dropped. With one count for both, all drops would fall on
    /// one kind.
    #[test]
    fn each_queue_has_its_own_drops() {
        let mut coupled = Coupled::new(DualPi2::standard());
        coupled.base = libm::sqrt(0.5);
        let mut drops = [0, 0];
        for _ in 0..100 {
            drops[0] += u32::from(coupled.judge_classic(true) == Judgement::Drop);
            drops[1] += u32::from(coupled.judge_l4s(Duration::ZERO, true) == Judgement::Drop);
        }
        // A sum of probabilities passes a whole number at most one packet late.
        assert!(drops.iter().all(|&count: &u32| count.abs_diff(50) <= 1), "{drops:?}");
    }

    /// p' = 0.4: 16 of 100 classic packets, 80 of 100 L4S packets. p' = 0.6 is above 1/k: both kinds drop 36 of 100,
    /// and the other L4S packets are all marked.
    #[test]
    fn overload_drops_in_both() {
        let mut coupled = Coupled::new(DualPi2::standard());
        let mut count = |base, l4s| {
            coupled = Coupled { base, ..Coupled::new(DualPi2::standard()) };
            let judged: Vec<_> = (0..100)
                .map(|_| if l4s { coupled.judge_l4s(Duration::ZERO, true) } else { coupled.judge_classic(true) })
                .collect();
            let of = |fate| judged.iter().filter(|&&judgement| judgement == fate).count();
            (of(Judgement::Mark), of(Judgement::Drop))
        };
        // A sum of probabilities passes a whole number at most one packet late.
        let close = |got: (usize, usize), expected: (usize, usize)| {
            assert!(got.0.abs_diff(expected.0) <= 1 && got.1.abs_diff(expected.1) <= 1, "{got:?}, not {expected:?}");
        };
        close(count(0.4, false), (16, 0));
        close(count(0.4, true), (80, 0));
        close(count(0.6, false), (0, 36));
        close(count(0.6, true), (64, 36));
        coupled.base = 0.4;
        coupled.classic = Recurrence(0.9);
        assert_eq!(coupled.judge_classic(false), Judgement::Drop, "it does not understand marks");
    }

    /// Three updates at once: the packet of time 0 had waited for 15, 30 and 45 ms at them. The changes are 3 * 0.015 each, and 0.15 times
    /// 0, 0.015 and 0.030.
    #[test]
    fn updates_that_were_due_use_the_waits_of_then() {
        let mut coupled = Coupled::new(DualPi2::standard());
        coupled.update_until(at(45), Some(at(0)));
        assert!((coupled.base - (0.135 + 0.15 * 0.045)).abs() < 1e-12, "{}", coupled.base);
    }

    /// An update without a packet forgets the wait before it, also while p' is 0. So a wait of 5 ms after none counts in full: 3 * 0.005,
    /// and 0.15 times the 10 ms below the target less.
    #[test]
    fn an_empty_queue_forgets_the_last_wait() {
        let mut coupled = Coupled { previous: 0.005, next: at(15), ..Coupled::new(DualPi2::standard()) };
        coupled.update_until(at(15), None);
        coupled.update_until(at(30), Some(at(25)));
        assert!((coupled.base - (0.015 - 0.0015)).abs() < 1e-12, "{}", coupled.base);
    }

    /// RFC 9332 §A.1: Tupdate is the target, at most a third of the longest round trip.
    #[test]
    fn updates_are_frequent_enough() {
        let standard = DualPi2::standard();
        assert_eq!(standard.update(), Duration::from_millis(15));
        let slow = DualPi2 { target: Duration::from_millis(60), max_rtt: Duration::from_millis(90), ..standard };
        assert_eq!(slow.update(), Duration::from_millis(30));
    }

    /// RFC 9332 §A.1: p_L is the larger of p'_L and p_CL. With 0.5 and 0.4, half of the packets are marked.
    #[test]
    fn the_larger_probability_marks() {
        let mut coupled = Coupled { base: 0.2, ..Coupled::new(DualPi2::standard()) };
        let marks = (0..100).filter(|_| coupled.judge_l4s(Duration::from_millis(1), false) == Judgement::Mark).count();
        // A sum of probabilities passes a whole number at most one packet late.
        assert!(marks.abs_diff(50) <= 1, "{marks}");
    }
}
