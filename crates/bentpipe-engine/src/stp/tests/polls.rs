//! Polls in place of timers, on the same path: one every 100 ms.

use super::*;
use crate::stp::polls::Polls;
use crate::wire::tcp::segment::Timestamps;

const INTERVAL: Duration = Duration::from_millis(100);
const MS: u64 = 1_000_000;

fn polling() -> StpConfig {
    StpConfig { polls: Some(INTERVAL), window: Some(Bytes::new(5000)), ..config() }
}

/// The sequence numbers of data, and those of polls with their numbers.
fn told(out: &[Segment]) -> (Vec<u64>, Vec<(u64, u32)>) {
    let data = out.iter().filter(|segment| segment.len > 0).map(|segment| segment.seq);
    let polls = out.iter().filter(|segment| segment.len == 0 && segment.flags.has(Flags::PSH));
    (data.collect(), polls.map(|poll| (poll.seq, poll.timestamps.expect("a number").value)).collect())
}

fn answer(end: &mut End, nanos: u64, poll: u32, ack: u64, blocks: &[(u64, u64)]) -> (Vec<u64>, Option<u64>) {
    let mut segment = Segment { seq: 1, ack, window: 5000, ..Segment::new(Flags::ACK) };
    segment.timestamps = Some(Timestamps { value: 0, echo: poll });
    blocks.iter().for_each(|&(start, end)| _ = segment.sack.push(ack, start, end));
    let (out, timer) = end.give(nanos, Input::Segment(segment));
    (told(&out).0, timer)
}

/// The window is longer by an interval.
#[test]
fn a_poll_tells_what_was_lost_before_it() {
    // 1 Mbit/s in 630 ms: 75.1 frames.
    assert_eq!(StpConfig { polls: Some(INTERVAL), ..config() }.window(1000), 75_000);
    let (mut end, out, timer) = End::sending(polling(), 7000, 5000);
    assert_eq!(told(&out), ((0..5).map(nth).collect(), vec![]));
    let start = 1_000_000_000;
    // An interval after the first frame has left; in the receiver's window, which is full.
    let first = start + FRAME + 100 * MS;
    assert_eq!(timer, Some(first));
    assert_eq!(told(&end.poll(first).0), (vec![], vec![(nth(5) - 1, 1)]));
    assert_eq!(told(&end.poll(first + 100 * MS).0), (vec![], vec![(nth(5) - 1, 2)]));
    // All that the first poll shows as missing goes again, also what was reported by half, and then what the window allows.
    let sacked = [(nth(2), nth(3)), (nth(4), nth(4) + 500)];
    let (data, timer) = answer(&mut end, start + 540 * MS, 1, nth(1), &sacked);
    assert_eq!((data, timer), (vec![nth(1), nth(3), nth(4), nth(5)], Some(start + 640 * MS)));
    // The second poll went before the repetitions, and so did the third, which was due when the answer came: their answers say
    // nothing of them. Nor does a number that was not asked.
    assert_eq!(answer(&mut end, start + 630 * MS, 2, nth(1), &sacked).0, []);
    assert_eq!(told(&end.poll(start + 640 * MS).0).1, [(nth(6) - 1, 4)]);
    assert_eq!(answer(&mut end, start + 650 * MS, 3, nth(1), &sacked).0, []);
    assert_eq!(answer(&mut end, start + 660 * MS, 9, nth(1), &sacked).0, []);
    assert_eq!(answer(&mut end, start + 1180 * MS, 4, nth(1), &sacked).0, [nth(1), nth(3), nth(4), nth(5)]);
    // Without anything outstanding there are no polls. The FIN has a timer.
    assert_eq!(answer(&mut end, start + 1800 * MS, 3, nth(6), &[]).0, [nth(6)]);
    assert_eq!(answer(&mut end, start + 2400 * MS, 3, nth(7), &[]), (vec![], None));
    let (out, timer) = end.give(start + 3000 * MS, Input::Close);
    assert!(out.iter().any(|segment| segment.flags.has(Flags::FIN)));
    let departure = start + 3000 * MS + BARE;
    assert!(timer == Some(departure + 100 * MS), "a poll comes first: {timer:?}");
    let again = (0..6).filter(|n| {
        let (out, _) = end.poll(departure + 100 * (n + 1) * MS);
        out.iter().any(|segment| segment.flags.has(Flags::FIN))
    });
    assert_eq!(again.collect::<Vec<_>>(), [5], "after 550 ms");
}

/// A peer that is silent for as long as seven timeouts is given up.
#[test]
fn a_silent_peer_is_given_up() {
    // A SYN has a timer.
    let mut end = End(Connection::new(polling(), Role::Active));
    end.give(0, Input::Open);
    let again = (1..=6).map(|n| end.poll(SYN + 100 * n * MS).0.len());
    assert_eq!(again.collect::<Vec<_>>(), [0, 0, 0, 0, 0, 1]);
    let (mut end, _, mut timer) = End::sending(polling(), 5000, 5000);
    let (mut polls, mut last) = (0, 0);
    while let Some(at) = timer {
        let (out, next) = end.poll(at);
        polls += told(&out).1.len() as u64;
        (timer, last) = (next, at);
    }
    // From the departure of the first frame: 38 intervals of 100 ms, and the next one is over 3850 ms.
    assert_eq!((end.0.state(), polls, last), (State::Closed, 38, 1_000_000_000 + FRAME + 3900 * MS));
}

/// Intervals follow the line: a window that takes longer than one to leave has polls between its frames. Few of those that nobody
/// answers are remembered.
#[test]
fn polls_leave_with_the_data() {
    let at = |ms: u64| Time::from_nanos(ms * MS);
    let mut polls = Polls::new(INTERVAL);
    let due = [10, 109, 110, 200, 215].map(|ms| {
        polls.watch(at(ms));
        (core::mem::take(&mut polls.due), polls.deadline().map(|at| at.as_nanos() / MS))
    });
    assert_eq!(
        due,
        [(false, 110), (false, 110), (true, 210), (false, 210), (true, 315)].map(|(due, at)| (due, Some(at)))
    );
    (0..1026).for_each(|n| polls.send(10 * n));
    for (echo, lost_before) in [(1, 0), (2, 0), (3, 20), (1000, 9990), (999, 9990), (1026, 10_250)] {
        polls.on_ack(at(300), Some(echo), false);
        assert_eq!(polls.lost_before, lost_before, "{echo}");
    }
}

#[test]
fn neither_an_old_answer_nor_a_rest_says_anything() {
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    let mut polls = Polls::new(Duration::from_secs(1));
    polls.watch(at(0));
    [10, 20, 30].into_iter().for_each(|transmissions| polls.send(transmissions));
    for echo in [3, 2, 1] {
        polls.on_ack(at(2), Some(echo), false);
        assert_eq!(polls.lost_before, 30, "{echo}");
    }
    // Once all is acknowledged, a poll that is due is not sent.
    assert!(polls.on_time(at(2), Duration::from_secs(5)) && polls.due);
    polls.on_ack(at(2), None, true);
    assert!(!polls.due && polls.deadline().is_none());
    // After an hour without data, the peer's silence counts from the next data.
    polls.watch(at(3600));
    let patience = Duration::from_secs(5);
    assert!(polls.on_time(at(3605), patience) && !polls.on_time(at(3606), patience));
}

/// A passive end whose handshake is reset listens again: it polls nobody, and gives nobody up.
#[test]
fn a_listening_end_does_not_poll() {
    let mut end = End(Connection::new(polling(), Role::Passive));
    end.give(0, Input::Open);
    let syn = Segment { window: 5000, ..Segment::new(Flags::SYN) };
    let (out, timer) = end.give(MS, Input::Segment(syn));
    assert!(out.len() == 1 && timer.is_some());
    let reset = Segment { seq: 1, ..Segment::new(Flags::RST) };
    assert_eq!(end.give(2 * MS, Input::Segment(reset)), (vec![], None));
    assert_eq!(end.0.state(), State::Listen);
    // The next handshake begins anew.
    let (out, again) = end.give(3_000 * MS, Input::Segment(syn));
    assert_eq!((out.len(), again), (1, timer.map(|at| at + 2_999 * MS)));
}

/// An answer that reports nothing: all five segments go again, and the search goes on behind each. Behind the last, it is over until the
/// next answer.
#[test]
fn the_search_for_missing_segments_goes_on_where_it_stopped() {
    let mut sender = Sender::new(polling());
    sender.skip_syn();
    let mut ack = Segment { ack: 1, window: 5000, ..Segment::new(Flags::ACK) };
    sender.update_window(&ack);
    sender.established(1000, 1, true);
    sender.write(7000);
    let next = |sender: &mut Sender, now| {
        let span = sender.next(now, 0)?;
        sender.on_transmit(now, &Segment { seq: span.seq, len: span.len, ..Segment::new(Flags::ACK) });
        Some((span.seq, span.len))
    };
    let mut now = Time::ZERO;
    while next(&mut sender, now).is_some() {}
    now = sender.deadline();
    sender.on_time(&mut Context::silent(now)).expect("it waits for longer");
    assert_eq!(next(&mut sender, now).map(|(_, len)| len), Some(0), "a poll");
    now += Duration::from_millis(270);
    ack.timestamps = Some(Timestamps { value: 0, echo: 1 });
    sender.on_ack(&mut Context::silent(now), &ack, false, None);
    let again = core::iter::from_fn(|| next(&mut sender, now).map(|(seq, len)| (seq, len, sender.searched)));
    let again: Vec<_> = again.filter(|&(_, len, _)| len > 0).collect();
    assert_eq!(again, [0, 1, 2, 3, 4].map(|n| (nth(n), 1000, nth(n + 1))));
    // The same answer again does not begin the search anew.
    sender.on_ack(&mut Context::silent(now), &ack, false, None);
    assert_eq!((next(&mut sender, now), sender.searched), (None, nth(5)));
}

/// The receiver drops what it has reported: its next ACK ends where that began. The segment was sent before the poll, so it goes again at
/// once, although the search was past it.
#[test]
fn a_report_that_is_withdrawn_is_searched_again() {
    let (mut end, ..) = End::sending(polling(), 7000, 5000);
    let start = 1_000_000_000;
    assert_eq!(told(&end.poll(start + FRAME + 100 * MS).0), (vec![], vec![(nth(5) - 1, 1)]));
    let data = answer(&mut end, start + 540 * MS, 1, nth(1), &[(nth(2), nth(3))]).0;
    assert_eq!(data, [nth(1), nth(3), nth(4), nth(5)]);
    assert_eq!(answer(&mut end, start + 550 * MS, 1, nth(2), &[]).0, [nth(2), nth(6)]);
}

/// A poll is due an interval after the data, not before. The peer is silent from its last answer on.
#[test]
fn polls_have_their_times() {
    let at = |ms: u64| Time::from_nanos(ms * MS);
    let mut polls = Polls::new(INTERVAL);
    polls.watch(at(0));
    let patience = Duration::from_millis(500);
    for (ms, due) in [(99, false), (100, true)] {
        assert!(polls.on_time(at(ms), patience));
        assert_eq!(polls.due, due, "{ms}");
    }
    polls.on_ack(at(300), None, false);
    assert!(polls.on_time(at(800), patience) && !polls.on_time(at(801), patience));
}

/// Segments have the peer's size, and the window is that of whole segments: 66 250 bytes are 120.9 frames of 548. Data that would fill half
/// of the peer's window waits while anything is outstanding.
#[test]
fn segments_have_the_peers_size() {
    let mut end = End(Connection::new(config(), Role::Active));
    end.give(0, Input::Open);
    end.give(1000, Input::Write(1_000_000));
    let mut answer = Segment { ack: 1, window: WIDE, ..Segment::new(Flags::SYN | Flags::ACK) };
    answer.syn.mss = Some(500);
    let (out, _) = end.give(1_000_000_000, Input::Segment(answer));
    assert_eq!(out.iter().filter(|segment| segment.len == 500).count(), 120);
    let stats = end.0.stats();
    assert_eq!((stats.max_flight, stats.max_cwnd, stats.max_burst), (60_000, 60_000, 120));
    let (mut end, ..) = End::sending(config(), 100_000, 600);
    assert_eq!(end.ack(1_540_000_000, nth(0) + 300, &[], 600).0, []);
}
