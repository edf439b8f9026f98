//! What the paper contains besides numbers: its topologies, mechanisms and experiments, and where each can be seen.

use super::lab::{Lab, elapsed};
use super::replicated::{Pick, picked};
use super::setting::{Setting, Variant};
use crate::published::TRANSAT;
use crate::reproduce::ReproduceError;
use crate::{Row, Verdict};
use bentpipe_study::stats::Sample;

/// Where something can be seen.
enum Seen {
    /// It works; the words say where.
    Works(&'static str),
    /// It is there in part.
    Partly(&'static str),
    /// It is not there.
    Missing(&'static str),
    /// These rows show it; it fares as the worst of them.
    Rows(&'static [&'static str]),
    /// Runs that the paper mentions without printing their numbers.
    Unprinted(fn(&Lab<'_>) -> Result<String, ReproduceError>),
}

const IMITATED: &str = "not built yet: the link protocol's effect is imitated as in the paper (T-M09)";

const SEEN: &[(&str, Seen)] = &[
    ("T-N01", Seen::Works("scenarios/transat.toml, drawn as T-F01")),
    ("T-N02", Seen::Works("scenarios/transat.toml; --set links.sat.forward.queue.limit=\"199 packets\"")),
    (
        "T-N03",
        Seen::Partly("scenarios/transat-bursts.toml without, transat-slacp.toml with S-LACP as the paper imitates it"),
    ),
    ("T-N04", Seen::Missing("the paper names it as future work; a link more in a scenario would do")),
    ("T-M01", Seen::Missing(IMITATED)),
    ("T-M02", Seen::Missing(IMITATED)),
    ("T-M03", Seen::Missing(IMITATED)),
    ("T-M04", Seen::Missing(IMITATED)),
    ("T-M05", Seen::Missing(IMITATED)),
    ("T-M06", Seen::Partly("the imitation keeps the order of packets: T-C26")),
    ("T-M07", Seen::Missing(IMITATED)),
    ("T-M08", Seen::Partly("as 1, 2 and 3 extra round trips: T-C27, T-C28, T-C34")),
    ("T-M09", Seen::Rows(&["T-T04", "T-T05", "T-C26"])),
    ("T-M10", Seen::Works("variant `ref`: T-T01, column Ref")),
    ("T-M11", Seen::Works("variant `ref-iw4`: T-T01, column Ref_IW4")),
    ("T-M12", Seen::Works("variant `sack`: T-C06, T-F07")),
    ("T-M13", Seen::Works("variants `sack-3517` (RFC 3517) and `sack-ns2` (the paper's simulator)")),
    ("T-M14", Seen::Works("setting `dsack`; off in the paper's profile, as in its simulator")),
    ("T-M15", Seen::Works("variant `sack-lt`: T-T01, column SACK_LT")),
    ("T-M16", Seen::Works("variant `ref-daass`: T-T01, column Ref_DAASS; T-C24")),
    ("T-M17", Seen::Works("variant `enh`: T-T01, column Enh")),
    ("T-M18", Seen::Rows(&["T-C02", "T-C04"])),
    ("T-M19", Seen::Rows(&["T-F05", "T-C15"])),
    ("T-M20", Seen::Rows(&["T-C03", "T-C04"])),
    ("T-M21", Seen::Works("scenarios/transat-cbr.toml: T-T01, rows with cbr; T-E21")),
    ("T-M22", Seen::Rows(&["T-T03"])),
    ("T-M23", Seen::Rows(&["T-C26"])),
    ("T-M24", Seen::Rows(&["T-C29"])),
    ("T-M25", Seen::Rows(&["T-C32"])),
    ("T-M26", Seen::Rows(&["T-C10"])),
    ("T-M27", Seen::Works("settings `rto.*`: ns-2's clock of whole ticks, or RFC 6298 exactly; T-C27, T-C28")),
    ("T-M28", Seen::Rows(&["T-T03"])),
    ("T-M29", Seen::Works("T-F02 to T-F08, each as SVG and as CSV")),
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
    ("T-E13", Seen::Unprinted(burst_errors_elsewhere)),
    ("T-E14", Seen::Rows(&["T-C27", "T-C28"])),
    ("T-E15", Seen::Rows(&["T-C29"])),
    ("T-E16", Seen::Rows(&["T-C30", "T-C31"])),
    ("T-E17", Seen::Missing(IMITATED)),
    ("T-E18", Seen::Rows(&["T-C32"])),
    ("T-E19", Seen::Rows(&["T-C10"])),
    ("T-E20", Seen::Missing(IMITATED)),
    ("T-E21", Seen::Unprinted(cbr_sweep)),
];

fn list(values: &[f64]) -> String {
    let shown: Vec<_> = values.iter().map(|v| format!("{v:.1}")).collect();
    shown.join(" / ")
}

/// One flow beside CBR, and four flows without, under burst errors: medians over the paper's number of runs.
fn burst_errors_elsewhere(lab: &Lab<'_>) -> Result<String, ReproduceError> {
    let mut parts = Vec::new();
    for (base, what) in
        [(Setting::one_flow().with_cbr(800), "1 flow + CBR 0.8"), (Setting::four_flows(), "4 flows, no CBR")]
    {
        for variant in [Variant::Ref, Variant::Enh] {
            let mut medians = Vec::new();
            for (percent, ms) in [(100, 0), (25, 550), (1, 550)] {
                let setting = base.clone().with_variant(variant).with_bursts(percent, ms);
                let runs = lab.runs(&setting, TRANSAT.replications as u32)?;
                let times = runs.iter().flat_map(|run| picked(run, Pick::All)).collect();
                medians.push(Sample::new(times).expect("the lab refuses unfinished runs").median());
            }
            parts.push(format!("{what}, {}: {} s", variant.name(), list(&medians)));
        }
    }
    Ok(format!("not printed; medians of {} runs at PER 100 / 25 / 1 %: {}", TRANSAT.replications, parts.join("; ")))
}

/// One flow beside CBR from 0.8 to 1.7 Mbit/s.
fn cbr_sweep(lab: &Lab<'_>) -> Result<String, ReproduceError> {
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

/// A row for each item; `others` are the rows of tables, figures and claims.
pub(super) fn rows(lab: &Lab<'_>, others: &[Row]) -> Result<Vec<Row>, ReproduceError> {
    let verdict_of = |id: &str| others.iter().find(|row| row.id == id).expect("SEEN names rows that exist").verdict;
    let mut rows = Vec::new();
    for (item, (id, seen)) in TRANSAT.items.iter().zip(SEEN) {
        debug_assert_eq!(item.id, *id, "the tests hold both lists to each other");
        let (verdict, why) = match seen {
            Seen::Works(at) => (Verdict::Match, (*at).to_owned()),
            Seen::Partly(what) => (Verdict::Shape, (*what).to_owned()),
            Seen::Missing(why) => (Verdict::Differs, (*why).to_owned()),
            Seen::Rows(ids) => {
                let worst = ids.iter().map(|id| verdict_of(id)).max().unwrap_or(Verdict::Differs);
                (worst, format!("shown by {}", ids.join(", ")))
            }
            Seen::Unprinted(runs) => (Verdict::Match, runs(lab)?),
        };
        let text = item.detail.as_ref().map_or(item.text.clone(), |detail| format!("{}; {detail}", item.text));
        rows.push(Row::new(*id, text, None, None, "").judged(verdict, why));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_of_the_paper_is_accounted_for() {
        let items: Vec<_> = TRANSAT.items.iter().map(|item| item.id.as_str()).collect();
        let seen: Vec<_> = SEEN.iter().map(|(id, _)| *id).collect();
        assert_eq!(items, seen);
    }
}
