//! The maximum goodput over lines that change, while a flow runs.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Duration, Time};

use super::{Plan, delay, has_one_line, legs_over, line_bytes, line_time, loss_with, place, plan};
use crate::scenario::model::{FlowSpec, Scenario, Workload};
use crate::topology::Unreachable;

/// The maximum payload rate of a connection between two instants of a run in bits per second, and the link that sets it, if all flows over
/// it share its line. It follows from what the lines on the data's path can send in that time under this seed. `None` for UDP, and if no
/// rate of these lines changes: [`flow_limit`](super::flow_limit) then has the limit.
///
/// # Errors
/// Fails if no path connects the ends of the flow.
pub fn goodput_between(
    scenario: &Scenario,
    flow: &FlowSpec,
    seed: u64,
    (start, end): (Time, Time),
) -> Result<Option<(f64, Option<LinkId>)>, Unreachable> {
    let Some(Plan { sizes, workload, .. }) = plan(scenario, flow) else { return Ok(None) };
    let best: Vec<_> = scenario.links.iter().map(|link| link.config.at_best()).collect();
    let legs = legs_over(scenario, flow, &best)?;
    let answers = matches!(workload, Workload::RequestResponse { .. });
    let mut on_path: Vec<_> =
        sizes.iter().zip(legs).map(|(size, (there, back))| (size, if answers { back } else { there })).collect();
    if answers {
        on_path.reverse();
    }
    if !on_path.iter().flat_map(|(_, links)| links).any(|link| link.rate_changes()) {
        return Ok(None);
    }
    let lasts = end.saturating_since(start).as_secs_f64();
    let mut left = on_path.iter().fold(Duration::ZERO, |sum, (_, links)| sum + delay(links));
    let mut reached = start;
    let mut min: Option<(f64, Option<LinkId>)> = None;
    for (size, links) in on_path {
        let wire = size.payload + size.headers;
        for (n, link) in links.iter().enumerate() {
            let place = place(&best, link).expect("a link of the scenario");
            let spec = &scenario.links[place];
            // What leaves the line later does not arrive until `end`.
            let until = Time::ZERO + end.saturating_since(Time::ZERO + left);
            let bits = if link.rate_changes() {
                // A trace's opportunity at this very instant can be used.
                let before = Time::from_ticks(reached.as_ticks().saturating_sub(1));
                let before = if before > Time::ZERO { spec.capacity(seed, before) } else { Some(0.0) };
                let room = spec.capacity(seed, until).zip(before).map(|(until, before)| (until - before).max(0.0));
                room.map(|room| room / line_bytes(link, wire) as f64 * f64::from(size.payload) * 8.0 / lasts)
            } else {
                line_time(link, wire).map(|time| f64::from(size.payload) * 8.0 / time)
            };
            let passes: f64 = links[n..].iter().map(|link| 1.0 - loss_with(link, link.good, wire)).product();
            if let Some(rate) = bits.map(|bits| bits * passes)
                && min.is_none_or(|(min, _)| rate < min)
            {
                min = Some((rate, has_one_line(link).then(|| LinkId::from(place))));
            }
            reached += link.delay;
            left = Duration::from_ticks(left.as_ticks() - link.delay.as_ticks());
        }
    }
    Ok(min)
}
