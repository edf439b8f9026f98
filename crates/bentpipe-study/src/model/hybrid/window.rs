//! The round trip of a window, and the max window (§III.A, §III.B).

use super::{Path, delay};

/// The formula for the delay of a burst in a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// The logarithm of Eq. 5, as in the paper's closed form.
    Logarithm,
    /// The exact mean of Eq. 65, for the nearest whole number of link-layer packets.
    Exact,
}

impl Path {
    /// E τ(w): mean time to transfer a window of `w` TCP packets, seconds (Eq. 20):
    /// T1 + queueing (Eq. 19) + delay of min(B, w, μ T2) S link-layer packets in order (Eq. 8).
    pub fn transfer_s(&self, w: f64, form: Delay) -> f64 {
        self.t1() + self.queueing_s(w) + self.t2() * self.burst_round_trips(w, form)
    }

    /// The delay of the longest burst of a window of `w` TCP packets in order, round trips T2 (Eq. 8).
    pub(super) fn burst_round_trips(&self, w: f64, form: Delay) -> f64 {
        let burst = self.longest_burst(w);
        match form {
            Delay::Logarithm => delay::many(burst, self.p()),
            Delay::Exact => delay::exact(burst.round_ties_even().max(1.0), self.p()),
        }
    }

    /// Υ: the satellite part of a round trip of the max window, in round trips T2 (Eq. 28, 29). Illegible in our copy;
    /// it is Eq. 20 at the max window, which exceeds B.
    pub fn upsilon(&self) -> f64 {
        self.upsilon_with(self.nu())
    }

    pub(super) fn upsilon_with(&self, nu: f64) -> f64 {
        let (bdp, lost) = (self.bdp(), 1.0 - self.p());
        let logarithm = |packets: f64| if nu == 0.0 { 0.0 } else { nu * (packets * self.segments() / 2.0).ln() };
        if self.buffer() >= bdp {
            (self.beta() + logarithm(bdp)) / lost + 0.25
        } else {
            self.beta() / 4.0 + (logarithm(self.buffer()) + 1.0) / lost
        }
    }

    /// ρ = T2 Υ/(T1 + T2 Υ): share of the satellite part in a round trip of the max window (Eq. 37); 1 without a
    /// terrestrial part.
    pub fn rho(&self) -> f64 {
        self.rho_with(self.nu())
    }

    pub(super) fn rho_with(&self, nu: f64) -> f64 {
        let satellite = self.t2() * self.upsilon_with(nu);
        satellite / (self.t1() + satellite)
    }

    /// w_max = 2 (B+1)/(1+ρ): the max window, TCP packets (Eq. 36). The buffer overflows at B+1 packets; the rest is
    /// on the terrestrial part.
    pub fn max_window(&self) -> f64 {
        2.0 * (self.buffer() + 1.0) / (1.0 + self.rho())
    }
}

/// The windows of successive round trips as a Markov chain, for T1 = 0 (Eq. 24): a window W above the buffer B grows
/// by one if the receiver's resequencing buffer always holds at least W-B packets; otherwise n = W-B-C packets are
/// dropped, C being the buffer's minimum content, and each drop halves the window.
///
/// The paper abandons the chain because the distribution of C given W is unknown, and sets C = 0 (Eq. 25). Here C may
/// have any distribution that does not depend on W. Every drop leads to a window of at most B, from where the chain
/// climbs with certainty to B+1. These are renewals; the stationary distribution is the mean number of visits between
/// two of them, computed exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowChain {
    smallest: u32,
    /// Mean visits per cycle to each window from `smallest` on.
    visits: Vec<f64>,
}

impl WindowChain {
    /// The chain for a buffer of `buffer` packets; `resequencing[c]` is the probability that the resequencing buffer's
    /// minimum content is `c` packets. `None` if these are not probabilities with sum 1, or more than the buffer has
    /// packets.
    pub fn new(buffer: u32, resequencing: &[f64]) -> Option<WindowChain> {
        let total: f64 = resequencing.iter().sum();
        let probable = resequencing.iter().all(|p| (0.0..=1.0).contains(p)) && (total - 1.0).abs() < 1e-9;
        // A window of at most 2 B halves to at most B: a renewal.
        if !probable || resequencing.len() > buffer as usize {
            return None;
        }
        // Windows above B are visited at most once per cycle, in order, each with the probability of no earlier drop.
        let mut above = Vec::new();
        let mut drops = Vec::new();
        let mut reached = 1.0;
        for excess in 1..=resequencing.len() {
            above.push(reached);
            let window = buffer + excess as u32;
            for (held, &probability) in resequencing[..excess].iter().enumerate() {
                let halvings = (excess - held).min(31);
                drops.push(((window >> halvings).max(1), reached * probability));
            }
            reached *= resequencing[excess..].iter().sum::<f64>();
        }
        let smallest = drops.iter().map(|d| d.0).min()?;
        let visits = |w: u32| drops.iter().filter(|d| d.0 <= w).map(|d| d.1).sum();
        let below: Vec<f64> = (smallest..=buffer).map(visits).collect();
        Some(WindowChain { smallest, visits: [below, above].concat() })
    }

    /// The simplified chain of Eq. 26: the resequencing buffer is empty once per round trip, one packet is dropped at
    /// B+1, and the window varies between (B+1)/2 and B+1. `None` for an empty buffer.
    pub fn simplified(buffer: u32) -> Option<WindowChain> {
        WindowChain::new(buffer, &[1.0])
    }

    /// Windows and their shares of round trips.
    pub fn stationary(&self) -> impl Iterator<Item = (u32, f64)> {
        let cycle: f64 = self.visits.iter().sum();
        (self.smallest..).zip(self.visits.iter().map(move |v| v / cycle))
    }

    /// Throughput in units of μ: mean window over mean round trip (renewal reward), as Eq. 38 for a window that grows
    /// evenly. The chain assumes T1 = 0; a terrestrial part of `path` counts only in the round trips.
    pub fn throughput(&self, path: &Path, form: Delay) -> f64 {
        let (mut packets, mut time) = (0.0, 0.0);
        for (w, share) in self.stationary() {
            packets += share * f64::from(w);
            time += share * path.transfer_s(f64::from(w), form);
        }
        packets / time / path.mu()
    }
}
