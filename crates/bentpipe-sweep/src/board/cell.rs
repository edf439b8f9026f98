//! A cell of the board: a transfer over a link, by a transport, with a gateway or without.

use bentpipe_engine::units::{Duration, Rate};
use bentpipe_sim::recommend::{System, equipped};
use bentpipe_sim::record::Summary;
use bentpipe_sim::{RunError, RunResult};
use bentpipe_study::limit::flow_limit;
use bentpipe_study::scenario::{FlowKind, FlowSpec, Scenario, ScenarioErrors, UdpFlow, UdpPattern};
use serde::Serialize;

use super::place::{Place, Shipped};
use super::transport::Transport;
use crate::candidate::system;
use crate::run::run_whole;

/// What is placed on the path: nothing, or a gateway of `recommend`.
pub const SHAPES: &[&str] = &["plain", "uplink", "link", "split"];

/// A transfer over a link: a column of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Name of the link.
    pub place: &'static str,
    /// Random losses of the satellite link; [`OWN_LOSS`](super::OWN_LOSS): as the link has them.
    pub loss: &'static str,
    /// Size of the transfer.
    pub size: &'static str,
}

/// The transport and the gateway: a row of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Name of the transport.
    pub transport: &'static str,
    /// `plain`, or the gateway's shape.
    pub shape: &'static str,
}

/// Why a gateway is not combined with a transport, for the reader of the board.
pub(super) const NOT_ENDED: &str = "QUIC cannot be terminated at a box";

/// One probe of the ping: 64 bytes of ICMP in IPv4, as `ping` sends them.
const PROBE: u32 = 84;
/// Its interval.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// Gateways treat the ICMP of pings as urgent; datagrams with this code point are treated equally (RFC 3246).
const PROBE_DSCP: u8 = 46;

/// A scenario of a cell, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) scenario: Scenario,
    /// True if every seed gives the same run.
    pub(crate) is_constant: bool,
}

/// The results of a run of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// Time of the transfer, seconds; `None` if it did not finish.
    pub(crate) time_s: Option<f64>,
    /// The 99th percentile of the ping's forward delay plus that of its return delay, seconds.
    pub(crate) ping_s: Option<f64>,
}

/// The bare scenario of a field with this transport at the hosts.
pub(crate) fn bare(
    place: &Place,
    field: Field,
    transport: &Transport,
    shipped: Shipped<'_>,
) -> Result<Scenario, ScenarioErrors> {
    let path = place.scenario(field.loss, field.size, &[], shipped)?;
    let sets = transport.sets(&path);
    let scenario = if sets.is_empty() { path } else { place.scenario(field.loss, field.size, &sets, shipped)? };
    Ok(match transport.tcp() {
        Some((profile, variant)) => scenario.with_hosts(profile, variant).expect("both are in the engine's tables"),
        None => scenario,
    })
}

/// The scenario of a cell; the inner error says why there is none.
pub(crate) fn ready(
    place: &Place,
    field: Field,
    transport: &Transport,
    shape: &str,
    shipped: Shipped<'_>,
) -> Result<Result<Ready, String>, ScenarioErrors> {
    let mut scenario = bare(place, field, transport, shipped)?;
    add_ping(&mut scenario);
    let with = match (system(shape), transport.is_quic()) {
        (System::Plain, _) => Ok(scenario),
        (gateway, false) => equipped(&scenario, gateway).map_err(|unfit| unfit.to_string()),
        // The same boxes as for TCP.
        (System::Link, true) => {
            let path = place.scenario(field.loss, field.size, &[], shipped)?;
            match equipped(&path, System::Link) {
                Ok(path) => match path.gateways.pairs.first() {
                    Some(pair) => scenario.with_pair(pair.clone()),
                    None => Ok(scenario),
                },
                Err(unfit) => Err(unfit.to_string()),
            }
        }
        _ => Err(NOT_ENDED.to_owned()),
    };
    Ok(with.map(|scenario| Ready { is_constant: scenario.random_parts().is_empty(), scenario }))
}

/// Adds a ping beside the transfer: datagrams there and back.
pub(super) fn add_ping(scenario: &mut Scenario) {
    let Some(first) = scenario.flows.first() else { return };
    let rate = u64::from(PROBE) * 8 * 1_000_000_000 / PROBE_INTERVAL.as_nanos();
    let udp = UdpFlow {
        rate: Rate::from_bits_per_second(rate).expect("above zero"),
        packet: PROBE,
        pattern: UdpPattern::Cbr,
        stop: None,
    };
    let (from, to) = (first.from, first.to);
    let ping = |name: &str, from, to| FlowSpec {
        name: name.to_owned(),
        from,
        to,
        start: Duration::ZERO,
        spread: None,
        dscp: PROBE_DSCP,
        kind: FlowKind::Udp(udp),
        route: None,
        return_route: None,
    };
    let both = [ping("ping there", to, from), ping("ping back", from, to)];
    scenario.flows.extend(both);
}

/// The minimum time that the links allow the transfer by TCP from end to end, seconds.
pub(crate) fn limit(place: &Place, field: Field, shipped: Shipped<'_>) -> Result<Option<f64>, ScenarioErrors> {
    let path = place.scenario(field.loss, field.size, &[], shipped)?;
    let limit = path.flows.first().and_then(|flow| flow_limit(&path, flow).ok().flatten());
    Ok(limit.and_then(|limit| limit.time).map(Duration::as_secs_f64))
}

/// Runs the scenario of a cell; `None` if `stop` ended it.
pub(crate) fn sample(
    scenario: &Scenario,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Sample>, RunError> {
    let Some(result) = run_whole(scenario, seed, || !stop())? else { return Ok(None) };
    let time_s = Summary::new(scenario, &result).flows.first().and_then(|flow| flow.time_s);
    Ok(Some(Sample { time_s, ping_s: ping_p99_s(scenario, &result) }))
}

/// The 99th percentile of the ping's forward delay plus that of its return delay, seconds.
pub(super) fn ping_p99_s(scenario: &Scenario, result: &RunResult) -> Option<f64> {
    let flows = Summary::new(scenario, result).flows;
    let delay = |name: &str| flows.iter().find(|flow| flow.name == name)?.delay.map(|delay| delay.p99_s);
    delay("ping there").zip(delay("ping back")).map(|(there, back)| there + back)
}
