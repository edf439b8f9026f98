//! Reno's and NewReno's fast recovery: duplicate ACKs inflate the window (RFC 5681 §3.2, RFC 6582 §3.2).

use super::parts::Parts;
use crate::tcp::congestion::Window;
use crate::tcp::departures::{Departs, RepairKind};
use crate::tcp::loss::LossReport;
use crate::tcp::variant::{Exit, PartialAckTimer};

/// The state of a recovery by inflation.
#[derive(Clone, Debug)]
pub(super) struct Inflate {
    exit: Exit,
    /// Partial ACKs deflate the window by what they acknowledge.
    deflate: bool,
    timer: PartialAckTimer,
    /// A partial ACK has arrived in this recovery.
    had_partial_ack: bool,
}

impl Inflate {
    pub(super) fn new(exit: Exit, deflate: bool, timer: PartialAckTimer) -> Self {
        Inflate { exit, deflate, timer, had_partial_ack: false }
    }

    /// NewReno with the impatient timer.
    pub(super) fn newreno() -> Self {
        Inflate::new(Exit::Recover, true, PartialAckTimer::Impatient)
    }

    pub(super) fn exit(&self) -> Exit {
        self.exit
    }

    fn kind(&self) -> RepairKind {
        if self.exit == Exit::Recover { RepairKind::NewReno } else { RepairKind::Other }
    }

    //= RFC 5681 §3.2 step 3: "This artificially "inflates" the congestion window by the number of segments (three) that
    //= have left the network and which the receiver has buffered."
    pub(super) fn enter(&mut self, parts: Parts<'_>, loss: Option<&LossReport>, threshold: u32) {
        self.had_partial_ack = false;
        loss.inspect(|loss| parts.congestion.on_loss(loss));
        let window = &mut parts.congestion.window;
        window.set_inflation(threshold as u64 * window.mss());
        parts.departures.limit_newreno(self.kind(), parts.burst);
    }

    pub(super) fn on_duplicate(&mut self, parts: Parts<'_>) {
        parts.congestion.window.inflate();
        parts.departures.limit_newreno(self.kind(), parts.burst);
    }

    //= RFC 6582 §3.2 step 3: "then this is a partial ACK. In this case, retransmit the first unacknowledged segment."
    /// Takes a partial ACK. Returns true if the retransmission timer restarts.
    pub(super) fn on_partial_ack(&mut self, parts: Parts<'_>, acked: u64) -> bool {
        let window = &mut parts.congestion.window;
        if self.deflate {
            deflate_by(window, acked);
        } else {
            window.deflate_all();
        }
        parts.timer.on_partial_ack(parts.seq.snd_una);
        parts.departures.limit_newreno(self.kind(), parts.burst);
        let is_first = !core::mem::replace(&mut self.had_partial_ack, true);
        is_first || self.timer == PartialAckTimer::SlowButSteady
    }
}

//= RFC 6582 §3.2 step 3B: "deflate the congestion window by the amount of new data acknowledged [...] If the
//= partial ACK acknowledges at least one SMSS of new data, then add back SMSS bytes"
fn deflate_by(window: &mut Window, acked: u64) {
    let back = if acked >= window.mss() { window.mss() } else { 0 };
    let inflation = window.inflation();
    if inflation > acked {
        window.set_inflation(inflation - acked + back);
    } else {
        window.set((window.exact() - (acked - inflation) as f64).max(window.mss() as f64));
        window.set_inflation(back);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    /// RFC 6582 §3.2 step 3B, with 10 000 bytes, 3000 of inflation and segments of 1000: less what a partial ACK
    /// acknowledges, and a segment more if that is at least one.
    #[test]
    fn a_partial_ack_deflates() {
        for (acked, window, inflation) in
            [(500, 10_000, 2500), (1000, 10_000, 3000), (2000, 10_000, 2000), (3000, 10_000, 1000), (7000, 6000, 1000)]
        {
            let mut seen = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::default() }, 10);
            seen.set_inflation(3000);
            deflate_by(&mut seen, acked);
            assert_eq!((seen.exact(), seen.inflation()), (f64::from(window), inflation), "{acked}");
        }
    }
}
