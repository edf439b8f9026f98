//! Throughput end to end over selective-repeat ARQ (§III.B, Appendix B).
//!
//! The window grows by one packet per round trip from w_max/2 to w_max, is halved, and grows again. The throughput is
//! the sum of the windows over the sum of their round trips (Eq. 38, 73). [`EndToEnd`] is the closed form with its
//! parts; [`summed`] sums whole windows, [`integrated`] uses integrals instead.

use super::window::Delay;
use super::{OutOfRange, Path, delay};

/// The case of Eq. 40 that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// β ≥ 1+ρ: all windows fill the pipe. (The print says w_max/2 > μ T2, which is β > 1+ρ but for B+1 ≈ B.)
    AllFillPipe = 1,
    /// 1 ≤ β < 1+ρ: the smaller windows do not.
    SomeFillPipe = 2,
    /// β < 1: the buffer does not hold what the pipe does.
    NoneFillsPipe = 3,
}

/// The closed form of the throughput (Eq. 39) and its parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndToEnd {
    /// ν (Eq. 4).
    pub nu: f64,
    /// Υ (Eq. 29), in round trips T2.
    pub upsilon: f64,
    /// ρ (Eq. 37).
    pub rho: f64,
    /// w_max (Eq. 36), TCP packets.
    pub max_window: f64,
    /// The case of Eq. 40.
    pub case: Case,
    /// A1, A2 and A3 (Eq. 40).
    pub a: [f64; 3],
    /// λ/μ (Eq. 39): at most 1-p, the share that a link with loss p delivers. Eq. 52 of splitting is in units of μ
    /// (1-p) instead.
    pub per_mu: f64,
}

impl EndToEnd {
    /// Evaluates Eq. 29, 36, 37, 39 and 40. Eq. 39 uses B+1 for B in places and w_max/2+1 for w_max/2, unlike the
    /// [`summed`] form: below B of about 50 they differ by some percent.
    ///
    /// # Errors
    /// Fails for fewer than two link-layer packets in flight, see [`OutOfRange::InFlight`].
    pub fn new(path: &Path) -> Result<EndToEnd, OutOfRange> {
        let in_flight = path.longest_burst(f64::INFINITY);
        if in_flight < 2.0 {
            return Err(OutOfRange::InFlight(in_flight));
        }
        Ok(EndToEnd::with_nu(path, path.nu()))
    }

    /// The same with another ν, zero for a channel whose packets share their fate (§V.C).
    pub(super) fn with_nu(path: &Path, nu: f64) -> EndToEnd {
        let (b, bdp, beta, p, s) = (path.buffer(), path.bdp(), path.beta(), path.p(), path.segments());
        let (upsilon, rho) = (path.upsilon_with(nu), path.rho_with(nu));
        let max_window = 2.0 * (b + 1.0) / (1.0 + rho);
        // Factorials of non-integers are gamma functions: (x-1)! = Γ(x).
        let of_factorials = |upper: f64| (1.0 + rho) / b * nu * (libm::lgamma(upper) - libm::lgamma(max_window / 2.0));
        // (1 + ρ - ρ²/2)/(1+ρ), the mean growth of the queue while the window grows.
        let rising = (1.0 + rho - rho * rho / 2.0) / (1.0 + rho);
        let part = (1.0 + rho) / beta;
        let (case, a) = if beta >= 1.0 + rho {
            (Case::AllFillPipe, [1.0, 1.0, beta * rising])
        } else if beta >= 1.0 {
            let a2 = 2.0 - part / 2.0 - 1.0 / (2.0 * part);
            let a3 = 2.0 * beta - 1.0 + part / 2.0 - beta * (1.0 + rho) / 2.0 + of_factorials(bdp);
            (Case::SomeFillPipe, [2.0 - part, a2, a3])
        } else {
            (Case::NoneFillsPipe, [1.0 - rho, beta * rising, 1.0 + of_factorials(b + 1.0)])
        };
        let logarithms = a[0] * (beta.min(1.0) * bdp).ln() + (s / 2.0).ln();
        // Zero times an unbounded logarithm is zero here: ν = 0 means that no packet waits for another.
        let logarithms = if nu == 0.0 { 0.0 } else { nu * logarithms };
        let denominator = path.alpha() + logarithms + a[1] * (1.0 - p) / 4.0 + a[2];
        let per_mu = 1.5 * beta * (1.0 - p) / (1.0 + rho) / denominator;
        EndToEnd { nu, upsilon, rho, max_window, case, a, per_mu }
    }
}

/// λ/μ as the sum over whole windows of Eq. 73, from the whole number nearest to w_max/2 to its double; the numerator
/// is summed too, instead of (3/8) w_max (w_max+2).
pub fn summed(path: &Path, form: Delay) -> f64 {
    let first = (path.max_window() / 2.0).round_ties_even().max(1.0);
    let last = 2.0 * first;
    let packets = (first + last) / 2.0 * (last - first + 1.0);
    let time = match form {
        Delay::Logarithm => round_trips_s(path, first, last),
        Delay::Exact => {
            // Up to min(B, μ T2) a window is one burst; of larger ones the bursts are as long as that, and equal.
            let top = path.buffer().min(path.bdp()).floor().min(last);
            let rising = delay::exact_of_all(first, top, path.segments(), path.p());
            let count = (last - first.max(top + 1.0) + 1.0).max(0.0);
            let level = if count > 0.0 { path.burst_round_trips(last, form) } else { 0.0 };
            let (in_flight, waiting) = queued(path, first, last);
            (last - first + 1.0) * path.t1()
                + path.t2() * (rising + count * level)
                + in_flight / (4.0 * path.mu())
                + waiting / (path.mu() * (1.0 - path.p()))
        }
    };
    packets / time / path.mu()
}

/// The packets in flight and those that wait for a full pipe, Σ θ(w) and Σ [min(B, w) - μ T2]⁺ (Eq. 19), over the whole windows from
/// `first` to `last`.
fn queued(path: &Path, first: f64, last: f64) -> (f64, f64) {
    let (b, bdp) = (path.buffer(), path.bdp());
    let max = b.min(bdp);
    // Windows completely in flight, then the others.
    let top = max.floor().min(last);
    let low = (top - first + 1.0).max(0.0);
    let high = last - first + 1.0 - low;
    let in_flight = low * (first + top) / 2.0 + high * max;
    // Windows that fill the pipe but not the buffer wait for w - μ T2 packets, larger ones for B - μ T2.
    let waiting = if b > bdp {
        let from = first.max(bdp.floor() + 1.0);
        let to = last.min(b.floor());
        let some = (to - from + 1.0).max(0.0);
        let all = (last - first.max(b.floor() + 1.0) + 1.0).max(0.0);
        some * ((from + to) / 2.0 - bdp) + all * (b - bdp)
    } else {
        0.0
    };
    (in_flight, waiting)
}

/// Σ E τ(w) over the whole windows from `first` to `last`, seconds: the finite sums of Eq. 74, 76 and 78 without the
/// step from B+1 to B, for any B and μ T2.
fn round_trips_s(path: &Path, first: f64, last: f64) -> f64 {
    let (max, mu) = (path.buffer().min(path.bdp()), path.mu());
    let one = path.t2() / (1.0 - path.p());
    let count = last - first + 1.0;
    let (in_flight, waiting) = queued(path, first, last);
    let top = max.floor().min(last);
    let low = (top - first + 1.0).max(0.0);
    let high = count - low;
    let factorials = if low > 0.0 { libm::lgamma(top + 1.0) - libm::lgamma(first) } else { 0.0 };
    let logarithms = factorials + high * max.ln() + count * (path.segments() / 2.0).ln();
    let nu = path.nu();
    let delays = count + if nu == 0.0 { 0.0 } else { nu * logarithms };
    count * path.t1() + in_flight / (4.0 * mu) + one * delays + waiting / (mu * (1.0 - path.p()))
}

/// λ/μ with integrals over w_max/2..w_max for the two sums of Eq. 73, found in closed form: no window is rounded.
pub fn integrated(path: &Path) -> f64 {
    let (b, bdp, mu, nu) = (path.buffer(), path.bdp(), path.mu(), path.nu());
    let last = path.max_window();
    let first = last / 2.0;
    let max = b.min(bdp);
    // ∫ min(w, K), ∫ ln(min(w, K) S/2) and ∫ [min(w, B) - μ T2]⁺ from zero to w.
    let in_flight = |w: f64| if w <= max { w * w / 2.0 } else { max * max / 2.0 + (w - max) * max };
    let logarithm = |w: f64| {
        let below = w.min(max);
        let half = path.segments() / 2.0;
        below * ((below * half).ln() - 1.0) + (w - below) * (max * half).ln()
    };
    let waiting = |w: f64| {
        let some = (w.min(b) - bdp).max(0.0);
        some * some / 2.0 + (w - b).max(0.0) * (b - bdp).max(0.0)
    };
    let over = |integral: &dyn Fn(f64) -> f64| integral(last) - integral(first);
    let delays = (last - first) + if nu == 0.0 { 0.0 } else { nu * over(&logarithm) };
    let time = (last - first) * path.t1()
        + over(&in_flight) / (4.0 * mu)
        + path.t2() / (1.0 - path.p()) * delays
        + over(&waiting) / (mu * (1.0 - path.p()));
    (last * last - first * first) / 2.0 / time / mu
}
