//! Variations that test why figure 6 differs: A-C10, A-C11 and A-C12. `studies/acts/README.md` has more of them.

use bentpipe_study::stats::mean;

use super::sweeps::{trials, trials_of_a_variation};
use super::worlds::{Load, Place, maximum, measured, rates};
use crate::lab::Lab;
use crate::request::ReproduceError;

type Words = Result<String, ReproduceError>;

/// The load at which each place's curve peaks with slower lines, as text.
pub(super) fn narrower_lines(lab: &Lab<'_>) -> Words {
    const LOADS: [f64; 4] = [90.0, 105.0, 120.0, 135.0];
    let mut words = Vec::new();
    for line in ["140 Mbit/s", "126 Mbit/s", "116 Mbit/s"] {
        let mut peaks = Vec::new();
        for place in Place::ALL {
            let worlds = LOADS.map(|load| measured(place, Load::Shaped(load), &[("links.sat.forward.rate", line)]));
            let runs = lab.sweep(&format!("acts, figure 6, {}, line of {line}", place.name()), &worlds, trials(lab))?;
            let points = LOADS.iter().zip(runs.iter().map(|runs| mean(&rates(runs))));
            let peak = points.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(f64::NAN, |(&load, _)| load);
            peaks.push(peak.to_string());
        }
        words.push(format!("{line} {}", peaks.join(", ")));
    }
    Ok(words.join("; "))
}

/// The throughput at 105 Mbit/s in trials of other lengths, as text.
pub(super) fn lengths(lab: &Lab<'_>) -> Words {
    let mut words = Vec::new();
    for length in ["640 s", "88 s", "43 s"] {
        let mut means = Vec::new();
        for place in Place::ALL {
            let world = measured(place, Load::Shaped(105.0), &[("time_limit", length)]);
            let what = format!("acts, 105 Mbit/s for {length}, {}", place.name());
            means.push(format!("{:.1}", mean(&rates(&lab.runs(&what, &world, trials(lab))?))));
        }
        words.push(format!("{length} {}", means.join(", ")));
    }
    Ok(words.join("; "))
}

/// The max throughput at full rate with another switch or another TCP, as text.
pub(super) fn at_full_rate(lab: &Lab<'_>) -> Words {
    const EARLY: &str = "links.sat.forward.atm.early_packet_discard";
    const VARIED: [(&str, &str, &str); 4] = [
        ("early discard from 50 %", EARLY, "50 %"),
        ("from 90 %", EARLY, "90 %"),
        ("8192 cells for each channel", "links.sat.forward.atm.sharing", "per-vc"),
        ("RFC 6582's guard", "tcp.once_per_window", "true"),
    ];
    let count = trials_of_a_variation(lab);
    let mut words = Vec::new();
    for (name, key, value) in VARIED {
        let mut best = Vec::new();
        for place in Place::ALL {
            let world = measured(place, Load::Full, &[(key, value)]);
            let what = format!("acts, full rate, {name}, {}", place.name());
            best.push(format!("{:.1}", maximum(&rates(&lab.runs(&what, &world, count)?))));
        }
        words.push(format!("{name} {}", best.join(", ")));
    }
    Ok(words.join("; "))
}
