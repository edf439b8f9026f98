//! BBRv3's cycle of bandwidth probes (draft-ietf-ccwg-bbr-06 §5.3.3): down, cruise, refill, up.
//!
//! If a probe lost too much, the next one is precautionary (§5.3.3.6): it ends as soon as the same volume is in flight.
//! If a round trip then shows little loss, another probe follows without cruising and holds that volume.

use super::*;

impl Bbr3 {
    /// StartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, now: Time, delivered: u64) {
        self.bounds.reset_signals();
        self.up_count = f64::INFINITY;
        // PickProbeWait.
        self.rounds_since_probe = u64::from(self.noise.at(now.as_nanos(), 0) >= 0.5);
        self.wait = MIN_PROBE_WAIT + Duration::from_secs_f64_rounded(self.noise.at(now.as_nanos(), 1));
        self.cycle_at = now;
        self.ack_phase = AckPhase::Stopping;
        self.start_round(delivered);
        self.state = State::Down;
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self, delivered: u64) {
        self.bounds.reset_short_term();
        (self.up_rounds, self.up_acks) = (0, 0.0);
        self.was_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round(delivered);
        self.state = State::Refill;
    }

    /// StartProbeBW_UP.
    fn start_up(&mut self, window: &Window, seen: &Delivered) {
        self.ack_phase = AckPhase::Starting;
        self.start_round(seen.delivered);
        self.filled.restart(seen.sample.map_or(0.0, |sample| sample.rate()));
        self.state = State::Up;
        self.raise_slope(window);
    }

    /// RaiseInflightLongtermSlope: one segment more per window of ACKs, then 2, 4 and so on.
    pub(super) fn raise_slope(&mut self, window: &Window) {
        let segments = f64::from(1u32 << self.up_rounds);
        self.up_rounds = (self.up_rounds + 1).min(30);
        self.up_count = (window.exact() / segments).max(window.exact_mss());
    }

    /// IsTimeToProbeBW.
    pub(super) fn probes_again(&self, window: &Window, seen: &Delivered) -> bool {
        let rounds = (self.target(window) / window.exact_mss()).min(MAX_PROBE_ROUNDS);
        seen.now > self.cycle_at + self.wait || self.rounds_since_probe as f64 >= rounds
    }

    /// InflightWithHeadroom.
    pub(super) fn with_headroom(&self, mss: f64) -> f64 {
        let longterm = self.bounds.longterm;
        if longterm.is_infinite() {
            return longterm;
        }
        (longterm - mss.max(HEADROOM * longterm)).max(MIN_PIPE * mss)
    }

    /// C.is_cwnd_limited: the window was in use at some time in the last round trip.
    fn is_limited(&mut self, window: &Window, seen: &Delivered) -> bool {
        if seen.pipe_before as f64 + window.exact_mss() > window.exact() {
            self.limited_at = Some(seen.delivered);
        } else if let (Some(at), Some(sample)) = (self.limited_at, seen.sample)
            && sample.prior_delivered >= at
        {
            self.limited_at = None;
        }
        self.limited_at.is_some()
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn advance(&mut self, window: &Window, seen: &Delivered) {
        let at_bound = self.is_limited(window, seen) && window.exact() >= self.bounds.longterm;
        if !self.filled.ever || self.adapt_long_term(window, seen, at_bound) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.probes_again(window, seen) => self.start_refill(seen.delivered),
            State::Down => {
                let mss = window.exact_mss();
                let product = self.budget(self.products(1.0, self.max_bw.max(), mss), mss);
                if seen.pipe as f64 <= self.with_headroom(mss).min(product) {
                    self.state = State::Cruise;
                }
            }
            State::Refill if self.round_starts => {
                self.is_judging = true;
                self.start_up(window, seen);
            }
            State::Up => self.end_up(window, seen, at_bound),
            _ => {}
        }
    }

    /// IsTimeToGoDown, and the transition. The volume in flight is greatest just before an ACK. It reaches the bound
    /// when not even one more segment fits below it.
    fn end_up(&mut self, window: &Window, seen: &Delivered, at_bound: bool) {
        let is_risky = self.was_too_high && seen.pipe_before as f64 + window.exact_mss() > self.bounds.longterm;
        if is_risky {
            self.was_precautionary = true;
        } else if at_bound {
            // The rate is limited by the bound, not by the path.
            self.filled.restart(seen.sample.map_or(0.0, |sample| sample.rate()));
        }
        if is_risky || self.filled.now {
            self.was_too_high = false;
            self.start_down(seen.now, seen.delivered);
        }
    }

    /// AdaptLongTermModel. Returns true if it has begun another probe.
    fn adapt_long_term(&mut self, window: &Window, seen: &Delivered, at_bound: bool) -> bool {
        match self.ack_phase {
            AckPhase::Starting if self.round_starts => self.ack_phase = AckPhase::Feedback,
            AckPhase::Stopping if self.round_starts => {
                self.ack_phase = AckPhase::Init;
                self.is_judging = false;
                // AdvanceMaxBwFilter: the next rate sample that counts displaces the one from two cycles ago.
                let counts = seen.sample.is_some_and(|sample| !sample.is_app_limited);
                self.cycle += u64::from(self.state.is_of_cycle() && counts);
                if self.state.is_of_cycle() && self.was_precautionary && !self.was_too_high {
                    self.start_refill(seen.delivered);
                    return true;
                }
            }
            _ => {}
        }
        let Some(sample) = seen.sample.filter(|sample| !sample.is_too_high()) else { return false };
        if self.bounds.longterm.is_infinite() {
            return false;
        }
        self.bounds.longterm = self.bounds.longterm.max(sample.tx_in_flight as f64);
        // ProbeInflightLongtermUpward.
        if self.state == State::Up && at_bound {
            self.up_acks += seen.newly as f64;
            let more = libm::floor(self.up_acks / self.up_count);
            self.up_acks -= more * self.up_count;
            self.bounds.longterm += more * window.exact_mss();
            if self.round_starts {
                self.raise_slope(window);
            }
        }
        false
    }
}
