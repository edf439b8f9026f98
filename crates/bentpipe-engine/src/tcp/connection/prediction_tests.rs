//! The fast path and the slow path on the same segments: the answers and every field of the connections are compared.

use alloc::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::machine::{Machine, Step};
use crate::probe::NoProbe;
use crate::tcp::{Connection, Input, Output, Role, TcpConfig, Variant};
use crate::units::Duration;

/// A connection, and its twin that takes the slow path.
struct Twins {
    short: Connection,
    long: Connection,
    /// Segments that were predicted, and polls that were ordinary.
    predicted: u32,
    ordinary: u32,
    /// Other polls that were found to wait.
    waits: u32,
    /// Polls are ordinary until the next input, or until one waits.
    is_ordinary: bool,
}

impl Twins {
    fn new(config: TcpConfig, role: Role) -> Self {
        let new = || Connection::new(config, role);
        Twins { short: new(), long: new(), predicted: 0, ordinary: 0, waits: 0, is_ordinary: false }
    }

    /// What the short way knows of both halves besides is no difference, nor is whether RACK lists segments that left together one by one.
    fn compare(&mut self) {
        (self.long.sender_rests, self.long.receiver_rests) = (self.short.sender_rests, self.short.receiver_rests);
        let listed = |end: &Connection| {
            let mut end = end.clone();
            end.sender.list_segments();
            format!("{end:?}")
        };
        assert_eq!(listed(&self.short), listed(&self.long));
    }

    fn handle(&mut self, now: Time, input: Input) {
        let cx = || Context::<'static, NoProbe>::silent(now);
        let (short, long) = match &input {
            Input::Segment(segment) => {
                let predicted = self.short.take_predicted(&mut cx(), segment);
                self.predicted += u32::from(predicted.is_some());
                let short = predicted.unwrap_or_else(|| self.short.take_unpredicted(&mut cx(), segment));
                (short, self.long.take_unpredicted(&mut cx(), segment))
            }
            _ => (self.short.handle(&mut cx(), input), self.long.handle(&mut cx(), input)),
        };
        assert_eq!(short, long);
        self.is_ordinary = false;
        self.compare();
    }

    fn poll(&mut self, now: Time) -> Step<Output> {
        let mut cx = Context::<'static, NoProbe>::silent(now);
        self.is_ordinary = self.is_ordinary || self.short.is_ordinary::<NoProbe>(now);
        let ordinary = if self.is_ordinary { self.short.poll_ordinary(now) } else { Ordinary::Other };
        let short = match ordinary {
            Ordinary::Transmit(segment) => Some(Step::Do(Output::Transmit(segment))),
            Ordinary::Wait(until) => Some(Step::Wait((until != Time::NEVER).then_some(until))),
            Ordinary::Other => None,
        };
        self.ordinary += u32::from(short.is_some());
        let waits = if short.is_none() { self.short.waits::<NoProbe>(now) } else { None };
        self.waits += u32::from(waits.is_some());
        let short = short.or(waits.map(|until| Step::Wait((until != Time::NEVER).then_some(until))));
        self.is_ordinary = matches!(ordinary, Ordinary::Transmit(_));
        let short = short.unwrap_or_else(|| self.short.poll(&mut cx));
        assert_eq!(short, self.long.poll(&mut Context::silent(now)));
        self.compare();
        short
    }
}

/// Two ends that send each other this many bytes over a pipe of 10 ms. The pipe loses the segments with the first numbers and
/// duplicates those with the second.
fn transfer(config: TcpConfig, bytes: [u64; 2], lost: &[usize], doubled: &[usize]) -> [Twins; 2] {
    let mut ends = [Twins::new(config, Role::Active), Twins::new(config, Role::Passive)];
    let mut pipes: [VecDeque<(Time, Segment)>; 2] = Default::default();
    let (mut now, mut sent, mut read, mut closed) = (Time::ZERO, 0, [0; 2], [false; 2]);
    for end in [1, 0] {
        ends[end].handle(now, Input::Open);
        ends[end].handle(now, Input::Write(bytes[end]));
    }
    for _ in 0..20_000 {
        let mut next = Time::NEVER;
        for n in 0..2 {
            if let Some(&(at, segment)) = pipes[n].front()
                && at <= now
            {
                pipes[n].pop_front();
                ends[n].handle(now, Input::Segment(segment));
            }
            loop {
                match ends[n].poll(now) {
                    Step::Do(Output::Transmit(segment)) => {
                        sent += 1;
                        let copies = if lost.contains(&sent) { 0 } else { 1 + doubled.contains(&sent) as usize };
                        let arrives = now + Duration::from_millis(10);
                        pipes[1 - n].extend(core::iter::repeat_n((arrives, segment), copies));
                    }
                    Step::Do(Output::Readable(total)) => {
                        ends[n].handle(now, Input::Read(total - read[n]));
                        read[n] = total;
                    }
                    Step::Do(_) => {}
                    Step::Wait(until) => break next = next.min(until.unwrap_or(Time::NEVER)),
                }
                // An end closes when it has everything and the other one too.
                if read[n] == bytes[1 - n] && ends[n].short.acknowledged() == bytes[n] && !closed[n] {
                    closed[n] = true;
                    ends[n].handle(now, Input::Close);
                }
            }
        }
        next = pipes.iter().flatten().map(|&(at, _)| at).fold(next, Time::min);
        if next == Time::NEVER {
            break;
        }
        now = next.max(now);
    }
    assert_eq!(read, [bytes[1], bytes[0]]);
    ends
}

fn config(variant: &str, timestamps: bool, delayed: bool) -> TcpConfig {
    let mut config = TcpConfig { timestamps, time_wait: Duration::from_secs(1), ..TcpConfig::default() };
    config.variant = Variant::named(variant).expect("a row of the table");
    if !delayed {
        config.ack = crate::tcp::AckPolicy::IMMEDIATE;
    }
    // Of a packet of several segments the last one has PSH.
    config.ack.pushed = config.variant.offload;
    config
}

/// Without losses nearly all segments take the fast path: 500 segments one way, an ACK for every second.
#[test]
fn nearly_all_segments_of_a_clean_transfer_are_predicted() {
    for timestamps in [false, true] {
        // Timestamps take 12 bytes of each segment.
        let full = if timestamps { 1448 } else { 1460 };
        let [sender, receiver] = transfer(config("sack", timestamps, true), [500 * full, 0], &[], &[]);
        // Not predicted: the SYN, the ACK of the handshake, the FIN and its ACK.
        assert!(receiver.predicted >= 499, "{}", receiver.predicted);
        assert!(sender.predicted >= 248, "{}", sender.predicted);
        let [_, pushed] = transfer(config("linux-cubic", timestamps, true), [500 * full, 0], &[], &[]);
        assert!(pushed.predicted >= 499, "{}", pushed.predicted);
        if timestamps {
            continue;
        }
        // Without options, a poll for each segment sent, and one more for each received.
        assert!(sender.ordinary >= 500 + 248 && receiver.ordinary >= 498, "{} {}", sender.ordinary, receiver.ordinary);
    }
}

/// While a loss is repaired, polls that send nothing take the short way, too: one for each segment that arrives out of order, and one for
/// its ACK, but for the three that begin the repair.
#[test]
fn polls_of_a_repair_that_send_nothing_are_short() {
    let [sender, receiver] = transfer(config("sack", false, true), [100 * 1460, 0], &[60, 61, 62], &[]);
    let beyond = receiver.short.stats().out_of_order_received;
    assert!(beyond > 10 && u64::from(receiver.waits) >= beyond, "{beyond} {}", receiver.waits);
    assert!(u64::from(sender.waits) >= beyond - 3, "{beyond} {}", sender.waits);
}

/// A receiver whose end only sends rests. Data ends that, even if the program leaves it unread: the next segment acknowledges it.
#[test]
fn data_ends_the_rest_of_a_receiver() {
    let cx = || Context::<'static, NoProbe>::silent(Time::ZERO);
    let mut ends = [Role::Active, Role::Passive].map(|role| Connection::new(config("sack", false, false), role));
    ends.iter_mut().for_each(|end| assert_eq!(end.handle(&mut cx(), Input::Open), Verdict::Accepted(Fresh::None)));
    for n in [0, 1, 0, 1] {
        while let Step::Do(output) = ends[n].poll(&mut cx()) {
            if let Output::Transmit(segment) = output {
                ends[1 - n].take_segment(&mut cx(), &segment);
            }
        }
    }
    let send = |end: &mut Connection, segments: u64| {
        end.handle(&mut cx(), Input::Write(1460 * segments));
        assert!(end.is_ordinary::<NoProbe>(Time::ZERO));
        let sent = core::iter::from_fn(|| match end.poll_ordinary(Time::ZERO) {
            Ordinary::Transmit(segment) => Some(segment),
            _ => None,
        });
        sent.collect::<Vec<_>>()
    };
    let [sender, peer] = &mut ends;
    assert_eq!(send(sender, 1).len(), 1);
    assert!(sender.receiver_rests);
    let [answer] = send(peer, 1)[..] else { panic!("one segment") };
    assert!(sender.take_predicted(&mut cx(), &answer).is_some());
    assert_eq!(sender.take_readable(), Some(1460));
    let [next] = send(sender, 1)[..] else { panic!("one segment with the ACK") };
    assert_eq!((next.len, next.ack), (1460, answer.end()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// For any losses and duplicates, in either direction.
    #[test]
    fn the_short_way_does_what_the_long_way_does(
        variant in prop::sample::select(vec!["tahoe", "newreno", "sack", "sack-frto", "burst-ca", "rack", "cubic", "linux-cubic", "westwood", "bbr", "bbr3", "hybla"]),
        (timestamps, delayed) in any::<(bool, bool)>(),
        there in 0u64..120_000,
        back in prop_oneof![Just(0u64), 0u64..60_000],
        lost in prop::collection::vec(1usize..150, 0..12),
        doubled in prop::collection::vec(1usize..150, 0..4),
    ) {
        transfer(config(variant, timestamps, delayed), [there, back], &lost, &doubled);
    }
}
