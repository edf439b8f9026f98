//! `channels` of a layer: which packets belong to each, and how they are treated.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::slacp::classify::Rule;
use bentpipe_engine::slacp::{Arq, Codel, Copies, Fec, Order, Queueing, Repairs};
use bentpipe_engine::units::Duration;
use bentpipe_language::document::Value;
use bentpipe_language::error::Problems;
use bentpipe_language::reader::{Item, View};
use bentpipe_language::shape::{Counted, Shape};

use super::grammar::{CHANNEL, CHANNEL_FEC, CODEL, COPIES, MATCH, OFF, ORDERS, QUEUEINGS, REPAIRS, SEGMENT_COUNT};
use super::links::Network;
use super::model::{ChannelSpec, PLAIN, PLAIN_FEC};
use super::queues;

pub(super) fn channel(
    item: &Item<'_>,
    over: &[LinkId; 2],
    network: &Network,
    problems: &mut Problems,
) -> Option<ChannelSpec> {
    let view = item.table(CHANNEL, problems)?;
    let name = view.require("name", problems).and_then(|item| item.name(problems));
    let mut spec = ChannelSpec {
        name: name?.to_owned(),
        rules: Vec::new(),
        config: PLAIN,
        limit: None,
        auto_codel: false,
        auto_copies: false,
    };
    if let Some(item) = view.get("match") {
        let rules = item.list(&Shape::List(&Shape::Table(MATCH)), problems)?;
        spec.rules = rules.iter().map(|item| rule(item, problems)).collect::<Option<_>>()?;
    }
    losses(&view, &mut spec, problems)?;
    if let Some(item) = view.get("priority") {
        spec.config.priority = item.count(Counted::new("", 0, 255), problems)? as u8;
    }
    if let Some(item) = view.get("weight") {
        spec.config.weight = item.count(Counted::new("", 1, 1000), problems)? as u32;
    }
    queue(&view, over, network, &mut spec, problems)?;
    if let Some(item) = view.get("segments") {
        let count = item.count(SEGMENT_COUNT, problems)?;
        spec.config.segments = u8::try_from(count).expect("within the bounds just checked");
        let config = &spec.config;
        let has_codel = spec.auto_codel || config.codel.is_some();
        if count > 1 && (config.arq.is_none() || config.fec.is_some() || has_codel || config.filters_acks) {
            let expected = "a channel with retransmission, without `fec`, `codel` and `ack_filter`".to_owned();
            item.refuse(problems, "packets in several frames need all of them", Some(expected));
            return None;
        }
    }
    Some(spec)
}

/// How lost packets and the packets behind them are treated.
fn losses(view: &View<'_>, spec: &mut ChannelSpec, problems: &mut Problems) -> Option<()> {
    if let Some(item) = view.get("transmissions") {
        spec.config.arq = match item.as_text() {
            Some("off") => None,
            Some("unlimited") => Some(Arq { transmissions: None }),
            _ => {
                let count = item.count(Counted::new("transmissions", 1, u32::MAX as u64), problems)?;
                Some(Arq { transmissions: Some(count as u32) })
            }
        };
    }
    if let Some(item) = view.get("copies") {
        match &item.node.value {
            Value::Table(_) => spec.config.copies = Some(copies(&item, problems)?),
            _ => spec.auto_copies = item.choice(&["off", "auto"], problems)? == "auto",
        }
        if spec.config.arq.is_none() && (spec.auto_copies || spec.config.copies.is_some()) {
            let expected = "`copies` with retransmission".to_owned();
            item.refuse(problems, "a channel with transmissions = \"off\" stores nothing to copy", Some(expected));
            return None;
        }
    }
    if let Some(item) = view.get("fec") {
        spec.config.fec = match &item.node.value {
            Value::Table(_) => Some(fec(&item, problems)?),
            _ => item.choice(OFF, problems).map(|_| None)?,
        };
    }
    if let Some(item) = view.get("order") {
        spec.config.order = match item.choice(ORDERS, problems)? {
            "flow" => Order::Flow,
            "channel" => Order::Channel,
            _ => Order::None,
        };
    }
    Some(())
}

/// The queue of the channel's packets.
fn queue(
    view: &View<'_>,
    over: &[LinkId; 2],
    network: &Network,
    spec: &mut ChannelSpec,
    problems: &mut Problems,
) -> Option<()> {
    if let Some(item) = view.get("queue") {
        // A time stands for the bytes that the first link sends in it. If the two links have different rates, use bytes
        // or packets.
        let rates = over.map(|link| network.links[link.index()].config.rate);
        let limit = queues::limit(&item, rates[0], problems)?;
        spec.limit = Some(limit);
    }
    if let Some(item) = view.get("counts_copies") {
        spec.config.limit_counts_copies = item.flag(problems)?;
    }
    if let Some(item) = view.get("ack_filter") {
        spec.config.filters_acks = item.flag(problems)?;
    }
    if let Some(item) = view.get("codel") {
        match &item.node.value {
            Value::Table(_) => spec.config.codel = Some(codel(&item, problems)?),
            _ => spec.auto_codel = item.choice(&["off", "auto"], problems)? == "auto",
        }
    }
    let has_codel = spec.auto_codel || spec.config.codel.is_some();
    if let Some(item) = view.get("queueing") {
        if item.choice(QUEUEINGS, problems)? == "fair" {
            spec.config.queueing = Queueing::Fair;
        }
        if spec.config.queueing == Queueing::Fair && (has_codel || spec.config.filters_acks) {
            let message = "fair scheduling excludes `codel` and `ack_filter`";
            item.refuse(problems, message, Some("\"fifo\", or a channel without them".to_owned()));
            return None;
        }
    }
    Some(())
}

fn rule(item: &Item<'_>, problems: &mut Problems) -> Option<Rule> {
    let view = item.table(MATCH, problems)?;
    let mut rule = Rule::default();
    if let Some(item) = view.get("dscp") {
        rule.dscp = Some(item.count(Counted::new("", 0, 63), problems)? as u8);
    }
    if let Some(item) = view.get("protocol") {
        rule.protocol = Some(if item.choice(&["tcp", "udp"], problems)? == "tcp" { 6 } else { 17 });
    }
    if let Some(item) = view.get("port") {
        rule.port = Some(item.count(Counted::new("", 0, 65_535), problems)? as u16);
    }
    if let Some(item) = view.get("bare_ack") {
        rule.bare_ack = Some(item.flag(problems)?);
    }
    if let Some(item) = view.get("up_to") {
        rule.max_bytes = Some(u32::try_from(item.size(problems)?.get()).unwrap_or(u32::MAX));
    }
    Some(rule)
}

fn fec(item: &Item<'_>, problems: &mut Problems) -> Option<Fec> {
    let view = item.table(CHANNEL_FEC, problems)?;
    let mut fec = PLAIN_FEC;
    if let Some(item) = view.get("block") {
        fec.block = item.count(Counted::new("packets", 1, Fec::MAX_FRAMES as u64), problems)? as u8;
    }
    if let Some(item) = view.get("interval") {
        fec.interval = item.duration(problems)?;
    }
    if let Some(item) = view.get("max_overhead") {
        fec.max_overhead = item.probability(problems)?.get();
    }
    if let Some(item) = view.get("repairs") {
        fec.repairs = match item.choice(REPAIRS, problems)? {
            "spare" => Repairs::Spare,
            "idle" => Repairs::Idle,
            "short" => Repairs::Short,
            _ => Repairs::Prompt,
        };
    }
    Some(fec)
}

fn copies(item: &Item<'_>, problems: &mut Problems) -> Option<Copies> {
    let view = item.table(COPIES, problems)?;
    let interval = view.require("interval", problems).and_then(|item| item.duration(problems));
    let max = view.require("max", problems).and_then(|item| item.count(Counted::new("copies", 1, 255), problems));
    Some(Copies { interval: interval?, max: max? as u8, only_resent: false })
}

fn codel(item: &Item<'_>, problems: &mut Problems) -> Option<Codel> {
    let view = item.table(CODEL, problems)?;
    let target = view.require("target", problems).and_then(|item| item.duration(problems));
    let interval = view.require("interval", problems).and_then(|item| item.duration(problems));
    if interval == Some(Duration::ZERO) {
        item.refuse(problems, "an interval cannot be zero", Some(Shape::DURATION.expected()));
        return None;
    }
    Some(Codel { target: target?, interval: interval? })
}
