//! Nodes and links, from left to right along the data's path.

use std::collections::BTreeSet;

use crate::scenario::{FlowKind, LinkSpec, NodeId, Scenario};
use crate::topology;
use bentpipe_engine::link::QueueLimit;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::Rate;

use super::canvas::{Anchor, BLACK, BLUE, Canvas, GREY, LIGHT, ORANGE, width_of};
use super::{Drawing, csv_row, words};

/// Pixels from one rank of nodes to the next, and from one node to the one below it.
const STEP: i32 = 264;
const LANE: i32 = 126;
const MARGIN: i32 = 80;
const NODE: i32 = 40;

/// Links that carry data, over all flows.
pub(super) fn forward_links(scenario: &Scenario) -> BTreeSet<LinkId> {
    scenario.flows.iter().filter_map(|flow| topology::forward_path(scenario, flow).ok()).flatten().collect()
}

/// Number of data links before each node, on the longest path.
fn ranks(scenario: &Scenario, forward: &BTreeSet<LinkId>) -> Vec<usize> {
    let mut ranks = vec![0; scenario.nodes.len()];
    // In a ring a rank would grow forever; no path is longer than the number of
    // nodes.
    for _ in 0..scenario.nodes.len() {
        for link in forward.iter().map(|&link| &scenario[link]) {
            let rank = ranks[link.to.index()].max(ranks[link.from.index()] + 1);
            ranks[link.to.index()] = rank.min(scenario.nodes.len());
        }
    }
    ranks
}

/// The middle of each node.
fn places(ranks: &[usize]) -> Vec<(i32, i32)> {
    let of_rank = |rank: usize| ranks.iter().filter(|&&other| other == rank).count();
    let lanes = ranks.iter().map(|&rank| of_rank(rank)).max().unwrap_or(1) as i32;
    let place = |node: usize| {
        let rank = ranks[node];
        let before = ranks[..node].iter().filter(|&&other| other == rank).count() as i32;
        let free = LANE * (lanes - of_rank(rank) as i32) / 2;
        (MARGIN + STEP * rank as i32, 70 + free + LANE * before)
    };
    (0..ranks.len()).map(place).collect()
}

/// The text above and below a link.
fn labels(scenario: &Scenario, link: &LinkSpec) -> [Vec<String>; 2] {
    let config = &link.config;
    let rate = |of: Option<Rate>| of.map_or("no line rate".to_owned(), words::rate);
    let ours = words::data_rate(scenario, link);
    let mean = |changes: bool| if changes { "mean " } else { "" };
    let above = vec![
        words::name(link).to_owned(),
        format!("{}{}", mean(config.rate_changes() && config.tdma.is_none()), rate(ours)),
        format!("{}{}", mean(config.delay_changes()), words::span(config.mean_delay())),
    ];
    let number = scenario.links.iter().position(|other| other == link).map(LinkId::from);
    let layer = scenario.layers.iter().find(|layer| number.is_some_and(|number| layer.over.contains(&number)));
    let mut below = match (layer, &config.cells) {
        // Packets wait in the layer.
        (Some(layer), _) => {
            let limits = layer.channels.iter().filter_map(|channel| channel.limit);
            let limits = limits.filter(|limit| *limit != QueueLimit::Unlimited).map(words::room);
            std::iter::once(format!("link layer `{}`", layer.name)).chain(limits).collect()
        }
        (None, Some(cells)) => words::cell_buffer(cells),
        // Data in a port's buffer does not wait here.
        (None, None) if config.rate.is_none() && ours.is_some() => vec!["in cells".into()],
        (None, None) => vec![words::room(config.queue.limit)],
    };
    let pair = scenario.gateways.pairs.iter().find(|pair| number.is_some_and(|number| pair.over.contains(&number)));
    below.extend(pair.map(|pair| format!("gateway `{}`: {}", pair.name, pair.carries.shape())));
    below.extend(words::losses(&config.good));
    let changes = words::changes(config);
    below.extend(changes.iter().cloned());
    if let Some(back) = words::partner(scenario, link).map(|link| &link.config) {
        if back.rate != ours {
            below.push(format!("back: {}", rate(back.rate)));
        }
        if back.good != config.good {
            below.extend(words::losses(&back.good).iter().map(|loss| format!("back: {loss}")));
        }
        below.extend(
            words::changes(back).iter().filter(|change| !changes.contains(change)).map(|c| format!("back: {c}")),
        );
    }
    [above, below]
}

/// Functions of a node.
fn tasks(scenario: &Scenario, node: NodeId) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(scenario.hosts[node.index()].processing.as_ref().map(words::processing).into_iter().flatten());
    for pair in scenario.gateways.pairs.iter().filter(|pair| pair.nodes.contains(&node)) {
        lines.push(format!("box of `{}`", pair.name));
    }
    for uplink in scenario.gateways.uplinks.iter().filter(|uplink| uplink.at == node) {
        lines.push(format!("gateway `{}`: uplink", uplink.name));
    }
    for flow in &scenario.flows {
        let FlowKind::Tcp(tcp) = &flow.kind else { continue };
        if tcp.splits.iter().any(|split| split.gateway.is_none() && split.at == node) {
            lines.push("TCP is split here".into());
        }
        if let Some(spoof) = tcp.spoof.filter(|spoof| spoof.at == node) {
            lines.extend(["TCP ends here:".to_owned(), format!("{} packets", spoof.buffer)]);
        }
    }
    lines.dedup();
    lines
}

/// The scenario's nodes, links and flows; all links as a table.
pub fn topology(scenario: &Scenario, title: &str) -> Drawing {
    let forward = forward_links(scenario);
    let places = places(&ranks(scenario, &forward));
    let half = |node: NodeId| width_of(&scenario[node]).max(28) / 2 + 10;
    let bottom = places.iter().map(|place| place.1).max().unwrap_or(0);
    let mut canvas = Canvas::default();
    let mut beneath = bottom + 70;
    for (n, link) in scenario.links.iter().enumerate() {
        let ((x0, y0), (x1, y1)) = (places[link.from.index()], places[link.to.index()]);
        let [above, below] = labels(scenario, link);
        if forward.contains(&LinkId::from(n)) {
            let (from, to) = (x0 + half(link.from), x1 - half(link.to));
            let bend = to - 16;
            canvas.path(&[(from, y0), (bend, y0), (bend, y1), (to, y1)], BLUE, false, true);
            let middle = if y0 == y1 { (from + to) / 2 } else { (from + bend) / 2 };
            canvas.lines((middle, y0 - 8 - 16 * (above.len() as i32 - 1)), Anchor::Middle, BLACK, &above);
            canvas.lines((middle, y0 + 18), Anchor::Middle, GREY, &below);
        } else if !forward.iter().any(|&other| words::is_partner(link, &scenario[other])) {
            // A separate path for the return direction.
            let (down, up) = (x0 + 10, x1 - 10);
            canvas.path(
                &[(down, y0 + NODE / 2), (down, beneath), (up, beneath), (up, y1 + NODE / 2)],
                ORANGE,
                false,
                true,
            );
            let words = [above, below].concat().join(", ");
            canvas.text(((down + up) / 2, beneath - 8), Anchor::Middle, BLACK, &words);
            beneath += 36;
        }
    }
    for (n, name) in scenario.nodes.iter().enumerate() {
        let ((x, y), node) = (places[n], NodeId::from(n));
        canvas.rect((x - half(node), y - NODE / 2), (2 * half(node), NODE), LIGHT, BLACK);
        canvas.text((x, y + 5), Anchor::Middle, BLACK, name);
        canvas.lines((x, y + NODE / 2 + 17), Anchor::Middle, GREY, &tasks(scenario, node));
    }
    let flows: Vec<_> = scenario
        .flows
        .iter()
        .map(|flow| {
            let (from, to) = (&scenario[flow.from], &scenario[flow.to]);
            format!("{}: {}, {from} to {to}", flow.name, words::transport(flow))
        })
        .collect();
    canvas.lines((20, beneath + 34), Anchor::Start, GREY, &flows);
    Drawing { svg: canvas.finish(title), csv: csv(scenario) }
}

fn csv(scenario: &Scenario) -> String {
    let mut out = String::from("link,from,to,rate (bit/s),delay (ms),queue,losses\n");
    for link in &scenario.links {
        let config = &link.config;
        let bits = config.rate.map_or(String::new(), |rate| rate.bits_per_second().to_string());
        let queue = config
            .cells
            .as_ref()
            .map_or_else(|| words::room(config.queue.limit), |cells| words::cell_buffer(cells).join(", "));
        let (from, to) = (&scenario[link.from], &scenario[link.to]);
        let delay = words::plain(config.delay.as_millis_f64());
        out += &csv_row(&[&link.name, from, to, &bits, &delay, &queue, &words::losses(&config.good).join(", ")]);
    }
    out
}
