//! ns-2's departures from the RFCs at the edges of recovery (`docs/specs/ns2.md`).

use super::{Departs, RepairKind};
use crate::tcp::config::{Handshake, TcpConfig};
use crate::tcp::congestion::Window;
use crate::tcp::segment::FIRST_BYTE;
use crate::tcp::variant::{Daass, PipeForm, Recovery};

/// The departures of ns-2 that a connection asks for; there may be none.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Ns2 {
    /// The departures of `ns2_recovery`.
    recovery: bool,
    /// The scoreboard departures of `ns2_recovery`. They belong to ns-2's SACK sender, which goes back to the first
    /// segment after a timeout. The senders of RFC 6675 and RFC 8985 continue by the scoreboard and would stall without
    /// it.
    forgets_sack: bool,
    /// ns-2 before July 2003.
    inflates_always: bool,
    /// ns-2 before 2010, unless quick ACKs are set.
    delays_ack_of_syn: bool,
    /// How the connection opens. Without a SYN there is no ACK of one before the first segment's.
    handshake: Handshake,
    /// The SACK sender ignores duplicate ACKs between a timeout and the next new ACK.
    deaf: bool,
}

/// Segments that ns-2's NewReno sends per ACK during recovery (`maxburst_` of its recovery code).
const NEWRENO_BURST: u32 = 2;

impl Departs for Ns2 {
    fn of(config: &TcpConfig) -> Self {
        let shortcuts = &config.shortcuts;
        let by_scoreboard = matches!(config.variant.recovery, Recovery::Pipe(form) if form != PipeForm::Ns2);
        Ns2 {
            recovery: shortcuts.ns2_recovery,
            forgets_sack: shortcuts.ns2_recovery && !by_scoreboard,
            inflates_always: shortcuts.ns2_inflate_always,
            delays_ack_of_syn: shortcuts.ns2_delayed_syn_ack && config.ack.daass == Daass::Off,
            handshake: shortcuts.handshake,
            deaf: false,
        }
    }

    fn window_before_handshake(&self) -> Option<u32> {
        (self.recovery && self.handshake == Handshake::OneWay).then_some(1)
    }

    #[inline(always)]
    fn ignores_sack(&self, in_recovery: bool, advances: bool) -> bool {
        self.forgets_sack && !in_recovery && (advances || self.deaf)
    }

    #[inline(always)]
    fn forgets_sack(&self) -> bool {
        self.forgets_sack
    }

    fn keeps_duplicates(&self, kind: RepairKind) -> bool {
        self.recovery && kind == RepairKind::Restart
    }

    fn may_retransmit(&self, snd_una: u64) -> bool {
        !(self.recovery && self.handshake == Handshake::None && snd_una == FIRST_BYTE)
    }

    #[inline(always)]
    fn limited_transmit_after_loss(&self) -> bool {
        self.recovery
    }

    #[inline(always)]
    fn limit_newreno(&self, kind: RepairKind, burst: &mut u32) {
        if self.recovery && kind == RepairKind::NewReno {
            *burst = (*burst).min(NEWRENO_BURST);
        }
    }

    /// ns-2 sends only on some duplicate ACKs, regardless of the window.
    #[inline(always)]
    fn limit_duplicate(&self, kind: RepairKind, count: u32, threshold: u32, burst: &mut u32) {
        if !self.recovery {
            return;
        }
        let sends = match kind {
            RepairKind::Restart => true,
            RepairKind::Sack => false,
            RepairKind::NewReno | RepairKind::Other => count >= threshold,
        };
        if !sends {
            *burst = 0;
        }
        self.limit_newreno(kind, burst);
    }

    /// Before July 2003, the window is inflated even if no fast retransmit is allowed.
    fn on_duplicate_without_recovery(&self, kind: RepairKind, count: u32, threshold: u32, window: &mut Window) {
        if !self.inflates_always || !matches!(kind, RepairKind::NewReno | RepairKind::Other) {
            return;
        }
        if count == threshold {
            window.set_inflation(threshold as u64 * window.mss());
        } else if count > threshold {
            window.inflate();
        }
    }

    fn grows_on_exit(&self) -> bool {
        self.recovery
    }

    #[inline(always)]
    fn times_retransmissions(&self) -> bool {
        self.recovery
    }

    fn grows_unused(&self) -> bool {
        self.recovery
    }

    fn halves_at_every_timeout(&self) -> bool {
        self.recovery
    }

    fn keeps_rto_of_syn(&self) -> bool {
        self.recovery
    }

    fn takes_repetition_in_order(&self) -> bool {
        self.recovery
    }

    fn delays_ack_of_syn(&self) -> bool {
        self.delays_ack_of_syn
    }

    fn on_timeout(&mut self) {
        self.deaf = true;
    }

    #[inline(always)]
    fn on_new_ack(&mut self) {
        self.deaf = false;
    }
}
