//! From text to settings.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bentpipe_engine::units::{Bytes, Duration, Rate};

use super::grammar::{
    ADDRESS, FILE, INTERFACES, LINK, PORT, PORTS, REORDERING, SATELLITE, SPLIT, STREAMS, TUNNEL, WITHOUT_PEER,
};
use super::{GatewayFile, LinkTable, SatelliteTable, ShapeTable, SplitTable, TunnelTable};
use crate::scenario::ScenarioErrors;
use crate::scenario::document::{self, Value};
use crate::scenario::error::{Problems, ScenarioError};
use crate::scenario::reader::{Item, View};
use crate::scenario::shape::Shape;

const LISTEN: &str = "0.0.0.0:4500";
const KEEPALIVE: Duration = Duration::from_secs(5);
const DEAD_AFTER: Duration = Duration::from_secs(15);
const REORDERING_DEFAULT: u64 = 3;
const PORT_DEFAULT: u16 = 4000;
const STREAMS_DEFAULT: u32 = 16_384;
const MEMORY_DEFAULT: Bytes = Bytes::new(256 << 20);
/// IPv6's least MTU, and the most that an IP packet can have.
const MTU: std::ops::RangeInclusive<u64> = 1280..=65_535;
/// What a stream's window needs at least, with room for some.
const LEAST_MEMORY: u64 = 4 << 20;
/// Names of interfaces (IFNAMSIZ with its zero).
const MOST_NAME: usize = 15;

pub(super) fn load(path: &Path) -> Result<GatewayFile, ScenarioErrors> {
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text, &name),
        Err(error) => Err(ScenarioErrors(vec![ScenarioError::without_place(&name, error.to_string())])),
    }
}

pub(super) fn parse(text: &str, name: &str) -> Result<GatewayFile, ScenarioErrors> {
    let mut problems = Problems::default();
    let source = problems.add_source(name, text);
    let root = document::parse(text, source, &mut problems);
    if problems.count() > 0 {
        return problems.finish(None);
    }
    let beside = Path::new(name).parent().unwrap_or(Path::new(""));
    let file = file(&root, beside, &mut problems);
    problems.finish(file)
}

fn file(root: &document::Node, beside: &Path, problems: &mut Problems) -> Option<GatewayFile> {
    let Value::Table(table) = &root.value else { return None };
    let view = View::open(table, String::new(), root.span, FILE, problems);
    let name = view.require("name", problems).and_then(|item| plain_name(&item, 64, problems)).map(str::to_owned);
    let tunnel = view.require("tunnel", problems).and_then(|item| tunnel(&item, beside, problems));
    let satellite = view.require("satellite", problems).and_then(|item| satellite(&item, problems));
    let shape = shape(&view, problems);
    let control = match view.get("control") {
        Some(item) => Some(beside.join(item.text(problems)?)),
        None => name.as_ref().map(|name| PathBuf::from(format!("/run/bentpipe/{name}.sock"))),
    };
    let metrics = match view.get("metrics") {
        Some(item) => Some(parsed(&item, "an address and a port such as \"127.0.0.1:9179\"", problems)?),
        None => None,
    };
    let (tunnel, satellite, shape) = (tunnel?, satellite?, shape?);
    Some(GatewayFile { name: name?, tunnel, satellite, shape, control: control?, metrics })
}

/// A name that can be a file's and an interface's.
fn plain_name<'a>(item: &Item<'a>, most: usize, problems: &mut Problems) -> Option<&'a str> {
    let name = item.name(problems)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.len() > most || !name.chars().all(is_plain) {
        let expected = format!("letters, digits, - and _, at most {most}");
        item.refuse(problems, format!("`{name}` cannot be a name here"), Some(expected));
        return None;
    }
    Some(name)
}

fn parsed<T: std::str::FromStr>(item: &Item<'_>, expected: &str, problems: &mut Problems) -> Option<T> {
    let text = item.text(problems)?;
    let value = text.parse().ok();
    if value.is_none() {
        item.refuse(problems, format!("`{}` cannot be \"{text}\"", item.path), Some(expected.to_owned()));
    }
    value
}

fn tunnel(item: &Item<'_>, beside: &Path, problems: &mut Problems) -> Option<TunnelTable> {
    let view = item.table(TUNNEL, problems)?;
    let private_key = view.require("private_key", problems).and_then(|item| Some(beside.join(item.text(problems)?)));
    let peer_key = view.require("peer_key", problems).and_then(|item| {
        let text = item.text(problems)?;
        // 32 bytes in base64; whether they are a key the tunnel finds out.
        let fits = text.len() == 44 && text.ends_with('=');
        if !fits {
            item.refuse(problems, "this is no public key", Some("44 characters, as `keygen` prints them".to_owned()));
        }
        fits.then(|| text.to_owned())
    });
    let address = "an address and a port such as \"198.51.100.7:4500\"";
    let listen = match view.get("listen") {
        Some(item) => parsed(&item, address, problems),
        None => LISTEN.parse().ok(),
    };
    let peer = match view.get("peer") {
        Some(item) => Some(parsed(&item, address, problems)?),
        None => None,
    };
    let mtu = match view.get("mtu") {
        Some(item) => {
            let mtu = item.size(problems)?.get();
            if !MTU.contains(&mtu) {
                let expected = format!("{} B to {} B", MTU.start(), MTU.end());
                item.refuse(problems, format!("an MTU cannot be {mtu} B"), Some(expected));
            }
            u16::try_from(mtu).ok()
        }
        None => Some(1500),
    };
    let duration = |key, default, problems: &mut Problems| match view.get(key) {
        Some(item) => positive(&item, problems),
        None => Some(default),
    };
    let keepalive = duration("keepalive", KEEPALIVE, problems)?;
    let dead_after = duration("dead_after", DEAD_AFTER, problems)?;
    if dead_after < keepalive.saturating_mul(2) {
        let at = view.get("dead_after").or(view.get("keepalive"))?;
        at.refuse(
            problems,
            "a peer that is idle would be given up",
            Some("`dead_after` of twice `keepalive` or more".to_owned()),
        );
    }
    Some(TunnelTable {
        private_key: private_key?,
        peer_key: peer_key?,
        listen: listen?,
        peer,
        mtu: mtu?,
        keepalive,
        dead_after,
    })
}

fn positive(item: &Item<'_>, problems: &mut Problems) -> Option<Duration> {
    let span = item.duration(problems)?;
    if span == Duration::ZERO {
        item.refuse(problems, format!("`{}` cannot be zero", item.path), Some(Shape::DURATION.expected()));
        return None;
    }
    Some(span)
}

fn satellite(item: &Item<'_>, problems: &mut Problems) -> Option<SatelliteTable> {
    let view = item.table(SATELLITE, problems)?;
    let rate: Option<Rate> = view.require("rate", problems).and_then(|item| item.rate(problems));
    let round_trip = view.require("round_trip", problems).and_then(|item| positive(&item, problems));
    let reordering = match view.get("reordering") {
        Some(item) => item.count(REORDERING, problems),
        None => Some(REORDERING_DEFAULT),
    };
    Some(SatelliteTable { rate: rate?, round_trip: round_trip?, reordering: reordering? })
}

fn shape(view: &View<'_>, problems: &mut Problems) -> Option<ShapeTable> {
    match (view.get("split"), view.get("link")) {
        (Some(item), None) => split(&item, problems).map(ShapeTable::Split),
        (None, Some(item)) => link(&item, problems).map(ShapeTable::Link),
        (Some(_), Some(link)) => {
            link.refuse(problems, "a gateway is `split` or `link`, not both", Some("one of the two tables".to_owned()));
            None
        }
        (None, None) => {
            view.missing("split", problems);
            None
        }
    }
}

fn split(item: &Item<'_>, problems: &mut Problems) -> Option<SplitTable> {
    let view = item.table(SPLIT, problems)?;
    let list = |key, shape: &Shape, problems: &mut Problems| match view.get(key) {
        Some(item) => item.list(shape, problems),
        None => Some(Vec::new()),
    };
    let capture = list("capture", &INTERFACES, problems)?;
    let capture = capture.iter().map(|item| plain_name(item, MOST_NAME, problems).map(str::to_owned));
    let capture: Option<Vec<String>> = capture.collect();
    let ports = list("ports", &PORTS, problems)?;
    let ports: Option<Vec<u16>> = ports.iter().map(|item| item.count(PORT, problems).map(|port| port as u16)).collect();
    let count = |key, counted, default: u64, problems: &mut Problems| match view.get(key) {
        Some(item) => item.count(counted, problems),
        None => Some(default),
    };
    let port = count("port", PORT, PORT_DEFAULT.into(), problems)? as u16;
    let most_streams = count("most_streams", STREAMS, STREAMS_DEFAULT.into(), problems)? as u32;
    let choice = |key, words, problems: &mut Problems| match view.get(key) {
        Some(item) => item.choice(words, problems),
        None => Some(words[0]),
    };
    let client_address = choice("client_address", ADDRESS, problems)?;
    let without_peer = choice("without_peer", WITHOUT_PEER, problems)?;
    let memory = match view.get("memory") {
        Some(item) => {
            let memory = item.size(problems)?;
            if memory.get() < LEAST_MEMORY {
                item.refuse(problems, "this is less than one connection needs", Some("4 MiB or more".to_owned()));
            }
            memory
        }
        None => MEMORY_DEFAULT,
    };
    Some(SplitTable {
        capture: capture?,
        ports: ports?,
        port,
        keep_client_address: client_address == ADDRESS[0],
        direct_without_peer: without_peer == WITHOUT_PEER[0],
        most_streams,
        memory,
    })
}

fn link(item: &Item<'_>, problems: &mut Problems) -> Option<LinkTable> {
    let view = item.table(LINK, problems)?;
    let device = match view.get("device") {
        Some(item) => plain_name(&item, MOST_NAME, problems)?.to_owned(),
        None => "bentpipe0".to_owned(),
    };
    let addresses = view.require("addresses", problems)?.list(&INTERFACES, problems)?;
    let addresses: Option<Vec<_>> = addresses.iter().map(|item| network(item, problems)).collect();
    Some(LinkTable { device, addresses: addresses? })
}

fn network(item: &Item<'_>, problems: &mut Problems) -> Option<(IpAddr, u8)> {
    let text = item.text(problems)?;
    let read = text.split_once('/').and_then(|(address, bits)| {
        let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
        (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, bits))
    });
    if read.is_none() {
        let expected = "an address in its network such as \"10.8.0.1/24\"".to_owned();
        item.refuse(problems, format!("`{}` cannot be \"{text}\"", item.path), Some(expected));
    }
    read
}
