//! `[[links]]`: nodes, rates, delays, queues and losses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bentpipe_engine::link::modulation::with_implementation_loss;
use bentpipe_engine::link::{
    ChannelConfig, Discipline, Distribution, ExtraDelay, LinkConfig, LossConfig, PacketBursts, QueueConfig, QueueLimit,
    Ties,
};
use bentpipe_engine::units::{Decibels, Duration, Probability, Rate};
use bentpipe_language::document::Value;
use bentpipe_language::error::{Mistake, Problems};
use bentpipe_language::quantity::{self, DECIBELS};
use bentpipe_language::reader::Item;
use bentpipe_language::shape::{Counted, Shape};

use super::beside::Beside;
use super::bursts;
use super::cells::cells;
use super::directions::Direction;
use super::grammar::{BIT_ERRORS, BURSTS, DIRECTION, FRAMINGS, GILBERT_ELLIOTT, LINK, PACKET_BURSTS, TIES};
use super::model::{LinkSpec, NodeId};
use super::moves;
use super::queues::{probability, queue};
use super::replaced;
use super::tdma;
use super::traces;

/// The links and their nodes.
#[derive(Default)]
pub(crate) struct Network {
    pub(crate) nodes: Vec<String>,
    pub(crate) links: Vec<LinkSpec>,
    /// The nodes by name.
    known: BTreeMap<String, NodeId>,
    /// Names of the links in the file and of their directions, kept to refuse duplicates.
    names: BTreeSet<String>,
    directions: BTreeSet<String>,
    /// True if every entry has valid nodes.
    pub(crate) is_whole: bool,
}

impl Network {
    fn node(&mut self, item: &Item<'_>, problems: &mut Problems) -> Option<NodeId> {
        let name = item.name(problems)?;
        if let Some(known) = self.known.get(name) {
            return Some(*known);
        }
        let new = NodeId::from(self.nodes.len());
        self.nodes.push(name.to_owned());
        self.known.insert(name.to_owned(), new);
        Some(new)
    }

    /// Reads the entries of `[[links]]`.
    pub(crate) fn read(entries: &[Item<'_>], beside: Beside<'_>, problems: &mut Problems) -> Network {
        let mut network = Network { is_whole: !entries.is_empty(), ..Network::default() };
        for item in entries {
            network.is_whole &= network.entry(item, beside, problems).is_some();
        }
        network
    }

    fn entry(&mut self, item: &Item<'_>, beside: Beside<'_>, problems: &mut Problems) -> Option<()> {
        let view = item.table(LINK, problems)?;
        let name_item = view.require("name", problems);
        let name = name_item.as_ref().and_then(|item| item.name(problems)).unwrap_or("?").to_owned();
        let is_twice = !self.names.insert(name.clone()) && name != "?";
        if is_twice {
            let item = name_item.as_ref()?;
            item.refuse(
                problems,
                format!("two links are called `{name}`"),
                Some("different names of links".to_owned()),
            );
        }
        let one_way = [view.get("from"), view.get("to")];
        let between = view.get("between");
        if between.is_some() == one_way.iter().any(Option::is_some) {
            let mistake = Mistake::new(&item.path, format!("`{}` must have `between`, or `from` and `to`", item.path))
                .expected("between = [\"A\", \"B\"] for both directions, from = \"A\" and to = \"B\" for one");
            problems.add(view.span, mistake);
            return None;
        }
        if let Some(between) = between {
            let [first, second] = between.pair(&Shape::Text, problems)?;
            let (first, second) = (self.node(&first, problems), self.node(&second, problems));
            let ways = ["forward", "backward"];
            let mut own = [None, None];
            for (own, way) in own.iter_mut().zip(ways) {
                *own = match view.get(way) {
                    Some(direction) => Some(direction.table(DIRECTION, problems)?),
                    None => None,
                };
            }
            replaced::check(&view, own.each_ref().map(Option::as_ref), problems);
            for ((own, way), ends) in own.iter().zip(ways).zip([[first, second], [second, first]]) {
                let settings = settings(&Direction::new(own.as_ref(), &view), beside, problems);
                // For a name that occurs twice, one message is enough.
                let named = name_item.as_ref().filter(|_| !is_twice);
                self.add((format!("{name}/{way}"), named), ends, settings, &between, problems);
            }
            return (first? != second?).then_some(());
        }
        for key in ["forward", "backward"] {
            if let Some(direction) = view.get(key) {
                let expected = "between = [\"A\", \"B\"] for a link with two directions".to_owned();
                direction.refuse(problems, format!("`{}` has one direction only", item.path), Some(expected));
            }
        }
        let (from, to) = (view.require("from", problems), view.require("to", problems));
        let (from, to) = (from?, to?);
        let settings = settings(&Direction::new(None, &view), beside, problems);
        let ends = [self.node(&from, problems), self.node(&to, problems)];
        self.add((name, name_item.as_ref().filter(|_| !is_twice)), ends, settings, &to, problems);
        (ends[0]? != ends[1]?).then_some(())
    }

    /// Adds one direction; `named` is the place of its name in the text, unless the name has been refused.
    fn add(
        &mut self,
        (name, named): (String, Option<&Item<'_>>),
        [from, to]: [Option<NodeId>; 2],
        settings: Option<Settings>,
        place: &Item<'_>,
        problems: &mut Problems,
    ) {
        // A link with wrong settings still connects its nodes, to avoid follow-up errors.
        let clean = || Settings { config: LinkConfig::clean(None, Duration::ZERO), throughput_advice: None };
        let Settings { config, throughput_advice } = settings.unwrap_or_else(clean);
        let (Some(from), Some(to)) = (from, to) else { return };
        if from == to {
            let message = format!("a link cannot join `{}` with itself", self.nodes[from.index()]);
            place.refuse(problems, message, Some("two nodes".to_owned()));
            return;
        }
        let is_twice = !self.directions.insert(name.clone());
        if let Some(named) = named.filter(|_| is_twice) {
            let expected = Some("different names of links".to_owned());
            named.refuse(problems, format!("two links are called `{name}`"), expected);
        }
        self.links.push(LinkSpec { name, from, to, config, throughput_advice });
    }
}

/// The settings of one direction of a link.
struct Settings {
    config: LinkConfig,
    throughput_advice: Option<Rate>,
}

fn settings(direction: &Direction<'_, '_>, beside: Beside<'_>, problems: &mut Problems) -> Option<Settings> {
    let throughput_advice = match direction.get("throughput_advice") {
        Some(item) => Some(item.rate(problems)?),
        None => None,
    };
    Some(Settings { config: config(direction, beside, problems)?, throughput_advice })
}

fn config(direction: &Direction<'_, '_>, beside: Beside<'_>, problems: &mut Problems) -> Option<LinkConfig> {
    let trace = rate_trace(direction, problems);
    let rate = if trace.is_some() { None } else { direction.require("rate", problems) };
    let delay = direction.require("delay", problems);
    let has_trace = trace.is_some();
    let (mut rates, mut opportunities) = (None, None);
    match &trace {
        Some(item) if matches!(item.node.value, Value::Table(_)) => rates = Some(moves::rates(item, beside, problems)?),
        Some(item) => opportunities = Some(traces::rate_trace(item, beside, problems)?),
        None => {}
    }
    let mean = rates.as_ref().map(|rates| Rate::from_bits_per_second(rates.mean().max(1)));
    let trace = opportunities;
    let rate = match (&trace, rate) {
        (Some(trace), _) => Some(Some(trace.mean())),
        (None, None) if mean.is_some() => mean,
        (None, Some(item)) if item.as_text() == Some("unlimited") => Some(None),
        (None, item) => item?.rate(problems).map(Some),
    };
    let delay = delay.and_then(|item| item.duration(problems));
    let tdma = match direction.get("tdma") {
        Some(item) => Some(tdma::schedule(&item, rate.filter(|_| !has_trace).flatten(), problems)?),
        None => None,
    };
    let rate = tdma.as_ref().map_or(rate, |schedule| Some(Some(schedule.mean())));
    let queue = match (direction.get("queue"), rate) {
        (Some(item), Some(rate)) => queue(&item, rate, problems),
        (Some(_), None) => None,
        (None, _) => {
            Some(QueueConfig { limit: QueueLimit::Unlimited, discipline: Discipline::DropTail, marking: false })
        }
    };
    let in_cells = direction.get("framing").map_or(Some("packets"), |item| item.choice(FRAMINGS, problems))? == "aal5";
    let mut config = LinkConfig::clean(rate?, delay?);
    config.queue = queue?;
    config.rate_trace = trace.map(Arc::new);
    config.tdma = tdma.map(Arc::new);
    losses(&mut config, direction, beside, problems)?;
    moves::read(&mut config, rates, direction, beside, problems)?;
    if let Some(item) = direction.get("packet_bursts") {
        config.packet_bursts = Some(packet_bursts(&item, problems)?);
    }
    if let Some(item) = direction.get("header") {
        config.header = header(&item, problems)?;
    }
    if let Some(item) = direction.get("mtu") {
        config.mtu = Some(mtu(&item, problems)?);
    }
    if in_cells {
        config.cells = Some(cells(direction.get("atm"), problems)?);
        refuse_with_cells(&config, direction, problems)?;
    } else if let Some(item) = direction.get("atm") {
        let expected = "framing = \"aal5\" beside it".to_owned();
        item.refuse(problems, format!("`{}` applies only to cells", item.path), Some(expected));
    }
    if let Some(item) = direction.get("ties") {
        config.ties = if item.choice(TIES, problems)? == "begun" { Ties::Begun } else { Ties::Departure };
    }
    if let Some(item) = direction.get("drop_list") {
        config.drop_list = drop_list(&item, problems)?;
    }
    Some(config)
}

/// The rate trace of a direction, if any: its own or, without one, the link's.
fn rate_trace<'a>(direction: &Direction<'_, 'a>, problems: &mut Problems) -> Option<Item<'a>> {
    for view in direction.views() {
        let (rate, trace) = (view.get("rate"), view.get("rate_trace"));
        if let (Some(_), Some(trace)) = (&rate, &trace) {
            let expected = "one of the two".to_owned();
            trace.refuse(problems, "`rate` and `rate_trace` exclude each other", Some(expected));
        }
        if trace.is_some() || rate.is_some() {
            return trace;
        }
    }
    None
}

/// Header size in bytes, below the maximum packet length.
fn header(item: &Item<'_>, problems: &mut Problems) -> Option<u32> {
    let bytes = item.size(problems)?.get();
    if bytes > 65_535 {
        item.refuse(problems, format!("`{}` is longer than any packet", item.path), Some("\"8 B\"".to_owned()));
        return None;
    }
    Some(bytes as u32)
}

/// The MTU: RFC 791 §3.2 requires at least 68 bytes.
fn mtu(item: &Item<'_>, problems: &mut Problems) -> Option<u32> {
    let bytes = item.size(problems)?.get();
    if !(68..=65_535).contains(&bytes) {
        let expected = "68 B to 65535 B, such as \"1500 B\"".to_owned();
        item.refuse(problems, format!("`{}` is not a valid packet length", item.path), Some(expected));
        return None;
    }
    Some(bytes as u32)
}

/// Settings that a link in cells cannot have.
fn refuse_with_cells(config: &LinkConfig, direction: &Direction<'_, '_>, problems: &mut Problems) -> Option<()> {
    let mut refuse = |key: &str, message: &str, expected: &str| {
        let item = direction.get(key)?;
        item.refuse(problems, message, Some(expected.to_owned()));
        Some(())
    };
    let refused = [
        config.rate.is_none().then(|| refuse("rate", "cells need a line rate", "a rate such as \"149.76 Mbit/s\"")),
        config
            .rate_trace
            .is_some()
            .then(|| refuse("rate_trace", "cells follow no trace", "`rate`, or framing = \"packets\"")),
        config.tdma.is_some().then(|| {
            refuse("tdma", "cells follow no schedule", "`tdma` of a link behind the port, with framing = \"packets\"")
        }),
        Some(refuse("queue", "the queue of a link in cells is set in `atm`", "atm.buffer = \"8192 cells\"")),
        config.moves.is_some().then(|| {
            let keys = ["schedule", "rate_trace", "delay_trace", "loss_trace"];
            let key = keys.into_iter().find(|key| direction.get(key).is_some())?;
            refuse(key, "a link in cells does not change", "framing = \"packets\"")
        }),
        Some(refuse("phases", "a link in cells does not change", "framing = \"packets\"")),
        Some(refuse("jitter", "`jitter` is not supported for cells", "framing = \"packets\"")),
        Some(refuse("reorder", "cells stay in order", "framing = \"packets\"")),
        Some(refuse("duplicate", "`duplicate` is not supported for cells", "framing = \"packets\"")),
        Some(refuse("corrupt", "`corrupt` is not supported for cells", "`bit_error_rate`, or framing = \"packets\"")),
        Some(refuse("header", "cells have headers of their own", "no `header`")),
        Some(refuse("mtu", "AAL5 carries packets of any length", "no `mtu`")),
        (config.extra_delay.0 > Duration::ZERO)
            .then(|| refuse("bursts", "`extra_delay` is not supported for cells", "bursts without it")),
    ];
    refused.into_iter().flatten().flatten().next().is_none().then_some(())
}

/// A bit error rate, or the rate of a receiver that is worse than a nominal one by a loss in decibels.
fn bit_error_rate(item: &Item<'_>, problems: &mut Problems) -> Option<Probability> {
    if !matches!(item.node.value, Value::Table(_)) {
        return item.probability(problems);
    }
    let view = item.table(BIT_ERRORS, problems)?;
    let nominal = view.require("nominal", problems).and_then(|item| item.probability(problems));
    let loss = view.require("implementation_loss", problems).and_then(|item| item.quantity(DECIBELS, problems));
    let loss = Decibels::new(loss? as f64 / 1000.0)?;
    Some(with_implementation_loss(nominal?, loss))
}

fn losses(
    config: &mut LinkConfig,
    direction: &Direction<'_, '_>,
    beside: Beside<'_>,
    problems: &mut Problems,
) -> Option<()> {
    let packet = probability(direction.get("loss"), Probability::ZERO, problems);
    let bit = direction.get("bit_error_rate").map_or(Some(Probability::ZERO), |item| bit_error_rate(&item, problems));
    let (bursts, elliott) = (direction.get("bursts"), direction.get("gilbert_elliott"));
    if let (Some(_), Some(elliott)) = (&bursts, &elliott) {
        elliott.refuse(problems, "`bursts` and `gilbert_elliott` exclude each other", None);
    }
    if let Some(item) = bursts {
        let view = item.table(BURSTS, problems)?;
        let channel = bursts::channel(&item, &view, beside, problems);
        let bad_packet = probability(view.get("loss"), Probability::ONE, problems);
        let bad_bit = probability(view.get("bit_error_rate"), bit.unwrap_or_default(), problems);
        let extra = view.get("extra_delay").map_or(Some(Duration::ZERO), |item| item.duration(problems));
        config.channel = channel?;
        config.bad = LossConfig { packet: bad_packet?, bit: bad_bit? };
        config.extra_delay = ExtraDelay(extra?);
    } else if let Some(item) = elliott {
        let view = item.table(GILBERT_ELLIOTT, problems)?;
        if let Some(loss) = direction.get("loss") {
            loss.refuse(problems, "with `gilbert_elliott`, set `loss_good` and `loss_bad` instead of `loss`", None);
        }
        let good = view.require("good", problems).and_then(|item| item.duration(problems));
        let bad = view.require("bad", problems).and_then(|item| item.duration(problems));
        let loss_good = probability(view.get("loss_good"), Probability::ZERO, problems);
        let loss_bad = view.require("loss_bad", problems).and_then(|item| item.probability(problems));
        let (gap, burst) = (Distribution::Exponential { mean: good? }, Distribution::Exponential { mean: bad? });
        bursts::check_alternation(&item, &gap, &burst, problems);
        config.channel = ChannelConfig::OnOff { gap, burst };
        config.good = LossConfig { packet: loss_good?, bit: bit? };
        config.bad = LossConfig { packet: loss_bad?, bit: bit? };
        return Some(());
    }
    config.good = LossConfig { packet: packet?, bit: bit? };
    Some(())
}

/// "start" and either "burstiness" or "length".
fn packet_bursts(item: &Item<'_>, problems: &mut Problems) -> Option<PacketBursts> {
    let view = item.table(PACKET_BURSTS, problems)?;
    let start = view.require("start", problems).and_then(|item| item.probability(problems));
    let (burstiness, length) = (view.get("burstiness"), view.get("length"));
    if burstiness.is_some() == length.is_some() {
        let message = format!("`{}` must have either `burstiness` or `length`", item.path);
        let expected =
            "{ start = \"1 %\", burstiness = \"50 %\" } or { start = \"0.5 %\", length = \"5 packets\" }, for example";
        item.refuse(problems, message, Some(expected.to_owned()));
        return None;
    }
    if let Some(length) = length {
        if let Some(max) = view.get("max") {
            max.refuse(problems, format!("`{}` needs `burstiness`", max.path), None);
        }
        let packets = length.quantity(quantity::PACKETS, problems)?;
        if packets == 0 || packets > u32::MAX as u64 {
            length.refuse(
                problems,
                format!("a run of losses cannot be {packets} packets long"),
                Some(Shape::PACKETS.expected()),
            );
            return None;
        }
        return Some(PacketBursts::Runs { start: start?, length: packets as u32 });
    }
    let again = burstiness?.probability(problems);
    let max = probability(view.get("max"), Probability::ONE, problems);
    let (start, again, max) = (start?, again?, max?);
    let again = if again.get() > max.get() { max } else { again };
    Some(PacketBursts::Conditional { start, again })
}

fn drop_list(item: &Item<'_>, problems: &mut Problems) -> Option<Vec<u64>> {
    const INDEX: Counted = Counted::new("", 0, u64::MAX);
    let mut list: Vec<u64> = Vec::new();
    for entry in item.list(&Shape::List(&Shape::Count(INDEX)), problems)? {
        let index = entry.count(INDEX, problems)?;
        if list.last().is_some_and(|last| *last >= index) {
            let message = format!("{index} does not follow in ascending order");
            entry.refuse(problems, message, Some("indices from 0, ascending, none twice".to_owned()));
            return None;
        }
        list.push(index);
    }
    Some(list)
}
