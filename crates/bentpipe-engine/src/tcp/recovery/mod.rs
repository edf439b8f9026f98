//! Loss recovery: what is retransmitted, and when the repair of a loss is complete.
//!
//! Each method of repair has its own file and a value of [`Repair`]. The sender calls it when a loss is found
//! ([`LossRecovery::enter`]), for each ACK until the loss is repaired, and at a timeout. It works on the [`Parts`] of
//! the sender.

mod boundaries;
mod burst;
mod inflate;
mod limited;
#[cfg(feature = "ns2")]
mod ns2;
mod parts;
mod phase;
mod pipe;
mod prr;
mod restart;
mod spreading;

use alloc::boxed::Box;

use self::burst::Burst;
use self::inflate::Inflate;
use self::limited::Limited;
pub(in crate::tcp) use self::parts::Parts;
pub(in crate::tcp) use self::phase::Chooser;
pub use self::phase::Phase;
use self::pipe::Pipe;
use super::config::SsthreshBase;
use super::congestion::Congestion;
use super::departures::RepairKind;
use super::loss::scoreboard::Scoreboard;
use super::loss::{Duplicates, LossReport};
use super::sequence::SequenceSpace;
use super::span::Span;
#[cfg(feature = "ns2")]
use super::variant::PipeForm;
use super::variant::{Exit, Recovery, ReentryGuard, Startup, TimeoutRepair, Variant};

/// A way to repair losses, with its state.
#[derive(Clone, Debug)]
enum Repair {
    Restart,
    Inflate(Inflate),
    Pipe(Pipe),
    Burst(Box<Burst>),
    #[cfg(feature = "ns2")]
    Ns2Pipe(ns2::CountedPipe),
}

impl Repair {
    fn of(variant: &Variant, base: SsthreshBase) -> Repair {
        // A fixed window is not reduced, so there is no reduction to spread.
        let reduction = (variant.prr && variant.startup == Startup::SlowStart).then_some(base);
        match variant.recovery {
            Recovery::Restart => Repair::Restart,
            Recovery::Inflate { exit, deflate, timer } => Repair::Inflate(Inflate::new(exit, deflate, timer)),
            #[cfg(feature = "ns2")]
            Recovery::Pipe(PipeForm::Ns2) => Repair::Ns2Pipe(ns2::CountedPipe::default()),
            Recovery::Pipe(form) => Repair::Pipe(Pipe::new(form, reduction)),
            Recovery::BurstEstimate(cells) => Repair::Burst(Box::new(Burst::new(cells))),
        }
    }

    fn kind(&self) -> RepairKind {
        match self {
            Repair::Restart => RepairKind::Restart,
            Repair::Inflate(inflate) if inflate.exit() == Exit::Recover => RepairKind::NewReno,
            Repair::Inflate(_) | Repair::Burst(_) => RepairKind::Other,
            Repair::Pipe(_) => RepairKind::Sack,
            #[cfg(feature = "ns2")]
            Repair::Ns2Pipe(_) => RepairKind::Sack,
        }
    }
}

/// A sender's recovery from losses.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct LossRecovery {
    phase: Phase,
    /// A reduction for a mark is spread over a round trip, and no loss is known (Linux's TCP_CA_CWR).
    spreads: bool,
    /// Segments are noted as they leave, not only during repairs.
    notes_bursts: bool,
    repair: Repair,
    /// Highest sequence number sent when the last loss was found; `None` before the first loss.
    recover: Option<u64>,
    /// The sequence number to retransmit next, regardless of the window.
    retransmit_now: Option<u64>,
    pub(in crate::tcp) limited: Limited,
    once_per_window: bool,
    guard_after_timeout: bool,
    timeout_repair: TimeoutRepair,
}

impl LossRecovery {
    /// The recovery that `variant` asks for. `base` is the quantity reduced on a loss.
    pub(in crate::tcp) fn new(variant: &Variant, base: SsthreshBase) -> Self {
        LossRecovery {
            phase: Phase::Open,
            spreads: false,
            notes_bursts: matches!(variant.recovery, Recovery::BurstEstimate(_)),
            repair: Repair::of(variant, base),
            recover: None,
            retransmit_now: None,
            limited: Limited::new(variant.limited_transmit),
            once_per_window: variant.once_per_window,
            guard_after_timeout: variant.guard_after_timeout,
            timeout_repair: variant.timeout_repair,
        }
    }

    #[inline(always)]
    pub(in crate::tcp) fn phase(&self) -> Phase {
        self.phase
    }

    /// The method by which losses are repaired.
    #[inline(always)]
    pub(in crate::tcp) fn kind(&self) -> RepairKind {
        self.repair.kind()
    }

    /// Highest sequence number sent when the last loss was found; `None` before the first loss.
    pub(in crate::tcp) fn recover(&self) -> Option<u64> {
        self.recover
    }

    /// True if an ACK of `ack` ends the repair of the last loss.
    pub(in crate::tcp) fn covers(&self, ack: u64) -> bool {
        self.recover.is_none_or(|recover| ack >= recover)
    }

    /// Falls back from SACK to NewReno, because the peer sends no SACK blocks.
    pub(in crate::tcp) fn without_sack(&mut self) {
        if self.kind() == RepairKind::Sack {
            if matches!(&self.repair, Repair::Pipe(pipe) if pipe.is_by_time()) {
                // This replaces the segments that RACK allows for SACKed data.
                self.limited = Limited::new(true);
            }
            self.repair = Repair::Inflate(Inflate::newreno());
        }
    }

    /// Completes the handshake: losses of the SYN no longer count.
    pub(in crate::tcp) fn open(&mut self) {
        (self.phase, self.recover) = (Phase::Open, None);
    }

    /// What chooses the next segment.
    #[inline(always)]
    pub(in crate::tcp) fn chooser(&self) -> Chooser {
        match (&self.repair, self.phase) {
            (_, Phase::Open) => Chooser::Window,
            (Repair::Pipe(_), _) => Chooser::Pipe,
            #[cfg(feature = "ns2")]
            (Repair::Ns2Pipe(_), Phase::Recovery) => Chooser::Pipe,
            (Repair::Burst(_), Phase::Recovery) => Chooser::Run,
            _ => Chooser::Window,
        }
    }

    /// True if a segment must be sent regardless of the window.
    #[inline(always)]
    pub(in crate::tcp) fn has_request(&self) -> bool {
        self.retransmit_now.is_some() || self.limited.is_allowed()
    }

    /// Takes the sequence number to retransmit next, regardless of the window.
    #[inline(always)]
    pub(in crate::tcp) fn take_retransmission(&mut self) -> Option<u64> {
        self.retransmit_now.take()
    }

    /// Records that a segment of `len` bytes up to `end` is sent; `snd_max` is the value before it.
    #[inline(always)]
    pub(in crate::tcp) fn sent(&mut self, snd_max: u64, end: u64, len: u16, retransmission: bool) {
        let repairs = self.phase == Phase::Recovery || self.spreads;
        if !(repairs || self.notes_bursts) {
            return;
        }
        match &mut self.repair {
            Repair::Burst(burst) => burst.sent(snd_max, end, retransmission),
            Repair::Pipe(pipe) if repairs => pipe.sent(len as u64),
            _ => {}
        }
    }

    /// Everything before `ack` is acknowledged.
    #[inline(always)]
    pub(in crate::tcp) fn advance(&mut self, ack: u64) {
        self.limited.advance();
        self.retransmit_now = None;
        if let Repair::Burst(burst) = &mut self.repair {
            burst.boundaries.advance(ack);
        }
    }

    //= RFC 6582 §3.2 step 2: "If the Cumulative Acknowledgment field covers more than 'recover'"
    /// True if duplicate ACKs may start a fast retransmit: one per window of data.
    pub(in crate::tcp) fn may_enter(&self, snd_una: u64) -> bool {
        let Some(recover) = self.recover else { return true };
        match &self.repair {
            //= RFC 6675 §5: not until HighACK reaches RecoveryPoint
            Repair::Pipe(_) => snd_una >= recover,
            Repair::Burst(burst) if burst.guard() != ReentryGuard::Recover => self.phase == Phase::Open,
            Repair::Restart if !self.once_per_window => self.may_enter_again(),
            Repair::Inflate(inflate) if !self.once_per_window && inflate.exit() == Exit::FirstNewAck => {
                self.may_enter_again()
            }
            _ => snd_una > recover,
        }
    }

    /// The rule that applies if each loss in a window may start a fast retransmit.
    fn may_enter_again(&self) -> bool {
        self.phase == Phase::Open || !self.guard_after_timeout
    }

    /// Starts the repair of the loss that `loss` reports, which duplicate ACKs indicate. `reduced`: the end of the data sent
    /// before the mark for which the window has been reduced or is being reduced, if the loss is in that data; the repair then adds no
    /// reduction.
    pub(in crate::tcp) fn enter(
        &mut self,
        parts: Parts<'_>,
        loss: &LossReport,
        duplicates: Duplicates,
        reduced: Option<u64>,
    ) {
        let snd_una = parts.seq.snd_una;
        let spreads = core::mem::take(&mut self.spreads);
        self.recover = Some(reduced.filter(|_| spreads).unwrap_or(parts.seq.snd_max));
        let loss = Some(loss).filter(|_| reduced.is_none());
        self.limited.forbid();
        self.phase = Phase::Recovery;
        let first = parts.scoreboard.rack().map_or(Some(snd_una), |rack| rack.first_lost().map(|(start, _)| start));
        match &mut self.repair {
            Repair::Restart => {
                restart::enter(parts, loss);
                self.phase = Phase::Loss;
                return;
            }
            Repair::Inflate(inflate) => inflate.enter(parts, loss, duplicates.threshold),
            Repair::Pipe(pipe) => pipe.enter(parts, loss, spreads),
            #[cfg(feature = "ns2")]
            Repair::Ns2Pipe(pipe) => pipe.enter(parts, loss, duplicates.threshold),
            Repair::Burst(burst) => return burst.enter(parts.seq, loss, duplicates.count),
        }
        self.retransmit_now = first;
    }

    /// Takes an ACK that does not move `snd_una` during recovery; `is_duplicate`: it counts as a duplicate. Returns
    /// true if the retransmission timer restarts.
    pub(in crate::tcp) fn on_duplicate(&mut self, parts: Parts<'_>, is_duplicate: bool) -> bool {
        match &mut self.repair {
            #[cfg(feature = "ns2")]
            Repair::Ns2Pipe(pipe) => pipe.on_duplicate(),
            Repair::Inflate(inflate) if is_duplicate => inflate.on_duplicate(parts),
            Repair::Pipe(pipe) => pipe.on_ack(parts),
            Repair::Burst(burst) if is_duplicate => {
                let (snd_una, snd_max) = (parts.seq.snd_una, parts.seq.snd_max);
                return burst.on_duplicate(snd_una, self.recover.unwrap_or(snd_max));
            }
            _ => {}
        }
        false
    }

    /// True if ACKs that do not move `snd_una` count as duplicates during recovery.
    pub(in crate::tcp) fn counts_duplicates(&self) -> bool {
        self.kind() != RepairKind::Sack
    }

    /// True if a duplicate ACK outside recovery is caused by a retransmission and is no sign of loss.
    pub(in crate::tcp) fn is_echo(&mut self, snd_una: u64) -> bool {
        let Repair::Burst(burst) = &mut self.repair else { return false };
        match self.phase {
            // Everything is being retransmitted, so data that had already arrived causes duplicates (RFC 6582 §3.2 step 2).
            Phase::Loss => {
                burst.on_echo_after_timeout();
                self.timeout_repair == TimeoutRepair::GoBack
            }
            _ => self.recover == Some(snd_una) && burst.take_credit(),
        }
    }

    /// True if an ACK of `ack` ends the recovery.
    pub(in crate::tcp) fn ends_at(&self, ack: u64) -> bool {
        let at_once = match &self.repair {
            Repair::Restart => true,
            Repair::Inflate(inflate) => inflate.exit() == Exit::FirstNewAck,
            _ => false,
        };
        at_once || self.covers(ack)
    }

    /// Ends the recovery; `snd_una` has not moved yet.
    pub(in crate::tcp) fn leave(&mut self, parts: Parts<'_>) {
        self.phase = Phase::Open;
        match &mut self.repair {
            Repair::Burst(burst) => burst.leave(parts),
            Repair::Pipe(pipe) => pipe.leave(parts),
            #[cfg(feature = "ns2")]
            Repair::Ns2Pipe(pipe) => {
                pipe.leave(parts);
                self.recover = None;
            }
            _ => {}
        }
    }

    /// True if the window is limited to the outstanding data at the end of this recovery, to avoid a burst.
    pub(in crate::tcp) fn limits_to_flight(&self) -> bool {
        self.kind() == RepairKind::NewReno
    }

    /// True if the recovery inflated the window.
    pub(in crate::tcp) fn inflates(&self) -> bool {
        matches!(self.repair, Repair::Inflate(_))
    }

    /// Takes an ACK of `acked` new bytes that has moved `snd_una` while the recovery continues. Returns true if the
    /// retransmission timer restarts.
    pub(in crate::tcp) fn on_partial_ack(&mut self, parts: Parts<'_>, acked: u64) -> bool {
        let (snd_una, snd_max) = (parts.seq.snd_una, parts.seq.snd_max);
        match &mut self.repair {
            Repair::Inflate(inflate) => {
                self.retransmit_now = Some(snd_una);
                inflate.on_partial_ack(parts, acked)
            }
            #[cfg(feature = "ns2")]
            Repair::Ns2Pipe(pipe) => pipe.on_partial_ack(parts),
            Repair::Burst(burst) => burst.on_partial_ack(snd_una, self.recover.unwrap_or(snd_max)),
            Repair::Pipe(pipe) => {
                pipe.on_ack(parts);
                true
            }
            Repair::Restart => true,
        }
    }

    /// Takes an ACK of new data after a timeout.
    pub(in crate::tcp) fn on_ack_after_timeout(&mut self, scoreboard: &mut Scoreboard, is_full: bool) {
        if is_full {
            self.phase = Phase::Open;
            scoreboard.on_recovered();
        }
        if let Repair::Burst(burst) = &mut self.repair {
            burst.on_ack_after_timeout(is_full);
        }
    }

    /// Ends a recovery that was needless. Data below its end may be lost all the same: then a new recovery begins (Linux's
    /// `tcp_fastretrans_alert`).
    pub(in crate::tcp) fn undo(&mut self, parts: Parts<'_>) {
        let snd_una = parts.seq.snd_una;
        self.leave(parts);
        self.recover = Some(snd_una);
    }

    /// Records that the timeout was spurious: nothing was lost. `snd_una` is its current value.
    pub(in crate::tcp) fn on_spurious_timeout(&mut self, snd_una: u64) {
        (self.phase, self.recover) = (Phase::Open, Some(snd_una));
    }

    /// Handles the expiry of the retransmission timer; `is_open`: the handshake is done.
    pub(in crate::tcp) fn on_timeout(&mut self, seq: &mut SequenceSpace, scoreboard: &mut Scoreboard, is_open: bool) {
        let oldest_alone = self.timeout_repair == TimeoutRepair::Oldest;
        self.phase = Phase::Loss;
        self.spreads = false;
        self.recover = Some(if oldest_alone { seq.snd_una } else { seq.snd_max });
        self.limited.forbid();
        self.retransmit_now = None;
        match &mut self.repair {
            Repair::Pipe(pipe) if is_open => {
                // The other data in flight must not delay the first segment.
                self.retransmit_now = pipe.is_by_time().then_some(seq.snd_una);
                return pipe.on_timeout(seq, scoreboard);
            }
            Repair::Burst(burst) => burst.forget(),
            _ => {}
        }
        scoreboard.clear();
        if oldest_alone && is_open {
            self.retransmit_now = Some(seq.snd_una);
        } else {
            seq.snd_nxt = seq.snd_una;
        }
    }

    /// Chooses from the rest of the run that the burst estimate retransmits.
    pub(in crate::tcp) fn choose_from_run(&mut self, seq: &SequenceSpace, full: u16) -> Option<Span> {
        match &mut self.repair {
            Repair::Burst(burst) => burst.choose(seq, full),
            _ => None,
        }
    }

    /// True if the pipe has room for a segment.
    pub(in crate::tcp) fn pipe_has_room(
        &self,
        seq: &SequenceSpace,
        congestion: &Congestion,
        scoreboard: &Scoreboard,
    ) -> bool {
        match &self.repair {
            Repair::Pipe(_) => pipe::has_room(seq, &congestion.window, scoreboard),
            #[cfg(feature = "ns2")]
            Repair::Ns2Pipe(pipe) => pipe.has_room(&congestion.window),
            _ => false,
        }
    }

    /// Records that a segment for which the pipe had room is sent.
    pub(in crate::tcp) fn sent_into_pipe(&mut self) {
        #[cfg(feature = "ns2")]
        if let Repair::Ns2Pipe(pipe) = &mut self.repair {
            pipe.sent();
        }
    }

    /// True if rules 3 and 4 of NextSeg apply: gaps not known to be lost, and the rescue.
    pub(in crate::tcp) fn is_thorough(&self) -> bool {
        matches!(self.repair, Repair::Pipe(_)) && self.phase != Phase::Loss
    }

    /// True if rule 1 of NextSeg takes only data known to be lost.
    pub(in crate::tcp) fn repairs_lost_only(&self) -> bool {
        matches!(self.repair, Repair::Pipe(_))
    }

    /// The rescue retransmission (RFC 6675 §4 NextSeg rule 4).
    pub(in crate::tcp) fn rescue(&mut self, seq: &SequenceSpace, scoreboard: &Scoreboard, full: u16) -> Option<Span> {
        match &mut self.repair {
            Repair::Pipe(pipe) => pipe.rescue(seq, scoreboard, full, self.recover),
            _ => None,
        }
    }

    /// True if the current segment is the rescue.
    pub(in crate::tcp) fn take_rescue(&mut self) -> bool {
        match &mut self.repair {
            Repair::Pipe(pipe) => pipe.take_rescue(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
