//! Changes a link's settings while packets are on it. The change loses no packet.
//!
//! Waiting packets are sent with the new settings. The packet on the line continues at the new rate, and packets that
//! have left the line keep the delay with which they left it.

use alloc::vec::Vec;

use super::config::LinkConfig;
use super::line::Line;
use super::link::{InFlight, Link, Wire};
use super::ring::Ring;
use crate::probe::NoProbe;
use crate::units::{Duration, Time};

/// The remaining time of a transmission after a change of rate, if both rates are constant.
fn rest_at(rest: Duration, before: &Line, after: &Line) -> Duration {
    let (Some(before), Some(after)) = (before.rate(), after.rate()) else { return rest };
    let ticks = u128::from(rest.as_ticks()) * u128::from(before.bits_per_second());
    let ticks = ticks.div_ceil(u128::from(after.bits_per_second()));
    Duration::from_ticks(u64::try_from(ticks).unwrap_or(u64::MAX))
}

impl<P: Wire> Link<P> {
    /// Changes the settings at `now`, which must not be before the last packet was offered. `seed` and `name` are those
    /// of [`Link::new`]. The drop list stays unchanged.
    pub fn retune(&mut self, now: Time, config: &LinkConfig, seed: u64, name: &str) {
        let fresh = Link::new(config, seed, name);
        let before = core::mem::replace(self, Link { counters: self.counters, ..fresh });
        self.drop_list = before.drop_list;
        let mut packets = before.in_flight;
        let mut all: Vec<InFlight<P>> = core::iter::from_fn(|| packets.pop_front()).collect();
        all.sort_by_key(|packet| packet.begun);
        let waiting = all.partition_point(|packet| packet.begun <= now);
        let begins = |n: usize| all.get(n).map_or(before.busy_until, |packet| packet.begun);
        let ends: Vec<Time> = (1..=all.len()).map(begins).collect();
        let keeps_order = !self.sky.as_ref().is_some_and(|sky| sky.overtakes());
        // When each packet arrives in order: a late one arrives after others that were sent behind it.
        let mut in_order: Vec<Time> = all.iter().map(|packet| packet.arrives).collect();
        let mut first_behind = before.sky.as_ref().map_or(Time::NEVER, |sky| sky.last_arrival());
        for at in in_order.iter_mut().rev() {
            first_behind = first_behind.min(*at);
            *at = first_behind;
        }
        let mut free = before.busy_until.min(begins(waiting));
        let mut latest = Time::ZERO;
        for (n, packet) in all.iter_mut().enumerate() {
            let end = ends[n];
            let late = packet.arrives - in_order[n];
            let mut arrives = in_order[n];
            if n >= waiting {
                let length = packet.packet.wire_len();
                let (start, transmission) = self.line.transmit(free, free, length + self.header);
                free = start + transmission;
                self.admission.enter::<NoProbe>(now, start, length);
                // Delay added by the channel or by jitter stays.
                let added = arrives.saturating_since(end) - before.delay;
                packet.begun = start;
                arrives = free + self.delay + added;
            } else if n + 1 == waiting && end > now {
                let way = arrives.saturating_since(end);
                free = now + rest_at(end.saturating_since(now), &before.line, &self.line);
                arrives = free + way;
            }
            if keeps_order {
                arrives = arrives.max(latest);
            }
            latest = latest.max(arrives);
            packet.arrives = arrives + late;
        }
        self.busy_until = free;
        self.admission.follow(&before.admission);
        if let Some(sky) = &mut self.sky {
            sky.follow(latest, before.sky.as_deref());
        }
        all.sort_by_key(|packet| packet.arrives);
        self.in_flight = Ring::new();
        all.into_iter().for_each(|packet| self.in_flight.push_back(packet));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Discipline, LinkConfig, Outcome, PacketBursts, QueueLimit, RedConfig, Reorder};
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
}
