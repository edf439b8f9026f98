//! What is known about the satellite link in advance, and the link layer that follows from it.

use alloc::vec::Vec;

use super::sizes::{line_overhead, max_packet};
use crate::link::QueueLimit;
use crate::slacp::classify::Rule;
use crate::slacp::{
    Arq, ChannelConfig, Codel, Copies, Fec, Order, Overhead, Probing, Queueing, RateControl, Release, Repairs,
    SlacpConfig,
};
use crate::units::{Bytes, Duration, Rate};

/// The link, as seen by the end that sends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Satellite {
    /// Rate at which this end may send, including IP and UDP headers.
    pub rate: Rate,
    /// Round-trip time.
    pub round_trip: Duration,
    /// The longest IP packet that passes without being fragmented.
    pub path_mtu: u16,
    /// True if the tunnel's datagrams have IPv6 headers.
    pub over_ipv6: bool,
    /// A frame counts as lost once another arrives that was sent this many frames later, or more than a quarter of a round trip later.
    /// 0 is as 1.
    pub reordering: u64,
    /// True if the link is shared with other traffic.
    pub shared: bool,
}

/// A layer over the link, with the rules that choose a packet's channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// The settings of its ends.
    pub config: SlacpConfig,
    /// Rules that assign packets to channels.
    pub rules: Vec<(Rule, u8)>,
    /// The channel of all other packets.
    pub default_channel: u8,
    /// True if packet headers are compressed.
    pub compresses: bool,
}

/// Maximum delay of a poll, normally, on a machine that keeps up.
const CATCH_UP: Duration = Duration::from_millis(5);
/// The outage that the layer endures without treating frames sent before it as lost: the duration of a blocked line of
/// sight.
const PATIENCE: Duration = Duration::from_millis(500);
/// Pauses between probes of a silent peer double up to this on a shared link, since the silence may be due to congestion (Linux's
/// smallest `tcp_rto_max_ms`). On a dedicated line a frame per timeout harms nobody, and the layer above waits no longer than necessary.
const SHARED_PAUSE: Duration = Duration::from_secs(1);
/// A report takes some 60 bytes: at this interval, a thousandth of 25 Mbit/s. The interval is a thirtieth of a GEO
/// round trip.
const REPORT_INTERVAL: Duration = Duration::from_millis(20);
/// Blocks of 60 lose at most three frames in 99 of 100 cases at a loss of 1 %.
const FEC: Fec = Fec {
    block: 60,
    first_block: None,
    interval: Duration::from_millis(100),
    max_overhead: 0.5,
    repairs: Repairs::Idle,
    worth: Fec::WORTH,
};
/// Time for which the line sends the first block of a flight in `link`, if that has at least [`MIN_FIRST_BLOCK`]
/// frames. HyStart takes it for a queue if all ACKs of a flight come 16 ms late (Linux, round trips of 128 ms or more).
const FIRST_BLOCK: Duration = Duration::from_millis(8);
const MIN_FIRST_BLOCK: u64 = 10;
/// Maximum number of frames in a block of `link`.
const BLOCK: u8 = 100;
/// Repair frames of `split` go into an idle line, so a repair frame is worth sending even if only one block in 10^5
/// needs it. A round trip of 250 Mbit/s and 650 ms has 240 blocks.
const IDLE_WORTH: f64 = 1e-5;
/// Maximum transmissions of packets that their end hosts would eventually retransmit: at a loss of 10 %, one in 10^8 is
/// abandoned.
const TRANSMISSIONS: u32 = 8;

/// Share of the line, in percent, for urgent packets while other packets wait: anyone may mark a packet as urgent.
const URGENT_SHARE: u8 = 50;

const CHANNEL: ChannelConfig =
    ChannelConfig { fec: Some(FEC), resends_oldest_first: true, ..ChannelConfig::reliable() };

impl Satellite {
    /// The longest packet that the layer carries.
    pub fn max_packet(&self) -> u16 {
        max_packet(self.path_mtu, self.over_ipv6)
    }

    /// Bytes that a stream needs in flight and at its receiver to fill the link while a lost packet, and its lost
    /// retransmission, delay those behind it: six bandwidth-delay products, and at least 1 MiB. A packet that is lost
    /// twice arrives two and a half round trips late. Credit takes another half, and is announced in quarters of the
    /// window.
    pub fn window(&self) -> u64 {
        (6 * self.rate.bytes_in_floor(self.round_trip)).max(1 << 20)
    }

    /// Amount of `memory` from which on a lost packet does not stall a stream of `split` that fills the link: eight
    /// bandwidth-delay products, half of which a window may take. In simulations of 100 MB over 250 Mbit/s and 650 ms,
    /// the full speed is reached from 6.6 products on at a loss of 1 %, and from 8.3 on at 5 %
    /// (`docs/explanation/gateway-measurements.md`, "Memory").
    pub fn memory(&self) -> u64 {
        8 * self.rate.bytes_in_floor(self.round_trip)
    }

    /// How long after a packet its repair frames may arrive: a round trip (by then it is known what was lost), plus the
    /// age of a block and a report.
    fn repairable(&self) -> Duration {
        self.round_trip + FEC.interval.saturating_mul(2)
    }

    fn layer(&self, channels: Vec<ChannelConfig>) -> SlacpConfig {
        SlacpConfig {
            rate_control: if self.shared { RateControl::Shared } else { RateControl::Provisioned },
            report_interval: REPORT_INTERVAL,
            reordering: self.reordering,
            overhead: Overhead::Bytes(line_overhead(self.over_ipv6)),
            catch_up: CATCH_UP,
            repairable: self.repairable(),
            patience: PATIENCE,
            probing: Probing::Steady(if self.shared { SHARED_PAUSE } else { Duration::ZERO }),
            ..SlacpConfig::new(Some(self.rate), self.round_trip + REPORT_INTERVAL, channels)
        }
    }

    /// The layer for messages of streams: all of them arrive, and those of a stream in order. It has no queue of its
    /// own, because the multiplexer has one.
    pub fn for_streams(&self) -> Layer {
        // A lost retransmission costs another round trip, and no repair frame protects it.
        let copies = Copies { interval: REPORT_INTERVAL, max: 2, only_resent: true };
        let fec = Some(Fec { worth: IDLE_WORTH, ..FEC });
        let layer = self.layer(vec![ChannelConfig { copies: Some(copies), fec, ..CHANNEL }]);
        Layer { config: layer, rules: Vec::new(), default_channel: 0, compresses: false }
    }

    /// The layer for IP packets. Small and urgent packets have a channel of their own, which goes first for up to half
    /// of the line.
    pub fn for_packets(&self) -> Layer {
        //= RFC 3246: expedited forwarding, code point 101110
        let expedited = Rule { dscp: Some(46), ..Rule::default() };
        let echo = [1, 58].map(|protocol| Rule { protocol: Some(protocol), ..Rule::default() });
        let names = Rule { port: Some(53), ..Rule::default() };
        let bare = Rule { bare_ack: Some(true), ..Rule::default() };
        let product = self.rate.bytes_in_floor(self.round_trip).max(64 << 10);
        let room = QueueLimit::Bytes(Bytes::new(product));
        let urgent = ChannelConfig { arq: None, order: Order::None, limit: room, queueing: Queueing::Hosts, ..CHANNEL };
        let urgent = ChannelConfig { fec: Some(Fec { block: 10, repairs: Repairs::Prompt, ..FEC }), ..urgent };
        let acks = ChannelConfig { fec: None, filters_acks: true, ..urgent };
        //= RFC 8289 §4.3: an interval that most round trips of the whole path do not exceed
        // TCP needs a standing queue of a round trip to fill the line after it has halved its window, and to keep it
        // busy while a retransmission is on its way. Another half leaves it room to grow.
        let target = self.round_trip.saturating_mul(3).div_floor(2);
        let codel = Codel { target, interval: self.round_trip.saturating_mul(2) };
        // If a repair doubles the round trip that TCP sees, TCP times out or takes the delay for congestion (HyStart).
        // This matters early in slow start, when the line is mostly idle.
        let copies = Copies { interval: self.round_trip.div_floor(4), max: 1, only_resent: false };
        let frames = self.rate.bytes_in_floor(FIRST_BLOCK) / u64::from(self.path_mtu);
        let first_block = Some(frames.clamp(MIN_FIRST_BLOCK, BLOCK.into()) as u8);
        let interval = self.round_trip.div_floor(4);
        let fec = Fec { block: BLOCK, first_block, interval, repairs: Repairs::Short, ..FEC };
        let bulk = ChannelConfig {
            arq: Some(Arq { transmissions: Some(TRANSMISSIONS) }),
            copies: Some(copies),
            fec: Some(fec),
            priority: 1,
            limit: QueueLimit::Bytes(Bytes::new(3 * product)),
            codel: Some(codel),
            queueing: Queueing::Hosts,
            ..CHANNEL
        };
        let rules = [expedited, echo[0], echo[1], names].map(|rule| (rule, 0)).into_iter().chain([(bare, 1)]).collect();
        // Packets that waited for a repair are delivered all at once and answered at once, by few ACKs since the other
        // box filters them.
        let layer = SlacpConfig {
            release: Release::Grouped,
            urgent_share: Some(URGENT_SHARE),
            ..self.layer(vec![urgent, acks, bulk])
        };
        Layer { config: layer, rules, default_channel: 2, compresses: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In 8 ms 50 Mbit/s carry 33 packets of 1500 bytes, 10 Mbit/s 6, and a gigabit 666.
    #[test]
    fn first_blocks_by_hand() {
        let first_block = |mbits: u64| {
            let rate = Rate::from_bits_per_second(1_000_000 * mbits).expect("not zero");
            let round_trip = Duration::from_millis(600);
            let satellite =
                Satellite { rate, round_trip, path_mtu: 1500, over_ipv6: false, reordering: 0, shared: false };
            satellite.for_packets().config.channels[2].fec.and_then(|fec| fec.first_block)
        };
        assert_eq!([10, 50, 1000].map(first_block), [Some(10), Some(33), Some(100)]);
    }
}
