//! Unacceptable segments, and resets (RFC 9293 §3.10.7, RFC 5961).

use alloc::boxed::Box;

use super::{Duplex, Role, State};
use crate::machine::Context;
use crate::probe::Probe;
use crate::tcp::abort::Abort;
use crate::tcp::ecn::EcnMode;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sending::SendingHalf;
use crate::units::Time;

impl<S: SendingHalf> Duplex<S> {
    /// RFC 9293 §3.10.7.4, second check, as in RFC 5961.
    pub(super) fn on_reset<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
        //= RFC 5961 §3.2: "If the RST bit is set and the sequence number exactly matches the next expected sequence number
        //= (RCV.NXT), then TCP MUST reset the connection."
        if segment.seq == self.receiver.rcv_nxt() {
            match self.state {
                State::SynReceived if self.role == Role::Active => self.finish(cx, Err(Abort::Refused)),
                //= RFC 9293 §3.10.7.4: "If this connection was initiated with a passive OPEN (i.e., came from the LISTEN
                //= state), then return this connection to LISTEN state and return."
                State::SynReceived if !self.sender.is_closed() => self.relisten(cx),
                //= RFC 1337 §3: "Ignore RST segments in TIME-WAIT state."
                State::TimeWait => {}
                // RFC 9293 §3.10.7.4: in CLOSING and LAST-ACK the connection is closed without an error. That holds if only the FIN is
                // outstanding; a reset that may have cost data is reported.
                State::Closing | State::LastAck if self.has_delivered_all() => self.finish(cx, Ok(())),
                _ => self.finish(cx, Err(Abort::Reset)),
            }
        } else if self.receiver.in_window(segment.seq) {
            self.challenge(cx.now);
        }
    }

    /// True if the peer has acknowledged all that was written.
    pub(super) fn has_delivered_all(&self) -> bool {
        let seq = self.sender.sequence();
        seq.acknowledged() == seq.written()
    }

    /// Handles a SYN that arrives though the peer's sequence numbers are already known.
    pub(super) fn on_syn_again<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
        let now = cx.now;
        let (is_same, answers) = (segment.seq == 0, segment.flags.has(Flags::ACK));
        if self.state == State::SynReceived && is_same && !answers {
            // The peer has not received our SYN: it is sent again, within the limit for challenge ACKs.
            if self.may_challenge(now) {
                self.ecn.take_syn_again(segment);
                self.sender.resend_syn();
            }
            return;
        }
        if is_same && answers && self.role == Role::Active {
            self.ecn.take_syn_again(segment);
            //= RFC 9293 §3.5, figure 7: where both SYNs have crossed, a SYN-ACK is the ACK of ours
            if self.state == State::SynReceived && self.ack_is_acceptable(segment.ack) {
                let mut ack = *segment;
                if self.ecn.mode == EcnMode::Classic {
                    // The ECN flag of a SYN-ACK agrees to ECN; it does not echo a mark.
                    ack.flags = ack.flags.without_ecn();
                }
                self.on_acceptable_ack(cx, &ack);
                return self.receiver.acknowledge_now();
            }
        }
        //= RFC 5961 §4.2: "If the SYN bit is set, irrespective of the sequence number, TCP MUST send an ACK (also referred
        //= to as challenge ACK) to the remote peer"
        self.challenge(now);
    }

    /// Handles a segment outside the window, which is answered.
    pub(super) fn on_segment_outside_window<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
        // The FIN was sent again because its ACK was lost (RFC 9293 §3.10.7.4, eighth).
        if self.state == State::TimeWait && segment.flags.has(Flags::FIN) && segment.end() == self.receiver.rcv_nxt() {
            self.kept.time_wait = cx.now + self.config.time_wait;
        }
        // The ACK and the window of a probe beyond a closed window still count. So do those of the last segment, which
        // a peer repeats in a simultaneous close.
        let rcv_nxt = self.receiver.rcv_nxt();
        if segment.flags.has(Flags::ACK) && (segment.seq == rcv_nxt || segment.end() == rcv_nxt) {
            if self.ack_is_acceptable(segment.ack) {
                self.on_acceptable_ack(cx, segment);
            } else {
                self.on_bad_ack(cx.now, segment);
            }
        }
        let is_last = segment.seq < rcv_nxt && segment.end() >= self.kept.last_ack_sent;
        if self.config.echo_repetitions && is_last && self.ack_is_acceptable(segment.ack) {
            self.note_timestamp(cx.now, segment);
        }
        if segment.len > 0 && segment.end() <= self.receiver.rcv_nxt() {
            // A duplicate: the receiver records it for the D-SACK and acknowledges at once.
            self.receiver.on_data(cx.now, segment.seq, segment.seq + segment.len as u64);
        } else {
            self.reject_with_ack(cx.now, segment);
        }
    }

    /// Handles an unacceptable ACK.
    pub(super) fn on_bad_ack(&mut self, now: Time, segment: &Segment) {
        if self.state == State::SynReceived { self.refuse(now, segment) } else { self.challenge(now) }
    }

    /// Answers an unacceptable segment. The peer may in turn answer an ACK sent in answer to a bare ACK: on a path that
    /// reorders and duplicates packets, ACKs of ACKs would multiply. So answers to bare ACKs count as challenge ACKs.
    pub(super) fn reject_with_ack(&mut self, now: Time, segment: &Segment) {
        if segment.sequence_len() == 0 { self.challenge(now) } else { self.receiver.acknowledge_now() }
    }

    /// Answers a segment of an unknown connection with an RST (RFC 9293 §3.10.7.1).
    pub(super) fn refuse(&mut self, now: Time, segment: &Segment) {
        self.reset = Some(Box::new(self.if_closed().reset(now, segment)));
    }

    /// Sends a reset that the peer accepts if it has all that was sent; if not, its challenge ACK tells the number.
    pub(super) fn reset_peer(&mut self, now: Time) {
        let mut reset = Segment::new(Flags::RST | Flags::ACK);
        (reset.seq, reset.ack) = (self.sender.sequence().seq_of_bare_ack(), self.receiver.rcv_nxt());
        reset.timestamps = self.timestamps_now(now);
        self.reset = Some(Box::new(reset));
    }

    /// Sends a challenge ACK, within the limit per second.
    pub(super) fn challenge(&mut self, now: Time) {
        if self.may_challenge(now) {
            self.receiver.acknowledge_now();
        }
    }

    /// True if challenge ACKs are left in this second (RFC 5961 §7). Uses one up.
    fn may_challenge(&mut self, now: Time) -> bool {
        self.kept.challenges.take(now)
    }
}
