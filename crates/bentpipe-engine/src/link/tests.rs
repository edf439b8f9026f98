use super::super::config::{ChannelConfig, ExtraDelay, QueueLimit, Ties};
use super::*;
use crate::probe::{NoProbe, Who};
use crate::units::{Probability, Rate, TransmitClock};

#[derive(Clone, Copy, Debug, PartialEq)]
struct Packet(u32);

impl Wire for Packet {
    fn wire_len(&self) -> u32 {
        self.0
    }

    /// Packets of 999 B understand marks.
    fn is_ect(&self) -> bool {
        self.0 == 999
    }
}

fn config() -> LinkConfig {
    LinkConfig::clean(Rate::from_bits_per_second(2_000_000), Duration::from_millis(255))
}

fn ms(millis: f64) -> Time {
    Time::from_nanos((millis * 1e6) as u64)
}

/// Offers packets of 1000 B at the given milliseconds; arrival in milliseconds, or `None` where it was lost.
fn arrivals(config: &LinkConfig, offers: &[f64]) -> Vec<Option<f64>> {
    let mut link = Link::new(config, 1, "up");
    let mut probe = NoProbe;
    let mut lost_before = Vec::new();
    for &at in offers {
        let mut cx = Context { now: ms(at), who: Who(0), probe: &mut probe };
        lost_before.push(link.offer(&mut cx, Packet(1000)).is_err());
    }
    let mut got = Vec::new();
    for lost in lost_before {
        if lost {
            got.push(None);
            continue;
        }
        let now = link.next_arrival().expect("in flight");
        let arrival = link.take(&mut Context { now, who: Who(0), probe: &mut probe }).expect("due");
        got.push((arrival.outcome == Outcome::Delivered).then_some(now.as_nanos() as f64 / 1e6));
    }
    assert_eq!(link.in_flight(), 0);
    let c = link.counters();
    assert_eq!(c.offered, c.delivered + c.dropped());
    got
}

#[test]
fn a_packet_takes_transmission_and_propagation() {
    // 8000 bits at 2 Mbit/s: 4 ms; the second waits for the first.
    assert_eq!(arrivals(&config(), &[0.0, 1.0, 100.0]), [Some(259.0), Some(263.0), Some(359.0)]);
}

#[test]
fn a_packet_over_the_mtu_is_dropped_and_takes_no_room() {
    let mut config = config();
    config.mtu = Some(999);
    assert_eq!(arrivals(&config, &[0.0, 1.0]), [None, None]);
    config.mtu = Some(1000);
    // The link's own header does not count.
    config.header = 8;
    assert_eq!(arrivals(&config, &[0.0, 1.0]).iter().flatten().count(), 2);
}

#[test]
fn the_queue_holds_its_limit_beside_the_one_in_transmission() {
    let mut config = config();
    config.queue.limit = QueueLimit::Packets(2);
    let offers = [0.0, 0.0, 0.0, 0.0, 3.9, 4.0];
    // One in transmission, two wait, the fourth and the one at 3.9 ms find no room; at 4 ms there is one.
    assert_eq!(arrivals(&config, &offers), [Some(259.0), Some(263.0), Some(267.0), None, None, Some(271.0)]);
    config.queue.limit = QueueLimit::Bytes(crate::units::Bytes::new(2500));
    assert_eq!(arrivals(&config, &offers), [Some(259.0), Some(263.0), Some(267.0), None, None, Some(271.0)]);
}

#[test]
fn of_an_arrival_and_a_departure_of_one_instant_that_comes_first_which_was_begun_first() {
    let mut config = config();
    assert_eq!(config.ties, Ties::Departure, "which leaves its place to the arrival, whatever was begun first");
    config.ties = Ties::Begun;
    config.queue.limit = QueueLimit::Packets(1);
    let at = |millis| Time::from_nanos((millis * 1e6) as u64);
    // One is sent from 0 to 4 ms, one waits. The third comes at 4 ms, by an event begun before, with, or after the first's
    // transmission.
    for (begun, admitted) in [(-1.0, false), (0.0, true), (1.0, true), (4.0, true)] {
        let mut link = Link::new(&config, 1, "up");
        let mut offer = |millis: f64, begun: f64| {
            // The engine's clock cannot say -1: all instants are 1 ms later.
            let mut cx = Context { now: at(millis + 1.0), who: Who(0), probe: &mut NoProbe };
            link.offer_begun(&mut cx, Packet(1000), || at(begun + 1.0)).is_ok()
        };
        assert!(offer(0.0, 0.0) && offer(0.0, 0.0));
        assert_eq!(offer(4.0, begun), admitted, "begun at {begun} ms");
    }
}

#[test]
fn what_ties_in_real_numbers_ties_here() {
    // 1000 B at 524 kbit/s take 15.267175572... ms, which is no whole number of ticks. What left the line back to back comes
    // back after a round trip that is not whole either, and each packet meets the departure of the one before it.
    let mut config = config();
    config.rate = Rate::from_bits_per_second(524_000);
    config.queue.limit = QueueLimit::Packets(1);
    let mut link = Link::new(&config, 1, "up");
    let mut offer = |now| link.offer(&mut Context { now, who: Who(0), probe: &mut NoProbe }, Packet(1000)).is_ok();
    let time = config.rate.map(|rate| TransmitClock::new(rate).transmit(1000)).expect("a rate");
    let mut now = Time::ZERO + Duration::from_secs_f64_rounded(0.513_378_911_357);
    assert!(offer(now) && offer(now));
    for n in 0..10_000 {
        now += time;
        assert!(offer(now), "packet {n} finds that one has left");
    }
}

#[test]
fn a_drop_list_counts_arrivals() {
    let mut config = config();
    config.drop_list = vec![1, 3];
    assert_eq!(arrivals(&config, &[0.0, 0.0, 0.0, 0.0]), [Some(259.0), None, Some(263.0), None]);
}

#[test]
fn a_burst_loses_what_leaves_the_link_inside_it() {
    let mut config = config();
    config.channel = ChannelConfig::Schedule(vec![(Duration::from_millis(262), Duration::from_millis(5))]);
    config.bad.packet = Probability::ONE;
    // Exits at 259, 263, 267: the burst ends at 267, exclusive.
    assert_eq!(arrivals(&config, &[0.0, 0.0, 0.0]), [Some(259.0), None, Some(267.0)]);
}

#[test]
fn delay_in_a_burst_keeps_the_order() {
    let mut config = config();
    config.channel = ChannelConfig::Schedule(vec![(Duration::from_millis(3), Duration::from_millis(3))]);
    config.extra_delay = ExtraDelay(Duration::from_millis(550));
    // The one that starts at 4 ms is late by 550 ms; the next two queue up behind it, a packet time apart.
    assert_eq!(arrivals(&config, &[0.0, 0.0, 0.0, 0.0]), [Some(259.0), Some(813.0), Some(817.0), Some(821.0)]);
}

#[test]
fn losses_are_indexed_by_time_not_by_packet() {
    let mut config = config();
    config.good.packet = Probability::new(0.3).expect("in range");
    let all: Vec<f64> = (0..200).map(|i| i as f64 * 4.0).collect();
    let every_other: Vec<f64> = all.iter().copied().step_by(2).collect();
    let lost = arrivals(&config, &all);
    let fewer = arrivals(&config, &every_other);
    assert_eq!(lost.iter().copied().step_by(2).collect::<Vec<_>>(), fewer);
    let count = lost.iter().filter(|a| a.is_none()).count() as f64;
    // Binomial(200, 0.3): mean 60, deviation 6.5; four of them.
    assert!((count - 60.0).abs() < 26.0, "{count}");
}

#[test]
fn bit_errors_grow_with_the_length() {
    let mut config = config();
    config.rate = None;
    config.good.bit = Probability::new(1e-4).expect("in range");
    let mut lost = [0; 2];
    for (i, len) in [40u32, 1000].into_iter().enumerate() {
        let mut link = Link::new(&config, 5, "up");
        for n in 0..10_000u64 {
            let now = Time::from_nanos(n * 1000);
            link.offer(&mut Context { now, who: Who(0), probe: &mut NoProbe }, Packet(len)).expect("room");
        }
        while link.take(&mut Context { now: Time::NEVER, who: Who(0), probe: &mut NoProbe }).is_some() {}
        lost[i] = link.counters().dropped_channel;
    }
    // 1-(1-1e-4)^320 = 3.15 %, 1-(1-1e-4)^8000 = 55.07 % of 10 000; four deviations.
    assert!(lost[0].abs_diff(315) < 70 && lost[1].abs_diff(5507) < 200, "{lost:?}");
}

/// RFC 3168 §7: a packet that RED chooses is marked if it understands that, and dropped if not or if the average is too high.
#[test]
fn red_marks_up_to_its_upper_threshold() {
    use super::super::config::{Discipline, RedConfig};
    let red = RedConfig {
        min_threshold: 2.0,
        max_threshold: 6.0,
        max_probability: Probability::ONE,
        weight: 1.0,
        gentle: false,
        wait: false,
        mean_packet: crate::units::Bytes::new(999),
    };
    let mut config = config();
    (config.queue.discipline, config.queue.marking) = (Discipline::Red(red), true);
    let fates = |length: u32| {
        let mut link = Link::new(&config, 1, "up");
        let mut probe = NoProbe;
        let mut cx = Context { now: ms(0.0), who: Who(0), probe: &mut probe };
        let admitted = [(); 12].map(|()| link.offer(&mut cx, Packet(length)).is_ok());
        let counters = link.counters();
        assert_eq!(counters.dropped_early + admitted.iter().filter(|ok| **ok).count() as u64, 12);
        let mut marks = 0;
        while let Some(now) = link.next_arrival() {
            let arrival = link.take(&mut Context { now, who: Who(0), probe: &mut NoProbe }).expect("due");
            marks += u64::from(arrival.outcome == Outcome::Altered(Altered { marked: true, ..Altered::NOT }));
        }
        assert_eq!(counters.marked, marks);
        (marks, counters.dropped_early)
    };
    // With a weight of 1 the average is the queue. Two wait without a choice and one more passes; from an average of 3 on the
    // probability is 1/4 and grows, and from 6 on all are dropped.
    let (marks, dropped) = fates(999);
    assert!(marks >= 1 && dropped >= 4, "{marks} {dropped}");
    let (marks, dropped) = fates(1000);
    assert!(marks == 0 && dropped >= 5, "{marks} {dropped}");
}

/// RED in front of 2 Mbit/s: offers packets of 1000 B at the given milliseconds.
fn red(min: f64, max: f64, weight: f64, limit: QueueLimit, offers: impl IntoIterator<Item = u64>) -> LinkCounters {
    use super::super::config::{Discipline, RedConfig};
    let mut config = config();
    config.queue.limit = limit;
    config.queue.discipline = Discipline::Red(RedConfig {
        min_threshold: min,
        max_threshold: max,
        max_probability: Probability::new(0.25).expect("in range"),
        weight,
        gentle: false,
        wait: true,
        mean_packet: crate::units::Bytes::new(1000),
    });
    let mut link = Link::new(&config, 1, "up");
    for at in offers {
        let now = ms(at as f64);
        while link.take(&mut Context { now, who: Who(0), probe: &mut NoProbe }).is_some() {}
        let _ = link.offer(&mut Context { now, who: Who(0), probe: &mut NoProbe }, Packet(1000));
    }
    link.counters()
}

/// A packet takes 4 ms, and two come in that time: one fills the queue of ten, the other is lost. The probability is 1/4, so the next drop
/// by choice would be due after four to seven packets; each loss begins the count anew (ns-2, `drop_packet`).
#[test]
fn red_counts_from_a_loss_to_a_full_queue_as_well() {
    let counters = red(0.5, 10.5, 1.0, QueueLimit::Packets(10), (0..400).map(|n| 2 * n));
    assert!(counters.dropped_full >= 150 && counters.dropped_early <= 3, "{counters:?}");
}

/// While the line is idle the average falls as if as many packets as it carries had found no queue: a second later it is 0, and a burst
/// passes. Without the pause it is lost.
#[test]
fn red_forgets_in_a_pause() {
    let bursts = |pause: u64| (0..60).chain((0..8).map(move |_| 60 + pause));
    let dropped = |pause| red(2.0, 6.0, 0.05, QueueLimit::Unlimited, bursts(pause)).dropped_early;
    let before = red(2.0, 6.0, 0.05, QueueLimit::Unlimited, 0..60).dropped_early;
    assert!(before > 0 && dropped(0) >= before + 7, "{before} {}", dropped(0));
    assert_eq!(dropped(3000), before);
}

/// A link's own header is on the line, and its bits can be hit: 1000 B with a header of 1000 B are lost as 2000 B without.
#[test]
fn bit_errors_hit_the_header_too() {
    let mut config = config();
    config.good.bit = Probability::new(2e-5).expect("in range");
    let lost = |header, length| {
        let mut link = Link::new(&LinkConfig { header, ..config.clone() }, 5, "up");
        let all = (0..500u64).map(|n| {
            let now = ms(10.0 * n as f64);
            link.offer(&mut Context { now, who: Who(0), probe: &mut NoProbe }, Packet(length)).expect("room");
            let now = link.next_arrival().expect("in flight");
            let arrival = link.take(&mut Context { now, who: Who(0), probe: &mut NoProbe }).expect("due");
            arrival.outcome == Outcome::Lost
        });
        all.collect::<Vec<_>>()
    };
    let long = lost(0, 2000);
    assert!(long.iter().filter(|lost| **lost).count() > 50, "27 % are lost");
    assert_eq!(lost(1000, 1000), long);
}
