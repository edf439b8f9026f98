//! Counts the confirmed statistics of tables 3 to 14, per table and in total.
//!
//! Nine in ten of the published statistics should lie in the 90 % ranges of our samples. But they are correlated: a
//! table's quantiles come from the same runs, its columns have the same bursts, and three tables count the same flows.
//! So the bound comes from our own runs: many samples of 20 runs take the place of the paper, and for each the statistics
//! inside the ranges are counted.

use bentpipe_study::stats::Sample;

use crate::published::{OtherCell, TRANSAT_TABLES};
use crate::{Row, Verdict};

/// Share of the samples inside a range.
pub(super) const LEVEL: f64 = 0.9;

/// The position of the published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// In the range of our samples.
    Inside,
    /// We are slower.
    Slower,
    /// We are faster.
    Faster,
}

/// Counts of published statistics by position.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// In the range of our samples; we are slower; we are faster.
    sides: [usize; 3],
    /// Number with verdict `match` or `shape`: at least the size is right.
    sized: usize,
    /// As `sides`, with all times shifted by the difference of the runs without errors, if such a run is printed.
    moved: [usize; 3],
    /// Number inside ns-2's range, and number with such a range.
    ns2: [usize; 2],
    /// For each of our samples, the number of its statistics inside the ranges.
    drawn: Vec<usize>,
}

impl Counted {
    /// A count without published statistics. `drawn`: for each of our samples, the number of its statistics inside the
    /// ranges.
    pub(super) fn new(drawn: Vec<usize>) -> Self {
        Counted { drawn, ..Counted::default() }
    }

    /// Counts a cell; `ns2` has the published value and ns-2's result.
    pub(super) fn add(&mut self, side: Side, verdict: Verdict, moved: Option<Side>, (paper, ns2): (f64, OtherCell)) {
        self.sides[side as usize] += 1;
        self.sized += usize::from(matches!(verdict, Verdict::Match | Verdict::Shape));
        if let Some(side) = moved {
            self.moved[side as usize] += 1;
        }
        if let Some((low, high)) = ns2.range {
            self.ns2[0] += usize::from((low..=high).contains(&paper));
            self.ns2[1] += 1;
        }
    }

    /// Adds another count, whose samples are drawn with the same seeds.
    pub(super) fn merge(&mut self, other: &Counted) {
        for (sum, more) in self.sides.iter_mut().zip(other.sides) {
            *sum += more;
        }
        for (sum, more) in self.moved.iter_mut().zip(other.moved) {
            *sum += more;
        }
        for (sum, more) in self.ns2.iter_mut().zip(other.ns2) {
            *sum += more;
        }
        self.sized += other.sized;
        self.drawn.resize(other.drawn.len(), 0);
        for (sum, more) in self.drawn.iter_mut().zip(&other.drawn) {
            *sum += more;
        }
    }

    /// The 5 % and 95 % quantiles of the counts of our samples.
    fn expected(&self) -> (f64, f64) {
        let drawn = Sample::new(self.drawn.iter().map(|&n| n as f64).collect()).expect("samples are drawn");
        let tail = (1.0 - LEVEL) / 2.0;
        (drawn.quantile(tail), drawn.quantile(1.0 - tail))
    }

    fn verdict(&self) -> Verdict {
        let (min, _) = self.expected();
        if self.sides[0] as f64 >= min {
            Verdict::Match
        } else if self.sized as f64 >= min {
            Verdict::Shape
        } else {
            Verdict::Differs
        }
    }

    /// The row of the count: `match` if as many are inside as in our own samples; `shape` if as many have at least the
    /// right size.
    pub(super) fn row(&self, id: &str, title: &str, more: &str) -> Row {
        let [inside, slower, faster] = self.sides;
        let of = inside + slower + faster;
        let (min, max) = self.expected();
        let size = TRANSAT_TABLES.replications;
        let mut why = format!(
            "{inside} of {of} published statistics lie in the 90 % range of our samples of {size} runs; with such a sample in place of the paper {min:.0} to {max:.0} do, nine times in ten; outside, ours are slower in {slower} and faster in {faster}, and {} of {of} are within a factor of 1.5; ns-2's ranges hold {} of {}",
            self.sized, self.ns2[0], self.ns2[1],
        );
        let [same, above, below] = self.moved;
        if same + above + below > 0 {
            why += &format!(
                "; with our times shifted by the difference of the run without errors, {same} of {} are inside, slower {above}, faster {below}",
                same + above + below
            );
        }
        Row::new(id, format!("{title}; statistics inside our range"), None, Some(inside as f64), &format!("of {of}"))
            .within(Some(min), None)
            .judged(self.verdict(), format!("{why}; {more}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(sides: [usize; 3], sized: usize) -> Counted {
        // Samples count 46 to 55: the middle 90 % begin at 46.45.
        Counted { sides, sized, drawn: (46..56).collect(), ..Counted::default() }
    }

    #[test]
    fn the_count_decides() {
        let verdict = |sides, sized| counted(sides, sized).verdict();
        assert_eq!(verdict([47, 5, 4], 56), Verdict::Match);
        assert_eq!(verdict([46, 6, 4], 56), Verdict::Shape);
        assert_eq!(verdict([46, 6, 4], 46), Verdict::Differs);
    }

    #[test]
    fn tables_add_up() {
        let ns2 = OtherCell { value: 1.0, range: Some((0.5, 1.5)) };
        let mut all = Counted::default();
        for _ in 0..2 {
            let mut table = Counted { drawn: vec![1, 2], ..Counted::default() };
            table.add(Side::Inside, Verdict::Match, Some(Side::Faster), (1.0, ns2));
            table.add(Side::Slower, Verdict::Differs, None, (2.0, ns2));
            all.merge(&table);
        }
        assert_eq!((all.sides, all.moved, all.sized, all.ns2), ([2, 2, 0], [0, 0, 2], 2, [2, 4]));
        assert_eq!(all.drawn, [2, 4]);
        let row = all.row("T-T03", "a table", "so");
        assert_eq!((row.ours, row.unit.as_str(), row.verdict), (Some(2.0), "of 4", Verdict::Differs));
        assert!(row.why.starts_with("2 of 4 ") && row.why.contains("slower in 2 and faster in 0"), "{}", row.why);
    }
}
