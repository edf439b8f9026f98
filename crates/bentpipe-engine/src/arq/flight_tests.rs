//! Tests of [`Flight`].

use super::*;
use crate::arq::History;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn flight(reordering: u64) -> Flight<char> {
    Flight::new(Duration::from_millis(500), Duration::from_millis(20), reordering)
}

fn verdicts(flight: &mut Flight<char>, now: Time, arrived: &[u64]) -> Vec<(char, Verdict)> {
    let mut history = History::new(Duration::ZERO);
    arrived.iter().for_each(|&number| history.on_frame(now, number));
    let report = history.report(now).expect("due at once");
    let mut heard = Vec::new();
    flight.on_report(now, &report, |what, verdict| heard.push((what, verdict)));
    heard
}

#[test]
fn what_was_overtaken_is_lost() {
    let mut flight = flight(0);
    for (ms, what) in [(0, 'a'), (1, 'b'), (2, 'c'), (3, 'd')] {
        flight.send(at(ms), what);
    }
    use Verdict::{Arrived, Lost};
    assert_eq!(verdicts(&mut flight, at(500), &[0, 2]), [('a', Arrived), ('b', Lost), ('c', Arrived)]);
    assert_eq!(flight.len(), 1);
    // The same report again, and one about numbers never sent, say nothing new.
    assert_eq!(verdicts(&mut flight, at(501), &[0, 2]), []);
    assert_eq!(verdicts(&mut flight, at(502), &[9]), []);
    assert_eq!(verdicts(&mut flight, at(503), &[3]), [('d', Arrived)]);
    assert!(flight.is_empty() && flight.deadline().is_none());
}

/// The distance in numbers counts, also over others that are missing.
#[test]
fn a_tolerance_is_the_distance_at_which_one_is_lost() {
    use Verdict::{Arrived, Lost};
    for reordering in [0, 1] {
        let mut flight = flight(reordering);
        for what in ['a', 'b'] {
            flight.send(at(0), what);
        }
        assert_eq!(verdicts(&mut flight, at(500), &[1]), [('a', Lost), ('b', Arrived)], "{reordering}");
    }
    let mut flight = flight(3);
    for what in ['a', 'b', 'c', 'd'] {
        flight.send(at(0), what);
    }
    assert_eq!(verdicts(&mut flight, at(500), &[2]), [('c', Arrived)]);
    assert_eq!(verdicts(&mut flight, at(501), &[2, 3]), [('a', Lost), ('d', Arrived)]);
}

#[test]
fn a_tolerance_waits_for_late_ones() {
    let mut flight = flight(2);
    for what in ['a', 'b', 'c', 'd'] {
        flight.send(at(0), what);
    }
    use Verdict::{Arrived, Lost};
    assert_eq!(verdicts(&mut flight, at(500), &[1]), [('b', Arrived)]);
    assert_eq!(verdicts(&mut flight, at(501), &[1, 2]), [('a', Lost), ('c', Arrived)]);
}

/// If few follow, their number would decide only after long. A round trip of 400 ms allows one that was sent 100 ms later to overtake.
#[test]
fn a_tolerance_ends_after_a_quarter_of_a_round_trip() {
    use Verdict::{Arrived, Lost};
    let heard = |min_overtaken: u64, later: u64| {
        let mut flight = flight(3).with_min_overtaken(Duration::from_millis(min_overtaken));
        flight.send(at(0), 'a');
        assert_eq!(verdicts(&mut flight, at(400), &[0]), [('a', Arrived)]);
        flight.send(at(1000), 'b');
        flight.send(at(1000 + later), 'c');
        verdicts(&mut flight, at(1400 + later), &[0, 2])
    };
    let (waits, decides) = ([('c', Arrived)], [('b', Lost), ('c', Arrived)]);
    assert_eq!((heard(0, 100), heard(0, 101)), (waits.to_vec(), decides.to_vec()));
    assert_eq!((heard(150, 150), heard(150, 151)), (waits.to_vec(), decides.to_vec()));
}

#[test]
fn the_last_one_is_found_by_time() {
    let mut flight = flight(0);
    flight.send(at(0), 'a');
    // Twice the initial round trip, plus two report intervals.
    assert_eq!(flight.deadline(), Some(at(1040)));
    let mut lost = Vec::new();
    flight.on_time(at(1039), |what, _| lost.push(what));
    assert!(lost.is_empty());
    flight.on_time(at(1040), |what, verdict| {
        assert_eq!(verdict, Verdict::Lost);
        lost.push(what);
    });
    assert_eq!((lost.as_slice(), flight.is_silent()), (['a'].as_slice(), true));
    // Pauses between probes double, up to the maximum.
    let pauses = [2, 4, 5, 5].map(Duration::from_secs);
    assert_eq!(pauses.map(|_| flight.probe(at(2000)) - at(2000)), pauses);
    // Or up to a bound: the last pause before it is doubled once more.
    let bounded = |ms| {
        let mut flight =
            Flight::<char>::new(Duration::from_millis(500), Duration::ZERO, 0).with_pauses(Duration::from_millis(ms));
        [(); 4].map(|()| flight.probe(at(0)))
    };
    assert_eq!([bounded(0), bounded(1500)], [[at(1000); 4], [at(2000); 4]]);
    flight.send(at(4000), 'b');
    assert_eq!(verdicts(&mut flight, at(4500), &[1]), [('b', Verdict::Arrived)]);
    assert!(!flight.is_silent());
}

/// Over a round trip of half a minute, too, a transmission may be reported before it is given up.
#[test]
fn a_long_round_trip_is_waited_for() {
    let mut flight = Flight::new(Duration::from_secs(30), Duration::from_millis(20), 0);
    for second in [0, 100] {
        flight.send(at(1000 * second), second);
        flight.on_time(at(1000 * second + 30_000), |_, _| panic!("it is given up"));
        let mut history = History::new(Duration::ZERO);
        history.on_frame(at(1000 * second + 15_000), second / 100);
        let report = history.report(at(1000 * second + 15_000)).expect("due at once");
        flight.on_report(at(1000 * second + 30_000), &report, |_, verdict| assert_eq!(verdict, Verdict::Arrived));
        assert!(flight.is_empty());
    }
}

/// A peer whose line is busy reports late. Frames that it has received must not be judged lost each time.
#[test]
fn reports_that_wait_for_the_line_are_waited_for() {
    let mut flight = Flight::new(Duration::from_millis(2), Duration::ZERO, 0);
    let mut lost = 0;
    // A frame every 8 ms, which arrives 1 ms later; its report waits 4 ms for the line and is back 1 ms later.
    for n in 0..100 {
        let sent = at(8 * n);
        flight.send(sent, n);
        flight.on_time(at(8 * n + 6), |_, _| lost += 1);
        let report = Report { newest: n, delay: Duration::from_millis(4), bits: vec![1] };
        flight.on_report(at(8 * n + 6), &report, |_, verdict| assert_eq!(verdict, Verdict::Arrived));
    }
    // At most the first two are lost: by then the wait is known.
    assert!(lost <= 2, "{lost} of 100");
}

/// A report that waits for a slow line covers several arrivals, of which the first has waited longest.
#[test]
fn the_first_of_several_arrivals_is_waited_for() {
    let mut flight = Flight::new(Duration::from_millis(2), Duration::from_millis(1), 0);
    let mut lost = Vec::new();
    // A frame every 8 ms, which arrives 1 ms later. A report of the last ten is back 1 ms after the tenth.
    for n in 0..200 {
        flight.send(at(8 * n), n);
        for ms in 0..8 {
            flight.on_time(at(8 * n + ms), |n, _| lost.push(n));
            if ms == 2 && n % 10 == 9 {
                let report = Report { newest: n, delay: Duration::from_millis(0), bits: vec![0x3ff] };
                flight.on_report(at(8 * n + ms), &report, |_, _| ());
            }
        }
    }
    // Until the first report the wait is not known.
    assert!(lost.iter().all(|&n| n < 10), "{lost:?}");
}

#[test]
fn what_waits_in_a_queue_that_grows_is_not_lost() {
    // A round trip of 500 ms, and then a line that carries a tenth: a frame is due every 10 ms, and every tenth one
    // is sent.
    let mut flight = flight(0).with_patience(Duration::from_millis(300));
    let (mut lost, mut reported) = (0, 0);
    for n in 0..600u64 {
        flight.send(at(10 * n), 'a');
        flight.on_time(at(10 * n), |_, _| lost += 1);
        let passed = if n < 100 { n } else { 100 + (n - 100) / 10 };
        if let Some(newest) = passed.checked_sub(50).filter(|&newest| newest >= reported) {
            reported = newest + 1;
            let report = Report { newest, delay: Duration::ZERO, bits: vec![u64::MAX; Report::MAX_WORDS] };
            flight.on_report(at(10 * n), &report, |_, verdict| assert_eq!(verdict, Verdict::Arrived));
        }
    }
    assert_eq!((lost, flight.is_silent()), (0, false));
}

#[test]
fn a_round_trip_longer_than_was_thought_is_learnt() {
    let mut flight = Flight::new(Duration::from_millis(10), Duration::ZERO, 0);
    flight.send(at(0), 'a');
    let mut lost = Vec::new();
    flight.on_time(at(20), |what, _| lost.push(what));
    assert_eq!(lost, ['a']);
    assert_eq!(verdicts(&mut flight, at(500), &[0]), [], "judged already");
    assert_eq!((flight.srtt(), flight.is_silent()), (Some(Duration::from_millis(500)), false));
    // The first sample of RFC 6298: three round trips, and a quarter of one for the report.
    flight.send(at(500), 'b');
    assert_eq!(flight.deadline(), Some(at(500 + 1500 + 125)));
}

/// Short reports about the newest transmissions leave earlier ones to other reports.
#[test]
fn a_short_report_judges_its_own_numbers() {
    let mut flight = flight(0).with_patience(Duration::from_millis(300));
    for _ in 0..1000 {
        flight.send(at(0), 'a');
    }
    let judged = |flight: &mut Flight<char>, newest, words| {
        let mut verdicts = [0; 2];
        let report = Report { newest, delay: Duration::ZERO, bits: vec![1; words] };
        flight.on_report(at(500), &report, |_, verdict| verdicts[usize::from(verdict == Verdict::Lost)] += 1);
        verdicts
    };
    assert_eq!(judged(&mut flight, 999, 1), [1, 63]);
    assert_eq!(judged(&mut flight, 999, 2), [1, 63]);
    assert_eq!(judged(&mut flight, 40, 1), [1, 40], "from the first on");
    assert_eq!((judged(&mut flight, 40, 1), flight.first), ([0, 0], 41), "too late");
    assert_eq!((flight.len(), flight.next_number()), (1000 - 128 - 41, 1000));
    assert_eq!(judged(&mut flight, 999, Report::MAX_WORDS).iter().sum::<usize>(), 1000 - 128 - 41);
    assert!(flight.is_empty());
}

/// With steady pauses, a transmission that had timed out is late once a report says that it arrived. A short report leaves
/// those that it does not cover to others.
#[test]
fn what_had_timed_out_is_late() {
    let mut flight = flight(0).with_patience(Duration::from_millis(300)).with_pauses(Duration::ZERO);
    ['a', 'b'].into_iter().for_each(|what| _ = flight.send(at(0), what));
    flight.on_time(at(5000), |_, _| ());
    (2..=64).for_each(|_| _ = flight.send(at(5000), 'c'));
    let mut late = |words| {
        let report = Report { newest: 64, delay: Duration::ZERO, bits: vec![u64::MAX; words] };
        let mut late = Vec::new();
        flight.on_report(at(5500), &report, |what, verdict| late.extend((verdict == Verdict::Late).then_some(what)));
        late
    };
    // A word covers 1 to 64.
    assert_eq!([late(1), late(1)], [vec!['b'], vec![]]);
    assert_eq!(late(Report::MAX_WORDS), ['a']);
}

/// An outage loses only reports. The frames that they covered are not lost.
#[test]
fn reports_that_were_lost_cost_nothing() {
    let mut history = History::new(Duration::from_millis(20)).with_whole_reports();
    let mut flight = flight(0).with_patience(Duration::from_millis(1));
    let mut heard = Vec::new();
    for n in 0..400 {
        flight.send(at(n), char::from(b'a' + (n % 26) as u8));
        // Number 60 does not arrive.
        if n != 60 {
            history.on_frame(at(n + 1), n);
        }
        let Some(report) = history.report(at(n + 1)) else { continue };
        // The reports sent at 50 to 250 are lost: ten of them.
        if !(50..250).contains(&n) {
            flight.on_report(at(n + 2), &report, |_, verdict| heard.push(verdict));
        }
    }
    assert!(heard.len() > 350, "{}", heard.len());
    assert_eq!(heard.iter().filter(|&&verdict| verdict == Verdict::Lost).count(), 1);
}

#[test]
fn silence_is_endured_while_others_follow() {
    let mut flight = flight(0).with_patience(Duration::from_millis(300));
    flight.send(at(0), 'a');
    assert_eq!(flight.deadline(), Some(at(1040)));
    flight.send(at(200), 'b');
    assert_eq!(flight.deadline(), Some(at(1240)), "not longer than for the one that followed");
    flight.send(at(700), 'c');
    assert_eq!(flight.deadline(), Some(at(1340)));
    let mut lost = Vec::new();
    flight.on_time(at(2000), |what, _| lost.push(what));
    assert_eq!(lost, ['a', 'b', 'c']);
}

/// However long the peer is silent: of what timed out, the newest 16,384 are remembered.
#[test]
fn few_that_timed_out_are_remembered() {
    let mut flight = flight(0);
    (0..16_386).for_each(|_| _ = flight.send(at(0), 'a'));
    flight.on_time(at(2000), |_, _| ());
    assert_eq!((flight.expired.len(), flight.expired[0].0), (16_384, 2));
    // A report of one that was forgotten tells no round trip, that of the next one does.
    let rtt = [1, 2].map(|number| (verdicts(&mut flight, at(3000), &[number]), flight.srtt()).1);
    assert_eq!(rtt, [None, Some(Duration::from_secs(3))]);
}

/// A timeout, two intervals, and twice the longest wait at the peer, which fades and has a bound.
#[test]
fn a_report_is_waited_for_as_long_as_the_last_ones_took() {
    // Each transmission: when it is sent, and the delay and the bits of a report that follows. None has the newest
    // arrived, so that no round trip is measured.
    type Sent = (u64, Option<(u64, u64)>);
    let wait = |sent: &[Sent]| {
        let mut flight = flight(0);
        for (newest, &(ms, report)) in (0..).zip(sent) {
            flight.send(at(ms), 'a');
            if let Some((delay, bits)) = report {
                let report = Report { newest, delay: Duration::from_millis(delay), bits: vec![bits] };
                flight.on_report(at(ms), &report, |_, _| ());
            }
        }
        flight.send(at(100_000), 'b');
        flight.deadline().map(|deadline| deadline - at(100_000))
    };
    let cases: [(&[Sent], u64); 4] = [
        (&[(0, Some((80, 0)))], 160),
        (&[(0, Some((80, 0))), (1, Some((0, 0)))], 140),
        (&[(0, Some((3_600_000, 0)))], 10_000),
        // The first of two arrivals waited for the report of the second, sent a minute later.
        (&[(0, None), (60_000, Some((0, 0b10)))], 10_000),
    ];
    for (sent, expected) in cases {
        assert_eq!(wait(sent), Some(Duration::from_millis(1040 + expected)), "{sent:?}");
    }
}

#[test]
fn after_a_silence_timeouts_are_short_again() {
    for is_new_path in [false, true] {
        let mut flight = flight(0);
        flight.send(at(0), 'a');
        flight.on_time(at(1040), |_, _| ());
        assert_eq!([(); 2].map(|()| flight.probe(at(1040))), [at(3040), at(5040)]);
        if is_new_path {
            flight.on_path_change();
        } else {
            flight.send(at(2000), 'b');
            // It arrived damaged, so no round trip is measured.
            flight.on_report(at(2500), &Report { newest: 1, delay: Duration::ZERO, bits: vec![0] }, |_, _| ());
        }
        flight.send(at(9000), 'c');
        assert_eq!((flight.is_silent(), flight.deadline()), (false, Some(at(10_040))));
    }
}

/// With patience, what a short report does not cover stays open. A whole report says that it is lost.
#[test]
fn a_whole_report_leaves_nothing_open() {
    let mut flight = flight(0).with_patience(Duration::from_millis(300));
    let count = 64 * Report::MAX_WORDS as u64 + 10;
    (0..count).for_each(|_| _ = flight.send(at(0), 'a'));
    let mut lost = |words| {
        let report = Report { newest: count - 1, delay: Duration::ZERO, bits: vec![u64::MAX; words] };
        let mut lost = 0;
        flight.on_report(at(500), &report, |_, verdict| lost += u32::from(verdict == Verdict::Lost));
        (lost, flight.len())
    };
    assert_eq!(lost(1), (0, count as usize - 64));
    assert_eq!(lost(Report::MAX_WORDS), (10, 0));
}
