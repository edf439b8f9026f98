//! One line of a comparison.

use serde::{Deserialize, Serialize};

/// How a published statement fares with us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Borne out within its tolerance.
    Match,
    /// Not the number, but the ordering or the size.
    Shape,
    /// Not borne out; `why` says why, as far as that is known.
    Differs,
}

impl Verdict {
    /// As it stands in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Match => "match",
            Verdict::Shape => "shape",
            Verdict::Differs => "differs",
        }
    }
}

/// A published value or statement, and ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What is compared, in the numbering of the paper's index: `T-T01/50-on/Ref`, `T-C03`.
    pub id: String,
    /// The same in words.
    pub item: String,
    /// The published number, where there is one.
    pub paper: Option<f64>,
    /// Our number, where there is one.
    pub ours: Option<f64>,
    /// Lower end of what is allowed, or of the range of our statistic in samples of the paper's size.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Unit of the four numbers.
    pub unit: String,
    /// `ours / paper`, where that means something.
    pub ratio: Option<f64>,
    /// The judgement.
    pub verdict: Verdict,
    /// Its reason: the tolerance and where it comes from, or what makes the difference.
    pub why: String,
}

impl Row {
    /// A row without bounds or reason; the ratio follows where both numbers are there and the published one is not 0.
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

    /// The row with this judgement.
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
}
