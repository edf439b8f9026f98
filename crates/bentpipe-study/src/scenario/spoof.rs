//! `spoof`: a TCP connection ends at a node on the path, which acknowledges for the destination.

use bentpipe_engine::link::QueueLimit;
use bentpipe_engine::slacp::classify::Rule;
use bentpipe_language::error::{Mistake, Problems, Span};
use bentpipe_language::quantity;
use bentpipe_language::reader::View;
use bentpipe_language::shape::Shape;

use super::grammar::{BUFFER_SHARINGS, SPOOF};
use super::links::Network;
use super::model::{BufferSharing, FlowKind, Scenario, Spoof, TcpFlow, Workload};
use super::world::node;
use crate::topology;

/// Reads the `spoof` of a flow, if it has one.
pub(crate) fn read(
    view: &View<'_>,
    workload: Option<Workload>,
    network: &Network,
    problems: &mut Problems,
) -> Option<Option<Spoof>> {
    let Some(item) = view.get("spoof") else { return Some(None) };
    if let Some(Workload::RequestResponse { .. }) = workload {
        item.refuse(problems, "a gateway forwards one way only: a request would have no response", None);
        return None;
    }
    let view = item.table(SPOOF, problems)?;
    let at = view.require("at", problems).and_then(|item| node(&item, network, problems));
    let buffer = view.require("buffer", problems).and_then(|item| {
        let packets = item.quantity(quantity::PACKETS, problems)?;
        if packets == 0 {
            item.refuse(problems, "a gateway without a buffer forwards nothing", Some(Shape::PACKETS.expected()));
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

/// Checks across the scenario that the gateway is between the ends, that its data continues over a link that
/// acknowledges, and that a node has only one buffer.
pub(crate) fn check(scenario: &Scenario, places: &[(Span, String)], problems: &mut Problems) {
    let mut buffers: Vec<(Spoof, &str)> = Vec::new();
    for (flow, (span, path)) in scenario.flows.iter().zip(places) {
        let Some(&spoof) = flow.kind.spoof() else { continue };
        let path = format!("{path}.spoof");
        let mut refuse = |message: String, expected: Option<&str>| {
            let mistake = Mistake::new(&path, message);
            problems.add(*span, expected.map_or(mistake.clone(), |expected| mistake.expected(expected)));
        };
        let node = &scenario[spoof.at];
        if spoof.at == flow.from || spoof.at == flow.to {
            refuse(format!("`{node}` is an end of the flow"), Some("a node on the path"));
            continue;
        }
        let FlowKind::Tcp(tcp) = &flow.kind else { continue };
        if tcp.splits.iter().any(|split| split.at == spoof.at) {
            refuse(format!("the connection is already split at `{node}`"), Some("a node after the last split"));
            continue;
        }
        let last = tcp.splits.last();
        if last.map_or(tcp.stp, |split| split.stp).is_some() {
            refuse(
                "the leg that ends there is STP, but a gateway acknowledges TCP".to_owned(),
                Some("a last leg of TCP"),
            );
            continue;
        }
        let (start, route, return_route) = last.map_or((flow.from, &flow.route, &flow.return_route), |split| {
            (split.at, &split.route, &split.return_route)
        });
        for (route, way) in [(route, "route"), (return_route, "return_route")] {
            let through = |route: &topology::Path| route.iter().any(|&link| scenario[link].from == spoof.at);
            if route.as_ref().is_some_and(|route| !through(route)) {
                refuse(format!("the `{way}` does not lead through `{node}`"), None);
            }
        }
        let path = match route {
            Some(route) => Some(route.clone()),
            None => topology::path(scenario, start, flow.to).ok(),
        };
        let behind = path.and_then(|path| topology::from_on(scenario, path, spoof.at, flow.to)?.first().copied());
        match behind.map(|link| scenario.layer_over(link)) {
            None => {}
            Some(None) => refuse(
                format!("the link after `{node}` does not acknowledge, so nothing would ever leave the buffer"),
                Some("a link under one of the [[layers]]"),
            ),
            Some(Some((layer, side))) => {
                if let Some(what) = loses(scenario, layer, side, flow.dscp, &spoof, tcp) {
                    refuse(
                        format!("`{}` may lose what the gateway has acknowledged: {what}", scenario.layers[layer].name),
                        Some(
                            "a channel for it with transmissions = \"unlimited\", queue = \"unlimited\" and no `codel`",
                        ),
                    );
                }
            }
        }
        match buffers.iter().find(|(other, _)| other.at == spoof.at) {
            Some((other, name)) if other.buffer != spoof.buffer => refuse(
                format!("`{node}` has a shared buffer of {} packets for `{name}`", other.buffer),
                Some("the same buffer"),
            ),
            Some((other, name)) if other.sharing != spoof.sharing => {
                refuse(format!("`{node}` shares its buffer differently for `{name}`"), Some("the same `sharing`"))
            }
            Some(_) => {}
            None => buffers.push((spoof, &flow.name)),
        }
    }
}

/// How a layer could lose full segments that a gateway passes to it, if it can. The gateway's buffer bounds the queue
/// there. A shorter queue, early drops or limited retransmission cause losses that nothing repairs.
fn loses(scenario: &Scenario, layer: usize, side: usize, dscp: u8, spoof: &Spoof, tcp: &TcpFlow) -> Option<String> {
    let layer = &scenario.layers[layer];
    let last = tcp.splits.last().map_or(&tcp.receiver, |split| &split.receiver);
    let wire = u32::from(last.mss) + 40;
    let end = layer.end(&scenario.links, side);
    for (channel, config) in layer.channels.iter().zip(&end.channels) {
        let takes = |rule: &Rule| {
            let fits = rule.dscp.is_none_or(|wanted| wanted == dscp)
                && rule.protocol.is_none_or(|wanted| wanted == 6)
                && rule.bare_ack != Some(true)
                && rule.max_bytes.is_none_or(|max| max >= wire);
            // The flow's port is unknown here, so a rule with a port may match.
            (fits, fits && rule.port.is_none())
        };
        let takes: Vec<_> = channel.rules.iter().map(takes).collect();
        let is_last = channel.name == layer.channels[layer.channels.len() - 1].name;
        if !is_last && !takes.iter().any(|(may, _)| *may) {
            continue;
        }
        let name = &channel.name;
        let has_room = match config.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(packets) => packets >= spoof.buffer,
            QueueLimit::Bytes(bytes) => bytes.get() >= u64::from(spoof.buffer) * u64::from(wire),
        };
        let what = match config.arq {
            None => Some("sends once"),
            Some(arq) if arq.transmissions.is_some() => Some("gives up after some transmissions"),
            Some(_) if config.codel.is_some() => Some("has CoDel"),
            Some(_) if !has_room => Some("has a queue shorter than the gateway's buffer"),
            Some(_) => None,
        };
        if let Some(what) = what {
            return Some(format!("its channel `{name}` {what}"));
        }
        if takes.iter().any(|(_, surely)| *surely) {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::NodeId;

    fn parse(spoof: &str, layer: &str) -> Result<Scenario, String> {
        let text = format!(
            "name = \"x\"\n[[links]]\nname = \"ground\"\nbetween = [\"A\", \"G\"]\nrate = \"100 Mbit/s\"\n\
             delay = \"50 ms\"\nqueue = \"unlimited\"\n[[links]]\nname = \"sat\"\nbetween = [\"G\", \"B\"]\n\
             rate = \"1 Mbit/s\"\ndelay = \"125 ms\"\nqueue = \"unlimited\"\n{layer}\n[[flows]]\nname = \"one\"\n\
             from = \"A\"\nto = \"B\"\n{spoof}\n"
        );
        Scenario::parse(&text, "x.toml", &[]).map_err(|errors| errors.render(false))
    }

    const LAYER: &str = "[[layers]]\nname = \"arq\"\nover = \"sat\"\nchannels = [{ name = \"all\", transmissions = \
                         \"unlimited\" }]\n";
    const SPOOF: &str = "greedy = true\nspoof = { at = \"G\", buffer = \"50 packets\" }";

    const PLAIN: Spoof = Spoof { at: NodeId(1), buffer: 50, sharing: BufferSharing::Common, reopens: true };

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
        refused(&with("50 packets", "0 packets"), LAYER, "forwards nothing");
        refused(&with("\"G\"", "\"H\""), LAYER, "no link leads to a node `H`");
        refused(&with("\"G\"", "\"B\""), LAYER, "is an end of the flow");
        refused(&with(", buffer = \"50 packets\"", ""), LAYER, "buffer");
        refused(SPOOF, "", "does not acknowledge");
        refused(SPOOF, "[[layers]]\nname = \"arq\"\nover = \"sat\"\n", "`bulk` gives up after some transmissions");
        let short = LAYER.replace("\"unlimited\" }", "\"unlimited\", queue = \"49 packets\" }");
        refused(SPOOF, &short, "`all` has a queue shorter than the gateway's buffer");
        // 50 packets of 1500 B are 75 kB.
        let bytes = |size: &str| LAYER.replace("\"unlimited\" }", &format!("\"unlimited\", queue = \"{size}\" }}"));
        refused(SPOOF, &bytes("74999 B"), "`all` has a queue shorter than the gateway's buffer");
        parse(SPOOF, &bytes("75 kB")).unwrap_or_else(|error| panic!("{error}"));
        let codel = LAYER.replace("\"unlimited\" }", "\"unlimited\", codel = \"auto\" }");
        refused(SPOOF, &codel, "`all` has CoDel");
        let once = LAYER.replace("\"unlimited\" }", "\"off\" }");
        refused(SPOOF, &once, "`all` sends once");
        let split = |at: &str| format!("{SPOOF}\nsplit = [{{ at = \"{at}\" }}]");
        refused(&split("G"), LAYER, "is already split at `G`");
        let asks = with("greedy = true", "request_response = { request = \"1 kB\", response = \"1 kB\" }");
        refused(&asks, LAYER, "a request would have no response");
        let other = "\n[[flows]]\nname = \"two\"\nfrom = \"A\"\nto = \"B\"\n";
        let two = format!("{SPOOF}{other}{}", with("50 packets", "60 packets"));
        refused(&two, LAYER, "has a shared buffer of 50 packets for `one`");
        let unlike = with("50 packets\"", "50 packets\", sharing = \"equal\"");
        refused(&format!("{SPOOF}{other}{unlike}"), LAYER, "shares its buffer differently");
        refused(&with("50 packets\"", "50 packets\", sharing = \"fair\""), LAYER, "sharing");
        let udp = format!("type = \"udp\"\nrate = \"1 kbit/s\"\npacket = \"100 B\"\n{}", with("greedy = true\n", ""));
        refused(&udp, LAYER, "applies to tcp flows");
    }
}
