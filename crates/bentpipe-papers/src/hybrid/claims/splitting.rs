//! Claims about splitting, and comparisons of both schemes: figures 10 to 12.

use bentpipe_study::model::hybrid::asymptotics;

use super::super::measure::{Measured, model};
use super::super::setting::{Scheme, Setting};
use super::super::sweeps::{self, simulate};
use super::{published, straightness};
use crate::finding::{Checked, Finding};
use crate::lab::Lab;

/// The throughput grows linearly with the buffer and saturates at the share of packets that are not lost.
pub(super) fn c04(lab: &Lab<'_>) -> Checked {
    let claim = published("H-C04");
    let all = simulate(lab, 10)?;
    let long: Vec<_> = all.iter().filter(|p| p.setting.t2_us == 500_000).collect();
    let last = long[long.len() - 1];
    // The points below saturation according to the model.
    let rising: Vec<_> = long.iter().filter(|p| model(&p.setting) < claim.limit("rising")).collect();
    let line: Vec<_> = rising.iter().map(|p| (f64::from(p.setting.buffer), p.per_mu)).collect();
    let straight = straightness(&line);
    let note = format!(
        "simulated at B = {} packets and T2 = 500 ms, Eq. 52 says {:.4}; R² of a line over B through the {} points below \
         saturation is {straight:.4}",
        last.setting.buffer,
        last.model(),
        line.len()
    );
    let linear = straight >= claim.limit("straight");
    Ok(Finding::new(last.per_mu, note).and(linear).or_shape(linear || claim.holds_for(last.per_mu)))
}

pub(super) fn c05(lab: &Lab<'_>) -> Checked {
    let all = simulate(lab, 11)?;
    let drop = |buffer: u32, t2: u64, value: &dyn Fn(&Measured) -> f64| {
        let of = |p: f64| {
            let fits = |s: &Setting| s.buffer == buffer && s.t2_us == t2 * 1000 && s.loss == p;
            value(all.iter().find(|point| fits(&point.setting)).expect("a point of the figure"))
        };
        1.0 - of(0.5) / of(0.1)
    };
    let [short, long] = sweeps::SPLIT_T2_MS;
    let difference = |buffer, value: &dyn Fn(&Measured) -> f64| drop(buffer, long, value) - drop(buffer, short, value);
    let simulated = |point: &Measured| point.per_mu;
    let by_model = |point: &Measured| point.model();
    let [small, large] = sweeps::SPLIT_BUFFERS;
    let what = format!(
        "relative drop of the throughput from p = 0.1 to 0.5 at T2 = 500 ms minus that at 10 ms, B = {small} packets, \
         simulated (Eq. 52: {:.2}); with B = {large} the short path is at its limit 1-p and the sign is reversed ({:.2}), so \
         the figure, whose B is not printed, had a smaller one",
        difference(small, &by_model),
        difference(large, &simulated)
    );
    Ok(Finding::new(difference(small, &simulated), what))
}

pub(super) fn c06(lab: &Lab<'_>) -> Checked {
    let at = |alpha: f64, t2| {
        let path = Setting::new(Scheme::EndToEnd, 100, 0, t2, 0.1).path().with_alpha(alpha).expect("a ratio");
        asymptotics::crossing(&path, 0.005)
    };
    let shown = |x: Option<f64>| x.map_or("nowhere".to_owned(), |x| format!("up to {x:.2}"));
    let measured = simulate(lab, 12)?;
    let wins: Vec<_> = measured
        .chunks(2)
        .filter(|pair| pair[0].per_mu > pair[1].per_mu)
        .map(|pair| {
            let path = pair[0].setting.path();
            format!("{:.1} at alpha = {:.1}", path.beta() / (1.0 + 2.0 * path.alpha()), path.alpha())
        })
        .collect();
    let what = format!(
        "T2 = 100 ms, p = 0.1: by Eq. 39 and 52 end to end carries more at alpha = 10 up to this normalised buffer (T2 = \
         500 ms: {}), at alpha = 1 {}, at alpha = 0.1 {} (figure 12 compares the formulas); in simulations it does at {}",
        shown(at(10.0, 500)),
        shown(at(1.0, 100)),
        shown(at(0.1, 100)),
        if wins.is_empty() { "none of the points".to_owned() } else { wins.join(", ") }
    );
    Ok(Finding::new(at(10.0, 100).unwrap_or(0.0), what))
}
