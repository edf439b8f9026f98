//! `bentpipe shell`: a command behind a scenario's links.

use std::process::{Child, Command};

use bentpipe_emulator::{Behind, Tap, rootless};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::child::Ask;
use bentpipe_io::{Caught, Descendants, Signals, note};
use bentpipe_study::report::write_whole;
use bentpipe_study::scenario::{FlowSpec, NodeId, Scenario, Workload};
use serde::Serialize;
use tempfile::TempDir;

use super::boxes::Gateways;
use super::control::{self, Live};
use super::program::{Program, not_started};
use super::prompt;
use super::realtime::{Summary, capture, nodes, refused};
use super::status::{Place, Status};
use crate::args::Shell;
use crate::fail_if::{self, Reading};
use crate::failure::{End, Failure};
use crate::output::{self, Inputs, Remake};
use crate::{interrupt, source};

/// Marks of wake-ups other than packets.
const SIGNALS: u32 = 0;

/// The namespace among the two ends: what programs in it see is captured.
const INSIDE: usize = 1;

/// Names of the links in front of a command, the nearest last.
const NESTED: &str = "BENTPIPE_SHELL";

pub(crate) fn shell(args: &Shell) -> Result<End, Failure> {
    let mut inputs = Inputs::default();
    let scenario = source::load_links(&args.world, &mut inputs)?;
    let (outside, inside) = ends(args, &scenario)?;
    let remake = Remake::new(scenario.seed);
    for path in [&args.watch.pcap, &args.json].into_iter().flatten() {
        output::check_writable(path)?;
    }
    output::beside(&inputs, &[args.watch.pcap.as_deref(), args.json.as_deref()])?;
    fail_if::check(&args.fail_if, &readings(&scenario, std::iter::repeat([0; 2]), Duration::ZERO))?;
    let mut notes = Vec::new();
    let is_root = !rootless::is_needed();
    // It must live as long as the command.
    let mut pasta = match is_root {
        false => rootless::become_root()
            .map_err(refused(&args.world))?
            .map_err(|why| notes.push(format!("the outside: not root, and {why}")))
            .ok(),
        true => None,
    };
    let signals = Signals::catch().map_err(Failure::broken)?;
    interrupt::install()?;
    interrupt::heed();
    let mut behind = Behind::build(&scenario, outside, inside).map_err(refused(&args.world))?;
    if let Some(machine) = pasta.as_ref().and_then(rootless::Pasta::machine) {
        behind.set_machine(machine);
    }
    let boxes = behind.boxes().cloned();
    let mut gateways = Gateways::start(&scenario, boxes.as_ref())?;
    if let Some(boxes) = &boxes {
        if let Some(end) = gateways.wait(&scenario, boxes, behind.emulator_mut(), Some(&signals))? {
            return Ok(end);
        }
        behind.restart(&scenario).map_err(refused(&args.world))?;
    }
    behind.emulator().watch(&signals, SIGNALS).map_err(Failure::broken)?;
    let own = boxes.iter().flat_map(|boxes| &boxes.sites).map(|site| site.node);
    let names: Vec<_> = [outside, inside].into_iter().chain(own).map(|node| &scenario[node]).collect();
    capture(&args.watch, &scenario, &remake, behind.emulator_mut(), &names, INSIDE)?;
    if notes.is_empty() {
        notes.clone_from(&behind.outside().missing);
    }
    if !args.quiet {
        let own: Vec<String> = behind.inner_addresses().iter().map(ToString::to_string).collect();
        let machine = match is_root || pasta.is_some() {
            false => "this machine cannot be reached".to_owned(),
            true => format!("this machine is `{}`, {}", &scenario[outside], behind.outer_address()),
        };
        let place = &scenario[inside];
        note!("bentpipe: behind `{}`, on node `{place}`, {}; {machine}", scenario.name, own.join(" and "));
        for note in &notes {
            note!("bentpipe: not available: {note}");
        }
        gateways.text().lines().for_each(|line| note!("bentpipe: {line}"));
    }
    let mut live = Live::open(args.control.as_deref(), &scenario, behind.emulator())?;
    interrupt::leave_to_the_command();
    // The jobs of an interactive shell outlive it, as anywhere.
    let (descendants, ask) = match args.command.is_empty() {
        true => (None, Ask::HangUp),
        false => (Some(Descendants::adopt().map_err(Failure::broken)?), Ask::Terminate),
    };
    let (command, _prompt) = start(args, &scenario, &behind, &gateways)?;
    let mut program = Program::new(command, descendants, ask);
    let started = behind.emulator().clock().now();
    let place = if args.quiet { Place::Hidden } else { Place::Title };
    let mut status = Status::new(place, args.watch.interval, behind.emulator());
    let mut beside = Beside {
        live: live.as_mut(),
        program: &mut program,
        status: &mut status,
        gateways: &mut gateways,
        pasta: &mut pasta,
    };
    let end = run(&scenario, &mut behind, &signals, &mut beside);
    status.end(&scenario, behind.emulator());
    let took = behind.emulator().clock().now().saturating_since(started);
    let summary = Summary::new(&scenario, behind.emulator()).with_gateways(gateways.lines());
    program.clear();
    if !args.quiet {
        note!("\n{}\n{}", summary.text(), remake.line());
    }
    if let Some(path) = &args.json {
        let exit_code = end.as_ref().ok().map(|end| end.code());
        let json = Json { remake: &remake, time_s: took.as_secs_f64(), exit_code, summary: &summary };
        write_whole(path, output::json(&json)?.as_bytes()).map_err(Failure::unwritten)?;
    }
    let counters = behind.emulator().counters().into_iter().map(|link| [link.dropped(), link.delivered_bytes]);
    let kept = fail_if::kept(&args.fail_if, &readings(&scenario, counters, took))?;
    behind.emulator_mut().take_tap().map_or(Ok(()), Tap::finish).map_err(Failure::unwritten)?;
    match end {
        // Without the gateway, the links were not those of the scenario.
        Ok(End::Code(0)) if !kept || gateways.has_ended() => Ok(End::Failed),
        other => other,
    }
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    /// Of the command, in seconds.
    time_s: f64,
    /// `null` if its end is not known.
    exit_code: Option<u8>,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// What `--fail-if` can be about, from what each link has dropped and the bytes that it has delivered.
fn readings(scenario: &Scenario, counters: impl Iterator<Item = [u64; 2]>, took: Duration) -> Vec<Reading<'_>> {
    let mut readings = vec![Reading { scope: "", figure: "time", value: Some(took.as_secs_f64()) }];
    for (link, [dropped, bytes]) in scenario.links.iter().zip(counters) {
        let of = |figure, count: u64| Reading { scope: link.name.as_str(), figure, value: Some(count as f64) };
        readings.extend([of("dropped", dropped), of("bytes", bytes)]);
    }
    readings
}

/// The nodes outside and inside.
fn ends(args: &Shell, scenario: &Scenario) -> Result<(NodeId, NodeId), Failure> {
    let named = |name: &Option<String>| -> Result<Option<NodeId>, Failure> {
        let Some(name) = name else { return Ok(None) };
        Ok(nodes(scenario, std::slice::from_ref(name))?.first().copied())
    };
    match completed(named(&args.outside)?, named(&args.inside)?, scenario.flows.first().map(usual)) {
        (Some(outside), Some(inside)) if outside != inside => Ok((outside, inside)),
        (Some(_), Some(_)) => Err(Failure::usage("`--inside` and `--outside` are the same node", None)),
        _ => Err(Failure::usage("the scenario has no flow, so `--inside` and `--outside` are needed", None)),
    }
}

/// The nodes outside and inside for a flow: a program downloads, or it asks.
fn usual(flow: &FlowSpec) -> (NodeId, NodeId) {
    match flow.kind.workload() {
        Some(Workload::RequestResponse { .. }) => (flow.to, flow.from),
        _ => (flow.from, flow.to),
    }
}

/// The nodes outside and inside: as given, otherwise an end of the flow that is not given as the other one.
fn completed<N: PartialEq + Copy>(
    outside: Option<N>,
    inside: Option<N>,
    flow: Option<(N, N)>,
) -> (Option<N>, Option<N>) {
    let Some((from, to)) = flow else { return (outside, inside) };
    let unless = |given: Option<N>, usual: N, other: N| Some(if given == Some(usual) { other } else { usual });
    (outside.or(unless(inside, from, to)), inside.or(unless(outside, to, from)))
}

/// Starts the command, or a shell whose prompt is marked by files in the folder, which must live as long as it.
fn start(
    args: &Shell,
    scenario: &Scenario,
    behind: &Behind,
    gateways: &Gateways,
) -> Result<(Child, Option<TempDir>), Failure> {
    let shell =
        || std::env::var("SHELL").ok().filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".to_owned());
    let words = if args.command.is_empty() { vec![shell()] } else { args.command.clone() };
    let nested = std::env::var(NESTED).ok().filter(|outer| !outer.is_empty());
    let nested = nested.map_or(scenario.name.clone(), |outer| format!("{outer} > {}", scenario.name));
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env(NESTED, &nested).env("BENTPIPE_OUTER", behind.outer_address().to_string());
    let folder = match args.command.is_empty() {
        true => prompt::mark(&mut command, &words[0], &nested).map_err(Failure::broken)?,
        false => None,
    };
    if let Some(path) = &args.control {
        command.env(control::SOCKET, control::socket(path));
    }
    command.envs(gateways.variables());
    let child = behind.spawn(&mut command).map_err(|error| not_started(&words[0], &error))?;
    Ok((child, folder))
}

/// What is looked after beside the links.
struct Beside<'a> {
    live: Option<&'a mut Live>,
    program: &'a mut Program,
    status: &'a mut Status,
    gateways: &'a mut Gateways,
    pasta: &'a mut Option<rootless::Pasta>,
}

/// Runs until the command ends.
fn run(scenario: &Scenario, behind: &mut Behind, signals: &Signals, beside: &mut Beside<'_>) -> Result<End, Failure> {
    let Beside { live, program, status, gateways, pasta } = beside;
    // If it is not allowed, packets sometimes wait for other programs, and the summary says how long.
    bentpipe_io::hurry();
    loop {
        let now = behind.emulator().clock().now();
        let until = Time::earliest(status.next(), Some(program.next(now)));
        let until = Time::earliest(until, gateways.next(now));
        let until = Time::earliest(until, live.as_ref().and_then(|live| live.next()));
        let marks = behind.emulator_mut().turn(until).map_err(Failure::broken)?;
        status.show(scenario, behind.emulator());
        if let Some(live) = live {
            if marks.contains(&control::MARK) {
                live.serve(behind.emulator_mut());
            }
            live.on_time(behind.emulator_mut());
        }
        let now = behind.emulator().clock().now();
        gateways.look(now);
        if let Some(end) = program.look(now)? {
            return Ok(end);
        }
        if !marks.contains(&SIGNALS) {
            continue;
        }
        while let Some(caught) = signals.next().map_err(Failure::broken)? {
            match caught {
                Caught::Child => {
                    if pasta.as_mut().is_some_and(rootless::Pasta::has_ended) {
                        **pasta = None;
                        note!("bentpipe: not available any more: the outside: `pasta` has ended");
                    }
                    if let Some(end) = program.ended()? {
                        return Ok(end);
                    }
                }
                // The command receives it too, and decides.
                Caught::Keyboard => {}
                Caught::End => program.ask_to_end(now),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_study::scenario::Scenario;

    use super::{completed, usual};

    /// `bentpipe shell app.toml -- ./client` once ran the client on the server's side of the link.
    #[test]
    fn the_program_downloads_or_asks() {
        let inside = |flow: &str| {
            let link = "name = \"sat\"\nbetween = [\"server\", \"user\"]\nrate = \"1 Mbit/s\"\ndelay = \"9 ms\"";
            let text = format!("name = \"t\"\n[[links]]\n{link}\n[[flows]]\n{flow}\n");
            let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
            scenario[usual(&scenario.flows[0]).1].to_owned()
        };
        assert_eq!(inside("from = \"server\"\nto = \"user\"\nbytes = \"1 kB\""), "user");
        let asks = "request_response = { request = \"1 kB\", response = \"2 kB\" }";
        assert_eq!(inside(&format!("from = \"user\"\nto = \"server\"\n{asks}")), "user");
    }

    #[test]
    fn one_given_node_leaves_the_other_end_of_the_flow() {
        let flow = Some(("server", "user"));
        assert_eq!(completed(None, None, flow), (Some("server"), Some("user")));
        assert_eq!(completed(None, Some("server"), flow), (Some("user"), Some("server")));
        assert_eq!(completed(Some("user"), None, flow), (Some("user"), Some("server")));
        assert_eq!(completed(None, Some("router"), flow), (Some("server"), Some("router")));
        assert_eq!(completed(None, Some("user"), None), (None, Some("user")));
    }
}
