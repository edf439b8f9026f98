//! Throughput with TCP split at the gateway (§IV).
//!
//! The gateway acknowledges for the destination and advertises the free part of its buffer as the window. Right after
//! a burst the window is uniform between 0 and the space that the queue leaves free (Eq. 41 to 43). By Little's
//! theorem the queue is the arrival rate times the time that a packet stays.

use super::Path;

/// The equilibrium of window and queue, and the throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// E T_s = T2/(1-p): time that a packet stays at the gateway, seconds (Eq. 46).
    pub persistence_s: f64,
    /// Mean queue in TCP packets (Eq. 49, before it takes B for B-1).
    pub queue: f64,
    /// Mean window in TCP packets (Eq. 44).
    pub window: f64,
    /// λ/(μ (1-p)) = min(1, β/(1+2α)) (Eq. 52).
    pub per_capacity: f64,
    /// The same with B-1 for B, as in Eq. 48; the difference matters below B of about 50.
    pub per_capacity_less_one: f64,
    /// λ/μ: [`Split::per_capacity`] in the unit of Eq. 39.
    pub per_mu: f64,
}

impl Split {
    /// Evaluates Eq. 44 to 52.
    pub fn new(path: &Path) -> Split {
        let kept = 1.0 - path.p();
        let stretch = 1.0 + 2.0 * path.alpha();
        let queue = (path.buffer() - 1.0) / stretch;
        let per_capacity = (path.beta() / stretch).min(1.0);
        Split {
            persistence_s: path.t2() / kept,
            queue,
            window: (path.buffer() - queue - 1.0) / 2.0,
            per_capacity,
            per_capacity_less_one: ((path.buffer() - 1.0) / path.bdp() / stretch).min(1.0),
            per_mu: per_capacity * kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::hybrid::tests::path;

    /// Eq. 44 to 47 solved by iteration.
    #[test]
    fn the_equilibrium_is_the_fixed_point() {
        for (b, t1, t2, p) in [(50.0, 100, 250, 0.1), (200.0, 500, 100, 0.5), (10.0, 5, 600, 0.02)] {
            let path = path(b, t1, t2, p, 1);
            let split = Split::new(&path);
            let mut queue = 0.0;
            // Damped, since the plain map swings wide where the satellite part dominates.
            let damping = 0.02 * f64::min(1.0, path.t1() / split.persistence_s);
            for _ in 0..200_000 {
                let rate = (b - queue - 1.0) / 2.0 / path.t1();
                queue += damping * (split.persistence_s * rate - queue);
            }
            assert!((queue / split.queue - 1.0).abs() < 1e-9, "{queue} against {}", split.queue);
            let rate = split.window / path.t1();
            let capacity = path.mu() * (1.0 - p);
            let share = (rate / capacity).min(1.0);
            assert!((share - split.per_capacity_less_one).abs() < 1e-9, "Eq. 45, 50, 51");
        }
    }

    #[test]
    fn without_a_terrestrial_part_the_buffer_is_what_limits() {
        // Eq. 56.
        assert_eq!(Split::new(&path(25.0, 0, 200, 0.1, 1)).per_capacity, 0.5);
        assert_eq!(Split::new(&path(80.0, 0, 200, 0.1, 1)).per_mu, 0.9);
    }
}
