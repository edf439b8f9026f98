//! `[[links]]`: nodes, rates, delays, queues and losses.

use std::path::Path;
use std::sync::Arc;

use bentpipe_engine::link::modulation::with_implementation_loss;
use bentpipe_engine::link::{
    ChannelConfig, Discipline, Distribution, ExtraDelay, LinkConfig, LossConfig, PacketBursts, QueueConfig, QueueLimit,
    RedConfig, Ties,
};
use bentpipe_engine::units::{Bytes, Decibels, Duration, Probability, Rate};

use super::bursts;
use super::cells::cells;
use super::document::Value;
use super::error::{Mistake, Problems, Span};
use super::grammar::{
    BIT_ERRORS, BURSTS, DIRECTION, DISCIPLINES, FRAMINGS, GILBERT_ELLIOTT, LINK, PACKET_BURSTS, QUEUE, TIES,
};
use super::quantity::{self, BadQuantity, DECIBELS};
use super::reader::{Item, View};
use super::shape::{Counted, Shape};
use super::{LinkSpec, quantity::split, tdma, traces};

/// The links and the nodes that they name.
#[derive(Default)]
pub(crate) struct Network {
    pub(crate) nodes: Vec<String>,
    pub(crate) links: Vec<LinkSpec>,
    /// Names under which links stand in the file, to refuse duplicates.
    names: Vec<String>,
    /// Whether every entry has told its nodes.
    pub(crate) is_whole: bool,
}

/// The two layers of a direction: what it has of its own, and what the link has for both.
struct Layers<'v, 'a> {
    own: Option<&'v View<'a>>,
    common: &'v View<'a>,
}

impl<'a> Layers<'_, 'a> {
    fn get(&self, key: &str) -> Option<Item<'a>> {
        self.own.and_then(|own| own.get(key)).or_else(|| self.common.get(key))
    }

    fn require(&self, key: &str, problems: &mut Problems) -> Option<Item<'a>> {
        let item = self.get(key);
        if item.is_none() {
            self.common.missing(key, problems);
        }
        item
    }
}

impl Network {
    fn node(&mut self, item: &Item<'_>, problems: &mut Problems) -> Option<usize> {
        let name = item.name(problems)?;
        Some(self.nodes.iter().position(|node| node == name).unwrap_or_else(|| {
            self.nodes.push(name.to_owned());
            self.nodes.len() - 1
        }))
    }

    /// Reads the entries of `[[links]]`.
    pub(crate) fn read(entries: &[Item<'_>], beside: &Path, problems: &mut Problems) -> Network {
        let mut network = Network { is_whole: !entries.is_empty(), ..Network::default() };
        for item in entries {
            network.is_whole &= network.entry(item, beside, problems).is_some();
        }
        network
    }

    fn entry(&mut self, item: &Item<'_>, beside: &Path, problems: &mut Problems) -> Option<()> {
        let view = item.table(LINK, problems)?;
        let name_item = view.require("name", problems);
        let name = name_item.as_ref().and_then(|item| item.name(problems)).unwrap_or("?").to_owned();
        if self.names.contains(&name) && name != "?" {
            let item = name_item.as_ref()?;
            item.refuse(
                problems,
                format!("two links are called `{name}`"),
                Some("names of links that differ".to_owned()),
            );
        }
        self.names.push(name.clone());
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
            let directions = ["forward", "backward"].map(|key| view.get(key));
            for (index, direction) in directions.iter().enumerate() {
                let own = match direction {
                    Some(direction) => Some(direction.table(DIRECTION, problems)?),
                    None => None,
                };
                let config = config(&Layers { own: own.as_ref(), common: &view }, beside, problems);
                let (from, to, way) = if index == 0 { (first, second, "forward") } else { (second, first, "backward") };
                self.add(format!("{name}/{way}"), from, to, config, &between, problems);
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
        let config = config(&Layers { own: None, common: &view }, beside, problems);
        let ends = (self.node(&from, problems), self.node(&to, problems));
        self.add(name, ends.0, ends.1, config, &to, problems);
        (ends.0? != ends.1?).then_some(())
    }

    fn add(
        &mut self,
        name: String,
        from: Option<usize>,
        to: Option<usize>,
        config: Option<LinkConfig>,
        place: &Item<'_>,
        problems: &mut Problems,
    ) {
        // A link whose settings are wrong still joins its nodes: no mistakes that follow from mistakes.
        let config = config.unwrap_or_else(|| LinkConfig::clean(None, Duration::ZERO));
        let (Some(from), Some(to)) = (from, to) else { return };
        if from == to {
            let message = format!("a link cannot join `{}` with itself", self.nodes[from]);
            place.refuse(problems, message, Some("two nodes".to_owned()));
            return;
        }
        if self.links.iter().any(|link| link.name == name) {
            place.refuse(problems, format!("two links are called `{name}`"), None);
        }
        self.links.push(LinkSpec { name, from, to, config });
    }
}

fn config(layers: &Layers<'_, '_>, beside: &Path, problems: &mut Problems) -> Option<LinkConfig> {
    let trace = rate_trace(layers, problems);
    let rate = if trace.is_some() { None } else { layers.require("rate", problems) };
    let delay = layers.require("delay", problems);
    let has_trace = trace.is_some();
    let trace = match trace {
        Some(item) => Some(traces::rate_trace(&item, beside, problems)?),
        None => None,
    };
    let rate = match (&trace, rate) {
        (Some(trace), _) => Some(Some(trace.mean())),
        (None, Some(item)) if item.as_text() == Some("unlimited") => Some(None),
        (None, item) => item?.rate(problems).map(Some),
    };
    let delay = delay.and_then(|item| item.duration(problems));
    let tdma = match layers.get("tdma") {
        Some(item) => Some(tdma::schedule(&item, rate.filter(|_| !has_trace).flatten(), problems)?),
        None => None,
    };
    let rate = tdma.as_ref().map_or(rate, |schedule| Some(Some(schedule.mean())));
    let queue = match (layers.get("queue"), rate) {
        (Some(item), Some(rate)) => queue(&item, rate, problems),
        (Some(_), None) => None,
        (None, _) => Some(QueueConfig { limit: QueueLimit::Unlimited, discipline: Discipline::DropTail }),
    };
    let in_cells = layers.get("framing").map_or(Some("packets"), |item| item.choice(FRAMINGS, problems))? == "aal5";
    let mut config = LinkConfig::clean(rate?, delay?);
    config.queue = queue?;
    config.rate_trace = trace.map(Arc::new);
    config.tdma = tdma.map(Arc::new);
    losses(&mut config, layers, beside, problems)?;
    if let Some(item) = layers.get("packet_bursts") {
        config.packet_bursts = Some(packet_bursts(&item, problems)?);
    }
    if let Some(item) = layers.get("header") {
        config.header = header(&item, problems)?;
    }
    if let Some(item) = layers.get("mtu") {
        config.mtu = Some(mtu(&item, problems)?);
    }
    if in_cells {
        config.cells = Some(cells(layers.get("atm"), problems)?);
        refuse_with_cells(&config, layers, problems)?;
    } else if let Some(item) = layers.get("atm") {
        let expected = "framing = \"aal5\" beside it".to_owned();
        item.refuse(problems, format!("`{}` applies only to cells", item.path), Some(expected));
    }
    if let Some(item) = layers.get("ties") {
        config.ties = if item.choice(TIES, problems)? == "begun" { Ties::Begun } else { Ties::Departure };
    }
    if let Some(item) = layers.get("drop_list") {
        config.drop_list = drop_list(&item, problems)?;
    }
    Some(config)
}

/// The trace that a direction follows, if it does: what it has of its own goes before what the link has for both.
fn rate_trace<'a>(layers: &Layers<'_, 'a>, problems: &mut Problems) -> Option<Item<'a>> {
    for view in [layers.own, Some(layers.common)].into_iter().flatten() {
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

/// Bytes of a header: less than the longest packet.
fn header(item: &Item<'_>, problems: &mut Problems) -> Option<u32> {
    let bytes = item.size(problems)?.get();
    if bytes > 65_535 {
        item.refuse(problems, format!("`{}` is longer than any packet", item.path), Some("\"8 B\"".to_owned()));
        return None;
    }
    Some(bytes as u32)
}

/// The longest packet: RFC 791 §3.2 has every host forward 68 bytes.
fn mtu(item: &Item<'_>, problems: &mut Problems) -> Option<u32> {
    let bytes = item.size(problems)?.get();
    if !(68..=65_535).contains(&bytes) {
        let expected = "68 B to 65535 B, such as \"1500 B\"".to_owned();
        item.refuse(problems, format!("`{}` is no length of a packet", item.path), Some(expected));
        return None;
    }
    Some(bytes as u32)
}

/// What a link in cells cannot have.
fn refuse_with_cells(config: &LinkConfig, layers: &Layers<'_, '_>, problems: &mut Problems) -> Option<()> {
    let mut refuse = |key: &str, message: &str, expected: &str| {
        let item = layers.get(key)?;
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
        Some(refuse("queue", "what waits in cells stands in `atm`", "atm.buffer = \"8192 cells\"")),
        Some(refuse("header", "cells have headers of their own", "no `header`")),
        Some(refuse("mtu", "AAL5 carries packets of any length", "no `mtu`")),
        (config.extra_delay.0 > Duration::ZERO)
            .then(|| refuse("bursts", "`extra_delay` is not there for cells", "bursts without it")),
    ];
    refused.into_iter().flatten().flatten().next().is_none().then_some(())
}

fn probability(item: Option<Item<'_>>, default: Probability, problems: &mut Problems) -> Option<Probability> {
    item.map_or(Some(default), |item| item.probability(problems))
}

/// A rate, or the rate of a receiver that falls short of a nominal one by so many decibels.
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

fn losses(config: &mut LinkConfig, layers: &Layers<'_, '_>, beside: &Path, problems: &mut Problems) -> Option<()> {
    let packet = probability(layers.get("loss"), Probability::ZERO, problems);
    let bit = layers.get("bit_error_rate").map_or(Some(Probability::ZERO), |item| bit_error_rate(&item, problems));
    let (bursts, elliott) = (layers.get("bursts"), layers.get("gilbert_elliott"));
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
        if let Some(loss) = layers.get("loss") {
            loss.refuse(problems, "with `gilbert_elliott`, loss stands in `loss_good` and `loss_bad`", None);
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
            "such as { start = \"1 %\", burstiness = \"50 %\" } or { start = \"0.5 %\", length = \"5 packets\" }";
        item.refuse(problems, message, Some(expected.to_owned()));
        return None;
    }
    if let Some(length) = length {
        if let Some(most) = view.get("most") {
            most.refuse(problems, format!("`{}` needs `burstiness`", most.path), None);
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
    let most = probability(view.get("most"), Probability::ONE, problems);
    let (start, again, most) = (start?, again?, most?);
    let again = if again.get() > most.get() { most } else { again };
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

fn queue(item: &Item<'_>, rate: Option<Rate>, problems: &mut Problems) -> Option<QueueConfig> {
    if let Value::Table(_) = item.node.value {
        let view = item.table(QUEUE, problems)?;
        let limit = view.require("limit", problems).and_then(|item| limit(&item, rate, problems));
        let discipline = view.get("discipline").map_or(Some("drop-tail"), |item| item.choice(DISCIPLINES, problems));
        let discipline = match discipline? {
            "red" => Discipline::Red(red(&view, rate, problems)?),
            _ => {
                let red_only = QUEUE.iter().map(|field| field.key).filter(|key| !["limit", "discipline"].contains(key));
                for item in red_only.filter_map(|key| view.get(key)) {
                    let expected = "discipline = \"red\" beside it".to_owned();
                    item.refuse(problems, format!("`{}` applies only to RED", item.path), Some(expected));
                }
                Discipline::DropTail
            }
        };
        return Some(QueueConfig { limit: limit?, discipline });
    }
    limit(item, rate, problems).map(|limit| QueueConfig { limit, discipline: Discipline::DropTail })
}

/// "50 packets", "64 kB", "600 ms" or "unlimited".
pub(crate) fn limit(item: &Item<'_>, rate: Option<Rate>, problems: &mut Problems) -> Option<QueueLimit> {
    let shape = QUEUE[0].shape;
    let Some(text) = item.as_text() else {
        let message = match item.node.value {
            Value::Integer(_) | Value::Float(_) => format!("`{}` needs a unit", item.path),
            ref other => format!("`{}` cannot be {}", item.path, other.kind()),
        };
        item.refuse(problems, message, Some(shape.expected()));
        return None;
    };
    if text == "unlimited" {
        return Some(QueueLimit::Unlimited);
    }
    let (_, unit) = split(text);
    let knows = |dimension: quantity::Dimension| dimension.parse(&format!("1 {unit}")).is_ok();
    let result = if knows(quantity::DURATION) {
        let Some(rate) = rate else {
            item.refuse(problems, "the time that packets wait has no meaning without a rate", Some(shape.expected()));
            return None;
        };
        let span = quantity::DURATION.parse(text).map(Duration::from_nanos);
        span.map(|span| QueueLimit::Bytes(Bytes::new(rate.bytes_in_floor(span))))
    } else if knows(quantity::SIZE) {
        quantity::SIZE.parse(text).map(|bytes| QueueLimit::Bytes(Bytes::new(bytes)))
    } else {
        // What is no unit at all is most likely a misspelt "packets".
        quantity::PACKETS.parse(text).map(|count| QueueLimit::Packets(count as u32))
    };
    result
        .map_err(|BadQuantity { message, help }| {
            let mistake = Mistake::new(&item.path, message).expected(shape.expected()).help(help);
            problems.add(item.node.span, mistake);
        })
        .ok()
}

/// ns-2's defaults: thresholds 5 and 15 packets, 1/linterm 0.1, gentle, wait, packets of 500 B.
fn red(view: &View<'_>, rate: Option<Rate>, problems: &mut Problems) -> Option<RedConfig> {
    let packets = |key, problems: &mut Problems| view.get(key).map(|item| threshold(&item, problems));
    let min_threshold = packets("min_threshold", problems).unwrap_or(Some(5.0));
    let max_threshold = packets("max_threshold", problems).unwrap_or(min_threshold.map(|min| 3.0 * min));
    let max_probability = probability(view.get("max_probability"), Probability::new(0.1)?, problems);
    let flag = |key, problems: &mut Problems| view.get(key).map_or(Some(true), |item| item.flag(problems));
    let (gentle, wait) = (flag("gentle", problems), flag("wait", problems));
    let mean_packet = view.get("mean_packet").map_or(Some(Bytes::new(500)), |item| item.size(problems));
    let span = |key| view.get(key).map_or(view.span, |item| item.node.span);
    if let (Some(min), Some(max)) = (min_threshold, max_threshold)
        && min >= max
    {
        let key = if view.get("max_threshold").is_some() { "max_threshold" } else { "min_threshold" };
        let mistake =
            Mistake::new(&format!("{}.{key}", view.path), "`min_threshold` must be less than `max_threshold`")
                .expected(format!("more than {min} packets"));
        problems.add(span(key), mistake);
        return None;
    }
    if mean_packet.is_some_and(|bytes| bytes.get() == 0) {
        problems
            .add(span("mean_packet"), Mistake::new(&format!("{}.mean_packet", view.path), "packets cannot be empty"));
        return None;
    }
    let weight = match view.get("weight") {
        Some(item) if item.as_text() != Some("auto") => item.weight(problems),
        _ => auto_weight(rate, mean_packet?, span("weight"), view, problems),
    };
    Some(RedConfig {
        min_threshold: min_threshold?,
        max_threshold: max_threshold?,
        max_probability: max_probability?,
        weight: weight?,
        gentle: gentle?,
        wait: wait?,
        mean_packet: mean_packet?,
    })
}

/// Thresholds are averages: "7.5 packets" makes sense.
fn threshold(item: &Item<'_>, problems: &mut Problems) -> Option<f64> {
    let value = item.as_text().map(split).filter(|(_, unit)| matches!(*unit, "packets" | "packet"));
    let value = value.and_then(|(number, _)| number.parse::<f64>().ok()).filter(|value| *value >= 0.0 && *value < 1e9);
    if value.is_none() {
        // Says what is wrong with it in the words of whole packets.
        match item.quantity(quantity::PACKETS, problems) {
            Some(value) => return Some(value as f64),
            None => return None,
        }
    }
    value
}

/// ns-2's `q_weight_ -1` (Floyd, Gummadi and Shenker 2001): 1-exp(-1/C), a time constant of one second.
fn auto_weight(rate: Option<Rate>, mean: Bytes, span: Span, view: &View<'_>, problems: &mut Problems) -> Option<f64> {
    let Some(rate) = rate else {
        let mistake = Mistake::new(&format!("{}.weight", view.path), "an automatic weight needs a rate")
            .expected("a number above 0 and at most 1, or a link with a rate");
        problems.add(span, mistake);
        return None;
    };
    let packets_per_second = rate.bits_per_second() as f64 / (8.0 * mean.get() as f64);
    Some(-libm::expm1(-1.0 / packets_per_second))
}
