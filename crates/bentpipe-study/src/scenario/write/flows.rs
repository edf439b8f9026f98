//! `[[flows]]`.

use bentpipe_engine::network::LinkId;
use bentpipe_language::quantity::{SIZE, format_rate};
use toml::{Table, Value};

use super::tcp::settings;
use super::values::{distribution, duration, integer, table, text};
use crate::scenario::model::{
    BufferSharing, FlowKind, FlowSpec, Mpeg, Scenario, Split, Spoof, TcpFlow, UdpFlow, UdpPattern, Workload,
};
use crate::scenario::windows::TcpEnds;

pub(super) fn flow(spec: &FlowSpec, scenario: &Scenario) -> Value {
    let mut flow = Table::new();
    let mut put = |key: &str, value: Value| {
        flow.insert(key.to_owned(), value);
    };
    put("name", text(&spec.name));
    put(
        "type",
        text(match spec.kind {
            FlowKind::Tcp(_) => "tcp",
            FlowKind::Stp(_) => "stp",
            FlowKind::Quic(_) => "quic",
            FlowKind::Udp(_) => "udp",
        }),
    );
    put("from", text(&scenario[spec.from]));
    put("to", text(&scenario[spec.to]));
    put("start", duration(spec.spread.map_or(spec.start, |spread| spread.earliest)));
    if let Some(spread) = spec.spread {
        put("spread", duration(spread.width));
    }
    if spec.dscp != 0 {
        put("dscp", integer(spec.dscp as u64));
    }
    for (key, route) in [("route", &spec.route), ("return_route", &spec.return_route)] {
        if let Some(route) = route {
            put(key, links(route, scenario));
        }
    }
    if let Some((key, value)) = spec.kind.workload().map(workload) {
        put(key, value);
    }
    match &spec.kind {
        FlowKind::Tcp(tcp) => self::tcp(tcp, spec, scenario, &mut put),
        FlowKind::Stp(stp) => put("stp", crate::scenario::stp::written(&stp.config)),
        FlowKind::Quic(quic) => put("quic", crate::scenario::quic::written(quic)),
        FlowKind::Udp(UdpFlow { rate, packet, pattern, stop }) => {
            put("rate", text(format_rate(*rate)));
            put("packet", text(SIZE.format(*packet as u64)));
            put("pattern", self::pattern(pattern));
            if let Some(stop) = stop {
                put("stop", duration(*stop));
            }
        }
    }
    Value::Table(flow)
}

/// The key of what the application sends, and its value.
fn workload(workload: Workload) -> (&'static str, Value) {
    match workload {
        Workload::Bulk(bytes) => ("bytes", text(SIZE.format(bytes.get()))),
        Workload::Greedy { duration: None } => ("greedy", Value::Boolean(true)),
        Workload::Greedy { duration: Some(span) } => ("greedy", table([("duration", duration(span))])),
        Workload::Paced { rate, write, pattern, total } => {
            let mut paced = Table::new();
            paced.insert("rate".into(), text(format_rate(rate)));
            paced.insert("write".into(), text(SIZE.format(write.get())));
            paced.insert("pattern".into(), self::pattern(&pattern));
            if let Some(total) = total {
                paced.insert("bytes".into(), text(SIZE.format(total.get())));
            }
            ("paced", Value::Table(paced))
        }
        Workload::RequestResponse { request, response, think, count } => (
            "request_response",
            table([
                ("request", text(SIZE.format(request.get()))),
                ("response", text(SIZE.format(response.get()))),
                ("think", duration(think)),
                ("count", integer(count as u64)),
            ]),
        ),
    }
}

/// The keys of a TCP flow alone.
fn tcp(tcp: &TcpFlow, spec: &FlowSpec, scenario: &Scenario, put: &mut impl FnMut(&str, Value)) {
    if let Some(Spoof { at, buffer, sharing, reopens }) = tcp.spoof {
        let sharing = match sharing {
            BufferSharing::Common => "common",
            BufferSharing::Equal => "equal",
        };
        put(
            "spoof",
            table([
                ("at", text(&scenario[at])),
                ("buffer", text(format!("{buffer} packets"))),
                ("sharing", text(sharing)),
                ("reopens", Value::Boolean(reopens)),
            ]),
        );
    }
    match &tcp.stp {
        Some(config) => put("stp", crate::scenario::stp::written(config)),
        None => {
            let (profile, variant, explicit) = (&tcp.profile_name, &tcp.variant_name, &tcp.explicit);
            let own = TcpEnds { profile, variant, explicit, ends: (tcp.sender, tcp.receiver) };
            put("tcp", settings(&own, spec, 0, scenario));
        }
    }
    if let Some(at) = tcp.path_change {
        put("path_change", duration(at));
    }
    if !tcp.splits.is_empty() {
        let legs = tcp.splits.iter().enumerate();
        put("split", Value::Array(legs.map(|(n, leg)| split(leg, spec, n + 1, scenario)).collect()));
    }
}

fn pattern(pattern: &UdpPattern) -> Value {
    match pattern {
        UdpPattern::Cbr => text("cbr"),
        UdpPattern::OnOff { on, off } => table([("on", distribution(on)), ("off", distribution(off))]),
        UdpPattern::Mpeg(Mpeg { interval, group, distance, i, p, b }) => {
            let size = |bytes: &u32| text(SIZE.format(u64::from(*bytes)));
            let frames = [("interval", duration(*interval)), ("group", integer(u64::from(*group)))];
            let sizes = [("distance", integer(u64::from(*distance))), ("i", size(i)), ("p", size(p)), ("b", size(b))];
            let all = frames.into_iter().chain(sizes).map(|(key, value)| (key.to_owned(), value));
            table([("mpeg", Value::Table(all.collect()))])
        }
    }
}

fn split(leg: &Split, flow: &FlowSpec, number: usize, scenario: &Scenario) -> Value {
    let mut split = Table::new();
    split.insert("at".into(), text(&scenario[leg.at]));
    for (key, route) in [("route", &leg.route), ("return_route", &leg.return_route)] {
        if let Some(route) = route {
            split.insert(key.into(), links(route, scenario));
        }
    }
    match &leg.stp {
        Some(config) => split.insert("stp".into(), crate::scenario::stp::written(config)),
        None => {
            let (profile, variant, explicit) = (&leg.profile_name, &leg.variant_name, &leg.explicit);
            let own = TcpEnds { profile, variant, explicit, ends: (leg.sender, leg.receiver) };
            split.insert("tcp".into(), settings(&own, flow, number, scenario))
        }
    };
    Value::Table(split)
}

fn links(route: &[LinkId], scenario: &Scenario) -> Value {
    Value::Array(route.iter().map(|&link| text(&scenario[link].name)).collect())
}
