//! Packets of several segments, used while the window alone decides what goes out.

use super::Sender;
use crate::tcp::offload::Situation;
use crate::tcp::sending::Half;
use crate::units::Time;

impl Sender {
    /// Sends the segment at `snd_nxt`, up to `end`, in the packet that has begun, or in a new one. Returns whether it has PSH: if
    /// it is the last of several segments, or of a packet with the end of a piece that is pushed. `None` if it waits for the next ACK.
    #[inline(always)]
    pub(super) fn leaves_in_packet(&mut self, now: Time, end: u64) -> Option<bool> {
        let goes_on = self.offload.as_ref()?.goes_on(now, self.last_sent);
        if !goes_on && !self.begins_packet(now) {
            return None;
        }
        if goes_on && let Some(buffer) = &mut self.send_buffer {
            buffer.go_on();
        }
        let (is_last_of_several, is_over) = self.offload.as_mut().map(|offload| offload.sent())?;
        let pushes = is_over && self.send_buffer.as_ref().is_some_and(|buffer| buffer.pushes(end));
        Some(is_last_of_several || pushes)
    }

    /// True if the packet at `snd_nxt` waits for the next ACK for the same reason as an earlier one.
    /// [`Sender::begins_packet`] would give the same result.
    #[inline(always)]
    pub(super) fn goes_on_waiting(&mut self, now: Time) -> bool {
        if self.offload.as_ref().is_none_or(|offload| offload.goes_on(now, self.last_sent)) {
            return false;
        }
        let situation = self.situation(now);
        let holds = self.offload.as_ref().is_some_and(|offload| offload.holds(&situation));
        debug_assert!(!holds || !self.begins_packet(now));
        if holds && let Some(offload) = &mut self.offload {
            offload.wait(situation.is_cwnd_limited);
        }
        holds
    }

    #[inline(never)]
    fn begins_packet(&mut self, now: Time) -> bool {
        if self.burst_sent > 0 {
            self.look_for_room(now);
        }
        let situation = self.situation(now);
        let Some(offload) = &mut self.offload else { return true };
        let (congestion, flight) = (&self.congestion, self.seq.flight());
        let rate = || congestion.packet_rate(flight, situation.srtt);
        offload.begin(&situation, rate, || congestion.least_for_rate(flight))
    }

    #[inline(always)]
    fn situation(&self, now: Time) -> Situation {
        let (seq, window) = (&self.seq, &self.congestion.window);
        let (cwnd, next) = (window.usable(), seq.snd_nxt);
        let waiting = seq.data_end.saturating_sub(next);
        let open = seq.right_edge(cwnd).saturating_sub(next);
        Situation {
            now,
            last_sent: self.last_sent,
            oldest: self.loss.scoreboard.first_sent(),
            srtt: self.timer.rtt.srtt(),
            full: u64::from(self.full()),
            next,
            max_peer: seq.peer.max,
            piece_end: self.send_buffer.as_ref().map_or(0, |buffer| buffer.end_of_first()),
            waiting,
            open,
            room: waiting.min(open),
            cwnd,
            window: cwnd.min(seq.peer.now),
            exact_cwnd: window.exact(),
            is_cwnd_limited: cwnd < seq.peer.now.min(window.clamp()) && open <= waiting,
            is_closing: seq.fin,
        }
    }
}
