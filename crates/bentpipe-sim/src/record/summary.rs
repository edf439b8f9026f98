//! One run in a few numbers: each flow's results with its physical limit, and each link's counters. Field names carry
//! their units, because they are the keys of the JSON output.

use bentpipe_engine::link::{LinkConfig, LinkCounters};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::tcp::{Abort, TcpStats};
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_study::limit::{flow_limit, goodput_between};
use bentpipe_study::scenario::{FlowKind, FlowSpec, LinkSpec, Scenario, TcpFlow, UdpFlow, Workload};
use bentpipe_study::topology;
use serde::Serialize;

use super::channels::{ChannelSummary, channels};
use super::responses::{EntrySummary, ResponseSummary, entries};
use crate::delays::Delays;
use crate::run::RunResult;
use crate::world::FlowResult;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Its seed.
    pub seed: u64,
    /// When it ended, seconds.
    pub end_s: f64,
    /// True if the time limit ended it while a finite flow was not done.
    pub timed_out: bool,
    /// The flows, in the scenario's order.
    pub flows: Vec<FlowSummary>,
    /// The links, in the scenario's order.
    pub links: Vec<LinkSummary>,
    /// The responses by [entry](super::asking); omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<EntrySummary>,
    /// The channels of link layers with packets, in the scenario's order.
    pub channels: Vec<ChannelSummary>,
    /// Packets in flight at the end.
    pub in_flight_packets: u64,
    /// Events of the simulation.
    pub events: u64,
}

/// The results of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// The node that sends, or requests.
    pub from: String,
    /// The node that receives, or responds.
    pub to: String,
    /// Name of its TCP variant, `stp`, or `quic-` and the congestion control; `None` for UDP.
    pub variant: Option<String>,
    /// Name of its TCP profile; `None` for STP, QUIC and UDP.
    pub profile: Option<String>,
    /// When it started, seconds.
    pub start_s: f64,
    /// Payload at the receiver in bytes; of responses, those that have arrived whole. For UDP, headers are included.
    pub bytes: u64,
    /// Seconds from its start to the arrival of the last byte; `None` if it is endless or did not finish.
    pub time_s: Option<f64>,
    /// Payload bits per second until that time. Without one: until the flow has stopped and the data that it had sent has
    /// arrived, or until the end of the run.
    pub goodput_bit_s: Option<f64>,
    /// The minimum time in seconds that the links allow ([`flow_limit`]).
    pub limit_time_s: Option<f64>,
    /// The maximum payload rate that the links allow, in bits per second: for a flow without a time over lines that change, while it ran
    /// ([`goodput_between`]).
    pub limit_goodput_bit_s: Option<f64>,
    /// The link that sets it, and the time for which the goodput is counted, seconds.
    #[serde(skip)]
    pub(super) share: (Option<LinkId>, f64),
    /// Ratio to the limit: the time divided by the minimum time or, for a flow that is endless or did not finish, the
    /// maximum goodput divided by the goodput.
    pub x_limit: Option<f64>,
    /// Segments with data, SYN or FIN sent by the end that sends the data; for UDP, datagrams.
    pub segments: u64,
    /// The number of these that had been sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Losses found by duplicate ACKs or SACK.
    pub fast_retransmits: u64,
    /// Timeouts found spurious.
    pub spurious_timeouts: u64,
    /// Reductions of the window for an echoed mark (RFC 3168); omitted if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub ecn_reductions: u64,
    /// Maximum outstanding bytes.
    pub max_flight_bytes: u64,
    /// The legs of a split flow, in order from `from`; empty for other flows. The segments, retransmissions and
    /// timeouts of the flow are those of the first leg of the data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub legs: Vec<LegSummary>,
    /// One-way delays of its datagrams; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<DelaySummary>,
    /// The responses to its requests; `None` if it has made none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseSummary>,
    /// Why it was aborted, if so.
    pub aborted: Option<&'static str>,
}

/// One-way delays of delivered datagrams, to three digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelaySummary {
    /// Datagrams that arrived.
    pub packets: u64,
    /// The mean, seconds.
    pub mean_s: f64,
    /// The median, seconds.
    pub median_s: f64,
    /// The 99th percentile, seconds.
    pub p99_s: f64,
    /// The maximum, seconds.
    pub longest_s: f64,
}

impl DelaySummary {
    fn new(delays: &Delays) -> Option<Self> {
        let seconds = |q| delays.quantile(q).map(Duration::as_secs_f64);
        Some(DelaySummary {
            packets: delays.count(),
            mean_s: delays.mean()?.as_secs_f64(),
            median_s: seconds(0.5)?,
            p99_s: seconds(0.99)?,
            longest_s: seconds(1.0)?,
        })
    }
}

/// One leg of a split flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LegSummary {
    /// The node that opens it.
    pub from: String,
    /// The node at the other end.
    pub to: String,
    /// Name of its TCP variant.
    pub variant: String,
    /// Segments with data, SYN or FIN sent by the end that sends the data.
    pub segments: u64,
    /// The number of these that had been sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Losses found by duplicate ACKs or SACK.
    pub fast_retransmits: u64,
    /// Maximum outstanding bytes.
    pub max_flight_bytes: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Packets lost at a link, by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// The queue was full.
    pub queue_full: u64,
    /// Dropped by RED, CoDel, FQ-CoDel or DualPI2.
    pub early: u64,
    /// Lost or damaged on the channel.
    pub channel: u64,
    /// On the scenario's drop list.
    pub listed: u64,
    /// Longer than the link's MTU.
    pub too_long: u64,
}

/// The counters of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Its name.
    pub name: String,
    /// Line rate in bits per second. If it changes, the mean, which is that of this run if the rate does not repeat.
    /// `None` if transmission takes no time.
    pub rate_bit_s: Option<u64>,
    /// True if the rate changes; omitted otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rate_changes: bool,
    /// Delivered bytes as a share of what the line could send during the run, from 0 to 1.
    pub utilisation: Option<f64>,
    /// Packets offered.
    pub offered_packets: u64,
    /// Packets delivered.
    pub delivered_packets: u64,
    /// Bytes delivered.
    pub delivered_bytes: u64,
    /// Packets lost.
    pub dropped: Drops,
    /// Packets marked by the queue instead of dropped (RFC 3168); omitted if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub marked_packets: u64,
    /// Maximum number of waiting packets.
    pub max_queue_packets: u32,
}

impl Summary {
    /// The numbers of a run of this scenario.
    pub fn new(scenario: &Scenario, result: &RunResult) -> Summary {
        let flows = scenario.flows.iter().zip(&result.flows);
        let links = scenario.links.iter().zip(&result.links);
        Summary {
            seed: result.seed,
            end_s: result.end.as_secs_f64(),
            timed_out: result.timed_out,
            flows: flows.map(|(spec, flow)| FlowSummary::new(scenario, spec, flow, result)).collect(),
            responses: entries(scenario, &result.flows),
            links: links.map(|(spec, counters)| LinkSummary::new(spec, counters, result)).collect(),
            channels: channels(scenario, &result.layers),
            in_flight_packets: result.in_flight,
            events: result.events,
        }
    }
}

/// Time from the start of a finite flow to the arrival of its last byte, seconds.
pub(super) fn elapsed(flow: &FlowResult) -> Option<f64> {
    flow.received_at.map(|end| end.saturating_since(flow.start).as_secs_f64())
}

impl FlowSummary {
    fn new(scenario: &Scenario, spec: &FlowSpec, flow: &FlowResult, result: &RunResult) -> Self {
        let workload = spec.kind.workload();
        let (variant, profile) = match &spec.kind {
            FlowKind::Tcp(tcp) => (Some(tcp.variant_name.clone()), Some(tcp.profile_name.clone())),
            FlowKind::Stp(_) => (Some("stp".to_owned()), None),
            FlowKind::Quic(quic) => (Some(format!("quic-{}", quic.congestion_control.word())), None),
            FlowKind::Udp(_) => (None, None),
        };
        let time = workload.and_then(|_| elapsed(flow));
        let bytes = workload.map_or(flow.delivered, |workload| payload(workload, flow));
        let lasted = duration(&spec.kind, flow, result.end);
        let goodput = (lasted > Duration::ZERO).then(|| bytes as f64 * 8.0 / lasted.as_secs_f64());
        // A flow whose ends are not connected does not run, so it has no summary.
        let limit = flow_limit(scenario, spec).ok().flatten().unwrap_or_default();
        let limit_time = limit.time.map(Duration::as_secs_f64);
        // Without an end, what counts is what lines that change could send while the flow ran.
        let while_it_ran =
            || goodput_between(scenario, spec, result.seed, (flow.start, flow.start + lasted)).ok().flatten();
        let while_it_ran = if time.is_none() && lasted > Duration::ZERO { while_it_ran() } else { None };
        let (limit_goodput, narrowest) =
            while_it_ran.map_or((limit.goodput, limit.narrowest), |(rate, link)| (Some(rate), link));
        let x_limit = match (time, limit_time) {
            (Some(time), Some(min)) if min > 0.0 => Some(time / min),
            _ => limit_goodput.zip(goodput).map(|(max, ours)| max / ours).filter(|x| x.is_finite()),
        };
        let answers = matches!(workload, Some(Workload::RequestResponse { .. }));
        let stats = if answers { &flow.receiver_stats } else { &flow.stats };
        FlowSummary {
            name: spec.name.clone(),
            from: scenario[spec.from].to_owned(),
            to: scenario[spec.to].to_owned(),
            variant,
            profile,
            start_s: flow.start.as_secs_f64(),
            bytes,
            time_s: time,
            goodput_bit_s: goodput,
            limit_time_s: limit_time,
            limit_goodput_bit_s: limit_goodput,
            share: (narrowest, lasted.as_secs_f64()),
            x_limit,
            segments: stats.data_segments,
            retransmissions: stats.retransmits,
            timeouts: stats.timeouts,
            fast_retransmits: stats.fast_retransmits,
            spurious_timeouts: stats.spurious_timeouts,
            ecn_reductions: stats.ecn_reductions,
            max_flight_bytes: stats.max_flight,
            legs: match &spec.kind {
                FlowKind::Tcp(tcp) => leg_summaries(scenario, spec, tcp, flow),
                FlowKind::Stp(_) | FlowKind::Quic(_) | FlowKind::Udp(_) => Vec::new(),
            },
            delay: flow.delays.as_deref().and_then(DelaySummary::new),
            response: flow.responses.as_deref().and_then(|responses| ResponseSummary::new(&[responses])),
            aborted: flow.aborted.map(|abort| match abort {
                Abort::Refused => "refused",
                Abort::Reset => "reset",
                // QUIC has no limit on retries.
                Abort::RetriesExhausted if matches!(spec.kind, FlowKind::Quic(_)) => "idle timeout",
                Abort::RetriesExhausted => "retries exhausted",
                Abort::Local => "aborted",
            }),
        }
    }
}

fn leg_summaries(scenario: &Scenario, spec: &FlowSpec, tcp: &TcpFlow, flow: &FlowResult) -> Vec<LegSummary> {
    let answers = matches!(tcp.workload, Workload::RequestResponse { .. });
    let legs = topology::legs(spec).into_iter().zip(tcp.leg_variants()).zip(&flow.legs);
    let summary = |((leg, variant), ends): ((topology::Leg<'_>, &str), &[TcpStats; 2])| {
        let stats = &ends[usize::from(answers)];
        LegSummary {
            from: scenario[leg.from].to_owned(),
            to: scenario[leg.to].to_owned(),
            variant: variant.to_owned(),
            segments: stats.data_segments,
            retransmissions: stats.retransmits,
            timeouts: stats.timeouts,
            fast_retransmits: stats.fast_retransmits,
            max_flight_bytes: stats.max_flight,
        }
    };
    legs.map(summary).collect()
}

/// Payload at the data's destination.
fn payload(workload: Workload, flow: &FlowResult) -> u64 {
    match workload {
        Workload::RequestResponse { response, .. } => {
            let arrived = flow.responses.as_ref().map_or(0, |responses| responses.times().len());
            response.get().saturating_mul(arrived as u64)
        }
        Workload::Bulk(_) | Workload::Greedy { .. } | Workload::Paced { .. } => flow.delivered,
    }
}

/// How long a flow lasted within the run. If its source stops after some time, what it had sent may still be on the way. TCP and QUIC
/// then lasted until the last of it arrived, like a flow of known length; UDP as long as its source sent or, if that is longer, as its
/// datagrams took to arrive, because they have no opening.
fn duration(kind: &FlowKind, flow: &FlowResult, end: Time) -> Duration {
    let (first, last) = flow.arrivals.unwrap_or((flow.start, flow.start));
    if let FlowKind::Udp(UdpFlow { stop: Some(stop), .. }) = kind {
        let sent = end.min(Time::ZERO + *stop).saturating_since(flow.start);
        return sent.max(last.saturating_since(first));
    }
    let over = match kind.workload() {
        Some(Workload::Greedy { duration: Some(duration) }) => end.min(last.max(flow.start + duration)),
        Some(Workload::Bulk(_) | Workload::RequestResponse { .. } | Workload::Paced { total: Some(_), .. }) => {
            flow.received_at.unwrap_or(end)
        }
        Some(Workload::Greedy { duration: None } | Workload::Paced { total: None, .. }) | None => end,
    };
    over.saturating_since(flow.start)
}

impl LinkSummary {
    fn new(spec: &LinkSpec, counters: &LinkCounters, result: &RunResult) -> Self {
        let room = spec.capacity(result.seed, result.end);
        let room = room.filter(|room| *room > 0.0);
        // A rate that repeats has a mean; any other has the mean of this run.
        let LinkConfig { rate, phases, .. } = &spec.config;
        let drawn = phases.is_some() || topology::rate_range(&spec.config).is_some();
        let mean = room.filter(|_| drawn).map(|bytes| (bytes * 8.0 / result.end.as_secs_f64()).round() as u64);
        let rate = mean.or(rate.map(Rate::bits_per_second));
        LinkSummary {
            name: spec.name.clone(),
            rate_bit_s: rate,
            rate_changes: spec.config.rate_changes(),
            utilisation: room.map(|room| counters.delivered_bytes as f64 / room),
            offered_packets: counters.offered,
            delivered_packets: counters.delivered,
            delivered_bytes: counters.delivered_bytes,
            dropped: Drops {
                queue_full: counters.dropped_full,
                early: counters.dropped_early,
                channel: counters.dropped_channel,
                listed: counters.dropped_listed,
                too_long: counters.dropped_too_long,
            },
            marked_packets: counters.marked,
            max_queue_packets: counters.max_waiting,
        }
    }
}
