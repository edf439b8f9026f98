//! Windows derived from the path: a fixed window defaults to the capacity of the path.

use std::convert::Infallible;
use std::sync::Arc;

use bentpipe_engine::link::LinkConfig;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::tcp::variant::Startup;
use bentpipe_language::tcp::{TcpOverrides, UnknownName, lacks_window, resolve_tcp};

use super::model::{FlowKind, FlowSpec, Scenario, TcpFlow};
use crate::limit::{self, SegmentSize};
use crate::topology;

/// A connection of a scenario, or a leg of one.
pub(super) struct TcpEnds<'a> {
    pub(super) profile: &'a str,
    pub(super) variant: &'a str,
    pub(super) explicit: &'a TcpOverrides,
    pub(super) ends: (TcpConfig, TcpConfig),
}

/// The two ends of leg `leg` of a flow, from the names of a profile and a variant, including windows.
pub(super) fn resolve(
    scenario: &Scenario,
    flow: &FlowSpec,
    leg: usize,
    profile: &str,
    variant: &str,
    explicit: &TcpOverrides,
) -> Result<(TcpConfig, TcpConfig), UnknownName> {
    let mut ends = resolve_tcp(profile, variant, &scenario.variants, explicit)?;
    fit(scenario, flow, leg, (variant, explicit), &mut ends);
    Ok(ends)
}

/// All explicit settings of a connection: those given, and changes of its ends that follow from them.
pub(super) fn all_explicit(
    scenario: &Scenario,
    flow: &FlowSpec,
    leg: usize,
    known: &TcpEnds<'_>,
) -> Result<TcpOverrides, UnknownName> {
    let resolved = resolve(scenario, flow, leg, known.profile, known.variant, known.explicit)?;
    Ok(known.explicit.overlaid(&TcpOverrides::between(&resolved, &known.ends)))
}

/// Sets every fixed window that is not given to the capacity of its path.
pub(super) fn fit_all(scenario: &mut Scenario) {
    let mut flows = std::mem::take(&mut scenario.flows);
    let Ok(()) = change_tcp(&mut flows, |flow, tcp| -> Result<(), Infallible> {
        let mut ends = (tcp.sender, tcp.receiver);
        fit(scenario, flow, 0, (&tcp.variant_name, &tcp.explicit), &mut ends);
        (tcp.sender, tcp.receiver) = ends;
        for (n, leg) in tcp.splits.iter_mut().enumerate() {
            let mut ends = (leg.sender, leg.receiver);
            fit(scenario, flow, n + 1, (&leg.variant_name, &leg.explicit), &mut ends);
            (leg.sender, leg.receiver) = ends;
        }
        Ok(())
    });
    scenario.flows = flows;
}

/// Changes the settings of all TCP flows. For consecutive flows that are alike, this is done once, and they still share
/// the settings afterwards. `change` receives the flow as it was before.
pub(super) fn change_tcp<E>(
    flows: &mut [FlowSpec],
    mut change: impl FnMut(&FlowSpec, &mut TcpFlow) -> Result<(), E>,
) -> Result<(), E> {
    let mut latest: Option<(FlowSpec, Arc<TcpFlow>)> = None;
    for flow in flows {
        if let Some((before, after)) = &latest
            && flow.is_alike(before)
        {
            flow.kind = FlowKind::Tcp(after.clone());
            continue;
        }
        let before = flow.clone();
        let FlowKind::Tcp(tcp) = &mut flow.kind else { continue };
        change(&before, Arc::make_mut(tcp))?;
        latest = Some((before, tcp.clone()));
    }
    Ok(())
}

/// For the sender and the receiver, true if the window follows from the path.
pub(super) fn follow_path(scenario: &Scenario, variant: &str, explicit: &TcpOverrides) -> [bool; 2] {
    let Ok(ends) = resolve_tcp("rfc", variant, &scenario.variants, explicit) else { return [false; 2] };
    let lacking = lacks_window(variant, &scenario.variants, explicit);
    let is_fixed = |config: &TcpConfig| matches!(config.variant.startup, Startup::FixedWindow(_));
    [lacking[0] && is_fixed(&ends.0), lacking[1] && is_fixed(&ends.1)]
}

fn fit(
    scenario: &Scenario,
    flow: &FlowSpec,
    leg: usize,
    (variant, explicit): (&str, &TcpOverrides),
    ends: &mut (TcpConfig, TcpConfig),
) {
    let follow = follow_path(scenario, variant, explicit);
    if follow == [false; 2] {
        return;
    }
    let Some((there, back)) = path(scenario, flow, leg) else { return };
    let (sender, receiver) = (ends.0, ends.1);
    if let (true, Some(segments)) = (follow[0], holds(&there, &back, (&sender, &receiver))) {
        ends.0.variant.startup = Startup::FixedWindow(segments);
    }
    if let (true, Some(segments)) = (follow[1], holds(&back, &there, (&receiver, &sender))) {
        ends.1.variant.startup = Startup::FixedWindow(segments);
    }
}

type Links<'s> = Vec<&'s LinkConfig>;

/// The links of a leg in both directions, up to the spoofing gateway if the leg ends at one.
fn path<'s>(scenario: &'s Scenario, flow: &FlowSpec, leg: usize) -> Option<(Links<'s>, Links<'s>)> {
    let legs = topology::legs(flow);
    let this = legs.get(leg)?;
    let (mut there, mut back) = (this.forward_path(scenario).ok()?, this.return_path(scenario).ok()?);
    if let (Some(spoof), true) = (flow.kind.spoof(), leg + 1 == legs.len()) {
        there = topology::up_to(scenario, there, spoof.at, this.from)?;
        back = topology::from_on(scenario, back, spoof.at, this.from)?;
    }
    let links = |path: topology::Path| path.into_iter().map(|link| &scenario[link].config).collect();
    Some((links(there), links(back)))
}

/// Number of segments that the slowest line sends between the departure of one and the return of its ACK, with empty
/// queues, plus one for each segment that a delayed ACK may wait for. `None` if no line takes time.
fn holds(there: &[&LinkConfig], back: &[&LinkConfig], (data, acks): (&TcpConfig, &TcpConfig)) -> Option<u32> {
    let size = SegmentSize::between(data, acks);
    let seconds = |links: &[&LinkConfig], bytes: u32| -> f64 {
        links.iter().map(|link| link.delay.as_secs_f64() + limit::line_time(link, bytes).unwrap_or(0.0)).sum()
    };
    let wire = size.payload + size.headers;
    let round_trip = seconds(there, wire) + seconds(back, size.headers);
    let slowest = there.iter().filter_map(|link| limit::line_time(link, wire)).reduce(f64::max)?;
    let segments = (round_trip / slowest).ceil() + f64::from(acks.ack.every.saturating_sub(1));
    // The maximum window is 2^30 bytes (RFC 7323 section 2.3).
    Some((segments as u32).clamp(2, (1 << 30) / u32::from(data.mss).max(1)))
}
