//! Pacing of a control that only sets a window: a part of the window per round trip (Linux's `tcp_update_pacing_rate`).

use super::Window;
use crate::tcp::delivery::rate_of;
use crate::tcp::pacing::Pacing;
use crate::units::{Duration, Rate};

/// The rate, and what it follows from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// Parts of a window per round trip: below half of the threshold, and from there on.
    slow_start: f64,
    after: f64,
    /// Once the round trip is known.
    pub(super) rate: Option<Rate>,
}

impl Spread {
    /// A host of Linux.
    pub(super) const LINUX: Spread = Spread::new(Pacing::LINUX_GAINS);

    /// `gains`: the two parts in percent.
    pub(super) const fn new((slow_start, after): (u32, u32)) -> Self {
        Spread { slow_start: slow_start as f64 / 100.0, after: after as f64 / 100.0, rate: None }
    }

    /// The window, the bytes in flight or the round trip have changed.
    pub(super) fn update(&mut self, window: &Window, flight: u64, srtt: Duration) {
        self.rate = self.rate(window, flight, srtt);
    }

    /// The rate with this window, this many bytes in flight and this round trip; `None` if that is zero.
    fn rate(&self, window: &Window, flight: u64, srtt: Duration) -> Option<Rate> {
        per_round_trip(self.bytes(window, flight), srtt)
    }

    /// The bytes that leave in a round trip with this window and this many bytes in flight.
    #[inline(always)]
    pub(super) fn bytes(&self, window: &Window, flight: u64) -> f64 {
        let gain = if Spread::is_early(window) { self.slow_start } else { self.after };
        gain * window.exact().max(flight as f64)
    }

    /// True if slow start is not about to end, as it is from half of the threshold on.
    #[inline(always)]
    pub(super) fn is_early(window: &Window) -> bool {
        window.exact() < window.exact_ssthresh() / 2.0
    }
}

/// So many bytes in a round trip; `None` if that is zero.
pub(super) fn per_round_trip(bytes: f64, srtt: Duration) -> Option<Rate> {
    (srtt > Duration::ZERO).then(|| rate_of(bytes / srtt.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::TcpConfig;

    /// 20 segments of 1000 bytes per 100 ms are 1.6 Mbit/s: twice that far below the threshold, 1.2 times from half of it on; what is in
    /// flight counts where it is more than the window.
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
