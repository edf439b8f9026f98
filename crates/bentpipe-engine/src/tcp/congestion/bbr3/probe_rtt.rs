//! The minimum round trip, and BBRv3's probes for it (draft-ietf-ccwg-bbr-06 §5.3.4).

use super::*;

impl Bbr3 {
    /// UpdateMinRTT. Returns true if the minimum round trip measured since the last probe has expired.
    pub(super) fn update_min_rtt(&mut self, seen: &Delivered) -> bool {
        let has_expired = self.recent_rtt.is_some() && seen.now > self.recent_rtt_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = seen.rtt
            && (has_expired || self.recent_rtt.is_none_or(|least| rtt < least))
        {
            (self.recent_rtt, self.recent_rtt_at) = (Some(rtt), seen.now);
        }
        let is_old = seen.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(recent) = self.recent_rtt
            && (is_old || self.min_rtt.is_none_or(|least| recent < least))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(recent), self.recent_rtt_at);
        }
        has_expired
    }

    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_window(&self, mss: f64) -> f64 {
        self.products(PROBE_RTT_GAIN, self.bw, mss).max(MIN_PIPE * mss)
    }

    /// CheckProbeRTT, HandleProbeRTT.
    pub(super) fn probe_rtt(&mut self, window: &mut Window, seen: &Delivered, has_expired: bool) {
        if has_expired && !self.restarts && !matches!(self.state, State::ProbeRtt(_)) {
            self.state = State::ProbeRtt(None);
            self.save(window);
            self.ack_phase = AckPhase::Stopping;
            self.start_round(seen.delivered);
        }
        let few = seen.pipe as f64 <= self.probe_rtt_window(window.exact_mss());
        match &mut self.state {
            State::ProbeRtt(until @ None) if few => {
                *until = Some((seen.now + PROBE_RTT_TIME, false));
                self.start_round(seen.delivered);
            }
            State::ProbeRtt(Some((_, has_round))) => {
                *has_round |= self.round_starts;
                if *has_round {
                    self.leave_probe_rtt(window, seen.now, seen.delivered);
                }
            }
            _ => {}
        }
        self.restarts &= seen.newly == 0;
    }

    /// CheckProbeRTTDone: ends a probe that has lasted long enough.
    fn leave_probe_rtt(&mut self, window: &mut Window, now: Time, delivered: u64) {
        let State::ProbeRtt(Some((end, _))) = self.state else { return };
        if now > end {
            self.recent_rtt_at = now;
            self.restore(window);
            self.bounds.reset_short_term();
            self.state = State::Startup;
            if self.filled.ever {
                self.start_down(now, delivered);
                self.state = State::Cruise;
            }
        }
    }

    /// HandleRestartFromIdle.
    pub(super) fn restart_from_idle(&mut self, window: &mut Window, now: Time) {
        self.restarts = true;
        self.extra_acked.restart(now);
        if self.state.is_of_cycle() {
            self.pace(1.0);
        } else {
            self.leave_probe_rtt(window, now, self.last.1);
        }
    }
}
