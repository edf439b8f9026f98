//! The study of Zhu, Roy and Kim: TCP splitting against end-to-end TCP over a repairing link layer.
//!
//! The paper's analysis is `bentpipe_study::model::hybrid`; this module compares it with simulations, and both with
//! the paper's claims. Its curves have no printed numbers, so a figure is judged by the claims it supports.
//!
//! Reading order: `setting` the scenarios; `measure` throughput and its interval; `sweeps` the points of each
//! figure; `traces` the windows of two connections; `arq` the link layer as the paper draws it; `claims`;
//! `extensions` variations and features that the paper only mentions; `figures`; `seen` references for the other
//! items.

mod arq;
mod claims;
mod extensions;
mod figures;
mod measure;
mod seen;
mod setting;
mod sweeps;
mod traces;

use crate::lab::Lab;
use crate::published::HYBRID;
use crate::request::{Options, Progress, ReproduceError, in_parts};
use crate::{Row, Verdict, inventory};

pub(crate) fn reproduce(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    options.check(&HYBRID)?;
    let lab = Lab::new(options, progress);
    in_parts(|rows| {
        if options.wants_table(1) {
            rows.push(parameters());
        }
        for figure in (1..=figures::COUNT).filter(|&n| options.wants_figure(n)) {
            rows.push(figures::row(&lab, figure, options.out_dir.as_deref())?);
        }
        if options.everything() {
            rows.extend(claims::rows(&lab)?);
            rows.extend(inventory::rows(&HYBRID, seen::SEEN, &lab, rows)?);
        }
        Ok(())
    })
}

/// The row of table 1: our parameters against the printed ones.
fn parameters() -> Row {
    let table = HYBRID.table(1).expect("its parameters");
    let setting = setting::Setting::new(setting::Scheme::EndToEnd, 100, 100, 250, 0.1);
    let scenario = setting.scenario();
    let mega = |link: &str| {
        let link = scenario.links.iter().find(|l| l.name == link).expect("a link of the scenario");
        link.config.rate.map_or(f64::INFINITY, |rate| rate.bits_per_second() as f64 / 1e6)
    };
    let ours = [
        ("satellite rate", mega("satellite/forward")),
        ("terrestrial rate", mega("terrestrial/forward")),
        ("TCP packet", setting::PACKET as f64),
        ("LL packets per TCP packet S", setting.path().segments()),
    ];
    let agree = ours.iter().filter(|&&(row, ours)| table.value(row, "value") == Some(ours)).count();
    let all = ours.len() as f64;
    let verdict = if agree == ours.len() { Verdict::Match } else { Verdict::Differs };
    let row = Row::new("H-T01", table.title.as_str(), Some(all), Some(agree as f64), "parameters");
    row.within(Some(all), Some(all)).judged(
        verdict,
        "rates, packet length and S of the simulated scenarios are the printed ones; the figures sweep losses, round trips \
         and α over the printed values",
    )
}
