//! `[[flows]]`: who sends what to whom, when, and how.

use bentpipe_engine::units::{Bytes, Duration};

use super::bursts;
use super::document::Value;
use super::error::{Mistake, Problems};
use super::grammar::{
    AMOUNT, CONNECTION_ONLY, FLOW, FLOW_TYPES, GREEDY, MPEG, ON_OFF, PACED, PATTERNS, REQUEST_RESPONSE, STP_ONLY,
    TCP_ONLY, UDP_ONLY, VIDEO,
};
use super::links::Network;
use super::quantity::{self, split};
use super::reader::{Item, View};
use super::shape::{Counted, Shape};
use super::splits;
use super::spoof;
use super::stp;
use super::suggest::did_you_mean;
use super::variants::{TcpTable, tcp_table};
use super::{FlowKind, FlowSpec, Mpeg, Spread, TcpFlow, UdpFlow, UdpPattern, Variants, Workload};

/// IPv4 and UDP headers.
const UDP_HEADERS: u64 = 28;

/// What flows are read against.
pub(crate) struct World<'w> {
    pub(crate) network: &'w Network,
    pub(crate) tcp: &'w TcpTable,
    pub(crate) variants: &'w Variants,
    pub(crate) seed: u64,
}

/// Reads one entry of `[[flows]]`, the one with this index: as many flows as it counts.
pub(crate) fn read(item: &Item<'_>, index: usize, world: &World<'_>, problems: &mut Problems) -> Vec<FlowSpec> {
    flows(item, index, world, problems).unwrap_or_default()
}

fn flows(item: &Item<'_>, index: usize, world: &World<'_>, problems: &mut Problems) -> Option<Vec<FlowSpec>> {
    let view = item.table(FLOW, problems)?;
    let name = match view.get("name") {
        Some(item) => item.name(problems)?.to_owned(),
        None => format!("flow-{}", index + 1),
    };
    let ends = [view.require("from", problems), view.require("to", problems)];
    let [from, to] = ends.map(|end| end.and_then(|end| node(&end, world.network, problems)));
    if let (Some(from), Some(to)) = (from, to)
        && from == to
        && let Some(place) = view.get("to")
    {
        place.refuse(problems, "a flow cannot end where it begins", Some("another node".to_owned()));
    }
    let span =
        |key, problems: &mut Problems| view.get(key).map_or(Some(Duration::ZERO), |item| item.duration(problems));
    let (start, stagger, width) = (span("start", problems), span("stagger", problems), span("spread", problems));
    let count = Counted::new("flows", 1, 100_000);
    let count = view.get("count").map_or(Some(1), |item| item.count(count, problems));
    if let Some(stagger) = view.get("stagger").filter(|_| view.get("count").is_none()) {
        stagger.refuse(problems, "`stagger` needs a `count` of flows", Some("count = 4 beside it".to_owned()));
    }
    let transport = match view.get("type") {
        Some(kind) => kind.choice(FLOW_TYPES, problems)?,
        None => "tcp",
    };
    let foreign: &[(&str, &[&str])] = match transport {
        "udp" => &[("tcp", TCP_ONLY), ("tcp", CONNECTION_ONLY), ("stp", STP_ONLY)],
        "stp" => &[("tcp", TCP_ONLY), ("udp", UDP_ONLY)],
        _ => &[("stp", STP_ONLY), ("udp", UDP_ONLY)],
    };
    let first_leg = transport == "tcp" && view.get("split").is_some();
    for (is, keys) in foreign {
        // A connection that is split may be STP on its legs.
        for item in keys.iter().filter(|key| !(first_leg && STP_ONLY.contains(key))).filter_map(|key| view.get(key)) {
            item.refuse(problems, format!("`{}` applies to {is} flows, but this flow is {transport}", item.path), None);
        }
    }
    let kind = match transport {
        "udp" => udp(&view, problems).map(FlowKind::Udp),
        "stp" => stp::flow(&view, problems).map(|flow| FlowKind::Stp(Box::new(flow))),
        _ => tcp(&view, item, world, [from, to], problems).map(|flow| FlowKind::Tcp(Box::new(flow))),
    };
    let dscp = view.get("dscp").map_or(Some(0), |item| item.count(Counted::new("", 0, 63), problems));
    let (from, to) = (from?, to?);
    let first_end = match &kind {
        Some(FlowKind::Tcp(tcp)) => tcp.splits.first().map_or(to, |split| split.at),
        _ => to,
    };
    let route = route(view.get("route"), from, first_end, world.network, problems);
    let return_route = self::route(view.get("return_route"), first_end, from, world.network, problems);
    let (kind, start, stagger, width, count) = (kind?, start?, stagger?, width?, count?);
    let (route, return_route, dscp) = (route?, return_route?, dscp? as u8);
    let flow = |number: u64| {
        let name = if view.get("count").is_some() { format!("{name}-{}", number + 1) } else { name.clone() };
        let earliest = start + stagger.saturating_mul(number);
        let spread = (width > Duration::ZERO).then_some(Spread { earliest, width });
        FlowSpec {
            from,
            to,
            start: spread.map_or(earliest, |spread| spread.draw(world.seed, &name)),
            spread,
            dscp,
            kind: kind.clone(),
            route: route.clone(),
            return_route: return_route.clone(),
            name,
        }
    };
    Some((0..count).map(flow).collect())
}

pub(super) fn node(item: &Item<'_>, network: &Network, problems: &mut Problems) -> Option<usize> {
    let name = item.text(problems)?;
    let index = network.nodes.iter().position(|node| node == name);
    // Where a link is wrong, a node may be missing for that alone.
    if index.is_none() && network.is_whole {
        let mistake = Mistake::new(&item.path, format!("no link leads to a node `{name}`"))
            .expected(format!("one of {}", network.nodes.join(", ")))
            .help(did_you_mean(name, network.nodes.iter().map(String::as_str)));
        problems.add(item.node.span, mistake);
    }
    index
}

/// An explicit route: names of links, each leaving where the one before has led. `NAME` of a duplex link stands for
/// the direction that fits.
pub(super) fn route(
    item: Option<Item<'_>>,
    from: usize,
    to: usize,
    network: &Network,
    problems: &mut Problems,
) -> Option<Option<Vec<usize>>> {
    let Some(item) = item else { return Some(None) };
    let mut path = Vec::new();
    let mut at = from;
    for step in item.list(&Shape::List(&Shape::Text), problems)? {
        let name = step.text(problems)?;
        let fits = |link: &super::LinkSpec| {
            link.name == name || ["forward", "backward"].iter().any(|way| link.name == format!("{name}/{way}"))
        };
        let named: Vec<_> = (0..network.links.len()).filter(|link| fits(&network.links[*link])).collect();
        let Some(link) = named.iter().copied().find(|link| network.links[*link].from == at) else {
            let names = network.links.iter().map(|link| link.name.as_str());
            let mistake = match named.is_empty() {
                true => Mistake::new(&step.path, format!("there is no link `{name}`")).help(did_you_mean(name, names)),
                false => Mistake::new(&step.path, format!("the link `{name}` does not leave `{}`", network.nodes[at])),
            };
            let leaving: Vec<_> =
                network.links.iter().filter(|link| link.from == at).map(|link| link.name.as_str()).collect();
            problems.add(step.node.span, mistake.expected(format!("one of {}", leaving.join(", "))));
            return None;
        };
        at = network.links[link].to;
        path.push(link);
    }
    if at != to {
        let message = format!("the route ends at `{}`, not at `{}`", network.nodes[at], network.nodes[to]);
        item.refuse(problems, message, Some("links up to the end of the flow".to_owned()));
        return None;
    }
    Some(Some(path))
}

fn tcp(
    view: &View<'_>,
    item: &Item<'_>,
    world: &World<'_>,
    ends: [Option<usize>; 2],
    problems: &mut Problems,
) -> Option<TcpFlow> {
    let own = view.get("tcp").map(|item| tcp_table(&item, problems)).unwrap_or_default();
    let common = world.tcp.overlaid(&own);
    let (mut table, splits, buffer) = match view.get("split") {
        Some(item) => {
            let (first, splits, buffer) = splits::read(&item, world, ends, problems)?;
            (common.overlaid(&first), splits, buffer)
        }
        None => (common, Vec::new(), None),
    };
    let stp = stp::leg(view, buffer, problems)?;
    if stp.is_some() {
        // The settings of TCP are not this leg's.
        table = TcpTable::default();
    }
    let ends = table.resolve(world.variants, (view.span, &format!("{}.tcp", item.path)), problems);
    // A workload is checked also where the settings are wrong.
    let (sender, receiver) = ends.unwrap_or_default();
    let workload = workload(view, stp.map_or(sender.mss, |stp| stp.mss), problems);
    let spoof = spoof::read(view, workload, world.network, problems);
    ends?;
    Some(TcpFlow {
        stp,
        sender,
        receiver,
        workload: workload?,
        variant_name: table.variant().to_owned(),
        profile_name: table.profile().name.to_owned(),
        explicit: table.settings.overrides,
        splits,
        spoof: spoof?,
    })
}

/// "10 MB", or "1042 segments" of the sender's MSS; not nothing.
pub(super) fn amount(item: &Item<'_>, mss: u16, problems: &mut Problems) -> Option<Bytes> {
    let bytes = match item.as_text().map(split) {
        Some((_, "segments" | "segment")) => {
            item.quantity(quantity::SEGMENTS, problems).map(|count| Bytes::new(count * mss as u64))
        }
        Some(_) => item.size(problems),
        None => {
            item.mismatch(problems, &Shape::SIZE);
            None
        }
    };
    if bytes == Some(Bytes::new(0)) {
        item.refuse(problems, format!("`{}` cannot be 0", item.path), Some(AMOUNT.expected()));
        return None;
    }
    bytes
}

pub(super) fn workload(view: &View<'_>, mss: u16, problems: &mut Problems) -> Option<Workload> {
    let given: Vec<_> =
        ["bytes", "greedy", "paced", "request_response"].iter().filter_map(|key| view.get(key)).collect();
    if given.len() != 1 {
        let message = format!("`{}` must have exactly one of bytes, greedy, paced, request_response", view.path);
        let mistake = Mistake::new(&view.path, message).expected("such as bytes = \"10 MB\"");
        problems.add(given.get(1).map_or(view.span, |item| item.node.span), mistake);
        return None;
    }
    if let Some(item) = view.get("bytes") {
        return amount(&item, mss, problems).map(Workload::Bulk);
    }
    if let Some(item) = view.get("greedy") {
        return match &item.node.value {
            Value::Flag(true) => Some(Workload::Greedy { duration: None }),
            Value::Table(_) => {
                let view = item.table(GREEDY, problems)?;
                let duration = match view.get("duration") {
                    Some(item) => Some(item.duration(problems)?),
                    None => None,
                };
                Some(Workload::Greedy { duration })
            }
            other => {
                let message = match other {
                    Value::Flag(_) => format!("`{}` = false has no effect: remove it", item.path),
                    _ => format!("`{}` cannot be {}", item.path, other.kind()),
                };
                item.refuse(problems, message, Some("true, or { duration = \"60 s\" }".to_owned()));
                None
            }
        };
    }
    if let Some(item) = view.get("paced") {
        return paced(&item, mss, problems);
    }
    let view = view.get("request_response")?.table(REQUEST_RESPONSE, problems)?;
    let sizes = ["request", "response"].map(|key| {
        let item = view.require(key, problems)?;
        amount(&item, mss, problems)
    });
    let think = view.get("think").map_or(Some(Duration::ZERO), |item| item.duration(problems));
    let counted = Counted::new("requests", 1, u32::MAX as u64);
    let count = view.get("count").map_or(Some(1), |item| item.count(counted, problems));
    let [request, response] = sizes;
    Some(Workload::RequestResponse { request: request?, response: response?, think: think?, count: count? as u32 })
}

fn paced(item: &Item<'_>, mss: u16, problems: &mut Problems) -> Option<Workload> {
    let view = item.table(PACED, problems)?;
    let rate = view.require("rate", problems).and_then(|item| item.rate(problems));
    let write = match view.get("write") {
        Some(item) => amount(&item, mss, problems).filter(|bytes| {
            let fits = bytes.get() <= u32::MAX as u64;
            if !fits {
                item.refuse(problems, "a write has 4 GiB at most", Some(AMOUNT.expected()));
            }
            fits
        }),
        None => Some(Bytes::new(mss as u64)),
    };
    let pattern = pattern(view.get("pattern"), problems);
    let total = match view.get("bytes") {
        Some(item) => amount(&item, mss, problems).map(Some),
        None => Some(None),
    };
    Some(Workload::Paced { rate: rate?, write: write?, pattern: pattern?, total: total? })
}

fn pattern(item: Option<Item<'_>>, problems: &mut Problems) -> Option<UdpPattern> {
    match item {
        None => Some(UdpPattern::Cbr),
        Some(item) if matches!(&item.node.value, Value::Table(table) if table.get("mpeg").is_some()) => {
            let view = item.table(VIDEO, problems)?;
            mpeg(&view.require("mpeg", problems)?, problems).map(UdpPattern::Mpeg)
        }
        Some(item) if matches!(item.node.value, Value::Table(_)) => on_off(&item, problems),
        Some(item) => item.choice(PATTERNS, problems).map(|_| UdpPattern::Cbr),
    }
}

fn udp(view: &View<'_>, problems: &mut Problems) -> Option<UdpFlow> {
    let rate = view.require("rate", problems).and_then(|item| item.rate(problems));
    let packet = view.require("packet", problems).and_then(|item| {
        let bytes = item.size(problems)?.get();
        if !(UDP_HEADERS..=65_535).contains(&bytes) {
            let message = format!("`{}` must be from {UDP_HEADERS} B, the headers, to 65535 B", item.path);
            item.refuse(problems, message, Some("a length such as \"1000 B\"".to_owned()));
            return None;
        }
        Some(bytes as u32)
    });
    let pattern = pattern(view.get("pattern"), problems);
    let stop = match view.get("stop") {
        Some(item) => item.duration(problems).map(Some),
        None => Some(None),
    };
    Some(UdpFlow { rate: rate?, packet: packet?, pattern: pattern?, stop: stop? })
}

fn mpeg(item: &Item<'_>, problems: &mut Problems) -> Option<Mpeg> {
    let view = item.table(MPEG, problems)?;
    let interval = view.require("interval", problems).and_then(|item| {
        let span = item.duration(problems)?;
        if span == Duration::ZERO {
            item.refuse(problems, "frames follow each other at some distance", Some("such as \"40 ms\"".to_owned()));
            return None;
        }
        Some(span)
    });
    let count = |key, otherwise, problems: &mut Problems| match view.get(key) {
        Some(item) => item.count(Counted::new("frames", 1, 255), problems).map(|count| count as u8),
        None => Some(otherwise),
    };
    // ISO/IEC 11172-2, annex D: IBBPBBPBBPBB is the usual group.
    let (group, distance) = (count("group", 12, problems), count("distance", 3, problems));
    let size = |key, problems: &mut Problems| {
        let item = view.require(key, problems)?;
        let bytes = item.size(problems)?.get();
        let fits = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
        if fits.is_none() {
            item.refuse(problems, "a frame has a byte at least and 4 GiB at most", Some(Shape::SIZE.expected()));
        }
        fits
    };
    let [i, p, b] = ["i", "p", "b"].map(|key| size(key, problems));
    Some(Mpeg { interval: interval?, group: group?, distance: distance?, i: i?, p: p?, b: b? })
}

fn on_off(item: &Item<'_>, problems: &mut Problems) -> Option<UdpPattern> {
    let view = item.table(ON_OFF, problems)?;
    let [on, off] = ["on", "off"].map(|key| {
        let item = view.require(key, problems)?;
        bursts::distribution(&item, problems)
    });
    let (on, off) = (on?, off?);
    bursts::check_alternation(item, &on, &off, problems);
    Some(UdpPattern::OnOff { on, off })
}
