//! Shared by controls that reduce their window by a factor: the reaction to a loss, and its undoing.

use super::Window;
use crate::tcp::config::TcpConfig;
use crate::tcp::loss::{FoundBy, LossReport};

/// A control that reduces its window by a factor.
pub(super) trait Reduces {
    /// Takes the state that the loss ends, and sets the threshold.
    fn reduce(&mut self, window: &mut Window, loss: &LossReport);

    /// Reacts to a timeout, after which the path may have changed.
    fn after_timeout(&mut self) {}
}

/// Reacts to a loss: the window becomes the new threshold, or one segment after a timeout. Repeated timeouts of a
/// segment leave the threshold unchanged (RFC 5681 §3.1, RFC 9438 §4.8).
pub(super) fn react(control: &mut impl Reduces, window: &mut Window, loss: &LossReport) {
    match loss.found_by {
        FoundBy::DuplicateAcks | FoundBy::Mark => {
            control.reduce(window, loss);
            window.set(window.exact_ssthresh());
        }
        FoundBy::Timeout { repeated } => {
            if !repeated {
                control.reduce(window, loss);
            }
            control.after_timeout();
            window.set_segments(1);
        }
    }
}

/// The fraction of the window that remains after a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factors {
    pub(super) loss: f64,
    mark: f64,
}

impl Factors {
    /// `loss` applies after a loss. After a mark, `mark` applies if the settings ask for it (RFC 8511 §3), otherwise
    /// `loss`.
    pub(super) fn new(config: &TcpConfig, loss: f64, mark: f64) -> Self {
        Factors { loss, mark: if config.abe { mark } else { loss } }
    }

    pub(super) fn of(self, loss: &LossReport) -> f64 {
        if loss.found_by == FoundBy::Mark { self.mark } else { self.loss }
    }
}

/// State that a reduction replaces, and its previous value, so that a spurious reduction can be undone (RFC 9438 §4.9).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undoable<S> {
    pub(super) now: S,
    before: S,
}

impl<S> Undoable<S> {
    pub(super) fn replace(&mut self, next: S) {
        self.before = core::mem::replace(&mut self.now, next);
    }
}

impl<S: Copy> Undoable<S> {
    pub(super) fn undo(&mut self, window: &mut Window, cwnd: u64, ssthresh: u64) {
        self.now = self.before;
        window.restore(cwnd, ssthresh);
    }
}
