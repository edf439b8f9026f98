//! The published values, as they stand in `studies/<paper>/expected.toml`. They are part of the binary: nothing has to be
//! installed beside it.
//!
//! Reading order: [`Paper`], what is the same for all of them; `transat`, the fourteen tables of that paper and what ns-2
//! gives for them.

mod claim;
mod figure;
mod transat;

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::Deserialize;

pub use claim::{Bounds, Claim, Range};
pub use figure::{Point, PublishedFigure};
pub use transat::{OtherCell, OtherSimulator, PublishedTable, TRANSAT_NS2, TRANSAT_TABLES, Tables};

/// Everything that a paper says.
#[derive(Clone, Debug, Deserialize)]
pub struct Paper {
    /// Its short name: `transat`.
    pub key: String,
    /// What its ids begin with.
    pub letter: String,
    /// Its title.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// How many items of each kind it has.
    pub counts: Counts,
    /// The row whose reason heads its chapter.
    #[serde(default)]
    pub lead: Option<String>,
    /// Its tables by number, `T01`, and other lists of numbers by name.
    #[serde(default)]
    table: IndexMap<String, Table>,
    /// Numbers that its text prints.
    #[serde(default, rename = "number")]
    pub numbers: Vec<Number>,
    /// The statements.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    /// The figures.
    #[serde(rename = "figure")]
    pub figures: Vec<PublishedFigure>,
    /// Topologies, mechanisms and experiments.
    #[serde(rename = "item")]
    pub items: Vec<Item>,
    /// What was decided where it is silent or at odds with itself.
    #[serde(rename = "decision")]
    pub decisions: Vec<Decision>,
}

/// How many of each kind the index of the papers counts.
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
    /// What it shows.
    pub title: String,
    /// Its cells, in the order of the print. The tables of `transat` have none here but rows in [`Tables`].
    #[serde(default)]
    pub cells: Vec<Cell>,
    /// How far our cells may be from the printed ones, by name.
    #[serde(default)]
    limits: IndexMap<String, f64>,
    /// Where these come from.
    #[serde(default)]
    pub derivation: String,
}

impl Table {
    /// The bound of that name.
    ///
    /// # Panics
    /// The table has none of that name: a slip in `make_expected.py`.
    pub fn limit(&self, name: &str) -> f64 {
        *self.limits.get(name).unwrap_or_else(|| panic!("table `{}` has no limit `{name}`", self.title))
    }

    /// The cell of that row and column.
    pub fn cell(&self, row: &str, column: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.row == row && cell.column == column)
    }

    /// The number in the cell of that row and column.
    pub fn value(&self, row: &str, column: &str) -> Option<f64> {
        self.cell(row, column)?.value
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Deserialize)]
pub struct Cell {
    /// Head of its row.
    pub row: String,
    /// Head of its column.
    pub column: String,
    /// As it is printed.
    pub printed: String,
    /// The same as a number, where it is one.
    pub value: Option<f64>,
    /// Unit of the number.
    #[serde(default)]
    pub unit: String,
    /// What has to be known about it.
    pub note: Option<String>,
}

/// A number that the text of a paper prints.
#[derive(Clone, Debug, Deserialize)]
pub struct Number {
    /// Its id.
    pub id: String,
    /// What it is.
    pub text: String,
    /// As it is printed.
    pub printed: String,
    /// The same as a number, where it is one.
    pub value: Option<f64>,
    /// Unit of the number.
    #[serde(default)]
    pub unit: String,
    /// Under which conditions.
    pub conditions: Option<String>,
    /// Where it comes from, and whether it is consistent with the others.
    pub note: Option<String>,
    /// The section in which it stands.
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
    /// More about it.
    pub detail: Option<String>,
    /// For an experiment whose numbers the paper does not print: what must come out, by the paper's words.
    pub expected: Option<Expected>,
}

/// What a number of ours is compared with where the paper says something that is no claim of its own.
#[derive(Clone, Debug, Deserialize)]
pub struct Expected {
    /// The number, where one is printed.
    pub value: Option<f64>,
    /// Least value that bears the paper out.
    pub low: Option<f64>,
    /// The greatest.
    pub high: Option<f64>,
    /// Least and greatest value that have its size or its ordering.
    pub shape: Option<Range>,
    /// Unit of the numbers.
    pub unit: String,
    /// What is compared, and where the bounds come from.
    pub derivation: String,
}

impl Expected {
    /// The bounds of the number that is compared.
    pub fn bounds(&self) -> Bounds {
        Bounds { low: self.low, high: self.high, shape: self.shape }
    }
}

/// What was decided where a paper is silent or at odds with itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Decision {
    /// Its id in the index of the papers.
    pub id: String,
    /// The decision.
    pub text: String,
    /// Why.
    pub reason: Option<String>,
}

impl Paper {
    fn read(text: &str) -> Self {
        toml::from_str(text).expect("checked by the tests")
    }

    /// Table `number`, from 1.
    pub fn table(&self, number: u8) -> Option<&Table> {
        self.table.get(&format!("T{number:02}"))
    }

    /// A list of numbers that is no numbered table: `parameters`.
    pub fn list(&self, name: &str) -> Option<&Table> {
        self.table.get(name)
    }

    /// The claim of that id.
    pub fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|c| c.id == id)
    }

    /// The figure of that id.
    pub fn figure(&self, id: &str) -> Option<&PublishedFigure> {
        self.figures.iter().find(|f| f.id == id)
    }

    /// The number of the text of that id.
    pub fn number(&self, id: &str) -> Option<&Number> {
        self.numbers.iter().find(|n| n.id == id)
    }

    /// How many numbered tables it has.
    pub fn last_table(&self) -> u8 {
        self.counts.table as u8
    }

    /// How many figures it has.
    pub fn last_figure(&self) -> u8 {
        self.counts.figure as u8
    }

    /// What it contains, under its id and in words: tables, figures, claims, items, decisions.
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

/// A text and more about it, in one line.
pub(crate) fn with(text: &str, more: Option<&str>) -> String {
    more.map_or(text.to_owned(), |more| format!("{text}; {more}"))
}

macro_rules! papers {
    ($($(#[$doc:meta])* $name:ident = $key:literal;)*) => {
        $($(#[$doc])* pub static $name: LazyLock<Paper> =
            LazyLock::new(|| Paper::read(include_str!(concat!("../../studies/", $key, "/expected.toml"))));)*
        /// All of them.
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
            assert!(contents.iter().all(|(_, text)| !text.is_empty()), "{}: each says what it is", paper.key);
        }
    }

    #[test]
    fn bounds_hold_what_is_published() {
        // A claim that its own paper does not bear out is a slip of ours.
        for claim in PAPERS.iter().flat_map(|paper| &paper.claims) {
            assert!(claim.low.zip(claim.high).is_none_or(|(low, high)| low <= high), "{}", claim.id);
            assert!(claim.value.is_none_or(|value| claim.holds_for(value)), "{}", claim.id);
            assert!(!claim.derivation.is_empty(), "{}", claim.id);
        }
        for item in PAPERS.iter().flat_map(|paper| &paper.items) {
            let Some(expected) = &item.expected else { continue };
            assert!(
                expected.low.is_some() || expected.high.is_some(),
                "{}: what cannot fail is no comparison",
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
