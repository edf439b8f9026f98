//! What to send next: repairs, new data under the window or the pipe, probes of a closed window.

use super::*;

impl Sender {
    #[inline(always)]
    pub(in crate::tcp) fn choose(&mut self, now: Time) -> Option<Span> {
        if self.seq.snd_nxt >= self.seq.end() && self.phase == Phase::Open && self.open {
            return None;
        }
        if let Some(seq) = self.retransmit_now.take() {
            // What follows the lost bytes may go with them, as far as the peer's window reaches.
            return Some(self.span(seq, self.seq.right_edge(u64::MAX).max(self.seq.snd_max)));
        }
        if !self.open {
            // Only the SYN.
            return (self.seq.snd_nxt == 0).then(|| self.span(0, 1));
        }
        if self.limited_allowed {
            self.limited_allowed = false;
            return self.limited_transmit();
        }
        if self.frto_new > 0 {
            self.frto_new -= 1;
            return self.try_with_new();
        }
        if self.burst == 0 {
            return None;
        }
        let span = match self.variant.recovery {
            Recovery::Pipe(form)
                if self.phase != Phase::Open && !(form == PipeForm::Ns2 && self.phase == Phase::Loss) =>
            {
                self.choose_by_pipe(now, form)
            }
            Recovery::BurstEstimate(_) if self.phase == Phase::Recovery => self.choose_from_run(),
            _ => self.choose_by_window(now),
        }?;
        self.burst -= 1;
        Some(span)
    }

    /// New data under the window, or everything again after `snd_nxt` went back.
    #[inline(always)]
    pub(in crate::tcp) fn choose_by_window(&mut self, now: Time) -> Option<Span> {
        let edge = self.seq.right_edge(self.window.usable());
        if self.seq.snd_nxt >= self.seq.end() {
            return None;
        }
        if self.seq.snd_nxt >= edge {
            self.maybe_persist(now);
            return None;
        }
        let span = self.span(self.seq.snd_nxt, edge);
        self.worth_sending(now, &span).then_some(span)
    }

    /// Whether a segment is not too small (RFC 9293 §3.8.6.2.1) and Nagle lets it go (§3.7.4).
    #[inline(always)]
    pub(in crate::tcp) fn worth_sending(&mut self, now: Time, span: &Span) -> bool {
        //= RFC 9293 §3.8.6: "SHOULD retransmit normally the old unacknowledged data between SND.UNA and SND.UNA+SND.WND",
        //= however little of it a window that has shrunk, or an old one that came late, lets out
        let again = span.seq < self.seq.snd_max && self.persist_at.is_none();
        if span.len == self.full() || span.syn || again {
            return true;
        }
        let all = span.seq + span.len as u64 == self.seq.data_end;
        let idle = self.seq.snd_nxt == self.seq.snd_una;
        if all {
            return !self.nagle || idle || span.fin;
        }
        if self.unit == WindowUnit::Bytes && idle && 2 * span.len as u64 >= self.seq.peer.max {
            return true;
        }
        self.maybe_persist(now);
        false
    }

    //= RFC 6675 §5 step C: "If cwnd - pipe >= 1 SMSS, the sender SHOULD transmit one or more segments"
    pub(in crate::tcp) fn choose_by_pipe(&mut self, now: Time, form: PipeForm) -> Option<Span> {
        let mss = self.mss as u64;
        let room = match form {
            PipeForm::Ns2 => self.ns2_pipe < (self.window.pipe_target().min(self.window.limit()) / mss) as i64,
            _ => {
                self.window.pipe_target().min(self.window.limit())
                    >= self.scoreboard.pipe(self.seq.snd_una, self.seq.snd_max) + mss
            }
        };
        if !room {
            return None;
        }
        self.ns2_pipe += 1;
        let span = self.next_seg(now, form);
        self.ns2_pipe -= span.is_none() as i64;
        span
    }

    /// NextSeg (RFC 6675 §4): (1) what is lost, (2) what is new, (3) any gap, (4) the rescue. ns-2 takes any gap first.
    pub(in crate::tcp) fn next_seg(&mut self, now: Time, form: PipeForm) -> Option<Span> {
        if let Some((start, end)) = self.scoreboard.next_gap(self.seq.snd_una, form != PipeForm::Ns2) {
            return Some(self.span(start, end));
        }
        let new = self.seq.snd_max;
        let edge = self.seq.right_edge(self.window.limit());
        if new < self.seq.end() && new < edge {
            self.seq.snd_nxt = new;
            let span = self.span(new, edge);
            if self.worth_sending(now, &span) {
                return Some(span);
            }
        }
        if form == PipeForm::Ns2 || self.phase == Phase::Loss {
            return None;
        }
        if let Some((start, end)) = self.scoreboard.next_gap(self.seq.snd_una, false) {
            return Some(self.span(start, end));
        }
        if form == PipeForm::Rfc6675 { self.rescue_retransmission() } else { None }
    }

    //= RFC 6675 §4 NextSeg rule 4: "one segment of up to SMSS octets that MUST include the highest outstanding
    //= unSACKed sequence number SHOULD be returned"
    pub(in crate::tcp) fn rescue_retransmission(&mut self) -> Option<Span> {
        if self.rescue.is_some_and(|upto| self.seq.snd_una <= upto) || self.scoreboard.end() >= self.seq.snd_max {
            return None;
        }
        self.rescue = self.recover;
        self.rescuing = true;
        let from = self.scoreboard.end().max(self.seq.snd_una).max(self.seq.snd_max.saturating_sub(self.full() as u64));
        Some(self.span(from, self.seq.snd_max))
    }

    //= RFC 5682 §2.1 step 2b: "transmit up to two new (previously unsent) segments"
    fn try_with_new(&mut self) -> Option<Span> {
        let (new, edge) = (self.seq.snd_max, self.seq.right_edge(self.window.limit()));
        if new >= self.seq.end() || new >= edge {
            self.frto_new = 0;
            return None;
        }
        let span = self.span(new, edge);
        self.seq.snd_nxt = new;
        Some(span)
    }

    //= RFC 3042 §2: "The amount of outstanding data would remain less than or equal to the congestion window plus 2
    //= segments"
    pub(in crate::tcp) fn limited_transmit(&mut self) -> Option<Span> {
        let allowance = self.dupacks as u64 * self.mss as u64;
        let cwnd = match self.unit {
            WindowUnit::Bytes => self.window.cwnd(),
            WindowUnit::Segments => self.window.pipe_target(),
        };
        let edge = self.seq.right_edge((cwnd + allowance).min(self.window.limit()));
        // ns-2 sends what it would send next, which after a timeout is not new.
        let new = if self.ns2 { self.seq.snd_nxt } else { self.seq.snd_max };
        if new >= self.seq.data_end || new + (self.mss as u64).min(self.seq.data_end - new) > edge {
            return None;
        }
        self.seq.snd_nxt = new;
        let span = self.span(new, edge);
        self.limited_sent += span.len as u64;
        Some(span)
    }

    /// A zero window with data to send and nothing outstanding: probe (RFC 9293 §3.8.6.1).
    pub(in crate::tcp) fn maybe_persist(&mut self, now: Time) {
        if self.persist_at.is_none() && self.rto_at.is_none() && self.seq.snd_una == self.seq.snd_nxt {
            self.persist_backoff = 0;
            self.persist_at = Some(now + self.persist_interval());
        }
    }

    /// The probe that is due: one byte beyond a window that is shut, else what a window too small for a segment lets out
    /// (RFC 9293 §3.8.6.2.1, "if the override timeout occurs").
    pub(in crate::tcp) fn due_probe(&mut self) -> Option<Span> {
        if self.seq.snd_una >= self.seq.end() {
            return None;
        }
        // As much as the window takes if it is only too small; a byte beyond it if it is closed (RFC 9293 §3.8.6.1,
        // §3.8.6.2.1).
        let span = self.span(self.seq.snd_una, self.seq.snd_una + self.seq.peer.now.max(1));
        Some(self.count(span))
    }

    /// The segment that starts at `seq` and ends before `edge`.
    #[inline(always)]
    pub(in crate::tcp) fn span(&self, seq: u64, edge: u64) -> Span {
        self.seq.span(seq, edge, self.full())
    }

    /// Keeps the books of a segment that goes out now.
    #[inline(always)]
    pub(in crate::tcp) fn sent(&mut self, now: Time, span: Span) -> Span {
        let nothing_out = self.seq.snd_una == self.seq.snd_max;
        let fresh = span.seq >= self.seq.snd_max;
        let end = span.end();
        if fresh {
            if self.timed.is_none() && (self.ns2 || self.phase == Phase::Open) {
                self.timed = Some((end, now));
            }
        } else {
            //= RFC 6298 §3: "RTT samples MUST NOT be made using segments that were retransmitted"
            if !self.ns2 && self.timed.is_some_and(|(timed_end, _)| span.seq < timed_end) {
                self.timed = None;
            }
            // The rescue leaves HighRxt where it is: what it shows to be lost below it is still to be sent again.
            if !core::mem::take(&mut self.rescuing) {
                self.scoreboard.retransmitted(end);
            }
        }
        if span.seq == self.seq.snd_nxt || fresh {
            self.seq.snd_nxt = self.seq.snd_nxt.max(end);
        }
        let span = self.count(span);
        if self.rto_at.is_none() || nothing_out {
            self.restart_if_idle(now);
            self.rto_at = Some(self.rtt.deadline(now));
        }
        self.last_sent = now;
        self.burst_sent += 1;
        self.counters.max_burst = self.counters.max_burst.max(self.burst_sent);
        span
    }

    //= RFC 5681 §4.1: "a TCP SHOULD set cwnd to no more than RW before beginning transmission if the TCP has not sent data
    //= in an interval exceeding the retransmission timeout", with "RW = min(IW,cwnd)"
    /// At the first segment of a flight: it fits any window, so the window counts from the second on.
    fn restart_if_idle(&mut self, now: Time) {
        if self.restart_after_idle && now.saturating_since(self.last_sent) > self.rtt.rto() {
            self.window.shrink_to(self.variant.initial_window);
        }
    }

    #[inline(always)]
    pub(in crate::tcp) fn count(&mut self, mut span: Span) -> Span {
        let end = span.end();
        span.retransmission = span.seq < self.seq.snd_max;
        self.counters.segments += 1;
        self.counters.retransmits += span.retransmission as u64;
        if let Some(run) = &mut self.run {
            run.sent(self.seq.snd_max, end, span.retransmission);
        }
        self.seq.snd_max = self.seq.snd_max.max(end);
        self.counters.max_flight = self.counters.max_flight.max(self.seq.snd_max - self.seq.snd_una);
        span
    }
}
