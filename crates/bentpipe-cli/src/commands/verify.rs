//! `bentpipe verify`: the same flows in virtual time and in real time.

use bentpipe_engine::NoProbe;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::Lateness;
use bentpipe_io::emulator::transfers::{self, Bulk, Transferred};
use bentpipe_io::emulator::{EmulateError, Lab, sockets};
use bentpipe_sim::{Timers, run_with};
use bentpipe_study::scenario::Scenario;
use serde::Serialize;

use super::realtime::{refused, span_of};
use crate::args::Verify;
use crate::failure::{End, Failure};
use crate::output::{self, Remake};
use crate::{interrupt, progress, source};

#[derive(Serialize)]
struct Line {
    flow: String,
    bytes: u64,
    simulated_s: Option<f64>,
    engine_s: Option<f64>,
    engine_difference_percent: Option<f64>,
    kernel_s: Option<f64>,
    kernel_difference_percent: Option<f64>,
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
    /// Why the kernel's TCP was not measured, if it was not.
    no_kernel: Option<String>,
    agrees: bool,
}

pub(crate) fn verify(args: &Verify) -> Result<End, Failure> {
    let scenario = source::load_with_variant(&args.world, args.variant.as_deref())?;
    let remake = Remake::new(scenario.seed);
    let refused = refused(&args.world);
    let bulks = transfers::bulks(&scenario).map_err(|error| refused(error.into()))?;
    interrupt::heed();
    let simulated = simulate(&scenario)?;
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
        false => match aside(|| kernel(&scenario, &bulks, watch("Linux in real time"))) {
            Err(EmulateError::Lacking { what, help }) => Err(format!("{what}; {help}")),
            other => Ok(other.map_err(&refused)?),
        },
    };
    bar.finish_and_clear();
    if interrupt::asked() {
        eprintln!("interrupted");
        return Ok(End::Interrupted);
    }
    if let Some(bulk) = bulks.iter().zip(&engine).find_map(|(bulk, went)| (!went.intact).then_some(bulk)) {
        return Err(Failure::broken(format!("the bytes of `{}` are not those that were sent", bulk.name)));
    }
    let lines: Vec<Line> = (0..bulks.len())
        .map(|n| line(&bulks[n], simulated[n], &engine[n], kernel.as_ref().ok().map(|all| &all[n])))
        .collect();
    let agrees = lines.iter().all(|line| {
        let (simulated, engine) = (line.simulated_s, line.engine_s);
        // What never ends in one must not end in the other.
        line.engine_difference_percent.map_or(simulated == engine, |difference| difference.abs() <= args.tolerance)
    });
    let report = report(&remake, lines, &lateness, kernel.err(), agrees);
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&scenario, &report, &lateness, args.tolerance))?;
    }
    Ok(if agrees { End::Done } else { End::Failed })
}

/// In a thread of its own: it hurries, and what comes after it need not.
fn aside<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// When each flow's last byte arrived, in virtual time.
fn simulate(scenario: &Scenario) -> Result<Vec<Option<Time>>, Failure> {
    let result = run_with(scenario, scenario.seed, &mut NoProbe, Timers::Lazy, |_| !interrupt::asked());
    Ok(result.map_err(Failure::broken)?.flows.iter().map(|flow| flow.received_at).collect())
}

fn kernel(
    scenario: &Scenario,
    bulks: &[Bulk<'_>],
    go_on: impl FnMut(Time) -> bool,
) -> Result<Vec<Transferred>, EmulateError> {
    let mut lab = Lab::build(scenario, &[])?;
    sockets::run(scenario, bulks, &mut lab, go_on)
}

fn line(bulk: &Bulk<'_>, simulated: Option<Time>, engine: &Transferred, kernel: Option<&Transferred>) -> Line {
    let span = |at: Option<Time>| at.map(|at| at.saturating_since(bulk.start).as_secs_f64());
    let simulated_s = span(simulated);
    let difference = |real: Option<f64>| Some((real? / simulated_s? - 1.0) * 100.0);
    let (engine_s, kernel_s) = (span(engine.received_at), kernel.and_then(|kernel| span(kernel.received_at)));
    Line {
        flow: bulk.name.to_owned(),
        bytes: bulk.bytes,
        simulated_s,
        engine_s,
        engine_difference_percent: difference(engine_s),
        kernel_s,
        kernel_difference_percent: difference(kernel_s),
    }
}

fn report<'a>(
    remake: &'a Remake,
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
        no_kernel,
        agrees,
    }
}

fn text(scenario: &Scenario, report: &Report<'_>, lateness: &Lateness, tolerance: f64) -> String {
    let percent = |difference: Option<f64>| difference.map_or("–".to_owned(), |value| format!("{value:+.2} %"));
    let rows = report.flows.iter().map(|line| {
        vec![
            line.flow.clone(),
            output::bytes(line.bytes),
            output::number(line.simulated_s, 3),
            output::number(line.engine_s, 3),
            percent(line.engine_difference_percent),
            output::number(line.kernel_s, 3),
            percent(line.kernel_difference_percent),
        ]
    });
    let header = ["flow", "data", "virtual (s)", "engine, real (s)", "difference", "Linux reno (s)", "difference"];
    let table = output::table(&header, 1, rows);
    let kernel = report.no_kernel.as_ref().map_or(String::new(), |why| format!("Linux's TCP: {why}\n"));
    let verdict = match report.agrees {
        true => format!("the engine's times agree within {tolerance} %"),
        false => format!("the engine's times differ by more than {tolerance} %"),
    };
    let late = format!(
        "{} wake-ups, late by {} (median), {} (99 %), {} (worst)",
        lateness.count(),
        span_of(lateness.median()),
        span_of(lateness.p99()),
        span_of(lateness.max())
    );
    format!(
        "{}: {}\n\n{table}\n\n{verdict}; {late}\n{kernel}{}\n",
        scenario.name,
        scenario.description,
        report.remake.line()
    )
}
