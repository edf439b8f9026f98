//! `[[gateways]]`: boxes at the ends of a satellite link, or at one of them.

use bentpipe_engine::gateway::Satellite;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Duration, Rate};
use bentpipe_language::document::Value;
use bentpipe_language::error::{Mistake, Problems};
use bentpipe_language::gateway::{self, ADVICE};
use bentpipe_language::quantity::format_rate;
use bentpipe_language::reader::{Item, View};
use bentpipe_language::shape::Shape;

use super::boxes::{Places, Which};
use super::grammar::{GATEWAY, OF_SHAPES, SHAPES};
use super::layers;
use super::links::Network;
use super::model::{Carries, Gateways, LayerSpec, LinkSpec, NodeId, PairSpec};
use super::world::node;

mod uplink;

/// Reads the entries of `[[gateways]]`. Also returns their places in the text.
pub(crate) fn read(
    entries: &[Item<'_>],
    network: &Network,
    layers: &[LayerSpec],
    problems: &mut Problems,
) -> (Gateways, Places) {
    let (mut all, mut places) = (Gateways::default(), Places::new());
    let mut taken: Vec<(String, [LinkId; 2])> = Vec::new();
    for item in entries {
        let Some((name, shape, view)) = head(item, problems) else { continue };
        let (which, over) = if shape == "uplink" {
            let Some(uplink) = uplink::read(name, item, &view, network, problems) else { continue };
            let over = uplink.over;
            all.uplinks.push(uplink);
            (Which::Uplink(all.uplinks.len() - 1), over)
        } else {
            let Some(pair) = pair(name, shape, item, &view, network, problems) else { continue };
            let over = pair.over;
            all.pairs.push(pair);
            (Which::Pair(all.pairs.len() - 1), over)
        };
        if taken.iter().any(|(other, _)| other == name) {
            let message = format!("two gateways are called `{name}`");
            item.refuse(problems, message, Some("different names".to_owned()));
        }
        let others = taken.iter().map(|(name, over)| (name, over));
        for (other, links) in others.chain(layers.iter().map(|layer| (&layer.name, &layer.over))) {
            if let Some(&shared) = over.iter().find(|link| links.contains(link)) {
                let message = format!("`{other}` is already over `{}`", network.links[shared.index()].name);
                item.refuse(problems, message, Some("one gateway or layer per link".to_owned()));
            }
        }
        taken.push((name.to_owned(), over));
        places.insert(which, (item.node.span, item.path.clone()));
    }
    (all, places)
}

/// Reads name and shape of a gateway, and its table. Refuses keys of other shapes.
fn head<'a>(item: &Item<'a>, problems: &mut Problems) -> Option<(&'a str, &'static str, View<'a>)> {
    let view = item.table(GATEWAY, problems)?;
    let name = view.require("name", problems).and_then(|item| item.name(problems));
    let shape = view.require("shape", problems).and_then(|item| item.choice(SHAPES, problems));
    let (name, shape) = (name?, shape?);
    for (keys, shapes) in OF_SHAPES.iter().filter(|(_, shapes)| !shapes.contains(&shape)) {
        for item in keys.iter().filter_map(|key| view.get(key)) {
            let shapes = shapes.join("\" or \"");
            let message = format!("`{}` applies to shape = \"{shapes}\", but this is \"{shape}\"", item.path);
            item.refuse(problems, message, None);
        }
    }
    Some((name, shape, view))
}

fn pair(
    name: &str,
    shape: &str,
    item: &Item<'_>,
    view: &View<'_>,
    network: &Network,
    problems: &mut Problems,
) -> Option<PairSpec> {
    let mut end = |key| view.require(key, problems).and_then(|item| Some((node(&item, network, problems)?, item)));
    let (near, far) = (end("near"), end("far"));
    let ((near, _), (far, at)) = (near?, far?);
    if near == far {
        let message = format!("both boxes are at `{}`", network.nodes[near.index()]);
        at.refuse(problems, message, Some("the nodes at the two ends of the satellite link".to_owned()));
        return None;
    }
    let over = over(item, view, network, [near, far], problems)?;
    let satellite = satellite(item, view, network, over, problems)?;
    let carries = match shape {
        "split" => Carries::Streams { max_streams: gateway::max_streams(view, problems)? },
        _ => Carries::Packets,
    };
    let memory = gateway::memory(view, problems)?;
    let advice = match view.get("throughput_advice") {
        Some(item) => advice(&item, satellite, problems)?.map(Some),
        None => [None; 2],
    };
    Some(PairSpec { name: name.to_owned(), carries, nodes: [near, far], over, satellite, memory, advice })
}

/// The links between the boxes: from near to far, and back.
fn over(
    item: &Item<'_>,
    view: &View<'_>,
    network: &Network,
    [near, far]: [NodeId; 2],
    problems: &mut Problems,
) -> Option<[LinkId; 2]> {
    let names = || format!("`{}` and `{}`", network.nodes[near.index()], network.nodes[far.index()]);
    let joins = |from, to| network.links.iter().position(|link| (link.from, link.to) == (from, to)).map(LinkId::from);
    let (links, place) = match view.get("over") {
        Some(over) => (layers::over(&over, network, problems)?, over),
        None => match (joins(near, far), joins(far, near)) {
            (Some(there), Some(back)) => return packets_only(item, network, [there, back], problems),
            _ => {
                if network.is_whole {
                    let message = format!("no links join {} in both directions", names());
                    item.refuse(problems, message, Some("boxes at the two ends of one satellite link".to_owned()));
                }
                return None;
            }
        },
    };
    let first = &network.links[links[0].index()];
    let links = if (first.from, first.to) == (far, near) { [links[1], links[0]] } else { links };
    let first = &network.links[links[0].index()];
    if (first.from, first.to) != (near, far) {
        place.refuse(problems, format!("`{}` does not join {}", first.name, names()), None);
        return None;
    }
    packets_only(&place, network, links, problems)
}

fn packets_only(item: &Item<'_>, network: &Network, over: [LinkId; 2], problems: &mut Problems) -> Option<[LinkId; 2]> {
    if let Some(&link) = over.iter().find(|&&link| network.links[link.index()].config.cells.is_some()) {
        let message =
            format!("`{}` carries cells, and the tunnel's datagrams are packets", network.links[link.index()].name);
        item.refuse(problems, message, Some("a link with framing = \"packets\"".to_owned()));
        return None;
    }
    Some(over)
}

/// What the two boxes are told about the link.
fn satellite(
    item: &Item<'_>,
    view: &View<'_>,
    network: &Network,
    over: [LinkId; 2],
    problems: &mut Problems,
) -> Option<[Satellite; 2]> {
    let links = over.map(|link| &network.links[link.index()]);
    let told = match view.get("rate") {
        Some(item) => rates(&item, problems)?.map(Some),
        None => [None; 2],
    };
    let rates = [rate(item, told[0], links[0], problems)?, rate(item, told[1], links[1], problems)?];
    let round_trip = round_trip(item, view, links, problems)?;
    let reordering = gateway::reordering(view, problems)?;
    let shared = gateway::shared(view, problems)?;
    if let Some(item) = view.get("rate").filter(|_| !shared) {
        for (told, link) in told.into_iter().zip(links) {
            too_fast(&item, told, link, problems);
        }
    }
    let mtu = gateway::mtu(view, problems)?;
    let of_links = links.iter().filter_map(|link| link.config.mtu).min().map_or(u64::MAX, u64::from);
    let needed = *gateway::MTU.start();
    if of_links < needed {
        let message = format!("the links between the boxes take packets of {of_links} B, a tunnel needs {needed} B");
        item.refuse(problems, message, None);
        return None;
    }
    let path_mtu = u64::from(mtu).min(of_links) as u16;
    Some(rates.map(|rate| Satellite { rate, round_trip, path_mtu, over_ipv6: false, reordering, shared }))
}

/// The rate at which a box sends on a link: the one it is told, or the link's own.
fn rate(item: &Item<'_>, told: Option<Rate>, link: &LinkSpec, problems: &mut Problems) -> Option<Rate> {
    let rate = told.or(link.config.rate);
    if rate.is_none() {
        let message = format!("`{}` has no rate at which a box could send", link.name);
        let mistake = Mistake::new(&item.path, message)
            .expected("`rate` here: a rate such as \"10 Mbit/s\", or a rate of the link".to_owned());
        problems.add(item.node.span, mistake);
    }
    rate
}

/// Warns if a box is told to send faster than its link ever does: then the link's queue is always full.
fn too_fast(item: &Item<'_>, told: Option<Rate>, link: &LinkSpec, problems: &mut Problems) {
    // How fast a trace or bursts are for a moment says nothing about what a box may send.
    let best = link.config.at_best().rate.filter(|_| link.config.rate_period().is_none());
    let Some((told, best)) = told.zip(best).filter(|(told, best)| told > best) else { return };
    let [told, best] = [told, best].map(format_rate);
    let message = format!("the box sends at {told}, but `{}` has {best}: its queue overflows", link.name);
    let help = format!("a rate a little below {best}, or no `rate`, for that of the link");
    problems.warn(item.node.span, Mistake::new(&item.path, message).help(help));
}

/// The round-trip time of the empty link: the one given, or the sum of the delays.
fn round_trip(item: &Item<'_>, view: &View<'_>, links: [&LinkSpec; 2], problems: &mut Problems) -> Option<Duration> {
    let round_trip = match view.get("round_trip") {
        Some(item) => gateway::positive(&item, problems)?,
        None => links[0].config.delay + links[1].config.delay,
    };
    if round_trip == Duration::ZERO {
        let message = "the link between the boxes has no delay, so `round_trip` must be given";
        item.refuse(problems, message, Some(Shape::DURATION.expected()));
        return None;
    }
    Some(round_trip)
}

/// One rate for both boxes, or a list of two.
fn rates(item: &Item<'_>, problems: &mut Problems) -> Option<[Rate; 2]> {
    if !matches!(item.node.value, Value::List(_)) {
        return item.rate(problems).map(|rate| [rate; 2]);
    }
    let [near, far] = item.pair(&Shape::RATE, problems)?;
    Some([near.rate(problems)?, far.rate(problems)?])
}

/// The rates that the two boxes advise: one value for both, or a list of two.
fn advice(item: &Item<'_>, satellite: [Satellite; 2], problems: &mut Problems) -> Option<[Rate; 2]> {
    let [near, far] = match item.node.value {
        Value::List(_) => {
            let [near, far] = item.pair(&ADVICE, problems)?;
            [gateway::throughput_advice(&near, problems)?, gateway::throughput_advice(&far, problems)?]
        }
        _ => [gateway::throughput_advice(item, problems)?; 2],
    };
    Some([near.rate(satellite[0].rate), far.rate(satellite[1].rate)])
}
