//! A constant window, independent of ACKs and losses, for a path without congestion.

use super::{AckSample, CongestionRules, Properties, Window};
use crate::tcp::loss::LossReport;
use crate::tcp::startup::SlowStart;

/// A fixed window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    segments: u32,
}

impl Fixed {
    pub(super) fn new(segments: u32) -> Self {
        Fixed { segments }
    }

    /// Restores the window after a recovery, in which NewReno deflates it by what a partial ACK acknowledges, and after
    /// repeated timeouts.
    fn restore(&self, window: &mut Window) {
        window.set_segments(self.segments);
    }
}

impl CongestionRules for Fixed {
    const NAME: &'static str = "fixed window";
    const PROPERTIES: Properties = Properties { resumes: false, ..Properties::WINDOW_ONLY };

    #[inline(always)]
    fn on_ack(&mut self, _: &mut Window, _: &mut SlowStart, _: &AckSample) {}

    fn on_loss(&mut self, window: &mut Window, _: &LossReport) {
        self.restore(window);
    }

    fn restart(&mut self, _: &mut Window, _: u32) {}

    fn on_recovered(&mut self, window: &mut Window, _: u64) {
        self.restore(window);
    }

    fn on_spurious_timeout(&mut self, window: &mut Window, _: u64, _: u64) {
        self.restore(window);
    }
}
