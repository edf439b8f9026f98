//! What BBRv3 learns from losses: bounds of the rate and of the volume in flight (draft-ietf-ccwg-bbr-06 §5.5.10).

use crate::tcp::congestion::Delivered;

/// The minimum fraction of a bound that remains after a round trip with losses.
const BETA: f64 = 0.7;

/// The bounds, in bytes and bytes per second. Infinity means no bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The volume above which probes lost too much.
    pub(super) longterm: f64,
    /// The rate and volume that the last round trips with losses delivered; valid until the next probe.
    pub(super) bw: f64,
    pub(super) inflight: f64,
    /// The maximum rate and volume delivered in this round trip.
    bw_latest: f64,
    inflight_latest: f64,
    /// The round trip in which losses are counted ends when this many bytes are delivered.
    round_end: u64,
    /// This ACK begins a round trip.
    pub(super) round_starts: bool,
    /// ACKs of this round trip that showed a loss or a mark.
    pub(super) events: u32,
}

impl Bounds {
    pub(super) const NONE: Bounds = Bounds {
        longterm: f64::INFINITY,
        bw: f64::INFINITY,
        inflight: f64::INFINITY,
        bw_latest: 0.0,
        inflight_latest: 0.0,
        round_end: 0,
        round_starts: false,
        events: 0,
    };

    /// The volume delivered in the last round trip.
    pub(super) fn inflight_latest(&self) -> f64 {
        self.inflight_latest
    }

    /// NoteLoss, for a loss or a mark when `delivered` bytes are delivered. Returns true if it is the first in this
    /// round trip.
    pub(super) fn note_loss(&mut self, delivered: u64) -> bool {
        let is_first = self.events == 0;
        if is_first {
            self.round_end = delivered;
        }
        self.events += 1;
        is_first
    }

    /// UpdateLatestDeliverySignals.
    pub(super) fn update_latest(&mut self, seen: &Delivered) {
        self.round_starts = false;
        let Some(sample) = seen.sample else { return };
        self.bw_latest = self.bw_latest.max(sample.rate());
        self.inflight_latest = self.inflight_latest.max(sample.delivered as f64);
        if sample.prior_delivered >= self.round_end {
            (self.round_end, self.round_starts) = (seen.delivered, true);
        }
    }

    /// AdaptLowerBoundsFromCongestion, at the end of a round trip without a probe. `max_bw` and `cwnd` are the values
    /// before the first loss.
    pub(super) fn adapt(&mut self, max_bw: f64, cwnd: f64) {
        if self.events == 0 {
            return;
        }
        // InitLowerBounds.
        let or = |bound: f64, initial: f64| if bound.is_infinite() { initial } else { bound };
        let (bw, inflight) = (or(self.bw, max_bw), or(self.inflight, cwnd));
        self.bw = self.bw_latest.max(BETA * bw);
        self.inflight = self.inflight_latest.max(BETA * inflight);
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest(&mut self, seen: &Delivered) {
        if let Some(sample) = seen.sample.filter(|_| self.round_starts) {
            (self.bw_latest, self.inflight_latest) = (sample.rate(), sample.delivered as f64);
        }
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_signals(&mut self) {
        (self.events, self.bw_latest, self.inflight_latest) = (0, 0.0, 0.0);
    }

    /// ResetShortTermModel.
    pub(super) fn reset_short_term(&mut self) {
        (self.bw, self.inflight) = (f64::INFINITY, f64::INFINITY);
    }

    /// HandleInflightTooHigh: a probe with `tx_in_flight` lost too much; `target` is the desired volume in flight.
    pub(super) fn too_high(&mut self, tx_in_flight: f64, target: f64) {
        self.longterm = tx_in_flight.max(BETA * target);
    }

    /// Undoes a recovery that turned out to be needless (§5.5.11.2). `before`: the bounds when it began.
    pub(super) fn undo(&mut self, before: &Bounds) {
        self.events = 0;
        self.bw = self.bw.max(before.bw);
        self.inflight = self.inflight.max(before.inflight);
        self.longterm = self.longterm.max(before.longterm);
    }
}
