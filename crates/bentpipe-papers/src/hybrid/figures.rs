//! The paper's figures as data and drawings: curves of the model, points of the simulation with their confidence
//! intervals, and a row with the verdict.

use std::path::Path as Folder;

use bentpipe_study::model::hybrid::fading::Bounds;
use bentpipe_study::model::hybrid::splitting::Split;
use bentpipe_study::model::hybrid::throughput::EndToEnd;
use bentpipe_study::report::{Axis, Figure, Mark, Panel, Series, write_figure};

use super::measure::{Measured, model};
use super::setting::{Scheme, Setting};
use super::sweeps::{self, simulate};
use super::traces;
use super::{arq, claims};
use crate::lab::Lab;
use crate::published::{HYBRID, PublishedFigure};
use crate::request::ReproduceError;
use crate::{Row, Verdict};
use bentpipe_study::drawing;

/// Number of figures in the paper.
pub(super) const COUNT: u8 = 16;

/// Throughput axis of all figures.
fn throughput() -> Axis {
    Axis::new("throughput", "share of the link's rate").between(0.0, 1.0)
}

fn line(name: String, points: impl Iterator<Item = (f64, f64)>) -> Series {
    Series { name, mark: Mark::Line, points: points.collect() }
}

/// Simulated points, with the ends of their intervals as dots.
fn simulated<'a>(
    name: &str,
    points: impl Iterator<Item = &'a Measured> + Clone,
    x: impl Fn(&Setting) -> f64,
) -> [Series; 2] {
    let mean = points.clone().map(|p| (x(&p.setting), p.per_mu)).collect();
    let ends = points.flat_map(|p| [-1.0, 1.0].map(|side| (x(&p.setting), p.per_mu + side * p.half))).collect();
    [
        Series { name: format!("{name}, simulated"), mark: Mark::Cross, points: mean },
        Series { name: format!("{name}, 95 % interval"), mark: Mark::Dot, points: ends },
    ]
}

/// Values from `first` to `last`, inclusive.
fn steps(first: f64, last: f64, count: u32) -> impl Iterator<Item = f64> {
    (0..=count).map(move |n| first + (last - first) * f64::from(n) / f64::from(count))
}

/// The model's curve and the simulated points for each group of settings that differ only in `x`.
fn compared(
    measured: &[Measured],
    x: impl Fn(&Setting) -> f64 + Copy,
    group: impl Fn(&Setting) -> String,
    curve: impl Fn(&Setting) -> Option<Vec<(f64, f64)>>,
) -> Vec<Series> {
    let mut series = Vec::new();
    for chunk in measured.chunk_by(|a, b| group(&a.setting) == group(&b.setting)) {
        let first = &chunk[0].setting;
        let name = group(first);
        series.extend(curve(first).map(|points| line(format!("{name}, model"), points.into_iter())));
        series.extend(simulated(&name, chunk.iter(), x));
    }
    series
}

/// The model's curve: `at` returns the path for a value of x. Points where the model is undefined are omitted.
fn along(
    scheme: Scheme,
    values: impl Iterator<Item = f64>,
    at: impl Fn(f64) -> Option<bentpipe_study::model::hybrid::Path>,
) -> Option<Vec<(f64, f64)>> {
    let value = |x: f64| {
        let path = at(x)?;
        let y = match scheme {
            Scheme::EndToEnd => EndToEnd::new(&path).ok()?.per_mu,
            Scheme::Split => Split::new(&path).per_mu,
        };
        Some((x, y))
    };
    Some(values.filter_map(value).collect())
}

fn panel(title: &str, x: Axis, series: Vec<Series>) -> Panel {
    Panel { title: title.into(), x, y: throughput(), series, spans: None }
}

fn by_loss(lab: &Lab<'_>, number: u8, title: &str) -> Result<Vec<Panel>, ReproduceError> {
    let measured = simulate(lab, number)?;
    let x = |s: &Setting| s.loss;
    let t2 = |s: &Setting| s.t2_us as f64 / 1e3;
    let panels = measured.chunk_by(|a, b| a.setting.buffer == b.setting.buffer).map(|part| {
        let group = |s: &Setting| format!("T2 = {} ms", t2(s));
        let curve = |s: &Setting| {
            let s = *s;
            along(s.scheme, steps(0.1, 0.5, 40), move |loss| Some(Setting { loss, ..s }.path()))
        };
        let series = compared(part, x, group, curve);
        panel(&format!("{title}, B = {} packets", part[0].setting.buffer), Axis::new("loss probability p", ""), series)
    });
    Ok(panels.collect())
}

fn by_round_trip(lab: &Lab<'_>, number: u8) -> Result<Vec<Panel>, ReproduceError> {
    let satellite = number == 7;
    let measured = simulate(lab, number)?;
    let x = move |s: &Setting| if satellite { s.t2_us } else { s.t1_us } as f64 / 1e3;
    let curve = |s: &Setting| {
        let s = *s;
        let at = move |ms: f64| {
            let us = (ms * 1e3) as u64;
            Some(if satellite { Setting { t2_us: us, ..s } } else { Setting { t1_us: us, ..s } }.path())
        };
        along(s.scheme, steps(50.0, 600.0, 55), at)
    };
    let series = compared(&measured, x, |s| format!("p = {}", s.loss), curve);
    let (axis, title) = if satellite { ("T2", "T1 = 100 ms") } else { ("T1", "T2 = 100 ms") };
    Ok(vec![panel(&format!("{title}, B = {} packets", sweeps::BUFFER), Axis::new(axis, "ms"), series)])
}

fn by_buffer(lab: &Lab<'_>, number: u8) -> Result<Vec<Panel>, ReproduceError> {
    let measured = simulate(lab, number)?;
    let max = if number == 9 { 200.0 } else { 300.0 };
    let curve = |s: &Setting| {
        let s = *s;
        along(s.scheme, steps(5.0, max, 59), move |buffer| s.path().with_buffer(buffer).ok())
    };
    let group = |s: &Setting| match number {
        9 => format!("p = {}", s.loss),
        _ => format!("T2 = {} ms", s.t2_us / 1000),
    };
    let series = compared(&measured, |s| f64::from(s.buffer), group, curve);
    let title = if number == 9 { "end to end, T1 = T2 = 100 ms" } else { "split, T1 = 100 ms, p = 0.1" };
    Ok(vec![panel(title, Axis::new("buffer B", "packets"), series)])
}

/// Figure 12: one panel per α.
fn by_normalised_buffer(lab: &Lab<'_>) -> Result<Vec<Panel>, ReproduceError> {
    let measured = simulate(lab, 12)?;
    let panel_of = |alpha: f64| {
        let stretch = 1.0 + 2.0 * alpha;
        let base = Setting::new(Scheme::EndToEnd, 100, 0, 100, 0.1).path().with_alpha(alpha).expect("a ratio");
        let at = move |x: f64| base.with_beta(x * stretch).ok();
        let x = move |s: &Setting| s.path().beta() / stretch;
        let mut series = Vec::new();
        for scheme in [Scheme::EndToEnd, Scheme::Split] {
            let curve = along(scheme, steps(0.02, 1.2, 59), at).expect("some points");
            series.push(line(format!("{}, model", scheme.name()), curve.into_iter()));
            let near = |s: &Setting| (s.path().alpha() - alpha).abs() < 0.01 * alpha;
            let points = measured.iter().filter(|p| p.setting.scheme == scheme && near(&p.setting));
            series.extend(simulated(scheme.name(), points, x));
        }
        panel(&format!("α = {alpha}"), Axis::new("normalised buffer β/(1+2α)", ""), series)
    };
    Ok(sweeps::ALPHAS.map(panel_of).into())
}

fn by_transmissions(lab: &Lab<'_>) -> Result<Vec<Panel>, ReproduceError> {
    let measured = simulate(lab, 13)?;
    let x = |s: &Setting| f64::from(s.transmissions.unwrap_or(0));
    let curve = |s: &Setting| Some(vec![(1.0, model(s)), (20.0, model(s))]);
    let series = compared(&measured, x, |s| format!("p = {}", s.loss), curve);
    let title = "T1 = T2 = 100 ms; the model is fully reliable";
    Ok(vec![panel(title, Axis::new("max transmissions per packet", ""), series)])
}

fn by_fading(lab: &Lab<'_>) -> Result<Vec<Panel>, ReproduceError> {
    let measured = simulate(lab, 14)?;
    // Rates span three decades, so the axis is logarithmic.
    let x = |s: &Setting| s.fading.unwrap_or(1.0).log10();
    let ends = [sweeps::FADING_RATES[0].log10(), sweeps::FADING_RATES[6].log10()];
    let bounds = Bounds::new(&measured[0].setting.path()).expect("in range");
    let level = |name: &str, y: f64| line(name.into(), ends.into_iter().map(move |x| (x, y)));
    let mut series = compared(&measured, x, |s| s.scheme.name().into(), |_| None);
    series.push(level("end to end, upper bound (ν = 0)", bounds.end_to_end_upper));
    series.push(level("end to end, independent losses", bounds.end_to_end_independent));
    series.push(level("split, upper bound", bounds.split_upper));
    let title = format!("X = {}, T1 = 100 ms, T2 = 250 ms, B = {}", sweeps::SHARE, sweeps::BUFFER);
    Ok(vec![panel(&title, Axis::new("log10 of the fading rate f", "per s"), series)])
}

fn by_connections(lab: &Lab<'_>) -> Result<Vec<Panel>, ReproduceError> {
    let measured = simulate(lab, 15)?;
    let x = |s: &Setting| f64::from(s.connections);
    let panels = measured.chunk_by(|a, b| a.setting.scheme == b.setting.scheme).zip(["(a)", "(b)"]);
    let panels = panels.map(|(part, letter)| {
        let curve = |s: &Setting| Some(vec![(1.0, model(s)), (20.0, model(s))]);
        let series = compared(part, x, |s| format!("B = {}", s.buffer), curve);
        let title = format!("{letter} {}, T1 = T2 = 100 ms, p = 0.1", part[0].setting.scheme.name());
        panel(&title, Axis::new("connections", ""), series)
    });
    Ok(panels.collect())
}

fn windows(lab: &Lab<'_>) -> Result<Vec<Panel>, ReproduceError> {
    let seen = traces::watch(lab)?;
    let mut series: Vec<_> = seen
        .windows
        .iter()
        .zip(["TCP 1", "TCP 2"])
        .map(|(points, name)| Series { name: name.into(), mark: Mark::Step, points: points.clone() })
        .collect();
    let top = seen.windows.iter().flatten().map(|p| p.1).fold(0.0, f64::max);
    for (name, both) in [("A: overflow hits both", true), ("B: overflow hits one", false)] {
        let hits = seen.overflows().into_iter().filter(|(.., hit)| (hit[0] && hit[1]) == both);
        series.push(Series { name: name.into(), mark: Mark::Cross, points: hits.map(|o| (o.0, top)).collect() });
    }
    Ok(vec![Panel {
        title: "end to end, B = 100 packets, T1 = T2 = 100 ms, p = 0.1".into(),
        x: Axis::time(),
        // Room for the legend above the overflows.
        y: Axis::new("congestion window", "packets").between(0.0, 1.4 * top),
        series,
        spans: None,
    }])
}

fn panels(lab: &Lab<'_>, number: u8) -> Result<Vec<Panel>, ReproduceError> {
    match number {
        6 => by_loss(lab, 6, "end to end, T1 = 100 ms"),
        7 | 8 => by_round_trip(lab, number),
        9 | 10 => by_buffer(lab, number),
        11 => by_loss(lab, 11, "split, T1 = 100 ms"),
        12 => by_normalised_buffer(lab),
        13 => by_transmissions(lab),
        14 => by_fading(lab),
        15 => by_connections(lab),
        _ => windows(lab),
    }
}

/// The claims that a figure supports. The figure has the worst of their verdicts.
const fn shown_by(number: u8) -> &'static [&'static str] {
    match number {
        6 => &["H-C01"],
        7 | 8 => &["H-C01", "H-C02"],
        9 => &["H-C01", "H-C03"],
        10 => &["H-C04"],
        11 => &["H-C05"],
        12 => &["H-C06"],
        13 => &["H-C10"],
        14 => &["H-C11", "H-C12"],
        15 => &["H-C13", "H-C14", "H-C15", "H-C21"],
        _ => &["H-C16"],
    }
}

/// The source of a figure without data.
const fn drawn_by(number: u8) -> &'static str {
    match number {
        1 => "drawn from the splitting scenario: TCP ends at `gateway`; end to end the same nodes and links",
        2 => "drawn from the end-to-end scenario: buffer B at `gateway`, T1 and T2 the round trips of the two links",
        3 => {
            "drawn from a run of figure 6's setting: a window at the source, the gateway, the destination, and its ACKs"
        }
        4 => {
            "drawn from figure 6's setting with the counts of a run: engine::slacp and engine::arq implement the system; they \
             hold copies until the report and send lost packets first"
        }
        _ => {
            "drawn from figure 6's setting with model::hybrid::queueing beside the counts of a run: packets wait in q1 for a \
             full pipe, in q2 for the rest of their burst"
        }
    }
}

/// Figures 1 to 5, which show structures.
fn drawing(lab: &Lab<'_>, number: u8, figure: &PublishedFigure, folder: &Folder) -> Result<(), ReproduceError> {
    let title = format!("{}: {}", figure.id, figure.title);
    let drawing = match number {
        1 | 2 => {
            let scheme = if number == 1 { Scheme::Split } else { Scheme::EndToEnd };
            drawing::topology(&Setting::new(scheme, sweeps::BUFFER, 100, 250, 0.1).scenario(), &title)
        }
        3 => {
            write_figure(folder, &figure.id, &Figure { title, panels: arq::window(lab)? })?;
            return Ok(());
        }
        4 => arq::pipe(lab, &title)?,
        _ => arq::servers(lab, &title)?,
    };
    drawing.write(folder, &figure.id)?;
    Ok(())
}

/// Draws figure `number` if a folder is given, and returns its row.
pub(super) fn row(lab: &Lab<'_>, number: u8, folder: Option<&Folder>) -> Result<Row, ReproduceError> {
    let id = format!("H-F{number:02}");
    let figure = HYBRID.figure(&id).expect("sixteen figures");
    let row = Row::new(&id, figure.title.as_str(), None, None, "");
    if number <= 5 {
        if let Some(folder) = folder {
            drawing(lab, number, figure, folder)?;
        }
        return Ok(row.judged(Verdict::Built, drawn_by(number)));
    }
    if let Some(folder) = folder {
        let drawn = Figure { title: format!("{id}: {}", figure.title), panels: panels(lab, number)? };
        write_figure(folder, &id, &drawn)?;
    }
    let claims = shown_by(number).iter().map(|id| claims::row(lab, id)).collect::<Result<Vec<_>, _>>()?;
    let verdict = claims.iter().map(|claim| claim.verdict).max().expect("each shows a claim");
    let why: Vec<_> = claims.iter().map(|claim| format!("{}: {}", claim.id, claim.why)).collect();
    Ok(row.judged(verdict, format!("shows {}", why.join("; "))))
}
