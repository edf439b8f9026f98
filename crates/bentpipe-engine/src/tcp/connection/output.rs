//! Outgoing segments, and notifications to the driver.

use super::{Duplex, Output, Pending, State, timestamp};
use crate::machine::{Context, Step};
use crate::probe::{Event, Probe};
use crate::tcp::config::Handshake;
use crate::tcp::ecn::EcnMode;
use crate::tcp::segment::{Flags, Segment, Timestamps};
use crate::tcp::sending::{Protocol, SendingHalf};
use crate::tcp::span::Span;
use crate::units::Time;
use crate::wire::tcp::MAX_OPTIONS;

/// Length of a SACK option in bytes, with its padding.
const fn sack_option_len(blocks: usize) -> u16 {
    if blocks == 0 { 0 } else { 4 + 8 * blocks as u16 }
}

/// SACK blocks that fit `room` bytes.
const fn blocks_in(room: u16) -> usize {
    (room.saturating_sub(4) / 8) as usize
}

impl<S: SendingHalf> Duplex<S> {
    /// Turns a span into a segment, with the fields that segments in both directions share.
    #[inline(always)]
    pub(super) fn segment(&mut self, now: Time, span: Span) -> Segment {
        let synchronized = self.receiver.rcv_nxt() > 0;
        let mut flags = if synchronized { Flags::ACK } else { Flags::NONE };
        if span.fin {
            flags = flags | Flags::FIN;
        }
        if span.push {
            flags = flags | Flags::PSH;
        }
        let mut segment = Segment::new(flags);
        (segment.seq, segment.len) = (span.seq, span.len);
        if span.syn {
            self.dress_syn(&mut segment, synchronized);
        } else {
            segment.window = self.receiver.offer_window(self.kept.rcv_scale);
        }
        segment.timestamps = if span.syn && !synchronized && self.config.timestamps {
            Some(Timestamps { value: timestamp(now), echo: 0 })
        } else {
            self.timestamps_now(now)
        };
        if synchronized {
            segment.ack = self.receiver.rcv_nxt();
            self.kept.last_ack_sent = segment.ack;
            if !span.syn {
                self.add_reports(&mut segment);
            }
            self.receiver.acknowledged(now);
        }
        if span.len > 0 {
            self.receiver.on_answer(now);
        }
        if self.ecn.mode != EcnMode::Off && !span.syn {
            self.mark(&mut segment, &span);
        }
        if S::PROTOCOL == Protocol::Stp {
            self.mark_poll(&mut segment);
        }
        segment
    }

    /// Adds SACK blocks and the accurate ECN option.
    #[inline(always)]
    fn add_reports(&mut self, segment: &mut Segment) {
        let with_data = segment.len > 0;
        let wish = self.ecn.wish(with_data);
        if wish.is_none() && !self.receiver.has_sack_blocks() {
            return;
        }
        let all = self.room_for_reports();
        let room = if with_data { all.min(self.sender.mss() - segment.len) } else { all };
        let blocks = self.receiver.sack_blocks_due();
        let shared = wish.and_then(|wish| Some((wish, wish.share(u32::from(room), blocks)?)));
        segment.sack = self.receiver.sack_blocks(shared.map_or(blocks_in(room), |(_, (_, blocks))| blocks));
        if let Some((wish, (counters, _))) = shared {
            segment.set_marked_bytes(&self.ecn.told(&wish, counters, with_data));
        }
    }

    /// Sets the ECN marks of a segment.
    fn mark(&mut self, segment: &mut Segment, span: &Span) {
        segment.flags = segment.flags | self.ecn.flags(span.len == 0 && segment.sack.is_empty());
        if span.len > 0 {
            let (ecn, reduced) = self.sender.marks_of(span);
            (segment.ecn, segment.flags) = (ecn, segment.flags | reduced);
        } else {
            segment.ecn = self.sender.ect_of_control();
        }
    }

    /// Puts the number of a poll, and of the last poll received, on a segment without data.
    fn mark_poll(&self, segment: &mut Segment) {
        if let (Some(number), 0) = (self.sender.poll_number(), segment.sequence_len()) {
            let value = if segment.flags.has(Flags::PSH) { number } else { 0 };
            segment.timestamps = Some(Timestamps { value, echo: self.poll_heard });
        }
    }

    fn dress_syn(&mut self, segment: &mut Segment, answer: bool) {
        segment.flags = segment.flags | Flags::SYN;
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        segment.window = self.receiver.offer_syn_window(S::PROTOCOL.window_limit());
        if self.config.shortcuts.handshake == Handshake::OneWay {
            return;
        }
        segment.syn.mss = Some(self.config.mss);
        if S::PROTOCOL == Protocol::Stp {
            // STP negotiates nothing else: SACK is always on, and windows are never scaled.
            return;
        }
        //= RFC 3168 §6.1.1.1: a SYN that no answer comes to may have been dropped for what it asks
        let timeouts = self.sender.counters().timeouts;
        let asks = timeouts <= u64::from(self.config.ecn_retries);
        let ecn = match answer {
            //= RFC 9768 §3.2.3.2.2: a SYN-ACK that no answer comes to goes without the option, then without the flags
            true if !asks && self.ecn.mode == EcnMode::Accurate => {
                self.ecn.sends_plain_syn_ack();
                Flags::NONE
            }
            true => self.ecn.flags_of_syn_ack(),
            false if asks => self.config.ecn.flags_of_syn(),
            false => Flags::NONE,
        };
        segment.flags = segment.flags | ecn;
        let is_first = answer && timeouts == 0 && !self.ecn.has_syn_again;
        if let Some(bytes) = self.ecn.bytes_of_syn_ack().filter(|_| is_first) {
            segment.set_marked_bytes(&bytes);
        }
        segment.syn.sack_permitted = if answer { self.kept.sack } else { self.config.variant.sack };
        //= RFC 7323 §2.2: "This option MAY be sent in an initial <SYN> segment [...] If a Window Scale option was received in
        //= the initial <SYN> segment, then this option MAY be sent in the <SYN,ACK> segment", also where our shift is 0
        let scale = if answer { self.kept.scaled } else { self.config.window_scaling };
        segment.syn.window_scale = scale.then(|| self.offered_scale());
    }

    /// A segment without data.
    #[inline(always)]
    pub(super) fn bare(&mut self, now: Time) -> Segment {
        let seq = self.sender.sequence().seq_of_bare_ack();
        self.kept.pure_acks += 1;
        self.segment(now, Span::empty(seq))
    }

    /// The bytes received in order from the start, if that is the only notification: what the next poll would return as
    /// [`Output::Readable`].
    #[inline(always)]
    pub fn take_readable(&mut self) -> Option<u64> {
        (self.pending == Pending::READABLE && !self.receiver.acks_first()).then(|| {
            self.pending = Pending::default();
            self.received()
        })
    }

    /// The bytes written and acknowledged, if that is the only notification: what the next poll would return as
    /// [`Output::Acknowledged`].
    #[inline(always)]
    pub fn take_acknowledged(&mut self) -> Option<u64> {
        (self.pending == Pending::ACKNOWLEDGED).then(|| {
            self.pending = Pending::default();
            self.sender.sequence().acknowledged()
        })
    }

    pub(super) fn notification(&mut self) -> Option<Output> {
        if self.pending.take(Pending::CONNECTED) {
            return Some(Output::Connected);
        }
        if self.pending.take(Pending::READABLE) {
            return Some(Output::Readable(self.received()));
        }
        if self.pending.take(Pending::ACKNOWLEDGED) {
            return Some(Output::Acknowledged(self.sender.sequence().acknowledged()));
        }
        if self.pending.take(Pending::PEER_CLOSED) {
            return Some(Output::PeerClosed);
        }
        None
    }

    /// True in a state in which data or a SYN may be sent.
    pub(super) fn can_send(&self) -> bool {
        self.state.sends_data() || matches!(self.state, State::SynSent | State::SynReceived)
    }

    pub(super) fn end_of_life<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<Output> {
        if let Some(reset) = self.reset.take() {
            return self.transmit(cx, *reset, false);
        }
        match self.closed.take() {
            Some(result) => Step::Do(Output::Closed(result)),
            None => Step::Wait(None),
        }
    }

    #[inline(always)]
    pub(super) fn transmit<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: Segment,
        retransmission: bool,
    ) -> Step<Output> {
        cx.emit(|| Event::Sent { segment, retransmission });
        self.sender.on_transmit(cx.now, &segment);
        Step::Do(Output::Transmit(segment))
    }

    /// The timestamps of a segment sent now, if negotiated.
    #[inline(always)]
    pub(super) fn timestamps_now(&self, now: Time) -> Option<Timestamps> {
        self.kept.timestamps.then(|| Timestamps { value: timestamp(now), echo: self.kept.ts_recent })
    }

    /// Bytes available for options beside the timestamps.
    fn room_for_reports(&self) -> u16 {
        MAX_OPTIONS as u16 - if self.kept.timestamps { 12 } else { 0 }
    }

    /// Bytes of a data segment to reserve for pending SACK blocks and the accurate ECN option, at most half of the
    /// segment.
    #[inline(always)]
    pub(super) fn reserved_for_options(&self) -> u16 {
        let marked = self.ecn.wish(true).map_or(0, |wish| wish.len() as u16);
        match (self.receiver.sack_blocks_due(), marked) {
            (0, 0) => 0,
            (due, marked) => {
                let half = self.sender.mss() / 2;
                (sack_option_len(due.min(blocks_in(half))) + marked).min(half).min(self.room_for_reports())
            }
        }
    }
}
