//! What a segment that arrives means in each state (RFC 9293 §3.10.7).

use super::*;

impl<S: SendingHalf> Duplex<S> {
    #[inline(always)]
    pub(in crate::tcp) fn on_segment<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
        cx.emit(|| Event::Received { segment: *segment });
        match self.state {
            //= RFC 9293 §3.10.7.1: "An incoming segment not containing a RST causes a RST to be sent in response"
            State::Closed => {
                if !segment.flags.has(Flags::RST) && self.config.shortcuts.handshake == Handshake::ThreeWay {
                    self.refuse(segment);
                }
            }
            State::Listen => self.on_segment_listen(cx, segment),
            State::SynSent => self.on_segment_syn_sent(cx, segment),
            _ => self.on_segment_synchronized(cx, segment),
        }
    }

    /// RFC 9293 §3.10.7.2.
    pub(in crate::tcp) fn on_segment_listen<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
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
        if self.config.shortcuts.handshake == Handshake::OneWay {
            self.synchronize_without_options();
            self.sender.skip_syn();
            let quick = self.config.ack.daass != Daass::Off;
            self.receiver.on_bare_syn(cx.now, self.config.shortcuts.ns2_delayed_syn_ack && !quick);
            self.establish(cx, self.config.mss);
            return;
        }
        self.take_syn(segment);
        let mss = self.effective_mss(segment.syn.mss);
        self.sender.set_peer_mss(mss);
        self.sender.update_window(segment);
        self.enter(cx, State::SynReceived);
    }

    /// RFC 9293 §3.10.7.3.
    pub(in crate::tcp) fn on_segment_syn_sent<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
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
            self.synchronize_without_options();
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
    #[inline(always)]
    pub(in crate::tcp) fn on_segment_synchronized<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
        if !self.sequence_check(cx, segment) {
            return;
        }
        if segment.flags.has(Flags::RST) {
            //= RFC 5961 §3.2: only "an RST whose sequence number exactly matches the next expected" resets
            if segment.seq == self.receiver.rcv_nxt() {
                self.finish(
                    cx,
                    match self.state {
                        State::SynReceived if self.role == Role::Active => Err(Abort::Refused),
                        // Both directions are complete.
                        State::TimeWait => Ok(()),
                        _ => Err(Abort::Reset),
                    },
                );
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
            //= RFC 5681 §4.2: "A TCP receiver SHOULD send an immediate duplicate ACK when an out-of-order segment arrives"
            if segment.seq > self.receiver.rcv_nxt() {
                self.receiver.acknowledge_now();
            }
        }
        if self.peer_fin == Some(self.receiver.rcv_nxt()) && !self.peer_has_closed() {
            self.on_fin(cx);
        }
    }

    /// First check: PAWS and the window. Whether to go on.
    #[inline(always)]
    pub(in crate::tcp) fn sequence_check<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> bool {
        if self.timestamps
            && let Some(timestamps) = segment.timestamps
        {
            //= RFC 7323 §5.3 R1: "If [...] SEG.TSval < TS.Recent [...] then treat the arriving segment as not acceptable"
            let age = timestamps.value.wrapping_sub(self.ts_recent) as i32;
            if age < 0 && !segment.flags.has(Flags::RST) {
                self.refuse_aloud(cx.now, segment);
                return false;
            }
        }
        if self.receiver.acceptable(segment.seq, segment.sequence_len()) {
            //= RFC 7323 §5.3 R3: after the window check, from the segment that spans what we last acknowledged
            if self.timestamps
                && segment.seq <= self.last_ack_sent
                && let Some(timestamps) = segment.timestamps
            {
                self.ts_recent = timestamps.value;
            }
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
            // A repetition: the receiver notes it for the D-SACK and says when to answer, which is at once.
            self.receiver.on_data(cx.now, segment.seq, segment.seq + segment.len as u64);
        } else {
            self.refuse_aloud(cx.now, segment);
        }
        false
    }

    /// What is not acceptable is answered. If it is itself an ACK and nothing else, the answer may be one that the peer
    /// answers in turn: on a path that overtakes and doubles, ACKs of ACKs would be more and more. Those are counted.
    fn refuse_aloud(&mut self, now: Time, segment: &Segment) {
        if segment.sequence_len() == 0 { self.challenge(now) } else { self.receiver.acknowledge_now() }
    }

    /// Fifth check: the ACK. Whether to go on.
    #[inline(always)]
    pub(in crate::tcp) fn on_acknowledgement<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> bool {
        let ack = segment.ack;
        if self.state == State::SynReceived {
            if ack < FIRST_BYTE || ack > self.sender.snd_max() {
                self.refuse(segment);
                return false;
            }
            let mss = self.sender.mss();
            self.establish(cx, mss);
        }
        //= RFC 5961 §5.2: acceptable "only if it is in the range of ((SND.UNA - MAX.SND.WND) <= SEG.ACK <= SND.NXT)"
        let wire_true = self.config.shortcuts.handshake == Handshake::ThreeWay;
        if ack > self.sender.snd_max() || (wire_true && ack < self.sender.oldest_acceptable_ack()) {
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
            if self.sender.fin_acknowledged() {
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

    #[inline(always)]
    pub(in crate::tcp) fn on_payload(&mut self, now: Time, segment: &Segment) {
        match self.state {
            State::Established | State::FinWait1 | State::FinWait2 => {
                if self.receiver.on_data(now, segment.seq, segment.seq + segment.len as u64) {
                    self.pending.set(Pending::READABLE);
                }
            }
            // After the peer's FIN there is nothing to come: a repetition.
            _ => self.receiver.acknowledge_now(),
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
    pub(in crate::tcp) fn refuse(&mut self, segment: &Segment) {
        let mut reset = Segment::new(Flags::RST);
        if segment.flags.has(Flags::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.flags = Flags::RST | Flags::ACK;
            reset.ack = segment.end();
        }
        self.reset = Some(reset);
    }

    /// An ACK that is not for data, not too many per second (RFC 5961 §7).
    pub(in crate::tcp) fn challenge(&mut self, now: Time) {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.challenge_second {
            (self.challenge_second, self.challenge_acks) = (second, 0);
        }
        if self.challenge_acks < CHALLENGE_LIMIT {
            self.challenge_acks += 1;
            self.receiver.acknowledge_now();
        }
    }
}
