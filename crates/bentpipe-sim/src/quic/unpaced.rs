//! A congestion control that quinn does not pace.
//!
//! quinn has no switch for its pacer, but the pacer delays nothing if the window is 4 GiB or more. While another packet
//! fits into the control's own window, the reported window is therefore this large; otherwise it is the control's own,
//! so quinn waits for an ACK. quinn reports no probes of the path MTU, so the flight may exceed the window by a probe
//! until the next ACK.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// A window that quinn does not pace.
const NOT_PACED: u64 = 1 << 32;

/// Makes controls without pacing.
pub(super) struct Unpaced {
    pub(super) factory: Arc<dyn ControllerFactory + Send + Sync>,
}

impl ControllerFactory for Unpaced {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let control = self.factory.clone().build(now, current_mtu);
        Box::new(WithoutPacing { control, mtu: current_mtu.into(), flight: 0 })
    }
}

struct WithoutPacing {
    control: Box<dyn Controller>,
    mtu: u64,
    /// Bytes in flight.
    flight: u64,
}

impl Controller for WithoutPacing {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.flight += bytes;
        self.control.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.control.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.flight = in_flight;
        self.control.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        self.flight = self.flight.saturating_sub(lost_bytes);
        self.control.on_congestion_event(now, sent, persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
        self.control.on_mtu_update(new_mtu);
    }

    /// quinn sends a packet if, with it, the flight is less than the window.
    fn window(&self) -> u64 {
        let own = self.control.window();
        if self.flight + self.mtu < own { own.max(NOT_PACED) } else { own }
    }

    fn metrics(&self) -> ControllerMetrics {
        self.control.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(WithoutPacing { control: self.control.clone_box(), ..*self })
    }

    fn initial_window(&self) -> u64 {
        self.control.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.control.into_any()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quinn_proto::congestion::NewRenoConfig;

    use super::*;

    /// NewReno with a window of 12 000 bytes and packets of 1000: whether it is paced follows every change of flight and window.
    #[test]
    fn the_own_window_shows_only_when_it_is_full() {
        let start = Instant::now();
        let (sent, later) = (start + Duration::from_millis(1), start + Duration::from_millis(600));
        let mut control = Arc::new(Unpaced { factory: Arc::new(NewRenoConfig::default()) }).build(start, 1000);
        let initial = control.window();
        assert_eq!(
            (initial, control.initial_window(), control.metrics().congestion_window),
            (NOT_PACED, 12_000, 12_000)
        );
        control.on_sent(sent, 10_999, 0);
        assert_eq!(control.window(), NOT_PACED);
        control.on_sent(sent, 1, 1);
        assert_eq!(control.window(), 12_000);
        control.on_mtu_update(999);
        assert_eq!(control.window(), NOT_PACED);
        control.on_mtu_update(1000);
        assert_eq!(control.clone_box().window(), 12_000);
        // The loss halves the window and leaves 4 999 bytes in flight.
        control.on_congestion_event(later, sent, false, 6_001);
        assert_eq!(control.window(), NOT_PACED);
        control.on_sent(later, 1, 2);
        assert_eq!(control.window(), 6_000);
        control.on_end_acks(later, 4_999, false, Some(1));
        assert_eq!(control.window(), NOT_PACED);
        control.on_end_acks(later, 5_000, false, Some(1));
        assert_eq!(control.window(), 6_000);
    }
}
