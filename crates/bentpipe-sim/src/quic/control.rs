//! The engine's congestion controls as quinn controllers.
//!
//! quinn reports each acknowledged packet, the end of a batch of ACKs, and losses. It asks for a window and paces at
//! 1.25 windows per round trip. It does not accept a rate, so the engine's BBR cannot be used.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_engine::tcp::{Acked, Variant, WindowControl};
use bentpipe_study::scenario::{QuicControl, QuicFlow};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{
    BbrConfig, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};

use super::clock;
use super::steady::SteadyConfig;

/// Initial window of the engine's controls, in packets (RFC 9002 §7.2).
const INITIAL_PACKETS: u64 = 10;

/// Initial window of quinn's CUBIC and NewReno, in bytes.
const QUINN_WINDOW: u64 = 12_000;

/// The controls of the ends of a flow.
pub(super) fn factory(quic: &QuicFlow) -> Arc<dyn ControllerFactory + Send + Sync> {
    let initial = quic.initial_window.map(|window| window.get());
    // quinn's own does not grow with the datagram, and sends nothing if a full one does not fit (RFC 9002 §7.2 allows two).
    let two = quic.datagram.map(|datagram| 2 * u64::from(datagram)).filter(|two| *two > QUINN_WINDOW);
    let of_quinn = initial.or(two);
    let ours = |row| -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Ours { row: Variant::named(row).expect("a row of the engine's table"), initial })
    };
    match quic.congestion_control {
        QuicControl::Cubic => {
            let mut config = CubicConfig::default();
            of_quinn.map(|window| config.initial_window(window));
            Arc::new(config)
        }
        QuicControl::Reno => {
            let mut config = NewRenoConfig::default();
            of_quinn.map(|window| config.initial_window(window));
            Arc::new(config)
        }
        QuicControl::Bbr => {
            let mut config = BbrConfig::default();
            initial.map(|window| config.initial_window(window));
            Arc::new(config)
        }
        QuicControl::LinuxCubic => ours("linux-cubic"),
        QuicControl::Rfc9438 => ours("cubic"),
        QuicControl::Steady => Arc::new(SteadyConfig { initial }),
    }
}

/// Creates controls for a variant of the engine.
struct Ours {
    row: Variant,
    initial: Option<u64>,
}

impl ControllerFactory for Ours {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let initial_window = self.initial.unwrap_or(INITIAL_PACKETS * u64::from(current_mtu));
        let packets = (initial_window / u64::from(current_mtu)).clamp(1, u64::from(u32::MAX)) as u32;
        let window = WindowControl::new(&self.row, current_mtu, packets, true).expect("the row sets a window");
        Box::new(OurControl {
            window,
            initial_window,
            mtu: current_mtu,
            recovery_start: None,
            batch: None,
            flight: 0,
            sent: 0,
            made: now,
        })
    }
}

/// The packets of a batch of ACKs.
#[derive(Clone, Copy)]
struct Batch {
    bytes: u64,
    /// When the newest of them was sent.
    newest: Instant,
    srtt: std::time::Duration,
}

#[derive(Clone)]
struct OurControl {
    window: WindowControl,
    initial_window: u64,
    mtu: u16,
    /// When the last loss was found. Packets sent before that say nothing about the window after it (RFC 9002 §7.3.2).
    recovery_start: Option<Instant>,
    batch: Option<Batch>,
    /// Bytes in flight after the last batch, including those sent since.
    flight: u64,
    /// The number of the last packet sent.
    sent: u64,
    made: Instant,
}

impl OurControl {
    fn is_before_recovery(&self, sent: Instant) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }
}

impl Controller for OurControl {
    fn on_sent(&mut self, _: Instant, bytes: u64, last_packet_number: u64) {
        self.flight += bytes;
        self.sent = last_packet_number;
    }

    fn on_ack(&mut self, _: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        if self.is_before_recovery(sent) {
            return;
        }
        let batch = self.batch.get_or_insert(Batch { bytes: 0, newest: self.made, srtt: rtt.get() });
        batch.bytes += bytes;
        batch.newest = batch.newest.max(sent);
        batch.srtt = rtt.get();
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _: bool, largest: Option<u64>) {
        self.flight = in_flight;
        let Some(Batch { bytes, newest, srtt }) = self.batch.take() else { return };
        self.window.on_ack(&Acked {
            now: clock::time(now),
            bytes,
            flight: in_flight + bytes,
            rtt: clock::duration(now.saturating_duration_since(newest)),
            srtt: clock::duration(srtt),
            newest: largest.unwrap_or(0),
            sent: self.sent,
        });
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, _: u64) {
        if self.is_before_recovery(sent) {
            return;
        }
        self.recovery_start = Some(now);
        self.window.on_loss(self.flight, persistent);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.window.set_mss(new_mtu);
    }

    /// The window, at least two packets (RFC 9002 §7.2).
    fn window(&self) -> u64 {
        self.window.window().max(2 * u64::from(self.mtu))
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = Some(self.window.ssthresh());
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
