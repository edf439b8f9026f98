//! The reference table: one row per flow of a scenario that ns-2 has run, in the columns of
//! `validation/ns2/reference.csv`.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bentpipe_engine::link::{LinkConfig, QueueLimit, Ties};
use bentpipe_engine::tcp::variant::{Exit, PartialAckTimer, Recovery};
use bentpipe_engine::tcp::{AckPolicy, Handshake, RttClock, TcpConfig, Variant};
use bentpipe_engine::units::{Bytes, Duration, Rate};
use bentpipe_study::scenario::{
    FlowKind, FlowSpec, Gateways, HostSpec, LinkSpec, NodeId, Scenario, TcpFlow, UdpFlow, UdpPattern, Variants,
    Workload, profile,
};
use serde::Deserialize;

/// A flow of a scenario, and ns-2's results.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) flow: u32,
    pub(crate) agent: String,
    #[serde(default)]
    pub(crate) newreno_mode: String,
    pub(crate) bw_bps: f64,
    pub(crate) delay_oneway_s: f64,
    pub(crate) access_bw_bps: f64,
    pub(crate) access_delay_s: f64,
    pub(crate) buffer_limit_pkts: u32,
    #[serde(rename = "payload_B")]
    pub(crate) payload: u16,
    pub(crate) segments: u64,
    pub(crate) iw: u32,
    pub(crate) window_pkts: u32,
    pub(crate) init_ssthresh_pkts: u32,
    pub(crate) delack_s: f64,
    pub(crate) limtran: u8,
    pub(crate) syn_exchange: u8,
    #[serde(default)]
    pub(crate) drop_indices: String,
    #[serde(default)]
    pub(crate) cbr: String,
    pub(crate) start_s: f64,
    pub(crate) t_ack_s: f64,
    pub(crate) t_rx_s: f64,
    pub(crate) data_pkts_sent: u64,
    pub(crate) retransmits: u64,
    pub(crate) timeouts: u64,
    pub(crate) window_cuts: u64,
    pub(crate) queue_overflow_drops: u64,
}

/// Reads a table; consecutive rows with one id are the flows of one scenario.
pub(crate) fn read(path: &Path) -> Result<Vec<Vec<Row>>> {
    let mut reader = csv::Reader::from_path(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut scenarios: Vec<Vec<Row>> = Vec::new();
    for (n, row) in reader.deserialize().enumerate() {
        let row: Row = row.with_context(|| format!("{}: row {} of the table", path.display(), n + 1))?;
        match scenarios.last_mut() {
            Some(flows) if flows[0].id == row.id => flows.push(row),
            _ => scenarios.push(vec![row]),
        }
    }
    if scenarios.is_empty() {
        bail!("{}: no rows", path.display());
    }
    Ok(scenarios)
}

/// Constant-rate cross traffic: packet size in bytes and interval in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cbr {
    pub(crate) bytes: u32,
    pub(crate) interval_s: f64,
}

/// Reads "1Mb", "1000000", "1 Mbit/s" (packets of 1000 B), "1000 B every 8 ms" or "1000 0.008".
pub(crate) fn parse_cbr(text: &str) -> Result<Option<Cbr>> {
    let text = text.trim();
    if text.is_empty() || text == "0" || text == "-" || text.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let mut numbers = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let tail = &rest[start..];
        let end = tail.find(|c: char| !c.is_ascii_digit() && c != '.' && c != 'e').unwrap_or(tail.len());
        let value: f64 = tail[..end].parse().with_context(|| format!("cbr \"{text}\""))?;
        let unit: String =
            tail[end..].trim_start().chars().take_while(|c| c.is_ascii_alphabetic()).collect::<String>().to_lowercase();
        numbers.push((value, unit));
        rest = &tail[end..];
    }
    let scale = |unit: &str| match unit.chars().next() {
        Some('g') => 1e9,
        Some('m') => 1e6,
        Some('k') => 1e3,
        _ => 1.0,
    };
    let find = |units: &[&str]| numbers.iter().find(|(_, unit)| units.contains(&unit.as_str())).cloned();
    let bytes = find(&["b", "byte", "bytes"]).map_or(1000.0, |(value, _)| value);
    let interval = find(&["ms"]).map(|(v, _)| v / 1e3).or_else(|| find(&["s"]).map(|(v, _)| v));
    let interval_s = match (interval, numbers.as_slice()) {
        (Some(interval), _) => interval,
        // Two bare numbers, as in ns-2's settings: bytes and seconds.
        (None, [(bytes, one), (seconds, other)]) if one.is_empty() && other.is_empty() => {
            return Ok(Some(Cbr { bytes: *bytes as u32, interval_s: *seconds }));
        }
        _ => {
            let (rate, unit) = numbers
                .iter()
                .find(|(_, unit)| !["b", "byte", "bytes"].contains(&unit.as_str()))
                .with_context(|| format!("cbr \"{text}\": expected a rate, or bytes and an interval"))?;
            bytes * 8.0 / (rate * scale(unit))
        }
    };
    Ok(Some(Cbr { bytes: bytes as u32, interval_s }))
}

fn seconds(secs: f64) -> Duration {
    Duration::from_secs_f64_rounded(secs)
}

fn rate(bits: f64) -> Result<Option<Rate>> {
    Ok(Some(Rate::from_bits_per_second(bits.round() as u64).context("a rate of 0")?))
}

/// The first draws of ns-2's default generator with seed 1, which the script sets, times one tick of 1 ms. Each TCP
/// agent draws one at creation and one at its start: the phase of its clock.
const DRAWS: [f64; 6] = [
    0.339_576_974_669_274_4e-6,
    555.880_715_863_723_7e-6,
    14.204_660_437_165_14e-6,
    88.122_671_045_420_07e-6,
    441.173_381_843_219_3e-6,
    799.155_453_592_145_6e-6,
];

fn tcp_config(row: &Row, flows: usize) -> Result<TcpConfig> {
    let mut config = profile::profile("ns2").expect("a profile of ours").config();
    let growth = config.variant.growth;
    let name = match row.agent.as_str() {
        "sack" => "sack-ns2",
        agent @ ("tahoe" | "reno" | "newreno") => agent,
        other => bail!("{}: agent \"{other}\": expected tahoe, reno, newreno or sack", row.id),
    };
    config.variant = Variant {
        growth,
        initial_window: row.iw,
        limited_transmit: row.limtran != 0,
        ..Variant::named(name).expect("a row of the table")
    };
    if let Recovery::Inflate { exit: Exit::Recover, timer, .. } = &mut config.variant.recovery {
        *timer = match row.newreno_mode.as_str() {
            "impatient" | "" => PartialAckTimer::Impatient,
            "slow-but-steady" => PartialAckTimer::SlowButSteady,
            other => bail!("{}: newreno_mode \"{other}\": expected impatient or slow-but-steady", row.id),
        };
    }
    config.mss = row.payload;
    config.ack = if row.delack_s > 0.0 {
        AckPolicy { delay: seconds(row.delack_s), every: 2, ..AckPolicy::DELAYED }
    } else {
        AckPolicy::IMMEDIATE
    };
    if let RttClock::Ticks { phase, .. } = &mut config.rto.clock {
        *phase = seconds(DRAWS[(flows + row.flow as usize) % DRAWS.len()]);
    }
    config.window_clamp = Some(row.window_pkts);
    config.initial_ssthresh = Some(row.init_ssthresh_pkts);
    config.shortcuts.handshake = if row.syn_exchange != 0 { Handshake::OneWay } else { Handshake::None };
    Ok(config)
}

/// The scenario of the rows: H1 - R1 - R2 - H2, with C1 and C2 beside the hosts for cross traffic.
pub(crate) fn scenario(rows: &[Row]) -> Result<Scenario> {
    let first = &rows[0];
    let nodes = ["H1", "R1", "R2", "H2", "C1", "C2"].map(str::to_owned).to_vec();
    let clean =
        |bw, delay| anyhow::Ok(LinkConfig { ties: Ties::Begun, ..LinkConfig::clean(rate(bw)?, seconds(delay)) });
    let access = clean(first.access_bw_bps, first.access_delay_s)?;
    let satellite = clean(first.bw_bps, first.delay_oneway_s)?;
    let mut forward = satellite.clone();
    // ns-2's DropTail drops when (waiting + 1) >= limit: one packet less than its limit can wait.
    forward.queue.limit = QueueLimit::Packets(first.buffer_limit_pkts.saturating_sub(1));
    forward.drop_list = first
        .drop_indices
        .split_whitespace()
        .map(|n| n.parse().with_context(|| format!("{}: drop_indices", first.id)))
        .collect::<Result<_>>()?;
    let link = |from: usize, to: usize, config: &LinkConfig| LinkSpec {
        name: format!("{}-{}", nodes[from], nodes[to]),
        from: NodeId::from(from),
        to: NodeId::from(to),
        config: config.clone(),
        throughput_advice: None,
    };
    let mut links = vec![
        link(0, 1, &access),
        link(1, 2, &forward),
        link(2, 3, &access),
        link(3, 2, &access),
        link(2, 1, &satellite),
        link(1, 0, &access),
    ];
    let mut flows = Vec::new();
    for row in rows {
        let config = tcp_config(row, rows.len())?;
        let bytes = Bytes::new(row.segments * row.payload as u64);
        let tcp = TcpFlow {
            stp: None,
            sender: config,
            receiver: config,
            workload: Workload::Bulk(bytes),
            variant_name: row.agent.clone(),
            profile_name: "ns2".to_owned(),
            explicit: Default::default(),
            splits: Vec::new(),
            spoof: None,
            path_change: None,
        };
        flows.push(flow(format!("tcp{}", row.flow), 0, 3, seconds(row.start_s), FlowKind::Tcp(Arc::new(tcp))));
    }
    if let Some(cbr) = parse_cbr(&first.cbr)? {
        links.extend([link(4, 1, &access), link(2, 5, &access), link(5, 2, &access), link(1, 4, &access)]);
        let bits = cbr.bytes as f64 * 8.0 / cbr.interval_s;
        let udp =
            UdpFlow { rate: rate(bits)?.expect("not zero"), packet: cbr.bytes, pattern: UdpPattern::Cbr, stop: None };
        flows.push(flow("cbr".to_owned(), 4, 5, Duration::ZERO, FlowKind::Udp(udp)));
    }
    Ok(Scenario {
        name: first.id.clone(),
        description: String::new(),
        source: None,
        seed: 1,
        time_limit: Duration::from_secs(3000),
        hosts: vec![HostSpec::default(); nodes.len()],
        nodes,
        links,
        layers: Vec::new(),
        gateways: Gateways::default(),
        flows,
        variants: Variants::new(),
    })
}

fn flow(name: String, from: usize, to: usize, start: Duration, kind: FlowKind) -> FlowSpec {
    let (from, to) = (NodeId::from(from), NodeId::from(to));
    FlowSpec { name, from, to, start, spread: None, dscp: 0, kind, route: None, return_route: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cross_traffic_in_several_spellings() {
        for text in
            ["1000 B every 8 ms", "1000B/8ms", "1000 B, 0.008 s", "1000 0.008", "1Mb", "1 Mbit/s", "1000000", "1e6"]
        {
            let cbr = parse_cbr(text).expect(text).expect(text);
            assert!((cbr.interval_s - 0.008).abs() < 1e-12 && cbr.bytes == 1000, "{text}: {cbr:?}");
        }
        assert_eq!(parse_cbr("").expect("empty"), None);
    }
}
