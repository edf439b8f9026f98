//! The paper's figures as data and drawings, and rows for numbers read from them.

use std::path::Path;

use bentpipe_study::report::{Axis, Figure, Mark, Panel, Series, Span, write_figure};

use super::claims;
use super::forced::{Burst, burst_on_packets};
use super::lab::{Lab, elapsed};
use super::record::{FlowTrace, Recorder};
use super::setting::Setting;
use super::single;
use super::variant::Variant;
use crate::published::{PublishedFigure, TRANSAT};
use crate::request::ReproduceError;
use crate::{Row, Verdict};
use bentpipe_study::drawing;

/// Number of figures in the paper.
pub(super) const COUNT: u8 = 8;

fn series(name: &str, mark: Mark, points: impl Iterator<Item = (f64, f64)>) -> Series {
    Series { name: name.into(), mark, points: points.collect() }
}

/// The sequence numbers of one flow over time.
fn sequence_panel(title: &str, trace: &Recorder, flow: usize, until: Option<f64>, receiver: bool) -> Panel {
    let data = &trace.flows[flow];
    let end = until.unwrap_or_else(|| data.acks.last().map_or(1.0, |p| p.0));
    let before = |p: &(f64, f64)| p.0 <= end;
    let mut all = vec![series("sent", Mark::Dot, data.sent.iter().map(|s| s.0).filter(before))];
    if receiver {
        all.push(series("received at H2", Mark::Dot, data.received.iter().copied().filter(before)));
    }
    all.push(series("ACK at H1", Mark::Step, data.acks.iter().copied().filter(before)));
    let drops = || data.queue_drops.iter().chain(&data.channel_drops).copied().filter(before);
    if drops().next().is_some() {
        all.push(series("lost", Mark::Cross, drops()));
    }
    let bursts: Vec<_> = trace.bursts_until(end).iter().map(|&(from, to)| Span { from, to }).collect();
    let mut x = Axis::time();
    if let Some(until) = until {
        x = x.between(0.0, until);
    }
    Panel {
        title: title.into(),
        x,
        y: Axis::new("sequence number", "packets"),
        series: all,
        spans: (!bursts.is_empty()).then(|| ("error burst".into(), bursts)),
    }
}

fn panel_of(lab: &Lab<'_>, setting: Setting, title: &str, until: Option<f64>) -> Result<Panel, ReproduceError> {
    let (_, trace) = lab.traced(&setting)?;
    Ok(sequence_panel(title, &trace, 0, until, false))
}

fn fastest_and_slowest(lab: &Lab<'_>, variant: Variant) -> Result<Panel, ReproduceError> {
    let (setting, _) = single::plan(2, "fastest-on").expect("a row of the table");
    let (result, trace) = lab.traced(&setting.with_variant(variant))?;
    let mut order: Vec<_> = (0..result.flows.len()).filter_map(|n| Some((elapsed(&result.flows[n])?, n))).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let sent = |flow: &FlowTrace| flow.sent.iter().map(|s| s.0).collect::<Vec<_>>();
    let curve = |name: &str, n: usize| Series { name: name.into(), mark: Mark::Dot, points: sent(&trace.flows[n]) };
    let (fastest, slowest) = (order.first().expect("four flows").1, order.last().expect("four flows").1);
    Ok(Panel {
        title: variant.name().into(),
        x: Axis::time(),
        y: Axis::new("sequence number", "packets"),
        series: vec![curve("fastest flow", fastest), curve("slowest flow", slowest)],
        spans: None,
    })
}

fn queue_panel(lab: &Lab<'_>, variant: Variant) -> Result<Panel, ReproduceError> {
    let (setting, _) = single::plan(2, "fastest-on").expect("a row of the table");
    let (_, trace) = lab.traced(&setting.with_variant(variant))?;
    let instant = trace.queue.iter().map(|q| (q.at, f64::from(q.packets)));
    let average = trace.queue.iter().filter_map(|q| Some((q.at, q.average?)));
    let end = trace.queue.last().map_or(1.0, |q| q.at);
    let threshold = [(0.0, Setting::RED_MIN_THRESHOLD), (end, Setting::RED_MIN_THRESHOLD)];
    Ok(Panel {
        title: format!("{}, four flows without CBR", variant.name()),
        x: Axis::time(),
        y: Axis::new("queue", "packets"),
        series: vec![
            series("seen by arriving packets", Mark::Dot, instant),
            series("average", Mark::Line, average),
            series("minimum threshold", Mark::Line, threshold.into_iter()),
        ],
        spans: None,
    })
}

/// The panels of figure `number`, from 2.
fn panels(lab: &Lab<'_>, number: u8, figure: &PublishedFigure) -> Result<Vec<Panel>, ReproduceError> {
    let one = |variant| Setting::one_flow().with_variant(variant);
    Ok(match number {
        2 => vec![
            panel_of(lab, one(Variant::Ref), "(a) Reference", None)?,
            panel_of(lab, one(Variant::Enh), "(b) Enhanced", None)?,
        ],
        3 => vec![
            panel_of(lab, one(Variant::Ref).with_cbr(800), "(a) Reference + CBR 0.8 Mbit/s", None)?,
            panel_of(lab, one(Variant::Ref).with_cbr(1700), "(b) Reference + CBR 1.7 Mbit/s", None)?,
        ],
        4 => vec![fastest_and_slowest(lab, Variant::Ref)?, fastest_and_slowest(lab, Variant::Enh)?],
        5 => vec![queue_panel(lab, Variant::RefRed)?, queue_panel(lab, Variant::EnhRed)?],
        6 => vec![
            panel_of(lab, one(Variant::Ref), "Reference", Some(4.0))?,
            panel_of(lab, one(Variant::Enh), "Enhanced", Some(4.0))?,
        ],
        7 => {
            let loses = |variant| burst_on_packets(lab, figure, variant, Burst::Loses);
            vec![
                panel_of(lab, loses(Variant::Ref)?, "(a) Reference", Some(9.0))?,
                panel_of(lab, loses(Variant::Sack)?, "(b) SACK", Some(9.0))?,
            ]
        }
        _ => {
            let delayed = burst_on_packets(lab, figure, Variant::Ref, Burst::Delays)?;
            let (_, ideal) = lab.traced(&delayed.clone().without_bursts())?;
            let (_, delayed) = lab.traced(&delayed)?;
            vec![
                sequence_panel("(a) no errors", &ideal, 0, Some(6.0), true),
                sequence_panel("(b) S-LACP: one round trip later", &delayed, 0, Some(6.0), true),
            ]
        }
    })
}

/// The claim that a figure supports.
const fn shown_by(number: u8) -> &'static str {
    match number {
        2 => "T-C06",
        3 => "T-C09",
        4 => "T-C13",
        5 => "T-C15",
        6 => "T-C24",
        7 => "T-C25",
        _ => "T-C26",
    }
}

/// Draws figure `number` if a folder is given, and returns its row.
pub(super) fn row(lab: &Lab<'_>, number: u8, folder: Option<&Path>) -> Result<Row, ReproduceError> {
    let id = format!("T-F{number:02}");
    let figure = TRANSAT.figure(&id).expect("eight figures");
    if number == 1 {
        let scenario = Setting::four_flows().with_cbr(800).scenario();
        if let Some(folder) = folder {
            drawing::topology(&scenario, &format!("{id}: {}", figure.title)).write(folder, &id)?;
        }
        let row = Row::new(id, figure.title.as_str(), None, None, "");
        return Ok(row.judged(Verdict::Built, "drawn from the scenario of the tables"));
    }
    if let Some(folder) = folder {
        let drawn = Figure { title: format!("{id}: {}", figure.title), panels: panels(lab, number, figure)? };
        write_figure(folder, &id, &drawn)?;
    }
    let claim = claims::claim(lab, shown_by(number))?;
    let mut row = Row::new(id, figure.title.as_str(), None, None, "");
    if let Some(printed) = figure.value("burst_start_s") {
        // The burst hits the packets that the figure names; its time follows from our run.
        let variant = Variant::Ref;
        let kind = if number == 7 { Burst::Loses } else { Burst::Delays };
        let setting = burst_on_packets(lab, figure, variant, kind)?;
        let (_, trace) = lab.traced(&setting)?;
        let start = trace.bursts_until(f64::INFINITY).first().map(|b| b.0);
        row = Row::new(row.id, format!("{}; start of the burst", figure.title), Some(printed), start, "s");
    }
    let why = format!("shows {}: {}", claim.id, claim.why);
    // The printed start is read from an axis and depends on the access delay, so it is accurate to one round trip.
    let placed = row.paper.zip(row.ours).is_none_or(|(paper, ours)| (paper - ours).abs() <= Setting::BASE_RTT);
    let verdict = if placed { claim.verdict } else { claim.verdict.max(Verdict::Shape) };
    Ok(row.judged(verdict, why))
}
