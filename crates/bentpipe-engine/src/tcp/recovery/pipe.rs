//! SACK-based recovery: sends what the pipe has room for, lost segments first (RFC 6675 §5, RFC 3517).

use alloc::boxed::Box;

use super::parts::Parts;
use super::prr::Prr;
use crate::tcp::config::SsthreshBase;
use crate::tcp::congestion::Window;
use crate::tcp::loss::LossReport;
use crate::tcp::loss::scoreboard::Scoreboard;
use crate::tcp::sequence::SequenceSpace;
use crate::tcp::span::Span;
use crate::tcp::variant::PipeForm;

/// The state of a SACK-based recovery.
#[derive(Clone, Debug)]
pub(super) struct Pipe {
    form: PipeForm,
    /// One rescue retransmission has been made for the data sent up to here.
    rescue: Option<u64>,
    /// The segment chosen last is the rescue.
    is_rescuing: bool,
    /// Spreads the reduction of the window over a round trip.
    prr: Option<Box<Prr>>,
    /// The current reduction has taken effect at once.
    is_reduced: bool,
}

impl Pipe {
    /// `prr`: the base of the reduction, if the reduction is spread over a round trip.
    pub(super) fn new(form: PipeForm, prr: Option<SsthreshBase>) -> Self {
        let prr = prr.map(|base| Box::new(Prr::new(base)));
        Pipe { form, rescue: None, is_rescuing: false, prr, is_reduced: false }
    }

    /// Begins the recovery. Without `loss` the window has been reduced for it, or is being reduced if `spreads`.
    pub(super) fn enter(&mut self, parts: Parts<'_>, loss: Option<&LossReport>, spreads: bool) {
        self.rescue = None;
        parts.scoreboard.begin_recovery(parts.seq.snd_una);
        if spreads {
            self.on_ack(parts);
        } else {
            self.reduce(parts, loss);
        }
    }

    /// Begins to reduce the window.
    fn reduce(&mut self, parts: Parts<'_>, loss: Option<&LossReport>) {
        let before = parts.congestion.window.whole();
        loss.inspect(|loss| parts.congestion.on_loss(loss));
        self.is_reduced = parts.congestion.reduces_at_once();
        if let Some(prr) = self.prr() {
            prr.enter(before, &mut parts.congestion.window, parts.seq, parts.scoreboard);
        }
    }

    /// PRR, if it applies to the current reduction.
    fn prr(&mut self) -> Option<&mut Prr> {
        self.prr.as_deref_mut().filter(|_| !self.is_reduced)
    }

    /// Begins to reduce the window for a mark. Returns false if reductions are not spread over a round trip.
    pub(super) fn spread(&mut self, parts: Parts<'_>, loss: &LossReport) -> bool {
        if self.prr.is_none() {
            return false;
        }
        self.reduce(parts, Some(loss));
        true
    }

    /// Completes that reduction.
    pub(super) fn end_spreading(&mut self, parts: Parts<'_>) {
        if let Some(prr) = self.prr() {
            prr.leave(&mut parts.congestion.window);
        }
    }

    /// Takes an ACK during the recovery.
    pub(super) fn on_ack(&mut self, parts: Parts<'_>) {
        if let Some(prr) = self.prr() {
            prr.on_ack(&mut parts.congestion.window, parts.seq, parts.scoreboard);
        }
    }

    /// Records that bytes leave.
    pub(super) fn sent(&mut self, bytes: u64) {
        if let Some(prr) = self.prr() {
            prr.sent(bytes);
        }
    }

    /// Ends the recovery.
    pub(super) fn leave(&mut self, parts: Parts<'_>) {
        parts.scoreboard.on_recovered();
        if let Some(prr) = self.prr() {
            prr.leave(&mut parts.congestion.window);
        }
    }

    /// True if each segment is judged by its age, so a timeout does not mark the whole flight as lost.
    pub(super) fn is_by_time(&self) -> bool {
        self.form == PipeForm::Rack
    }

    /// Marks everything sent and not SACKed as lost.
    pub(super) fn on_timeout(&mut self, seq: &SequenceSpace, scoreboard: &mut Scoreboard) {
        self.rescue = None;
        if scoreboard.reneged(seq.snd_una) {
            scoreboard.renege();
        }
        scoreboard.begin_recovery(seq.snd_una);
        scoreboard.raise_lost_edge(seq.snd_max);
    }

    //= RFC 6675 §4 NextSeg rule 4: "one segment of up to SMSS octets that MUST include the highest outstanding
    //= unSACKed sequence number SHOULD be returned"
    pub(super) fn rescue(
        &mut self,
        seq: &SequenceSpace,
        scoreboard: &Scoreboard,
        full: u16,
        recover: Option<u64>,
    ) -> Option<Span> {
        let has_been = self.rescue.is_some_and(|upto| seq.snd_una <= upto);
        if self.form != PipeForm::Rfc6675 || has_been || scoreboard.end() >= seq.snd_max {
            return None;
        }
        self.rescue = recover;
        self.is_rescuing = true;
        let from = scoreboard.end().max(seq.snd_una).max(seq.snd_max.saturating_sub(full as u64));
        Some(seq.span(from, seq.snd_max, full))
    }

    /// True if the last chosen segment is the rescue.
    pub(super) fn take_rescue(&mut self) -> bool {
        core::mem::take(&mut self.is_rescuing)
    }
}

//= RFC 6675 §5 step C: "If cwnd - pipe >= 1 SMSS, the sender SHOULD transmit one or more segments"
pub(super) fn has_room(seq: &SequenceSpace, window: &Window, scoreboard: &Scoreboard) -> bool {
    window.whole().min(window.clamp()) >= scoreboard.pipe(seq.snd_una, seq.snd_max) + window.mss()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6675 §4 NextSeg rule 4: once per recovery, the last segment of up to SMSS bytes that is not SACKed; again
    /// when HighACK is greater than RescueRxt. RFC 3517 has no such rule.
    #[test]
    fn the_rescue_is_the_last_segment() {
        let mut seq = SequenceSpace::new(0, 1 << 30);
        (seq.snd_una, seq.snd_nxt, seq.snd_max, seq.data_end) = (1, 10_001, 10_001, 10_001);
        let mut scoreboard = Scoreboard::default();
        scoreboard.sack(4001, 8001);
        let mut pipe = Pipe::new(PipeForm::Rfc6675, None);
        let rescue = |pipe: &mut Pipe, seq: &SequenceSpace, scoreboard: &Scoreboard| {
            pipe.rescue(seq, scoreboard, 1000, Some(10_001)).map(|span| (span.seq, span.len))
        };
        assert_eq!(rescue(&mut Pipe::new(PipeForm::Rfc3517, None), &seq, &scoreboard), None);
        assert_eq!(rescue(&mut pipe, &seq, &scoreboard), Some((9001, 1000)));
        assert!(pipe.take_rescue() && !pipe.take_rescue());
        seq.snd_max = 12_001;
        for (snd_una, found) in [(8001, None), (10_001, None), (10_002, Some((11_001, 1000)))] {
            seq.snd_una = snd_una;
            (seq.snd_nxt, seq.data_end) = (12_001, 12_001);
            assert_eq!(rescue(&mut pipe, &seq, &scoreboard), found, "{snd_una}");
        }
        // A short rest behind the highest SACKed byte, and nothing behind it.
        let mut pipe = Pipe::new(PipeForm::Rfc6675, None);
        scoreboard.sack(10_002, 11_501);
        assert_eq!(rescue(&mut pipe, &seq, &scoreboard), Some((11_501, 500)));
        let mut pipe = Pipe::new(PipeForm::Rfc6675, None);
        scoreboard.sack(11_501, 12_001);
        assert_eq!(rescue(&mut pipe, &seq, &scoreboard), None);
    }
}
