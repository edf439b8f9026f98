//! Pacing for a control that only sets a window: a multiple of the window per round trip (Linux's
//! `tcp_update_pacing_rate`).

use super::Window;
use crate::tcp::delivery::rate_of;
use crate::tcp::pacing::Pacing;
use crate::units::{Duration, Rate};

/// The pacing rate, and the values that it is computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// Windows per round trip: below half of the threshold, and from there on.
    slow_start: f64,
    after: f64,
    /// The rate; `None` until the round trip is known.
    pub(super) rate: Option<Rate>,
}

impl Spread {
    /// The values of a Linux host.
    pub(super) const LINUX: Spread = Spread::new(Pacing::LINUX_GAINS);

    /// `gains`: the two values in percent.
    pub(super) const fn new((slow_start, after): (u32, u32)) -> Self {
        Spread { slow_start: slow_start as f64 / 100.0, after: after as f64 / 100.0, rate: None }
    }

    /// Updates the rate after a change of the window, the bytes in flight or the round trip.
    pub(super) fn update(&mut self, window: &Window, flight: u64, srtt: Duration) {
        self.rate = self.rate(window, flight, srtt);
    }

    /// The rate for this window, these bytes in flight and this round trip; `None` if the round trip is zero.
    fn rate(&self, window: &Window, flight: u64, srtt: Duration) -> Option<Rate> {
        per_round_trip(self.bytes(window, flight), srtt)
    }

    /// The bytes that leave in a round trip with this window and `flight` bytes in flight.
    #[inline(always)]
    pub(super) fn bytes(&self, window: &Window, flight: u64) -> f64 {
        let gain = if Spread::is_early(window) { self.slow_start } else { self.after };
        gain * window.exact().max(flight as f64)
    }

    /// True while slow start is not about to end, that is, below half of the threshold.
    #[inline(always)]
    pub(super) fn is_early(window: &Window) -> bool {
        window.exact() < window.exact_ssthresh() / 2.0
    }
}

/// The rate of `bytes` per round trip; `None` if the round trip is zero.
pub(super) fn per_round_trip(bytes: f64, srtt: Duration) -> Option<Rate> {
    (srtt > Duration::ZERO).then(|| rate_of(bytes / srtt.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::TcpConfig;

    /// 20 segments of 1000 bytes per 100 ms are 1.6 Mbit/s: twice that well below the threshold, 1.2 times that from
    /// half of it on. If more bytes are in flight than the window, they count instead.
    #[test]
    fn a_part_of_the_window_per_round_trip() {
        let mut window = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::default() }, 20);
        let mut spread = Spread::new((200, 120));
        for (ssthresh, flight, kilobits) in [(50_000.0, 0, 3200), (40_000.0, 0, 1920), (10_000.0, 30_000, 2880)] {
            window.set_ssthresh(ssthresh);
            spread.update(&window, flight, Duration::from_millis(100));
            assert_eq!(spread.rate.map(|rate| rate.bits_per_second() / 1000), Some(kilobits), "{ssthresh}");
        }
    }
}
