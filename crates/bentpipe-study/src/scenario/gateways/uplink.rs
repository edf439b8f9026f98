//! A gateway of one box: shape `uplink`.

use bentpipe_engine::gateway::UplinkSender;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::Bytes;
use bentpipe_language::error::Problems;
use bentpipe_language::gateway::{mtu, uplink};
use bentpipe_language::reader::{Item, View};

use super::{rate, round_trip, too_fast};
use crate::scenario::grammar::{CONGESTION, ENGINES, KERNELS};
use crate::scenario::layers;
use crate::scenario::links::Network;
use crate::scenario::model::{NodeId, SenderOf, UplinkSpec};
use crate::scenario::world::node;

pub(super) fn read(
    name: &str,
    item: &Item<'_>,
    view: &View<'_>,
    network: &Network,
    problems: &mut Problems,
) -> Option<UplinkSpec> {
    let place = view.require("at", problems)?;
    let at = node(&place, network, problems)?;
    let over = over(&place, view, network, at, problems)?;
    let links = over.map(|link| &network.links[link.index()]);
    let told = match view.get("rate") {
        Some(item) => {
            let told = Some(item.rate(problems)?);
            too_fast(&item, told, links[0], problems);
            told
        }
        None => None,
    };
    let rate = rate(item, told, links[0], problems)?;
    let round_trip = round_trip(item, view, links, problems)?;
    let mtu = mtu(view, problems);
    let which = uplink::which(view, ENGINES, KERNELS, problems)?;
    let (tcp, window, by) = if which == uplink::SENDER[0] {
        let engine = uplink::engine(view, item, mtu, rate.bytes_in_floor(round_trip), problems)?;
        let uplink::Engine { variant, tcp, explicit, window, early_accept } = engine;
        (tcp, window.map(Bytes::get), SenderOf::Engine { variant, explicit, early_accept })
    } else {
        let congestion = match view.get("congestion") {
            Some(item) => item.choice(CONGESTION, problems)?,
            None => uplink::CONGESTION_DEFAULT,
        };
        let tcp = UplinkSpec::kernel(congestion, rate, round_trip).expect("the rows of all are in the table");
        (tcp, None, SenderOf::Kernel { congestion })
    };
    let sender = UplinkSender { tcp, window, rate, round_trip, mtu: mtu? };
    Some(UplinkSpec { name: name.to_owned(), at, over, sender, by })
}

/// The link from the box to the clients, and the one back.
fn over(
    place: &Item<'_>,
    view: &View<'_>,
    network: &Network,
    at: NodeId,
    problems: &mut Problems,
) -> Option<[LinkId; 2]> {
    if let Some(item) = view.get("over") {
        let [one, other] = layers::over(&item, network, problems)?;
        let starts = |link: LinkId| network.links[link.index()].from == at;
        return match (starts(one), starts(other)) {
            (true, _) => Some([one, other]),
            (_, true) => Some([other, one]),
            _ => {
                let message =
                    format!("`{}` does not begin at `{}`", network.links[one.index()].name, network.nodes[at.index()]);
                item.refuse(problems, message, None);
                None
            }
        };
    }
    let numbered = || network.links.iter().enumerate().map(|(n, link)| (LinkId::from(n), link));
    let back = |from, to| numbered().find(|(_, link)| (link.from, link.to) == (from, to)).map(|(id, _)| id);
    let leaving = numbered().filter(|(_, link)| link.from == at);
    let both = leaving.filter_map(|(id, link)| Some(([id, back(link.to, link.from)?], link.config.delay)));
    // `max_by_key` returns the last of several.
    let longest = both.collect::<Vec<_>>().into_iter().rev().max_by_key(|&(_, delay)| delay);
    if longest.is_none() && network.is_whole {
        let message = format!("no link leads from `{}` and back", network.nodes[at.index()]);
        place.refuse(problems, message, Some("the node before a satellite link".to_owned()));
    }
    longest.map(|(over, _)| over)
}
