//! BBRv3's reaction to a loss (draft-ietf-ccwg-bbr-06 §5.5.10.2), and its reversal if the loss was spurious (§5.5.11).

use super::*;
use crate::tcp::delivery::LostSample;

/// The state that is restored after a needless recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The bounds before the first loss of the last recovery.
    bounds: Option<Bounds>,
    /// The state that its losses have ended: startup or a probe.
    state: Option<State>,
    /// The recovery is still in progress: later losses are part of it.
    goes_on: bool,
}

impl Undo {
    /// SaveStateUponLoss.
    fn save(&mut self, bounds: &Bounds) {
        if !self.goes_on {
            *self = Undo { bounds: Some(*bounds), state: None, goes_on: true };
        }
    }

    /// Records that losses end this state.
    pub(super) fn left(&mut self, state: State) {
        self.state = Some(state);
    }

    /// Ends the recovery: later losses belong to another one.
    pub(super) fn end(&mut self) {
        self.goes_on = false;
    }
}

impl Bbr3 {
    /// HandleLostPacket. `lost.too_high` is the first segment for which IsInflightTooHigh is true.
    pub(super) fn on_lost(&mut self, window: &Window, lost: &FoundLost) {
        // NoteLoss.
        if self.bounds.note_loss(lost.delivered) {
            self.save_state(window);
        }
        if let Some(segment) = lost.too_high.filter(|_| self.is_judging) {
            if self.state == State::Up {
                self.undo.left(State::Up);
            }
            let volume = (!segment.is_app_limited).then(|| in_flight_at_loss(&segment));
            self.end_probe(volume, window, (lost.now, lost.delivered));
        }
    }

    /// SaveStateUponLoss.
    pub(super) fn save_state(&mut self, window: &Window) {
        self.save(window);
        self.undo.save(&self.bounds);
    }

    /// Handles a mark, which counts as a loss. `flight` bytes were outstanding before the ACK. Nothing is
    /// retransmitted, and nothing is undone.
    pub(super) fn on_mark(&mut self, window: &Window, flight: u64) {
        self.bounds.note_loss(self.last.1);
        if self.is_judging {
            self.end_probe(Some(flight as f64), window, self.last);
        }
    }

    /// HandleInflightTooHigh: a probe has lost too much with `volume` in flight, if that volume was not limited by the
    /// application.
    fn end_probe(&mut self, volume: Option<f64>, window: &Window, (now, delivered): (Time, u64)) {
        self.was_too_high = true;
        self.is_judging = false;
        if let Some(volume) = volume {
            self.bounds.too_high(volume, self.target(window));
        }
        if self.state == State::Up {
            self.start_down(now, delivered);
        }
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn undo_losses(&mut self, window: &mut Window) {
        self.restore(window);
        self.filled.restart(0.0);
        if let Some(before) = self.undo.bounds {
            self.bounds.undo(&before);
        }
        let is_probing_rtt = matches!(self.state, State::ProbeRtt(_));
        match self.undo.state.take().filter(|&before| before != self.state) {
            Some(State::Startup) => {
                self.filled.ever = false;
                if !is_probing_rtt {
                    self.state = State::Startup;
                }
            }
            Some(_) if !is_probing_rtt => self.start_refill(self.last.1),
            _ => {}
        }
        self.undo.end();
    }
}

/// InflightAtLoss: the bytes in flight when the share of losses exceeded the threshold.
fn in_flight_at_loss(lost: &LostSample) -> f64 {
    let (size, before) = (lost.size as f64, lost.tx_in_flight as f64);
    let (inflight, lost) = (before - size, lost.lost as f64 - size);
    inflight + (LOSS_THRESH * inflight - lost) / (1.0 - LOSS_THRESH)
}
