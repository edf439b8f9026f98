use alloc::borrow::Cow;
use alloc::sync::Arc;

use super::super::{
    Arrival, Change, Distribution, Jitter, Link, LinkConfig, LinkCounters, LossConfig, Moves, Outcome, Phases,
    QueueLimit, Reorder, Track, Wire,
};
use super::*;
use crate::machine::Context;
use crate::probe::{NoProbe, Who};
use crate::units::Rate;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Packet(u32);

impl Wire for Packet {
    fn wire_len(&self) -> u32 {
        1000
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn probability(value: f64) -> Probability {
    Probability::new(value).expect("in range")
}

/// 1000 B take 1 ms, and 100 ms of delay.
fn config() -> LinkConfig {
    LinkConfig::clean(Rate::from_bits_per_second(8_000_000), ms(100))
}

fn track(initial: u64, changes: &[(u64, u64, u64)], period: Option<u64>) -> Option<Arc<Track>> {
    let change = |&(at, over, value): &(u64, u64, u64)| Change { at: ms(at), over: ms(over), value };
    let changes = changes.iter().map(change).collect();
    Some(Arc::new(Track::new(initial, changes, period.map(ms)).expect("in order")))
}

fn ticks(millis: u64) -> u64 {
    ms(millis).as_ticks()
}

/// The output of a link: arrival in microseconds, number and outcome, in this order. Packets are numbered as offered.
fn out(config: &LinkConfig, offers: impl IntoIterator<Item = u64>) -> Vec<(u64, u32, Outcome)> {
    out_and_counters(config, offers).0
}

/// The same, with the counters.
fn out_and_counters(
    config: &LinkConfig,
    offers: impl IntoIterator<Item = u64>,
) -> (Vec<(u64, u32, Outcome)>, LinkCounters) {
    let mut link = Link::new(config, 1, "up");
    let mut all = Vec::new();
    let mut take = |link: &mut Link<Packet>, until: Time| {
        while let Some(now) = link.next_arrival().filter(|at| *at <= until) {
            let mut cx = Context { now, who: Who(0), probe: &mut NoProbe };
            let Arrival { packet, outcome } = link.take(&mut cx).expect("due");
            all.push((now.as_nanos() / 1000, packet.0, outcome));
        }
    };
    for (n, at) in offers.into_iter().enumerate() {
        let now = Time::ZERO + ms(at);
        take(&mut link, now);
        let _ = link.offer(&mut Context { now, who: Who(0), probe: &mut NoProbe }, Packet(n as u32));
    }
    take(&mut link, Time::NEVER);
    let counters = link.counters();
    assert_eq!(counters.offered, counters.delivered + counters.dropped());
    (all, counters)
}

fn arrivals(config: &LinkConfig, offers: &[u64]) -> Vec<(u64, u32)> {
    out(config, offers.iter().copied()).into_iter().map(|(at, n, _)| (at, n)).collect()
}

fn moves(moves: Moves) -> LinkConfig {
    LinkConfig { moves: Some(Arc::new(moves)), ..config() }
}

#[test]
fn a_delay_that_falls_reorders_nothing() {
    // 100 ms until 10 ms, then 20 ms: the packet of 10 ms would arrive at 31 ms, but waits for that of 9 ms, at 110 ms.
    let config = moves(Moves { delay: track(ticks(100), &[(11, 0, ticks(20))], None), ..Moves::default() });
    assert_eq!(
        arrivals(&config, &[0, 9, 10, 20, 100]),
        [(101_000, 0), (110_000, 1), (110_000, 2), (110_000, 3), (121_000, 4)]
    );
}

#[test]
fn a_delay_rises_in_a_ramp() {
    // From 100 ms at 0 to 200 ms at 100 ms, by 1 ms in each: what leaves the line at t has 100 + t.
    let config = moves(Moves { delay: track(ticks(100), &[(0, 100, ticks(200))], None), ..Moves::default() });
    assert_eq!(arrivals(&config, &[0, 49, 98, 200]), [(102_000, 0), (200_000, 1), (298_000, 2), (401_000, 3)]);
}

#[test]
fn a_rate_that_steps_sends_the_packet_in_two_parts() {
    // 8 Mbit/s until 500 us into the second packet, then 2 Mbit/s: 4000 bits more take 2 ms.
    let rate = track(8_000_000, &[(10, 0, 2_000_000)], None);
    let config = moves(Moves { rate, ..Moves::default() });
    assert_eq!(arrivals(&config, &[0, 9, 9]), [(101_000, 0), (110_000, 1), (114_000, 2)]);
}

#[test]
fn a_loss_comes_and_goes() {
    let loss = track(0, &[(150, 0, Track::ONE), (160, 0, 0)], None);
    let config = moves(Moves { loss, ..Moves::default() });
    // At the far end, as the channel's: those that arrive from 150 to 160 ms.
    let all = out(&config, [0, 48, 49, 58, 59, 100]);
    let lost: Vec<u32> = all.iter().filter(|(.., outcome)| *outcome == Outcome::Lost).map(|(_, n, _)| *n).collect();
    assert_eq!(lost, [2, 3]);
}

#[test]
fn a_queue_that_shrinks_drops_nobody() {
    let limits = vec![QueueLimit::Packets(5), QueueLimit::Packets(1)];
    let queue = track(0, &[(2, 0, 1)], None);
    let config = moves(Moves { queue, limits, ..Moves::default() });
    // One on the line and five waiting; at 2 ms two have left the queue: three wait, the limit is one. At 6 ms none does.
    let offers = [0, 0, 0, 0, 0, 0, 0, 2, 6, 6, 6];
    let numbers: Vec<u32> = arrivals(&config, &offers).into_iter().map(|(_, n)| n).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 8, 9]);
}

#[test]
fn phases_stop_the_line_and_lose_what_arrives() {
    let phases = Phases { length: ms(1000), first: ms(500), outage: ms(10), loss: Track::ONE, rate: None, delay: None };
    let config = LinkConfig { phases: Some(phases), ..config() };
    // Those that arrive from 500 to 510 ms are lost; the line stands in that time, and the packet of 505 ms begins at 510.
    let all = out(&config, [0, 402, 405, 505]);
    assert_eq!(all.iter().map(|(at, ..)| *at).collect::<Vec<_>>(), [101_000, 503_000, 506_000, 611_000]);
    let fates: Vec<bool> = all.iter().map(|(.., outcome)| *outcome == Outcome::Lost).collect();
    assert_eq!(fates, [false, true, true, false]);
}

#[test]
fn jitter_keeps_the_order_unless_told() {
    let jitter = |reorder| Jitter {
        delay: Distribution::Uniform(ms(0), ms(50)),
        correlation: Probability::ZERO,
        every: ms(1),
        reorder,
    };
    let with = |reorder| out(&LinkConfig { jitter: Some(jitter(reorder)), ..config() }, (0..500).map(|n| 2 * n));
    let in_order = |all: &[(u64, u32, Outcome)]| all.windows(2).all(|pair| pair[0].1 < pair[1].1);
    let (kept, free) = (with(false), with(true));
    assert!(in_order(&kept) && !in_order(&free));
    assert!(free.windows(2).all(|pair| pair[0].0 <= pair[1].0), "they come out in order of time");
    // Each arrives between 101 and 151 ms after it was offered.
    for &(at, n, _) in &free {
        let taken = at - 2000 * u64::from(n);
        assert!((101_000..=151_000).contains(&taken), "{n}: {taken}");
    }
    // In order, a packet arrives with the latest of those before it.
    let mut own: Vec<(u32, u64)> = free.iter().map(|&(at, n, _)| (n, at)).collect();
    own.sort_unstable();
    let mut latest = 0;
    for ((n, at), kept) in own.into_iter().zip(&kept) {
        latest = latest.max(at);
        assert_eq!((kept.1, kept.0), (n, latest));
    }
}

#[test]
fn late_packets_are_overtaken_and_wait_for_nobody() {
    let reorder = Some(Reorder { probability: probability(0.1), delay: ms(20) });
    let all = out(&LinkConfig { reorder, ..config() }, (0..1000).map(|n| 5 * n));
    let mut late = 0;
    for &(at, n, _) in &all {
        let taken = at - 5000 * u64::from(n);
        assert!(taken == 101_000 || taken == 121_000, "{n}: {taken}");
        late += u32::from(taken == 121_000);
    }
    // 100 expected; the deviation is sqrt(1000 * 0.1 * 0.9) = 9.5; four of them.
    assert!(late.abs_diff(100) < 38, "{late}");
    assert_eq!(all.len(), 1000);
}

#[test]
fn what_is_altered_is_told() {
    let config = LinkConfig { duplicate: probability(0.2), corrupt: probability(0.1), ..config() };
    let (mut twice, mut corrupt, mut both) = (0u32, 0u32, 0u32);
    let (all, counters) = out_and_counters(&config, 0..2000);
    for (.., outcome) in all {
        if let Outcome::Altered(altered) = outcome {
            twice += u32::from(altered.twice);
            corrupt += u32::from(altered.corrupt);
            both += u32::from(altered.twice && altered.corrupt);
        }
    }
    // 400, 200 and 40 expected; deviations 17.9, 13.4, 6.3; four of them.
    assert!(
        twice.abs_diff(400) < 72 && corrupt.abs_diff(200) < 54 && both.abs_diff(40) < 26,
        "{twice} {corrupt} {both}"
    );
    assert_eq!((counters.duplicated, counters.corrupted), (twice.into(), corrupt.into()));
}

/// Packets that arrive at the same instant each have a draw: half of a thousand are duplicated, not all or none.
#[test]
fn packets_of_one_instant_have_their_own_draws() {
    let config = LinkConfig { duplicate: probability(0.5), rate: None, ..config() };
    let twice = out_and_counters(&config, [0; 1000]).1.duplicated;
    // The deviation is sqrt(1000 * 0.25) = 15.8; four of them.
    assert!(twice.abs_diff(500) < 64, "{twice}");
}

#[test]
fn a_link_at_its_best_has_the_lowest_loss_of_its_schedule() {
    let loss = |of: &[f64]| {
        let values: Vec<u64> = of.iter().map(|&value| Track::of_probability(probability(value))).collect();
        track(values[0], &[(100, 0, values[1]), (200, 0, values[2])], None)
    };
    let mut config = config();
    config.good.packet = probability(0.02);
    assert!(matches!(config.at_best(), Cow::Borrowed(_)));
    config.moves = Some(Arc::new(Moves { loss: loss(&[0.2, 0.01, 0.3]), ..Moves::default() }));
    let best = config.at_best();
    assert_eq!(best.good, LossConfig { packet: probability(0.01), ..config.good });
    assert_eq!((best.rate, best.delay), (config.rate, config.delay));
}
