//! A limit on how often something may happen.

use bentpipe_engine::units::{Duration, Time};

/// A token bucket: allows a burst at once, and one more in each `refill`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    tokens: u32,
    max: u32,
    refill: Duration,
    since: Time,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(max: u32, refill: Duration, now: Time) -> Self {
        Bucket { tokens: max, max, refill, since: now }
    }

    /// Takes a token. Returns false if there is none.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        let fresh = now.saturating_since(self.since).as_nanos() / self.refill.as_nanos();
        if fresh > 0 {
            self.tokens = self.tokens.saturating_add(fresh.min(self.max.into()) as u32).min(self.max);
            // The fraction of a token that has accumulated is kept.
            self.since += self.refill.saturating_mul(fresh);
        }
        let may = self.tokens > 0;
        self.tokens -= u32::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If calls are more frequent than tokens, the tokens limit them.
    #[test]
    fn a_burst_and_then_one_in_each_interval() {
        let ms = Duration::from_millis;
        let mut bucket = Bucket::new(3, ms(10), Time::ZERO);
        let mut taken =
            |times: std::ops::Range<u64>| times.filter(|&at| bucket.take(Time::ZERO + ms(at))).collect::<Vec<_>>();
        assert_eq!(taken(0..5), [0, 1, 2]);
        assert_eq!(taken(5..41), [10, 20, 30, 40]);
        let mut taken = |times: &[u64]| times.iter().filter(|&&at| bucket.take(Time::ZERO + ms(at))).count();
        assert_eq!(taken(&[56, 57, 62, 63, 72]), 3, "at 50, 60 and 70");
        assert_eq!(taken(&[1000; 5]), 3, "no more than a burst is kept");
    }
}
