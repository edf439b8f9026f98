//! The values that BBRv3 sets: the pacing rate and the window (draft-ietf-ccwg-bbr-06 §5.6).

use super::*;

impl Bbr3 {
    /// SetPacingRate. The rate falls only once the path is known to be full. As in version 1, nothing is paced before
    /// the first round trip.
    fn set_pacing(&mut self, window: &Window, seen: &Delivered) {
        if self.pacing.is_none()
            && let Some(srtt) = seen.srtt
        {
            self.pacing = Some(window.exact() / srtt.as_secs_f64() * STARTUP_GAIN);
        }
        self.pace(self.pacing_gain());
    }

    /// SetPacingRateWithGain.
    pub(super) fn pace(&mut self, gain: f64) {
        let rate = self.bw * gain * MARGIN;
        if let Some(known) = self.pacing
            && rate > 0.0
            && (self.filled.ever || rate > known)
        {
            self.pacing = Some(rate);
        }
    }

    /// Restores the window at the end of a recovery (§5.6.4.4).
    fn follow_recovery(&mut self, window: &mut Window, seen: &Delivered) {
        if self.phase != Phase::Open && seen.phase == Phase::Open {
            self.restore(window);
        }
        if self.phase != Phase::Recovery && seen.phase == Phase::Recovery {
            self.recovery_at = seen.delivered;
        }
        if seen.phase == Phase::Open {
            self.undo.end();
        }
        self.phase = seen.phase;
    }

    /// SetCwnd.
    fn set_window(&mut self, window: &mut Window, seen: &Delivered) {
        let mss = window.exact_mss();
        let mut cwnd = window.exact();
        let acked = seen.newly as f64;
        // UpdateMaxInflight.
        let max = self.products(self.cwnd_gain(), self.bw, mss) + self.extra_acked.extra();
        let max = self.budget(max, mss);
        if self.filled.ever {
            cwnd = (cwnd + acked).min(max);
        } else if cwnd < max || (seen.delivered as f64) < self.initial_window * mss {
            cwnd += acked;
        }
        cwnd = cwnd.max(MIN_PIPE * mss);
        if matches!(self.state, State::ProbeRtt(_)) {
            cwnd = cwnd.min(self.probe_rtt_window(mss));
        }
        window.set(cwnd.min(self.volume_cap(mss)));
    }

    /// BoundCwndForModel.
    pub(super) fn volume_cap(&self, mss: f64) -> f64 {
        let long = match self.state {
            State::Startup | State::Drain(_) => f64::INFINITY,
            State::Cruise | State::ProbeRtt(_) => self.with_headroom(mss),
            State::Down | State::Refill | State::Up => self.bounds.longterm,
        };
        long.min(self.bounds.inflight).max(MIN_PIPE * mss)
    }
}

impl CongestionRules for Bbr3 {
    const NAME: &'static str = "BBRv3";
    const PROPERTIES: Properties =
        Properties { paces: true, measures_rate: true, sets_rate: true, resumes: false, ..Properties::WINDOW_ONLY };

    fn on_ack(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        if ack.latest_rtt.is_none() {
            // Without SACK, the rate is not measured.
            start.on_ack(window, ack);
        }
    }

    /// UpdateOnACK.
    fn on_delivered(&mut self, window: &mut Window, seen: &Delivered) {
        self.last = (seen.now, seen.delivered);
        if seen.lost > 0 {
            self.on_lost(window, &FoundLost { now: seen.now, delivered: seen.delivered, too_high: seen.too_high });
        }
        self.bounds.update_latest(seen);
        self.update_signals(window, seen);
        self.extra_acked.update(seen, self.bw, window.exact(), self.rounds, self.filled.ever);
        if let Some(sample) = seen.sample.filter(|_| self.round_starts) {
            self.filled.on_round(&sample);
        }
        self.leave_startup(seen, window.exact_mss());
        self.advance(window, seen);
        let has_expired = self.update_min_rtt(seen);
        self.probe_rtt(window, seen, has_expired);
        if self.bounds.round_starts {
            self.bounds.events = 0;
        }
        self.bounds.advance_latest(seen);
        self.bound_bw();
        self.follow_recovery(window, seen);
        self.set_pacing(window, seen);
        self.set_window(window, seen);
    }

    fn on_found_lost(&mut self, window: &mut Window, lost: &FoundLost) {
        self.on_lost(window, lost);
    }

    fn on_restart_from_idle(&mut self, window: &mut Window, now: Time) {
        self.restart_from_idle(window, now);
    }

    fn holds_back(&self) -> bool {
        matches!(self.state, State::ProbeRtt(_))
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossReport) {
        match loss.found_by {
            // OnEnterFastRecovery. After a timeout, this is a new recovery.
            FoundBy::DuplicateAcks => {
                if self.phase == Phase::Loss {
                    self.undo.end();
                }
                self.save_state(window);
            }
            FoundBy::Mark => self.on_mark(window, loss.flight),
            // OnEnterRTO. The sender adds the bytes in flight to the window.
            FoundBy::Timeout { .. } => {
                self.save_state(window);
                self.phase = Phase::Loss;
                window.set_segments(1);
            }
        }
    }

    fn restart(&mut self, window: &mut Window, segments: u32) {
        if self.rounds == 0 {
            window.set_segments(segments);
        }
    }

    fn on_recovered(&mut self, _: &mut Window, _: u64) {}

    fn on_spurious_timeout(&mut self, window: &mut Window, _: u64, _: u64) {
        self.undo_losses(window);
    }

    #[inline(always)]
    fn pacing_rate(&self, _: &Window) -> Option<Rate> {
        self.pacing.map(rate_of)
    }
}
