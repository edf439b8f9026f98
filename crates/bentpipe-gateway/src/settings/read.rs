//! Reads settings from text.

use std::net::IpAddr;
use std::path::Path;

use bentpipe_engine::units::Rate;
use bentpipe_language::document::{self, Value};
use bentpipe_language::error::{Mistake, Problems, ScenarioError, ScenarioErrors};
use bentpipe_language::gateway::{self, mtu, positive, uplink};
use bentpipe_language::kind::Kind;
use bentpipe_language::reader::{Item, View, entry_name};
use bentpipe_language::text;

use crate::policy::digits;

use super::grammar::{ENGINES, FILE, INTERFACES, KERNELS, LINK, PORT, SATELLITE, SPLIT, TUNNEL, UPLINK, WITHOUT_PEER};
use super::peers::{peers, tunnel};
use super::taken::{interfaces, taken};
use super::values::{MAX_NAME, all, parsed, plain_name};
use super::{
    GatewayFile, LinkTable, RelayTable, SatelliteTable, ShapeTable, SplitTable, TunnelTable, UplinkTable, own_folder,
};

const PORT_DEFAULT: u16 = 4000;
/// Maximum length of a user name on Linux (useradd(8)).
const MAX_USER: usize = 32;

pub(super) fn load(path: &Path) -> Result<(GatewayFile, ScenarioErrors), ScenarioErrors> {
    let name = path.display().to_string();
    match text::read(path) {
        Ok(text) => parse(&text, &name),
        Err(error) => Err(ScenarioErrors(vec![ScenarioError::without_place(&name, error.to_string())])),
    }
}

pub(super) fn parse(text: &str, name: &str) -> Result<(GatewayFile, ScenarioErrors), ScenarioErrors> {
    let mut problems = Problems::of("gateway file");
    let source = problems.add_source(name, text);
    let root = document::parse(text, source, &mut problems);
    if problems.count() > 0 {
        return problems.finish(None);
    }
    let file = file(&root, Path::new(name), &mut problems);
    let warnings = problems.take_warnings();
    Ok((problems.finish(file)?, warnings))
}

/// The place of the key, or of the innermost table on the path to it.
pub(super) fn mistake(text: &str, name: &str, key: &str, message: String, expected: String) -> ScenarioErrors {
    let mut problems = Problems::of("gateway file");
    let source = problems.add_source(name, text);
    let root = document::parse(text, source, &mut problems);
    let mut node = &root;
    for step in key.split('.') {
        let next = match &node.value {
            Value::Table(table) => table.get(step).map(|entry| &entry.node),
            Value::List(list) => list.iter().find(|node| entry_name(node) == Some(step)),
            _ => None,
        };
        let Some(next) = next else { break };
        node = next;
    }
    problems.add(node.span, Mistake::new(key, message).expected(expected));
    problems.finish::<()>(None).expect_err("there is one")
}

fn file(root: &document::Node, path: &Path, problems: &mut Problems) -> Option<GatewayFile> {
    let beside = path.parent().unwrap_or(Path::new(""));
    let Value::Table(table) = &root.value else { return None };
    if Kind::Gateway.is_another(table, problems) {
        return None;
    }
    let view = View::open(table, String::new(), root.span, FILE, problems);
    let name = view.require("name", problems).and_then(|item| plain_name(&item, 64, problems)).map(str::to_owned);
    let tunnel = match (view.get("tunnel"), view.get("uplink")) {
        (Some(item), Some(_)) => {
            item.refuse(problems, "`uplink` is one box: there is no tunnel", Some("no `[tunnel]`".to_owned()));
            None
        }
        (None, Some(_)) => Some(None),
        _ => {
            let name = name.as_deref().unwrap_or_default();
            view.require("tunnel", problems).and_then(|item| tunnel(&item, name, beside, problems)).map(Some)
        }
    };
    let satellite = view.require("satellite", problems).and_then(|item| satellite(&item, problems));
    let shape = shape(&view, satellite.as_ref(), problems);
    let peers = peers(&view, beside, (satellite.as_ref(), shape.as_ref()), problems);
    let control = match view.get("control") {
        Some(item) => item.text(problems).map(|path| beside.join(path)),
        None => name.as_ref().map(|name| own_folder(name).join("control.sock")),
    };
    let metrics = match view.get("metrics") {
        Some(item) => parsed(&item, "an address and a port such as \"127.0.0.1:9179\"", problems).map(Some),
        None => Some(None),
    };
    let user = match view.get("user") {
        Some(item) => plain_name(&item, MAX_USER, problems).map(|user| Some(user.to_owned())),
        None => Some(None),
    };
    let (tunnel, peers, satellite, shape) = (tunnel?, peers?, satellite?, shape?);
    let (name, control, metrics, user) = (name?, control?, metrics?, user?);
    if let Some(tunnel) = &tunnel {
        let keys = peers.iter().filter_map(|peer| peer.preshared_key.as_deref());
        keeps_what_it_reads(&view, tunnel, keys.chain([path, &*tunnel.private_key]), problems);
    }
    Some(GatewayFile { name, tunnel, peers, satellite, shape, control, metrics, user })
}

/// Refuses a `state` that is one of the files that the gateway reads: it would replace a key by addresses.
fn keeps_what_it_reads<'a>(
    view: &View<'_>,
    TunnelTable { state, .. }: &TunnelTable,
    mut read: impl Iterator<Item = &'a Path>,
    problems: &mut Problems,
) {
    if !read.any(|path| path == state) {
        return;
    }
    let Some(item) = view.get("tunnel") else { return };
    // Mistakes in its keys have already been reported.
    let table = item.table(TUNNEL, &mut Problems::of("gateway file"));
    let message = format!("{} is read by the gateway, which would overwrite it", state.display());
    let state = table.as_ref().and_then(|table| table.get("state"));
    state.as_ref().unwrap_or(&item).refuse(problems, message, Some("a file of its own".to_owned()));
}

fn satellite(item: &Item<'_>, problems: &mut Problems) -> Option<SatelliteTable> {
    let view = item.table(SATELLITE, problems)?;
    let rate: Option<Rate> = view.require("rate", problems).and_then(|item| item.rate(problems));
    let round_trip = view.require("round_trip", problems).and_then(|item| positive(&item, problems));
    let (reordering, shared) = (gateway::reordering(&view, problems), gateway::shared(&view, problems));
    Some(SatelliteTable { rate: rate?, round_trip: round_trip?, reordering: reordering?, shared: shared? })
}

fn shape(view: &View<'_>, satellite: Option<&SatelliteTable>, problems: &mut Problems) -> Option<ShapeTable> {
    let tables = ["split", "link", "uplink"].map(|key| view.get(key));
    let is_hub = view.get("peers").is_some();
    if let ([Some(streams), Some(packets), None], true) = (&tables, is_hub) {
        let (streams, packets) = (split(streams, is_hub, problems), link(packets, problems));
        return Some(ShapeTable::Both(streams?, packets?));
    }
    if let [_, rest @ ..] = &tables.iter().flatten().collect::<Vec<_>>()[..] {
        for item in rest {
            let expected = Some("one of the three tables; `split` and `link` with `[[peers]]`".to_owned());
            item.refuse(problems, "a gateway has one of `split`, `link` and `uplink`, not several", expected);
        }
        if !rest.is_empty() {
            return None;
        }
    }
    match tables {
        [Some(item), ..] => split(&item, is_hub, problems).map(ShapeTable::Split),
        [_, Some(item), _] => link(&item, problems).map(ShapeTable::Link),
        [.., Some(item)] => one_box(&item, satellite, problems),
        [None, None, None] => {
            view.missing("split", problems);
            None
        }
    }
}

fn port(view: &View<'_>, problems: &mut Problems) -> Option<u16> {
    match view.get("port") {
        Some(item) => item.count(PORT, problems).map(|port| port as u16),
        None => Some(PORT_DEFAULT),
    }
}

fn device(view: &View<'_>, problems: &mut Problems) -> Option<String> {
    match view.get("device") {
        Some(item) => plain_name(&item, MAX_NAME, problems).map(str::to_owned),
        None => Some("bentpipe0".to_owned()),
    }
}

fn one_box(item: &Item<'_>, link: Option<&SatelliteTable>, problems: &mut Problems) -> Option<ShapeTable> {
    let view = item.table(UPLINK, problems)?;
    let sender = uplink::which(&view, ENGINES, KERNELS, problems)?;
    if link.is_some_and(|link| link.shared) {
        let expected = Some("`sender = \"kernel\"`, or a `variant` with congestion control".to_owned());
        item.refuse(problems, "`satellite.shared` is for two boxes", expected);
    }
    if sender == uplink::SENDER[0] {
        return engine(&view, item, link, problems).map(Box::new).map(ShapeTable::Uplink);
    }
    relay(&view, problems).map(ShapeTable::Relay)
}

/// The interfaces towards the clients.
fn towards_clients(view: &View<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    let item = view.require("satellite", problems)?;
    let satellite = interfaces(view, "satellite", problems)?;
    if satellite.is_empty() {
        item.refuse(problems, "no interface: no connections would be accelerated", Some(INTERFACES.expected()));
    }
    Some(satellite)
}

fn relay(view: &View<'_>, problems: &mut Problems) -> Option<RelayTable> {
    let taken = taken(view, towards_clients(view, problems), problems);
    let port = port(view, problems);
    let congestion = match view.get("congestion") {
        Some(item) => plain_name(&item, MAX_NAME, problems).map(str::to_owned),
        None => Some(uplink::CONGESTION_DEFAULT.to_owned()),
    };
    Some(RelayTable { taken: taken?, port: port?, congestion: congestion? })
}

fn engine(
    view: &View<'_>,
    item: &Item<'_>,
    link: Option<&SatelliteTable>,
    problems: &mut Problems,
) -> Option<UplinkTable> {
    let taken = taken(view, towards_clients(view, problems), problems);
    let device = device(view, problems);
    let mtu = mtu(view, problems);
    let product = link.map_or(0, |link| link.rate.bytes_in_floor(link.round_trip));
    let sender = uplink::engine(view, item, mtu, product, problems);
    let (taken, device) = (taken?, device?);
    if let Some(item) = view.get("satellite")
        && taken.interfaces.contains(&device)
    {
        let message = format!(
            "`{device}` is the gateway's own device (`device`), and packets from it would be routed into it again"
        );
        item.refuse(
            problems,
            message,
            Some("the interfaces towards the clients, or another name as `device`".to_owned()),
        );
    }
    let uplink::Engine { variant, tcp, window, early_accept, .. } = sender?;
    Some(UplinkTable { taken, variant, tcp, window, device, mtu: mtu?, early_accept })
}

fn split(item: &Item<'_>, is_hub: bool, problems: &mut Problems) -> Option<SplitTable> {
    let view = item.table(SPLIT, problems)?;
    let taken = taken(&view, interfaces(&view, "capture", problems), problems);
    let port = port(&view, problems);
    let without_peer = match view.get("without_peer") {
        Some(item) => {
            let word = item.choice(WITHOUT_PEER, problems);
            if is_hub && word == Some(WITHOUT_PEER[0]) {
                let message = "with several peers, one that is down cannot be bypassed: its hosts are behind it";
                item.refuse(problems, message, Some("\"refuse\", or no such key".to_owned()));
            }
            word
        }
        None => Some(WITHOUT_PEER[usize::from(is_hub)]),
    };
    Some(SplitTable { taken: taken?, port: port?, direct_without_peer: without_peer? == WITHOUT_PEER[0] })
}

fn link(item: &Item<'_>, problems: &mut Problems) -> Option<LinkTable> {
    let view = item.table(LINK, problems)?;
    let device = device(&view, problems);
    let addresses = view.require("addresses", problems).and_then(|item| item.list(&INTERFACES, problems));
    let addresses = addresses.and_then(|items| all(items.iter().map(|item| network(item, problems))));
    let memory = gateway::memory(&view, problems);
    let advice = match view.get("throughput_advice") {
        Some(item) => gateway::throughput_advice(&item, problems).map(Some),
        None => Some(None),
    };
    Some(LinkTable { device: device?, addresses: addresses?, memory: memory?, advice: advice? })
}

fn network(item: &Item<'_>, problems: &mut Problems) -> Option<(IpAddr, u8)> {
    let text = item.text(problems)?;
    let read = text.split_once('/').and_then(|(address, bits)| {
        let (address, bits): (IpAddr, u8) = (address.parse().ok()?, digits(bits)?);
        (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, bits))
    });
    if read.is_none() {
        let expected = "an address in its network such as \"10.8.0.1/24\"".to_owned();
        item.refuse(problems, format!("`{}` cannot be \"{text}\"", item.path), Some(expected));
    }
    read
}
