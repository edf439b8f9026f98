//! What a segment that arrives means in each state (RFC 9293 §3.10.7).

use super::*;

/// What the timestamps of a segment say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimestampCheck {
    Pass,
    /// Older than what has been received: answered and dropped.
    Old,
    /// Missing: dropped silently.
    Missing,
}

/// How long a TS.Recent holds on an idle connection (RFC 7323 §5.5).
const TS_RECENT_LIFETIME: Duration = Duration::from_secs(24 * 24 * 3600);

impl<S: SendingHalf> Duplex<S> {
    #[inline(always)]
    pub(in crate::tcp) fn on_segment<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> Verdict {
        cx.emit(|| Event::Received { segment: *segment });
        match self.state {
            //= RFC 9293 §3.10.7.1: "An incoming segment not containing a RST causes a RST to be sent in response"
            State::Closed => {
                if !segment.flags.has(Flags::RST) && self.config.shortcuts.handshake == Handshake::ThreeWay {
                    self.refuse(cx.now, segment);
                }
                Verdict::Refused
            }
            State::Listen => self.on_segment_listen(cx, segment),
            State::SynSent => self.on_segment_syn_sent(cx, segment),
            _ => self.on_segment_synchronized(cx, segment),
        }
    }

    /// RFC 9293 §3.10.7.2.
    pub(in crate::tcp) fn on_segment_listen<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
    ) -> Verdict {
        if segment.flags.has(Flags::RST) {
            return Verdict::Refused;
        }
        if segment.flags.has(Flags::ACK) {
            self.refuse(cx.now, segment);
            return Verdict::Refused;
        }
        if !segment.flags.has(Flags::SYN) {
            return Verdict::Refused;
        }
        if self.config.shortcuts.handshake == Handshake::OneWay {
            self.synchronize_without_options();
            self.sender.skip_syn();
            self.receiver.on_bare_syn(cx.now);
            self.establish(cx, self.config.mss);
            return Verdict::Synchronized(Fresh::None);
        }
        self.take_syn(cx.now, segment);
        let mss = self.effective_mss(segment.syn.mss);
        self.sender.set_peer_mss(mss);
        self.sender.update_window(segment);
        let fresh = self.keep_text_of_syn(segment);
        self.enter(cx, State::SynReceived);
        Verdict::Synchronized(fresh)
    }

    /// RFC 9293 §3.10.7.2: other controls and text of a SYN are "queued for processing later", when the handshake is done.
    fn keep_text_of_syn(&mut self, segment: &Segment) -> Fresh {
        let end = FIRST_BYTE + segment.len as u64;
        let fresh = if segment.len > 0 { self.receiver.keep_until_open(end) } else { Fresh::None };
        if segment.flags.has(Flags::FIN) && end <= self.receiver.limit() {
            self.peer_fin = Some(end);
        }
        fresh
    }

    /// RFC 9293 §3.10.7.3.
    pub(in crate::tcp) fn on_segment_syn_sent<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
    ) -> Verdict {
        let acks_syn = segment.flags.has(Flags::ACK) && segment.ack == FIRST_BYTE;
        if segment.flags.has(Flags::ACK) && !acks_syn {
            if !segment.flags.has(Flags::RST) {
                self.refuse(cx.now, segment);
            }
            return Verdict::Refused;
        }
        if segment.flags.has(Flags::RST) {
            if acks_syn {
                self.finish(cx, Err(Abort::Refused));
            }
            return Verdict::Refused;
        }
        if self.config.shortcuts.handshake == Handshake::OneWay && acks_syn {
            self.synchronize_without_options();
            self.sender.update_window(segment);
            self.sender.on_ack(cx, segment, true, None);
            self.establish(cx, self.config.mss);
            return Verdict::Synchronized(Fresh::None);
        }
        if !segment.flags.has(Flags::SYN) {
            return Verdict::Refused;
        }
        self.take_syn(cx.now, segment);
        let mss = self.effective_mss(segment.syn.mss);
        self.sender.update_window(segment);
        let fresh = self.keep_text_of_syn(segment);
        if acks_syn {
            let sample = self.sample(cx.now, segment);
            self.sender.on_ack(cx, segment, true, sample);
            self.receiver.acknowledge_now();
            self.establish(cx, mss);
            self.on_end_of_stream(cx);
        } else {
            // Both SYNs cross: ours goes out again, with an ACK.
            self.sender.set_peer_mss(mss);
            self.sender.resend_syn();
            self.enter(cx, State::SynReceived);
        }
        Verdict::Synchronized(fresh)
    }

    /// RFC 9293 §3.10.7.4. Nothing in a segment is acted on before the checks that can refuse it: a forged one changes
    /// neither the bytes received nor TS.Recent.
    #[inline(always)]
    pub(in crate::tcp) fn on_segment_synchronized<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
    ) -> Verdict {
        if segment.flags.has(Flags::RST) {
            self.on_reset(cx, segment);
            return Verdict::Refused;
        }
        if segment.flags.has(Flags::SYN) {
            self.on_syn_again(cx.now, segment);
            return Verdict::Refused;
        }
        // RFC 9293 §3.10.7.4 drops a segment without ACK after the window check, and so answers one outside of the window. No
        // TCP sends it, so it gets no answer anywhere.
        if !segment.flags.has(Flags::ACK) || !self.sequence_check(cx, segment) || !self.on_acknowledgement(cx, segment)
        {
            return Verdict::Refused;
        }
        //= RFC 7323 §4.3: "If SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent, then SEG.TSval is copied to TS.Recent"
        if let Some(timestamps) = segment.timestamps
            && self.timestamps
            && segment.seq <= self.last_ack_sent
        {
            (self.ts_recent, self.ts_recent_at) = (timestamps.value, cx.now);
        }
        if S::PROTOCOL == Protocol::Stp {
            self.take_poll(segment);
        }
        let fresh = if segment.sequence_len() > 0 {
            self.on_payload(cx.now, segment)
        } else {
            if self.state == State::TimeWait && segment.seq > self.receiver.rcv_nxt() {
                // Behind the peer's FIN there is nothing: the answer lets a peer that has lost its state reset.
                self.challenge(cx.now);
            }
            Fresh::None
        };
        self.on_end_of_stream(cx);
        Verdict::Accepted(fresh)
    }

    /// Answers a poll of a sender that polls.
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

    /// RFC 9293 §3.10.7.4, second check, as RFC 5961 has it.
    fn on_reset<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
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
                _ => self.finish(cx, Err(Abort::Reset)),
            }
        } else if self.receiver.in_window(segment.seq) {
            self.challenge(cx.now);
        }
    }

    /// A SYN that comes when the connection knows the peer's sequence numbers.
    fn on_syn_again(&mut self, now: Time, segment: &Segment) {
        if self.state == State::SynReceived && segment.seq == 0 && !segment.flags.has(Flags::ACK) {
            // The peer has not got our SYN: it goes out again, as often as challenge ACKs may.
            if self.may_challenge(now) {
                self.sender.resend_syn();
            }
            return;
        }
        //= RFC 5961 §4.2: "If the SYN bit is set, irrespective of the sequence number, TCP MUST send an ACK (also referred
        //= to as challenge ACK) to the remote peer"
        self.challenge(now);
    }

    /// Back to LISTEN: the peer is forgotten, what the user has written stays.
    fn relisten<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.sender.relisten();
        self.receiver = Receiver::new(&self.config);
        (self.sack, self.timestamps, self.scaled, self.rcv_scale) = (false, false, false, NO_SCALE);
        (self.ts_recent, self.last_ack_sent, self.peer_fin) = (0, 0, None);
        self.enter(cx, State::Listen);
    }

    /// PAWS, and segments that lack the timestamps both ends have agreed on. Changes nothing.
    #[inline(always)]
    pub(super) fn timestamp_check(&self, now: Time, segment: &Segment) -> TimestampCheck {
        if !self.timestamps {
            return TimestampCheck::Pass;
        }
        //= RFC 7323 §3.2: "If a non-<RST> segment is received without a TSopt, a TCP SHOULD silently drop the segment."
        let Some(timestamps) = segment.timestamps else { return TimestampCheck::Missing };
        if (timestamps.value.wrapping_sub(self.ts_recent) as i32) >= 0 {
            return TimestampCheck::Pass;
        }
        // RFC 7323 §5.5: after 24 days without a segment the clock of the peer may have wrapped.
        if now.saturating_since(self.ts_recent_at) > TS_RECENT_LIFETIME {
            return TimestampCheck::Pass;
        }
        TimestampCheck::Old
    }

    /// First check: PAWS and the window. Whether to go on.
    #[inline(always)]
    pub(in crate::tcp) fn sequence_check<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> bool {
        match self.timestamp_check(cx.now, segment) {
            TimestampCheck::Pass => {}
            //= RFC 7323 §5.3: "Send an acknowledgment in reply [...] and drop the segment."
            TimestampCheck::Old => {
                self.reject_with_ack(cx.now, segment);
                return false;
            }
            TimestampCheck::Missing => return false,
        }
        self.receiver.acceptable(segment.seq, segment.sequence_len()) || self.on_unacceptable(cx, segment)
    }

    /// A segment outside of the window: answered. False, always.
    #[cold]
    fn on_unacceptable<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> bool {
        // The FIN again: its ACK was lost (RFC 9293 §3.10.7.4, eighth).
        if self.state == State::TimeWait && segment.flags.has(Flags::FIN) && segment.end() == self.receiver.rcv_nxt() {
            self.time_wait = Some(cx.now + self.config.time_wait);
        }
        // The ACK and the window of a probe beyond a closed window count nevertheless, and those of the segment received last,
        // which a peer repeats in a simultaneous close.
        let rcv_nxt = self.receiver.rcv_nxt();
        if segment.flags.has(Flags::ACK) && (segment.seq == rcv_nxt || segment.end() == rcv_nxt) {
            self.on_acknowledgement(cx, segment);
        }
        if segment.len > 0 && segment.end() <= self.receiver.rcv_nxt() {
            // A repetition: the receiver notes it for the D-SACK and says when to answer, which is at once.
            self.receiver.on_data(cx.now, segment.seq, segment.seq + segment.len as u64);
        } else {
            self.reject_with_ack(cx.now, segment);
        }
        false
    }

    /// What is not acceptable is answered. If it is itself an ACK and nothing else, the answer may be one that the peer
    /// answers in turn: on a path that overtakes and doubles, ACKs of ACKs would be more and more. Those are counted.
    fn reject_with_ack(&mut self, now: Time, segment: &Segment) {
        if segment.sequence_len() == 0 { self.challenge(now) } else { self.receiver.acknowledge_now() }
    }

    /// Whether an ACK is acceptable in the present state. Changes nothing.
    #[inline(always)]
    pub(in crate::tcp) fn ack_is_acceptable(&self, ack: u64) -> bool {
        if self.state == State::SynReceived {
            return ack >= FIRST_BYTE && ack <= self.sender.snd_max();
        }
        //= RFC 5961 §5.2: "The ACK value is considered acceptable only if it is in the range of ((SND.UNA - MAX.SND.WND) <=
        //= SEG.ACK <= SND.NXT)."
        let wire_true = self.config.shortcuts.handshake == Handshake::ThreeWay;
        ack <= self.sender.snd_max() && (!wire_true || ack >= self.sender.sequence().oldest_acceptable_ack())
    }

    /// Fifth check: the ACK. Whether to go on.
    #[inline(always)]
    pub(in crate::tcp) fn on_acknowledgement<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> bool {
        let ack = segment.ack;
        let acceptable = self.ack_is_acceptable(ack);
        if self.state == State::SynReceived {
            if !acceptable {
                self.refuse(cx.now, segment);
                return false;
            }
            let mss = self.sender.mss();
            self.establish(cx, mss);
        } else if !acceptable {
            self.challenge(cx.now);
            return false;
        }
        if ack < self.sender.snd_una() {
            return true;
        }
        let window_changed = self.sender.update_window(segment);
        if !segment.sack.is_empty() {
            self.count_dsack(segment);
        }
        let before = self.sender.snd_una();
        let sample = if ack > before { self.sample(cx.now, segment) } else { None };
        self.sender.on_ack(cx, segment, window_changed, sample);
        if ack > before {
            self.pending.set(Pending::ACKNOWLEDGED);
            if self.sender.sequence().fin_acknowledged() {
                self.on_fin_acknowledged(cx);
            }
        }
        true
    }

    pub(in crate::tcp) fn count_dsack(&mut self, segment: &Segment) {
        let mut blocks = segment.sack.iter(segment.ack);
        //= RFC 2883 §4: the first block lies below the ACK, or inside the second
        if let Some(first) = blocks.next() {
            let inside = blocks.next().is_some_and(|second| first.0 >= second.0 && first.1 <= second.1);
            self.dsacks += (first.0 < segment.ack || inside) as u64;
        }
    }

    /// The round trip by timestamps (RFC 7323 §4.1).
    pub(in crate::tcp) fn sample(&self, now: Time, segment: &Segment) -> Option<Duration> {
        if !self.timestamps {
            return None;
        }
        let echo = segment.timestamps.map(|t| t.echo).filter(|echo| *echo != 0)?;
        let elapsed = timestamp(now).wrapping_sub(echo);
        // An echo from the future or from days ago is none of ours.
        (elapsed < 1 << 30).then(|| Duration::from_millis(elapsed.max(1) as u64))
    }

    /// Seventh and eighth: text and FIN of an acceptable segment. Which bytes are new.
    #[inline(always)]
    pub(in crate::tcp) fn on_payload(&mut self, now: Time, segment: &Segment) -> Fresh {
        if self.peer_has_closed() {
            // After the peer's FIN nothing can come: text is ignored, and a FIN is the one that is known.
            self.receiver.acknowledge_now();
            return Fresh::None;
        }
        let end = segment.seq + segment.len as u64;
        let mut fresh = Fresh::None;
        if segment.len > 0 {
            let before = self.receiver.rcv_nxt();
            // Nothing lies behind a FIN that is known.
            fresh = self.receiver.on_data(now, segment.seq, end.min(self.peer_fin.unwrap_or(u64::MAX)));
            if self.receiver.rcv_nxt() > before {
                self.pending.set(Pending::READABLE);
            }
        }
        if segment.flags.has(Flags::FIN) {
            self.note_fin(end);
        }
        fresh
    }

    /// A FIN that stands at `end`. The first one counts; one before bytes that have been received contradicts them, and is
    /// believed only where it is next in order.
    fn note_fin(&mut self, end: u64) {
        let rcv_nxt = self.receiver.rcv_nxt();
        if end > rcv_nxt {
            //= RFC 5681 §3.2: "A TCP receiver SHOULD send an immediate duplicate ACK when an out-of-order segment arrives"
            self.receiver.acknowledge_now();
        }
        if self.peer_fin.is_some() || end < rcv_nxt || end > self.receiver.limit() {
            return;
        }
        if end == rcv_nxt {
            self.receiver.drop_beyond();
            self.peer_fin = Some(end);
        } else if end >= self.receiver.highest() {
            self.peer_fin = Some(end);
        }
    }

    /// The FIN, once everything before it has come.
    #[inline(always)]
    fn on_end_of_stream<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if self.peer_fin == Some(self.receiver.rcv_nxt()) && !self.peer_has_closed() {
            self.on_fin(cx);
        }
    }

    pub(in crate::tcp) fn peer_has_closed(&self) -> bool {
        matches!(self.state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait)
    }

    /// Eighth check: the FIN, in order.
    pub(in crate::tcp) fn on_fin<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
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

    pub(in crate::tcp) fn on_fin_acknowledged<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        match self.state {
            State::FinWait1 => self.enter(cx, State::FinWait2),
            State::Closing => self.enter_time_wait(cx),
            State::LastAck => self.finish(cx, Ok(())),
            _ => {}
        }
    }

    pub(in crate::tcp) fn enter_time_wait<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.time_wait = Some(cx.now + self.config.time_wait);
        self.enter(cx, State::TimeWait);
    }

    /// The end: nothing is sent any more but a reset that is due.
    pub(in crate::tcp) fn finish<P: Probe>(&mut self, cx: &mut Context<'_, P>, result: Result<(), Abort>) {
        self.time_wait = None;
        self.closed = Some(result);
        self.enter(cx, State::Closed);
    }

    /// A segment that belongs to no connection here: RST (RFC 9293 §3.10.7.1).
    pub(in crate::tcp) fn refuse(&mut self, now: Time, segment: &Segment) {
        let mut reset = Segment::new(Flags::RST);
        if segment.flags.has(Flags::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.flags = Flags::RST | Flags::ACK;
            reset.ack = segment.end();
        }
        reset.timestamps = self.timestamps_now(now);
        self.reset = Some(reset);
    }

    /// An ACK that is not for data, not too many per second.
    pub(in crate::tcp) fn challenge(&mut self, now: Time) {
        if self.may_challenge(now) {
            self.receiver.acknowledge_now();
        }
    }

    /// Whether this second's challenge ACKs are not used up (RFC 5961 §7); counts one.
    fn may_challenge(&mut self, now: Time) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.challenge_second {
            (self.challenge_second, self.challenge_acks) = (second, 0);
        }
        let may = self.challenge_acks < CHALLENGE_LIMIT;
        self.challenge_acks += may as u32;
        may
    }
}
