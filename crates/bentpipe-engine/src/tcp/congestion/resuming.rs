//! Careful resume (RFC 9959): if an earlier connection has measured the path, this one jumps to half of the earlier
//! window and verifies that the path still carries it.
//!
//! - **Reconnaissance**: the initial window goes out as always. A congestion signal or a different round trip ends
//!   careful resume.
//! - **Unvalidated**: when the initial window is acknowledged, the window jumps to half of the saved one and is paced
//!   over a round trip.
//! - **Validating**: what was sent unvalidated must be acknowledged; the control continues as always.
//! - **Safe retreat**: after a loss or mark in the last two phases, or if the round trip shows another path while the
//!   jump is being sent, the window is half of what the path has carried (PipeSize). It does not grow until everything
//!   unvalidated is acknowledged. The reduction is not spread over a round trip: PRR does not apply (§4.5).
//!
//! The measurement has a lifetime, after which it is not used. The local stack may report that the path is another one.
//!
//! A timeout ends careful resume in any phase: the control slow starts as always.
//!
//! It wraps the connection's control, which sees every ACK and loss. Controls that measure the rate set their own
//! window and are not wrapped.

use alloc::boxed::Box;

use super::{AckSample, Congestion, Control, Delivered, Marks, Properties, Window};
use crate::tcp::config::Resume;
use crate::tcp::delivery::rate_of;
use crate::tcp::loss::{FoundBy, LossReport};
use crate::tcp::startup::SlowStart;
use crate::units::{Duration, Rate, Time};

/// The threshold after a retreat, as a fraction of what the path has carried (§3.5).
const BETA: f64 = 0.5;
/// If the round trip is less than this fraction of the saved one, or more than this multiple, the path is a different
/// one (§3.2, §4.2.1).
const SHORTER: u64 = 2;
const LONGER: u64 = 10;

/// The phase of a connection, with sequence numbers and bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Reconnaissance,
    /// The first number sent in this phase.
    Unvalidated(u64),
    /// One past the last number sent unvalidated.
    Validating(u64),
    SafeRetreat(u64),
    Normal,
}

/// A control with careful resume.
#[derive(Clone, Debug)]
pub(super) struct Resuming {
    control: Control,
    saved: Resume,
    /// Upper bound of the jump, bytes.
    max_jump: f64,
    /// When the lifetime of `saved` ends.
    expires: Time,
    phase: Phase,
    /// The initial window, bytes.
    initial: f64,
    /// What the path has carried: bytes in flight at the jump, and bytes acknowledged since.
    pipe_size: u64,
    /// `snd_una` at the last ACK.
    snd_una: u64,
    /// `snd_max` at the last ACK.
    snd_max: u64,
    rtt: Option<Duration>,
    /// The time of the ACK at which the unvalidated phase began.
    jumped: Time,
}

impl Congestion {
    /// Resumes the path state of an earlier connection, unless this connection already knows better. `expires`: when the
    /// lifetime of that state ends.
    pub(in crate::tcp) fn resume(&mut self, saved: Resume, max_jump: Option<u64>, expires: Time) {
        if self.properties.resumes && !matches!(self.control, Control::Resuming(_)) {
            let mut resuming = Resuming::new(self.control.clone(), saved, self.window.exact());
            resuming.max_jump = max_jump.map_or(f64::MAX, |bytes| bytes as f64);
            resuming.expires = expires;
            self.properties = resuming.properties();
            self.control = Control::Resuming(Box::new(resuming));
        }
    }

    /// Handles a signal of the local stack that the path is not the one that was measured. Data up to `snd_max` has been
    /// sent.
    pub(in crate::tcp) fn on_path_changed(&mut self, snd_max: u64) {
        if let Control::Resuming(resuming) = &mut self.control {
            resuming.on_path_changed(&mut self.window, snd_max);
        }
    }

    //= RFC 9959 §4.5: "PRR is therefore not appropriate when there might be significant overshoot in the use of the
    //= capacity, which can be the case when the Safe Retreat Phase is entered"
    /// True if a reduction of the window takes effect at once, instead of over a round trip.
    pub(in crate::tcp) fn reduces_at_once(&self) -> bool {
        matches!(&self.control, Control::Resuming(resuming) if matches!(resuming.phase, Phase::SafeRetreat(_)))
    }
}

impl Resuming {
    pub(super) fn new(control: Control, saved: Resume, initial: f64) -> Self {
        Resuming {
            control,
            saved,
            max_jump: f64::MAX,
            expires: Time::NEVER,
            phase: Phase::Reconnaissance,
            initial,
            pipe_size: 0,
            snd_una: 0,
            snd_max: 0,
            rtt: None,
            jumped: Time::ZERO,
        }
    }

    /// The properties of the wrapped control, plus pacing, which the jump needs, and all ACKs.
    pub(super) fn properties(&self) -> Properties {
        Properties { paces: true, heeds_unused: true, ..self.control.properties() }
    }

    //= RFC 9959 §3.3: "jump_cwnd is less than or equal to Min(max_jump,(saved_cwnd/2))"
    /// The window after the jump.
    fn jump(&self) -> f64 {
        (self.saved.cwnd as f64 / 2.0).min(self.max_jump)
    }

    /// True if the round trip is so short that the path is a different one: the saved window would be sent too fast.
    fn is_too_near(&self, rtt: Duration) -> bool {
        rtt.saturating_mul(SHORTER) <= self.saved.min_rtt
    }

    /// True if the round trip shows that the path is a different one.
    fn is_elsewhere(&self, rtt: Duration) -> bool {
        self.is_too_near(rtt) || rtt > self.saved.min_rtt.saturating_mul(LONGER)
    }

    /// Processes an ACK; `window` was `before` until then.
    fn on_any_ack(&mut self, window: &mut Window, before: f64, ack: &AckSample) {
        let acked = ack.snd_una.saturating_sub(self.snd_una);
        (self.snd_una, self.snd_max) = (ack.snd_una, ack.snd_max);
        self.rtt = ack.rtt.or(self.rtt);
        let flight = ack.snd_max - ack.snd_una;
        match self.phase {
            Phase::Normal => {}
            Phase::Reconnaissance => self.reconnoitre(window, flight, ack),
            Phase::Unvalidated(first) => {
                self.pipe_size += acked;
                // The only growth is the jump.
                window.set(before);
                // A longer round trip only slows the jump down: the initial window has confirmed the minimum (§4.2.1).
                if ack.rtt.is_some_and(|rtt| self.is_too_near(rtt)) {
                    return self.retreat(window, ack.snd_max);
                }
                // Not one more segment fits into the window that was open until this ACK.
                let is_full = ack.flight as f64 + window.exact_mss() > before;
                let over = self.rtt.is_some_and(|rtt| ack.now > self.jumped + rtt);
                if is_full || ack.snd_una > first || over {
                    self.validate(window, flight);
                }
            }
            Phase::Validating(last) => {
                self.pipe_size += acked;
                if ack.snd_una >= last {
                    self.phase = Phase::Normal;
                }
            }
            Phase::SafeRetreat(last) => {
                self.pipe_size += acked;
                window.set(window.exact().min(before));
                if ack.snd_una >= last {
                    window.set_ssthresh((BETA * self.pipe_size as f64).max(2.0 * window.exact_mss()));
                    self.phase = Phase::Normal;
                }
            }
        }
    }

    fn reconnoitre(&mut self, window: &mut Window, flight: u64, ack: &AckSample) {
        let Some(rtt) = self.rtt else { return };
        //= RFC 9959 §3.2: "If the Lifetime of the observed CC parameters is exceeded, this set of CC parameters is not used"
        if ack.now > self.expires || self.is_elsewhere(rtt) || self.jump() <= window.exact() {
            self.phase = Phase::Normal;
        } else if ack.snd_una as f64 > self.initial {
            (self.pipe_size, self.jumped) = (flight, ack.now);
            self.phase = Phase::Unvalidated(ack.snd_max);
            window.set(self.jump());
        }
    }

    /// Handles a signal that the path is another one (§3.2, §3.3). What was sent unvalidated ends before `snd_max`. Later
    /// phases have no rule for it: the data itself tells what the path carries.
    fn on_path_changed(&mut self, window: &mut Window, snd_max: u64) {
        match self.phase {
            Phase::Reconnaissance => self.phase = Phase::Normal,
            Phase::Unvalidated(_) => self.retreat(window, snd_max),
            Phase::Validating(_) | Phase::SafeRetreat(_) | Phase::Normal => {}
        }
    }

    /// Begins a safe retreat, which lasts until `last` is acknowledged (§3.5).
    fn retreat(&mut self, window: &mut Window, last: u64) {
        self.phase = Phase::SafeRetreat(last);
        let half = (self.pipe_size as f64 / 2.0).max(2.0 * window.exact_mss());
        window.set_ssthresh(half);
        window.set(window.exact().min(half));
    }

    /// Ends the unvalidated phase (§3.3).
    fn validate(&mut self, window: &mut Window, flight: u64) {
        if (flight as f64) < self.initial || flight <= self.pipe_size {
            window.set((self.pipe_size as f64).max(self.initial));
            self.phase = Phase::Normal;
        } else {
            window.set(flight as f64);
            self.phase = Phase::Validating(self.snd_max);
        }
    }
}

/// Implements the methods of [`super::CongestionRules`].
impl Resuming {
    pub(super) fn on_ack(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        let before = window.exact();
        self.control.on_ack(window, start, ack);
        self.on_any_ack(window, before, ack);
    }

    pub(super) fn on_unused(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        let before = window.exact();
        self.control.on_unused(window, start, ack);
        self.on_any_ack(window, before, ack);
    }

    pub(super) fn on_delivered(&mut self, window: &mut Window, seen: &Delivered) {
        self.control.on_delivered(window, seen);
    }

    pub(super) fn on_loss(&mut self, window: &mut Window, loss: &LossReport) {
        let before = window.exact();
        self.control.on_loss(window, loss);
        // Persistent congestion (§3.6): a retreat would limit the slow start to the one segment that the timeout has
        // left.
        if matches!(loss.found_by, FoundBy::Timeout { .. }) {
            self.phase = Phase::Normal;
        }
        let last = match self.phase {
            // Everything sent so far may be unvalidated.
            Phase::Unvalidated(_) => self.snd_una + loss.flight,
            Phase::Validating(last) => last,
            Phase::Reconnaissance => {
                self.phase = Phase::Normal;
                return;
            }
            Phase::SafeRetreat(_) => return window.set(window.exact().min(before)),
            Phase::Normal => return,
        };
        self.retreat(window, last);
    }

    pub(super) fn restart(&mut self, window: &mut Window, segments: u32) {
        self.control.restart(window, segments);
        if self.phase == Phase::Reconnaissance {
            self.initial = window.exact();
        } else {
            self.phase = Phase::Normal;
        }
    }

    pub(super) fn on_idle(&mut self, now: Time, idle: Duration) {
        self.control.on_idle(now, idle);
    }

    pub(super) fn on_marks(&mut self, window: &mut Window, marks: &Marks) {
        self.control.on_marks(window, marks);
    }

    pub(super) fn on_recovered(&mut self, window: &mut Window, flight: u64) {
        self.control.on_recovered(window, flight);
    }

    /// A loss in a safe retreat that turns out to be none does not end the retreat.
    //= RFC 9959 §3.5: "The CWND MUST NOT be increased in the Safe Retreat Phase"
    pub(super) fn on_spurious_timeout(&mut self, window: &mut Window, cwnd: u64, ssthresh: u64) {
        let before = window.exact();
        self.control.on_spurious_timeout(window, cwnd, ssthresh);
        if let Phase::SafeRetreat(_) = self.phase {
            window.set(window.exact().min(before));
        }
    }

    /// The pacing rate. A jump is paced: the window leaves within one round trip (§3.3, §4.3).
    pub(super) fn pacing_rate(&self, window: &Window) -> Option<Rate> {
        match (self.phase, self.rtt) {
            (Phase::Unvalidated(_), Some(rtt)) => Some(rate_of(window.exact() / rtt.as_secs_f64())),
            _ => self.control.pacing_rate(window),
        }
    }
}

#[cfg(test)]
#[path = "resuming_tests.rs"]
mod tests;
