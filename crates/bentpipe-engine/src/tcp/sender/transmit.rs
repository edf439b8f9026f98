//! Selection of the next segment: retransmissions, new data within the window or the pipe, and probes of a closed
//! window.

use super::Sender;
use crate::rtt::RtoTiming;
use crate::tcp::abort::Abort;
use crate::tcp::config::WindowUnit;
use crate::tcp::departures::Departs;
use crate::tcp::persist::Intervals;
use crate::tcp::recovery::{Chooser, Phase};
use crate::tcp::span::Span;
use crate::tcp::startup;
use crate::tcp::timer::Awaited;
use crate::units::{Duration, Time};

/// The maximum time between two probes of a closed window.
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(60);

impl Sender {
    /// The segment to send next at all other times. Counts it as sent.
    #[inline(never)]
    pub(super) fn next_in_need(&mut self, now: Time) -> Option<Span> {
        let span = self.choose_in_need(now)?;
        Some(self.sent(now, span))
    }

    fn choose_in_need(&mut self, now: Time) -> Option<Span> {
        if let Some(seq) = self.recovery.take_retransmission() {
            // Bytes after the lost ones may be included, within the peer's window.
            let edge = self.seq.right_edge(u64::MAX).max(self.seq.snd_max);
            return Some(self.span(seq, self.loss.scoreboard.next_reported(seq, edge)));
        }
        if !self.is_open {
            // Before the handshake is done, only the SYN is sent.
            return (self.seq.snd_nxt == 0).then(|| self.span(0, 1));
        }
        if self.tail.is_due() {
            return self.choose_tail_probe();
        }
        if self.recovery.limited.take_allowance() {
            return self.limited_transmit();
        }
        if self.frto.take_probe() {
            return self.new_data_for_frto();
        }
        if self.burst == 0 {
            return None;
        }
        let span = match self.recovery.chooser() {
            Chooser::Window if self.has_sent_all() => None,
            Chooser::Window => self.choose_by_window(now),
            Chooser::Pipe => self.choose_by_pipe(now),
            Chooser::Run => self.recovery.choose_from_run(&self.seq, self.full()),
        }?;
        self.burst -= 1;
        Some(span)
    }

    /// New data within the window, or everything again if `snd_nxt` has gone back. Not everything has been sent.
    #[inline(always)]
    pub(super) fn choose_by_window(&mut self, now: Time) -> Option<Span> {
        let edge = self.seq.right_edge(self.congestion.window.usable());
        if self.seq.snd_nxt >= edge {
            self.maybe_persist(now);
            return None;
        }
        let span = self.span(self.seq.snd_nxt, edge);
        self.worth_sending(now, &span).then_some(span)
    }

    /// True if a segment is not too small (RFC 9293 §3.8.6.2.1) and the Nagle algorithm lets it go (§3.7.4).
    #[inline(always)]
    fn worth_sending(&mut self, now: Time, span: &Span) -> bool {
        if span.len == self.full() || span.syn {
            return true;
        }
        //= RFC 9293 §3.8.6: "SHOULD retransmit normally the old unacknowledged data between SND.UNA and SND.UNA+SND.WND",
        //= however little of it a window that has shrunk, or an old one that came late, lets out
        if span.seq < self.seq.snd_max && !self.persist.is_running() {
            return true;
        }
        let all = span.seq + span.len as u64 == self.seq.data_end;
        let idle = self.seq.snd_nxt == self.seq.snd_una;
        if all {
            return !self.nagle || idle || span.fin;
        }
        let in_bytes = self.congestion.window.unit() == WindowUnit::Bytes;
        if in_bytes && idle && 2 * span.len as u64 >= self.seq.peer.max {
            return true;
        }
        self.maybe_persist(now);
        false
    }

    fn choose_by_pipe(&mut self, now: Time) -> Option<Span> {
        if !self.recovery.pipe_has_room(&self.seq, &self.congestion, &self.loss.scoreboard) {
            return None;
        }
        let span = self.next_seg(now)?;
        self.recovery.sent_into_pipe();
        Some(span)
    }

    /// NextSeg (RFC 6675 §4): (1) lost segments, (2) new data, (3) any gap, (4) the rescue.
    fn next_seg(&mut self, now: Time) -> Option<Span> {
        let lost_only = self.recovery.repairs_lost_only();
        if !self.defers_repair
            && let Some((start, end)) = self.loss.scoreboard.next_gap(self.seq.snd_una, lost_only)
        {
            return Some(self.span(start, end));
        }
        let new = self.seq.snd_max;
        let edge = self.seq.right_edge(self.congestion.window.clamp());
        if new < self.seq.end() && new < edge {
            self.seq.snd_nxt = new;
            let span = self.span(new, edge);
            if self.worth_sending(now, &span) {
                return Some(span);
            }
        }
        if !self.recovery.is_thorough() {
            return None;
        }
        if let Some((start, end)) = self.loss.scoreboard.next_gap(self.seq.snd_una, false) {
            return Some(self.span(start, end));
        }
        self.recovery.rescue(&self.seq, &self.loss.scoreboard, self.full())
    }

    //= RFC 5682 §2.1 step 2b: "transmit up to two new (previously unsent) segments"
    fn new_data_for_frto(&mut self) -> Option<Span> {
        let (new, edge) = (self.seq.snd_max, self.seq.right_edge(self.congestion.window.clamp()));
        if new >= self.seq.end() || new >= edge {
            self.frto.cancel_probes();
            return None;
        }
        let span = self.span(new, edge);
        self.seq.snd_nxt = new;
        Some(span)
    }

    fn limited_transmit(&mut self) -> Option<Span> {
        let anything = self.departures.limited_transmit_after_loss();
        let from = if anything { self.seq.snd_nxt } else { self.seq.snd_max };
        let (duplicates, full) = (self.loss.duplicates(), self.full());
        self.recovery.limited.choose(&mut self.seq, &self.congestion.window, from, duplicates, full)
    }

    /// Starts probing a closed or too small window if data waits and nothing is outstanding (RFC 9293 §3.8.6.1).
    fn maybe_persist(&mut self, now: Time) {
        let nothing_out = self.seq.snd_una == self.seq.snd_nxt;
        if !self.persist.is_running() && !self.timer.is_running() && nothing_out {
            self.persist.start(now, self.probe_intervals());
        }
    }

    /// True if closed windows are probed as Linux does. This does not depend on SACK blocks from the peer.
    fn probes_as_linux(&self) -> bool {
        self.timer.rtt.config().timing == RtoTiming::Segments
    }

    /// The intervals between probes of a closed window.
    pub(super) fn probe_intervals(&self) -> Intervals {
        let rtt = &self.timer.rtt;
        let max = if self.probes_as_linux() { rtt.config().max } else { MAX_PROBE_INTERVAL };
        Intervals { first: rtt.rto(), max }
    }

    /// Records an answer to a probe of a closed window: in Linux the next interval begins then (`tcp_ack_probe`).
    #[cold]
    pub(super) fn on_probe_answered(&mut self, now: Time) {
        self.persist.on_answer(now);
        if self.persist.is_running() && self.probes_as_linux() {
            self.persist.restart(now, self.probe_intervals());
        }
    }

    /// The time of a probe has come. It is the end if too many had no answer (Linux's `tcp_probe_timer`).
    #[cold]
    pub(super) fn on_probe_time(&mut self, now: Time) -> Result<(), Abort> {
        let (config, intervals) = (self.timer.rtt.config(), self.probe_intervals());
        let max = config
            .max_probes
            .map(|max| if self.seq.is_orphan() { config.max_closed_retries.unwrap_or(max) } else { max });
        if let Some(max) = max
            && (self.persist.is_exhausted(max) || self.seq.is_orphan() && self.persist.is_slowest(intervals))
        {
            return Err(Abort::RetriesExhausted);
        }
        self.persist.on_time(now, intervals);
        Ok(())
    }

    /// The timer has expired, and the peer has closed a window in which data is outstanding. True if it has been silent for so long that
    /// the connection ends (Linux's `tcp_rtx_probe0_timed_out`); once the program has closed the timer's own bound holds.
    #[cold]
    pub(super) fn is_given_up_while_shut(&self, now: Time, awaited: Awaited) -> bool {
        let config = self.timer.rtt.config();
        if config.max_probes.is_none() {
            return false;
        }
        let max = config.max.saturating_mul(2);
        let is_silent = self.persist.silence(now) > max && self.timer.lasts_longer(now, max);
        if self.seq.is_orphan() { self.timer.is_exhausted(now, awaited) } else { is_silent }
    }

    /// The pending probe: one byte beyond a closed window, or what a window below a segment allows (RFC 9293 §3.8.6.1,
    /// §3.8.6.2.1). Linux sends no byte, but an empty segment with the previous sequence number, which also asks for an
    /// answer (`tcp_xmit_probe_skb`).
    pub(super) fn due_probe(&mut self) -> Option<Span> {
        if self.seq.snd_una >= self.seq.end() {
            return None;
        }
        let is_shut = self.seq.peer.now == 0 && self.seq.flight() == 0;
        if is_shut && self.probes_as_linux() {
            return Some(Span::empty(self.seq.snd_una - 1));
        }
        let una = self.seq.snd_una;
        let span = match self.seq.peer.now {
            // What is outstanding is sent again, as much as a segment holds (`tcp_retransmit_skb`).
            0 if self.probes_as_linux() => self.span(una, self.seq.snd_max),
            window => self.span(una, una + window.max(1)),
        };
        Some(self.count(span))
    }

    /// The segment that starts at `seq` and ends before `edge`.
    #[inline(always)]
    fn span(&self, seq: u64, edge: u64) -> Span {
        self.seq.span(seq, edge, self.full())
    }

    /// Records that a segment is sent now.
    #[inline(always)]
    pub(super) fn sent(&mut self, now: Time, span: Span) -> Span {
        let nothing_out = self.seq.snd_una == self.seq.snd_max;
        let fresh = span.seq >= self.seq.snd_max;
        let end = span.end();
        let times_all = self.departures.times_retransmissions();
        if end > self.seq.snd_max
            && let Some(buffer) = &mut self.send_buffer
        {
            buffer.on_sent(end, self.seq.data_end);
        }
        if fresh {
            if times_all || self.recovery.phase() == Phase::Open {
                self.timer.time(end, now);
            }
        } else {
            if self.recovery.phase() != Phase::Open {
                self.undo.on_retransmitted(now);
                self.frto.on_retransmitted(end.saturating_sub(self.seq.snd_una));
            }
            if !times_all {
                self.timer.retransmitted(span.seq);
            }
            // The rescue does not move HighRxt: data below it that turns out to be lost must still be retransmitted.
            if !self.recovery.take_rescue() {
                self.loss.scoreboard.retransmitted(end);
            }
            // Linux's `tcp_xmit_retransmit_queue`: the oldest segment, unless the reordering timer is running.
            let is_repair = span.seq <= self.seq.snd_una && self.recovery.phase() != Phase::Open;
            if is_repair && self.timer.is_by_segments() && self.loss.scoreboard.deadline() == Time::NEVER {
                self.timer.start(now);
            }
        }
        if span.seq == self.seq.snd_nxt || fresh {
            self.seq.snd_nxt = self.seq.snd_nxt.max(end);
        }
        let span = self.count(span);
        if !self.timer.is_running() || nothing_out {
            self.restart_if_idle(now);
            self.timer.start(now);
        }
        if nothing_out {
            self.congestion.on_idle(now, now.saturating_since(self.last_sent));
        }
        if nothing_out && self.congestion.properties().measures_rate {
            self.note_restart(now);
        }
        if self.is_open
            && let Some(rack) = self.loss.scoreboard.rack()
        {
            rack.on_sent(span.seq, end, now);
            if fresh && self.recovery.phase() == Phase::Open {
                if !self.tail.has_just_started(now) {
                    self.restart_tail(now);
                } else if self.tail.is_unbounded() {
                    self.bound_tail(now);
                }
            }
        }
        if self.unused.is_some() {
            self.note_use(now, fresh);
        }
        self.last_sent = now;
        self.burst_sent += 1;
        self.counters.max_burst = self.counters.max_burst.max(self.burst_sent);
        span
    }

    /// Called at the first segment of a flight. That segment fits any window, so the window counts from the second one
    /// on.
    fn restart_if_idle(&mut self, now: Time) {
        if !self.restart_after_idle {
            return;
        }
        let timeouts = startup::timeouts_in(now.saturating_since(self.last_sent), self.timer.rtt.rto());
        match timeouts {
            0 => {}
            _ if self.idle_decay => self.congestion.decay_after_idle(timeouts, self.initial_window),
            _ => self.congestion.restart_after_idle(self.initial_window),
        }
        if let Some(unused) = self.unused.as_mut().filter(|_| timeouts > 0) {
            unused.begin(now);
        }
    }

    /// The program waits for room: the buffer grows if the data in flight does not fill the window (Linux's
    /// `tcp_new_space`, after each packet and each ACK). An unused window then decays later.
    #[cold]
    pub(super) fn grow_send_buffer(&mut self, now: Time) {
        let (window, pipe) = (&self.congestion.window, self.loss.scoreboard.pipe(self.seq.snd_una, self.seq.snd_max));
        let segments = u64::from(window.segments());
        if pipe.div_ceil(window.mss()) >= segments {
            return;
        }
        if let Some(buffer) = &mut self.send_buffer {
            buffer.grow(segments);
        }
        if let Some(unused) = &mut self.unused {
            unused.postpone(now);
        }
    }

    /// True if the application has more to send, and the peer's window or the send buffer prevents it.
    pub(super) fn is_held_up(&self) -> bool {
        !self.has_sent_all() || self.send_buffer.as_ref().is_some_and(|buffer| buffer.is_full())
    }

    /// Records the use of the window when a segment is sent. A window that the application has not filled for a timeout
    /// decays, unless the application is held up. A tail loss probe that sends data again uses nothing (Linux calls
    /// `tcp_cwnd_validate` where new data leaves).
    fn note_use(&mut self, now: Time, fresh: bool) {
        let (una, max, is_held) = (self.seq.snd_una, self.seq.snd_max, self.is_held_up());
        let is_calm = self.is_open && self.recovery.phase() == Phase::Open;
        let Some(unused) = &mut self.unused else { return };
        if !is_calm {
            return unused.begin(now);
        }
        if !fresh {
            return;
        }
        let used = unused.on_sent(now, (una, max), &self.congestion.window, self.timer.rtt.rto());
        if let Some(used) = used.filter(|_| !is_held) {
            unused.begin(now);
            self.congestion.decay_unused(used, self.initial_window);
        }
    }

    #[inline(always)]
    fn count(&mut self, mut span: Span) -> Span {
        let end = span.end();
        span.retransmission = span.seq < self.seq.snd_max;
        self.counters.segments += 1;
        self.counters.retransmits += span.retransmission as u64;
        self.recovery.sent(self.seq.snd_max, end, span.len, span.retransmission);
        self.seq.snd_max = self.seq.snd_max.max(end);
        self.counters.max_flight = self.counters.max_flight.max(self.seq.flight());
        span
    }
}
