//! Estimates the time of a transfer with each system, so that hopeless ones need not be simulated.

use bentpipe_engine::link::{ChannelConfig, LinkConfig};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::tcp::variant::Growth;
use bentpipe_engine::units::Duration;
use bentpipe_study::limit::{SegmentSize, flow_limit, mean_loss};
use bentpipe_study::model::transfer;
use bentpipe_study::scenario::{FlowKind, Scenario, Workload, mean_secs};
use bentpipe_study::topology;

use super::system::{Ground, System};

/// The parameters of a path for the formulas.
#[derive(Clone, Copy, Debug)]
struct Facts {
    segments: f64,
    /// Round trip of the whole path, and of its satellite part, in seconds.
    rtt: f64,
    satellite_rtt: f64,
    /// Segments per second that the path carries without loss.
    line: f64,
    initial_window: f64,
    /// Round trips per segment of growth in congestion avoidance: 1 with byte counting, otherwise the number of
    /// segments per ACK.
    every: f64,
    /// The probability of random loss, and of any loss.
    random: f64,
    mean: f64,
    /// Seconds from one bad time in which the channel loses a segment to the next.
    outages: Option<f64>,
    /// The minimum time that the links allow, in seconds.
    limit: f64,
}

/// Estimated seconds for the transfer with this system; `None` outside the range of the formulas.
pub(super) fn estimate(scenario: &Scenario, ground: &Ground, system: System) -> Option<f64> {
    let facts = facts(scenario, ground)?;
    let window = facts.line * facts.rtt;
    let rounds = transfer::opening_rounds(facts.initial_window, window);
    let by_tcp = |rate: f64| facts.rtt + transfer::time(facts.segments, rate, facts.rtt, facts.initial_window, rounds);
    let time = match system {
        System::Plain => {
            let random = transfer::rate_under_loss(facts.random, facts.rtt, (2.0 * facts.rtt).max(1.0), facts.every);
            let outages = facts.outages.map_or(0.0, |gap| {
                facts.rtt + transfer::time_between_outages(facts.segments, window, gap, facts.rtt, facts.every)
            });
            by_tcp((facts.line * (1.0 - facts.mean)).min(random)).max(outages)
        }
        // The boxes or BBR pay only for the retransmission of losses; slow start is TCP's.
        System::Link | System::Bbr => by_tcp(facts.line * (1.0 - facts.mean)),
        // The window is open from the start. The last losses take an additional round trip of the satellite.
        System::Uplink | System::Split => {
            let repair = if facts.mean > 0.0 { facts.satellite_rtt } else { 0.0 };
            facts.limit + facts.segments * facts.mean / facts.line + repair
        }
    };
    Some(time.max(facts.limit))
}

fn facts(scenario: &Scenario, ground: &Ground) -> Option<Facts> {
    let flow = &scenario[ground.flow];
    let FlowKind::Tcp(tcp) = &flow.kind else { return None };
    let Workload::Bulk(bytes) = tcp.workload else { return None };
    let size = SegmentSize::between(&tcp.sender, &tcp.receiver);
    let wire = size.payload + size.headers;
    let there = topology::forward_path(scenario, flow).ok()?;
    let back = topology::return_path(scenario, flow).ok()?;
    let delay = |path: &[LinkId]| path.iter().fold(Duration::ZERO, |sum, &link| sum + scenario[link].config.delay);
    let satellite = &scenario[ground.there].config;
    let satellite_back = ground.back.map_or(Duration::ZERO, |link| scenario[link].config.delay);
    let line = topology::facts(scenario, &there, wire).bottleneck?.bits_per_second() as f64 / (8.0 * f64::from(wire));
    let outages = match &satellite.channel {
        ChannelConfig::OnOff { gap, burst } => {
            let bad = LinkConfig {
                channel: ChannelConfig::Clear,
                good: satellite.bad,
                packet_bursts: None,
                moves: None,
                ..satellite.clone()
            };
            // The losses of a full line, taken as a Poisson process.
            let losses = mean_loss(&bad, wire) * line * mean_secs(burst);
            let losing = 1.0 - (-losses).exp();
            (losing > 0.0).then(|| (mean_secs(gap) + mean_secs(burst)) / losing)
        }
        ChannelConfig::Clear | ChannelConfig::Schedule(_) => None,
    };
    let arrives = |loss: fn(&LinkConfig, u32) -> f64| {
        there.iter().map(|&link| 1.0 - loss(&scenario[link].config, wire)).product::<f64>()
    };
    let random = 1.0
        - arrives(|link, wire| {
            let calm = LinkConfig { channel: ChannelConfig::Clear, ..link.clone() };
            mean_loss(&calm, wire)
        });
    Some(Facts {
        segments: bytes.get().div_ceil(u64::from(size.payload)) as f64,
        rtt: (delay(&there) + delay(&back)).as_secs_f64(),
        satellite_rtt: (satellite.delay + satellite_back).as_secs_f64(),
        line,
        initial_window: f64::from(tcp.sender.variant.initial_window),
        every: match tcp.sender.variant.growth {
            Growth::Bytes(_) | Growth::All => 1.0,
            Growth::PerAck => f64::from(tcp.receiver.ack.every.max(1)),
        },
        random,
        mean: 1.0 - arrives(mean_loss),
        outages,
        limit: flow_limit(scenario, flow).ok()??.time?.as_secs_f64(),
    })
}
