use proptest::prelude::*;

use super::super::config::{LinkConfig, QueueLimit};
use super::super::link::{Link, Wire};
use super::*;
use crate::machine::Context;
use crate::probe::{NoProbe, Who};

#[derive(Clone, Copy, Debug, PartialEq)]
struct Packet(u32);

impl Wire for Packet {
    fn wire_len(&self) -> u32 {
        self.0
    }
}

fn trace(millis: &[u64]) -> Arc<RateTrace> {
    Arc::new(RateTrace::new(millis.to_vec()).expect("in order"))
}

fn ms(millis: f64) -> Time {
    Time::from_nanos((millis * 1e6) as u64)
}

/// Start and end of transmissions in milliseconds, for packets given by arrival in milliseconds and length.
fn run(millis: &[u64], packets: &[(f64, u32)]) -> Vec<(u64, u64)> {
    let mut line = Opportunities::new(trace(millis));
    let whole = |at: Time| at.as_nanos() / NANOS;
    let one = |&(at, bytes): &(f64, u32)| {
        let (begun, takes) = line.transmit(ms(at), bytes);
        (whole(begun), whole(begun + takes))
    };
    packets.iter().map(one).collect()
}

#[test]
fn what_is_no_trace() {
    let bad = |millis: &[u64]| RateTrace::new(millis.to_vec()).expect_err("it is none");
    assert_eq!(bad(&[]), BadTrace::Empty);
    assert_eq!(bad(&[0, 0]), BadTrace::NoLength);
    assert_eq!(bad(&[1, 3, 2]), BadTrace::Backwards(2));
    assert_eq!(bad(&[1, RateTrace::MAX_MILLIS + 1]), BadTrace::TooLate(1));
}

#[test]
fn the_mean_is_that_of_a_round() {
    // "A trace with one line that says 5": 1500 bytes each 5 ms are 2.4 Mbit/s.
    assert_eq!(trace(&[5]).mean().bits_per_second(), 2_400_000);
    assert_eq!(trace(&[0, 3, 3, 10]).mean().bits_per_second(), 4_800_000);
    assert_eq!(trace(&[RateTrace::MAX_MILLIS]).mean().bits_per_second(), 1);
    let at = |millis| Time::ZERO + Duration::from_millis(millis);
    // Three opportunities of 1500 bytes in each 10 ms: the last belongs to the end of a round.
    let bytes = [0, 2, 9, 10, 12, 1000].map(|millis| trace(&[2, 2, 10]).capacity(at(millis)) / 1500);
    assert_eq!(bytes, [0, 2, 2, 3, 5, 300]);
}

/// Opportunities at 2, 5, 5, 9; then 11, 14, 14, 18; and so on.
#[test]
fn by_hand() {
    let millis = &[2, 5, 5, 9];
    // One each; the second of 5 ms serves the third.
    assert_eq!(run(millis, &[(0.0, 1500), (0.0, 1500), (0.0, 1500)]), [(2, 2), (5, 5), (5, 5)]);
    // Three small ones share that of 2 ms, 1400 bytes; of the fourth 100 go with them and the rest at 5 ms.
    let packets = [(0.0, 500), (0.5, 500), (1.0, 400), (1.5, 500)];
    assert_eq!(run(millis, &packets), [(2, 2), (2, 2), (2, 2), (2, 5)]);
    // 4000 bytes: 1500 at 2 ms, 1500 and 1000 at 5 ms, where 500 are left for the next.
    assert_eq!(run(millis, &[(0.0, 4000), (3.0, 500), (3.0, 1)]), [(2, 5), (5, 5), (9, 9)]);
    // Unused opportunities are lost: after 2 ms the next ones are the two at 5 ms.
    assert_eq!(run(millis, &[(2.001, 1500), (2.001, 1500), (2.001, 1500)]), [(5, 5), (5, 5), (9, 9)]);
    // So is the rest of a past opportunity, but not at its very instant.
    assert_eq!(run(millis, &[(0.0, 100), (2.0, 100), (2.001, 100)]), [(2, 2), (2, 2), (5, 5)]);
    // The last instant, and the rounds behind it: 9 + 2 and 9 + 5; after a long pause, too.
    assert_eq!(run(millis, &[(9.0, 1500), (9.0, 1500), (9.0, 1500)]), [(9, 9), (11, 11), (14, 14)]);
    assert_eq!(run(millis, &[(9e9 + 1.0, 1500)]), [(9_000_000_002, 9_000_000_002)]);
    // An opportunity at zero is one of the first round's, and of each later one's beginning.
    assert_eq!(run(&[0, 4], &[(0.0, 1500), (0.0, 1500), (0.0, 1500), (0.0, 1500)]), [(0, 0), (4, 4), (4, 4), (8, 8)]);
}

/// The literal twin: visits each opportunity and each byte that has arrived. Returns for each admitted packet when
/// its first and last bytes were sent.
fn literally(trace: &RateTrace, packets: &[(u64, u32)]) -> Vec<(u64, u64)> {
    let mut done: Vec<(Option<u64>, u64)> = vec![(None, 0); packets.len()];
    let mut left: Vec<u32> = packets.iter().map(|&(_, bytes)| bytes).collect();
    let (mut head, mut round) = (0, 0);
    while head < packets.len() {
        for &millis in trace.millis() {
            let at = (round * trace.length() + millis) * NANOS;
            for _ in 0..OPPORTUNITY {
                if head == packets.len() || packets[head].0 > at {
                    break;
                }
                done[head].0.get_or_insert(at);
                left[head] -= 1;
                if left[head] == 0 {
                    done[head].1 = at;
                    head += 1;
                }
            }
        }
        round += 1;
    }
    done.into_iter().map(|(begun, through)| (begun.expect("it went"), through)).collect()
}

/// The last instant of a round counts, too, for data that begins at it.
#[test]
fn all_is_sent_when_a_line_has_sent_it() {
    let trace = trace(&[1, 2, 10]);
    let config = LinkConfig::following(trace.clone(), Duration::ZERO);
    for start in [0.0, 1.0, 1.5, 10.0, 10.5, 20.0] {
        for bytes in [1, 1500, 1501, 9000] {
            let (begun, taken) = Opportunities::new(trace.clone()).transmit(ms(start), bytes);
            assert_eq!(config.sent_by(ms(start), bytes.into()), Some(begun + taken), "{bytes} from {start}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn as_its_literal_twin(
        mut millis in prop::collection::vec(0u64..40, 1..12),
        steps in prop::collection::vec((0u64..12, prop_oneof![Just(0), Just(1), 0u64..NANOS], 1u32..4000), 1..40),
        limit in prop_oneof![Just(QueueLimit::Unlimited), (1u32..5).prop_map(QueueLimit::Packets)],
    ) {
        millis.sort_unstable();
        prop_assume!(millis.last() != Some(&0));
        let trace = trace(&millis);
        let mut config = LinkConfig::following(trace.clone(), Duration::ZERO);
        config.queue.limit = limit;
        let mut link = Link::new(&config, 1, "trace");
        let (mut now, mut admitted, mut expected) = (0, Vec::new(), Vec::new());
        for (millis, nanos, bytes) in steps {
            // Often exactly at the instant of an opportunity.
            now = (now / NANOS + millis) * NANOS + nanos;
            let waiting = expected.iter().filter(|&&(begun, _)| begun > now).count() as u32;
            let idle = expected.last().is_none_or(|&(_, through)| through <= now);
            let admits = match limit {
                QueueLimit::Packets(limit) => idle || waiting < limit,
                _ => true,
            };
            let mut cx = Context { now: Time::from_nanos(now), who: Who(0), probe: &mut NoProbe };
            prop_assert_eq!(link.offer(&mut cx, Packet(bytes)).is_ok(), admits, "at {}: {:?}", now, expected);
            if admits {
                admitted.push((now, bytes));
                expected = literally(&trace, &admitted);
            }
        }
        let mut got = Vec::new();
        while let Some((arrives, begun)) = link.head() {
            got.push((begun.as_nanos(), arrives.as_nanos()));
            link.take(&mut Context { now: arrives, who: Who(0), probe: &mut NoProbe });
        }
        prop_assert_eq!(got, expected);
    }
}
