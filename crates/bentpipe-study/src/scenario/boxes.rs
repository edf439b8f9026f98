//! The flows that cross a gateway of shape `split`: their TCP ends at one box and continues from the other.
//!
//! The boxes' own TCP is that of Linux. A scenario keeps such a flow as a split one; its text says only `[[gateways]]`.

use std::sync::Arc;

use bentpipe_engine::network::LinkId;
use bentpipe_engine::tcp::{Handshake, TcpConfig};
use bentpipe_engine::units::Duration;
use bentpipe_language::error::{Mistake, Problems, Span};
use bentpipe_language::tcp::profile::profile;
use bentpipe_language::tcp::{Cell, TcpOverrides};

use super::model::{Carries, FlowKind, FlowSpec, NodeId, PairSpec, Scenario, Split, TcpFlow, Through};
use crate::topology;

/// Profile of the boxes' sockets.
const PROFILE: &str = "linux";
/// Half of tcp_rmem[1], 131072 bytes: what Linux offers before it knows the reader.
const FIRST_WINDOW: u64 = 65_536;

/// A flow's way over a pair of boxes.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    pair: usize,
    /// The box that it meets first.
    side: usize,
}

/// True if a pair ends connections.
fn splits(pair: &PairSpec) -> bool {
    matches!(pair.carries, Carries::Streams { .. })
}

/// The pairs that a flow's data and answers cross, in the order of the data. Boxes at its ends count.
fn crossings(scenario: &Scenario, flow: &FlowSpec) -> Vec<Crossing> {
    let (Ok(there), back) = (topology::forward_path(scenario, flow), topology::return_path(scenario, flow)) else {
        return Vec::new();
    };
    let back = back.unwrap_or_default();
    let of = |&link: &LinkId| {
        let side = |pair: &PairSpec| pair.over.iter().position(|&over| over == link);
        let found = scenario.gateways.pairs.iter().enumerate().find_map(|(n, pair)| Some((n, side(pair)?)));
        found.filter(|&(n, side)| back.contains(&scenario.gateways.pairs[n].over[1 - side]))
    };
    there.iter().filter_map(of).map(|(pair, side)| Crossing { pair, side }).collect()
}

/// The TCP of a box's socket whose leg takes this long there and back: what it offers is twice what the satellite link takes
/// in that time, as the kernel's tuning of receive buffers gives it.
fn socket(pair: &PairSpec, round_trip: Duration) -> TcpConfig {
    let config = profile(PROFILE).expect("the table has it").config();
    let fastest = pair.satellite[0].rate.max(pair.satellite[1].rate);
    let window = (2 * fastest.bytes_in_floor(round_trip)).clamp(FIRST_WINDOW, u64::from(config.receive_buffer));
    TcpConfig { receive_buffer: window as u32, ..config }
}

/// Something that a gateway cannot carry.
struct Refusal {
    /// The flow, by its index; `None`: the pair itself.
    flow: Option<usize>,
    pair: usize,
    /// The key below the flow's.
    key: &'static str,
    message: String,
    expected: String,
}

fn refusals(scenario: &Scenario) -> Vec<Refusal> {
    let all = &scenario.gateways.pairs;
    let mut is_used = vec![false; all.len()];
    let mut found = Vec::new();
    for (n, flow) in scenario.flows.iter().enumerate() {
        let crossings = crossings(scenario, flow);
        crossings.iter().for_each(|crossing| is_used[crossing.pair] = true);
        // Flows in a row that are alike are refused for the same reason.
        if n > 0 && flow.is_alike(&scenario.flows[n - 1]) {
            continue;
        }
        let ending: Vec<_> = crossings.iter().filter(|crossing| splits(&all[crossing.pair])).collect();
        let FlowKind::Tcp(tcp) = &flow.kind else { continue };
        let Some(first) = ending.first() else { continue };
        let pair = &all[first.pair];
        let mut refuse = |key, message, expected: &str| {
            found.push(Refusal { flow: Some(n), pair: first.pair, key, message, expected: expected.to_owned() });
        };
        let ours = format!("the connection ends at the gateway `{}`", pair.name);
        if !tcp.splits.is_empty() {
            refuse(".split", format!("{ours}, and is split at its nodes as well"), "either `split` or the gateway");
        } else if tcp.spoof.is_some() {
            refuse(".spoof", format!("{ours}, and is spoofed as well"), "either `spoof` or the gateway");
        } else if tcp.stp.is_some() || tcp.sender.shortcuts.handshake != Handshake::ThreeWay {
            let message = format!("{ours}, whose boxes are Linux hosts: they need TCP with its handshake");
            refuse(".tcp", message, "a profile such as \"rfc\" or \"linux\"");
        } else if let [_, second, ..] = ending[..] {
            let message = format!("{ours}, and at `{}` as well", all[second.pair].name);
            refuse("", message, "one gateway of shape \"split\" on a path");
        } else if let Some(&end) = pair.nodes.iter().find(|&&node| node == flow.from || node == flow.to) {
            let end = &scenario[end];
            let message = format!("{ours}, but the flow is the box's own: it begins or ends at `{end}`");
            refuse("", message, "a host behind the box, joined to it by a link");
        }
    }
    for (n, pair) in all.iter().enumerate().filter(|&(n, _)| !is_used[n] && !scenario.flows.is_empty()) {
        let [near, far] = pair.nodes.map(|node| &scenario[node]);
        let message = format!("no flow passes `{}` in both directions", pair.name);
        let expected = format!("a flow whose data and answers go between `{near}` and `{far}`");
        found.push(Refusal { flow: None, pair: n, key: "", message, expected });
    }
    found
}

/// Reports what a gateway cannot carry. `pairs` are the places of the gateways, `flows` those of the flows.
pub(super) fn check(scenario: &Scenario, pairs: &[(Span, String)], flows: &[(Span, String)], problems: &mut Problems) {
    for Refusal { flow, pair, key, message, expected } in refusals(scenario) {
        if let Some((span, path)) = flow.map_or(pairs.get(pair), |flow| flows.get(flow)) {
            problems.add(*span, Mistake::new(&format!("{path}{key}"), message).expected(expected));
        }
    }
}

impl Scenario {
    /// The same scenario with a gateway of two boxes.
    ///
    /// # Errors
    /// Returns why the gateway cannot carry the flows.
    pub fn with_pair(&self, pair: PairSpec) -> Result<Scenario, String> {
        let mut changed = uncrossed(self);
        changed.gateways.pairs.push(pair);
        if let Some(refusal) = refusals(&changed).into_iter().next() {
            return Err(refusal.message);
        }
        cross(&mut changed);
        Ok(changed)
    }
}

/// Ends the flows that cross a pair of shape `split` at its boxes, and gives those over `link` the segments that its device
/// takes.
pub(super) fn cross(scenario: &mut Scenario) {
    if scenario.gateways.is_empty() {
        return;
    }
    let mut flows = std::mem::take(&mut scenario.flows);
    let mut latest: Option<(FlowSpec, FlowSpec)> = None;
    for flow in &mut flows {
        if let Some((before, after)) = &latest
            && flow.is_alike(before)
        {
            (flow.kind, flow.route, flow.return_route) =
                (after.kind.clone(), after.route.clone(), after.return_route.clone());
            continue;
        }
        let before = flow.clone();
        let crossings = crossings(scenario, flow);
        if crossings.is_empty() {
            continue;
        }
        for &crossing in &crossings {
            let pair = &scenario.gateways.pairs[crossing.pair];
            if splits(pair) { cross_one(scenario, flow, crossing) } else { shorten(pair, flow) }
        }
        latest = Some((before, flow.clone()));
    }
    scenario.flows = flows;
}

/// Hosts learn the MTU of the device of `link` by path MTU discovery: their segments are as long as it takes.
fn shorten(pair: &PairSpec, flow: &mut FlowSpec) {
    /// IPv4 and TCP headers without options.
    const HEADERS: u16 = 40;
    let FlowKind::Tcp(tcp) = &mut flow.kind else { return };
    let max = pair.satellite[0].max_packet() - HEADERS;
    if tcp.sender.mss <= max && tcp.receiver.mss <= max {
        return;
    }
    let TcpFlow { sender, receiver, explicit, .. } = Arc::make_mut(tcp);
    let ends = [(sender, &mut explicit.sender), (receiver, &mut explicit.receiver)];
    for (end, said) in ends.into_iter().filter(|(end, _)| end.mss > max) {
        end.mss = max;
        // As if the text said so: it is said when the scenario is written down.
        said.insert("mss", Cell::Size(u64::from(max)));
    }
}

fn cross_one(scenario: &Scenario, flow: &mut FlowSpec, Crossing { pair: n, side }: Crossing) {
    let pair = &scenario.gateways.pairs[n];
    let (meets, leaves) = (pair.nodes[side], pair.nodes[1 - side]);
    let round_trip = |one: NodeId, two: NodeId| {
        let delay = |from, to| {
            let path = topology::path(scenario, from, to).unwrap_or_default();
            path.iter().fold(Duration::ZERO, |sum, &link| sum + scenario[link].config.delay)
        };
        delay(one, two) + delay(two, one)
    };
    let sockets = [socket(pair, round_trip(flow.from, meets)), socket(pair, round_trip(leaves, flow.to))];
    let cut = |route: &Option<Vec<LinkId>>, over: LinkId| {
        let Some(route) = route else { return (None, None) };
        let at = route.iter().position(|&link| link == over).expect("the path crosses the pair");
        (Some(route[..at].to_vec()), Some(route[at + 1..].to_vec()))
    };
    let (there, onward) = cut(&flow.route, pair.over[side]);
    let (return_onward, back) = cut(&flow.return_route, pair.over[1 - side]);
    let FlowKind::Tcp(tcp) = &mut flow.kind else { return };
    let tcp = Arc::make_mut(tcp);
    tcp.splits = vec![Split {
        at: meets,
        through: Some(Through { pair: n, side, starts_at: leaves, over: [pair.over[side], pair.over[1 - side]] }),
        stp: None,
        sender: sockets[1],
        receiver: tcp.receiver,
        variant_name: profile(PROFILE).expect("the table has it").default_variant.to_owned(),
        profile_name: PROFILE.to_owned(),
        route: onward,
        return_route: return_onward,
        explicit: TcpOverrides::default(),
    }];
    tcp.receiver = sockets[0];
    (flow.route, flow.return_route) = (there, back);
}

/// The same scenario with whole connections, as its text says.
pub(super) fn uncrossed(scenario: &Scenario) -> Scenario {
    let mut whole = scenario.clone();
    let is_crossed = |tcp: &TcpFlow| tcp.splits.first().is_some_and(|split| split.through.is_some());
    let mut latest: Option<(Arc<TcpFlow>, Arc<TcpFlow>)> = None;
    for flow in &mut whole.flows {
        let FlowKind::Tcp(tcp) = &mut flow.kind else { continue };
        if !is_crossed(tcp) {
            continue;
        }
        let before = tcp.clone();
        let split = before.splits[0].clone();
        let Some(Through { over, .. }) = split.through else { continue };
        let join = |first: Option<&Vec<LinkId>>, link: LinkId, rest: Option<&Vec<LinkId>>| {
            Some([first?.as_slice(), &[link], rest?.as_slice()].concat())
        };
        flow.route = join(flow.route.as_ref(), over[0], split.route.as_ref());
        flow.return_route = join(split.return_route.as_ref(), over[1], flow.return_route.as_ref());
        // Flows of one entry share their settings, afterwards too.
        *tcp = match &latest {
            Some((old, new)) if Arc::ptr_eq(old, &before) => new.clone(),
            _ => Arc::new(TcpFlow { receiver: split.receiver, splits: Vec::new(), ..(*before).clone() }),
        };
        latest = Some((before, tcp.clone()));
    }
    whole
}
