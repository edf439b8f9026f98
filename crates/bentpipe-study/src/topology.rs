//! The links of a flow's path, and the properties of paths.

use std::fmt;

use bentpipe_engine::atm::cell;
use bentpipe_engine::link::{LinkConfig, QueueLimit};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Bytes, Duration, Rate};

use crate::scenario::model::{FlowId, FlowKind, FlowSpec, LinkSpec, NodeId, Scenario, Split};

/// No links lead from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// The node that sends.
    pub from: String,
    /// The node that is not reached.
    pub to: String,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no links lead from `{}` to `{}`", self.from, self.to)
    }
}

impl std::error::Error for Unreachable {}

/// Links in the order in which packets pass them.
pub type Path = Vec<LinkId>;

/// The path with the fewest links; among those the one with the least delay; among those the one whose links come
/// first.
///
/// # Errors
/// Returns [`Unreachable`] if no links join the two nodes.
pub fn path(scenario: &Scenario, from: NodeId, to: NodeId) -> Result<Path, Unreachable> {
    let distance = distances(scenario, from, to);
    let unreachable = || Unreachable {
        from: scenario.nodes.get(from.index()).cloned().unwrap_or_default(),
        to: scenario.nodes.get(to.index()).cloned().unwrap_or_default(),
    };
    let mut at = from;
    let mut path = Path::new();
    while at != to {
        let here = distance.get(at.index()).copied().flatten().ok_or_else(unreachable)?;
        let next = scenario.links.iter().position(|link| link.from == at && through(link, &distance) == Some(here));
        let next = next.expect("a node with a distance has a link that the distance comes from");
        path.push(LinkId::from(next));
        at = scenario.links[next].to;
    }
    Ok(path)
}

/// Hops, then nanoseconds.
type Distance = (usize, u64);

/// The distance over a link.
fn through(link: &LinkSpec, distance: &[Option<Distance>]) -> Option<Distance> {
    let (hops, delay) = distance.get(link.to.index()).copied().flatten()?;
    Some((hops + 1, delay.saturating_add(link.config.delay.as_nanos())))
}

/// The distances to `to`, from `to` outwards until all nodes with as many hops as `from` have theirs. Reports ask for the paths of each
/// of ten thousand flows.
fn distances(scenario: &Scenario, from: NodeId, to: NodeId) -> Vec<Option<Distance>> {
    let mut distance = vec![None; scenario.nodes.len()];
    // The links to a node: the last one, and for each link the one before.
    let (mut last, mut before) = (vec![None; scenario.nodes.len()], vec![None; scenario.links.len()]);
    for (number, link) in scenario.links.iter().enumerate() {
        if let Some(last) = last.get_mut(link.to.index()) {
            before[number] = last.replace(number);
        }
    }
    let Some(goal) = distance.get_mut(to.index()) else { return distance };
    *goal = Some((0, 0));
    let mut nearer = vec![to];
    while !nearer.is_empty() && distance.get(from.index()).is_some_and(Option::is_none) {
        let mut further = Vec::new();
        for node in nearer {
            let mut next = last[node.index()];
            while let Some(number) = next {
                let link = &scenario.links[number];
                let candidate = through(link, &distance);
                let known = &mut distance[link.from.index()];
                if known.is_none() {
                    further.push(link.from);
                }
                if known.is_none() || candidate < *known {
                    *known = candidate;
                }
                next = before[number];
            }
        }
        nearer = further;
    }
    distance
}

/// The paths of a flow in both directions, over all its legs, with its explicit routes.
///
/// # Errors
/// Returns [`Unreachable`] if a direction of the flow has no path.
pub fn flow_paths(scenario: &Scenario, flow: &FlowSpec) -> Result<(Path, Path), Unreachable> {
    Ok((forward_path(scenario, flow)?, return_path(scenario, flow)?))
}

/// A connection between two nodes: a whole flow, or one leg of a split flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leg<'s> {
    /// The node that opens it.
    pub from: NodeId,
    /// The node at the other end.
    pub to: NodeId,
    route: Option<&'s Path>,
    return_route: Option<&'s Path>,
}

impl Leg<'_> {
    /// The links from `from` to `to`.
    ///
    /// # Errors
    /// Returns [`Unreachable`] if no links lead from the flow's source to its destination.
    pub fn forward_path(&self, scenario: &Scenario) -> Result<Path, Unreachable> {
        self.route.cloned().map_or_else(|| path(scenario, self.from, self.to), Ok)
    }

    /// The links back.
    ///
    /// # Errors
    /// Returns [`Unreachable`] if no links lead from the flow's destination to its source.
    pub fn return_path(&self, scenario: &Scenario) -> Result<Path, Unreachable> {
        self.return_route.cloned().map_or_else(|| path(scenario, self.to, self.from), Ok)
    }
}

/// The connections of a flow in order from its `from` to its `to`: one more than its splits.
pub fn legs(flow: &FlowSpec) -> Vec<Leg<'_>> {
    let splits = splits(flow);
    let ends = |n: usize| splits.get(n).map_or(flow.to, |split| split.at);
    let later = splits.iter().enumerate().map(|(n, split)| Leg {
        from: split.leaves(),
        to: ends(n + 1),
        route: split.route.as_ref(),
        return_route: split.return_route.as_ref(),
    });
    std::iter::once(first_leg(flow)).chain(later).collect()
}

/// The links before a leg that a gateway's tunnel takes, in the direction of the flow and back.
fn between(flow: &FlowSpec, leg: usize) -> Option<[LinkId; 2]> {
    splits(flow).get(leg.checked_sub(1)?)?.through().map(|through| through.over)
}

fn splits(flow: &FlowSpec) -> &[Split] {
    match &flow.kind {
        FlowKind::Tcp(tcp) => &tcp.splits,
        FlowKind::Stp(_) | FlowKind::Quic(_) | FlowKind::Udp(_) => &[],
    }
}

fn first_leg(flow: &FlowSpec) -> Leg<'_> {
    let to = splits(flow).first().map_or(flow.to, |split| split.at);
    Leg { from: flow.from, to, route: flow.route.as_ref(), return_route: flow.return_route.as_ref() }
}

/// A connection of a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connection<'s> {
    /// The flow it belongs to.
    pub flow: FlowId,
    /// The number of its leg in the flow, from 0.
    pub number: usize,
    /// Its ends and explicit routes.
    pub leg: Leg<'s>,
}

/// The connections of a scenario, by [`ConnectionId`](crate::scenario::ConnectionId): first the flows' first legs, with the
/// flows' numbers, then the further legs, flow by flow.
pub fn connections(scenario: &Scenario) -> Vec<Connection<'_>> {
    let flows = || scenario.flows.iter().enumerate().map(|(n, spec)| (FlowId::from(n), spec));
    let first = flows().map(|(flow, spec)| Connection { flow, number: 0, leg: first_leg(spec) });
    let split = flows().filter(|(_, spec)| !splits(spec).is_empty());
    let later = split.flat_map(|(flow, spec)| {
        legs(spec).into_iter().enumerate().skip(1).map(move |(number, leg)| Connection { flow, number, leg })
    });
    first.chain(later).collect()
}

/// The path of a flow's data, over all its legs.
///
/// # Errors
/// Returns [`Unreachable`] if no links lead from the flow's source to its destination.
pub fn forward_path(scenario: &Scenario, flow: &FlowSpec) -> Result<Path, Unreachable> {
    let mut path = Path::new();
    for (n, leg) in legs(flow).into_iter().enumerate() {
        path.extend(between(flow, n).map(|over| over[0]));
        path.extend(leg.forward_path(scenario)?);
    }
    Ok(path)
}

/// The path of a flow's acknowledgements, over all its legs.
///
/// # Errors
/// Returns [`Unreachable`] if no links lead from the flow's destination to its source.
pub fn return_path(scenario: &Scenario, flow: &FlowSpec) -> Result<Path, Unreachable> {
    let mut path = Path::new();
    for (n, leg) in legs(flow).into_iter().enumerate().rev() {
        path.extend(leg.return_path(scenario)?);
        path.extend(between(flow, n).map(|over| over[1]));
    }
    Ok(path)
}

/// The link with the longest delay of a path, the first of several. Over a satellite this is the satellite's.
pub fn longest_delay(scenario: &Scenario, path: &[LinkId]) -> Option<LinkId> {
    // `max_by_key` returns the last of several.
    path.iter().rev().copied().max_by_key(|&link| scenario[link].config.delay)
}

/// The part of a path up to `at`, or the shortest path there if it does not pass `at`. `None` if no path leads
/// there.
pub(crate) fn up_to(scenario: &Scenario, mut links: Path, at: NodeId, from: NodeId) -> Option<Path> {
    match links.iter().position(|&link| scenario[link].to == at) {
        Some(last) => {
            links.truncate(last + 1);
            Some(links)
        }
        None => path(scenario, from, at).ok(),
    }
}

/// The part of a path from `at` to `to`, or the shortest path if it does not pass `at`.
pub(crate) fn from_on(scenario: &Scenario, links: Path, at: NodeId, to: NodeId) -> Option<Path> {
    match links.iter().position(|&link| scenario[link].from == at) {
        Some(first) => Some(links[first..].to_vec()),
        None => path(scenario, at, to).ok(),
    }
}

/// The properties of a path in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathFacts {
    /// Propagation delay.
    pub delay: Duration,
    /// The slowest line; `None` if no line takes time.
    pub bottleneck: Option<Rate>,
    /// The link with the slowest line, the first of several.
    pub bottleneck_link: Option<LinkId>,
    /// The bottleneck's queue limit as the time that the line takes to send it, for packets of the given length;
    /// `None` if unlimited.
    pub queue: Option<Duration>,
}

/// The properties of a path for packets of `packet` bytes on the wire, from the delays and rates as written.
pub fn facts(scenario: &Scenario, path: &[LinkId], packet: u32) -> PathFacts {
    facts_by(scenario, path, packet, |link| (link.delay, link.rate.map(|rate| within_line(link, rate))))
}

/// The same, from the means of the delays and rates that change.
pub fn mean_facts(scenario: &Scenario, path: &[LinkId], packet: u32) -> PathFacts {
    facts_by(scenario, path, packet, |link| (link.mean_delay(), mean_rate(link).map(|rate| within_line(link, rate))))
}

/// The rate of a port for one pair of hosts: for cells, no more than that of the pair's line to the port.
pub(crate) fn within_line(link: &LinkConfig, port: Rate) -> Rate {
    link.cells.and_then(|cells| cells.line).map_or(port, |line| line.min(port))
}

/// True if the cells of a pair of hosts reach the port more slowly than it sends: its line is the narrower of the two.
pub fn has_slow_line(link: &LinkConfig) -> bool {
    link.rate.is_some_and(|port| within_line(link, port) < port)
}

/// The mean rate of a line: of phases half way between the ends, while there is no outage. A schedule that does not repeat has
/// none ([`rate_range`]): the rate with which it begins.
pub fn mean_rate(link: &LinkConfig) -> Option<Rate> {
    let Some(phases) = &link.phases else { return link.rate };
    let nominal = link.rate?.bits_per_second() as f64;
    let ends = phases.rate.map(|(low, high)| (low.bits_per_second() as f64, high.bits_per_second() as f64));
    let rate = ends.map_or(nominal, |(low, high)| low + (high - low) / 2.0);
    let sends = 1.0 - phases.outage.as_secs_f64() / phases.length.as_secs_f64();
    Rate::from_bits_per_second(((rate * sends).round() as u64).max(1))
}

/// The lowest and the highest rate, bits per second, of a line whose rate follows a schedule that does not repeat.
pub fn rate_range(link: &LinkConfig) -> Option<[u64; 2]> {
    let track = link.moves.as_ref()?.rate.as_ref().filter(|track| track.period().is_none())?;
    Some([track.values().min()?, track.values().max()?])
}

fn facts_by(
    scenario: &Scenario,
    path: &[LinkId],
    packet: u32,
    of: impl Fn(&LinkConfig) -> (Duration, Option<Rate>),
) -> PathFacts {
    let links = || path.iter().map(|&link| (link, of(&scenario[link].config)));
    let delay = links().fold(Duration::ZERO, |sum, (_, (delay, _))| sum + delay);
    let slowest = links().filter_map(|(index, (_, rate))| Some((rate?, index))).min_by_key(|&(rate, _)| rate);
    let cells = |link: &LinkSpec| link.config.cells.map(|cells| cells.buffer);
    let queue = slowest.and_then(|(rate, link)| match scenario[link].config.queue.limit {
        // Packets wait for their line to the port, without a limit.
        _ if has_slow_line(&scenario[link].config) => None,
        _ if cells(&scenario[link]).is_some() => {
            let buffer = cells(&scenario[link]).flatten()?;
            Some(rate.time_for_ceil(buffer as u64 * cell::CELL as u64))
        }
        QueueLimit::Unlimited => None,
        QueueLimit::Packets(count) => Some(rate.time_for_ceil(packet as u64).saturating_mul(count as u64)),
        QueueLimit::Bytes(bytes) => Some(rate.time_for_ceil(bytes.get())),
    });
    PathFacts {
        delay,
        bottleneck: slowest.map(|(rate, _)| rate),
        bottleneck_link: slowest.map(|(_, link)| link),
        queue,
    }
}

/// The bandwidth-delay product: the data in flight when the bottleneck is never idle and its queue is empty, for a
/// round trip of propagation delays. `None` if no line of the forward path takes time.
pub fn bandwidth_delay_product(there: &PathFacts, back: &PathFacts) -> Option<Bytes> {
    Some(Bytes::new(there.bottleneck?.bytes_in_floor(there.delay + back.delay)))
}

#[cfg(test)]
mod tests;
