//! Segments without a cumulative acknowledgement, their SACK state, and their timers.
//!
//! Segments are queued by sequence number and found by bisection. All have the same timeout and leave in the order of
//! hand-over, so the timers form a queue in the order in which they are armed.

use alloc::collections::VecDeque;

use crate::tcp::Span;
use crate::tcp::ranges::Ranges;
use crate::units::{Duration, Time};

/// A segment without a cumulative acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outstanding {
    pub(super) span: Span,
    /// Number of transmissions.
    pub(super) transmissions: u16,
    /// Number of its last transmission, counted over all segments.
    pub(super) order: u64,
    /// When its timer expires; `None` before it is sent, or after it was selectively acknowledged.
    pub(super) due: Option<Time>,
}

/// The segments outstanding and their timers.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) outstanding: VecDeque<Outstanding>,
    pub(super) sacked: Ranges,
    /// Timers in order of expiry, each with the end of its segment. A replaced timer stays until it reaches the front.
    timers: VecDeque<(Time, u64)>,
    rto: Duration,
}

impl Flight {
    pub(super) fn new(rto: Duration) -> Self {
        Flight { outstanding: VecDeque::new(), sacked: Ranges::new(), timers: VecDeque::new(), rto }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// Forgets the segments and their timers.
    pub(super) fn clear(&mut self) {
        self.outstanding.clear();
        self.timers.clear();
    }

    /// The first segment that ends after `seq`.
    pub(super) fn index_after(&self, seq: u64) -> usize {
        self.outstanding.partition_point(|segment| segment.span.end() <= seq)
    }

    /// The segment that ends at `end`.
    pub(super) fn ending(&self, end: u64) -> Option<usize> {
        let index = self.outstanding.partition_point(|segment| segment.span.end() < end);
        self.outstanding.get(index).is_some_and(|segment| segment.span.end() == end).then_some(index)
    }

    /// True if the peer has reported the whole span.
    pub(super) fn is_sacked(&self, span: &Span) -> bool {
        self.sacked.holding(span.seq).is_some_and(|range| range.1 >= span.end())
    }

    /// The first segment that ends after `from`, was last sent up to transmission `order` and is not reported.
    pub(super) fn first_missing(&self, from: u64, order: u64) -> Option<usize> {
        let is_missing = |segment: &Outstanding| segment.order <= order && !self.is_sacked(&segment.span);
        let first = self.index_after(from);
        self.outstanding.range(first..).position(is_missing).map(|behind| first + behind)
    }

    /// Moves the cumulative acknowledgement to `ack`.
    pub(super) fn advance(&mut self, ack: u64) {
        while self.outstanding.front().is_some_and(|front| front.span.end() <= ack) {
            self.outstanding.pop_front();
        }
        if let Some(front) = self.outstanding.front_mut()
            && front.span.seq < ack
        {
            // The peer had no room for the whole segment; the accepted part is not retransmitted.
            front.span.len -= (ack - front.span.seq) as u16;
            front.span.seq = ack;
        }
        self.sacked.remove_below(ack, |_, _| ());
    }

    /// When the first timer expires.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.timers.front().map(|timer| timer.0)
    }

    /// Removes the first timer if it has expired. Returns its segment, or `Some(None)` if the timer was replaced.
    pub(super) fn take_expired(&mut self, now: Time) -> Option<Option<usize>> {
        let (at, end) = self.timers.front().copied().filter(|timer| timer.0 <= now)?;
        let stale = self.is_stale(at, end);
        self.timers.pop_front();
        Some(if stale { None } else { self.ending(end) })
    }

    /// True if a timer was replaced.
    fn is_stale(&mut self, at: Time, end: u64) -> bool {
        let Some(index) = self.ending(end) else { return true };
        let Outstanding { span, due, .. } = self.outstanding[index];
        if due != Some(at) {
            return true;
        }
        let sacked = self.is_sacked(&span);
        if sacked {
            self.outstanding[index].due = None;
        }
        sacked
    }

    /// Removes replaced timers from the front of the queue.
    pub(super) fn discard_stale_timers(&mut self) {
        while let Some(&(at, end)) = self.timers.front()
            && self.is_stale(at, end)
        {
            self.timers.pop_front();
        }
    }

    /// Starts the timer of a segment that leaves at `from`.
    pub(super) fn arm(&mut self, index: usize, from: Time) {
        let segment = &mut self.outstanding[index];
        let due = from + self.rto;
        segment.due = Some(due);
        self.timers.push_back((due, segment.span.end()));
        // A retransmitted segment's old timer may have been at the front.
        self.discard_stale_timers();
    }
}
