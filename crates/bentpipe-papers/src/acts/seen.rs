//! References for the paper's topologies, mechanisms and experiments, and the implementation of each decision.

use super::sweeps;
use crate::inventory::Seen::{self, Built, Decision, Ran};
use crate::inventory::Shown::{self, Scenario, Script, Setting, Test};

pub(super) const SEEN: &[(&str, Seen)] = &[
    (
        "A-N01",
        Built(
            &[Scenario("acts-1"), Scenario("acts-2"), Test("papers", "round_trips_as_the_paper_pings_them")],
            "drawn as A-F01",
        ),
    ),
    ("A-N02", Built(&[Scenario("acts-3"), Test("papers", "round_trips_as_the_paper_pings_them")], "drawn as A-F02")),
    (
        "A-N03",
        Built(
            &[
                Scenario("acts-4"),
                Setting("acts-4", "links.wan.delay", "50 us"),
                Test("papers", "round_trips_as_the_paper_pings_them"),
            ],
            "the second is the LAN",
        ),
    ),
    ("A-N04", Built(&[Scenario("acts-5"), Test("papers", "shaped_sources_share_the_load")], "")),
    (
        "A-N05",
        Built(
            &[Scenario("acts-beams"), Test("sim", "beams_take_turns_in_a_frame")],
            "348 Msymbol/s in QPSK, with 622.08 Mbit/s for the user; `tdma` of a link gives each beam its bursts in the frame",
        ),
    ),
    ("A-N06", Seen::Rows(&["A-T01"])),
    (
        "A-M01",
        Built(
            &[Test("engine", "the_header_of_rfc_2684"), Test("study", "cells_take_what_aal5_adds"), Scenario("acts-3")],
            "MSS 9140; framing = \"aal5\" in the scenario",
        ),
    ),
    ("A-M02", Seen::Rows(&["A-C22"])),
    ("A-M03", Built(&[Test("engine", "two_channels_share_cell_by_cell"), Test("engine", "headers_of_i_432_1")], "")),
    ("A-M04", Seen::Rows(&["A-C01"])),
    ("A-M05", Seen::Rows(&["A-T02"])),
    (
        "A-M06",
        Built(
            &[
                Test("papers", "the_buffers_are_those_of_the_experiment_or_of_the_simulation"),
                Setting("acts-3", "links.sat.forward.atm.sharing", "shared"),
                Shown::Rows(&["A-F06"]),
            ],
            "acts-3 has 8192 cells for each channel, as the paper's simulation",
        ),
    ),
    (
        "A-M07",
        Built(
            &[Test("engine", "discard_by_packet_saves_what_goes_through"), Shown::Rows(&["A-E11"])],
            "atm.early_packet_discard",
        ),
    ),
    (
        "A-M08",
        Built(
            &[
                Test("language", "bsd_reno_is_4_3_bsd_reno"),
                Script("bsd/second_fast_retransmit"),
                Script("bsd/half_of_the_window_in_force"),
                Script("bsd/eighth_of_a_segment"),
            ],
            "profile `bsd-reno`",
        ),
    ),
    (
        "A-M09",
        Built(
            &[Script("window/scaling"), Shown::Rows(&["A-T05", "A-E02"])],
            "receive_buffer 800 KiB, 10 MiB, and 34 MiB in A-E02",
        ),
    ),
    (
        "A-M10",
        Built(
            &[
                Test("engine", "bsd_ticks_by_hand"),
                Script("ack/free_running_clock"),
                Script("timeout/coarse_clock"),
                Shown::Rows(&["A-T05"]),
            ],
            "ack.tick, rto.tick with rto.fire_on_tick, rto.min of profile `bsd-reno`",
        ),
    ),
    (
        "A-M11",
        Built(
            &[Test("engine", "one_after_the_other"), Test("sim", "a_processor_is_shared_by_what_is_sent_and_received")],
            "nodes.NAME.processing",
        ),
    ),
    (
        "A-M12",
        Built(
            &[Test("sim", "a_switch_passes_packets_on_one_after_the_other")],
            "`forwarding` of a node, packet by packet; the study's scenarios have 6 us as a delay: a switch that takes 6 us for each \
             cell would pass 70.7 Mbit/s of OC-3c's 149.76, which the paper's own scenario 1 exceeds",
        ),
    ),
    (
        "A-M13",
        Built(
            &[
                Test("engine", "bit_errors_grow_with_the_length"),
                Test("engine", "cells_are_lost_by_their_bits"),
                Scenario("acts-2"),
                Scenario("acts-3"),
            ],
            "bit_error_rate on `sat`: per packet in scenarios 1 and 2, per cell of 424 bits in scenario 3",
        ),
    ),
    (
        "A-M14",
        Built(
            &[Scenario("acts-1"), Test("cli", "a_run_says_what_was_and_how_to_make_it_again")],
            "`bentpipe run acts-1`",
        ),
    ),
    (
        "A-M15",
        Built(
            &[Test("sim", "video_comes_in_frames")],
            "full rate, CBR, on and off, MPEG and FTP in the scenario language (docs/specs/netspec.md)",
        ),
    ),
    (
        "A-M16",
        Built(
            &[
                Setting("acts-3", "links.sat.forward.atm.line", "40 Mbit/s"),
                Test("sim", "an_application_keeps_to_its_rate"),
                Test("papers", "shaped_sources_share_the_load"),
                Shown::Rows(&["A-F06"]),
            ],
            "atm.line is the rate at which a host's card sends cells, paced.rate the rate at which an application writes",
        ),
    ),
    ("A-M17", Built(&[Scenario("acts-1"), Scenario("acts-2")], "")),
    ("A-M18", Built(&[Scenario("acts-3")], "")),
    ("A-M19", Seen::Rows(&["A-C15", "A-C17", "A-C18", "A-C19"])),
    ("A-M20", Seen::Rows(&["A-C25"])),
    (
        "A-M21",
        Built(
            &[Scenario("transat-cbr"), Test("sim", "sources_in_step_wait_for_each_other")],
            "type = \"udp\", constant or in turns",
        ),
    ),
    ("A-E01", Seen::Rows(&["A-T03"])),
    ("A-E02", Seen::Rows(&["A-C05", "A-C24"])),
    ("A-E03", Seen::Rows(&["A-F06"])),
    ("A-E04", Seen::Rows(&["A-C08", "A-C09"])),
    ("A-E05", Seen::Rows(&["A-F06"])),
    ("A-E06", Seen::Rows(&["A-C03"])),
    ("A-E07", Seen::Rows(&["A-C06"])),
    ("A-E08", Seen::Rows(&["A-T06/scenario 3 OC-3 congestion, full rate/simulation"])),
    ("A-E09", Ran(sweeps::error_rates)),
    ("A-E10", Ran(sweeps::variants)),
    ("A-E11", Ran(sweeps::buffers)),
    ("A-Q01", Decision("receive_buffer = \"10 MiB\", bytes = \"1 GiB\"")),
    ("A-Q02", Decision("`atm::sonet`: 3 * 51.84 Mbit/s")),
    ("A-Q03", Decision("A-C18 with 1143 segments of the MTU, A-C15 with 1148 of the MSS")),
    ("A-Q04", Decision("A-C19 has both")),
    ("A-Q05", Decision("forward and backward bit_error_rate of `sat`")),
    (
        "A-Q06",
        Decision("the links of acts-1 and acts-2 have the IP rate of table 2, so the payload has its application rate"),
    ),
    ("A-Q07", Decision("delays of acts-1 to acts-3, without the processors' part")),
    ("A-Q08", Decision("early_packet_discard = \"80 %\", partial_packet_discard = true in acts-3 and acts-5")),
    ("A-Q09", Decision("receive_buffer of acts-3 and acts-5")),
    ("A-Q10", Decision("A-T06, column error")),
    ("A-Q11", Decision("A-T04: the round trip is that of a packet of two cells")),
    ("A-Q12", Decision("the engine's windows have 16 bits and a shift up to 14 (RFC 7323)")),
    ("A-Q13", Decision("shown by A-C06")),
    ("A-Q14", Decision("the loads of A-F06")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{inventory, published::ACTS};

    #[test]
    fn each_item_of_the_paper_is_answered_for() {
        inventory::check(&ACTS, SEEN);
    }
}
