//! Header prediction: the fast path for the most frequent segments (V. Jacobson, "4BSD TCP header prediction", Computer
//! Communication Review 20(2), 1990).
//!
//! On a connection without losses, a segment is either the next data in order or an ACK of new data that carries no
//! data. A few checks identify such a segment, and most checks of the slow path are then known to pass. A predicted
//! segment does a subset of what the slow path does. [`Duplex::poll_ordinary`] is the counterpart for sending, without
//! options. The tests run both paths on the same segments.

use super::{Duplex, Pending, State, Verdict};
use crate::machine::Context;
use crate::probe::Probe;
use crate::tcp::ecn::EcnMode;
use crate::tcp::receiver::Fresh;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sender::Sender;
use crate::tcp::sending::{Half, SendingHalf};
use crate::units::Time;
use crate::wire::ecn::Ecn;

/// The result of an ordinary poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordinary {
    /// Send this segment, which has no options.
    Transmit(Segment),
    /// Wait, like [`Step::Wait`](crate::Step::Wait); [`Time::NEVER`] stands for no instant.
    Wait(Time),
    /// Polls are no longer ordinary: nothing has been done, and the driver must call
    /// [`Machine::poll`](crate::Machine::poll).
    Other,
}

impl Duplex<Sender> {
    /// True if the polls at `now` are ordinary. [`Duplex::poll_ordinary`] may then be called until it returns something
    /// other than a segment, as long as the connection gets no input. Only inputs and timers change the result of this
    /// call.
    #[inline(always)]
    pub fn is_ordinary<P: Probe>(&mut self, now: Time) -> bool {
        // If there is an observer, it must see the slow path.
        if P::WATCHES || self.pending.any() {
            return false;
        }
        if self.sender_rests {
            return true;
        }
        // A half rests only after an ordinary poll, and nothing has happened since that changes these conditions.
        let may_be = self.receiver_rests
            || self.state.sends_data()
                && self.reset.is_none()
                && self.ack_before.is_none()
                && !self.has_extras
                && !self.receiver.has_sack_blocks();
        if !may_be {
            return false;
        }
        let is_quiet = self.sender.is_quiet(now);
        self.sender_rests = is_quiet && self.sender.rests();
        is_quiet
    }

    /// Polls a connection by the fast path, if its polls at `now` [are ordinary](Self::is_ordinary). It returns what
    /// [`Machine::poll`](crate::Machine::poll) would return. For drivers that poll so often that the checks of the slow
    /// path cost time.
    #[inline(always)]
    pub fn poll_ordinary(&mut self, now: Time) -> Ordinary {
        if self.sender_rests {
            return match self.receiver.ack_is_due(now) {
                true => Ordinary::Transmit(self.plain_ack(now)),
                false => Ordinary::Wait(self.receiver.ack_deadline()),
            };
        }
        if self.sender.may_expire_at_once(now) {
            return Ordinary::Other;
        }
        if let Some(span) = self.sender.next_without_options(now) {
            let mut flags = Flags::ACK;
            if span.fin {
                flags = flags | Flags::FIN;
            }
            if span.push {
                flags = flags | Flags::PSH;
            }
            if self.receiver_rests {
                let (ack, window) = (self.receiver.rcv_nxt(), self.receiver.last_window());
                return Ordinary::Transmit(Segment {
                    seq: span.seq,
                    ack,
                    window,
                    len: span.len,
                    ..Segment::new(flags)
                });
            }
            if span.len > 0 {
                self.receiver.on_answer(now);
            }
            let segment = self.plain(now, flags, span.seq, span.len);
            self.receiver_rests = span.len > 0 && self.receiver.rests();
            return Ordinary::Transmit(segment);
        }
        if self.receiver.ack_is_due(now) {
            return Ordinary::Transmit(self.plain_ack(now));
        }
        self.sender.look_for_room(now);
        self.sender.check();
        Ordinary::Wait(self.sender.deadline().min(self.receiver.ack_deadline()))
    }

    /// Until when a connection waits whose polls are not ordinary, as [`Machine::poll`](crate::Machine::poll) would return
    /// it, if a few checks show that nothing is due at `now`. Otherwise returns `None` and has no effect. This is the
    /// result of most polls while a loss is being repaired. [`Time::NEVER`] stands for no instant.
    #[inline(never)]
    pub fn waits<P: Probe>(&mut self, now: Time) -> Option<Time> {
        let has_news = P::WATCHES || self.pending.any() || self.ack_before.is_some() || self.reset.is_some();
        if has_news || !self.state.sends_data() || self.receiver.ack_is_due(now) {
            return None;
        }
        let until = self.sender.deadline().min(self.receiver.ack_deadline());
        let reserved = self.reserved_for_options();
        if until <= now || !self.sender.sends_nothing(reserved) {
            return None;
        }
        (self.sender_rests, self.receiver_rests) = (false, false);
        self.sender.reserve(reserved);
        self.sender.look_for_room(now);
        self.sender.check();
        Some(until)
    }

    /// A bare ACK without options.
    #[inline(always)]
    fn plain_ack(&mut self, now: Time) -> Segment {
        self.kept.pure_acks += 1;
        self.plain(now, Flags::ACK, self.sender.sequence().seq_of_bare_ack(), 0)
    }

    /// A segment without options: the part of [`Duplex::segment`] that applies to it.
    #[inline(always)]
    fn plain(&mut self, now: Time, flags: Flags, seq: u64, len: u16) -> Segment {
        let ack = self.receiver.rcv_nxt();
        let window = self.receiver.offer_window(self.kept.rcv_scale);
        self.kept.last_ack_sent = ack;
        self.receiver.acknowledged(now);
        Segment { seq, ack, window, len, ..Segment::new(flags) }
    }
}

impl<S: SendingHalf> Duplex<S> {
    /// Handles a predicted segment. For any other, returns `None` and has no effect; [`Duplex::take_unpredicted`] takes it.
    #[inline(always)]
    pub fn take_predicted<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> Option<Verdict> {
        match segment.len {
            0 => self.take_predicted_ack(cx, segment),
            _ => self.take_predicted_data(cx, segment),
        }
    }

    /// True if a segment is what is expected next, as far as data and bare ACKs have that in common.
    #[inline(always)]
    fn is_predicted<P: Probe>(&self, now: Time, segment: &Segment) -> bool {
        // If there is an observer, it must see the slow path.
        !P::WATCHES
            && segment.flags | Flags::PSH == Flags::ACK | Flags::PSH
            && segment.ecn != Ecn::Ce
            // The count of marks may be zero, but must still be read.
            && self.ecn.mode != EcnMode::Accurate
            && segment.sack.is_empty()
            && (!self.kept.timestamps || self.is_recent(now, segment))
            && matches!(self.state, State::Established | State::FinWait1)
            && segment.seq == self.receiver.rcv_nxt()
            && self.kept.peer_fin.is_none()
            && self.sender.is_calm()
    }

    /// The part of [`Self::take_predicted`] for segments without data.
    #[inline(always)]
    pub fn take_predicted_ack<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> Option<Verdict> {
        let is_next = segment.ack > self.sender.snd_una() && segment.ack <= self.sender.snd_max();
        if !self.is_predicted::<P>(cx.now, segment) || !is_next {
            return None;
        }
        self.sender_rests = false;
        let window_changed = self.sender.update_window(segment);
        let sample = self.sample(cx.now, segment);
        if !self.sender.take_ordinary_ack(cx, segment, sample) {
            self.sender.on_ack(cx, segment, window_changed, sample);
        }
        self.on_advance(cx);
        self.note_timestamp(cx.now, segment);
        Some(Verdict::Accepted(Fresh::None))
    }

    /// The part of [`Self::take_predicted`] for segments with data.
    #[inline(always)]
    pub fn take_predicted_data<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> Option<Verdict> {
        let end = segment.seq + u64::from(segment.len);
        let is_next = segment.ack == self.sender.snd_una() && self.receiver.expects(end) && !self.receiver.is_tuned();
        if !self.is_predicted::<P>(cx.now, segment) || !is_next {
            return None;
        }
        self.sender.update_window(segment);
        self.sender.on_ack_beside_data(self.sender_rests);
        self.receiver_rests = false;
        self.note_timestamp(cx.now, segment);
        self.receiver.on_expected_data(cx.now, end);
        self.pending.set(Pending::READABLE);
        if segment.flags.has(Flags::PSH) {
            self.receiver.on_push();
        }
        Some(Verdict::Accepted(Fresh::Span(segment.seq, end)))
    }
}

#[cfg(test)]
#[path = "prediction_tests.rs"]
mod tests;
