//! A constant window, independent of ACKs and losses, for a path without
//! congestion.

use super::{AckSample, CongestionRules, Properties, Window};
use crate::tcp::loss::LossReport;
use crate::tcp::startup::SlowStart;

/// A fixed window. It has no state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed;

impl CongestionRules for Fixed {
    const NAME: &'static str = "fixed window";
    const PROPERTIES: Properties = Properties { resumes: false, ..Properties::WINDOW_ONLY };

    #[inline(always)]
    fn on_ack(&mut self, _: &mut Window, _: &mut SlowStart, _: &AckSample) {}

    fn on_loss(&mut self, _: &mut Window, _: &LossReport) {}

    fn restart(&mut self, _: &mut Window, _: u32) {}

    fn on_recovered(&mut self, _: &mut Window, _: u64) {}

    fn on_spurious_timeout(&mut self, _: &mut Window, _: u64, _: u64) {}
}
