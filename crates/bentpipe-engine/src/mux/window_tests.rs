//! Ends whose rates differ: the window that a stream has at the slower one.

use super::*;
use crate::mux::config::Side;
use crate::units::Time;

fn end(side: Side, window: u64, budget: u64) -> Mux {
    Mux::new(MuxConfig { side, window, max_payload: 1000, max_streams: 100, budget })
}

fn give(mux: &mut Mux, input: Input) {
    mux.handle(&mut Context::silent(Time::ZERO), input);
}

/// Delivers what `from` sends, and reads it at once.
fn carry(from: &mut Mux, to: &mut Mux) {
    give(from, Input::Room(u32::MAX));
    while let Step::Do(output) = from.poll(&mut Context::silent(Time::ZERO)) {
        if let Output::Send(message) = output {
            give(to, Input::Message(message));
        }
    }
    give(to, Input::Room(0));
    while let Step::Do(output) = to.poll(&mut Context::silent(Time::ZERO)) {
        assert!(!matches!(output, Output::Reset { .. }), "{output:?}");
    }
}

fn route() -> Route {
    Route { source: ([192, 0, 2, 1], 40_000).into(), destination: ([198, 51, 100, 7], 80).into() }
}

/// What the fast end may send at once on a stream, opened by `opener` (0: the slow end) before or after the hellos.
fn sendable(opener: usize, is_early: bool, budget: u64) -> u64 {
    let mut ends = [end(Side::Initiator, 100_000, budget), end(Side::Responder, 5_000_000, 100_000_000)];
    let meet = |ends: &mut [Mux; 2]| {
        let [slow, fast] = ends;
        for _ in 0..2 {
            carry(fast, slow);
            carry(slow, fast);
        }
    };
    if !is_early {
        meet(&mut ends);
    }
    let stream = ends[opener].open(route()).expect("there is room");
    meet(&mut ends);
    let [slow, fast] = &mut ends;
    give(fast, Input::Write { stream, bytes: 50_000_000 });
    carry(fast, slow);
    slow.held()
}

#[test]
fn the_faster_end_gets_the_window_that_it_needs() {
    for (opener, is_early) in [(0, false), (1, false), (1, true)] {
        assert_eq!(sendable(opener, is_early, 100_000_000), 5_000_000, "{opener} {is_early}");
        assert_eq!(sendable(opener, is_early, 4_000_000), 2_000_000, "half of the budget: {opener} {is_early}");
        assert_eq!(sendable(opener, is_early, 150_000), 75_000, "less than its own: {opener} {is_early}");
    }
    // It was opened with the credit of that time, and gets more when something is taken.
    assert_eq!(sendable(0, true, 100_000_000), 100_000);
}

/// Ends with one window say hello once.
#[test]
fn equal_ends_have_nothing_to_add() {
    let mut ends = [Side::Initiator, Side::Responder].map(|side| end(side, 100_000, 1_000_000));
    let [a, b] = &mut ends;
    carry(a, b);
    carry(b, a);
    give(a, Input::Room(1));
    assert_eq!(a.poll(&mut Context::silent(Time::ZERO)), Step::Wait(None));
}

/// Each hello that raises the credit concerns all streams: there are few of them. A smaller credit takes nothing back.
#[test]
fn few_hellos_raise_the_credit() {
    let mut mux = end(Side::Initiator, 100_000, 1_000_000);
    let stream = mux.open(route()).expect("there is room");
    give(&mut mux, Input::Write { stream, bytes: 1_000_000 });
    give(&mut mux, Input::Room(u32::MAX));
    let mut sent = |credit| {
        give(&mut mux, Input::Message(Message::Hello { credit, streams: 7 }));
        while let Step::Do(_) = mux.poll(&mut Context::silent(Time::ZERO)) {}
        mux.stats().bytes_sent
    };
    for n in 0..u64::from(MuxConfig::MAX_RAISES) {
        assert_eq!(sent(70_000 + n), 70_000 + n);
        assert_eq!(sent(70_000), 70_000 + n);
    }
    assert_eq!(sent(80_000), 70_000 + u64::from(MuxConfig::MAX_RAISES) - 1);
}

/// A user who takes nothing: the peer stops at half of the budget, and the stream lives on.
#[test]
fn a_window_is_at_most_half_of_the_budget() {
    let mut ends = [end(Side::Initiator, 5_000_000, 1_000_000), end(Side::Responder, 5_000_000, 1_000_000)];
    let [a, b] = &mut ends;
    carry(a, b);
    carry(b, a);
    let stream = a.open(route()).expect("there is room");
    give(a, Input::Write { stream, bytes: 5_000_000 });
    carry(a, b);
    assert_eq!((b.held(), b.stats().out_of_memory), (500_000, 0));
    give(b, Input::Taken { stream, bytes: 500_000 });
    carry(b, a);
    carry(a, b);
    assert_eq!((b.held(), b.stats().out_of_memory), (500_000, 0), "it goes on");
}

/// A window while much is held: all until half of the budget is used, then in proportion, but 16 KiB at least. A window that
/// is smaller by itself stays as it is.
#[test]
fn a_window_shrinks_as_memory_fills() {
    let offered = |window: u64, streams: u64| {
        let mut ends = [end(Side::Initiator, window, 1_000_000), end(Side::Responder, window, 1_000_000)];
        let [a, b] = &mut ends;
        carry(a, b);
        carry(b, a);
        for _ in 0..streams {
            let stream = a.open(route()).expect("there is room");
            give(a, Input::Write { stream, bytes: 100_000 });
            carry(a, b);
        }
        let stream = b.open(route()).expect("there is room");
        b.streams[&stream].granted
    };
    assert_eq!([0, 5, 7, 10].map(|streams| offered(100_000, streams)), [100_000, 100_000, 60_000, 16_384]);
    assert_eq!(offered(10_000, 85), 10_000);
}

/// Credit is given back by quarters of the window: for what was taken, not for what came. A stream that has ended needs none, and
/// one that was reset leaves none behind. A credit that was overtaken takes nothing back.
#[test]
fn credit_comes_in_quarters_of_the_window() {
    let mut ends = [end(Side::Initiator, 100_000, 1_000_000), end(Side::Responder, 100_000, 1_000_000)];
    let [a, b] = &mut ends;
    carry(a, b);
    carry(b, a);
    let streams = [(); 4].map(|()| a.open(route()).expect("there is room"));
    for stream in streams {
        give(a, Input::Write { stream, bytes: 60_000 });
    }
    give(a, Input::Finish { stream: streams[3] });
    carry(a, b);
    let taken = |b: &mut Mux, takes: &[(usize, u64)]| {
        takes.iter().for_each(|&(at, bytes)| give(b, Input::Taken { stream: streams[at], bytes }));
    };
    let sent = |b: &mut Mux| {
        give(b, Input::Room(10));
        let mut messages = Vec::new();
        while let Step::Do(output) = b.poll(&mut Context::silent(Time::ZERO)) {
            messages.extend(if let Output::Send(message) = output { Some(message) } else { None });
        }
        messages
    };
    taken(b, &[(0, 24_999), (1, 25_000), (2, 25_000), (3, 30_000)]);
    let [_, stream, reset, _] = streams;
    give(b, Input::Reset { stream: reset, reason: Reason::Peer });
    let credit = |stream, limit| Message::Credit { stream, limit };
    assert_eq!(sent(b), [Message::Reset { stream: reset, reason: Reason::Peer }, credit(stream, 125_000)]);
    taken(b, &[(0, 1), (1, 24_999)]);
    assert_eq!(sent(b), [credit(streams[0], 125_000)]);
    [150_000, 125_000].into_iter().for_each(|limit| give(a, Input::Message(credit(stream, limit))));
    give(a, Input::Write { stream, bytes: 1_000_000 });
    assert_eq!(a.streams[&stream].sendable(), 150_000 - 60_000);
    // A stream that waits to give credit is reset: the next one gives its own at once.
    taken(b, &[(0, 25_000), (1, 1)]);
    give(b, Input::Message(Message::Reset { stream: streams[0], reason: Reason::Peer }));
    assert_eq!(sent(b), [credit(stream, 150_000)]);
}
