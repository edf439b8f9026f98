//! The wait of a packet at the gateway before its first transmission (§III.A.2).
//!
//! While the pipe of μ T2 packets is full, a packet leaves the queue only when one is acknowledged, at the rate μ
//! (1-p); otherwise it leaves at the rate μ.

use super::Path;

/// Mean wait behind the packets of a burst whose length is uniform on 1..L, at a uniform position: (L-1)/4 packets
/// (Eq. 14, an exact identity).
pub fn behind_own_burst(longest: f64) -> f64 {
    (longest - 1.0) / 4.0
}

/// Probability that of two packets sent one round trip apart the first arrives later: P(x2-x1 > 1) = p²/(1+p), the sum
/// of Eq. 16. The print has only the leading term, p².
pub fn overtakes(p: f64) -> f64 {
    p * p / (1.0 + p)
}

impl Path {
    /// E q1 ≤ [min(B, w) - μ T2]⁺: TCP packets that wait for a full pipe with a window of `w` (Eq. 12).
    pub fn waiting_for_pipe(&self, w: f64) -> f64 {
        (self.buffer().min(w) - self.bdp()).max(0.0)
    }

    /// L = min(B, μ T2, w) S: the longest burst, in link-layer packets (Eq. 17).
    pub fn longest_burst(&self, w: f64) -> f64 {
        self.in_flight(w) * self.segments()
    }

    /// Mean wait of a packet at the gateway with a window of `w`, seconds:
    /// [min(B, w) - μ T2]⁺/(μ (1-p)) + θ/(4 μ) (Eq. 19), with L/4 for (L-1)/4 as in Eq. 18.
    pub fn queueing_s(&self, w: f64) -> f64 {
        self.waiting_for_pipe(w) / (self.mu() * (1.0 - self.p())) + self.in_flight(w) / (4.0 * self.mu())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_of_eq_14() {
        for longest in [1, 2, 7, 50] {
            let mean = |length: i32| (0..length).map(f64::from).sum::<f64>() / f64::from(length);
            let sum: f64 = (1..=longest).map(mean).sum();
            assert!((sum / f64::from(longest) - behind_own_burst(f64::from(longest))).abs() < 1e-12);
        }
    }

    #[test]
    fn the_double_sum_of_eq_16() {
        for p in [0.1, 0.3, 0.5] {
            let takes = |i: i32| super::super::delay::packet_takes(i as u32, p);
            let sum: f64 = (1..100).map(|a| takes(a) * (a + 2..200).map(takes).sum::<f64>()).sum();
            assert!((sum - overtakes(p)).abs() < 1e-14, "p = {p}: {sum}");
        }
    }
}
