//! The prospects of a flow before a run: path, round trip, bandwidth-delay product, queue, limit.

mod hints;

use bentpipe_engine::atm::{aal5, cell};
use bentpipe_engine::link::{LinkConfig, QueueLimit};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::Duration;
use bentpipe_engine::wire::stp;
use bentpipe_study::limit::{SegmentSize, flow_limit, mean_loss};
use bentpipe_study::scenario::{FlowKind, FlowSpec, Scenario, Workload};
use bentpipe_study::topology::{self, Unreachable};
use serde::Serialize;

use crate::packet::IPV4_HEADER;

/// A scenario's flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlook {
    /// In the scenario's order.
    pub flows: Vec<FlowOutlook>,
}

/// The queue before the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueueOutlook {
    /// Its limit in full packets; of a port for cells, in their cells.
    pub packets: f64,
    /// Its limit in bytes.
    pub bytes: u64,
    /// Its limit as the time that the line takes to send it, milliseconds.
    pub ms: f64,
    /// Its limit in bandwidth-delay products.
    pub bdps: f64,
}

/// The outlook for the data of a flow; with requests and responses, for the responses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowOutlook {
    /// Its name.
    pub name: String,
    /// Nodes on the data's path, in order.
    pub nodes: Vec<String>,
    /// Links on the data's path, in order.
    pub links: Vec<String>,
    /// Propagation delay of the data in milliseconds; the mean if it changes.
    pub one_way_ms: f64,
    /// Round-trip propagation delay in milliseconds; the mean if it changes.
    pub rtt_ms: f64,
    /// True if the delay of a link changes, in either direction.
    pub delay_changes: bool,
    /// The slowest link on the path; `None` if no line takes time.
    pub bottleneck: Option<String>,
    /// Its rate in bits per second; the mean if it changes.
    pub bottleneck_bit_s: Option<u64>,
    /// True if its rate changes.
    pub rate_changes: bool,
    /// The lowest and the highest rate in bits per second, for a schedule that does not repeat. Such a schedule has no
    /// mean, and `bottleneck_bit_s` is its initial rate. Omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_range_bit_s: Option<[u64; 2]>,
    /// A full packet on the wire, bytes.
    pub packet_bytes: u32,
    /// Data in flight in bytes when the bottleneck is busy and its queue is empty.
    pub bdp_bytes: Option<u64>,
    /// The same in full packets.
    pub bdp_packets: Option<f64>,
    /// The queue before the bottleneck; `None` if unlimited. If the lines to a port for cells are slower than it but together may fill
    /// it, the port's buffer.
    pub queue: Option<QueueOutlook>,
    /// Loss probability of full packets on the channels at a random time, from 0 to 1.
    pub mean_loss: f64,
    /// The minimum time that the links allow, in seconds; `None` for an endless flow.
    pub limit_time_s: Option<f64>,
    /// The maximum payload rate that the links allow, in bits per second.
    pub limit_goodput_bit_s: Option<f64>,
    /// The same for an endless flow over a line whose rate changes and has a mean. Omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_long_run_bit_s: Option<f64>,
    /// The same for an endless flow, with the highest rate of a line whose rate has no mean: what is left of the narrowest line without
    /// headers and losses.
    #[serde(skip)]
    pub endless_goodput_bit_s: Option<f64>,
    /// Hints that follow from the numbers.
    pub hints: Vec<String>,
}

impl Outlook {
    /// The outlook for all flows of a scenario.
    ///
    /// # Errors
    /// Fails if the ends of a flow are not connected.
    pub fn new(scenario: &Scenario) -> Result<Outlook, Unreachable> {
        let carried = carried(scenario);
        let flows = scenario.flows.iter().map(|flow| look(scenario, flow, &carried)).collect::<Result<_, _>>()?;
        Ok(Outlook { flows })
    }
}

/// `carried`: the number of flows whose data uses each link.
fn look(scenario: &Scenario, flow: &FlowSpec, carried: &[usize]) -> Result<FlowOutlook, Unreachable> {
    let forward = topology::forward_path(scenario, flow)?;
    let (packet, answers) = match &flow.kind {
        FlowKind::Tcp(tcp) => {
            let size = SegmentSize::of_leg(&tcp.stp, &tcp.sender, &tcp.receiver);
            (size.payload + size.headers, matches!(tcp.workload, Workload::RequestResponse { .. }))
        }
        FlowKind::Stp(stp) => {
            let headers = IPV4_HEADER + stp::HEADER as u32;
            (stp.config.mss as u32 + headers, matches!(stp.workload, Workload::RequestResponse { .. }))
        }
        FlowKind::Quic(quic) => {
            let size = SegmentSize::of_quic(quic);
            (size.payload + size.headers, matches!(quic.workload, Workload::RequestResponse { .. }))
        }
        FlowKind::Udp(udp) => (udp.packet, false),
    };
    // Datagrams need no return path.
    let back = match &flow.kind {
        FlowKind::Tcp(_) | FlowKind::Stp(_) | FlowKind::Quic(_) => topology::return_path(scenario, flow)?,
        FlowKind::Udp(_) => topology::return_path(scenario, flow).unwrap_or_default(),
    };
    let (start, data, acks) = if answers { (flow.to, back, forward) } else { (flow.from, forward, back) };
    let [there, returned] = [&data, &acks].map(|path| topology::mean_facts(scenario, path, packet));
    let delay_changes = |link: &LinkId| scenario[*link].config.delay_changes();
    let bdp = topology::bandwidth_delay_product(&there, &returned).map(|bytes| bytes.get());
    let port_fills = there
        .bottleneck_link
        .is_some_and(|link| topology::has_slow_line(&scenario[link].config) && !lines_fit(scenario, link, carried));
    let line = there.bottleneck_link.map_or(u64::from(packet), |link| line_bytes(&scenario[link].config, packet));
    let queue = there.bottleneck_link.zip(there.bottleneck).and_then(|(link, rate)| {
        let config = &scenario[link].config;
        // Cells wait for their line without a limit, and at the port in its buffer.
        let (rate, time) = match (port_fills, config.rate) {
            (true, Some(port)) => (port, port.time_for_ceil(buffer(config)?)),
            _ => (rate, there.queue?),
        };
        let bytes = match config.queue.limit {
            QueueLimit::Bytes(bytes) => bytes.get(),
            QueueLimit::Packets(count) => u64::from(count) * u64::from(packet),
            QueueLimit::Unlimited => rate.bytes_in_floor(time),
        };
        Some(QueueOutlook {
            packets: bytes as f64 / line as f64,
            bytes,
            ms: time.as_millis_f64(),
            bdps: bytes as f64 / bdp.unwrap_or(0).max(1) as f64,
        })
    });
    let passes = data.iter().map(|&link| 1.0 - mean_loss(&scenario[link].config, packet)).product::<f64>();
    let limit = flow_limit(scenario, flow)?.unwrap_or_default();
    let nodes = std::iter::once(start).chain(data.iter().map(|&link| scenario[link].to));
    let on_path = || data.iter().map(|&link| &scenario[link].config).filter(|link| link.rate_changes());
    let changes = on_path().next().is_some();
    // Without a period, the limit for an endless flow uses the best of the rates.
    let has_mean = changes && on_path().all(|link| link.rate_period().is_some());
    let mut outlook = FlowOutlook {
        name: flow.name.clone(),
        nodes: nodes.map(|node| scenario[node].to_owned()).collect(),
        links: data.iter().map(|&link| scenario[link].name.clone()).collect(),
        one_way_ms: there.delay.as_millis_f64(),
        rtt_ms: (there.delay + returned.delay).as_millis_f64(),
        delay_changes: data.iter().chain(&acks).any(delay_changes),
        bottleneck: there.bottleneck_link.map(|link| scenario[link].name.clone()),
        bottleneck_bit_s: there.bottleneck.map(|rate| rate.bits_per_second()),
        rate_changes: there.bottleneck_link.is_some_and(|link| scenario[link].config.rate_changes()),
        rate_range_bit_s: there.bottleneck_link.and_then(|link| topology::rate_range(&scenario[link].config)),
        packet_bytes: packet,
        bdp_bytes: bdp,
        bdp_packets: bdp.map(|bytes| bytes as f64 / line as f64),
        queue,
        mean_loss: 1.0 - passes,
        limit_time_s: limit.time.map(Duration::as_secs_f64),
        limit_goodput_bit_s: limit.goodput,
        limit_long_run_bit_s: limit.long_run.filter(|_| has_mean),
        endless_goodput_bit_s: limit.long_run,
        hints: Vec::new(),
    };
    let sharing = there.bottleneck_link.map_or(0, |link| sharing(scenario, flow, link, carried));
    let queue_changes = there.bottleneck_link.is_some_and(|link| scenario[link].config.queue_changes());
    outlook.hints = hints::of(&outlook, flow, sharing, [changes, port_fills, queue_changes]);
    Ok(outlook)
}

/// Bytes on a line for a packet: the cells of a link in cells.
fn line_bytes(config: &LinkConfig, packet: u32) -> u64 {
    if config.cells.is_some() { aal5::line_bytes(packet as usize) as u64 } else { u64::from(packet) }
}

/// Bytes of the cells that a port's buffer holds; `None` without a limit.
fn buffer(config: &LinkConfig) -> Option<u64> {
    Some(u64::from(config.cells?.buffer?) * cell::CELL as u64)
}

/// The number of other flows that can slow this one down at its bottleneck: if the lines to a port for cells fit it, those of the same
/// hosts.
fn sharing(scenario: &Scenario, flow: &FlowSpec, link: LinkId, carried: &[usize]) -> usize {
    if !lines_fit(scenario, link, carried) {
        return carried[link.index()] - 1;
    }
    scenario.flows.iter().filter(|other| (other.from, other.to) == (flow.from, flow.to)).count() - 1
}

/// True if a port for cells is as fast as the lines of all its flows together, were they all of different hosts.
fn lines_fit(scenario: &Scenario, link: LinkId, carried: &[usize]) -> bool {
    let config = &scenario[link].config;
    let lines = config.cells.and_then(|cells| cells.line).zip(config.rate);
    let count = carried[link.index()] as u64;
    lines.is_some_and(|(line, port)| line.bits_per_second().saturating_mul(count) <= port.bits_per_second())
}

/// The number of flows whose data uses each link, in one pass: with thousands of flows, a pass for each takes minutes.
fn carried(scenario: &Scenario) -> Vec<usize> {
    let mut counts = vec![0; scenario.links.len()];
    for flow in &scenario.flows {
        let answers = matches!(flow.kind.workload(), Some(Workload::RequestResponse { .. }));
        let path = if answers { topology::return_path(scenario, flow) } else { topology::forward_path(scenario, flow) };
        for link in path.unwrap_or_default() {
            counts[link.index()] += 1;
        }
    }
    counts
}
