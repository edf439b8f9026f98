//! HyStart++ (RFC 9406): leaves slow start when round trips grow, before the queue overflows.
//!
//! It needs several round-trip samples per round trip. With timestamps, each ACK brings one. Without them, a round trip
//! has only one sample, and slow start ends on a loss, as without HyStart++.

use crate::tcp::congestion::AckSample;
use crate::units::Duration;

/// Bounds of the round-trip growth that ends slow start; in between, a fraction of the round trip applies (RFC 9406
/// §4.3).
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
/// Minimum number of samples per round for a valid minimum.
const N_RTT_SAMPLE: u32 = 8;
/// The growth divisor of conservative slow start, and its duration in rounds.
pub(super) const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// The effect of an ACK on slow start. An ACK first opens the window and then counts for the search (RFC 9406 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It continues.
    Grow,
    /// It continues at a quarter of its growth.
    GrowSlowly,
    /// It is over after this ACK, which opens the window at a quarter of slow start's growth.
    Leave,
}

/// The search for the end of slow start.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// Sequence number whose ACK ends the round.
    window_end: u64,
    last_round_min_rtt: Option<Duration>,
    current_round_min_rtt: Option<Duration>,
    samples: u32,
    /// Conservative slow start: the round trip at its start, and the number of remaining rounds.
    css: Option<(Duration, u32)>,
}

impl HyStart {
    pub(super) fn new() -> Self {
        HyStart { window_end: 0, last_round_min_rtt: None, current_round_min_rtt: None, samples: 0, css: None }
    }

    /// Takes an ACK of new data in slow start.
    pub(super) fn on_ack(&mut self, ack: &AckSample) -> Verdict {
        let verdict = if self.css.is_some() { Verdict::GrowSlowly } else { Verdict::Grow };
        if let Some(rtt) = ack.rtt {
            self.samples += 1;
            self.current_round_min_rtt = Some(self.current_round_min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.judge();
        }
        if ack.snd_una < self.window_end {
            return verdict;
        }
        self.window_end = ack.snd_max;
        (self.last_round_min_rtt, self.current_round_min_rtt) = (self.current_round_min_rtt, None);
        self.samples = 0;
        //= RFC 9406 §4.2: "If the transition into CSS happens in the middle of a round, that partial round counts towards the
        //= limit"
        if let Some((_, rounds)) = &mut self.css {
            *rounds -= 1;
            if *rounds == 0 {
                return Verdict::Leave;
            }
        }
        verdict
    }

    fn judge(&mut self) {
        let Some(current) = self.current_round_min_rtt.filter(|_| self.samples >= N_RTT_SAMPLE) else { return };
        match self.css {
            // The round trip has fallen again: there was no queue.
            Some((baseline, _)) if current < baseline => self.css = None,
            Some(_) => {}
            None => {
                let Some(last) = self.last_round_min_rtt else { return };
                let thresh = last.div_floor(MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if current >= last + thresh {
                    self.css = Some((current, CSS_ROUNDS));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of `count` ACKs, each with a round trip in milliseconds. Returns the verdict of each.
    fn round(hystart: &mut HyStart, una: &mut u64, count: u64, rtt: u64) -> Vec<Verdict> {
        // The ACK of everything outstanding at the round's first ACK ends the round.
        (0..count)
            .map(|_| {
                *una += 1000;
                let rtt = Some(Duration::from_millis(rtt));
                hystart.on_ack(&AckSample {
                    acked: 1000,
                    snd_una: *una,
                    snd_max: *una + count * 1000,
                    rtt,
                    ..AckSample::default()
                })
            })
            .collect()
    }

    /// RFC 9406 §4.2, §4.3 with a round trip of 100 ms: the threshold is 100/8 = 12.5 ms.
    #[test]
    fn a_growing_round_trip_slows_down_and_ends_slow_start() {
        let (mut hystart, mut una) = (HyStart::new(), 0);
        for rtt in [100, 112] {
            assert!(round(&mut hystart, &mut una, 20, rtt).iter().all(|&verdict| verdict == Verdict::Grow), "{rtt} ms");
        }
        let verdicts = round(&mut hystart, &mut una, 20, 126);
        let slow = verdicts.iter().position(|&verdict| verdict == Verdict::GrowSlowly).expect("112 + 14 is reached");
        // The first ACK still belongs to the round before, and the eighth sample of this round opens the window as always.
        assert_eq!(slow, 9, "after the eighth sample of the round");
        let mut rounds = 1;
        while !round(&mut hystart, &mut una, 20, 126).contains(&Verdict::Leave) {
            rounds += 1;
            assert!(rounds <= 6, "five rounds at most");
        }
        // The round in which it began counts (RFC 9406 §4.2). The first ACK of a call still belongs to the round before.
        assert_eq!(rounds, 5);
    }

    #[test]
    fn a_passing_growth_is_forgiven() {
        let (mut hystart, mut una) = (HyStart::new(), 0);
        round(&mut hystart, &mut una, 20, 100);
        round(&mut hystart, &mut una, 20, 100);
        assert_eq!(round(&mut hystart, &mut una, 20, 130).last(), Some(&Verdict::GrowSlowly));
        round(&mut hystart, &mut una, 20, 100);
        assert_eq!(round(&mut hystart, &mut una, 20, 100).last(), Some(&Verdict::Grow));
    }

    /// The threshold is at most 16 ms, however long the round trip is: over GEO, 15 ms more mean nothing; 16 ms do.
    #[test]
    fn over_geo_sixteen_milliseconds_count() {
        for (more, slows) in [(15, false), (16, true)] {
            let (mut hystart, mut una) = (HyStart::new(), 0);
            round(&mut hystart, &mut una, 20, 600);
            round(&mut hystart, &mut una, 20, 600);
            assert_eq!(
                round(&mut hystart, &mut una, 20, 600 + more).contains(&Verdict::GrowSlowly),
                slows,
                "{more} ms"
            );
        }
    }

    #[test]
    fn without_samples_slow_start_goes_on() {
        let mut hystart = HyStart::new();
        for n in 1..1000 {
            let ack = AckSample { acked: 1000, snd_una: 1000 * n, snd_max: 1000 * n + 50_000, ..AckSample::default() };
            assert_eq!(hystart.on_ack(&ack), Verdict::Grow);
        }
    }

    /// The threshold is at least 4 ms: with a round trip of 10 ms, 3 ms more mean nothing.
    #[test]
    fn on_a_short_path_four_milliseconds_count() {
        for (more, slows) in [(3, false), (4, true)] {
            let (mut hystart, mut una) = (HyStart::new(), 0);
            round(&mut hystart, &mut una, 20, 10);
            round(&mut hystart, &mut una, 20, 10);
            let verdicts = round(&mut hystart, &mut una, 20, 10 + more);
            assert_eq!(verdicts.contains(&Verdict::GrowSlowly), slows, "{more} ms");
        }
    }
}
