//! A peer that breaks every rule, beside users who keep to them.

use alloc::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::machine::{Context, Machine, Step};
use crate::units::Time;

/// The largest number on the wire.
const MAX: u64 = (1 << 62) - 1;

/// A number of a stream: small ones meet each other, and large ones are the end of the range.
fn stream() -> impl Strategy<Value = StreamId> {
    prop_oneof![6 => 0..12u64, 1 => MAX - 3..=MAX].prop_map(StreamId)
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..4u64, 0..3000u64, 60_000..70_000u64, MAX - 2000..=MAX]
}

fn message() -> impl Strategy<Value = Message> {
    let route = (0..3u8)
        .prop_map(|n| Route { source: ([192, 0, 2, n], 40_000).into(), destination: ([198, 51, 100, 7], 80).into() });
    let data = (stream(), number(), 0..1400u32, any::<bool>()).prop_map(|(stream, offset, len, last)| Message::Data {
        stream,
        offset: offset.min(MAX - u64::from(len)),
        len: if last { len } else { len.max(1) },
        last,
    });
    let next = (stream(), 1..1400u32, any::<bool>()).prop_map(|(stream, len, last)| {
        // Stands for the offset that the stream has reached.
        Message::Data { stream, offset: u64::MAX, len, last }
    });
    let reasons = prop_oneof![Just(Reason::Peer), Just(Reason::Protocol)];
    prop_oneof![
        1 => (number(), any::<u32>()).prop_map(|(credit, streams)| Message::Hello { credit, streams }),
        4 => (stream(), route, number(), 0..1400u32)
            .prop_map(|(stream, route, credit, len)| Message::Open { stream, route, credit, len }),
        2 => data,
        4 => next,
        1 => (stream(), number()).prop_map(|(stream, limit)| Message::Credit { stream, limit }),
        1 => (stream(), reasons).prop_map(|(stream, reason)| Message::Reset { stream, reason }),
    ]
}

/// What a user does, or the peer.
#[derive(Clone, Debug)]
enum Act {
    Says(Message),
    Opens,
    Writes(u8, u64),
    Finishes(u8),
    Takes(u8, u64),
    Resets(u8),
    Budget(u64),
    Room(u32),
    Drains,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => message().prop_map(Act::Says),
        2 => Just(Act::Opens),
        2 => (any::<u8>(), 1..3000u64).prop_map(|(n, bytes)| Act::Writes(n, bytes)),
        1 => any::<u8>().prop_map(Act::Finishes),
        3 => (any::<u8>(), any::<u64>()).prop_map(|(n, bytes)| Act::Takes(n, bytes)),
        1 => any::<u8>().prop_map(Act::Resets),
        1 => prop_oneof![Just(0), Just(4096), Just(1 << 20)].prop_map(Act::Budget),
        2 => (0..9u32).prop_map(Act::Room),
        1 => Just(Act::Drains),
    ]
}

/// What a user knows of a stream: bytes that came and were not taken, all that came, and whether it has finished.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    held: u64,
    came: u64,
    finished: bool,
}

proptest! {
    /// Nothing is told of a stream that is over or unknown, no byte is lost or counted twice, and what is held stays within the budget of
    /// the moment at which it came.
    #[test]
    fn a_peer_without_rules_confuses_no_user(
        is_first in any::<bool>(), window in 1..100_000u64, acts in prop::collection::vec(act(), 1..200),
    ) {
        let side = if is_first { Side::Initiator } else { Side::Responder };
        let mut budget = 20_000;
        let mut mux = Mux::new(MuxConfig { side, window, max_payload: 500, max_streams: 4, budget });
        let mut known: BTreeMap<StreamId, Known> = BTreeMap::new();
        let pick = |known: &BTreeMap<StreamId, Known>, n: u8| known.keys().nth(usize::from(n) % known.len().max(1)).copied();
        for act in acts {
            let route = Route { source: ([192, 0, 2, 9], 1).into(), destination: ([198, 51, 100, 7], 80).into() };
            let is_said = matches!(act, Act::Says(_));
            let input = match act {
                Act::Says(Message::Data { stream, offset: u64::MAX, len, last }) => {
                    let offset = known.get(&stream).map_or(0, |known| known.came);
                    Some(Input::Message(Message::Data { stream, offset, len, last }))
                }
                Act::Says(message) => Some(Input::Message(message)),
                Act::Opens => {
                    known.extend(mux.open(route).map(|stream| (stream, Known::default())));
                    None
                }
                Act::Writes(n, bytes) => {
                    let stream = pick(&known, n).filter(|stream| !known[stream].finished);
                    stream.map(|stream| Input::Write { stream, bytes })
                }
                Act::Finishes(n) => pick(&known, n).map(|stream| {
                    known.entry(stream).or_default().finished = true;
                    Input::Finish { stream }
                }),
                Act::Takes(n, bytes) => pick(&known, n).map(|stream| {
                    let known = known.entry(stream).or_default();
                    let bytes = bytes % (known.held + 1);
                    known.held -= bytes;
                    Input::Taken { stream, bytes }
                }),
                Act::Resets(n) => pick(&known, n).map(|stream| {
                    known.remove(&stream);
                    Input::Reset { stream, reason: Reason::Peer }
                }),
                Act::Budget(bytes) => {
                    budget = bytes;
                    Some(Input::Budget(bytes))
                }
                Act::Room(room) => Some(Input::Room(room)),
                Act::Drains => Some(Input::Drain),
            };
            let mut cx = Context::silent(Time::ZERO);
            let before = mux.held();
            if let Some(input) = input {
                mux.handle(&mut cx, input);
            }
            while let Step::Do(output) = mux.poll(&mut cx) {
                match output {
                    Output::Send(_) => {}
                    Output::Opened { stream, .. } => prop_assert!(known.insert(stream, Known::default()).is_none()),
                    Output::Received { stream, len } => {
                        let known = known.get_mut(&stream).expect("it is told of known streams");
                        (known.held, known.came) = (known.held + u64::from(len), known.came + u64::from(len));
                    }
                    Output::Ended { stream } => prop_assert!(known.contains_key(&stream)),
                    Output::Closed { stream } => prop_assert_eq!(known.remove(&stream).map(|known| known.held), Some(0)),
                    Output::Reset { stream, .. } => prop_assert!(known.remove(&stream).is_some()),
                }
            }
            prop_assert_eq!(mux.held(), known.values().map(|known| known.held).sum::<u64>());
            prop_assert_eq!(mux.len(), known.len());
            prop_assert!(!is_said || mux.held() <= budget.max(before), "{} of {}", mux.held(), budget);
        }
    }
}
