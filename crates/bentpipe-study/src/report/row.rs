//! One line of a comparison.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The verdict on an item of a paper.
///
/// `Match`, `Shape` and `Differs` are results of a comparison: a number or an ordering of ours was compared with the
/// paper's in this run. The other three involve no comparison. The order is from best to worst: the worst of several
/// verdicts is their maximum. `Built` and `Decision` are never worse than a comparison, and `Missing` is worse than all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A mechanism, a topology or a drawing that exists; `why` names the tests and scenarios that use it.
    Built,
    /// Our choice where the paper is silent or contradicts itself; `why` says where it is implemented.
    Decision,
    /// Compared: within the bounds.
    Match,
    /// Compared: the number is out of bounds, but the ordering or the approximate size is right.
    Shape,
    /// Compared: not confirmed; `why` gives the cause or says "not explained".
    Differs,
    /// Absent or incomplete; `why` says what is missing.
    Missing,
}

impl Verdict {
    /// All verdicts, comparisons first, in the order of lists and counts.
    pub const ALL: [Verdict; 6] =
        [Verdict::Match, Verdict::Shape, Verdict::Differs, Verdict::Built, Verdict::Decision, Verdict::Missing];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Match => "match",
            Verdict::Shape => "shape",
            Verdict::Differs => "differs",
            Verdict::Built => "built",
            Verdict::Decision => "decision",
            Verdict::Missing => "missing",
        }
    }

    /// Its meaning in words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Verdict::Match => {
                "compared in this run: the number or the ordering is within bounds that the reason derives"
            }
            Verdict::Shape => "compared: out of bounds, but the ordering or the approximate size is right",
            Verdict::Differs => {
                "compared: neither the number nor the ordering agrees; the reason gives the cause, or says that it is not explained"
            }
            Verdict::Built => {
                "a mechanism, a topology or a drawing; nothing is compared. The reason names the test or the scenario that uses \
                 it, and a test checks that these exist"
            }
            Verdict::Decision => "our choice where the paper is silent or contradicts itself",
            Verdict::Missing => "absent or incomplete",
        }
    }

    /// True if a number or an ordering of ours was compared.
    pub const fn is_compared(self) -> bool {
        matches!(self, Verdict::Match | Verdict::Shape | Verdict::Differs)
    }
}

/// Number of rows with each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// [`Verdict::Match`].
    #[serde(rename = "match")]
    pub matches: usize,
    /// [`Verdict::Shape`].
    pub shape: usize,
    /// [`Verdict::Differs`].
    pub differs: usize,
    /// [`Verdict::Built`].
    pub built: usize,
    /// [`Verdict::Decision`].
    pub decision: usize,
    /// [`Verdict::Missing`].
    pub missing: usize,
}

impl Tally {
    /// Counts the verdicts of these rows.
    pub fn of<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Self {
        let mut tally = Tally::default();
        for row in rows {
            *tally.count_mut(row.verdict) += 1;
        }
        tally
    }

    fn count_mut(&mut self, verdict: Verdict) -> &mut usize {
        match verdict {
            Verdict::Match => &mut self.matches,
            Verdict::Shape => &mut self.shape,
            Verdict::Differs => &mut self.differs,
            Verdict::Built => &mut self.built,
            Verdict::Decision => &mut self.decision,
            Verdict::Missing => &mut self.missing,
        }
    }

    /// The counts in the order of [`Verdict::ALL`].
    pub const fn counts(&self) -> [usize; 6] {
        [self.matches, self.shape, self.differs, self.built, self.decision, self.missing]
    }

    /// All rows.
    pub fn total(&self) -> usize {
        self.counts().iter().sum()
    }

    /// Rows with a comparison.
    pub const fn compared(&self) -> usize {
        self.matches + self.shape + self.differs
    }
}

/// `5 rows: 3 compared (1 match, 1 shape, 1 differs), 1 built, 1 decision, 0 missing`.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { matches, shape, differs, built, decision, missing } = self;
        write!(
            f,
            "{} rows: {} compared ({matches} match, {shape} shape, {differs} differs), {built} built, {decision} decision, \
             {missing} missing",
            self.total(),
            self.compared()
        )
    }
}

/// A published value or statement, and ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The item's id: `T-T01/50-on/Ref`, `T-C03`.
    pub id: String,
    /// The item in words.
    pub item: String,
    /// The published number, if any.
    pub paper: Option<f64>,
    /// Our number, if any.
    pub ours: Option<f64>,
    /// Lower bound, or lower end of the range of our statistic in samples of the paper's size.
    pub low: Option<f64>,
    /// Upper bound or end.
    pub high: Option<f64>,
    /// Unit of the four numbers.
    pub unit: String,
    /// `ours / paper`, if meaningful.
    pub ratio: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// Its reason: the tolerance and its origin, or the cause of the difference.
    pub why: String,
}

impl Row {
    /// A row without bounds or reason. The ratio is set if both numbers exist and the published one is not 0.
    pub fn new(
        id: impl Into<String>,
        item: impl Into<String>,
        paper: Option<f64>,
        ours: Option<f64>,
        unit: &str,
    ) -> Self {
        let ratio = match (paper, ours) {
            (Some(paper), Some(ours)) if paper != 0.0 => Some(ours / paper),
            _ => None,
        };
        Row {
            id: id.into(),
            item: item.into(),
            paper,
            ours,
            low: None,
            high: None,
            unit: unit.into(),
            ratio,
            verdict: Verdict::Differs,
            why: String::new(),
        }
    }

    /// The row with these bounds.
    pub fn within(self, low: Option<f64>, high: Option<f64>) -> Self {
        Row { low, high, ..self }
    }

    /// The row with this verdict.
    pub fn judged(self, verdict: Verdict, why: impl Into<String>) -> Self {
        Row { verdict, why: why.into(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_agreed_fields() {
        let row = Row::new("T-C04", "no drops", Some(0.0), Some(2.0), "packets").within(None, Some(0.0));
        assert_eq!(row.ratio, None, "nothing is a multiple of zero");
        let json = serde_json::to_value(row.judged(Verdict::Shape, "two")).expect("plain values");
        let expected = serde_json::json!({
            "id": "T-C04", "item": "no drops", "paper": 0.0, "ours": 2.0, "low": null, "high": 0.0,
            "unit": "packets", "ratio": null, "verdict": "shape", "why": "two"
        });
        assert_eq!(json, expected);
        assert_eq!(Row::new("x", "", Some(4.0), Some(5.0), "s").ratio, Some(1.25));
    }

    #[test]
    fn each_verdict_has_its_name_and_its_count() {
        let rows = Verdict::ALL.map(|verdict| Row::new(verdict.name(), "", None, None, "").judged(verdict, ""));
        for row in &rows {
            assert_eq!(serde_json::to_value(row.verdict).expect("a word"), row.id.as_str());
        }
        let tally = Tally::of(rows.iter().chain(&rows[1..3]));
        assert_eq!(tally.counts(), [1, 2, 2, 1, 1, 1]);
        assert_eq!(
            tally.to_string(),
            "8 rows: 5 compared (1 match, 2 shape, 2 differs), 1 built, 1 decision, 1 missing"
        );
        assert_eq!(tally.compared(), rows.iter().chain(&rows[1..3]).filter(|row| row.verdict.is_compared()).count());
        // What exists or was decided never hides a comparison; what is missing is worse than each.
        assert_eq!([Verdict::Built, Verdict::Match, Verdict::Decision].into_iter().max(), Some(Verdict::Match));
        assert_eq!([Verdict::Differs, Verdict::Missing].into_iter().max(), Some(Verdict::Missing));
    }
}
