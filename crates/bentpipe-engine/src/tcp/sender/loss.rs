//! Processing of a loss in the sender: duplicate ACKs, fast retransmit, timeout.

use super::Sender;
use crate::machine::Context;
use crate::probe::{Event, Probe};
use crate::tcp::abort::Abort;
use crate::tcp::departures::Departs;
use crate::tcp::loss::undo::Restored;
use crate::tcp::loss::{Duplicates, FoundBy, LossReport};
use crate::tcp::recovery::Phase;
use crate::tcp::timer::Awaited;
use crate::tcp::variant::TimeoutWindow;
use crate::units::Time;

impl Sender {
    /// Takes an ACK that does not move `snd_una`, or one whose SACK blocks make it a duplicate. `plain`: it carries
    /// neither data nor a changed window. `news`: its SACK blocks are new.
    pub(super) fn on_same_ack<P: Probe>(&mut self, cx: &mut Context<'_, P>, plain: bool, news: bool) {
        let is_duplicate = self.loss.is_duplicate(plain, news);
        if self.recovery.phase() == Phase::Recovery {
            self.counters.duplicate_acks += (is_duplicate && self.recovery.counts_duplicates()) as u64;
            let (recovery, parts) = self.parts();
            if recovery.on_duplicate(parts, is_duplicate) {
                self.restart_timer(cx.now);
            }
            return;
        }
        if !is_duplicate {
            return;
        }
        self.counters.duplicate_acks += 1;
        if self.recovery.phase() == Phase::Loss && self.frto.on_duplicate_ack() {
            //= RFC 5682 §2.1 step 3a: "set the congestion window to no more than 3 * MSS [...] and continue with the
            //= slow-start algorithm retransmitting unacknowledged segments"
            self.seq.snd_nxt = self.seq.snd_una;
            self.congestion.restart(2);
            self.loss.forget_duplicates();
        }
        if self.recovery.is_echo(self.seq.snd_una) {
            return;
        }
        let duplicates = self.loss.on_duplicate(self.seq.snd_una, self.congestion.window.segments());
        self.on_duplicate(cx, duplicates);
        if self.recovery.phase() != Phase::Recovery {
            let Duplicates { count, threshold, .. } = duplicates;
            self.departures.limit_duplicate(self.recovery.kind(), count, threshold, &mut self.burst);
        }
    }

    /// Takes one more duplicate ACK outside recovery.
    fn on_duplicate<P: Probe>(&mut self, cx: &mut Context<'_, P>, duplicates: Duplicates) {
        let Duplicates { count, threshold, lost } = duplicates;
        let snd_una = self.seq.snd_una;
        if lost && self.departures.may_retransmit(snd_una) && self.recovery.may_enter(snd_una) {
            self.enter_recovery(cx, duplicates);
            return;
        }
        let in_time = self.recovery.phase() == Phase::Open || self.departures.limited_transmit_after_loss();
        if count < threshold && in_time && self.recovery.limited.is_enabled() {
            self.recovery.limited.allow();
        } else {
            let window = &mut self.congestion.window;
            self.departures.on_duplicate_without_recovery(self.recovery.kind(), count, threshold, window);
        }
    }

    pub(super) fn enter_recovery<P: Probe>(&mut self, cx: &mut Context<'_, P>, duplicates: Duplicates) {
        self.counters.fast_retransmits += 1;
        let (snd_una, recover) = (self.seq.snd_una, self.seq.snd_max);
        cx.emit(|| Event::RecoveryEntered { snd_una, recover });
        let loss = LossReport {
            found_by: FoundBy::DuplicateAcks,
            flight: self.seq.flight() - self.recovery.limited.sent(),
            peer_window: self.seq.peer.now,
        };
        //= RFC 3168 §6.1.2: "the TCP sender's congestion window should be reduced only once in response to a series of dropped
        //= and/or CE packets from a single window of data"
        // A reduction for a mark stands or, in Linux (`tcp_enter_recovery`), goes on to the same end, and is not undone. A control that
        // sets a rate has no such reduction.
        let is_reduced = self.ecn.is_reducing(snd_una) && !self.congestion.properties().sets_rate;
        let reduced = (is_reduced || self.recovery.spreads()).then(|| self.ecn.marked_until());
        let window = &self.congestion.window;
        let before = match reduced {
            Some(_) => Restored::Nothing,
            None => Restored::Window { cwnd: window.cwnd(), ssthresh: window.ssthresh() },
        };
        if reduced.is_none() {
            self.ecn.on_reduction(recover);
        }
        self.tail.forget();
        let resent = self.loss.scoreboard.rack().map_or(0, |rack| rack.resent());
        self.undo.enter(before, snd_una, resent);
        // What a recovery has left to the next one has been under repair since then (`tcp_retrans_stamp_cleanup`).
        if resent == 0 && self.recovery.phase() == Phase::Open {
            self.timer.end_repair();
        }
        self.timer.begin_repair(cx.now);
        self.timer.forget_timed();
        let (recovery, parts) = self.parts();
        recovery.enter(parts, &loss, duplicates, reduced);
        self.timer.start(self.earliest_departure(cx.now));
    }

    #[inline(always)]
    pub(super) fn restart_timer(&mut self, now: Time) {
        self.timer.restart(now, self.seq.snd_una < self.seq.snd_max);
    }

    //= RFC 6298 §5.1, §5.6: the timer runs from a transmission on
    /// When the next segment may leave. Pacing may delay a retransmission for longer than the timer runs; the expiry
    /// would then count though nothing was sent.
    pub(super) fn earliest_departure(&self, now: Time) -> Time {
        if self.congestion.pacing_rate().is_some() { self.pacer.earliest(now) } else { now }
    }

    /// Handles the expiry of the retransmission timer.
    pub(super) fn on_timeout<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Result<(), Abort> {
        //= RFC 9293 §3.8.6: "SHOULD NOT time out the connection if data beyond the right window edge is not
        //= acknowledged", and "If the window shrinks to zero, the TCP implementation MUST probe it"
        let shut = self.is_open && self.seq.peer.now == 0;
        if shut {
            self.persist.probe_now();
        }
        let awaited = match self.is_open {
            true => Awaited::Data { closed: self.seq.is_orphan() },
            // Until the peer has answered, the only segment sent is the SYN of an active opening.
            false if self.seq.peer.max == 0 => Awaited::FirstSyn,
            false => Awaited::SynAck,
        };
        let is_over = match shut {
            true => self.is_given_up_while_shut(cx.now, awaited),
            false => self.timer.is_exhausted(cx.now, awaited),
        };
        if is_over {
            return Err(Abort::RetriesExhausted);
        }
        self.new_event();
        self.counters.timeouts += 1;
        let (snd_una, flight, retries) = (self.seq.snd_una, self.seq.flight(), self.timer.retries());
        cx.emit(|| Event::Timeout { snd_una, backoffs: retries });
        let (cwnd, ssthresh) = (self.congestion.window.cwnd(), self.congestion.window.ssthresh());
        let phase = self.recovery.phase();
        // Linux also tests repeated timeouts of a segment.
        let again = retries > 0 && self.undo.is_enabled();
        self.frto.on_timeout(phase == Phase::Open && retries == 0 || again, cwnd, ssthresh, flight);
        let afresh = self.departures.halves_at_every_timeout();
        // Linux: the recovery, or a mark, has already reduced the threshold for the data in question.
        let is_reduced = phase == Phase::Recovery || (phase == Phase::Open && self.ecn.is_reducing(snd_una));
        let is_reduced = is_reduced && self.timeout_window == TimeoutWindow::InFlight;
        let repeated = (retries > 0 || is_reduced) && !afresh;
        if self.is_open || afresh {
            let found_by = FoundBy::Timeout { repeated };
            self.congestion.on_loss(&LossReport { found_by, flight, peer_window: self.seq.peer.now });
        } else {
            // A SYN says nothing about the window for data.
            self.congestion.restart(1);
        }
        self.ecn.on_reduction(self.seq.snd_max);
        self.timer.count_expiry(cx.now);
        self.departures.on_timeout();
        self.tail.forget();
        if let Some(rack) = self.loss.scoreboard.rack().filter(|_| phase == Phase::Open) {
            rack.doubt_reordering();
        }
        self.loss.scoreboard.on_timeout(cx.now, self.timer.rtt.srtt());
        self.report_lost(cx.now);
        if self.is_open && !repeated {
            let resent = self.loss.scoreboard.rack().map_or(0, |rack| rack.resent());
            self.undo.enter(Restored::Window { cwnd, ssthresh }, snd_una, resent);
        }
        self.recovery.on_timeout(&mut self.seq, &mut self.loss.scoreboard, self.is_open);
        if !self.departures.keeps_duplicates(self.recovery.kind()) {
            self.loss.forget_duplicates();
        }
        if self.timeout_window == TimeoutWindow::InFlight && self.is_open && !self.congestion.is_fixed() {
            // A sender without a scoreboard has gone back to `snd_una`, so nothing counts as in flight.
            let pipe = self.loss.scoreboard.pipe(self.seq.snd_una, self.seq.snd_nxt);
            let window = &mut self.congestion.window;
            window.set((pipe + window.mss()) as f64);
        }
        if retries > 0 && self.is_open && self.congestion.is_fixed() && self.loss.scoreboard.rack().is_some() {
            // The path may be down. One segment tells when it is back, and does not take the path's rate from others.
            let window = &mut self.congestion.window;
            window.set(window.mss() as f64);
        }
        self.timer.forget_timed();
        self.timer.back_off(self.earliest_departure(cx.now), awaited == Awaited::FirstSyn);
        Ok(())
    }
}
