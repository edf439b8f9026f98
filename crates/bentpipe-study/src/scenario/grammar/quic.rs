//! The keys of a flow's `quic`.

use bentpipe_language::shape::{Counted, Field, Shape, field};

use crate::scenario::model::QuicControl;

/// Number of streams of a flow.
pub(crate) const QUIC_STREAMS: Counted = Counted::new("streams", 1, 1000);

/// Packets that get one ACK.
pub(crate) const ACKED_TOGETHER: Counted = Counted::new("packets", 1, 1_000_000);

/// The settings of a QUIC connection.
pub(crate) const QUIC: &[Field] = &[
    field(
        "congestion_control",
        Shape::Choice(QuicControl::WORDS),
        "Congestion control of both ends. \"cubic\", \"reno\" and \"bbr\" are quinn's. \"linux-cubic\" (with HyStart) and \"cubic-rfc9438\" (with HyStart++) are the controls that TCP has here. \"steady\" is bentpipe's: its window starts as given, grows while no queue is seen, and shrinks only if more than 2 % of a round trip's data is lost. Default: \"cubic\".",
    ),
    field(
        "zero_rtt",
        Shape::Flag,
        "True: the client has connected before and sends data with its first packet. False: after a round trip. Default: false.",
    ),
    field(
        "streams",
        Shape::Count(QUIC_STREAMS),
        "Number of streams among which the data is divided evenly. With `request_response` each request has its own stream. Default: 1.",
    ),
    field(
        "initial_window",
        Shape::SIZE,
        "Initial congestion window. At least two datagrams. Default: the control's own: 12000 B for \"cubic\" and \"reno\" (two datagrams if that is more), 240 kB for \"bbr\", 10 datagrams for the others.",
    ),
    field(
        "initial_rtt",
        Shape::DURATION,
        "Round trip assumed until the first is measured, for pacing and probe timeouts; for example from an earlier connection. Default: 333 ms (RFC 9002).",
    ),
    field(
        "pacing",
        Shape::Flag,
        "True: a window's packets are spread over a round trip, at 1.25 windows per round trip, in bursts of ten packets or more. False: a packet leaves as soon as the window allows. Default: true.",
    ),
    field(
        "unordered",
        Shape::Flag,
        "True: the receiving application takes data as it arrives, like a program that writes a file. False: in order; quinn aborts the connection if more than 1024 pieces of a stream wait for lost ones. Default: false.",
    ),
    field(
        "repair",
        Shape::Probability,
        "Forward error correction by the application: each block of 16 MB is followed by repair symbols for this share of its data. A block is complete as soon as any symbols with the length of its data have arrived. Needs `bytes` and one stream, implies `unordered`. Default: none.",
    ),
    field(
        "receive_window",
        Shape::SIZE,
        "Flow control: data that the receiver admits beyond what its application has read, for the connection and for each stream. Default: eight times what the path holds, in flight and in the queue of the bottleneck, and at least 1.25 MB.",
    ),
    field(
        "send_window",
        Shape::SIZE,
        "Maximum amount of unacknowledged data that the sender keeps. Default: as for `receive_window`.",
    ),
    field(
        "datagram",
        Shape::SIZE,
        "UDP payload of a full packet, from the first on. Default: 1200 B, from which quinn searches for more, up to 1452 B (RFC 8899).",
    ),
    field(
        "ack_frequency",
        Shape::Table(ACK_FREQUENCY),
        "How often the sender asks its peer to acknowledge (draft-ietf-quic-ack-frequency). Default: an ACK for every two packets, delayed by 25 ms at most.",
    ),
    field(
        "scone",
        Shape::Flag,
        "True: both ends send SCONE packets (draft-ietf-scone-protocol), and a receiver follows the advice of links with `throughput_advice`: it limits its window to what this rate delivers in a round trip. Default: false.",
    ),
    field(
        "idle_timeout",
        Shape::DURATION,
        "Time without packets after which the connection ends; it must exceed the round trip. Default: 30 s, as in quinn.",
    ),
    field(
        "encryption",
        Shape::Flag,
        "False: packets are not encrypted, but have the same length. The run is the same, and is computed faster. Default: true.",
    ),
];

/// What a sender asks of its peer's ACKs.
pub(crate) const ACK_FREQUENCY: &[Field] = &[
    field("every", Shape::Count(ACKED_TOGETHER), "Number of packets that get one ACK. Required."),
    field("delay", Shape::DURATION, "Maximum delay of an ACK, at most a round trip or 25 ms. Default: 25 ms."),
    field(
        "at_once",
        Shape::Flag,
        "True: the receiver does this from its first ACK, as agreed on an earlier connection. False: the sender requests it with a frame after the handshake. Default: false.",
    ),
];
