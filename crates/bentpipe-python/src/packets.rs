//! Packets as rows: segments at the ends, and all packets at the links.

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder};
use bentpipe_engine::probe::{DropReason, QuicPacket};
use bentpipe_engine::tcp::Segment;
use bentpipe_sim::{Body, Packet, Passage};

use crate::flows::whole;
use crate::table::{Words, columns};

columns! {
    /// Packets, where they are seen.
    Packets {
        time_s: Float64Builder, "Time since the start of the run, seconds.";
        at: Words, "Where: FLOW/sender, FLOW/receiver, or a link.";
        event: Words, "At an end: sent, received. At a link: offered (before its queue), delivered, dropped.";
        flow: Words, "The flow, or FLOW/leg-1 and so on if it is split.";
        forward: BooleanBuilder, "True if it goes from the flow's `from` to its `to`.";
        seq: Int64Builder, "Sequence number relative to the SYN, which is 0; of a datagram its number from 0; QUIC: packet number.";
        len: Int64Builder, "Payload, bytes; QUIC: data of streams; null for datagrams.";
        ack: Int64Builder, "Acknowledgement number, relative to the peer's SYN; QUIC: the largest packet number acknowledged; null for datagrams.";
        window: Int64Builder, "Advertised window, bytes; null for datagrams and QUIC.";
        flags: Words, "Control bits: S, F, R, P, and . for ACK; QUIC: the type of packet; null for datagrams.";
        stream: Int64Builder, "QUIC: the stream of the first data in the packet; null without data, and for others.";
        offset: Int64Builder, "QUIC: offset of that data in its stream, bytes.";
        retransmission: BooleanBuilder, "sent: true if its first byte was sent before; QUIC: if some of its data was.";
        wire_bytes: Int64Builder, "Length on the link, bytes; null at the ends.";
        reason: Words, "dropped: queue-full, early (RED, CoDel), channel, listed or too-long.";
    }
}

/// Appends the fields of a segment.
fn segment(packets: &mut Packets, segment: &Segment) {
    packets.seq.append_value(whole(segment.seq));
    packets.len.append_value(i64::from(segment.len));
    packets.ack.append_value(whole(segment.ack));
    packets.window.append_value(i64::from(segment.window));
    packets.flags.append_value(format!("{:?}", segment.flags));
    packets.stream.append_null();
    packets.offset.append_null();
}

/// Appends the fields of a packet of QUIC.
fn quic(packets: &mut Packets, seen: &QuicPacket) {
    packets.seq.append_value(whole(seen.number));
    packets.len.append_value(i64::from(seen.data));
    packets.ack.append_option(seen.acknowledges.map(whole));
    packets.window.append_null();
    packets.flags.append_value(seen.kind.word());
    packets.stream.append_option(seen.at.map(|(stream, _)| whole(stream)));
    packets.offset.append_option(seen.at.map(|(_, offset)| whole(offset)));
}

/// What an end sends or receives.
#[derive(Clone, Copy)]
pub(crate) enum Seen<'a> {
    /// A segment of TCP or STP.
    Segment(&'a Segment),
    /// A packet of QUIC.
    Quic(&'a QuicPacket),
}

impl Packets {
    /// Appends what is seen at an end. `retransmission` is given if it was sent there.
    pub(crate) fn end(&mut self, time_s: f64, at: &str, seen: Seen<'_>, retransmission: Option<bool>) {
        let (flow, is_from) = match at.strip_suffix("/sender") {
            Some(flow) => (flow, true),
            None => (at.strip_suffix("/receiver").unwrap_or(at), false),
        };
        self.time_s.append_value(time_s);
        self.at.append_value(at);
        self.event.append_value(if retransmission.is_some() { "sent" } else { "received" });
        self.flow.append_value(flow);
        self.forward.append_value(is_from == retransmission.is_some());
        match seen {
            Seen::Segment(seen) => segment(self, seen),
            Seen::Quic(seen) => quic(self, seen),
        }
        self.retransmission.append_option(retransmission);
        self.wire_bytes.append_null();
        self.reason.append_null();
    }

    /// Appends a packet at a link.
    pub(crate) fn link(&mut self, time_s: f64, at: &str, flow: &str, passage: Passage, packet: &Packet) {
        let (event, reason) = match passage {
            Passage::Offered => ("offered", None),
            Passage::Delivered => ("delivered", None),
            Passage::Dropped(reason) => ("dropped", Some(reason)),
        };
        self.time_s.append_value(time_s);
        self.at.append_value(at);
        self.event.append_value(event);
        self.flow.append_value(flow);
        self.forward.append_value(packet.forward);
        match &packet.body {
            Body::Tcp(seen) => segment(self, seen),
            Body::Quic(seen) => quic(self, seen),
            Body::Udp(number) => {
                self.seq.append_value(whole(*number));
                self.len.append_null();
                self.ack.append_null();
                self.window.append_null();
                self.flags.append_null();
                self.stream.append_null();
                self.offset.append_null();
            }
        }
        self.retransmission.append_null();
        self.wire_bytes.append_value(i64::from(packet.wire_len));
        self.reason.append_option(reason.map(word));
    }
}

fn word(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "queue-full",
        DropReason::Early => "early",
        DropReason::Channel => "channel",
        DropReason::Listed => "listed",
        DropReason::TooLong => "too-long",
    }
}
