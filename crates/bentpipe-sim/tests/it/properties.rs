//! Properties of every world: packets are conserved, a probe changes nothing, timers may be lazy.

use crate::worlds::{parse, world};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, NoProbe, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_sim::{Fingerprint, LINK_BASE, Observer, Packet, Passage, RunResult, Timers, run, run_with};
use bentpipe_study::scenario::{FlowKind, Scenario};
use proptest::prelude::*;

fn fingerprint(scenario: &Scenario, seed: u64, timers: Timers) -> (u64, u64, RunResult) {
    let mut fingerprint = Fingerprint::default();
    let result = run_with(scenario, seed, &mut fingerprint, timers, |_| true).expect("a path for each flow");
    (fingerprint.value(), fingerprint.events(), result)
}

/// The packets that passed each link, counted by a probe, and the smallest window of each end.
#[derive(Default)]
struct Books {
    offered: Vec<u64>,
    dropped: Vec<u64>,
    delivered: Vec<u64>,
    min_window: Vec<u64>,
    now: Time,
    /// Drops according to the links' events, which must agree.
    events_dropped: u64,
}

fn slot(counts: &mut Vec<u64>, n: usize) -> &mut u64 {
    if counts.len() <= n {
        counts.resize(n + 1, 0);
    }
    &mut counts[n]
}

impl Probe for Books {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        assert!(now >= self.now, "events are told in order of time");
        self.now = now;
        match *event {
            Event::Window { cwnd, flight, .. } => {
                let n = who.0 as usize;
                if self.min_window.len() <= n {
                    self.min_window.resize(n + 1, u64::MAX);
                }
                self.min_window[n] = self.min_window[n].min(cwnd);
                assert!(flight < 1 << 40, "more in flight than was ever sent");
            }
            Event::Dropped { .. } => {
                assert!(who.0 >= LINK_BASE);
                self.events_dropped += 1;
            }
            _ => {}
        }
    }
}

impl Observer for Books {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, _: &Packet) {
        assert!(now >= self.now, "packets are told in order of time");
        self.now = now;
        *slot(
            match passage {
                Passage::Offered => &mut self.offered,
                Passage::Dropped(_) => &mut self.dropped,
                Passage::Delivered => &mut self.delivered,
            },
            link.index(),
        ) += 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every packet that was offered to a link was delivered, dropped or is in flight, link by link, and the watcher
    /// counts as the link does. A window is never smaller than a segment.
    #[test]
    fn packets_are_conserved(text in world(), seed in 0..1000u64) {
        let scenario = parse(&text);
        let mut books = Books::default();
        let result = run(&scenario, seed, &mut books).expect("a path for each flow");
        let mut in_flight = 0;
        for (n, link) in result.links.iter().enumerate() {
            let (offered, dropped) = (*slot(&mut books.offered, n), *slot(&mut books.dropped, n));
            let delivered = *slot(&mut books.delivered, n);
            prop_assert_eq!((offered, dropped, delivered), (link.offered, link.dropped(), link.delivered));
            let left = offered.checked_sub(dropped + delivered);
            prop_assert!(left.is_some(), "link {} gave out more than it got", n);
            in_flight += left.unwrap_or(0);
        }
        prop_assert_eq!(in_flight, result.in_flight);
        prop_assert_eq!(books.events_dropped, books.dropped.iter().sum::<u64>());
        for (n, flow) in scenario.flows.iter().enumerate() {
            let FlowKind::Tcp(tcp) = &flow.kind else { continue };
            let mss = tcp.sender.mss.min(tcp.receiver.mss) as u64 - 12;
            let min = books.min_window.get(2 * n).copied().unwrap_or(u64::MAX);
            prop_assert!(min >= mss, "a window of {min}, a segment is {mss}");
        }
    }

    /// A run is the same with and without a watcher.
    #[test]
    fn watching_changes_nothing(text in world(), seed in 0..1000u64) {
        let scenario = parse(&text);
        let (.., watched) = fingerprint(&scenario, seed, Timers::Lazy);
        let alone = run(&scenario, seed, &mut NoProbe).expect("a path for each flow");
        prop_assert_eq!(watched, alone);
    }

    /// Timers that re-arm lazily and timers that are carried over at once give the same run, packet by packet.
    #[test]
    fn lazy_timers_are_literal_ones(text in world(), seed in 0..1000u64) {
        let scenario = parse(&text);
        let (lazy, lazy_packets, lazy_result) = fingerprint(&scenario, seed, Timers::Lazy);
        let (literal, literal_packets, literal_result) = fingerprint(&scenario, seed, Timers::Literal);
        prop_assert_eq!(lazy_packets, literal_packets);
        prop_assert_eq!(lazy, literal);
        prop_assert_eq!(lazy_result, literal_result);
    }

    /// A flow delivers what its receiver has: never more than was sent, and all of it if the flow is reported as complete.
    #[test]
    fn flows_deliver_what_they_say(text in world(), seed in 0..1000u64) {
        let scenario = parse(&text);
        let result = run(&scenario, seed, &mut NoProbe).expect("a path for each flow");
        for (flow, spec) in result.flows.iter().zip(&scenario.flows) {
            let FlowKind::Tcp(tcp) = &spec.kind else { continue };
            if let bentpipe_study::scenario::Workload::Bulk(bytes) = tcp.workload {
                prop_assert!(flow.delivered <= bytes.get());
                if flow.acked_at.is_some() {
                    prop_assert_eq!(flow.delivered, bytes.get());
                    prop_assert!(flow.received_at <= flow.acked_at);
                } else if !result.timed_out {
                    prop_assert!(flow.aborted.is_some(), "neither done nor given up");
                }
            }
        }
    }
}
