//! Which keys there are.

use bentpipe_language::shape::{Counted, Field, Shape, field};

/// The file.
pub(super) const FILE: &[Field] = &[
    field("name", Shape::Text, "Name of this gateway, in status."),
    field("tunnel", Shape::Table(TUNNEL), "The way to the peer; `uplink` has none."),
    field("satellite", Shape::Table(SATELLITE), "What is known of the link."),
    field("split", Shape::Table(SPLIT), "TCP connections end here and go on from the peer."),
    field("link", Shape::Table(LINK), "IP packets, by a TUN device."),
    field("uplink", Shape::Table(UPLINK), "One box at the uplink: TCP of clients behind the satellite ends here."),
    field("control", Shape::Text, "Where status is asked for; /run/bentpipe/NAME.sock if not given."),
    field("metrics", Shape::Text, "Address and TCP port that Prometheus scrapes; nobody can if not given."),
];

pub(super) const TUNNEL: &[Field] = &[
    field("private_key", Shape::Text, "The file of the private key, as `bentpipe gateway keygen` writes it."),
    field("peer_key", Shape::Text, "The peer's public key."),
    field("listen", Shape::Text, "Address and UDP port of this end; 0.0.0.0:4500 if not given."),
    field(
        "peer",
        Shape::Text,
        "Address and port of the peer: one of the two ends names the other, and builds the tunnel.",
    ),
    field("mtu", Shape::SIZE, "The longest IP packet that passes between the two; 1500 B if not given."),
    field("keepalive", Shape::DURATION, "An idle end says so often that it is there; 5 s if not given."),
    field("dead_after", Shape::DURATION, "A peer that is not heard for so long is given up; 15 s if not given."),
];

pub(super) const REORDERING: Counted = Counted::new("frames", 0, 1000);

pub(super) const SATELLITE: &[Field] = &[
    field("rate", Shape::RATE, "What this end may send, headers included."),
    field("round_trip", Shape::DURATION, "There and back."),
    field(
        "reordering",
        Shape::Count(REORDERING),
        "Frames that may overtake one before it counts as lost; 3 if not given.",
    ),
    field(
        "shared",
        Shape::Flag,
        "Others use the link too: the sender finds its share of it, and `rate` is the most that it tries. False if not given.",
    ),
];

pub(super) const PORT: Counted = Counted::new("", 1, 65_535);
pub(super) const STREAMS: Counted = Counted::new("connections", 1, 1_000_000);
pub(super) const ADDRESS: &[&str] = &["keep", "replace"];
pub(super) const WITHOUT_PEER: &[&str] = &["direct", "refuse"];
pub(super) const INTERFACES: Shape = Shape::List(&Shape::Text);
pub(super) const PORTS: Shape = Shape::List(&Shape::Count(PORT));

pub(super) const SPLIT: &[Field] = &[
    field(
        "capture",
        INTERFACES,
        "Interfaces whose hosts' connections are taken. None: only what the peer takes is served.",
    ),
    field("ports", PORTS, "Destination ports that are taken; all if not given."),
    field("port", Shape::Count(PORT), "Where the kernel hands connections over; 4000 if not given."),
    field(
        "client_address",
        Shape::Choice(ADDRESS),
        "\"keep\": destinations see the client's; \"replace\": the gateway's. Keep if not given.",
    ),
    field(
        "without_peer",
        Shape::Choice(WITHOUT_PEER),
        "New connections while the peer is gone: \"direct\" or \"refuse\". Direct if not given.",
    ),
    field("max_streams", Shape::Count(STREAMS), "Maximum open connections of the peer; 16384 if not given.")
        .renamed_from("most_streams"),
    field("memory", Shape::SIZE, "What may wait for hosts that do not take it; 256 MiB if not given."),
];

pub(super) const LINK: &[Field] = &[
    field("device", Shape::Text, "Name of the TUN device; bentpipe0 if not given."),
    field("addresses", Shape::List(&Shape::Text), "Addresses of the device, such as \"10.8.0.1/24\"."),
];

pub(super) const SENDER: &[&str] = &["engine", "kernel"];
/// Keys of `uplink` that only the engine's sender has a use for, and only the kernel's.
pub(super) const ENGINES: &[&str] = &["variant", "window", "device", "mtu", "early_accept", "tcp"];
pub(super) const KERNELS: &[&str] = &["congestion", "port"];

pub(super) const UPLINK: &[Field] = &[
    field("satellite", INTERFACES, "Interfaces towards the clients: whose hosts' connections are taken."),
    field("ports", PORTS, "Destination ports that are taken; all if not given."),
    field(
        "sender",
        Shape::Choice(SENDER),
        "Whose TCP sends to the clients: \"engine\" by a row of `bentpipe variants`, or \"kernel\" by its congestion \
         control. Engine if not given.",
    ),
    field(
        "congestion",
        Shape::Text,
        "`sender = \"kernel\"`: one of net.ipv4.tcp_available_congestion_control; bbr if not given.",
    ),
    field(
        "port",
        Shape::Count(PORT),
        "`sender = \"kernel\"`: where the kernel hands connections over; 4000 if not given.",
    ),
    field("variant", Shape::Text, "Row of `bentpipe variants` that sends to the clients; burst if not given."),
    field(
        "window",
        Shape::SIZE,
        "A connection's window; if not given, one bandwidth-delay product for rows whose window is fixed, and no bound for others.",
    ),
    field("device", Shape::Text, "Name of the TUN device; bentpipe0 if not given."),
    field("mtu", Shape::SIZE, "The longest IP packet that the way to the clients takes; 1500 B if not given."),
    field(
        "early_accept",
        Shape::Flag,
        "Clients are answered before servers have accepted: a round trip of theirs less, and a server that refuses is a \
         connection that is reset. False if not given.",
    ),
    field(
        "client_address",
        Shape::Choice(ADDRESS),
        "\"keep\": servers see the client's; \"replace\": the gateway's. Keep if not given.",
    ),
    field("max_streams", Shape::Count(STREAMS), "Maximum open connections; 16384 if not given.")
        .renamed_from("most_streams"),
    field("memory", Shape::SIZE, "What the buffers of all connections may take; 256 MiB if not given."),
    field(
        "tcp",
        Shape::TcpSettings { head: false, base: false },
        "Cells of the row, and other settings of TCP, as in a scenario's [tcp].",
    ),
];
