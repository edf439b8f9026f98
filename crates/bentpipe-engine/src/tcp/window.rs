//! The congestion window: slow start, congestion avoidance, halving (RFC 5681 §3.1), inflation (§3.2), and the units
//! in which all this is counted.

use super::config::{SsthreshBase, TcpConfig, WindowUnit};
use super::variant::{Growth, Startup};

/// `cwnd` and `ssthresh` of one connection.
///
/// `cwnd` is a real number of bytes, since congestion avoidance adds fractions of them; only sums, products and
/// quotients are formed, which are the same on every machine.
#[derive(Clone, Debug)]
pub(super) struct CongestionWindow {
    mss: f64,
    cwnd: f64,
    ssthresh: f64,
    /// Bytes by which duplicate ACKs inflate the window in fast recovery.
    inflation: u64,
    /// Bytes acknowledged towards the next segment of congestion avoidance.
    counted: u64,
    unit: WindowUnit,
    base: SsthreshBase,
    growth: Growth,
    /// What congestion avoidance adds per ACK besides, in segments: 4.3BSD's eighth, or nothing.
    constant: f64,
    fixed: bool,
    clamp_segments: Option<u32>,
    /// Most bytes, whatever else.
    clamp: u64,
    /// `cwnd` in whole units: asked for more often than it changes.
    whole: u64,
}

impl CongestionWindow {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let mss = config.mss as f64;
        let fixed = match config.variant.startup {
            Startup::SlowStart => None,
            Startup::FixedWindow(segments) => Some(segments),
        };
        let mut window = CongestionWindow {
            mss,
            cwnd: fixed.unwrap_or(config.variant.initial_window) as f64 * mss,
            ssthresh: config.initial_ssthresh.map_or(f64::MAX, |segments| segments as f64 * mss),
            inflation: 0,
            counted: 0,
            unit: config.shortcuts.window_unit,
            base: config.shortcuts.ssthresh_base,
            growth: config.variant.growth,
            constant: if config.shortcuts.bsd_additive_constant { 0.125 } else { 0.0 },
            fixed: fixed.is_some(),
            clamp_segments: config.window_clamp,
            clamp: 0,
            whole: 0,
        };
        window.set_mss(config.mss);
        window
    }

    /// The peer's MSS is known: windows given in segments follow it.
    pub(super) fn set_mss(&mut self, mss: u16) {
        let factor = mss as f64 / self.mss;
        self.mss = mss as f64;
        self.clamp = self.clamp_segments.map_or(u64::MAX, |segments| segments as u64 * mss as u64);
        // The product may round to just below a segment.
        self.set_cwnd((self.cwnd * factor).max(self.mss));
        if self.ssthresh < f64::MAX {
            self.ssthresh *= factor;
        }
    }

    /// The window of `segments`: the initial one, or after a loss of the SYN.
    pub(super) fn set_segments(&mut self, segments: u32) {
        if !self.fixed {
            self.set_cwnd(segments as f64 * self.mss);
        }
    }

    /// A window of `segments` at most.
    pub(super) fn shrink_to(&mut self, segments: u32) {
        let most = segments as f64 * self.mss;
        if !self.fixed && self.cwnd > most {
            self.set_cwnd(most);
            self.counted = 0;
        }
    }

    /// The first threshold, from an earlier connection (RFC 9040).
    pub(super) fn set_ssthresh(&mut self, bytes: u64) {
        self.ssthresh = bytes as f64;
    }

    /// Bytes that may be outstanding: window and inflation, under the clamp, in whole units.
    #[inline]
    pub(super) fn usable(&self) -> u64 {
        (self.whole + self.inflation).min(self.clamp)
    }

    /// Bytes that the window allows without inflation and clamp, in whole units: the target of the pipe.
    #[inline]
    pub(super) fn pipe_target(&self) -> u64 {
        self.whole
    }

    #[inline]
    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.whole = match self.unit {
            WindowUnit::Bytes => cwnd as u64,
            WindowUnit::Segments => (cwnd / self.mss) as u64 * self.mss as u64,
        };
    }

    /// `cwnd` as it is, in bytes.
    pub(super) fn cwnd(&self) -> u64 {
        self.cwnd as u64
    }

    /// `cwnd` in whole segments.
    pub(super) fn whole_segments(&self) -> u32 {
        (self.cwnd / self.mss) as u32
    }

    /// `ssthresh` in bytes; `u64::MAX` before the first loss.
    pub(super) fn ssthresh(&self) -> u64 {
        self.ssthresh as u64
    }

    /// The clamp in bytes.
    #[inline]
    pub(super) fn limit(&self) -> u64 {
        self.clamp
    }

    #[inline]
    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Opens the window by an ACK of `acked` new bytes.
    #[inline]
    pub(super) fn open(&mut self, acked: u64) {
        self.open_by(acked, u32::MAX);
    }

    //= RFC 3465 §2.3: L is 1*SMSS in the slow start that follows a timeout
    /// As [`Self::open`] while what was lost is sent again: an ACK may cover much that had arrived long before.
    pub(super) fn open_after_loss(&mut self, acked: u64) {
        self.open_by(acked, 1);
    }

    #[inline]
    fn open_by(&mut self, acked: u64, limit: u32) {
        if self.fixed {
            return;
        }
        match (self.growth, self.cwnd < self.ssthresh) {
            (Growth::PerAck, true) => self.set_cwnd(self.cwnd + self.mss),
            (Growth::Bytes(most), true) => {
                self.set_cwnd(self.cwnd + (acked as f64).min(most.min(limit) as f64 * self.mss))
            }
            //= RFC 5681 §3.1, equation 3: "cwnd += SMSS*SMSS/cwnd"
            (Growth::PerAck, false) => {
                self.set_cwnd(self.cwnd + self.mss * self.mss / self.cwnd + self.constant * self.mss)
            }
            //= RFC 5681 §3.1: "when the number of bytes acknowledged reaches cwnd, then cwnd can be incremented by up
            //= to SMSS bytes"
            (Growth::Bytes(_), false) => {
                self.counted += acked;
                if self.counted as f64 >= self.cwnd {
                    self.counted -= self.cwnd as u64;
                    self.set_cwnd(self.cwnd + self.mss);
                }
            }
        }
    }

    /// Halves the threshold at a loss, with `flight` bytes outstanding and `offered` bytes of window from the peer;
    /// returns the half as it is, unrounded.
    fn halve_ssthresh(&mut self, flight: u64, offered: u64) -> f64 {
        self.counted = 0;
        let window = (self.cwnd + self.inflation as f64).min(self.clamp as f64);
        let half = match self.base {
            SsthreshBase::FlightSize => flight as f64 / 2.0,
            SsthreshBase::Window => window / 2.0,
            SsthreshBase::WholeWindow => (self.usable() / self.mss as u64 / 2) as f64 * self.mss,
            SsthreshBase::InForce => (window.min(offered as f64) / self.mss / 2.0).floor() * self.mss,
        };
        let whole = match self.unit {
            WindowUnit::Bytes => half as u64 as f64,
            WindowUnit::Segments => (half / self.mss) as u64 as f64 * self.mss,
        };
        //= RFC 5681 §3.1, equation 4: "ssthresh = max (FlightSize / 2, 2*SMSS)"
        self.ssthresh = whole.max(2.0 * self.mss);
        half
    }

    /// A loss found by duplicate ACKs: threshold and window are halved.
    pub(super) fn on_fast_retransmit(&mut self, flight: u64, offered: u64) {
        if self.fixed {
            return;
        }
        let half = self.halve_ssthresh(flight, offered);
        self.set_cwnd(match self.base {
            SsthreshBase::FlightSize | SsthreshBase::InForce => self.ssthresh,
            SsthreshBase::Window | SsthreshBase::WholeWindow => half.max(self.mss),
        });
    }

    /// Tahoe's answer to a loss: one segment.
    pub(super) fn on_restart(&mut self, flight: u64, offered: u64) {
        if self.fixed {
            return;
        }
        self.halve_ssthresh(flight, offered);
        self.set_cwnd(self.mss);
    }

    /// A timeout: one segment, no inflation. `halve` is off for a repeated timeout of the same segment (RFC 5681 §3.1).
    pub(super) fn on_timeout(&mut self, flight: u64, offered: u64, halve: bool) {
        // 4.3BSD inflates `snd_cwnd` itself, and halves what it finds there.
        if self.base != SsthreshBase::InForce {
            self.inflation = 0;
        }
        if !self.fixed {
            if halve {
                self.halve_ssthresh(flight, offered);
            }
            self.set_cwnd(self.mss);
        }
        self.inflation = 0;
    }

    /// True if a repeated timeout of one segment halves the threshold again.
    pub(super) fn halves_each_time(&self) -> bool {
        self.base == SsthreshBase::InForce
    }

    /// A duplicate ACK in fast recovery: a segment has left the network.
    pub(super) fn inflate(&mut self, segments: u32) {
        self.inflation += segments as u64 * self.mss as u64;
    }

    /// Inflation ends.
    pub(super) fn deflate_all(&mut self) {
        self.inflation = 0;
    }

    pub(super) fn inflation(&self) -> u64 {
        self.inflation
    }

    /// Inflation by exactly so many segments.
    pub(super) fn set_inflation(&mut self, segments: u32) {
        self.inflation = segments as u64 * self.mss as u64;
    }

    //= RFC 6582 §3.2 step 3B: "deflate the congestion window by the amount of new data acknowledged [...] If the
    //= partial ACK acknowledges at least one SMSS of new data, then add back SMSS bytes"
    /// A partial ACK in NewReno's recovery.
    pub(super) fn deflate_partially(&mut self, acked: u64) {
        let back = if acked >= self.mss as u64 { self.mss as u64 } else { 0 };
        if self.inflation > acked {
            self.inflation = self.inflation - acked + back;
        } else {
            self.set_cwnd((self.cwnd - (acked - self.inflation) as f64).max(self.mss));
            self.inflation = back;
        }
    }

    /// The end of NewReno's recovery, first option (RFC 6582 §3.2 step 3A): no burst.
    pub(super) fn leave_recovery(&mut self, flight: u64) {
        self.inflation = 0;
        if !self.fixed {
            self.set_cwnd(self.ssthresh.min(flight.max(self.mss as u64) as f64 + self.mss));
        }
    }

    /// A timeout was spurious: back to what was before (RFC 5682 §3).
    pub(super) fn undo(&mut self, cwnd: u64, ssthresh: u64) {
        if !self.fixed {
            self.set_cwnd((cwnd as f64).max(self.mss));
            self.ssthresh = if ssthresh == u64::MAX { f64::MAX } else { ssthresh as f64 };
        }
    }

    /// Whether the window is a segment at least. The first threshold may be as low as the user likes.
    pub(super) fn is_sound(&self) -> bool {
        self.cwnd >= self.mss && self.ssthresh > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of one segment is one of the new segment size too, though 30 * (988 / 30) is less than 988 in floating point.
    #[test]
    fn a_new_segment_size_leaves_a_whole_segment() {
        for (before, after) in (28..=1460).flat_map(|before| [(before, 988), (before, 1460)]) {
            let mut window = CongestionWindow::new(&TcpConfig { mss: before, ..TcpConfig::default() });
            window.set_segments(1);
            window.set_mss(after);
            assert!(window.is_sound(), "from {before} to {after}");
        }
    }
}
