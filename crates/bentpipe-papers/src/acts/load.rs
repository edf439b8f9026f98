//! Figure 6: throughput over offered load, compared with the points that the paper names.

use bentpipe_study::report::{Axis, Mark};

use super::claims;
use super::sweeps::{FULL_RATE, SOURCES, curve, draw, series, switches, written};
use super::worlds::Place;
use crate::Row;
use crate::lab::Lab;
use crate::published::ACTS;
use crate::request::ReproduceError;

/// The row of figure 6; the drawing has our curves and the paper's points.
pub(super) fn figure(lab: &Lab<'_>, row: Row) -> Result<Row, ReproduceError> {
    let figure = ACTS.figure("A-F06").expect("the paper has it");
    let mut all = Vec::new();
    let mut distance: f64 = 0.0;
    let mut worst = String::new();
    let mut peaks = Vec::new();
    for place in Place::ALL {
        let ours = curve(lab, place)?;
        let printed = figure.points.iter().filter(|point| point.curve == place.name());
        let points: Vec<_> = printed.map(|point| (point.x.unwrap_or(FULL_RATE), point.y)).collect();
        for &(x, y) in &points {
            let mine = if x == FULL_RATE { ours.full } else { ours.at(x) };
            let off = 100.0 * (mine / y - 1.0).abs();
            if off > distance {
                distance = off;
                worst = format!("{} at {x} Mbit/s: {mine:.1} instead of {y:.1}", place.name());
            }
        }
        peaks.push(format!(
            "{} {:.1} at {}, {:.1} at full rate",
            place.name(),
            ours.peak().1,
            ours.peak().0,
            ours.full
        ));
        let with_full = ours.shaped.iter().copied().chain([(FULL_RATE, ours.full)]).collect();
        all.push(series(place.name(), Mark::Line, with_full));
        all.push(series(&format!("{}, printed", place.name()), Mark::Cross, points));
    }
    let x = Axis::new("offered load", "Mbit/s");
    draw(lab, "A-F06", "Throughput over offered load, three sources", x, all)?;
    let claims = ["A-C10", "A-C11", "A-C12", "A-C13", "A-C14"];
    let claims = claims.map(|id| claims::row(lab, id)).into_iter().collect::<Result<Vec<_>, _>>()?;
    let shows: Vec<_> = claims.iter().map(|claim| format!("{} {}", claim.id, claim.verdict.name())).collect();
    let verdict = claims.iter().map(|claim| claim.verdict).max().expect("five claims");
    let full = |place| Ok::<_, ReproduceError>(curve(lab, place)?.full);
    let ordered = full(Place::Lan)? > full(Place::Wan)? && full(Place::Wan)? > full(Place::Satellite)?;
    let why = format!(
        "shows {}. Peaks and full rate, Mbit/s: {}. Farthest from print: {worst}. {}. {}. {SOURCES}: {}",
        shows.join(", "),
        peaks.join("; "),
        if ordered {
            "LAN, WAN, satellite in the printed order at full rate"
        } else {
            "The order at full rate differs"
        },
        switches(lab)?,
        written(lab)?,
    );
    Ok(row.judged(verdict, why))
}
