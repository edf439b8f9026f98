use alloc::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::units::Time;

fn config(side: Side) -> MuxConfig {
    MuxConfig { side, window: 100_000, max_payload: 1000, max_streams: 100, budget: 1_000_000 }
}

fn route() -> Route {
    Route { source: ([192, 0, 2, 1], 40_000).into(), destination: ([198, 51, 100, 7], 80).into() }
}

fn give(mux: &mut Mux, input: Input) {
    mux.handle(&mut Context::silent(Time::ZERO), input);
}

/// All outputs of an end, with room for this many messages.
fn poll(mux: &mut Mux, room: u32) -> Vec<Output> {
    give(mux, Input::Room(room));
    let mut outputs = Vec::new();
    while let Step::Do(output) = mux.poll(&mut Context::silent(Time::ZERO)) {
        outputs.push(output);
    }
    outputs
}

fn sent(mux: &mut Mux, room: u32) -> Vec<Message> {
    let send = |output| if let Output::Send(message) = output { Some(message) } else { None };
    poll(mux, room).into_iter().filter_map(send).collect()
}

/// Delivers all messages of `from`, and returns what `to` tells its driver.
fn carry(from: &mut Mux, to: &mut Mux) -> Vec<Output> {
    for message in sent(from, u32::MAX) {
        give(to, Input::Message(message));
    }
    poll(to, 0)
}

/// Two ends that have heard each other's hello.
fn pair() -> [Mux; 2] {
    let mut ends = [Side::Initiator, Side::Responder].map(|side| Mux::new(config(side)));
    let [a, b] = &mut ends;
    carry(a, b);
    carry(b, a);
    ends
}

#[test]
fn data_follows_its_opening_at_once() {
    let [mut a, mut b] = pair();
    let stream = a.open(route()).expect("there is room");
    give(&mut a, Input::Write { stream, bytes: 1500 });
    give(&mut a, Input::Finish { stream });
    let told = carry(&mut a, &mut b);
    // 37 bytes are left for the addresses.
    let expected = [
        Output::Opened { stream, route: route() },
        Output::Received { stream, len: 963 },
        Output::Received { stream, len: 537 },
        Output::Ended { stream },
    ];
    assert_eq!(told, expected);
    // The other direction lives on.
    give(&mut b, Input::Taken { stream, bytes: 1500 });
    give(&mut b, Input::Write { stream, bytes: 10 });
    assert_eq!(carry(&mut b, &mut a), [Output::Received { stream, len: 10 }]);
    give(&mut b, Input::Finish { stream });
    assert_eq!(carry(&mut b, &mut a), [Output::Ended { stream }]);
    assert_eq!(b.len(), 0);
    give(&mut a, Input::Taken { stream, bytes: 10 });
    assert_eq!(poll(&mut a, 0), [Output::Closed { stream }]);
    assert_eq!((a.len(), a.stats().closed, b.stats().closed), (0, 1, 1));
}

#[test]
fn a_slow_reader_holds_up_nobody() {
    let [mut a, mut b] = pair();
    let [slow, quick] = [(); 2].map(|()| a.open(route()).expect("there is room"));
    for stream in [slow, quick] {
        give(&mut a, Input::Write { stream, bytes: 1_000_000 });
    }
    let mut got = BTreeMap::from([(slow, 0), (quick, 0)]);
    for _ in 0..100 {
        for output in carry(&mut a, &mut b) {
            if let Output::Received { stream, len } = output {
                *got.get_mut(&stream).expect("one of the two") += u64::from(len);
                if stream == quick {
                    give(&mut b, Input::Taken { stream, bytes: len.into() });
                }
            }
        }
        carry(&mut b, &mut a);
    }
    assert_eq!((got[&slow], got[&quick]), (100_000, 1_000_000));
    assert_eq!(b.held(), 100_000);
}

#[test]
fn a_quiet_stream_goes_before_a_backlog() {
    let [mut a, _] = pair();
    let bulk = a.open(route()).expect("there is room");
    give(&mut a, Input::Write { stream: bulk, bytes: 90_000 });
    // Its first turn: 15 messages of 1000 bytes, the first of them with the opening.
    assert_eq!(sent(&mut a, 20).len(), 20);
    let quiet = a.open(route()).expect("there is room");
    give(&mut a, Input::Write { stream: quiet, bytes: 3000 });
    let of = |message: &Message| match *message {
        Message::Open { stream, .. } | Message::Data { stream, .. } => stream,
        _ => panic!("{message:?}"),
    };
    let order: Vec<_> = sent(&mut a, 6).iter().map(of).collect();
    assert_eq!(order, [quiet, quiet, quiet, quiet, bulk, bulk]);
}

#[test]
fn resets_cross_and_say_why() {
    let [mut a, mut b] = pair();
    let stream = a.open(route()).expect("there is room");
    assert_eq!(carry(&mut a, &mut b), [Output::Opened { stream, route: route() }]);
    give(&mut b, Input::Reset { stream, reason: Reason::Refused });
    give(&mut a, Input::Write { stream, bytes: 10 });
    // Data on its way to a stream that has ended is ignored.
    assert_eq!(carry(&mut a, &mut b), []);
    assert_eq!(b.stats().stray, 1);
    assert_eq!(carry(&mut b, &mut a), [Output::Reset { stream, reason: Reason::Refused }]);
    assert!(a.is_empty() && b.is_empty());
    // One that is reset before it was sent never was, and the next one has its number.
    let stream = a.open(route()).expect("there is room");
    give(&mut a, Input::Write { stream, bytes: 10 });
    give(&mut a, Input::Reset { stream, reason: Reason::Peer });
    assert_eq!((carry(&mut a, &mut b), a.stats().cancelled), (vec![], 1));
    assert_eq!(a.open(route()), Some(stream));
    assert_eq!(carry(&mut a, &mut b), [Output::Opened { stream, route: route() }]);
}

#[test]
fn what_breaks_the_rules_is_reset() {
    let [_, mut b] = pair();
    let reason = Reason::Protocol;
    let open = |stream| Message::Open { stream, route: route(), credit: 0, len: 0 };
    let data = |stream, offset, len| Message::Data { stream, offset, len, last: true };
    for (n, (offset, len)) in [(0, (1, 1)), (2, (0, 100_001))] {
        let stream = StreamId(n);
        give(&mut b, Input::Message(open(stream)));
        give(&mut b, Input::Message(data(stream, offset, len)));
        assert_eq!(poll(&mut b, 0), [Output::Opened { stream, route: route() }, Output::Reset { stream, reason }]);
        assert_eq!(sent(&mut b, 9), [Message::Reset { stream, reason }]);
    }
    // Bytes behind the end.
    let stream = StreamId(4);
    give(&mut b, Input::Message(open(stream)));
    give(&mut b, Input::Message(data(stream, 0, 5)));
    give(&mut b, Input::Message(data(stream, 5, 5)));
    assert_eq!(poll(&mut b, 0).last(), Some(&Output::Reset { stream, reason }));
    assert_eq!(b.held(), 0);
    // A number of ours, and one that is open already.
    for id in [1, 1] {
        give(&mut b, Input::Message(Message::Open { stream: StreamId(id), route: route(), credit: 0, len: 0 }));
    }
    assert_eq!((b.len(), b.stats().stray), (0, 2));
}

#[test]
fn too_many_streams_are_refused() {
    let [mut a, mut b] = pair();
    // One host may have seven times as many as are free: with 88 there are 12, and 7 * 12 < 88. Others have the rest.
    let opened = (0..100).filter(|_| a.open(route()).is_some()).count();
    assert_eq!(opened, 88);
    for n in 0..12 {
        a.open(Route { source: ([192, 0, 2, 2 + n], 40_000).into(), ..route() }).expect("there is room");
    }
    let other = Route { source: ([192, 0, 2, 100], 40_000).into(), ..route() };
    assert_eq!(a.open(other), None, "the peer takes no more");
    assert_eq!(carry(&mut a, &mut b).len(), 100);
    let stream = StreamId(1000);
    give(&mut b, Input::Message(Message::Open { stream, route: route(), credit: 0, len: 0 }));
    assert_eq!(sent(&mut b, 9), [Message::Reset { stream, reason: Reason::NoResources }]);
    give(&mut b, Input::Drain);
    give(&mut b, Input::Reset { stream: StreamId(0), reason: Reason::Peer });
    let stream = StreamId(1002);
    give(&mut b, Input::Message(Message::Open { stream, route: route(), credit: 0, len: 0 }));
    assert_eq!(sent(&mut b, 9)[1], Message::Reset { stream, reason: Reason::Draining });
    assert_eq!(b.len(), 99, "those that are there live on");
}

#[test]
fn memory_is_bounded_by_the_budget() {
    let [mut a, mut b] = pair();
    for _ in 0..50 {
        let stream = a.open(route()).expect("there is room");
        give(&mut a, Input::Write { stream, bytes: 1_000_000 });
    }
    let mut max = 0;
    for message in sent(&mut a, u32::MAX) {
        give(&mut b, Input::Message(message));
        max = max.max(b.held());
    }
    // Fifty windows are five times the budget.
    assert!(max <= 1_000_000, "{max}");
    assert!(b.stats().out_of_memory >= 40, "{:?}", b.stats());
}

/// What may happen to a stream of one end.
#[derive(Clone, Copy, Debug)]
enum Op {
    Open,
    Write(u8, u16),
    Finish(u8),
    Take(u8, u16),
    Reset(u8),
    Send(u8),
    Carry(u8),
}

fn op() -> impl Strategy<Value = (bool, Op)> {
    let op = prop_oneof![
        2 => Just(Op::Open),
        6 => (any::<u8>(), any::<u16>()).prop_map(|(stream, bytes)| Op::Write(stream, bytes)),
        2 => any::<u8>().prop_map(Op::Finish),
        6 => (any::<u8>(), any::<u16>()).prop_map(|(stream, bytes)| Op::Take(stream, bytes)),
        1 => any::<u8>().prop_map(Op::Reset),
        8 => any::<u8>().prop_map(Op::Send),
        8 => any::<u8>().prop_map(Op::Carry),
    ];
    (any::<bool>(), op)
}

/// What the driver of one end knows of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    written: u64,
    sent: u64,
    finished: bool,
    received: u64,
    taken: u64,
    ended: bool,
    over: bool,
}

struct World {
    ends: [Mux; 2],
    known: [BTreeMap<StreamId, Known>; 2],
    /// On the way from each end: messages of one flow keep their order, others none.
    carried: [Vec<Message>; 2],
    was_reset: BTreeSet<StreamId>,
}

impl World {
    fn pick(&self, end: usize, n: u8, may: impl Fn(&Known) -> bool) -> Option<StreamId> {
        let fit: Vec<_> = self.known[end].iter().filter(|(_, known)| !known.over && may(known)).collect();
        (!fit.is_empty()).then(|| *fit[usize::from(n) % fit.len()].0)
    }

    fn listen(&mut self, end: usize, room: u32) {
        for output in poll(&mut self.ends[end], room) {
            let of_end = &mut self.known[end];
            match output {
                Output::Send(message) => {
                    if let Message::Open { stream, len, .. } | Message::Data { stream, len, .. } = message {
                        let known = of_end.get_mut(&stream).expect("it was opened");
                        known.sent += u64::from(len);
                        assert!(known.over || known.sent <= known.written);
                    }
                    self.carried[end].push(message);
                }
                Output::Opened { stream, .. } => {
                    assert!(of_end.insert(stream, Known::default()).is_none(), "opened once");
                }
                Output::Received { stream, len } => {
                    let known = of_end.get_mut(&stream).expect("it was opened");
                    assert!(!known.over && !known.ended);
                    known.received += u64::from(len);
                }
                Output::Ended { stream } => of_end.get_mut(&stream).expect("it was opened").ended = true,
                Output::Closed { stream } => {
                    let known = of_end.get_mut(&stream).expect("it was opened");
                    assert!(known.ended && known.finished && known.taken == known.received && !known.over);
                    assert_eq!(known.sent, known.written);
                    known.over = true;
                }
                Output::Reset { stream, .. } => {
                    assert!(
                        !core::mem::replace(&mut of_end.get_mut(&stream).expect("it was opened").over, true),
                        "told once"
                    );
                    self.was_reset.insert(stream);
                }
            }
        }
        let open = self.known[end].values().filter(|known| !known.over).count();
        let held: u64 = self.known[end].values().filter(|known| !known.over).map(|k| k.received - k.taken).sum();
        assert_eq!((self.ends[end].len(), self.ends[end].held()), (open, held));
    }

    fn act(&mut self, end: usize, op: Op) {
        match op {
            Op::Open => {
                if let Some(stream) = self.ends[end].open(route()) {
                    self.known[end].insert(stream, Known::default());
                }
            }
            Op::Write(n, bytes) => {
                if let Some(stream) = self.pick(end, n, |known| !known.finished) {
                    self.known[end].get_mut(&stream).expect("picked").written += u64::from(bytes);
                    give(&mut self.ends[end], Input::Write { stream, bytes: bytes.into() });
                }
            }
            Op::Finish(n) => {
                if let Some(stream) = self.pick(end, n, |known| !known.finished) {
                    self.known[end].get_mut(&stream).expect("picked").finished = true;
                    give(&mut self.ends[end], Input::Finish { stream });
                }
            }
            Op::Take(n, bytes) => {
                if let Some(stream) = self.pick(end, n, |known| known.taken < known.received) {
                    let known = self.known[end].get_mut(&stream).expect("picked");
                    let bytes = u64::from(bytes).min(known.received - known.taken);
                    known.taken += bytes;
                    give(&mut self.ends[end], Input::Taken { stream, bytes });
                }
            }
            Op::Reset(n) => {
                if let Some(stream) = self.pick(end, n, |_| true) {
                    self.known[end].get_mut(&stream).expect("picked").over = true;
                    self.was_reset.insert(stream);
                    give(&mut self.ends[end], Input::Reset { stream, reason: Reason::Peer });
                }
            }
            Op::Send(room) => return self.listen(end, room.into()),
            Op::Carry(n) => self.carry(end, n),
        }
        self.listen(end, 0);
    }

    /// One message arrives: the first of its flow.
    fn carry(&mut self, end: usize, n: u8) {
        let carried = &mut self.carried[end];
        if carried.is_empty() {
            return;
        }
        let flow = carried[usize::from(n) % carried.len()].flow();
        let at = carried.iter().position(|message| message.flow() == flow).expect("it is there");
        let message = carried.remove(at);
        give(&mut self.ends[1 - end], Input::Message(message));
        self.listen(1 - end, 0);
    }
}

proptest! {
    /// Whatever users do, in whatever order flows arrive: what a user writes and does not reset comes whole, in order,
    /// and ends; nothing is told of what is over; nothing stays behind.
    #[test]
    fn all_arrives_or_is_reset(ops in prop::collection::vec(op(), 1..300)) {
        let mut world = World {
            ends: [Side::Initiator, Side::Responder].map(|side| Mux::new(MuxConfig { window: 20_000, ..config(side) })),
            known: Default::default(),
            carried: Default::default(),
            was_reset: Default::default(),
        };
        for (end, op) in ops {
            world.act(end.into(), op);
        }
        // Then all users end, and take what arrives.
        for round in 0.. {
            let mut busy = false;
            for end in [0, 1] {
                while let Some(stream) = world.pick(end, 0, |known| !known.finished) {
                    world.known[end].get_mut(&stream).expect("picked").finished = true;
                    give(&mut world.ends[end], Input::Finish { stream });
                    busy = true;
                }
                while world.pick(end, 0, |known| known.taken < known.received).is_some() {
                    world.act(end, Op::Take(0, u16::MAX));
                    busy = true;
                }
                world.act(end, Op::Send(255));
                while !world.carried[end].is_empty() {
                    world.carry(end, 0);
                    busy = true;
                }
            }
            if !busy {
                break;
            }
            prop_assert!(round < 10_000, "it comes to an end");
        }
        for end in [0, 1] {
            prop_assert!(world.ends[end].is_empty());
            prop_assert_eq!(world.ends[end].held(), 0);
            for (stream, known) in &world.known[end] {
                if !world.was_reset.contains(stream) {
                    prop_assert_eq!(known.written, world.known[1 - end][stream].taken);
                }
            }
        }
    }
}

/// A peer that opens more streams than it may, faster than our answers leave, costs only the memory of a bounded number of
/// answers.
#[test]
fn answers_to_a_flood_of_openings_are_bounded() {
    let [_, mut b] = pair();
    let count = 10_000;
    for n in 0..count {
        give(&mut b, Input::Message(Message::Open { stream: StreamId(2 * n), route: route(), credit: 0, len: 0 }));
    }
    assert_eq!(b.len(), 100);
    let resets = sent(&mut b, u32::MAX).iter().filter(|message| matches!(message, Message::Reset { .. })).count();
    assert_eq!(resets, MuxConfig::MIN_ANSWERS);
    assert_eq!(b.stats().stray, count - 100 - resets as u64);
    // The queue is empty: the next one has its answer again.
    give(&mut b, Input::Message(Message::Open { stream: StreamId(2 * count), route: route(), credit: 0, len: 0 }));
    let answer = Message::Reset { stream: StreamId(2 * count), reason: Reason::NoResources };
    assert_eq!(sent(&mut b, u32::MAX), [answer]);
}

/// A number that was used once is not opened again, though its stream is over; openings that overtake each other are.
#[test]
fn a_number_is_used_once() {
    let [_, mut b] = pair();
    let open = |n| Input::Message(Message::Open { stream: StreamId(n), route: route(), credit: 0, len: 0 });
    for n in [6, 0, 4, 2] {
        give(&mut b, open(n));
        assert_eq!(poll(&mut b, 0), [Output::Opened { stream: StreamId(n), route: route() }]);
        give(&mut b, Input::Message(Message::Reset { stream: StreamId(n), reason: Reason::Peer }));
        poll(&mut b, 0);
    }
    for n in [0, 2, 4, 6] {
        give(&mut b, open(n));
        assert_eq!(poll(&mut b, 0), [], "{n} again");
    }
    assert_eq!((b.len(), b.stats().accepted, b.stats().stray), (0, 4, 4));
    // The number of remembered gaps is bounded: beyond it, openings are dropped.
    for n in 0..10_000 {
        give(&mut b, open(100 + 4 * n));
        give(&mut b, Input::Message(Message::Reset { stream: StreamId(100 + 4 * n), reason: Reason::Peer }));
    }
    assert_eq!(b.stats().accepted, 4 + MuxConfig::MIN_RANGES as u64);
    // What closes a gap has room nevertheless.
    give(&mut b, open(8));
    assert_eq!(b.stats().accepted, 5 + MuxConfig::MIN_RANGES as u64);
}
