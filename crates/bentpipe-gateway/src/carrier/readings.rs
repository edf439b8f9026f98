//! What the way to the other box says of itself.

use bentpipe_engine::units::Time;

use super::{Carrier, CarrierStats};
use crate::readings::{Readings, Value};

impl Readings {
    /// Adds what the way to the other box counted.
    pub(crate) fn add_carrier(&mut self, now: Time, carrier: &Carrier, refused_by_kernel: u64) {
        use Value::{Flag, Level, Millis, Text, Total};
        let (all, tunnel) = (self, carrier.tunnel());
        all.add("", "up", "bentpipe_gateway_link_up", "Whether there is a link to the peer.", Flag(carrier.is_up()));

        let peer = Text(tunnel.endpoint().map(|at| at.to_string()));
        all.add("tunnel", "peer", "bentpipe_gateway_peer_info", "Where the peer is.", peer);
        let cipher = Text(tunnel.cipher().map(|cipher| cipher.name().to_owned()));
        all.add("tunnel", "cipher", "bentpipe_gateway_cipher_info", "What data is sealed by.", cipher);
        let silence = Millis(Some(now.saturating_since(tunnel.heard_at())));
        let help = "Time since the peer was heard.";
        all.add("tunnel", "heard_ms_ago", "bentpipe_gateway_peer_silence_seconds", help, silence);
        let counted = tunnel.stats();
        for (key, metric, help, count) in [
            ("sent", "bentpipe_gateway_datagrams_sent_total", "Datagrams sealed.", counted.sent),
            ("received", "bentpipe_gateway_datagrams_received_total", "Datagrams opened.", counted.received),
            ("handshakes", "bentpipe_gateway_handshakes_total", "Handshakes done.", counted.handshakes),
            (
                "garbage",
                "bentpipe_gateway_datagrams_garbage_total",
                "Datagrams that were not the tunnel's.",
                counted.garbage,
            ),
            (
                "refused",
                "bentpipe_gateway_datagrams_refused_total",
                "Datagrams that were not authentic, or came twice.",
                counted.refused,
            ),
            (
                "unknown",
                "bentpipe_gateway_datagrams_unknown_total",
                "Datagrams of sessions that are not there.",
                counted.unknown,
            ),
            (
                "throttled",
                "bentpipe_gateway_handshakes_throttled_total",
                "Handshakes not answered because there were too many.",
                counted.throttled,
            ),
            (
                "refused_by_kernel",
                "bentpipe_gateway_datagrams_unsent_total",
                "Datagrams for which the kernel had no room.",
                refused_by_kernel,
            ),
        ] {
            all.add("tunnel", key, metric, help, Total(count));
        }

        let layer = carrier.stats();
        layer_readings(all, &layer);
        let waiting = (0..layer.channels.len()).map(|channel| Level(carrier.waiting(channel as u8) as u64));
        let help = "Packets that wait for their first transmission.";
        all.add_by_channel("waiting", "bentpipe_gateway_packets_waiting", help, waiting);
        let (told, used) = (carrier.rate_told(), carrier.rate_used());
        let [told, used] = [told, used].map(|rate| Level(rate.map_or(0, |rate| rate.bits_per_second() / 8)));
        let help = "The rate that the sender was told.";
        all.add("satellite", "told_bytes_per_second", "bentpipe_gateway_rate_told_bytes_per_second", help, told);
        let help = "The rate that the sender keeps to.";
        all.add("satellite", "used_bytes_per_second", "bentpipe_gateway_rate_used_bytes_per_second", help, used);
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
        received_bytes,
        headers_saved,
        unexpanded,
    } = stats;
    let help = "The smoothed round trip of the link.";
    all.add("satellite", "round_trip_ms", "bentpipe_gateway_round_trip_seconds", help, Millis(*srtt));
    for (key, metric, help, count) in [
        ("frames", "bentpipe_gateway_frames_sent_total", "Frames sent.", frames),
        (
            "frame_bytes",
            "bentpipe_gateway_frame_sent_bytes_total",
            "Bytes of frames sent, with all that carries them.",
            frame_bytes,
        ),
        (
            "received_bytes",
            "bentpipe_gateway_packet_received_bytes_total",
            "Bytes of packets from the peer, each counted once.",
            received_bytes,
        ),
        (
            "without_link",
            "bentpipe_gateway_packets_without_link_total",
            "Packets for which there was no link.",
            no_link,
        ),
        ("refused", "bentpipe_gateway_frames_refused_total", "Frames that could not be read.", refused),
        (
            "headers_saved_bytes",
            "bentpipe_gateway_header_saved_bytes_total",
            "Bytes of headers that compression left out, of packets each counted once.",
            headers_saved,
        ),
        (
            "unexpanded",
            "bentpipe_gateway_packets_unexpanded_total",
            "Packets from the peer whose headers could not be expanded.",
            unexpanded,
        ),
    ] {
        all.add("satellite", key, metric, help, Total(*count));
    }
    type Pick = fn(&bentpipe_engine::slacp::ChannelStats) -> u64;
    let picks: [(&'static str, &'static str, &'static str, Pick); 13] = [
        ("packets_sent", "bentpipe_gateway_packets_sent_total", "Packets sent, each counted once.", |channel| {
            channel.sent
        }),
        (
            "sent_bytes",
            "bentpipe_gateway_packet_sent_bytes_total",
            "Bytes of packets sent, their headers compressed, each counted once.",
            |channel| channel.sent_bytes,
        ),
        (
            "packets_delivered",
            "bentpipe_gateway_packets_delivered_total",
            "Packets from the peer passed on.",
            |channel| channel.delivered,
        ),
        ("lost", "bentpipe_gateway_frames_lost_total", "Transmissions that were lost.", |channel| channel.lost),
        ("resent", "bentpipe_gateway_packets_resent_total", "Packets sent again.", |channel| channel.resent),
        ("copies", "bentpipe_gateway_packets_copied_total", "Packets sent again into an idle line.", |channel| {
            channel.copies
        }),
        ("repairs", "bentpipe_gateway_repairs_sent_total", "Repair frames sent.", |channel| channel.repairs),
        (
            "repaired",
            "bentpipe_gateway_packets_repaired_total",
            "Lost packets that repair frames made good at the peer.",
            |channel| channel.repaired,
        ),
        (
            "recovered",
            "bentpipe_gateway_packets_recovered_total",
            "Packets computed here from repair frames.",
            |channel| channel.recovered,
        ),
        ("abandoned", "bentpipe_gateway_packets_abandoned_total", "Packets given up.", |channel| channel.abandoned),
        ("skipped", "bentpipe_gateway_packets_skipped_total", "Packets of the peer that never came.", |channel| {
            channel.skipped
        }),
        ("dropped", "bentpipe_gateway_packets_dropped_total", "Packets for which the queue had no room.", |channel| {
            channel.dropped_full + channel.dropped_early
        }),
        (
            "superseded",
            "bentpipe_gateway_acks_superseded_total",
            "Acknowledgements that waited when a later one said more.",
            |channel| channel.superseded,
        ),
    ];
    for (key, metric, help, pick) in picks {
        all.add_by_channel(key, metric, help, channels.iter().map(|channel| Total(pick(channel))));
    }
}
