//! A connection (RFC 9293 §3): one sender, one receiver, and the states between them.
//!
//! [`Duplex`] leaves open who sends, since STP opens, closes and resets as TCP does: what it does in between is a
//! [`SendingHalf`] of its own.

mod arrival;
mod output;

use self::arrival::TimestampCheck;
use super::abort::Abort;
use super::config::{Handshake, TcpConfig};
use super::receiver::{Fresh, Receiver};
use super::segment::{FIRST_BYTE, Flags, MAX_SACK_BLOCKS, Segment, Timestamps};
use super::sender::Sender;
use super::sending::{Protocol, SendingHalf};
use super::sharing::TcbCache;
use super::span::Span;
use crate::machine::{Context, Machine, Step};
use crate::probe::{Event, Probe};
use crate::units::{Duration, Time};

/// Connection states (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No connection.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has received and sent a SYN.
    SynReceived,
    /// Data flows.
    Established,
    /// Has sent a FIN.
    FinWait1,
    /// Its FIN is acknowledged; the other direction is open.
    FinWait2,
    /// Has received a FIN; its own direction is open.
    CloseWait,
    /// Both have sent FINs, its own is not acknowledged yet.
    Closing,
    /// Has received a FIN, then sent its own.
    LastAck,
    /// Waits for stray segments to die.
    TimeWait,
}

/// Which side opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the SYN when it is opened.
    Active,
    /// Waits for a SYN.
    Passive,
}

/// What the driver brings to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Open: an active connection sends its SYN, a passive one listens.
    Open,
    /// The user has this many more bytes to send.
    Write(u64),
    /// The user has taken this many bytes out of the receive buffer.
    Read(u64),
    /// The receive buffer has this many bytes from now on; a window once offered is not taken back.
    Buffer(u64),
    /// The user sends no more: a FIN follows the data.
    Close,
    /// Drop everything, send a reset.
    Abort,
    /// A segment has come. A driver that keeps bytes stores those of its payload that the verdict names.
    Segment(Segment),
}

/// What a connection did with an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was accepted. Of a segment's payload, these bytes are new.
    Accepted(Fresh),
    /// The peer's SYN was accepted: its initial sequence number and its options hold from now on. Of its payload, these
    /// bytes are new.
    Synchronized(Fresh),
    /// A segment that is not acceptable, so that nothing in it may be acted on; or bytes written after CLOSE, which are not
    /// sent (RFC 9293 §3.10.2: "connection closing").
    Refused,
}

/// What a connection asks of the driver, or tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this segment; its payload is `seq..seq + len` of the bytes written, the first byte being `FIRST_BYTE`.
    Transmit(Segment),
    /// The handshake is done.
    Connected,
    /// So many bytes, in order, can be read from the start on: read and unread ones together.
    Readable(u64),
    /// So many bytes of those written have been acknowledged from the start on: the driver may let go of them.
    Acknowledged(u64),
    /// The peer sends no more.
    PeerClosed,
    /// The end: after both FINs, or by an abort.
    Closed(Result<(), Abort>),
}

/// What one end counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpStats {
    /// Segments sent that take sequence space: data, SYN, FIN; first transmissions and repetitions.
    pub data_segments: u64,
    /// Those of them whose first number had been sent before.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Losses found by duplicate ACKs or SACK: fast retransmits.
    pub fast_retransmits: u64,
    /// Timeouts found spurious by F-RTO.
    pub spurious_timeouts: u64,
    /// Acceptable ACKs received.
    pub acks_received: u64,
    /// Duplicate ACKs among them.
    pub duplicate_acks: u64,
    /// D-SACK blocks received: retransmissions that were not needed (RFC 2883).
    pub dsacks: u64,
    /// Segments sent without data.
    pub pure_acks: u64,
    /// Segments received that brought nothing new.
    pub duplicates_received: u64,
    /// Segments received beyond a gap.
    pub out_of_order_received: u64,
    /// Most bytes outstanding.
    pub max_flight: u64,
    /// Greatest congestion window, bytes.
    pub max_cwnd: u64,
    /// Most segments sent in answer to one event.
    pub max_burst: u32,
}

/// Window scale of an end that did not offer one.
const NO_SCALE: u8 = 0;

/// Notifications that wait for the driver, one bit each: they are set and asked for with every segment.
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

    /// Whether it was set; it no longer is.
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

/// One end of a connection that opens and closes as TCP does, whoever its sender is.
#[derive(Clone, Debug)]
pub struct Duplex<S> {
    config: TcpConfig,
    role: Role,
    state: State,
    sender: S,
    receiver: Receiver,
    /// Both ends have agreed.
    sack: bool,
    timestamps: bool,
    /// Shift of the windows that we offer.
    rcv_scale: u8,
    /// TSval to echo, and the ACK we had sent when it came (RFC 7323 §4.3).
    ts_recent: u32,
    last_ack_sent: u64,
    /// When TS.Recent was last taken.
    ts_recent_at: Time,
    /// Both SYNs had the window scale option.
    scaled: bool,
    /// Sequence number of the peer's FIN.
    peer_fin: Option<u64>,
    time_wait: Option<Time>,
    pending: Pending,
    /// How it ended, until the driver has been told.
    closed: Option<Result<(), Abort>>,
    /// A reset that is to go out.
    reset: Option<Segment>,
    pure_acks: u64,
    dsacks: u64,
    challenge_acks: u32,
    challenge_second: u64,
    /// The poll of an STP peer that was heard last.
    poll_heard: u32,
}

/// RFC 7323 §5.4: a timestamp clock of 1 ms.
fn timestamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// Bytes of a SACK option with its padding, and how many blocks fit beside a payload.
const fn sack_option_len(blocks: usize) -> u16 {
    if blocks == 0 { 0 } else { 4 + 8 * blocks as u16 }
}

const fn blocks_in(room: u16) -> usize {
    (room.saturating_sub(4) / 8) as usize
}

/// The least MSS that a peer can mean: every host takes datagrams of 68 bytes (RFC 791 §3.2), 40 of them headers.
const LEAST_MSS: u16 = 28;

/// Challenge ACKs per second (RFC 5961 §7).
const CHALLENGE_LIMIT: u32 = 100;

impl Connection {
    /// A connection that is not open yet.
    pub fn new(config: TcpConfig, role: Role) -> Self {
        Duplex::with_sender(Sender::new(&config), config, role)
    }

    /// Takes over what earlier connections to the same host have learnt (RFC 9040). Before it is opened.
    pub fn inherit(&mut self, cache: &TcbCache) {
        self.sender.inherit(cache, self.config.tcb_sharing);
    }

    /// Holds small segments while data is outstanding, or no longer does (RFC 9293 §3.7.4): TCP_NODELAY of a socket.
    pub fn set_nagle(&mut self, on: bool) {
        self.sender.set_nagle(on);
    }

    /// Leaves what it has learnt for later connections.
    pub fn bequeath(&self, cache: &mut TcbCache) {
        self.sender.bequeath(cache);
    }
}

impl<S: SendingHalf> Duplex<S> {
    /// A connection that is not open yet, with its sender.
    pub(crate) fn with_sender(sender: S, config: TcpConfig, role: Role) -> Self {
        Duplex {
            role,
            state: State::Closed,
            sender,
            receiver: Receiver::new(&config),
            sack: false,
            timestamps: false,
            rcv_scale: NO_SCALE,
            ts_recent: 0,
            last_ack_sent: 0,
            ts_recent_at: Time::ZERO,
            scaled: false,
            peer_fin: None,
            time_wait: None,
            pending: Pending::default(),
            closed: None,
            reset: None,
            pure_acks: 0,
            dsacks: 0,
            challenge_acks: 0,
            challenge_second: 0,
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

    /// Bytes received in order, from the start.
    pub fn received(&self) -> u64 {
        if self.receiver.rcv_nxt() == 0 { 0 } else { self.receiver.readable() - self.passed_fin() }
    }

    /// First sequence number not acknowledged; sequence numbers of what we send are unwrapped near it.
    pub fn snd_una(&self) -> u64 {
        self.sender.snd_una()
    }

    /// Next sequence number expected; those of what we receive are unwrapped near it.
    pub fn rcv_nxt(&self) -> u64 {
        self.receiver.rcv_nxt()
    }

    /// Shift of the windows in the segments we send after the SYN, for the wire.
    pub fn rcv_scale(&self) -> u8 {
        self.rcv_scale
    }

    /// Congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        self.sender.cwnd()
    }

    /// Slow start threshold in bytes; `u64::MAX` before the first loss.
    pub fn ssthresh(&self) -> u64 {
        self.sender.ssthresh()
    }

    /// Smoothed round trip, once measured.
    pub fn srtt(&self) -> Option<Duration> {
        self.sender.srtt()
    }

    /// Whether what came last left no gap.
    pub fn is_contiguous(&self) -> bool {
        self.receiver.is_contiguous()
    }

    /// The new bytes of the segment that was handled last, as spans of sequence numbers, where its verdict says
    /// [`Fresh::Spans`].
    pub fn fresh_spans(&self) -> &[(u64, u64)] {
        self.receiver.fresh_spans()
    }

    /// Whether a segment would be accepted and its payload, if any, taken as data: a driver that must first find memory for it
    /// asks before it does. Changes nothing.
    pub fn would_accept(&self, now: Time, segment: &Segment) -> bool {
        let flags = segment.flags;
        match self.state {
            State::Closed => false,
            State::Listen => flags.has(Flags::SYN) && !flags.has(Flags::RST) && !flags.has(Flags::ACK),
            State::SynSent => {
                flags.has(Flags::SYN) && !flags.has(Flags::RST) && (!flags.has(Flags::ACK) || segment.ack == 1)
            }
            _ => {
                flags.has(Flags::ACK)
                    && !flags.has(Flags::RST)
                    && !flags.has(Flags::SYN)
                    && self.timestamp_check(now, segment) == TimestampCheck::Pass
                    && self.receiver.acceptable(segment.seq, segment.sequence_len())
                    && self.ack_is_acceptable(segment.ack)
            }
        }
    }

    /// Bytes of memory for ranges received beyond gaps and for those that the peer has reported.
    pub fn memory(&self) -> usize {
        self.receiver.memory() + self.sender.memory()
    }

    /// Bytes received beyond a gap, which the user cannot have yet.
    pub fn beyond_gaps(&self) -> u64 {
        self.receiver.beyond_gaps()
    }

    /// What was counted so far.
    pub fn stats(&self) -> TcpStats {
        let c = self.sender.counters();
        TcpStats {
            data_segments: c.segments,
            retransmits: c.retransmits,
            timeouts: c.timeouts,
            fast_retransmits: c.fast_retransmits,
            spurious_timeouts: c.spurious_timeouts,
            acks_received: c.acks,
            duplicate_acks: c.duplicate_acks,
            dsacks: self.dsacks,
            pure_acks: self.pure_acks,
            duplicates_received: self.receiver.duplicates,
            out_of_order_received: self.receiver.out_of_order,
            max_flight: c.max_flight,
            max_cwnd: c.max_cwnd.max(c.segments.min(1) * self.sender.cwnd()),
            max_burst: c.max_burst,
        }
    }

    fn passed_fin(&self) -> u64 {
        self.peer_fin.is_some_and(|fin| self.receiver.rcv_nxt() > fin) as u64
    }

    fn enter<P: Probe>(&mut self, cx: &mut Context<'_, P>, to: State) {
        let from = core::mem::replace(&mut self.state, to);
        if from != to {
            cx.emit(|| Event::State { from, to });
        }
    }

    fn on_open<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if self.state != State::Closed {
            return;
        }
        if self.config.shortcuts.handshake == Handshake::None {
            self.synchronize_without_options();
            self.establish(cx, self.config.mss);
            return;
        }
        self.enter(cx, if self.role == Role::Active { State::SynSent } else { State::Listen });
    }

    /// An opening that carries no options: both ends are taken to be configured alike, windows in full.
    fn synchronize_without_options(&mut self) {
        self.receiver.synchronize();
        self.sack = self.config.variant.sack;
        self.receiver.negotiated(self.sack_blocks(self.sack), self.config.dsack, u64::MAX);
    }

    fn sack_blocks(&self, agreed: bool) -> usize {
        // The timestamps take 12 of the 40 bytes of options (RFC 2018 §3).
        let room = if self.timestamps { MAX_SACK_BLOCKS - 1 } else { MAX_SACK_BLOCKS };
        if agreed { room.min(self.config.sack_blocks as usize) } else { 0 }
    }

    /// Takes the peer's SYN: its options, its sequence number.
    fn take_syn(&mut self, now: Time, segment: &Segment) {
        self.receiver.synchronize();
        let ours = &self.config;
        self.sack = ours.variant.sack && (segment.syn.sack_permitted || S::PROTOCOL == Protocol::Stp);
        self.timestamps = ours.timestamps && segment.timestamps.is_some();
        self.scaled = ours.window_scaling && segment.syn.window_scale.is_some();
        self.rcv_scale = if self.scaled { self.offered_scale() } else { NO_SCALE };
        let limit = if self.scaled { u64::MAX } else { S::PROTOCOL.window_limit() };
        self.receiver.negotiated(self.sack_blocks(self.sack), self.config.dsack, limit);
        if let Some(timestamps) = segment.timestamps {
            (self.ts_recent, self.ts_recent_at) = (timestamps.value, now);
        }
    }

    /// The least shift that can say the whole buffer (RFC 7323 §2.2).
    fn offered_scale(&self) -> u8 {
        let buffer = self.config.receive_buffer;
        (0..14).find(|shift| buffer >> shift <= u16::MAX as u32).unwrap_or(14)
    }

    /// The most bytes of payload beside the options that every segment carries. The MSS option does not count options
    /// (RFC 6691 §2), so what we send shrinks by those that it has; SACK blocks come and go, and are subtracted where a
    /// segment is chosen.
    fn effective_mss(&self, peer: Option<u16>) -> u16 {
        let mss = self.config.mss.min(peer.unwrap_or(self.config.assumed_mss).max(LEAST_MSS));
        mss.saturating_sub(if self.timestamps { 12 } else { 0 }).max(1)
    }

    /// Bytes of a data segment to keep free for the SACK blocks that are due, at most half of it.
    #[inline(always)]
    fn reserved_for_sack(&self) -> u16 {
        match self.receiver.sack_blocks_due() {
            0 => 0,
            due => sack_option_len(due.min(blocks_in(self.sender.mss() / 2))),
        }
    }

    fn establish<P: Probe>(&mut self, cx: &mut Context<'_, P>, mss: u16) {
        self.sender.established(mss, self.config.variant.initial_window, self.sack);
        self.enter(cx, State::Established);
        if self.sender.is_closed() {
            self.enter(cx, State::FinWait1);
        }
        self.pending.set(Pending::CONNECTED);
        if self.receiver.open(cx.now) {
            self.pending.set(Pending::READABLE);
        }
    }

    fn on_close<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        match self.state {
            State::Closed | State::Listen => self.finish(cx, Ok(())),
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

    fn on_abort<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if self.state == State::Closed {
            return;
        }
        if !matches!(self.state, State::Listen | State::SynSent | State::TimeWait) {
            self.reset_peer(cx.now);
        }
        self.finish(cx, Err(Abort::Local));
    }

    /// A reset that the peer accepts.
    fn reset_peer(&mut self, now: Time) {
        let mut reset = Segment::new(Flags::RST | Flags::ACK);
        (reset.seq, reset.ack) = (self.sender.snd_nxt(), self.receiver.rcv_nxt());
        reset.timestamps = self.timestamps_now(now);
        self.reset = Some(reset);
    }

    /// The timestamps of a segment that goes out now, once both ends have agreed on them.
    #[inline(always)]
    fn timestamps_now(&self, now: Time) -> Option<Timestamps> {
        self.timestamps.then(|| Timestamps { value: timestamp(now), echo: self.ts_recent })
    }

    fn on_write(&mut self, bytes: u64) -> Verdict {
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
        // By reference: a segment is large, and nobody needs a copy of it.
        match &input {
            Input::Segment(segment) => return self.on_segment(cx, segment),
            &Input::Write(bytes) => return self.on_write(bytes),
            &Input::Read(bytes) => {
                if self.receiver.read(bytes) && !self.peer_has_closed() {
                    self.receiver.acknowledge_now();
                }
            }
            &Input::Buffer(bytes) => {
                if self.receiver.resize(bytes) && self.state == State::Established {
                    self.receiver.acknowledge_now();
                }
            }
            Input::Open => self.on_open(cx),
            Input::Close => self.on_close(cx),
            Input::Abort => self.on_abort(cx),
        }
        Verdict::Accepted(Fresh::None)
    }

    #[inline(always)]
    fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<Output> {
        if self.pending.any()
            && let Some(output) = self.notification()
        {
            return Step::Do(output);
        }
        if self.state == State::Closed || self.reset.is_some() {
            return self.end_of_life(cx);
        }
        if self.sender.deadline().is_some_and(|at| at <= cx.now)
            && let Err(abort) = self.sender.on_time(cx)
        {
            if self.receiver.rcv_nxt() > 0 {
                self.reset_peer(cx.now);
            }
            self.finish(cx, Err(abort));
            return self.end_of_life(cx);
        }
        if self.time_wait.is_some_and(|at| at <= cx.now) {
            self.finish(cx, Ok(()));
            return self.end_of_life(cx);
        }
        if self.can_send()
            && let Some(span) =
                self.sender.next(cx.now, self.reserved_for_sack()).or_else(|| self.sender.window_probe())
        {
            let segment = self.segment(cx.now, span);
            return self.transmit(cx, segment, span.retransmission);
        }
        if self.receiver.ack_is_due(cx.now) && self.receiver.rcv_nxt() > 0 {
            let segment = self.bare(cx.now);
            return self.transmit(cx, segment, false);
        }
        self.sender.check();
        let timers = Time::earliest(self.sender.deadline(), self.receiver.ack_deadline());
        Step::Wait(Time::earliest(timers, self.time_wait))
    }
}
