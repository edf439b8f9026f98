//! What RACK and the tail loss probe (RFC 8985) add to the handling of ACKs, timers and segments.

use super::Sender;
use crate::machine::Context;
use crate::probe::{Event, Probe};
use crate::tcp::loss::tlp::ProbeVerdict;
use crate::tcp::loss::undo::{Restored, Sign};
use crate::tcp::loss::{Detector, Duplicates, FoundBy, LossReport};
use crate::tcp::recovery::Phase;
use crate::tcp::segment::{FIRST_BYTE, Segment};
use crate::tcp::span::Span;
use crate::tcp::variant::TimeoutWindow;
use crate::units::{Duration, Time};

impl Sender {
    /// Takes the data that an ACK delivers and detects losses. Returns two values: whether its SACK blocks were new,
    /// and whether a segment was lost.
    #[inline(always)]
    pub(super) fn look_back(&mut self, now: Time, segment: &Segment) -> (bool, bool) {
        let news = self.take_delivered(now, segment);
        (news, self.detect(now))
    }

    /// The same for an ACK that moves on, and may show that the repair in progress is needless; `sample` is the round trip measured by
    /// timestamps.
    #[inline(never)]
    pub(super) fn look_back_for_sign<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        sample: Option<Duration>,
    ) -> (bool, bool) {
        let news = self.take_delivered(cx.now, segment);
        self.look_for_sign(cx, segment.ack, sample);
        (news, !self.defers_repair && self.detect(cx.now))
    }

    /// Gives the window back if the ACK shows that the repair is needless. A recovery that would go on beyond it ends by its timestamp only
    /// once none of the retransmissions is in flight; until then nothing more is found lost or sent again (Linux's `tcp_try_undo_partial`).
    pub(super) fn look_for_sign<P: Probe>(&mut self, cx: &mut Context<'_, P>, ack: u64, sample: Option<Duration>) {
        let sign = self.undo.on_advance(ack, sample.map(|rtt| cx.now.saturating_sub(rtt)));
        let goes_on = self.recovery.phase() == Phase::Recovery && !self.recovery.ends_at(ack);
        if sign == Sign::Late
            && goes_on
            && let Some(rack) = self.loss.scoreboard.rack()
        {
            rack.note_late(self.seq.snd_una, ack);
            self.defers_repair = rack.resent() > 0;
        }
        let counts = match sign {
            Sign::None => false,
            Sign::Duplicates => true,
            Sign::Late => self.recovery.phase() != Phase::Open && !self.defers_repair,
        };
        if counts && let Some(window) = self.undo.take() {
            self.give_back(cx, window);
        }
    }

    /// Takes what an ACK delivers. Returns whether its SACK blocks were new.
    #[inline(always)]
    fn take_delivered(&mut self, now: Time, segment: &Segment) -> bool {
        if self.seq.snd_una < FIRST_BYTE || !segment.sack.is_empty() {
            return self.take_blocks(now, segment);
        }
        if let Some(rack) = self.loss.scoreboard.rack() {
            rack.on_ack(segment.ack, now);
        }
        false
    }

    /// Takes an ACK that has SACK blocks, or the ACK of the SYN.
    #[inline(never)]
    fn take_blocks(&mut self, now: Time, segment: &Segment) -> bool {
        // Of the end that accepts, too, whose handshake is already over when it takes the ACK (Linux, `tcp_synack_rtt_meas`).
        let is_of_syn = self.seq.snd_una < FIRST_BYTE && self.seq.snd_max == FIRST_BYTE;
        let syn = (is_of_syn && self.counters.timeouts == 0).then(|| now.saturating_since(self.last_sent));
        let mut of_ack = None;
        if let Some(rack) = self.loss.scoreboard.rack() {
            if let Some(rtt) = syn {
                rack.on_syn_acked(rtt, now);
            }
            if let Some((start, end)) = Detector::duplicate_report(segment)
                && rack.count_repeated((start, end), self.counters.retransmits, self.mss.into())
            {
                let una = self.seq.snd_una.max(segment.ack);
                rack.on_duplicate_report(una, self.seq.snd_max, self.tail.is_probe(end));
            }
            of_ack = rack.on_ack_before_blocks(segment.ack, now);
        }
        let news = !segment.sack.is_empty() && self.take_sack(now, segment);
        if let Some(rtt) = of_ack
            && let Some(rack) = self.loss.scoreboard.rack()
        {
            rack.keep_rtt(rtt);
        }
        news
    }

    /// Detects losses if the ACK has ended a repair. An undo puts what was marked lost back in flight, and part of it may be lost all
    /// the same (Linux's `tcp_fastretrans_alert`). If this was the last ACK, only the timer would notice.
    #[inline(never)]
    pub(super) fn detect_after_repair(&mut self, now: Time) -> bool {
        self.recovery.phase() == Phase::Open && self.detect(now)
    }

    /// Lets RACK detect losses. Returns true if there are new ones.
    #[inline(always)]
    fn detect(&mut self, now: Time) -> bool {
        let repairing = self.recovery.phase() != Phase::Open;
        let srtt = self.timer.rtt.srtt();
        self.loss.scoreboard.rack().is_some_and(|rack| rack.detect(now, repairing, srtt))
    }

    /// Completes the processing of an ACK. `delivered` and `flight`: bytes delivered and outstanding before it. `lost`: it showed a loss.
    /// `advances`: it acknowledged new data.
    #[inline(always)]
    pub(super) fn after_look_back<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        (lost, advances): (bool, bool),
        (delivered, flight): (u64, u64),
    ) {
        if lost || !segment.sack.is_empty() || self.tail.is_out() {
            self.after_news(cx, segment, lost, (delivered, flight));
        }
        if self.recovery.phase() != Phase::Open {
            self.tail.stop();
            return;
        }
        let Some(rack) = self.loss.scoreboard.rack() else { return };
        debug_assert!(!rack.misses_first(cx.now, self.timer.rtt.srtt()), "a loss that nothing repairs but the timer");
        // SACKed data has left the network: new data may take its place until the loss is
        // certain.
        self.congestion.window.set_inflation(rack.sacked_bytes());
        //= RFC 8985 §7.2: "upon receiving an ACK that cumulatively acknowledges new data unless it is already in fast recovery, RTO
        //= recovery, or segments have been SACKed"
        if rack.deadline() < Time::NEVER {
            self.tail.stop();
        } else if advances {
            self.start_tail(cx.now);
        }
    }

    /// Processes an ACK that has shown a loss or has SACK blocks, or that arrives while a tail loss probe is
    /// outstanding.
    #[inline(never)]
    fn after_news<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        mut lost: bool,
        (delivered, flight): (u64, u64),
    ) {
        let duplicate = Detector::duplicate_report(segment).map(|(_, end)| end);
        let bare = segment.sack.is_empty() && segment.sequence_len() == 0;
        if self.tail.on_ack(segment.ack, duplicate, bare) == ProbeVerdict::Repaired {
            self.ecn.on_reduction(self.seq.snd_max);
            let peer_window = self.seq.peer.now;
            self.congestion.on_loss(&LossReport { found_by: FoundBy::DuplicateAcks, flight, peer_window });
        }
        let after_timeout = self.recovery.phase() == Phase::Loss;
        if let Some(window) = duplicate.and_then(|end| self.undo.on_duplicate(end, after_timeout)) {
            self.give_back(cx, window);
            lost = self.detect_after_repair(cx.now);
        }
        if lost {
            let again = self.loss.scoreboard.rack().is_some_and(|rack| rack.has_lost_again());
            self.repair(cx, delivered, again);
        }
    }

    /// Called when an ACK delivers data that was sent before the timeout and not again since: not everything was lost.
    /// Linux thus decides with SACK (RFC 5682 §3.1 step 3b), without sending new data first. Returns true if the
    /// timeout is undone.
    #[inline(never)]
    pub(super) fn test_timeout<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> bool {
        let original = self.loss.scoreboard.rack().and_then(|rack| rack.take_original());
        if !self.frto.is_testing() || !self.undo.is_enabled() {
            return false;
        }
        let is_original = original.is_some_and(|end| self.recovery.recover().is_some_and(|recover| end <= recover));
        let Some(window) = is_original.then(|| self.undo.take()).flatten() else { return false };
        self.give_back(cx, window);
        true
    }

    /// Ends a recovery or timeout that turns out to be needless and restores the window of before (RFC 4015 §3).
    pub(super) fn give_back<P: Probe>(&mut self, cx: &mut Context<'_, P>, window: Restored) {
        self.loss.scoreboard.forget_losses();
        self.timer.end_repair();
        if let Some(offload) = &mut self.offload {
            offload.forget_waiting();
        }
        let phase = self.recovery.phase();
        match phase {
            Phase::Open => {}
            Phase::Recovery => {
                let (recovery, parts) = self.parts();
                recovery.undo(parts);
                cx.emit(|| Event::RecoveryLeft);
            }
            Phase::Loss => {
                self.frto.end();
                self.recovery.on_spurious_timeout(self.seq.snd_una);
                self.seq.snd_nxt = self.seq.snd_max;
                self.timer.forget_retries();
                cx.emit(|| Event::SpuriousTimeout);
            }
        }
        if let Restored::Window { cwnd, ssthresh } = window {
            self.congestion.on_spurious_timeout(cwnd.max(self.congestion.window.cwnd()), ssthresh);
            self.ecn.on_restored();
        }
        self.counters.spurious_timeouts += u64::from(phase == Phase::Loss);
        self.counters.spurious_recoveries += u64::from(phase != Phase::Loss);
    }

    /// True if RACK has marked segments that have not arrived since. At the end of a recovery, they were sent during
    /// it. Their loss is another sign of congestion, even if they have already been sent again.
    pub(super) fn has_more_losses(&mut self) -> bool {
        //= RFC 5681 §4.3: "Loss in two successive windows of data, or the loss of a retransmission, should be taken as two indications of
        //= congestion and, therefore, cwnd (and ssthresh) MUST be lowered twice in this case."
        let probe = self.tail.resent();
        self.loss.scoreboard.rack().is_some_and(|rack| rack.outstanding(probe).lost > 0)
    }

    /// Starts a recovery for the segments that RACK has marked, unless one is in progress. `delivered`: bytes delivered
    /// before the ACK that showed the losses. `again`: they show further congestion during the repair after a timeout.
    pub(super) fn repair<P: Probe>(&mut self, cx: &mut Context<'_, P>, delivered: u64, again: bool) {
        let may = match self.recovery.phase() {
            Phase::Open => self.recovery.may_enter(self.seq.snd_una),
            // Linux's `tcp_fastretrans_alert` and `tcp_rack_reo_timeout`.
            Phase::Loss => again && self.is_open && self.timeout_window == TimeoutWindow::InFlight,
            Phase::Recovery => false,
        };
        if may {
            self.frto.end();
            self.loss.scoreboard.note_delivered(self.delivered().saturating_sub(delivered));
            let count = self.loss.duplicates();
            self.enter_recovery(cx, Duplicates { count, threshold: count, lost: true });
        }
    }

    /// Runs RACK's reordering timer and the tail loss probe's timer, if they are due.
    pub(super) fn on_time_by_rack<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if self.loss.scoreboard.deadline() <= cx.now {
            self.new_event();
            if self.detect(cx.now) {
                self.report_lost(cx.now);
                // No ACK has arrived, but a segment may leave (Linux's `tcp_rack_reo_timeout`).
                self.repair(cx, self.delivered().saturating_sub(u64::from(self.mss)), true);
            }
        }
        if self.tail.deadline() <= cx.now {
            self.tail.expire();
            self.new_event();
            //= RFC 8985 §7.3: "After attempting to send a loss probe, regardless of whether a loss probe was sent, the sender MUST re-arm the
            //= RTO timer, not the PTO timer, if the FlightSize is not zero"
            self.timer.start(self.earliest_departure(cx.now));
        }
    }

    /// Starts the tail loss probe's timer for the outstanding data.
    #[inline(always)]
    pub(super) fn start_tail(&mut self, now: Time) {
        self.start_tail_until(now, self.timer.deadline());
        if self.timer.is_by_segments() {
            self.tail.expect_bound();
        }
    }

    /// Restarts that timer when a segment is sent for the first time.
    #[inline(always)]
    pub(super) fn restart_tail(&mut self, now: Time) {
        if self.timer.is_by_segments() {
            self.start_tail_until(now, Time::NEVER);
            self.bound_tail(now);
        } else {
            self.start_tail(now);
        }
    }

    #[inline(always)]
    fn start_tail_until(&mut self, now: Time, limit: Time) {
        if self.loss.scoreboard.sacked_bytes() > 0 {
            return self.tail.stop();
        }
        let is_single = self.has_lone_segment();
        self.tail.start(now, &self.timer.rtt, &self.seq, is_single, limit);
    }

    /// True if a single segment is outstanding, whose ACK may be delayed. Linux counts segments, however small; with
    /// its FIN, the last one is longer than a full segment (`tcp_schedule_loss_probe`).
    #[inline(always)]
    fn has_lone_segment(&mut self) -> bool {
        let (flight, full) = (self.seq.flight(), u64::from(self.mss));
        if !self.timer.is_by_segments() {
            return flight <= full;
        }
        flight <= full + 1 && self.loss.scoreboard.rack().is_some_and(|rack| rack.has_one())
    }

    /// Linux's `tcp_rto_delta_us`: the probe leaves at most a timeout after the oldest segment, unless that time has
    /// already passed.
    #[inline(always)]
    pub(super) fn bound_tail(&mut self, now: Time) {
        let limit = self.loss.scoreboard.first_sent().map_or(Time::NEVER, |head| head + self.timer.rtt.rto());
        self.tail.bound(if limit > now { limit } else { Time::NEVER });
    }

    //= RFC 8985 §7.3: "the sender SHOULD transmit a previously unsent data segment [...] retransmit the highest-sequence segment sent so far"
    /// The probe: new data if the peer has space for it, else the last segment again.
    pub(super) fn choose_tail_probe(&mut self) -> Option<Span> {
        let (new, edge) = (self.seq.snd_max, self.seq.right_edge(u64::MAX));
        let span = self.seq.span(new, edge, self.full());
        // Linux sends no new data if the peer's window would cut the segment short (`tcp_snd_wnd_test`).
        let is_cut = span.len < self.full() && span.end() < self.seq.data_end && self.timer.is_by_segments();
        let span = if new < self.seq.end().min(edge) && !is_cut {
            self.seq.snd_nxt = new;
            span
        } else {
            let Some((start, end)) = self.loss.scoreboard.rack().and_then(|rack| rack.last()) else {
                self.tail.stop();
                return None;
            };
            self.seq.span(start, end, self.full())
        };
        self.tail.sent(new.max(span.end()), span.seq < new);
        Some(span)
    }
}
