//! Figures 1 to 3, and the dense sweep over error rates for the third.

use std::path::Path;

use bentpipe_engine::wire::stp;
use bentpipe_study::report::{Axis, Figure, Mark, Panel, Series, write_figure};
use bentpipe_study::scenario::FlowKind;

use super::measure::{Measured, expected, measure, printed};
use super::setting::{Setting, Transport};
use super::study::Study;
use crate::finding::Finding;
use crate::published::{PublishedFigure, STP};
use crate::request::ReproduceError;
use crate::{Row, Verdict};
use bentpipe_study::drawing::{stack, topology};

/// Number of figures in the paper.
pub(super) const COUNT: u8 = 3;

/// Two points per decade from 1e-10 to 1e-4.
fn dense() -> impl Iterator<Item = f64> {
    const DECADES: [f64; 7] = [1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4];
    let halves = DECADES.into_iter().flat_map(|rate| [rate, rate * 10f64.sqrt()]);
    halves.take(2 * DECADES.len() - 1)
}

/// Runs per point of the sweep: half of those per table cell.
pub(super) fn runs(study: &Study<'_>) -> u32 {
    study.lab.options().reps.div_ceil(2)
}

/// The channel of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// Channel A, at face value.
    Printed,
    /// Channel B, with the row's loss of Eb/N0.
    Offset,
}

/// Goodput over the bit error rate of one transport.
pub(super) struct Curve {
    row: &'static str,
    channel: Channel,
    name: String,
    points: Vec<(f64, Measured)>,
}

impl Curve {
    fn goodputs(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.points.iter().filter_map(|(rate, measured)| Some((rate.log10(), measured.goodput()? / 1000.0)))
    }

    /// True if goodput never rises with the error rate; a rise above three standard errors is significant.
    fn falls(&self) -> bool {
        let points: Vec<_> = self.points.iter().filter_map(|(_, all)| Some((all.goodput()?, all.error))).collect();
        points.windows(2).all(|pair| {
            let [(before, e0), (after, e1)] = [pair[0], pair[1]];
            after <= before * (1.0 + 3.0 * e0.hypot(e1))
        })
    }

    /// The goodput at an error rate, bit/s; 0 if no transfer finishes.
    fn at(&self, rate: f64) -> f64 {
        let point = self.points.iter().find(|point| (point.0 / rate - 1.0).abs() < 1e-9);
        point.and_then(|(_, measured)| measured.goodput()).unwrap_or(0.0)
    }
}

/// The sweep: both transports, channel A and channel B.
pub(super) fn sweep(study: &Study<'_>) -> Result<Vec<Curve>, ReproduceError> {
    let mut curves = Vec::new();
    let mut settings = Vec::new();
    let mut curve = |row, channel, name| curves.push(Curve { row, channel, name, points: Vec::new() });
    for (row, transport) in Transport::ROWS {
        let loss = study.common_loss(transport)?;
        curve(row, Channel::Printed, format!("{row}, face value"));
        settings.extend(dense().map(|rate| Setting::at_face_value(transport, rate)));
        curve(row, Channel::Offset, format!("{row}, {loss:.2} dB less"));
        settings.extend(dense().map(|rate| Setting::with_loss(transport, rate, loss)));
    }
    let measured = measure(study.lab, "goodput over the bit error rate", &settings, runs(study))?;
    for (curve, all) in curves.iter_mut().zip(measured.chunks(dense().count())) {
        curve.points = dense().zip(all.iter().copied()).collect();
    }
    Ok(curves)
}

/// Compares the curves of one channel with the printed points: max distance in percent. The shape is right if no curve
/// rises and STP is nowhere below TCP.
pub(super) fn beside_print(study: &Study<'_>, channel: Channel) -> Result<Finding, ReproduceError> {
    let curves: Vec<_> = sweep(study)?.into_iter().filter(|curve| curve.channel == channel).collect();
    let (mut distance, mut worst) = (0.0, String::new());
    for curve in &curves {
        for (rate, paper) in printed(curve.row).filter(|cell| cell.0 > 0.0) {
            let ours = curve.at(rate);
            let off = 100.0 * (ours / paper - 1.0).abs();
            if off > distance {
                let (ours, paper) = (ours / 1000.0, paper / 1000.0);
                (distance, worst) = (off, format!("{} at {rate:e}: {ours:.1} kbit/s, printed {paper:.1}", curve.name));
            }
        }
    }
    let rising: Vec<_> = curves.iter().filter(|curve| !curve.falls()).map(|curve| curve.name.as_str()).collect();
    let [stp, tcp] = &curves[..] else { unreachable!("two transports") };
    let above = dense().all(|rate| stp.at(rate) >= tcp.at(rate));
    let note = format!(
        "13 rates from 1e-10 to 1e-4, {} runs each, drawn as S-F03. Farthest from print: {worst}. {}; STP is {} TCP",
        runs(study),
        if rising.is_empty() { "No curve rises".to_owned() } else { format!("Rising: {}", rising.join("; ")) },
        if above { "nowhere below" } else { "somewhere below" },
    );
    Ok(Finding::new(distance, note).or_shape(rising.is_empty() && above))
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

/// Figure 2: the protocol stack of the path, and the number of whole frames in its pipe.
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
        write_figure(
            folder,
            &figure.id,
            &Figure { title: format!("{}: {}", figure.id, figure.title), panels: vec![panel] },
        )?;
    }
    let finding = beside_print(study, Channel::Printed)?;
    let why = format!("as S-E06: {}", finding.note);
    let verdict = finding.within(expected("S-E06").bounds());
    Ok(Row::new(&figure.id, &figure.title, None, None, "").judged(verdict, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(seconds: [f64; 3], error: f64) -> Curve {
        let point = |seconds| Measured { seconds: Some(seconds), error, aborted: 0.0 };
        let points = [1e-8, 1e-7, 1e-6].into_iter().zip(seconds.map(point)).collect();
        Curve { row: "STP", channel: Channel::Printed, name: "STP".into(), points }
    }

    #[test]
    fn a_rise_beyond_chance_is_a_rise() {
        assert!(curve([10.0, 11.0, 12.0], 0.0).falls());
        assert!(!curve([10.0, 11.0, 10.5], 0.01).falls(), "a rise of 5 %, of which 4.2 % may be chance");
        assert!(curve([10.0, 11.0, 10.5], 0.02).falls());
    }

    #[test]
    fn where_nothing_gets_through_there_is_no_goodput() {
        assert_eq!(curve([8.0; 3], 0.0).at(1e-7), 1e6);
        assert_eq!(curve([8.0; 3], 0.0).at(1e-4), 0.0);
    }
}
