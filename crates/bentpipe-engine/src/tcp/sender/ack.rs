//! Processing of an ACK in the sender.

use super::Sender;
use crate::machine::Context;
use crate::probe::{Event, Probe};
use crate::tcp::congestion::AckSample;
use crate::tcp::departures::Departs;
use crate::tcp::loss::DUP_THRESH;
use crate::tcp::loss::frto::FrtoVerdict;
use crate::tcp::recovery::Phase;
use crate::tcp::segment::Segment;
use crate::units::{Duration, Time};

impl Sender {
    /// Takes an acceptable ACK: `snd_una <= ack <= snd_max`. `sample` is the round trip measured by timestamps.
    #[inline(always)]
    pub(super) fn take_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        window_changed: bool,
        sample: Option<Duration>,
    ) {
        self.counters.acks += 1;
        self.new_event();
        let ack = segment.ack;
        let by_time = self.loss.scoreboard.rack().is_some();
        let (advances, delivered, flight) = (ack > self.seq.snd_una, self.delivered(), self.seq.flight());
        // An ACK that comes with data and acknowledges nothing new is no event for the control: header prediction skips
        // it too.
        let tells = advances || segment.sequence_len() == 0 || !segment.sack.is_empty();
        let before = if tells { self.before_delivery() } else { None };
        let repairing = self.recovery.phase() != Phase::Open;
        let awaits_sign = advances && self.undo.awaits(repairing);
        let (news, lost) = if by_time {
            let (news, lost) = match awaits_sign {
                true => self.look_back_for_sign(cx, segment, sample),
                false => self.look_back(cx.now, segment),
            };
            let is_undone = self.recovery.phase() == Phase::Loss && self.test_timeout(cx);
            (news, !is_undone && lost)
        } else {
            if awaits_sign {
                self.look_for_sign(cx, ack, sample);
            }
            (!segment.sack.is_empty() && self.take_sack(cx.now, segment), false)
        };
        let sample = if self.timer.is_by_segments() { self.measure(cx.now, advances, sample) } else { sample };
        if ack > self.seq.snd_una {
            self.on_new_ack(cx, ack, delivered, sample);
            if news && self.recovery.phase() == Phase::Open && self.loss.counts_advancing_acks() {
                self.loss.scoreboard.note_delivered(self.delivered().saturating_sub(delivered));
                self.on_same_ack(cx, false, news);
            }
        } else if ack == self.seq.snd_una {
            if self.persist.is_running() || self.seq.peer.now == 0 {
                self.on_probe_answered(cx.now);
            }
            // Answers to probes of a closed window are not duplicate ACKs: nothing was lost.
            if news && self.timer.is_by_segments() {
                self.on_reported(cx, sample);
            }
            let plain = segment.sequence_len() == 0 && self.seq.flight() > 0 && self.seq.peer.now > 0;
            if plain || news || self.recovery.phase() == Phase::Recovery {
                self.on_same_ack(cx, plain && !window_changed, news);
            }
        }
        if by_time {
            let lost = lost || repairing && self.detect_after_repair(cx.now);
            self.after_look_back(cx, segment, (lost, advances), (delivered, flight));
        }
        if news && !advances {
            self.grow_out_of_order(cx.now, delivered);
        }
        if let Some(before) = before {
            self.after_delivery(cx.now, before, sample);
        }
        if tells {
            self.congestion.note_round_trip(self.seq.flight(), || self.timer.rtt.srtt());
        }
        cx.emit(|| Event::Window {
            cwnd: self.congestion.window.cwnd() + self.congestion.window.inflation(),
            ssthresh: self.congestion.window.ssthresh(),
            flight: self.seq.flight(),
        });
    }

    /// Takes an ACK that arrives after a later one. It may still report newly arrived data (RFC 9293 §3.10.7.4: it can
    /// be ignored, but need not).
    #[inline(never)]
    pub(super) fn take_overtaken<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
        if self.loss.scoreboard.rack().is_none() {
            return;
        }
        self.new_event();
        let (delivered, flight) = (self.delivered(), self.seq.flight());
        let (news, lost) = self.look_back(cx.now, segment);
        if lost {
            self.report_lost(cx.now);
        }
        if news {
            self.on_same_ack(cx, false, news);
        }
        self.after_look_back(cx, segment, (lost, false), (delivered, flight));
    }

    /// Takes SACK blocks. Returns true if they have new information.
    pub(super) fn take_sack(&mut self, now: Time, segment: &Segment) -> bool {
        let in_recovery = self.recovery.phase() == Phase::Recovery;
        let advances = segment.ack > self.seq.snd_una;
        if self.departures.ignores_sack(in_recovery, advances) {
            return false;
        }
        let news = self.loss.take_sack(now, segment, &self.seq, self.mss as u64);
        if news && let Some(buffer) = &mut self.send_buffer {
            segment.sack.iter(segment.ack).for_each(|(start, end)| buffer.on_sacked(start, end));
        }
        news
    }

    #[inline(always)]
    fn on_new_ack<P: Probe>(&mut self, cx: &mut Context<'_, P>, ack: u64, delivered: u64, sample: Option<Duration>) {
        self.timer.forget_retries();
        if self.recovery.phase() != Phase::Open && self.seq.peer.now == 0 {
            self.persist.on_answer(cx.now);
        }
        self.departures.on_new_ack();
        match self.recovery.phase() {
            Phase::Open => {
                let acked = ack - self.seq.snd_una;
                let delivered = delivered + self.loss.reported_by_duplicates(acked, self.mss.into());
                let rtt = self.advance(cx, ack, sample);
                if self.departures.forgets_sack() && !self.loss.scoreboard.is_empty() {
                    self.loss.scoreboard.clear();
                }
                self.grow(cx.now, acked, delivered, rtt);
            }
            Phase::Recovery => self.on_new_ack_in_recovery(cx, ack, delivered, sample),
            Phase::Loss => {
                if self.congestion.is_fixed() {
                    // Repeated timeouts have reduced the window to one segment.
                    self.congestion.on_recovered(self.seq.flight());
                }
                self.on_new_ack_after_timeout(cx, ack, delivered, sample);
            }
        }
    }

    fn on_new_ack_after_timeout<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        ack: u64,
        delivered: u64,
        sample: Option<Duration>,
    ) {
        let acked = ack - self.seq.snd_una;
        let is_full = self.recovery.covers(ack);
        let allowed = self.seq.peer.now.min(self.congestion.window.clamp());
        let more = self.seq.snd_max < self.seq.end().min(ack + allowed);
        let verdict = self.frto.on_new_ack((self.seq.snd_una, ack), self.recovery.recover(), more);
        let rtt = self.advance(cx, ack, sample);
        if self.departures.forgets_sack() {
            self.loss.scoreboard.clear();
        }
        match verdict {
            FrtoVerdict::Conventional => {}
            FrtoVerdict::SendNew => {
                self.burst = 0;
                return;
            }
            FrtoVerdict::Spurious { ssthresh, flight } => {
                if let Some(window) = self.undo.take() {
                    return self.give_back(cx, window);
                }
                self.congestion.on_spurious_timeout(flight, ssthresh);
                self.timer.end_repair();
                self.counters.spurious_timeouts += 1;
                self.recovery.on_spurious_timeout(self.seq.snd_una);
                self.seq.snd_nxt = self.seq.snd_max;
                self.loss.scoreboard.on_spurious_timeout();
                cx.emit(|| Event::SpuriousTimeout);
                return;
            }
        }
        let goes_on = is_full && self.has_more_losses();
        if !goes_on {
            self.grow(cx.now, acked, delivered, rtt);
        }
        self.recovery.on_ack_after_timeout(&mut self.loss.scoreboard, is_full);
        if goes_on {
            self.repair(cx, delivered, false);
        } else if is_full {
            self.timer.end_repair();
        }
    }

    fn on_new_ack_in_recovery<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        ack: u64,
        delivered: u64,
        sample: Option<Duration>,
    ) {
        let acked = ack - self.seq.snd_una;
        if !self.recovery.ends_at(ack) {
            self.advance_to(ack);
            if self.timer.is_by_segments() {
                self.take_sample(cx, sample);
            }
            let (recovery, parts) = self.parts();
            if recovery.on_partial_ack(parts, acked) {
                self.restart_timer(cx.now);
            }
            return;
        }
        let (recovery, parts) = self.parts();
        recovery.leave(parts);
        //= RFC 5681 §3.2 step 6: "set cwnd to ssthresh", which takes the inflation away
        let rtt = self.advance(cx, ack, sample);
        let goes_on = self.has_more_losses();
        if self.recovery.inflates() && self.departures.grows_on_exit() {
            let ack = AckSample { flight: acked, ..self.ack_sample(cx.now, acked, rtt) };
            self.congestion.grow(&ack);
        } else if self.recovery.limits_to_flight() {
            self.congestion.on_recovered(self.seq.flight());
        } else if self.counts_delivered && !goes_on {
            // In Linux, the ACK that ends a recovery already opens the window (`tcp_cong_control` follows
            // `tcp_fastretrans_alert`).
            self.grow(cx.now, acked, delivered, rtt);
        }
        cx.emit(|| Event::RecoveryLeft);
        if goes_on {
            self.repair(cx, delivered, false);
        } else {
            self.timer.end_repair();
        }
    }

    /// The round trip that an ACK measures, if the timer follows segments. `stamped`: the round trip by timestamps,
    /// used if segments give none.
    #[inline(always)]
    fn measure(&self, now: Time, advances: bool, stamped: Option<Duration>) -> Option<Duration> {
        let sample = self.loss.scoreboard.measured(now);
        // The SYN is not one of RACK's segments; the timer measures it.
        let counts = advances && (self.is_open || !self.timer.is_timing());
        sample.or(stamped.filter(|_| counts))
    }

    /// Takes an ACK whose SACK blocks report data while `snd_una` stays: takes the round trip, and restarts the timer
    /// if the reported data is older than the oldest segment's last transmission (Linux's `tcp_clean_rtx_queue`).
    #[inline(never)]
    fn on_reported<P: Probe>(&mut self, cx: &mut Context<'_, P>, sample: Option<Duration>) {
        self.take_sample(cx, sample);
        if self.loss.scoreboard.rack().is_some_and(|rack| rack.has_seen_older()) {
            self.restart_timer(cx.now);
        }
    }

    /// Takes a round trip that was measured during the repair of losses, or by SACK blocks alone.
    fn take_sample<P: Probe>(&mut self, cx: &mut Context<'_, P>, sample: Option<Duration>) {
        if let Some(sample) = sample {
            self.timer.on_delivery(cx.now, sample);
            cx.emit(|| Event::Rtt { sample, rto: self.timer.rtt.rto() });
        }
    }

    /// Moves `snd_una` when no loss is being repaired any more, and updates round trip, timer and window. Returns the
    /// measured round trip.
    #[inline(always)]
    pub(super) fn advance<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        ack: u64,
        sample: Option<Duration>,
    ) -> Option<Duration> {
        self.advance_to(ack);
        let measured = self.timer.on_ack(cx.now, ack, sample);
        if measured {
            cx.emit(|| Event::Rtt { sample: self.timer.rtt.last_sample(), rto: self.timer.rtt.rto() });
        }
        self.loss.forget_duplicates();
        self.congestion.window.deflate_all();
        self.restart_timer(cx.now);
        measured.then(|| self.timer.rtt.last_sample())
    }

    #[inline(always)]
    fn advance_to(&mut self, ack: u64) {
        self.seq.advance(ack);
        self.loss.scoreboard.advance(ack);
        self.recovery.advance(ack);
        if let Some(buffer) = &mut self.send_buffer {
            buffer.on_ack(&self.seq);
        }
    }

    /// Opens the window by an ACK of `acked` new bytes; `delivered` bytes had been delivered before it.
    #[inline(always)]
    fn grow(&mut self, now: Time, acked: u64, delivered: u64, rtt: Option<Duration>) {
        if let Some(unused) = &mut self.unused {
            unused.postpone(now);
        }
        if !self.is_open || self.recovery.spreads() {
            return;
        }
        let is_used = self.congestion.is_used(self.used(acked), self.seq.snd_max);
        if !is_used && !self.congestion.properties().heeds_unused {
            return;
        }
        if !(is_used && !self.counts_delivered && self.congestion.on_acked(acked)) {
            let rtt = rtt.or_else(|| self.loss.scoreboard.rack()?.rtt());
            let mut sample = self.ack_sample(now, acked, rtt);
            if self.counts_delivered {
                sample.acked = self.delivered().saturating_sub(delivered);
            }
            self.congestion.on_ack(&sample, is_used);
        }
        if is_used {
            self.counters.max_cwnd = self.counters.max_cwnd.max(self.congestion.window.cwnd());
        }
    }

    /// Opens the window by an ACK that reports new data while `snd_una` stays, if data often arrives out of order and
    /// no recovery is in progress (Linux's `tcp_may_raise_cwnd`). `delivered` bytes had been delivered before the ACK.
    #[inline(never)]
    fn grow_out_of_order(&mut self, now: Time, delivered: u64) {
        // `tcp_reordering`
        let often = DUP_THRESH as u64 * self.congestion.window.mss();
        let counts = self.counts_delivered && self.recovery.phase() != Phase::Recovery;
        if counts && self.loss.scoreboard.rack().is_some_and(|rack| rack.has_reordered(often)) {
            self.grow(now, 0, delivered, None);
        }
    }

    /// The bytes of the window that were in use before an ACK of `acked` new bytes: all of them, if a packet waited for
    /// that ACK because of the window.
    #[inline(always)]
    fn used(&self, acked: u64) -> u64 {
        let flight = self.seq.flight() + acked;
        let waited = self.offload.as_ref().is_some_and(|offload| offload.has_waited_for_cwnd());
        if waited { flight.max(self.congestion.window.cwnd()) } else { flight }
    }

    /// Passes an ACK of `acked` new bytes to congestion control. `rtt` is its round-trip sample.
    #[inline(always)]
    fn ack_sample(&self, now: Time, acked: u64, rtt: Option<Duration>) -> AckSample {
        AckSample {
            acked,
            flight: self.used(acked),
            is_held: self.pacer.is_holding(),
            after_timeout: self.recovery.phase() == Phase::Loss,
            now,
            rtt,
            latest_rtt: self.loss.scoreboard.latest_rtt(),
            srtt: self.timer.rtt.srtt(),
            snd_una: self.seq.snd_una,
            snd_max: self.seq.snd_max,
        }
    }
}
