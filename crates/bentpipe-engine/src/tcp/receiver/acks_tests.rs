//! The times of ACKs, without a receiver.

use super::*;
use crate::tcp::Compress;

fn at(micros: u64) -> Time {
    Time::from_nanos(1_000_000_000 + 1000 * micros)
}

fn schedule(max: u32) -> AckSchedule {
    let compress = Some(Compress { max, ..Compress::LINUX });
    AckSchedule::new(AckPolicy { compress, ..AckPolicy::DELAYED })
}

/// The times of ACKs where a segment comes every `spacing` microseconds beyond one gap, until `end`.
fn acks(mut schedule: AckSchedule, spacing: u64, end: u64) -> Vec<u64> {
    let mut sent = Vec::new();
    for now in 0..end {
        if schedule.is_due(at(now)) {
            schedule.acknowledged(at(now));
            sent.push(now);
        }
        if now % spacing == 0 {
            schedule.on_disorder(at(now), 1);
            if schedule.is_due(at(now)) {
                schedule.acknowledged(at(now));
                sent.push(now);
            }
        }
    }
    sent
}

/// 20 Mbit/s: a segment per 600 us. Three at once, then each ACK waits 1.1 ms from the first segment that it tells of: of 1800 and
/// 2400 us, of 3000 and 3600, ...
#[test]
fn acks_beyond_a_gap_wait_for_each_other() {
    assert_eq!(acks(schedule(44), 600, 5000), [0, 600, 1200, 2900, 4100]);
    let mut near = schedule(44);
    // A twentieth of 8 ms, and the slack: 500 us.
    near.on_round_trip(Duration::from_millis(8));
    assert_eq!(acks(near, 300, 3000), [0, 300, 600, 1400, 2000, 2600]);
}

/// Two wait, and the third sends all; with none that may wait each goes at once.
#[test]
fn no_more_wait_than_may() {
    assert_eq!(acks(schedule(2), 100, 1100), [0, 100, 200, 500, 800]);
    assert_eq!(acks(schedule(0), 100, 600), [0, 100, 200, 300, 400, 500]);
}

/// A round trip of 100 ms: the first timeout is 300 ms. Three ACKs at once at the start, and three after a pause of 301 ms; not after 300.
#[test]
fn a_long_gap_makes_acks_quick() {
    for (pause, at_once) in [(300_000, [true, true, true, false, true, false]), (300_001, [true; 6])] {
        let mut schedule = AckSchedule::new(AckPolicy { quick: 3, ..AckPolicy::DELAYED });
        schedule.on_round_trip(Duration::from_millis(100));
        let acks = [0, 0, 0, pause, pause, pause].map(|micros| {
            schedule.on_data(at(micros));
            schedule.on_in_order(at(micros), false);
            let is_due = schedule.is_due(at(micros));
            if is_due {
                schedule.acknowledged(at(micros));
            }
            is_due
        });
        assert_eq!(acks, at_once, "{pause}");
    }
}

/// Packets of five segments are acknowledged by two, two and one; of an end that answers, only every other segment is.
#[test]
fn the_end_of_a_packet_is_acknowledged() {
    for (answers, expected) in [(false, [2, 4, 5, 7, 9, 10]), (true, [2, 4, 6, 8, 10, 12])] {
        let mut schedule = AckSchedule::new(AckPolicy { pushed: true, ..AckPolicy::DELAYED });
        let mut acks = Vec::new();
        for segment in 1..=12 {
            schedule.on_data(at(0));
            schedule.on_in_order(at(0), false);
            if segment % 5 == 0 {
                schedule.on_push();
            }
            if schedule.is_due(at(0)) {
                schedule.acknowledged(at(0));
                acks.push(segment);
            }
            if answers {
                schedule.on_answer(at(0));
            }
        }
        assert_eq!(acks[..6], expected, "{answers}");
    }
}

/// A segment every 2 us: the second asks for an ACK, which goes out 20 us later; a quick ACK of the first one goes at once. Those that
/// come every 30 us are acknowledged by twos, and of a hundred at one instant 44 at once.
#[test]
fn segments_that_come_together_are_acknowledged_together() {
    let gro = Duration::from_micros(20);
    for (quick, spacing, expected) in [
        (0, 2, [(22, 11), (44, 11), (66, 11)].as_slice()),
        (1, 2, &[(0, 1), (24, 11), (46, 11), (68, 11)]),
        (0, 30, &[(30, 2), (90, 2)]),
        (0, 0, &[(0, 44), (0, 44)]),
    ] {
        let mut schedule = AckSchedule::new(AckPolicy { gro, quick, ..AckPolicy::DELAYED });
        let (mut acks, mut pending) = (Vec::new(), 0);
        for now in 0..100 {
            let mut acknowledge = |schedule: &mut AckSchedule, pending: &mut u32| {
                if schedule.is_due(at(now)) {
                    acks.push((now, core::mem::take(pending)));
                    schedule.acknowledged(at(now));
                }
            };
            acknowledge(&mut schedule, &mut pending);
            let come = if spacing == 0 { 100 * u32::from(now == 0) } else { u32::from(now % spacing == 0) };
            for _ in 0..come {
                pending += 1;
                schedule.on_data(at(now));
                schedule.on_in_order(at(now), false);
                acknowledge(&mut schedule, &mut pending);
            }
        }
        assert_eq!(&acks[..expected.len()], expected, "{quick} {spacing}");
    }
}

/// Linux (`tcp_send_delayed_ack`): an ACK that would wait for less than a quarter of its delay, here 40 ms, leaves with the next segment.
#[test]
fn an_ack_that_is_nearly_due_leaves_at_once() {
    for (second, is_due) in [(29_999, false), (30_000, true)] {
        let mut schedule = AckSchedule::new(AckPolicy::LINUX);
        for micros in [0, second] {
            assert!(!schedule.is_due(at(micros)));
            schedule.on_in_order_adaptively(at(micros), 100, |_| false);
        }
        assert_eq!(schedule.is_due(at(second)), is_due, "{second}");
    }
}

/// Each gap has three ACKs at once.
#[test]
fn another_gap_begins_anew() {
    let mut schedule = schedule(44);
    let at_once = |rcv_nxt| {
        schedule.on_disorder(at(0), rcv_nxt);
        let is_due = schedule.is_due(at(0));
        schedule.acknowledged(at(0));
        is_due
    };
    assert_eq!([1, 1, 1, 1, 2, 2, 2, 2].map(at_once), [true, true, true, false, true, true, true, false]);
}

/// Linux acknowledges the SYN-ACK before its program writes; another host's first data may carry that ACK.
#[test]
fn the_ack_of_a_syn_leaves_first() {
    for (policy, is_first) in [(AckPolicy::LINUX, true), (AckPolicy::DELAYED, false)] {
        let mut schedule = AckSchedule::new(policy);
        schedule.acknowledge_syn();
        assert_eq!((schedule.is_due(at(0)), schedule.is_first()), (true, is_first));
    }
}
