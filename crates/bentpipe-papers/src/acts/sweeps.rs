//! Curves: throughput over offered load, over the bit error rate (A-E09), over the buffer (A-E11).

use bentpipe_study::report::{Axis, Figure, Mark, Panel, Series, write_figure};
use bentpipe_study::stats::mean;

use super::worlds::{Load, Place, TRIALS, congested, maximum, measured, rates, world};
use crate::lab::Lab;
use crate::published::ACTS;
use crate::request::ReproduceError;

/// Offered loads of figure 6, Mbit/s (A-Q14).
const LOADS: [f64; 8] = [30.0, 45.0, 60.0, 75.0, 90.0, 105.0, 120.0, 135.0];
/// Load of three hosts at full rate: 134.5 Mbit/s each.
pub(super) const FULL_RATE: f64 = 403.5;
/// Runs per point of a curve, at most half of the number of replications.
const TRIALS_OF_A_POINT: u32 = 4;

/// Runs of a variation that tests why our maximum of [`TRIALS`] runs differs from the paper's: also [`TRIALS`], but at most half of
/// the replications.
pub(super) fn trials_of_a_variation(lab: &Lab<'_>) -> u32 {
    lab.options().reps.div_ceil(2).min(TRIALS)
}

/// Runs per point of a curve.
pub(super) fn trials(lab: &Lab<'_>) -> u32 {
    lab.options().reps.div_ceil(2).min(TRIALS_OF_A_POINT)
}

/// One place's curve of figure 6.
pub(super) struct Curve {
    /// Offered load and mean throughput, Mbit/s.
    pub(super) shaped: Vec<(f64, f64)>,
    /// Mean throughput at full rate, Mbit/s.
    pub(super) full: f64,
}

impl Curve {
    pub(super) fn at(&self, load: f64) -> f64 {
        self.shaped.iter().find(|point| point.0 == load).map_or(f64::NAN, |point| point.1)
    }

    /// Load and throughput of the peak.
    pub(super) fn peak(&self) -> (f64, f64) {
        self.shaped.iter().copied().fold((0.0, 0.0), |best, point| if point.1 > best.1 { point } else { best })
    }

    /// The changes of the throughput from load to load beyond the peak, up to full rate, Mbit/s.
    pub(super) fn beyond_the_peak(&self) -> Vec<f64> {
        let (peak, _) = self.peak();
        let shaped = self.shaped.iter().filter(|point| point.0 >= peak).map(|point| point.1);
        let all: Vec<_> = shaped.chain([self.full]).collect();
        all.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

pub(super) fn curve(lab: &Lab<'_>, place: Place) -> Result<Curve, ReproduceError> {
    let loads = LOADS.iter().map(|&load| Load::Shaped(load)).chain([Load::Full]);
    let worlds: Vec<_> = loads.map(|load| measured(place, load, &[])).collect();
    let runs = lab.sweep(&format!("acts, figure 6, {}", place.name()), &worlds, trials(lab))?;
    let means: Vec<f64> = runs.iter().map(|runs| mean(&rates(runs))).collect();
    let shaped = LOADS.iter().copied().zip(means.iter().copied()).collect();
    Ok(Curve { shaped, full: means[LOADS.len()] })
}

pub(super) fn series(name: &str, mark: Mark, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.into(), mark, points }
}

pub(super) fn draw(lab: &Lab<'_>, name: &str, title: &str, x: Axis, series: Vec<Series>) -> Result<(), ReproduceError> {
    let Some(folder) = &lab.options().out_dir else { return Ok(()) };
    let y = Axis::new("aggregate throughput", "Mbit/s");
    let panel = Panel { title: title.into(), x, y, series, spans: None };
    write_figure(folder, name, &Figure { title: format!("{name}: {title}"), panels: vec![panel] })?;
    Ok(())
}

/// Throughput at full rate with the shared buffer and with a buffer per channel, as text.
pub(super) fn switches(lab: &Lab<'_>) -> Result<String, ReproduceError> {
    const OWN: (&str, &str) = ("links.sat.forward.atm.sharing", "per-vc");
    let mut words = Vec::new();
    for place in Place::ALL {
        let full = |sets: &[(&str, &str)]| -> Result<f64, ReproduceError> {
            let what = format!("acts, full rate, {}", place.name());
            Ok(mean(&rates(&lab.runs(&what, &measured(place, Load::Full, sets), trials(lab))?)))
        };
        words.push(format!("{} {:.1} and {:.1}", place.name(), full(&[])?, full(&[OWN])?));
    }
    Ok(format!(
        "8192 cells shared by the channels of a module, as in the switches (§5.1), and 8192 for each, as in the paper's \
         simulation, at full rate: {}",
        words.join(", ")
    ))
}

/// Why the curves do not peak at 105, as far as the experiment shows. Continued by [`written`].
pub(super) const SOURCES: &str = "Cells shaped in the hosts' cards overflow no buffer below the 134.5 Mbit/s of the line, so our \
    curves rise beyond 105. Applications that write at a rate, without shaping, lose throughput from 90 on, because data \
    queued in their buffers leaves in windows; total written load and throughput";

/// Loads written by applications without shaping, and their throughput, as text.
pub(super) fn written(lab: &Lab<'_>) -> Result<String, ReproduceError> {
    let loads = [75.0, 90.0, 105.0, 120.0];
    let mut words = Vec::new();
    for place in Place::ALL {
        let worlds = loads.map(|load| measured(place, Load::Written(load), &[]));
        let runs = lab.sweep(&format!("acts, figure 6, written, {}", place.name()), &worlds, trials(lab))?;
        let means: Vec<_> = runs.iter().map(|runs| format!("{:.1}", mean(&rates(runs)))).collect();
        words.push(format!("{} {}", place.name(), means.join(" ")));
    }
    Ok(format!("75, 90, 105, 120: {}", words.join("; ")))
}

/// Senders in the sweep over the bit error rate.
pub(super) const SENDERS: [&str; 4] = ["reno", "no constant", "newreno", "sack"];

/// Bit error rates in scenario 2, in the direction of the data. The paper prints 1e-9, and 1e-8 for the other direction.
pub(super) const ERROR_RATES: [&str; 8] = ["1e-8", "3e-9", "1e-9", "3e-10", "1e-10", "3e-11", "1e-11", "0"];

/// Throughput of scenario 2 in Mbit/s at a bit error rate of the data, with 4.3BSD's `reno`, the same without its additive
/// constant, or another variant on that stack.
pub(super) fn at_error_rate(lab: &Lab<'_>, sender: &str, rate: &str) -> Result<Vec<f64>, ReproduceError> {
    let own = match sender {
        "no constant" => ("tcp.shortcuts.bsd_additive_constant", "false"),
        variant => ("tcp.variant", variant),
    };
    let scenario = world(2, &[("links.sat.forward.bit_error_rate", rate), own]);
    Ok(rates(&lab.runs(&format!("acts, scenario 2, {sender}, bit error rate {rate}"), &scenario, trials(lab))?))
}

/// The sweep over bit error rates, as text and drawn.
pub(super) fn error_rates(lab: &Lab<'_>) -> Result<String, ReproduceError> {
    let mut all = Vec::new();
    let mut words = Vec::new();
    let printed = ACTS.table(6).and_then(|table| table.value("scenario 2 OC-12", "simulation")).expect("printed");
    for sender in SENDERS {
        let mut points = Vec::new();
        let mut min_for_131 = None;
        for rate in ERROR_RATES {
            let ours = at_error_rate(lab, sender, rate)?;
            let exponent = if rate == "0" { -13.0 } else { rate.parse::<f64>().map_or(0.0, f64::log10) };
            points.push((exponent, mean(&ours)));
            if maximum(&ours) >= printed && min_for_131.is_none() {
                min_for_131 = Some(rate);
            }
        }
        let means: Vec<_> = ERROR_RATES.iter().zip(&points).map(|(rate, p)| format!("{rate}: {:.1}", p.1)).collect();
        let reached = min_for_131.map_or("nowhere".to_owned(), |rate| format!("from {rate} down"));
        words.push(format!("{sender}: {}; a trial of {printed:.1} or more {reached}", means.join(", ")));
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.push(series(sender, Mark::Line, points));
    }
    let x = Axis::new("log10 of the bit error rate; -13 for none", "");
    draw(lab, "A-E09", "Scenario 2 over the bit error rate of the data", x, all)?;
    Ok(format!("mean Mbit/s of {} transfers of 1 GB by bit error rate. {}", trials(lab), words.join(". ")))
}

/// Variations of scenario 2 at the printed error rates: mean and maximum of the trials, Mbit/s, as text.
pub(super) fn noise_varied(lab: &Lab<'_>) -> Result<String, ReproduceError> {
    const CLEAN: (&str, &str) = ("links.sat.forward.bit_error_rate", "0");
    let of = |number: usize, sets: &[(&str, &str)], count: u32| -> Result<String, ReproduceError> {
        let scenario = world(number, sets);
        let all = rates(&lab.runs(&format!("acts, scenario {number}, varied"), &scenario, count)?);
        Ok(format!("{:.1} ({:.1})", mean(&all), maximum(&all)))
    };
    let count = trials_of_a_variation(lab);
    // The cwnd also grows beyond the peer's window, and half of it is the new ssthresh.
    let wide =
        [("tcp.shortcuts.ns2_recovery", "true"), ("tcp.shortcuts.ssthresh_base", "window"), ("tcp.ack.every", "2")];
    let short = [CLEAN, ("flows.data.bytes", "776 MiB")];
    // Which packet it is matters little: number 5000 and 100 000 give the same as the middle one.
    let [one, two] = ["[60000]", "[30000, 90000]"].map(|lost| [CLEAN, ("links.sat.forward.drop_list", lost)]);
    Ok(format!(
        "4.3BSD Reno {}; one lost packet {}; two {}; no additive constant {}; an ACK for each segment {}; a `cwnd` that grows beyond the peer's window and determines ssthresh {}; errors in bursts of ten bits {}; no loss {}. Without loss transfers of 776 \
         MiB would give both printed simulations, here {} and in scenario 1 {}, but the paper states a GB",
        of(2, &[], count)?,
        of(2, &one, 2)?,
        of(2, &two, 2)?,
        of(2, &[("tcp.shortcuts.bsd_additive_constant", "false")], count)?,
        of(2, &[("tcp.ack.every", "1")], count)?,
        of(2, &wide, count)?,
        of(2, &[("links.sat.forward.bit_error_rate", "1e-10")], count)?,
        of(2, &[CLEAN], 2)?,
        of(2, &short, 2)?,
        of(1, &short[1..], 2)?
    ))
}

/// The effect of each part of 4.3BSD Reno on scenario 3 at full rate, Mbit/s, as text.
pub(super) fn parts_of_reno(lab: &Lab<'_>) -> Result<String, ReproduceError> {
    const PARTS: [(&str, &str, &str); 4] = [
        ("without the constant", "tcp.shortcuts.bsd_additive_constant", "false"),
        ("half of FlightSize instead of the window", "tcp.shortcuts.ssthresh_base", "flight-size"),
        ("with RFC 6582's guard", "tcp.once_per_window", "true"),
        ("with that guard after a timeout only", "tcp.guard_after_timeout", "true"),
    ];
    let count = trials_of_a_variation(lab);
    let varied = |sets: &[(&str, &str)]| -> Result<String, ReproduceError> {
        let scenario = congested(Place::Satellite, Load::Full, sets);
        let all = rates(&lab.runs("acts, scenario 3, parts of Reno", &scenario, count)?);
        Ok(format!("{:.1} ({:.1})", mean(&all), maximum(&all)))
    };
    let mut words = Vec::new();
    for (name, key, value) in PARTS {
        words.push(format!("{name} {}", varied(&[(key, value)])?));
    }
    let rfc: Vec<_> = PARTS[..3].iter().map(|&(_, key, value)| (key, value)).collect();
    Ok(format!(
        "mean (max) of {count} trials {}; {}; with the first three of these, as in RFC 5681 and 6582, {}",
        varied(&[])?,
        words.join(", "),
        varied(&rfc)?
    ))
}

/// Throughput of the variants with bit errors and under congestion, as text.
pub(super) fn variants(lab: &Lab<'_>) -> Result<String, ReproduceError> {
    let mut words = Vec::new();
    for variant in ["reno", "newreno", "sack"] {
        let noisy = mean(&at_error_rate(lab, variant, "1e-9")?);
        let full = mean(&full_rate(lab, &[("tcp.variant", variant)])?);
        words.push(format!("{variant} {noisy:.1} at 1e-9, {full:.1} at full rate"));
    }
    Ok(format!("mean Mbit/s in scenario 2 and in scenario 3: {}", words.join("; ")))
}

/// Throughput of scenario 3 in Mbit/s at full rate with other settings.
pub(super) fn full_rate(lab: &Lab<'_>, sets: &[(&str, &str)]) -> Result<Vec<f64>, ReproduceError> {
    let what = format!("acts, scenario 3, {}", sets.iter().map(|(_, value)| *value).collect::<Vec<_>>().join(", "));
    Ok(rates(&lab.runs(&what, &congested(Place::Satellite, Load::Full, sets), trials(lab))?))
}

/// Throughput over the buffer with and without packet discard, as text and drawn.
pub(super) fn buffers(lab: &Lab<'_>) -> Result<String, ReproduceError> {
    const BUFFER: &str = "links.sat.forward.atm.buffer";
    const EARLY: &str = "links.sat.forward.atm.early_packet_discard";
    const PARTIAL: &str = "links.sat.forward.atm.partial_packet_discard";
    let mut all = Vec::new();
    let mut words = Vec::new();
    let ways = [("EPD and PPD", "80 %", "true"), ("PPD", "off", "true"), ("neither", "off", "false")];
    for (name, early, partial) in ways {
        let mut points = Vec::new();
        for cells in [2048, 8192, 32768, 131_072] {
            let room = format!("{cells} cells");
            let sets = [(BUFFER, room.as_str()), (EARLY, early), (PARTIAL, partial)];
            points.push((f64::from(cells).log2(), mean(&full_rate(lab, &sets)?)));
        }
        let means: Vec<_> = points.iter().map(|point| format!("{:.1}", point.1)).collect();
        words.push(format!("{name} {}", means.join(", ")));
        all.push(series(name, Mark::Line, points));
    }
    let x = Axis::new("log2 of the buffer per channel", "cells");
    draw(lab, "A-E11", "Scenario 3 at full rate over the buffer", x, all)?;
    Ok(format!("mean Mbit/s with buffers of 2048, 8192, 32768 and 131072 cells per channel: {}", words.join("; ")))
}
