//! The sender's transmissions, from the line to their verdict.

use std::collections::VecDeque;

use super::trim;
use crate::rtt::{RtoConfig, RtoFloor, RtoTiming, RttClock, RttEstimator};
use crate::units::{Duration, Time};
use crate::wire::slacp::Report;

/// What happened to a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The peer has it.
    Arrived,
    /// A later one arrived and this one did not, or no report came in time.
    Lost,
}

/// Number of timed-out transmissions that are remembered: a late report of one still gives a round trip.
const MAX_EXPIRED: usize = 1 << 14;

/// Maximum pause between probes of a silent peer: the end of an outage is noticed at most this much later.
const MAX_PAUSE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
struct Transmission<T> {
    /// `None` once it is judged.
    what: Option<T>,
    sent: Time,
    expires: Time,
}

/// Transmissions without a verdict, in the order of their numbers.
///
/// A verdict costs constant time: each transmission is examined when a report that covers it arrives, and those within
/// the reordering tolerance are examined once more.
#[derive(Clone, Debug)]
pub(crate) struct Flight<T> {
    /// Number of the first transmission in the ring.
    first: u64,
    ring: VecDeque<Transmission<T>>,
    unjudged: usize,
    rtt: RttEstimator,
    /// Maximum delay from an arrival to its report.
    report_interval: Duration,
    /// Recent maximum of the time that reports waited at the peer beyond that, because its line also carries frames.
    report_wait: Duration,
    /// Additional wait for reports while later transmissions may still be reported.
    patience: Duration,
    /// Number of later transmissions that may overtake one before it counts as lost.
    reordering: u64,
    /// The round trip of the last report, until it is taken.
    sample: Option<Duration>,
    /// When the last report arrived.
    heard: Option<Time>,
    /// True if no report has arrived since a transmission timed out.
    silent: bool,
    /// Numbers that timed out since the last timely report, and when they were sent.
    expired: VecDeque<(u64, Time)>,
}

impl<T: Copy> Flight<T> {
    /// An empty flight. `initial_rtt` is used until a round trip is measured; `report_interval` is the peer's maximum
    /// wait before a report.
    pub(crate) fn new(initial_rtt: Duration, report_interval: Duration, reordering: u64) -> Self {
        let config = RtoConfig {
            initial: initial_rtt.saturating_mul(2),
            min: Duration::from_millis(1),
            floor: RtoFloor::Timeout,
            timing: RtoTiming::Acks,
            max: MAX_PAUSE,
            clock: RttClock::Exact,
            max_retries: u32::MAX,
            linear_syn_timeouts: 0,
            ..RtoConfig::RFC6298
        };
        Flight {
            first: 0,
            ring: VecDeque::new(),
            unjudged: 0,
            rtt: RttEstimator::new(config),
            report_interval,
            report_wait: Duration::ZERO,
            patience: Duration::ZERO,
            sample: None,
            heard: None,
            reordering,
            silent: false,
            expired: VecDeque::new(),
        }
    }

    /// The same, but a transmission that others have followed may be reported up to `patience` later, though no later
    /// than the last of those. The peer must report as [`History::with_whole_reports`](super::History) does.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Flight { patience, ..self }
    }

    /// Records a transmission that begins now. Returns its number.
    pub(crate) fn send(&mut self, now: Time, what: T) -> u64 {
        // Most losses are detected by the order of the numbers. The timer is for the last transmissions and may be
        // generous.
        let expires = now + self.rtt.rto() + self.slack();
        self.ring.push_back(Transmission { what: Some(what), sent: now, expires });
        self.unjudged += 1;
        self.first + self.ring.len() as u64 - 1
    }

    /// Number of the next transmission.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.ring.len() as u64
    }

    /// Transmissions without a verdict.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.unjudged
    }

    /// True if there are no such transmissions.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.unjudged == 0
    }

    /// True if the peer is silent. Only one transmission at a time then makes sense.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    /// The smoothed round trip, once measured.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// Takes the newest round trip measured since the last call.
    pub(crate) fn take_sample(&mut self) -> Option<Duration> {
        self.sample.take()
    }

    /// Takes a report. Calls `judge` with each verdict, in the order of the numbers.
    pub(crate) fn on_report(&mut self, now: Time, report: &Report, mut judge: impl FnMut(T, Verdict)) {
        if report.newest >= self.next_number() {
            // This number was never sent, so the report is not from our peer.
            return;
        }
        self.heard = Some(now);
        // The longest wait; it decays by an eighth with each report.
        let faded = self.report_wait.saturating_mul(7).div_floor(8);
        self.report_wait = report.delay.min(MAX_PAUSE).max(faded);
        if self.silent {
            self.silent = false;
            self.rtt.reset_backoff();
        }
        let Some(upto) = report.newest.checked_sub(self.first) else {
            // This is too late for a verdict, but it corrects a round-trip estimate that was too short; nothing else
            // would.
            let at = self.expired.partition_point(|&(number, _)| number < report.newest);
            if let Some(&(number, sent)) = self.expired.get(at)
                && number == report.newest
            {
                self.expired.drain(..=at);
                self.sample(now, report, sent);
            }
            return;
        };
        self.expired.clear();
        let newest = &self.ring[upto as usize];
        if newest.what.is_some() {
            let sent = newest.sent;
            self.sample(now, report, sent);
        }
        // With patience, numbers below a short report count as unknown, not as lost: the reports that covered them may
        // have been lost. A report of the whole record follows.
        let is_whole = self.patience == Duration::ZERO || report.bits.len() == Report::MAX_WORDS;
        let known_from = if is_whole { 0 } else { report.first() };
        let known_from = known_from.max(self.first);
        // Numbers below it are not examined: a peer may send nothing but short reports while much is in flight.
        let known = self.ring.range_mut((known_from - self.first) as usize..=upto as usize);
        for (number, transmission) in (known_from..).zip(known) {
            let verdict = if report.arrived(number) {
                Verdict::Arrived
            } else if number + self.reordering <= report.newest {
                Verdict::Lost
            } else {
                continue;
            };
            if let Some(what) = transmission.what.take() {
                self.unjudged -= 1;
                judge(what, verdict);
            }
        }
        self.drop_judged();
    }

    /// Takes the round trip of a report's newest transmission, which was sent at `sent`.
    fn sample(&mut self, now: Time, report: &Report, sent: Time) {
        // The time for which the report waited does not belong to the path.
        let heard = now.saturating_sub(report.delay);
        if report.arrived(report.newest) && heard >= sent {
            self.rtt.sample(sent, heard);
            self.sample = Some(heard - sent);
        }
    }

    /// Gives up the transmissions whose report is overdue.
    pub(crate) fn on_time(&mut self, now: Time, mut judge: impl FnMut(T, Verdict)) {
        while self.deadline().is_some_and(|deadline| deadline <= now)
            && let Some(front) = self.ring.front()
        {
            if let Some(what) = front.what {
                self.silent = true;
                self.unjudged -= 1;
                if self.expired.len() == MAX_EXPIRED {
                    self.expired.pop_front();
                }
                self.expired.push_back((self.first, front.sent));
                judge(what, Verdict::Lost);
            }
            self.ring.pop_front();
            self.first += 1;
            self.drop_judged();
        }
    }

    /// Probes a silent peer. Returns when the next probe may be sent; the pause doubles each time.
    pub(crate) fn probe(&mut self, now: Time) -> Time {
        self.rtt.back_off();
        now + self.rtt.rto()
    }

    /// The path is a new one, on which the peer has been silent for no time.
    pub(crate) fn on_path_change(&mut self) {
        self.silent = false;
        self.rtt.reset_backoff();
    }

    /// The instant at which [`Flight::on_time`] is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let (front, back) = (self.ring.front()?, self.ring.back()?);
        let endured = (back.sent - front.sent).min(self.patience);
        let deadline = front.expires + endured;
        let Some(heard) = self.heard.filter(|_| self.patience > Duration::ZERO) else { return Some(deadline) };
        // While reports arrive, the peer is not silent: if a queue grows faster than the estimate of the round trip,
        // the frames in it are not lost.
        //= RFC 6298 §5.3: "When an ACK is received that acknowledges new data, restart the retransmission timer"
        Some(deadline.max(heard + self.slack() + endured))
    }

    /// How late a report may be: it waits for its interval and for frames ahead of it. A quarter of a round trip is
    /// added as a margin.
    fn slack(&self) -> Duration {
        let quarter = self.rtt.srtt().unwrap_or_default().div_floor(4);
        self.report_interval.saturating_mul(2) + self.report_wait.saturating_mul(2) + quarter
    }

    /// Frees memory left behind by bursts.
    pub(crate) fn trim(&mut self) {
        trim(&mut self.ring);
        trim(&mut self.expired);
    }

    fn drop_judged(&mut self) {
        while let Some(front) = self.ring.front()
            && front.what.is_none()
        {
            self.ring.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arq::History;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn flight(reordering: u64) -> Flight<char> {
        Flight::new(Duration::from_millis(500), Duration::from_millis(20), reordering)
    }

    fn verdicts(flight: &mut Flight<char>, now: Time, arrived: &[u64]) -> Vec<(char, Verdict)> {
        let mut history = History::new(Duration::ZERO);
        arrived.iter().for_each(|&number| history.on_frame(now, number));
        let report = history.report(now).expect("due at once");
        let mut heard = Vec::new();
        flight.on_report(now, &report, |what, verdict| heard.push((what, verdict)));
        heard
    }

    #[test]
    fn what_was_overtaken_is_lost() {
        let mut flight = flight(0);
        for (ms, what) in [(0, 'a'), (1, 'b'), (2, 'c'), (3, 'd')] {
            flight.send(at(ms), what);
        }
        use Verdict::{Arrived, Lost};
        assert_eq!(verdicts(&mut flight, at(500), &[0, 2]), [('a', Arrived), ('b', Lost), ('c', Arrived)]);
        assert_eq!(flight.len(), 1);
        // The same report again, and one about numbers never sent, say nothing new.
        assert_eq!(verdicts(&mut flight, at(501), &[0, 2]), []);
        assert_eq!(verdicts(&mut flight, at(502), &[9]), []);
        assert_eq!(verdicts(&mut flight, at(503), &[3]), [('d', Arrived)]);
        assert!(flight.is_empty() && flight.deadline().is_none());
    }

    #[test]
    fn a_tolerance_waits_for_late_ones() {
        let mut flight = flight(2);
        for what in ['a', 'b', 'c', 'd'] {
            flight.send(at(0), what);
        }
        use Verdict::{Arrived, Lost};
        assert_eq!(verdicts(&mut flight, at(500), &[1]), [('b', Arrived)]);
        assert_eq!(verdicts(&mut flight, at(501), &[1, 2]), [('a', Lost), ('c', Arrived)]);
    }

    #[test]
    fn the_last_one_is_found_by_time() {
        let mut flight = flight(0);
        flight.send(at(0), 'a');
        // Twice the initial round trip, plus two report intervals.
        assert_eq!(flight.deadline(), Some(at(1040)));
        let mut lost = Vec::new();
        flight.on_time(at(1039), |what, _| lost.push(what));
        assert!(lost.is_empty());
        flight.on_time(at(1040), |what, verdict| {
            assert_eq!(verdict, Verdict::Lost);
            lost.push(what);
        });
        assert_eq!((lost.as_slice(), flight.is_silent()), (['a'].as_slice(), true));
        // Pauses between probes double, up to the maximum.
        let pauses = [2, 4, 5, 5].map(Duration::from_secs);
        assert_eq!(pauses.map(|_| flight.probe(at(2000)) - at(2000)), pauses);
        flight.send(at(4000), 'b');
        assert_eq!(verdicts(&mut flight, at(4500), &[1]), [('b', Verdict::Arrived)]);
        assert!(!flight.is_silent());
    }

    /// A peer whose line is busy reports late. Frames that it has received must not be judged lost each time.
    #[test]
    fn reports_that_wait_for_the_line_are_waited_for() {
        let mut flight = Flight::new(Duration::from_millis(2), Duration::ZERO, 0);
        let mut lost = 0;
        // A frame every 8 ms, which arrives 1 ms later; its report waits 4 ms for the line and is back 1 ms later.
        for n in 0..100 {
            let sent = at(8 * n);
            flight.send(sent, n);
            flight.on_time(at(8 * n + 6), |_, _| lost += 1);
            let report = Report { newest: n, delay: Duration::from_millis(4), bits: vec![1] };
            flight.on_report(at(8 * n + 6), &report, |_, verdict| assert_eq!(verdict, Verdict::Arrived));
        }
        // At most the first two are lost: by then the wait is known.
        assert!(lost <= 2, "{lost} of 100");
    }

    #[test]
    fn what_waits_in_a_queue_that_grows_is_not_lost() {
        // A round trip of 500 ms, and then a line that carries a tenth: a frame is due every 10 ms, and every tenth one
        // is sent.
        let mut flight = flight(0).with_patience(Duration::from_millis(300));
        let (mut lost, mut reported) = (0, 0);
        for n in 0..600u64 {
            flight.send(at(10 * n), 'a');
            flight.on_time(at(10 * n), |_, _| lost += 1);
            let passed = if n < 100 { n } else { 100 + (n - 100) / 10 };
            if let Some(newest) = passed.checked_sub(50).filter(|&newest| newest >= reported) {
                reported = newest + 1;
                let report = Report { newest, delay: Duration::ZERO, bits: vec![u64::MAX; Report::MAX_WORDS] };
                flight.on_report(at(10 * n), &report, |_, verdict| assert_eq!(verdict, Verdict::Arrived));
            }
        }
        assert_eq!((lost, flight.is_silent()), (0, false));
    }

    #[test]
    fn a_round_trip_longer_than_was_thought_is_learnt() {
        let mut flight = Flight::new(Duration::from_millis(10), Duration::ZERO, 0);
        flight.send(at(0), 'a');
        let mut lost = Vec::new();
        flight.on_time(at(20), |what, _| lost.push(what));
        assert_eq!(lost, ['a']);
        assert_eq!(verdicts(&mut flight, at(500), &[0]), [], "judged already");
        assert_eq!((flight.srtt(), flight.is_silent()), (Some(Duration::from_millis(500)), false));
        // The first sample of RFC 6298: three round trips, and a quarter of one for the report.
        flight.send(at(500), 'b');
        assert_eq!(flight.deadline(), Some(at(500 + 1500 + 125)));
    }

    /// Short reports about the newest transmissions leave earlier ones to other reports.
    #[test]
    fn a_short_report_judges_its_own_numbers() {
        let mut flight = flight(0).with_patience(Duration::from_millis(300));
        for _ in 0..1000 {
            flight.send(at(0), 'a');
        }
        let judged = |flight: &mut Flight<char>, newest, words| {
            let mut verdicts = [0; 2];
            let report = Report { newest, delay: Duration::ZERO, bits: vec![1; words] };
            flight.on_report(at(500), &report, |_, verdict| verdicts[usize::from(verdict == Verdict::Lost)] += 1);
            verdicts
        };
        assert_eq!(judged(&mut flight, 999, 1), [1, 63]);
        assert_eq!(judged(&mut flight, 999, 2), [1, 63]);
        assert_eq!(judged(&mut flight, 40, 1), [1, 40], "from the first on");
        assert_eq!((judged(&mut flight, 40, 1), flight.first), ([0, 0], 41), "too late");
        assert_eq!((flight.len(), flight.next_number()), (1000 - 128 - 41, 1000));
        assert_eq!(judged(&mut flight, 999, Report::MAX_WORDS).iter().sum::<usize>(), 1000 - 128 - 41);
        assert!(flight.is_empty());
    }

    /// An outage loses only reports. The frames that they covered are not lost.
    #[test]
    fn reports_that_were_lost_cost_nothing() {
        let mut history = History::new(Duration::from_millis(20)).with_whole_reports();
        let mut flight = flight(0).with_patience(Duration::from_millis(1));
        let mut heard = Vec::new();
        for n in 0..400 {
            flight.send(at(n), char::from(b'a' + (n % 26) as u8));
            // Number 60 does not arrive.
            if n != 60 {
                history.on_frame(at(n + 1), n);
            }
            let Some(report) = history.report(at(n + 1)) else { continue };
            // The reports sent at 50 to 250 are lost: ten of them.
            if !(50..250).contains(&n) {
                flight.on_report(at(n + 2), &report, |_, verdict| heard.push(verdict));
            }
        }
        assert!(heard.len() > 350, "{}", heard.len());
        assert_eq!(heard.iter().filter(|&&verdict| verdict == Verdict::Lost).count(), 1);
    }

    #[test]
    fn silence_is_endured_while_others_follow() {
        let mut flight = flight(0).with_patience(Duration::from_millis(300));
        flight.send(at(0), 'a');
        assert_eq!(flight.deadline(), Some(at(1040)));
        flight.send(at(200), 'b');
        assert_eq!(flight.deadline(), Some(at(1240)), "not longer than for the one that followed");
        flight.send(at(700), 'c');
        assert_eq!(flight.deadline(), Some(at(1340)));
        let mut lost = Vec::new();
        flight.on_time(at(2000), |what, _| lost.push(what));
        assert_eq!(lost, ['a', 'b', 'c']);
    }
}
