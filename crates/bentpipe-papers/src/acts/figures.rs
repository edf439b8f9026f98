//! The paper's drawings, each from the scenario that it shows; figure 6 is data and is drawn with its sweep.

use super::load;
use super::worlds::world;
use crate::lab::Lab;
use crate::published::ACTS;
use crate::request::ReproduceError;
use crate::{Row, Verdict};
use bentpipe_study::drawing::{blocks, stack, topology};

/// The content of a drawing, and its scenario.
enum Shows {
    Topology,
    Stack,
    Blocks,
}

/// The scenario of a drawing; `None` for figure 6.
const fn drawn(number: u8) -> Option<(Shows, usize)> {
    Some(match number {
        1 => (Shows::Topology, 1),
        2 => (Shows::Topology, 3),
        3 => (Shows::Topology, 4),
        4 => (Shows::Topology, 5),
        5 => (Shows::Stack, 3),
        7 => (Shows::Blocks, 1),
        8 => (Shows::Blocks, 2),
        9 => (Shows::Blocks, 3),
        _ => return None,
    })
}

/// Draws a figure if a folder is given, and returns its row.
pub(super) fn row(lab: &Lab<'_>, number: u8) -> Result<Row, ReproduceError> {
    let id = format!("A-F{number:02}");
    let title = ACTS.figure(&id).map_or(id.as_str(), |figure| figure.title.as_str());
    let row = Row::new(id.as_str(), title, None, None, "");
    let Some((shows, of)) = drawn(number) else { return load::figure(lab, row) };
    let scenario = world(of, &[]);
    if let Some(folder) = &lab.options().out_dir {
        let title = format!("{id}: {title}");
        let drawing = match shows {
            Shows::Topology => topology(&scenario, &title),
            Shows::Stack => stack(&scenario, &title, &[]),
            Shows::Blocks => blocks(&scenario, &title),
        };
        drawing.write(folder, &id)?;
    }
    let more = match number {
        1 => "; acts-2.toml has the same nodes, at the rates of OC-12c",
        3 | 4 => "; a round trip of 0.1 ms makes it the LAN",
        5 => {
            "; each layer is a module of the engine: tcp, wire::ipv4, wire::llc_snap, atm::aal5, atm::cell, atm::sonet"
        }
        _ => "",
    };
    Ok(row.judged(Verdict::Built, format!("drawn from scenarios/acts-{of}.toml{more}")))
}
