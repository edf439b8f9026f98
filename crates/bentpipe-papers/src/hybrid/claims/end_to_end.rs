//! Claims about TCP end to end over the repairing link: figures 6 to 9 and 13.

use std::collections::BTreeMap;

use super::super::extensions;
use super::super::measure::{Measured, model};
use super::super::setting::{Scheme, Setting};
use super::super::sweeps::{self, simulate};
use super::{listed, percent, published, straightness};
use crate::finding::{Checked, Finding};
use crate::lab::Lab;
use crate::request::ReproduceError;

/// Simulated points of figures 6 to 9, each setting once.
fn end_to_end_points(lab: &Lab<'_>) -> Result<Vec<Measured>, ReproduceError> {
    let mut all: Vec<Measured> = Vec::new();
    for number in 6..=9 {
        for point in simulate(lab, number)? {
            if all.iter().all(|other| other.setting != point.setting) {
                all.push(point);
            }
        }
    }
    Ok(all)
}

pub(super) fn c01(lab: &Lab<'_>) -> Checked {
    let all = end_to_end_points(lab)?;
    let off = |part: &[&Measured]| {
        let values = part.iter().map(|point| point.off());
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (small, large): (Vec<_>, Vec<_>) = all.iter().partition(|point| point.setting.path().beta() <= 2.0);
    let ((low, high), beyond) = (off(&small), off(&large));
    let farthest = small.iter().max_by(|a, b| a.off().abs().total_cmp(&b.off().abs())).expect("points with beta <= 2");
    let roomy: Vec<_> = small.iter().copied().filter(|point| point.setting.buffer >= 20).collect();
    let roomy = off(&roomy);
    let what = format!(
        "simulation against Eq. 39 over figures 6 to 9, {} points with beta <= 2: {:+.0} % to {:+.0} %, farthest at {}; with B \
         >= 20 {:+.0} % to {:+.0} %; {} points with beta > 2: {:+.0} % to {:+.0} %",
        small.len(),
        percent(low),
        percent(high),
        farthest.setting,
        percent(roomy.0),
        percent(roomy.1),
        large.len(),
        percent(beyond.0),
        percent(beyond.1)
    );
    Ok(Finding::new(percent(farthest.off()), format!("{what}. {}", extensions::release_and_guard(lab)?)))
}

pub(super) fn c02(lab: &Lab<'_>) -> Checked {
    let ends = |number: u8, p: f64| -> Result<f64, ReproduceError> {
        let all = simulate(lab, number)?;
        let of: Vec<_> = all.iter().filter(|point| point.setting.loss == p).collect();
        Ok(of[0].per_mu - of[of.len() - 1].per_mu)
    };
    let mut ratios = Vec::new();
    for p in sweeps::LOSSES {
        ratios.push(ends(7, p)? / ends(8, p)?);
    }
    let ratio = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let curve = |s: Setting| model(&s);
    let at = |t1, t2| curve(Setting::new(Scheme::EndToEnd, sweeps::BUFFER, t1, t2, 0.1));
    let by_model = (at(100, 100) - at(100, 500)) / (at(100, 100) - at(500, 100));
    let what = format!(
        "throughput lost from 100 to 500 ms of T2 over that lost from 100 to 500 ms of T1, simulated, the minimum of p = 0.1 \
         ({:.2}) and 0.3 ({:.2}); Eq. 39 at p = 0.1: {by_model:.2}",
        ratios[0], ratios[1]
    );
    Ok(Finding::new(ratio, what))
}

/// Buffers of figure 9, packets.
const BUFFERS: [u32; 12] = [10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200];

pub(super) fn c03(lab: &Lab<'_>) -> Checked {
    let curve = |p| BUFFERS.map(|b| (f64::from(b), model(&Setting::new(Scheme::EndToEnd, b, 100, 100, p))));
    let curves = sweeps::LOSSES.map(curve);
    let fit = |curve: &[(f64, f64)]| straightness(&curve.iter().map(|(b, y)| (b.ln(), *y)).collect::<Vec<_>>());
    let min = curves.iter().map(|curve| fit(curve)).fold(1.0, f64::min);
    let rises = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
    let concave = |curve: &[(f64, f64)]| curve.windows(3).all(|w| rises(&w[..2]) > rises(&w[1..]));
    // True if the slope increases by more than its error: the root of the sum of the points' squared errors.
    let bends_up = |w: &[&Measured]| {
        let at = |n: usize| (f64::from(w[n].setting.buffer), w[n].per_mu, w[n].half);
        let ((x0, y0, h0), (x1, y1, h1), (x2, y2, h2)) = (at(0), at(1), at(2));
        let more = (y2 - y1) / (x2 - x1) - (y1 - y0) / (x1 - x0);
        let known = [h0 / (x1 - x0), h1 * (1.0 / (x1 - x0) + 1.0 / (x2 - x1)), h2 / (x2 - x1)];
        more > known.iter().map(|part| part * part).sum::<f64>().sqrt()
    };
    // At β = 1 (25 packets), A3 of Eq. 40 jumps by a term that the paper omits, so each side is checked separately.
    let by_model = curves.iter().all(|curve| curve.chunk_by(|a, b| (a.0 < 25.0) == (b.0 < 25.0)).all(concave));
    let measured = simulate(lab, 9)?;
    let of = |p: f64| measured.iter().filter(move |point| point.setting.loss == p).collect::<Vec<_>>();
    let simulated = sweeps::LOSSES.map(of);
    let by_simulation = !simulated.iter().any(|curve| curve.windows(3).any(bends_up));
    let form = |concave| if concave { "concave" } else { "not concave" };
    let what = format!(
        "min R² of a line over ln B from 10 to 200 packets, p = 0.1 and 0.3, Eq. 39, which is {} below and above B = mu T2; \
         the simulated points are {} within their intervals: {} and {}",
        form(by_model),
        form(by_simulation),
        listed(&simulated[0]),
        listed(&simulated[1])
    );
    let straight = published("H-C03").holds_for(min);
    Ok(Finding::new(min, what).and(by_model && by_simulation).or_shape(straight))
}

/// Beyond a few transmissions per packet, a higher limit does not change the throughput.
pub(super) fn c10(lab: &Lab<'_>) -> Checked {
    let claim = published("H-C10");
    let all = simulate(lab, 13)?;
    let at = |p: f64, max: u32| {
        let fits = |s: &Setting| s.loss == p && s.transmissions == Some(max);
        all.iter().find(|point| fits(&point.setting)).expect("a point of the figure").per_mu
    };
    let change = |p, from| percent((at(p, 20) / at(p, from) - 1.0).abs());
    let greatest = |p, from: &[u32]| from.iter().map(|&max| change(p, max)).fold(0.0, f64::max);
    let number = greatest(0.1, &[5, 7, 10]);
    let note = format!(
        "max change of the simulated throughput from 5, 7 or 10 to 20 transmissions at p = 0.1 ({:.1}, {:.1}, {:.1} %); one \
         transmission gives {:.3}, twenty {:.3} of mu; at p = 0.3 from 7: {:.1} %, from 10: {:.1} %",
        change(0.1, 5),
        change(0.1, 7),
        change(0.1, 10),
        at(0.1, 1),
        at(0.1, 20),
        change(0.3, 7),
        change(0.3, 10)
    );
    // Without a rise there is no saturation.
    let rises = sweeps::LOSSES.iter().all(|&p| at(p, 20) >= claim.limit("rise") * at(p, 1));
    let later = claim.holds_for(change(0.1, 10));
    Ok(Finding::new(number, note).and(rises).or_shape(rises && later))
}

pub(super) fn c17(lab: &Lab<'_>) -> Checked {
    let all = end_to_end_points(lab)?;
    let total: u64 = all.iter().map(|point| point.timeouts).sum();
    let hours = all.iter().map(|point| point.seconds).sum::<f64>() / 3600.0;
    let mut by_beta: BTreeMap<bool, u64> = BTreeMap::new();
    for point in &all {
        *by_beta.entry(point.setting.path().beta() > 2.0).or_default() += point.timeouts;
    }
    let [small, large] = [false, true].map(|beyond| by_beta.get(&beyond).copied().unwrap_or(0));
    let what = format!(
        "timeouts in {hours:.1} h of all runs of figures 6 to 9, {:.1} per hour; {small} of them with beta <= 2, {large} beyond",
        total as f64 / hours
    );
    let why = extensions::timeouts_varied(lab)?;
    Ok(Finding::new(total as f64, format!("{what}; {why}")))
}
