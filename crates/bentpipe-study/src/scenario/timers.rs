//! The default of STP's timer over link layers, which waits for a layer's repairs.
//!
//! STP's 550 ms are for a bare path of 530 ms (`stp` paper, section IV). A layer with ARQ delivers a packet late
//! instead of losing it, and a timer that ignores this treats each repair as a loss.

use std::sync::Arc;

use bentpipe_engine::stp::StpConfig;
use bentpipe_engine::units::Duration;
use bentpipe_language::document::Value;
use bentpipe_language::reader::Item;

use super::model::{FlowKind, FlowSpec, LayerSpec, Scenario};
use crate::topology;

/// Number of transmissions to wait for if a channel has no limit: the default of a channel.
const TRANSMISSIONS: u32 = 8;

/// For each leg in a flow's entry, true if the timer is given.
pub(super) fn given(item: &Item<'_>) -> Vec<bool> {
    let Value::Table(flow) = &item.node.value else { return Vec::new() };
    let has_rto = |value: &Value| match value {
        Value::Table(table) => match table.get("stp").map(|entry| &entry.node.value) {
            Some(Value::Table(stp)) => stp.get("rto").is_some(),
            _ => false,
        },
        _ => false,
    };
    let legs = match flow.get("split").map(|entry| &entry.node.value) {
        Some(Value::List(splits)) => splits.iter().map(|split| has_rto(&split.value)).collect(),
        _ => Vec::new(),
    };
    std::iter::once(has_rto(&item.node.value)).chain(legs).collect()
}

/// Adds the maximum delay of the layers on the path to every STP timer that is not given.
pub(super) fn fit_all(scenario: &mut Scenario, given: &[Vec<bool>]) {
    if scenario.layers.is_empty() {
        return;
    }
    let mut flows = std::mem::take(&mut scenario.flows);
    for (flow, given) in flows.iter_mut().zip(given) {
        let before = flow.clone();
        let is_free = |leg: usize| !given.get(leg).copied().unwrap_or(false);
        let fit = |leg: usize, config: &mut StpConfig| {
            if is_free(leg) {
                config.rto += may_take(scenario, &before, leg, config);
            }
        };
        match &mut flow.kind {
            FlowKind::Stp(stp) => fit(0, &mut stp.config),
            FlowKind::Tcp(tcp) => {
                let tcp = Arc::make_mut(tcp);
                tcp.stp.as_mut().into_iter().for_each(|config| fit(0, config));
                let legs = tcp.splits.iter_mut().enumerate();
                legs.for_each(|(n, leg)| leg.stp.as_mut().into_iter().for_each(|config| fit(n + 1, config)));
            }
            FlowKind::Quic(_) | FlowKind::Udp(_) => {}
        }
    }
    scenario.flows = flows;
}

/// The maximum delay that the layers on a leg's path add to a round trip, in both directions.
fn may_take(scenario: &Scenario, flow: &FlowSpec, leg: usize, config: &StpConfig) -> Duration {
    let legs = topology::legs(flow);
    let Some(leg) = legs.get(leg) else { return Duration::ZERO };
    let (Ok(there), Ok(back)) = (leg.forward_path(scenario), leg.return_path(scenario)) else { return Duration::ZERO };
    let layers = there.into_iter().chain(back).filter_map(|link| scenario.layer_over(link));
    let repairs = layers.map(|(layer, _)| repairs(scenario, &scenario.layers[layer]));
    let (mut sum, mut any) = (Duration::ZERO, false);
    repairs.for_each(|span| (sum, any) = (sum + span, true));
    // Frame headers, repairs and copies use line time, so segments wait for at most as long as the line needs for a
    // window, which is a round trip.
    sum + if any { config.rtt } else { Duration::ZERO }
}

/// The time from a packet's first transmission to its last. Each is repeated after the report of its loss, a round trip
/// of the link and the report interval later. The frames that may overtake it arrive at the line's rate.
fn repairs(scenario: &Scenario, layer: &LayerSpec) -> Duration {
    let link = |side: usize| &scenario[layer.over[side]].config;
    let round_trip = link(0).delay + link(1).delay;
    let frame = [0, 1].map(|side| link(side).rate.map_or(Duration::ZERO, |rate| rate.time_for_ceil(1500)));
    let overtaking = frame[0].max(frame[1]).saturating_mul(layer.reordering + 1);
    let once = round_trip + layer.report_interval + overtaking;
    let channels = layer.channels.iter().filter_map(|channel| channel.config.arq);
    let max = channels.map(|arq| arq.transmissions.unwrap_or(TRANSMISSIONS)).max().unwrap_or(1);
    once.saturating_mul(u64::from(max.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An STP flow over a link of 500 ms there and back and 1.2 Mbit/s, on which 1500 B take 10 ms.
    fn rto(layer: &str, stp: &str) -> Duration {
        let text = format!(
            "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"1.2 Mbit/s\"\ndelay = \"250 ms\"\n{layer}\n\
             [[flows]]\nname = \"f\"\ntype = \"stp\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n\
             stp = {{ rate = \"1 Mbit/s\", rtt = \"530 ms\"{stp} }}\n"
        );
        let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        scenario.flows[0].kind.stp_of_leg(0).expect("it is STP").rto
    }

    /// A transmission is repeated 500 ms and a report's 20 ms later, and 10 ms for the frame itself and for each that may overtake it. Of
    /// eight transmissions the last begins after seven such times; both directions may need them, and the line is busy for a round trip.
    #[test]
    fn the_timer_waits_for_the_layers() {
        let layer = |settings: &str| format!("[[layers]]\nname = \"arq\"\nover = \"sat\"\n{settings}");
        let more = |layer: &str| rto(layer, "").as_nanos() - rto("", "").as_nanos();
        let ms = |millis: u64| millis * 1_000_000;
        assert_eq!(more(&layer("")), ms(2 * 7 * 530 + 530));
        assert_eq!(more(&layer("reordering = 2")), ms(2 * 7 * 550 + 530));
        assert_eq!(more(&layer("report_interval = \"100 ms\"")), ms(2 * 7 * 610 + 530));
        let channel =
            |transmissions: &str| layer(&format!("channels = [{{ name = \"c\", transmissions = {transmissions} }}]"));
        assert_eq!(more(&channel("3")), ms(2 * 2 * 530 + 530));
        assert_eq!(more(&channel("\"unlimited\"")), ms(2 * 7 * 530 + 530));
        // Nothing is repeated, but frames have headers.
        assert_eq!(more(&channel("\"off\"")), ms(530));
        assert_eq!(rto(&layer(""), ", rto = \"700 ms\""), Duration::from_millis(700));
    }
}
