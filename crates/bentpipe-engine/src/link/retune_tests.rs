use alloc::sync::Arc;

use proptest::prelude::*;

use super::super::{
    BurstSchedule, Change, ChannelConfig, Discipline, Distribution, ExtraDelay, Jitter, LinkConfig, Moves, Outcome,
    PacketBursts, Phases, QueueLimit, RedConfig, Reorder, Track,
};
use super::*;
use crate::machine::Context;
use crate::probe::Who;
use crate::units::{Bytes, Probability, Rate};

#[derive(Clone, Copy, Debug, PartialEq)]
struct Packet(u32);

impl Wire for Packet {
    fn wire_len(&self) -> u32 {
        1000
    }
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn config(bits: u64, delay: u64) -> LinkConfig {
    LinkConfig::clean(Rate::from_bits_per_second(bits), Duration::from_millis(delay))
}

fn offer(link: &mut Link<Packet>, now: Time, n: u32) -> bool {
    link.offer(&mut Context { now, who: Who(0), probe: &mut NoProbe }, Packet(n)).is_ok()
}

/// Arrivals in milliseconds, by packet number.
fn rest(link: &mut Link<Packet>) -> Vec<(u32, u64, bool)> {
    core::iter::from_fn(|| {
        let now = link.next_arrival()?;
        let arrival = link.take(&mut Context { now, who: Who(0), probe: &mut NoProbe })?;
        Some((arrival.packet.0, now.as_nanos() / 1_000_000, arrival.outcome == Outcome::Delivered))
    })
    .collect()
}

#[test]
fn those_that_wait_are_sent_at_the_new_rate() {
    // 1000 B take 8 ms at 1 Mbit/s. At 12 ms the second has 4 ms to go; at 2 Mbit/s these are 2.
    let mut link = Link::new(&config(1_000_000, 100), 1, "sat");
    (0..4).for_each(|n| assert!(offer(&mut link, at(0), n)));
    link.retune(at(12), &config(2_000_000, 100), 1, "sat");
    assert!(offer(&mut link, at(12), 4));
    let expected = [(0, 108, true), (1, 114, true), (2, 118, true), (3, 122, true), (4, 126, true)];
    assert_eq!(rest(&mut link), expected);
}

#[test]
fn a_shorter_delay_overtakes_nobody() {
    let mut link = Link::new(&config(1_000_000, 100), 1, "sat");
    (0..3).for_each(|n| assert!(offer(&mut link, at(0), n)));
    link.retune(at(10), &config(1_000_000, 20), 1, "sat");
    // The first is on its way and the second on the line: they keep the 100 ms. The third would arrive at 44.
    assert_eq!(rest(&mut link), [(0, 108, true), (1, 116, true), (2, 116, true)]);
}

/// What a link does to packets besides does not change their order, unless it says so.
#[test]
fn a_shorter_delay_of_a_link_that_alters_packets_overtakes_nobody() {
    let altering = |delay| LinkConfig { corrupt: Probability::ONE, ..config(1_000_000, delay) };
    let mut link = Link::new(&altering(100), 1, "sat");
    (0..3).for_each(|n| assert!(offer(&mut link, at(0), n)));
    link.retune(at(10), &altering(20), 1, "sat");
    assert!(offer(&mut link, at(24), 3));
    let arrivals: Vec<(u32, u64)> = rest(&mut link).into_iter().map(|(n, millis, _)| (n, millis)).collect();
    assert_eq!(arrivals, [(0, 108), (1, 116), (2, 116), (3, 116)]);
}

/// Only the packets that `reorder` picks leave their place: here none, and then the first one.
#[test]
fn a_shorter_delay_overtakes_only_what_is_late() {
    let reordering = |probability: f64, delay| {
        let probability = Probability::new(probability).expect("in range");
        LinkConfig {
            reorder: Some(Reorder { probability, delay: Duration::from_millis(500) }),
            ..config(1_000_000, delay)
        }
    };
    let arrivals = |link: &mut Link<Packet>| -> Vec<(u32, u64)> {
        rest(link).into_iter().map(|(n, millis, _)| (n, millis)).collect()
    };
    let mut link = Link::new(&reordering(1e-12, 100), 1, "sat");
    (0..3).for_each(|n| assert!(offer(&mut link, at(0), n)));
    link.retune(at(10), &reordering(1e-12, 20), 1, "sat");
    assert!(offer(&mut link, at(24), 3));
    assert_eq!(arrivals(&mut link), [(0, 108), (1, 116), (2, 116), (3, 116)]);
    // The second, late, is on the line at the change; those behind it do not wait for it.
    let mut link = Link::new(&reordering(0.0, 100), 1, "sat");
    assert!(offer(&mut link, at(0), 0));
    link.retune(at(0), &reordering(1.0, 100), 1, "sat");
    assert!(offer(&mut link, at(0), 1));
    link.retune(at(9), &reordering(0.0, 20), 1, "sat");
    assert!(offer(&mut link, at(9), 2));
    assert_eq!(arrivals(&mut link), [(0, 108), (2, 116), (1, 616)]);
}

/// RED goes on with its average and its draws.
#[test]
fn an_average_goes_on() {
    let mut early = config(1_000_000, 0);
    early.queue.discipline = Discipline::Red(RedConfig {
        min_threshold: 2.0,
        max_threshold: 6.0,
        max_probability: Probability::new(0.5).expect("in range"),
        weight: 0.1,
        gentle: true,
        wait: false,
        mean_packet: Bytes::new(1000),
    });
    let fates = |retunes: bool| {
        let mut link = Link::new(&early, 1, "sat");
        let offered = (0..100).map(|n| {
            let now = at(6 * u64::from(n));
            if retunes {
                link.retune(now, &early, 1, "sat");
            }
            offer(&mut link, now, n)
        });
        offered.collect::<Vec<_>>()
    };
    assert_eq!(fates(true), fates(false));
    assert!(fates(false).iter().any(|admitted| !admitted));
}

#[test]
fn a_queue_that_becomes_too_short_drops_nobody() {
    let mut link = Link::new(&config(1_000_000, 0), 1, "sat");
    (0..6).for_each(|n| assert!(offer(&mut link, at(0), n)));
    let mut short = config(1_000_000, 0);
    short.queue.limit = QueueLimit::Packets(2);
    link.retune(at(1), &short, 1, "sat");
    assert!(!offer(&mut link, at(1), 6), "five wait");
    assert!(!offer(&mut link, at(30), 7), "two wait");
    assert!(offer(&mut link, at(33), 8), "one waits");
    assert_eq!(rest(&mut link).len(), 7);
    let counters = link.counters();
    assert_eq!((counters.offered, counters.delivered, counters.dropped_full), (9, 7, 2));
}

#[test]
fn loss_begins_with_the_change_and_ends_with_the_next() {
    let mut link = Link::new(&config(1_000_000, 100), 1, "sat");
    assert!(offer(&mut link, at(0), 0));
    let mut bad = config(1_000_000, 100);
    bad.good.packet = Probability::ONE;
    link.retune(at(20), &bad, 1, "sat");
    assert!(offer(&mut link, at(20), 1));
    link.retune(at(40), &config(1_000_000, 100), 1, "sat");
    assert!(offer(&mut link, at(40), 2));
    assert_eq!(rest(&mut link), [(0, 108, true), (1, 128, false), (2, 148, true)]);
}

/// Losses by packet number go on as if nothing had changed: the pattern does not begin again.
#[test]
fn numbered_losses_go_on() {
    let start = Probability::new(0.3).expect("in range");
    for bursts in [PacketBursts::Conditional { start, again: start }, PacketBursts::Runs { start, length: 5 }] {
        let numbered = LinkConfig { packet_bursts: Some(bursts), ..config(1_000_000, 100) };
        let pattern = |retunes: bool| {
            let mut link = Link::new(&numbered, 1, "sat");
            for n in 0..100 {
                let now = at(10 * u64::from(n));
                assert!(offer(&mut link, now, n));
                if retunes {
                    link.retune(now, &numbered, 1, "sat");
                }
            }
            rest(&mut link)
        };
        assert_eq!(pattern(true), pattern(false), "{bursts:?}");
    }
}

/// A fade by hand: what leaves the line meanwhile is lost, and what waits until after it is not.
#[test]
fn a_change_of_loss_is_met_by_those_that_leave_the_line_meanwhile() {
    let mut link = Link::new(&config(1_000_000, 100), 1, "sat");
    (0..6).for_each(|n| assert!(offer(&mut link, at(0), n)));
    let mut bad = config(1_000_000, 100);
    (bad.good.packet, bad.bad.packet) = (Probability::ONE, Probability::ONE);
    // The ends of their transmissions are 8, 16, 24, 32, 40 and 48 ms.
    link.retune(at(12), &bad, 1, "sat");
    link.retune(at(36), &config(1_000_000, 100), 1, "sat");
    let fates: Vec<bool> = rest(&mut link).into_iter().map(|(.., arrived)| arrived).collect();
    assert_eq!(fates, [true, false, false, false, true, true]);
}

/// The same on a link that loses packets by number. Those that the fade would have lost, but that leave after it, arrive.
#[test]
fn losses_by_number_are_told_from_those_of_a_fade() {
    let start = Probability::new(0.3).expect("in range");
    let numbered =
        LinkConfig { packet_bursts: Some(PacketBursts::Conditional { start, again: start }), ..config(1_000_000, 100) };
    let fates = |fades: bool| -> Vec<bool> {
        let mut link = Link::new(&numbered, 1, "sat");
        (0..60).for_each(|n| assert!(offer(&mut link, at(0), n)));
        if fades {
            let mut bad = numbered.clone();
            (bad.good.packet, bad.bad.packet) = (Probability::ONE, Probability::ONE);
            link.retune(at(12), &bad, 1, "sat");
            link.retune(at(36), &numbered, 1, "sat");
        }
        rest(&mut link).into_iter().map(|(.., arrived)| arrived).collect()
    };
    let (faded, never) = (fates(true), fates(false));
    assert!(never[4..].contains(&false) && never[4..].contains(&true));
    assert_eq!((&faded[1..4], &faded[4..]), (&[false; 3][..], &never[4..]));
    assert_eq!(faded[0], never[0]);
}

/// A schedule may make the delay shorter than the link's own.
#[test]
fn those_that_wait_keep_to_a_delay_that_follows_a_schedule() {
    let step = |at, millis| Change { at, over: Duration::ZERO, value: Duration::from_millis(millis).as_ticks() };
    let track = |millis| Track::new(step(Duration::ZERO, millis).value, vec![], None).expect("in order");
    let moved = |bits| LinkConfig {
        moves: Some(Arc::new(Moves { delay: Some(Arc::new(track(20))), ..Moves::default() })),
        ..config(bits, 100)
    };
    let mut link = Link::new(&moved(1_000_000), 1, "sat");
    (0..4).for_each(|n| assert!(offer(&mut link, at(0), n)));
    link.retune(at(12), &moved(2_000_000), 1, "sat");
    let expected = [(0, 28, true), (1, 34, true), (2, 38, true), (3, 42, true)];
    assert_eq!(rest(&mut link), expected);
}

/// Those offered after the change do not overtake either, and nothing happens before what has happened already.
#[test]
fn later_packets_do_not_arrive_in_the_past() {
    let mut link = Link::new(&config(1_000_000, 100), 1, "sat");
    assert!(offer(&mut link, at(0), 0));
    link.retune(at(10), &config(1_000_000, 20), 1, "sat");
    assert!(offer(&mut link, at(24), 1));
    assert!(offer(&mut link, at(200), 2));
    assert_eq!(rest(&mut link), [(0, 108, true), (1, 108, true), (2, 228, true)]);
}

/// Packets catch up with a shorter delay although the line never rests: they arrive together, not as far apart as they left.
#[test]
fn a_shorter_delay_takes_effect_under_load() {
    let losing = |delay| {
        let mut losing = config(1_000_000, delay);
        losing.good.packet = Probability::new(1e-12).expect("in range");
        losing
    };
    let mut link = Link::new(&losing(100), 1, "sat");
    (0..30).for_each(|n| assert!(offer(&mut link, at(0), n)));
    link.retune(at(12), &losing(20), 1, "sat");
    let arrivals: Vec<u64> = rest(&mut link).into_iter().map(|(_, millis, _)| millis).collect();
    assert_eq!(arrivals[..3], [108, 116, 116]);
    assert_eq!(arrivals[29], 30 * 8 + 20);
}

fn line(config: LinkConfig, kind: u32) -> LinkConfig {
    let ms = Duration::from_millis;
    let rate = |bits| Rate::from_bits_per_second(bits).expect("not zero");
    match kind {
        0 => config,
        1 => LinkConfig { rate: Some(rate(3_000_000)), ..config },
        2 => LinkConfig { rate: None, ..config },
        3 => {
            let phases = Phases {
                length: ms(40),
                first: ms(15),
                outage: ms(9),
                loss: Track::ONE / 2,
                rate: Some((rate(500_000), rate(9_000_000))),
                delay: Some((ms(0), ms(30))),
            };
            LinkConfig { phases: Some(phases), ..config }
        }
        4 => {
            let bursts = vec![(ms(1), ms(3)), (ms(10), ms(1))];
            let schedule = BurstSchedule::new(ms(20), bursts, rate(4_000_000)).expect("in order");
            LinkConfig { tdma: Some(Arc::new(schedule)), ..config }
        }
        _ => {
            let step = |at, value| Change { at: ms(at), over: ms(5), value };
            let track = Track::new(1_000_000, vec![step(20, 0), step(50, 6_000_000)], Some(ms(90))).expect("in order");
            LinkConfig { moves: Some(Arc::new(Moves { rate: Some(Arc::new(track)), ..Moves::default() })), ..config }
        }
    }
}

fn sky(mut config: LinkConfig, kind: u32) -> LinkConfig {
    let ms = Duration::from_millis;
    let p = |value| Probability::new(value).expect("in range");
    match kind {
        0 => {}
        1 => config.good.packet = p(0.2),
        2 => {
            config.channel = ChannelConfig::OnOff {
                gap: Distribution::Exponential { mean: ms(40) },
                burst: Distribution::Exponential { mean: ms(10) },
            };
            (config.bad.packet, config.extra_delay) = (p(0.5), ExtraDelay(ms(25)));
        }
        3 => {
            let delay = Distribution::Exponential { mean: ms(5) };
            config.jitter = Some(Jitter { delay, correlation: p(0.5), every: ms(1), reorder: false });
        }
        4 => config.reorder = Some(Reorder { probability: p(0.2), delay: ms(13) }),
        5 => (config.duplicate, config.corrupt) = (p(0.2), p(0.2)),
        6 => config.packet_bursts = Some(PacketBursts::Runs { start: p(0.1), length: 3 }),
        _ => {
            let step = |at, value| Change { at: ms(at), over: ms(7), value };
            let delays = vec![step(10, ms(10).as_ticks()), step(40, ms(70).as_ticks())];
            let losses = vec![step(20, Track::ONE), step(50, 0)];
            let track =
                |initial, changes| Some(Arc::new(Track::new(initial, changes, Some(ms(60))).expect("in order")));
            let mut moves = config.moves.as_deref().cloned().unwrap_or_default();
            (moves.delay, moves.loss) = (track(ms(30).as_ticks(), delays), track(0, losses));
            config.moves = Some(Arc::new(moves));
        }
    }
    config
}

prop_compose! {
    fn any_config()(kind in 0..6u32, above in 0..8u32, delay in 0..60u64, queue in prop::option::of(1..20u32)) -> LinkConfig {
        let mut config = sky(line(config(1_000_000, delay), kind), above);
        config.queue.limit = queue.map_or(QueueLimit::Unlimited, QueueLimit::Packets);
        config
    }
}

type Events = Vec<(u32, Time, Outcome)>;

/// Offers a packet in each step, after a gap in half milliseconds, and perhaps changes the settings before. Returns the
/// events, and which packets were refused.
fn events(config: &LinkConfig, steps: &[(u64, Option<LinkConfig>)]) -> (Events, Vec<bool>) {
    let (mut link, mut events, mut now) = (Link::new(config, 3, "sat"), Vec::new(), Time::ZERO);
    let mut take = |link: &mut Link<Packet>, until: Time| {
        while let Some(now) = link.next_arrival().filter(|at| *at <= until) {
            let arrival = link.take(&mut Context { now, who: Who(0), probe: &mut NoProbe }).expect("due");
            events.push((arrival.packet.0, now, arrival.outcome));
        }
    };
    let mut admitted = Vec::new();
    for (n, (gap, change)) in steps.iter().enumerate() {
        now += Duration::from_micros(500 * gap);
        take(&mut link, now);
        if let Some(config) = change {
            link.retune(now, config, 3, "sat");
        }
        admitted.push(offer(&mut link, now, n as u32));
    }
    take(&mut link, Time::NEVER);
    let counters = link.counters();
    assert_eq!((counters.offered, link.in_flight()), (counters.delivered + counters.dropped(), 0));
    (events, admitted)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same settings once more change nothing. Where a late packet would have arrived in order is not stored, so the
    /// draws of those behind it may be others.
    #[test]
    fn a_change_to_the_same_settings_is_none(
        config in any_config().prop_filter("late", |config| config.reorder.is_none()),
        gaps in prop::collection::vec((0..24u64, prop::bool::weighted(0.2)), 1..60),
    ) {
        let never: Vec<_> = gaps.iter().map(|&(gap, _)| (gap, None)).collect();
        let again: Vec<_> = gaps.iter().map(|&(gap, change)| (gap, change.then(|| config.clone()))).collect();
        prop_assert_eq!(events(&config, &never), events(&config, &again));
    }

    /// Whatever changes, time does not go back, nothing is lost between, and packets stay in order unless settings say
    /// otherwise.
    #[test]
    fn a_change_keeps_order_and_packets(
        first in any_config(),
        steps in prop::collection::vec((0..24u64, prop::option::weighted(0.2, any_config())), 1..60),
    ) {
        let (events, admitted) = events(&first, &steps);
        prop_assert_eq!(events.len(), admitted.iter().filter(|admitted| **admitted).count());
        prop_assert!(events.is_sorted_by_key(|&(_, at, _)| at), "{:?}", events);
        let reorders = |config: &LinkConfig| config.reorder.is_some();
        if !reorders(&first) && !steps.iter().any(|(_, change)| change.as_ref().is_some_and(reorders)) {
            prop_assert!(events.is_sorted_by_key(|&(n, ..)| n), "{:?}", events);
        }
    }
}
