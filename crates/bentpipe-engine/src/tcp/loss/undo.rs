//! Was a fast recovery or a timeout needless? If the retransmitted data had arrived and was only late, the window is
//! restored.
//!
//! Two signs: the peer reports each retransmission as a duplicate (D-SACK, RFC 2883), or an ACK that moves on echoes a timestamp from
//! before the first retransmission (Eifel, RFC 3522) or comes before that is sent. The window and threshold are restored at once (RFC 4015
//! §3), with two exceptions, as in Linux: after a timeout duplicates tell only with an ACK that moves on, and a timestamp ends a recovery
//! early only once none of its retransmissions is in flight. F-RTO (`frto.rs`) is a third sign.

use alloc::boxed::Box;

use crate::units::{Duration, Time};

/// Timestamps count milliseconds, so two of them can be closer together than their segments by up to this much.
const CLOCK: Duration = Duration::from_millis(2);

/// The window to restore, if the repair was needless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Restored {
    /// The window and threshold before the repair.
    Window { cwnd: u64, ssthresh: u64 },
    /// None: a mark has confirmed that the path was congested.
    Nothing,
}

/// The window before a recovery or a timeout, and the evidence that it was needless.
#[derive(Clone, Copy, Debug)]
struct Before {
    window: Restored,
    /// Where the recovery began.
    una: u64,
    /// Number of retransmissions not yet reported as duplicates; `None` before the first.
    resent: Option<u64>,
    /// When the first one was sent.
    first: Option<Time>,
}

/// What an ACK that moves on says of the repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Sign {
    /// Nothing.
    None,
    /// The peer has reported all retransmissions as duplicates.
    Duplicates,
    /// What it acknowledges was sent before the first retransmission (Linux's `tcp_packet_delayed`).
    Late,
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

    /// Begins a recovery, or the repair after a timeout, at `una`; `window` is what to restore if it is needless.
    /// `resent`: the number of segments in flight that were already retransmissions.
    pub(in crate::tcp) fn enter(&mut self, window: Restored, una: u64, resent: u64) {
        let resent = (resent > 0).then_some(resent);
        let before = || Box::new(Before { window, una, resent, first: None });
        self.before = self.is_enabled.then(before);
    }

    /// A segment is retransmitted in the recovery, or after the timeout.
    #[inline(always)]
    pub(in crate::tcp) fn on_retransmitted(&mut self, now: Time) {
        if let Some(before) = &mut self.before {
            if before.resent.is_none() {
                before.first = Some(now);
            }
            before.resent = Some(before.resent.unwrap_or(0) + 1);
        }
    }

    /// An echoed mark: the path is congested, even if nothing was lost, so the window stays reduced (Linux:
    /// `tcp_fastretrans_alert` and `tcp_enter_cwr` clear `prior_ssthresh`).
    pub(in crate::tcp) fn on_mark(&mut self) {
        if let Some(before) = &mut self.before {
            before.window = Restored::Nothing;
        }
    }

    /// Takes a report that data up to `end` is a duplicate. Returns the window to restore if that was the last
    /// retransmission; not yet while a timeout is being repaired (`after_timeout`).
    pub(in crate::tcp) fn on_duplicate(&mut self, end: u64, after_timeout: bool) -> Option<Restored> {
        let before = self.before.as_mut().filter(|before| end > before.una)?;
        let resent = before.resent.filter(|&resent| resent > 0)? - 1;
        before.resent = Some(resent);
        if resent > 0 || after_timeout { None } else { self.take() }
    }

    /// True if an ACK that moves on may be a [`Sign`]; `repairing`: a recovery or the repair after a timeout is in progress.
    #[inline(always)]
    pub(in crate::tcp) fn awaits(&self, repairing: bool) -> bool {
        self.before.as_ref().is_some_and(|before| repairing || before.resent == Some(0))
    }

    /// An ACK moves on to `ack`; `echoed` is when the segment that caused it was sent, by its timestamp.
    pub(in crate::tcp) fn on_advance(&self, ack: u64, echoed: Option<Time>) -> Sign {
        let Some(before) = self.before.as_ref().filter(|before| ack > before.una) else { return Sign::None };
        let is_late = match before.first {
            Some(first) => echoed.is_some_and(|echoed| echoed + CLOCK < first),
            None => before.resent.is_none(),
        };
        match before.resent {
            _ if is_late => Sign::Late,
            Some(0) => Sign::Duplicates,
            _ => Sign::None,
        }
    }

    /// Takes other evidence that nothing was lost. Returns the window to restore.
    pub(in crate::tcp) fn take(&mut self) -> Option<Restored> {
        self.before.take().map(|before| before.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Restored = Restored::Window { cwnd: 20_000, ssthresh: 15_000 };

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Two retransmissions and two reports: the second report restores the window, once.
    #[test]
    fn reports_of_all_duplicates_give_the_window_back() {
        let mut undo = Undo::new(true);
        undo.enter(BEFORE, 1000, 0);
        assert_eq!(undo.on_duplicate(2000, false), None, "nothing was retransmitted");
        undo.on_retransmitted(at(100));
        undo.on_retransmitted(at(100));
        assert_eq!(undo.on_duplicate(900, false), None, "of before the recovery");
        assert_eq!(undo.on_duplicate(1000, false), None, "of the last byte before it");
        assert_eq!(undo.on_duplicate(2000, false), None);
        assert_eq!(undo.on_duplicate(3000, false), Some(BEFORE));
        assert_eq!(undo.on_duplicate(3000, false), None);
    }

    /// An ACK that moves on echoes a time before the first retransmission, or comes before it. Timestamps count milliseconds.
    #[test]
    fn an_old_timestamp_is_a_sign() {
        let mut undo = Undo::new(true);
        undo.enter(BEFORE, 1000, 0);
        assert_eq!(undo.on_advance(2000, None), Sign::Late, "nothing was retransmitted");
        undo.on_retransmitted(at(100));
        undo.on_retransmitted(at(110));
        for (echoed, sign) in [(97, Sign::Late), (98, Sign::None), (105, Sign::None)] {
            assert_eq!(undo.on_advance(2000, Some(at(echoed))), sign, "{echoed}");
        }
        assert_eq!(undo.on_advance(1000, Some(at(50))), Sign::None, "of before the recovery");
        assert_eq!(undo.take(), Some(BEFORE));
        assert_eq!(undo.on_advance(2000, Some(at(50))), Sign::None, "given back");
    }

    /// A retransmission of before is in flight: that of the recovery is still to come.
    #[test]
    fn an_earlier_retransmission_says_nothing() {
        let mut undo = Undo::new(true);
        undo.enter(BEFORE, 1000, 1);
        assert_eq!(undo.on_advance(6000, Some(at(50))), Sign::None);
    }

    /// While a timeout is being repaired, duplicates are counted, and the next ACK that advances restores the window.
    /// One more retransmission is still in flight from before.
    #[test]
    fn after_a_timeout_duplicates_wait_for_an_ack_that_moves_on() {
        let mut undo = Undo::new(true);
        undo.enter(BEFORE, 1000, 1);
        undo.on_retransmitted(at(100));
        assert_eq!(undo.on_duplicate(2000, true), None);
        assert_eq!(undo.on_advance(2000, None), Sign::None);
        assert_eq!(undo.on_duplicate(2000, true), None);
        assert_eq!(undo.on_advance(3000, None), Sign::Duplicates);
    }

    /// A mark during or after the recovery: the reports are taken, but the window stays reduced.
    #[test]
    fn a_mark_confirms_the_reduction() {
        let mut undo = Undo::new(true);
        undo.on_mark();
        undo.enter(BEFORE, 1000, 0);
        undo.on_retransmitted(at(100));
        undo.on_mark();
        assert_eq!(undo.on_duplicate(2000, false), Some(Restored::Nothing));
        assert_eq!(undo.take(), None);
    }

    #[test]
    fn off_it_gives_nothing_back() {
        let mut off = Undo::new(false);
        off.enter(BEFORE, 1000, 0);
        off.on_retransmitted(at(100));
        assert_eq!(off.on_duplicate(2000, false), None);
    }
}
