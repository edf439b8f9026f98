//! The study of Minei and Cohen: a unidirectional GEO channel with a modem as the return link.
//!
//! Reading order: `world` the two scenarios and their measurements; `cases` single windows with chosen
//! losses; `claims`; `figures`; `seen` references for the other items.

mod cases;
mod claims;
mod figures;
mod seen;
mod world;

use crate::lab::Lab;
use crate::published::MINEI;
use crate::request::{Options, Progress, ReproduceError, in_parts};
use crate::{Row, inventory};

pub(crate) fn reproduce(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    options.check(&MINEI)?;
    let lab = Lab::new(options, progress);
    in_parts(|rows| {
        for figure in (1..=MINEI.last_figure()).filter(|&number| options.wants_figure(number)) {
            rows.push(figures::row(&lab, figure, options.out_dir.as_deref())?);
        }
        if options.everything() {
            rows.extend(claims::rows(&lab)?);
            rows.extend(inventory::rows(&MINEI, seen::SEEN, &lab, rows)?);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_of_the_paper_is_answered_for() {
        inventory::check(&MINEI, seen::SEEN);
    }
}
