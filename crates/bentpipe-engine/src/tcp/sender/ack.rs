//! What an ACK of new data means: scoreboard, round trip, recovery, growth.

use super::*;

/// SACKed ranges that are kept whatever the flight: small segments make more of them than full ones.
const MIN_SACKED_RANGES: usize = 1024;

impl Sender {
    /// Window update (RFC 9293 §3.10.7.4). Whether the window offered changed.
    #[inline(always)]
    pub(in crate::tcp) fn take_window(&mut self, segment: &Segment) -> bool {
        let Some(changed) = self.seq.peer.update(self.seq.snd_una, segment) else { return false };
        if self.seq.peer.now > 0 && self.persist_at.take().is_some() {
            self.persist_backoff = 0;
            // The probe's byte is sent again as part of a full segment.
            self.seq.snd_nxt = self.seq.snd_una;
        }
        changed
    }

    /// Takes an acceptable ACK: `snd_una <= ack <= snd_max`. `sample` is the round trip that timestamps give.
    #[inline(always)]
    pub(in crate::tcp) fn take_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        window_changed: bool,
        sample: Option<Duration>,
    ) {
        self.counters.acks += 1;
        self.new_event();
        let ack = segment.ack;
        let news = !segment.sack.is_empty() && self.take_sack(segment);
        if ack > self.seq.snd_una {
            self.on_new_ack(cx, ack, sample);
            //= RFC 6675 §2: an ACK with new SACK data is a duplicate "even if it [...] moves the cumulative
            //= acknowledgment point"
            if news && self.phase == Phase::Open && self.variant.recovery == Recovery::Pipe(PipeForm::Rfc6675) {
                self.on_same_ack(cx, false, window_changed, news);
            }
        } else if ack == self.seq.snd_una {
            // The answers to probes of a closed window are no duplicates: nothing was lost.
            let plain = segment.sequence_len() == 0 && self.seq.flight() > 0 && self.seq.peer.now > 0;
            if plain || news || self.phase == Phase::Recovery {
                self.on_same_ack(cx, plain, window_changed, news);
            }
        }
        cx.emit(|| Event::Window {
            cwnd: self.window.cwnd() + self.window.inflation(),
            ssthresh: self.window.ssthresh(),
            flight: self.seq.flight(),
        });
    }

    /// Feeds the scoreboard. Whether it learnt anything.
    pub(in crate::tcp) fn take_sack(&mut self, segment: &Segment) -> bool {
        // ns-2 clears its scoreboard with each new ACK outside recovery.
        if self.ns2 && self.phase != Phase::Recovery && (segment.ack > self.seq.snd_una || self.ns2_deaf) {
            return false;
        }
        let mut news = false;
        let floor = self.seq.snd_una.max(segment.ack);
        // No honest receiver of full segments has more gaps than every second of them.
        let max = MIN_SACKED_RANGES.max((self.seq.flight() / self.mss as u64) as usize);
        for (start, end) in segment.sack.iter(segment.ack) {
            // Below the ACK it is a D-SACK (RFC 2883); beyond what was sent it is nonsense.
            if start >= floor && start < end && end <= self.seq.snd_max && self.scoreboard.has_room(start, end, max) {
                news |= self.scoreboard.sack(start, end);
            }
        }
        if news && let Recovery::Pipe(form) = self.variant.recovery {
            self.find_losses(form);
        }
        news
    }

    pub(in crate::tcp) fn find_losses(&mut self, form: PipeForm) {
        let thresh = self.variant.dup_thresh.count;
        let bytes = match form {
            PipeForm::Rfc6675 => (thresh as u64).saturating_sub(1) * self.mss as u64,
            //= RFC 3517 §4: "(DupThresh * SMSS) bytes with sequence numbers greater than 'SeqNum' have been SACKed"
            PipeForm::Rfc3517 => thresh as u64 * self.mss as u64 - 1,
            PipeForm::Ns2 => return,
        };
        self.scoreboard.find_losses(thresh, bytes);
    }

    #[inline(always)]
    pub(in crate::tcp) fn on_new_ack<P: Probe>(&mut self, cx: &mut Context<'_, P>, ack: u64, sample: Option<Duration>) {
        self.retries = 0;
        self.ns2_deaf = false;
        if self.phase == Phase::Open {
            let was = self.seq.snd_una;
            self.advance(cx, ack, sample);
            if self.ns2 && !self.scoreboard.is_empty() {
                self.scoreboard.clear();
            }
            self.grow(ack - was);
            return;
        }
        self.on_new_ack_after_loss(cx, ack, sample);
    }

    pub(in crate::tcp) fn on_new_ack_after_loss<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        ack: u64,
        sample: Option<Duration>,
    ) {
        let acked = ack - self.seq.snd_una;
        let full = self.recover.is_none_or(|recover| ack >= recover);
        if self.phase == Phase::Loss {
            let more = self.seq.snd_max < self.seq.end().min(ack + self.seq.peer.now.min(self.window.limit()));
            let verdict = self.frto.on_new_ack(ack, self.recover, more);
            self.advance(cx, ack, sample);
            if self.ns2 {
                self.scoreboard.clear();
            }
            match verdict {
                FrtoVerdict::Conventional => {}
                // Two new segments, to see whether their ACKs come before those of retransmissions.
                FrtoVerdict::SendNew => {
                    self.frto_new = 2;
                    self.burst = 0;
                    return;
                }
                FrtoVerdict::Spurious { ssthresh, flight } => {
                    self.window.undo(flight, ssthresh);
                    self.counters.spurious_timeouts += 1;
                    self.phase = Phase::Open;
                    self.recover = Some(self.seq.snd_una);
                    self.seq.snd_nxt = self.seq.snd_max;
                    self.scoreboard.clear();
                    cx.emit(|| Event::SpuriousTimeout);
                    return;
                }
            }
            self.grow(acked);
            if full {
                self.phase = Phase::Open;
            }
            if let Some(run) = &mut self.run {
                run.answered(full);
            }
            return;
        }
        match self.variant.recovery {
            Recovery::Restart => {
                self.advance(cx, ack, sample);
                self.grow(acked);
            }
            Recovery::Inflate { exit, deflate, timer } => {
                if full || exit == Exit::FirstNewAck {
                    self.leave_inflated(cx, ack, sample, exit);
                } else {
                    self.on_partial_ack(cx, ack, deflate, timer);
                }
            }
            Recovery::Pipe(form) if full => {
                self.ns2_pipe -= 1;
                self.phase = Phase::Open;
                self.advance(cx, ack, sample);
                if form == PipeForm::Ns2 {
                    self.scoreboard.clear();
                    self.recover = None;
                }
                cx.emit(|| Event::RecoveryLeft);
            }
            Recovery::Pipe(form) => {
                // The retransmission and the segment after it have left the network.
                self.ns2_pipe -= 2;
                if form == PipeForm::Ns2 {
                    // ns-2 takes no round trip here, but ends the backoff.
                    self.rtt.reset_backoff();
                }
                self.advance_to(ack);
                self.restart_timer(cx.now);
            }
            Recovery::BurstEstimate(_) => self.on_ack_in_phase(cx, ack, sample, full),
        }
    }

    /// The end of Reno's or NewReno's recovery.
    pub(in crate::tcp) fn leave_inflated<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        ack: u64,
        sample: Option<Duration>,
        exit: Exit,
    ) {
        let acked = ack - self.seq.snd_una;
        self.phase = Phase::Open;
        //= RFC 5681 §3.2 step 6: "set cwnd to ssthresh", which takes the inflation away
        self.advance(cx, ack, sample);
        if self.ns2 {
            self.window.open(acked);
        } else if exit == Exit::Recover {
            self.window.leave_recovery(self.seq.flight());
        }
        cx.emit(|| Event::RecoveryLeft);
    }

    //= RFC 6582 §3.2 step 3: "then this is a partial ACK. In this case, retransmit the first unacknowledged segment."
    pub(in crate::tcp) fn on_partial_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        ack: u64,
        deflate: bool,
        timer: PartialAckTimer,
    ) {
        let acked = ack - self.seq.snd_una;
        if deflate {
            self.window.deflate_partially(acked);
        } else {
            self.window.deflate_all();
        }
        if self.timed.is_some_and(|(end, _)| ack >= end) {
            self.timed = None;
            self.rtt.reset_backoff();
        }
        self.advance_to(ack);
        if timer == PartialAckTimer::SlowButSteady || !self.first_partial {
            self.restart_timer(cx.now);
        }
        self.first_partial = true;
        self.retransmit_now = Some(self.seq.snd_una);
        if self.ns2 {
            self.burst = self.burst.min(2);
        }
    }

    /// `snd_una` moves in order: round trip, timer, counters.
    #[inline(always)]
    pub(in crate::tcp) fn advance<P: Probe>(&mut self, cx: &mut Context<'_, P>, ack: u64, sample: Option<Duration>) {
        self.advance_to(ack);
        let timed = match sample {
            Some(elapsed) => {
                self.timed = None;
                Some(cx.now.saturating_sub(elapsed))
            }
            None => match self.timed {
                Some((end, sent)) if ack >= end => {
                    self.timed = None;
                    Some(sent)
                }
                _ => None,
            },
        };
        if let Some(sent) = timed {
            self.rtt.reset_backoff();
            self.rtt.sample(sent, cx.now);
            cx.emit(|| Event::Rtt { sample: self.rtt.last_sample(), rto: self.rtt.rto() });
        }
        self.dupacks = 0;
        self.first_partial = false;
        self.window.deflate_all();
        self.restart_timer(cx.now);
    }

    #[inline(always)]
    pub(in crate::tcp) fn advance_to(&mut self, ack: u64) {
        self.seq.snd_una = ack;
        self.seq.snd_nxt = self.seq.snd_nxt.max(ack);
        self.limited_sent = 0;
        self.limited_allowed = false;
        self.retransmit_now = None;
        self.scoreboard.advance(ack);
        if let Some(run) = &mut self.run {
            run.boundaries.advance(ack);
        }
    }

    /// Growth of the window by an ACK of new data.
    #[inline(always)]
    pub(in crate::tcp) fn grow(&mut self, acked: u64) {
        // A window that is not used says nothing about the path (RFC 7661 §4.3): no growth then.
        let before = self.seq.flight() + acked;
        let used = if self.window.in_slow_start() {
            2 * before > self.window.cwnd()
        } else {
            before + 2 * self.mss as u64 > self.window.cwnd()
        };
        if self.open && (self.ns2 || used) {
            if self.phase == Phase::Loss {
                self.window.open_after_loss(acked)
            } else {
                self.window.open(acked)
            }
            self.counters.max_cwnd = self.counters.max_cwnd.max(self.window.cwnd());
        }
    }
}
