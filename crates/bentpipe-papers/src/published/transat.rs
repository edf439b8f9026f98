//! The fourteen tables of the `transat` paper, and those of ns-2.

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::Deserialize;

/// Rows of numbers by key, one number per variant.
type Rows = IndexMap<String, Vec<f64>>;

/// A table of the paper.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedTable {
    /// Its title.
    pub title: String,
    /// The numbers.
    pub rows: Rows,
}

/// Its tables.
#[derive(Clone, Debug, Deserialize)]
pub struct Tables {
    /// Columns of the tables, in order; a table may have fewer.
    pub variants: Vec<String>,
    /// Replications per published statistic.
    pub replications: usize,
    table: IndexMap<String, PublishedTable>,
}

impl Tables {
    /// Table `number`, from 1.
    pub fn table(&self, number: u8) -> Option<&PublishedTable> {
        self.table.get(&format!("T{number:02}"))
    }

    /// A cell; `None` if the table has no such row or column.
    pub fn cell(&self, table: u8, row: &str, variant: &str) -> Option<f64> {
        let column = self.variants.iter().position(|v| v == variant)?;
        self.table(table)?.rows.get(row)?.get(column).copied()
    }
}

#[derive(Clone, Debug, Deserialize)]
struct OtherTable {
    rows: Rows,
    #[serde(default)]
    low: Rows,
    #[serde(default)]
    high: Rows,
}

/// Another simulator's results for the same tables.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OtherSimulator {
    variants: Vec<String>,
    table: IndexMap<String, OtherTable>,
}

/// A number of the other simulator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OtherCell {
    /// The number.
    pub(crate) value: f64,
    /// Range of the statistic in samples of the paper's size, if there are replications.
    pub(crate) range: Option<(f64, f64)>,
}

impl OtherSimulator {
    /// A cell; `None` if ns-2's results have no such row or column.
    pub(crate) fn cell(&self, table: u8, row: &str, variant: &str) -> Option<OtherCell> {
        let column = self.variants.iter().position(|v| v == variant)?;
        let table = self.table.get(&format!("T{table:02}"))?;
        let at = |rows: &Rows| rows.get(row)?.get(column).copied();
        Some(OtherCell { value: at(&table.rows)?, range: at(&table.low).zip(at(&table.high)) })
    }
}

/// The tables of the `transat` paper: Astuti and Kojo, "Simulation Study of TCP Performance in TRANSAT Satellite
/// Architecture".
pub static TRANSAT_TABLES: LazyLock<Tables> = LazyLock::new(|| {
    toml::from_str(include_str!("../../studies/transat/expected.toml")).expect("checked by the tests")
});

/// ns-2's results for these tables.
pub(crate) static TRANSAT_NS2: LazyLock<OtherSimulator> =
    LazyLock::new(|| toml::from_str(include_str!("../../studies/transat/ns2.toml")).expect("checked by the tests"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_the_paper_is_there() {
        let cells: usize =
            (1..=14).flat_map(|n| TRANSAT_TABLES.table(n).expect("14 tables").rows.values()).map(Vec::len).sum();
        assert_eq!(cells, 784);
    }

    #[test]
    fn quantiles_are_in_order() {
        // Most transcription errors would break this order.
        for n in 3..=14 {
            for variant in &TRANSAT_TABLES.variants {
                let at = |row| TRANSAT_TABLES.cell(n, row, variant).expect("a full table");
                let ordered = ["min", "p25", "median", "p75", "max"].map(at);
                assert!(ordered.is_sorted(), "table {n}, {variant}: {ordered:?}");
                assert!(at("min") <= at("mean") && at("mean") <= at("max"), "table {n}, {variant}");
            }
        }
    }

    #[test]
    fn ns2_has_every_cell_of_the_paper() {
        for n in 1..=14 {
            for (row, cells) in &TRANSAT_TABLES.table(n).expect("14 tables").rows {
                for variant in &TRANSAT_TABLES.variants[..cells.len()] {
                    let cell = TRANSAT_NS2.cell(n, row, variant);
                    assert!(cell.is_some_and(|c| c.value > 0.0), "table {n}, {row}, {variant}");
                    let ranged = n > 2 && row != "throughput";
                    assert_eq!(cell.expect("just seen").range.is_some(), ranged, "table {n}, {row}, {variant}");
                }
            }
        }
    }
}
