//! Pacing by hand: at 8 kbit/s a segment of 1000 bytes takes a second.

use super::*;

fn rate(kilobits: u64) -> Rate {
    Rate::from_bits_per_second(1000 * kilobits).expect("not zero")
}

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

#[test]
fn segments_leave_at_the_rate() {
    let mut pacer = Pacer::default();
    assert!(pacer.may_send(at(5000)));
    // 2000 bytes take two seconds to send.
    pacer.sent(at(5000), 2000, rate(8));
    assert!(!pacer.may_send(at(6000)));
    assert_eq!(pacer.deadline(), at(7000));
    assert!(pacer.may_send(at(7000)));
    assert_eq!(pacer.deadline(), Time::NEVER);
    // A pause gives no credit.
    pacer.sent(at(20_000), 1000, rate(8));
    assert!(!pacer.may_send(at(20_000)));
    assert_eq!(pacer.deadline(), at(21_000));
}

#[test]
fn a_delay_ends_with_nothing_to_send() {
    let mut pacer = Pacer::default();
    pacer.sent(at(5000), 1000, rate(8));
    assert!(!pacer.may_send(at(5000)));
    assert!(!pacer.on_time(at(5000)));
    assert_eq!(pacer.deadline(), at(6000));
    assert!(pacer.on_time(at(6000)));
    assert_eq!(pacer.deadline(), Time::NEVER);
    assert!(!pacer.on_time(at(7000)));
}

/// The first three leave at once; the fourth waits for the time of the third.
#[test]
fn the_first_segments_may_be_free() {
    let mut pacer = Pacer::new(&Pacing { unpaced: 3, ..Pacing::PLAIN }, true);
    for _ in 0..3 {
        assert!(pacer.may_send(at(5000)));
        pacer.sent(at(5000), 2000, rate(8));
    }
    assert!(!pacer.may_send(at(5000)));
    assert_eq!(pacer.deadline(), at(7000));
}

/// The departure times of segments that are always available.
fn departures((pacing, is_set): (Pacing, bool), rate: Rate, count: usize) -> Vec<u64> {
    let (mut pacer, mut now, mut sent) = (Pacer::new(&pacing, is_set), at(5000), Vec::new());
    while sent.len() < count {
        if pacer.may_send(now) {
            pacer.sent(now, 1000, rate);
            sent.push(now.as_nanos() / 1_000_000 - 5000);
        } else {
            now = pacer.deadline();
        }
    }
    sent
}

/// 8 Mbit/s: four segments in 4 ms, then the next four. At least two leave together; below 1.2 Mbit/s, one if the control sets the
/// rate (Linux: `min_tso_segs`, which only BBR has).
#[test]
fn a_quantum_leaves_together() {
    let pacing = Pacing { quantum: Duration::from_millis(4), ..Pacing::PLAIN };
    assert_eq!(departures((pacing, true), rate(8000), 9), [0, 0, 0, 0, 4, 4, 4, 4, 8]);
    let pacing = Pacing { quantum: Duration::from_millis(1), ..pacing };
    assert_eq!(departures((pacing, true), rate(8000), 5), [0, 0, 2, 2, 4]);
    assert_eq!(departures((pacing, true), rate(800), 3), [0, 10, 20]);
    assert_eq!(departures((pacing, false), rate(800), 5), [0, 0, 20, 20, 40]);
}

/// A packet cut short by a full window counts only its own segments: one segment takes 1 ms, even if more follow later.
#[test]
fn a_packet_is_what_leaves_at_once() {
    let mut pacer = Pacer::new(&Pacing { quantum: Duration::from_millis(4), ..Pacing::PLAIN }, true);
    pacer.sent(at(5000), 1000, rate(8000));
    assert!(pacer.may_send(at(5000)), "the same packet");
    pacer.sent(at(5001), 1000, rate(8000));
    assert!(pacer.may_send(at(5001)), "the next one");
    assert!(!pacer.may_send(at(5001) + Duration::from_micros(999)));
    assert_eq!(pacer.deadline(), at(5002));
}

/// A segment takes 1000 ms. If one leaves 300 ms late, the next may leave 300 ms earlier. After a pause the credit is
/// limited to 500 ms.
#[test]
fn what_is_late_gives_credit() {
    for (late, next) in [(0, 2000), (300, 2000), (500, 2000), (700, 2200), (20_000, 21_500)] {
        let mut pacer = Pacer::new(&Pacing { credit: true, ..Pacing::PLAIN }, true);
        pacer.next = at(5000);
        pacer.sent(at(5000), 1000, rate(8));
        let now = at(6000 + late);
        assert!(pacer.may_send(now));
        pacer.sent(now, 1000, rate(8));
        assert!(!pacer.may_send(now));
        assert_eq!(pacer.deadline(), at(5000 + next), "{late}");
    }
}
