//! `[[links]]`.

use bentpipe_engine::link::{
    CellConfig, ChannelConfig, Discipline, LinkConfig, LossConfig, PacketBursts, QueueConfig, Reorder, Sharing, Ties,
};
use bentpipe_engine::units::{Duration, Probability};
use bentpipe_language::quantity::{CELLS, RATE, SIZE, format_probability, format_rate};
use toml::{Table, Value};

use super::moves;
use super::values::{distribution, duration, integer, limit, probability, table, text};
use crate::scenario::model::{LinkSpec, Scenario};

pub(super) fn link(spec: &LinkSpec, scenario: &Scenario) -> Value {
    let LinkConfig {
        rate: _,
        rate_trace: _,
        tdma: _,
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
        moves: _,
        phases: _,
        jitter: _,
        reorder: _,
        duplicate: _,
        corrupt: _,
        cells,
    } = &spec.config;
    let mut link = Table::new();
    let mut put = |key: &str, value: Value| {
        link.insert(key.to_owned(), value);
    };
    put("name", text(&spec.name));
    put("from", text(&scenario[spec.from]));
    put("to", text(&scenario[spec.to]));
    line(&spec.config, &mut put);
    put("delay", duration(*delay));
    match cells {
        None => put("queue", self::queue(limit(&queue.limit), queue)),
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
    if let Some(advice) = spec.throughput_advice {
        put("throughput_advice", text(format_rate(advice)));
    }
    if *channel != ChannelConfig::Clear {
        put("bursts", bursts(channel, bad, extra_delay.0));
    }
    if let Some(bursts) = *packet_bursts {
        put("packet_bursts", self::packet_bursts(bursts));
    }
    if *ties == Ties::Begun {
        put("ties", text("begun"));
    }
    if !drop_list.is_empty() {
        put("drop_list", Value::Array(drop_list.iter().copied().map(integer).collect()));
    }
    what_else_happens(&spec.config, &mut put);
    Value::Table(link)
}

/// When the line sends, and how fast.
fn line(config: &LinkConfig, put: &mut impl FnMut(&str, Value)) {
    if let Some(trace) = &config.rate_trace {
        return put("rate_trace", Value::Array(trace.millis().iter().copied().map(integer).collect()));
    }
    if let Some(schedule) = &config.tdma {
        put("rate", text(format_rate(schedule.rate())));
        let bursts =
            schedule.bursts().iter().map(|&(start, length)| Value::Array(vec![duration(start), duration(length)]));
        put("tdma", table([("frame", duration(schedule.frame())), ("bursts", Value::Array(bursts.collect()))]));
        return;
    }
    match config.moves.as_ref().and_then(|moves| moves.rate.as_ref()) {
        Some(track) if moves::is_trace(track) => {}
        Some(track) => put("rate", text(RATE.format(track.initial()))),
        None => put("rate", config.rate.map_or_else(|| text("unlimited"), |rate| text(format_rate(rate)))),
    }
}

/// Changes of the settings, and what happens to packets besides losses.
fn what_else_happens(config: &LinkConfig, put: &mut impl FnMut(&str, Value)) {
    if let Some(moves) = &config.moves {
        moves::put(moves, put);
    }
    if let Some(phases) = &config.phases {
        put("phases", moves::phases(phases));
    }
    if let Some(jitter) = &config.jitter {
        put("jitter", moves::jitter(jitter));
    }
    if let Some(Reorder { probability: p, delay }) = config.reorder {
        put("reorder", table([("probability", probability(p)), ("delay", duration(delay))]));
    }
    for (key, share) in [("duplicate", config.duplicate), ("corrupt", config.corrupt)] {
        if share != Probability::ZERO {
            put(key, probability(share));
        }
    }
}

fn packet_bursts(bursts: PacketBursts) -> Value {
    match bursts {
        PacketBursts::Conditional { start, again } => {
            table([("start", probability(start)), ("burstiness", probability(again))])
        }
        PacketBursts::Runs { start, length } => {
            let length = format!("{length} packet{}", if length == 1 { "" } else { "s" });
            table([("start", probability(start)), ("length", text(length))])
        }
    }
}

fn atm(cells: &CellConfig) -> Value {
    let CellConfig { line, buffer, sharing, early_discard, partial_discard } = *cells;
    let mut atm = Table::new();
    atm.insert("line".into(), line.map_or_else(|| text("unlimited"), |rate| text(format_rate(rate))));
    let room = buffer.map_or_else(|| "unlimited".to_owned(), |cells| CELLS.format(cells as u64));
    atm.insert("buffer".into(), text(room));
    atm.insert("sharing".into(), text(if sharing == Sharing::Shared { "shared" } else { "per-vc" }));
    let early = early_discard.zip(buffer).map(|(threshold, buffer)| {
        // Reading rounds down, so half a cell is added; the share then gives the same number of cells.
        text(format_probability(((threshold as f64 + 0.5) / buffer as f64).min(1.0)))
    });
    atm.insert("early_packet_discard".into(), early.unwrap_or_else(|| text("off")));
    atm.insert("partial_packet_discard".into(), Value::Boolean(partial_discard));
    Value::Table(atm)
}

fn queue(limit: Value, config: &QueueConfig) -> Value {
    let discipline = &config.discipline;
    let mut queue = match discipline {
        Discipline::DropTail => table([("limit", limit), ("discipline", text("drop-tail"))]),
        Discipline::Codel(codel) | Discipline::FqCodel(codel) => table([
            ("limit", limit),
            ("discipline", text(if matches!(discipline, Discipline::Codel(_)) { "codel" } else { "fq-codel" })),
            ("target", duration(codel.target)),
            ("interval", duration(codel.interval)),
        ]),
        Discipline::DualPi2(dual) => table([
            ("limit", limit),
            ("discipline", text("dualpi2")),
            ("target", duration(dual.target)),
            ("max_rtt", duration(dual.max_rtt)),
            ("coupling", Value::Integer(dual.coupling as i64)),
            ("l4s_threshold", duration(dual.l4s_threshold)),
            ("l4s_range", duration(dual.l4s_range)),
            ("classic_share", probability(dual.classic_share)),
        ]),
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
    };
    if config.marking
        && !matches!(discipline, Discipline::DualPi2(_))
        && let Value::Table(queue) = &mut queue
    {
        queue.insert("marking".into(), Value::Boolean(true));
    }
    queue
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
