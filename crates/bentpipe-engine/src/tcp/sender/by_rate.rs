//! What the rate of delivery (`delivery.rs`) adds to the handling of ACKs, for controls that measure it.

use super::Sender;
use crate::tcp::congestion::{Delivered, FoundLost};
use crate::units::Time;

/// The sender before an ACK. Bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    delivered: u64,
    marked: u64,
    pipe: u64,
}

impl Sender {
    /// Notes what an ACK changes; `None` if the control does not measure the rate.
    #[inline(always)]
    pub(super) fn before_delivery(&mut self) -> Option<Before> {
        if !self.congestion.properties().measures_rate {
            return None;
        }
        let (una, max) = (self.seq.snd_una, self.seq.snd_max);
        let rack = self.loss.scoreboard.rack()?;
        let (marked, pipe) = (rack.marked(), rack.pipe(una, max));
        Some(Before { delivered: rack.rate()?.delivered(), marked, pipe })
    }

    /// An ACK has been taken: the control learns what it has delivered.
    pub(super) fn after_delivery(&mut self, now: Time, before: Before) {
        let (una, max) = (self.seq.snd_una, self.seq.snd_max);
        let Some(rack) = self.loss.scoreboard.rack() else { return };
        let (marked, pipe, min_rtt, latest) = (rack.marked(), rack.pipe(una, max), rack.min_rtt(), rack.rtt());
        let Some(rate) = rack.rate() else { return };
        let (delivered, sample, too_high) = (rate.delivered(), rate.sample(min_rtt), rate.take_too_high());
        let newly = delivered - before.delivered;
        let held_back = self.congestion.holds_back();
        self.congestion.on_delivered(&Delivered {
            now,
            // The SYN has no other sample.
            rtt: if self.is_open { latest.filter(|_| newly > 0) } else { min_rtt },
            srtt: self.timer.rtt.srtt(),
            sample,
            too_high,
            newly,
            delivered,
            lost: marked - before.marked,
            pipe,
            pipe_before: before.pipe,
            departure: self.pacer.earliest(now),
            phase: self.recovery.phase(),
        });
        // Also by the ACK that ends it: what is sent until the few in flight are delivered follows them.
        if (held_back || self.congestion.holds_back())
            && let Some(rate) = self.loss.scoreboard.rack().and_then(|rack| rack.rate())
        {
            rate.limited_by_application(pipe);
        }
    }

    /// A timer has found losses: a control that measures the rate does not wait for an ACK to hear of them.
    pub(super) fn report_lost(&mut self, now: Time) {
        if !self.congestion.properties().measures_rate {
            return;
        }
        if let Some(rate) = self.loss.scoreboard.rack().and_then(|rack| rack.rate()) {
            let lost = FoundLost { now, delivered: rate.delivered(), too_high: rate.take_too_high() };
            self.congestion.on_found_lost(&lost);
        }
    }

    /// The first segment of a flight is sent: the control learns whether that is after a pause of the application.
    pub(super) fn note_restart(&mut self, now: Time) {
        let rate = self.loss.scoreboard.rack().and_then(|rack| rack.rate());
        if rate.is_some_and(|rate| rate.is_app_limited()) {
            self.congestion.on_restart_from_idle(now);
        }
    }

    /// Nothing is sent though pacing allows it: if that is because there is nothing to send, the rate of what is in flight says
    /// nothing about the path. An application that waits for room in the send buffer has something: Linux looks when it begins to write
    /// (`tcp_sendmsg_locked`), so the rate that the buffer allows counts.
    pub(super) fn note_application_limit(&mut self) {
        let (una, max) = (self.seq.snd_una, self.seq.snd_max);
        let window = self.congestion.window.whole();
        if self.is_held_up() {
            return;
        }
        if let Some(rack) = self.loss.scoreboard.rack() {
            let pipe = rack.pipe(una, max);
            if let Some(rate) = rack.rate().filter(|_| pipe < window) {
                rate.limited_by_application(pipe);
            }
        }
    }
}
