//! `[[layers]]`: link layers between IP and a pair of links.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::slacp::Release;
use bentpipe_language::error::{Mistake, Problems};
use bentpipe_language::reader::Item;
use bentpipe_language::shape::{Counted, Shape};
use bentpipe_language::suggest::did_you_mean;

use super::channels::channel;
use super::grammar::{CHANNEL, LAYER};
use super::links::Network;
use super::model::LayerSpec;

/// Reads the entries of `[[layers]]`.
pub(crate) fn read(entries: &[Item<'_>], network: &Network, problems: &mut Problems) -> Vec<LayerSpec> {
    let mut layers: Vec<LayerSpec> = Vec::new();
    for item in entries {
        let Some(layer) = layer(item, network, problems) else { continue };
        if layers.iter().any(|other| other.name == layer.name) {
            item.refuse(
                problems,
                format!("two layers are called `{}`", layer.name),
                Some("different names".to_owned()),
            );
        }
        for other in &layers {
            if let Some(shared) = layer.over.iter().find(|over| other.over.contains(over)) {
                let message = format!("`{}` is already over `{}`", other.name, network.links[shared.index()].name);
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
    // A line in cells sends at least a cell, so a weightless frame is impossible.
    if layer.weightless && layer.over.iter().any(|&link| network.links[link.index()].config.cells.is_some()) {
        let expected = "weightless = false, or a link with framing = \"packets\"".to_owned();
        over_item.refuse(
            problems,
            "a weightless layer cannot be over a link in cells: a cell has a weight",
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
pub(super) fn over(item: &Item<'_>, network: &Network, problems: &mut Problems) -> Option<[LinkId; 2]> {
    let find = |name: &str| network.links.iter().position(|link| link.name == name).map(LinkId::from);
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
    let mut found = [LinkId(0); 2];
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
    let [there, back] = found.map(|link| &network.links[link.index()]);
    if (there.from, there.to) != (back.to, back.from) {
        item.refuse(problems, format!("`{}` does not lead back where `{}` comes from", back.name, there.name), None);
        return None;
    }
    Some(found)
}

/// Reports a name that is not a duplex link, and suggests how to pair a one-way link.
fn no_such_link(name: &str, item: &Item<'_>, network: &Network) -> Mistake {
    let duplex = network.links.iter().filter_map(|link| link.name.strip_suffix("/forward"));
    let names = || duplex.clone().collect::<Vec<_>>().join(", ");
    let Some(there) = network.links.iter().find(|link| link.name == name) else {
        let mistake = Mistake::new(&item.path, format!("there is no link `{name}` with two directions"));
        let expected = if names().is_empty() {
            "the names of two opposite links, such as over = [\"there\", \"back\"]".to_owned()
        } else {
            format!("one of {}, or the names of two opposite links", names())
        };
        return mistake.expected(expected).help(did_you_mean(name, duplex));
    };
    let mistake = Mistake::new(&item.path, format!("the link `{name}` is one-way"));
    let back = network.links.iter().find(|link| (link.from, link.to) == (there.to, there.from));
    mistake.expected(match back {
        Some(back) => format!("over = [\"{name}\", \"{}\"], with the link that leads back", back.name),
        None => format!(
            "a link back from `{}` to `{}`, and both names: over = [\"{name}\", \"...\"]",
            network.nodes[there.to.index()],
            network.nodes[there.from.index()]
        ),
    })
}
