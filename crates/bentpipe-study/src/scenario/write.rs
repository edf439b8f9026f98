//! From a [`Scenario`] to text that reads back as the same value.

use bentpipe_engine::link::{
    CellConfig, ChannelConfig, Discipline, Distribution, LinkConfig, LossConfig, PacketBursts, QueueLimit, Sharing,
    Ties,
};
use bentpipe_engine::slacp::classify::Rule;
use bentpipe_engine::slacp::{Arq, Fec, Order, Queueing, Release, Repairs};
use bentpipe_engine::units::{Duration, Probability};
use toml::{Table, Value};

use super::model::{
    BufferSharing, ChannelSpec, FlowKind, FlowSpec, HostSpec, LayerSpec, LinkSpec, Mpeg, Scenario, Split, Spoof,
    UdpFlow, UdpPattern, Workload,
};
use super::windows::{TcpEnds, all_explicit};
use bentpipe_language::quantity::{CELLS, SIZE, format_duration, format_probability, format_rate};
use bentpipe_language::tcp::TcpOverrides;
use bentpipe_language::tcp::{Cell, setting};

/// A table of these keys and values.
fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn text(text: impl Into<String>) -> Value {
    Value::String(text.into())
}

fn duration(span: Duration) -> Value {
    text(format_duration(span))
}

fn probability(p: Probability) -> Value {
    text(format_probability(p.get()))
}

/// Integers of TOML are signed: what does not fit is written as text, which reads back too.
fn integer(value: u64) -> Value {
    i64::try_from(value).map_or_else(|_| text(value.to_string()), Value::Integer)
}

pub(crate) fn scenario(scenario: &Scenario) -> String {
    let mut root = Table::new();
    root.insert("name".into(), text(&scenario.name));
    root.insert("description".into(), text(&scenario.description));
    if let Some(source) = &scenario.source {
        root.insert("source".into(), text(source));
    }
    root.insert("seed".into(), integer(scenario.seed));
    root.insert("time_limit".into(), duration(scenario.time_limit));
    if !scenario.variants.is_empty() {
        let rows = scenario.variants.iter().map(|(name, row)| {
            let mut written = Table::new();
            written.insert("base".into(), text(&row.base));
            written.insert("description".into(), text(&row.description));
            written.extend(overrides(&row.overrides));
            (name.clone(), Value::Table(written))
        });
        root.insert("variants".into(), Value::Table(rows.collect()));
    }
    let spoken_of = scenario.nodes.iter().zip(&scenario.hosts).filter_map(|(name, host)| {
        let HostSpec { processing, forwarding } = host;
        let said = [("processing", processing), ("forwarding", forwarding)];
        let said: Vec<_> =
            said.into_iter().filter_map(|(key, time)| Some((key, distribution(time.as_ref()?)))).collect();
        let said: Table = said.into_iter().map(|(key, time)| (key.to_owned(), time)).collect();
        (!said.is_empty()).then(|| (name.clone(), Value::Table(said)))
    });
    let spoken_of: Table = spoken_of.collect();
    if !spoken_of.is_empty() {
        root.insert("nodes".into(), Value::Table(spoken_of));
    }
    root.insert("links".into(), Value::Array(scenario.links.iter().map(|spec| link(spec, scenario)).collect()));
    if !scenario.layers.is_empty() {
        root.insert("layers".into(), Value::Array(scenario.layers.iter().map(|spec| layer(spec, scenario)).collect()));
    }
    root.insert("flows".into(), Value::Array(scenario.flows.iter().map(|spec| flow(spec, scenario)).collect()));
    toml::to_string(&root).expect("text, numbers and tables can always be written")
}

fn link(spec: &LinkSpec, scenario: &Scenario) -> Value {
    let LinkConfig {
        rate,
        rate_trace,
        tdma,
        delay,
        header,
        mtu,
        queue,
        channel,
        good,
        bad,
        extra_delay,
        packet_bursts,
        ties,
        drop_list,
        cells,
    } = &spec.config;
    let mut link = Table::new();
    let mut put = |key: &str, value: Value| {
        link.insert(key.to_owned(), value);
    };
    put("name", text(&spec.name));
    put("from", text(&scenario.nodes[spec.from]));
    put("to", text(&scenario.nodes[spec.to]));
    match (rate_trace, tdma) {
        (Some(trace), _) => put("rate_trace", Value::Array(trace.millis().iter().copied().map(integer).collect())),
        (None, Some(schedule)) => {
            put("rate", text(format_rate(schedule.rate())));
            let bursts =
                schedule.bursts().iter().map(|&(start, length)| Value::Array(vec![duration(start), duration(length)]));
            put("tdma", table([("frame", duration(schedule.frame())), ("bursts", Value::Array(bursts.collect()))]));
        }
        (None, None) => put("rate", rate.map_or_else(|| text("unlimited"), |rate| text(format_rate(rate)))),
    }
    put("delay", duration(*delay));
    match cells {
        None => put("queue", self::queue(limit(&queue.limit), &queue.discipline)),
        Some(cells) => {
            put("framing", text("aal5"));
            put("atm", atm(cells));
        }
    }
    put("loss", probability(good.packet));
    put("bit_error_rate", probability(good.bit));
    if *header > 0 {
        put("header", text(SIZE.format(*header as u64)));
    }
    if let Some(mtu) = mtu {
        put("mtu", text(SIZE.format(*mtu as u64)));
    }
    if *channel != ChannelConfig::Clear {
        put("bursts", bursts(channel, bad, extra_delay.0));
    }
    match *packet_bursts {
        None => {}
        Some(PacketBursts::Conditional { start, again }) => {
            put("packet_bursts", table([("start", probability(start)), ("burstiness", probability(again))]));
        }
        Some(PacketBursts::Runs { start, length }) => {
            let length = format!("{length} packet{}", if length == 1 { "" } else { "s" });
            put("packet_bursts", table([("start", probability(start)), ("length", text(length))]));
        }
    }
    if *ties == Ties::Begun {
        put("ties", text("begun"));
    }
    if !drop_list.is_empty() {
        put("drop_list", Value::Array(drop_list.iter().copied().map(integer).collect()));
    }
    Value::Table(link)
}

fn limit(limit: &QueueLimit) -> Value {
    match limit {
        QueueLimit::Unlimited => text("unlimited"),
        QueueLimit::Packets(count) => text(format!("{count} packets")),
        QueueLimit::Bytes(bytes) => text(SIZE.format(bytes.get())),
    }
}

fn layer(spec: &LayerSpec, scenario: &Scenario) -> Value {
    let release = match spec.release {
        None => text("auto"),
        Some(Release::AtOnce) => text("unlimited"),
        Some(Release::Grouped) => text("grouped"),
        Some(Release::Paced(rate)) => text(format_rate(rate)),
    };
    table([
        ("name", text(&spec.name)),
        ("over", Value::Array(spec.over.iter().map(|&link| text(&scenario.links[link].name)).collect())),
        ("report_interval", duration(spec.report_interval)),
        ("reordering", integer(spec.reordering)),
        ("release", release),
        ("window", integer(spec.window as u64)),
        ("weightless", Value::Boolean(spec.weightless)),
        ("hears_damage", Value::Boolean(spec.hears_damage)),
        ("channels", Value::Array(spec.channels.iter().map(channel).collect())),
    ])
}

fn channel(spec: &ChannelSpec) -> Value {
    let config = &spec.config;
    let mut channel = Table::new();
    let mut put = |key: &str, value: Value| {
        channel.insert(key.to_owned(), value);
    };
    put("name", text(&spec.name));
    put("match", Value::Array(spec.rules.iter().map(rule).collect()));
    let transmissions = match config.arq {
        None => text("off"),
        Some(Arq { transmissions: None }) => text("unlimited"),
        Some(Arq { transmissions: Some(count) }) => integer(count as u64),
    };
    put("transmissions", transmissions);
    let fec = |fec: Fec| {
        table([
            ("block", integer(fec.block as u64)),
            ("interval", duration(fec.interval)),
            ("max_overhead", text(format_probability(fec.max_overhead))),
            (
                "repairs",
                text(match fec.repairs {
                    Repairs::Spare => "spare",
                    Repairs::Prompt => "prompt",
                    Repairs::Idle => "idle",
                    Repairs::Short => "short",
                }),
            ),
        ])
    };
    put("fec", config.fec.map_or_else(|| text("off"), fec));
    let order = match config.order {
        Order::None => "none",
        Order::Flow => "flow",
        Order::Channel => "channel",
    };
    put("order", text(order));
    put("priority", integer(config.priority as u64));
    put("weight", integer(config.weight as u64));
    if let Some(own) = &spec.limit {
        put("queue", limit(own));
    }
    put("ack_filter", Value::Boolean(config.filters_acks));
    put("counts_copies", Value::Boolean(config.limit_counts_copies));
    let queueing = match config.queueing {
        Queueing::Fifo => "fifo",
        Queueing::Fair => "fair",
    };
    put("queueing", text(queueing));
    put("segments", integer(u64::from(config.segments)));
    let copies = match config.copies {
        Some(copies) => table([("interval", duration(copies.interval)), ("max", integer(copies.max as u64))]),
        None => text(if spec.auto_copies { "auto" } else { "off" }),
    };
    put("copies", copies);
    let codel = match config.codel {
        Some(codel) => table([("target", duration(codel.target)), ("interval", duration(codel.interval))]),
        None => text(if spec.auto_codel { "auto" } else { "off" }),
    };
    put("codel", codel);
    Value::Table(channel)
}

fn rule(rule: &Rule) -> Value {
    let mut written = Table::new();
    let mut put = |key: &str, value: Option<Value>| {
        written.extend(value.map(|value| (key.to_owned(), value)));
    };
    put("dscp", rule.dscp.map(|dscp| integer(dscp as u64)));
    put("protocol", rule.protocol.map(|number| text(if number == 6 { "tcp" } else { "udp" })));
    put("port", rule.port.map(|port| integer(port as u64)));
    put("bare_ack", rule.bare_ack.map(Value::Boolean));
    put("up_to", rule.max_bytes.map(|bytes| text(SIZE.format(bytes as u64))));
    Value::Table(written)
}

fn atm(cells: &CellConfig) -> Value {
    let CellConfig { line, buffer, sharing, early_discard, partial_discard } = *cells;
    let mut atm = Table::new();
    atm.insert("line".into(), line.map_or_else(|| text("unlimited"), |rate| text(format_rate(rate))));
    let room = buffer.map_or_else(|| "unlimited".to_owned(), |cells| CELLS.format(cells as u64));
    atm.insert("buffer".into(), text(room));
    atm.insert("sharing".into(), text(if sharing == Sharing::Shared { "shared" } else { "per-vc" }));
    let early = early_discard.zip(buffer).map(|(threshold, buffer)| {
        // Read back, the share gives the same number of cells: it is rounded down there, so half a cell is put on top.
        text(format_probability(((threshold as f64 + 0.5) / buffer as f64).min(1.0)))
    });
    atm.insert("early_packet_discard".into(), early.unwrap_or_else(|| text("off")));
    atm.insert("partial_packet_discard".into(), Value::Boolean(partial_discard));
    Value::Table(atm)
}

fn queue(limit: Value, discipline: &Discipline) -> Value {
    match discipline {
        Discipline::DropTail => table([("limit", limit), ("discipline", text("drop-tail"))]),
        Discipline::Red(red) => table([
            ("limit", limit),
            ("discipline", text("red")),
            ("min_threshold", text(format!("{} packets", red.min_threshold))),
            ("max_threshold", text(format!("{} packets", red.max_threshold))),
            ("max_probability", probability(red.max_probability)),
            ("weight", Value::Float(red.weight)),
            ("gentle", Value::Boolean(red.gentle)),
            ("wait", Value::Boolean(red.wait)),
            ("mean_packet", text(SIZE.format(red.mean_packet.get()))),
        ]),
    }
}

fn bursts(channel: &ChannelConfig, bad: &LossConfig, extra_delay: Duration) -> Value {
    let mut bursts = Table::new();
    match channel {
        ChannelConfig::Clear => {}
        ChannelConfig::OnOff { gap, burst } => {
            bursts.insert("gap".into(), distribution(gap));
            bursts.insert("length".into(), distribution(burst));
        }
        ChannelConfig::Schedule(schedule) => {
            let pairs = schedule.iter().map(|&(start, length)| Value::Array(vec![duration(start), duration(length)]));
            bursts.insert("schedule".into(), Value::Array(pairs.collect()));
        }
    }
    bursts.insert("loss".into(), probability(bad.packet));
    bursts.insert("bit_error_rate".into(), probability(bad.bit));
    bursts.insert("extra_delay".into(), duration(extra_delay));
    Value::Table(bursts)
}

fn distribution(distribution: &Distribution) -> Value {
    let pair = |low: Duration, high: Duration| Value::Array(vec![duration(low), duration(high)]);
    match *distribution {
        Distribution::Fixed(span) => table([("fixed", duration(span))]),
        Distribution::Uniform(low, high) => table([("uniform", pair(low, high))]),
        Distribution::Exponential { mean } => table([("exponential", duration(mean))]),
        Distribution::ExponentialClipped { mean, min, max } => {
            table([("exponential", duration(mean)), ("clip", pair(min, max))])
        }
        Distribution::ExponentialTruncated { mean, min, max } => {
            table([("exponential", duration(mean)), ("truncate", pair(min, max))])
        }
    }
}

fn flow(spec: &FlowSpec, scenario: &Scenario) -> Value {
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
            FlowKind::Udp(_) => "udp",
        }),
    );
    put("from", text(&scenario.nodes[spec.from]));
    put("to", text(&scenario.nodes[spec.to]));
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
    match spec.kind.workload() {
        None => {}
        Some(Workload::Bulk(bytes)) => put("bytes", text(SIZE.format(bytes.get()))),
        Some(Workload::Greedy { duration: None }) => put("greedy", Value::Boolean(true)),
        Some(Workload::Greedy { duration: Some(span) }) => put("greedy", table([("duration", duration(span))])),
        Some(Workload::Paced { rate, write, pattern, total }) => {
            let mut paced = Table::new();
            paced.insert("rate".into(), text(format_rate(rate)));
            paced.insert("write".into(), text(SIZE.format(write.get())));
            paced.insert("pattern".into(), self::pattern(&pattern));
            if let Some(total) = total {
                paced.insert("bytes".into(), text(SIZE.format(total.get())));
            }
            put("paced", Value::Table(paced));
        }
        Some(Workload::RequestResponse { request, response, think, count }) => put(
            "request_response",
            table([
                ("request", text(SIZE.format(request.get()))),
                ("response", text(SIZE.format(response.get()))),
                ("think", duration(think)),
                ("count", integer(count as u64)),
            ]),
        ),
    }
    match &spec.kind {
        FlowKind::Tcp(tcp) => {
            if let Some(Spoof { at, buffer, sharing, reopens }) = tcp.spoof {
                let sharing = match sharing {
                    BufferSharing::Common => "common",
                    BufferSharing::Equal => "equal",
                };
                put(
                    "spoof",
                    table([
                        ("at", text(&scenario.nodes[at])),
                        ("buffer", text(format!("{buffer} packets"))),
                        ("sharing", text(sharing)),
                        ("reopens", Value::Boolean(reopens)),
                    ]),
                );
            }
            match &tcp.stp {
                Some(config) => put("stp", super::stp::written(config)),
                None => {
                    let (profile, variant, explicit) = (&tcp.profile_name, &tcp.variant_name, &tcp.explicit);
                    let own = TcpEnds { profile, variant, explicit, ends: (tcp.sender, tcp.receiver) };
                    put("tcp", settings(&own, spec, 0, scenario));
                }
            }
            if !tcp.splits.is_empty() {
                let legs = tcp.splits.iter().enumerate();
                put("split", Value::Array(legs.map(|(n, leg)| split(leg, spec, n + 1, scenario)).collect()));
            }
        }
        FlowKind::Stp(stp) => put("stp", super::stp::written(&stp.config)),
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
    split.insert("at".into(), text(&scenario.nodes[leg.at]));
    for (key, route) in [("route", &leg.route), ("return_route", &leg.return_route)] {
        if let Some(route) = route {
            split.insert(key.into(), links(route, scenario));
        }
    }
    match &leg.stp {
        Some(config) => split.insert("stp".into(), super::stp::written(config)),
        None => {
            let (profile, variant, explicit) = (&leg.profile_name, &leg.variant_name, &leg.explicit);
            let own = TcpEnds { profile, variant, explicit, ends: (leg.sender, leg.receiver) };
            split.insert("tcp".into(), settings(&own, flow, number, scenario))
        }
    };
    Value::Table(split)
}

fn links(route: &[usize], scenario: &Scenario) -> Value {
    Value::Array(route.iter().map(|link| text(&scenario.links[*link].name)).collect())
}

fn settings(own: &TcpEnds<'_>, flow: &FlowSpec, leg: usize, scenario: &Scenario) -> Value {
    // Names that stand for nothing are possible in a value made by hand; its settings are then written as given.
    let explicit = all_explicit(scenario, flow, leg, own).unwrap_or_else(|_| own.explicit.clone());
    let mut settings = Table::new();
    settings.insert("profile".into(), text(own.profile));
    settings.insert("variant".into(), text(own.variant));
    settings.extend(overrides(&explicit));
    Value::Table(settings)
}

fn overrides(overrides: &TcpOverrides) -> Table {
    let mut written = cells(&overrides.both);
    for (end, given) in [("sender", &overrides.sender), ("receiver", &overrides.receiver)] {
        if !given.is_empty() {
            written.insert(end.into(), Value::Table(cells(given)));
        }
    }
    written
}

fn cells(given: &std::collections::BTreeMap<&'static str, Cell>) -> Table {
    let mut written = Table::new();
    for (key, cell) in given {
        let counted = setting(key).map(|setting| setting.kind);
        let value = match cell {
            Cell::Count(count) => match counted {
                Some(bentpipe_language::tcp::Kind::Count(counted)) if !counted.what.is_empty() => {
                    let what = if *count == 1 { counted.what.trim_end_matches('s') } else { counted.what };
                    text(format!("{count} {what}"))
                }
                _ => integer(*count),
            },
            Cell::Span(span) => duration(*span),
            Cell::Size(bytes) => text(SIZE.format(*bytes)),
            Cell::Flag(flag) => Value::Boolean(*flag),
            Cell::Word(word) => text(*word),
        };
        match key.split_once('.') {
            None => {
                written.insert((*key).to_owned(), value);
            }
            Some((group, key)) => {
                let group = written.entry(group).or_insert_with(|| Value::Table(Table::new()));
                if let Value::Table(group) = group {
                    group.insert(key.to_owned(), value);
                }
            }
        }
    }
    written
}
