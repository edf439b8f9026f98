//! Link layers, as values.

use bentpipe_engine::link::QueueLimit;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::slacp::classify::Rule;
use bentpipe_engine::slacp::{
    ChannelConfig, Codel, Copies, Fec, Order, Overhead, Release, Repairs, Shortcuts, SlacpConfig,
};
use bentpipe_engine::units::{Duration, Rate};

use super::LinkSpec;

/// A link layer over two links.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSpec {
    /// Its name.
    pub name: String,
    /// The forward and the backward link.
    pub over: [LinkId; 2],
    /// The channels, by number.
    pub channels: Vec<ChannelSpec>,
    /// Maximum delay of the report on an arrival.
    pub report_interval: Duration,
    /// A frame counts as lost once another arrives that was sent this many frames later, or more than a quarter of a round trip later.
    /// 0 is as 1.
    pub reordering: u64,
    /// Release of packets that waited for a repair. `None`: at 1.2 times the link's rate. If all were released at once,
    /// a round trip's worth of packets would cause as many ACKs, and these as many packets again, which is more than
    /// the queue can hold.
    pub release: Option<Release>,
    /// Maximum number of unacknowledged frames of a channel.
    pub window: u32,
    /// True if headers and reports take no time.
    pub weightless: bool,
    /// True if the receiver can identify a damaged frame.
    pub hears_damage: bool,
}

/// A logical channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelSpec {
    /// Its name.
    pub name: String,
    /// Rules. A packet belongs to the channel if any of them matches.
    pub rules: Vec<Rule>,
    /// Its treatment. The queue limit here is only the one in the file; see [`LayerSpec::end`].
    pub config: ChannelConfig,
    /// Its own queue limit, if any.
    pub limit: Option<QueueLimit>,
    /// True if CoDel's times are derived from the link.
    pub auto_codel: bool,
    /// True if the times of copies are derived from the link.
    pub auto_copies: bool,
}

impl LayerSpec {
    /// Default persistence: at a loss of 10 %, one packet in 10^8 is abandoned.
    const TRANSMISSIONS: u32 = 8;

    /// The layer over these two links with the default channels: `urgent` for expedited forwarding, `acks` for bare
    /// acknowledgements, `bulk` for the rest.
    pub fn new(name: &str, over: [LinkId; 2]) -> LayerSpec {
        LayerSpec {
            name: name.to_owned(),
            over,
            channels: default_channels(),
            report_interval: Duration::from_millis(20),
            reordering: 0,
            release: None,
            window: SlacpConfig::MAX_WINDOW,
            weightless: false,
            hears_damage: false,
        }
    }

    /// The settings of the end that sends on `over[side]`.
    pub fn end(&self, links: &[LinkSpec], side: usize) -> SlacpConfig {
        let (link, heard) = (&links[self.over[side].index()].config, &links[self.over[1 - side].index()].config);
        let rtt = self.over.iter().fold(Duration::ZERO, |sum, &over| sum + links[over.index()].config.delay);
        let channel = |spec: &ChannelSpec| {
            let mut config = spec.config;
            config.limit = spec.limit.unwrap_or(link.queue.limit);
            if let (Some(fec), Some(rate), true) = (&mut config.fec, link.rate, config.arq.is_some()) {
                fec.worth = fec.worth.max(one_of_a_round_trip(rate, rtt));
            }
            if spec.auto_codel {
                let target = rtt.max(Codel::DEFAULT.target);
                config.codel = Some(Codel { target, interval: target.saturating_mul(2) });
            }
            if spec.auto_copies {
                // The last copy leaves before the first report of a loss can arrive, after a round trip.
                config.copies = Some(Copies { interval: rtt.div_floor(4), max: 3, only_resent: false });
            }
            config
        };
        let channels = self.channels.iter().map(channel).collect();
        let of_the_line = || heard.rate.map_or(Release::AtOnce, |rate| Release::Paced(six_fifths(rate)));
        SlacpConfig {
            report_interval: self.report_interval,
            reordering: self.reordering,
            release: self.release.unwrap_or_else(of_the_line),
            window: self.window,
            shortcuts: Shortcuts { weightless: self.weightless, hears_damage: self.hears_damage },
            overhead: if link.cells.is_some() { Overhead::Cells } else { Overhead::Bytes(0) },
            ..SlacpConfig::new(link.rate, rtt + Duration::from_millis(1), channels)
        }
    }

    /// The rules of all channels in order, and the default channel.
    pub fn rules(&self) -> (Vec<(Rule, u8)>, u8) {
        let numbered = self.channels.iter().enumerate();
        let rules = numbered.flat_map(|(n, channel)| channel.rules.iter().map(move |&rule| (rule, n as u8))).collect();
        (rules, (self.channels.len() - 1) as u8)
    }
}

/// What a lost packet costs if it is retransmitted: the line is idle for a round trip at most. So a repair frame is worth
/// sending if it completes one of as many blocks as frames fit in that time. On a line of 128 kbit/s over GEO these are 6,
/// and their blocks hold one or two packets.
fn one_of_a_round_trip(rate: Rate, round_trip: Duration) -> f64 {
    FULL_FRAME / (rate.bytes_in_floor(round_trip) as f64).max(FULL_FRAME)
}

fn six_fifths(rate: Rate) -> Rate {
    Rate::from_bits_per_second(rate.bits_per_second() / 5 * 6).unwrap_or(rate)
}

/// Bytes of a full frame.
const FULL_FRAME: f64 = 1500.0;

pub(crate) const PLAIN: ChannelConfig = ChannelConfig::persistent(LayerSpec::TRANSMISSIONS);

/// A block of 60 keeps the overhead low: at a loss of 1 %, 99 of 100 blocks lose at most three frames. It ends after
/// 100 ms, a sixth of a GEO round trip.
pub(crate) const PLAIN_FEC: Fec = Fec {
    block: 60,
    first_block: None,
    interval: Duration::from_millis(100),
    max_overhead: 0.5,
    repairs: Repairs::Prompt,
    worth: Fec::WORTH,
};

fn default_channels() -> Vec<ChannelSpec> {
    //= RFC 3246: expedited forwarding, code point 101110
    let expedited = Rule { dscp: Some(46), ..Rule::default() };
    // Ten voice packets of 20 ms each.
    let fec = Fec { block: 10, interval: Duration::from_millis(200), ..PLAIN_FEC };
    let urgent = ChannelConfig { arq: None, fec: Some(fec), order: Order::None, ..PLAIN };
    let bare = Rule { bare_ack: Some(true), ..Rule::default() };
    let acks = ChannelConfig { fec: None, ..urgent };
    let bulk = ChannelConfig { priority: 1, fec: Some(PLAIN_FEC), ..PLAIN };
    let spec = |name: &str, rules, config| ChannelSpec {
        name: name.to_owned(),
        rules,
        config,
        limit: None,
        // Only TCP builds a standing queue.
        auto_codel: config.arq.is_some(),
        auto_copies: config.arq.is_some(),
    };
    vec![spec("urgent", vec![expedited], urgent), spec("acks", vec![bare], acks), spec("bulk", vec![], bulk)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    /// Without a floor, CoDel would drop all but one packet over a link without delay.
    #[test]
    fn codel_is_not_stricter_than_its_default_target() {
        let of = |delay: &str| {
            let text = format!(
                "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\ndelay = \"{delay}\"\n\
                 [[layers]]\nname = \"arq\"\nover = \"sat\"\n[[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n"
            );
            let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
            scenario.layers[0].end(&scenario.links, 0).channels[2].codel
        };
        let codel = |millis| {
            let target = Duration::from_millis(millis);
            Some(Codel { target, interval: target.saturating_mul(2) })
        };
        assert_eq!((of("0 s"), of("1 ms")), (codel(5), codel(5)));
        assert_eq!((of("3 ms"), of("260 ms")), (codel(6), codel(520)));
    }
}
