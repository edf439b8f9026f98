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
        // The first segment's ACK does not wait for longer because of the second.
        assert!(is_due || schedule.deadline() == at(40_000));
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

/// BSD's clock of 200 ms: an ACK waits for its next tick, not for 200 ms (Stevens, TCP/IP Illustrated, volume 1, §19.3). A tick at the very
/// instant of a segment is over.
#[test]
fn ticks_are_waited_for() {
    for delay in [Duration::ZERO, Duration::from_millis(200)] {
        let policy = AckPolicy { delay, tick: Some(Duration::from_millis(200)), ..AckPolicy::DELAYED };
        for (come, leaves) in [(0, 200_000), (1, 200_000), (199_999, 200_000), (200_000, 400_000)] {
            let mut schedule = AckSchedule::new(policy);
            schedule.on_data(at(come));
            schedule.on_in_order(at(come), false);
            assert_eq!((schedule.is_due(at(come)), schedule.deadline()), (false, at(leaves)), "{come}");
        }
    }
}

/// True if a segment that comes in order is acknowledged at once.
fn is_acknowledged(schedule: &mut AckSchedule) -> bool {
    schedule.on_data(at(0));
    schedule.on_in_order(at(0), false);
    let is_due = schedule.is_due(at(0));
    if is_due {
        schedule.acknowledged(at(0));
    }
    is_due
}

/// The first two segments are acknowledged one by one, and then every other one.
#[test]
fn a_number_of_first_segments_is_acknowledged_at_once() {
    let mut schedule = AckSchedule::new(AckPolicy { daass: Daass::FirstSegments(2), ..AckPolicy::DELAYED });
    let acks = [(); 6].map(|()| is_acknowledged(&mut schedule));
    assert_eq!(acks, [true, true, false, true, false, true]);
}

/// What an end sends before anything has come is no answer: the end of a packet is acknowledged.
#[test]
fn a_request_is_no_answer() {
    let mut schedule = AckSchedule::new(AckPolicy { pushed: true, ..AckPolicy::DELAYED });
    schedule.on_answer(at(0));
    schedule.on_data(at(100));
    schedule.on_in_order(at(100), false);
    schedule.on_push();
    assert!(schedule.is_due(at(100)));
}

/// Takes a small segment in order; tells how long its ACK waits, in milliseconds.
fn small(schedule: &mut AckSchedule, micros: u64) -> u64 {
    schedule.on_in_order_adaptively(at(micros), 100, |_| false);
    if schedule.is_due(at(micros)) { 0 } else { (schedule.deadline() - at(micros)).as_nanos() / 1_000_000 }
}

/// Linux's receiver after its first segment, without quick ACKs; the round trip is 100 ms and a timeout 300 ms.
fn settled() -> AckSchedule {
    let mut schedule = AckSchedule::new(AckPolicy::LINUX);
    schedule.on_round_trip(Duration::from_millis(100));
    schedule.adapt(at(0), 100, 1460, 0);
    schedule.end_quick();
    schedule
}

/// Linux (`tcp_enter_quickack_mode`): after a repetition 16 ACKs leave at once, the repetition's own and 15 others. With a window of less
/// than two full segments, two do.
#[test]
fn a_repetition_makes_acks_quick() {
    for (window, quick) in [(1_000_000, 15), (1000, 1)] {
        let mut schedule = settled();
        schedule.on_repetition(window);
        schedule.acknowledge_now();
        schedule.acknowledged(at(0));
        let at_once = (0..20).take_while(|_| {
            let is_due = small(&mut schedule, 0) == 0;
            schedule.acknowledged(at(0));
            is_due
        });
        assert_eq!(at_once.count(), quick);
    }
}

/// Linux (`tcp_in_quickack_mode`): there are no quick ACKs of data that this end answers at once.
#[test]
fn an_end_that_answers_has_no_quick_acks() {
    for (answers, wait) in [(false, 0), (true, 40)] {
        let mut schedule = settled();
        schedule.on_repetition(1_000_000);
        if answers {
            schedule.on_answer(at(39_999));
        }
        assert_eq!(small(&mut schedule, 40_000), wait);
    }
}

/// Linux (`tcp_delack_timer_handler`): an ACK that leaves because its time has come has waited in vain, and the delay is doubled. One that
/// data has carried before has not.
#[test]
fn an_ack_in_vain_doubles_the_delay() {
    for (leaves, next) in [(10_000, 40), (39_999, 40), (40_000, 80)] {
        let mut schedule = settled();
        assert_eq!(small(&mut schedule, 0), 40);
        schedule.acknowledged(at(leaves));
        assert_eq!(small(&mut schedule, 50_000), next, "{leaves}");
    }
}

/// Linux: a pause longer than a timeout makes ACKs quick again (`tcp_event_data_recv`), here two, and after the last of them the delay is
/// the least one (`tcp_dec_quickack_mode`). Data that follows soon does not make them quick.
#[test]
fn quick_acks_after_a_pause_end_with_the_least_delay() {
    let mut schedule = settled();
    small(&mut schedule, 0);
    schedule.acknowledged(at(40_000));
    for (micros, wait) in [(340_001, 0), (350_000, 0), (360_000, 40)] {
        schedule.adapt(at(micros), 100, 1460, 0);
        assert_eq!(small(&mut schedule, micros), wait, "{micros}");
        schedule.acknowledged(at(micros));
    }
}

/// Linux (`__tcp_ack_snd_check`): more than a full segment, here 536 bytes, is acknowledged at once unless the window has shrunk.
#[test]
fn much_data_is_acknowledged_at_once_if_the_window_does_not_shrink() {
    for (bytes, shrinks, is_due) in [(536, false, false), (537, false, true), (537, true, false)] {
        let mut schedule = settled();
        schedule.on_in_order_adaptively(at(0), bytes, |pending| {
            assert_eq!(pending, u64::from(bytes));
            shrinks
        });
        assert_eq!(schedule.is_due(at(0)), is_due, "{bytes}");
    }
}

/// Linux: the first mark makes two ACKs quick, as the peer's window may become small (`__tcp_ecn_check_ce`), and the
/// segment that tells of the reduction is acknowledged at once (`tcp_ecn_accept_cwr`). Other receivers wait; what DCTCP
/// asks for leaves at once everywhere.
#[test]
fn marks_make_acks_quick() {
    for (urgency, waits) in
        [(Urgency::None, [40, 40, 40]), (Urgency::Marked, [0, 0, 40]), (Urgency::Reduced, [0, 40, 40])]
    {
        let mut schedule = settled();
        // The delay is 80 ms, and this end answers.
        small(&mut schedule, 0);
        schedule.acknowledged(at(40_000));
        schedule.adapt(at(50_000), 100, 1460, 0);
        schedule.on_answer(at(50_000));
        let mut seen = [0; 3];
        schedule.heed(urgency, 1_000_000);
        for wait in &mut seen {
            *wait = small(&mut schedule, 50_000);
            schedule.acknowledged(at(50_000));
        }
        // Without a mark, half of 80 ms and a gap of 50 ms: 90 ms.
        let waits = waits.map(|wait| if urgency != Urgency::Marked && wait > 0 { 90 } else { wait });
        assert_eq!(seen, waits, "{urgency:?}");
    }
    for (urgency, is_due) in [(Urgency::Now, true), (Urgency::Marked, false), (Urgency::Reduced, false)] {
        let mut schedule = AckSchedule::new(AckPolicy::DELAYED);
        schedule.heed(urgency, 1_000_000);
        assert_eq!((schedule.is_due(at(0)), schedule.is_quick()), (is_due, false), "{urgency:?}");
    }
}

/// Linux's first timeout: the round trip and four deviations of half of it, at least 200 ms (`tcp_rtt_estimator`, `tcp_rto_min`).
#[test]
fn a_pause_is_longer_than_a_timeout() {
    let seen = [10, 100, 200].map(|rtt| {
        let mut schedule = settled();
        schedule.on_round_trip(Duration::from_millis(rtt));
        schedule.timeout()
    });
    assert_eq!(seen, [210, 300, 600].map(Duration::from_millis));
}

/// A repetition ends the time in which this end answers, and its delay is the least one again (`tcp_enter_quickack_mode`).
#[test]
fn a_repetition_ends_the_answers() {
    let mut schedule = settled();
    small(&mut schedule, 0);
    schedule.acknowledged(at(40_000));
    schedule.on_answer(at(10_000));
    schedule.on_repetition(1_000_000);
    assert_eq!(small(&mut schedule, 50_000), 0);
    schedule.acknowledged(at(50_000));
    schedule.end_quick();
    assert_eq!(small(&mut schedule, 50_000), 40);
}

/// Linux (`tcp_cleanup_rbuf`): the end of a burst, here a segment that is not full, is acknowledged once all is read.
/// An end that answers waits for its answer, but not for a second end. A full segment is none, and an ACK begins anew.
#[test]
fn what_ends_a_burst_is_acknowledged_when_it_is_read() {
    for (answers, ends, is_all, is_due) in [
        (false, 1, true, true),
        (false, 1, false, false),
        (true, 1, true, false),
        (true, 2, true, true),
        (false, 0, true, false),
    ] {
        let mut schedule = settled();
        schedule.acknowledged(at(0));
        if ends == 0 {
            schedule.adapt(at(0), 536, 1460, 0);
        }
        (0..ends).for_each(|_| schedule.adapt(at(0), 100, 1460, 0));
        if answers {
            schedule.on_answer(at(0));
        }
        assert_eq!(small(&mut schedule, 0), 40);
        schedule.on_read(is_all);
        assert_eq!(schedule.is_due(at(0)), is_due, "{answers} {ends} {is_all}");
    }
}

/// Linux (`tcp_delack_timer_handler`): an ACK that waits in vain for an answer ends the answers, and the delay is the
/// least one, not twice as long. An ACK that is forced has not waited in vain.
#[test]
fn an_answer_that_does_not_come_ends_the_answers() {
    for (answers, forced, next) in [(false, false, 100), (true, false, 40), (false, true, 80)] {
        let mut schedule = settled();
        small(&mut schedule, 0);
        schedule.acknowledged(at(40_000));
        if answers {
            schedule.on_answer(at(10_000));
        }
        assert_eq!(small(&mut schedule, 50_000), 80);
        if forced {
            schedule.acknowledge_now();
        }
        schedule.acknowledged(at(130_000));
        // Twice 80 ms are more than the round trip.
        assert_eq!(small(&mut schedule, 200_000), next, "{answers} {forced}");
        assert!(!schedule.answers);
    }
}

/// Linux (`tcp_dec_quickack_mode`): only an ACK that was due uses up a quick one.
#[test]
fn data_without_an_ack_due_uses_up_no_quick_one() {
    let mut schedule = settled();
    schedule.on_repetition(1_000_000);
    schedule.acknowledged(at(0));
    let at_once = (0..20).take_while(|_| {
        let is_due = small(&mut schedule, 0) == 0;
        schedule.acknowledged(at(0));
        is_due
    });
    assert_eq!(at_once.count(), 16);
}

/// Allman's acknowledgements after slow start: each segment is acknowledged until one is missing. A receiver that does not heed PSH is not
/// hurried by it, and quick ACKs of one that does not adapt are quick though it answers.
#[test]
fn receivers_that_do_not_adapt() {
    let mut schedule = AckSchedule::new(AckPolicy { daass: Daass::SlowStart, ..AckPolicy::DELAYED });
    let mut next = |gap: bool| {
        if gap {
            schedule.on_gap();
        }
        is_acknowledged(&mut schedule)
    };
    assert_eq!([false, false, true, false, false].map(&mut next), [true, true, false, true, false]);
    for (quick, is_due) in [(0, false), (1, true)] {
        let mut schedule = AckSchedule::new(AckPolicy { quick, ..AckPolicy::DELAYED });
        schedule.on_data(at(0));
        schedule.on_answer(at(0));
        schedule.on_in_order(at(0), false);
        schedule.on_push();
        assert_eq!(schedule.is_due(at(0)), is_due);
    }
}

/// Linux (`__tcp_ack_snd_check`): quick ACKs beyond a gap do not wait for each other.
#[test]
fn quick_acks_beyond_a_gap_do_not_wait() {
    let mut schedule = settled();
    schedule.on_repetition(1_000_000);
    for n in 0..10 {
        schedule.on_disorder(at(n), 1);
        assert!(schedule.is_due(at(n)) && !schedule.is_waiting(), "{n}");
        schedule.acknowledged(at(n));
    }
}
