//! The remaining time of a sweep.

use std::time::Duration;

use crate::plan::Progress;

/// Time spent on runs of each candidate, in this call.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    spent: Vec<(Duration, u32)>,
    threads: u32,
}

impl Estimate {
    pub(crate) fn new(candidates: usize, threads: usize) -> Self {
        Estimate { spent: vec![(Duration::ZERO, 0); candidates], threads: threads.max(1) as u32 }
    }

    pub(crate) fn add(&mut self, candidate: usize, took: Duration) {
        self.spent[candidate].0 += took;
        self.spent[candidate].1 += 1;
    }

    /// Maximum time to the end if each candidate's remaining runs take as long as its previous ones. `None` before each
    /// candidate has had a run.
    pub(crate) fn left(&self, progress: &Progress) -> Option<Duration> {
        let means: Option<Vec<Duration>> = self.spent.iter().map(|(time, runs)| time.checked_div(*runs)).collect();
        let mean = means?.iter().sum::<Duration>() / self.spent.len() as u32;
        let runs = progress.at_most.saturating_sub(progress.done);
        Some(mean.mul_f64(runs as f64 / f64::from(self.threads)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_runs_so_far() {
        let mut estimate = Estimate::new(2, 4);
        let progress = Progress { done: 20, at_most: 100, points_done: 0, points: 1 };
        estimate.add(0, Duration::from_secs(1));
        assert_eq!(estimate.left(&progress), None, "the other candidate may be slow");
        estimate.add(1, Duration::from_secs(3));
        // 80 runs of 2 s on four threads.
        assert_eq!(estimate.left(&progress), Some(Duration::from_secs(40)));
    }
}
