//! Where the topologies, mechanisms and experiments of the paper can be seen, and where each decision is embodied.

use super::{claims, sweeps};
use crate::inventory::Seen;

pub(super) const SEEN: &[(&str, Seen)] = &[
    ("A-N01", Seen::Works("scenarios/acts-1.toml and acts-2.toml, drawn as A-F01; round trip: A-T04")),
    ("A-N02", Seen::Works("scenarios/acts-3.toml, drawn as A-F02")),
    ("A-N03", Seen::Works("scenarios/acts-4.toml; --set links.wan.delay=\"50 us\" for the LAN")),
    ("A-N04", Seen::Works("scenarios/acts-5.toml")),
    (
        "A-N05",
        Seen::Partly(
            "as a capacity: 348 Msymbol/s are 696 Mbit/s in QPSK, of which 622.08 are the user's; bursts and beams are not \
             modelled, a channel is a line",
        ),
    ),
    ("A-N06", Seen::Rows(&["A-T01"])),
    ("A-M01", Seen::Works("`wire::llc_snap`; framing = \"aal5\"; MSS 9140 in scenarios/acts-*.toml")),
    ("A-M02", Seen::Rows(&["A-C22"])),
    ("A-M03", Seen::Works("`atm::cell`; `link::CellPort` takes the cells of the channels one by one")),
    ("A-M04", Seen::Rows(&["A-C01"])),
    ("A-M05", Seen::Works("`bentpipe model rates --line OC-3c --line OC-12c`; A-T02")),
    (
        "A-M06",
        Seen::Works(
            "atm.buffer with atm.sharing = \"per-vc\" as in the paper's simulation, or \"shared\" as in its switches",
        ),
    ),
    ("A-M07", Seen::Works("atm.early_packet_discard; A-E11")),
    ("A-M08", Seen::Works("profile `bsd-reno`")),
    ("A-M09", Seen::Works("window_scaling, on; receive_buffer 800 KiB, 10 MiB, and 34 MiB in A-E02")),
    ("A-M10", Seen::Works("ack.tick, rto.tick with rto.fire_on_tick, rto.min: profile `bsd-reno`")),
    ("A-M11", Seen::Works("nodes.NAME.processing: `link::Server`")),
    (
        "A-M12",
        Seen::Partly(
            "6 us of delay; as a server of 6 us per cell a switch would pass 70.7 Mbit/s of OC-3c's 149.76, which the \
             paper's own scenario 1 exceeds",
        ),
    ),
    (
        "A-M13",
        Seen::Works("bit_error_rate on `sat`: per packet in scenarios 1 and 2, per cell of 424 bits in scenario 3"),
    ),
    ("A-M14", Seen::Works("`bentpipe run acts-1`: a transfer and its throughput; type = \"udp\" for UDP")),
    (
        "A-M15",
        Seen::Partly(
            "the scenario language says it (docs/specs/netspec.md): full rate, CBR, on and off, FTP; MPEG is not there",
        ),
    ),
    (
        "A-M16",
        Seen::Works(
            "atm.line, the rate at which a host's card lets cells out: A-F06; paced = { rate = .. } for an application",
        ),
    ),
    ("A-M17", Seen::Works("scenarios/acts-1.toml and acts-2.toml")),
    ("A-M18", Seen::Works("scenarios/acts-3.toml")),
    ("A-M19", Seen::Rows(&["A-C15", "A-C17", "A-C18", "A-C19"])),
    ("A-M20", Seen::Rows(&["A-C25"])),
    ("A-M21", Seen::Works("type = \"udp\", constant or in turns, also over cells")),
    ("A-E01", Seen::Rows(&["A-T03"])),
    ("A-E02", Seen::Unprinted(claims::full_window)),
    ("A-E03", Seen::Rows(&["A-F06"])),
    ("A-E04", Seen::Rows(&["A-C08", "A-C09"])),
    ("A-E05", Seen::Rows(&["A-F06"])),
    ("A-E06", Seen::Rows(&["A-C03"])),
    ("A-E07", Seen::Rows(&["A-C06"])),
    ("A-E08", Seen::Rows(&["A-C07"])),
    ("A-E09", Seen::Unprinted(sweeps::error_rates)),
    ("A-E10", Seen::Unprinted(sweeps::variants)),
    ("A-E11", Seen::Unprinted(sweeps::buffers)),
    ("A-Q01", Seen::Works("receive_buffer = \"10 MiB\", bytes = \"1 GiB\"")),
    ("A-Q02", Seen::Works("`atm::sonet`: 3 * 51.84 Mbit/s")),
    ("A-Q03", Seen::Works("A-C18 with 1143 segments of the MTU, A-C15 with 1148 of the MSS")),
    ("A-Q04", Seen::Works("A-C19 says both")),
    ("A-Q05", Seen::Works("forward and backward bit_error_rate of `sat`")),
    (
        "A-Q06",
        Seen::Works("the links of acts-1 and acts-2 have the IP rate of table 2, so payload its application rate"),
    ),
    ("A-Q07", Seen::Works("delays of acts-1 to acts-3, the processors' part taken off")),
    ("A-Q08", Seen::Works("early_packet_discard = \"80 %\", partial_packet_discard = true in acts-3 and acts-5")),
    ("A-Q09", Seen::Works("receive_buffer of acts-3 and acts-5")),
    ("A-Q10", Seen::Works("A-T06, column error")),
    ("A-Q11", Seen::Works("A-T04: the round trip is that of a packet of two cells")),
    ("A-Q12", Seen::Works("the engine's windows have 16 bits and a shift up to 14 (RFC 7323)")),
    ("A-Q13", Seen::Rows(&["A-C06"])),
    ("A-Q14", Seen::Works("the loads of A-F06")),
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
