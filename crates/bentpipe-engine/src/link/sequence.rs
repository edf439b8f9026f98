//! Losses by packet number instead of time: the models of the `minei` paper, §5.3.
//!
//! This departs from the rule that a channel's state is a process in time. As in the paper, a packet's loss depends on
//! the previous packet, however long ago that was. The draw is indexed by the packet's number on this link, so all
//! variants in a comparison have the same pattern of packet positions.

use alloc::boxed::Box;

use super::config::PacketBursts;
use crate::stream::TimeNoise;

/// Words of 64 packets whose fates are kept. If more wait when the link's settings change, the first of them count as not
/// lost by number.
const KEPT_WORDS: usize = 1024;

/// The state of such losses.
#[derive(Clone, Debug)]
pub(super) struct PacketSequence {
    config: PacketBursts,
    noise: TimeNoise,
    /// Number of packets so far.
    number: u64,
    /// True if the last packet was lost.
    in_burst: bool,
    /// Remaining losses of a run of fixed length.
    left: u32,
    /// A bit for each of the last packets, by number: true if it was lost.
    lost: Box<[u64; KEPT_WORDS]>,
}

/// The word and the bit of a packet.
fn place(number: u64) -> (usize, u64) {
    ((number / 64) as usize % KEPT_WORDS, 1 << (number % 64))
}

impl PacketSequence {
    pub(super) fn named(config: PacketBursts, seed: u64, name: &str) -> Self {
        let noise = TimeNoise::named(seed, name);
        PacketSequence { config, noise, number: 0, in_burst: false, left: 0, lost: Box::new([0; KEPT_WORDS]) }
    }

    /// Goes on where the losses of earlier settings are.
    pub(super) fn go_on(&mut self, before: &PacketSequence) {
        (self.number, self.in_burst, self.left) = (before.number, before.in_burst, before.left);
        self.lost.clone_from(&before.lost);
    }

    /// Returns true if the packet `back` packets before the next one was lost.
    pub(super) fn has_lost(&self, back: u64) -> bool {
        let number = self.number.checked_sub(back).filter(|_| back <= 64 * KEPT_WORDS as u64);
        number.map(place).is_some_and(|(word, bit)| self.lost[word] & bit != 0)
    }

    /// Returns true if the next packet is lost.
    pub(super) fn loses_next(&mut self) -> bool {
        let lost = self.draw();
        let (word, bit) = place(self.number);
        self.lost[word] = self.lost[word] & !bit | if lost { bit } else { 0 };
        self.number += 1;
        lost
    }

    fn draw(&mut self) -> bool {
        let draw = self.noise.at(self.number, 0);
        match self.config {
            PacketBursts::Conditional { start, again } => {
                let probability = if self.in_burst { start.get().max(again.get()) } else { start.get() };
                self.in_burst = draw < probability;
                self.in_burst
            }
            PacketBursts::Runs { start, length } => {
                if self.left == 0 && draw < start.get() {
                    self.left = length;
                }
                let lost = self.left > 0;
                self.left -= lost as u32;
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Probability;

    /// The fates of the last 65 536 packets are known, and those before count as arrived.
    #[test]
    fn fates_are_kept() {
        let config = PacketBursts::Runs { start: probability(0.3), length: 3 };
        let mut sequence = PacketSequence::named(config, 1, "up");
        let fates: Vec<bool> = (0..100_000).map(|_| sequence.loses_next()).collect();
        let kept = 64 * KEPT_WORDS as u64;
        for back in 1..=kept {
            assert_eq!(sequence.has_lost(back), fates[100_000 - back as usize], "{back}");
        }
        assert!((kept + 1..=100_001).all(|back| !sequence.has_lost(back)));
    }

    fn probability(value: f64) -> Probability {
        Probability::new(value).expect("in range")
    }

    fn losses(config: PacketBursts, seed: u64, count: usize) -> Vec<bool> {
        let mut sequence = PacketSequence::named(config, seed, "up");
        (0..count).map(|_| sequence.loses_next()).collect()
    }

    /// Lengths of the runs of losses.
    fn runs(lost: &[bool]) -> Vec<usize> {
        lost.split(|lost| !lost).map(<[bool]>::len).filter(|length| *length > 0).collect()
    }

    #[test]
    fn after_a_loss_another_is_as_likely_as_the_factor_says() {
        let config = PacketBursts::Conditional { start: probability(0.01), again: probability(0.3) };
        let n = 400_000;
        let lost = losses(config, 3, n);
        let runs = runs(&lost);
        // Runs begin with probability 0.01 after each packet that arrives, and continue with 0.3: geometric, mean
        // 1/(1-0.3). Of n packets, about n * 0.01 * (1 - 0.0141) begin a run: 3943, deviation sqrt(3943) = 63; the
        // tolerance is four of these.
        assert!((runs.len() as f64 - 3943.0).abs() < 4.0 * 63.0, "{}", runs.len());
        let mean = runs.iter().sum::<usize>() as f64 / runs.len() as f64;
        // The deviation of a run is sqrt(0.3)/0.7 = 0.78, that of their mean 0.78/sqrt(3943) = 0.0125; the tolerance is
        // four of these.
        assert!((mean - 1.0 / 0.7).abs() < 0.05, "{mean}");
        // Four more losses after the first: 0.3^4, or 32 of 3943 runs; the deviation is 5.6, and the tolerance four of
        // these.
        let long = runs.iter().filter(|length| **length >= 5).count();
        assert!(long.abs_diff(32) < 23, "{long}");
    }

    #[test]
    fn runs_have_exactly_their_length() {
        let config = PacketBursts::Runs { start: probability(0.005), length: 5 };
        let n = 200_000;
        let lost = losses(config, 1, n);
        // One run may directly follow another, and the last one may be cut off.
        assert!(runs(&lost[..n - 5]).iter().rev().skip(1).all(|length| length % 5 == 0));
        // Of the packets outside runs, one in 200 begins one: n / (200 + 4) of them, 980, deviation 31; the tolerance
        // is four of these.
        let count = lost.iter().filter(|lost| **lost).count() / 5;
        assert!(count.abs_diff(980) < 125, "{count}");
    }

    #[test]
    fn a_factor_below_the_base_rate_changes_nothing() {
        let independent = PacketBursts::Conditional { start: probability(0.2), again: probability(0.2) };
        let below = PacketBursts::Conditional { start: probability(0.2), again: Probability::ZERO };
        assert_eq!(losses(independent, 5, 1000), losses(below, 5, 1000));
    }

    #[test]
    fn the_pattern_is_that_of_seed_and_name() {
        let config = PacketBursts::Runs { start: probability(0.1), length: 2 };
        assert_eq!(losses(config, 1, 500), losses(config, 1, 500));
        assert_ne!(losses(config, 1, 500), losses(config, 2, 500));
    }
}
