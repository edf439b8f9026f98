//! Finds where the choice changes: with more or less loss, transfer size or satellite delay.
//!
//! The search moves from the scenario outwards in steps until another system is chosen. It then bisects the step, on a
//! logarithmic scale, until its ends are within a ratio of 1.25. Each point is decided like the choice itself, at first
//! with fewer replications. These tend to choose a simpler system, since they do not show that it is slower; so a change
//! counts only if the replications of the choice itself confirm it.

use std::sync::Arc;

use bentpipe_engine::link::LinkConfig;
use bentpipe_engine::units::{Bytes, Duration, Probability};
use bentpipe_study::limit::flow_limit;
use bentpipe_study::scenario::{FlowKind, Scenario, Workload};
use serde::Serialize;

use super::{Ground, Options, Progress, RunError, Stage, System, candidates, verdict};

/// The varied dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// Probability of random loss on the satellite link, 0 to 1.
    Loss,
    /// Length of the transfer, bytes.
    Size,
    /// One-way delay of the satellite link, seconds.
    Delay,
}

/// Another system becomes the choice between `here` and `there`, or none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Flip {
    /// The varied dimension.
    pub dimension: Dimension,
    /// The last value at which the choice holds.
    pub here: f64,
    /// The first value at which it does not.
    pub there: f64,
    /// The choice at `there`; `None` if most transfers do not finish with any system.
    pub system: Option<System>,
}

/// Ratio of successive values.
const STEP: f64 = 4.0;
/// Maximum ratio of the two ends of the answer.
const CLOSE: f64 = 1.25;

impl Dimension {
    const ALL: [Dimension; 3] = [Dimension::Loss, Dimension::Size, Dimension::Delay];

    /// The ranges of the search: losses from one in a million, which counts as none, to three in ten; 10 kB to 1 GB; 1
    /// ms to 1 s.
    const fn range(self) -> (f64, f64) {
        match self {
            Dimension::Loss => (1e-6, 0.3),
            Dimension::Size => (1e4, 1e9),
            Dimension::Delay => (1e-3, 1.0),
        }
    }

    /// True if the satellite link has no single value to vary: its losses or its delay follow a schedule, a trace or
    /// phases, which replace the link's own value.
    fn is_held(self, scenario: &Scenario, ground: &Ground) -> bool {
        let link = &scenario[ground.there].config;
        match self {
            Dimension::Loss => link.loss_changes(),
            Dimension::Size => false,
            Dimension::Delay => link.delay_changes(),
        }
    }

    fn value(self, scenario: &Scenario, ground: &Ground) -> f64 {
        let link = &scenario[ground.there].config;
        match self {
            Dimension::Loss => link.good.packet.get(),
            Dimension::Size => match scenario[ground.flow].kind.workload() {
                Some(Workload::Bulk(bytes)) => bytes.get() as f64,
                _ => 0.0,
            },
            Dimension::Delay => link.delay.as_secs_f64(),
        }
    }

    fn set(self, scenario: &Scenario, ground: &Ground, value: f64) -> Scenario {
        let mut changed = scenario.clone();
        let both: Vec<_> = [Some(ground.there), ground.back].into_iter().flatten().collect();
        let before = scenario[ground.there].config.clone();
        let mut each = |change: &dyn Fn(&mut LinkConfig)| {
            for &link in &both {
                change(&mut changed.links[link.index()].config);
            }
        };
        match self {
            // The return direction too, if it was equal.
            Dimension::Loss => each(&|link| {
                if link.good == before.good {
                    link.good.packet = Probability::new(value).expect("inside the range of losses");
                }
            }),
            Dimension::Delay => each(&|link| {
                if link.delay == before.delay {
                    link.delay = Duration::from_nanos((value * 1e9).round() as u64);
                }
            }),
            Dimension::Size => {
                if let FlowKind::Tcp(tcp) = &mut changed.flows[ground.flow.index()].kind {
                    Arc::make_mut(tcp).workload = Workload::Bulk(Bytes::new(value.round() as u64));
                }
            }
        }
        // Allows time for transfers some hundred times slower than the limit.
        let limit = flow_limit(&changed, &changed[ground.flow]).ok().flatten().and_then(|limit| limit.time);
        changed.time_limit = changed.time_limit.max(limit.unwrap_or_default().saturating_mul(500));
        changed
    }
}

/// The dimensions that are not searched, since the link has no single value to vary.
pub(super) fn held(scenario: &Scenario, ground: &Ground) -> Vec<Dimension> {
    Dimension::ALL.into_iter().filter(|dimension| dimension.is_held(scenario, ground)).collect()
}

/// Searches each dimension that can be varied, upwards and downwards.
pub(super) fn search(
    scenario: &Scenario,
    ground: &Ground,
    choice: System,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Vec<Flip>, RunError> {
    let mut flips = Vec::new();
    let varied = Dimension::ALL.into_iter().filter(|dimension| !dimension.is_held(scenario, ground));
    let searches: Vec<_> = varied.flat_map(|dimension| [(dimension, false), (dimension, true)]).collect();
    let of = searches.len();
    for (n, (dimension, up)) in searches.into_iter().enumerate() {
        let stage = Stage::Changes { search: n + 1, of };
        let at = |value: f64| {
            let world = dimension.set(scenario, ground, value);
            let exact = world.random_parts().is_empty();
            confirmed(choice, [options.flip_reps, options.reps], |reps| {
                let all = candidates(&world, ground, reps, options, &|done, of| progress(stage, done, of))?;
                Ok(verdict::choose(&all, options.margin, exact).map(|verdict| verdict.system))
            })
        };
        flips.extend(outwards(dimension, dimension.value(scenario, ground), up, choice, options.stop, at)?);
    }
    Ok(flips)
}

/// The system at a point: decided with few replications, and again with all of them if it is not the choice.
fn confirmed(
    choice: System,
    [few, all]: [u32; 2],
    decide: impl Fn(u32) -> Result<Option<System>, RunError>,
) -> Result<Option<System>, RunError> {
    match decide(few)? {
        decided if decided != Some(choice) && few < all => decide(all),
        decided => Ok(decided),
    }
}

fn outwards(
    dimension: Dimension,
    start: f64,
    up: bool,
    choice: System,
    stop: fn() -> bool,
    at: impl Fn(f64) -> Result<Option<System>, RunError>,
) -> Result<Option<Flip>, RunError> {
    let (min, max) = dimension.range();
    // A start outside the range, such as no loss, leads to its nearer end.
    let mut here = start;
    let next = |here: f64| if up { (here * STEP).max(min) } else { (here / STEP).min(max) };
    let (mut there, system) = loop {
        let there = next(here);
        if stop() || !(min..=max).contains(&there) {
            return Ok(None);
        }
        match at(there)? {
            // The runs at this point were not completed.
            _ if stop() => return Ok(None),
            Some(system) if system == choice => here = there,
            other => break (there, other),
        }
    };
    let mut system = system;
    while here > 0.0 && (there / here).max(here / there) > CLOSE && !stop() {
        let middle = (here * there).sqrt();
        match at(middle)? {
            _ if stop() => break,
            Some(found) if found == choice => here = middle,
            other => (there, system) = (middle, other),
        }
    }
    Ok(Some(Flip { dimension, here, there, system }))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn found(start: f64, up: bool, turns: f64) -> Option<Flip> {
        let at = |value: f64| Ok(Some(if value < turns { System::Plain } else { System::Link }));
        let choice = if start < turns { System::Plain } else { System::Link };
        outwards(Dimension::Loss, start, up, choice, || false, at).expect("nothing runs")
    }

    /// The way back changes with the way there if both were equal. Transfers get 500 times the time that the links need: over 1 s each way
    /// that is more than 3 s.
    #[test]
    fn a_changed_path_is_like_the_old_one() {
        let changed = |settings: &str, dimension: Dimension, value: f64| {
            let text = format!(
                "name = \"t\"\ntime_limit = \"1 s\"\n[[links]]\nname = \"sat\"\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\n{settings}\n\
                 [[flows]]\nfrom = \"a\"\nto = \"b\"\nbytes = \"100 kB\"\n"
            );
            let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
            dimension.set(&scenario, &Ground::of(&scenario).expect("bare"), value)
        };
        let both = |scenario: &Scenario| [0, 1].map(|link: usize| scenario.links[link].config.clone());
        let losses = |settings| both(&changed(settings, Dimension::Loss, 0.05)).map(|link| link.good.packet.get());
        assert_eq!(losses("delay = \"9 ms\"\nloss = \"1 %\""), [0.05, 0.05]);
        assert_eq!(losses("delay = \"9 ms\"\nforward.loss = \"1 %\""), [0.05, 0.0]);
        let ms = Duration::from_millis;
        let delays = |settings| both(&changed(settings, Dimension::Delay, 1.0)).map(|link| link.delay);
        assert_eq!(delays("delay = \"9 ms\""), [ms(1000), ms(1000)]);
        assert_eq!(delays("delay = \"9 ms\"\nbackward.delay = \"8 ms\""), [ms(1000), ms(8)]);
        assert!(changed("delay = \"9 ms\"", Dimension::Delay, 1.0).time_limit > ms(1_500_000));
        let larger = changed("delay = \"9 ms\"", Dimension::Size, 2e6);
        assert_eq!(larger.flows[0].kind.workload(), Some(Workload::Bulk(Bytes::new(2_000_000))));
    }

    /// Where no transfer finishes, the choice does not hold.
    #[test]
    fn no_system_is_a_change_too() {
        let decide = |value: f64| Ok((value < 0.02).then_some(System::Plain));
        let at = |value: f64| confirmed(System::Plain, [6, 20], |_| decide(value));
        let flip = outwards(Dimension::Loss, 0.001, true, System::Plain, || false, at).expect("nothing runs");
        let flip = flip.expect("it changes");
        assert!(flip.system.is_none() && flip.here < 0.02 && (0.02..0.025).contains(&flip.there), "{flip:?}");
    }

    /// A choice among incomplete runs proves nothing.
    #[test]
    fn an_interrupted_search_finds_nothing() {
        static STOPPED: AtomicBool = AtomicBool::new(false);
        fn stop() -> bool {
            STOPPED.load(Ordering::Relaxed)
        }
        let at = |_| {
            STOPPED.store(true, Ordering::Relaxed);
            Ok(Some(System::Link))
        };
        let found = outwards(Dimension::Loss, 0.001, true, System::Plain, stop, at).expect("nothing runs");
        assert_eq!(found, None);
    }

    /// Six pairs did not show that BBR was slower than a split connection; twenty did.
    #[test]
    fn a_change_needs_the_replications_of_the_choice() {
        let decide = |reps| Ok(Some(if reps < 20 { System::Bbr } else { System::Split }));
        let at = |choice, reps| confirmed(choice, reps, decide).expect("nothing runs");
        assert_eq!(at(System::Split, [6, 20]), Some(System::Split));
        assert_eq!(at(System::Plain, [6, 20]), Some(System::Split), "it is neither choice nor first guess");
        assert_eq!(at(System::Split, [6, 6]), Some(System::Bbr));
    }

    #[test]
    fn the_turn_is_enclosed() {
        for (start, up) in [(0.001, true), (0.1, false), (1e-5, true)] {
            let flip = found(start, up, 0.02).expect("it turns");
            let (low, high) = (flip.here.min(flip.there), flip.here.max(flip.there));
            assert!(low < 0.02 && 0.02 <= high && high / low <= CLOSE, "{flip:?}");
            assert_eq!(flip.system, Some(if up { System::Link } else { System::Plain }));
        }
        assert_eq!(found(0.001, false, 0.02), None, "downwards it stays");
        assert_eq!(found(0.0, false, 0.02), None, "there is no less than nothing");
        assert!(found(0.0, true, 0.02).is_some());
    }

    /// The range of sizes, 10 kB to 1 GB, limits how far the search goes, not where it starts.
    #[test]
    fn a_start_outside_the_range_leads_into_it() {
        let turns = 1e6;
        for (start, up) in [(2e3, true), (2e10, false)] {
            let choice = if up { System::Plain } else { System::Link };
            let at = |value: f64| Ok(Some(if value < turns { System::Plain } else { System::Link }));
            let search = |up| outwards(Dimension::Size, start, up, choice, || false, at).expect("nothing runs");
            let flip = search(up).expect("it turns");
            let (low, high) = (flip.here.min(flip.there), flip.here.max(flip.there));
            assert!(low < turns && turns <= high && high / low <= CLOSE, "{flip:?}");
            assert_eq!(search(!up), None, "away from the range");
        }
    }
}
