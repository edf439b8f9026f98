//! On any channel, bytes arrive complete, in order and once, and the connection ends.

use crate::pair::{Action, Channel, Pair, Reading};
use bentpipe_engine::stp::{self, Arming, StpConfig};
use bentpipe_engine::stream::Stream;
use bentpipe_engine::tcp::variant::{Growth, VARIANTS};
use bentpipe_engine::tcp::{
    Abort, AckPolicy, Connection, Daass, Duplex, EcnUse, Role, Segment, SendingHalf, TcpConfig, Variant,
};
use bentpipe_engine::units::{Bytes, Duration, Rate, Time};
use bentpipe_engine::wire::ecn::Ecn;
use proptest::prelude::*;

/// Loses, repeats and reorders packets at random for a while, then stops.
struct Storm {
    stream: Stream,
    loss: f64,
    duplication: f64,
    /// The share of ECN-capable packets that queues mark.
    marking: f64,
    delay: Duration,
    jitter: Duration,
    calm: Time,
}

impl Channel for Storm {
    fn pass(&mut self, now: Time, _: usize, segment: &Segment) -> Vec<(Duration, Segment)> {
        if now >= self.calm {
            return vec![(self.delay, *segment)];
        }
        let copies = 1 + (self.stream.uniform() < self.duplication) as usize;
        let mut arrivals = Vec::new();
        let mut segment = *segment;
        if segment.ecn.is_capable() && self.stream.uniform() < self.marking {
            segment.ecn = Ecn::Ce;
        }
        for _ in 0..copies {
            let lost = self.stream.uniform() < self.loss;
            let late = self.stream.uniform_in(0.0, self.jitter.as_secs_f64());
            if !lost {
                arrivals.push((self.delay + Duration::from_secs_f64_rounded(late), segment));
            }
        }
        arrivals
    }
}

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    loss: f64,
    duplication: f64,
    marking: f64,
    delay_ms: u64,
    jitter_ms: u64,
    plan: Vec<(u64, usize, u64)>,
    closes: [u64; 2],
    ends: [Ends; 2],
}

/// Settings of one end that differ from case to case.
#[derive(Clone, Debug)]
struct Ends {
    mss: u16,
    buffer: u32,
    delayed: bool,
    daass: bool,
    timestamps: bool,
    scaling: bool,
    nagle: bool,
    per_ack: bool,
    ecn: bool,
    sack_blocks: u8,
    max_burst: Option<u32>,
    clamp: Option<u32>,
    slow_reader: Option<(u64, u64)>,
}

fn ends() -> impl Strategy<Value = Ends> {
    let sizes = (prop_oneof![Just(1460u16), 40..2000u16], prop_oneof![Just(1u32 << 20), 1500..70_000u32]);
    let switches = any::<[bool; 7]>();
    let limits = (1..5u8, prop::option::of(1..6u32), prop::option::of(1..40u32));
    let slow = prop::option::of((1..5000u64, 1..500u64));
    (sizes, switches, limits, slow).prop_map(|((mss, buffer), s, (sack_blocks, max_burst, clamp), slow_reader)| Ends {
        mss,
        buffer,
        delayed: s[0],
        daass: s[1],
        timestamps: s[2],
        scaling: s[3],
        nagle: s[4],
        per_ack: s[5],
        ecn: s[6],
        sack_blocks,
        max_burst,
        clamp,
        slow_reader,
    })
}

fn case() -> impl Strategy<Value = Case> {
    let channel = (
        any::<u64>(),
        prop_oneof![Just(0.0), 0.0..0.1, 0.0..0.5],
        prop_oneof![Just(0.0), 0.0..0.3],
        prop_oneof![Just(0.0), 0.0..0.1, 0.0..1.0],
        1..700u64,
        prop_oneof![Just(0u64), 0..50u64, 0..2000u64],
    );
    let plan = prop::collection::vec((0..20_000u64, 0..2usize, prop_oneof![1..100u64, 1..60_000u64]), 0..12);
    let closes = [0..30_000u64, 0..30_000u64];
    (channel, plan, closes, [ends(), ends()]).prop_map(
        |((seed, loss, duplication, marking, delay_ms, jitter_ms), plan, closes, ends)| Case {
            seed,
            loss,
            duplication,
            marking,
            delay_ms,
            jitter_ms,
            plan,
            closes,
            ends,
        },
    )
}

fn config(variant: Variant, end: &Ends) -> TcpConfig {
    let growth = if end.per_ack { Growth::PerAck } else { variant.growth };
    TcpConfig {
        variant: Variant { growth, max_burst: end.max_burst, ..variant },
        mss: end.mss,
        receive_buffer: end.buffer,
        ack: AckPolicy {
            daass: if end.daass { Daass::SlowStart } else { Daass::Off },
            ..if end.delayed { AckPolicy::DELAYED } else { AckPolicy::IMMEDIATE }
        },
        timestamps: end.timestamps,
        window_scaling: end.scaling,
        nagle: end.nagle,
        ecn: if end.ecn { EcnUse::On } else { EcnUse::Off },
        sack_blocks: end.sack_blocks,
        window_clamp: end.clamp,
        // Longer than the storm: otherwise a retransmitted FIN may find no connection, which is correct.
        time_wait: Duration::from_secs(600),
        ..TcpConfig::default()
    }
}

/// Disturbances that 15 retries survive, and then none.
const STORM: u64 = 60;

fn play<S: SendingHalf>(connections: [Duplex<S>; 2], case: &Case) -> Pair<Storm, S> {
    let millis = |ms| Time::ZERO + Duration::from_millis(ms);
    let reading = |end: &Ends| match end.slow_reader {
        Some((bytes, every)) => Reading::Slow { bytes, every: Duration::from_millis(every) },
        None => Reading::Greedy,
    };
    let mut plan: Vec<_> = case.plan.iter().map(|&(at, n, bytes)| (millis(at), n, Action::Write(bytes))).collect();
    plan.extend((0..2).map(|n| (millis(case.closes[n]), n, Action::Close)));
    let storm = Storm {
        stream: Stream::named(case.seed, "storm"),
        loss: case.loss,
        duplication: case.duplication,
        marking: case.marking,
        delay: Duration::from_millis(case.delay_ms),
        jitter: Duration::from_millis(case.jitter_ms),
        calm: Time::ZERO + Duration::from_secs(STORM),
    };
    let mut pair = Pair::new(connections, [reading(&case.ends[0]), reading(&case.ends[1])], plan, storm);
    // The slowest reader takes 500 ms per byte of at most 720 000; a probe of a shut window may wait a minute more.
    pair.run(Time::ZERO + Duration::from_secs(1_000_000));
    pair
}

/// An active and a passive end with the settings of the case.
fn tcp(variant: Variant, case: &Case) -> [Connection; 2] {
    [(0, Role::Active), (1, Role::Passive)].map(|(n, role)| Connection::new(config(variant, &case.ends[n]), role))
}

/// STP over the path of the case, with this timer.
fn stp(case: &Case, rto: Duration, max_retransmissions: u8) -> [stp::Connection; 2] {
    let rate = Rate::from_bits_per_second(1_000_000).expect("not zero");
    [(0, Role::Active), (1, Role::Passive)].map(|(n, role)| {
        let end = &case.ends[n];
        let config = StpConfig {
            polls: None,
            rto,
            max_retransmissions,
            mss: end.mss,
            receive_buffer: end.buffer.max(end.mss as u32),
            arming: if end.delayed { Arming::HandOver } else { Arming::Departure },
            window: end.clamp.map(|segments| Bytes::new(segments as u64 * end.mss as u64)),
            // A peer in FIN-WAIT needs an end that answers it for as long as the disturbances may last.
            time_wait: Duration::from_secs(600),
            ..StpConfig::for_path(rate, Duration::from_millis(2 * case.delay_ms))
        };
        stp::Connection::new(config, role)
    })
}

fn whole_and_ended<S: SendingHalf>(connections: [Duplex<S>; 2], case: &Case) -> Result<(), TestCaseError> {
    let pair = play(connections, case);
    prop_assert!(pair.has_ended(), "does not end: {}", pair.describe());
    for n in 0..2 {
        let (end, peer) = (&pair.ends[n], &pair.ends[1 - n]);
        // The channel loses nothing after a minute, so neither end should give up.
        prop_assert_eq!(end.ended, Some(Ok(())), "{}", pair.describe());
        prop_assert_eq!(end.connection.received(), peer.written, "{}", pair.describe());
        prop_assert_eq!(end.connection.acknowledged(), end.written, "{}", pair.describe());
        prop_assert!(end.peer_closed);
    }
    Ok(())
}

/// One property per row of the table, so that a failure names the row.
macro_rules! for_each_variant {
    ($($test:ident: $name:literal),+ $(,)?) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $test(case in case()) {
                    whole_and_ended(tcp(Variant::named($name).expect("a row of the table"), &case), &case)?;
                }
            )+
        }

        #[test]
        fn every_row_is_tried() {
            let tried = [$($name),+];
            let untried: Vec<_> = VARIANTS.iter().map(|row| row.0).filter(|name| !tried.contains(name)).collect();
            assert_eq!(untried, [""; 0], "rows without a line below");
        }
    };
}

for_each_variant! {
    tahoe_delivers: "tahoe",
    reno_delivers: "reno",
    newreno_delivers: "newreno",
    newreno_sbs_delivers: "newreno-sbs",
    sack_delivers: "sack",
    sack_3517_delivers: "sack-3517",
    sack_ns2_delivers: "sack-ns2",
    sack_frto_delivers: "sack-frto",
    reno_super_fast_delivers: "reno-super-fast",
    constant_window_delivers: "constant-window",
    constant_rack_delivers: "constant-rack",
    burst_delivers: "burst",
    burst_ca_delivers: "burst-ca",
    cubic_delivers: "cubic",
    rack_delivers: "rack",
    linux_reno_delivers: "linux-reno",
    linux_cubic_delivers: "linux-cubic",
    bbr_delivers: "bbr",
    bbr3_delivers: "bbr3",
    vegas_delivers: "vegas",
    westwood_delivers: "westwood",
    hybla_delivers: "hybla",
    prague_delivers: "prague",
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the storm does, with a timer above the round trip and patience for it: each repetition and its ACK come
    /// through with a probability of 1/4 at least, so that 200 in a row are never lost.
    #[test]
    fn stp_delivers(case in case()) {
        let rto = Duration::from_millis(2 * (case.delay_ms + case.jitter_ms) + 100);
        whole_and_ended(stp(&case, rto, 200), &case)?;
    }

    /// With the timer of the `stp` paper and any round trip: everything arrives, or an end reports why not.
    #[test]
    fn stp_delivers_or_gives_up(case in case()) {
        let pair = play(stp(&case, Duration::from_millis(550), 6), &case);
        let gave_up = pair.ends.iter().find_map(|end| end.ended.and_then(Result::err));
        match gave_up {
            Some(why) => prop_assert!(matches!(why, Abort::RetriesExhausted | Abort::Reset | Abort::Refused)),
            None => {
                prop_assert!(pair.has_ended(), "does not end: {}", pair.describe());
                for n in 0..2 {
                    prop_assert_eq!(pair.ends[n].connection.received(), pair.ends[1 - n].written);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// If the channel fails for good, the end that still has something to send aborts with a typed error.
    #[test]
    fn a_dead_channel_aborts(case in case(), dies_after in 0..15_000u64) {
        struct Dying(Storm, Time);
        impl Channel for Dying {
            fn pass(&mut self, now: Time, from: usize, segment: &Segment) -> Vec<(Duration, Segment)> {
                if now >= self.1 { Vec::new() } else { self.0.pass(now, from, segment) }
            }
        }
        let millis = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut plan: Vec<_> = case.plan.iter().map(|&(at, n, bytes)| (millis(at), n, Action::Write(bytes))).collect();
        plan.push((millis(20_000), 0, Action::Write(1)));
        let storm = Storm {
            stream: Stream::named(case.seed, "storm"),
            loss: 0.0,
            duplication: 0.0,
            marking: 0.0,
            delay: Duration::from_millis(case.delay_ms),
            jitter: Duration::ZERO,
            calm: Time::NEVER,
        };
        let variant = Variant::named("sack").expect("a row of the table");
        let dying = Dying(storm, millis(dies_after));
        let mut pair = Pair::new(tcp(variant, &case), [Reading::Greedy, Reading::Greedy], plan, dying);
        pair.run(Time::ZERO + Duration::from_secs(10_000));
        prop_assert_eq!(
            pair.ends[0].ended,
            Some(Err(Abort::RetriesExhausted)),
            "{}", pair.describe()
        );
    }
}

/// ACKs that overtake each other have old timestamps, and each is answered (RFC 7323 §5.3): where a quarter of all segments
/// comes twice, two ends that answer each other's answers never stop, and have more to answer each time.
#[test]
fn acknowledgements_of_acknowledgements_end() {
    let case = Case {
        seed: 4310583837305307681,
        loss: 0.0,
        duplication: 0.25,
        marking: 0.0,
        delay_ms: 2,
        jitter_ms: 28,
        plan: vec![(2578, 1, 12192)],
        closes: [7211, 17950],
        ends: [
            Ends {
                mss: 1719,
                buffer: 1048576,
                delayed: true,
                daass: false,
                timestamps: true,
                scaling: false,
                nagle: true,
                per_ack: false,
                ecn: false,
                sack_blocks: 3,
                max_burst: Some(5),
                clamp: None,
                slow_reader: None,
            },
            Ends {
                mss: 172,
                buffer: 53918,
                delayed: false,
                daass: false,
                timestamps: true,
                scaling: false,
                nagle: true,
                per_ack: true,
                ecn: false,
                sack_blocks: 3,
                max_burst: None,
                clamp: None,
                slow_reader: None,
            },
        ],
    };
    let variant = Variant::named("burst").expect("a row of the table");
    for seed in 0..200 {
        let case = Case { seed, ..case.clone() };
        let pair = play(tcp(variant, &case), &case);
        // RFC 5961 §7: 100 per second, for as long as there is a storm; and one for each segment with data.
        let sent = pair.ends.iter().map(|end| end.connection.stats().pure_acks).max();
        assert!(pair.has_ended() && sent < Some(100 * STORM + 1000), "{seed}: {}", pair.describe());
    }
}

/// Where nothing is lost but segments come twice, duplicate ACKs start a phase of the burst estimate, and in it each copy of a
/// partial ACK shows a hole that is none: it costs a burst of up to the whole window. That is quadratic, and it ends: each
/// acknowledgement number starts at most one burst, so that n segments outstanding cost at most n (n + 1) / 2 retransmissions.
#[test]
fn copies_of_partial_acks_cost_a_burst_each() {
    let end = |mss| Ends {
        mss,
        buffer: 1048576,
        delayed: false,
        daass: false,
        timestamps: false,
        scaling: false,
        nagle: false,
        per_ack: false,
        ecn: false,
        sack_blocks: 1,
        max_burst: None,
        clamp: None,
        slow_reader: None,
    };
    let case = Case {
        seed: 2499794978961028767,
        loss: 0.0,
        duplication: 0.1597982658998204,
        marking: 0.0,
        delay_ms: 600,
        jitter_ms: 0,
        plan: vec![(0, 0, 1), (10999, 1, 56461), (2800, 0, 1), (16200, 0, 1680)],
        closes: [22200, 10999],
        ends: [end(40), end(1460)],
    };
    let variant = Variant::named("burst-ca").expect("a row of the table");
    let pair = play(tcp(variant, &case), &case);
    assert!(pair.has_ended(), "{}", pair.describe());
    let stats = pair.ends[1].connection.stats();
    let n = stats.max_flight / 40;
    assert!(stats.retransmits > 20 * n, "many bursts: {}", stats.retransmits);
    let phases = stats.fast_retransmits + stats.timeouts;
    assert!(stats.retransmits <= phases * n * (n + 1) / 2, "{} of {n} in {phases}", stats.retransmits);
}
