//! `bentpipe verify` of a scenario with gateways: Linux's TCP through real gateways, beside virtual time.
//!
//! The engine's own ends cannot take part: they are in one process, and the gateways are in the namespaces of the boxes.

use bentpipe_emulator::Lab;
use bentpipe_emulator::sockets::{self, Went};
use bentpipe_emulator::transfers::Bulk;
use bentpipe_engine::units::Time;
use bentpipe_io::{Lateness, note};
use bentpipe_sim::record::Sequence;
use bentpipe_study::scenario::Scenario;
use serde::Serialize;

use super::beside;
use super::boxes::{self, BoxLine, Gateways};
use super::compared::{agrees, aside, difference, late, overruns, percent, seconds, settings, titles};
use super::realtime::refused;
use crate::args::Verify;
use crate::fail_if::{self, Reading};
use crate::failure::{End, Failure};
use crate::output::{self, Print, Remake};
use crate::{interrupt, progress};

#[derive(Serialize)]
struct Line {
    flow: String,
    bytes: u64,
    /// In virtual time, with the variant nearest to the kernel.
    nearest_s: Option<f64>,
    kernel_s: Option<f64>,
    kernel_difference_percent: Option<f64>,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    flows: Vec<Line>,
    gateways: Vec<BoxLine>,
    /// The congestion control of Linux's hosts.
    kernel_control: &'a str,
    /// Packets and trains of the kernel's TCP that were dropped at full devices.
    kernel_overruns: Option<u64>,
    agrees: bool,
}

/// What happened in real time.
struct Measured {
    went: Vec<Went>,
    gateways: Vec<BoxLine>,
    overruns: Option<u64>,
    lateness: Lateness,
}

pub(super) fn through_gateways(
    args: &Verify,
    scenario: &Scenario,
    bulks: &[Bulk<'_>],
    remake: &Remake,
    print: Print,
) -> Result<End, Failure> {
    for (is_given, option) in [(args.no_kernel, "--no-kernel"), (args.variant.is_some(), "--variant")] {
        if is_given {
            let message = format!("{option}: with [[gateways]], only Linux's TCP is measured");
            return Err(Failure::usage(message, Some(format!("leave {option} out"))));
        }
    }
    let like_kernel = sockets::nearest(scenario, &args.control);
    let mut sequence = Sequence::new(&like_kernel, None);
    let nearest = beside::simulate(&like_kernel, &mut sequence)?;
    let bar = progress::spinner();
    let watch = |now: Time| {
        bar.set_message(format!("Linux through the gateways: {:.0} s", now.as_secs_f64()));
        !interrupt::asked()
    };
    bar.set_message("the gateways start");
    let measured = aside(|| measure(args, scenario, bulks, watch))?;
    bar.finish_and_clear();
    let Some(measured) = measured.filter(|_| !interrupt::asked()) else {
        note!("interrupted");
        return Ok(End::Interrupted);
    };
    let lines = bulks.iter().zip(nearest).zip(&measured.went).map(|((bulk, nearest), went)| {
        let [nearest_s, kernel_s] = [nearest, went.transferred.received_at].map(|at| seconds(bulk, at));
        let kernel_difference_percent = difference(kernel_s, nearest_s);
        Line { flow: bulk.name.to_owned(), bytes: bulk.bytes, nearest_s, kernel_s, kernel_difference_percent }
    });
    let lines: Vec<_> = lines.collect();
    let panels = beside::panels(&titles(args, bulks), &sequence, &measured.went);
    let has_ended = measured.gateways.iter().any(BoxLine::has_ended);
    let agrees = !has_ended && lines.iter().all(|line| agrees(line.kernel_s, line.nearest_s, args.tolerance));
    let report = Report {
        remake,
        flows: lines,
        gateways: measured.gateways,
        kernel_control: &args.control,
        kernel_overruns: measured.overruns,
        agrees,
    };
    if args.json {
        print(&output::json(&report)?)?;
    } else {
        print(&text(scenario, &report, &measured.lateness, args.tolerance))?;
    }
    if let Some(path) = &args.plot {
        beside::write(path, panels, remake)?;
    }
    let kept = fail_if::kept(&args.fail_if, &report.flows.iter().flat_map(readings).collect::<Vec<_>>())?;
    Ok(if kept && agrees { End::Done } else { End::Failed })
}

/// Starts the gateways and runs the transfers through them. Returns `None` if the user ended it before.
fn measure(
    args: &Verify,
    scenario: &Scenario,
    bulks: &[Bulk<'_>],
    go_on: impl FnMut(Time) -> bool,
) -> Result<Option<Measured>, Failure> {
    let refused = refused(&args.world);
    let mut lab = Lab::build(scenario, &[]).map_err(&refused)?;
    let boxes = lab.boxes().cloned();
    let mut gateways = Gateways::start(scenario, boxes.as_ref())?;
    if let Some(boxes) = &boxes {
        if gateways.wait(scenario, boxes, lab.emulator_mut(), None)?.is_some() {
            return Ok(None);
        }
        lab.restart(scenario).map_err(&refused)?;
    }
    let went = sockets::run(scenario, bulks, &mut lab, &settings(args), go_on).map_err(refused)?;
    let (overruns, lateness) = (lab.emulator().overruns().ok(), lab.emulator().lateness().clone());
    Ok(Some(Measured { went, gateways: gateways.lines(), overruns, lateness }))
}

/// What `--fail-if` can be about. The kernel's times are the only ones in real time.
fn readings(line: &Line) -> [Reading<'_>; 4] {
    let (time, difference) = (line.kernel_s, line.kernel_difference_percent.map(f64::abs));
    let named = |figure, value| Reading { scope: &line.flow, figure, value };
    [
        named("time", time),
        named("difference", difference),
        named("kernel_time", time),
        named("kernel_difference", difference),
    ]
}

fn text(scenario: &Scenario, report: &Report<'_>, lateness: &Lateness, tolerance: f64) -> String {
    let rows = report.flows.iter().map(|line| {
        vec![
            line.flow.clone(),
            output::bytes(line.bytes),
            output::number(line.nearest_s, 3),
            output::number(line.kernel_s, 3),
            percent(line.kernel_difference_percent),
        ]
    });
    let kernels = format!("Linux {} (s)", report.kernel_control);
    let table = output::table(&["flow", "data", "nearest variant (s)", &kernels, "difference"], 1, rows);
    let verdict = if report.agrees { "agree within" } else { "differ by more than" };
    let verdict = match report.gateways.iter().any(BoxLine::has_ended) {
        true => "a gateway ended before the transfers did".to_owned(),
        false => format!("the times {verdict} {tolerance} %"),
    };
    format!(
        "{}\n\n{table}\n\n{}\n\n{verdict}; {}{}{}\n",
        scenario.headline(),
        boxes::table(&report.gateways),
        late(lateness),
        overruns(report.kernel_overruns),
        report.remake.line()
    )
}
