//! How a connection finds its first operating point: initial window, slow start, and the window after a pause.
//!
//! Every congestion control uses these rules unless it has its own.

mod hybrid;
mod hystart;
mod search;

use alloc::boxed::Box;

use self::hybrid::Hybrid;
use self::hystart::{CSS_GROWTH_DIVISOR, HyStart, Verdict};
use self::search::Deliveries;
use super::congestion::{AckSample, Window};
use super::variant::{Growth, SlowStartExit, Variant};
use crate::units::Duration;

//= RFC 5681 §3.1: "if the SYN or SYN/ACK is lost, the initial window used by a sender after a correctly transmitted SYN
//= MUST be one segment"
/// The initial window in segments; `syn_lost`: the SYN or SYN-ACK was lost more often than the settings tolerate.
pub(in crate::tcp) fn initial_window(configured: u32, syn_lost: bool) -> u32 {
    if syn_lost { 1 } else { configured }
}

/// Slow start, and the search for its end before the first loss.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct SlowStart {
    growth: Growth,
    /// max_ssthresh of RFC 3742, in segments.
    limit: Option<u32>,
    search: Search,
}

/// The search for the end of slow start before a loss. Few variants have one, so it is behind a pointer.
#[derive(Clone, Debug)]
enum Search {
    None,
    /// Used only until the first loss (RFC 9406 §4.3).
    PlusPlus(Box<HyStart>),
    Hybrid(Box<Hybrid>),
    Deliveries(Box<Deliveries>),
}

impl SlowStart {
    pub(in crate::tcp) fn new(variant: &Variant) -> Self {
        let search = match variant.slow_start_exit {
            SlowStartExit::Loss => Search::None,
            SlowStartExit::HyStartPlusPlus => Search::PlusPlus(Box::new(HyStart::new())),
            SlowStartExit::HyStart => Search::Hybrid(Box::default()),
            SlowStartExit::Search => Search::Deliveries(Box::default()),
        };
        SlowStart { growth: variant.growth, limit: variant.limited_slow_start, search }
    }

    /// Tells the search that the sender spreads each window over the round trip.
    pub(in crate::tcp) fn allow_for_pacing(&mut self) {
        if let Search::Hybrid(hybrid) = &mut self.search {
            hybrid.allow_for_pacing();
        }
    }

    /// Takes an ACK of new data while the window is below the threshold. With [`Growth::All`], returns the bytes left
    /// for congestion avoidance when the window reaches the threshold (Linux's `tcp_slow_start`); otherwise 0.
    #[inline(always)]
    pub(in crate::tcp) fn on_ack(&mut self, window: &mut Window, ack: &AckSample) -> u64 {
        let mut more = slow_start(self.growth, ack.acked, ack.after_timeout, window.exact_mss());
        if let Some(max_ssthresh) = self.limit {
            more *= limited(window.exact() / window.exact_mss(), f64::from(max_ssthresh));
        }
        match &mut self.search {
            Search::None => {}
            Search::PlusPlus(hystart) => match hystart.on_ack(ack) {
                Verdict::Grow => {}
                Verdict::GrowSlowly => more /= CSS_GROWTH_DIVISOR,
                Verdict::Leave => {
                    window.set(window.exact() + more / CSS_GROWTH_DIVISOR);
                    window.set_ssthresh(window.exact());
                    self.search = Search::None;
                    return 0;
                }
            },
            Search::Deliveries(deliveries) => {
                if let Some(overshoot) = deliveries.on_ack(ack) {
                    window.set((window.exact() - overshoot as f64).max(2.0 * window.exact_mss()));
                    window.set_ssthresh(window.exact());
                    self.search = Search::None;
                    return 0;
                }
            }
            Search::Hybrid(hybrid) => {
                if hybrid.on_ack(ack, window) {
                    window.set_ssthresh(window.exact());
                    return if self.growth == Growth::All { ack.acked } else { 0 };
                }
            }
        }
        let to = window.exact() + more;
        if self.growth != Growth::All || to <= window.exact_ssthresh() {
            window.set(to);
            return 0;
        }
        window.set(window.exact_ssthresh());
        (to - window.exact_ssthresh()) as u64
    }

    /// Takes an ACK of new data while the window is below the threshold and not in use.
    pub(in crate::tcp) fn on_unused(&mut self, window: &mut Window, ack: &AckSample) {
        match &mut self.search {
            Search::Hybrid(hybrid) => {
                if hybrid.on_ack(ack, window) {
                    window.set_ssthresh(window.exact());
                }
            }
            //= RFC 9406 §4.2: "For each arriving ACK in slow start [...] Keep track of the minimum observed RTT"
            Search::PlusPlus(hystart) => {
                if hystart.on_ack(ack) == Verdict::Leave {
                    window.set_ssthresh(window.exact());
                    self.search = Search::None;
                }
            }
            Search::None | Search::Deliveries(_) => {}
        }
    }

    /// Records a loss; `timeout`: the retransmission timer found it.
    pub(in crate::tcp) fn on_loss(&mut self, timeout: bool) {
        match &mut self.search {
            Search::None => {}
            // From now on, the threshold ends slow start.
            Search::PlusPlus(_) | Search::Deliveries(_) => self.search = Search::None,
            Search::Hybrid(hybrid) if timeout => hybrid.restart(),
            Search::Hybrid(_) => {}
        }
    }
}

/// The fraction of slow start's growth that limited slow start allows with a window of `cwnd` segments: 1/K, where K is
/// the whole number of halves of `max_ssthresh` in the window (RFC 3742 §2).
fn limited(cwnd: f64, max_ssthresh: f64) -> f64 {
    if cwnd <= max_ssthresh { 1.0 } else { 1.0 / libm::floor(cwnd / (0.5 * max_ssthresh)) }
}

/// The bytes by which an ACK of `acked` bytes opens the window in slow start (RFC 5681 §3.1, RFC 3465 §2).
#[inline(always)]
fn slow_start(growth: Growth, acked: u64, after_timeout: bool, mss: f64) -> f64 {
    match growth {
        Growth::PerAck => mss,
        Growth::All => acked as f64,
        Growth::Bytes(limit) => {
            //= RFC 3465 §2.3: L is 1*SMSS in the slow start that follows a timeout
            // An ACK may then cover much data that had arrived long before.
            let limit = if after_timeout { limit.min(1) } else { limit };
            (acked as f64).min(limit as f64 * mss)
        }
    }
}

//= RFC 5681 §4.1: "a TCP SHOULD set cwnd to no more than RW before beginning transmission if the TCP has not sent data
//= in an interval exceeding the retransmission timeout", with "RW = min(IW,cwnd)"
/// The number of timeouts that fit into an idle time. If it is not 0, the sender must restart at the current segment.
pub(in crate::tcp) fn timeouts_in(idle: Duration, rto: Duration) -> u32 {
    let whole = idle.as_ticks().saturating_sub(1) / rto.as_ticks().max(1);
    u32::try_from(whole).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3742 §2 with max_ssthresh of 100: up to 100 segments the window grows by one for each; then K = 2 from 101
    /// on, 3 from 150 on. So a window above 100 grows by at most 50 per round trip.
    #[test]
    fn limited_slow_start_by_hand() {
        for (cwnd, k) in [(50.0, 1.0), (100.0, 1.0), (101.0, 2.0), (149.0, 2.0), (150.0, 3.0), (1000.0, 20.0)] {
            assert_eq!(limited(cwnd, 100.0), 1.0 / k, "{cwnd}");
            assert!(cwnd <= 100.0 || cwnd * limited(cwnd, 100.0) <= 75.0);
        }
    }

    #[test]
    fn an_idle_time_outlasts_timeouts() {
        let rto = Duration::from_millis(200);
        for (idle, timeouts) in [(200, 0), (201, 1), (400, 1), (401, 2), (1300, 6)] {
            assert_eq!(timeouts_in(Duration::from_millis(idle), rto), timeouts, "{idle} ms");
        }
    }

    #[test]
    fn slow_start_by_hand() {
        // L = 2 segments of 1000 bytes; after a timeout L = 1.
        assert_eq!(slow_start(Growth::Bytes(2), 1500, false, 1000.0), 1500.0);
        assert_eq!(slow_start(Growth::Bytes(2), 5000, false, 1000.0), 2000.0);
        assert_eq!(slow_start(Growth::Bytes(2), 5000, true, 1000.0), 1000.0);
        assert_eq!(slow_start(Growth::PerAck, 5000, true, 1000.0), 1000.0);
        assert_eq!(slow_start(Growth::All, 5000, true, 1000.0), 5000.0);
    }

    /// Twenty ACKs of a segment each, with this round trip in milliseconds. Returns the bytes by which each has opened the window.
    fn round(start: &mut SlowStart, window: &mut Window, una: &mut u64, rtt: u64) -> Vec<f64> {
        let rtt = Some(Duration::from_millis(rtt));
        let acks = (0..20).map(|_| {
            *una += 1000;
            let (before, max) = (window.exact(), *una + 20_000);
            // So late that no ACKs are a train.
            let now = crate::units::Time::from_nanos(*una * 3000);
            let ack =
                AckSample { now, acked: 1000, snd_una: *una, snd_max: max, rtt, latest_rtt: rtt, ..Default::default() };
            start.on_ack(window, &ack);
            window.exact() - before
        });
        acks.collect()
    }

    fn start(exit: SlowStartExit) -> (SlowStart, Window) {
        let mut config = crate::tcp::TcpConfig { mss: 1000, ..Default::default() };
        config.variant.slow_start_exit = exit;
        config.variant.growth = Growth::Bytes(2);
        (SlowStart::new(&config.variant), Window::new(&config, 20))
    }

    /// RFC 9406 §4.2: the ACK whose sample shows that the round trip has grown still opens the window by a segment, and the next by a
    /// quarter. So does the ACK that ends the last round of conservative slow start, and its window is the threshold.
    #[test]
    fn an_ack_opens_the_window_before_it_counts() {
        let (mut slow, mut window) = start(SlowStartExit::HyStartPlusPlus);
        let mut una = 0;
        (0..2).for_each(|_| drop(round(&mut slow, &mut window, &mut una, 100)));
        // The first ACK still belongs to the round before.
        let grown = round(&mut slow, &mut window, &mut una, 130);
        assert_eq!((grown[8], grown[9]), (1000.0, 250.0));
        while window.in_slow_start() {
            una += 1000;
            let rtt = Some(Duration::from_millis(130));
            let (before, snd_max) = (window.exact(), una + 20_000);
            slow.on_ack(&mut window, &AckSample { acked: 1000, snd_una: una, snd_max, rtt, ..Default::default() });
            assert_eq!(window.exact() - before, 250.0);
        }
        assert_eq!(window.exact_ssthresh(), window.exact());
    }

    /// RFC 9406 §4.2: ACKs that find the window unused count for the search too, but open nothing. Here they fill the third and fourth
    /// rounds: the round trip has grown, so the next ACK that finds it in use opens it by a quarter.
    #[test]
    fn an_unused_window_is_searched_too() {
        let (mut slow, mut window) = start(SlowStartExit::HyStartPlusPlus);
        let mut una = 0;
        (0..2).for_each(|_| drop(round(&mut slow, &mut window, &mut una, 100)));
        let before = window.exact();
        for _ in 0..40 {
            una += 1000;
            let rtt = Some(Duration::from_millis(130));
            slow.on_unused(&mut window, &AckSample { snd_una: una, snd_max: una + 20_000, rtt, ..Default::default() });
        }
        assert_eq!(window.exact(), before);
        assert_eq!(round(&mut slow, &mut window, &mut una, 130)[0], 250.0);
        // Five rounds in all.
        for _ in 0..60 {
            una += 1000;
            let rtt = Some(Duration::from_millis(130));
            slow.on_unused(&mut window, &AckSample { snd_una: una, snd_max: una + 20_000, rtt, ..Default::default() });
        }
        assert_eq!(window.exact_ssthresh(), window.exact());
    }

    /// RFC 9406 §4.2: once the round trip has grown, an ACK opens the window by a quarter. A loss ends the search.
    #[test]
    fn conservative_slow_start_grows_by_a_quarter() {
        let (mut slow, mut window) = start(SlowStartExit::HyStartPlusPlus);
        let mut una = 0;
        for (rtt, last) in [(100, 1000.0), (100, 1000.0), (130, 250.0), (130, 250.0)] {
            assert_eq!(round(&mut slow, &mut window, &mut una, rtt).last(), Some(&last), "{rtt} ms");
        }
        slow.on_loss(false);
        assert_eq!(round(&mut slow, &mut window, &mut una, 130)[0], 1000.0);
    }

    /// HyStart finds the end of slow start once; a timeout begins the search anew, another loss does not.
    #[test]
    fn a_timeout_begins_the_search_anew() {
        for (timeout, again) in [(true, true), (false, false)] {
            let (mut slow, mut window) = start(SlowStartExit::HyStart);
            let (mut una, mut ends) = (0, Vec::new());
            for _ in 0..2 {
                window.set_ssthresh(1e9);
                round(&mut slow, &mut window, &mut una, 100);
                round(&mut slow, &mut window, &mut una, 130);
                ends.push(window.exact_ssthresh() < 1e9);
                slow.on_loss(timeout);
            }
            assert_eq!(ends, [true, again]);
        }
    }
}
