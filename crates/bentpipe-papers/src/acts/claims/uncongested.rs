//! Claims about transfers without competition: scenarios 1, 2 and 4.

use bentpipe_study::stats::{mean, standard_deviation};

use super::super::tables::{best, losses_varied, near_the_mean, near_the_spread, noisy, trials_of};
use super::super::worlds::{Place, TRIALS, maximum};
use super::{each, farthest, number};
use crate::finding::{Checked, Finding};
use crate::lab::Lab;
use crate::published::ACTS;

/// Mean and spread of scenario 1, judged like the two cells of table 4.
pub(super) fn c02(lab: &Lab<'_>) -> Checked {
    let trials = trials_of(lab, Place::Satellite)?;
    let (ours, spread) = (mean(&trials), standard_deviation(&trials));
    let note =
        format!("standard deviation {spread:.3}, max of {TRIALS} {:.1}. {}", maximum(&trials), losses_varied(lab)?);
    let mean_holds = near_the_mean(Place::Satellite, ours);
    let spread_holds = near_the_spread(Place::Satellite, spread);
    Ok(Finding::new(ours, note).and(spread_holds).or_shape(mean_holds || spread_holds))
}

/// The paper's simulation of scenario 1: the maximum of its trials, as in table 6.
pub(super) fn c03(lab: &Lab<'_>) -> Checked {
    Ok(Finding::new(best(lab, "scenario 1 OC-3", "simulation")?, "max of ten transfers"))
}

/// The experiment of scenario 2.
pub(super) fn c05(lab: &Lab<'_>) -> Checked {
    Ok(Finding::new(best(lab, "scenario 2 OC-12", "experiment")?, noisy(lab)?))
}

/// The paper's simulation of scenario 2.
pub(super) fn c06(lab: &Lab<'_>) -> Checked {
    Ok(Finding::new(best(lab, "scenario 2 OC-12", "simulation")?, noisy(lab)?))
}

/// The satellite's mean over the LAN's.
pub(super) fn c08(lab: &Lab<'_>) -> Checked {
    let means = [mean(&trials_of(lab, Place::Satellite)?), mean(&trials_of(lab, Place::Lan)?)];
    Ok(Finding::new(means[0] / means[1], format!("{:.1} over {:.1} Mbit/s", means[0], means[1])))
}

/// The maximum of the trials at each place.
pub(super) fn c09(lab: &Lab<'_>) -> Checked {
    let mut pairs = Vec::new();
    for (place, printed) in Place::ALL.into_iter().zip(["A-V26", "A-V27", "A-V28"].map(number)) {
        pairs.push((maximum(&trials_of(lab, place)?), printed));
    }
    Ok(Finding::new(farthest(&pairs), each(&pairs)))
}

/// The distance of our simulations from the paper's experiments, relative to the larger as in table 6.
pub(super) fn c23(lab: &Lab<'_>) -> Checked {
    let table = ACTS.table(6).expect("table 6");
    let mut ours = Vec::new();
    for cell in table.cells.iter().filter(|cell| cell.column == "error") {
        let experiment = table.value(&cell.row, "experiment").expect("printed");
        ours.push(super::super::tables::error(experiment, best(lab, &cell.row, "simulation")?));
    }
    let words: Vec<_> = ours.iter().map(|error| format!("{error:.1}")).collect();
    let note = format!(
        "scenarios 1, 2, 3: our simulations are {} % off the experiments; for that of scenario 2 see A-C06",
        words.join(", ")
    );
    // The shape: two of three are as close as the paper's own simulations.
    let high = super::published("A-C23").high.expect("bounded");
    let near = ours.iter().filter(|error| **error <= high).count();
    Ok(Finding::new(maximum(&ours), note).or_shape(near + 1 == ours.len()))
}
