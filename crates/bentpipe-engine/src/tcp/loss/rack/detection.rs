//! Which segments are lost so far (RFC 8985 §6.2, steps 4 and 5).

use super::{Rack, State};
use crate::units::{Duration, Time};

impl Rack {
    /// RFC 8985 §6.2 step 4.
    pub(super) fn reo_wnd(&self, repairing: bool, srtt: Option<Duration>) -> Duration {
        if !self.reordering_seen && (repairing || self.sacked_segments >= self.dup_thresh()) {
            return Duration::ZERO;
        }
        //= RFC 8985 §3.3.2: "the RACK reordering window MUST be bounded, and this bound SHOULD be SRTT"
        //= RFC 8985 §6.2 step 4: "Return min(RACK.reo_wnd_mult * RACK.min_RTT / 4, SRTT)"
        let quarter = self.min_rtt.get().unwrap_or(Duration::ZERO).div_floor(4);
        quarter.saturating_mul(self.reo_wnd_mult.max(1)).min(srtt.unwrap_or(Duration::MAX))
    }

    /// The segment in flight whose last transmission is oldest.
    fn oldest(&mut self) -> Option<usize> {
        let mut index = self.index(self.first);
        while let Some(segment) = self.segments.get(index) {
            if segment.is_ordinary() {
                break;
            }
            self.first = segment.end;
            index += 1;
        }
        let first = (index < self.segments.len()).then_some(index);
        while let Some(&(at, start)) = self.again.front() {
            let index = self.index(start);
            if self.segments.get(index).is_some_and(|segment| segment.at == at && segment.state == State::InFlight) {
                let sent = |index: usize| (self.segments[index].at, self.segments[index].end);
                return Some(first.filter(|&first| sent(first) < sent(index)).unwrap_or(index));
            }
            self.again.pop_front();
        }
        first
    }

    //= RFC 8985 §6.2 step 5: "For each segment that has not been SACKed, RACK considers that segment lost if another segment that was sent
    //= later has been delivered, and the reordering window has passed."
    /// Marks the segments that are lost so far. `repairing`: a recovery or the repair after a timeout is in progress.
    /// Returns true if any segment was marked.
    #[inline(always)]
    pub(in crate::tcp) fn detect(&mut self, now: Time, repairing: bool, srtt: Option<Duration>) -> bool {
        let sent_last = (self.xmit_ts, self.end_seq);
        // Usually everything delivered was sent before everything in flight.
        let is_later = match self.segments.front() {
            Some(first) => first.is_ordinary() && (first.at, first.end) >= sent_last,
            None => self.runs.head().sent() >= sent_last,
        };
        if self.again.is_empty() && is_later {
            self.deadline = None;
            return false;
        }
        self.detect_any(now, repairing, srtt)
    }

    /// True if the first segment is lost, or [`Self::detect`] would find it lost: then something must repair it, or only the timer will.
    pub(in crate::tcp) fn misses_first(&self, now: Time, srtt: Option<Duration>) -> bool {
        let (Some(first), Some(rtt)) = (self.segments.front(), self.rtt) else { return false };
        let is_overdue =
            (first.at, first.end) < (self.xmit_ts, self.end_seq) && now >= first.at + rtt + self.reo_wnd(false, srtt);
        // If the reordering timer runs, it will find it: `srtt` may have changed since it was started.
        first.state == State::Lost || first.is_ordinary() && is_overdue && self.deadline.is_none()
    }

    #[inline(never)]
    fn detect_any(&mut self, now: Time, repairing: bool, srtt: Option<Duration>) -> bool {
        self.deadline = None;
        self.list_all();
        let Some(rtt) = self.rtt else { return false };
        let mut any = false;
        while let Some(index) = self.oldest() {
            let segment = self.segments[index];
            if (segment.at, segment.end) >= (self.xmit_ts, self.end_seq) {
                break;
            }
            let patience = rtt + self.reo_wnd(repairing, srtt);
            if now < segment.at + patience {
                // The RFC's timer runs until the last of the awaited segments is due. That segment was sent just before
                // the one at which the comparison ends.
                self.deadline = Some((self.xmit_ts + patience).max(segment.at + patience) + self.slack);
                break;
            }
            self.measured.lost_again |= self.notes && segment.retransmitted;
            self.lose(index);
            any = true;
        }
        any
    }

    pub(super) fn lose(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        segment.state = State::Lost;
        self.lost_bytes += segment.len();
        self.marked += segment.len();
        if let Some(rate) = &mut self.rate {
            rate.on_lost(segment.start, segment.len());
        }
        self.lost.insert(segment.start);
    }
}
