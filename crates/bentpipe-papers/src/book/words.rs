//! How the book shows verdicts and numbers.

use crate::chapter::number;
use crate::{Row, Verdict};

/// A sign for each verdict, so that verdicts differ without colour.
pub(super) const fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Match => "✓",
        Verdict::Shape => "≈",
        Verdict::Differs => "✗",
        Verdict::Built => "■",
        Verdict::Decision => "◆",
        Verdict::Missing => "?",
    }
}

/// The sign alone.
pub(super) fn mark(verdict: Verdict) -> String {
    format!("<span class=\"sign {}\">{}</span>", verdict.name(), sign(verdict))
}

/// Sign and name.
pub(super) fn chip(verdict: Verdict) -> String {
    let name = verdict.name();
    format!("<span class=\"chip {name}\">{} {name}</span>", sign(verdict))
}

/// A number, or a dash.
pub(super) fn number_or_dash(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), number)
}

/// The bounds for our number, as text, if it has any.
pub(super) fn range(row: &Row) -> Option<String> {
    match (row.low, row.high) {
        (None, None) => None,
        (Some(low), None) => Some(format!("at least {}", number(low))),
        (None, Some(high)) => Some(format!("at most {}", number(high))),
        (Some(low), Some(high)) if low == high => Some(number(low)),
        (Some(low), Some(high)) => Some(format!("{} to {}", number(low), number(high))),
    }
}
