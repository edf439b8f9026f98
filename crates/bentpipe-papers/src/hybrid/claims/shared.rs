//! Claims about several connections that share the gateway: figures 15 and 16.

use super::super::extensions;
use super::super::measure::Measured;
use super::super::setting::Scheme;
use super::super::sweeps::{self, simulate};
use super::super::traces;
use super::{listed, of_scheme, percent, published, slope};
use crate::finding::{Checked, Finding};
use crate::lab::Lab;

/// The points of figure 15 with this scheme and buffer.
fn shared(all: &[Measured], scheme: Scheme, buffer: u32) -> Vec<&Measured> {
    all.iter().filter(|point| point.setting.scheme == scheme && point.setting.buffer == buffer).collect()
}

pub(super) fn c13(lab: &Lab<'_>) -> Checked {
    let all = simulate(lab, 15)?;
    let slopes = sweeps::SHARED_BUFFERS.map(|buffer| {
        let points = shared(&all, Scheme::EndToEnd, buffer);
        slope(&points.iter().map(|p| (f64::from(p.setting.connections), p.per_mu)).collect::<Vec<_>>())
    });
    let [small, large] = sweeps::SHARED_BUFFERS.map(|buffer| listed(&shared(&all, Scheme::EndToEnd, buffer)));
    let what = format!("min slope over N = 1 to 20 of B = 30 (total in units of mu: {small}) and B = 100 ({large})");
    Ok(Finding::new(slopes[0].min(slopes[1]), what))
}

/// With splitting, the number of connections hardly matters as long as each has enough buffer.
pub(super) fn c14(lab: &Lab<'_>) -> Checked {
    let claim = published("H-C14");
    let all = simulate(lab, 15)?;
    let points = shared(&all, Scheme::Split, 100);
    let values: Vec<_> = points.iter().map(|p| p.per_mu).collect();
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &v| (l.min(v), h.max(v)));
    let trend = slope(&points.iter().map(|p| (f64::from(p.setting.connections), p.per_mu)).collect::<Vec<_>>());
    let trend = percent(trend * 19.0 / high);
    let note = format!(
        "(max - min)/max total over N = 1 to 20 at B = 100, where B/N >= 4: {}; by a linear fit {trend:+.1} % from N = 1 \
         to 20",
        listed(&points)
    );
    Ok(Finding::new(percent(1.0 - low / high), note).or_shape(trend.abs() <= claim.high.expect("bounded")))
}

pub(super) fn c15(lab: &Lab<'_>) -> Checked {
    let all = simulate(lab, 15)?;
    let points = shared(&all, Scheme::Split, 30);
    let peak = points.iter().map(|p| p.per_mu).fold(0.0, f64::max);
    let ten = points.iter().find(|p| p.setting.connections == 10).expect("a point of the figure");
    let what = format!(
        "total of N = 10 over the peak at B = 30: {} for N = {:?}, {:.1} timeouts per second at N = 10",
        listed(&points),
        sweeps::CONNECTIONS,
        ten.timeouts as f64 / ten.seconds
    );
    let long = extensions::long_terrestrial_ratio(lab)?;
    let note = format!("{what}. With T1 = 500 ms N = 10 carries {long:.2} of the peak. {}", extensions::collapse(lab)?);
    // The paper does not print the round trips. With T1 = 500 ms our result agrees with it.
    Ok(Finding::new(ten.per_mu / peak, note).or_shape(published("H-C15").holds_for(long)))
}

pub(super) fn c16(lab: &Lab<'_>) -> Checked {
    let hits: Vec<_> = traces::watch(lab)?.overflows();
    let both = hits.iter().filter(|(.., hit)| hit[0] && hit[1]).count();
    let one = hits.len() - both;
    let kinds = f64::from(both.min(1) as u32 + one.min(1) as u32);
    Ok(Finding::new(
        kinds,
        format!("of {} overflows in 150 s, {both} hit both connections and {one} only one", hits.len()),
    ))
}

pub(super) fn c21(lab: &Lab<'_>) -> Checked {
    let all = simulate(lab, 15)?;
    let several = of_scheme(&all, Scheme::EndToEnd).into_iter().filter(|p| p.setting.connections > 1);
    let ratio = |point: &&Measured| point.per_mu / point.model();
    let min = several.min_by(|a, b| ratio(a).total_cmp(&ratio(b))).expect("points with several connections");
    let what = format!(
        "min total of 2 to 20 connections over Eq. 39: at N = {}, B = {}",
        min.setting.connections, min.setting.buffer
    );
    Ok(Finding::new(ratio(&min), what))
}
