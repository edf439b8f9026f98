//! Packets of several segments, where the window alone decides what goes out.

use super::Sender;
use crate::tcp::offload::{Moment, Situation};
use crate::units::Time;

impl Sender {
    /// The segment at `snd_nxt` leaves in the packet that has begun, or begins one. Returns whether it is the last one of several; `None` if
    /// it waits for the next ACK.
    #[inline(always)]
    pub(super) fn leaves_in_packet(&mut self, now: Time) -> Option<bool> {
        let goes_on = self.offload.as_ref()?.goes_on(now, self.last_sent);
        if !goes_on && !self.begins_packet(now) {
            return None;
        }
        self.offload.as_mut().map(|offload| offload.sent())
    }

    /// True if the packet at `snd_nxt` waits for the next ACK as one did before. [`Sender::begins_packet`] would come to the same.
    #[inline(always)]
    pub(super) fn goes_on_waiting(&mut self, now: Time) -> bool {
        let Some(offload) = self.offload.as_ref().filter(|offload| !offload.goes_on(now, self.last_sent)) else {
            return false;
        };
        let (seq, window, scoreboard) = (&self.seq, &self.congestion.window, &self.loss.scoreboard);
        let (cwnd, next) = (window.usable(), seq.snd_nxt);
        let moment = Moment {
            now,
            last_sent: self.last_sent,
            full: u64::from(self.mss - self.reserved),
            next,
            waiting: seq.data_end.saturating_sub(next),
            open: seq.right_edge(cwnd).saturating_sub(next),
            cwnd: window.exact(),
            window: cwnd.min(seq.peer.now),
            srtt: self.timer.rtt.srtt(),
        };
        let is_cwnd_limited = cwnd < seq.peer.now.min(window.clamp());
        let holds = offload.holds(&moment, || scoreboard.first_sent());
        debug_assert!(!holds || !self.begins_packet(now));
        if holds && let Some(offload) = &mut self.offload {
            offload.wait(is_cwnd_limited);
        }
        holds
    }

    #[inline(never)]
    fn begins_packet(&mut self, now: Time) -> bool {
        let Some(offload) = &mut self.offload else { return true };
        let (seq, rtt, congestion) = (&self.seq, &self.timer.rtt, &self.congestion);
        let (cwnd, next, srtt) = (congestion.window.usable(), seq.snd_nxt, rtt.srtt());
        let waiting = seq.data_end.saturating_sub(next);
        let situation = Situation {
            now,
            last_sent: self.last_sent,
            oldest: self.loss.scoreboard.first_sent(),
            srtt,
            full: u64::from(self.mss - self.reserved),
            next,
            max_peer: seq.peer.max,
            waiting,
            room: waiting.min(seq.right_edge(cwnd).saturating_sub(next)),
            cwnd,
            window: cwnd.min(seq.peer.now),
            is_cwnd_limited: cwnd < seq.peer.now.min(congestion.window.clamp()),
            is_closing: seq.fin,
        };
        let flight = seq.flight();
        offload.begin(&situation, || congestion.packet_rate(flight, srtt), || congestion.least_for_rate(flight))
    }
}
