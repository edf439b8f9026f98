//! `[[layers]]`.

use bentpipe_engine::slacp::classify::Rule;
use bentpipe_engine::slacp::{Arq, Fec, Order, Queueing, Release, Repairs};
use bentpipe_language::quantity::{SIZE, format_probability, format_rate};
use toml::{Table, Value};

use super::values::{duration, integer, limit, table, text};
use crate::scenario::model::{ChannelSpec, LayerSpec, Scenario};

pub(super) fn layer(spec: &LayerSpec, scenario: &Scenario) -> Value {
    let release = match spec.release {
        None => text("auto"),
        Some(Release::AtOnce) => text("unlimited"),
        Some(Release::Grouped) => text("grouped"),
        Some(Release::Paced(rate)) => text(format_rate(rate)),
    };
    table([
        ("name", text(&spec.name)),
        ("over", Value::Array(spec.over.iter().map(|&link| text(&scenario[link].name)).collect())),
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
        Queueing::Hosts => unreachable!("scenarios have no hosts that take turns"),
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
