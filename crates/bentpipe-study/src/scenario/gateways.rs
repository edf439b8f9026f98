//! `[[gateways]]`: boxes at the ends of a satellite link.

use bentpipe_engine::gateway::Satellite;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Duration, Rate};
use bentpipe_language::document::Value;
use bentpipe_language::error::{Mistake, Problems};
use bentpipe_language::gateway;
use bentpipe_language::reader::{Item, View};
use bentpipe_language::shape::Shape;

use super::grammar::{GATEWAY, OF_SPLIT, SHAPES};
use super::layers;
use super::links::Network;
use super::model::{Carries, Gateways, LayerSpec, NodeId, PairSpec};
use super::world::node;

/// Reads the entries of `[[gateways]]`.
pub(crate) fn read(entries: &[Item<'_>], network: &Network, layers: &[LayerSpec], problems: &mut Problems) -> Gateways {
    let mut all = Gateways::default();
    for item in entries {
        let Some(pair) = pair(item, network, problems) else { continue };
        if all.pairs.iter().any(|other| other.name == pair.name) {
            let message = format!("two gateways are called `{}`", pair.name);
            item.refuse(problems, message, Some("different names".to_owned()));
        }
        let others = all.pairs.iter().map(|other| (&other.name, &other.over));
        for (name, over) in others.chain(layers.iter().map(|layer| (&layer.name, &layer.over))) {
            if let Some(&shared) = pair.over.iter().find(|link| over.contains(link)) {
                let message = format!("`{name}` is already over `{}`", network.links[shared.index()].name);
                item.refuse(problems, message, Some("one gateway or layer per link".to_owned()));
            }
        }
        all.pairs.push(pair);
    }
    all
}

fn pair(item: &Item<'_>, network: &Network, problems: &mut Problems) -> Option<PairSpec> {
    let view = item.table(GATEWAY, problems)?;
    let name = view.require("name", problems).and_then(|item| item.name(problems));
    let shape = view.require("shape", problems).and_then(|item| item.choice(SHAPES, problems));
    let mut end = |key| view.require(key, problems).and_then(|item| Some((node(&item, network, problems)?, item)));
    let (near, far) = (end("near"), end("far"));
    let (name, shape, (near, _), (far, at)) = (name?, shape?, near?, far?);
    if near == far {
        let message = format!("both boxes are at `{}`", network.nodes[near.index()]);
        at.refuse(problems, message, Some("the nodes at the two ends of the satellite link".to_owned()));
        return None;
    }
    if shape != "split" {
        for item in OF_SPLIT.iter().filter_map(|key| view.get(key)) {
            item.refuse(
                problems,
                format!("`{}` applies to shape = \"split\", but this is \"{shape}\"", item.path),
                None,
            );
        }
    }
    let over = over(item, &view, network, [near, far], problems)?;
    let satellite = satellite(item, &view, network, over, problems)?;
    let carries = match shape {
        "split" => Carries::Streams { max_streams: gateway::max_streams(&view, problems)? },
        _ => Carries::Packets,
    };
    let memory = gateway::memory(&view, problems)?;
    Some(PairSpec { name: name.to_owned(), carries, nodes: [near, far], over, satellite, memory })
}

/// The links between the boxes, from near to far and back.
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

/// What the two boxes are told of the link.
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
    let mut rates = [None; 2];
    for side in 0..2 {
        rates[side] = told[side].or(links[side].config.rate);
        if rates[side].is_none() {
            let message = format!("`{}` has no rate at which a box could send", links[side].name);
            let mistake = Mistake::new(&item.path, message)
                .expected("`rate` here: a rate such as \"10 Mbit/s\", or a rate of the link".to_owned());
            problems.add(item.node.span, mistake);
            return None;
        }
    }
    let round_trip = match view.get("round_trip") {
        Some(item) => gateway::positive(&item, problems)?,
        None => links[0].config.delay + links[1].config.delay,
    };
    if round_trip == Duration::ZERO {
        let message = "the link between the boxes has no delay, so `round_trip` must be given";
        item.refuse(problems, message, Some(Shape::DURATION.expected()));
        return None;
    }
    let reordering = gateway::reordering(view, problems)?;
    let shared = gateway::shared(view, problems)?;
    let mtu = gateway::mtu(view, problems)?;
    let of_links = links.iter().filter_map(|link| link.config.mtu).min().map_or(u64::MAX, u64::from);
    let needed = *gateway::MTU.start();
    if of_links < needed {
        let message = format!("the links between the boxes take packets of {of_links} B, a tunnel needs {needed} B");
        item.refuse(problems, message, None);
        return None;
    }
    let path_mtu = u64::from(mtu).min(of_links) as u16;
    Some(rates.map(|rate| Satellite {
        rate: rate.expect("checked above"),
        round_trip,
        path_mtu,
        over_ipv6: false,
        reordering,
        shared,
    }))
}

/// One rate for both boxes, or a list of two.
fn rates(item: &Item<'_>, problems: &mut Problems) -> Option<[Rate; 2]> {
    if !matches!(item.node.value, Value::List(_)) {
        return item.rate(problems).map(|rate| [rate; 2]);
    }
    let [near, far] = item.pair(&Shape::RATE, problems)?;
    Some([near.rate(problems)?, far.rate(problems)?])
}
