//! The sending half: what an ACK means, and what to send next.
//!
//! `on_ack` is a one-way pipeline: scoreboard, new or duplicate ACK, round trip, recovery, window. `next` is pulled by
//! the connection until it has nothing more. All sequence numbers, SYN and FIN included, are one space from 0 on.

use super::config::{Handshake, TcbSharing, TcpConfig, WindowUnit};
use super::connection::Abort;
use super::frto::{Frto, FrtoVerdict};
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::segment::{FIRST_BYTE, Segment};
use super::variant::{Exit, PartialAckTimer, PipeForm, Recovery, Variant};
use super::window::CongestionWindow;
use crate::machine::Context;
use crate::probe::{Event, Probe};
use crate::units::{Duration, Time};

/// What sequence numbers go out in one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) seq: u64,
    /// Bytes of payload.
    pub(super) len: u16,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) push: bool,
    pub(super) retransmission: bool,
}

/// Where the sender stands with its losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No loss known.
    Open,
    /// Fast recovery.
    Recovery,
    /// After a timeout, or Tahoe's restart, until `recover` is acknowledged.
    Loss,
}

/// What connections to one host can tell the next one (RFC 9040).
#[derive(Clone, Debug, Default)]
pub struct TcbCache {
    ssthresh: Option<u64>,
    rtt: Option<RttEstimator>,
}

/// Counters of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SenderCounters {
    pub(super) segments: u64,
    pub(super) retransmits: u64,
    pub(super) timeouts: u64,
    pub(super) fast_retransmits: u64,
    pub(super) spurious_timeouts: u64,
    pub(super) acks: u64,
    pub(super) duplicate_acks: u64,
    pub(super) max_flight: u64,
    pub(super) max_cwnd: u64,
    pub(super) max_burst: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Sender {
    variant: Variant,
    ns2: bool,
    ns2_inflate_always: bool,
    /// ns-2 makes no fast retransmit of the very first segment.
    ns2_needs_first_ack: bool,
    /// ns-2's SACK sender hears no duplicates between a timeout and the next new ACK.
    ns2_deaf: bool,
    unit: WindowUnit,
    mss: u16,
    nagle: bool,
    max_retries: u32,

    snd_una: u64,
    /// Next to send; goes back to `snd_una` at a timeout.
    snd_nxt: u64,
    /// One past the highest ever sent.
    snd_max: u64,
    snd_wnd: u64,
    max_wnd: u64,
    /// `seq` and `ack` of the segment that last updated the window (RFC 9293 §3.10.7.4).
    snd_wl1: u64,
    snd_wl2: u64,
    /// One past the last byte that the user has written.
    data_end: u64,
    fin: bool,
    /// Data may go out: the handshake is done.
    open: bool,

    window: CongestionWindow,
    scoreboard: Scoreboard,
    rtt: RttEstimator,
    frto: Frto,
    phase: Phase,
    dupacks: u32,
    /// Highest sequence number sent when the last loss was found; `None` before the first.
    recover: Option<u64>,
    /// ns-2's pipe in segments, and whether the first partial ACK has been.
    ns2_pipe: i64,
    first_partial: bool,
    /// Segments sent by limited transmit since `snd_una` moved.
    limited_sent: u32,
    /// RFC 6675's rescue retransmission has been made up to here.
    rescue: Option<u64>,

    /// To be retransmitted next, whatever the window says.
    retransmit_now: Option<u64>,
    limited_allowed: bool,
    /// Segments that may still go out in answer to the present event.
    burst: u32,
    burst_sent: u32,

    /// The segment being timed: its end, and when it was sent (Karn: never one that was sent twice).
    timed: Option<(u64, Time)>,
    rto_at: Option<Time>,
    retries: u32,
    persist_at: Option<Time>,
    persist_backoff: u32,
    probe_now: bool,
    pub(super) counters: SenderCounters,
}

impl Sender {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let handshake_free = config.shortcuts.handshake == Handshake::None;
        let start = if handshake_free { FIRST_BYTE } else { 0 };
        let mut window = CongestionWindow::new(config);
        if config.shortcuts.handshake == Handshake::OneWay && config.shortcuts.ns2_recovery {
            window.set_segments(1);
        }
        Sender {
            variant: config.variant,
            ns2: config.shortcuts.ns2_recovery,
            ns2_inflate_always: config.shortcuts.ns2_inflate_always,
            ns2_needs_first_ack: config.shortcuts.ns2_recovery && handshake_free,
            ns2_deaf: false,
            unit: config.shortcuts.window_unit,
            mss: config.mss,
            nagle: config.nagle,
            max_retries: config.rto.max_retries,
            snd_una: start,
            snd_nxt: start,
            snd_max: start,
            snd_wnd: if handshake_free { u64::MAX >> 1 } else { 0 },
            max_wnd: 0,
            snd_wl1: 0,
            snd_wl2: 0,
            data_end: FIRST_BYTE,
            fin: false,
            open: handshake_free,
            window,
            scoreboard: Scoreboard::default(),
            rtt: RttEstimator::new(config.rto),
            frto: Frto::new(config.variant.frto),
            phase: Phase::Open,
            dupacks: 0,
            recover: None,
            ns2_pipe: 0,
            first_partial: false,
            limited_sent: 0,
            rescue: None,
            retransmit_now: None,
            limited_allowed: false,
            burst: u32::MAX,
            burst_sent: 0,
            timed: None,
            rto_at: None,
            retries: 0,
            persist_at: None,
            persist_backoff: 0,
            probe_now: false,
            counters: SenderCounters::default(),
        }
    }

    // ---- facts -----------------------------------------------------------------------------------------------------

    #[inline]
    pub(super) fn snd_una(&self) -> u64 {
        self.snd_una
    }

    #[inline]
    pub(super) fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    #[inline]
    pub(super) fn snd_max(&self) -> u64 {
        self.snd_max
    }

    pub(super) fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    pub(super) fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    pub(super) fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// Bytes written and acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.snd_una.clamp(FIRST_BYTE, self.data_end) - FIRST_BYTE
    }

    pub(super) fn written(&self) -> u64 {
        self.data_end - FIRST_BYTE
    }

    pub(super) fn fin_acknowledged(&self) -> bool {
        self.fin && self.snd_una > self.data_end
    }

    pub(super) fn mss(&self) -> u16 {
        self.mss
    }

    fn flight(&self) -> u64 {
        self.snd_max - self.snd_una
    }

    /// One past everything there is to send, a FIN included.
    fn end(&self) -> u64 {
        self.data_end + self.fin as u64
    }

    /// What the windows of both sides allow, as a right edge.
    #[inline]
    fn right_edge(&self, allowed: u64) -> u64 {
        self.snd_una + allowed.min(self.snd_wnd)
    }

    // ---- the user and the handshake --------------------------------------------------------------------------------

    pub(super) fn write(&mut self, bytes: u64) {
        self.data_end += bytes;
        self.new_event();
    }

    pub(super) fn close(&mut self) {
        self.fin = true;
        self.new_event();
    }

    /// The handshake is done: data may go out. `syn_lost` starts with one segment (RFC 5681 §3.1).
    pub(super) fn established(&mut self, mss: u16, initial_window: u32) {
        if mss != self.mss {
            self.mss = mss;
            self.window.set_mss(mss);
        }
        let syn_lost = self.counters.timeouts > 0;
        self.window.set_segments(if syn_lost { 1 } else { initial_window });
        self.open = true;
        self.phase = Phase::Open;
        self.recover = None;
        self.new_event();
    }

    /// The peer's SYN has told its MSS; data cannot go out yet.
    pub(super) fn set_peer_mss(&mut self, mss: u16) {
        self.mss = mss;
        self.window.set_mss(mss);
    }

    /// The SYN goes out once more: it crossed the peer's.
    pub(super) fn resend_syn(&mut self) {
        self.snd_nxt = 0;
    }

    pub(super) fn inherit(&mut self, cache: &TcbCache, sharing: TcbSharing) {
        if sharing == TcbSharing::Off {
            return;
        }
        if let Some(ssthresh) = cache.ssthresh {
            self.window.set_ssthresh(ssthresh);
        }
        if let (TcbSharing::SsthreshAndRtt, Some(rtt)) = (sharing, &cache.rtt) {
            self.rtt.inherit(rtt);
        }
    }

    /// Leaves what the next connection to the same host may use (RFC 9040 §4). A threshold is known after a loss only.
    pub(super) fn bequeath(&self, cache: &mut TcbCache) {
        if self.window.ssthresh() != u64::MAX {
            cache.ssthresh = Some(self.window.ssthresh());
        }
        cache.rtt = Some(self.rtt.clone());
    }

    /// A new event: its burst begins.
    #[inline]
    fn new_event(&mut self) {
        self.burst = self.variant.max_burst.unwrap_or(u32::MAX);
        self.burst_sent = 0;
    }

    // ---- ACKs ------------------------------------------------------------------------------------------------------

    /// Window update (RFC 9293 §3.10.7.4). Whether the window offered changed.
    #[inline]
    pub(super) fn update_window(&mut self, segment: &Segment) -> bool {
        let fresh = self.snd_wl1 < segment.seq || (self.snd_wl1 == segment.seq && self.snd_wl2 <= segment.ack);
        if !fresh {
            return false;
        }
        (self.snd_wl1, self.snd_wl2) = (segment.seq, segment.ack);
        let window = segment.window as u64;
        let changed = window != self.snd_wnd;
        self.snd_wnd = window;
        self.max_wnd = self.max_wnd.max(window);
        if window > 0 && self.persist_at.take().is_some() {
            self.persist_backoff = 0;
            // The probe's byte is sent again as part of a full segment.
            self.snd_nxt = self.snd_una;
        }
        changed
    }

    /// Takes an acceptable ACK: `snd_una <= ack <= snd_max`. `sample` is the round trip that timestamps give.
    #[inline]
    pub(super) fn on_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        window_changed: bool,
        sample: Option<Duration>,
    ) {
        self.counters.acks += 1;
        self.new_event();
        let ack = segment.ack;
        let news = !segment.sack.is_empty() && self.take_sack(segment);
        if ack > self.snd_una {
            self.on_new_ack(cx, ack, sample);
        } else if ack == self.snd_una {
            let plain = segment.sequence_len() == 0 && self.flight() > 0;
            self.on_same_ack(cx, plain, window_changed, news);
        }
        cx.emit(|| Event::Window {
            cwnd: self.window.cwnd() + self.window.inflation(),
            ssthresh: self.window.ssthresh(),
            flight: self.flight(),
        });
    }

    /// Feeds the scoreboard. Whether it learnt anything.
    fn take_sack(&mut self, segment: &Segment) -> bool {
        // ns-2 clears its scoreboard with each new ACK outside recovery.
        if self.ns2 && self.phase != Phase::Recovery && (segment.ack > self.snd_una || self.ns2_deaf) {
            return false;
        }
        let mut news = false;
        let floor = self.snd_una.max(segment.ack);
        for (start, end) in segment.sack.iter(segment.ack) {
            // Below the ACK it is a D-SACK (RFC 2883); beyond what was sent it is nonsense.
            if start >= floor && start < end && end <= self.snd_max {
                news |= self.scoreboard.sack(start, end);
            }
        }
        if news && let Recovery::Pipe(form) = self.variant.recovery {
            self.find_losses(form);
        }
        news
    }

    fn find_losses(&mut self, form: PipeForm) {
        let thresh = self.variant.dup_thresh.count;
        let bytes = match form {
            PipeForm::Rfc6675 => (thresh as u64).saturating_sub(1) * self.mss as u64,
            //= RFC 3517 §4: "(DupThresh * SMSS) bytes with sequence numbers greater than 'SeqNum' have been SACKed"
            PipeForm::Rfc3517 => thresh as u64 * self.mss as u64 - 1,
            PipeForm::Ns2 => return,
        };
        self.scoreboard.find_losses(thresh, bytes);
    }

    fn on_new_ack<P: Probe>(&mut self, cx: &mut Context<'_, P>, ack: u64, sample: Option<Duration>) {
        self.retries = 0;
        self.ns2_deaf = false;
        if self.phase == Phase::Open {
            let was = self.snd_una;
            self.advance(cx, ack, sample);
            if self.ns2 && !self.scoreboard.is_empty() {
                self.scoreboard.clear();
            }
            self.grow(ack - was);
            return;
        }
        self.on_new_ack_after_loss(cx, ack, sample);
    }

    fn on_new_ack_after_loss<P: Probe>(&mut self, cx: &mut Context<'_, P>, ack: u64, sample: Option<Duration>) {
        let acked = ack - self.snd_una;
        let full = self.recover.is_none_or(|recover| ack >= recover);
        if self.phase == Phase::Loss {
            let verdict = self.frto.on_new_ack(ack, self.recover, self.snd_max < self.end());
            self.advance(cx, ack, sample);
            if self.ns2 {
                self.scoreboard.clear();
            }
            match verdict {
                FrtoVerdict::Conventional => {}
                // Two new segments, to see whether their ACKs come before those of retransmissions.
                FrtoVerdict::SendNew => {
                    self.snd_nxt = self.snd_max;
                    self.burst = self.burst.min(2);
                    return;
                }
                FrtoVerdict::Spurious { ssthresh, flight } => {
                    self.window.undo(flight, ssthresh);
                    self.counters.spurious_timeouts += 1;
                    self.phase = Phase::Open;
                    self.recover = Some(self.snd_una);
                    self.snd_nxt = self.snd_max;
                    self.scoreboard.clear();
                    cx.emit(|| Event::SpuriousTimeout);
                    return;
                }
            }
            if full {
                self.phase = Phase::Open;
            }
            self.grow(acked);
            return;
        }
        match self.variant.recovery {
            Recovery::Restart => {
                self.advance(cx, ack, sample);
                self.grow(acked);
            }
            Recovery::Inflate { exit, deflate, timer } => {
                if full || exit == Exit::FirstNewAck {
                    self.leave_inflated(cx, ack, sample, exit);
                } else {
                    self.on_partial_ack(cx, ack, deflate, timer);
                }
            }
            Recovery::Pipe(form) if full => {
                self.ns2_pipe -= 1;
                self.phase = Phase::Open;
                self.advance(cx, ack, sample);
                if form == PipeForm::Ns2 {
                    self.scoreboard.clear();
                    self.recover = None;
                }
                cx.emit(|| Event::RecoveryLeft);
            }
            Recovery::Pipe(form) => {
                // The retransmission and the segment after it have left the network.
                self.ns2_pipe -= 2;
                if form == PipeForm::Ns2 {
                    // ns-2 takes no round trip here, but ends the backoff.
                    self.rtt.reset_backoff();
                }
                self.advance_to(ack);
                self.restart_timer(cx.now);
            }
        }
    }

    /// The end of Reno's or NewReno's recovery.
    fn leave_inflated<P: Probe>(&mut self, cx: &mut Context<'_, P>, ack: u64, sample: Option<Duration>, exit: Exit) {
        let acked = ack - self.snd_una;
        self.phase = Phase::Open;
        //= RFC 5681 §3.2 step 6: "set cwnd to ssthresh", which takes the inflation away
        self.advance(cx, ack, sample);
        if self.ns2 {
            self.window.open(acked);
        } else if exit == Exit::Recover {
            self.window.leave_recovery(self.flight());
        }
        cx.emit(|| Event::RecoveryLeft);
    }

    //= RFC 6582 §3.2 step 3: "then this is a partial ACK. In this case, retransmit the first unacknowledged segment."
    fn on_partial_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        ack: u64,
        deflate: bool,
        timer: PartialAckTimer,
    ) {
        let acked = ack - self.snd_una;
        if deflate {
            self.window.deflate_partially(acked);
        } else {
            self.window.deflate_all();
        }
        if self.timed.is_some_and(|(end, _)| ack >= end) {
            self.timed = None;
            self.rtt.reset_backoff();
        }
        self.advance_to(ack);
        if timer == PartialAckTimer::SlowButSteady || !self.first_partial {
            self.restart_timer(cx.now);
        }
        self.first_partial = true;
        self.retransmit_now = Some(self.snd_una);
        if self.ns2 {
            self.burst = self.burst.min(2);
        }
    }

    /// `snd_una` moves in order: round trip, timer, counters.
    #[inline]
    fn advance<P: Probe>(&mut self, cx: &mut Context<'_, P>, ack: u64, sample: Option<Duration>) {
        self.advance_to(ack);
        let timed = match sample {
            Some(elapsed) => {
                self.timed = None;
                Some(Time::from_nanos(cx.now.as_nanos().saturating_sub(elapsed.as_nanos())))
            }
            None => match self.timed {
                Some((end, sent)) if ack >= end => {
                    self.timed = None;
                    Some(sent)
                }
                _ => None,
            },
        };
        if let Some(sent) = timed {
            self.rtt.reset_backoff();
            self.rtt.sample(sent, cx.now);
            cx.emit(|| Event::Rtt { sample: self.rtt.last_sample(), rto: self.rtt.rto() });
        }
        self.dupacks = 0;
        self.first_partial = false;
        self.window.deflate_all();
        self.restart_timer(cx.now);
    }

    #[inline]
    fn advance_to(&mut self, ack: u64) {
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        self.limited_sent = 0;
        self.limited_allowed = false;
        self.retransmit_now = None;
        self.scoreboard.advance(ack);
    }

    /// Growth of the window by an ACK of new data.
    #[inline]
    fn grow(&mut self, acked: u64) {
        // A window that is not used says nothing about the path (RFC 7661 §4.3): no growth then.
        let before = self.flight() + acked;
        let used = if self.window.in_slow_start() {
            2 * before > self.window.cwnd()
        } else {
            before + 2 * self.mss as u64 > self.window.cwnd()
        };
        if self.open && (self.ns2 || used) {
            self.window.open(acked);
            self.counters.max_cwnd = self.counters.max_cwnd.max(self.window.cwnd());
        }
    }

    // ---- duplicate ACKs --------------------------------------------------------------------------------------------

    fn on_same_ack<P: Probe>(&mut self, cx: &mut Context<'_, P>, plain: bool, window_changed: bool, news: bool) {
        let pipe_form = match self.variant.recovery {
            Recovery::Pipe(form) => Some(form),
            _ => None,
        };
        // With SACK a duplicate ACK is one that brings news (RFC 6675 §2); without, RFC 5681 §2.
        let duplicate = if pipe_form.is_some() { news } else { plain && !window_changed };
        if self.phase == Phase::Recovery {
            match pipe_form {
                Some(_) => self.ns2_pipe -= 1,
                None if duplicate => {
                    self.counters.duplicate_acks += 1;
                    self.window.inflate(1);
                    if self.ns2 && matches!(self.variant.recovery, Recovery::Inflate { exit: Exit::Recover, .. }) {
                        self.burst = self.burst.min(2);
                    }
                }
                None => {}
            }
            return;
        }
        if !duplicate {
            return;
        }
        self.counters.duplicate_acks += 1;
        if self.phase == Phase::Loss && self.frto.on_duplicate_ack() {
            // The timeout was no error: go back, with the window that slow start has reached.
            self.snd_nxt = self.snd_una;
            self.window.set_segments(if self.frto.was_second() { 2 } else { 1 });
            self.dupacks = 0;
        }
        self.dupacks += 1;
        let thresh = self.dup_thresh();
        let lost = match pipe_form {
            //= RFC 6675 §5: "(2) If DupAcks < DupThresh but IsLost (HighACK + 1) returns true"
            Some(PipeForm::Rfc6675) => self.dupacks >= thresh || self.scoreboard.is_lost(self.snd_una),
            _ => self.dupacks == thresh,
        };
        if lost && self.may_recover() {
            self.enter_recovery(cx);
        } else if self.dupacks < thresh && self.variant.limited_transmit && (self.phase == Phase::Open || self.ns2) {
            self.limited_allowed = true;
        } else if self.ns2_inflate_always && pipe_form.is_none() && self.variant.recovery != Recovery::Restart {
            if self.dupacks == thresh {
                self.window.set_inflation(thresh);
            } else if self.dupacks > thresh {
                self.window.inflate(1);
            }
        }
        if self.ns2 && self.phase != Phase::Recovery {
            self.gate_ns2_duplicates(pipe_form.is_some(), thresh);
        }
    }

    /// ns-2 sends on some duplicate ACKs only, whatever room the window has.
    fn gate_ns2_duplicates(&mut self, sack: bool, thresh: u32) {
        let sends = match self.variant.recovery {
            Recovery::Restart => true,
            _ if sack => false,
            _ => self.dupacks >= thresh,
        };
        let newreno = matches!(self.variant.recovery, Recovery::Inflate { exit: Exit::Recover, .. });
        self.burst = match (sends, newreno) {
            (false, _) => 0,
            (true, true) => self.burst.min(2),
            (true, false) => self.burst,
        };
    }

    fn dup_thresh(&self) -> u32 {
        let thresh = self.variant.dup_thresh;
        match thresh.window_fraction {
            Some(fraction) if matches!(self.variant.recovery, Recovery::Pipe(_)) => {
                thresh.count.max(self.window.whole_segments() / fraction)
            }
            _ => thresh.count,
        }
    }

    //= RFC 6582 §3.2 step 2: "If the Cumulative Acknowledgment field covers more than 'recover'"
    /// One fast retransmit per window.
    fn may_recover(&self) -> bool {
        if self.ns2_needs_first_ack && self.snd_una == FIRST_BYTE {
            return false;
        }
        match (self.recover, self.variant.recovery) {
            (None, _) => true,
            //= RFC 6675 §5: not "until HighACK >= RecoveryPoint"
            (Some(recover), Recovery::Pipe(PipeForm::Rfc6675 | PipeForm::Rfc3517)) => self.snd_una >= recover,
            (Some(recover), _) => self.snd_una > recover,
        }
    }

    fn enter_recovery<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.counters.fast_retransmits += 1;
        let limited = self.limited_sent as u64 * self.mss as u64;
        let flight = self.flight() - limited;
        let thresh = self.dup_thresh();
        self.recover = Some(self.snd_max);
        self.rescue = None;
        self.timed = None;
        self.first_partial = false;
        self.limited_allowed = false;
        cx.emit(|| Event::RecoveryEntered { snd_una: self.snd_una, recover: self.snd_max });
        match self.variant.recovery {
            Recovery::Restart => {
                self.window.on_restart(flight, true);
                self.phase = Phase::Loss;
                self.snd_nxt = self.snd_una;
            }
            Recovery::Inflate { exit, .. } => {
                self.window.on_fast_retransmit(flight);
                self.window.set_inflation(thresh);
                self.phase = Phase::Recovery;
                self.retransmit_now = Some(self.snd_una);
                if self.ns2 && exit == Exit::Recover {
                    self.burst = self.burst.min(2);
                }
            }
            Recovery::Pipe(form) => {
                self.scoreboard.begin_recovery(self.snd_una);
                let segments = (self.flight() / self.mss as u64) as i64;
                self.ns2_pipe = segments - thresh as i64;
                self.window.on_fast_retransmit(flight);
                self.phase = Phase::Recovery;
                self.retransmit_now = Some(self.snd_una);
                if form == PipeForm::Ns2 {
                    self.burst = 0;
                }
            }
        }
        self.rto_at = Some(self.rtt.deadline(cx.now));
    }

    // ---- timers ----------------------------------------------------------------------------------------------------

    //= RFC 6298 §5.2, §5.3: off when all is acknowledged, restarted by an ACK of new data
    #[inline]
    fn restart_timer(&mut self, now: Time) {
        self.rto_at = (self.snd_una < self.snd_max).then(|| self.rtt.deadline(now));
    }

    /// The next instant at which a timer of the sender runs out.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        Time::earliest(self.rto_at, self.persist_at)
    }

    /// Lets timers that are due act.
    pub(super) fn on_time<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Result<(), Abort> {
        if self.persist_at.is_some_and(|at| at <= cx.now) {
            self.persist_backoff += 1;
            self.probe_now = true;
            self.persist_at = Some(cx.now + self.persist_interval());
        }
        if self.rto_at.is_some_and(|at| at <= cx.now) {
            self.on_timeout(cx)?;
        }
        Ok(())
    }

    fn persist_interval(&self) -> Duration {
        let factor = 1u64 << self.persist_backoff.min(6);
        self.rtt.rto().saturating_mul(factor).min(Duration::from_secs(60))
    }

    fn on_timeout<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Result<(), Abort> {
        // A peer that keeps its window shut but answers is alive (RFC 9293 §3.8.6.1).
        if self.retries >= self.max_retries {
            return Err(Abort::RetriesExhausted);
        }
        self.new_event();
        self.counters.timeouts += 1;
        let flight = self.flight();
        cx.emit(|| Event::Timeout { snd_una: self.snd_una, backoffs: self.retries });
        self.window.deflate_all();
        self.frto.on_timeout(self.phase == Phase::Recovery, self.window.cwnd(), self.window.ssthresh(), flight, self.retries);
        //= RFC 5681 §3.1: for a segment resent before by the timer "the value of ssthresh is held constant"
        self.window.on_restart(flight, self.ns2 || self.retries == 0);
        self.retries += 1;
        self.ns2_deaf = true;
        self.phase = Phase::Loss;
        self.recover = Some(self.snd_max);
        self.dupacks = 0;
        self.timed = None;
        self.first_partial = false;
        self.limited_allowed = false;
        self.retransmit_now = None;
        self.rescue = None;
        match self.variant.recovery {
            Recovery::Pipe(PipeForm::Rfc6675 | PipeForm::Rfc3517) if self.open => {
                if self.scoreboard.reneged(self.snd_una) {
                    self.scoreboard.clear();
                }
                self.scoreboard.begin_recovery(self.snd_una);
                self.scoreboard.raise_lost_edge(self.snd_max);
            }
            _ => {
                self.scoreboard.clear();
                self.snd_nxt = self.snd_una;
            }
        }
        self.rtt.back_off();
        self.rto_at = Some(self.rtt.deadline(cx.now));
        Ok(())
    }

    // ---- sending ---------------------------------------------------------------------------------------------------

    /// The next segment to send now, if any.
    #[inline]
    pub(super) fn next(&mut self, now: Time) -> Option<Span> {
        let span = self.choose(now)?;
        Some(self.sent(now, span))
    }

    #[inline]
    fn choose(&mut self, now: Time) -> Option<Span> {
        if self.snd_nxt >= self.end() && self.phase == Phase::Open && self.open {
            return None;
        }
        if let Some(seq) = self.retransmit_now.take() {
            return Some(self.span(seq, u64::MAX));
        }
        if !self.open {
            // Only the SYN.
            return (self.snd_nxt == 0).then(|| self.span(0, 1));
        }
        if self.limited_allowed {
            self.limited_allowed = false;
            return self.limited_transmit();
        }
        if self.burst == 0 {
            return None;
        }
        let span = match self.variant.recovery {
            Recovery::Pipe(form) if self.phase != Phase::Open && !(form == PipeForm::Ns2 && self.phase == Phase::Loss) => {
                self.choose_by_pipe(now, form)
            }
            _ => self.choose_by_window(now),
        }?;
        self.burst -= 1;
        Some(span)
    }

    /// New data under the window, or everything again after `snd_nxt` went back.
    #[inline]
    fn choose_by_window(&mut self, now: Time) -> Option<Span> {
        let edge = self.right_edge(self.window.usable());
        if self.snd_nxt >= self.end() {
            return None;
        }
        if self.snd_nxt >= edge {
            self.maybe_persist(now);
            return None;
        }
        let span = self.span(self.snd_nxt, edge);
        self.worth_sending(now, &span).then_some(span)
    }

    /// Whether a segment is not too small (RFC 9293 §3.8.6.2.1) and Nagle lets it go (§3.7.4).
    #[inline]
    fn worth_sending(&mut self, now: Time, span: &Span) -> bool {
        if span.len == self.mss || span.syn {
            return true;
        }
        let all = span.seq + span.len as u64 == self.data_end;
        let idle = self.snd_nxt == self.snd_una;
        if all {
            return !self.nagle || idle || span.fin;
        }
        if self.unit == WindowUnit::Bytes && idle && 2 * span.len as u64 >= self.max_wnd {
            return true;
        }
        self.maybe_persist(now);
        false
    }

    //= RFC 6675 §5 step C: "If cwnd - pipe >= 1 SMSS, the sender SHOULD transmit one or more segments"
    fn choose_by_pipe(&mut self, now: Time, form: PipeForm) -> Option<Span> {
        let mss = self.mss as u64;
        let room = match form {
            PipeForm::Ns2 => self.ns2_pipe < (self.window.pipe_target().min(self.window.limit()) / mss) as i64,
            _ => self.window.pipe_target().min(self.window.limit()) >= self.scoreboard.pipe(self.snd_una, self.snd_max) + mss,
        };
        if !room {
            return None;
        }
        self.ns2_pipe += 1;
        let span = self.next_seg(now, form);
        self.ns2_pipe -= span.is_none() as i64;
        span
    }

    /// NextSeg (RFC 6675 §4): (1) what is lost, (2) what is new, (3) any gap, (4) the rescue. ns-2 takes any gap first.
    fn next_seg(&mut self, now: Time, form: PipeForm) -> Option<Span> {
        if let Some((start, end)) = self.scoreboard.next_gap(self.snd_una, form != PipeForm::Ns2) {
            return Some(self.span(start, end));
        }
        let new = self.snd_max;
        let edge = self.right_edge(self.window.limit());
        if new < self.end() && new < edge {
            self.snd_nxt = new;
            let span = self.span(new, edge);
            if self.worth_sending(now, &span) {
                return Some(span);
            }
        }
        if form == PipeForm::Ns2 || self.phase == Phase::Loss {
            return None;
        }
        if let Some((start, end)) = self.scoreboard.next_gap(self.snd_una, false) {
            return Some(self.span(start, end));
        }
        if form == PipeForm::Rfc6675 { self.rescue_retransmission() } else { None }
    }

    //= RFC 6675 §4 NextSeg rule 4: "one segment of up to SMSS octets that MUST include the highest outstanding
    //= unSACKed sequence number SHOULD be returned"
    fn rescue_retransmission(&mut self) -> Option<Span> {
        if self.rescue.is_some_and(|upto| self.snd_una <= upto) || self.scoreboard.end() >= self.snd_max {
            return None;
        }
        self.rescue = self.recover;
        let from = self.scoreboard.end().max(self.snd_una).max(self.snd_max.saturating_sub(self.mss as u64));
        Some(self.span(from, self.snd_max))
    }

    //= RFC 3042 §2: "The amount of outstanding data would remain less than or equal to the congestion window plus 2
    //= segments"
    fn limited_transmit(&mut self) -> Option<Span> {
        let allowance = self.dupacks as u64 * self.mss as u64;
        let cwnd = match self.unit {
            WindowUnit::Bytes => self.window.cwnd(),
            WindowUnit::Segments => self.window.pipe_target(),
        };
        let edge = self.right_edge((cwnd + allowance).min(self.window.limit()));
        // ns-2 sends what it would send next, which after a timeout is not new.
        let new = if self.ns2 { self.snd_nxt } else { self.snd_max };
        if new >= self.data_end || new + (self.mss as u64).min(self.data_end - new) > edge {
            return None;
        }
        self.snd_nxt = new;
        self.limited_sent += 1;
        Some(self.span(new, edge))
    }

    /// A zero window with data to send and nothing outstanding: probe (RFC 9293 §3.8.6.1).
    fn maybe_persist(&mut self, now: Time) {
        if self.persist_at.is_none() && self.rto_at.is_none() && self.snd_una == self.snd_nxt {
            self.persist_backoff = 0;
            self.persist_at = Some(now + self.persist_interval());
        }
    }

    /// The probe of a zero window that is due: one byte beyond it.
    pub(super) fn window_probe(&mut self) -> Option<Span> {
        if !core::mem::take(&mut self.probe_now) || self.snd_una >= self.end() {
            return None;
        }
        let span = self.span(self.snd_una, self.snd_una + 1);
        Some(self.count(span))
    }

    /// The segment that starts at `seq` and ends before `edge`.
    #[inline]
    fn span(&self, seq: u64, edge: u64) -> Span {
        if seq == 0 {
            return Span { seq, len: 0, syn: true, fin: false, push: false, retransmission: false };
        }
        let data = self.data_end.min(edge).saturating_sub(seq).min(self.mss as u64);
        let end = seq + data;
        let fin = self.fin && end == self.data_end && (edge > end || data == 0);
        Span { seq, len: data as u16, syn: false, fin, push: data > 0 && end == self.data_end, retransmission: false }
    }

    /// Keeps the books of a segment that goes out now.
    #[inline]
    fn sent(&mut self, now: Time, span: Span) -> Span {
        let nothing_out = self.snd_una == self.snd_max;
        let fresh = span.seq >= self.snd_max;
        let end = span.seq + span.len as u64 + span.syn as u64 + span.fin as u64;
        if fresh {
            if self.timed.is_none() && (self.ns2 || self.phase == Phase::Open) {
                self.timed = Some((end, now));
            }
        } else {
            //= RFC 6298 §3: "RTT samples MUST NOT be made using segments that were retransmitted"
            if !self.ns2 && self.timed.is_some_and(|(timed_end, _)| span.seq < timed_end) {
                self.timed = None;
            }
            self.scoreboard.retransmitted(end);
        }
        if span.seq == self.snd_nxt || fresh {
            self.snd_nxt = self.snd_nxt.max(end);
        }
        let span = self.count(span);
        if self.rto_at.is_none() || nothing_out {
            self.rto_at = Some(self.rtt.deadline(now));
        }
        self.burst_sent += 1;
        self.counters.max_burst = self.counters.max_burst.max(self.burst_sent);
        span
    }

    fn count(&mut self, mut span: Span) -> Span {
        let end = span.seq + span.len as u64 + span.syn as u64 + span.fin as u64;
        span.retransmission = span.seq < self.snd_max;
        self.counters.segments += 1;
        self.counters.retransmits += span.retransmission as u64;
        self.snd_max = self.snd_max.max(end);
        self.counters.max_flight = self.counters.max_flight.max(self.snd_max - self.snd_una);
        span
    }

    /// Invariants that hold between events.
    pub(super) fn check(&self) {
        debug_assert!(self.window.is_sound());
        debug_assert!(self.snd_una <= self.snd_nxt && self.snd_nxt <= self.snd_max.max(self.snd_nxt));
        debug_assert!(self.snd_max <= self.end().max(FIRST_BYTE));
    }
}
