//! The paper's figures as data and drawings: curves with 95 % intervals, and traces of single windows.

use std::path::Path;

use bentpipe_study::report::{Axis, Figure, Mark, Panel, Series, write_figure};

use super::cases::{self, Case};
use super::claims;
use super::world::{FILE, Mean, RUNS, World, packets_sent, throughputs};
use crate::lab::Lab;
use crate::published::{MINEI, PublishedFigure};
use crate::request::ReproduceError;
use crate::{Row, Verdict};
use bentpipe_study::drawing::{stack, topology};

/// Loss rates of the sweeps, percent (M-Q13).
pub(super) const LOSSES: [f64; 9] = [0.01, 0.04, 0.1, 0.2, 0.4, 1.0, 2.0, 5.0, 10.0];
/// Loss burstiness factors (M-E11).
pub(super) const FACTORS: [f64; 10] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// Senders of figures 17 and 18: display name, row of the table.
pub(super) const SENDERS: [(&str, &str); 5] = [
    ("Reno", "reno"),
    ("NewReno", "newreno-sbs"),
    ("SACK", "sack-ns2"),
    ("new", "burst"),
    ("new, congestion avoidance", "burst-ca"),
];

type Curve = (String, Vec<(f64, Mean)>);

/// Curves, with the ends of their 95 % intervals, if any.
fn panel(title: &str, x: Axis, y: Axis, curves: &[Curve]) -> Panel {
    let line = |(name, points): &Curve| Series {
        name: name.clone(),
        mark: Mark::Line,
        points: points.iter().map(|(x, mean)| (*x, mean.mean)).collect(),
    };
    let mut series: Vec<_> = curves.iter().map(line).collect();
    // One series for all intervals, so that each curve keeps its colour.
    let points = curves.iter().flat_map(|(_, points)| points).filter(|(_, mean)| mean.low < mean.mean);
    let ends: Vec<_> = points.flat_map(|(x, mean)| [(*x, mean.low), (*x, mean.high)]).collect();
    if !ends.is_empty() {
        series.push(Series { name: "95 % intervals".into(), mark: Mark::Cross, points: ends });
    }
    Panel { title: title.into(), x, y, series, spans: None }
}

/// A curve of throughput over a parameter.
fn curve(
    lab: &Lab<'_>,
    name: &str,
    xs: &[f64],
    runs: u32,
    world: impl Fn(f64) -> World,
) -> Result<Curve, ReproduceError> {
    let worlds: Vec<_> = xs.iter().map(|x| world(*x)).collect();
    let means = throughputs(lab, name, &worlds, runs)?;
    Ok((name.to_owned(), xs.iter().copied().zip(means).collect()))
}

fn kbit(title: &str, x: Axis, curves: &[Curve]) -> Panel {
    panel(title, x, Axis::new("throughput", "kbit/s"), curves)
}

fn loss_axis() -> Axis {
    Axis::new("packet loss", "%")
}

/// Packets sent and acknowledged from the window with the losses on, numbered from 1 in that window.
fn trace(lab: &Lab<'_>, title: &str, case: &Case) -> Result<Panel, ReproduceError> {
    let trace = case.run(lab)?.trace;
    let before = case.before() as f64;
    let from = trace.sent.iter().find(|sent| sent.0.1 > before).map_or(0.0, |sent| sent.0.0);
    let repaired = trace.timeouts.last().map_or(from + 5.0 * cases::RTT, |at| at + 2.0 * cases::RTT);
    let inside = |&(at, number): &(f64, f64)| {
        ((from - 0.1)..repaired).contains(&at).then_some((at, number - before)).filter(|point| point.1 >= 0.0)
    };
    let sent = |again: bool| trace.sent.iter().filter(move |sent| sent.1 == again).map(|sent| sent.0);
    let series = |name: &str, mark, points: Vec<(f64, f64)>| Series { name: name.into(), mark, points };
    let dropped = trace.queue_drops.iter();
    let timeouts = trace.timeouts.iter().map(|at| (*at, 0.0));
    let all = vec![
        series("sent", Mark::Dot, sent(false).filter_map(|p| inside(&p)).collect()),
        series("retransmitted", Mark::Ring, sent(true).filter_map(|p| inside(&p)).collect()),
        series("ACK", Mark::Step, trace.acks.iter().filter_map(inside).collect()),
        series("lost", Mark::Cross, dropped.filter_map(inside).collect()),
        series("timeout", Mark::Cross, timeouts.filter(|point| point.0 < repaired).collect()),
    ];
    Ok(Panel {
        title: title.into(),
        // Room for the legend beside the points.
        x: Axis::time().between(from - 0.1, repaired + 0.35 * (repaired - from)),
        y: Axis::new("number in the window", "packets"),
        series: all.into_iter().filter(|series| !series.points.is_empty()).collect(),
        spans: None,
    })
}

/// Time to repair a run of this many losses, in round trips.
fn recovery(lab: &Lab<'_>, name: &str, variant: &'static str) -> Result<Curve, ReproduceError> {
    let mut points = Vec::new();
    for length in 1..=15u64 {
        // The new sender's window is fixed. Only the congestion window limits the others.
        let case = match variant {
            "burst" => Case::new(variant, 32, 1..=length),
            _ => Case::unbounded(variant, 32, 1..=length),
        };
        let outcome = case.run(lab)?;
        let last = (case.before() + length) as f64;
        let (entered, repaired) = (outcome.trace.entered.first(), outcome.trace.acks.iter());
        // From the detection by duplicate ACKs until the whole run is acknowledged.
        let done = repaired.filter(|ack| ack.1 >= last).map(|ack| ack.0).next();
        if let Some((from, until)) = entered.zip(done) {
            points.push((length as f64, Mean::of(&[(until - from) / cases::RTT])));
        }
    }
    Ok((name.to_owned(), points))
}

/// The panels of a data figure.
fn panels(lab: &Lab<'_>, number: u8) -> Result<Vec<Panel>, ReproduceError> {
    let split = World::split;
    Ok(match number {
        2 => vec![trace(lab, "fast retransmit", &Case::new("reno", 8, [1]))?],
        4 => {
            let windows: Vec<f64> = (2..=16).map(|n| f64::from(8 * n)).collect();
            let mut curves = Vec::new();
            for modem in [9.6, 14.4, 19.2, 28.8, 33.6] {
                let world = |window: f64| {
                    World::direct()
                        .with("links.modem.rate", format!("{modem} kbit/s"))
                        .leg("window_clamp", format!("{window} segments"))
                };
                curves.push(curve(lab, &format!("modem {modem} kbit/s"), &windows, 1, world)?);
            }
            vec![kbit("5 MB without loss", Axis::new("window", "packets"), &curves)]
        }
        5 => {
            let sizes = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];
            let world = |mb: f64| World::direct().packets((mb * FILE as f64 / 5.0) as u64);
            vec![kbit("without loss", Axis::new("file", "MB"), &[curve(lab, "direct", &sizes, 1, world)?])]
        }
        6 => {
            let rates = [0.0, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
            let acks = |rate: f64| World::direct().with("links.modem.loss", format!("{rate} %"));
            let clean = curve(lab, "no data lost", &rates, RUNS, acks)?;
            let lossy = curve(lab, "1 % of the data lost", &rates, RUNS, |rate| acks(rate).sat_loss(1.0))?;
            vec![kbit("loss of ACKs", loss_axis(), &[clean, lossy])]
        }
        7 => {
            let world = |loss: f64| World::direct().sat_loss(loss);
            vec![kbit("loss of data", loss_axis(), &[curve(lab, "direct", &LOSSES, RUNS, world)?])]
        }
        9 => {
            let direct = |loss: f64| World::direct().with("links.internet.loss", format!("{loss} %"));
            let parted = |loss: f64| split().with("links.internet.forward.loss", format!("{loss} %"));
            let curves = [curve(lab, "direct", &LOSSES, RUNS, direct)?, curve(lab, "split", &LOSSES, RUNS, parted)?];
            vec![kbit("loss on the Internet link", loss_axis(), &curves)]
        }
        10 => {
            let direct = curve(lab, "direct", &LOSSES, RUNS, |loss| World::direct().sat_loss(loss))?;
            let parted = curve(lab, "split", &LOSSES, RUNS, |loss| split().sat_loss(loss))?;
            vec![kbit("loss on the satellite link", loss_axis(), &[direct, parted])]
        }
        11 => {
            let fast = curve(lab, "fast retransmit", &LOSSES, RUNS, |loss| split().sat_loss(loss))?;
            let world = |loss| split().sat_loss(loss).sender("reno-super-fast");
            vec![kbit("split", loss_axis(), &[fast, curve(lab, "super fast retransmit", &LOSSES, RUNS, world)?])]
        }
        12 => {
            let variable = curve(lab, "variable window", &LOSSES, RUNS, |loss| split().sat_loss(loss))?;
            let world = |loss| split().sat_loss(loss).constant();
            vec![kbit("split", loss_axis(), &[variable, curve(lab, "constant window", &LOSSES, RUNS, world)?])]
        }
        13 => vec![
            trace(lab, "Reno, W = 12, one loss", &Case::unbounded("reno", 12, [1]))?,
            trace(lab, "Reno, W = 12, two in a row", &Case::unbounded("reno", 12, [1, 2]))?,
            trace(lab, "Reno, W = 12, three in a row", &Case::unbounded("reno", 12, 1..=3))?,
        ],
        14 => vec![trace(lab, "(a) one hole", &cases::one_hole())?, trace(lab, "(b) two holes", &cases::two_holes())?],
        // The rules of the listing, one by one.
        15 => vec![
            trace(lab, "an estimate and a burst", &cases::one_hole())?,
            trace(lab, "a burst for each hole", &cases::two_holes())?,
            trace(lab, "a retransmission is lost", &cases::one_hole().losing_again(2))?,
            trace(lab, "a burst over two holes", &cases::tight_holes())?,
        ],
        16 => {
            let mut curves = Vec::new();
            for (name, variant) in [SENDERS[0], SENDERS[1], SENDERS[3]] {
                curves.push(recovery(lab, name, variant)?);
            }
            let axes = (Axis::new("losses in a row", "packets"), Axis::new("time to repair", "RTT"));
            vec![panel("W = 32", axes.0, axes.1, &curves)]
        }
        17 => {
            let mut curves = Vec::new();
            for (name, variant) in SENDERS {
                curves.push(curve(lab, name, &FACTORS, RUNS, |factor| split().bursty(1.0, factor).sender(variant))?);
            }
            // Up to the link rate, so that the legend hides no curve.
            let axes = (Axis::new("loss burstiness factor", ""), Axis::new("throughput", "kbit/s").between(0.0, 400.0));
            vec![panel("bursts begin with 1 %", axes.0, axes.1, &curves)]
        }
        18 => {
            let mut curves = Vec::new();
            for (name, variant) in SENDERS {
                let world = |factor: f64| split().packets(10_000).bursty(1.0, factor).sender(variant);
                let worlds: Vec<_> = FACTORS.iter().map(|factor| world(*factor)).collect();
                let sent = packets_sent(lab, name, &worlds)?;
                curves.push((name.to_owned(), FACTORS.iter().copied().zip(sent).collect()));
            }
            let axes = (Axis::new("loss burstiness factor", ""), Axis::new("sent for 10000 packets", "packets"));
            vec![panel("satellite leg", axes.0, axes.1, &curves)]
        }
        _ => Vec::new(),
    })
}

/// The points of a figure that the paper's text gives.
fn printed(figure: &PublishedFigure) -> Option<Series> {
    let points: Vec<_> = figure.points.iter().filter_map(|point| Some((point.x?, point.y))).collect();
    (!points.is_empty()).then(|| Series { name: "printed".into(), mark: Mark::Ring, points })
}

/// The claims that a figure supports.
const fn shown_by(number: u8) -> &'static [&'static str] {
    match number {
        2 => &["M-C23"],
        4 => &["M-C04"],
        5 => &["M-C06"],
        6 => &["M-C07", "M-C08"],
        7 => &["M-C09", "M-C10"],
        9 => &["M-C14"],
        10 => &["M-C15"],
        11 => &["M-C16", "M-C17", "M-C18"],
        12 => &["M-C19", "M-C20", "M-C21", "M-C22"],
        13 => &["M-C23", "M-C24", "M-C25"],
        14 => &["M-C28", "M-C29"],
        15 => &["M-C28", "M-C29", "M-C30", "M-C31"],
        16 => &["M-C27", "M-C33"],
        17 => &["M-C35", "M-C36", "M-C37"],
        _ => &["M-C47", "M-C48"],
    }
}

/// Draws a figure if a folder is given, and returns its row with the worst verdict of its claims.
pub(super) fn row(lab: &Lab<'_>, number: u8, folder: Option<&Path>) -> Result<Row, ReproduceError> {
    let id = format!("M-F{number:02}");
    let figure = MINEI.figure(&id).expect("eighteen figures");
    let row = Row::new(id.as_str(), figure.title.as_str(), None, None, "");
    let title = format!("{id}: {}", figure.title);
    if [1, 3, 8].contains(&number) {
        let (world, file) = match number {
            8 => (World::split(), "minei-split.toml"),
            _ => (World::direct(), "minei-direct.toml"),
        };
        if let Some(folder) = folder {
            let scenario = world.scenario();
            let drawing = if number == 1 { topology(&scenario, &title) } else { stack(&scenario, &title, &[]) };
            drawing.write(folder, &id)?;
        }
        return Ok(row.judged(Verdict::Built, format!("drawn from scenarios/{file}")));
    }
    if let Some(folder) = folder {
        let mut panels = panels(lab, number)?;
        panels[0].series.extend(printed(figure));
        // Above a single panel there is no room for the list in the title.
        let short = title.split([':', '(']).take(2).collect::<Vec<_>>().join(":");
        let title = if panels.len() == 1 { short.trim_end().to_owned() } else { title };
        write_figure(folder, &id, &Figure { title, panels })?;
    }
    let mut verdict = Verdict::Match;
    let mut parts = Vec::new();
    for claim in shown_by(number) {
        let row = claims::row(lab, claim)?;
        verdict = verdict.max(row.verdict);
        parts.push(format!("{claim} {}", row.verdict.name()));
    }
    Ok(row.judged(verdict, format!("shows {}", parts.join(", "))))
}
