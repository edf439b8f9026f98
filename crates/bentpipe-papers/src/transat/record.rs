//! The observer for the paper's figures: a [`Sequence`] of the satellite link.

use bentpipe_sim::record::Sequence;
use bentpipe_study::scenario::Scenario;

use super::layer::BOTTLENECK;

pub(super) use bentpipe_sim::record::{FlowTrace, Sequence as Recorder};

/// An observer for runs of a setting's scenario.
pub(super) fn recorder(scenario: &Scenario) -> Recorder {
    let bottleneck = scenario.link(BOTTLENECK).expect("settings have this link");
    Sequence::new(scenario, Some(bottleneck))
}
