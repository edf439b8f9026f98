//! What goes out next while the window alone decides, and cheap answers for the most frequent cases.

use super::Sender;
use crate::machine::Context;
use crate::probe::Probe;
use crate::tcp::departures::Departs;
use crate::tcp::recovery::{Chooser, Phase};
use crate::tcp::sending::Half;
use crate::tcp::span::Span;
use crate::units::{Duration, Time};

impl Sender {
    /// True if the window alone decides what goes out next: the handshake is done, no loss is being repaired, and no
    /// segment has been requested that ignores the window.
    #[inline(always)]
    pub(super) fn is_ordinary(&self) -> bool {
        let is_calm = self.is_open && self.recovery.phase() == Phase::Open;
        let is_calm = is_calm && !self.tail.is_due();
        is_calm && (self.has_sent_all() || !(self.recovery.has_request() || self.frto.has_probe()))
    }

    /// True if no timer has expired by `now`, no probe of a closed window is due, segments are not paced, and the sender is
    /// [ordinary](Self::is_ordinary).
    #[inline(always)]
    pub(in crate::tcp) fn is_quiet(&self, now: Time) -> bool {
        self.deadline() > now && !self.persist.is_due() && self.congestion.pacing_rate().is_none() && self.is_ordinary()
    }

    /// True if the sender does nothing until it gets data to send or a segment that acknowledges new data: it has sent
    /// everything, no timer is on, and a new event would change nothing. Call this only if the sender is
    /// [quiet](Self::is_quiet) and reserves no bytes of segments from now on.
    #[inline(always)]
    pub(in crate::tcp) fn rests(&mut self) -> bool {
        let rests = self.has_sent_all() && self.deadline() == Time::NEVER && self.is_at_start();
        if rests {
            self.reserved = 0;
        }
        rests
    }

    /// True if a timer that was started at `now`, when the sender was [quiet](Self::is_quiet), has already expired.
    /// This can only be the tail loss probe's: two round trips may take no time.
    #[inline(always)]
    pub(in crate::tcp) fn may_expire_at_once(&self, now: Time) -> bool {
        self.tail.deadline() <= now
    }

    /// The segment to send next while the sender is [quiet](Self::is_quiet). No bytes are reserved for options.
    #[inline(always)]
    pub(in crate::tcp) fn next_without_options(&mut self, now: Time) -> Option<Span> {
        self.reserved = 0;
        self.next_ordinary(now)
    }

    #[inline(always)]
    pub(super) fn has_sent_all(&self) -> bool {
        self.seq.snd_nxt >= self.seq.end()
    }

    /// The segment to send next while the sender is [ordinary](Self::is_ordinary). Counts it as sent.
    #[inline(always)]
    pub(super) fn next_ordinary(&mut self, now: Time) -> Option<Span> {
        if self.has_sent_all() || self.burst == 0 || self.goes_on_waiting(now) {
            return None;
        }
        match self.choose_full(self.full()) {
            Some(choice) => self.send_ordinary(now, choice?),
            None => self.next_by_window(now),
        }
    }

    /// The rest of [`Self::next_ordinary`] for any segment.
    #[inline(never)]
    fn next_by_window(&mut self, now: Time) -> Option<Span> {
        let span = self.choose_by_window(now)?;
        self.send_ordinary(now, span)
    }

    /// Sends a segment that was chosen while the sender is ordinary, unless a packet waits.
    #[inline(always)]
    fn send_ordinary(&mut self, now: Time, mut span: Span) -> Option<Span> {
        if self.offload.is_some() {
            span.push |= self.leaves_in_packet(now, span.end())?;
        }
        self.burst -= 1;
        Some(self.sent(now, span))
    }

    /// The result of [`Self::choose_by_window`], with segments of at most `full` bytes, in the most frequent cases: data is
    /// in flight, none of it is sent again, and there is more than a full segment to send, for which the window has room
    /// or not. `None` in all other cases.
    #[inline(always)]
    pub(super) fn choose_full(&self, full: u16) -> Option<Option<Span>> {
        let seq = self.seq.snd_nxt;
        let end = seq + u64::from(full);
        if seq != self.seq.snd_max || seq == self.seq.snd_una || end >= self.seq.data_end {
            return None;
        }
        let edge = self.seq.right_edge(self.congestion.window.usable());
        // Where a full segment has no room, a shorter one waits (RFC 9293 §3.8.6.2.1).
        Some((end <= edge).then(|| Span { len: full, ..Span::empty(seq) }))
    }

    /// True if [`Half::next`] would return nothing, with this many bytes reserved for options, and would only note that
    /// number: there is no request to send, and no room in the window or the pipe. False if it takes longer to find out.
    pub(in crate::tcp) fn sends_nothing(&self, reserved: u16) -> bool {
        let asked = self.recovery.has_request() || self.frto.has_probe() || self.tail.is_due() || self.persist.is_due();
        if asked || !self.is_open || self.offload.is_some() || self.congestion.pacing_rate().is_some() {
            return false;
        }
        match self.recovery.chooser() {
            Chooser::Window => self.has_sent_all() || self.choose_full(self.mss - reserved) == Some(None),
            Chooser::Pipe => !self.recovery.pipe_has_room(&self.seq, &self.congestion, &self.loss.scoreboard),
            Chooser::Run => false,
        }
    }

    /// True if the sender has none of the parts that [`Self::take_simple_ack`] leaves out: RACK, offload, a send buffer,
    /// undone reductions, windows that decay or count as in Linux, measured rates, pacing.
    pub(super) fn has_no_extra_parts(&mut self) -> bool {
        let has_boxes = self.offload.is_some() || self.send_buffer.is_some() || self.unused.is_some();
        let by_time = self.loss.scoreboard.rack().is_some() || self.timer.is_by_segments();
        let is_reno = self.congestion.counts_bytes() && !self.counts_delivered;
        is_reno && !has_boxes && !by_time && !self.undo.is_enabled()
    }

    /// The part of [`Self::take_ack`] that applies to a bare ACK of new data, if the sender [has no
    /// more](Self::has_no_extra_parts), repairs no loss and is in congestion avoidance.
    #[inline(always)]
    pub(super) fn take_simple_ack<P: Probe>(&mut self, cx: &mut Context<'_, P>, ack: u64, sample: Option<Duration>) {
        self.counters.acks += 1;
        (self.burst, self.burst_sent, self.defers_repair) = (self.max_burst, 0, false);
        self.timer.forget_retries();
        self.departures.on_new_ack();
        let acked = ack - self.seq.snd_una;
        self.advance(cx, ack, sample);
        if self.departures.forgets_sack() && !self.loss.scoreboard.is_empty() {
            self.loss.scoreboard.clear();
        }
        if !self.recovery.spreads() && self.congestion.is_used(self.seq.flight() + acked, self.seq.snd_max) {
            self.congestion.on_acked(acked);
            self.counters.max_cwnd = self.counters.max_cwnd.max(self.congestion.window.cwnd());
        }
    }

    /// Reserves this many bytes of each segment for options.
    pub(in crate::tcp) fn reserve(&mut self, bytes: u16) {
        self.reserved = bytes;
    }
}
