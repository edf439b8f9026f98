//! The study of Charalambos and others: TCP over ATM over the ACTS satellite.
//!
//! Reading order: `worlds`, the scenarios and what is changed in them; `tables`, the six tables; `sweeps`, the curves
//! over offered load (figure 6), bit error rate and buffer; `claims`; `seen`, where the rest of the paper can be seen.

mod claims;
mod seen;
mod sweeps;
mod tables;
mod worlds;

use crate::lab::Lab;
use crate::published::ACTS;
use crate::reproduce::{Options, Progress, ReproduceError, in_parts};
use crate::{Row, Verdict, inventory};

pub(crate) fn reproduce(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    options.check(&ACTS)?;
    let lab = Lab::new(options, progress);
    in_parts(|rows| {
        for table in (1..=ACTS.last_table()).filter(|&n| options.wants_table(n)) {
            rows.extend(tables::rows(&lab, table)?);
        }
        for figure in (1..=ACTS.last_figure()).filter(|&n| options.wants_figure(n)) {
            rows.push(figure_row(&lab, figure)?);
        }
        if options.everything() {
            rows.extend(claims::rows(&lab)?);
            rows.extend(inventory::rows(&ACTS, seen::SEEN, &lab, rows)?);
        }
        Ok(())
    })
}

/// The drawings of the paper show what a scenario says; figure 6 is data.
fn figure_row(lab: &Lab<'_>, number: u8) -> Result<Row, ReproduceError> {
    let id = format!("A-F{number:02}");
    let title = ACTS.figure(&id).map_or(id.as_str(), |figure| figure.title.as_str());
    let row = Row::new(id.as_str(), title, None, None, "");
    let drawn = match number {
        1 => "scenarios/acts-1.toml and acts-2.toml: host, switch, satellite, switch, host",
        2 => "scenarios/acts-3.toml: three hosts, switch, satellite in loop-back, switch, host",
        3 => "scenarios/acts-4.toml: host, WAN (or LAN), host",
        4 => "scenarios/acts-5.toml: three hosts, switch, WAN (or LAN), host",
        5 => "engine: `tcp`, `wire::ipv4`, `wire::llc_snap`, `atm::aal5`, `atm::cell`, `atm::sonet`, one on the other",
        7 | 8 => "scenarios/acts-1.toml, acts-2.toml: each block is a node's processor, a link or a link's error rate",
        9 => {
            "scenarios/acts-3.toml: sources, switch with buffers per channel, error block, receiver behind a processor"
        }
        _ => return sweeps::load_figure(lab, row),
    };
    Ok(row.judged(Verdict::Built, format!("a drawing; the same as text: {drawn}")))
}
