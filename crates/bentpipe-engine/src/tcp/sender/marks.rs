//! What ECN (RFC 3168) adds to the sender: an echoed mark reduces the window as a loss does, and nothing is sent again.

use super::Sender;
use crate::machine::Context;
use crate::probe::{Event, Probe};
use crate::tcp::loss::{FoundBy, LossReport};
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::span::Span;
use crate::units::Duration;
use crate::wire::ecn::Ecn;

impl Sender {
    /// An ACK with ECN-Echo, after [`Sender::take_ack`]'s rules. It does not open the window.
    #[inline(never)]
    pub(super) fn take_echo<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        window_changed: bool,
        sample: Option<Duration>,
    ) {
        let before = self.congestion.window.exact();
        self.take_ack(cx, segment, window_changed, sample);
        if !self.is_open {
            return;
        }
        self.congestion.hold(before);
        if !self.ecn.counts(segment.ack) {
            return;
        }
        self.ecn.on_reduction(self.seq.snd_max);
        let flight = self.seq.flight();
        self.congestion.on_loss(&LossReport { found_by: FoundBy::Mark, flight, peer_window: self.seq.peer.now });
        self.counters.ecn_reductions += 1;
        cx.emit(|| Event::MarkEchoed { snd_una: segment.ack });
    }

    /// The ECN field and flag of a segment with data. What was sent before, and what may be a probe of a closed window, is not
    /// ECT.
    //= RFC 3168 §6.1.5, §6.1.6
    pub(super) fn marks_of(&mut self, span: &Span) -> (Ecn, Flags) {
        if span.retransmission || self.persist.is_running() {
            return (Ecn::NotEct, Flags::NONE);
        }
        (Ecn::Ect0, self.ecn.flags_of_new_data())
    }
}
