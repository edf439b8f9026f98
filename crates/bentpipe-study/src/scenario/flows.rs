//! `[[flows]]`: source, destination, data, time and transport.

use std::sync::Arc;

use bentpipe_engine::units::Duration;
use bentpipe_language::document::Value;
use bentpipe_language::error::{Mistake, Problems, Span};
use bentpipe_language::reader::{Item, View, join};
use bentpipe_language::shape::Counted;
use bentpipe_language::tcp::{TcpTable, tcp_table};

use super::grammar::{CONNECTION_ONLY, FLOW, FLOW_PREFIX, FLOW_TYPES, QUIC_ONLY, STP_ONLY, TCP_ONLY, UDP_ONLY};
use super::model::{FlowKind, FlowSpec, NodeId, Spread, TcpFlow, UdpFlow};
use super::quic;
use super::splits;
use super::spoof;
use super::stp;
use super::workloads::{pattern, workload};
use super::world::{World, node, route};

/// IPv4 and UDP headers.
const UDP_HEADERS: u64 = 28;

/// Reads the entry of `[[flows]]` with this index, and creates `count` flows.
pub(crate) fn read(item: &Item<'_>, index: usize, world: &World<'_>, problems: &mut Problems) -> Vec<FlowSpec> {
    flows(item, index, world, problems).unwrap_or_default()
}

fn flows(item: &Item<'_>, index: usize, world: &World<'_>, problems: &mut Problems) -> Option<Vec<FlowSpec>> {
    if let Some(mistake) = duration_of_udp(item) {
        problems.add(mistake.0, mistake.1);
        return None;
    }
    let view = item.table(FLOW, problems)?;
    let name = match view.get("name") {
        Some(item) => item.name(problems)?.to_owned(),
        None => format!("{FLOW_PREFIX}{}", index + 1),
    };
    let ends = [view.require("from", problems), view.require("to", problems)];
    let [from, to] = ends.map(|end| end.and_then(|end| node(&end, world.network, problems)));
    if let (Some(from), Some(to)) = (from, to)
        && from == to
        && let Some(place) = view.get("to")
    {
        place.refuse(problems, "a flow cannot end where it starts", Some("another node".to_owned()));
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
    refuse_foreign_keys(&view, transport, problems);
    let kind = match transport {
        "udp" => udp(&view, problems).map(FlowKind::Udp),
        "stp" => stp::flow(&view, problems).map(|flow| FlowKind::Stp(Box::new(flow))),
        "quic" => quic::flow(&view, problems).map(|flow| FlowKind::Quic(Box::new(flow))),
        _ => tcp(&view, item, world, [from, to], problems).map(|flow| FlowKind::Tcp(Arc::new(flow))),
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
    let is_counted = view.get("count").is_some();
    let flow = |number: u64| {
        let name = if is_counted { [&name, "-", &(number + 1).to_string()].concat() } else { name.clone() };
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

/// The mistake of a UDP flow with a `duration`, a key that no flow has. Others may mean `greedy.duration`, but not this one.
fn duration_of_udp(item: &Item<'_>) -> Option<(Span, Mistake)> {
    let Value::Table(table) = &item.node.value else { return None };
    let entry = table.get("duration")?;
    matches!(&table.get("type")?.node.value, Value::Text(kind) if kind == "udp").then(|| {
        let message = format!("`{}` has no key `duration`", item.path);
        let help = "a UDP flow ends at `stop`, a time from the start of the run".to_owned();
        (entry.key_span, Mistake::new(&join(&item.path, "duration"), message).expected("`stop`").help(Some(help)))
    })
}

/// Refuses keys that only apply to other transports.
fn refuse_foreign_keys(view: &View<'_>, transport: &str, problems: &mut Problems) {
    let foreign: &[(&str, &[&str])] = match transport {
        "udp" => &[("tcp", TCP_ONLY), ("tcp", CONNECTION_ONLY), ("stp", STP_ONLY), ("quic", QUIC_ONLY)],
        "stp" => &[("tcp", TCP_ONLY), ("udp", UDP_ONLY), ("quic", QUIC_ONLY)],
        "quic" => &[("tcp", TCP_ONLY), ("stp", STP_ONLY), ("udp", UDP_ONLY)],
        _ => &[("stp", STP_ONLY), ("udp", UDP_ONLY), ("quic", QUIC_ONLY)],
    };
    let first_leg = transport == "tcp" && view.get("split").is_some();
    for (is, keys) in foreign {
        // The legs of a split connection may be STP.
        for item in keys.iter().filter(|key| !(first_leg && STP_ONLY.contains(key))).filter_map(|key| view.get(key)) {
            item.refuse(problems, format!("`{}` applies to {is} flows, but this flow is {transport}", item.path), None);
        }
    }
}

fn tcp(
    view: &View<'_>,
    item: &Item<'_>,
    world: &World<'_>,
    ends: [Option<NodeId>; 2],
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
        // TCP settings do not apply to this leg.
        table = TcpTable::default();
    }
    let ends = table.resolve(world.variants, (view.span, &format!("{}.tcp", item.path)), problems);
    // The workload is checked even if the settings are wrong.
    let (sender, receiver) = ends.unwrap_or_default();
    let workload = workload(view, stp.map_or(sender.mss, |stp| stp.mss), problems);
    let spoof = spoof::read(view, workload, world.network, problems);
    let path_change = match view.get("path_change") {
        Some(item) => item.duration(problems).map(Some),
        None => Some(None),
    };
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
        path_change: path_change?,
    })
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
