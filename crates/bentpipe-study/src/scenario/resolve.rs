//! Turns a document into a [`Scenario`].

use bentpipe_engine::units::Duration;
use bentpipe_language::document::{self, Value};
use bentpipe_language::error::{Mistake, Problems, ScenarioErrors};
use bentpipe_language::kind::Kind;
use bentpipe_language::overrides;
use bentpipe_language::reader::View;
use bentpipe_language::shape::{Counted, Shape};
use bentpipe_language::tcp::{TcpTable, tcp_table, variants};

use super::beside::{Beside, ReadFile};
use super::boxes;
use super::flows;
use super::gateways;
use super::grammar::{GATEWAY, LAYER, OVERRIDES, SCENARIO};
use super::hosts;
use super::layers;
use super::links::Network;
use super::model::{FlowKind, HostSpec, Scenario};
use super::spoof;
use super::tdma;
use super::timers;
use super::windows;
use super::world::World;
use crate::topology::{self, Unreachable};

/// Default time limit.
const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(3600);
/// Default seed.
const DEFAULT_SEED: u64 = 1;
/// Maximum number of flows in a scenario, including all counts.
const MAX_FLOWS: usize = 1_000_000;

pub(crate) fn scenario(
    text: &str,
    name: &str,
    sets: &[(String, String)],
    read: ReadFile<'_>,
) -> Result<(Scenario, ScenarioErrors), ScenarioErrors> {
    let mut problems = Problems::of("scenario");
    let source = problems.add_source(name, text);
    let mut root = document::parse(text, source, &mut problems);
    if problems.count() > 0 {
        // After a syntax error, further messages would be unreliable.
        return problems.finish(None);
    }
    for (key, value) in sets {
        overrides::apply(&mut root, key, value, &OVERRIDES, &mut problems);
    }
    let scenario = resolve(&root, Beside::of(name, read), &mut problems);
    let warnings = problems.take_warnings();
    Ok((problems.finish(scenario)?, warnings))
}

fn resolve(root: &document::Node, beside: Beside<'_>, problems: &mut Problems) -> Option<Scenario> {
    let Value::Table(table) = &root.value else { return None };
    if Kind::Scenario.is_another(table, problems) {
        return None;
    }
    let view = View::open(table, String::new(), root.span, SCENARIO, problems);
    let text = |key, problems: &mut Problems| view.get(key).and_then(|item| item.text(problems)).map(str::to_owned);
    let name = view.require("name", problems).and_then(|item| item.name(problems)).map(str::to_owned);
    let description = text("description", problems).unwrap_or_default();
    let source = text("source", problems);
    let seed = view.get("seed").map_or(Some(DEFAULT_SEED), |item| item.count(Counted::new("", 0, u64::MAX), problems));
    let time_limit = view.get("time_limit").map_or(Some(DEFAULT_TIME_LIMIT), |item| {
        let limit = item.duration(problems)?;
        if limit == Duration::ZERO {
            item.refuse(problems, "`time_limit` cannot be 0 s", Some(Shape::DURATION.expected()));
        }
        Some(limit)
    });
    let tcp = view.get("tcp").map(|item| tcp_table(&item, problems)).unwrap_or_default();
    let variants = view.get("variants").map(|item| variants(&item, problems)).unwrap_or_default();
    let network = Network::read(&entries(&view, "links", problems), beside, problems);
    let layers = match view.get("layers") {
        Some(item) => {
            let entries = item.list(&Shape::List(&Shape::Table(LAYER)), problems).unwrap_or_default();
            layers::read(&entries, &network, problems)
        }
        None => Vec::new(),
    };
    let (gateways, boxes_at) = match view.get("gateways") {
        Some(item) => {
            let entries = item.list(&Shape::List(&Shape::Table(GATEWAY)), problems).unwrap_or_default();
            gateways::read(&entries, &network, &layers, problems)
        }
        None => Default::default(),
    };
    let world = World { network: &network, tcp: &tcp, variants: &variants, seed: seed.unwrap_or(DEFAULT_SEED) };
    let mut flows = Vec::new();
    let mut places = Vec::new();
    let mut timers_given = Vec::new();
    // An emulation needs no flows.
    let listed = if view.get("flows").is_some() { entries(&view, "flows", problems) } else { Vec::new() };
    for (index, item) in listed.into_iter().enumerate() {
        let read = flows::read(&item, index, &world, problems);
        places.extend(std::iter::repeat_n((item.node.span, item.path.clone()), read.len()));
        timers_given.extend(std::iter::repeat_n(timers::given(&item), read.len()));
        flows.extend(read);
        if flows.len() > MAX_FLOWS {
            item.refuse(problems, format!("more than {MAX_FLOWS} flows"), None);
            return None;
        }
    }
    if flows.is_empty() {
        // Settings are checked even if no flow uses them.
        check_defaults(&tcp, &world, &view, problems);
    }
    let mut names: Vec<_> = flows.iter().enumerate().map(|(index, flow)| (flow.name.as_str(), index)).collect();
    names.sort();
    for pair in names.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let (name, index) = pair[1];
        let mistake = Mistake::new(&format!("{}.name", places[index].1), format!("two flows are called `{name}`"));
        problems.add(places[index].0, mistake.expected("different names of flows"));
    }
    let hosts = match view.get("nodes") {
        Some(item) => hosts::hosts(&item, &network.nodes, &flows, network.is_whole && !flows.is_empty(), problems),
        None => vec![HostSpec::default(); network.nodes.len()],
    };
    let mut scenario = Scenario {
        name: name?,
        description,
        source,
        seed: seed?,
        time_limit: time_limit?,
        nodes: network.nodes.clone(),
        hosts,
        links: network.links.clone(),
        layers,
        gateways,
        flows,
        variants,
    };
    check_reachable(&scenario, &places, problems);
    spoof::check(&scenario, &places, problems);
    tdma::check(&scenario, view.get("links").map(|item| item.node.span), problems);
    timers::fit_all(&mut scenario, &timers_given);
    windows::fit_all(&mut scenario);
    if !scenario.gateways.is_empty() {
        boxes::check(&scenario, &boxes_at, &places, problems);
        if problems.count() == 0 {
            boxes::cross(&mut scenario);
        }
    }
    Some(scenario)
}

/// The entries of a required, non-empty list.
fn entries<'a>(view: &View<'a>, key: &str, problems: &mut Problems) -> Vec<bentpipe_language::reader::Item<'a>> {
    let Some(item) = view.require(key, problems) else { return Vec::new() };
    let shape = SCENARIO.iter().find(|field| field.key == key).map_or(Shape::Text, |field| field.shape);
    let Some(list) = item.list(&shape, problems) else { return Vec::new() };
    if list.is_empty() {
        item.refuse(problems, format!("`{key}` is empty"), Some(format!("at least one [[{key}]]")));
    }
    list
}

fn check_defaults(tcp: &TcpTable, world: &World<'_>, view: &View<'_>, problems: &mut Problems) {
    if let Some(item) = view.get("tcp") {
        tcp.resolve(world.variants, (item.node.span, "tcp"), problems);
    }
}

/// Checks that data has a path, and that a connection's ACKs have a path back.
fn check_reachable(scenario: &Scenario, places: &[(bentpipe_language::error::Span, String)], problems: &mut Problems) {
    let mut last = None;
    for (flow, (span, path)) in scenario.flows.iter().zip(places) {
        // The flows of one entry share their ends.
        if last.replace(*span) == Some(*span) {
            continue;
        }
        let needs_return = !matches!(flow.kind, FlowKind::Udp(_));
        let paths = topology::legs(flow).into_iter().flat_map(|leg| {
            let back = needs_return.then(|| leg.return_path(scenario));
            [Some(leg.forward_path(scenario)), back]
        });
        for unreachable in paths.flatten().filter_map(Result::err) {
            let Unreachable { from, to } = &unreachable;
            let mistake = Mistake::new(path, unreachable.to_string())
                .expected(format!("links that lead from `{from}` to `{to}`"));
            problems.add(*span, mistake);
        }
    }
}
