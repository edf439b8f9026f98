//! What ECN adds to the sender. With RFC 3168, an echoed mark reduces the window like a loss, in Linux also as slowly. With RFC 9768,
//! congestion control learns how many packets were marked. Nothing is retransmitted.

use super::Sender;
use crate::machine::Context;
use crate::probe::{Event, Probe};
use crate::tcp::congestion::Marks;
use crate::tcp::loss::{FoundBy, LossReport};
use crate::tcp::recovery::Phase;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::span::Span;
use crate::tcp::variant::TimeoutWindow;
use crate::units::Duration;
use crate::wire::ecn::Ecn;

impl Sender {
    /// Takes an ACK with information about marks, after the rules of [`Sender::take_ack`].
    #[inline(never)]
    pub(super) fn take_echo<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        window_changed: bool,
        sample: Option<Duration>,
    ) {
        self.end_reduction(segment.ack);
        let (before, delivered) = (self.congestion.window.exact(), self.delivered());
        let flight = self.seq.flight();
        self.take_ack(cx, segment, window_changed, sample);
        let bytes = self.delivered().saturating_sub(delivered);
        self.loss.scoreboard.note_delivered(bytes);
        if self.recovery.spreads() {
            let (recovery, parts) = self.parts();
            recovery.spread_on(parts);
        }
        let mss = u64::from(self.mss);
        match self.ecn.count(segment, bytes, mss) {
            Some(_) if !self.is_open => {}
            Some((packets, marked)) => {
                self.counters.marks_told += packets;
                self.take_count(cx, segment.ack, before, flight, bytes, marked)
            }
            None if self.is_open && segment.flags.has(Flags::ECE) => self.take_mark(cx, segment.ack, before, flight),
            None => {}
        }
    }

    /// Completes a reduction that was spread over a round trip, if `ack` shows that the peer knows of it: it acknowledges
    /// data that was sent after the mark.
    fn end_reduction(&mut self, ack: u64) {
        if self.recovery.spreads() && self.ecn.is_past_mark(ack) {
            let (recovery, parts) = self.parts();
            recovery.end_spreading(parts);
        }
        self.ecn.hear_all(self.recovery.spreads());
    }

    /// Bytes delivered so far, in order or not. Bytes delivered twice count twice if the settings say so.
    #[inline(always)]
    pub(super) fn delivered(&self) -> u64 {
        let scoreboard = &self.loss.scoreboard;
        self.seq.snd_una + scoreboard.sacked_bytes() + scoreboard.repeated_bytes()
    }

    /// Takes a mark echoed by the ACK `ack` (RFC 3168). Before that ACK, the window was `before` and `flight` bytes
    /// were outstanding. The ACK does not open the window, except by a reduction that is spread over a round trip.
    fn take_mark<P: Probe>(&mut self, cx: &mut Context<'_, P>, ack: u64, before: f64, flight: u64) {
        self.undo.on_mark();
        let spreads = self.timeout_window == TimeoutWindow::InFlight;
        if !spreads || self.recovery.phase() != Phase::Recovery && !self.recovery.spreads() {
            self.congestion.hold(before);
        }
        if !self.ecn.counts(ack) {
            return;
        }
        self.ecn.on_reduction_for_mark(self.seq.snd_max);
        let loss = LossReport { found_by: FoundBy::Mark, flight, peer_window: self.seq.peer.now };
        let (recovery, parts) = self.parts();
        // Linux (`tcp_enter_cwr`): the window goes down as data arrives, as after a loss.
        if spreads && recovery.phase() == Phase::Open && recovery.spread(parts, &loss) {
            self.ecn.hear_all(true);
        } else {
            self.congestion.on_loss(&loss);
        }
        self.counters.ecn_reductions += 1;
        cx.emit(|| Event::MarkEchoed { snd_una: ack });
    }

    /// Takes a count of marks (RFC 9768): `marked` of the `bytes` that an ACK delivers.
    fn take_count<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        ack: u64,
        before: f64,
        flight: u64,
        bytes: u64,
        marked: u64,
    ) {
        if !self.congestion.properties().is_scalable {
            //= RFC 9768 §3.1.5: a control that is not scalable reacts as with RFC 3168
            if marked > 0 {
                self.take_mark(cx, ack, before, flight);
            }
            return;
        }
        if marked > 0 {
            self.undo.on_mark();
        }
        let counts = marked > 0 && self.ecn.counts(ack);
        let (snd_una, snd_max) = (self.seq.snd_una, self.seq.snd_max);
        let srtt = self.timer.rtt.srtt();
        self.congestion.on_marks(&Marks { now: cx.now, before, bytes, marked, counts, snd_una, snd_max, srtt });
        if counts {
            self.ecn.on_reduction(snd_max);
            self.counters.ecn_reductions += 1;
            cx.emit(|| Event::MarkEchoed { snd_una: ack });
        }
    }

    /// Bytes that the peer's options have reported: arrived as ECT(0), as CE, as ECT(1).
    pub(in crate::tcp) fn bytes_told(&self) -> [u64; 3] {
        self.ecn.bytes_told()
    }

    /// The ECN field and flag of a segment with data. Data that was sent before, and data that may be a probe of a
    /// closed window, is not ECT.
    //= RFC 3168 §6.1.5, §6.1.6
    pub(super) fn marks_of(&mut self, span: &Span) -> (Ecn, Flags) {
        if span.retransmission || self.persist.is_running() {
            return (self.ecn.ect_of_control(), Flags::NONE);
        }
        (self.ecn.ect, self.ecn.flags_of_new_data())
    }
}
