//! Runs shared by tables, figures and claims.

use std::cell::OnceCell;

use super::effective::{self, Effective};
use super::measure::{Measured, measure, rates};
use super::setting::{Setting, Transport};
use crate::lab::Lab;
use crate::request::ReproduceError;

/// The runs of the study.
pub(super) struct Study<'a> {
    pub(super) lab: &'a Lab<'a>,
    effective: OnceCell<Vec<Effective>>,
}

impl<'a> Study<'a> {
    pub(super) fn new(lab: &'a Lab<'a>) -> Self {
        Study { lab, effective: OnceCell::new() }
    }

    /// Channel A at a rate of the tables. The first call makes the runs of all rates.
    pub(super) fn face_value(&self, transport: Transport, rate: f64) -> Result<Measured, ReproduceError> {
        let worlds = |(_, transport)| rates().map(move |rate| Setting::at_face_value(transport, rate));
        let settings: Vec<_> = Transport::ROWS.into_iter().flat_map(worlds).collect();
        let all = measure(self.lab, "table 1 at face value", &settings, self.lab.options().reps)?;
        let wanted = Setting::at_face_value(transport, rate);
        let at = settings.iter().position(|setting| *setting == wanted).expect("a rate of the tables");
        Ok(all[at])
    }

    /// The error rates that reproduce the printed cells.
    pub(super) fn effective(&self) -> Result<&[Effective], ReproduceError> {
        if self.effective.get().is_none() {
            let found = effective::search(self.lab)?;
            return Ok(self.effective.get_or_init(|| found));
        }
        Ok(self.effective.get().map_or(&[], Vec::as_slice))
    }

    /// The common loss of Eb/N0 for all cells of a row.
    pub(super) fn common_loss(&self, transport: Transport) -> Result<f64, ReproduceError> {
        Ok(effective::common_loss(self.effective()?, transport))
    }

    /// Channel B: the same rates with the common loss.
    pub(super) fn with_loss(&self, transport: Transport, rate: f64) -> Result<Measured, ReproduceError> {
        let loss = self.common_loss(transport)?;
        let settings: Vec<_> =
            rates().filter(|rate| *rate > 0.0).map(|rate| Setting::with_loss(transport, rate, loss)).collect();
        let all = measure(self.lab, "table 1 with a loss of Eb/N0", &settings, self.lab.options().reps)?;
        let at = settings.iter().position(|setting| *setting == Setting::with_loss(transport, rate, loss));
        Ok(all[at.expect("a rate of the tables")])
    }
}
