//! The published values, and those of ns-2, as they stand in `studies/<paper>/`. They are part of the binary: nothing
//! has to be installed beside it.

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::Deserialize;

/// Rows of numbers under their keys, one number per variant.
pub type Rows = IndexMap<String, Vec<f64>>;

/// A table of the paper.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedTable {
    /// What it shows.
    pub title: String,
    /// The numbers.
    pub rows: Rows,
}

/// A statement of the paper.
#[derive(Clone, Debug, Deserialize)]
pub struct Claim {
    /// Its id in the paper's index.
    pub id: String,
    /// The statement.
    pub text: String,
    /// What it is about.
    pub metric: String,
    /// Under which conditions.
    pub conditions: String,
    /// The numbers as they are printed.
    pub printed: String,
    /// What is allowed, in words.
    pub tolerance: String,
    /// Where it stands in the paper.
    pub source: String,
    /// The number that is compared, where there is one.
    pub value: Option<f64>,
    /// The least value that bears the claim out.
    pub low: Option<f64>,
    /// The greatest.
    pub high: Option<f64>,
    /// Unit of the three.
    pub unit: String,
    /// Where the tolerance comes from.
    pub derivation: String,
}

impl Claim {
    /// Whether a number bears the claim out.
    pub fn holds_for(&self, number: f64) -> bool {
        self.low.is_none_or(|low| low <= number) && self.high.is_none_or(|high| number <= high)
    }
}

/// A figure of the paper, with the numbers that can be read off it.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedFigure {
    /// Its id in the paper's index.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Start of the error burst, seconds.
    pub burst_start_s: Option<f64>,
    /// First packet that the burst meets, numbered from 1.
    pub first_packet: Option<u64>,
    /// Last packet that the burst meets.
    pub last_packet: Option<u64>,
    /// First packet of the burst of packets that the sender releases afterwards.
    pub release_first: Option<u64>,
    /// Last of them.
    pub release_last: Option<u64>,
}

/// A topology, a mechanism or an experiment of the paper.
#[derive(Clone, Debug, Deserialize)]
pub struct Item {
    /// Its id in the paper's index.
    pub id: String,
    /// "topology", "mechanism" or "experiment".
    pub kind: String,
    /// What it is.
    pub text: String,
    /// More about it.
    pub detail: Option<String>,
}

/// Everything a paper says in numbers.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// Columns of the tables, in order; a table may have fewer.
    pub variants: Vec<String>,
    /// Replications behind a published statistic.
    pub replications: usize,
    table: IndexMap<String, PublishedTable>,
    /// The statements.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    #[serde(rename = "figure")]
    figures: Vec<PublishedFigure>,
    /// What it contains besides numbers.
    #[serde(rename = "item")]
    pub items: Vec<Item>,
}

impl Published {
    /// Table `number`, from 1.
    pub fn table(&self, number: u8) -> Option<&PublishedTable> {
        self.table.get(&format!("T{number:02}"))
    }

    /// A cell; `None` where the table has no such row or column.
    pub fn cell(&self, table: u8, row: &str, variant: &str) -> Option<f64> {
        let column = self.variants.iter().position(|v| v == variant)?;
        self.table(table)?.rows.get(row)?.get(column).copied()
    }

    /// The claim of that id.
    pub fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|c| c.id == id)
    }

    /// The figure of that id.
    pub fn figure(&self, id: &str) -> Option<&PublishedFigure> {
        self.figures.iter().find(|f| f.id == id)
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

/// What another simulator gives for the same tables.
#[derive(Clone, Debug, Deserialize)]
pub struct OtherSimulator {
    variants: Vec<String>,
    table: IndexMap<String, OtherTable>,
}

/// A number of the other simulator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherCell {
    /// The number.
    pub value: f64,
    /// Range of the statistic in samples of the paper's size, where there are replications.
    pub range: Option<(f64, f64)>,
}

impl OtherSimulator {
    /// A cell; `None` where there is none.
    pub fn cell(&self, table: u8, row: &str, variant: &str) -> Option<OtherCell> {
        let column = self.variants.iter().position(|v| v == variant)?;
        let table = self.table.get(&format!("T{table:02}"))?;
        let at = |rows: &Rows| rows.get(row)?.get(column).copied();
        Some(OtherCell { value: at(&table.rows)?, range: at(&table.low).zip(at(&table.high)) })
    }
}

/// The `transat` paper: Astuti and Kojo, "Simulation Study of TCP Performance in TRANSAT Satellite Architecture".
pub static TRANSAT: LazyLock<Published> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../studies/transat/expected.toml")).expect("checked by the tests")
});

/// ns-2's results for it.
pub static TRANSAT_NS2: LazyLock<OtherSimulator> =
    LazyLock::new(|| toml::from_str(include_str!("../../../studies/transat/ns2.toml")).expect("checked by the tests"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_the_paper_is_there() {
        let cells: usize =
            (1..=14).flat_map(|n| TRANSAT.table(n).expect("14 tables").rows.values()).map(Vec::len).sum();
        assert_eq!(cells, 784);
        let ids: Vec<_> = TRANSAT.claims.iter().map(|c| c.id.clone()).collect();
        assert_eq!(ids, (1..=34).map(|n| format!("T-C{n:02}")).collect::<Vec<_>>());
        assert!((1..=8).all(|n| TRANSAT.figure(&format!("T-F{n:02}")).is_some()));
    }

    #[test]
    fn quantiles_are_in_order() {
        // A slip of the transcription would most likely break this.
        for n in 3..=14 {
            for variant in &TRANSAT.variants {
                let at = |row| TRANSAT.cell(n, row, variant).expect("a full table");
                let ordered = ["min", "p25", "median", "p75", "max"].map(at);
                assert!(ordered.is_sorted(), "table {n}, {variant}: {ordered:?}");
                assert!(at("min") <= at("mean") && at("mean") <= at("max"), "table {n}, {variant}");
            }
        }
    }

    #[test]
    fn ns2_has_every_cell_of_the_paper() {
        for n in 1..=14 {
            for (row, cells) in &TRANSAT.table(n).expect("14 tables").rows {
                for variant in &TRANSAT.variants[..cells.len()] {
                    let cell = TRANSAT_NS2.cell(n, row, variant);
                    assert!(cell.is_some_and(|c| c.value > 0.0), "table {n}, {row}, {variant}");
                    let ranged = n > 2 && row != "throughput";
                    assert_eq!(cell.expect("just seen").range.is_some(), ranged, "table {n}, {row}, {variant}");
                }
            }
        }
    }
}
