//! References for the paper's topologies, mechanisms and experiments, and the implementation of each decision.

use super::lab::{Lab, elapsed};
use super::replicated::{Pick, picked};
use super::setting::Setting;
use super::variant::Variant;
use crate::inventory::Seen::{self, Built, Decision, Ran};
use crate::inventory::Shown::{self, Scenario, Script, Setting as Set, Test};
use crate::published::TRANSAT_TABLES;
use crate::request::ReproduceError;
use bentpipe_study::stats::Sample;

pub(super) const SEEN: &[(&str, Seen)] = &[
    ("T-N01", Built(&[Scenario("transat"), Test("study", "transat_is_the_papers_world")], "drawn as T-F01")),
    ("T-N02", Built(&[Scenario("transat"), Set("transat", "links.sat.forward.queue.limit", "199 packets")], "")),
    (
        "T-N03",
        Built(
            &[Scenario("transat-bursts"), Scenario("transat-slacp"), Scenario("transat-layer")],
            "without S-LACP, with S-LACP as the paper imitates it, with S-LACP itself",
        ),
    ),
    (
        "T-N04",
        Built(&[Scenario("geo"), Scenario("geo-bursts")], "the paper's future work: an additional link, `internet`"),
    ),
    (
        "T-M01",
        Built(
            &[Test("sim", "nine_tenths_remain_under_loss"), Scenario("slacp-geo")],
            "engine::slacp, over two links by a scenario's `[[layers]]`",
        ),
    ),
    ("T-M02", Built(&[Test("engine", "persistence_is_bounded")], "`transmissions` of a channel")),
    (
        "T-M03",
        Built(
            &[Test("engine", "repairs_spare_the_round_trip"), Test("engine", "prompt_repairs_shorten_the_hold")],
            "`fec` of a channel",
        ),
    ),
    (
        "T-M04",
        Built(
            &[Test("sim", "a_call_in_its_own_channel_waits_for_nobody"), Scenario("slacp-voice")],
            "`channels` of a layer, each with its treatment; by default urgent, acks and bulk",
        ),
    ),
    (
        "T-M05",
        Built(
            &[
                Test("engine", "the_first_rule_that_fits"),
                Test("engine", "a_higher_priority_waits_for_one_frame_at_most"),
                Test("engine", "equals_share_by_weight"),
            ],
            "`match` by DSCP, protocol and port, priorities and weights",
        ),
    ),
    (
        "T-M06",
        Built(
            &[Test("engine", "another_flow_does_not_wait"), Test("engine", "whole_in_order_once")],
            "`order` per flow",
        ),
    ),
    ("T-M07", Built(&[Test("engine", "release_after_a_repair_is_paced")], "`release`")),
    ("T-M08", Seen::Parts("T-E17")),
    ("T-M09", Seen::Rows(&["T-T04", "T-T05", "T-C26"])),
    (
        "T-M10",
        Built(
            &[Script("loss/newreno_partial_ack"), Test("engine", "every_row_is_tried"), Shown::Rows(&["T-T01"])],
            "variant `ref`: column Ref",
        ),
    ),
    (
        "T-M11",
        Built(&[Script("slow_start/initial_window"), Shown::Rows(&["T-T01"])], "variant `ref-iw4`: column Ref_IW4"),
    ),
    ("T-M12", Built(&[Script("sack/pipe"), Shown::Rows(&["T-C06", "T-F07"])], "variant `sack`")),
    (
        "T-M13",
        Built(
            &[Script("sack/3517_enters_by_duplicates"), Test("engine", "ns2_pipe")],
            "variants `sack-3517` (RFC 3517) and `sack-ns2` (the paper's simulator)",
        ),
    ),
    (
        "T-M14",
        Built(
            &[Script("dsack/received"), Script("dsack/old_data")],
            "setting `dsack`; off in the paper's profile, as in its simulator",
        ),
    ),
    ("T-M15", Built(&[Script("loss/limited_transmit"), Shown::Rows(&["T-T01"])], "variant `sack-lt`: column SACK_LT")),
    (
        "T-M16",
        Built(
            &[Script("ack/daass_first_segments"), Shown::Rows(&["T-T01", "T-C24"])],
            "variant `ref-daass`: column Ref_DAASS",
        ),
    ),
    ("T-M17", Built(&[Test("engine", "every_row_is_tried"), Shown::Rows(&["T-T01"])], "variant `enh`: column Enh")),
    ("T-M18", Seen::Rows(&["T-C02", "T-C04"])),
    ("T-M19", Seen::Rows(&["T-F05", "T-C15"])),
    ("T-M20", Seen::Rows(&["T-C03", "T-C04"])),
    ("T-M21", Built(&[Scenario("transat-cbr"), Shown::Rows(&["T-T01", "T-E21"])], "rows with cbr")),
    ("T-M22", Seen::Rows(&["T-T03"])),
    ("T-M23", Seen::Rows(&["T-C26"])),
    ("T-M24", Seen::Rows(&["T-C29"])),
    ("T-M25", Seen::Rows(&["T-C32"])),
    ("T-M26", Seen::Rows(&["T-C10"])),
    (
        "T-M27",
        Built(
            &[Test("engine", "rfc6298_by_hand"), Script("timeout/coarse_clock"), Shown::Rows(&["T-C27", "T-C28"])],
            "settings `rto.*`: ns-2's clock of whole ticks, or RFC 6298 exactly",
        ),
    ),
    ("T-M28", Seen::Parts("T-M28")),
    ("T-M29", Built(&[Test("papers", "everything_has_its_row")], "T-F02 to T-F08, each as SVG and as CSV")),
    ("T-E01", Seen::Rows(&["T-C01", "T-C02"])),
    ("T-E02", Seen::Rows(&["T-C03", "T-C04", "T-C06"])),
    ("T-E03", Seen::Rows(&["T-T01"])),
    ("T-E04", Seen::Rows(&["T-T01"])),
    ("T-E05", Seen::Rows(&["T-T02"])),
    ("T-E06", Seen::Rows(&["T-T02"])),
    ("T-E07", Seen::Rows(&["T-T03"])),
    ("T-E08", Seen::Rows(&["T-T04"])),
    ("T-E09", Seen::Rows(&["T-T05"])),
    ("T-E10", Seen::Rows(&["T-T06", "T-T07", "T-T08"])),
    ("T-E11", Seen::Rows(&["T-T09", "T-T10", "T-T11"])),
    ("T-E12", Seen::Rows(&["T-T12", "T-T13", "T-T14"])),
    ("T-E13", Ran(burst_errors_elsewhere)),
    ("T-E14", Seen::Rows(&["T-C27", "T-C28"])),
    ("T-E15", Seen::Rows(&["T-C29"])),
    ("T-E16", Seen::Rows(&["T-C30", "T-C31"])),
    ("T-E17", Seen::Parts("T-E17")),
    ("T-E18", Seen::Rows(&["T-C32"])),
    ("T-E19", Seen::Rows(&["T-C10"])),
    ("T-E20", Seen::Parts("T-E20")),
    ("T-E21", Ran(cbr_sweep)),
    ("T-Q01", Decision("scenarios/transat*.toml: `bytes = \"1042 segments\"` of 960 B")),
    (
        "T-Q02",
        Decision(
            "decided otherwise: 10 ms, a SYN exchange, and time until the last byte is at H2 bring the lossless rows of \
             T-T01 within 0.5 %, where 17 ms without SYN leave 2 %",
        ),
    ),
    ("T-Q03", Decision("62 segments (tcp.window_clamp) fit T-T01 best; 64 KB are 62 to 65, and T-C02 holds")),
    (
        "T-Q04",
        Decision(
            "decided otherwise in part: a mean of 150 ms and clipping instead of truncation (scenarios/transat-bursts.toml), \
             which fit T-T03 to T-T14 better",
        ),
    ),
    (
        "T-Q05",
        Decision(
            "scenarios/transat-bursts.toml: [links.forward.bursts]; [links.backward.bursts] would add the other direction",
        ),
    ),
    ("T-Q06", Decision("as decided, but flow `cbr` of scenarios/transat-cbr.toml starts together with TCP, by search")),
    (
        "T-Q07",
        Decision(
            "thresholds 5 and 15 as decided; the weight is ns-2's automatic one (q_weight_ -1): the tables show no early \
             drops",
        ),
    ),
    ("T-Q08", Decision("shown by T-C26, T-F08")),
    (
        "T-Q09",
        Decision(
            "decided otherwise: together at t = 0 and without jitter, by search: scenarios/transat-four-flows.toml",
        ),
    ),
    ("T-Q10", Decision("docs/specs/slacp.md; with the settings of scenarios/transat-layer.toml in T-E17")),
    ("T-Q11", Decision("printing errors; rows and figures are compared by their content, T-F02 and T-T01")),
];

fn list(values: &[f64]) -> String {
    let shown: Vec<_> = values.iter().map(|v| format!("{v:.1}")).collect();
    shown.join(" / ")
}

/// One flow beside CBR, and four flows without, under burst errors: medians over the paper's number of runs.
fn burst_errors_elsewhere(lab: &crate::lab::Lab<'_>) -> Result<String, ReproduceError> {
    let lab = Lab::new(lab);
    let mut parts = Vec::new();
    for (base, what) in
        [(Setting::one_flow().with_cbr(800), "1 flow + CBR 0.8"), (Setting::four_flows(), "4 flows, no CBR")]
    {
        for variant in [Variant::Ref, Variant::Enh] {
            let mut medians = Vec::new();
            for (percent, ms) in [(100, 0), (25, 550), (1, 550)] {
                let setting = base.clone().with_variant(variant).with_bursts(percent, ms);
                let runs = lab.runs(&setting, TRANSAT_TABLES.replications as u32)?;
                let times = runs.iter().flat_map(|run| picked(run, Pick::All)).collect();
                medians.push(Sample::new(times).expect("the lab refuses unfinished runs").median());
            }
            parts.push(format!("{what}, {}: {} s", variant.name(), list(&medians)));
        }
    }
    Ok(format!(
        "not printed; medians of {} runs at PER 100 / 25 / 1 %: {}",
        TRANSAT_TABLES.replications,
        parts.join("; ")
    ))
}

/// One flow beside CBR from 0.8 to 1.7 Mbit/s.
fn cbr_sweep(lab: &crate::lab::Lab<'_>) -> Result<String, ReproduceError> {
    let lab = Lab::new(lab);
    let mut parts = Vec::new();
    for variant in [Variant::Ref, Variant::Enh] {
        let mut times = Vec::new();
        for kbps in (800..=1700).step_by(100) {
            let run = lab.single(&Setting::one_flow().with_variant(variant).with_cbr(kbps))?;
            times.push(elapsed(&run.flows[0]).expect("the lab refuses unfinished runs"));
        }
        parts.push(format!("{}: {} s", variant.name(), list(&times)));
    }
    Ok(format!("printed for 0.8 and 1.7 only; from 0.8 to 1.7 Mbit/s by 0.1: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory;
    use crate::published::TRANSAT;

    #[test]
    fn each_item_of_the_paper_is_accounted_for() {
        inventory::check(&TRANSAT, SEEN);
    }
}
