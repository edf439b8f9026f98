//! What a report says about the delivery rate.

use crate::units::Duration;

/// A rate controller's input, once per report.
#[derive(Clone, Copy, Debug)]
pub(in crate::slacp) struct RateSample {
    /// Bytes on the line that the report lists as arrived.
    pub(in crate::slacp) arrived: u64,
    /// Bytes on the line that the report lists as lost.
    pub(in crate::slacp) lost: u64,
    /// The measured round trip, if the report yields one.
    pub(in crate::slacp) rtt: Option<Duration>,
    /// The newest transmission that the report covers.
    pub(in crate::slacp) newest: u64,
    /// The number of the next transmission.
    pub(in crate::slacp) next: u64,
    /// Bytes neither acknowledged nor lost.
    pub(in crate::slacp) in_flight: u64,
}
