//! Slow start, congestion avoidance and halving (RFC 5681 §3.1), with byte counting (RFC 3465) or without.

use alloc::borrow::ToOwned;
use alloc::string::String;

use super::reduction::Factors;
use super::{AckSample, Congestion, CongestionRules, Control, Window};
use crate::tcp::config::{SsthreshBase, TcpConfig};
use crate::tcp::loss::{FoundBy, LossReport};
use crate::tcp::startup::SlowStart;
use crate::tcp::variant::Growth;

/// The fraction of the window that remains after a mark, with ABE (RFC 8511 §3).
const BETA_ECN: f64 = 0.8;

/// The state of Reno's congestion control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reno {
    growth: Growth,
    base: SsthreshBase,
    /// Additional segments per ACK in congestion avoidance: 4.3BSD's eighth, or none.
    constant: f64,
    /// Bytes acknowledged towards the next increase in congestion avoidance.
    counted: u64,
    factors: Factors,
}

impl Reno {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Reno {
            growth: config.variant.growth,
            base: config.shortcuts.ssthresh_base,
            constant: if config.shortcuts.bsd_additive_constant { 0.125 } else { 0.0 },
            counted: 0,
            factors: Factors::new(config, 0.5, BETA_ECN),
        }
    }

    #[inline(always)]
    fn avoid_congestion(&mut self, window: &mut Window, acked: u64) {
        let (cwnd, mss) = (window.exact(), window.exact_mss());
        match self.growth {
            //= RFC 5681 §3.1, equation 3: "cwnd += SMSS*SMSS/cwnd"
            Growth::PerAck => window.set(cwnd + mss * mss / cwnd + self.constant * mss),
            //= RFC 5681 §3.1: "when the number of bytes acknowledged reaches cwnd, then cwnd can be incremented by up
            //= to SMSS bytes"
            Growth::Bytes(_) | Growth::All => {
                self.counted += acked;
                if self.counted as f64 >= cwnd {
                    self.counted -= cwnd as u64;
                    window.set(cwnd + mss);
                }
            }
        }
    }

    /// Sets the threshold to half of the window, or to more after a mark. Returns the half before rounding.
    fn halve(&mut self, window: &mut Window, loss: &LossReport) -> f64 {
        self.counted = 0;
        let mss = window.exact_mss();
        let part = self.factors.of(loss);
        let half = match self.base {
            SsthreshBase::FlightSize => loss.flight as f64 * part,
            // Linux counts whole segments. The inflation that RACK adds for SACKed data is room to send, not window.
            SsthreshBase::Window if self.growth == Growth::All => libm::floor(window.exact() / mss * part) * mss,
            SsthreshBase::Window => window.inflated() * part,
            #[cfg(feature = "ns2")]
            SsthreshBase::WholeWindow => super::ns2::half_of_whole_window(window),
            SsthreshBase::InForce => libm::floor(window.inflated().min(loss.peer_window as f64) / mss * part) * mss,
        };
        //= RFC 5681 §3.1, equation 4: "ssthresh = max (FlightSize / 2, 2*SMSS)"
        window.set_ssthresh((window.whole_units(half) as f64).max(2.0 * mss));
        half
    }
}

impl Congestion {
    /// True if [`Congestion::on_acked`] is all that an ACK needs in congestion avoidance: Reno, without pacing.
    pub(in crate::tcp) fn counts_bytes(&self) -> bool {
        matches!(self.control, Control::Reno(_)) && self.spread.is_none()
    }

    /// What [`Congestion::on_ack`] does with an ACK of `acked` bytes while the window is in use, if it depends on nothing else: in Reno's
    /// congestion avoidance. Otherwise returns false and has no effect. To describe the ACK would take longer than to count its bytes.
    #[inline(always)]
    pub(in crate::tcp) fn on_acked(&mut self, acked: u64) -> bool {
        match &mut self.control {
            Control::Reno(reno) if !self.window.in_slow_start() => {
                reno.avoid_congestion(&mut self.window, acked);
                true
            }
            _ => false,
        }
    }
}

impl CongestionRules for Reno {
    const NAME: &'static str = "Reno";

    fn describe(growth: Growth) -> String {
        match growth {
            Growth::PerAck => "per ACK".to_owned(),
            Growth::Bytes(limit) => format!("per byte, L = {limit}"),
            Growth::All => "per byte".to_owned(),
        }
    }

    #[inline(always)]
    fn on_ack(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        if !window.in_slow_start() {
            return self.avoid_congestion(window, ack.acked);
        }
        let rest = start.on_ack(window, ack);
        if rest > 0 {
            self.avoid_congestion(window, rest);
        }
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossReport) {
        match loss.found_by {
            FoundBy::DuplicateAcks | FoundBy::Mark => {
                let half = self.halve(window, loss);
                window.set(match self.base {
                    SsthreshBase::FlightSize | SsthreshBase::InForce => window.exact_ssthresh(),
                    _ => half.max(window.exact_mss()),
                });
            }
            FoundBy::Timeout { repeated } => {
                // 4.3BSD inflates `snd_cwnd` itself, halves that value, and does so at each timeout.
                let in_force = self.base == SsthreshBase::InForce;
                if !in_force {
                    window.deflate_all();
                }
                //= RFC 5681 §3.1: for a segment resent before by the timer "the value of ssthresh is held constant"
                if !repeated || in_force {
                    self.halve(window, loss);
                }
                window.set_segments(1);
            }
        }
    }

    fn restart(&mut self, window: &mut Window, segments: u32) {
        self.counted = 0;
        window.set_segments(segments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window in segments of 1000 bytes, as Linux counts them.
    fn linux(segments: u32) -> (Reno, Window) {
        let mut config = TcpConfig { mss: 1000, ..TcpConfig::default() };
        config.variant.growth = Growth::All;
        config.shortcuts.ssthresh_base = SsthreshBase::Window;
        (Reno::new(&config), Window::new(&config, segments))
    }

    #[test]
    fn linux_halves_the_window_without_its_inflation() {
        for (segments, half) in [(42, 21_000), (41, 20_000)] {
            let (mut reno, mut window) = linux(segments);
            window.set_inflation(6000);
            let loss = LossReport { found_by: FoundBy::DuplicateAcks, flight: 48_000, peer_window: u64::MAX };
            reno.on_loss(&mut window, &loss);
            assert_eq!((window.ssthresh(), window.exact()), (half, half as f64), "{segments} segments");
        }
    }
}
