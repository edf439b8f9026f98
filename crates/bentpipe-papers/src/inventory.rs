//! What a paper contains besides numbers and statements (topologies, mechanisms, experiments, decisions), and where each
//! can be seen.
//!
//! Each study has a table, id -> [`Seen`]; [`rows`] turns it into rows, and [`check`] holds it to the paper in a test.

use crate::lab::Lab;
use crate::published::{Paper, with};
use crate::reproduce::ReproduceError;
use crate::{Row, Verdict};

/// Where something can be seen.
pub(crate) enum Seen {
    /// It works; the words say where. For a decision: where it is embodied.
    Works(&'static str),
    /// It is there in part, or decided otherwise; the words say how and why.
    Partly(&'static str),
    /// It is not there; the words say why.
    Missing(&'static str),
    /// These rows show it; it fares as the worst of them.
    Rows(&'static [&'static str]),
    /// Shown by the rows whose id begins with this one and a slash; it fares as the worst of them.
    Parts(&'static str),
    /// Runs that the paper mentions without printing their numbers.
    Unprinted(fn(&Lab<'_>) -> Result<String, ReproduceError>),
}

/// Id, what it is, and what more there is to say about it: what a table of [`Seen`] answers for, in its order.
fn asked(paper: &Paper) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
    let items = paper.items.iter().map(|i| (i.id.as_str(), i.text.as_str(), i.detail.as_deref()));
    items.chain(paper.decisions.iter().map(|d| (d.id.as_str(), d.text.as_str(), d.reason.as_deref())))
}

/// A row for each item and each decision of the paper; `others` are the rows of tables, figures and claims.
pub(crate) fn rows(
    paper: &Paper,
    seen: &[(&str, Seen)],
    lab: &Lab<'_>,
    others: &[Row],
) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for ((id, text, more), (known, seen)) in asked(paper).zip(seen) {
        debug_assert_eq!(id, *known, "the tests hold both lists to each other");
        let (verdict, why) = match seen {
            Seen::Works(at) => (Verdict::Match, (*at).to_owned()),
            Seen::Partly(what) => (Verdict::Shape, (*what).to_owned()),
            Seen::Missing(why) => (Verdict::Differs, (*why).to_owned()),
            Seen::Rows(ids) => (worst(ids, others), format!("shown by {}", ids.join(", "))),
            Seen::Parts(of) => {
                let parts: Vec<_> = others.iter().filter(|row| is_part(&row.id, of)).collect();
                let verdict = parts.iter().map(|row| row.verdict).max().unwrap_or(Verdict::Differs);
                let count = |verdict| parts.iter().filter(|row| row.verdict == verdict).count();
                let counts = [Verdict::Match, Verdict::Shape, Verdict::Differs].map(count);
                let [right, shape, wrong] = counts;
                (verdict, format!("shown by the rows {of}/…: {right} match, {shape} shape, {wrong} differ"))
            }
            Seen::Unprinted(runs) => (Verdict::Match, runs(lab)?),
        };
        rows.push(Row::new(id, with(text, more), None, None, "").judged(verdict, why));
    }
    Ok(rows)
}

fn is_part(id: &str, of: &str) -> bool {
    id.strip_prefix(of).is_some_and(|rest| rest.starts_with('/'))
}

fn worst(ids: &[&str], others: &[Row]) -> Verdict {
    let verdict = |id: &&str| others.iter().find(|row| row.id == **id).map_or(Verdict::Differs, |row| row.verdict);
    ids.iter().map(verdict).max().unwrap_or(Verdict::Differs)
}

/// Holds a table to its paper: each item and each decision once, in the paper's order, and rows that are there.
#[cfg(test)]
pub(crate) fn check(paper: &Paper, seen: &[(&str, Seen)]) {
    let asked: Vec<_> = asked(paper).map(|(id, _, _)| id).collect();
    let answered: Vec<_> = seen.iter().map(|(id, _)| *id).collect();
    assert_eq!(asked, answered);
    let contents = paper.contents();
    let shown = |id: &str| id.contains('/') || contents.iter().any(|(known, _)| known == id);
    for (id, seen) in seen {
        match seen {
            Seen::Works(words) | Seen::Partly(words) | Seen::Missing(words) => assert!(!words.is_empty(), "{id}"),
            Seen::Rows(ids) => {
                assert!(!ids.is_empty(), "{id}");
                ids.iter().for_each(|row| assert!(shown(row), "{id} is shown by {row}, which is no row"));
            }
            Seen::Parts(of) => assert!(asked.contains(of), "{id}"),
            Seen::Unprinted(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::STP;
    use crate::reproduce::Options;

    #[test]
    fn a_row_says_what_it_is_and_fares_as_the_worst_that_shows_it() {
        let judged = |id: &str, verdict| Row::new(id, "", None, None, "").judged(verdict, "");
        let others = [judged("S-T01", Verdict::Match), judged("S-C02", Verdict::Shape)];
        let options = Options::default();
        let lab = Lab::new(&options, &|_, _, _| ());
        let seen = [
            ("S-N01", Seen::Rows(&["S-T01", "S-C02"])),
            ("S-N02", Seen::Rows(&["S-T01", "S-C99"])),
            ("S-M01", Seen::Unprinted(|_| Ok("seen".to_owned()))),
        ];
        let rows = rows(&STP, &seen, &lab, &others).expect("nothing runs");
        let verdicts: Vec<_> = rows.iter().map(|row| row.verdict).collect();
        assert_eq!(verdicts, [Verdict::Shape, Verdict::Differs, Verdict::Match], "a row that is missing shows nothing");
        assert!(rows[0].item.ends_with("; error-prone satellite link, no contention"), "{}", rows[0].item);
        assert_eq!(rows[0].why, "shown by S-T01, S-C02");
    }
}
