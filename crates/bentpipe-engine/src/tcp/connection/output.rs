//! Outgoing segments, and notifications to the driver.

use super::{Duplex, Output, Pending, State, timestamp};
use crate::machine::{Context, Step};
use crate::probe::{Event, Probe};
use crate::tcp::config::Handshake;
use crate::tcp::ecn::EcnMode;
use crate::tcp::segment::{Flags, MAX_SACK_BLOCKS, Segment, Timestamps};
use crate::tcp::sending::{Protocol, SendingHalf};
use crate::tcp::span::Span;
use crate::units::Time;

/// Bytes of a SACK option with its padding.
const fn sack_option_len(blocks: usize) -> u16 {
    if blocks == 0 { 0 } else { 4 + 8 * blocks as u16 }
}

/// SACK blocks that fit `room` bytes.
const fn blocks_in(room: u16) -> usize {
    (room.saturating_sub(4) / 8) as usize
}

impl<S: SendingHalf> Duplex<S> {
    /// Turns a span into a segment: everything that both directions share.
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
            if !span.syn && self.receiver.has_sack_blocks() {
                let room = if span.len == 0 { MAX_SACK_BLOCKS } else { blocks_in(self.sender.mss() - span.len) };
                segment.sack = self.receiver.sack_blocks(room);
            }
            self.receiver.acknowledged();
        }
        if self.ecn.mode != EcnMode::Off && !span.syn {
            self.mark(&mut segment, &span);
        }
        if S::PROTOCOL == Protocol::Stp {
            self.mark_poll(&mut segment);
        }
        segment
    }

    /// Puts the marks of ECN on a segment.
    fn mark(&mut self, segment: &mut Segment, span: &Span) {
        segment.flags = segment.flags | self.ecn.flags(span.len == 0 && segment.sack.is_empty());
        if span.len > 0 {
            let (ecn, reduced) = self.sender.marks_of(span);
            (segment.ecn, segment.flags) = (ecn, segment.flags | reduced);
        }
    }

    /// Puts the number of a poll, and of the one heard last, on a segment without data.
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
            // STP negotiates nothing else: SACK is always on, windows are never scaled.
            return;
        }
        //= RFC 3168 §6.1.1.1: a SYN that no answer comes to may have been dropped for what it asks
        let asks = self.sender.counters().timeouts <= u64::from(self.config.ecn_retries);
        let ecn = match answer {
            true => self.ecn.flags_of_syn_ack(),
            false if asks => self.config.ecn.flags_of_syn(),
            false => Flags::NONE,
        };
        segment.flags = segment.flags | ecn;
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

    /// Bytes of a data segment to reserve for pending SACK blocks, at most half of it.
    #[inline(always)]
    pub(super) fn reserved_for_sack(&self) -> u16 {
        match self.receiver.sack_blocks_due() {
            0 => 0,
            due => sack_option_len(due.min(blocks_in(self.sender.mss() / 2))),
        }
    }
}
