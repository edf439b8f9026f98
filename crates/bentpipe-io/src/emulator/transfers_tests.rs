use bentpipe_sim::run as simulate;

use super::*;

fn shipped(name: &str, settings: &[&str]) -> Scenario {
    let path = format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let pair = |setting: &&str| setting.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let settings: Vec<_> = settings.iter().map(|setting| pair(setting).expect("KEY=VALUE")).collect();
    Scenario::load(path, &settings).unwrap_or_else(|errors| panic!("{errors}"))
}

fn drawn(scenario: &Scenario, late: Option<&Lateness>, seed: u64) -> Vec<Option<Time>> {
    let bulks = bulks(scenario).unwrap_or_else(|error| panic!("{error}"));
    let all = redraw(scenario, &bulks, late, seed, |_| true).unwrap_or_else(|error| panic!("{error}"));
    assert!(all.iter().all(|went| went.intact && went.aborted.is_none()));
    all.iter().map(|went| went.received_at).collect()
}

/// Nothing but lateness lies between the real run and virtual time: without it they are the same to the nanosecond.
#[test]
fn a_loop_that_is_never_late_is_virtual_time() {
    let cases: [(&str, &[&str]); 5] = [
        ("geo", &[]),
        ("meo", &[]),
        ("leo", &["flows.download.bytes=20 MB"]),
        ("geo-bursts", &["flows.download.bytes=5 MB"]),
        ("slacp-geo", &["flows.download.bytes=5 MB"]),
    ];
    for (name, settings) in cases {
        let scenario = shipped(name, settings);
        let result = simulate(&scenario, scenario.seed, &mut NoProbe).expect("connected");
        let simulated: Vec<_> = result.flows.iter().map(|flow| flow.received_at).collect();
        assert_eq!(drawn(&scenario, None, 1), simulated, "{name}");
    }
}

#[test]
fn lateness_is_drawn_by_seed() {
    let mut late = Lateness::default();
    (1..100).for_each(|micros| late.record(Time::ZERO, Time::from_nanos(micros * 1000)));
    let scenario = shipped("geo", &["flows.download.bytes=100 kB"]);
    let [first, again, other] = [1, 1, 2].map(|seed| drawn(&scenario, Some(&late), seed));
    assert_eq!(first, again);
    assert_ne!(first, other);
    let on_time = drawn(&scenario, None, 1)[0].expect("it ends");
    let late = first[0].expect("it ends");
    // Seven round trips of fewer than ten wake-ups, each late by 99 us at most.
    assert!(on_time < late && late < on_time + Duration::from_millis(7), "{on_time:?} {late:?}");
}
