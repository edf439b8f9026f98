//! What duplicate ACKs and timers mean: limited transmit, fast retransmit, timeout.

use super::*;

impl Sender {
    pub(in crate::tcp) fn on_same_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        plain: bool,
        window_changed: bool,
        news: bool,
    ) {
        let pipe_form = match self.variant.recovery {
            Recovery::Pipe(form) => Some(form),
            _ => None,
        };
        // With SACK a duplicate ACK is one that brings news (RFC 6675 §2); without, RFC 5681 §2.
        let duplicate = if pipe_form.is_some() { news } else { plain && !window_changed };
        if self.phase == Phase::Recovery {
            match pipe_form {
                Some(_) => self.ns2_pipe -= 1,
                None if duplicate && self.run.is_some() => {
                    self.counters.duplicate_acks += 1;
                    self.on_duplicate_in_phase(cx.now);
                }
                None if duplicate => {
                    self.counters.duplicate_acks += 1;
                    self.window.inflate(1);
                    if self.ns2 && matches!(self.variant.recovery, Recovery::Inflate { exit: Exit::Recover, .. }) {
                        self.burst = self.burst.min(2);
                    }
                }
                None => {}
            }
            return;
        }
        if !duplicate {
            return;
        }
        self.counters.duplicate_acks += 1;
        if self.phase == Phase::Loss && self.frto.on_duplicate_ack() {
            //= RFC 5682 §2.1 step 3a: "set the congestion window to no more than 3 * MSS [...] and continue with the
            //= slow-start algorithm retransmitting unacknowledged segments"
            self.seq.snd_nxt = self.seq.snd_una;
            self.window.set_segments(2);
            self.dupacks = 0;
        }
        if self.run.is_some() && self.is_echo() {
            return;
        }
        self.dupacks += 1;
        let thresh = self.dup_thresh();
        let lost = match pipe_form {
            //= RFC 6675 §5: "(2) If DupAcks < DupThresh but IsLost (HighACK + 1) returns true"
            Some(PipeForm::Rfc6675) => self.dupacks >= thresh || self.scoreboard.is_lost(self.seq.snd_una),
            _ => self.dupacks == thresh,
        };
        if lost && self.may_recover() {
            self.enter_recovery(cx);
        } else if self.dupacks < thresh && self.variant.limited_transmit && (self.phase == Phase::Open || self.ns2) {
            self.limited_allowed = true;
        } else if self.ns2_inflate_always && pipe_form.is_none() && self.variant.recovery != Recovery::Restart {
            if self.dupacks == thresh {
                self.window.set_inflation(thresh);
            } else if self.dupacks > thresh {
                self.window.inflate(1);
            }
        }
        if self.ns2 && self.phase != Phase::Recovery {
            self.gate_ns2_duplicates(pipe_form.is_some(), thresh);
        }
    }

    /// ns-2 sends on some duplicate ACKs only, whatever room the window has.
    pub(in crate::tcp) fn gate_ns2_duplicates(&mut self, sack: bool, thresh: u32) {
        let sends = match self.variant.recovery {
            Recovery::Restart => true,
            _ if sack => false,
            _ => self.dupacks >= thresh,
        };
        let newreno = matches!(self.variant.recovery, Recovery::Inflate { exit: Exit::Recover, .. });
        self.burst = match (sends, newreno) {
            (false, _) => 0,
            (true, true) => self.burst.min(2),
            (true, false) => self.burst,
        };
    }

    pub(in crate::tcp) fn dup_thresh(&self) -> u32 {
        let thresh = self.variant.dup_thresh;
        match thresh.window_fraction {
            Some(fraction) if matches!(self.variant.recovery, Recovery::Pipe(_)) => {
                thresh.count.max(self.window.whole_segments() / fraction)
            }
            _ => thresh.count,
        }
    }

    //= RFC 6582 §3.2 step 2: "If the Cumulative Acknowledgment field covers more than 'recover'"
    /// One fast retransmit per window.
    pub(in crate::tcp) fn may_recover(&self) -> bool {
        if self.ns2_needs_first_ack && self.seq.snd_una == FIRST_BYTE {
            return false;
        }
        match (self.recover, self.variant.recovery) {
            (None, _) => true,
            //= RFC 6675 §5: not until HighACK reaches RecoveryPoint
            (Some(recover), Recovery::Pipe(PipeForm::Rfc6675 | PipeForm::Rfc3517)) => self.seq.snd_una >= recover,
            (Some(_), Recovery::BurstEstimate(cells)) if cells.guard != ReentryGuard::Recover => {
                self.phase == Phase::Open
            }
            (Some(_), Recovery::Restart | Recovery::Inflate { exit: Exit::FirstNewAck, .. })
                if !self.variant.once_per_window =>
            {
                self.phase == Phase::Open || !self.variant.guard_after_timeout
            }
            (Some(recover), _) => self.seq.snd_una > recover,
        }
    }

    pub(in crate::tcp) fn enter_recovery<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.counters.fast_retransmits += 1;
        let flight = self.seq.flight() - self.limited_sent;
        let thresh = self.dup_thresh();
        self.recover = Some(self.seq.snd_max);
        self.rescue = None;
        self.timed = None;
        self.first_partial = false;
        self.limited_allowed = false;
        cx.emit(|| Event::RecoveryEntered { snd_una: self.seq.snd_una, recover: self.seq.snd_max });
        match self.variant.recovery {
            Recovery::Restart => {
                self.window.on_restart(flight, self.seq.peer.now);
                self.phase = Phase::Loss;
                self.seq.snd_nxt = self.seq.snd_una;
            }
            Recovery::Inflate { exit, .. } => {
                self.window.on_fast_retransmit(flight, self.seq.peer.now);
                self.window.set_inflation(thresh);
                self.phase = Phase::Recovery;
                self.retransmit_now = Some(self.seq.snd_una);
                if self.ns2 && exit == Exit::Recover {
                    self.burst = self.burst.min(2);
                }
            }
            Recovery::Pipe(form) => {
                self.scoreboard.begin_recovery(self.seq.snd_una);
                let segments = (self.seq.flight() / self.mss as u64) as i64;
                self.ns2_pipe = segments - thresh as i64;
                self.window.on_fast_retransmit(flight, self.seq.peer.now);
                self.phase = Phase::Recovery;
                self.retransmit_now = Some(self.seq.snd_una);
                if form == PipeForm::Ns2 {
                    self.burst = 0;
                }
            }
            Recovery::BurstEstimate(_) => self.begin_phase(flight),
        }
        self.rto_at = Some(self.rtt.deadline(cx.now));
    }

    //= RFC 6298 §5.2, §5.3: off when all is acknowledged, restarted by an ACK of new data
    #[inline(always)]
    pub(in crate::tcp) fn restart_timer(&mut self, now: Time) {
        self.rto_at = (self.seq.snd_una < self.seq.snd_max).then(|| self.rtt.deadline(now));
    }

    /// Lets timers that are due act.
    pub(in crate::tcp) fn run_timers<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Result<(), Abort> {
        if self.persist_at.is_some_and(|at| at <= cx.now) {
            self.persist_backoff += 1;
            self.probe_now = true;
            self.persist_at = Some(cx.now + self.persist_interval());
        }
        if self.rto_at.is_some_and(|at| at <= cx.now) {
            self.on_timeout(cx)?;
        }
        Ok(())
    }

    pub(in crate::tcp) fn persist_interval(&self) -> Duration {
        let factor = 1u64 << self.persist_backoff.min(6);
        self.rtt.rto().saturating_mul(factor).min(Duration::from_secs(60))
    }

    pub(in crate::tcp) fn on_timeout<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Result<(), Abort> {
        //= RFC 9293 §3.8.6: "SHOULD NOT time out the connection if data beyond the right window edge is not
        //= acknowledged", and "If the window shrinks to zero, the TCP implementation MUST probe it"
        let shut = self.open && self.seq.peer.now == 0;
        self.probe_now |= shut;
        if self.retries >= self.max_retries && !shut {
            return Err(Abort::RetriesExhausted);
        }
        self.new_event();
        self.counters.timeouts += 1;
        let flight = self.seq.flight();
        cx.emit(|| Event::Timeout { snd_una: self.seq.snd_una, backoffs: self.retries });
        self.frto.on_timeout(
            self.phase != Phase::Open,
            self.window.cwnd(),
            self.window.ssthresh(),
            flight,
            self.retries,
        );
        //= RFC 5681 §3.1: for a segment resent before by the timer "the value of ssthresh is held constant"
        // A SYN says nothing about the window that data may have.
        let again = self.ns2 || self.open && (self.retries == 0 || self.window.halves_each_time());
        self.window.on_timeout(flight, self.seq.peer.now, again);
        self.retries = self.retries.saturating_add(1);
        self.ns2_deaf = true;
        self.phase = Phase::Loss;
        let oldest_alone = self.variant.timeout_repair == TimeoutRepair::Oldest;
        self.recover = Some(if oldest_alone { self.seq.snd_una } else { self.seq.snd_max });
        if let Some(run) = &mut self.run {
            run.forget();
        }
        // ns-2's Tahoe goes on counting where it was.
        if !(self.ns2 && self.variant.recovery == Recovery::Restart) {
            self.dupacks = 0;
        }
        self.timed = None;
        self.first_partial = false;
        self.limited_allowed = false;
        self.frto_new = 0;
        self.retransmit_now = None;
        self.rescue = None;
        match self.variant.recovery {
            Recovery::Pipe(PipeForm::Rfc6675 | PipeForm::Rfc3517) if self.open => {
                if self.scoreboard.reneged(self.seq.snd_una) {
                    self.scoreboard.clear();
                }
                self.scoreboard.begin_recovery(self.seq.snd_una);
                self.scoreboard.raise_lost_edge(self.seq.snd_max);
            }
            _ if oldest_alone && self.open => {
                self.scoreboard.clear();
                self.retransmit_now = Some(self.seq.snd_una);
            }
            _ => {
                self.scoreboard.clear();
                self.seq.snd_nxt = self.seq.snd_una;
            }
        }
        self.rtt.back_off();
        self.rto_at = Some(self.rtt.deadline(cx.now));
        Ok(())
    }
}
