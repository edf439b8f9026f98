//! Was a fast recovery or a timeout needless? If the retransmitted data had arrived and was only late, the window is
//! restored.
//!
//! There are two signs. Either the peer reports each retransmission as a duplicate (D-SACK, RFC 2883), or the first ACK
//! beyond the loss echoes a timestamp from before the first retransmission (Eifel, RFC 3522). The window and threshold
//! are restored at once (RFC 4015 §3). After a timeout, duplicates only take effect with an ACK that advances, as in
//! Linux. F-RTO (`frto.rs`) is a third sign.

use crate::units::{Duration, Time};

/// Timestamps count milliseconds, so two of them can be closer together than their segments by up to this much.
const CLOCK: Duration = Duration::from_millis(2);

/// The window before a recovery or a timeout, and the evidence that it was needless.
#[derive(Clone, Copy, Debug)]
struct Before {
    cwnd: u64,
    ssthresh: u64,
    /// Where the recovery began.
    una: u64,
    /// Number of retransmissions not yet reported as duplicates; `None` before the first.
    resent: Option<u64>,
    /// When the first retransmission was sent, if it was of the oldest segment. If it was of a later one, an ACK that
    /// advances over another hole first proves nothing.
    first: Option<Time>,
    /// An ACK has advanced since then: only the first one counts for its timestamp.
    has_moved: bool,
}

/// The undo of a recovery.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Undo {
    is_enabled: bool,
    /// The saved state; few connections repair a loss.
    before: Option<Box<Before>>,
}

impl Undo {
    pub(in crate::tcp) fn new(is_enabled: bool) -> Self {
        Undo { is_enabled, before: None }
    }

    /// True if undoing is enabled.
    #[inline(always)]
    pub(in crate::tcp) fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Begins a recovery, or the repair after a timeout, at `una`; `cwnd` and `ssthresh` are the values before it.
    /// `resent`: the number of segments in flight that were already retransmissions.
    pub(in crate::tcp) fn enter(&mut self, cwnd: u64, ssthresh: u64, una: u64, resent: u64) {
        let resent = (resent > 0).then_some(resent);
        let before = || Box::new(Before { cwnd, ssthresh, una, resent, first: None, has_moved: false });
        self.before = self.is_enabled.then(before);
    }

    /// Records that the segment beginning at `start` is retransmitted in the recovery or after the timeout.
    #[inline(always)]
    pub(in crate::tcp) fn on_retransmitted(&mut self, start: u64, now: Time) {
        if let Some(before) = &mut self.before {
            if before.resent.is_none() && start == before.una {
                before.first.get_or_insert(now);
            }
            before.resent = Some(before.resent.unwrap_or(0) + 1);
        }
    }

    /// Takes a report that data up to `end` is a duplicate. Returns the window and threshold to restore if that was the
    /// last retransmission; not yet while a timeout is being repaired (`after_timeout`).
    pub(in crate::tcp) fn on_duplicate(&mut self, end: u64, after_timeout: bool) -> Option<(u64, u64)> {
        let before = self.before.as_mut().filter(|before| end > before.una)?;
        let resent = before.resent.filter(|&resent| resent > 0)? - 1;
        before.resent = Some(resent);
        if resent > 0 || after_timeout { None } else { self.take() }
    }

    /// Takes an ACK that advances; `echoed` is when the segment that caused it was sent, by its timestamp. Returns the
    /// window and threshold to restore, if any.
    pub(in crate::tcp) fn on_advance(&mut self, ack: u64, echoed: Option<Time>) -> Option<(u64, u64)> {
        let before = self.before.as_mut().filter(|before| ack > before.una)?;
        if before.resent == Some(0) {
            return self.take();
        }
        let first = before.first.filter(|_| !before.has_moved)?;
        before.has_moved = true;
        if echoed.is_some_and(|echoed| echoed + CLOCK < first) { self.take() } else { None }
    }

    /// Takes other evidence that nothing was lost. Returns the window and threshold to restore.
    pub(in crate::tcp) fn take(&mut self) -> Option<(u64, u64)> {
        self.before.take().map(|before| (before.cwnd, before.ssthresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Two retransmissions and two reports: the second report restores the window, once.
    #[test]
    fn reports_of_all_duplicates_give_the_window_back() {
        let mut undo = Undo::new(true);
        undo.enter(20_000, 15_000, 1000, 0);
        assert_eq!(undo.on_duplicate(2000, false), None, "nothing was retransmitted");
        undo.on_retransmitted(1000, at(100));
        undo.on_retransmitted(2000, at(100));
        assert_eq!(undo.on_duplicate(900, false), None, "of before the recovery");
        assert_eq!(undo.on_duplicate(2000, false), None);
        assert_eq!(undo.on_duplicate(3000, false), Some((20_000, 15_000)));
        assert_eq!(undo.on_duplicate(3000, false), None);
    }

    /// The first ACK that advances counts for its timestamp; later ones answer the retransmission.
    #[test]
    fn an_old_timestamp_gives_the_window_back() {
        for (echoed, given) in [(97, Some((20_000, u64::MAX))), (98, None)] {
            let mut undo = Undo::new(true);
            undo.enter(20_000, u64::MAX, 1000, 0);
            assert_eq!(undo.on_advance(2000, Some(at(50))), None, "nothing was retransmitted");
            undo.on_retransmitted(1000, at(100));
            assert_eq!(undo.on_advance(2000, Some(at(echoed))), given, "{echoed}");
            assert_eq!(undo.on_advance(3000, Some(at(50))), None);
        }
    }

    /// A loss above the oldest segment: the ACK that advances answers data sent before the recovery.
    #[test]
    fn another_hole_tells_nothing() {
        let mut undo = Undo::new(true);
        undo.enter(20_000, 15_000, 1000, 0);
        undo.on_retransmitted(5000, at(100));
        assert_eq!(undo.on_advance(6000, Some(at(50))), None);
    }

    /// While a timeout is being repaired, duplicates are counted, and the next ACK that advances restores the window.
    /// One more retransmission is still in flight from before.
    #[test]
    fn after_a_timeout_duplicates_wait_for_an_ack_that_moves_on() {
        let mut undo = Undo::new(true);
        undo.enter(20_000, 15_000, 1000, 1);
        undo.on_retransmitted(1000, at(100));
        assert_eq!(undo.on_duplicate(2000, true), None);
        assert_eq!(undo.on_advance(2000, None), None);
        assert_eq!(undo.on_duplicate(2000, true), None);
        assert_eq!(undo.on_advance(3000, None), Some((20_000, 15_000)));
    }

    #[test]
    fn off_it_gives_nothing_back() {
        let mut off = Undo::new(false);
        off.enter(20_000, 15_000, 1000, 0);
        off.on_retransmitted(1000, at(100));
        assert_eq!(off.on_duplicate(2000, false), None);
    }
}
