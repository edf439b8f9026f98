//! The settings of the paper's table cells, figures and claims.
//!
//! They are the scenario files `scenarios/transat*.toml` with changed settings, as by `--set`. The files give the
//! source of each number: the paper, or a search with ns-2 over all of the paper's tables.

use std::fmt;

use bentpipe_engine::link::{ChannelConfig, ExtraDelay, LossConfig};
use bentpipe_engine::units::{Duration, Probability};
use bentpipe_study::scenario::{FlowKind, LinkSpec, Scenario, Spread};

use super::layer::{BOTTLENECK, Layer};
use super::variant::Variant;

const ONE_FLOW: &str = include_str!("../../scenarios/transat.toml");
const ONE_FLOW_AND_CBR: &str = include_str!("../../scenarios/transat-cbr.toml");
const FOUR_FLOWS_AND_CBR: &str = include_str!("../../scenarios/transat-four-flows.toml");
/// The scenario with the lengths and gaps of error bursts.
const BURSTS: &str = include_str!("../../scenarios/transat-bursts.toml");

/// Error bursts on the satellite link, in the direction of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bursts {
    /// None.
    None,
    /// As in tables 3 to 14.
    Random {
        /// Packets lost in a burst, percent.
        loss_percent: u8,
        /// Extra delay in a burst.
        extra_ms: u16,
    },
    /// One burst at a known time.
    Forced {
        /// Its start and its length, microseconds.
        at: (u64, u64),
        /// Packets lost in it, percent.
        loss_percent: u8,
        /// Delay added in it.
        extra_ms: u16,
    },
}

/// A setting of the paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    variant: Variant,
    flows: u8,
    segments: u32,
    buffer: u32,
    cbr_kbps: Option<u32>,
    scaling: bool,
    bursts: Bursts,
    max_burst: Option<u32>,
    starts_within_ms: Option<u16>,
    frto: bool,
    shared_with_second: bool,
    tick_ms: Option<u16>,
    layer: Option<Layer>,
    voice: Option<Voice>,
}

/// The channel of a voice flow of 64 kbit/s beside the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// In the layer's urgent channel.
    Urgent,
    /// In the data's channel.
    WithData,
}

impl Setting {
    /// Payload of a packet with the paper's MTU of 1000 B.
    pub(super) const PAYLOAD: u64 = 960;
    /// 64 KB without window scaling: ns-2's tables fit best with 62 segments.
    pub(super) const WINDOW_WITHOUT_SCALING: u32 = 62;
    /// Time between the starts of successive transfers; the slowest takes some 65 s.
    const PAUSE: Duration = Duration::from_secs(200);
    /// RED's min threshold, packets: ns-2's automatic setting (`thresh_ 0`).
    pub(super) const RED_MIN_THRESHOLD: f64 = 5.0;
    /// Round trip of a full segment and its ACK in empty queues, seconds: 2 (255 + 2 * 10) ms of propagation, 4 ms
    /// and twice 0.8 ms of transmission; the ACK's 0.2 ms.
    pub(super) const BASE_RTT: f64 = 0.5559;

    /// One Reference flow of 1 MB, queue of 50 packets, window scaling on, nothing else.
    pub(super) fn one_flow() -> Self {
        Setting {
            variant: Variant::Ref,
            flows: 1,
            segments: 1042,
            buffer: 50,
            cbr_kbps: None,
            scaling: true,
            bursts: Bursts::None,
            max_burst: None,
            starts_within_ms: None,
            frto: false,
            shared_with_second: false,
            tick_ms: None,
            layer: None,
            voice: None,
        }
    }

    /// The same with four flows of 250 KB.
    pub(super) fn four_flows() -> Self {
        Setting { flows: 4, segments: 261, ..Self::one_flow() }
    }

    pub(super) fn with_variant(self, variant: Variant) -> Self {
        Setting { variant, ..self }
    }

    /// Segments in each transfer.
    pub(super) fn with_segments(self, segments: u32) -> Self {
        Setting { segments, ..self }
    }

    /// Queue before the satellite link as the paper counts it, with the packet in transmission.
    pub(super) fn with_buffer(self, packets: u32) -> Self {
        Setting { buffer: packets, ..self }
    }

    pub(super) fn with_cbr(self, kbps: u32) -> Self {
        Setting { cbr_kbps: Some(kbps), ..self }
    }

    pub(super) fn without_scaling(self) -> Self {
        Setting { scaling: false, ..self }
    }

    /// Bursts at random times. An extra delay of 0 ms is the paper's link without S-LACP.
    pub(super) fn with_bursts(self, loss_percent: u8, extra_ms: u16) -> Self {
        Setting { bursts: Bursts::Random { loss_percent, extra_ms }, ..self }
    }

    /// The paper's bursts with 100 % loss, under S-LACP itself.
    pub(super) fn with_lost_bursts_under(self, layer: Layer) -> Self {
        Setting { layer: Some(layer), ..self.with_bursts(100, 0) }
    }

    /// A voice flow (G.711: 160 B every 20 ms, 200 B with IP, UDP and RTP) beside one transfer.
    pub(super) fn with_voice(self, voice: Voice) -> Self {
        Setting { cbr_kbps: Some(80), voice: Some(voice), ..self }
    }

    /// A single burst. `at` is its start and length in microseconds.
    pub(super) fn with_burst_at(self, at: (u64, u64), loss_percent: u8, extra_ms: u16) -> Self {
        Setting { bursts: Bursts::Forced { at, loss_percent, extra_ms }, ..self }
    }

    pub(super) fn without_bursts(self) -> Self {
        Setting { bursts: Bursts::None, ..self }
    }

    /// Max segments sent for one ACK.
    pub(super) fn with_max_burst(self, segments: u32) -> Self {
        Setting { max_burst: Some(segments), ..self }
    }

    /// Transfers start at random times within this interval instead of together.
    pub(super) fn with_starts_within(self, milliseconds: u16) -> Self {
        Setting { starts_within_ms: Some(milliseconds), ..self }
    }

    pub(super) fn with_frto(self) -> Self {
        Setting { frto: true, ..self }
    }

    /// Each flow is followed by another one to the same host, which inherits its ssthresh (RFC 9040).
    pub(super) fn shared_with_second(self) -> Self {
        Setting { shared_with_second: true, ..self }
    }

    /// Tick of the sender's clock.
    pub(super) fn with_tick(self, milliseconds: u16) -> Self {
        Setting { tick_ms: Some(milliseconds), ..self }
    }

    /// Length of a flow in the KB of the paper's throughputs.
    pub(super) fn kilobytes_per_flow(&self) -> f64 {
        // 1042 and 261 segments carry 1 MB and 250 KB; the last segment is not full.
        (self.segments as f64 * Self::PAYLOAD as f64 / 1e4).floor() * 10.0
    }

    /// The base file of the setting, and the changes.
    fn source(&self) -> (&'static str, Vec<(String, String)>) {
        let file = match (self.flows, self.cbr_kbps) {
            (1, None) => ONE_FLOW,
            (1, Some(_)) => ONE_FLOW_AND_CBR,
            _ => FOUR_FLOWS_AND_CBR,
        };
        let mut set = vec![("tcp.variant", self.variant.row().to_owned())];
        set.push(("flows.data.bytes", format!("{} segments", self.segments)));
        if self.variant.red() {
            // ns-2's RED drops a packet if `buffer` packets wait, its DropTail if one less waits.
            set.push(("links.sat.forward.queue.limit", format!("{} packets", self.buffer)));
            set.push(("links.sat.forward.queue.discipline", "red".into()));
            set.push(("links.sat.forward.queue.weight", format!("{:.4e}", red_weight(0.255, 500.0))));
        } else {
            set.push(("links.sat.forward.queue.limit", format!("{} packets", self.buffer - 1)));
        }
        if let Some(kbps) = self.cbr_kbps {
            set.push(("flows.cbr.rate", format!("{kbps} kbit/s")));
        }
        if let Some(voice) = self.voice {
            set.push(("flows.cbr.packet", "200 B".into()));
            set.push(("flows.cbr.dscp", if voice == Voice::Urgent { "46" } else { "0" }.into()));
        }
        if !self.scaling {
            set.push(("tcp.window_clamp", format!("{} segments", Self::WINDOW_WITHOUT_SCALING)));
        }
        if let Some(segments) = self.max_burst {
            set.push(("tcp.max_burst", format!("{segments} segments")));
        }
        if self.frto {
            set.push(("tcp.frto", "true".into()));
        }
        if self.shared_with_second {
            set.push(("tcp.tcb_sharing", "ssthresh".into()));
        }
        if let Some(ms) = self.tick_ms {
            set.push(("tcp.rto.tick", format!("{ms} ms")));
        }
        (file, set.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// The scenario; the run sets the seed.
    pub(super) fn scenario(&self) -> Scenario {
        self.scenario_with(&[])
    }

    /// The scenario with further changes, as by `--set`.
    pub(super) fn scenario_with(&self, more: &[(String, String)]) -> Scenario {
        let (file, mut set) = self.source();
        set.extend_from_slice(more);
        let mut scenario = read(file, &set);
        scenario.description = self.to_string();
        if self.cbr_kbps.is_none() {
            scenario.flows.retain(|flow| matches!(flow.kind, FlowKind::Tcp(_)));
        }
        if self.shared_with_second {
            let seconds: Vec<_> =
                scenario.flows.iter().filter(|flow| matches!(flow.kind, FlowKind::Tcp(_))).cloned().collect();
            scenario.flows.extend(seconds.into_iter().map(|mut flow| {
                flow.name.push_str("-second");
                flow.start += Self::PAUSE;
                flow
            }));
        }
        if let Some(ms) = self.starts_within_ms {
            let width = Duration::from_millis(u64::from(ms));
            for flow in scenario.flows.iter_mut().filter(|flow| matches!(flow.kind, FlowKind::Tcp(_))) {
                flow.spread = Some(Spread { earliest: Duration::ZERO, width });
            }
        }
        if let Some(layer) = self.layer {
            layer.cover(&mut scenario);
        }
        let (channel, loss_percent, extra_ms) = match self.bursts {
            Bursts::None => return scenario,
            Bursts::Random { loss_percent, extra_ms } => {
                (bottleneck(&mut read(BURSTS, &[])).config.channel.clone(), loss_percent, extra_ms)
            }
            Bursts::Forced { at: (start, length), loss_percent, extra_ms } => {
                let burst = (Duration::from_micros(start), Duration::from_micros(length));
                (ChannelConfig::Schedule(vec![burst]), loss_percent, extra_ms)
            }
        };
        let link = &mut bottleneck(&mut scenario).config;
        let packet = Probability::new(f64::from(loss_percent) / 100.0).expect("at most 100 percent");
        link.channel = channel;
        link.bad = LossConfig { packet, bit: Probability::ZERO };
        link.extra_delay = ExtraDelay(Duration::from_millis(u64::from(extra_ms)));
        scenario
    }
}

/// ns-2's automatic RED weight (`q_weight_ -1`, its default): the average follows the queue over ten round trips. The
/// round trip is three times the link's delay plus the transmission of a packet of mean length, at least 0.1 s. `delay`
/// in seconds; packets of mean length (500 B) per second.
fn red_weight(delay: f64, packets_per_second: f64) -> f64 {
    let round_trip = (3.0 * (delay + 1.0 / packets_per_second)).max(0.1);
    1.0 - (-1.0 / (10.0 * round_trip * packets_per_second)).exp()
}

fn read(file: &str, set: &[(String, String)]) -> Scenario {
    Scenario::parse(file, "scenarios/transat", set).expect("a test parses each file")
}

pub(super) fn bottleneck(scenario: &mut Scenario) -> &mut LinkSpec {
    scenario.links.iter_mut().find(|link| link.name == BOTTLENECK).expect("each file has this link")
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments = self.segments;
        write!(f, "{}, {} x {segments} segments, {} packets", self.variant.name(), self.flows, self.buffer)?;
        if let Some(kbps) = self.cbr_kbps {
            write!(f, ", CBR {} Mbit/s", f64::from(kbps) / 1000.0)?;
        }
        if !self.scaling {
            write!(f, ", no window scaling")?;
        }
        if let Some(ms) = self.starts_within_ms {
            write!(f, ", starts within {ms} ms")?;
        }
        if self.frto {
            write!(f, ", F-RTO")?;
        }
        if let Some(voice) = self.voice {
            write!(f, ", voice {}", if voice == Voice::Urgent { "in its own channel" } else { "with the data" })?;
        }
        if let Some(layer) = &self.layer {
            write!(f, ", {layer}")?;
        }
        match &self.bursts {
            Bursts::None => Ok(()),
            Bursts::Random { loss_percent, extra_ms } => {
                write!(f, ", bursts with {loss_percent} % loss and {extra_ms} ms")
            }
            Bursts::Forced { at, loss_percent, extra_ms } => write!(
                f,
                ", a burst at {:.3} s of {:.3} s with {loss_percent} % loss and {extra_ms} ms",
                at.0 as f64 / 1e6,
                at.1 as f64 / 1e6
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_engine::link::{Discipline, QueueLimit};
    use bentpipe_engine::tcp::Daass;

    fn settings() -> impl Iterator<Item = Setting> {
        let bases = [
            Setting::one_flow(),
            Setting::one_flow().with_cbr(1700),
            Setting::four_flows(),
            Setting::four_flows().with_cbr(800),
        ];
        bases.into_iter().flat_map(|base| Variant::ALL.map(|variant| base.clone().with_variant(variant)))
    }

    #[test]
    fn each_setting_can_be_read() {
        for setting in settings() {
            let all = setting.clone().without_scaling().with_bursts(25, 550).with_max_burst(4).with_frto();
            for (setting, flows) in [(setting, 1), (all.shared_with_second(), 2)] {
                let scenario = setting.scenario();
                let tcp = scenario.flows.iter().filter(|f| matches!(f.kind, FlowKind::Tcp(_))).count();
                assert_eq!(tcp, flows * setting.flows as usize, "{setting}");
                assert_eq!(scenario.flows.len() - tcp, setting.cbr_kbps.is_some() as usize, "{setting}");
            }
        }
    }

    #[test]
    fn what_is_set_arrives() {
        let setting = Setting::four_flows().with_variant(Variant::EnhRed).without_scaling().with_bursts(25, 550);
        let mut scenario = setting.scenario();
        let link = &bottleneck(&mut scenario).config;
        assert_eq!(link.queue.limit, QueueLimit::Packets(50));
        assert!(
            matches!(link.queue.discipline, Discipline::Red(red) if red.min_threshold == Setting::RED_MIN_THRESHOLD)
        );
        assert_eq!((link.bad.packet.get(), link.extra_delay.0), (0.25, Duration::from_millis(550)));
        assert!(matches!(link.channel, ChannelConfig::OnOff { .. }));
        let FlowKind::Tcp(tcp) = &scenario.flows[3].kind else { panic!("a TCP flow") };
        assert_eq!((tcp.sender.window_clamp, tcp.sender.initial_ssthresh), (Some(62), Some(62)));
        assert!(tcp.sender.variant.limited_transmit && tcp.sender.variant.initial_window == 4);
        assert_eq!(tcp.receiver.ack.daass, Daass::FirstSegments(10));
    }
}
