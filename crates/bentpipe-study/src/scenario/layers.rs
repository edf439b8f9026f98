//! `[[layers]]`: what lies between IP and a pair of links.

use bentpipe_engine::link::QueueLimit;
use bentpipe_engine::slacp::classify::Rule;
use bentpipe_engine::slacp::{
    Arq, ChannelConfig, Codel, Copies, Fec, Order, Overhead, Queueing, Release, Repairs, Shortcuts, SlacpConfig,
};
use bentpipe_engine::units::{Duration, Rate};

use super::document::Value;
use super::error::{Mistake, Problems};
use super::grammar::{
    CHANNEL, CHANNEL_FEC, CODEL, COPIES, LAYER, MATCH, OFF, ORDERS, QUEUEINGS, REPAIRS, SEGMENT_COUNT,
};
use super::links::{self, Network};
use super::reader::Item;
use super::shape::{Counted, Shape};
use super::suggest::did_you_mean;
use super::{LinkSpec, Scenario};

/// A link layer over two links.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSpec {
    /// Its name.
    pub name: String,
    /// The link that leads there and the one that leads back; indices into [`Scenario::links`].
    pub over: [usize; 2],
    /// The channels, by number.
    pub channels: Vec<ChannelSpec>,
    /// An arrival is reported at most this long after it.
    pub report_interval: Duration,
    /// Frames that may overtake one before it counts as lost.
    pub reordering: u64,
    /// How packets are passed on that had waited for a repair. `None`: at a rate that follows from the link's, 1.2 of it.
    /// All at once, a round trip of packets would call up a round trip of ACKs, and these one of packets, more than the
    /// queue has room for.
    pub release: Option<Release>,
    /// Most frames of a channel between transmission and acknowledgement.
    pub window: u32,
    /// Headers and reports take no time.
    pub weightless: bool,
    /// The receiver can tell which frame came damaged.
    pub hears_damage: bool,
}

/// A logical channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelSpec {
    /// Its name.
    pub name: String,
    /// Packets that belong to it: any of these.
    pub rules: Vec<Rule>,
    /// Its treatment. The limit of its queue is only what the file gives; see [`LayerSpec::end`].
    pub config: ChannelConfig,
    /// Room of its queue where it has its own.
    pub limit: Option<QueueLimit>,
    /// Whether CoDel's times follow from the link's.
    pub auto_codel: bool,
    /// Whether the times of copies do.
    pub auto_copies: bool,
}

impl LayerSpec {
    /// Persistence where none is given: at a loss of 10 % one packet in 10^8 is abandoned.
    const TRANSMISSIONS: u32 = 8;

    /// The layer over those two links with the channels that are there if none are given: `urgent` for expedited
    /// forwarding, `acks` for bare acknowledgements, `bulk` for all else.
    pub fn new(name: &str, over: [usize; 2]) -> LayerSpec {
        LayerSpec {
            name: name.to_owned(),
            over,
            channels: default_channels(),
            report_interval: Duration::from_millis(20),
            reordering: 0,
            release: None,
            window: SlacpConfig::MAX_WINDOW,
            weightless: false,
            hears_damage: false,
        }
    }

    /// What the end is made of that sends on `over[side]`.
    pub fn end(&self, links: &[LinkSpec], side: usize) -> SlacpConfig {
        let (link, heard) = (&links[self.over[side]].config, &links[self.over[1 - side]].config);
        let rtt = self.over.iter().fold(Duration::ZERO, |sum, &over| sum + links[over].config.delay);
        let channel = |spec: &ChannelSpec| {
            let mut config = spec.config;
            config.limit = spec.limit.unwrap_or(link.queue.limit);
            if spec.auto_codel {
                config.codel = Some(Codel { target: rtt, interval: rtt.saturating_mul(2) });
            }
            if spec.auto_copies {
                // The last one goes before the first word of a loss can come, a round trip after it.
                config.copies = Some(Copies { interval: rtt.div_floor(4), max: 3 });
            }
            config
        };
        let channels = self.channels.iter().map(channel).collect();
        let of_the_line = || heard.rate.map_or(Release::AtOnce, |rate| Release::Paced(six_fifths(rate)));
        SlacpConfig {
            report_interval: self.report_interval,
            reordering: self.reordering,
            release: self.release.unwrap_or_else(of_the_line),
            window: self.window,
            shortcuts: Shortcuts { weightless: self.weightless, hears_damage: self.hears_damage },
            overhead: if link.cells.is_some() { Overhead::Cells } else { Overhead::Bytes(0) },
            ..SlacpConfig::new(link.rate, rtt + Duration::from_millis(1), channels)
        }
    }

    /// The rules of all channels, in order, and the channel of what fits none.
    pub fn rules(&self) -> (Vec<(Rule, u8)>, u8) {
        let numbered = self.channels.iter().enumerate();
        let rules = numbered.flat_map(|(n, channel)| channel.rules.iter().map(move |&rule| (rule, n as u8))).collect();
        (rules, (self.channels.len() - 1) as u8)
    }
}

fn six_fifths(rate: Rate) -> Rate {
    Rate::from_bits_per_second(rate.bits_per_second() / 5 * 6).unwrap_or(rate)
}

const PLAIN: ChannelConfig = ChannelConfig::persistent(LayerSpec::TRANSMISSIONS);

/// A block of 60 keeps the overhead low: at a loss of 1 %, 99 blocks of 100 lose at most three of its frames. It ends
/// after 100 ms, a sixth of a round trip over GEO.
const PLAIN_FEC: Fec =
    Fec { block: 60, interval: Duration::from_millis(100), max_overhead: 0.5, repairs: Repairs::Prompt };

fn default_channels() -> Vec<ChannelSpec> {
    //= RFC 3246: expedited forwarding, code point 101110
    let expedited = Rule { dscp: Some(46), ..Rule::default() };
    // Ten packets of voice of 20 ms each.
    let fec = Fec { block: 10, interval: Duration::from_millis(200), ..PLAIN_FEC };
    let urgent = ChannelConfig { arq: None, fec: Some(fec), order: Order::None, ..PLAIN };
    let bare = Rule { bare_ack: Some(true), ..Rule::default() };
    let acks = ChannelConfig { fec: None, ..urgent };
    let bulk = ChannelConfig { priority: 1, fec: Some(PLAIN_FEC), ..PLAIN };
    let spec = |name: &str, rules, config| ChannelSpec {
        name: name.to_owned(),
        rules,
        config,
        limit: None,
        // Only what TCP fills can have a standing queue.
        auto_codel: config.arq.is_some(),
        auto_copies: config.arq.is_some(),
    };
    vec![spec("urgent", vec![expedited], urgent), spec("acks", vec![bare], acks), spec("bulk", vec![], bulk)]
}

/// Reads the entries of `[[layers]]`.
pub(crate) fn read(entries: &[Item<'_>], network: &Network, problems: &mut Problems) -> Vec<LayerSpec> {
    let mut layers: Vec<LayerSpec> = Vec::new();
    for item in entries {
        let Some(layer) = layer(item, network, problems) else { continue };
        if layers.iter().any(|other| other.name == layer.name) {
            item.refuse(
                problems,
                format!("two layers are called `{}`", layer.name),
                Some("names that differ".to_owned()),
            );
        }
        for other in &layers {
            if let Some(shared) = layer.over.iter().find(|over| other.over.contains(over)) {
                let message = format!("`{}` lies over `{}` already", other.name, network.links[*shared].name);
                item.refuse(problems, message, Some("one layer per link".to_owned()));
            }
        }
        layers.push(layer);
    }
    layers
}

fn layer(item: &Item<'_>, network: &Network, problems: &mut Problems) -> Option<LayerSpec> {
    let view = item.table(LAYER, problems)?;
    let name = view.require("name", problems).and_then(|item| item.name(problems));
    let over = view.require("over", problems).and_then(|item| {
        let over = over(&item, network, problems)?;
        Some((over, item))
    });
    let (over, over_item) = over?;
    let mut layer = LayerSpec::new(name?, over);
    if let Some(item) = view.get("report_interval") {
        layer.report_interval = item.duration(problems)?;
    }
    if let Some(item) = view.get("reordering") {
        layer.reordering = item.count(Counted::new("frames", 0, 1000), problems)?;
    }
    if let Some(item) = view.get("release").filter(|item| item.as_text() != Some("auto")) {
        layer.release = Some(match item.as_text() {
            Some("unlimited") => Release::AtOnce,
            Some("grouped") => Release::Grouped,
            Some("gathered") => {
                item.renamed_word("gathered", "grouped", problems);
                Release::Grouped
            }
            _ => Release::Paced(item.rate(problems)?),
        });
    }
    if let Some(item) = view.get("window") {
        layer.window = item.count(Counted::new("frames", 1, 65_535), problems)? as u32;
    }
    let flag = |key, problems: &mut Problems| view.get(key).map_or(Some(false), |item| item.flag(problems));
    (layer.weightless, layer.hears_damage) = (flag("weightless", problems)?, flag("hears_damage", problems)?);
    // A cell is the least that a line in cells sends, and a frame that weighs nothing would be none.
    if layer.weightless && layer.over.iter().any(|&link| network.links[link].config.cells.is_some()) {
        let expected = "weightless = false, or a link with framing = \"packets\"".to_owned();
        over_item.refuse(
            problems,
            "a weightless layer cannot lie over a link in cells: a cell has a weight",
            Some(expected),
        );
        return None;
    }
    if let Some(item) = view.get("channels") {
        let list = item.list(&Shape::List(&Shape::Table(CHANNEL)), problems)?;
        if list.is_empty() || list.len() > 256 {
            item.refuse(problems, format!("a layer cannot have {} channels", list.len()), Some("1 to 256".to_owned()));
            return None;
        }
        let read: Vec<_> = list.iter().map(|item| channel(item, &layer.over, network, problems)).collect();
        layer.channels = read.into_iter().collect::<Option<_>>()?;
        for (n, channel) in layer.channels.iter().enumerate() {
            if channel.config.segments > 1 && !layer.weightless {
                let expected = "`segments` in a layer with weightless = true".to_owned();
                list[n].refuse(problems, "a frame on the wire carries a whole packet", Some(expected));
            }
            if layer.channels[..n].iter().any(|other| other.name == channel.name) {
                list[n].refuse(problems, format!("two channels are called `{}`", channel.name), None);
            }
        }
    }
    Some(layer)
}

/// "sat" for both directions of a duplex link, or the names of two links.
fn over(item: &Item<'_>, network: &Network, problems: &mut Problems) -> Option<[usize; 2]> {
    let find = |name: &str| network.links.iter().position(|link| link.name == name);
    if let Some(name) = item.as_text() {
        let found = [find(&format!("{name}/forward")), find(&format!("{name}/backward"))];
        if let [Some(there), Some(back)] = found {
            return Some([there, back]);
        }
        if network.is_whole {
            problems.add(item.node.span, no_such_link(name, item, network));
        }
        return None;
    }
    let mut found = [0; 2];
    for (entry, place) in item.pair(&Shape::Text, problems)?.iter().zip(&mut found) {
        let name = entry.text(problems)?;
        let Some(link) = find(name) else {
            if network.is_whole {
                entry.refuse(problems, format!("there is no link `{name}`"), None);
            }
            return None;
        };
        *place = link;
    }
    let [there, back] = found.map(|link| &network.links[link]);
    if (there.from, there.to) != (back.to, back.from) {
        item.refuse(problems, format!("`{}` does not lead back where `{}` comes from", back.name, there.name), None);
        return None;
    }
    Some(found)
}

/// What is wrong with a name that is none of a duplex link, and how a link in one direction is paired.
fn no_such_link(name: &str, item: &Item<'_>, network: &Network) -> Mistake {
    let duplex = network.links.iter().filter_map(|link| link.name.strip_suffix("/forward"));
    let names = || duplex.clone().collect::<Vec<_>>().join(", ");
    let Some(there) = network.links.iter().find(|link| link.name == name) else {
        let mistake = Mistake::new(&item.path, format!("there is no link `{name}` with two directions"));
        let expected = if names().is_empty() {
            "the names of two links that lead to and fro, such as over = [\"there\", \"back\"]".to_owned()
        } else {
            format!("one of {}, or the names of two links that lead to and fro", names())
        };
        return mistake.expected(expected).help(did_you_mean(name, duplex));
    };
    let mistake = Mistake::new(&item.path, format!("the link `{name}` leads one way"));
    let back = network.links.iter().find(|link| (link.from, link.to) == (there.to, there.from));
    mistake.expected(match back {
        Some(back) => format!("over = [\"{name}\", \"{}\"], with the link that leads back", back.name),
        None => format!(
            "a link back from `{}` to `{}`, and both names: over = [\"{name}\", \"...\"]",
            network.nodes[there.to], network.nodes[there.from]
        ),
    })
}

fn channel(item: &Item<'_>, over: &[usize; 2], network: &Network, problems: &mut Problems) -> Option<ChannelSpec> {
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
            let expected = "`copies` where there is retransmission".to_owned();
            item.refuse(problems, "a channel with transmissions = \"off\" keeps nothing to copy", Some(expected));
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
    if let Some(item) = view.get("priority") {
        spec.config.priority = item.count(Counted::new("", 0, 255), problems)? as u8;
    }
    if let Some(item) = view.get("weight") {
        spec.config.weight = item.count(Counted::new("", 1, 1000), problems)? as u32;
    }
    if let Some(item) = view.get("queue") {
        // A time means as many bytes as the first link sends in it; links of two rates name bytes or packets.
        let rates = over.map(|link| network.links[link].config.rate);
        let limit = links::limit(&item, rates[0], problems)?;
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
            let message = "flows that take turns have neither `codel` nor `ack_filter`";
            item.refuse(problems, message, Some("\"fifo\", or a channel without them".to_owned()));
            return None;
        }
    }
    if let Some(item) = view.get("segments") {
        let count = item.count(SEGMENT_COUNT, problems)?;
        spec.config.segments = u8::try_from(count).expect("within the bounds just checked");
        let config = &spec.config;
        if count > 1 && (config.arq.is_none() || config.fec.is_some() || has_codel || config.filters_acks) {
            let expected = "a channel with retransmission, without `fec`, `codel` and `ack_filter`".to_owned();
            item.refuse(problems, "packets in several frames need them all", Some(expected));
            return None;
        }
    }
    Some(spec)
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
    Some(Copies { interval: interval?, max: max? as u8 })
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

/// The layer over a link, and which of its two links it is.
pub(crate) fn over_link(scenario: &Scenario, link: usize) -> Option<(usize, usize)> {
    let side = |layer: &LayerSpec| layer.over.iter().position(|&over| over == link);
    scenario.layers.iter().enumerate().find_map(|(n, layer)| Some((n, side(layer)?)))
}
