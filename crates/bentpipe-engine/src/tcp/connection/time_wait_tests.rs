//! A connection that has rested, and one that has not, on the same stray segments.

use alloc::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::machine::{Context, Machine, Step};
use crate::tcp::{Flags, Input, Output, Segment, Timestamps, Variant};
use crate::units::Duration;

const DELAY: Duration = Duration::from_millis(10);

fn config(variant: &str, timestamps: bool) -> TcpConfig {
    let variant = Variant::named(variant).expect("a row of the table");
    TcpConfig { variant, timestamps, ..TcpConfig::default() }
}

/// All segments that a connection sends now, and when it wants to be polled again.
fn outputs(connection: &mut Connection, now: Time) -> (Vec<Output>, Option<Time>) {
    let mut said = Vec::new();
    loop {
        match connection.poll(&mut Context::silent(now)) {
            Step::Do(output) => said.push(output),
            Step::Wait(until) => return (said, until),
        }
    }
}

/// The client of a transfer of `bytes`, once nothing more happens but the end of TIME-WAIT. The segment with the number `lost` does not
/// arrive.
fn client_after(config: TcpConfig, bytes: u64, lost: Option<usize>) -> (Connection, Time) {
    let mut ends = [Role::Active, Role::Passive].map(|role| Connection::new(config, role));
    let mut pipes: [VecDeque<(Time, Segment)>; 2] = Default::default();
    let (mut now, mut sent) = (Time::ZERO, 0);
    for n in [1, 0] {
        ends[n].handle(&mut Context::silent(now), Input::Open);
    }
    ends[0].handle(&mut Context::silent(now), Input::Write(bytes));
    loop {
        let mut next = Time::NEVER;
        for n in 0..2 {
            while pipes[n].front().is_some_and(|&(at, _)| at <= now) {
                let (_, segment) = pipes[n].pop_front().expect("there is one");
                ends[n].handle(&mut Context::silent(now), Input::Segment(segment));
            }
            let (said, until) = outputs(&mut ends[n], now);
            for output in said {
                match output {
                    Output::Transmit(segment) => {
                        sent += 1;
                        if lost != Some(sent) {
                            pipes[1 - n].push_back((now + DELAY, segment));
                        }
                    }
                    Output::Connected if n == 0 => next = now,
                    Output::PeerClosed if n == 1 => next = now,
                    _ => continue,
                }
                if next == now && !matches!(output, Output::Transmit(_)) {
                    ends[n].handle(&mut Context::silent(now), Input::Close);
                }
            }
            next = next.min(until.unwrap_or(Time::NEVER));
        }
        let arrivals = pipes.iter().flatten().map(|&(at, _)| at).min();
        if ends[0].state() == State::TimeWait && arrivals.is_none() {
            return (ends.into_iter().next().expect("two of them"), now);
        }
        now = next.min(arrivals.unwrap_or(Time::NEVER)).max(now);
        assert_ne!(now, Time::NEVER, "the transfer ends");
    }
}

#[test]
fn only_a_calm_transfer_leaves_a_connection_that_rests() {
    for variant in ["sack", "newreno", "rack", "cubic", "linux-cubic", "vegas"] {
        let (client, _) = client_after(config(variant, false), 100_000, None);
        let resting = client.resting().unwrap_or_else(|| panic!("{variant}"));
        assert_eq!(
            (Some(resting.until()), resting.closed()),
            (outputs(&mut resting.wake(), Time::ZERO).1, client.if_closed())
        );
        // The tenth segment has data.
        let (client, _) = client_after(config(variant, false), 100_000, Some(10));
        assert!(client.stats().retransmits > 0 && client.resting().is_none(), "{variant}");
    }
    let (client, _) = client_after(config("bbr", false), 100_000, None);
    assert!(client.resting().is_none(), "BBR measures the rate of delivery by all ACKs");
    // It is a small part of a connection.
    assert!(2 * size_of::<Resting>() <= size_of::<Connection>(), "{}", size_of::<Resting>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Whatever comes: old and new numbers, all flags, with and without SACK blocks and timestamps.
    #[test]
    fn a_woken_connection_answers_as_one_that_did_not_rest(
        variant in prop::sample::select(vec!["sack", "newreno", "rack", "cubic", "linux-cubic", "hybla"]),
        timestamps in any::<bool>(),
        segments in prop::collection::vec(
            (
                (-3000i64..3000, -3000i64..3000, 0u16..1460, 0u64..2_000_000),
                prop::sample::select(vec![
                    Flags::ACK, Flags::ACK, Flags::ACK | Flags::FIN, Flags::SYN, Flags::SYN | Flags::ACK, Flags::RST, Flags::NONE,
                ]),
                (any::<bool>(), any::<bool>(), any::<bool>()),
                prop::option::of((-5000i64..100, 1u64..3000)),
            ),
            1..12,
        ),
    ) {
        let (mut client, mut now) = client_after(config(variant, timestamps), 100_000, None);
        let mut woken = client.resting().expect("nothing was lost").wake();
        prop_assert_eq!(outputs(&mut woken, now), outputs(&mut client, now));
        for ((seq, ack, len, pause), flags, (exact_seq, exact_ack, bare), block) in segments {
            now += Duration::from_nanos(pause * 1000);
            let mut segment = Segment::new(flags);
            segment.seq = client.rcv_nxt().saturating_add_signed(if exact_seq { 0 } else { seq });
            segment.ack = client.snd_una().saturating_add_signed(if exact_ack { 0 } else { ack });
            segment.len = if bare { 0 } else { len };
            segment.window = 60_000;
            segment.timestamps = (timestamps && pause % 3 > 0).then_some(Timestamps { value: (pause / 1000) as u32, echo: 0 });
            if let Some((from, bytes)) = block {
                let start = client.snd_una().saturating_add_signed(from);
                segment.sack.push(segment.ack, start, start + bytes);
            }
            let verdicts = [&mut woken, &mut client]
                .map(|connection| connection.handle(&mut Context::silent(now), Input::Segment(segment)));
            prop_assert_eq!(verdicts[0], verdicts[1]);
            prop_assert_eq!(outputs(&mut woken, now), outputs(&mut client, now));
            prop_assert_eq!((woken.state(), woken.stats()), (client.state(), client.stats()));
        }
        now += Duration::from_secs(120);
        prop_assert_eq!(outputs(&mut woken, now), outputs(&mut client, now));
        prop_assert_eq!(woken.closed(), client.closed());
    }
}
