//! `spoof`: a TCP connection ends at a node on the way, which acknowledges in the destination's name.

use super::error::{Mistake, Problems, Span};
use super::grammar::{BUFFER_SHARINGS, SPOOF};
use super::links::Network;
use super::quantity;
use super::reader::View;
use super::shape::Shape;
use super::suggest::did_you_mean;
use super::{FlowKind, Scenario, Workload};
use crate::topology;

/// A gateway in which a connection ends, and from which its data goes on without TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spoof {
    /// Index of the node.
    pub at: usize,
    /// Full segments that the node's buffer holds, waiting or sent on and not acknowledged; flows that end there share
    /// it.
    pub buffer: u32,
    /// How those flows share it.
    pub sharing: BufferSharing,
    /// A window that was closed is told when it opens, not in the next ACK of data only.
    pub reopens: bool,
}

/// How flows that end at one gateway share its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSharing {
    /// Each is offered what is free of the whole.
    Common,
    /// Each has an equal part.
    Equal,
}

/// Reads the `spoof` of a flow, if it has one.
pub(crate) fn read(
    view: &View<'_>,
    workload: Option<Workload>,
    network: &Network,
    problems: &mut Problems,
) -> Option<Option<Spoof>> {
    let Some(item) = view.get("spoof") else { return Some(None) };
    if let Some(Workload::RequestResponse { .. }) = workload {
        item.refuse(problems, "a gateway sends on one way: a request would have no response", None);
        return None;
    }
    if view.get("split").is_some() {
        item.refuse(
            problems,
            "a connection that ends here has no further legs to split",
            Some("one of both".to_owned()),
        );
        return None;
    }
    let view = item.table(SPOOF, problems)?;
    let at = view.require("at", problems).and_then(|item| {
        let name = item.text(problems)?;
        let index = network.nodes.iter().position(|node| node == name);
        if index.is_none() && network.is_whole {
            let mistake = Mistake::new(&item.path, format!("no link leads to a node `{name}`"))
                .expected(format!("one of {}", network.nodes.join(", ")))
                .help(did_you_mean(name, network.nodes.iter().map(String::as_str)));
            problems.add(item.node.span, mistake);
        }
        index
    });
    let buffer = view.require("buffer", problems).and_then(|item| {
        let packets = item.quantity(quantity::PACKETS, problems)?;
        if packets == 0 {
            item.refuse(problems, "a gateway without a buffer passes nothing on", Some(Shape::PACKETS.expected()));
            return None;
        }
        Some(packets as u32)
    });
    let sharing = match view.get("sharing").map(|item| item.choice(BUFFER_SHARINGS, problems)) {
        None => BufferSharing::Common,
        Some(choice) if choice? == "equal" => BufferSharing::Equal,
        Some(_) => BufferSharing::Common,
    };
    let reopens = view.get("reopens").map_or(Some(true), |item| item.flag(problems))?;
    Some(Some(Spoof { at: at?, buffer: buffer?, sharing, reopens }))
}

/// What one flow cannot know of itself: its gateway lies between its ends, its data goes on over a link that
/// acknowledges, and one node has one buffer.
pub(crate) fn check(scenario: &Scenario, places: &[(Span, String)], problems: &mut Problems) {
    let mut buffers: Vec<(Spoof, &str)> = Vec::new();
    for (flow, (span, path)) in scenario.flows.iter().zip(places) {
        let Some(&spoof) = flow.kind.spoof() else { continue };
        let path = format!("{path}.spoof");
        let mut refuse = |message: String, expected: Option<&str>| {
            let mistake = Mistake::new(&path, message);
            problems.add(*span, expected.map_or(mistake.clone(), |expected| mistake.expected(expected)));
        };
        let node = &scenario.nodes[spoof.at];
        if spoof.at == flow.from || spoof.at == flow.to {
            refuse(format!("`{node}` is an end of the flow"), Some("a node on the way"));
            continue;
        }
        for (route, way) in [(&flow.route, "route"), (&flow.return_route, "return_route")] {
            let through = |route: &Vec<usize>| route.iter().any(|&link| scenario.links[link].from == spoof.at);
            if route.as_ref().is_some_and(|route| !through(route)) {
                refuse(format!("the `{way}` does not lead through `{node}`"), None);
            }
        }
        let behind = match &flow.route {
            Some(route) => route.iter().copied().find(|&link| scenario.links[link].from == spoof.at),
            None => topology::path(scenario, spoof.at, flow.to).ok().and_then(|path| path.first().copied()),
        };
        if behind.is_some_and(|link| scenario.layer_over(link).is_none()) {
            refuse(
                format!("the link behind `{node}` does not acknowledge, so nothing would ever leave the buffer"),
                Some("a link under one of the [[layers]]"),
            );
        }
        match buffers.iter().find(|(other, _)| other.at == spoof.at) {
            Some((other, name)) if other.buffer != spoof.buffer => refuse(
                format!("`{node}` has a buffer of {} packets for `{name}`, which they share", other.buffer),
                Some("the same buffer"),
            ),
            Some((other, name)) if other.sharing != spoof.sharing => {
                refuse(format!("`{node}` shares its buffer in another way for `{name}`"), Some("the same `sharing`"))
            }
            Some(_) => {}
            None => buffers.push((spoof, &flow.name)),
        }
    }
}

impl FlowKind {
    /// The gateway in which the flow's TCP ends.
    pub fn spoof(&self) -> Option<&Spoof> {
        match self {
            FlowKind::Tcp(tcp) => tcp.spoof.as_ref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(spoof: &str, layer: &str) -> Result<Scenario, String> {
        let text = format!(
            "name = \"x\"\n[[links]]\nname = \"ground\"\nbetween = [\"A\", \"G\"]\nrate = \"100 Mbit/s\"\n\
             delay = \"50 ms\"\nqueue = \"unlimited\"\n[[links]]\nname = \"sat\"\nbetween = [\"G\", \"B\"]\n\
             rate = \"1 Mbit/s\"\ndelay = \"125 ms\"\nqueue = \"unlimited\"\n{layer}\n[[flows]]\nname = \"one\"\n\
             from = \"A\"\nto = \"B\"\n{spoof}\n"
        );
        Scenario::parse(&text, "x.toml", &[]).map_err(|errors| errors.render(false))
    }

    const LAYER: &str = "[[layers]]\nname = \"arq\"\nover = \"sat\"\n";
    const SPOOF: &str = "greedy = true\nspoof = { at = \"G\", buffer = \"50 packets\" }";

    const PLAIN: Spoof = Spoof { at: 1, buffer: 50, sharing: BufferSharing::Common, reopens: true };

    #[test]
    fn a_gateway_is_read_and_written() {
        let scenario = parse(SPOOF, LAYER).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.flows[0].kind.spoof(), Some(&PLAIN));
        assert_eq!(Scenario::parse(&scenario.to_toml(), "again.toml", &[]), Ok(scenario));
        let parts = SPOOF.replace("50 packets\"", "50 packets\", sharing = \"equal\", reopens = false");
        let scenario = parse(&parts, LAYER).unwrap_or_else(|error| panic!("{error}"));
        let wanted = Spoof { sharing: BufferSharing::Equal, reopens: false, ..PLAIN };
        assert_eq!(scenario.flows[0].kind.spoof(), Some(&wanted));
        assert_eq!(Scenario::parse(&scenario.to_toml(), "again.toml", &[]), Ok(scenario));
    }

    #[test]
    fn what_is_no_gateway_is_refused() {
        let refused = |spoof: &str, layer: &str, word: &str| {
            let error = parse(spoof, layer).expect_err("there is a mistake in it");
            assert!(error.contains(word) && error.contains("x.toml:"), "{word}: {error}");
        };
        let with = |from: &str, to: &str| SPOOF.replace(from, to);
        refused(&with("50 packets", "50"), LAYER, "has no unit");
        refused(&with("50 packets", "0 packets"), LAYER, "passes nothing on");
        refused(&with("\"G\"", "\"H\""), LAYER, "no link leads to a node `H`");
        refused(&with("\"G\"", "\"B\""), LAYER, "is an end of the flow");
        refused(&with(", buffer = \"50 packets\"", ""), LAYER, "buffer");
        refused(SPOOF, "", "does not acknowledge");
        let asks = with("greedy = true", "request_response = { request = \"1 kB\", response = \"1 kB\" }");
        refused(&asks, LAYER, "a request would have no response");
        let other = "\n[[flows]]\nname = \"two\"\nfrom = \"A\"\nto = \"B\"\n";
        let two = format!("{SPOOF}{other}{}", with("50 packets", "60 packets"));
        refused(&two, LAYER, "has a buffer of 50 packets for `one`");
        let unlike = with("50 packets\"", "50 packets\", sharing = \"equal\"");
        refused(&format!("{SPOOF}{other}{unlike}"), LAYER, "shares its buffer in another way");
        refused(&with("50 packets\"", "50 packets\", sharing = \"fair\""), LAYER, "sharing");
        let udp = format!("type = \"udp\"\nrate = \"1 kbit/s\"\npacket = \"100 B\"\n{}", with("greedy = true\n", ""));
        refused(&udp, LAYER, "belongs to a tcp flow");
    }
}
