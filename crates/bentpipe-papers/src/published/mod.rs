//! The published values, from `studies/<paper>/expected.toml`; the files are compiled into the binary.
//!
//! Reading order: [`Paper`], common to all papers; `transat`, the fourteen tables of that paper, and ns-2's results for
//! them.

mod claim;
mod figure;
mod transat;

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::Deserialize;

pub use claim::{Bounds, Claim, Range};
pub use figure::{Point, PublishedFigure};
pub(crate) use transat::{OtherCell, TRANSAT_NS2};
pub use transat::{PublishedTable, TRANSAT_TABLES, Tables};

/// The published content of a paper.
#[derive(Clone, Debug, Deserialize)]
pub struct Paper {
    /// Its short name: `transat`.
    pub key: String,
    /// The first letter of its ids.
    pub letter: String,
    /// Its title.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// Number of items of each kind.
    pub counts: Counts,
    /// The id of the row whose reason is at the top of its chapter.
    #[serde(default)]
    pub lead: Option<String>,
    /// Its tables by number (`T01`), and other lists of numbers by name.
    #[serde(default)]
    table: IndexMap<String, Table>,
    /// Numbers that its text prints.
    #[serde(default, rename = "number")]
    pub numbers: Vec<Number>,
    /// The claims.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    /// The figures.
    #[serde(rename = "figure")]
    pub figures: Vec<PublishedFigure>,
    /// Topologies, mechanisms and experiments.
    #[serde(rename = "item")]
    pub items: Vec<Item>,
    /// Our decisions where it is silent or contradicts itself.
    #[serde(rename = "decision")]
    pub decisions: Vec<Decision>,
    #[serde(skip)]
    study: &'static str,
}

/// Number of items of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Ids with N.
    pub topology: usize,
    /// Ids with M.
    pub mechanism: usize,
    /// Ids with E.
    pub experiment: usize,
    /// Ids with T.
    pub table: usize,
    /// Ids with F.
    pub figure: usize,
    /// Ids with C.
    pub claim: usize,
    /// Ids with Q.
    pub decision: usize,
}

impl Counts {
    /// All kinds together.
    pub fn total(&self) -> usize {
        self.topology + self.mechanism + self.experiment + self.table + self.figure + self.claim + self.decision
    }
}

/// A table of a paper, or another list of its numbers.
#[derive(Clone, Debug, Deserialize)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// Its cells, in printed order. The tables of `transat` have rows in [`Tables`] instead.
    #[serde(default)]
    pub cells: Vec<Cell>,
    /// Tolerances of our cells, by name.
    #[serde(default)]
    limits: IndexMap<String, f64>,
    /// The derivation of the tolerances.
    #[serde(default)]
    pub derivation: String,
}

impl Table {
    /// The tolerance with that name.
    ///
    /// # Panics
    /// Panics if the table has none, which is an error in `make_expected.py`.
    pub fn limit(&self, name: &str) -> f64 {
        *self.limits.get(name).unwrap_or_else(|| panic!("table `{}` has no limit `{name}`", self.title))
    }

    /// The cell in this row and column.
    pub fn cell(&self, row: &str, column: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.row == row && cell.column == column)
    }

    /// The number in this row and column.
    pub fn value(&self, row: &str, column: &str) -> Option<f64> {
        self.cell(row, column)?.value
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Deserialize)]
pub struct Cell {
    /// Row heading.
    pub row: String,
    /// Column heading.
    pub column: String,
    /// As printed.
    pub printed: String,
    /// The same as a number, if it is one.
    pub value: Option<f64>,
    /// Unit of the number.
    #[serde(default)]
    pub unit: String,
    /// A note.
    pub note: Option<String>,
}

/// A number in the text of a paper.
#[derive(Clone, Debug, Deserialize)]
pub struct Number {
    /// Its id.
    pub id: String,
    /// What it is.
    pub text: String,
    /// As printed.
    pub printed: String,
    /// The same as a number, if it is one.
    pub value: Option<f64>,
    /// Unit of the number.
    #[serde(default)]
    pub unit: String,
    /// The conditions.
    pub conditions: Option<String>,
    /// Its derivation, and whether it is consistent with the others.
    pub note: Option<String>,
    /// Its section.
    pub section: String,
}

/// A topology, a mechanism or an experiment of a paper.
#[derive(Clone, Debug, Deserialize)]
pub struct Item {
    /// Its id in the index of the papers.
    pub id: String,
    /// "topology", "mechanism" or "experiment".
    pub kind: String,
    /// What it is.
    pub text: String,
    /// Details.
    pub detail: Option<String>,
    /// For an experiment without printed numbers: the result according to the paper's text.
    pub expected: Option<Expected>,
}

/// The comparison for a statement of the paper that is not a numbered claim.
#[derive(Clone, Debug, Deserialize)]
pub struct Expected {
    /// The printed number, if any.
    pub value: Option<f64>,
    /// Min value that supports the paper.
    pub low: Option<f64>,
    /// The maximum.
    pub high: Option<f64>,
    /// Min and max value for the verdict `shape`: the approximate size or the ordering of the paper.
    pub shape: Option<Range>,
    /// Unit of the numbers.
    pub unit: String,
    /// The compared quantity, and the derivation of the bounds.
    pub derivation: String,
}

impl Expected {
    /// The bounds of the compared number.
    pub fn bounds(&self) -> Bounds {
        Bounds { low: self.low, high: self.high, shape: self.shape }
    }
}

/// A decision where a paper is silent or contradicts itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Decision {
    /// Its id in the index of the papers.
    pub id: String,
    /// The decision.
    pub text: String,
    /// The reason.
    pub reason: Option<String>,
}

impl Paper {
    fn read(text: &str, study: &'static str) -> Self {
        let paper: Paper = toml::from_str(text).expect("checked by the tests");
        Paper { study, ..paper }
    }

    /// The README of the study, in Markdown: the paper's question, our method, and the differences.
    pub fn study(&self) -> &'static str {
        self.study
    }

    /// Table `number`, from 1.
    pub fn table(&self, number: u8) -> Option<&Table> {
        self.table.get(&format!("T{number:02}"))
    }

    /// A list of numbers other than a numbered table: `parameters`.
    pub fn list(&self, name: &str) -> Option<&Table> {
        self.table.get(name)
    }

    /// The claim with this id.
    pub fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|c| c.id == id)
    }

    /// The figure with this id.
    pub fn figure(&self, id: &str) -> Option<&PublishedFigure> {
        self.figures.iter().find(|f| f.id == id)
    }

    /// The number of the text with this id.
    pub fn number(&self, id: &str) -> Option<&Number> {
        self.numbers.iter().find(|n| n.id == id)
    }

    /// Number of numbered tables.
    pub(crate) fn last_table(&self) -> u8 {
        self.counts.table as u8
    }

    /// Number of figures.
    pub(crate) fn last_figure(&self) -> u8 {
        self.counts.figure as u8
    }

    /// Id and text of each table, figure, claim, item and decision.
    pub fn contents(&self) -> Vec<(String, String)> {
        let tables = self.table.iter().filter(|(key, _)| key.starts_with('T'));
        let tables = tables.map(|(key, table)| (format!("{}-{key}", self.letter), table.title.clone()));
        let figures = self.figures.iter().map(|figure| (figure.id.clone(), figure.title.clone()));
        let claims = self.claims.iter().map(|claim| (claim.id.clone(), claim.text.clone()));
        let items = self.items.iter().map(|item| (item.id.clone(), with(&item.text, item.detail.as_deref())));
        let decisions = self.decisions.iter().map(|d| (d.id.clone(), with(&d.text, d.reason.as_deref())));
        tables.chain(figures).chain(claims).chain(items).chain(decisions).collect()
    }
}

/// A text followed by its details, if any.
pub(crate) fn with(text: &str, more: Option<&str>) -> String {
    more.map_or(text.to_owned(), |more| format!("{text}; {more}"))
}

macro_rules! papers {
    ($($(#[$doc:meta])* $name:ident = $key:literal;)*) => {
        $($(#[$doc])* pub static $name: LazyLock<Paper> =
            LazyLock::new(|| Paper::read(
                include_str!(concat!("../../studies/", $key, "/expected.toml")),
                include_str!(concat!("../../studies/", $key, "/README.md")),
            ));)*
        /// All papers.
        pub static PAPERS: [&LazyLock<Paper>; 5] = [$(&$name),*];
    };
}

papers! {
    /// Astuti and Kojo: TCP over a GEO link with error bursts, with and without a link layer that repairs them.
    TRANSAT = "transat";
    /// Minei and Cohen: a unidirectional GEO channel with a modem for the way back, split TCP, a sender for burst losses.
    MINEI = "minei";
    /// Charalambos and others: TCP over ATM over the ACTS satellite.
    ACTS = "acts";
    /// Zhu, Roy and Kim: TCP splitting against end-to-end TCP over a link layer that repairs losses.
    HYBRID = "hybrid";
    /// Canhoto and Anzaloni: ESA's Satellite Transport Protocol against TCP.
    STP = "stp";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_item_of_the_papers_is_there() {
        // The counts are those of the papers' index, and 472 is their sum.
        assert_eq!(PAPERS.iter().map(|paper| paper.counts.total()).sum::<usize>(), 472);
        for paper in PAPERS {
            let contents = paper.contents();
            let ids: BTreeSet<_> = contents.iter().map(|(id, _)| id.as_str()).collect();
            assert_eq!(ids.len(), contents.len(), "{}: ids are unique", paper.key);
            let Counts { topology, mechanism, experiment, table, figure, claim, decision } = paper.counts;
            let kinds = "NMETFCQ".chars().zip([topology, mechanism, experiment, table, figure, claim, decision]);
            for (kind, count) in kinds {
                let expected: BTreeSet<_> = (1..=count).map(|n| format!("{}-{kind}{n:02}", paper.letter)).collect();
                let start = format!("{}-{kind}", paper.letter);
                let found: BTreeSet<_> = ids.iter().filter(|id| id.starts_with(&start)).map(|&id| id.into()).collect();
                assert_eq!(found, expected, "{}, {kind}", paper.key);
            }
            assert!(contents.iter().all(|(_, text)| !text.is_empty()), "{}: each item has a text", paper.key);
        }
    }

    #[test]
    fn bounds_hold_what_is_published() {
        // Bounds that exclude the paper's own value are wrong.
        for claim in PAPERS.iter().flat_map(|paper| &paper.claims) {
            assert!(claim.low.zip(claim.high).is_none_or(|(low, high)| low <= high), "{}", claim.id);
            assert!(claim.value.is_none_or(|value| claim.holds_for(value)), "{}", claim.id);
            assert!(!claim.derivation.is_empty(), "{}", claim.id);
        }
        for item in PAPERS.iter().flat_map(|paper| &paper.items) {
            let Some(expected) = &item.expected else { continue };
            assert!(
                expected.low.is_some() || expected.high.is_some(),
                "{}: a comparison without bounds cannot fail",
                item.id
            );
            assert!(expected.value.is_none_or(|value| expected.bounds().hold(value)), "{}", item.id);
            assert!(!expected.derivation.is_empty(), "{}", item.id);
        }
    }

    #[test]
    fn printed_tables_are_complete() {
        // Rows times columns: 7 hosts, 5 rates, 10 trials, 3 statistics of 3 paths, 11 parameters, 3 numbers of 3
        // scenarios; 5 error rates of 2 protocols, and their ratio.
        let cells: Vec<_> = (1..=6).map(|n| ACTS.table(n).expect("six tables").cells.len()).collect();
        assert_eq!(cells, [7 * 5, 5 * 2, 10, 3 * 3, 11, 3 * 3]);
        let cells: Vec<_> = (1..=2).map(|n| STP.table(n).expect("two tables").cells.len()).collect();
        assert_eq!(cells, [5 * 2, 5]);
        assert_eq!(ACTS.figure("A-F06").expect("a figure").points.len(), 6);
        assert_eq!(ACTS.numbers.len(), 47);
        assert_eq!(HYBRID.table(1).expect("its parameters").cells.len(), 13);
        assert_eq!(STP.list("parameters").expect("its parameters").cells.len(), 16);
    }

    #[test]
    fn cells_are_found_by_row_and_column() {
        let table = STP.table(1).expect("table 1");
        assert_eq!(table.value("TCP", "1e-8"), Some(93003.11));
        // The last rate aborts all transfers.
        assert_eq!(table.cell("STP", "1e-4").map(|cell| (cell.printed.as_str(), cell.value)), Some(("NA", None)));
        assert_eq!(ACTS.table(5).expect("table 5").value("minimum RTO", "all"), Some(1.0));
        assert_eq!(ACTS.number("A-V14").and_then(|n| n.value), Some(534.0));
    }
}
