//! The flows that cross a gateway of shape `split` or `uplink`: their TCP ends at one box and continues from the other
//! box or from the same one.
//!
//! The boxes' own TCP is Linux's, except for the sender of `uplink`. A scenario stores such a flow as a split one,
//! although its text only says `[[gateways]]`.

mod uplink;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bentpipe_engine::network::LinkId;
use bentpipe_engine::tcp::{Handshake, TcpConfig};
use bentpipe_engine::units::Duration;
use bentpipe_language::error::{Mistake, Problems, Span};
use bentpipe_language::gateway;
use bentpipe_language::tcp::profile::profile;
use bentpipe_language::tcp::{Cell, TcpOverrides};

use super::model::{
    FlowKind, FlowSpec, Gateways, Met, NodeId, PairSpec, Scenario, Split, TcpFlow, Through, UplinkSpec,
};
use crate::topology;

/// Profile of the boxes' sockets.
const PROFILE: &str = "linux";
/// Half of tcp_rmem[1], 131072 bytes: what Linux offers before it has measured the reader.
const FIRST_WINDOW: u64 = 65_536;

/// A gateway on the path of a flow.
#[derive(Clone, Copy, Debug)]
enum Crossing {
    /// Two boxes, and which of them the flow reaches first.
    Pair { number: usize, side: usize },
    /// One box, and whether the flow is opened by its client.
    Uplink { number: usize, client_opens: bool },
}

/// A gateway by its number among those of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    Pair(usize),
    Uplink(usize),
}

impl Crossing {
    fn which(self) -> Which {
        match self {
            Crossing::Pair { number, .. } => Which::Pair(number),
            Crossing::Uplink { number, .. } => Which::Uplink(number),
        }
    }
}

impl Which {
    fn all(gateways: &Gateways) -> impl Iterator<Item = Which> + use<> {
        let pairs = (0..gateways.pairs.len()).map(Which::Pair);
        pairs.chain((0..gateways.uplinks.len()).map(Which::Uplink))
    }

    fn ends_connections(self, gateways: &Gateways) -> bool {
        match self {
            Which::Pair(number) => gateways.pairs[number].ends_connections(),
            Which::Uplink(_) => true,
        }
    }

    fn name(self, gateways: &Gateways) -> &str {
        match self {
            Which::Pair(number) => &gateways.pairs[number].name,
            Which::Uplink(number) => &gateways.uplinks[number].name,
        }
    }

    fn over(self, gateways: &Gateways) -> [LinkId; 2] {
        match self {
            Which::Pair(number) => gateways.pairs[number].over,
            Which::Uplink(number) => gateways.uplinks[number].over,
        }
    }

    fn is_at(self, gateways: &Gateways, node: NodeId) -> bool {
        match self {
            Which::Pair(number) => gateways.pairs[number].nodes.contains(&node),
            Which::Uplink(number) => gateways.uplinks[number].at == node,
        }
    }
}

/// The gateways that a flow's data and answers cross, in the order of the data. Boxes at the flow's ends count.
fn crossings(scenario: &Scenario, flow: &FlowSpec) -> Vec<Crossing> {
    let (Ok(there), back) = (topology::forward_path(scenario, flow), topology::return_path(scenario, flow)) else {
        return Vec::new();
    };
    let back = back.unwrap_or_default();
    let all = &scenario.gateways;
    let of = |&link: &LinkId| {
        let side = |which: Which| which.over(all).iter().position(|&over| over == link);
        let (which, side) = Which::all(all).find_map(|which| Some((which, side(which)?)))?;
        back.contains(&which.over(all)[1 - side]).then_some(match which {
            Which::Pair(number) => Crossing::Pair { number, side },
            Which::Uplink(number) => Crossing::Uplink { number, client_opens: side == 1 },
        })
    };
    there.iter().filter_map(of).collect()
}

/// The TCP settings of a box's socket whose leg has this round trip. It offers twice the amount that the satellite link
/// takes in that time, which is the result of the kernel's receive buffer tuning.
fn socket(pair: &PairSpec, round_trip: Duration) -> TcpConfig {
    let config = profile(PROFILE).expect("the table has it").config();
    let fastest = pair.satellite[0].rate.max(pair.satellite[1].rate);
    let window = (2 * fastest.bytes_in_floor(round_trip)).clamp(FIRST_WINDOW, u64::from(config.receive_buffer));
    TcpConfig { receive_buffer: window as u32, ..config }
}

/// A reason why a gateway cannot carry something.
struct Refusal {
    /// The flow, by its index; `None`: the gateway itself.
    flow: Option<usize>,
    gateway: Which,
    /// The key below the flow's.
    key: &'static str,
    message: String,
    expected: String,
}

fn refusals(scenario: &Scenario) -> Vec<Refusal> {
    let all = &scenario.gateways;
    let mut used = BTreeSet::new();
    let mut found = Vec::new();
    for (n, flow) in scenario.flows.iter().enumerate() {
        let crossings = crossings(scenario, flow);
        used.extend(crossings.iter().map(|crossing| crossing.which()));
        // Consecutive flows that are alike are refused for the same reason.
        if n > 0 && flow.is_alike(&scenario.flows[n - 1]) {
            continue;
        }
        let ending = crossings.iter().map(|crossing| crossing.which()).filter(|which| which.ends_connections(all));
        let ending: Vec<_> = ending.collect();
        let FlowKind::Tcp(tcp) = &flow.kind else { continue };
        let Some(&gateway) = ending.first() else { continue };
        let mut refuse = |key, message, expected: &str| {
            found.push(Refusal { flow: Some(n), gateway, key, message, expected: expected.to_owned() });
        };
        let ours = format!("the connection ends at the gateway `{}`", gateway.name(all));
        if !tcp.splits.is_empty() {
            refuse(".split", format!("{ours}, and is split at its nodes as well"), "either `split` or the gateway");
        } else if tcp.spoof.is_some() {
            refuse(".spoof", format!("{ours}, and is spoofed as well"), "either `spoof` or the gateway");
        } else if tcp.stp.is_some() || tcp.sender.shortcuts.handshake != Handshake::ThreeWay {
            let message = format!("{ours}, whose boxes are Linux hosts: they need TCP with its handshake");
            refuse(".tcp", message, "a profile such as \"rfc\" or \"linux\"");
        } else if let [_, second, ..] = ending[..] {
            let message = format!("{ours}, and at `{}` as well", second.name(all));
            refuse("", message, "one gateway of shape \"split\" or \"uplink\" on a path");
        } else if let Some(end) = [flow.from, flow.to].into_iter().find(|&end| gateway.is_at(all, end)) {
            let end = &scenario[end];
            let message = format!("{ours}, but the flow is the box's own: it begins or ends at `{end}`");
            refuse("", message, "a host behind the box, joined to it by a link");
        }
    }
    for gateway in Which::all(all).filter(|which| !used.contains(which) && !scenario.flows.is_empty()) {
        let over = &scenario[gateway.over(all)[0]];
        let [near, far] = [over.from, over.to].map(|node| &scenario[node]);
        let message = format!("no flow passes `{}` in both directions", gateway.name(all));
        let expected = format!("a flow whose data and answers go between `{near}` and `{far}`");
        found.push(Refusal { flow: None, gateway, key: "", message, expected });
    }
    found
}

/// The places of gateways in the text.
pub(super) type Places = BTreeMap<Which, (Span, String)>;

/// Reports what a gateway cannot carry. `gateways` are the places of the gateways in the text, `flows` those of the
/// flows.
pub(super) fn check(scenario: &Scenario, gateways: &Places, flows: &[(Span, String)], problems: &mut Problems) {
    for Refusal { flow, gateway, key, message, expected } in refusals(scenario) {
        if let Some((span, path)) = flow.map_or(gateways.get(&gateway), |flow| flows.get(flow)) {
            problems.add(*span, Mistake::new(&format!("{path}{key}"), message).expected(expected));
        }
    }
}

impl Scenario {
    /// The same scenario with an additional gateway of two boxes.
    ///
    /// # Errors
    /// Returns the first reason for which the gateway cannot carry a flow.
    pub fn with_pair(&self, pair: PairSpec) -> Result<Scenario, String> {
        pair.satellite.iter().try_for_each(|one| can_be_told(one.path_mtu, one.round_trip))?;
        self.with_gateway(|gateways| gateways.pairs.push(pair))
    }

    /// The same scenario with an additional gateway of one box.
    ///
    /// # Errors
    /// Returns the first reason for which the gateway cannot carry a flow.
    pub fn with_uplink(&self, uplink: UplinkSpec) -> Result<Scenario, String> {
        can_be_told(uplink.sender.mtu, uplink.sender.round_trip)?;
        self.with_gateway(|gateways| gateways.uplinks.push(uplink))
    }

    fn with_gateway(&self, add: impl FnOnce(&mut Gateways)) -> Result<Scenario, String> {
        let mut changed = uncrossed(self);
        add(&mut changed.gateways);
        if let Some(refusal) = refusals(&changed).into_iter().next() {
            return Err(refusal.message);
        }
        cross(&mut changed);
        Ok(changed)
    }
}

/// Refuses a link that the text of a gateway cannot describe.
fn can_be_told(mtu: u16, round_trip: Duration) -> Result<(), String> {
    if round_trip == Duration::ZERO {
        return Err("the satellite link has no delay".to_owned());
    }
    let needed = *gateway::MTU.start();
    if u64::from(mtu) < needed {
        return Err(format!("the satellite link takes packets of {mtu} B, and a gateway needs {needed} B"));
    }
    Ok(())
}

/// Ends the flows that cross a gateway of shape `split` or `uplink` at its boxes, and limits the segments of flows over
/// `link` to what its device accepts.
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
        let all = &scenario.gateways;
        let ending = crossings.iter().position(|crossing| crossing.which().ends_connections(all));
        let links = crossings.iter().enumerate().filter_map(|(n, crossing)| match *crossing {
            Crossing::Pair { number, .. } if !all.pairs[number].ends_connections() => {
                Some((max_segment(&all.pairs[number]), ending.map(|ending| ending < n)))
            }
            _ => None,
        });
        let links: Vec<_> = links.collect();
        // A box's settings follow from those of the hosts.
        links.iter().for_each(|&(max, is_beyond)| shorten_hosts(flow, max, is_beyond));
        match ending.map(|ending| crossings[ending]) {
            Some(Crossing::Uplink { number, client_opens }) => uplink::cross(scenario, flow, number, client_opens),
            Some(Crossing::Pair { number, side }) => cross_pair(scenario, flow, number, side),
            None => {}
        }
        links.iter().for_each(|&(max, is_beyond)| shorten_box(flow, max, is_beyond));
        latest = Some((before, flow.clone()));
    }
    scenario.flows = flows;
}

/// The longest segment that the `link` device of a pair accepts. Hosts and boxes learn it by path MTU discovery.
fn max_segment(pair: &PairSpec) -> u16 {
    /// IPv4 and TCP headers without options.
    const HEADERS: u16 = 40;
    pair.satellite[0].max_packet() - HEADERS
}

/// Limits the segments of the hosts to what a pair of shape `link` accepts: of both, or, if the connection ends at another gateway, of the
/// host on the pair's side, which is beyond that gateway or not.
fn shorten_hosts(flow: &mut FlowSpec, max: u16, is_beyond: Option<bool>) {
    let FlowKind::Tcp(tcp) = &mut flow.kind else { return };
    let [first, last] = [is_beyond != Some(true), is_beyond != Some(false)];
    if !(first && tcp.sender.mss > max || last && tcp.receiver.mss > max) {
        return;
    }
    let TcpFlow { sender, receiver, explicit, .. } = Arc::make_mut(tcp);
    let ends = [(first, sender, &mut explicit.sender), (last, receiver, &mut explicit.receiver)];
    for (_, end, said) in ends.into_iter().filter(|(is_there, end, _)| *is_there && end.mss > max) {
        end.mss = max;
        // It is recorded as if the text had given it, so it is included when the scenario is written.
        said.insert("mss", Cell::Size(u64::from(max)));
    }
}

/// Limits the segments of the box at which the connection ends, on the side of the pair.
fn shorten_box(flow: &mut FlowSpec, max: u16, is_beyond: Option<bool>) {
    let (FlowKind::Tcp(tcp), Some(is_beyond)) = (&mut flow.kind, is_beyond) else { return };
    let tcp = Arc::make_mut(tcp);
    let socket = match tcp.splits.first_mut() {
        Some(split) if is_beyond => &mut split.sender,
        _ => &mut tcp.receiver,
    };
    socket.mss = socket.mss.min(max);
}

fn cross_pair(scenario: &Scenario, flow: &mut FlowSpec, n: usize, side: usize) {
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
        gateway: Some(Met::Pair(Through {
            pair: n,
            side,
            starts_at: leaves,
            over: [pair.over[side], pair.over[1 - side]],
        })),
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

/// The same scenario with whole connections, as in its text.
pub(super) fn uncrossed(scenario: &Scenario) -> Scenario {
    let mut whole = scenario.clone();
    let is_crossed = |tcp: &TcpFlow| tcp.splits.first().is_some_and(|split| split.gateway.is_some());
    let mut latest: Option<(Arc<TcpFlow>, Arc<TcpFlow>)> = None;
    for flow in &mut whole.flows {
        let FlowKind::Tcp(tcp) = &mut flow.kind else { continue };
        if !is_crossed(tcp) {
            continue;
        }
        let before = tcp.clone();
        let split = before.splits[0].clone();
        // The links of a tunnel lie between the legs.
        let [there, back] = split.through().map_or([None; 2], |through| through.over.map(Some));
        let join = |first: Option<&Vec<LinkId>>, link: Option<LinkId>, rest: Option<&Vec<LinkId>>| {
            Some(first?.iter().copied().chain(link).chain(rest?.iter().copied()).collect())
        };
        flow.route = join(flow.route.as_ref(), there, split.route.as_ref());
        flow.return_route = join(split.return_route.as_ref(), back, flow.return_route.as_ref());
        // Flows of one entry still share their settings afterwards.
        *tcp = match &latest {
            Some((old, new)) if Arc::ptr_eq(old, &before) => new.clone(),
            _ => Arc::new(TcpFlow { receiver: split.receiver, splits: Vec::new(), ..(*before).clone() }),
        };
        latest = Some((before, tcp.clone()));
    }
    whole
}
