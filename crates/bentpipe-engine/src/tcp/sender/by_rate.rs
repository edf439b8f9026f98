//! What the delivery rate (`delivery.rs`) adds to the handling of ACKs, for controls that measure it.

use super::Sender;
use crate::tcp::congestion::{Delivered, FoundLost};
use crate::units::{Duration, Time};

/// The sender's state before an ACK, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    delivered: u64,
    marked: u64,
    pipe: u64,
}

impl Sender {
    /// The state before an ACK; `None` if the control does not measure the rate.
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

    /// Tells the control what an ACK, now processed, has delivered. `sample`: the round trip that the ACK gives the timer. Linux
    /// tells the control the same one if the ACK delivers only what was sent again: then it comes from timestamps
    /// (`tcp_ack_update_rtt`).
    pub(super) fn after_delivery(&mut self, now: Time, before: Before, sample: Option<Duration>) {
        let is_stamped = self.timer.is_by_segments() && self.loss.scoreboard.measured(now).is_none();
        let (una, max) = (self.seq.snd_una, self.seq.snd_max);
        let Some(rack) = self.loss.scoreboard.rack() else { return };
        let (marked, pipe, min_rtt, latest) = (rack.marked(), rack.pipe(una, max), rack.min_rtt(), rack.rtt());
        let Some(rate) = rack.rate() else { return };
        let (delivered, rate, too_high) = (rate.delivered(), rate.sample(min_rtt), rate.take_too_high());
        let newly = delivered - before.delivered;
        let latest = if is_stamped { sample } else { latest };
        let held_back = self.congestion.holds_back();
        self.congestion.on_delivered(&Delivered {
            now,
            // The SYN gives no other sample.
            rtt: if self.is_open { latest.filter(|_| newly > 0) } else { min_rtt },
            srtt: self.timer.rtt.srtt(),
            sample: rate,
            too_high,
            newly,
            delivered,
            lost: marked - before.marked,
            pipe,
            pipe_before: before.pipe,
            departure: self.pacer.earliest(now),
            phase: self.recovery.phase(),
        });
        // This includes the ACK that ends the phase: what is sent until the few segments in flight are delivered
        // depends on them.
        if (held_back || self.congestion.holds_back())
            && let Some(rate) = self.loss.scoreboard.rack().and_then(|rack| rack.rate())
        {
            rate.limited_by_application(pipe);
        }
    }

    /// Reports losses found by a timer. A control that measures the rate does not wait for an ACK to learn of them.
    pub(super) fn report_lost(&mut self, now: Time) {
        if !self.congestion.properties().measures_rate {
            return;
        }
        if let Some(rate) = self.loss.scoreboard.rack().and_then(|rack| rack.rate()) {
            let lost = FoundLost { now, delivered: rate.delivered(), too_high: rate.take_too_high() };
            self.congestion.on_found_lost(&lost);
        }
    }

    /// Tells the control, at the first segment of a flight, whether the application has paused before it.
    pub(super) fn note_restart(&mut self, now: Time) {
        let rate = self.loss.scoreboard.rack().and_then(|rack| rack.rate());
        if rate.is_some_and(|rate| rate.is_app_limited()) {
            self.congestion.on_restart_from_idle(now);
        }
    }

    /// Called when nothing is sent though pacing allows it. If there is nothing to send, the rate of the data in flight
    /// says nothing about the path. An application that waits for room in the send buffer does have something: Linux
    /// looks when the application begins to write (`tcp_sendmsg_locked`), so the rate that the buffer allows counts.
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
