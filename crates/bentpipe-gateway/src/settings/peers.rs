//! The tunnel and its peers: a single one in `[tunnel]`, or several in `[[peers]]`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use bentpipe_engine::units::{Duration, Rate};
use bentpipe_language::document::Value;
use bentpipe_language::error::Problems;
use bentpipe_language::gateway::{Advice, mtu, positive, throughput_advice};
use bentpipe_language::reader::{Item, View};
use bentpipe_language::shape::Shape;

use super::grammar::{CARRIES, INTERFACES, OF_ONE_PEER, PEER, TUNNEL, WEIGHT};
use super::values::{PREFIXES, parsed, plain_name, written};
use super::{Carries, PeerTable, SatelliteTable, ShapeTable, TunnelTable, own_folder};
use crate::policy::Prefix;
use crate::tunnel::PublicKey;

const LISTEN: &str = "0.0.0.0:4500";
const KEEPALIVE: Duration = Duration::from_secs(5);
const DEAD_AFTER: Duration = Duration::from_secs(15);
const ADDRESS: &str = "an address and a port such as \"198.51.100.7:4500\"";
/// The same maximum as for a gateway's name.
const MAX_PEER_NAME: usize = 64;

pub(super) fn tunnel(item: &Item<'_>, name: &str, beside: &Path, problems: &mut Problems) -> Option<TunnelTable> {
    let view = item.table(TUNNEL, problems)?;
    let private_key = view.require("private_key", problems).and_then(|item| Some(beside.join(item.text(problems)?)));
    let state = match view.get("state") {
        Some(item) => item.text(problems).map(|path| beside.join(path)),
        None => Some(own_folder(name).join("peers.state")),
    };
    let listen = match view.get("listen") {
        Some(item) => parsed(&item, ADDRESS, problems),
        None => LISTEN.parse().ok(),
    };
    let mtu = mtu(&view, problems);
    let duration = |key, default, problems: &mut Problems| match view.get(key) {
        Some(item) => positive(&item, problems),
        None => Some(default),
    };
    let keepalive = duration("keepalive", KEEPALIVE, problems);
    let dead_after = duration("dead_after", DEAD_AFTER, problems);
    let (private_key, state, listen, mtu) = (private_key?, state?, listen?, mtu?);
    let (keepalive, dead_after) = (keepalive?, dead_after?);
    if dead_after < keepalive.saturating_mul(2) {
        let at = view.get("dead_after").or(view.get("keepalive"))?;
        at.refuse(
            problems,
            "an idle peer would count as down",
            Some("`dead_after` of twice `keepalive` or more".to_owned()),
        );
    }
    Some(TunnelTable { private_key, state, listen, mtu, keepalive, dead_after })
}

/// The peers; none for a single box.
pub(super) fn peers(
    root: &View<'_>,
    beside: &Path,
    (satellite, shape): (Option<&SatelliteTable>, Option<&ShapeTable>),
    problems: &mut Problems,
) -> Option<Vec<PeerTable>> {
    let tunnel = match root.get("tunnel") {
        // Mistakes in its keys have already been reported.
        Some(item) => item.table(TUNNEL, &mut Problems::of("gateway file")),
        None => None,
    };
    let listen = tunnel.as_ref().and_then(listen_at);
    let Some(list) = root.get("peers") else {
        if root.get("uplink").is_some() {
            return Some(Vec::new());
        }
        return Some(vec![only(&tunnel?, beside, (satellite, shape, listen), problems)?]);
    };
    if let Some(item) = root.get("uplink") {
        item.refuse(problems, "`uplink` is one box: there are no peers", Some("no `[[peers]]`".to_owned()));
        return None;
    }
    for (key, instead) in OF_ONE_PEER {
        if let Some(item) = tunnel.as_ref().and_then(|tunnel| tunnel.get(key)) {
            let message = format!("`{}` is for a box with one peer, and this one has `[[peers]]`", item.path);
            item.refuse(problems, message, Some(format!("`{instead}` in the peer's `[[peers]]`")));
        }
    }
    if let Value::Table(_) = list.node.value {
        list.refuse(
            problems,
            "`[peers]` is a single table, but peers are a list",
            Some("`[[peers]]`, in two brackets, for each peer".to_owned()),
        );
        return None;
    }
    let items = list.list(&Shape::List(&Shape::Table(PEER)), problems)?;
    if items.is_empty() {
        list.refuse(problems, "a hub without peers has nothing to do", Some("a table `[[peers]]` for each".to_owned()));
        return None;
    }
    let mut unique = Unique::default();
    let peers =
        items.iter().map(|item| one_of_several(item, beside, (satellite, shape, listen), &mut unique, problems));
    let peers: Vec<_> = peers.collect();
    unique.overlaps(problems);
    peers.into_iter().collect()
}

/// The only peer, whose keys are in `[tunnel]`.
fn only(
    view: &View<'_>,
    beside: &Path,
    (satellite, shape, listen): (Option<&SatelliteTable>, Option<&ShapeTable>, Option<SocketAddr>),
    problems: &mut Problems,
) -> Option<PeerTable> {
    let key = view.require("peer_key", problems).and_then(|item| public_key(&item, problems));
    let preshared_key = file(view, beside, problems);
    let endpoint = endpoint(view, "peer", listen, problems);
    let carries = if matches!(shape, Some(ShapeTable::Link(_))) { Carries::Packets } else { Carries::Streams };
    let prefixes = match view.get("peer_prefixes") {
        Some(item) => {
            let prefixes = written::<Prefix>(&item, PREFIXES, problems);
            if carries == Carries::Packets && prefixes.as_ref().is_some_and(Vec::is_empty) {
                let expected = "[\"10.1.7.0/24\"], for example; without `peer_prefixes`, any source".to_owned();
                item.refuse(problems, "no prefix: no packet of the peer would be accepted", Some(expected));
            }
            prefixes.map(Some)
        }
        None => Some(None),
    };
    let (satellite, shape) = (satellite?, shape?);
    Some(PeerTable {
        name: None,
        key: key?,
        preshared_key: preshared_key?,
        endpoint: endpoint?,
        prefixes: prefixes?,
        rate: satellite.rate,
        round_trip: satellite.round_trip,
        weight: 1,
        carries,
        advice: of_link(shape),
    })
}

/// Where the tunnel listens. Mistakes in it are reported elsewhere.
fn listen_at(tunnel: &View<'_>) -> Option<SocketAddr> {
    match tunnel.get("listen") {
        Some(item) => parsed(&item, ADDRESS, &mut Problems::of("gateway file")),
        None => LISTEN.parse().ok(),
    }
}

/// The address of a peer, to which the tunnel's socket must be able to send.
fn endpoint(
    view: &View<'_>,
    key: &str,
    listen: Option<SocketAddr>,
    problems: &mut Problems,
) -> Option<Option<SocketAddr>> {
    let Some(item) = view.get(key) else { return Some(None) };
    let at: SocketAddr = parsed(&item, ADDRESS, problems)?;
    // The kernel refuses to send there.
    let ip = at.ip().to_canonical();
    let is_many = ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST);
    if at.port() == 0 || ip.is_unspecified() || is_many {
        item.refuse(problems, format!("{at} is nobody's address"), Some(ADDRESS.to_owned()));
    }
    // A socket at `[::]` takes both versions.
    if let Some(listen) =
        listen.filter(|listen| listen.is_ipv4() != at.is_ipv4() && listen.ip() != IpAddr::V6(Ipv6Addr::UNSPECIFIED))
    {
        let message = format!("the tunnel cannot send to {at} from {listen}, where it listens");
        item.refuse(
            problems,
            message,
            Some(format!("`listen = \"[::]:{}\"` in `[tunnel]`, for IPv4 and IPv6", listen.port())),
        );
    }
    Some(Some(at))
}

/// A public key in its text form.
fn public_key(item: &Item<'_>, problems: &mut Problems) -> Option<PublicKey> {
    match item.text(problems)?.parse() {
        Ok(key) => Some(key),
        Err(error) => {
            item.refuse(problems, error.to_string(), Some("44 characters, as `keygen` prints them".to_owned()));
            None
        }
    }
}

/// The advice of `[link]`.
fn of_link(shape: &ShapeTable) -> Option<Advice> {
    match shape {
        ShapeTable::Link(link) | ShapeTable::Both(_, link) => link.advice,
        ShapeTable::Split(_) | ShapeTable::Uplink(_) | ShapeTable::Relay(_) => None,
    }
}

fn file(view: &View<'_>, beside: &Path, problems: &mut Problems) -> Option<Option<PathBuf>> {
    match view.get("preshared_key") {
        Some(item) => Some(Some(beside.join(item.text(problems)?))),
        None => Some(None),
    }
}

/// Values that no two peers may share.
#[derive(Default)]
struct Unique<'a> {
    names: BTreeMap<&'a str, ()>,
    /// The peer of each key.
    keys: BTreeMap<PublicKey, String>,
    prefixes: Vec<(Prefix, Item<'a>, String)>,
}

impl Unique<'_> {
    /// Reports overlapping prefixes. Two prefixes are either disjoint or nested, and sorting puts the inner one after
    /// the outer one.
    fn overlaps(mut self, problems: &mut Problems) {
        self.prefixes.sort_by_key(|(prefix, item, _)| (prefix.first(), prefix.bits(), item.node.span));
        let mut widest: Option<&(Prefix, Item<'_>, String)> = None;
        let mut refused = BTreeSet::new();
        for this in &self.prefixes {
            let Some(wide) = widest.filter(|(wide, ..)| wide.overlaps(&this.0)) else {
                widest = Some(this);
                continue;
            };
            // The prefix that comes later in the file should be changed; it is reported once.
            let [(other, _, of), (prefix, item, _)] =
                if wide.1.node.span < this.1.node.span { [wide, this] } else { [this, wide] };
            if refused.insert(item.node.span) {
                let message = format!("{prefix} overlaps {other} of peer `{of}`");
                item.refuse(problems, message, Some("prefixes behind this peer only".to_owned()));
            }
        }
    }
}

fn one_of_several<'a>(
    item: &Item<'a>,
    beside: &Path,
    (satellite, shape, listen): (Option<&SatelliteTable>, Option<&ShapeTable>, Option<SocketAddr>),
    unique: &mut Unique<'a>,
    problems: &mut Problems,
) -> Option<PeerTable> {
    let view = item.table(PEER, problems)?;
    let name = view.require("name", problems).and_then(|item| {
        let name = plain_name(&item, MAX_PEER_NAME, problems)?;
        if unique.names.insert(name, ()).is_some() {
            item.refuse(problems, format!("another peer is called `{name}`"), Some("a name of its own".to_owned()));
        }
        Some(name)
    });
    let label = name.unwrap_or("without a name");
    let key = view.require("key", problems).and_then(|item| {
        let key = public_key(&item, problems)?;
        if let Some(other) = unique.keys.insert(key, label.to_owned()) {
            item.refuse(problems, format!("peer `{other}` has this key"), Some("a key of its own".to_owned()));
        }
        Some(key)
    });
    let preshared_key = file(&view, beside, problems);
    let endpoint = endpoint(&view, "endpoint", listen, problems);
    let carries = carries(&view, shape, problems);
    let prefixes = prefixes(&view, carries, shape, problems);
    if let (Some(prefixes), Some(item)) = (&prefixes, view.get("prefixes")) {
        let items = item.list(&INTERFACES, problems).unwrap_or_default();
        not_our_own(prefixes.iter().zip(&items), shape, problems);
        unique.prefixes.extend(prefixes.iter().zip(items).map(|(prefix, item)| (*prefix, item, label.to_owned())));
    }
    let rate: Option<Rate> = match view.get("rate") {
        Some(item) => item.rate(problems),
        None => satellite.map(|satellite| satellite.rate),
    };
    let round_trip = match view.get("round_trip") {
        Some(item) => positive(&item, problems),
        None => satellite.map(|satellite| satellite.round_trip),
    };
    let weight = match view.get("weight") {
        Some(item) => item.count(WEIGHT, problems).map(|count| count as u32),
        None => Some(1),
    };
    let advice = advice(&view, carries, shape, problems);
    Some(PeerTable {
        name: Some(name?.to_owned()),
        key: key?,
        preshared_key: preshared_key?,
        endpoint: endpoint?,
        prefixes: Some(prefixes?),
        rate: rate?,
        round_trip: round_trip?,
        weight: weight?,
        carries: carries?,
        advice: advice?,
    })
}

/// The shape of the link to a peer, which must be one of the file's shapes.
fn carries(view: &View<'_>, shape: Option<&ShapeTable>, problems: &mut Problems) -> Option<Carries> {
    let only = match shape? {
        ShapeTable::Split(_) => Some(Carries::Streams),
        ShapeTable::Link(_) => Some(Carries::Packets),
        ShapeTable::Both(..) | ShapeTable::Uplink(_) | ShapeTable::Relay(_) => None,
    };
    let Some(item) = view.get("shape") else {
        if only.is_none() {
            view.missing("shape", problems);
        }
        return only;
    };
    let word = item.choice(CARRIES, problems)?;
    let wanted = if word == CARRIES[0] { Carries::Streams } else { Carries::Packets };
    if only.is_some_and(|only| only != wanted) {
        item.refuse(
            problems,
            format!("this file has no `[{word}]`"),
            Some(format!("a table `[{word}]`, or the other shape")),
        );
        return None;
    }
    Some(wanted)
}

/// Reports peers' prefixes that contain the box's own address on its device, such as the device's whole network.
fn not_our_own<'a>(
    prefixes: impl Iterator<Item = (&'a Prefix, &'a Item<'a>)>,
    shape: Option<&ShapeTable>,
    problems: &mut Problems,
) {
    let Some(ShapeTable::Link(link) | ShapeTable::Both(_, link)) = shape else { return };
    for (prefix, item) in prefixes {
        let is_within = |(address, bits): &&(IpAddr, u8)| prefix.contains(*address) && prefix.bits() >= *bits;
        if let Some((address, _)) = link.addresses.iter().find(is_within) {
            let message = format!("{prefix} contains {address}, this box's own address in `link.addresses`");
            item.refuse(problems, message, Some("addresses behind the peer".to_owned()));
        }
    }
}

/// The rate advised to a peer's hosts. Only for a peer of `link`, since streams do not carry QUIC.
fn advice(
    view: &View<'_>,
    carries: Option<Carries>,
    shape: Option<&ShapeTable>,
    problems: &mut Problems,
) -> Option<Option<Advice>> {
    let item = view.get("throughput_advice");
    match (carries?, item) {
        (Carries::Packets, Some(item)) => throughput_advice(&item, problems).map(Some),
        (Carries::Packets, None) => Some(of_link(shape?)),
        (Carries::Streams, Some(item)) => {
            item.refuse(
                problems,
                "`split` carries only TCP, but SCONE packets belong to QUIC",
                Some("a peer of shape `link`".to_owned()),
            );
            None
        }
        (Carries::Streams, None) => Some(None),
    }
}

fn prefixes(
    view: &View<'_>,
    carries: Option<Carries>,
    shape: Option<&ShapeTable>,
    problems: &mut Problems,
) -> Option<Vec<Prefix>> {
    let replaces = match shape? {
        ShapeTable::Split(split) | ShapeTable::Both(split, _) => !split.taken.keep_client_address,
        _ => false,
    };
    if replaces && carries? == Carries::Streams && view.get("prefixes").is_none() {
        return Some(Vec::new());
    }
    let item = view.require("prefixes", problems)?;
    let prefixes: Vec<Prefix> = written(&item, PREFIXES, problems)?;
    if prefixes.is_empty() && !replaces {
        let message = "no prefix: nothing could be sent to this peer, and nothing from it accepted";
        item.refuse(problems, message, Some("[\"10.1.7.0/24\"], for example".to_owned()));
    }
    Some(prefixes)
}
