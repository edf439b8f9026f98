//! A sender that has nothing left to send, time or repair.

use super::Sender;
use crate::tcp::config::TcpConfig;
use crate::tcp::sending::{Half, SenderCounters};
use crate::tcp::sequence::SequenceSpace;
use crate::units::Time;

/// The remaining state of a finished sender.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Finished {
    seq: SequenceSpace,
    counters: SenderCounters,
    cwnd: f64,
    mss: u16,
}

impl Sender {
    /// The remaining state once all data and the FIN are acknowledged, if nothing was lost or marked: further ACKs
    /// acknowledge nothing new, so they change neither the window nor an estimate. `None` with a control that measures
    /// the delivery rate, which processes all ACKs.
    pub(in crate::tcp) fn finished(&self) -> Option<Finished> {
        let SenderCounters { retransmits, timeouts, fast_retransmits, ecn_reductions, .. } = self.counters;
        let is_done = self.seq.fin_acknowledged() && self.deadline() == Time::NEVER && !self.persist.is_due();
        let was_calm = self.is_calm() && retransmits + timeouts + fast_retransmits + ecn_reductions == 0;
        (is_done && was_calm && !self.congestion.properties().measures_rate).then(|| Finished {
            seq: self.seq,
            counters: self.counters,
            cwnd: self.congestion.window.exact(),
            mss: self.mss,
        })
    }

    /// Restores a sender that answers like the finished one with state `rest`; `sack`: the peer sends SACK blocks.
    pub(in crate::tcp) fn of_finished(config: &TcpConfig, sack: bool, rest: Finished) -> Sender {
        let Finished { seq, counters, cwnd, mss } = rest;
        let mut sender = Sender::new(config);
        sender.established(mss, config.variant.initial_window, sack);
        sender.congestion.window.set(cwnd);
        Sender { seq, counters, ..sender }
    }
}
