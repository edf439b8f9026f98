//! How many repair frames a block gets: an estimate from the losses of earlier blocks.

use crate::slacp::config::Fec;

/// Statistics of the losses per block: sums over blocks, decaying with each frame.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// Number of frames, and number of lost frames.
    frames: f64,
    lost: f64,
    /// Sums of the squares of both per block, and of their product.
    frames_squared: f64,
    lost_squared: f64,
    product: f64,
    full: f64,
    /// [`Fec::worth`].
    worth: f64,
}

/// Number of full blocks over which a block's contribution decays to 1/e.
const MEMORY: f64 = 128.0;
/// Number of terms of a distribution. A block with its repairs cannot lose more frames than it has.
const TERMS: usize = 2 * Fec::MAX_FRAMES as usize;

impl Losses {
    /// Starts with an assumed loss per block: a flow's first losses hurt most, since they end its slow start, and the
    /// line is not full yet. After about 250 clean blocks, the assumption is outweighed.
    pub(super) fn new(block: u8, worth: f64) -> Self {
        let full = f64::from(block);
        let blocks = 2.0;
        Losses {
            frames: blocks * full,
            lost: blocks,
            frames_squared: blocks * full * full,
            lost_squared: blocks,
            product: blocks * full,
            full,
            worth,
        }
    }

    /// Adds the losses of a block of `count` packets. A block that lost more than `max_overhead` can recover (an
    /// outage) is ignored.
    pub(super) fn on_block(&mut self, lost: u8, count: u8, max_overhead: f64) {
        let (lost, count) = (f64::from(lost), f64::from(count));
        if lost > max_overhead * (count - lost) {
            return;
        }
        let fade = 1.0 - count / (MEMORY * self.full);
        for (sum, more) in [
            (&mut self.frames, count),
            (&mut self.lost, lost),
            (&mut self.frames_squared, count * count),
            (&mut self.lost_squared, lost * lost),
            (&mut self.product, count * lost),
        ] {
            *sum = *sum * fade + more;
        }
    }

    /// The number of repair frames for a block of `count` packets.
    ///
    /// The losses of a block are modelled as negative binomial with the observed mean and variance, but at least the
    /// variance of independent losses. Repair frames are lost at the same rate. Nearly all single losses are thus
    /// recovered, and bursts as far as it is worthwhile.
    pub(super) fn repairs(&self, count: u8, max_overhead: f64) -> u8 {
        let share = self.lost / self.frames;
        if share <= 0.0 {
            return 0;
        }
        let deviation = self.lost_squared - 2.0 * share * self.product + share * share * self.frames_squared;
        let dispersion = (deviation / self.lost).max(1.0);
        let mean = f64::from(count) * share / (1.0 - share);
        // The terms up to a common factor, which follows from their sum. Only the four basic operations are used, so
        // the result is the same on all machines.
        let mut terms = [0.0; TERMS];
        let (mut term, mut sum) = (1.0, 0.0);
        for (k, place) in terms.iter_mut().enumerate() {
            *place = term;
            sum += term;
            // The distribution with this mean and dispersion (variance over mean). With a dispersion of 1, it is the
            // Poisson distribution.
            term *= (mean + k as f64 * (dispersion - 1.0)) / (dispersion * (k + 1) as f64);
        }
        let max = ((max_overhead * f64::from(count)) as usize).min(TERMS - 1);
        terms[1..=max].iter().rposition(|&term| term >= self.worth * sum).map_or(0, |before| before as u8 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statistics after blocks of twenty; each entry gives the losses per block and the number of such blocks.
    fn losses(seen: &[(u8, u32)]) -> Losses {
        let mut losses = Losses::new(20, Fec::WORTH);
        for &(lost, times) in seen {
            (0..times).for_each(|_| losses.on_block(lost, 20, 0.5));
        }
        losses
    }

    #[test]
    fn overhead_follows_what_was_lost() {
        assert_eq!(losses(&[]).repairs(20, 0.5), 4, "nothing is known: one loss is assumed, by chance none or four");
        assert_eq!(losses(&[(0, 60)]).repairs(20, 0.5), 1);
        assert_eq!(losses(&[(0, 250)]).repairs(20, 0.5), 0);
        assert_eq!(losses(&[(0, 500)]).repairs(20, 0.5), 0, "nothing is lost");
        // An outage loses whole blocks: no repair helps, and none is sent.
        assert_eq!(losses(&[(0, 300), (20, 50)]).repairs(20, 0.5), 0);
        // The cap.
        assert_eq!(losses(&[(2, 200)]).repairs(20, 0.1), 2);
        // Old losses are forgotten.
        assert_eq!(losses(&[(4, 100), (0, 900)]).repairs(20, 0.5), 0);
    }

    /// A short block fades the sums by its own length. Seven losses of twenty frames are more than thirteen and half as many repairs can
    /// make good, six are not.
    #[test]
    fn sums_fade_with_each_frame() {
        let after = |lost, count| {
            let mut losses = Losses::new(20, Fec::WORTH);
            losses.on_block(lost, count, 0.5);
            (losses.frames, losses.lost)
        };
        let faded = |frames: f64| 1.0 - frames / 2560.0;
        assert_eq!(after(0, 10), (40.0 * faded(10.0) + 10.0, 2.0 * faded(10.0)));
        assert_eq!(after(6, 20), (40.0 * faded(20.0) + 20.0, 2.0 * faded(20.0) + 6.0));
        assert_eq!(after(7, 20), (40.0, 2.0));
    }

    /// A fifth of all frames is lost, of repairs too: for twenty frames five losses are expected, and by the Poisson distribution 11 in
    /// eight of a thousand blocks, 12 in three.
    #[test]
    fn repairs_are_lost_as_well() {
        let mut losses = losses(&[]);
        (0..2000).for_each(|_| losses.on_block(4, 20, 1.0));
        assert_eq!(losses.repairs(20, 1.0), 11);
    }

    /// Blocks of any size, half of them short, lose each frame with the same probability. The share of restored blocks
    /// is that of [`Fec::WORTH`], with no more repair frames than needed.
    #[test]
    fn single_losses_are_made_good() {
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 11) as f64 / (1u64 << 53) as f64
        };
        // By the Poisson distribution: of 100 frames and their repairs, at 1 and 5 %, 4 and 11 losses are the highest
        // counts that occur in at least five of a thousand blocks.
        for (chance, expected) in [(0.01, 4), (0.05, 11)] {
            let mut losses = Losses::new(100, Fec::WORTH);
            for n in 0..2000 {
                let count = if n % 2 == 0 { 100 } else { 12 };
                let lost = (0..count).filter(|_| next() < chance).count();
                losses.on_block(lost as u8, count, 0.5);
            }
            let repairs = losses.repairs(100, 0.5);
            assert!((expected - 1..=expected + 1).contains(&repairs), "{chance}: {repairs}");
        }
        // Losses in clumps of ten need more than the four repairs that the Poisson distribution gives for the same mean
        // of one.
        let mut clumps = Losses::new(100, Fec::WORTH);
        (0..2000).for_each(|n| clumps.on_block(if n % 10 == 0 { 10 } else { 0 }, 100, 0.5));
        assert!((7..=20).contains(&clumps.repairs(100, 0.5)), "{}", clumps.repairs(100, 0.5));
        // One block in fifty loses thirty of a hundred frames: repairing that costs more than it is worth.
        let mut bursts = Losses::new(100, Fec::WORTH);
        (0..2000).for_each(|n| bursts.on_block(if n % 50 == 0 { 30 } else { 0 }, 100, 0.5));
        assert!(bursts.repairs(100, 0.5) < 5, "{}", bursts.repairs(100, 0.5));
    }
}
