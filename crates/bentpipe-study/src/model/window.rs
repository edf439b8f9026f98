//! Windows: their rates, and the time to open and reopen them.
//!
//! The formulas are those of the ACTS paper (section 7), with older sources where they exist. All windows are in
//! segments, and all times are in seconds or in the unit of the given round trip.

/// The window that fills a path: rate times round trip, in the unit of the rate times seconds (equation 2).
pub fn window_for(rate: f64, rtt_s: f64) -> f64 {
    rate * rtt_s
}

/// The rate that a window allows, in bit/s, for a window in bytes.
pub fn rate_for(window_bytes: f64, rtt_s: f64) -> f64 {
    window_bytes * 8.0 / rtt_s
}

/// Round trips of slow start until the window has this many segments (equation 1 and its footnote): log2 W if each
/// segment is acknowledged, 1 + log1.5 W if every second one is.
pub fn slow_start_rounds(window: f64, delayed_acks: bool) -> f64 {
    if delayed_acks { 1.0 + libm::log(window) / libm::log(1.5) } else { libm::log2(window) }
}

/// Round trips of a transfer of this many windows: slow start carries the first one, and each of the others takes a
/// round trip.
pub fn transfer_rounds(windows: f64, slow_start: f64) -> f64 {
    slow_start + windows - 1.0
}

/// The share of the window's rate that such a transfer reaches.
pub fn efficiency(windows: f64, slow_start: f64) -> f64 {
    windows / transfer_rounds(windows, slow_start)
}

/// Time in which congestion avoidance, at one segment per round trip, doubles a halved window.
pub fn linear_recovery(window: f64, rtt_s: f64) -> f64 {
    window / 2.0 * rtt_s
}

/// The same after fast recovery, which has already added the three segments of the duplicate ACKs.
pub fn fast_recovery(window: f64, rtt_s: f64) -> f64 {
    (window / 2.0 - 3.0) * rtt_s
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} {b}");
    }

    #[test]
    fn by_hand() {
        // 1.5^4 = 5.0625 and 2^10 = 1024.
        near(slow_start_rounds(5.0625, true), 5.0);
        near(slow_start_rounds(1024.0, false), 10.0);
        // Ten windows after five round trips of slow start: 5 + 9.
        near(transfer_rounds(10.0, 5.0), 14.0);
        near(efficiency(10.0, 5.0), 10.0 / 14.0);
        near(linear_recovery(100.0, 0.5), 25.0);
        near(fast_recovery(100.0, 0.5), 23.5);
        // 1 Mbyte in flight for half a second is 16 Mbit/s.
        near(rate_for(1e6, 0.5), 16e6);
        near(window_for(16e6, 0.5), 8e6);
    }
}
