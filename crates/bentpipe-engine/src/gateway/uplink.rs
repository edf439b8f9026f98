//! The sender of `uplink` towards the clients, and the connection settings that follow from the link.

use crate::rtt::RtoConfig;
use crate::tcp::variant::Startup;
use crate::tcp::{ASSUMED_MSS_IPV6, TcpConfig};
use crate::units::{Duration, Rate};

/// Stray segments and retransmissions of the last FIN arrive within a few round trips, and nobody else uses the
/// client's port.
const MIN_TIME_WAIT: Duration = Duration::from_secs(5);

/// The longest timeout: this, or this number of round trips if they take longer. Doubling up to RFC 6298's 60 s makes a connection wait
/// about as long after an outage as the outage lasted. A timeout costs the link one segment once the client is silent.
const MAX_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_TIMEOUT_TRIPS: u64 = 8;

/// How long data to a silent client is retransmitted at least, as with timeouts that double up to 60 s: 15 retransmissions
/// take 603 s. With a smaller maximum, as many would be over after a short outage, and a client that only receives would
/// never learn that its connection is gone.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The longest timeout towards clients over a link with this round trip.
pub fn max_timeout(round_trip: Duration) -> Duration {
    MAX_TIMEOUT.max(round_trip.saturating_mul(MAX_TIMEOUT_TRIPS))
}

/// Limits the timeouts. The default number of retransmissions is raised, so that [`PATIENCE`] remains.
pub fn limit_timeouts(rto: &mut RtoConfig, round_trip: Duration) {
    rto.max = rto.max.min(max_timeout(round_trip));
    if rto.max_retries == RtoConfig::RFC6298.max_retries {
        let least = PATIENCE.as_nanos().div_ceil(rto.max.as_nanos().max(1));
        rto.max_retries = rto.max_retries.max(u32::try_from(least).unwrap_or(u32::MAX));
    }
}

/// Pacing rate of payload, in bytes per second, for the kernel's sender in a gateway with this rate. With it, full
/// Ethernet segments with timestamps keep to the rate, including IP headers.
pub const fn kernel_pacing(rate: Rate) -> u64 {
    rate.bits_per_second() / 8 * 1448 / 1500
}

/// A sender of the engine, and what it must know about the path to the clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UplinkSender {
    /// The sender's row and all other settings. The settings below can reduce the segment size, the receive buffer and
    /// TIME-WAIT and `rto.max`, and can raise the first timeout. The default number of retransmissions is raised with it.
    pub tcp: TcpConfig,
    /// A connection's window in bytes. If the row has a fixed window, this replaces it; for other rows, it is an upper
    /// limit. `None` leaves the row as it is.
    pub window: Option<u64>,
    /// Upper limit of the rate towards the clients, including IP headers.
    pub rate: Rate,
    /// Round-trip time of the link.
    pub round_trip: Duration,
    /// The longest IP packet that the path to the clients takes.
    pub mtu: u16,
}

impl UplinkSender {
    /// The settings of a connection whose client accepts segments of `peer_mss`.
    pub fn settings(&self, is_v6: bool, peer_mss: Option<u16>) -> TcpConfig {
        let UplinkSender { mut tcp, window, rate, round_trip, mtu } = *self;
        let headers = if is_v6 { 60 } else { 40 };
        if is_v6 {
            tcp.assumed_mss = ASSUMED_MSS_IPV6;
        }
        tcp.mss = tcp.mss.min(mtu.saturating_sub(headers)).max(1);
        if let Some(window) = window {
            // Windows are given in segments of the length that this client will get.
            let options = if tcp.timestamps { 12 } else { 0 };
            let mss = tcp.mss_to(peer_mss).saturating_sub(options).max(1);
            let segments = u32::try_from(window.div_ceil(u64::from(mss))).unwrap_or(u32::MAX).max(1);
            match &mut tcp.variant.startup {
                Startup::FixedWindow(fixed) => *fixed = segments,
                Startup::SlowStart => tcp.window_clamp = Some(segments),
            }
        }
        // The amount that a client may send ahead: two bandwidth-delay products, in case its link is as fast as ours.
        let buffer = (2 * rate.bytes_in_floor(round_trip)).max(256 << 10);
        tcp.receive_buffer = tcp.receive_buffer.min(u32::try_from(buffer).unwrap_or(u32::MAX));
        limit_timeouts(&mut tcp.rto, round_trip);
        tcp.rto.initial = tcp.rto.initial.max(round_trip.saturating_mul(2)).min(tcp.rto.max);
        tcp.time_wait = tcp.time_wait.min(MIN_TIME_WAIT.max(round_trip.saturating_mul(4)));
        tcp
    }

    /// The send buffer for a client in bytes: two windows, so that the second one is ready when the first is
    /// acknowledged.
    pub fn send_buffer(&self) -> usize {
        let bdp = self.rate.bytes_in_floor(self.round_trip);
        let own = match self.tcp.variant.startup {
            Startup::FixedWindow(segments) => u64::from(segments) * u64::from(self.tcp.mss),
            Startup::SlowStart => bdp,
        };
        (2 * self.window.unwrap_or(own).max(bdp)).max(128 << 10) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::variant::Variant;

    /// A sender with a window of 750 kB, over a link of 1400 bytes that takes 10 Mbit/s.
    fn sender(tcp: TcpConfig, round_trip: u64) -> UplinkSender {
        let rate = Rate::from_bits_per_second(10_000_000).expect("not zero");
        let round_trip = Duration::from_millis(round_trip);
        UplinkSender { tcp, window: Some(750_000), rate, round_trip, mtu: 1400 }
    }

    /// Segments fill the link's packets. The window is the number of them, rounded up, that this client takes.
    #[test]
    fn segments_and_windows_by_hand() {
        let with = |variant: &str, timestamps, is_v6, peer| {
            let variant = Variant::named(variant).expect("a row of the table");
            let tcp = sender(TcpConfig { timestamps, variant, ..TcpConfig::default() }, 600).settings(is_v6, peer);
            (tcp.mss, tcp.window_clamp, tcp.variant.startup)
        };
        let slow_start = |mss, segments| (mss, Some(segments), Startup::SlowStart);
        // 750 000 / 1360 = 551.5, / 1340 = 559.7, / 1348 = 556.4, / 988 = 759.1.
        assert_eq!(with("sack", false, false, Some(1460)), slow_start(1360, 552));
        assert_eq!(with("sack", false, true, Some(1460)), slow_start(1340, 560));
        assert_eq!(with("sack", true, false, Some(1460)), slow_start(1360, 557));
        assert_eq!(with("sack", true, false, Some(1000)), slow_start(1360, 760));
        assert_eq!(with("constant-window", false, false, Some(1460)), (1360, None, Startup::FixedWindow(552)));
        let short = TcpConfig { mss: 1000, ..TcpConfig::default() };
        assert_eq!(sender(short, 600).settings(false, None).mss, 1000, "not raised");
    }

    /// Two bandwidth-delay products of 750 kB at 600 ms and of 62.5 kB at 50 ms, which is less than 256 KiB.
    #[test]
    fn buffers_by_hand() {
        let receive = |tcp, round_trip| sender(tcp, round_trip).settings(false, None).receive_buffer;
        assert_eq!([600, 50].map(|trip| receive(TcpConfig::default(), trip)), [1_500_000, 256 << 10]);
        assert_eq!(receive(TcpConfig { receive_buffer: 100_000, ..TcpConfig::default() }, 600), 100_000, "not raised");
        let send =
            |window, round_trip| UplinkSender { window, ..sender(TcpConfig::default(), round_trip) }.send_buffer();
        // Two windows, but at least two products and 128 KiB.
        assert_eq!([Some(1_000_000), Some(1), None].map(|window| send(window, 600)), [2_000_000, 1_500_000, 1_500_000]);
        assert_eq!(send(Some(1), 50), 128 << 10);
        let mut fixed = sender(TcpConfig::default(), 50);
        (fixed.window, fixed.tcp.variant.startup) = (None, Startup::FixedWindow(100));
        assert_eq!(fixed.send_buffer(), 2 * 100 * 1460);
    }

    /// The first timeout is two round trips or the 1 s that is set, TIME-WAIT four or 5 s, at most the 60 s that are set.
    #[test]
    fn times_by_hand() {
        let times = |round_trip| {
            let tcp = sender(TcpConfig::default(), round_trip).settings(false, None);
            [tcp.rto.initial, tcp.time_wait].map(|time| time.as_nanos() / 1_000_000)
        };
        assert_eq!([50, 600, 3000, 20_000].map(times), [[1000, 5000], [1200, 5000], [6000, 12_000], [40_000, 60_000]]);
        let mut tcp = TcpConfig::default();
        tcp.rto.max = Duration::from_secs(1);
        assert_eq!(sender(tcp, 600).settings(false, None).rto.initial, tcp.rto.max, "no longer than the longest");
    }

    /// The settings for these `rto.max` and `rto.max_retries`, with this round trip in milliseconds.
    fn settings(max_ms: u64, max_retries: u32, round_trip: u64) -> RtoConfig {
        let mut tcp = TcpConfig::default();
        (tcp.rto.max, tcp.rto.max_retries) = (Duration::from_millis(max_ms), max_retries);
        let rate = Rate::from_bits_per_second(10_000_000).expect("not zero");
        let round_trip = Duration::from_millis(round_trip);
        UplinkSender { tcp, window: None, rate, round_trip, mtu: 1500 }.settings(false, None).rto
    }

    /// However short the timeouts are, a client is given up after ten minutes. A number that was set stays.
    #[test]
    fn short_timeouts_give_nobody_up_early() {
        let default = RtoConfig::RFC6298.max_retries;
        assert_eq!([60_000, 5_000, 1_000].map(|max| settings(max, default, 600).max_retries), [120, 120, 600]);
        assert_eq!(settings(1_000, 4, 600).max_retries, 4);
    }

    /// A SYN without an MSS option stands for the default of its IP version (RFC 9293 §3.7.1), in the window, too.
    #[test]
    fn the_window_counts_the_segments_that_a_client_gets() {
        let (rate, round_trip) =
            (Rate::from_bits_per_second(10_000_000).expect("not zero"), Duration::from_millis(600));
        let sender = UplinkSender { tcp: TcpConfig::default(), window: Some(750_000), rate, round_trip, mtu: 1500 };
        for (is_v6, default) in [(false, 536), (true, 1220)] {
            let clamp = |mss| sender.settings(is_v6, mss).window_clamp;
            assert_eq!(clamp(None), clamp(Some(default)), "{is_v6}");
            assert_eq!(clamp(Some(1)), clamp(Some(28)), "no host has less");
        }
    }

    /// A timeout takes at most 5 s or eight round trips, and less if it is set.
    #[test]
    fn timeouts_are_short() {
        let max = |max_ms, round_trip| settings(max_ms, 15, round_trip).max;
        assert_eq!([40, 600, 1000].map(|round_trip| max(60_000, round_trip)), [5, 5, 8].map(Duration::from_secs));
        assert_eq!(max(1_000, 600), Duration::from_secs(1));
    }
}
