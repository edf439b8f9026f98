//! STP's sender: a constant window, a timer per segment, and the repair of holes.
//!
//! The cost per segment does not grow with the window: the queues in `flight.rs` are searched by bisection, and a cursor
//! that only advances looks for holes. With polls, another cursor goes once over the window for each answer.

use super::config::{Arming, StpConfig};
use super::flight::{Flight, Outstanding};
use super::line::Line;
use super::polls::Polls;
use crate::machine::Context;
use crate::probe::{Event, Probe};
use crate::tcp::sending::{Half, Protocol, SenderCounters};
use crate::tcp::sequence::SequenceSpace;
use crate::tcp::{Abort, Segment, Span};
use crate::units::{Duration, Time};
use crate::wire::stp::HEADER;

/// The sender of an STP connection.
#[derive(Clone, Debug)]
pub struct Sender {
    config: StpConfig,
    mss: u16,
    /// The constant window in bytes, before it is limited to the peer's.
    window: u64,
    /// `snd_nxt`, which is always `snd_max`.
    seq: SequenceSpace,
    /// True if data may be sent: the handshake is done.
    open: bool,

    flight: Flight,
    /// The end of the search for holes. This way, each segment is retransmitted at most once; after that, its timer
    /// does it.
    examined: u64,
    /// With polls: segments that end up to here are reported, or were sent after the last poll that was answered.
    pub(super) searched: u64,
    line: Line,
    /// The end of the segment to retransmit next, and of the one that the connection is about to send.
    resend: Option<u64>,
    leaving: Option<u64>,

    /// Number of transmissions so far.
    order: u64,
    /// Polls in place of timers, if selected.
    polls: Option<Polls>,

    /// When a window that is too small is probed.
    persist_at: Option<Time>,
    probe_now: bool,
    /// True if the peer has answered since a segment beyond its window was last sent.
    heard: bool,
    burst: u32,
    counters: SenderCounters,
}

impl Sender {
    pub(super) fn new(config: StpConfig) -> Self {
        let window = config.window(config.mss);
        Sender {
            mss: config.mss,
            window,
            seq: SequenceSpace::new(0, 0),
            open: false,
            flight: Flight::new(config.rto),
            examined: 0,
            searched: 0,
            line: Line::new(config.rate),
            resend: None,
            leaving: None,
            order: 0,
            polls: config.polls.map(Polls::new),
            persist_at: None,
            probe_now: false,
            heard: false,
            burst: 0,
            counters: SenderCounters { max_cwnd: window, ..SenderCounters::default() },
            config,
        }
    }

    /// Records the first transmission of a segment.
    fn send(&mut self, span: Span) -> Span {
        self.order += 1;
        self.flight.outstanding.push_back(Outstanding { span, transmissions: 1, order: self.order, due: None });
        (self.seq.snd_nxt, self.seq.snd_max) = (span.end(), span.end());
        self.persist_at = None;
        self.counters.max_flight = self.counters.max_flight.max(self.seq.flight());
        self.count(span)
    }

    /// Records the retransmission of an outstanding segment.
    fn send_again(&mut self, index: usize) -> Span {
        self.order += 1;
        let segment = &mut self.flight.outstanding[index];
        segment.transmissions = segment.transmissions.saturating_add(1);
        segment.order = self.order;
        let span = Span { retransmission: true, ..segment.span };
        self.counters.retransmits += 1;
        self.count(span)
    }

    fn count(&mut self, span: Span) -> Span {
        self.leaving = Some(span.end());
        self.counters.segments += 1;
        self.burst += 1;
        self.counters.max_burst = self.counters.max_burst.max(self.burst);
        span
    }

    /// The next hole: a segment below the highest SACKed one that is not SACKed and was sent only once. A segment that
    /// was retransmitted waits for its restarted timer (`stp` paper §II).
    fn next_hole(&mut self) -> Option<usize> {
        while self.examined < self.flight.sacked.end() {
            let (start, _) = self.flight.sacked.gap_from(self.examined)?;
            let index = self.flight.index_after(start);
            let segment = self.flight.outstanding.get(index)?;
            self.examined = segment.span.end();
            if segment.transmissions == 1 {
                return Some(index);
            }
        }
        None
    }

    /// The next segment that was sent before a poll and is missing in the answer. It must be sent again.
    fn next_missing(&mut self) -> Option<usize> {
        let found = self.flight.first_missing(self.searched, self.polls.as_ref()?.lost_before);
        self.searched = found.map_or(self.seq.snd_nxt, |index| self.flight.outstanding[index].span.end());
        found
    }

    /// True if the segment has a timer. Without polls, every segment has one; with polls, only those that open and
    /// close the connection.
    fn has_timer(&self, span: &Span) -> bool {
        self.polls.is_none() || span.syn || span.fin
    }

    /// New data, as much as the window allows (`stp` paper, equation 2).
    fn next_new(&mut self, now: Time) -> Option<Span> {
        if self.seq.snd_nxt >= self.seq.end() {
            return None;
        }
        let edge = self.seq.snd_una + self.window.min(self.seq.peer.now);
        if self.seq.snd_nxt < edge {
            let span = self.seq.span(self.seq.snd_nxt, edge, self.mss);
            let whole = span.len == self.mss || span.seq + span.len as u64 == self.seq.data_end;
            // If the peer's window never reaches a full segment, data that fills half of it may be sent (RFC 9293
            // §3.8.6.2.1).
            if whole || self.flight.is_empty() && 2 * span.len as u64 >= self.seq.peer.max {
                return Some(self.send(span));
            }
        }
        // With nothing outstanding there is no timer, and the peer's announcement of a larger window may have been
        // lost.
        if self.flight.is_empty() && self.persist_at.is_none() {
            self.persist_at = Some(now + self.config.rto);
        }
        None
    }

    /// Handles an expired timer.
    fn expire<P: Probe>(&mut self, cx: &mut Context<'_, P>, index: usize) -> Result<(), Abort> {
        let beyond = self.flight.outstanding[index].span.end() > self.seq.snd_una + self.seq.peer.now;
        let segment = &mut self.flight.outstanding[index];
        if segment.transmissions > self.config.max_retransmissions as u16 {
            //= RFC 9293 §3.8.6: "SHOULD NOT time out the connection if data beyond the right window edge is not
            //= acknowledged", as long as the peer answers
            if !(beyond && core::mem::take(&mut self.heard)) {
                return Err(Abort::RetriesExhausted);
            }
            segment.transmissions = 1;
        }
        segment.due = None;
        let (end, backoffs) = (segment.span.end(), segment.transmissions as u32);
        self.resend = Some(end);
        self.counters.timeouts += 1;
        cx.emit(|| Event::Timeout { snd_una: self.seq.snd_una, backoffs });
        Ok(())
    }

    /// Moves the cumulative acknowledgement to `ack`.
    fn advance(&mut self, ack: u64) {
        self.seq.advance(ack);
        self.flight.advance(ack);
    }

    /// Forgets earlier SACKs that the peer contradicts, so that every unacknowledged segment has a timer.
    fn keep_front_alive(&mut self, now: Time) {
        if self.flight.sacked.first().is_some_and(|range| range.0 <= self.seq.snd_una) {
            self.flight.sacked.clear();
            self.searched = 0;
        }
        if let Some(front) = self.flight.outstanding.front()
            && front.due.is_none()
            && self.has_timer(&front.span)
            && self.resend != Some(front.span.end())
        {
            let from = self.line.begins(now);
            self.flight.arm(0, from);
        }
    }
}

impl Half for Sender {
    const PROTOCOL: Protocol = Protocol::Stp;

    #[inline]
    fn sequence(&self) -> &SequenceSpace {
        &self.seq
    }

    #[inline]
    fn sequence_mut(&mut self) -> &mut SequenceSpace {
        &mut self.seq
    }

    fn mss(&self) -> u16 {
        self.mss
    }

    /// The constant window.
    fn cwnd(&self) -> u64 {
        self.window
    }

    fn ssthresh(&self) -> u64 {
        u64::MAX
    }

    /// Not measured, because nothing depends on it.
    fn srtt(&self) -> Option<Duration> {
        None
    }

    fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    fn write(&mut self, bytes: u64) {
        self.seq.data_end += bytes;
        self.burst = 0;
    }

    fn close(&mut self) {
        self.seq.fin = true;
        self.burst = 0;
    }

    fn established(&mut self, mss: u16, _initial_window: u32, _sack: bool) {
        self.set_peer_mss(mss);
        self.open = true;
        self.burst = 0;
    }

    fn set_peer_mss(&mut self, mss: u16) {
        self.mss = mss;
        self.window = self.config.window(mss);
        self.counters.max_cwnd = self.window;
    }

    fn resend_syn(&mut self) {
        self.resend = self.flight.outstanding.front().map(|syn| syn.span.end());
    }

    fn relisten(&mut self) {
        self.seq.forget_peer();
        (self.examined, self.searched) = (0, 0);
        self.flight.clear();
        (self.resend, self.leaving) = (None, None);
        self.polls = self.config.polls.map(Polls::new);
    }

    fn update_window(&mut self, segment: &Segment) -> bool {
        self.seq.peer.update(self.seq.snd_una, segment).unwrap_or(false)
    }

    fn on_ack<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment, changed: bool, _: Option<Duration>) {
        self.counters.acks += 1;
        self.burst = 0;
        self.heard = true;
        let (ack, flight) = (segment.ack, self.seq.flight());
        let max = self.seq.max_sacked_ranges(self.mss.into());
        // Blocks at or below the ACK contradict it; blocks beyond sent data are invalid.
        for (start, end) in segment.sack.iter(ack).filter(|block| block.0 > ack && block.0 < block.1) {
            if end <= self.seq.snd_nxt && self.flight.sacked.has_room(start, end, max) {
                self.flight.sacked.insert(start, end, |_, _| ());
            }
        }
        if ack > self.seq.snd_una {
            self.advance(ack);
        } else if segment.sequence_len() == 0 && flight > 0 && !changed {
            self.counters.duplicate_acks += 1;
        }
        self.flight.discard_stale_timers();
        self.keep_front_alive(cx.now);
        let is_idle = self.flight.is_empty();
        if let Some(polls) = &mut self.polls {
            let before = polls.lost_before;
            polls.on_ack(cx.now, segment.timestamps.map(|marks| marks.echo), is_idle);
            if polls.lost_before != before {
                self.searched = 0;
            }
        }
        cx.emit(|| Event::Window { cwnd: self.window, ssthresh: u64::MAX, flight: self.seq.flight() });
    }

    #[inline]
    fn deadline(&self) -> Time {
        let timer = Time::earliest(self.flight.deadline(), self.persist_at);
        Time::earliest(timer, self.polls.as_ref().and_then(Polls::deadline)).unwrap_or(Time::NEVER)
    }

    /// Handles one segment at a time: it is sent before the next timer is checked.
    fn on_time<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Result<(), Abort> {
        self.burst = 0;
        if self.persist_at.is_some_and(|at| at <= cx.now) {
            self.persist_at = None;
            self.probe_now = true;
        }
        let patience = self.config.rto.saturating_mul(u64::from(self.config.max_retransmissions) + 1);
        if let Some(polls) = &mut self.polls
            && !polls.on_time(cx.now, patience)
        {
            return Err(Abort::RetriesExhausted);
        }
        while self.resend.is_none()
            && let Some(timer) = self.flight.take_expired(cx.now)
        {
            if let Some(index) = timer {
                self.expire(cx, index)?;
            }
        }
        Ok(())
    }

    /// No bytes are reserved: SACK blocks beside data use the room that a segment leaves.
    fn next(&mut self, now: Time, _reserved: u16) -> Option<Span> {
        if let Some(end) = self.resend.take()
            && let Some(index) = self.flight.ending(end)
        {
            return Some(self.send_again(index));
        }
        if !self.open {
            // Before the handshake is done, only the SYN is sent.
            return (self.seq.snd_nxt == 0).then(|| self.send(self.seq.span(0, 1, self.mss)));
        }
        if let Some(polls) = &mut self.polls
            && core::mem::take(&mut polls.due)
        {
            polls.send(self.order);
            // A number inside any window, so that the segment is accepted.
            let seq =
                self.seq.snd_nxt.min(self.seq.snd_una + self.seq.peer.now.saturating_sub(1)).max(self.seq.snd_una);
            return Some(Span { seq, len: 0, syn: false, fin: false, push: true, retransmission: false });
        }
        if let Some(index) = self.next_missing().or_else(|| self.next_hole()) {
            self.counters.fast_retransmits += 1;
            return Some(self.send_again(index));
        }
        self.next_new(now)
    }

    /// The probe: what a window that is too small allows, or one byte beyond a closed window. From then on, it is a
    /// normal segment, which its timer repeats.
    fn window_probe(&mut self) -> Option<Span> {
        if !core::mem::take(&mut self.probe_now) || !self.flight.is_empty() || self.seq.snd_nxt >= self.seq.end() {
            return None;
        }
        self.heard = false;
        let edge = self.seq.snd_nxt + self.seq.peer.now.max(1);
        Some(self.send(self.seq.span(self.seq.snd_nxt, edge, self.mss)))
    }

    fn on_transmit(&mut self, now: Time, segment: &Segment) {
        let bytes = HEADER as u32 + segment.options_len() + segment.len as u32 + self.config.overhead;
        let departure = self.line.send(now, bytes);
        if let Some(index) = self.leaving.take().and_then(|end| self.flight.ending(end)) {
            let from = if self.config.arming == Arming::Departure { departure } else { now };
            if self.has_timer(&self.flight.outstanding[index].span) {
                self.flight.arm(index, from);
            }
            if let Some(polls) = &mut self.polls {
                polls.watch(departure);
            }
        }
    }

    fn poll_number(&self) -> Option<u32> {
        self.polls.as_ref().map(Polls::number)
    }

    fn memory(&self) -> usize {
        self.flight.sacked.memory()
    }

    fn check(&self) {
        self.seq.check();
        debug_assert_eq!(self.seq.snd_nxt, self.seq.snd_max);
        debug_assert_eq!(self.flight.is_empty(), self.seq.snd_una == self.seq.snd_nxt);
        debug_assert!(self.flight.outstanding.front().is_none_or(|front| front.span.seq == self.seq.snd_una));
        let is_watched = self.polls.as_ref().is_some_and(|polls| polls.deadline().is_some());
        debug_assert!(self.polls.as_ref().is_none_or(|polls| {
            self.flight.first_missing(self.searched, polls.lost_before)
                == self.flight.first_missing(0, polls.lost_before)
        }));
        debug_assert!(
            self.flight.is_empty() || is_watched || self.flight.deadline().is_some() || self.resend.is_some()
        );
    }
}
