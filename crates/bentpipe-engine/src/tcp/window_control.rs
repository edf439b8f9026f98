//! Congestion control for another transport: ACKs and losses in, a window out.
//!
//! The transport detects losses and paces by itself, so only controls that set a window from ACKs and losses fit. BBR and
//! Westwood+ do not: they need the rate samples of this crate's sender.

use super::config::TcpConfig;
use super::congestion::{AckSample, Congestion};
use super::loss::{FoundBy, LossReport};
use super::variant::{Startup, Variant};
use crate::units::{Duration, Time};

/// An ACK of new data.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Its arrival time.
    pub now: Time,
    /// Bytes that it acknowledges.
    pub bytes: u64,
    /// Bytes outstanding before it.
    pub flight: u64,
    /// The round trip of the newest packet that it acknowledges.
    pub rtt: Duration,
    /// The smoothed round trip.
    pub srtt: Duration,
    /// The number of the newest packet acknowledged so far, in the order of sending.
    pub newest: u64,
    /// The number of the newest packet sent.
    pub sent: u64,
}

/// The window of a connection, and the control that sets it.
#[derive(Clone, Debug)]
pub struct WindowControl {
    congestion: Congestion,
}

impl WindowControl {
    /// The control of a row of the table, for packets of at most `mss` bytes and an initial window in packets. `paced`:
    /// the transport spreads each window over the round trip. Returns `None` if the row's control measures the rate of
    /// delivery ([`CongestionControl::needs_rack`](super::variant::CongestionControl::needs_rack)), or if its window is
    /// fixed.
    pub fn new(row: &Variant, mss: u16, initial_window: u32, paced: bool) -> Option<Self> {
        let variant = Variant { initial_window, ..*row };
        let mut congestion = Congestion::new(&TcpConfig { mss, variant, ..TcpConfig::default() }, false);
        let sets_window = row.startup == Startup::SlowStart && !row.congestion.needs_rack();
        if paced {
            congestion.allow_for_pacing();
        }
        sets_window.then_some(WindowControl { congestion })
    }

    /// Takes an ACK of packets that were sent after the last loss was found.
    pub fn on_ack(&mut self, ack: &Acked) {
        let &Acked { now, bytes, flight, rtt, srtt, newest, sent } = ack;
        let sample = AckSample {
            acked: bytes,
            flight,
            is_held: false,
            after_timeout: false,
            now,
            rtt: Some(rtt),
            latest_rtt: Some(rtt),
            srtt: Some(srtt),
            snd_una: newest,
            snd_max: sent,
        };
        let is_used = self.congestion.is_used(sample.flight, sample.snd_max);
        self.congestion.on_ack(&sample, is_used);
    }

    /// Takes the first loss of a round trip, with `flight` bytes outstanding. `everything`: persistent congestion, all
    /// packets sent over several timeouts are lost (RFC 9002 §7.6).
    pub fn on_loss(&mut self, flight: u64, everything: bool) {
        let found_by = if everything { FoundBy::Timeout { repeated: false } } else { FoundBy::DuplicateAcks };
        self.congestion.on_loss(&LossReport { found_by, flight, peer_window: u64::MAX });
    }

    /// Sets the maximum packet size to `mss` bytes from now on.
    pub fn set_mss(&mut self, mss: u16) {
        // Unlike in TCP, the window in bytes stays the same.
        let (cwnd, ssthresh) = (self.window(), self.ssthresh());
        self.congestion.window.set_mss(mss);
        self.congestion.window.set(cwnd as f64);
        if ssthresh < u64::MAX {
            self.congestion.window.set_ssthresh(ssthresh as f64);
        }
    }

    /// Bytes that may be outstanding.
    pub fn window(&self) -> u64 {
        self.congestion.window.cwnd()
    }

    /// The slow start threshold in bytes; `u64::MAX` before the first loss.
    pub fn ssthresh(&self) -> u64 {
        self.congestion.window.ssthresh()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn control(row: &str) -> WindowControl {
        let row = Variant::named(row).expect("a row of the table");
        WindowControl::new(&row, MSS as u16, 10, true).expect("it sets a window")
    }

    /// Simulates a round trip of 100 ms in which each packet of the window is acknowledged by itself. Returns the
    /// window after it.
    fn round(control: &mut WindowControl, number: &mut u64, now: &mut Time) -> u64 {
        let packets = control.window() / MSS;
        let last = *number + packets;
        for _ in 0..packets {
            *number += 1;
            *now += Duration::from_nanos(100_000_000 / packets);
            let rtt = Duration::from_millis(100);
            let flight = control.window();
            let sent = last + packets;
            control.on_ack(&Acked { now: *now, bytes: MSS, flight, rtt, srtt: rtt, newest: *number, sent });
        }
        control.window()
    }

    /// Slow start doubles the window. CUBIC leaves 0.7 of it: 80 segments become 56 (RFC 9438 section 4.6).
    #[test]
    fn a_window_by_hand() {
        for row in ["cubic", "linux-cubic"] {
            let (mut control, mut number, mut now) = (control(row), 0, Time::ZERO);
            let windows = [0; 3].map(|_| round(&mut control, &mut number, &mut now));
            assert_eq!((windows, control.ssthresh()), ([20_000, 40_000, 80_000], u64::MAX), "{row}");
            control.on_loss(80_000, false);
            assert_eq!((control.window(), control.ssthresh()), (56_000, 56_000), "{row}");
            control.set_mss(500);
            assert_eq!((control.window(), control.ssthresh()), (56_000, 56_000), "{row}");
            control.on_loss(56_000, true);
            assert_eq!(control.window(), 500, "{row}: one packet after everything was lost");
        }
    }

    /// Without a queue, the ACKs of a paced window take up most of a round trip; only a whole round trip of ACKs ends
    /// slow start.
    #[test]
    fn pacing_is_no_train() {
        let row = Variant::named("linux-cubic").expect("a row of the table");
        let left = |paced| {
            let mut control = WindowControl::new(&row, MSS as u16, 64, paced).expect("it sets a window");
            let (mut now, rtt) = (Time::ZERO, Duration::from_millis(100));
            for newest in 1..=80 {
                // 1.25 windows per round trip: 64 ACKs in 80 ms.
                now += Duration::from_micros(1250);
                control.on_ack(&Acked { now, bytes: MSS, flight: control.window(), rtt, srtt: rtt, newest, sent: 200 });
            }
            control.ssthresh() < u64::MAX
        };
        assert_eq!((left(false), left(true)), (true, false));
    }

    #[test]
    fn a_rate_is_no_window() {
        for row in ["bbr", "bbr3", "westwood", "constant-window"] {
            let row = Variant::named(row).expect("a row of the table");
            assert!(WindowControl::new(&row, 1000, 10, true).is_none(), "{row:?}");
        }
    }
}
