//! All results of the model for one path, for tables and JSON.

use bentpipe_engine::units::Bytes;
use serde::Serialize;

use super::splitting::Split;
use super::throughput::{Case, EndToEnd, integrated, summed};
use super::window::Delay;
use super::{OutOfRange, Path, asymptotics, delay, queueing};

/// The model's results for a path. Field names end in their unit; a throughput `_per_mu` is in units of the link's
/// rate, `_per_capacity` in units of the share 1-p of it that arrives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// B.
    pub buffer_packets: f64,
    /// T1.
    pub t1_s: f64,
    /// T2.
    pub t2_s: f64,
    /// μ.
    pub mu_packets_per_s: f64,
    /// p.
    pub loss: f64,
    /// S.
    pub segments: f64,
    /// μ T2.
    pub bdp_packets: f64,
    /// β.
    pub beta: f64,
    /// α.
    pub alpha: f64,
    /// ν (Eq. 4).
    pub nu: f64,
    /// Mean in-order delay of min(B, μ T2) S packets in round trips T2: exact (Eq. 65) and by Eq. 5.
    pub burst_delay_t2: [f64; 2],
    /// Probability that of two packets T2 apart the first arrives later (Eq. 16).
    pub overtakes: f64,
    /// End to end over selective-repeat ARQ.
    pub end_to_end: EndToEndValues,
    /// Split at the gateway.
    pub split: SplitValues,
    /// Buffers that suffice.
    pub recommended: Recommended,
    /// Notes if the path is outside the model's range.
    pub notes: Vec<String>,
}

/// End to end over selective-repeat ARQ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndToEndValues {
    /// Υ (Eq. 29).
    pub upsilon: f64,
    /// ρ (Eq. 37).
    pub rho: f64,
    /// w_max (Eq. 36).
    pub max_window_packets: f64,
    /// Case of Eq. 40, from 1.
    pub case: u8,
    /// A1, A2, A3 (Eq. 40).
    pub a: [f64; 3],
    /// λ/μ (Eq. 39).
    pub per_mu: f64,
    /// λ/(μ (1-p)).
    pub per_capacity: f64,
    /// λ, TCP packets with their headers.
    pub bit_per_s: f64,
    /// λ/μ as a sum over whole windows (Eq. 73).
    pub summed_per_mu: f64,
    /// The same with the exact delay (Eq. 65).
    pub summed_exact_delay_per_mu: f64,
    /// λ/μ with integrals for the sums.
    pub integrated_per_mu: f64,
}

impl EndToEndValues {
    /// λ in kbit/s.
    pub fn kbit_per_s(&self) -> f64 {
        self.bit_per_s / 1e3
    }
}

/// Split at the gateway.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SplitValues {
    /// E T_s (Eq. 46).
    pub persistence_s: f64,
    /// Mean queue (Eq. 49).
    pub queue_packets: f64,
    /// Mean window (Eq. 44).
    pub window_packets: f64,
    /// λ/μ.
    pub per_mu: f64,
    /// λ/(μ (1-p)) (Eq. 52).
    pub per_capacity: f64,
    /// The same with B-1 for B.
    pub per_capacity_less_one: f64,
    /// λ, TCP packets with their headers.
    pub bit_per_s: f64,
}

impl SplitValues {
    /// λ in kbit/s.
    pub fn kbit_per_s(&self) -> f64 {
        self.bit_per_s / 1e3
    }
}

/// Buffers that suffice, TCP packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommended {
    /// Every window fills the pipe end to end (Eq. 53).
    pub end_to_end_fills_pipe_packets: f64,
    /// Half of the capacity is used end to end over a long satellite part (Eq. 55).
    pub end_to_end_half_capacity_packets: f64,
    /// Splitting uses the whole capacity (Eq. 52).
    pub split_fills_link_packets: f64,
    /// The same without a terrestrial part (Eq. 56).
    pub split_satellite_alone_packets: f64,
}

impl Evaluation {
    /// Evaluates the model. `packet`: length of a TCP packet, for throughputs in bits per second.
    ///
    /// # Errors
    /// Returns [`OutOfRange`] for parameters outside the model's range.
    pub fn new(path: &Path, packet: Bytes) -> Result<Evaluation, OutOfRange> {
        let end_to_end = EndToEnd::new(path)?;
        let split = Split::new(path);
        let kept = 1.0 - path.p();
        let link_bit_s = path.mu() * packet.get() as f64 * 8.0;
        let burst = path.longest_burst(f64::INFINITY);
        let burst_delay_t2 = [delay::exact(burst, path.p()), delay::many(burst, path.p())];
        Ok(Evaluation {
            buffer_packets: path.buffer(),
            t1_s: path.t1(),
            t2_s: path.t2(),
            mu_packets_per_s: path.mu(),
            loss: path.p(),
            segments: path.segments(),
            bdp_packets: path.bdp(),
            beta: path.beta(),
            alpha: path.alpha(),
            nu: end_to_end.nu,
            burst_delay_t2,
            overtakes: queueing::overtakes(path.p()),
            end_to_end: EndToEndValues {
                upsilon: end_to_end.upsilon,
                rho: end_to_end.rho,
                max_window_packets: end_to_end.max_window,
                case: end_to_end.case as u8,
                a: end_to_end.a,
                per_mu: end_to_end.per_mu,
                per_capacity: end_to_end.per_mu / kept,
                bit_per_s: end_to_end.per_mu * link_bit_s,
                summed_per_mu: summed(path, Delay::Logarithm),
                summed_exact_delay_per_mu: summed(path, Delay::Exact),
                integrated_per_mu: integrated(path),
            },
            split: SplitValues {
                persistence_s: split.persistence_s,
                queue_packets: split.queue,
                window_packets: split.window,
                per_mu: split.per_mu,
                per_capacity: split.per_capacity,
                per_capacity_less_one: split.per_capacity_less_one,
                bit_per_s: split.per_mu * link_bit_s,
            },
            recommended: Recommended {
                end_to_end_fills_pipe_packets: asymptotics::fills_pipe(path),
                end_to_end_half_capacity_packets: asymptotics::hides_retransmissions(path),
                split_fills_link_packets: asymptotics::split_fills_link(path),
                split_satellite_alone_packets: path.bdp(),
            },
            notes: notes(path, end_to_end.case, burst_delay_t2),
        })
    }
}

/// Notes on the model's approximations that are inaccurate for a path.
fn notes(path: &Path, case: Case, [exact, logarithm]: [f64; 2]) -> Vec<String> {
    let mut notes = Vec::new();
    let off = logarithm / exact - 1.0;
    // Eq. 5 is within 5.6 % of the mean where the paper uses it.
    if off.abs() > 0.06 {
        let side = if off > 0.0 { "too long" } else { "too short" };
        notes.push(format!(
            "Eq. 5 makes the delay of a burst {:.0} % {side} here: rely on Eq. 73 with Eq. 65",
            off.abs() * 100.0
        ));
    }
    if case == Case::AllFillPipe && path.beta() > 2.0 {
        notes.push(
            "beyond B = 2 mu T2 end-to-end TCP carries more than Eq. 39 predicts: use it as a lower bound".to_owned(),
        );
    }
    if path.buffer() < 50.0 {
        notes.push(
            "below 50 packets of buffer the steps from B+1 and B-1 to B cost some percent: compare Eq. 73 and Eq. 48"
                .to_owned(),
        );
    }
    notes
}
