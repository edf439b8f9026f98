//! Compares the scoreboard with published results, from `studies/scoreboard/expected.toml`. [`to_markdown`] writes the
//! document.

mod markdown;

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use bentpipe_sweep::Median;
use bentpipe_sweep::board::{Board, Cell};

pub use markdown::to_markdown;

/// The published results of others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Others {
    source: IndexMap<String, Source>,
    result: Vec<Printed>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    text: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    source: String,
    who: String,
    place: String,
    loss: String,
    #[serde(default)]
    times_s: IndexMap<String, f64>,
    #[serde(default)]
    rates_mbit_s: IndexMap<String, f64>,
}

static OTHERS: LazyLock<Others> = LazyLock::new(|| {
    toml::from_str(include_str!("../../studies/scoreboard/expected.toml")).expect("checked by the tests")
});

/// A published result beside our best ones for the same link, loss and size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// Who measured it, and with what.
    pub who: &'static str,
    /// The publication.
    pub source: &'static str,
    /// The link, the loss and the size.
    pub field: [&'static str; 3],
    /// Their transfer time in seconds, or the size divided by their rate if they print a rate.
    pub time_s: f64,
    /// Our best result end to end.
    pub end_to_end: Option<Best>,
    /// Our best result with boxes.
    pub with_boxes: Option<Best>,
}

/// Our cell with the lowest median.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Best {
    /// Its transport, and the box if there is one.
    pub name: String,
    /// Its time in seconds, with the interval. The minimum of several medians of few runs is biased low.
    pub time_s: Median,
}

/// The published results whose link, loss and size are on this board.
pub fn beside(board: &Board) -> Vec<Beside> {
    let others: &'static Others = &OTHERS;
    let mut all = Vec::new();
    for printed in &others.result {
        let times = printed.times_s.iter().map(|(size, time)| (size, *time));
        let of_rate = |(size, rate): (&'static String, &f64)| Some((size, bytes(size)? * 8.0 / (rate * 1e6)));
        for (size, time_s) in times.chain(printed.rates_mbit_s.iter().filter_map(of_rate)) {
            let field = [printed.place.as_str(), printed.loss.as_str(), size.as_str()];
            let is_here = |cell: &&Cell| [cell.field.place, cell.field.loss, cell.field.size] == field;
            let cells: Vec<&Cell> = board.cells.iter().filter(is_here).collect();
            if cells.is_empty() {
                continue;
            }
            let best = |plain: bool| {
                let those = cells.iter().filter(|cell| (cell.entry.shape == "plain") == plain);
                let timed = those.filter_map(|cell| Some(Best { name: name(cell), time_s: cell.time_s? }));
                timed.min_by(|a, b| a.time_s.median.total_cmp(&b.time_s.median))
            };
            all.push(Beside {
                who: &printed.who,
                source: others.source.get(&printed.source).map_or("", |source| &source.text),
                field,
                time_s,
                end_to_end: best(true),
                with_boxes: best(false),
            });
        }
    }
    all
}

fn name(cell: &Cell) -> String {
    match cell.entry.shape {
        "plain" => cell.entry.transport.to_owned(),
        shape => format!("{}, {shape}", cell.entry.transport),
    }
}

fn bytes(size: &str) -> Option<f64> {
    bentpipe_study::scenario::size(size).ok().map(|bytes| bytes.get() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_sweep::board::PLACES;

    #[test]
    fn every_result_has_its_field_and_source() {
        for printed in &OTHERS.result {
            let place = PLACES.iter().find(|place| place.name == printed.place).expect("a link of the board");
            assert!(place.losses.contains(&printed.loss.as_str()), "{printed:?}");
            let sizes: Vec<_> = printed.times_s.keys().chain(printed.rates_mbit_s.keys()).collect();
            assert!(!sizes.is_empty() && sizes.iter().all(|size| place.sizes.contains(&size.as_str())), "{printed:?}");
            assert!(OTHERS.source.contains_key(&printed.source), "{printed:?}");
        }
    }
}
