//! Packets of several segments, where the window alone decides what goes out.

use super::Sender;
use crate::tcp::offload::Situation;
use crate::units::Time;

impl Sender {
    /// The segment at `snd_nxt` leaves in the packet that has begun, or begins one. Returns whether it is the last one of several; `None` if
    /// it waits for the next ACK.
    #[inline(always)]
    pub(super) fn leaves_in_packet(&mut self, now: Time) -> Option<bool> {
        let goes_on = self.last_sent == now && self.offload?.goes_on();
        if !goes_on && !self.begins_packet(now) {
            return None;
        }
        self.offload.as_mut().map(|offload| offload.sent())
    }

    #[inline(never)]
    fn begins_packet(&mut self, now: Time) -> bool {
        let situation = self.situation(now);
        self.offload.as_mut().is_some_and(|offload| offload.begin(&situation))
    }

    fn situation(&self, now: Time) -> Situation {
        let (usable, next) = (self.congestion.window.usable(), self.seq.snd_nxt);
        let waiting = self.seq.data_end.saturating_sub(next);
        Situation {
            now,
            last_sent: self.last_sent,
            oldest: self.loss.scoreboard.first_sent(),
            srtt: self.timer.rtt.srtt(),
            rate: self.congestion.packet_rate(self.seq.flight(), self.timer.rtt.srtt()),
            full: u64::from(self.full()),
            next,
            max_peer: self.seq.peer.max,
            waiting,
            room: waiting.min(self.seq.right_edge(usable).saturating_sub(next)),
            cwnd: usable,
            window: usable.min(self.seq.peer.now),
            is_closing: self.seq.fin,
        }
    }
}
