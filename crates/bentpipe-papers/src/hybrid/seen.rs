//! Where the paper's topologies, mechanisms and experiments can be seen, and what became of our decisions.

use super::extensions;
use crate::inventory::Seen::{self, Rows, Unprinted, Works};

pub(super) const SEEN: &[(&str, Seen)] = &[
    (
        "H-N01",
        Works(
            "scenarios/hybrid-end-to-end.toml and hybrid-split.toml, which hybrid::setting runs with other values; drawn as \
             H-F01",
        ),
    ),
    ("H-N02", Works("a link with loss and without a queue of its own; T2 from 10 ms (figure 10) to 500 ms (figure 6)")),
    ("H-N03", Rows(&["H-F15"])),
    (
        "H-M01",
        Works(
            "engine::slacp over engine::arq with `weightless`, `hears_damage` and reports at once: each transmission is \
             answered one T2 after it, what was lost goes first, a copy is held until then",
        ),
    ),
    ("H-M02", Works("engine::arq::Resequencer, per flow, without a bound that is reached")),
    ("H-M03", Rows(&["H-F13"])),
    (
        "H-M04",
        Works(
            "`segments` of a layer's channel: each frame is lost and repeated by itself, a packet is passed on with the last \
             and takes room until all are acknowledged; runs: H-E14",
        ),
    ),
    ("H-M05", Works("`counts_copies` of a layer's channel; end to end it drops what finds no room")),
    (
        "H-M06",
        Works(
            "ns-2's Reno (profile `ns2`) as it was before July 2003, when it made a fast retransmit for each loss of a window; \
             an ACK per segment, greedy, no window clamp",
        ),
    ),
    (
        "H-M07",
        Works(
            "engine::spoof, `spoof` of a flow: an ACK at once, and as window what the copies leave of the buffer, which \
             several flows share",
        ),
    ),
    ("H-M08", Works("a link's `loss`; Probability::of_each_bit and any_of_bits between packets and bits")),
    ("H-M09", Works("a link's `bursts` with exponential gaps and lengths, loss 100 %; model::hybrid::fading::Fading")),
    ("H-M10", Works("the way back is without loss, and reports are weightless")),
    ("H-M11", Works("model::hybrid: delay, queueing, window, throughput; each function names its equation")),
    ("H-M12", Works("model::hybrid::splitting")),
    ("H-M13", Works("model::hybrid::asymptotics")),
    ("H-M14", Rows(&["H-C12"])),
    (
        "H-M15",
        Works(
            "model::hybrid::window::WindowChain solves Eq. 24 exactly for any distribution of C; Eq. 26 is a case of it",
        ),
    ),
    ("H-M16", Works("model::hybrid::connections")),
    ("H-M17", Unprinted(extensions::route_changes)),
    ("H-M18", Unprinted(extensions::sack_for_arq)),
    ("H-M19", Unprinted(extensions::isolation)),
    ("H-E01", Rows(&["H-F06"])),
    ("H-E02", Rows(&["H-F07"])),
    ("H-E03", Rows(&["H-F08"])),
    ("H-E04", Rows(&["H-F09"])),
    ("H-E05", Rows(&["H-F10"])),
    ("H-E06", Rows(&["H-F11"])),
    ("H-E07", Rows(&["H-F12"])),
    ("H-E08", Rows(&["H-F13"])),
    ("H-E09", Rows(&["H-F14"])),
    ("H-E10", Rows(&["H-F15"])),
    ("H-E11", Rows(&["H-F16"])),
    ("H-E12", Works("model::hybrid::tests: 240 points, every column, within what ten printed digits leave")),
    ("H-E13", Works("model::hybrid::tests: 165 values of the mean in-order delay, likewise")),
    ("H-E14", Unprinted(extensions::in_segments)),
    ("H-Q01", Works("model::hybrid: the equations as rebuilt, each with its number")),
    ("H-Q02", Works("`per_mu` and `per_capacity` in model::hybrid; all figures are in units of mu")),
    ("H-Q03", Works("figure 12's axis; H-C06 says where the curves cross")),
    ("H-Q04", Works("model::hybrid::queueing::overtakes")),
    ("H-Q05", Works("what RFC 9293 §3.8.6.2.2 has a receiver do is that policy: engine::spoof adds nothing to it")),
    ("H-Q06", Works("variant `reno` end to end and to the gateway")),
    ("H-Q07", Works("hybrid::sweeps: T1 or T2 100 ms; of B = 50, 100, 200 the figures simulate 100")),
    ("H-Q08", Works("model::hybrid::Path::alpha")),
    ("H-Q09", Works("model::hybrid::throughput, with libm's lgamma")),
    ("H-Q10", Works("hybrid::sweeps::TRANSMISSIONS; what is abandoned is seen by TCP as a loss")),
    ("H-Q11", Works("hybrid::sweeps::FADING_RATES with X = 0.1")),
    ("H-Q12", Works("hybrid::sweeps: N = 1 to 20, B = 30 and 100")),
    ("H-Q13", Works("a damaged frame is reported as it arrives: its sender knows one T2 after the transmission")),
    ("H-Q14", Works("`rto.min` 1 s; what timeouts there are, H-C17 counts")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_answered_for() {
        crate::inventory::check(&crate::published::HYBRID, SEEN);
    }
}
