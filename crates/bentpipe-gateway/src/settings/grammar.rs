//! The keys of a gateway file.

use bentpipe_language::gateway::{ADVICE, REORDERING, SHARED, max_streams_field, uplink};
use bentpipe_language::shape::{Counted, Field, Shape, field};

/// The file.
pub(super) const FILE: &[Field] = &[
    field("name", Shape::Text, "Name of this gateway in status and metrics: letters, digits, `-` and `_`. Required."),
    field(
        "tunnel",
        Shape::Table(TUNNEL),
        "The tunnel to the peer. Required for `split` and `link`; not allowed with `uplink`.",
    ),
    field(
        "peers",
        Shape::List(&Shape::Table(PEER)),
        "The peers of a hub, each a table `[[peers]]`, instead of `tunnel.peer_key`. A reload adds, changes and removes peers without affecting the others.",
    ),
    field("satellite", Shape::Table(SATELLITE), "Properties of the satellite link. Required."),
    field(
        "split",
        Shape::Table(SPLIT),
        "Shape `split`: TCP connections are terminated here and continue from the peer. One shape is required; with `peers`, `split` and `link` may both be present.",
    ),
    field(
        "link",
        Shape::Table(LINK),
        "Shape `link`: all IP packets that are routed into a TUN device go through the tunnel.",
    ),
    field(
        "uplink",
        Shape::Table(UPLINK),
        "Shape `uplink`: one box at the uplink, which terminates TCP connections of clients behind the satellite.",
    ),
    field(
        "control",
        Shape::Text,
        "Path of the socket that answers `bentpipe gateway status`, relative to this file. Default: /run/bentpipe/NAME/control.sock.",
    ),
    field(
        "metrics",
        Shape::Text,
        "Address and TCP port that Prometheus scrapes, such as \"127.0.0.1:9179\". Default: no metrics.",
    ),
    field(
        "user",
        Shape::Text,
        "User to which a gateway started as root switches once its keys are read and its sockets and devices are open. \"root\" stays root. Default: bentpipe, or nobody if there is no such user.",
    ),
];

pub(super) const TUNNEL: &[Field] = &[
    field(
        "private_key",
        Shape::Text,
        "File of the private key, as written by `bentpipe gateway keygen`, relative to this file. Required.",
    ),
    field(
        "peer_key",
        Shape::Text,
        "The peer's public key, as printed by `bentpipe gateway keygen`. Required without `peers`.",
    ),
    field(
        "preshared_key",
        Shape::Text,
        "File of a secret shared by both boxes (base64 of 32 bytes, as `bentpipe gateway keygen` writes it), relative to this file. It is mixed into all keys. Default: none.",
    ),
    field("listen", Shape::Text, "Local address and UDP port. Default: 0.0.0.0:4500."),
    field(
        "state",
        Shape::Text,
        "File, relative to this file, in which the gateway saves the peer's last address, so that it can contact the peer after a restart. Default: /run/bentpipe/NAME/peers.state.",
    ),
    field(
        "peer",
        Shape::Text,
        "Address and UDP port of the peer. At least one of the two boxes needs it; if both have it, either opens the tunnel.",
    ),
    field(
        "mtu",
        Shape::SIZE,
        "Largest MTU that the path between the two boxes may have. The actual MTU is discovered. Default: 1500 B.",
    ),
    field("keepalive", Shape::DURATION, "Interval of keepalives while no data is sent. Default: 5 s."),
    field(
        "dead_after",
        Shape::DURATION,
        "The peer counts as down after this time without a packet from it. Default: 15 s.",
    ),
    field(
        "peer_prefixes",
        Shape::List(&Shape::Text),
        "Source addresses that the peer may use, such as \"10.1.0.0/24\": sources of packets (`link`) and of clients (`split` with `client_address = \"keep\"`). Others are dropped or refused. Default: all except loopback, multicast, broadcast and unspecified addresses.",
    ),
];

/// Keys of `tunnel` that, on a hub, belong to each of `[[peers]]`, with their names there.
pub(super) const OF_ONE_PEER: &[(&str, &str)] =
    &[("peer_key", "key"), ("preshared_key", "preshared_key"), ("peer", "endpoint"), ("peer_prefixes", "prefixes")];

pub(super) const WEIGHT: Counted = Counted::new("", 1, 1000);
pub(super) const CARRIES: &[&str] = &["split", "link"];

pub(super) const PEER: &[Field] = &[
    field("name", Shape::Text, "Name of the peer in log, status and metrics: letters, digits, `-` and `_`. Required."),
    field("key", Shape::Text, "The peer's public key, as printed by `bentpipe gateway keygen`. Required."),
    field(
        "preshared_key",
        Shape::Text,
        "File of a secret shared by this box and the peer, in the format of `tunnel.preshared_key`. Default: none.",
    ),
    field("endpoint", Shape::Text, "Address and UDP port of the peer. Default: none; the peer opens the tunnel."),
    field(
        "prefixes",
        Shape::List(&Shape::Text),
        "Addresses behind the peer, such as \"10.1.7.0/24\": packets (`link`) and connections (`split`) to them go to this peer, and it may send only from them. Prefixes of all peers are disjoint. Required, except for `split` with `client_address = \"replace\"`.",
    ),
    field(
        "rate",
        Shape::RATE,
        "Rate at which this end may send to the peer, headers included. Default: `satellite.rate`.",
    ),
    field(
        "round_trip",
        Shape::DURATION,
        "Round-trip time of the empty link to the peer. Default: `satellite.round_trip`.",
    ),
    field(
        "weight",
        Shape::Count(WEIGHT),
        "Weight of the peer in sharing `satellite.rate` with the others when they want more than the rate. Default: 1.",
    ),
    field(
        "throughput_advice",
        ADVICE,
        "`link`: rate advised to QUIC hosts behind this box, like `link.throughput_advice`. \"line\": `rate`. Default: `link.throughput_advice`.",
    ),
    field(
        "shape",
        Shape::Choice(CARRIES),
        "Shape of the link to the peer, if the file has both `split` and `link`; the peer's file must have the same shape. Default: the only one.",
    ),
];

pub(super) const SATELLITE: &[Field] = &[
    field(
        "rate",
        Shape::RATE,
        "Rate at which this end may send, headers included; with `peers`, to all of them together. For `uplink`: rate towards the clients, IP headers included. Required.",
    ),
    field("round_trip", Shape::DURATION, "Round-trip time of the empty link. Required."),
    REORDERING,
    SHARED,
];

pub(super) const PORT: Counted = Counted::new("", 1, 65_535);
pub(super) const ADDRESS: &[&str] = &["keep", "replace"];
pub(super) const WITHOUT_PEER: &[&str] = &["direct", "refuse"];
pub(super) const INTERFACES: Shape = Shape::List(&Shape::Text);
pub(super) const PORTS: Shape = Shape::List(&Shape::Count(PORT));

/// Of `split` and `uplink`.
const PORTS_FIELD: Field = field("ports", PORTS, "Destination ports to intercept. Default: all.");
/// Of `split` and `uplink`.
const ALLOW: Field = field(
    "allow",
    Shape::List(&Shape::Text),
    "Destinations that may be reached, optionally with ports: \"10.0.0.0/8\", \"192.0.2.7:443\", \"*:8000-8999\", \"[2001:db8::/32]:443\". An entry within a range refused by default opens it. Default: all except the box's own addresses, loopback, link-local (such as 169.254.169.254), multicast, broadcast and unspecified addresses.",
);
/// Of `split` and `uplink`.
const DENY: Field = field(
    "deny",
    Shape::List(&Shape::Text),
    "Destinations that may not be reached, written as in `allow`. An entry here wins over `allow`. Default: none.",
);
/// Of `link` and `uplink`.
const DEVICE: Field = field("device", Shape::Text, "Name of the TUN device. Default: bentpipe0.");

pub(super) const SPLIT: &[Field] = &[
    field(
        "capture",
        INTERFACES,
        "Interfaces whose hosts' TCP connections are intercepted. Default: none; this box then only serves connections from the peer.",
    ),
    PORTS_FIELD,
    ALLOW,
    DENY,
    field(
        "port",
        Shape::Count(PORT),
        "Local TCP port to which the kernel redirects intercepted connections (TPROXY). Default: 4000.",
    ),
    field(
        "client_address",
        Shape::Choice(ADDRESS),
        "Source address that destinations see. \"keep\": the client's. \"replace\": the gateway's. Default: \"keep\".",
    ),
    field(
        "without_peer",
        Shape::Choice(WITHOUT_PEER),
        "New connections while the peer is down. \"direct\": they pass without the gateway. \"refuse\": they are reset. Default: \"direct\"; with `peers` always \"refuse\".",
    ),
    max_streams_field("Maximum number of open connections of a peer. Default: 16384.").renamed_from("most_streams"),
    field(
        "memory",
        Shape::SIZE,
        "Maximum memory for connections, their data, and their packets on the link. With `peers`, each may use what the others leave free; half of it is reserved for them in equal parts. Default: 256 MiB.",
    ),
];

pub(super) const LINK: &[Field] = &[
    DEVICE,
    field("addresses", Shape::List(&Shape::Text), "Addresses of the TUN device, such as \"10.8.0.1/24\". Required."),
    field(
        "memory",
        Shape::SIZE,
        "Maximum memory for packets that are queued for the link, in flight to the peer, or received from it and held until earlier ones arrive. Packets that do not fit are dropped. With `peers`, each may use what the others leave free; half of it is reserved for them in equal parts. Default: 256 MiB.",
    ),
    field(
        "throughput_advice",
        ADVICE,
        "Rate written into QUIC's SCONE packets (draft-ietf-scone-protocol) to the peer, if they carry none or a higher one. \"line\": `satellite.rate`; with `peers`, each peer's `rate`. Default: nothing is written.",
    ),
];

/// Keys of `uplink` that only the engine's sender uses, and keys that only the kernel's uses.
pub(super) const ENGINES: &[&str] = &["variant", "window", "device", "mtu", "early_accept", "tcp"];
pub(super) const KERNELS: &[&str] = &["congestion", "port"];

pub(super) const UPLINK: &[Field] = &[
    field("satellite", INTERFACES, "Interfaces towards the clients, whose connections are intercepted. Required."),
    PORTS_FIELD,
    ALLOW,
    DENY,
    field(
        "sender",
        Shape::Choice(uplink::SENDER),
        "TCP that sends to the clients. \"engine\": bentpipe's own, with a variant from `bentpipe variants`. \"kernel\": the kernel's, with one of its congestion controls. Default: \"engine\".",
    ),
    field(
        "congestion",
        Shape::Text,
        "`sender = \"kernel\"`: congestion control, one of net.ipv4.tcp_available_congestion_control. Default: bbr.",
    ),
    field(
        "port",
        Shape::Count(PORT),
        "`sender = \"kernel\"`: local TCP port to which the kernel redirects intercepted connections (TPROXY). Default: 4000.",
    ),
    uplink::VARIANT,
    uplink::WINDOW,
    DEVICE,
    field(
        "mtu",
        Shape::SIZE,
        "`sender = \"engine\"`: Largest MTU that the path to the clients may have. A smaller MTU is noticed only on the box's own route. Default: 1500 B.",
    ),
    uplink::EARLY_ACCEPT,
    field(
        "client_address",
        Shape::Choice(ADDRESS),
        "Source address that servers see. \"keep\": the client's. \"replace\": the gateway's. Default: \"keep\".",
    ),
    max_streams_field("Maximum number of open connections. Default: 16384.").renamed_from("most_streams"),
    field("memory", Shape::SIZE, "Maximum memory for the buffers of all connections. Default: 256 MiB."),
    uplink::TCP,
];
