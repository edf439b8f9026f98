//! A control for tests: a constant window, paced at a fixed rate.

use super::{AckSample, Congestion, CongestionRules, Control, Properties, Window};
use crate::tcp::loss::LossReport;
use crate::tcp::startup::SlowStart;
use crate::units::Rate;

#[derive(Clone, Copy, Debug)]
pub(super) struct Paced {
    pub(super) rate: Rate,
}

impl CongestionRules for Paced {
    const NAME: &'static str = "paced";
    const PROPERTIES: Properties = Properties { paces: true, resumes: false, ..Properties::WINDOW_ONLY };

    fn on_ack(&mut self, _: &mut Window, _: &mut SlowStart, _: &AckSample) {}

    fn on_loss(&mut self, _: &mut Window, _: &LossReport) {}

    fn pacing_rate(&self, _: &Window) -> Option<Rate> {
        Some(self.rate)
    }
}

impl Congestion {
    /// Installs the test control: a fixed window sent at `rate`.
    pub(in crate::tcp) fn pace(&mut self, rate: Rate) {
        self.control = Control::Paced(Paced { rate });
        self.properties = self.control.properties();
    }
}
