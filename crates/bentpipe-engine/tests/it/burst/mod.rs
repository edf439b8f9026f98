//! The burst-loss sender (minei §5.3) over a path that keeps the order: it does what the literal twin does, and keeps
//! the bounds of its paper.

mod path;
mod twin;

use self::path::{End, Log, SATELLITE, Times, run};
use self::twin::{RTO, Settings, TwinReceiver, TwinSender};
use bentpipe_engine::probe::{Event, Who};
use bentpipe_engine::stream::TimeNoise;
use bentpipe_engine::tcp::variant::{BurstEstimate, DupThresh, Recovery, ReentryGuard, Startup, TimeoutRepair};
use bentpipe_engine::tcp::{
    AckPolicy, Connection, FIRST_BYTE, Flags, Handshake, Input, Output, Role, RtoConfig, Segment, Shortcuts, TcpConfig,
    Variant,
};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::{Context, Machine, Probe, Step};
use proptest::prelude::*;

const MSS: u64 = 512;

/// When phases began and ended, and how often the timer ran out.
#[derive(Debug, Default)]
struct Watch {
    entered: Vec<u64>,
    left: Vec<u64>,
    timeouts: u32,
}

impl Probe for Watch {
    fn event(&mut self, now: Time, _: Who, event: &Event) {
        match event {
            Event::RecoveryEntered { .. } => self.entered.push(now.as_nanos()),
            Event::RecoveryLeft => self.left.push(now.as_nanos()),
            Event::Timeout { .. } => self.timeouts += 1,
            _ => {}
        }
    }
}

/// One of the engine's ends, in packet numbers.
struct Engine {
    connection: Connection,
    sends: bool,
    timer: Option<Time>,
    acknowledged: u64,
    watch: Watch,
}

fn config(settings: &Settings) -> TcpConfig {
    let timer = Duration::from_nanos(RTO);
    TcpConfig {
        mss: MSS as u16,
        variant: Variant {
            startup: Startup::FixedWindow(settings.window as u32),
            dup_thresh: DupThresh { count: settings.dup_thresh as u32, window_fraction: None },
            recovery: Recovery::BurstEstimate(settings.cells),
            timeout_repair: if settings.oldest { TimeoutRepair::Oldest } else { TimeoutRepair::GoBack },
            ..Variant::named("burst").expect("a row of the table")
        },
        ack: if settings.delayed { AckPolicy::DELAYED } else { AckPolicy::IMMEDIATE },
        rto: RtoConfig { initial: timer, min: timer, max: timer, max_retries: u32::MAX, ..RtoConfig::RFC6298 },
        shortcuts: Shortcuts { handshake: Handshake::None, ..Shortcuts::NONE },
        ..TcpConfig::default()
    }
}

impl Engine {
    fn new(settings: &Settings, sends: bool) -> Self {
        let role = if sends { Role::Active } else { Role::Passive };
        let connection = Connection::new(config(settings), role);
        let mut end = Engine { connection, sends, timer: None, acknowledged: 0, watch: Watch::default() };
        end.handle(0, Input::Open);
        if sends {
            // The window that the receiver offers is known: an ACK that changes it is no duplicate.
            end.take(0, 1);
            end.handle(0, Input::Write(settings.total * MSS));
        }
        end
    }

    fn handle(&mut self, now: u64, input: Input) {
        let mut cx = Context { now: Time::from_nanos(now), who: Who(0), probe: &mut self.watch };
        self.connection.handle(&mut cx, input);
    }
}

impl End for Engine {
    fn take(&mut self, now: u64, number: u64) {
        let mut segment = Segment::new(Flags::ACK);
        segment.window = 1 << 30;
        let seq = FIRST_BYTE + (number - 1) * MSS;
        if self.sends {
            (segment.seq, segment.ack) = (FIRST_BYTE, seq);
        } else {
            (segment.seq, segment.len, segment.ack) = (seq, MSS as u16, FIRST_BYTE);
        }
        self.handle(now, Input::Segment(segment));
    }

    fn give(&mut self, now: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        loop {
            let mut cx = Context { now: Time::from_nanos(now), who: Who(0), probe: &mut self.watch };
            match self.connection.poll(&mut cx) {
                Step::Do(Output::Transmit(segment)) if self.sends => {
                    assert_eq!((segment.len as u64, (segment.seq - FIRST_BYTE) % MSS), (MSS, 0), "whole packets");
                    numbers.push((segment.seq - FIRST_BYTE) / MSS + 1);
                }
                Step::Do(Output::Transmit(segment)) => numbers.push((segment.ack - FIRST_BYTE) / MSS + 1),
                Step::Do(Output::Acknowledged(bytes)) => self.acknowledged = bytes,
                // The buffer holds all data and the user does not read, so the window never changes.
                Step::Do(Output::Readable(_)) => {}
                Step::Do(output) => assert_eq!(output, Output::Connected, "nobody closes"),
                Step::Wait(until) => {
                    self.timer = until;
                    return numbers;
                }
            }
        }
    }

    fn timer(&self) -> Option<u64> {
        self.timer.map(Time::as_nanos)
    }
}

fn settings(window: u64, total: u64) -> Settings {
    let Recovery::BurstEstimate(cells) = Variant::named("burst").expect("a row of the table").recovery else {
        unreachable!("the row estimates bursts")
    };
    Settings { window, total, dup_thresh: 3, cells, oldest: false, delayed: false }
}

/// Both systems under the same losses. Returns the packets that they sent.
fn both(
    settings: &Settings,
    times: Times,
    loses: impl Fn(bool, u64, u32) -> bool + Copy,
) -> (Engine, (Log, Log), (Log, Log)) {
    let (mut sender, mut receiver) = (Engine::new(settings, true), Engine::new(settings, false));
    let ours = run(&mut sender, &mut receiver, times, loses);
    let literal = run(&mut TwinSender::new(settings.clone()), &mut TwinReceiver::new(settings.delayed), times, loses);
    (sender, ours, literal)
}

/// The engine's sender against losses of first transmissions only.
fn lossy(settings: &Settings, lost: &[u64]) -> (Engine, Log) {
    let (mut sender, mut receiver) = (Engine::new(settings, true), Engine::new(settings, false));
    let loses = |forward, packet, nth| forward && nth == 1 && lost.contains(&packet);
    let (sent, _) = run(&mut sender, &mut receiver, SATELLITE, loses);
    assert_eq!(sender.acknowledged, settings.total * MSS, "everything arrives: {lost:?}");
    (sender, sent)
}

fn guard() -> impl Strategy<Value = ReentryGuard> {
    prop_oneof![Just(ReentryGuard::Off), Just(ReentryGuard::Recover), Just(ReentryGuard::Credit)]
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let cells = (1..3u32, any::<bool>(), guard());
    (2..70u64, 1..250u64, 1..5u64, cells, any::<[bool; 2]>()).prop_map(
        |(window, total, dup_thresh, (first_repeats, in_burst_skip, guard), [oldest, delayed])| Settings {
            window,
            total,
            dup_thresh,
            cells: BurstEstimate { first_repeats, in_burst_skip, guard },
            oldest,
            delayed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any losses, both send the same packets at the same instants and the same ACKs, and everything arrives.
    #[test]
    fn it_does_what_the_twin_does(
        settings in any_settings(),
        seed in any::<u64>(),
        data in prop_oneof![Just(0.0), 0.0..0.05, 0.0..0.4],
        acks in prop_oneof![3 => Just(0.0), 1 => 0.0..0.3],
        burstiness in prop_oneof![Just(0.0), 0.0..0.8],
    ) {
        let noise = TimeNoise::named(seed, "loss");
        // Runs of losses by packet number, and independent losses of each transmission.
        let drawn = move |packet: u64, nth: u32| noise.at(packet, nth);
        let loses = move |forward: bool, number: u64, nth: u32| match forward {
            true => {
                let before = number > 1 && drawn(number - 1, nth) < data;
                drawn(number, nth) < if before { data.max(burstiness) } else { data }
            }
            false => noise.at(number << 32, nth) < acks,
        };
        let (sender, ours, literal) = both(&settings, SATELLITE, loses);
        prop_assert_eq!(&ours.0, &literal.0);
        prop_assert_eq!(&ours.1, &literal.1);
        prop_assert_eq!(sender.acknowledged, settings.total * MSS);
    }
}

/// Runs of losses in one window of at most the bandwidth-delay product, from packet 41 on, each at least one packet
/// after the one before, and enough after the last one for three duplicate ACKs.
fn runs() -> impl Strategy<Value = (u64, Vec<u64>, u64)> {
    let window = prop_oneof![Just(12u64), Just(16), Just(20), Just(24), Just(27)];
    (window, prop::collection::vec((1..5u64, 1..6u64), 1..7)).prop_map(|(window, runs)| {
        let (mut lost, mut at, mut count) = (Vec::new(), 41, 0);
        for (length, gap) in runs {
            if at + length > 41 + window - 4 {
                break;
            }
            lost.extend(at..at + length);
            at += length + gap;
            count += 1;
        }
        (window, lost, count)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// minei §5.3: without lost retransmissions no timeout; h runs are repaired within 1 + h round trips, one within 2.
    #[test]
    fn runs_are_repaired_in_a_round_trip_each((window, lost, count) in runs()) {
        let (sender, sent) = lossy(&settings(window, 300), &lost);
        let watch = &sender.watch;
        prop_assert_eq!(watch.timeouts, 0);
        prop_assert_eq!((watch.entered.len(), watch.left.len()), (1, 1), "one phase");
        let took = watch.left[0] - watch.entered[0];
        // Bursts and the ACKs of the old window queue for the return link: the time it takes to push them is no round
        // trip.
        let repairs = sent.len() as u64 - 300;
        let pushing = repairs * SATELLITE.data.max(SATELLITE.ack) + window * (SATELLITE.ack - SATELLITE.data);
        prop_assert!(took <= (1 + count) * SATELLITE.round_trip() + pushing, "{took} ns for {count} runs");
    }

    /// minei §5.3: "The upper bound on the number of unnecessary retransmissions in the presence of n single-packet
    /// losses is [...] (n - 1) x (n - 2)".
    #[test]
    fn isolated_losses_cost_at_most_the_bound(window in 20..130u64, spacings in prop::collection::vec(2..15u64, 0..12)) {
        let mut lost = vec![41];
        for spacing in spacings {
            let next = lost[lost.len() - 1] + spacing;
            if next <= 41 + window - 5 {
                lost.push(next);
            }
        }
        let (sender, sent) = lossy(&settings(window, 400), &lost);
        let n = lost.len() as u64;
        let needless = sent.len() as u64 - 400 - n;
        prop_assert!(needless <= (n - 1) * n.saturating_sub(2), "{needless} for {n}");
        prop_assert_eq!((sender.watch.timeouts, sender.watch.entered.len()), (0, 1));
    }
}

/// Without a guard the echoes of needless retransmissions open phases for nothing, and the bound does not hold.
#[test]
fn without_a_guard_the_bound_is_broken() {
    let lost: Vec<u64> = (0..6).map(|n| 41 + 9 * n).collect();
    let mut unguarded = settings(64, 400);
    unguarded.cells.guard = ReentryGuard::Off;
    let (sender, sent) = lossy(&unguarded, &lost);
    assert!(sent.len() as u64 - 400 - 6 > 5 * 4, "{} retransmissions", sent.len() - 400);
    assert!(sender.watch.entered.len() > 1);
    let (sender, sent) = lossy(&settings(64, 400), &lost);
    assert!(sent.len() as u64 - 400 - 6 <= 5 * 4);
    assert_eq!(sender.watch.entered.len(), 1);
}
