//! The same seed gives the same run on any number of threads, and the same fades for every transport.

use crate::worlds::{parse, world};
use bentpipe_engine::link::{Channel, ChannelState};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{DropReason, Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_sim::{Fingerprint, Observer, Packet, Passage, in_parallel, replicate, run};
use bentpipe_study::scenario::Scenario;
use proptest::prelude::*;

fn fingerprint(scenario: &Scenario, seed: u64) -> u64 {
    let mut fingerprint = Fingerprint::default();
    run(scenario, seed, &mut fingerprint).expect("a path for each flow");
    fingerprint.value()
}

fn shipped(name: &str) -> Scenario {
    let path = format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Scenario::load(path, &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Results stand in the order of the seeds and do not depend on the number of threads.
    #[test]
    fn threads_do_not_show(text in world()) {
        let scenario = parse(&text);
        let serial: Vec<_> =
            (0..6).map(|seed| run(&scenario, seed, &mut bentpipe_engine::NoProbe).expect("a path for each flow")).collect();
        for threads in [1, 2, 4] {
            let parallel = replicate(&scenario, 0..6, threads, |_| ()).expect("threads");
            prop_assert_eq!(&parallel, &serial, "{} threads", threads);
        }
    }

    /// The same seed gives the same packets at the same times, also if other runs run beside it.
    #[test]
    fn a_seed_is_a_run(text in world(), seed in any::<u64>()) {
        let scenario = parse(&text);
        let alone = fingerprint(&scenario, seed);
        let beside = in_parallel(vec![seed, seed.wrapping_add(1), seed], 3, |seed| Ok(fingerprint(&scenario, seed)));
        let beside = beside.expect("threads");
        prop_assert_eq!((beside[0], beside[2]), (alone, alone));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// If nothing in a scenario is random, every seed gives the same packets.
    #[test]
    fn without_chance_every_seed_is_the_same_run(text in world(), seed in 2..u64::MAX) {
        let scenario = parse(&text);
        if scenario.random_parts().is_empty() {
            prop_assert_eq!(fingerprint(&scenario, 1), fingerprint(&scenario, seed), "{}", text);
        }
    }
}

/// The same for the first 20 s of the shipped scenarios, some of which have random events.
#[test]
fn shipped_scenarios_say_what_is_random() {
    let folder = format!("{}/../../scenarios", env!("CARGO_MANIFEST_DIR"));
    let (mut random, mut plain) = (0, 0);
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("readable").path();
        let Some(name) = path.file_stem().filter(|_| path.extension().is_some_and(|ending| ending == "toml")) else {
            continue;
        };
        let mut scenario = shipped(&name.to_string_lossy());
        if !scenario.random_parts().is_empty() {
            random += 1;
            continue;
        }
        plain += 1;
        scenario.time_limit = scenario.time_limit.min(bentpipe_engine::units::Duration::from_secs(20));
        assert_eq!(fingerprint(&scenario, 1), fingerprint(&scenario, 77), "{}", path.display());
    }
    assert!(random > 5 && plain > 5, "{random} {plain}");
}

#[test]
fn another_seed_is_another_run() {
    let scenario = shipped("transat-bursts");
    let all: std::collections::BTreeSet<u64> = (1..=20).map(|seed| fingerprint(&scenario, seed)).collect();
    assert_eq!(all.len(), 20);
}

/// Compares each packet that leaves a link with the channel's own record of its fades.
struct Sky {
    link: LinkId,
    channel: Channel,
    lost: u64,
    passed: u64,
}

impl Probe for Sky {
    fn event(&mut self, _: Time, _: Who, _: &Event) {}
}

impl Observer for Sky {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, _: &Packet) {
        if link != self.link {
            return;
        }
        match passage {
            Passage::Delivered => {
                assert_eq!(self.channel.at(now), ChannelState::Good, "passed in a fade at {}", now.as_secs_f64());
                self.passed += 1;
            }
            Passage::Dropped(DropReason::Channel) => {
                assert_eq!(self.channel.at(now), ChannelState::Bad, "lost under a clear sky at {}", now.as_secs_f64());
                self.lost += 1;
            }
            _ => {}
        }
    }
}

/// The fades depend on the seed and the link, not on the traffic: every variant meets the same bursts.
#[test]
fn every_transport_meets_the_same_fades() {
    let scenario = shipped("transat-bursts");
    let link = scenario.link("sat/forward").expect("a satellite link");
    let mut fates = Vec::new();
    for variant in scenario.variant_names() {
        let scenario = scenario.with_variant(variant).expect("one of its names");
        for seed in 1..=5 {
            let channel = Channel::new(&scenario[link].config.channel, seed, "link/sat/forward/channel");
            let mut sky = Sky { link, channel, lost: 0, passed: 0 };
            run(&scenario, seed, &mut sky).expect("a path for each flow");
            assert!(sky.passed >= 1042, "all segments have passed");
            fates.push(sky.lost);
        }
    }
    assert!(fates.iter().sum::<u64>() > 100, "there were fades to meet");
}
