//! The context in which flows are read, and lookup of nodes and links by name.

use bentpipe_engine::network::LinkId;
use bentpipe_language::error::{Mistake, Problems};
use bentpipe_language::reader::Item;
use bentpipe_language::shape::Shape;
use bentpipe_language::suggest::did_you_mean;
use bentpipe_language::tcp::{TcpTable, Variants};

use super::links::Network;
use super::model::{LinkSpec, NodeId};

/// The context for reading flows.
pub(crate) struct World<'w> {
    pub(crate) network: &'w Network,
    pub(crate) tcp: &'w TcpTable,
    pub(crate) variants: &'w Variants,
    pub(crate) seed: u64,
}

pub(super) fn node(item: &Item<'_>, network: &Network, problems: &mut Problems) -> Option<NodeId> {
    let name = item.text(problems)?;
    let index = network.nodes.iter().position(|node| node == name);
    // If a link is wrong, a node may be missing only for that reason.
    if index.is_none() && network.is_whole {
        let mistake = Mistake::new(&item.path, format!("no link leads to a node `{name}`"))
            .expected(format!("one of {}", network.nodes.join(", ")))
            .help(did_you_mean(name, network.nodes.iter().map(String::as_str)));
        problems.add(item.node.span, mistake);
    }
    index.map(NodeId::from)
}

/// An explicit route: names of links, each starting where the previous one ends. The `NAME` of a duplex link stands for
/// the matching direction.
pub(super) fn route(
    item: Option<Item<'_>>,
    from: NodeId,
    to: NodeId,
    network: &Network,
    problems: &mut Problems,
) -> Option<Option<Vec<LinkId>>> {
    let Some(item) = item else { return Some(None) };
    let mut path = Vec::new();
    let mut at = from;
    for step in item.list(&Shape::List(&Shape::Text), problems)? {
        let name = step.text(problems)?;
        let fits = |link: &LinkSpec| {
            link.name == name || ["forward", "backward"].iter().any(|way| link.name == format!("{name}/{way}"))
        };
        let named: Vec<_> =
            LinkId::first(network.links.len()).filter(|link| fits(&network.links[link.index()])).collect();
        let Some(link) = named.iter().copied().find(|link| network.links[link.index()].from == at) else {
            let names = network.links.iter().map(|link| link.name.as_str());
            let mistake = match named.is_empty() {
                true => Mistake::new(&step.path, format!("there is no link `{name}`")).help(did_you_mean(name, names)),
                false => Mistake::new(
                    &step.path,
                    format!("the link `{name}` does not leave `{}`", network.nodes[at.index()]),
                ),
            };
            let leaving: Vec<_> =
                network.links.iter().filter(|link| link.from == at).map(|link| link.name.as_str()).collect();
            problems.add(step.node.span, mistake.expected(format!("one of {}", leaving.join(", "))));
            return None;
        };
        // Packets to an end have one way on from each link.
        if path.contains(&link) {
            let message = format!("the route passes `{}` twice", network.links[link.index()].name);
            step.refuse(problems, message, Some("each link once".to_owned()));
            return None;
        }
        at = network.links[link.index()].to;
        path.push(link);
    }
    if at != to {
        let message =
            format!("the route ends at `{}`, not at `{}`", network.nodes[at.index()], network.nodes[to.index()]);
        item.refuse(problems, message, Some("links up to the end of the flow".to_owned()));
        return None;
    }
    Some(Some(path))
}
