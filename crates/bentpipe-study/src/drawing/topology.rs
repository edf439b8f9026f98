//! Nodes and links, from left to right along the data's path.

use std::collections::BTreeSet;

use crate::report::listed;
use crate::scenario::{FlowKind, FlowSpec, LinkSpec, NodeId, Scenario, Workload};
use crate::topology;
use bentpipe_engine::link::QueueLimit;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::Rate;

use super::canvas::{Anchor, BLACK, BLUE, Canvas, GREY, LIGHT, LINE, ORANGE, width_of};
use super::{Drawing, csv_row, words};

/// Pixels from one rank of nodes to the next, and from a node to the one below it.
const STEP: i32 = 264;
const LANE: i32 = 126;
const MARGIN: i32 = 80;
const NODE: i32 = 40;

/// Links that carry data, over all flows. Of two directions of a link that both do, only that of the earlier flow: it is drawn once.
pub(super) fn forward_links(scenario: &Scenario) -> BTreeSet<LinkId> {
    let path = |flow: &FlowSpec| match flow.kind.workload() {
        Some(Workload::RequestResponse { .. }) => topology::return_path(scenario, flow),
        _ => topology::forward_path(scenario, flow),
    };
    let mut forward = BTreeSet::new();
    for link in scenario.flows.iter().filter_map(|flow| path(flow).ok()).flatten() {
        if !forward.iter().any(|&other: &LinkId| words::is_partner(&scenario[link], &scenario[other])) {
            forward.insert(link);
        }
    }
    forward
}

/// Number of data links before each node, on the longest path.
fn ranks(scenario: &Scenario, forward: &BTreeSet<LinkId>) -> Vec<usize> {
    let mut ranks = vec![0; scenario.nodes.len()];
    // In a ring, a rank would grow without end. No path is longer than the number of nodes.
    for _ in 0..scenario.nodes.len() {
        for link in forward.iter().map(|&link| &scenario[link]) {
            let rank = ranks[link.to.index()].max(ranks[link.from.index()] + 1);
            ranks[link.to.index()] = rank.min(scenario.nodes.len());
        }
    }
    ranks
}

/// The middle of each node. `half`: half of the widest node's width.
fn places(ranks: &[usize], half: i32) -> Vec<(i32, i32)> {
    // The label of a link fits between two nodes.
    let step = STEP.max(2 * half + 120);
    let of_rank = |rank: usize| ranks.iter().filter(|&&other| other == rank).count();
    let lanes = ranks.iter().map(|&rank| of_rank(rank)).max().unwrap_or(1) as i32;
    let place = |node: usize| {
        let rank = ranks[node];
        let before = ranks[..node].iter().filter(|&&other| other == rank).count() as i32;
        let free = LANE * (lanes - of_rank(rank) as i32) / 2;
        (MARGIN + step * rank as i32, 70 + free + LANE * before)
    };
    (0..ranks.len()).map(place).collect()
}

/// The text above and below a link.
fn labels(scenario: &Scenario, link: &LinkSpec) -> [Vec<String>; 2] {
    let config = &link.config;
    let rate = |of: Option<Rate>| of.map_or("no line rate".to_owned(), words::rate);
    let ours = words::data_rate(scenario, link);
    let mean = |changes: bool| if changes { "mean " } else { "" };
    let mean_rate = || format!("{}{}", mean(config.rate_changes() && config.tdma.is_none()), rate(ours));
    let above = vec![
        words::name(link).to_owned(),
        words::range(config).unwrap_or_else(mean_rate),
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
        let mean = topology::mean_rate(back);
        if mean != ours {
            below.push(format!("back: {}", words::range(back).unwrap_or_else(|| rate(mean))));
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
    // Several flows may do the same thing here: each task is listed once, in full.
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut lines = Vec::new();
    lines.extend(scenario.hosts[node.index()].processing.as_ref().map(words::processing).into_iter().flatten());
    for pair in scenario.gateways.pairs.iter().filter(|pair| pair.nodes.contains(&node)) {
        lines.push(format!("box of `{}`", pair.name));
    }
    for uplink in scenario.gateways.uplinks.iter().filter(|uplink| uplink.at == node) {
        lines.push(format!("gateway `{}`: uplink", uplink.name));
    }
    let mut add = |task: Vec<String>| {
        if !all.contains(&task) {
            all.push(task);
        }
    };
    for flow in &scenario.flows {
        let FlowKind::Tcp(tcp) = &flow.kind else { continue };
        if tcp.splits.iter().any(|split| split.gateway.is_none() && split.at == node) {
            add(vec!["TCP is split here".to_owned()]);
        }
        if let Some(spoof) = tcp.spoof.filter(|spoof| spoof.at == node) {
            add(vec!["TCP ends here:".to_owned(), format!("{} packets", spoof.buffer)]);
        }
    }
    lines.extend(all.concat());
    lines
}

/// Half of the width of a node with this name, pixels.
fn half_of(name: &str) -> i32 {
    width_of(name).max(28) / 2 + 10
}

/// The positions of the nodes, and the way of a link that leads beneath them.
struct Places<'s> {
    scenario: &'s Scenario,
    at: Vec<(i32, i32)>,
}

impl Places<'_> {
    fn half(&self, node: NodeId) -> i32 {
        half_of(&self.scenario[node])
    }

    /// The way from the foot of a node, `aside` from its middle, to the height `beneath`, past the nodes below it.
    fn down(&self, node: NodeId, aside: i32, beneath: i32) -> Vec<(i32, i32)> {
        let (x, y) = self.at[node.index()];
        let foot = (x + aside, y + NODE / 2);
        let nodes = (0..self.at.len()).map(NodeId::from);
        let lower = nodes.filter(|&other| self.at[other.index()].0 == x && self.at[other.index()].1 > y);
        let past = lower.map(|other| self.half(other)).max();
        match past {
            None => vec![foot, (foot.0, beneath)],
            Some(half) => {
                let x = x + aside.signum() * (half + 6 + aside.abs());
                vec![foot, (foot.0, foot.1 + 12), (x, foot.1 + 12), (x, beneath)]
            }
        }
    }
}

/// How a link of the data is drawn.
enum Way {
    /// From node to node. Beside other links from the same node, it turns at once, and its label is in the lane of its
    /// end.
    Straight { turns_at_once: bool },
    /// Beneath the nodes: for a link beside another one between the same nodes, or for the return direction alone.
    Beneath(&'static str),
}

fn way(scenario: &Scenario, forward: &BTreeSet<LinkId>, number: usize) -> Option<Way> {
    let link = &scenario.links[number];
    if !forward.contains(&LinkId::from(number)) {
        let has_partner = forward.iter().any(|&other| words::is_partner(link, &scenario[other]));
        return (!has_partner).then_some(Way::Beneath(ORANGE));
    }
    let others = || forward.iter().filter(|other| other.index() != number).map(|&other| (other, &scenario[other]));
    if others().any(|(n, other)| n.index() < number && (other.from, other.to) == (link.from, link.to)) {
        return Some(Way::Beneath(BLUE));
    }
    let turns_at_once = others().any(|(_, other)| other.from == link.from && other.to != link.to);
    Some(Way::Straight { turns_at_once })
}

/// The scenario's nodes, links and flows; all links as a table.
pub fn topology(scenario: &Scenario, title: &str) -> Drawing {
    let forward = forward_links(scenario);
    let widest = scenario.nodes.iter().map(|name| half_of(name)).max().unwrap_or(0);
    let places = Places { scenario, at: places(&ranks(scenario, &forward), widest) };
    let bottom = places.at.iter().map(|place| place.1).max().unwrap_or(0);
    let mut canvas = Canvas::default();
    let mut texts: Vec<((i32, i32), &str, Vec<String>)> = Vec::new();
    let mut aside = Vec::new();
    for (n, link) in scenario.links.iter().enumerate() {
        let ((x0, y0), (x1, y1)) = (places.at[link.from.index()], places.at[link.to.index()]);
        let [above, below] = labels(scenario, link);
        match way(scenario, &forward, n) {
            Some(Way::Straight { turns_at_once }) => {
                let (from, to) = (x0 + places.half(link.from), x1 - places.half(link.to));
                let bend = if turns_at_once { from + 16 } else { to - 16 };
                canvas.path(&[(from, y0), (bend, y0), (bend, y1), (to, y1)], BLUE, false, true);
                let (middle, y) = match turns_at_once {
                    _ if y0 == y1 => ((from + to) / 2, y0),
                    true => ((bend + to) / 2, y1),
                    false => ((from + bend) / 2, y0),
                };
                texts.push(((middle, y - 8 - LINE * (above.len() as i32 - 1)), BLACK, above));
                texts.push(((middle, y + 18), GREY, below));
            }
            Some(Way::Beneath(colour)) => aside.push((link, colour, [above, below].concat().join(", "))),
            None => {}
        }
    }
    for (n, &(x, y)) in places.at.iter().enumerate() {
        let (node, tasks) = (NodeId::from(n), tasks(scenario, NodeId::from(n)));
        // Above the node if a line leads to its foot.
        let y = match aside.iter().any(|(link, ..)| [link.from, link.to].contains(&node)) {
            true => y - NODE / 2 - 8 - LINE * (tasks.len() as i32 - 1),
            false => y + NODE / 2 + 17,
        };
        texts.push(((x, y), GREY, tasks));
    }
    let lowest = texts.iter().map(|((_, y), _, lines)| y + LINE * (lines.len() as i32 - 1)).max().unwrap_or(0);
    let mut beneath = (bottom + 70).max(lowest + 20);
    for (n, (link, colour, words)) in aside.into_iter().enumerate() {
        // The vertical parts of the first few do not cover one another.
        let apart = (10 - 4 * n as i32).max(2);
        let sign = if places.at[link.from.index()].0 <= places.at[link.to.index()].0 { -1 } else { 1 };
        let (from, to) = (sign * apart, -sign * apart);
        let mut points = places.down(link.from, from, beneath);
        points.extend(places.down(link.to, to, beneath).into_iter().rev());
        canvas.path(&points, colour, false, true);
        let middle = (places.at[link.from.index()].0 + places.at[link.to.index()].0) / 2;
        texts.push(((middle, beneath + 16), BLACK, vec![words]));
        beneath += 36;
    }
    for (n, name) in scenario.nodes.iter().enumerate() {
        let ((x, y), half) = (places.at[n], places.half(NodeId::from(n)));
        canvas.rect((x - half, y - NODE / 2), (2 * half, NODE), LIGHT, BLACK);
        canvas.text((x, y + 5), Anchor::Middle, BLACK, name);
    }
    for (place, colour, lines) in texts {
        canvas.labels(place, Anchor::Middle, colour, &lines);
    }
    // Flows that `count` made are a line together.
    let mut groups: Vec<(Vec<&FlowSpec>, String)> = Vec::new();
    for flow in &scenario.flows {
        let what = format!("{}, {} to {}", words::transport(flow), &scenario[flow.from], &scenario[flow.to]);
        let is_one = |other: &FlowSpec| other.family().is_some() && other.family() == flow.family();
        match groups.last_mut().filter(|(flows, last)| *last == what && is_one(flows[0])) {
            Some((flows, _)) => flows.push(flow),
            None => groups.push((vec![flow], what)),
        }
    }
    let names = |flows: &[&FlowSpec]| listed(&flows.iter().map(|flow| &*flow.name).collect::<Vec<_>>());
    let flows: Vec<_> = groups.iter().map(|(flows, what)| format!("{}: {what}", names(flows))).collect();
    canvas.lines((20, beneath + 24), Anchor::Start, GREY, &flows);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A one-way link with this name, from and to.
    fn link(name: &str, from: &str, to: &str) -> String {
        format!(
            "[[links]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1 Mbit/s\"\ndelay = \"9 ms\"\n"
        )
    }

    fn drawn(links: &[(&str, &str, &str)], routes: &[&str]) -> String {
        let mut text = "name = \"t\"\n".to_owned();
        text.extend(links.iter().map(|(name, from, to)| link(name, from, to)));
        for (n, route) in routes.iter().enumerate() {
            let to = links.iter().find(|(name, ..)| name == route).expect("a link").2;
            text += &format!(
                "[[flows]]\nname = \"f{n}\"\nfrom = \"A\"\nto = \"{to}\"\nroute = [\"{route}\"]\nbytes = \"1 kB\"\n"
            );
        }
        let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        topology(&scenario, "t").svg
    }

    /// Where a text begins or is centred.
    fn place(svg: &str, text: &str) -> (i32, i32) {
        let line =
            svg.lines().find(|line| line.contains(&format!(">{text}<"))).unwrap_or_else(|| panic!("{text}: {svg}"));
        let number = |key: &str| {
            let rest = line.split_once(&format!("{key}=\"")).expect("a place").1;
            rest.split_once('"').expect("quoted").0.parse().expect("a number")
        };
        (number("x"), number("y"))
    }

    #[test]
    fn labels_of_links_from_one_node_are_apart() {
        let svg = drawn(&[("up", "A", "B"), ("down", "A", "C"), ("b", "B", "A"), ("c", "C", "A")], &["up", "down"]);
        let (up, down) = (place(&svg, "up"), place(&svg, "down"));
        assert!(down.1 - up.1 >= LANE, "{up:?} {down:?}\n{svg}");
        // Links between the same nodes: the second is drawn beneath, with its whole label in one line.
        let svg = drawn(&[("one", "A", "B"), ("two", "A", "B"), ("back", "B", "A")], &["one", "two"]);
        let (one, two) = (place(&svg, "one"), place(&svg, "two, 1 Mbit/s, 9 ms, unlimited queue"));
        assert!(two.1 - one.1 >= 100, "{one:?} {two:?}\n{svg}");
    }

    /// A download and an upload: the link is drawn once, in the direction of the first flow. The data of requests are the responses.
    #[test]
    fn flows_in_both_directions_leave_the_nodes_apart() {
        let flow = |from, to, data| format!("[[flows]]\nname = \"{from}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{data}\n");
        let bulk = "bytes = \"1 kB\"";
        let asks = "request_response = { request = \"1 B\", response = \"1 kB\", count = 1 }";
        for first in [flow("hub", "ship", bulk), flow("ship", "hub", asks)] {
            let links = [link("sat/forward", "hub", "ship"), link("sat/backward", "ship", "hub")].concat();
            let back = flow("ship", "hub", bulk).replace("name = \"ship\"", "name = \"back\"");
            let text = ["name = \"t\"\n", &links, &first, &back].concat();
            let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
            let svg = topology(&scenario, "t").svg;
            assert!(place(&svg, "hub").0 + STEP <= place(&svg, "ship").0, "{svg}");
            assert_eq!(svg.matches(">sat<").count(), 1, "{svg}");
        }
    }

    #[test]
    fn a_long_name_is_not_cut_and_many_flows_take_one_line() {
        let long = "a-terminal-whose-name-is-longer-than-any";
        let mut text = ["name = \"t\"\n", &link("there", "A", long), &link("back", long, "A")].concat();
        text += &format!("[[flows]]\nname = \"f\"\nfrom = \"{long}\"\nto = \"A\"\nbytes = \"1 kB\"\ncount = 40\n");
        let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let svg = topology(&scenario, "t").svg;
        let shift: i32 =
            svg.split_once("translate(").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok()).expect("x");
        assert!(place(&svg, long).0 + shift >= half_of(long), "{svg}");
        assert!(place(&svg, "A").0 - half_of("A") > place(&svg, long).0 + half_of(long) + 100, "{svg}");
        assert!(svg.contains(&format!(">f-1, f-2, .. f-40 (40 flows): TCP (sack), {long} to A<")), "{svg}");
    }

    #[test]
    fn a_task_is_told_once_and_a_name_whole() {
        let text = Scenario::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/hybrid-shared.toml"), &[]);
        let svg = topology(&text.unwrap_or_else(|errors| panic!("{errors}")), "t").svg;
        assert_eq!((svg.matches("TCP ends here:").count(), svg.matches("30 packets").count()), (1, 1), "{svg}");
        // Beneath the node if nothing else is there, above it if a line leads to its foot.
        assert!(place(&svg, "TCP ends here:").1 > place(&svg, "gateway").1, "{svg}");
        let text = Scenario::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/minei-split.toml"), &[]);
        let svg = topology(&text.unwrap_or_else(|errors| panic!("{errors}")), "t").svg;
        assert!(place(&svg, "TCP is split here").1 < place(&svg, "uplink").1 - NODE / 2, "{svg}");
        let svg = drawn(&[("sat/x", "A", "B"), ("back", "B", "A")], &["sat/x"]);
        place(&svg, "sat/x");
    }
}
