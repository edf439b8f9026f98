//! `bentpipe verify`: the same flows in virtual time and in real time.

use std::path::Path;

use bentpipe_emulator::sockets::{self, KernelSettings, Went};
use bentpipe_emulator::transfers::{self, Bulk, Transferred};
use bentpipe_emulator::{EmulateError, HostId, Lab, Tap};
use bentpipe_engine::NoProbe;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::{Lateness, note};
use bentpipe_sim::in_parallel;
use bentpipe_sim::record::Sequence;
use bentpipe_study::scenario::Scenario;
use serde::Serialize;

use super::beside;
use super::compared::{agrees, aside, difference, late, overruns, percent, seconds, settings, titles};
use super::realtime::{refused, tap};
use super::verify_gateways::through_gateways;
use crate::args::Verify;
use crate::fail_if::{self, Reading};
use crate::failure::{End, Failure};
use crate::output::{self, Inputs, Remake};
use crate::{interrupt, progress, source};

#[derive(Serialize)]
struct Line {
    flow: String,
    bytes: u64,
    simulated_s: Option<f64>,
    engine_s: Option<f64>,
    engine_difference_percent: Option<f64>,
    drawn: Option<Drawn>,
    /// The time in virtual time of the variant nearest to the kernel.
    nearest_s: Option<f64>,
    kernel_s: Option<f64>,
    kernel_difference_percent: Option<f64>,
}

/// Times of the engine's real run, redrawn in virtual time.
#[derive(Serialize)]
struct Drawn {
    min_s: Option<f64>,
    median_s: Option<f64>,
    max_s: Option<f64>,
    /// Draws in which the last byte never arrived.
    unfinished: usize,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    flows: Vec<Line>,
    wakeups: u64,
    late_median_us: f64,
    late_p99_us: f64,
    late_max_us: f64,
    draws: u64,
    /// The congestion control of Linux's hosts.
    kernel_control: &'a str,
    /// Packets and trains of the kernel's TCP that were dropped at full devices.
    kernel_overruns: Option<u64>,
    /// Why the kernel's TCP was not measured, if it was not.
    no_kernel: Option<String>,
    agrees: bool,
    /// True if each time that differs from virtual time is within the draws.
    within_drawn: bool,
}

pub(crate) fn verify(args: &Verify) -> Result<End, Failure> {
    let mut inputs = Inputs::default();
    let scenario = source::load_with_variant(&args.world, args.variant.as_deref(), &mut inputs)?;
    let remake = Remake::new(scenario.seed);
    let refused = refused(&args.world);
    let bulks = transfers::bulks(&scenario).map_err(|error| refused(error.into()))?;
    fail_if::check_names(&args.fail_if, bulks.iter().map(|bulk| bulk.name))?;
    let has_gateways = scenario.gateways.names().next().is_some();
    // Through gateways only the kernel's TCP is measured.
    fail_if::check(&args.fail_if, &wanted(&bulks, args.no_kernel && !has_gateways))?;
    let print = output::beside(&inputs, &[args.plot.as_deref()])?;
    if let Some(path) = &args.plot {
        beside::check(path, bulks.len(), "flows", "`bentpipe run --plot` draws simulated flows alone")?;
    }
    interrupt::heed();
    if has_gateways {
        return through_gateways(args, &scenario, &bulks, &remake, print);
    }
    let simulated = beside::simulate(&scenario, &mut NoProbe)?;
    let like_kernel = sockets::nearest(&scenario, &args.control);
    let mut sequence = Sequence::new(&like_kernel, None);
    let nearest = beside::simulate(&like_kernel, &mut sequence)?;
    let bar = progress::spinner();
    let watch = |what: &'static str| {
        let bar = bar.clone();
        move |now: Time| {
            bar.set_message(format!("{what}: {:.0} s", now.as_secs_f64()));
            !interrupt::asked()
        }
    };
    let (engine, lateness) =
        aside(|| transfers::run(&scenario, &bulks, watch("engine in real time"))).map_err(&refused)?;
    let kernel = match args.no_kernel {
        true => Err("left out".to_owned()),
        false if interrupt::asked() => Err("interrupted".to_owned()),
        false => match aside(|| kernel(&scenario, &bulks, &settings(args), None, watch("Linux in real time"))) {
            Err(EmulateError::Lacking { what, help }) if args.plot.is_some() => {
                return Err(Failure::usage(what, Some(help)));
            }
            Err(EmulateError::Lacking { what, help }) => Err(format!("{what}; {help}")),
            other => Ok(other.map_err(&refused)?),
        },
    };
    bar.set_message("redrawing the real run");
    let drawn = redraw(&scenario, &bulks, &lateness, args.draws).map_err(&refused)?;
    bar.finish_and_clear();
    if interrupt::asked() {
        note!("interrupted");
        return Ok(End::Interrupted);
    }
    if let Some(bulk) = bulks.iter().zip(&engine).find_map(|(bulk, went)| (!went.intact).then_some(bulk)) {
        return Err(Failure::broken(format!("the received bytes of `{}` differ from those sent", bulk.name)));
    }
    let lines: Vec<Line> = (0..bulks.len())
        .map(|n| Line {
            drawn: summed_up(drawn.iter().map(|draw| seconds(&bulks[n], draw[n].received_at)).collect()),
            ..line(
                &bulks[n],
                [simulated[n], nearest[n]],
                &engine[n],
                kernel.as_ref().ok().map(|(all, _)| &all[n].transferred),
            )
        })
        .collect();
    let (agrees, within_drawn) = judge(&lines, args.tolerance);
    let kernel_overruns = kernel.as_ref().ok().and_then(|(_, overruns)| *overruns);
    let panels = kernel.as_ref().ok().map(|(all, _)| beside::panels(&titles(args, &bulks), &sequence, all));
    let report = report(&remake, args, lines, &lateness, kernel.err(), agrees);
    let report = Report { within_drawn, kernel_overruns, ..report };
    if args.json {
        print(&output::json(&report)?)?;
    } else {
        print(&text(&scenario, &report, &lateness, args.tolerance))?;
    }
    if let (Some(path), Some(panels)) = (&args.plot, panels) {
        beside::write(path, panels, &remake)?;
    }
    let kept = fail_if::kept(&args.fail_if, &readings(&report.flows))?;
    Ok(if kept && (agrees || within_drawn) { End::Done } else { End::Failed })
}

/// What `--fail-if` can be about if all is measured, before it is.
fn wanted<'a>(bulks: &[Bulk<'a>], no_kernel: bool) -> Vec<Reading<'a>> {
    let figures = fail_if::VERIFY.iter().filter(|figure| !(no_kernel && figure.name.starts_with("kernel_")));
    let of = |bulk: &Bulk<'a>| {
        let scope = bulk.name;
        figures.clone().map(move |figure| Reading { scope, figure: figure.name, value: None })
    };
    bulks.iter().flat_map(of).collect()
}

/// What `--fail-if` can be about.
fn readings(lines: &[Line]) -> Vec<Reading<'_>> {
    let of = |line: &'_ Line| {
        let kernel = line.kernel_s.map(|time| {
            [("kernel_time", Some(time)), ("kernel_difference", line.kernel_difference_percent.map(f64::abs))]
        });
        let engine = [("time", line.engine_s), ("difference", line.engine_difference_percent.map(f64::abs))];
        engine.into_iter().chain(kernel.into_iter().flatten()).collect::<Vec<_>>()
    };
    let readings = lines.iter().flat_map(|line| {
        of(line).into_iter().map(|(figure, value)| Reading { scope: &line.flow, figure, value }).collect::<Vec<_>>()
    });
    readings.collect()
}

/// Whether all times agree, and whether all others are within the draws. The range of the draws is widened by the
/// tolerance.
fn judge(lines: &[Line], tolerance: f64) -> (bool, bool) {
    let agrees = |line: &Line| agrees(line.engine_s, line.simulated_s, tolerance);
    let among = |line: &Line| {
        let Some(drawn) = &line.drawn else { return false };
        let spread = drawn.min_s.zip(drawn.max_s);
        line.engine_s.map_or(drawn.unfinished > 0, |engine| {
            let part = tolerance / 100.0;
            spread.is_some_and(|(min, max)| (min * (1.0 - part)..=max * (1.0 + part)).contains(&engine))
        })
    };
    (lines.iter().all(agrees), lines.iter().all(|line| agrees(line) || among(line)))
}

/// The engine's real run again, in virtual time, with redrawn lateness.
fn redraw(
    scenario: &Scenario,
    bulks: &[Bulk<'_>],
    lateness: &Lateness,
    draws: u64,
) -> Result<Vec<Vec<Transferred>>, EmulateError> {
    let draw = |seed| transfers::redraw(scenario, bulks, Some(lateness), seed, |_| !interrupt::asked());
    let all = in_parallel((1..=draws).collect(), 0, |seed| Ok(draw(seed)));
    all.expect("threads start").into_iter().collect()
}

fn summed_up(times: Vec<Option<f64>>) -> Option<Drawn> {
    let mut done: Vec<f64> = times.iter().copied().flatten().collect();
    done.sort_by(f64::total_cmp);
    (!times.is_empty()).then(|| Drawn {
        min_s: done.first().copied(),
        median_s: done.get(done.len() / 2).copied(),
        max_s: done.last().copied(),
        unfinished: times.len() - done.len(),
    })
}

/// Results of the flows, and the number of packets and trains dropped at full devices. All hosts are captured into `capture`.
pub(super) fn kernel(
    scenario: &Scenario,
    bulks: &[Bulk<'_>],
    settings: &KernelSettings,
    capture: Option<(&Path, &Remake)>,
    go_on: impl FnMut(Time) -> bool,
) -> Result<(Vec<Went>, Option<u64>), EmulateError> {
    let mut lab = Lab::build(scenario, &[])?;
    let unwritten = |cause| EmulateError::System { doing: "the capture".to_owned(), cause };
    if let Some((path, remake)) = capture {
        let names = lab.hosts().iter().map(|host| host.name.as_str());
        let hosts: Vec<_> = HostId::first(names.len()).zip(names).collect();
        let tap = tap(path, &hosts, scenario, remake, lab.emulator().clock()).map_err(unwritten)?;
        lab.emulator_mut().tap(tap);
    }
    let went = sockets::run(scenario, bulks, &mut lab, settings, go_on)?;
    lab.emulator_mut().take_tap().map_or(Ok(()), Tap::finish).map_err(unwritten)?;
    Ok((went, lab.emulator().overruns().ok()))
}

fn line(bulk: &Bulk<'_>, virtual_time: [Option<Time>; 2], engine: &Transferred, kernel: Option<&Transferred>) -> Line {
    let span = |at| seconds(bulk, at);
    let [simulated_s, nearest_s] = virtual_time.map(span);
    let (engine_s, kernel_s) = (span(engine.received_at), kernel.and_then(|kernel| span(kernel.received_at)));
    Line {
        flow: bulk.name.to_owned(),
        bytes: bulk.bytes,
        simulated_s,
        engine_s,
        engine_difference_percent: difference(engine_s, simulated_s),
        drawn: None,
        nearest_s,
        kernel_s,
        kernel_difference_percent: difference(kernel_s, nearest_s),
    }
}

fn report<'a>(
    remake: &'a Remake,
    args: &'a Verify,
    flows: Vec<Line>,
    lateness: &Lateness,
    no_kernel: Option<String>,
    agrees: bool,
) -> Report<'a> {
    let micros = |span: Duration| span.as_nanos() as f64 / 1e3;
    Report {
        remake,
        flows,
        wakeups: lateness.count(),
        late_median_us: micros(lateness.median()),
        late_p99_us: micros(lateness.p99()),
        late_max_us: micros(lateness.max()),
        draws: args.draws,
        kernel_control: &args.control,
        kernel_overruns: None,
        no_kernel,
        agrees,
        within_drawn: agrees,
    }
}

fn spread(drawn: &Drawn) -> String {
    let (Some(min), Some(max)) = (drawn.min_s, drawn.max_s) else { return "never done".to_owned() };
    let never = match drawn.unfinished {
        0 => String::new(),
        count => format!(", {count} never finished"),
    };
    format!("{min:.3} to {max:.3}{never}")
}

fn text(scenario: &Scenario, report: &Report<'_>, lateness: &Lateness, tolerance: f64) -> String {
    let rows = report.flows.iter().map(|line| {
        vec![
            line.flow.clone(),
            output::bytes(line.bytes),
            output::number(line.simulated_s, 3),
            output::number(line.engine_s, 3),
            percent(line.engine_difference_percent),
            line.drawn.as_ref().map_or("–".to_owned(), spread),
            output::number(line.kernel_s.and(line.nearest_s), 3),
            output::number(line.kernel_s, 3),
            percent(line.kernel_difference_percent),
        ]
    });
    let kernels = format!("Linux {} (s)", report.kernel_control);
    let header = [
        "flow",
        "data",
        "virtual (s)",
        "engine, real (s)",
        "difference",
        "draws (s)",
        "nearest variant (s)",
        &kernels,
        "difference",
    ];
    let table = output::table(&header, 1, rows);
    let kernel = report.no_kernel.as_ref().map_or(String::new(), |why| format!("Linux's TCP: {why}\n"));
    let overrun = overruns(report.kernel_overruns);
    let verdict = match (report.agrees, report.within_drawn) {
        (true, _) => format!("the engine's times agree within {tolerance} %"),
        (false, true) => format!(
            "the engine's times differ by more than {tolerance} %, but lie within the draws: the machine's \
             timing can explain it"
        ),
        (false, false) => format!("the engine's times differ by more than {tolerance} %"),
    };
    let drawn = match report.draws {
        0 => String::new(),
        draws => {
            format!("draws: minimum and maximum of {draws} runs in virtual time, with wake-ups as late as measured\n")
        }
    };
    let late = late(lateness);
    format!("{}\n\n{table}\n\n{drawn}{verdict}; {late}{kernel}{overrun}{}\n", scenario.headline(), report.remake.line())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(engine_s: Option<f64>, drawn: &[Option<f64>]) -> Line {
        Line {
            flow: "data".to_owned(),
            bytes: 1,
            simulated_s: Some(10.0),
            engine_s,
            engine_difference_percent: engine_s.map(|engine| (engine / 10.0 - 1.0) * 100.0),
            drawn: summed_up(drawn.to_vec()),
            nearest_s: None,
            kernel_s: None,
            kernel_difference_percent: None,
        }
    }

    #[test]
    fn a_difference_is_the_machines_where_its_lateness_makes_it() {
        let drawn = [Some(12.0), Some(10.0), Some(11.0)];
        let cases = [
            (line(Some(10.1), &[]), (true, true)),
            (line(Some(10.3), &[]), (false, false)),
            (line(Some(11.5), &drawn), (false, true)),
            (line(Some(12.2), &drawn), (false, true)),
            (line(Some(12.3), &drawn), (false, false)),
            (line(Some(9.7), &drawn), (false, false)),
            (line(None, &drawn), (false, false)),
            (line(None, &[Some(10.0), None]), (false, true)),
        ];
        for (n, (line, verdict)) in cases.into_iter().enumerate() {
            assert_eq!(judge(&[line], 2.0), verdict, "{n}");
        }
        let drawn = summed_up(drawn.to_vec()).expect("three");
        assert_eq!((drawn.min_s, drawn.median_s, drawn.max_s), (Some(10.0), Some(11.0), Some(12.0)));
    }
}
