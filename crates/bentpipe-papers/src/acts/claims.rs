//! The 25 statements.

use bentpipe_engine::atm::aal5::{self, Reassembler};
use bentpipe_engine::atm::cell::{Header, PayloadType};
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_sim::{Observer, Packet, Passage};
use bentpipe_study::model::window;
use bentpipe_study::scenario::Scenario;
use bentpipe_study::stats::{mean, standard_deviation};

use super::sweeps::{Curve, at_error_rate, curve, full_rate, parts_of_reno, switches};
use super::tables::{TRIALS, best, noisy, rate_ladder, rate_of, trials_of};
use super::worlds::{Load, MIB, Place, greatest, measured, rates, world};
use crate::lab::Lab;
use crate::published::{ACTS, Claim};
use crate::reproduce::ReproduceError;
use crate::{Row, Verdict};

/// Round trip of the satellite path, seconds (§6.1).
const RTT: f64 = 0.534;

const SHAPED: &str = "cells shaped in the hosts' cards overflow no buffer below the 134.5 Mbit/s that the line carries; \
    applications that write at a rate without shaping lose cells from 90 on (A-F06): the experiment's sources, which lost \
    them from 105 on, were neither, and are not described";

/// What a claim came to.
struct Found {
    ours: Option<f64>,
    /// Overrides what the bounds say, for orderings and reports.
    verdict: Option<Verdict>,
    why: String,
}

fn found(ours: f64, why: impl Into<String>) -> Found {
    Found { ours: Some(ours), verdict: None, why: why.into() }
}

impl Found {
    /// Only where this holds too.
    fn and(self, holds: bool) -> Found {
        if holds { self } else { Found { verdict: Some(Verdict::Differs), ..self } }
    }

    fn judged(self, verdict: Verdict) -> Found {
        Found { verdict: Some(verdict), ..self }
    }
}

pub(super) fn rows(lab: &Lab<'_>) -> Result<Vec<Row>, ReproduceError> {
    let study =
        Study { lab, curves: [curve(lab, Place::Lan)?, curve(lab, Place::Wan)?, curve(lab, Place::Satellite)?] };
    ACTS.claims.iter().map(|claim| Ok(row(claim, study.claim(claim)?))).collect()
}

fn row(claim: &Claim, found: Found) -> Row {
    let holds = found.ours.is_some_and(|ours| claim.holds_for(ours));
    let verdict = found.verdict.unwrap_or(if holds { Verdict::Match } else { Verdict::Differs });
    Row::new(claim.id.as_str(), claim.text.as_str(), claim.value, found.ours, &claim.unit)
        .within(claim.low, claim.high)
        .judged(verdict, format!("{}; {}", found.why, claim.derivation))
}

/// Greatest distance of ours from printed, percent.
fn farthest(pairs: &[(f64, f64)]) -> f64 {
    greatest(&pairs.iter().map(|(ours, printed)| 100.0 * (ours / printed - 1.0).abs()).collect::<Vec<_>>())
}

fn each(pairs: &[(f64, f64)]) -> String {
    pairs.iter().map(|(ours, printed)| format!("{ours:.1} for {printed:.1}")).collect::<Vec<_>>().join(", ")
}

struct Study<'a> {
    lab: &'a Lab<'a>,
    /// LAN, WAN, satellite.
    curves: [Curve; 3],
}

impl Study<'_> {
    /// Points of figure 6, ours and printed, LAN, WAN, satellite.
    fn points(&self, ours: impl Fn(&Curve) -> f64, at: &str) -> Vec<(f64, f64)> {
        let printed = ACTS.figure("A-F06").map_or(&[][..], |figure| &figure.points);
        let of = |place: Place| printed.iter().find(|p| p.curve == place.name() && p.at.starts_with(at)).map(|p| p.y);
        self.curves.iter().zip(Place::ALL).filter_map(|(curve, place)| Some((ours(curve), of(place)?))).collect()
    }

    fn claim(&self, claim: &Claim) -> Result<Found, ReproduceError> {
        let lab = self.lab;
        let half = (10.0 * MIB / 9180.0).ceil();
        let segments = (10.0 * MIB / 9140.0).ceil();
        let rounds = window::slow_start_rounds(segments, true);
        Ok(match claim.id.as_str() {
            "A-C01" => {
                let cells = &ACTS.table(2).expect("table 2").cells;
                let off = cells.iter().filter(|cell| cell.note.is_none());
                let off: Vec<_> = off.filter_map(|cell| Some((rate_of(cell) - cell.value?).abs())).collect();
                found(greatest(&off), "nine rates derived from frame, cell and headers")
            }
            "A-C02" => {
                let trials = trials_of(lab, Place::Satellite)?;
                let spread = standard_deviation(&trials);
                found(mean(&trials), format!("standard deviation {spread:.3}, greatest {:.1}", greatest(&trials)))
            }
            "A-C03" => found(mean(&trials_of(lab, Place::Satellite)?), "mean of ten transfers"),
            "A-C04" => found(window::rate_for(10.0 * MIB, RTT) / 1e6, "10 MiB per round trip"),
            "A-C05" => {
                let ours = best(lab, "scenario 2 OC-12", "experiment")?;
                found(ours, noisy(lab)?)
            }
            "A-C06" => found(best(lab, "scenario 2 OC-12", "simulation")?, noisy(lab)?),
            "A-C07" => {
                let [shared, own] = ["experiment", "simulation"]
                    .map(|column| best(lab, "scenario 3 OC-3 congestion, full rate", column));
                let why = format!(
                    "greatest of ten trials, as the paper's maxima, the switch as measured; as simulated {:.1}. Scenario 3 as \
                     simulated: {}",
                    own?,
                    parts_of_reno(lab)?
                );
                found(shared?, why)
            }
            "A-C08" => {
                let means = [mean(&trials_of(lab, Place::Satellite)?), mean(&trials_of(lab, Place::Lan)?)];
                found(means[0] / means[1], format!("{:.1} over {:.1} Mbit/s", means[0], means[1]))
            }
            "A-C09" => {
                let printed =
                    ["A-V26", "A-V27", "A-V28"].map(|id| ACTS.number(id).and_then(|n| n.value).unwrap_or(1.0));
                let mut pairs = Vec::new();
                for (place, printed) in Place::ALL.into_iter().zip(printed) {
                    pairs.push((greatest(&trials_of(lab, place)?), printed));
                }
                found(farthest(&pairs), each(&pairs))
            }
            "A-C10" => {
                let peaks: Vec<_> = self.curves.iter().map(|curve| curve.peak().0).collect();
                let words: Vec<_> = peaks.iter().map(f64::to_string).collect();
                found(peaks[2], format!("peaks at {} (LAN, WAN, satellite): {SHAPED}", words.join(", ")))
                    .and(peaks.iter().all(|&peak| claim.holds_for(peak)))
            }
            "A-C11" => {
                let pairs = self.points(|curve| curve.at(105.0), "105");
                let ordered = pairs.windows(2).all(|two| two[0].0 > two[1].0);
                found(farthest(&pairs), format!("at 105 offered {}: {SHAPED}", each(&pairs))).and(ordered)
            }
            "A-C12" => {
                // 54.105 is in table 6 too, as the greatest of the trials.
                let mut greatest_of = Vec::new();
                for place in Place::ALL {
                    let full = measured(place, Load::Full, &[]);
                    let what = format!("acts, full rate, {}", place.name());
                    greatest_of.push(greatest(&rates(&lab.runs(&what, &full, TRIALS)?)));
                }
                let printed = self.points(|curve| curve.full, "full");
                let pairs: Vec<_> =
                    greatest_of.into_iter().zip(printed).map(|(ours, (_, paper))| (ours, paper)).collect();
                let ordered = pairs.windows(2).all(|two| two[0].0 > two[1].0);
                let why = format!("greatest of ten trials {}; means of four: {}", each(&pairs), switches(lab)?);
                found(farthest(&pairs), why).and(ordered)
            }
            "A-C13" => {
                let falls: Vec<_> = self.curves.iter().map(|curve| curve.full - curve.peak().1).collect();
                let most = falls[2] < falls[0] && falls[2] < falls[1];
                let words = format!("from the peak to full rate {:.1}, {:.1}, {:.1}", falls[0], falls[1], falls[2]);
                found(greatest(&falls), words).and(most)
            }
            "A-C14" => {
                let gains: Vec<_> = self.curves.iter().map(|curve| curve.peak().1 / curve.full).collect();
                let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
                found(least, format!("{:.2}, {:.2}, {:.2}", gains[0], gains[1], gains[2]))
            }
            "A-C15" => {
                let watched = watch(lab, &world(1, &[]))?;
                let ours = watched.open.map_or(f64::NAN, |open| open.as_secs_f64());
                let formula = rounds * RTT;
                let off = 100.0 * (formula / claim.value.unwrap_or(1.0) - 1.0).abs();
                found(ours, format!("a run; the formula gives {formula:.3} s")).and(off <= 1.0)
            }
            "A-C16" => {
                let windows = (1024.0_f64 / 10.0).floor();
                found(100.0 * (1.0 - window::efficiency(windows, rounds)), "formula, 102 windows")
            }
            "A-C17" => {
                let windows = (1024.0_f64 / 10.0).floor();
                found(window::transfer_rounds(windows, rounds) * RTT, "formula")
            }
            "A-C18" => found(window::linear_recovery(half, RTT), "formula, half of 1143 segments of the MTU (A-Q03)"),
            "A-C19" => {
                let [wan, lan] = [0.039, 0.0001].map(|rtt| window::fast_recovery(half, rtt));
                let why =
                    format!("WAN {wan:.2} s, printed 22.18, and LAN {lan:.4} s for a window they did not have (A-Q04)");
                found(window::fast_recovery(half, RTT), why)
            }
            "A-C20" => {
                let sets = [("links.sat.forward.drop_list", "[20000, 20100, 20200]"), CLEAN[0], CLEAN[1]];
                let watched = watch(lab, &world(1, &sets))?;
                let cuts = watched.cuts.len() as f64;
                let words: Vec<_> = watched.cuts.iter().map(|segments| format!("{segments:.0}")).collect();
                found(cuts, format!("three losses in one window: thresholds of {} segments", words.join(", ")))
            }
            "A-C21" => {
                let sets = [
                    ("links.sat.forward.drop_list", "[100]"),
                    ("flows.data.greedy", "true"),
                    ("time_limit", "2400 s"),
                    CLEAN[0],
                    CLEAN[1],
                ];
                let open = |more: &[(&str, &str)]| -> Result<f64, ReproduceError> {
                    let watched = watch(lab, &world(1, &[&sets, more].concat()))?;
                    Ok(watched.open.map_or(f64::NAN, |open| open.as_secs_f64()))
                };
                let slow = open(&[("tcp.shortcuts.bsd_additive_constant", "false")])?;
                let why = format!(
                    "the hundredth packet lost, an ACK for every second segment: from then on 4.3BSD Reno adds an eighth of a \
                     segment per ACK; by one segment per window, which the paper reckons with, it takes {slow:.0} s"
                );
                found(open(&[])?, why)
            }
            "A-C22" => found(useless_cells(), "each cell of a packet lost in its turn, real bytes reassembled"),
            "A-C23" => {
                let errors = ["scenario 1 OC-3", "scenario 2 OC-12", "scenario 3 OC-3 congestion, full rate"];
                let mut ours = Vec::new();
                for row in errors {
                    let experiment = ACTS.table(6).and_then(|table| table.value(row, "experiment")).unwrap_or(1.0);
                    let best = best(lab, row, "experiment")?;
                    ours.push(100.0 * (experiment - best).abs() / experiment.max(best));
                }
                let words = format!("ours are {:.1}, {:.1}, {:.1} % off the experiments", ours[0], ours[1], ours[2]);
                found(greatest(&ours), words)
            }
            "A-C24" => {
                let [three, twelve] = [3, 12].map(|n| window::window_for(rate_ladder(n).application, RTT) / 8.0 / MIB);
                let printed = ACTS.number("A-V20").and_then(|n| n.value).unwrap_or(1.0) * 1e6 / 8.0 / MIB;
                found(three, format!("OC-12: {twelve:.3} MB. {}", full_window(lab)?))
                    .and((twelve / printed - 1.0).abs() < 1e-4)
            }
            _ => {
                let sack = mean(&at_error_rate(lab, "sack", "1e-9")?);
                let reno = mean(&at_error_rate(lab, "reno", "1e-9")?);
                let full = [mean(&full_rate(lab, &[("tcp.variant", "sack")])?), mean(&full_rate(lab, &[])?)];
                let why = format!(
                    "{sack:.1} over {reno:.1} Mbit/s in scenario 2 at 1e-9; {:.1} over {:.1} in scenario 3 at full rate",
                    full[0], full[1]
                );
                // Where losses come one to a window, Reno repairs them as well as SACK, and both halve.
                match (full[0] > full[1], sack > reno) {
                    (true, true) => found(full[0] / full[1], why),
                    (true, false) => {
                        found(full[0] / full[1], format!("under congestion only: {why}")).judged(Verdict::Shape)
                    }
                    _ => found(full[0] / full[1], why),
                }
            }
        })
    }
}

/// Nothing is lost but what a list names.
const CLEAN: [(&str, &str); 2] =
    [("links.sat.forward.bit_error_rate", "0"), ("links.sat.backward.bit_error_rate", "0")];

/// Watches the first flow's window.
#[derive(Default)]
struct Windows {
    /// How long after the start of the flow the window first reached 10 MiB.
    open: Option<Duration>,
    start: Time,
    /// Thresholds set by losses, in segments.
    cuts: Vec<f64>,
    last: u64,
}

impl Probe for Windows {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        if who != Who(0) {
            return;
        }
        if let Event::Window { cwnd, ssthresh, .. } = *event {
            if cwnd as f64 >= 10.0 * MIB {
                self.open.get_or_insert(now.saturating_since(self.start));
            }
            // The first threshold is none.
            if ssthresh < u64::MAX && ssthresh != self.last {
                self.cuts.push(ssthresh as f64 / 9140.0);
            }
            self.last = ssthresh;
        }
    }
}

impl Observer for Windows {
    fn packet(&mut self, _: Time, _: usize, _: Passage, _: &Packet) {}
}

fn watch(lab: &Lab<'_>, scenario: &Scenario) -> Result<Windows, ReproduceError> {
    let scenario = scenario.with_seed(lab.seed());
    let mut windows = Windows { start: Time::ZERO + scenario.flows[0].start, ..Windows::default() };
    lab.watched(&scenario, lab.seed(), &mut windows)?;
    Ok(windows)
}

/// Cells of a full packet that carry nothing once one of them is lost, whichever it is.
fn useless_cells() -> f64 {
    let packet = vec![0x5a; 9180 + 8];
    let pieces = [&packet[..]];
    let cells: Vec<_> = aal5::segment(Header::user(0, 100, false), &pieces).expect("it fits").collect();
    let survives = (0..cells.len()).any(|lost| {
        let mut reassembler = Reassembler::new();
        let rest = cells.iter().enumerate().filter(|(n, _)| *n != lost);
        rest.into_iter().any(|(_, cell)| {
            let Ok((Header { payload: PayloadType::User { last, .. }, .. }, payload)) = Header::of(cell) else {
                return false;
            };
            matches!(reassembler.push(payload, last), Ok(Some(_)))
        })
    });
    if survives { 0.0 } else { cells.len() as f64 }
}

/// Mbit/s of scenario 2 with the window that fills the channel, without loss.
fn full_window(lab: &Lab<'_>) -> Result<String, ReproduceError> {
    let bytes = window::window_for(rate_ladder(12).application, RTT) / 8.0;
    let buffer = format!("{} B", bytes.ceil() as u64);
    let clean = world(2, &[("tcp.receive_buffer", &buffer), CLEAN[0], CLEAN[1]]);
    let ours = greatest(&rates(&lab.runs("acts, scenario 2, full window", &clean, 2)?));
    let ten = mean(&rates(&lab.runs("acts, scenario 2", &world(2, &[]), TRIALS)?));
    Ok(format!("10 MB at the printed error rates: {ten:.1} Mbit/s; {buffer} without loss: {ours:.1} Mbit/s"))
}
