//! Was a fast recovery needless? If the data that it has retransmitted had arrived, only late, the window is given back.
//!
//! Two signs: the peer reports each retransmission as a duplicate (D-SACK, RFC 2883), or the first ACK beyond the loss echoes a
//! timestamp from before the first retransmission (Eifel, RFC 3522). The window and threshold are restored at once (RFC 4015 §3).

use crate::units::{Duration, Time};

/// Timestamps count milliseconds, so two of them can be this much nearer to each other than the segments.
const CLOCK: Duration = Duration::from_millis(2);

/// The window before a recovery, and what shows that it was needless.
#[derive(Clone, Copy, Debug)]
struct Before {
    cwnd: u64,
    ssthresh: u64,
    /// Where the recovery began.
    una: u64,
    /// Retransmissions not reported as duplicates yet.
    resent: u64,
    /// When the first one was sent, if it was of the oldest segment: an ACK that moves on over another hole first says nothing of it.
    first: Option<Time>,
    /// An ACK has moved on since then: only the first one tells by its timestamp.
    has_moved: bool,
}

/// The undo of a recovery.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Undo {
    is_enabled: bool,
    /// Few connections repair a loss.
    before: Option<Box<Before>>,
}

impl Undo {
    pub(in crate::tcp) fn new(is_enabled: bool) -> Self {
        Undo { is_enabled, before: None }
    }

    /// A recovery begins at `una`; the window and threshold are still those of before.
    pub(in crate::tcp) fn enter(&mut self, cwnd: u64, ssthresh: u64, una: u64) {
        let before = || Box::new(Before { cwnd, ssthresh, una, resent: 0, first: None, has_moved: false });
        self.before = self.is_enabled.then(before);
    }

    /// The segment that begins at `start` is retransmitted in the recovery.
    #[inline(always)]
    pub(in crate::tcp) fn on_retransmitted(&mut self, start: u64, now: Time) {
        if let Some(before) = &mut self.before {
            if before.resent == 0 && start == before.una {
                before.first.get_or_insert(now);
            }
            before.resent += 1;
        }
    }

    /// The timer has expired: nothing is given back.
    pub(in crate::tcp) fn forget(&mut self) {
        self.before = None;
    }

    /// The peer reports data up to `end` as a duplicate. Returns the window and threshold to restore, if that was the last of what was
    /// retransmitted.
    pub(in crate::tcp) fn on_duplicate(&mut self, end: u64) -> Option<(u64, u64)> {
        let before = self.before.as_mut().filter(|before| end > before.una && before.resent > 0)?;
        before.resent -= 1;
        if before.resent > 0 { None } else { self.take() }
    }

    /// An ACK moves on; `echoed` is when the segment that caused it was sent, by its timestamp. Returns the same.
    pub(in crate::tcp) fn on_advance(&mut self, ack: u64, echoed: Option<Time>) -> Option<(u64, u64)> {
        let before = self.before.as_mut().filter(|before| ack > before.una && !before.has_moved)?;
        let first = before.first?;
        before.has_moved = true;
        if echoed.is_some_and(|echoed| echoed + CLOCK < first) { self.take() } else { None }
    }

    fn take(&mut self) -> Option<(u64, u64)> {
        self.before.take().map(|before| (before.cwnd, before.ssthresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Two retransmissions, two reports: the second one gives the window back, once.
    #[test]
    fn reports_of_all_duplicates_give_the_window_back() {
        let mut undo = Undo::new(true);
        undo.enter(20_000, 15_000, 1000);
        undo.on_retransmitted(1000, at(100));
        undo.on_retransmitted(2000, at(100));
        assert_eq!(undo.on_duplicate(900), None, "of before the recovery");
        assert_eq!(undo.on_duplicate(2000), None);
        assert_eq!(undo.on_duplicate(3000), Some((20_000, 15_000)));
        assert_eq!(undo.on_duplicate(3000), None);
    }

    /// The first ACK that moves on tells by its timestamp; the later ones answer the retransmission.
    #[test]
    fn an_old_timestamp_gives_the_window_back() {
        for (echoed, given) in [(97, Some((20_000, u64::MAX))), (98, None)] {
            let mut undo = Undo::new(true);
            undo.enter(20_000, u64::MAX, 1000);
            assert_eq!(undo.on_advance(2000, Some(at(50))), None, "nothing was retransmitted");
            undo.on_retransmitted(1000, at(100));
            assert_eq!(undo.on_advance(2000, Some(at(echoed))), given, "{echoed}");
            assert_eq!(undo.on_advance(3000, Some(at(50))), None);
        }
    }

    /// A loss above the oldest segment: the ACK that moves on answers what was sent before the recovery.
    #[test]
    fn another_hole_tells_nothing() {
        let mut undo = Undo::new(true);
        undo.enter(20_000, 15_000, 1000);
        undo.on_retransmitted(5000, at(100));
        assert_eq!(undo.on_advance(6000, Some(at(50))), None);
    }

    #[test]
    fn a_timeout_is_not_undone_here() {
        let mut undo = Undo::new(true);
        undo.enter(20_000, 15_000, 1000);
        undo.on_retransmitted(1000, at(100));
        undo.forget();
        assert_eq!(undo.on_duplicate(2000), None);
        let mut off = Undo::new(false);
        off.enter(20_000, 15_000, 1000);
        off.on_retransmitted(1000, at(100));
        assert_eq!(off.on_duplicate(2000), None);
    }
}
