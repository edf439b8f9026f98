//! A congestion control with a gauge, for values that quinn's statistics do not include.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// Values after the last batch of ACKs or the last loss, shared by an end and its control. A single thread uses both.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    /// Number of batches and losses.
    changes: AtomicU64,
    window: AtomicU64,
    ssthresh: AtomicU64,
    flight: AtomicU64,
    max_flight: AtomicU64,
    max_window: AtomicU64,
    /// The round trip of the newest packet in the batch, in nanoseconds; 0 if the last event was a loss.
    round_trip: AtomicU64,
    /// The probe timeout without the ACK delay, in nanoseconds.
    timeout: AtomicU64,
}

/// A reading of a gauge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) changes: u64,
    /// The window in bytes.
    pub(super) window: u64,
    pub(super) ssthresh: u64,
    pub(super) flight: u64,
    pub(super) max_flight: u64,
    pub(super) max_window: u64,
    /// The round trip in nanoseconds; 0 if the last event was a loss.
    pub(super) round_trip: u64,
    pub(super) timeout: u64,
}

impl Gauge {
    pub(super) fn read(&self) -> Reading {
        Reading {
            changes: self.changes.load(Relaxed),
            window: self.window.load(Relaxed),
            ssthresh: self.ssthresh.load(Relaxed),
            flight: self.flight.load(Relaxed),
            max_flight: self.max_flight.load(Relaxed),
            max_window: self.max_window.load(Relaxed),
            round_trip: self.round_trip.load(Relaxed),
            timeout: self.timeout.load(Relaxed),
        }
    }

    fn set(&self, control: &dyn Controller, flight: u64, round_trip: u64) {
        let metrics = control.metrics();
        self.window.store(metrics.congestion_window, Relaxed);
        self.ssthresh.store(metrics.ssthresh.unwrap_or(u64::MAX), Relaxed);
        self.flight.store(flight, Relaxed);
        self.max_window.fetch_max(metrics.congestion_window, Relaxed);
        self.round_trip.store(round_trip, Relaxed);
        self.changes.fetch_add(1, Relaxed);
    }
}

/// Makes controls with a gauge. Each end needs its own, because an end and its control share it.
pub(super) struct Gauged {
    pub(super) factory: Arc<dyn ControllerFactory + Send + Sync>,
    pub(super) gauge: Arc<Gauge>,
}

impl ControllerFactory for Gauged {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let control = self.factory.clone().build(now, current_mtu);
        Box::new(WithGauge { control, gauge: self.gauge.clone(), acked: 0, newest: now, smoothed: 0, variation: None })
    }
}

struct WithGauge {
    control: Box<dyn Controller>,
    gauge: Arc<Gauge>,
    /// For the current batch: bytes acknowledged, and when the newest of its packets was sent.
    acked: u64,
    newest: Instant,
    /// quinn's smoothed round trip before the current batch, and the variation, in nanoseconds. The variation is computed here, since quinn
    /// does not expose its own.
    smoothed: u64,
    variation: Option<u64>,
}

impl WithGauge {
    /// Takes a round trip (RFC 9002 §5.3) and sets the probe timeout (§6.2.1).
    fn measure(&mut self, sample: u64) {
        const GRANULARITY: u64 = 1_000_000;
        // quinn gives the smoothed round trip before this sample.
        let (smoothed, variation) = match self.variation {
            None => (sample, sample / 2),
            Some(variation) => {
                let apart = self.smoothed.abs_diff(sample);
                (self.smoothed - self.smoothed / 8 + sample / 8, variation - variation / 4 + apart / 4)
            }
        };
        self.variation = Some(variation);
        self.gauge.timeout.store(smoothed + (4 * variation).max(GRANULARITY), Relaxed);
    }
}

impl Controller for WithGauge {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.control.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.acked += bytes;
        self.newest = sent;
        self.smoothed = rtt.get().as_nanos() as u64;
        self.control.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.control.on_end_acks(now, in_flight, app_limited, largest);
        self.gauge.max_flight.fetch_max(in_flight + self.acked, Relaxed);
        let round_trip = now.saturating_duration_since(self.newest).as_nanos() as u64;
        // A batch of bare ACKs acknowledges no ack-eliciting packets.
        if std::mem::take(&mut self.acked) > 0 {
            self.measure(round_trip);
            self.gauge.set(&*self.control, in_flight, round_trip);
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        self.control.on_congestion_event(now, sent, persistent, lost_bytes);
        let flight = self.gauge.flight.load(Relaxed).saturating_sub(lost_bytes);
        self.gauge.set(&*self.control, flight, 0);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.control.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.control.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.control.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let (control, gauge) = (self.control.clone_box(), self.gauge.clone());
        let WithGauge { acked, newest, smoothed, variation, .. } = *self;
        Box::new(WithGauge { control, gauge, acked, newest, smoothed, variation })
    }

    fn initial_window(&self) -> u64 {
        self.control.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.control.into_any()
    }
}
