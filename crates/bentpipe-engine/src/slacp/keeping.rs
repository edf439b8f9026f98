//! How a sender keeps its rate: as told, by what its receiver reports, or by what others leave.

use super::config::{RateControl, SlacpConfig};
use super::rate::Control;
use super::share::Share;
use crate::units::{Duration, Rate, Time};

/// What a report told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// Bytes on the line that arrived, and those that were lost.
    pub(super) arrived: u64,
    pub(super) lost: u64,
    /// The round trip that it showed.
    pub(super) rtt: Option<Duration>,
    /// The newest transmission that it tells of, and the next one to be sent.
    pub(super) newest: u64,
    pub(super) next: u64,
    /// Bytes without a verdict.
    pub(super) in_flight: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Keeping {
    Told(Option<Rate>),
    Provisioned(Control),
    Shared(Share),
}

impl Keeping {
    pub(super) fn new(config: &SlacpConfig) -> Self {
        match (config.rate, config.rate_control) {
            (Some(rate), RateControl::Provisioned) => Keeping::Provisioned(Control::new(rate)),
            (Some(rate), RateControl::Shared) => Keeping::Shared(Share::new(rate, config.initial_rtt)),
            (rate, _) => Keeping::Told(rate),
        }
    }

    /// The rate to send at.
    pub(super) fn rate(&self) -> Option<Rate> {
        match self {
            Keeping::Told(rate) => *rate,
            Keeping::Provisioned(control) => Some(control.rate()),
            Keeping::Shared(share) => Some(share.rate()),
        }
    }

    /// A report came. Answers a new rate.
    pub(super) fn on_report(&mut self, now: Time, told: Told) -> Option<Rate> {
        match self {
            Keeping::Told(_) => None,
            Keeping::Provisioned(control) => control.on_report(now, told.arrived, told.lost, told.rtt),
            Keeping::Shared(share) => share.on_report(now, told),
        }
    }

    /// Whether more may be without a verdict than these bytes.
    pub(super) fn has_room(&self, in_flight: u64) -> bool {
        match self {
            Keeping::Told(_) | Keeping::Provisioned(_) => true,
            Keeping::Shared(share) => in_flight < share.room(),
        }
    }

    /// There is less to send than may be; `next` is the next transmission.
    pub(super) fn on_idle(&mut self, next: u64) {
        if let Keeping::Shared(share) = self {
            share.on_idle(next);
        }
    }

    /// Whether what nobody here sends is nobody's: a line that carries less than was said is not known to be idle.
    pub(super) fn is_own(&self) -> bool {
        match self {
            Keeping::Told(_) => true,
            Keeping::Provisioned(control) => control.is_as_told(),
            Keeping::Shared(_) => false,
        }
    }
}
