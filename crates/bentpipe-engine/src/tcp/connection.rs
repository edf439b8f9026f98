//! A TCP connection (RFC 9293 §3): one sender, one receiver, and the states between them.

use super::config::{Handshake, TcpConfig};
use super::receiver::Receiver;
use super::segment::{FIRST_BYTE, Flags, MAX_SACK_BLOCKS, Segment, Timestamps};
use super::sender::{Sender, Span, TcbCache};
use super::variant::Daass;
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

/// Why a connection ended other than by two FINs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// The peer refused the SYN.
    Refused,
    /// The peer sent a reset.
    Reset,
    /// A segment was retransmitted as often as allowed (RFC 9293 §3.8.3).
    RetriesExhausted,
    /// The user aborted.
    Local,
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
    /// The user sends no more: a FIN follows the data.
    Close,
    /// Drop everything, send a reset.
    Abort,
    /// A segment has come; where the driver keeps real bytes it has stored them at the segment's span already.
    Segment(Segment),
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

/// Notifications that wait for the driver.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    connected: bool,
    readable: bool,
    acknowledged: bool,
    peer_closed: bool,
    closed: Option<Result<(), Abort>>,
    reset: Option<Segment>,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    config: TcpConfig,
    role: Role,
    state: State,
    sender: Sender,
    receiver: Receiver,
    /// Both ends have agreed.
    sack: bool,
    timestamps: bool,
    /// Shift of the windows that we offer.
    rcv_scale: u8,
    /// TSval to echo, and the ACK we had sent when it came (RFC 7323 §4.3).
    ts_recent: u32,
    last_ack_sent: u64,
    /// Sequence number of the peer's FIN.
    peer_fin: Option<u64>,
    time_wait: Option<Time>,
    pending: Pending,
    pure_acks: u64,
    dsacks: u64,
    challenge_acks: u32,
    challenge_second: u64,
}

/// RFC 7323 §5.4: a timestamp clock of 1 ms.
fn timestamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// Challenge ACKs per second (RFC 5961 §7).
const CHALLENGE_LIMIT: u32 = 100;

impl Connection {
    /// A connection that is not open yet.
    pub fn new(config: TcpConfig, role: Role) -> Self {
        Connection {
            role,
            state: State::Closed,
            sender: Sender::new(&config),
            receiver: Receiver::new(&config),
            sack: false,
            timestamps: false,
            rcv_scale: NO_SCALE,
            ts_recent: 0,
            last_ack_sent: 0,
            peer_fin: None,
            time_wait: None,
            pending: Pending::default(),
            pure_acks: 0,
            dsacks: 0,
            challenge_acks: 0,
            challenge_second: 0,
            config,
        }
    }

    /// Takes over what earlier connections to the same host have learnt (RFC 9040). Before it is opened.
    pub fn inherit(&mut self, cache: &TcbCache) {
        self.sender.inherit(cache, self.config.tcb_sharing);
    }

    /// Leaves what it has learnt for later connections.
    pub fn bequeath(&self, cache: &mut TcbCache) {
        self.sender.bequeath(cache);
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
        self.sender.acknowledged()
    }

    /// Bytes written, from the start.
    pub fn written(&self) -> u64 {
        self.sender.written()
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

    /// What was counted so far.
    pub fn stats(&self) -> TcpStats {
        let c = &self.sender.counters;
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

    // ---- opening ---------------------------------------------------------------------------------------------------

    fn on_open<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if self.state != State::Closed {
            return;
        }
        if self.config.shortcuts.handshake == Handshake::None {
            self.receiver.synchronize();
            self.receiver.negotiated(self.sack_blocks(self.config.variant.sack), self.config.dsack, u64::MAX);
            self.sack = self.config.variant.sack;
            self.establish(cx, self.config.mss);
            return;
        }
        self.enter(cx, if self.role == Role::Active { State::SynSent } else { State::Listen });
    }

    fn sack_blocks(&self, agreed: bool) -> usize {
        // The timestamps take 12 of the 40 bytes of options (RFC 2018 §3).
        let room = if self.timestamps { MAX_SACK_BLOCKS - 1 } else { MAX_SACK_BLOCKS };
        if agreed { room.min(self.config.sack_blocks as usize) } else { 0 }
    }

    /// Takes the peer's SYN: its options, its sequence number.
    fn take_syn(&mut self, segment: &Segment) {
        self.receiver.synchronize();
        let ours = &self.config;
        self.sack = ours.variant.sack && segment.syn.sack_permitted;
        self.timestamps = ours.timestamps && segment.timestamps.is_some();
        let scaled = ours.window_scaling && segment.syn.window_scale.is_some();
        self.rcv_scale = if scaled { self.offered_scale() } else { NO_SCALE };
        let limit = if scaled { u64::MAX } else { u16::MAX as u64 };
        self.receiver.negotiated(self.sack_blocks(self.sack), self.config.dsack, limit);
        if let Some(timestamps) = segment.timestamps {
            self.ts_recent = timestamps.value;
        }
    }

    /// The least shift that can say the whole buffer (RFC 7323 §2.2).
    fn offered_scale(&self) -> u8 {
        let buffer = self.config.receive_buffer;
        (0..14).find(|shift| buffer >> shift <= u16::MAX as u32).unwrap_or(14)
    }

    //= RFC 6691 §2: the MSS option counts no options; what we send shrinks by those it carries
    fn effective_mss(&self, peer: Option<u16>) -> u16 {
        //= RFC 9293 §3.7.1: "If an MSS Option is not received at connection setup, [...] 536"
        let mss = self.config.mss.min(peer.unwrap_or(536));
        mss - if self.timestamps { 12 } else { 0 }
    }

    fn establish<P: Probe>(&mut self, cx: &mut Context<'_, P>, mss: u16) {
        self.sender.established(mss, self.config.variant.initial_window);
        self.enter(cx, State::Established);
        self.pending.connected = true;
    }

    // ---- segments --------------------------------------------------------------------------------------------------

    fn on_segment<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: Segment) {
        cx.emit(|| Event::Received { segment });
        match self.state {
            State::Closed => {}
            State::Listen => self.on_segment_listen(cx, &segment),
            State::SynSent => self.on_segment_syn_sent(cx, &segment),
            _ => self.on_segment_synchronized(cx, &segment),
        }
    }

    /// RFC 9293 §3.10.7.2.
    fn on_segment_listen<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if segment.flags.has(Flags::ACK) {
            self.refuse(segment);
            return;
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.take_syn(segment);
        if self.config.shortcuts.handshake == Handshake::OneWay {
            self.sack = self.config.variant.sack;
            self.receiver.negotiated(self.sack_blocks(self.sack), self.config.dsack, u64::MAX);
            let quick = self.config.ack.daass != Daass::Off;
            self.receiver.on_bare_syn(cx.now, self.config.shortcuts.ns2_delayed_syn_ack && !quick);
            self.establish(cx, self.config.mss);
            return;
        }
        let mss = self.effective_mss(segment.syn.mss);
        self.sender.set_peer_mss(mss);
        self.sender.update_window(segment);
        self.enter(cx, State::SynReceived);
    }

    /// RFC 9293 §3.10.7.3.
    fn on_segment_syn_sent<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
        let acks_syn = segment.flags.has(Flags::ACK) && segment.ack == FIRST_BYTE;
        if segment.flags.has(Flags::ACK) && !acks_syn {
            if !segment.flags.has(Flags::RST) {
                self.refuse(segment);
            }
            return;
        }
        if segment.flags.has(Flags::RST) {
            if acks_syn {
                self.finish(cx, Err(Abort::Refused));
            }
            return;
        }
        if self.config.shortcuts.handshake == Handshake::OneWay && acks_syn {
            self.receiver.synchronize();
            self.sack = self.config.variant.sack;
            self.sender.update_window(segment);
            self.sender.on_ack(cx, segment, true, None);
            self.establish(cx, self.config.mss);
            return;
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.take_syn(segment);
        let mss = self.effective_mss(segment.syn.mss);
        self.sender.update_window(segment);
        if acks_syn {
            let sample = self.sample(cx.now, segment);
            self.sender.on_ack(cx, segment, true, sample);
            self.receiver.acknowledge_now();
            self.establish(cx, mss);
        } else {
            // Both SYNs cross: ours goes out again, with an ACK.
            self.sender.set_peer_mss(mss);
            self.sender.resend_syn();
            self.enter(cx, State::SynReceived);
        }
    }

    /// RFC 9293 §3.10.7.4, in its order.
    #[inline]
    fn on_segment_synchronized<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
        if !self.sequence_check(cx, segment) {
            return;
        }
        if segment.flags.has(Flags::RST) {
            //= RFC 5961 §3.2: only "an RST whose sequence number exactly matches the next expected" resets
            if segment.seq == self.receiver.rcv_nxt() {
                let refused = self.state == State::SynReceived && self.role == Role::Active;
                self.finish(cx, Err(if refused { Abort::Refused } else { Abort::Reset }));
            } else {
                self.challenge(cx.now);
            }
            return;
        }
        if segment.flags.has(Flags::SYN) {
            //= RFC 5961 §4.2: "TCP endpoints MUST send an ACK (also referred to as challenge ACK)"
            self.challenge(cx.now);
            return;
        }
        if !segment.flags.has(Flags::ACK) || !self.on_acknowledgement(cx, segment) {
            return;
        }
        if segment.len > 0 {
            self.on_payload(cx.now, segment);
        }
        if segment.flags.has(Flags::FIN) {
            self.peer_fin = Some(segment.seq + segment.len as u64);
        }
        if self.peer_fin == Some(self.receiver.rcv_nxt()) && !self.peer_has_closed() {
            self.on_fin(cx);
        }
    }

    /// First check: PAWS and the window. Whether to go on.
    #[inline]
    fn sequence_check<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> bool {
        if self.timestamps
            && let Some(timestamps) = segment.timestamps
        {
            //= RFC 7323 §5.3 R1: "If [...] SEG.TSval < TS.Recent [...] then treat the arriving segment as not acceptable"
            let age = timestamps.value.wrapping_sub(self.ts_recent) as i32;
            if age < 0 && !segment.flags.has(Flags::RST) {
                self.receiver.acknowledge_now();
                return false;
            }
            // R3: from the segment that spans what we last acknowledged.
            if segment.seq <= self.last_ack_sent {
                self.ts_recent = timestamps.value;
            }
        }
        if self.receiver.acceptable(segment.seq, segment.sequence_len()) {
            return true;
        }
        if segment.flags.has(Flags::RST) {
            return false;
        }
        if self.state == State::TimeWait && segment.flags.has(Flags::FIN) {
            self.time_wait = Some(cx.now + self.config.time_wait);
        }
        // The ACK and the window of a probe beyond a closed window count nevertheless.
        if segment.flags.has(Flags::ACK) && segment.seq == self.receiver.rcv_nxt() && !segment.flags.has(Flags::SYN) {
            self.on_acknowledgement(cx, segment);
        }
        if segment.len > 0 && segment.end() <= self.receiver.rcv_nxt() {
            self.receiver.on_data(cx.now, segment.seq, segment.seq + segment.len as u64);
        }
        self.receiver.acknowledge_now();
        false
    }

    /// Fifth check: the ACK. Whether to go on.
    #[inline]
    fn on_acknowledgement<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> bool {
        let ack = segment.ack;
        if self.state == State::SynReceived {
            if ack < FIRST_BYTE || ack > self.sender.snd_max() {
                self.refuse(segment);
                return false;
            }
            let mss = self.sender.mss();
            self.establish(cx, mss);
        }
        if ack > self.sender.snd_max() {
            self.challenge(cx.now);
            return false;
        }
        let window_changed = self.sender.update_window(segment);
        if ack < self.sender.snd_una() {
            return true;
        }
        if !segment.sack.is_empty() {
            self.count_dsack(segment);
        }
        let before = self.sender.snd_una();
        let sample = if ack > before { self.sample(cx.now, segment) } else { None };
        self.sender.on_ack(cx, segment, window_changed, sample);
        if ack > before {
            self.pending.acknowledged = true;
            if self.sender.fin_acknowledged() {
                self.on_fin_acknowledged(cx);
            }
        }
        true
    }

    fn count_dsack(&mut self, segment: &Segment) {
        let mut blocks = segment.sack.iter(segment.ack);
        //= RFC 2883 §4: the first block lies below the ACK, or inside the second
        if let Some(first) = blocks.next() {
            let inside = blocks.next().is_some_and(|second| first.0 >= second.0 && first.1 <= second.1);
            self.dsacks += (first.0 < segment.ack || inside) as u64;
        }
    }

    /// The round trip by timestamps (RFC 7323 §4.1).
    fn sample(&self, now: Time, segment: &Segment) -> Option<Duration> {
        if !self.timestamps {
            return None;
        }
        let echo = segment.timestamps.map(|t| t.echo).filter(|echo| *echo != 0)?;
        let elapsed = timestamp(now).wrapping_sub(echo);
        // An echo from the future or from days ago is none of ours.
        (elapsed < 1 << 30).then(|| Duration::from_millis(elapsed.max(1) as u64))
    }

    #[inline]
    fn on_payload(&mut self, now: Time, segment: &Segment) {
        match self.state {
            State::Established | State::FinWait1 | State::FinWait2 => {
                if self.receiver.on_data(now, segment.seq, segment.seq + segment.len as u64) {
                    self.pending.readable = true;
                }
            }
            // After the peer's FIN there is nothing to come: a repetition.
            _ => self.receiver.acknowledge_now(),
        }
    }

    fn peer_has_closed(&self) -> bool {
        matches!(self.state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait)
    }

    /// Eighth check: the FIN, in order.
    fn on_fin<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.receiver.pass_fin();
        self.receiver.acknowledge_now();
        self.pending.peer_closed = true;
        match self.state {
            State::Established => self.enter(cx, State::CloseWait),
            State::FinWait1 => self.enter(cx, State::Closing),
            State::FinWait2 => self.enter_time_wait(cx),
            _ => {}
        }
    }

    fn on_fin_acknowledged<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        match self.state {
            State::FinWait1 => self.enter(cx, State::FinWait2),
            State::Closing => self.enter_time_wait(cx),
            State::LastAck => self.finish(cx, Ok(())),
            _ => {}
        }
    }

    fn enter_time_wait<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.time_wait = Some(cx.now + self.config.time_wait);
        self.enter(cx, State::TimeWait);
    }

    /// The end: nothing is sent any more but a reset that is due.
    fn finish<P: Probe>(&mut self, cx: &mut Context<'_, P>, result: Result<(), Abort>) {
        self.time_wait = None;
        self.pending.closed = Some(result);
        self.enter(cx, State::Closed);
    }

    /// A segment that belongs to no connection here: RST (RFC 9293 §3.10.7.1).
    fn refuse(&mut self, segment: &Segment) {
        let mut reset = Segment::new(Flags::RST);
        if segment.flags.has(Flags::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.flags = Flags::RST | Flags::ACK;
            reset.ack = segment.end();
        }
        self.pending.reset = Some(reset);
    }

    /// A challenge ACK, not too many per second (RFC 5961 §7).
    fn challenge(&mut self, now: Time) {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.challenge_second {
            (self.challenge_second, self.challenge_acks) = (second, 0);
        }
        if self.challenge_acks < CHALLENGE_LIMIT {
            self.challenge_acks += 1;
            self.receiver.acknowledge_now();
        }
    }

    // ---- the user --------------------------------------------------------------------------------------------------

    fn on_close<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        match self.state {
            State::Closed | State::Listen => self.finish(cx, Ok(())),
            State::SynSent => self.finish(cx, Ok(())),
            State::SynReceived | State::Established => {
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
        if !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::TimeWait) {
            let mut reset = Segment::new(Flags::RST | Flags::ACK);
            reset.seq = self.sender.snd_nxt();
            reset.ack = self.receiver.rcv_nxt();
            self.pending.reset = Some(reset);
        }
        self.finish(cx, Err(Abort::Local));
    }

    // ---- output ----------------------------------------------------------------------------------------------------

    /// Turns a span into a segment: everything that both directions share.
    #[inline]
    fn segment(&mut self, now: Time, span: Span) -> Segment {
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
            segment.window = self.receiver.offer_window(self.rcv_scale);
        }
        let with_timestamps = if span.syn && !synchronized { self.config.timestamps } else { self.timestamps };
        if with_timestamps {
            segment.timestamps = Some(Timestamps { value: timestamp(now), echo: self.ts_recent });
        }
        if synchronized {
            segment.ack = self.receiver.rcv_nxt();
            self.last_ack_sent = segment.ack;
            if self.sack && !span.syn {
                segment.sack = self.receiver.sack_blocks();
            }
            self.receiver.acknowledged();
        }
        segment
    }

    fn dress_syn(&mut self, segment: &mut Segment, answer: bool) {
        segment.flags = segment.flags | Flags::SYN;
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        segment.window = self.receiver.offer_window(0).min(u16::MAX as u32);
        if self.config.shortcuts.handshake == Handshake::OneWay {
            return;
        }
        segment.syn.mss = Some(self.config.mss);
        segment.syn.sack_permitted = if answer { self.sack } else { self.config.variant.sack };
        let scale = if answer { (self.rcv_scale > 0).then_some(self.rcv_scale) } else { Some(self.offered_scale()) };
        segment.syn.window_scale = scale.filter(|_| self.config.window_scaling);
    }

    /// A segment without data.
    fn bare(&mut self, now: Time) -> Segment {
        let seq = self.sender.snd_max();
        self.pure_acks += 1;
        self.segment(now, Span { seq, len: 0, syn: false, fin: false, push: false, retransmission: false })
    }

    fn notification(&mut self) -> Option<Output> {
        if core::mem::take(&mut self.pending.connected) {
            return Some(Output::Connected);
        }
        if core::mem::take(&mut self.pending.readable) {
            return Some(Output::Readable(self.received()));
        }
        if core::mem::take(&mut self.pending.acknowledged) {
            return Some(Output::Acknowledged(self.sender.acknowledged()));
        }
        if core::mem::take(&mut self.pending.peer_closed) {
            return Some(Output::PeerClosed);
        }
        None
    }

    fn has_notifications(&self) -> bool {
        let p = &self.pending;
        p.readable || p.acknowledged || p.connected || p.peer_closed
    }

    fn can_send(&self) -> bool {
        !matches!(self.state, State::Closed | State::Listen | State::TimeWait | State::FinWait2)
    }

    fn end_of_life<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<Output> {
        if let Some(reset) = self.pending.reset.take() {
            return self.transmit(cx, reset, false);
        }
        match self.pending.closed.take() {
            Some(result) => Step::Do(Output::Closed(result)),
            None => Step::Wait(None),
        }
    }

    #[inline]
    fn transmit<P: Probe>(&self, cx: &mut Context<'_, P>, segment: Segment, retransmission: bool) -> Step<Output> {
        cx.emit(|| Event::Sent { segment, retransmission });
        Step::Do(Output::Transmit(segment))
    }
}

impl Machine for Connection {
    type Input = Input;
    type Output = Output;

    #[inline]
    fn handle<P: Probe>(&mut self, cx: &mut Context<'_, P>, input: Input) {
        match input {
            Input::Segment(segment) => self.on_segment(cx, segment),
            Input::Read(bytes) => {
                if self.receiver.read(bytes) && !self.peer_has_closed() {
                    self.receiver.acknowledge_now();
                }
            }
            Input::Write(bytes) => self.sender.write(bytes),
            Input::Open => self.on_open(cx),
            Input::Close => self.on_close(cx),
            Input::Abort => self.on_abort(cx),
        }
    }

    #[inline]
    fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<Output> {
        if self.has_notifications()
            && let Some(output) = self.notification()
        {
            return Step::Do(output);
        }
        if self.state == State::Closed || self.pending.reset.is_some() {
            return self.end_of_life(cx);
        }
        if self.sender.deadline().is_some_and(|at| at <= cx.now)
            && let Err(abort) = self.sender.on_time(cx)
        {
            let mut reset = Segment::new(Flags::RST | Flags::ACK);
            (reset.seq, reset.ack) = (self.sender.snd_nxt(), self.receiver.rcv_nxt());
            self.pending.reset = Some(reset);
            self.finish(cx, Err(abort));
            return self.end_of_life(cx);
        }
        if self.time_wait.is_some_and(|at| at <= cx.now) {
            self.finish(cx, Ok(()));
            return self.end_of_life(cx);
        }
        if self.can_send()
            && let Some(span) = self.sender.next(cx.now).or_else(|| self.sender.window_probe())
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
