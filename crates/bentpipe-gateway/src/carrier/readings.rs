//! The readings of the path to the other box.

use bentpipe_engine::units::Time;

use super::{Carrier, CarrierStats};
use crate::readings::{Readings, Value};

impl Readings {
    /// Adds the counters of the path to the other box.
    pub(crate) fn add_carrier(&mut self, now: Time, carrier: &Carrier) {
        use Value::{Flag, Level, Millis, Text, Total};
        let (all, tunnel) = (self, carrier.tunnel());
        all.add(
            "",
            "link_up",
            "bentpipe_gateway_link_up",
            "1 while the link to the peer is up.",
            Flag(carrier.is_up()),
        );

        let peer = Text(tunnel.endpoint().map(|at| at.to_string()));
        // For a peer with a name, the label `peer` is the name.
        let key = if all.has_peer() { "endpoint" } else { "peer" };
        all.add("tunnel", key, "bentpipe_gateway_peer_info", "Address of the peer, as a label.", peer);
        let help = "1 if the peer has answered from that address; until then only little is sent there.";
        all.add("tunnel", "address_proven", "bentpipe_gateway_peer_address_proven", help, Flag(tunnel.is_proven()));
        let other = Text(tunnel.other_shape().map(|shape| shape.to_string()));
        let help = "Shape of the peer, as a label, if it differs from this box's and therefore keeps the link down.";
        all.add("tunnel", "other_shape", "bentpipe_gateway_peer_other_shape_info", help, other);
        let cipher = Text(tunnel.cipher().map(|cipher| cipher.name().to_owned()));
        all.add("tunnel", "cipher", "bentpipe_gateway_cipher_info", "Cipher of the tunnel, as a label.", cipher);
        let silence = Millis(Some(now.saturating_since(tunnel.heard_at())));
        let help = "Time since the last packet from the peer.";
        all.add("tunnel", "heard_ms_ago", "bentpipe_gateway_peer_silence_seconds", help, silence);
        let help = "Known MTU of the path to the peer.";
        let mtu = Level(carrier.path_mtu().into());
        all.add("tunnel", "path_mtu_bytes", "bentpipe_gateway_path_mtu_bytes", help, mtu);
        let help = "1 if probes have found the MTU of the path; 0 while the MTU of the settings is assumed.";
        let is_known = Flag(carrier.path_mtu_is_known());
        all.add("tunnel", "path_mtu_known", "bentpipe_gateway_path_mtu_known", help, is_known);
        let counted = tunnel.stats();
        for (key, metric, help, count) in [
            ("sent", "bentpipe_gateway_datagrams_sent_total", "Datagrams encrypted and sent.", counted.sent),
            (
                "received",
                "bentpipe_gateway_datagrams_received_total",
                "Datagrams received and decrypted.",
                counted.received,
            ),
            ("handshakes", "bentpipe_gateway_handshakes_total", "Handshakes completed.", counted.handshakes),
            (
                "garbage",
                "bentpipe_gateway_datagrams_garbage_total",
                "Received datagrams that do not belong to the tunnel.",
                counted.garbage,
            ),
            (
                "refused",
                "bentpipe_gateway_datagrams_refused_total",
                "Received datagrams that were forged or replayed.",
                counted.refused,
            ),
            (
                "unknown",
                "bentpipe_gateway_datagrams_unknown_total",
                "Received datagrams of unknown sessions.",
                counted.unknown,
            ),
            (
                "replayed",
                "bentpipe_gateway_handshakes_replayed_total",
                "First messages of handshakes that arrived twice.",
                counted.replayed,
            ),
            (
                "throttled",
                "bentpipe_gateway_handshakes_throttled_total",
                "First messages of handshakes not read because of the rate limit.",
                counted.throttled,
            ),
            (
                "cookies",
                "bentpipe_gateway_cookies_sent_total",
                "Cookies sent to a peer to prove its address or the freshness of its handshake.",
                counted.cookies,
            ),
        ] {
            all.add("tunnel", key, metric, help, Total(count));
        }
        let layer = carrier.stats();
        layer_readings(all, &layer);
        let waiting = (0..layer.channels.len()).map(|channel| Level(carrier.waiting(channel as u8) as u64));
        let help = "Packets waiting for their first transmission.";
        all.add_by_channel("waiting", "bentpipe_gateway_packets_waiting", help, waiting);
        let help = "Memory of packets that are queued, in flight to the peer, or received from it and held until earlier ones arrive.";
        let held = Level(carrier.held_bytes());
        all.add("satellite", "held_bytes", "bentpipe_gateway_packets_held_bytes", help, held);
        let help = "Memory of the contexts of header compression.";
        let contexts = Level(carrier.context_bytes());
        all.add("satellite", "context_bytes", "bentpipe_gateway_contexts_held_bytes", help, contexts);
        let (told, used) = (carrier.rate_told(), carrier.rate_used());
        let [told, used] = [told, used].map(|rate| Level(rate.map_or(0, |rate| rate.bits_per_second() / 8)));
        let help = "Configured rate of the sender.";
        all.add("satellite", "told_bytes_per_second", "bentpipe_gateway_rate_told_bytes_per_second", help, told);
        let help = "Rate that the sender uses now.";
        all.add("satellite", "used_bytes_per_second", "bentpipe_gateway_rate_used_bytes_per_second", help, used);
        let help = "1 if the sender shares the link (`satellite.shared`): the rate that it uses is then its share.";
        all.add("satellite", "shared", "bentpipe_gateway_rate_shared", help, Flag(carrier.is_shared()));
    }
}

pub(crate) fn layer_readings(all: &mut Readings, stats: &CarrierStats) {
    use Value::{Millis, Total};
    let CarrierStats {
        channels,
        frames,
        frame_bytes,
        srtt,
        no_link,
        refused,
        no_room,
        received_bytes,
        headers_saved,
        unexpanded,
        cut,
        black_holes,
    } = stats;
    let help = "Smoothed round-trip time of the link; absent until measured.";
    all.add("satellite", "round_trip_ms", "bentpipe_gateway_round_trip_seconds", help, Millis(*srtt));
    for (key, metric, help, count) in [
        ("frames", "bentpipe_gateway_frames_sent_total", "Frames sent.", frames),
        (
            "frame_bytes",
            "bentpipe_gateway_frame_sent_bytes_total",
            "Bytes of frames sent, with tunnel, UDP and IP headers.",
            frame_bytes,
        ),
        (
            "received_bytes",
            "bentpipe_gateway_packet_received_bytes_total",
            "Bytes of packets received from the peer, without repetitions.",
            received_bytes,
        ),
        (
            "without_link",
            "bentpipe_gateway_packets_without_link_total",
            "Packets dropped because the link was down.",
            no_link,
        ),
        ("refused", "bentpipe_gateway_frames_refused_total", "Malformed frames received.", refused),
        (
            "no_room",
            "bentpipe_gateway_frames_without_room_total",
            "Frames of the peer not accepted because `memory` was full. The peer retransmits them.",
            no_room,
        ),
        (
            "headers_saved_bytes",
            "bentpipe_gateway_header_saved_bytes_total",
            "Bytes of headers saved by compression, without repetitions.",
            headers_saved,
        ),
        (
            "unexpanded",
            "bentpipe_gateway_packets_unexpanded_total",
            "Packets from the peer whose headers could not be decompressed.",
            unexpanded,
        ),
        (
            "frames_cut",
            "bentpipe_gateway_frames_cut_total",
            "Frames sent in parts because the path MTU was too small.",
            cut,
        ),
        (
            "black_holes",
            "bentpipe_gateway_black_holes_total",
            "Number of times that the path stopped carrying datagrams of a length that it had carried.",
            black_holes,
        ),
    ] {
        all.add("satellite", key, metric, help, Total(*count));
    }
    type Pick = fn(&bentpipe_engine::slacp::ChannelStats) -> u64;
    let picks: [(&'static str, &'static str, &'static str, Pick); 13] = [
        ("packets_sent", "bentpipe_gateway_packets_sent_total", "Packets sent, without repetitions.", |channel| {
            channel.sent
        }),
        (
            "sent_bytes",
            "bentpipe_gateway_packet_sent_bytes_total",
            "Bytes of packets sent, with compressed headers, without repetitions.",
            |channel| channel.sent_bytes,
        ),
        (
            "packets_delivered",
            "bentpipe_gateway_packets_delivered_total",
            "Packets from the peer delivered.",
            |channel| channel.delivered,
        ),
        ("lost", "bentpipe_gateway_frames_lost_total", "Lost transmissions.", |channel| channel.lost),
        ("resent", "bentpipe_gateway_packets_resent_total", "Packets retransmitted.", |channel| channel.resent),
        (
            "copies",
            "bentpipe_gateway_packets_copied_total",
            "Copies of packets sent while the line was idle.",
            |channel| channel.copies,
        ),
        ("repairs", "bentpipe_gateway_repairs_sent_total", "Repair frames (FEC) sent.", |channel| channel.repairs),
        (
            "repaired",
            "bentpipe_gateway_packets_repaired_total",
            "Lost packets that the peer recovered from repair frames.",
            |channel| channel.repaired,
        ),
        (
            "recovered",
            "bentpipe_gateway_packets_recovered_total",
            "Lost packets recovered here from repair frames.",
            |channel| channel.recovered,
        ),
        ("abandoned", "bentpipe_gateway_packets_abandoned_total", "Packets abandoned.", |channel| channel.abandoned),
        ("skipped", "bentpipe_gateway_packets_skipped_total", "Packets of the peer that never arrived.", |channel| {
            channel.skipped
        }),
        (
            "dropped",
            "bentpipe_gateway_packets_dropped_total",
            "Packets dropped at the queue, because it was full or by CoDel.",
            |channel| channel.dropped_full + channel.dropped_early,
        ),
        ("superseded", "bentpipe_gateway_acks_superseded_total", "Waiting ACKs replaced by a later one.", |channel| {
            channel.superseded
        }),
    ];
    for (key, metric, help, pick) in picks {
        all.add_by_channel(key, metric, help, channels.iter().map(|channel| Total(pick(channel))));
    }
}
