//! A connection (RFC 9293 §3): one sender, one receiver, and the states between them.
//!
//! [`Duplex`] is generic over the sender because STP opens, closes and resets like TCP; its own [`SendingHalf`] does
//! the rest.

mod arrival;
mod challenges;
mod check;
mod closed;
mod closing;
mod events;
mod kept;
mod opening;
mod output;
mod prediction;
mod rejection;
mod state;
mod time_wait;

pub use self::closed::Closed;
pub use self::events::{Input, Output, TcpStats, Verdict};
pub use self::prediction::Ordinary;
pub use self::state::{Role, State};
pub use self::time_wait::Resting;

use self::kept::Kept;
use alloc::boxed::Box;
use alloc::sync::Arc;

use super::abort::Abort;
use super::config::TcpConfig;
use super::ecn::{EcnEcho, EcnMode};
use super::loss::Outstanding;
use super::receiver::{Fresh, Receiver};
use super::recovery::Phase;
use super::segment::Segment;
use super::sender::Sender;
use super::sending::SendingHalf;
use super::sharing::TcbCache;
use crate::machine::{Context, Machine, Step};
use crate::probe::{Event, Probe};
use crate::units::{Duration, Time};

/// Window scale of an end that did not offer window scaling.
const NO_SCALE: u8 = 0;

/// Pending notifications for the driver, one bit each. They are set and tested for every segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pending(u8);

impl Pending {
    const CONNECTED: Pending = Pending(1);
    const READABLE: Pending = Pending(2);
    const ACKNOWLEDGED: Pending = Pending(4);
    const PEER_CLOSED: Pending = Pending(8);

    #[inline(always)]
    fn set(&mut self, one: Pending) {
        self.0 |= one.0;
    }

    /// Clears the bit. Returns true if it was set.
    #[inline(always)]
    fn take(&mut self, one: Pending) -> bool {
        let was = self.0 & one.0 != 0;
        self.0 &= !one.0;
        was
    }

    #[inline(always)]
    fn any(self) -> bool {
        self.0 != 0
    }
}

/// One end of a TCP connection.
pub type Connection = Duplex<Sender>;

/// One end of a connection that opens and closes like TCP, with any sender. Fields used for every segment come first,
/// so that they share cache lines.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Duplex<S> {
    state: State,
    role: Role,
    pending: Pending,
    /// True with ECN or timestamps: every segment then carries extra fields.
    has_extras: bool,
    /// True if the sender has nothing to send, time or repair, and nothing has happened since that could change this:
    /// only data has arrived, in segments that acknowledge nothing new.
    sender_rests: bool,
    /// True if the receiver has nothing to acknowledge, and data that leaves changes nothing in it: since the last such
    /// data only ACKs of new data have arrived.
    receiver_rests: bool,
    /// State that is also needed in TIME-WAIT.
    kept: Kept,
    /// A pending reset.
    reset: Option<Box<Segment>>,
    /// An ACK of what had arrived before the last segment. It leaves ahead of that segment's own ACK.
    ack_before: Option<Box<Segment>>,
    ecn: EcnEcho,
    receiver: Receiver,
    sender: S,
    /// The settings, shared by connections with the same ones.
    config: Arc<TcpConfig>,
    /// The last poll received from an STP peer.
    poll_heard: u32,
    /// How the connection ended, until it is reported to the driver.
    closed: Option<Result<(), Abort>>,
}

/// RFC 7323 §5.4: a timestamp clock with ticks of 1 ms.
fn timestamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

impl Connection {
    /// A connection that is not open yet. Several connections can share `config`.
    pub fn new(config: impl Into<Arc<TcpConfig>>, role: Role) -> Self {
        let config = config.into();
        Duplex::with_sender(Sender::new(&config), config, role)
    }

    /// Inherits the state of earlier connections to the same host (RFC 9040). Call it before opening, at `now`.
    pub fn inherit(&mut self, cache: &mut TcbCache, now: Time) {
        self.sender_rests = false;
        self.sender.inherit(cache, &self.config, now);
    }

    /// Handles a signal of the local stack that the path is not the one that earlier connections have measured: careful
    /// resume ends (RFC 9959 §3.2, §3.3). Poll it afterwards.
    pub fn on_path_changed(&mut self) {
        self.sender_rests = false;
        self.sender.on_path_changed();
    }

    /// Switches the Nagle algorithm (RFC 9293 §3.7.4) on or off, like TCP_NODELAY of a socket.
    pub fn set_nagle(&mut self, on: bool) {
        self.sender_rests = false;
        self.sender.set_nagle(on);
    }

    /// The phase of loss recovery.
    pub fn phase(&self) -> Phase {
        self.sender.phase()
    }

    /// What the sender knows about the outstanding segments.
    pub fn outstanding(&self) -> Outstanding {
        self.sender.outstanding()
    }

    /// Bytes that the peer's accurate ECN options have reported: arrived as ECT(0), as CE, as ECT(1).
    pub fn bytes_told(&self) -> [u64; 3] {
        self.sender.bytes_told()
    }

    /// Stores the connection's state at `now` for later connections.
    pub fn bequeath(&self, cache: &mut TcbCache, now: Time) {
        self.sender.bequeath(cache, self.config.tcb_sharing, now);
    }
}

impl<S: SendingHalf> Duplex<S> {
    /// A connection that is not open yet, with its sender.
    pub(crate) fn with_sender(sender: S, config: Arc<TcpConfig>, role: Role) -> Self {
        Duplex {
            role,
            state: State::Closed,
            sender,
            receiver: Receiver::new(&config),
            kept: Kept::new(),
            ecn: EcnEcho::default(),
            has_extras: false,
            sender_rests: false,
            receiver_rests: false,
            pending: Pending::default(),
            closed: None,
            reset: None,
            ack_before: None,
            poll_heard: 0,
            config,
        }
    }

    /// The state of RFC 9293 §3.3.2.
    pub fn state(&self) -> State {
        self.state
    }

    /// The settings.
    pub fn config(&self) -> &TcpConfig {
        &self.config
    }

    /// Bytes written and acknowledged, from the start.
    pub fn acknowledged(&self) -> u64 {
        self.sender.sequence().acknowledged()
    }

    /// Bytes written, from the start.
    pub fn written(&self) -> u64 {
        self.sender.sequence().written()
    }

    /// Bytes of data in a full segment.
    pub fn mss(&self) -> u16 {
        self.sender.mss()
    }

    /// Bytes that the program may write now: the room in the send buffer ([`TcpConfig::send_buffer`]). Writes beyond it
    /// are still accepted.
    pub fn room(&self) -> u64 {
        self.sender.room()
    }

    /// The part of the [room](Self::room) that the program may fill before segments leave.
    pub fn room_in_piece(&self) -> u64 {
        self.sender.room_in_piece()
    }

    /// The program has more to write than there is [room](Self::room) for: it waits until a third of the buffer is free.
    pub fn wait_for_room(&mut self) {
        self.sender_rests = false;
        self.sender.wait_for_room();
    }

    /// Bytes received in order, from the start.
    pub fn received(&self) -> u64 {
        if self.receiver.rcv_nxt() == 0 { 0 } else { self.receiver.readable() - self.passed_fin() }
    }

    /// The first sequence number not acknowledged. Sequence numbers of what we send are unwrapped near it.
    pub fn snd_una(&self) -> u64 {
        self.sender.snd_una()
    }

    /// The next sequence number expected. Sequence numbers of what we receive are unwrapped near it.
    pub fn rcv_nxt(&self) -> u64 {
        self.receiver.rcv_nxt()
    }

    /// One past the last sequence number for whose byte there is room, or that was offered. A window that is rounded up
    /// may end beyond the buffer.
    pub fn rcv_limit(&self) -> u64 {
        self.receiver.limit()
    }

    /// Shift of the windows in the segments that we send after the SYN, as written on the wire.
    pub fn rcv_scale(&self) -> u8 {
        self.kept.rcv_scale
    }

    /// Congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        self.sender.cwnd()
    }

    /// Slow start threshold in bytes; `u64::MAX` before the first loss.
    pub fn ssthresh(&self) -> u64 {
        self.sender.ssthresh()
    }

    /// Smoothed round trip, if one has been measured.
    pub fn srtt(&self) -> Option<Duration> {
        self.sender.srtt()
    }

    /// The round trip of the newest segment delivered; if the sender has no RACK, the smoothed one.
    pub fn latest_rtt(&self) -> Option<Duration> {
        self.sender.latest_rtt()
    }

    /// The new bytes of the segment that was handled last, as spans of sequence numbers, if its verdict was
    /// [`Fresh::Spans`].
    pub fn fresh_spans(&self) -> &[(u64, u64)] {
        self.receiver.fresh_spans()
    }

    /// Bytes of memory for ranges received beyond gaps and for ranges that the peer has reported.
    pub fn memory(&self) -> usize {
        self.receiver.memory() + self.sender.memory()
    }

    /// Bytes received beyond a gap, which the user cannot read yet.
    pub fn beyond_gaps(&self) -> u64 {
        self.receiver.beyond_gaps()
    }

    /// The form of ECN that both ends use.
    pub fn ecn(&self) -> EcnMode {
        self.ecn.mode
    }

    /// The counters.
    pub fn stats(&self) -> TcpStats {
        let c = self.sender.counters();
        TcpStats {
            data_segments: c.segments,
            retransmits: c.retransmits,
            timeouts: c.timeouts,
            fast_retransmits: c.fast_retransmits,
            spurious_timeouts: c.spurious_timeouts,
            spurious_recoveries: c.spurious_recoveries,
            ecn_reductions: c.ecn_reductions,
            marks_told: c.marks_told,
            marks_received: self.ecn.marks,
            acks_received: c.acks,
            duplicate_acks: c.duplicate_acks,
            dsacks: self.kept.dsacks,
            pure_acks: self.kept.pure_acks,
            duplicates_received: self.receiver.duplicates,
            out_of_order_received: self.receiver.out_of_order,
            max_flight: c.max_flight,
            max_cwnd: c.max_cwnd.max(c.segments.min(1) * self.sender.cwnd()),
            max_burst: c.max_burst,
        }
    }

    fn passed_fin(&self) -> u64 {
        self.kept.peer_fin.is_some_and(|fin| self.receiver.rcv_nxt() > fin) as u64
    }

    fn enter<P: Probe>(&mut self, cx: &mut Context<'_, P>, to: State) {
        let from = core::mem::replace(&mut self.state, to);
        if from != to {
            cx.emit(|| Event::State { from, to });
        }
    }

    fn on_write(&mut self, bytes: u64) -> Verdict {
        self.sender_rests = false;
        //= RFC 9293 §3.10.2: "error: connection closing"
        let closing = self.sender.is_closed() || self.closed.is_some();
        if closing {
            return Verdict::Refused;
        }
        self.sender.write(bytes);
        Verdict::Accepted(Fresh::None)
    }
}

impl<S: SendingHalf> Machine for Duplex<S> {
    type Input = Input;
    type Output = Output;
    type Verdict = Verdict;

    #[inline(always)]
    fn handle<P: Probe>(&mut self, cx: &mut Context<'_, P>, input: Input) -> Verdict {
        // By reference, because a segment is large.
        match &input {
            Input::Segment(segment) => return self.take_segment(cx, segment),
            &Input::Write(bytes) => return self.on_write(bytes),
            &Input::Read(bytes) => {
                if self.receiver.read(cx.now, bytes) && !self.peer_has_closed() {
                    self.receiver.acknowledge_now();
                }
            }
            &Input::Buffer(bytes) => {
                if self.receiver.resize(bytes) && self.state == State::Established {
                    self.receiver.acknowledge_now();
                }
            }
            Input::Open => self.on_open(cx),
            Input::Close | Input::Shutdown => {
                self.on_close(cx);
                self.sender.sequence_mut().is_half = matches!(input, Input::Shutdown);
            }
            Input::Abort => self.on_abort(cx),
        }
        self.sender_rests &= matches!(input, Input::Read(_));
        self.receiver_rests = false;
        Verdict::Accepted(Fresh::None)
    }

    #[inline(always)]
    fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<Output> {
        (self.sender_rests, self.receiver_rests) = (false, false);
        if let Some(segment) = self.ack_before.take() {
            return self.transmit(cx, *segment, false);
        }
        if self.pending.any() && self.receiver.acks_first() {
            let segment = self.bare(cx.now);
            return self.transmit(cx, segment, false);
        }
        if self.pending.any()
            && let Some(output) = self.notification()
        {
            return Step::Do(output);
        }
        // One test for all rare cases: a connection that may send data has no pending reset and is not in TIME-WAIT.
        let is_rare = !self.state.sends_data() || self.reset.is_some();
        if is_rare && (self.state == State::Closed || self.reset.is_some()) {
            return self.end_of_life(cx);
        }
        if self.sender.deadline() <= cx.now
            && let Err(abort) = self.sender.on_time(cx)
        {
            if self.listens_on() {
                self.relisten(cx);
                return Step::Wait(None);
            }
            if self.receiver.rcv_nxt() > 0 {
                self.reset_peer(cx.now);
            }
            self.finish(cx, Err(abort));
            return self.end_of_life(cx);
        }
        if is_rare && self.kept.time_wait <= cx.now {
            self.finish(cx, Ok(()));
            return self.end_of_life(cx);
        }
        if (!is_rare || self.can_send())
            && let Some(span) =
                self.sender.next(cx.now, self.reserved_for_options()).or_else(|| self.sender.window_probe())
        {
            let segment = self.segment(cx.now, span);
            return self.transmit(cx, segment, span.retransmission);
        }
        if self.receiver.ack_is_due(cx.now) && self.receiver.rcv_nxt() > 0 {
            let segment = self.bare(cx.now);
            return self.transmit(cx, segment, false);
        }
        self.sender.look_for_room(cx.now);
        self.sender.check();
        let until = self.sender.deadline().min(self.receiver.ack_deadline()).min(self.kept.time_wait);
        Step::Wait((until != Time::NEVER).then_some(until))
    }
}
