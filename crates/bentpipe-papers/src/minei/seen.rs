//! References for the paper's topologies, mechanisms and experiments, and the implementation of each decision.

use crate::inventory::Seen::{self, Built, Decision};
use crate::inventory::Shown::{self, Scenario, Script, Test};

pub(super) const SEEN: &[(&str, Seen)] = &[
    ("M-N01", Built(&[Scenario("minei-direct")], "")),
    ("M-N02", Built(&[Scenario("minei-direct"), Scenario("minei-split")], "link `modem`: ACKs of 40 B at 28.8 kbit/s")),
    (
        "M-N03",
        Built(&[Scenario("minei-split"), Test("sim", "every_leg_repairs_its_own_losses")], "`split` at the uplink"),
    ),
    (
        "M-N04",
        Built(
            &[Scenario("minei-direct"), Scenario("minei-split")],
            "unlimited queues, one flow, links that keep the order",
        ),
    ),
    ("M-M01", Seen::Rows(&["M-C23", "M-C24", "M-C26"])),
    ("M-M02", Seen::Rows(&["M-C12", "M-C13"])),
    (
        "M-M03",
        Built(&[Script("timeout/restarted_by_new_acks"), Script("timeout/karn"), Script("timeout/estimator")], ""),
    ),
    ("M-M04", Built(&[Script("ack/out_of_order"), Test("engine", "it_does_what_the_twin_does")], "")),
    (
        "M-M05",
        Built(
            &[Script("loss/newreno_slow_but_steady"), Shown::Rows(&["M-C27", "M-F16"])],
            "row `newreno-sbs` of the variants",
        ),
    ),
    (
        "M-M06",
        Built(
            &[Script("sack/blocks"), Test("engine", "ns2_pipe"), Shown::Rows(&["M-F17"])],
            "row `sack-ns2`, three blocks by the profile `ns2`",
        ),
    ),
    (
        "M-M07",
        Built(
            &[
                Test("engine", "whole_in_order_and_once"),
                Test("sim", "the_slowest_leg_sets_the_pace"),
                Scenario("minei-split"),
            ],
            "",
        ),
    ),
    ("M-M08", Seen::Rows(&["M-C16", "M-C17", "M-C18"])),
    ("M-M09", Seen::Rows(&["M-C19", "M-C20"])),
    (
        "M-M10",
        Built(
            &[Test("engine", "it_does_what_the_twin_does"), Script("burst/one_hole"), Script("burst/two_holes")],
            "row `burst`, checked against a literal twin",
        ),
    ),
    ("M-M11", Built(&[Script("burst/congestion_avoidance")], "row `burst-ca`")),
    ("M-M12", Seen::Rows(&["M-C28", "M-C29"])),
    ("M-M13", Seen::Rows(&["M-C29", "M-C30"])),
    ("M-M14", Seen::Rows(&["M-C50", "M-C32"])),
    ("M-M15", Seen::Rows(&["M-C07", "M-C10", "M-C14"])),
    (
        "M-M16",
        Built(
            &[Test("engine", "after_a_loss_another_is_as_likely_as_the_factor_says")],
            "`packet_bursts` with `burstiness` and `max`",
        ),
    ),
    ("M-M17", Built(&[Test("engine", "runs_have_exactly_their_length")], "`packet_bursts` with `length`")),
    (
        "M-M18",
        Built(&[Scenario("minei-direct"), Scenario("minei-split")], "472 B of data and 40 B of headers; ACKs of 40 B"),
    ),
    (
        "M-M19",
        Built(
            &[Test("sim", "every_leg_repairs_its_own_losses"), Shown::Rows(&["M-F18"])],
            "segments of each leg in the summary of a run",
        ),
    ),
    ("M-M20", Seen::Rows(&["M-C23", "M-C24", "M-C25"])),
    ("M-E01", Seen::Rows(&["M-F04"])),
    ("M-E02", Seen::Rows(&["M-F05"])),
    ("M-E03", Seen::Rows(&["M-F06"])),
    ("M-E04", Seen::Rows(&["M-F07"])),
    ("M-E05", Seen::Rows(&["M-F09"])),
    ("M-E06", Seen::Rows(&["M-F10"])),
    ("M-E07", Seen::Rows(&["M-F11"])),
    ("M-E08", Seen::Rows(&["M-F12"])),
    ("M-E09", Seen::Rows(&["M-F13"])),
    ("M-E10", Seen::Rows(&["M-F14", "M-C30", "M-C31"])),
    ("M-E11", Seen::Rows(&["M-F17"])),
    ("M-E12", Seen::Rows(&["M-C38", "M-C39", "M-C40", "M-C41", "M-C42"])),
    ("M-E13", Seen::Rows(&["M-C44", "M-C45", "M-C46"])),
    ("M-E14", Seen::Rows(&["M-F18"])),
    ("M-E15", Seen::Rows(&["M-F16", "M-C33"])),
    ("M-Q01", Decision("mss 472 B in both scenarios; throughput counts 512 B per packet")),
    ("M-Q02", Decision("`bytes = \"10240 segments\"` in both scenarios")),
    ("M-Q03", Decision("delays of both scenarios; M-C13 takes 290 ms")),
    ("M-Q04", Decision("`rto = { tick = \"500 ms\", bsd = true, min = \"1 s\" }` in both scenarios: M-C12, M-C13")),
    ("M-Q05", Decision("shown by M-C33")),
    ("M-Q06", Decision("`burst.guard = \"credit\"` is the default: M-C50")),
    ("M-Q07", Decision("docs/specs/minei.md; M-C32")),
    ("M-Q08", Decision("`burst.first_repeats = 2` is the default, `burst.in_burst_skip` an option: M-C30, M-C31")),
    ("M-Q09", Decision("the default; `timeout_repair = \"oldest\"` is the other reading: M-C21, M-C22")),
    ("M-Q10", Decision("base rate 1 %, at most 0.9; other base rates are in M-C35 to M-C40")),
    ("M-Q11", Decision("0.5 %; other probabilities are in M-C44 to M-C46")),
    ("M-Q12", Decision("the curves of M-F04; windows from 8 to 64 KB")),
    ("M-Q13", Decision("the abscissae of M-F07 to M-F12")),
    ("M-Q14", Decision("initial_window and ack of both scenarios")),
];
