//! References for the paper's topologies, mechanisms and experiments, and the implementation of each decision.

use super::extensions;
use crate::inventory::Seen::{self, Built, Compared, Decision, Ran};
use crate::inventory::Shown::{self, Scenario, Script, Setting, Test};

pub(super) const SEEN: &[(&str, Seen)] = &[
    (
        "H-N01",
        Built(
            &[
                Scenario("hybrid-end-to-end"),
                Scenario("hybrid-split"),
                Test("papers", "the_shipped_scenarios_are_the_worlds_of_the_study"),
            ],
            "drawn as H-F01",
        ),
    ),
    (
        "H-N02",
        Built(
            &[Scenario("hybrid-end-to-end"), Setting("hybrid-end-to-end", "links.satellite.delay", "5 ms")],
            "a link with loss and without a queue of its own; T2 from 10 ms (figure 10) to 500 ms (figure 6)",
        ),
    ),
    ("H-N03", Seen::Rows(&["H-F15"])),
    (
        "H-M01",
        Built(
            &[
                Test("engine", "a_lost_frame_costs_its_flow_one_round_trip"),
                Test("engine", "without_treatment_nothing_is_kept"),
                Scenario("hybrid-end-to-end"),
            ],
            "engine::slacp over engine::arq with `weightless`, `hears_damage` and reports at once: each transmission is \
             reported one T2 after it, a lost packet is resent before new ones, and its copy is held until the report",
        ),
    ),
    (
        "H-M02",
        Built(
            &[Test("engine", "flows_keep_their_order"), Test("engine", "a_gap_holds_up_its_own_flow_only")],
            "engine::arq::Resequencer, per flow; its bound is never reached",
        ),
    ),
    ("H-M03", Seen::Rows(&["H-F13"])),
    (
        "H-M04",
        Built(
            &[
                Test("engine", "a_packet_in_frames_takes_room_until_the_last_is_acknowledged"),
                Test("sim", "packets_in_frames_arrive_whole_or_not_at_all"),
                Shown::Rows(&["H-E14"]),
            ],
            "`segments` of a layer's channel: each frame is lost and resent separately; a packet is delivered with its last \
             frame and takes room until all are acknowledged",
        ),
    ),
    (
        "H-M05",
        Built(
            &[Test("engine", "copies_are_counted"), Scenario("hybrid-end-to-end")],
            "`counts_copies` of a layer's channel; end to end it drops packets when full",
        ),
    ),
    (
        "H-M06",
        Built(
            &[Script("loss/reno"), Script("loss/reno_twice_per_window"), Scenario("hybrid-end-to-end")],
            "ns-2's Reno (profile `ns2`) as before July 2003, with a fast retransmit for each loss of a window; an ACK per \
             segment, greedy, no window clamp",
        ),
    ),
    (
        "H-M07",
        Built(
            &[
                Test("engine", "the_window_is_what_the_copies_leave"),
                Test("sim", "a_transfer_arrives_whole_and_the_source_is_done_before"),
                Scenario("hybrid-split"),
            ],
            "engine::spoof, `spoof` of a flow: ACKs at once; the window is the part of the buffer that copies do not take, and \
             several flows share the buffer",
        ),
    ),
    (
        "H-M08",
        Built(
            &[
                Test("engine", "bits_and_packets_are_inverse"),
                Test("engine", "losses_are_indexed_by_time_not_by_packet"),
            ],
            "a link's `loss`; Probability::of_each_bit and any_of_bits between packets and bits",
        ),
    ),
    (
        "H-M09",
        Built(
            &[Scenario("hybrid-fading"), Test("study", "rate_and_lengths_of_the_states")],
            "a link's `bursts` with exponential gaps and lengths, loss 100 %",
        ),
    ),
    (
        "H-M10",
        Built(
            &[Scenario("hybrid-end-to-end"), Setting("hybrid-end-to-end", "links.satellite.backward.loss", "1 %")],
            "as shipped, the return path has no loss, and reports take no line time",
        ),
    ),
    (
        "H-M11",
        Built(
            &[Test("study", "every_point_of_the_model"), Test("study", "the_cases_meet")],
            "each function names its equation",
        ),
    ),
    (
        "H-M12",
        Built(&[Test("study", "the_equilibrium_is_the_fixed_point"), Test("study", "every_point_of_the_model")], ""),
    ),
    ("H-M13", Built(&[Test("study", "asymptotes"), Shown::Rows(&["H-C08", "H-C09"])], "")),
    ("H-M14", Seen::Rows(&["H-C12"])),
    (
        "H-M15",
        Built(
            &[Test("study", "the_chain_is_stationary"), Test("study", "the_simplified_chain_is_the_saw_tooth")],
            "model::hybrid::window::WindowChain solves Eq. 24 exactly for any distribution of C; Eq. 26 is a case of it",
        ),
    ),
    ("H-M16", Built(&[Test("study", "thirty_packets_serve_seven_connections")], "model::hybrid::connections")),
    ("H-M17", Ran(extensions::route_changes)),
    ("H-M18", Ran(extensions::sack_for_arq)),
    ("H-M19", Ran(extensions::isolation)),
    ("H-E01", Seen::Rows(&["H-F06"])),
    ("H-E02", Seen::Rows(&["H-F07"])),
    ("H-E03", Seen::Rows(&["H-F08"])),
    ("H-E04", Seen::Rows(&["H-F09"])),
    ("H-E05", Seen::Rows(&["H-F10"])),
    ("H-E06", Seen::Rows(&["H-F11"])),
    ("H-E07", Seen::Rows(&["H-F12"])),
    ("H-E08", Seen::Rows(&["H-F13"])),
    ("H-E09", Seen::Rows(&["H-F14"])),
    ("H-E10", Seen::Rows(&["H-F15"])),
    ("H-E11", Seen::Rows(&["H-F16"])),
    (
        "H-E12",
        Built(
            &[Test("study", "every_point_of_the_model")],
            "240 points, every column, of the rebuilt equations (H-Q01), within the rounding of ten digits",
        ),
    ),
    ("H-E13", Built(&[Test("study", "every_delay_of_a_burst")], "165 values of the mean in-order delay, likewise")),
    ("H-E14", Compared(extensions::in_segments)),
    ("H-Q01", Decision("model::hybrid: the rebuilt equations, each with its number")),
    ("H-Q02", Decision("`per_mu` and `per_capacity` in model::hybrid; all figures are in units of mu")),
    ("H-Q03", Decision("figure 12's axis; H-C06 says where the curves cross")),
    ("H-Q04", Decision("model::hybrid::queueing::overtakes")),
    ("H-Q05", Decision("RFC 9293 §3.8.6.2.2 requires this policy of a receiver; engine::spoof adds nothing")),
    ("H-Q06", Decision("variant `reno` end to end and to the gateway")),
    ("H-Q07", Decision("hybrid::sweeps: T1 or T2 100 ms; of B = 50, 100, 200 the figures simulate 100")),
    ("H-Q08", Decision("model::hybrid::Path::alpha")),
    ("H-Q09", Decision("model::hybrid::throughput, with libm's lgamma")),
    ("H-Q10", Decision("hybrid::sweeps::TRANSMISSIONS; TCP sees abandoned packets as losses")),
    ("H-Q11", Decision("hybrid::sweeps::FADING_RATES with X = 0.1")),
    ("H-Q12", Decision("hybrid::sweeps: N = 1 to 20, B = 30 and 100")),
    ("H-Q13", Decision("a damaged frame is reported on arrival, so its sender knows one T2 after the transmission")),
    ("H-Q14", Decision("`rto.min` 1 s; H-C17 counts the timeouts")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_answered_for() {
        crate::inventory::check(&crate::published::HYBRID, SEEN);
    }
}
