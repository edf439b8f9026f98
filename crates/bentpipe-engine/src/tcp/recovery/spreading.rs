//! A reduction for a mark that is spread over a round trip (Linux's TCP_CA_CWR).

use super::{LossRecovery, Parts, Repair};
use crate::tcp::loss::LossReport;

impl LossRecovery {
    /// True while a reduction for a mark is spread over a round trip.
    #[inline(always)]
    pub(in crate::tcp) fn spreads(&self) -> bool {
        self.spreads
    }

    /// Reduces the window for the mark that `loss` reports, a little with each ACK, if losses reduce it so. Returns
    /// false if they do not. No loss is known.
    pub(in crate::tcp) fn spread(&mut self, parts: Parts<'_>, loss: &LossReport) -> bool {
        if let Repair::Pipe(pipe) = &mut self.repair {
            self.spreads = pipe.spread(parts, loss);
        }
        self.spreads
    }

    /// Takes an ACK while a reduction for a mark is spread over a round trip.
    pub(in crate::tcp) fn spread_on(&mut self, parts: Parts<'_>) {
        if let Repair::Pipe(pipe) = &mut self.repair {
            pipe.on_ack(parts);
        }
    }

    /// Completes the reduction for a mark that is spread over a round trip.
    pub(in crate::tcp) fn end_spreading(&mut self, parts: Parts<'_>) {
        self.spreads = false;
        if let Repair::Pipe(pipe) = &mut self.repair {
            pipe.end_spreading(parts);
        }
    }
}
