//! Processing of acceptable segments (RFC 9293 §3.10.7).

use alloc::boxed::Box;

use super::check::Check;
use super::{Duplex, Pending, State, Verdict, timestamp};
use crate::machine::Context;
use crate::probe::{Event, Probe};
use crate::tcp::abort::Abort;
use crate::tcp::ecn::EcnMode;
use crate::tcp::receiver::Fresh;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sending::{Protocol, SendingHalf};
use crate::units::{Duration, Time};

impl<S: SendingHalf> Duplex<S> {
    /// Handles a segment, as [`Machine::handle`](crate::Machine::handle) does.
    #[inline(always)]
    pub fn take_segment<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> Verdict {
        if let Some(verdict) = self.take_predicted(cx, segment) {
            return verdict;
        }
        // A copy, so that a predicted segment can stay in registers.
        self.take_unpredicted(cx, &{ *segment })
    }

    /// The same without [prediction](Self::take_predicted), for any segment.
    #[inline(never)]
    pub fn take_unpredicted<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> Verdict {
        (self.sender_rests, self.receiver_rests) = (false, false);
        cx.emit(|| Event::Received { segment: *segment });
        let check = self.check(cx.now, segment);
        if check != Check::Accept {
            self.on_unacceptable(cx, segment, check);
            return Verdict::Refused;
        }
        match self.state {
            State::Listen => self.on_first_syn(cx, segment),
            State::SynSent => self.on_answer_to_syn(cx, segment),
            _ => self.on_acceptable(cx, segment),
        }
    }

    /// Handles an unacceptable segment: sends the answer, if any.
    #[cold]
    fn on_unacceptable<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment, check: Check) {
        match check {
            Check::Accept | Check::Drop => {}
            Check::Refuse => self.refuse(cx.now, segment),
            Check::Reset if self.state == State::SynSent => self.finish(cx, Err(Abort::Refused)),
            Check::Reset => self.on_reset(cx, segment),
            Check::Syn => self.on_syn_again(cx, segment),
            Check::Old => self.reject_with_ack(cx.now, segment),
            Check::OutsideWindow => self.on_segment_outside_window(cx, segment),
            Check::BadAck => self.on_bad_ack(cx.now, segment),
        }
    }

    /// Handles an acceptable segment of a connection that knows the peer's sequence numbers.
    #[inline(always)]
    fn on_acceptable<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> Verdict {
        self.on_acceptable_ack(cx, segment);
        self.note_timestamp(cx.now, segment);
        if self.ecn.mode != EcnMode::Off {
            self.receiver.heed(self.ecn.take(segment));
        }
        if S::PROTOCOL == Protocol::Stp {
            self.take_poll(segment);
        }
        let fresh = if segment.sequence_len() > 0 {
            self.on_payload(cx.now, segment)
        } else {
            if self.state == State::TimeWait && segment.seq > self.receiver.rcv_nxt() {
                // Nothing can follow the peer's FIN. The answer lets a peer that has lost its state reset the
                // connection.
                self.challenge(cx.now);
            }
            Fresh::None
        };
        self.on_end_of_stream(cx);
        Verdict::Accepted(fresh)
    }

    /// Fifth check: takes an acceptable ACK.
    #[inline(always)]
    pub(super) fn on_acceptable_ack<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
        let ack = segment.ack;
        let opens = self.state == State::SynReceived;
        if opens {
            let mss = self.sender.mss();
            self.establish(cx, mss);
        }
        if ack < self.sender.snd_una() {
            if !segment.sack.is_empty() {
                self.count_dsack(segment);
                self.sender.on_overtaken_ack(cx, segment);
            }
            return;
        }
        let window_changed = self.sender.update_window(segment);
        if !segment.sack.is_empty() {
            self.count_dsack(segment);
        }
        let before = self.sender.snd_una();
        let sample = if ack > before { self.sample(cx.now, segment) } else { None };
        self.sender.on_ack(cx, segment, window_changed, sample);
        if opens {
            self.tell_round_trip();
        }
        if ack > before {
            self.on_advance(cx);
        }
    }

    /// New data has been acknowledged.
    #[inline(always)]
    pub(super) fn on_advance<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.pending.set(Pending::ACKNOWLEDGED);
        if self.sender.sequence().fin_acknowledged() {
            self.receiver_rests = false;
            self.on_fin_acknowledged(cx);
        }
    }

    fn count_dsack(&mut self, segment: &Segment) {
        let mut blocks = segment.sack.iter(segment.ack);
        //= RFC 2883 §4: the first block lies below the ACK, or inside the second
        if let Some(first) = blocks.next() {
            let inside = blocks.next().is_some_and(|second| first.0 >= second.0 && first.1 <= second.1);
            self.kept.dsacks += (first.0 < segment.ack || inside) as u64;
        }
    }

    //= RFC 7323 §4.3: "If SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent, then SEG.TSval is copied to TS.Recent"
    /// Takes the timestamp of an acceptable segment.
    #[inline(always)]
    pub(super) fn note_timestamp(&mut self, now: Time, segment: &Segment) {
        if self.kept.timestamps
            && let Some(timestamps) = segment.timestamps
            && segment.seq <= self.kept.last_ack_sent
        {
            (self.kept.ts_recent, self.kept.ts_recent_at) = (timestamps.value, now);
        }
    }

    /// The round trip measured by timestamps (RFC 7323 §4.1).
    pub(super) fn sample(&self, now: Time, segment: &Segment) -> Option<Duration> {
        if !self.kept.timestamps {
            return None;
        }
        let echo = segment.timestamps.map(|t| t.echo).filter(|echo| *echo != 0)?;
        let elapsed = timestamp(now).wrapping_sub(echo);
        // An echo from the future or from days ago is not ours.
        (elapsed < 1 << 30).then(|| Duration::from_millis(elapsed.max(1) as u64))
    }

    /// Answers a poll from a sender that polls.
    fn take_poll(&mut self, segment: &Segment) {
        if let Some(marks) = segment.timestamps
            && self.sender.poll_number().is_some()
            && segment.len == 0
            && segment.flags.has(Flags::PSH)
        {
            self.poll_heard = marks.value;
            self.receiver.acknowledge_now();
        }
    }

    /// Seventh and eighth check: processes text and FIN of an acceptable segment. Returns which bytes are new.
    #[inline(always)]
    fn on_payload(&mut self, now: Time, segment: &Segment) -> Fresh {
        if self.peer_has_closed() {
            // Nothing can follow the peer's FIN: text is ignored, and another FIN is a repetition.
            self.receiver.acknowledge_now();
            return Fresh::None;
        }
        let end = segment.seq + segment.len as u64;
        let mut fresh = Fresh::None;
        if segment.len > 0 {
            let before = self.receiver.rcv_nxt();
            if self.receiver.needs_ack_before(segment.seq, end) && self.ack_before.is_none() {
                self.ack_before = Some(Box::new(self.bare(now)));
            }
            if self.receiver.is_tuned() && end > before {
                let echo = segment.timestamps.map(|timestamps| timestamps.echo).zip(self.sample(now, segment));
                self.receiver.on_arrival(now, (u64::from(segment.len), end), echo);
            }
            // Nothing follows a known FIN.
            fresh = self.receiver.on_data(now, segment.seq, end.min(self.kept.peer_fin.unwrap_or(u64::MAX)));
            if self.receiver.rcv_nxt() > before {
                self.pending.set(Pending::READABLE);
                if segment.flags.has(Flags::PSH) {
                    self.receiver.on_push();
                }
            }
        }
        if segment.flags.has(Flags::FIN) {
            self.note_fin(end);
        }
        fresh
    }
}
