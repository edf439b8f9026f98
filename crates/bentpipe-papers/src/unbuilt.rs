//! What no study answers for yet: a row for each, so that nothing of a paper is forgotten silently.

use crate::published::Paper;
use crate::reproduce::Options;
use crate::{Row, Verdict};

/// Why such a row differs.
pub(crate) const NOT_BUILT: &str = "not built yet";

/// Rows for those items of the paper that were asked for and that `rows` has nothing of.
pub(crate) fn rest(paper: &Paper, options: &Options, rows: &[Row]) -> Vec<Row> {
    let missing = |id: &str| options.asks_for(paper, id) && !rows.iter().any(|row| row.id == id);
    let contents = paper.contents().into_iter().filter(|(id, _)| missing(id));
    contents
        .map(|(id, text)| {
            let row = match paper.claim(&id) {
                Some(claim) => Row::new(id, text, claim.value, None, &claim.unit).within(claim.low, claim.high),
                None => Row::new(id, text, None, None, ""),
            };
            row.judged(Verdict::Differs, NOT_BUILT)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::STP;

    #[test]
    fn what_has_a_row_is_left_out() {
        let done = [Row::new("S-C02", "", None, None, "").judged(Verdict::Match, "x")];
        let rest = rest(&STP, &Options::default(), &done);
        assert_eq!(rest.len(), STP.counts.total() - 1);
        assert!(rest.iter().all(|row| row.id != "S-C02" && row.verdict == Verdict::Differs));
        let claim = rest.iter().find(|row| row.id == "S-C03").expect("a claim");
        assert_eq!((claim.paper, claim.unit.as_str()), (Some(663.47), "kbit/s"));
    }

    #[test]
    fn one_table_is_one_row() {
        let rest = rest(&STP, &Options { table: Some(2), ..Options::default() }, &[]);
        assert_eq!(rest.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["S-T02"]);
    }
}
