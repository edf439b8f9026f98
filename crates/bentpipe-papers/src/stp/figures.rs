//! Figures 1 to 3, and the dense sweep behind the third.

use std::path::Path;

use bentpipe_engine::wire::stp;
use bentpipe_study::report::{Axis, Figure, Mark, Panel, Series, write_figure};
use bentpipe_study::scenario::FlowKind;

use super::measure::{Measured, measure, printed};
use super::setting::{Setting, Transport};
use super::study::Study;
use crate::drawing::{stack, topology};
use crate::published::{PublishedFigure, STP};
use crate::reproduce::ReproduceError;
use crate::{Row, Verdict};

/// How many figures the paper has.
pub(super) const COUNT: u8 = 3;

/// Two points per decade from 1e-10 to 1e-4.
fn dense() -> impl Iterator<Item = f64> {
    const DECADES: [f64; 7] = [1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4];
    let halves = DECADES.into_iter().flat_map(|rate| [rate, rate * 10f64.sqrt()]);
    halves.take(2 * DECADES.len() - 1)
}

/// Runs behind a point of the sweep: half of those behind a cell of a table, which are 200 unless fewer are asked for.
pub(super) fn runs(study: &Study<'_>) -> u32 {
    study.lab.options().reps.div_ceil(2)
}

/// Goodput over the bit error rate of one transport, at face value or with a loss of Eb/N0.
pub(super) struct Curve {
    name: String,
    points: Vec<(f64, Measured)>,
}

impl Curve {
    fn goodputs(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.points.iter().filter_map(|(rate, measured)| Some((rate.log10(), measured.goodput()? / 1000.0)))
    }

    /// Whether a worse sky never gives more, as far as the runs can tell: 5 % over a step is chance.
    fn falls(&self) -> bool {
        let goodputs: Vec<_> = self.goodputs().collect();
        goodputs.windows(2).all(|pair| pair[1].1 <= 1.05 * pair[0].1)
    }
}

/// The sweep: both transports, channel A and channel B.
pub(super) fn sweep(study: &Study<'_>) -> Result<Vec<Curve>, ReproduceError> {
    let mut names = Vec::new();
    let mut settings = Vec::new();
    for (name, transport) in Transport::ROWS {
        let loss = study.common_loss(transport)?;
        names.push(format!("{name}, face value"));
        settings.extend(dense().map(|rate| Setting::at_face_value(transport, rate)));
        names.push(format!("{name}, {loss:.2} dB less"));
        settings.extend(dense().map(|rate| Setting::with_loss(transport, rate, loss)));
    }
    let measured = measure(study.lab, "goodput over the bit error rate", &settings, runs(study))?;
    let points = dense().count();
    let curves = names.into_iter().zip(measured.chunks(points));
    Ok(curves.map(|(name, all)| Curve { name, points: dense().zip(all.iter().copied()).collect() }).collect())
}

/// Whether the curves of one channel behave: none rises.
pub(super) fn all_fall(curves: &[Curve]) -> bool {
    curves.iter().all(Curve::falls)
}

pub(super) fn row(study: &Study<'_>, number: u8, out: Option<&Path>) -> Result<Row, ReproduceError> {
    let id = format!("S-F{number:02}");
    let figure = STP.figure(&id).expect("the paper has the figure");
    match number {
        1 => {
            let scenario = Setting::at_face_value(Transport::STP, 1e-6).scenario();
            if let Some(folder) = out {
                topology(&scenario, &format!("{id}: {}", figure.title)).write(folder, &id)?;
            }
            let why = "drawn from scenarios/stp.toml";
            Ok(Row::new(&id, &figure.title, None, None, "").judged(Verdict::Built, why))
        }
        2 => arithmetic(figure, out),
        _ => goodput(study, figure, out),
    }
}

/// Figure 2: the stack of the path, and as many whole frames as its pipe holds.
fn arithmetic(figure: &PublishedFigure, out: Option<&Path>) -> Result<Row, ReproduceError> {
    let scenario = Setting::at_face_value(Transport::STP, 0.0).scenario();
    let FlowKind::Stp(flow) = &scenario.flows[0].kind else { unreachable!("an STP flow") };
    let config = &flow.config;
    let parameters = STP.list("parameters").expect("the paper's parameters");
    let paper = parameters.value("W_STP", "value");
    let window = config.window(config.mss);
    let ours = window as f64 / f64::from(config.mss);
    let frame = u32::from(config.mss) + stp::HEADER as u32 + config.overhead;
    let pipe = config.pipe().get();
    let frames = pipe as f64 / f64::from(frame);
    if let Some(folder) = out {
        let notes = [
            format!(
                "pipe = {} Mbit/s x {} ms = {pipe} B",
                config.rate.bits_per_second() as f64 / 1e6,
                config.rtt.as_millis_f64()
            ),
            format!("frame = {} B of data + {} B of headers = {frame} B", config.mss, frame - u32::from(config.mss)),
            format!("pipe / frame = {frames:.2}: {ours:.0} whole segments"),
            format!("window = {ours:.0} x {} B = {window} B of data", config.mss),
        ];
        stack(&scenario, &format!("{}: {}", figure.id, figure.title), &notes).write(folder, &figure.id)?;
    }
    let verdict = if paper == Some(ours) { Verdict::Match } else { Verdict::Differs };
    let why = format!("the pipe of {pipe} B holds {frames:.2} frames of {frame} B, {ours:.0} of them whole");
    Ok(Row::new(&figure.id, &figure.title, paper, Some(ours), "segments").judged(verdict, why))
}

fn goodput(study: &Study<'_>, figure: &PublishedFigure, out: Option<&Path>) -> Result<Row, ReproduceError> {
    let curves = sweep(study)?;
    let mut series: Vec<_> = curves
        .iter()
        .map(|curve| Series { name: curve.name.clone(), mark: Mark::Line, points: curve.goodputs().collect() })
        .collect();
    for (name, _) in Transport::ROWS {
        let points = printed(name).filter(|cell| cell.0 > 0.0).map(|(rate, bits)| (rate.log10(), bits / 1000.0));
        series.push(Series { name: format!("{name}, printed"), mark: Mark::Cross, points: points.collect() });
    }
    let panel = Panel {
        title: "1 MB over 1 Mbit/s of GEO".into(),
        x: Axis::new("log10 of the bit error rate", ""),
        y: Axis::new("goodput", "kbit/s"),
        series,
        spans: None,
    };
    if let Some(folder) = out {
        write_figure(folder, &figure.id, &Figure { title: figure.title.clone(), panels: vec![panel] })?;
    }
    let verdict = if all_fall(&curves) { Verdict::Shape } else { Verdict::Differs };
    let why = "the order of the curves is the paper's at each rate; its values lie on the curves of a sky with less Eb/N0 \
               than the axis says, see S-T01";
    Ok(Row::new(&figure.id, &figure.title, None, None, "").judged(verdict, why))
}
