//! `framing = "aal5"` and `atm`: links whose packets travel in cells.

use bentpipe_engine::link::{CellConfig, Sharing};
use bentpipe_language::error::Problems;
use bentpipe_language::quantity::CELLS;
use bentpipe_language::reader::Item;
use bentpipe_language::shape::Shape;

use super::grammar::{ATM, CELL_BUFFER, SHARINGS};

/// Reads the cell settings of a direction: its `atm` table, if any.
pub(crate) fn cells(atm: Option<Item<'_>>, problems: &mut Problems) -> Option<CellConfig> {
    let Some(item) = atm else { return Some(CellConfig::OPEN) };
    let view = item.table(ATM, problems)?;
    let line = match view.get("line") {
        Some(item) if item.as_text() != Some("unlimited") => item.rate(problems).map(Some),
        _ => Some(None),
    };
    let buffer = match view.get("buffer") {
        Some(item) if item.as_text() != Some("unlimited") => buffer(&item, problems).map(Some),
        _ => Some(None),
    };
    let sharing = view.get("sharing").map_or(Some("per-vc"), |item| item.choice(SHARINGS, problems));
    let partial = view.get("partial_packet_discard").map_or(Some(false), |item| item.flag(problems));
    let buffer = buffer?;
    let needs_buffer = |item: &Item<'_>, problems: &mut Problems| {
        let expected = "buffer = \"8192 cells\" beside it".to_owned();
        item.refuse(problems, format!("`{}` applies only to a limited buffer", item.path), Some(expected));
    };
    let early = match view.get("early_packet_discard") {
        Some(item) if item.as_text() != Some("off") => {
            let share = item.probability(problems)?;
            let Some(buffer) = buffer else {
                needs_buffer(&item, problems);
                return None;
            };
            Some(whole_cells(share.get(), buffer))
        }
        _ => None,
    };
    if let (Some(item), None, Some(true)) = (view.get("partial_packet_discard"), buffer, partial) {
        needs_buffer(&item, problems);
        return None;
    }
    let sharing = if sharing? == "shared" { Sharing::Shared } else { Sharing::PerChannel };
    Some(CellConfig { line: line?, buffer, sharing, early_discard: early, partial_discard: partial? })
}

/// A share of a buffer in whole cells, rounded down. A product that is whole but for the rounding of its factors is not: 29 % of 100
/// cells are 29, although 0.29 is a little less than that as a double.
fn whole_cells(share: f64, buffer: u32) -> u32 {
    let (cells, near) = (share * f64::from(buffer), (share * f64::from(buffer)).round());
    // A double has 53 bits, a buffer 32.
    let is_whole = (cells - near).abs() < 1e-6;
    (if is_whole { near } else { cells }) as u32
}

fn buffer(item: &Item<'_>, problems: &mut Problems) -> Option<u32> {
    if item.as_text().is_none() {
        item.mismatch(problems, &CELL_BUFFER);
        return None;
    }
    let cells = item.quantity(CELLS, problems)?;
    if cells == 0 {
        item.refuse(problems, "a buffer must hold at least one cell", Some(Shape::Quantity(CELLS).expected()));
        return None;
    }
    Some(cells as u32)
}
