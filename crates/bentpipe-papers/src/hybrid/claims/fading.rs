//! Claims about a channel that fades: figure 14.

use bentpipe_study::model::hybrid::fading::Bounds;

use super::super::measure::Measured;
use super::super::setting::Scheme;
use super::super::sweeps::simulate;
use super::{listed, of_scheme, percent, published};
use crate::finding::{Checked, Finding};
use crate::lab::Lab;

pub(super) fn c11(lab: &Lab<'_>) -> Checked {
    let all = simulate(lab, 14)?;
    let drop = |scheme| {
        let points = of_scheme(&all, scheme);
        1.0 - points[points.len() - 1].per_mu / points[0].per_mu
    };
    let (end_to_end, split) = (drop(Scheme::EndToEnd), drop(Scheme::Split));
    let what = format!(
        "relative drop from f = 0.1 to 50 per s, simulated: end to end {end_to_end:.2}, split {split:.2}; over all rates, end to \
         end carries {}, split {}",
        listed(&of_scheme(&all, Scheme::EndToEnd)),
        listed(&of_scheme(&all, Scheme::Split))
    );
    Ok(Finding::new(end_to_end - split, what))
}

/// The upper bounds hold, and the throughput with independent losses is the lower bound end to end.
pub(super) fn c12(lab: &Lab<'_>) -> Checked {
    let claim = published("H-C12");
    let all = simulate(lab, 14)?;
    let bounds = Bounds::new(&all[0].setting.path()).expect("in range");
    let above = |point: &&&Measured, bound: f64| point.per_mu - point.half > bound;
    let (ends, split) = (of_scheme(&all, Scheme::EndToEnd), of_scheme(&all, Scheme::Split));
    let over = ends.iter().filter(|point| above(point, bounds.end_to_end_upper)).count();
    let over_split = split.iter().filter(|point| above(point, bounds.split_upper)).count();
    let min = ends.iter().map(|point| point.per_mu).fold(f64::INFINITY, f64::min);
    let off = percent(min / bounds.end_to_end_independent - 1.0);
    // A wide interval could hide a violation.
    let widest = all.iter().map(|point| percent(point.half / point.per_mu)).fold(0.0, f64::max);
    let note = format!(
        "simulated points whose 95 % interval, of {widest:.0} % half-width at most, is above their bound: end to end {over} of \
         {} (bound {:.3}, simulated {}), split {over_split} of {} (bound {:.3}, simulated {}). The minimum end to end is \
         {off:+.0} % off the {:.3} of independent losses",
        ends.len(),
        bounds.end_to_end_upper,
        listed(&ends),
        split.len(),
        bounds.split_upper,
        listed(&split),
        bounds.end_to_end_independent,
    );
    let near = off.abs() <= claim.limit("lower_end_percent");
    let known = widest <= claim.limit("widest_percent");
    let number = (over + over_split) as f64;
    Ok(Finding::new(number, note).and(near && known).or_shape(claim.holds_for(number)))
}
