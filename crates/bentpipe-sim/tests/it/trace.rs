//! A transfer over a link whose rate follows a trace, against the trace itself.

use std::path::Path;

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_sim::record::Summary;
use bentpipe_sim::{Observer, Packet, Passage, run};
use bentpipe_study::scenario::Scenario;

/// The packets that left the first link.
#[derive(Default)]
struct Seen(Vec<(Time, u64)>);

impl Probe for Seen {
    const WATCHES: bool = true;
    fn event(&mut self, _: Time, _: Who, _: &Event) {}
}

impl Observer for Seen {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        if link == LinkId(0) && passage == Passage::Delivered {
            self.0.push((now, packet.wire_len.into()));
        }
    }
}

#[test]
fn a_transfer_goes_as_its_trace() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/traces/varying.toml");
    let scenario = Scenario::load(path, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let config = &scenario.links[0].config;
    let trace = config.rate_trace.as_ref().expect("a trace").millis();
    // 3858 opportunities in 2 s.
    assert_eq!(
        (trace.len(), trace.last(), config.rate.map(|rate| rate.bits_per_second())),
        (3858, Some(&2000), Some(23_148_000))
    );
    let mut seen = Seen::default();
    let result = run(&scenario, 1, &mut seen).expect("a path");
    assert!(seen.0.len() > 13_000, "{}", seen.0.len());
    let mut sum = 0;
    for &(at, bytes) in &seen.0 {
        let left = (at - (Time::ZERO + Duration::from_millis(25))).as_nanos();
        assert_eq!(left % 1_000_000, 0, "{at:?}");
        let millis = left / 1_000_000;
        let (rounds, within) = (millis / 2000, millis % 2000);
        // An opportunity at 2000 ms of one round is at 0 ms of the next.
        let so_far = rounds * trace.len() as u64 + trace.partition_point(|&opportunity| opportunity <= within) as u64;
        sum += bytes;
        assert!(sum <= so_far * 1500, "{at:?}: {sum} B by {so_far} opportunities");
        assert!(within == 0 || trace.binary_search(&within).is_ok(), "{at:?} is no instant of the trace");
    }
    let summary = Summary::new(&scenario, &result);
    let flow = &summary.flows[0];
    // The limit counts the opportunities that the trace has; slow start and what the queue drops in each fade cost a part of them.
    let slower = flow.x_limit.expect("it ends");
    assert!(slower > 1.0 && slower < 1.5, "{slower}: {flow:?}");
}
