//! Asymptotes of the throughputs, and the buffers they need (§V.A).

use super::Path;
use super::splitting::Split;

/// λ/μ end to end for T2 ≫ T1 and B > 2 μ T2 (Eq. 54): Eq. 39 without a terrestrial part.
pub fn satellite_dominates(path: &Path) -> f64 {
    let (b, bdp, kept) = (path.buffer(), path.bdp(), 1.0 - path.p());
    let wait = path.nu() * (bdp * path.segments() / 2.0).ln() + kept / 4.0;
    0.75 * b * kept / (0.75 * b + bdp * wait)
}

/// The same for ln(μ T2) ≫ ln 2 (Eq. 55): B (1-p)/(B + (4/3) ν x ln x), x = μ T2.
pub fn long_pipe(path: &Path) -> f64 {
    path.buffer() * (1.0 - path.p()) / (path.buffer() + hides_retransmissions(path))
}

/// (4/3) ν x ln x with x = μ T2, TCP packets (Eq. 55): the buffer that uses half the capacity; a share u needs u/(1-u)
/// times as much.
pub fn hides_retransmissions(path: &Path) -> f64 {
    4.0 / 3.0 * path.nu() * path.bdp() * path.bdp().ln()
}

/// The buffer with which Eq. 55 reaches the share `used` of the capacity μ (1-p), TCP packets; `None` if `used` is negative, or
/// if it is 1 or more, which no buffer reaches.
pub fn buffer_for_share(path: &Path, used: f64) -> Option<f64> {
    (0.0..1.0).contains(&used).then(|| used / (1.0 - used) * hides_retransmissions(path))
}

/// The min buffer with which every window fills the pipe end to end, B = (1+ρ) μ T2 (Eq. 53), TCP packets. ρ itself
/// depends on B; between μ T2 (ρ = 0) and 2 μ T2 (ρ = 1) there is one solution, since (1+ρ) μ T2 grows more slowly than
/// B.
pub fn fills_pipe(path: &Path) -> f64 {
    let bdp = path.bdp().max(1.0);
    let (mut low, mut high) = (bdp, 2.0 * bdp);
    // Each step halves the interval; 60 of them leave less than a double's last bit.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let rho = path.with_buffer(middle).map_or(1.0, |at| at.rho());
        if middle < (1.0 + rho) * bdp {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// λ/(μ (1-p)) with splitting for T2 ≫ T1: min(1, B/(μ T2)) (Eq. 56).
pub fn split_satellite_dominates(path: &Path) -> f64 {
    path.beta().min(1.0)
}

/// The min buffer with which splitting uses the whole capacity, (1+2α) μ T2 (Eq. 52), TCP packets.
pub fn split_fills_link(path: &Path) -> f64 {
    (1.0 + 2.0 * path.alpha()) * path.bdp()
}

/// The buffer beyond which splitting always carries more than end-to-end TCP (fig. 12), as β/(1+2α), a multiple of
/// `step`; `None` if end-to-end TCP never carries more with two or more packets in flight. Throughputs are compared in
/// units of μ (1-p).
pub fn crossing(path: &Path, step: f64) -> Option<f64> {
    let stretch = 1.0 + 2.0 * path.alpha();
    let better = |x: f64| {
        let at = path.with_beta(x * stretch).ok()?;
        let end_to_end = super::throughput::EndToEnd::new(&at).ok()?;
        (end_to_end.per_mu > Split::new(&at).per_mu).then_some(x)
    };
    // Beyond 1 splitting uses the whole capacity, which end-to-end TCP does not reach.
    (1..=(1.0 / step) as u32).rev().find_map(|n| better(f64::from(n) * step))
}
