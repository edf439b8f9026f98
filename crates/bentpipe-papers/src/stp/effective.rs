//! Searches for the error rates that would give the printed goodputs.
//!
//! At the printed bit error rates 1e-10 and 1e-8 nearly all of the paper's transfers would have no loss, so its losses
//! must come from higher error rates. For each printed cell we search for the loss of Eb/N0 at which our goodput,
//! relative to ours without errors, equals the printed one, relative to the printed one without errors.

use super::measure::{self, measure};
use super::setting::{Setting, Transport};
use crate::lab::Lab;
use crate::request::ReproduceError;

/// Bisections of 4 dB. The remaining 0.016 dB change error rates of 1e-6 to 1e-10 by 3 to 6 %.
const STEPS: u32 = 8;
const MAX_DB: f64 = 4.0;
/// Max runs per step. The mean of times with a relative deviation of 1/4 is then accurate to 3 %. That is 0.02 dB, because
/// goodput halves within half a decibel.
const RUNS: u32 = 64;

/// The error rate that reproduces one printed cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Effective {
    pub(super) transport: Transport,
    pub(super) nominal: f64,
    /// Loss of Eb/N0 in decibels.
    pub(super) loss_db: f64,
}

impl Effective {
    fn setting(&self) -> Setting {
        Setting::with_loss(self.transport, self.nominal, self.loss_db)
    }

    /// The resulting bit error rate.
    pub(super) fn rate(&self) -> f64 {
        self.setting().bit_errors()[0].get()
    }

    /// The loss probability of a full frame of 1048 bytes.
    pub(super) fn frame_loss(&self) -> f64 {
        self.setting().bit_errors()[0].any_of_bits(8 * 1048).get()
    }
}

/// All cells of table 1 with errors, first STP, then TCP, each by ascending rate.
pub(super) fn search(lab: &Lab<'_>) -> Result<Vec<Effective>, ReproduceError> {
    let rows = Transport::ROWS;
    let clean = measure(lab, "without errors", &rows.map(|(_, t)| Setting::at_face_value(t, 0.0)), 1)?;
    let mut cells = Vec::new();
    let mut wanted = Vec::new();
    for ((row, transport), clean) in rows.iter().zip(&clean) {
        let best = clean.seconds.unwrap_or(f64::INFINITY);
        let printed: Vec<_> = measure::printed(row).collect();
        let without_errors = printed.iter().find(|cell| cell.0 == 0.0).expect("the paper begins without errors").1;
        for (nominal, goodput) in printed.into_iter().filter(|cell| cell.0 > 0.0) {
            cells.push(Effective { transport: *transport, nominal, loss_db: MAX_DB / 2.0 });
            wanted.push(best * without_errors / goodput);
        }
    }
    let mut step = MAX_DB / 4.0;
    for _ in 0..STEPS {
        let settings: Vec<_> = cells.iter().map(Effective::setting).collect();
        let measured = measure(lab, "the error rates behind table 1", &settings, lab.options().reps.min(RUNS))?;
        for ((cell, measured), wanted) in cells.iter_mut().zip(&measured).zip(&wanted) {
            // If no transfer finishes, there are too many errors.
            let too_bad = measured.seconds.is_none_or(|seconds| seconds > *wanted);
            cell.loss_db += if too_bad { -step } else { step };
        }
        step /= 2.0;
    }
    Ok(cells)
}

/// The common loss of Eb/N0 for the cells of one protocol, in decibels: their mean.
pub(super) fn common_loss(cells: &[Effective], transport: Transport) -> f64 {
    let losses: Vec<_> = cells.iter().filter(|cell| cell.transport == transport).map(|cell| cell.loss_db).collect();
    losses.iter().sum::<f64>() / losses.len() as f64
}
