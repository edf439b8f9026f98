//! How a connection closes (RFC 9293 §3.6): CLOSE and ABORT of the user, FINs of both ends, TIME-WAIT.

use super::{Duplex, Pending, State};
use crate::machine::Context;
use crate::probe::Probe;
use crate::tcp::abort::Abort;
use crate::tcp::sending::SendingHalf;
use crate::units::Time;

impl<S: SendingHalf> Duplex<S> {
    pub(super) fn on_close<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        match self.state {
            //= RFC 9293 §3.10.4: in CLOSED, return an "error: connection does not exist"
            // How a connection has ended is not changed by it.
            State::Closed => {}
            State::Listen => self.finish(cx, Ok(())),
            //= RFC 9293 §3.10.4: in SYN-SENT "return 'error: closing' responses to any queued SENDs"
            State::SynSent if self.sender.sequence().written() > 0 => self.finish(cx, Err(Abort::Local)),
            State::SynSent => self.finish(cx, Ok(())),
            //= RFC 9293 §3.10.4: in SYN-RECEIVED "queue for processing after entering ESTABLISHED state"
            State::SynReceived => self.sender.close(),
            State::Established => {
                self.sender.close();
                self.enter(cx, State::FinWait1);
            }
            State::CloseWait => {
                self.sender.close();
                self.enter(cx, State::LastAck);
            }
            _ => {}
        }
    }

    pub(super) fn on_abort<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if self.state == State::Closed {
            return;
        }
        let says_nothing = match self.state {
            State::Listen | State::SynSent | State::TimeWait => true,
            // RFC 9293 §3.10.5: in CLOSING and LAST-ACK no reset is sent. That holds if only the FIN is outstanding; a peer that may miss
            // data is told.
            State::Closing | State::LastAck => {
                self.has_delivered_all() && self.sender.snd_max() == self.sender.sequence().end()
            }
            _ => false,
        };
        if !says_nothing {
            self.reset_peer(cx.now);
        }
        self.finish(cx, Err(Abort::Local));
    }

    /// Records a FIN at `end`. Only the first one counts. A FIN below bytes already received contradicts them, and is
    /// accepted only if it is next in order.
    pub(super) fn note_fin(&mut self, end: u64) {
        let rcv_nxt = self.receiver.rcv_nxt();
        if end > rcv_nxt {
            //= RFC 5681 §3.2: "A TCP receiver SHOULD send an immediate duplicate ACK when an out-of-order segment arrives"
            self.receiver.acknowledge_now();
        }
        if self.kept.peer_fin.is_some() || end < rcv_nxt || end > self.receiver.limit() {
            return;
        }
        if end == rcv_nxt {
            self.receiver.drop_beyond();
            self.kept.peer_fin = Some(end);
        } else if end >= self.receiver.highest() {
            self.kept.peer_fin = Some(end);
        }
    }

    /// Processes the FIN once everything before it has arrived.
    #[inline(always)]
    pub(super) fn on_end_of_stream<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if self.kept.peer_fin == Some(self.receiver.rcv_nxt()) && !self.peer_has_closed() {
            self.on_fin(cx);
        }
    }

    /// Eighth check: the FIN, in order.
    fn on_fin<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.receiver.pass_fin();
        self.receiver.acknowledge_now();
        self.pending.set(Pending::PEER_CLOSED);
        match self.state {
            State::Established => self.enter(cx, State::CloseWait),
            State::FinWait1 => self.enter(cx, State::Closing),
            State::FinWait2 => self.enter_time_wait(cx),
            _ => {}
        }
    }

    pub(super) fn on_fin_acknowledged<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        match self.state {
            State::FinWait1 => self.enter(cx, State::FinWait2),
            State::Closing => self.enter_time_wait(cx),
            State::LastAck => self.finish(cx, Ok(())),
            _ => {}
        }
    }

    pub(super) fn peer_has_closed(&self) -> bool {
        matches!(self.state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait)
    }

    fn enter_time_wait<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.kept.time_wait = cx.now + self.config.time_wait;
        self.enter(cx, State::TimeWait);
    }

    /// Ends the connection: only a pending reset is still sent.
    pub(super) fn finish<P: Probe>(&mut self, cx: &mut Context<'_, P>, result: Result<(), Abort>) {
        self.kept.time_wait = Time::NEVER;
        self.closed = Some(result);
        self.enter(cx, State::Closed);
    }
}
