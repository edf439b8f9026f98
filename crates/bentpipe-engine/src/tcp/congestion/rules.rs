//! The interface that a congestion control implements.

use alloc::borrow::ToOwned;
use alloc::string::String;

use super::{AckSample, Delivered, FoundLost, LossReport, Marks, SlowStart, Window};
use crate::tcp::variant::Growth;
use crate::units::{Duration, Rate, Time};

/// What a control does besides setting a window by ACKs and losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct Properties {
    /// It returns a pacing rate.
    pub(in crate::tcp) paces: bool,
    /// It receives the delivery rate (`on_delivered`). Needs RACK.
    pub(in crate::tcp) measures_rate: bool,
    /// It sets a rate, from which the window follows: ACKs do not open the window.
    pub(in crate::tcp) sets_rate: bool,
    /// It reacts to the number of marks (`on_marks`), in proportion to their share (RFC 9331 §4.3).
    pub(in crate::tcp) is_scalable: bool,
    /// Careful resume can set its window (RFC 9959).
    pub(in crate::tcp) resumes: bool,
    /// It receives ACKs while the window is not in use (`on_unused`).
    pub(in crate::tcp) heeds_unused: bool,
}

impl Properties {
    /// A control that only sets a window, by ACKs and losses.
    pub(in crate::tcp) const WINDOW_ONLY: Properties = Properties {
        paces: false,
        measures_rate: false,
        sets_rate: false,
        is_scalable: false,
        resumes: true,
        heeds_unused: false,
    };
}

/// The rules of one congestion control.
///
/// The methods change the window's `cwnd` and `ssthresh`. Inflation belongs to fast recovery, and a control only reads
/// it.
pub(in crate::tcp) trait CongestionRules {
    /// The name that `bentpipe explain` shows.
    const NAME: &'static str;

    /// What the control does besides setting a window by ACKs and losses.
    const PROPERTIES: Properties = Properties::WINDOW_ONLY;

    /// The name, with the growth per ACK for a control that `growth` affects.
    fn describe(_growth: Growth) -> String {
        Self::NAME.to_owned()
    }

    /// Called when new data has been acknowledged while the window was in use. `start` opens the window in slow start.
    fn on_ack(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample);

    /// Called when new data has been acknowledged while the window was not in use. Only for a control that heeds it
    /// ([`Properties`]).
    #[inline(always)]
    fn on_unused(&mut self, _window: &mut Window, _start: &mut SlowStart, _ack: &AckSample) {}

    /// Called when data has been delivered, in order or not, during a recovery or not. Only for a control that measures
    /// the rate ([`Properties`]). Needs RACK.
    #[inline(always)]
    fn on_delivered(&mut self, _window: &mut Window, _seen: &Delivered) {}

    /// Called when a timer has found losses. Only for a control that measures the rate ([`Properties`]). Losses that an
    /// ACK shows are reported by [`Self::on_delivered`].
    fn on_found_lost(&mut self, _window: &mut Window, _lost: &FoundLost) {}

    /// Called when data is sent again after the application had nothing to send and everything was acknowledged. Needs
    /// RACK.
    fn on_restart_from_idle(&mut self, _window: &mut Window, _now: Time) {}

    /// Called when the first segment of a flight is sent, `idle` after the last one.
    #[inline(always)]
    fn on_idle(&mut self, _now: Time, _idle: Duration) {}

    /// True while the control keeps less in flight than the path carries, so that the measured rates say nothing about
    /// the path.
    fn holds_back(&self) -> bool {
        false
    }

    /// Called when a loss was found. If duplicate ACKs found it, recovery begins with the window set here; after a
    /// timeout, retransmission starts with it; after a mark, nothing is retransmitted.
    fn on_loss(&mut self, window: &mut Window, loss: &LossReport);

    /// Called after an ACK when marks are known. Only for a scalable control ([`Properties`]).
    fn on_marks(&mut self, _window: &mut Window, _marks: &Marks) {}

    /// Starts with a window of `segments`: after the handshake, a pause or Tahoe's loss.
    fn restart(&mut self, window: &mut Window, segments: u32) {
        window.set_segments(segments);
    }

    /// Called when NewReno's recovery is over, with `flight` bytes outstanding.
    fn on_recovered(&mut self, window: &mut Window, flight: u64) {
        window.limit_to_flight(flight);
    }

    /// Called when the last timeout was spurious: the window may return to `cwnd` and the threshold to `ssthresh` (RFC
    /// 5682 §3).
    fn on_spurious_timeout(&mut self, window: &mut Window, cwnd: u64, ssthresh: u64) {
        window.restore(cwnd, ssthresh);
    }

    /// The rate at which segments leave; `None` if ACKs alone clock them.
    #[inline(always)]
    fn pacing_rate(&self, _window: &Window) -> Option<Rate> {
        None
    }
}
