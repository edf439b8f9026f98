//! The congestion window: its values, and the units in which they are counted.

use crate::tcp::config::{TcpConfig, WindowUnit};

/// `cwnd` and `ssthresh` of one connection.
///
/// `cwnd` is a real number of bytes, because congestion avoidance adds fractions. Only sums, products and quotients are
/// used, whose results are the same on every machine.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Window {
    mss: f64,
    cwnd: f64,
    ssthresh: f64,
    /// Bytes by which duplicate ACKs inflate the window in fast recovery.
    inflation: u64,
    /// The largest window in bytes.
    clamp: u64,
    /// `cwnd` in whole units, cached because it is read more often than it changes. `mss` as an integer is cached for
    /// the same reason.
    whole: u64,
    mss_bytes: u16,
    unit: WindowUnit,
    /// `ssthresh` is that of an earlier connection, in bytes.
    is_inherited: bool,
    clamp_segments: Option<u32>,
}

impl Window {
    pub(in crate::tcp) fn new(config: &TcpConfig, segments: u32) -> Self {
        let mss = config.mss as f64;
        let mut window = Window {
            mss,
            mss_bytes: 0,
            cwnd: segments as f64 * mss,
            ssthresh: config.initial_ssthresh.map_or(f64::MAX, |segments| segments as f64 * mss),
            inflation: 0,
            clamp: 0,
            whole: 0,
            unit: config.shortcuts.window_unit,
            is_inherited: false,
            clamp_segments: config.window_clamp,
        };
        window.set_mss(config.mss);
        window
    }

    /// Sets the peer's MSS. Windows counted in segments change with it; a threshold of an earlier connection is in bytes and does not.
    pub(in crate::tcp) fn set_mss(&mut self, mss: u16) {
        let factor = mss as f64 / self.mss;
        (self.mss, self.mss_bytes) = (mss as f64, mss);
        self.clamp = self.clamp_segments.map_or(u64::MAX, |segments| segments as u64 * mss as u64);
        // The product may round to just below a segment.
        self.set((self.cwnd * factor).max(self.mss));
        if self.ssthresh < f64::MAX && !self.is_inherited {
            self.ssthresh *= factor;
        }
    }

    /// `cwnd` in bytes, rounded down.
    #[inline(always)]
    pub(in crate::tcp) fn cwnd(&self) -> u64 {
        if self.unit == WindowUnit::Bytes { self.whole } else { self.cwnd_of_segments() }
    }

    /// The same where windows are counted in segments.
    // A function of its own, because the conversion would otherwise be done with each ACK, whatever the unit.
    #[cold]
    #[inline(never)]
    fn cwnd_of_segments(&self) -> u64 {
        self.cwnd as u64
    }

    /// `cwnd` in segments, rounded down.
    pub(in crate::tcp) fn segments(&self) -> u32 {
        (self.cwnd / self.mss) as u32
    }

    /// `cwnd` in whole units (bytes or segments): the target of a pipe.
    #[inline(always)]
    pub(in crate::tcp) fn whole(&self) -> u64 {
        self.whole
    }

    /// Bytes that may be outstanding: window and inflation, within the clamp, in whole units.
    #[inline(always)]
    pub(in crate::tcp) fn usable(&self) -> u64 {
        (self.whole + self.inflation).min(self.clamp)
    }

    /// `ssthresh` in bytes; `u64::MAX` before the first loss.
    pub(in crate::tcp) fn ssthresh(&self) -> u64 {
        self.ssthresh as u64
    }

    /// Sets the initial ssthresh, from an earlier connection (RFC 9040).
    pub(in crate::tcp) fn inherit_ssthresh(&mut self, bytes: u64) {
        (self.ssthresh, self.is_inherited) = (bytes as f64, true);
    }

    /// The largest window in bytes.
    #[inline(always)]
    pub(in crate::tcp) fn clamp(&self) -> u64 {
        self.clamp
    }

    /// Bytes of a full segment.
    #[inline(always)]
    pub(in crate::tcp) fn mss(&self) -> u64 {
        self.mss_bytes.into()
    }

    /// The unit in which windows are counted.
    #[inline(always)]
    pub(in crate::tcp) fn unit(&self) -> WindowUnit {
        self.unit
    }

    #[inline(always)]
    pub(in crate::tcp) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// True if `flight` bytes use the window: half of it in slow start, otherwise all but two segments.
    #[inline(always)]
    pub(super) fn is_used(&self, flight: u64) -> bool {
        if self.in_slow_start() { 2 * flight > self.cwnd() } else { flight + 2 * self.mss() > self.cwnd() }
    }

    /// True if the window is larger than `segments`.
    pub(super) fn exceeds(&self, segments: u32) -> bool {
        self.cwnd > segments as f64 * self.mss
    }

    /// Bytes by which fast recovery inflates the window.
    pub(in crate::tcp) fn inflation(&self) -> u64 {
        self.inflation
    }

    /// Inflates the window for a duplicate ACK in fast recovery: a segment has left the network.
    pub(in crate::tcp) fn inflate(&mut self) {
        self.inflation += self.mss();
    }

    /// Inflates the window by exactly `bytes`.
    pub(in crate::tcp) fn set_inflation(&mut self, bytes: u64) {
        self.inflation = bytes;
    }

    /// Ends the inflation.
    #[inline(always)]
    pub(in crate::tcp) fn deflate_all(&mut self) {
        self.inflation = 0;
    }

    /// `cwnd` unrounded.
    #[inline(always)]
    pub(in crate::tcp) fn exact(&self) -> f64 {
        self.cwnd
    }

    /// Sets `cwnd`.
    #[inline(always)]
    pub(in crate::tcp) fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.whole = self.whole_units(cwnd);
    }

    /// `bytes` rounded down to the unit of windows.
    #[inline(always)]
    pub(super) fn whole_units(&self, bytes: f64) -> u64 {
        match self.unit {
            WindowUnit::Bytes => bytes as u64,
            WindowUnit::Segments => (bytes / self.mss) as u64 * self.mss(),
        }
    }

    /// Bytes of a full segment, for real arithmetic.
    #[inline(always)]
    pub(in crate::tcp) fn exact_mss(&self) -> f64 {
        self.mss
    }

    pub(in crate::tcp) fn exact_ssthresh(&self) -> f64 {
        self.ssthresh
    }

    pub(in crate::tcp) fn set_ssthresh(&mut self, ssthresh: f64) {
        self.ssthresh = ssthresh;
    }

    /// Sets `cwnd` to `segments`.
    pub(super) fn set_segments(&mut self, segments: u32) {
        self.set(segments as f64 * self.mss);
    }

    /// `cwnd` and inflation, within the clamp, not rounded.
    pub(super) fn inflated(&self) -> f64 {
        (self.cwnd + self.inflation as f64).min(self.clamp as f64)
    }

    //= RFC 6582 §3.2 step 3: "(1) min (ssthresh, max(FlightSize, SMSS) + SMSS)"
    /// Sets the window after NewReno's recovery so that no burst follows.
    pub(super) fn limit_to_flight(&mut self, flight: u64) {
        self.set(self.ssthresh.min(flight.max(self.mss()) as f64 + self.mss));
    }

    /// Restores the window and threshold after a spurious timeout.
    pub(super) fn restore(&mut self, cwnd: u64, ssthresh: u64) {
        self.set((cwnd as f64).max(self.mss));
        self.ssthresh = if ssthresh == u64::MAX { f64::MAX } else { ssthresh as f64 };
    }

    /// Checks the invariant that the window is at least one segment. The initial threshold may have any value.
    pub(in crate::tcp) fn is_sound(&self) -> bool {
        self.cwnd >= self.mss && self.ssthresh > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of one segment remains one segment when the segment size changes, though 30 * (988 / 30) is less than
    /// 988 in floating point.
    #[test]
    fn a_new_segment_size_leaves_a_whole_segment() {
        for (before, after) in (28..=1460).flat_map(|before| [(before, 988), (before, 1460)]) {
            let mut window = Window::new(&TcpConfig { mss: before, ..TcpConfig::default() }, 1);
            window.set_mss(after);
            assert!(window.is_sound(), "from {before} to {after}");
        }
    }

    /// A threshold of the settings counts segments and changes with their size. One that an earlier connection has left is in bytes: the
    /// peer's segment size, or 12 bytes of timestamps, do not change what the path holds.
    #[test]
    fn an_inherited_threshold_is_in_bytes() {
        let config = TcpConfig { mss: 1460, initial_ssthresh: Some(20), ..TcpConfig::default() };
        let mut window = Window::new(&config, 10);
        window.set_mss(730);
        assert_eq!(window.ssthresh(), 20 * 730);
        window.inherit_ssthresh(50_000);
        window.set_mss(500);
        assert_eq!((window.ssthresh(), window.cwnd()), (50_000, 10 * 500));
    }
}
