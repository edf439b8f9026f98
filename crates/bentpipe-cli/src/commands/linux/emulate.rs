//! `bentpipe emulate`: a scenario's hosts as network namespaces, its links between them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::process::{Child, Command};

use bentpipe_emulator::{Host, Lab, Tap};
use bentpipe_engine::units::Time;
use bentpipe_io::child::{self, Ask};
use bentpipe_io::{Caught, Descendants, Signals, note};
use bentpipe_study::scenario::Scenario;
use serde::Serialize;

use super::boxes::{BoxLine, Gateways};
use super::control::{self, Live};
use super::program::{Program, in_capitals, not_started};
use super::realtime::{Summary, capture, nodes, refused};
use super::status::{Place, Status};
use crate::args::Emulate;
use crate::failure::{End, Failure};
use crate::output::{self, Inputs, Remake};
use crate::{interrupt, source};

/// Marks of wake-ups other than packets.
const SIGNALS: u32 = 0;

#[derive(Serialize)]
struct HostLine<'a> {
    host: &'a str,
    namespace: &'a str,
    ipv4: String,
    ipv6: Option<String>,
}

#[derive(Serialize)]
struct Ready<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    hosts: Vec<HostLine<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gateways: Vec<BoxLine>,
}

pub(crate) fn emulate(args: &Emulate) -> Result<End, Failure> {
    let signals = Signals::catch().map_err(Failure::broken)?;
    interrupt::install()?;
    interrupt::heed();
    let mut inputs = Inputs::default();
    let scenario = source::load_links(&args.world, &mut inputs)?;
    let remake = Remake::new(scenario.seed);
    let more = nodes(&scenario, &args.hosts)?;
    if let Some(path) = &args.watch.pcap {
        output::check_writable(path)?;
    }
    let print = output::beside(&inputs, &[args.watch.pcap.as_deref()])?;
    let mut lab = Lab::build(&scenario, &more).map_err(refused(&args.world))?;
    let boxes = lab.boxes().cloned();
    let mut gateways = Gateways::start(&scenario, boxes.as_ref())?;
    if let Some(boxes) = &boxes {
        if let Some(end) = gateways.wait(&scenario, boxes, lab.emulator_mut(), Some(&signals))? {
            return Ok(end);
        }
        lab.restart(&scenario).map_err(refused(&args.world))?;
    }
    lab.emulator().watch(&signals, SIGNALS).map_err(Failure::broken)?;
    let names: Vec<String> = lab.hosts().iter().map(|host| host.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let sender = scenario.flows.first().map(|flow| &scenario[flow.from]);
    let usual = names.iter().position(|name| Some(*name) == sender).unwrap_or(0);
    capture(&args.watch, &scenario, &remake, lab.emulator_mut(), &names, usual)?;
    let mut live = Live::open(args.control.as_deref(), &scenario, lab.emulator())?;
    // With a command, standard output is the command's.
    let print = match args.command.is_empty() {
        true => print,
        false => output::print_aside,
    };
    announce(args, &scenario, &remake, (&lab, &gateways), print)?;
    if let Some(why) = lab.unnamed() {
        note!("bentpipe: not available: the hosts' names in their namespaces: {why}");
    }
    let descendants = Descendants::adopt().map_err(Failure::broken)?;
    let command = start(args, lab.hosts(), &gateways)?;
    let mut program = command.map(|command| Program::new(command, Some(descendants), Ask::Terminate));
    let place = if program.is_some() { Place::Title } else { Place::Line };
    let mut status = Status::new(place, args.watch.interval, lab.emulator());
    let (live, running) = (live.as_mut(), program.as_mut());
    let mut beside = Beside { live, program: running, status: &mut status, gateways: &mut gateways };
    let end = run(&scenario, &mut lab, &signals, &mut beside);
    status.end(&scenario, lab.emulator());
    let summary = Summary::new(&scenario, lab.emulator()).with_gateways(gateways.lines());
    let has_ended = gateways.has_ended();
    drop(gateways);
    if let Some(program) = &program {
        program.clear();
    }
    let captured = lab.emulator_mut().take_tap().map_or(Ok(()), Tap::finish);
    drop(lab);
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&summary).map_err(Failure::broken)?))?;
    } else {
        print(&format!("\n{}\n", summary.text()))?;
    }
    captured.map_err(Failure::unwritten)?;
    match end {
        // Without the gateway, the links were not those of the scenario.
        Ok(End::Code(0) | End::Done) if has_ended => Ok(End::Failed),
        other => other,
    }
}

fn announce(
    args: &Emulate,
    scenario: &Scenario,
    remake: &Remake,
    (lab, gateways): (&Lab, &Gateways),
    print: output::Print,
) -> Result<(), Failure> {
    let hosts = lab.hosts();
    let v6 = |host: &Host| host.v6.map(|v6| v6.to_string());
    if args.json {
        let hosts = hosts.iter().map(|host| {
            let Host { name, namespace, v4, .. } = host;
            HostLine { host: name, namespace, ipv4: v4.to_string(), ipv6: v6(host) }
        });
        let ready = Ready { remake, hosts: hosts.collect(), gateways: gateways.announced() };
        return print(&format!("{}\n", serde_json::to_string(&ready).map_err(Failure::broken)?));
    }
    let rows = hosts.iter().map(|host| {
        let v6 = v6(host).unwrap_or_else(|| "–".to_owned());
        vec![host.name.clone(), host.namespace.clone(), host.v4.to_string(), v6]
    });
    let table = output::table(&["host", "namespace", "IPv4", "IPv6"], usize::MAX, rows);
    let [first, .., last] = hosts else {
        return Err(Failure::usage("the scenario has fewer than two hosts", None));
    };
    let (near, far, server) = (&last.namespace, &first.namespace, lab.name_of(first));
    let use_it = format!(
        "  ip netns exec {near} ping -c 3 {server}\n\
         \x20 ip netns exec {far} iperf3 -s -D && ip netns exec {near} iperf3 -c {server} -R"
    );
    let gateways = match gateways.text() {
        text if text.is_empty() => text,
        text => format!("\n\n{}", text.trim_end()),
    };
    let ctrl_c = if args.command.is_empty() { "Ctrl-C ends it.\n" } else { "" };
    print(&format!(
        "{}\n\n{table}{gateways}\n\nUse it, for example:\n{use_it}\n{ctrl_c}{}\n",
        scenario.headline(),
        remake.line()
    ))
}

/// Starts the command, if any, with the hosts in its environment.
fn start(args: &Emulate, hosts: &[Host], gateways: &Gateways) -> Result<Option<Child>, Failure> {
    let [program, arguments @ ..] = args.command.as_slice() else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(path) = &args.control {
        command.env(control::SOCKET, control::socket(path));
    }
    command.envs(variables(hosts, gateways)?);
    interrupt::leave_to_the_command();
    child::spawn(&mut command).map(Some).map_err(|error| not_started(program, &error))
}

/// The variables of the hosts and of the gateways. Each has its own: the names of two nodes may differ in letters that variables
/// cannot have.
fn variables(hosts: &[Host], gateways: &Gateways) -> Result<BTreeMap<String, OsString>, Failure> {
    let mut all = BTreeMap::new();
    let mut add = |name: String, value: OsString| match all.entry(name) {
        Entry::Vacant(entry) => {
            entry.insert(value);
            Ok(())
        }
        Entry::Occupied(entry) => Err(Failure::usage(
            format!("two nodes share the variable {} of the command", entry.key()),
            Some("give them names that differ in more than capitals and punctuation".to_owned()),
        )),
    };
    for host in hosts {
        let name = in_capitals(&host.name);
        add(format!("BENTPIPE_NS_{name}"), host.namespace.clone().into())?;
        add(format!("BENTPIPE_IP_{name}"), host.v4.to_string().into())?;
        if let Some(v6) = host.v6 {
            add(format!("BENTPIPE_IP6_{name}"), v6.to_string().into())?;
        }
    }
    for (name, file) in gateways.variables() {
        add(name, file.into())?;
    }
    Ok(all)
}

/// What is looked after beside the links.
struct Beside<'a> {
    live: Option<&'a mut Live>,
    program: Option<&'a mut Program>,
    status: &'a mut Status,
    gateways: &'a mut Gateways,
}

/// Runs until it is interrupted or the command ends.
fn run(scenario: &Scenario, lab: &mut Lab, signals: &Signals, beside: &mut Beside<'_>) -> Result<End, Failure> {
    let Beside { live, program, status, gateways } = beside;
    // If it is not allowed, packets sometimes wait for other programs, and the summary says how long.
    bentpipe_io::hurry();
    loop {
        let now = lab.emulator().clock().now();
        let until = Time::earliest(status.next(), program.as_ref().map(|program| program.next(now)));
        let until = Time::earliest(until, gateways.next(now));
        let until = Time::earliest(until, live.as_ref().and_then(|live| live.next()));
        let marks = lab.emulator_mut().turn(until).map_err(Failure::broken)?;
        status.show(scenario, lab.emulator());
        if let Some(live) = live {
            if marks.contains(&control::MARK) {
                live.serve(lab.emulator_mut());
            }
            live.on_time(lab.emulator_mut());
        }
        let now = lab.emulator().clock().now();
        gateways.look(now);
        if let Some(program) = program
            && let Some(end) = program.look(now)?
        {
            return Ok(end);
        }
        if !marks.contains(&SIGNALS) {
            continue;
        }
        while let Some(caught) = signals.next().map_err(Failure::broken)? {
            match (caught, &mut *program) {
                (Caught::Child, Some(program)) => {
                    if let Some(end) = program.ended()? {
                        return Ok(end);
                    }
                }
                // It receives the terminal's signals itself; when it ends, we end.
                (Caught::Child, None) | (Caught::Keyboard, Some(_)) => {}
                (Caught::Keyboard | Caught::End, None) => return Ok(End::Done),
                (Caught::End, Some(program)) => program.ask_to_end(now),
            }
        }
    }
}
