//! The sender's transmissions, from the line to their verdict.

use alloc::collections::VecDeque;

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
    /// It had timed out, but the peer has it: reports were lost ([`Flight::with_pauses`] only).
    Late,
}

/// Number of timed-out transmissions that are remembered: a late report of one still gives a round trip.
const MAX_EXPIRED: usize = 1 << 14;

/// Maximum pause between probes of a silent peer, or twice the initial round trip if that is longer: the end of an outage
/// is noticed at most this much later.
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
    /// Pauses between probes of a silent peer do not double once they are this long. `None`: they double up to [`MAX_PAUSE`].
    steady_from: Option<Duration>,
    /// A transmission counts as lost once another arrives that was sent this many transmissions later, or more. 0 is as 1.
    reordering: u64,
    /// Or once another arrives that was sent more than a quarter of a round trip later, and more than this.
    min_overtaken: Duration,
    /// The round trip of the last report, until it is taken.
    sample: Option<Duration>,
    /// When the last report arrived.
    heard: Option<Time>,
    /// Since when no report has arrived, counted from when a transmission timed out.
    silent: Option<Time>,
    /// Transmissions that timed out since the last timely report: their numbers, and when they were sent.
    expired: VecDeque<(u64, Time, T)>,
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
            // Over a long link, the pause may have to be longer than that.
            max: MAX_PAUSE.max(initial_rtt.saturating_mul(2)),
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
            steady_from: None,
            sample: None,
            heard: None,
            reordering,
            min_overtaken: Duration::ZERO,
            silent: None,
            expired: VecDeque::new(),
        }
    }

    /// The same, but others may overtake a transmission that were sent up to this much later, if that is more than a quarter of a round
    /// trip.
    pub(crate) fn with_min_overtaken(self, min_overtaken: Duration) -> Self {
        Flight { min_overtaken, ..self }
    }

    /// The same, but a transmission that others have followed may be reported up to `patience` later, though no later
    /// than the last of those. The peer must report as [`History::with_whole_reports`](super::History) does.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Flight { patience, ..self }
    }

    /// The same, but the pauses between probes of a silent peer double only until they are this long. Zero: each is a timeout.
    /// A probe counts as lost when the next one may be sent, so that this can be the same packet, for which the peer waits.
    pub(crate) fn with_pauses(self, steady_from: Duration) -> Self {
        Flight { steady_from: Some(steady_from), ..self }
    }

    /// True if a transmission is a probe of [`Flight::with_pauses`].
    fn is_probe(&self, sent: Time) -> bool {
        self.steady_from.is_some() && self.silent.is_some_and(|since| since <= sent)
    }

    /// Records a transmission that begins now. Returns its number.
    pub(crate) fn send(&mut self, now: Time, what: T) -> u64 {
        // Most losses are detected by the order of the numbers. The timer is for the last transmissions and may be
        // generous.
        let slack = if self.is_probe(now) { Duration::ZERO } else { self.slack() };
        let expires = now + self.rtt.rto() + slack;
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
        self.silent.is_some()
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
        if self.silent.take().is_some() {
            self.rtt.reset_backoff();
        }
        if self.steady_from.is_some() {
            for &(_, _, what) in self.expired.iter().filter(|(number, ..)| report.arrived(*number)) {
                judge(what, Verdict::Late);
            }
        }
        let Some(upto) = report.newest.checked_sub(self.first) else {
            // This is too late for a verdict, but it corrects a round-trip estimate that was too short; nothing else
            // would.
            let at = self.expired.partition_point(|&(number, ..)| number < report.newest);
            if let Some(&(number, sent, _)) = self.expired.get(at)
                && number == report.newest
            {
                self.expired.drain(..=at);
                self.sample(now, report, sent);
            }
            return;
        };
        let is_known = |&&(number, ..): &&(u64, Time, T)| report.arrived(number);
        let mut first_sent = self.expired.iter().find(is_known).map(|&(_, sent, _)| sent);
        // With patience, numbers below a short report count as unknown, not as lost: the reports that covered them may
        // have been lost. A report of the whole record follows.
        let is_whole = self.patience == Duration::ZERO || report.bits.len() == Report::MAX_WORDS;
        match self.steady_from {
            Some(_) if !is_whole => self.expired.retain(|&(number, ..)| !report.arrived(number)),
            _ => self.expired.clear(),
        }
        let newest = &self.ring[upto as usize];
        let newest_sent = newest.sent;
        if newest.what.is_some() {
            self.sample(now, report, newest_sent);
        }
        let known_from = if is_whole { 0 } else { report.first() };
        let known_from = known_from.max(self.first);
        // Few transmissions may follow for long, so that their number alone does not decide.
        // A quarter of a round trip is the first reordering window of RACK (RFC 8985 §6.2 step 4).
        let overtaken = self.quarter().max(self.min_overtaken);
        // Numbers below it are not examined: a peer may send nothing but short reports while much is in flight.
        let known = self.ring.range_mut((known_from - self.first) as usize..=upto as usize);
        for (number, transmission) in (known_from..).zip(known) {
            let verdict = if report.arrived(number) {
                Verdict::Arrived
            } else if number + self.reordering <= report.newest || newest_sent - transmission.sent > overtaken {
                Verdict::Lost
            } else {
                continue;
            };
            if let Some(what) = transmission.what.take() {
                self.unjudged -= 1;
                if verdict == Verdict::Arrived {
                    first_sent.get_or_insert(transmission.sent);
                }
                judge(what, verdict);
            }
        }
        // Of several arrivals between two reports the first waits longest, on a slow line perhaps for seconds. With
        // patience, the wait would mostly be that of reports that an outage has lost, for which patience already allows.
        let wait = first_sent.map_or(Duration::ZERO, |first| newest_sent - first + report.delay);
        let allows = self.patience == Duration::ZERO && self.report_interval > Duration::ZERO;
        if allows && wait > self.report_interval {
            self.report_wait = self.report_wait.max((wait - self.report_interval).min(MAX_PAUSE));
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
                self.silent.get_or_insert(now);
                self.unjudged -= 1;
                if self.expired.len() == MAX_EXPIRED {
                    self.expired.pop_front();
                }
                self.expired.push_back((self.first, front.sent, what));
                judge(what, Verdict::Lost);
            }
            self.ring.pop_front();
            self.first += 1;
            self.drop_judged();
        }
    }

    /// Probes a silent peer. Returns when the next probe may be sent; the pause doubles each time, up to its maximum.
    pub(crate) fn probe(&mut self, now: Time) -> Time {
        if self.steady_from.is_none_or(|from| self.rtt.rto() < from) {
            self.rtt.back_off();
        }
        now + self.rtt.rto()
    }

    /// The path is a new one, on which the peer has been silent for no time.
    pub(crate) fn on_path_change(&mut self) {
        self.silent = None;
        self.rtt.reset_backoff();
    }

    /// The instant at which [`Flight::on_time`] is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let (front, back) = (self.ring.front()?, self.ring.back()?);
        let is_probe = self.is_probe(front.sent);
        let endured = if is_probe { Duration::ZERO } else { (back.sent - front.sent).min(self.patience) };
        let deadline = front.expires + endured;
        let may_wait = self.patience > Duration::ZERO && !is_probe;
        let Some(heard) = self.heard.filter(|_| may_wait) else { return Some(deadline) };
        // While reports arrive, the peer is not silent: if a queue grows faster than the estimate of the round trip,
        // the frames in it are not lost.
        //= RFC 6298 §5.3: "When an ACK is received that acknowledges new data, restart the retransmission timer"
        Some(deadline.max(heard + self.slack() + endured))
    }

    /// How late a report may be: it waits for its interval and for frames ahead of it. A quarter of a round trip is
    /// added as a margin.
    fn slack(&self) -> Duration {
        self.report_interval.saturating_mul(2) + self.report_wait.saturating_mul(2) + self.quarter()
    }

    fn quarter(&self) -> Duration {
        self.rtt.srtt().unwrap_or_default().div_floor(4)
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
#[path = "flight_tests.rs"]
mod tests;
