//! A sender's rate: fixed, or lowered by the receiver's reports, or adapted to other traffic.
//!
//! Each report gives a [`RateSample`], from which a rate and a limit on the bytes in flight follow. [`provisioned`] is
//! for a dedicated line, [`bbr`] for a shared one.

mod bbr;
mod limits;
mod min_rtt;
mod provisioned;
mod sample;

use super::config::{RateControl, SlacpConfig};
use crate::units::{Duration, Rate, Time};
use bbr::Bbr;
use provisioned::Provisioned;
pub(super) use sample::RateSample;

#[derive(Clone, Debug)]
pub(super) enum RateController {
    Fixed(Option<Rate>),
    Provisioned(Provisioned),
    Shared(Bbr),
}

impl RateController {
    /// Forgets everything learned from reports.
    pub(super) fn restart(&mut self, initial_rtt: Duration) {
        match self {
            RateController::Fixed(_) => {}
            RateController::Provisioned(control) => control.restart(),
            RateController::Shared(bbr) => *bbr = Bbr::new(bbr.max_rate(), initial_rtt),
        }
    }

    pub(super) fn new(config: &SlacpConfig) -> Self {
        match (config.rate, config.rate_control) {
            (Some(rate), RateControl::Provisioned) => {
                RateController::Provisioned(Provisioned::new(rate, config.patience))
            }
            (Some(rate), RateControl::Shared) => RateController::Shared(Bbr::new(rate, config.initial_rtt)),
            (rate, _) => RateController::Fixed(rate),
        }
    }

    /// The rate to send at.
    pub(super) fn rate(&self) -> Option<Rate> {
        match self {
            RateController::Fixed(rate) => *rate,
            RateController::Provisioned(control) => Some(control.rate()),
            RateController::Shared(bbr) => Some(bbr.rate()),
        }
    }

    /// Takes a report's sample. Returns the new rate if it changed.
    pub(super) fn on_report(&mut self, now: Time, sample: RateSample) -> Option<Rate> {
        match self {
            RateController::Fixed(_) => None,
            RateController::Provisioned(control) => control.on_report(now, sample),
            RateController::Shared(bbr) => bbr.on_report(now, sample),
        }
    }

    /// True if more may be sent while `in_flight` bytes are neither acknowledged nor lost.
    pub(super) fn has_room(&self, in_flight: u64) -> bool {
        match self {
            RateController::Fixed(_) => true,
            RateController::Provisioned(control) => in_flight < control.max_in_flight(),
            RateController::Shared(bbr) => in_flight < bbr.max_in_flight(),
        }
    }

    /// Records that the sender has less to send than the rate allows; `next` is the number of the next transmission.
    pub(super) fn on_idle(&mut self, next: u64) {
        if let RateController::Shared(bbr) = self {
            bbr.on_idle(next);
        }
    }

    /// True if the sender may use the link's spare capacity. A link that carries less than configured may have none.
    pub(super) fn owns_spare_capacity(&self) -> bool {
        match self {
            RateController::Fixed(_) => true,
            RateController::Provisioned(control) => control.is_at_max_rate(),
            RateController::Shared(_) => false,
        }
    }
}
