//! The receiver's record of the transmissions that arrived, and its reports.

use crate::units::{Duration, Time};
use crate::wire::slacp::Report;

/// Number of words and bits of the record: the maximum in a report.
const WORDS: usize = Report::MAX_WORDS;
const SPAN: u64 = 64 * WORDS as u64;
/// Number of consecutive reports that cover a transmission: all but one of them may be lost.
const REPEATS: usize = 3;
/// Number of new transmissions after which a report is due at once: `REPEATS` such reports fit into `SPAN`.
const MAX_UNREPORTED: u64 = SPAN / (REPEATS as u64 + 1);
/// One of this many reports covers the whole record, because an outage may lose more than `REPEATS` in a row.
const WHOLE_EVERY: u32 = 8;

/// The record.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// Bit `number % SPAN`, for the numbers from `newest - SPAN + 1` to `newest`.
    bits: [u64; WORDS],
    newest: Option<u64>,
    newest_at: Time,
    /// The first new number of each of the last reports, newest first.
    reported: [u64; REPEATS],
    interval: Duration,
    due: Option<Time>,
    /// True if some of the reports cover the whole record.
    has_whole: bool,
    /// True if the next one does.
    wants_whole: bool,
    count: u32,
}

impl History {
    /// An empty record that reports at most `interval` after an arrival. Zero: a report for each arrival.
    pub(crate) fn new(interval: Duration) -> Self {
        History {
            bits: [0; WORDS],
            newest: None,
            newest_at: Time::ZERO,
            reported: [0; REPEATS],
            interval,
            due: None,
            has_whole: false,
            wants_whole: false,
            count: 0,
        }
    }

    /// The same, but each eighth report covers the whole record, because an outage may lose all reports that covered a
    /// number.
    pub(crate) fn with_whole_reports(self) -> Self {
        History { has_whole: true, ..self }
    }

    /// Makes the next report cover the whole record, if some do: the peer seems to have missed reports.
    pub(crate) fn want_whole(&mut self) {
        self.wants_whole = self.has_whole;
    }

    /// True if nothing new has arrived for at least `pause`.
    pub(crate) fn has_paused(&self, now: Time, pause: Duration) -> bool {
        self.newest.is_some() && now.saturating_since(self.newest_at) >= pause
    }

    /// True if the transmission is on record; false for numbers too far back.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.covers(number) && self.bits[(number % SPAN / 64) as usize] >> (number % 64) & 1 == 1
    }

    fn covers(&self, number: u64) -> bool {
        self.newest.is_some_and(|newest| number <= newest && newest - number < SPAN)
    }

    /// Records that a transmission has arrived.
    pub(crate) fn on_frame(&mut self, now: Time, number: u64) {
        self.hear_of(now, number);
        if self.covers(number) {
            self.bits[(number % SPAN / 64) as usize] |= 1 << (number % 64);
        }
    }

    /// Records that a transmission arrived damaged with a readable number: the loss is reported at once.
    pub(crate) fn on_damaged(&mut self, now: Time, number: u64) {
        self.hear_of(now, number);
    }

    fn hear_of(&mut self, now: Time, number: u64) {
        if self.newest.is_none_or(|newest| number > newest) {
            let from = self.newest.map_or(number.saturating_sub(SPAN - 1), |newest| newest + 1);
            for n in from.max(number.saturating_sub(SPAN - 1))..=number {
                self.bits[(n % SPAN / 64) as usize] &= !(1 << (n % 64));
            }
            self.newest = Some(number);
            self.newest_at = now;
        }
        let many = self.newest.is_some_and(|newest| newest + 1 - self.reported[0].min(newest) > MAX_UNREPORTED);
        let due = if many { now } else { now + self.interval };
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    /// The highest number received.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// When a report is due.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// The report that is due by `now`.
    pub(crate) fn report(&mut self, now: Time) -> Option<Report> {
        if self.due.is_none_or(|due| due > now) {
            return None;
        }
        self.due = None;
        let newest = self.newest?;
        self.count = self.count.wrapping_add(1);
        let is_whole =
            core::mem::take(&mut self.wants_whole) || self.has_whole && self.count.is_multiple_of(WHOLE_EVERY);
        let from = if is_whole { 0 } else { self.reported[REPEATS - 1] };
        let oldest = from.max((newest + 1).saturating_sub(SPAN)).min(newest);
        let words = ((newest - oldest) / 64 + 1) as usize;
        let mut bits = vec![0; words];
        for (w, word) in bits.iter_mut().enumerate() {
            for i in 0..64 {
                let below = w as u64 * 64 + i;
                if below <= newest && self.has(newest - below) {
                    *word |= 1 << i;
                }
            }
        }
        self.reported.rotate_right(1);
        self.reported[0] = newest + 1;
        Some(Report { newest, delay: now - self.newest_at, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn each_number_stands_in_three_reports() {
        let mut history = History::new(Duration::from_millis(20));
        let mut oldest = Vec::new();
        for round in 0..6 {
            for n in 0..200 {
                // Every tenth transmission is lost.
                if n % 10 != 0 {
                    history.on_frame(at(round * 100), round * 200 + n);
                }
            }
            assert_eq!(history.due(), Some(at(round * 100 + 20)));
            assert_eq!(history.report(at(round * 100 + 19)), None);
            let report = history.report(at(round * 100 + 20)).expect("due");
            assert_eq!((report.newest, report.delay), (round * 200 + 199, Duration::from_millis(20)));
            let lowest = (round * 200).saturating_sub(400);
            for n in lowest..=report.newest {
                assert_eq!(report.arrived(n), n % 10 != 0, "{n}");
            }
            oldest.push((report.newest + 1).saturating_sub(64 * report.bits.len() as u64));
        }
        // The size of a report does not grow.
        assert!(oldest.windows(2).skip(3).all(|w| w[1] - w[0] <= 256), "{oldest:?}");
    }

    #[test]
    fn many_new_ones_do_not_wait() {
        let mut history = History::new(Duration::from_secs(1));
        for n in 0..MAX_UNREPORTED {
            history.on_frame(at(1), n);
            assert_eq!(history.due(), Some(at(1001)));
        }
        history.on_frame(at(2), MAX_UNREPORTED);
        assert_eq!(history.due(), Some(at(2)));
    }

    #[test]
    fn a_jump_forgets_what_lies_too_far_back() {
        let mut history = History::new(Duration::ZERO);
        history.on_frame(at(0), 5);
        history.on_frame(at(0), 5 + SPAN);
        assert!(!history.has(5) && history.has(5 + SPAN) && !history.has(6));
        let report = history.report(at(0)).expect("due at once");
        assert_eq!(report.bits.iter().map(|word| word.count_ones()).sum::<u32>(), 1);
    }

    #[test]
    fn only_with_whole_reports_one_repeats_all() {
        for (history, words) in
            [(History::new(Duration::ZERO), 1), (History::new(Duration::ZERO).with_whole_reports(), 5)]
        {
            let mut history = history;
            let mut words_of = |number| {
                history.on_frame(at(0), number);
                history.want_whole();
                history.report(at(0)).expect("due at once").bits.len()
            };
            assert_eq!((0..=300).map(&mut words_of).last(), Some(words));
        }
    }

    /// Also if none is asked for. The whole record is as long as a report may be.
    #[test]
    fn every_eighth_report_repeats_all() {
        let mut history = History::new(Duration::ZERO).with_whole_reports();
        let mut words = Vec::new();
        for number in 0..SPAN + 64 {
            history.on_frame(at(0), number);
            words.push(history.report(at(0)).expect("due at once").bits.len());
        }
        let long: Vec<_> = (0..words.len()).filter(|&number| words[number] > 1).collect();
        assert_eq!(long, (71..words.len()).step_by(8).collect::<Vec<_>>());
        assert_eq!((words[71], words.iter().max()), (2, Some(&WORDS)));
    }

    #[test]
    fn a_pause_begins_with_the_newest() {
        let mut history = History::new(Duration::ZERO);
        let pause = Duration::from_millis(10);
        assert!(!history.has_paused(at(100), pause), "nothing has arrived");
        history.on_frame(at(5), 1);
        history.on_frame(at(7), 0);
        assert!(!history.has_paused(at(14), pause) && history.has_paused(at(15), pause));
    }
}
