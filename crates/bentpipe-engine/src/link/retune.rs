//! Changes a link's settings while packets are on it. The change loses no packet.
//!
//! Waiting packets are sent with the new settings. The packet on the line keeps its delay, but continues at the new rate
//! and meets the new losses. Packets that have left the line arrive as if nothing had changed, and nothing overtakes them.

use alloc::vec::Vec;

use super::config::LinkConfig;
use super::line::Line;
use super::link::{Altered, InFlight, Link, Outcome, Wire};
use super::ring::Ring;
use super::sky::{Meeting, Sky};
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
        let mut before = core::mem::replace(self, Link { counters: self.counters, ..fresh });
        self.drop_list = before.drop_list.take();
        let mut all: Vec<InFlight<P>> = core::iter::from_fn(|| before.in_flight.pop_front()).collect();
        all.sort_by_key(|packet| packet.begun);
        let waiting = all.partition_point(|packet| packet.begun <= now);
        let in_order = in_order(&all, before.sky.as_deref());
        // When the line has sent all packets but those that wait.
        let end = match waiting.checked_sub(1) {
            _ if waiting == all.len() => before.busy_until,
            Some(last) => {
                let (packet, next) = (&all[last], all[waiting].begun);
                let length = packet.packet.wire_len() + before.header;
                before.line.sent_by(packet.begun, length).unwrap_or(in_order[last]).min(next)
            }
            None => now,
        };
        let mut free = if waiting == all.len() { end } else { end.max(now) };
        let (sent, waits) = all.split_at_mut(waiting);
        let last = sent.iter().map(|packet| packet.arrives).max().unwrap_or(Time::ZERO);
        let on_line = if end > now { sent.split_last_mut() } else { None };
        // Those that have left the line, and when the last of them arrives in order.
        let decided = &in_order[..waiting - usize::from(on_line.is_some())];
        let settled = decided.iter().copied().max().unwrap_or(Time::ZERO);
        let mut latest = settled;
        if on_line.is_some() {
            let kept = in_order[waiting - 1];
            free = now + rest_at(end.saturating_since(now), &before.line, &self.line);
            latest = (free + kept.saturating_since(end)).max(settled);
        }
        self.keep_order_behind((latest, last), free, (config, seed, name), &before);
        if let (Some(sky), true) = (&mut self.sky, on_line.is_some() || !waits.is_empty()) {
            let at_once = decided.iter().filter(|at| **at == settled).count();
            sky.go_back(settled, (at_once as u32).saturating_sub(1));
        }
        if let Some((packet, _)) = on_line {
            let late = packet.arrives - in_order[waiting - 1];
            packet.arrives = latest + late;
            let length = packet.packet.wire_len() + self.header;
            let lost = self.sky.as_mut().is_some_and(|sky| sky.loses_again(latest, length, waits.len() as u64 + 1));
            packet.outcome = packet.outcome.with_loss(lost);
        }
        let behind = (1..=waits.len() as u64).rev();
        for (packet, back) in waits.iter_mut().zip(behind) {
            free = self.send_again((packet, back), now, free);
        }
        self.busy_until = free;
        self.admission.follow(&before.admission);
        all.sort_by_key(|packet| packet.arrives);
        self.in_flight = Ring::new();
        all.into_iter().for_each(|packet| self.in_flight.push_back(packet));
    }

    /// Sends a waiting packet with the new settings, on a line that is free from `free` on. Returns when the line is free
    /// again. The packet was offered `back` packets before the next one.
    fn send_again(&mut self, (packet, back): (&mut InFlight<P>, u64), now: Time, free: Time) -> Time {
        let length = packet.packet.wire_len();
        let (start, transmission) = self.line.transmit(free, free, length + self.header);
        self.admission.enter::<NoProbe>(now, start, length);
        let arrives = start + transmission + self.delay;
        let mut meeting = Meeting { arrives, lost: false, altered: Altered::NOT };
        if let Some(sky) = &mut self.sky {
            meeting = sky.meet_again(start, transmission, arrives, length + self.header, back);
        }
        meeting.altered.marked = packet.outcome.is_marked();
        (packet.begun, packet.arrives) = (start, meeting.arrives);
        packet.outcome = Outcome::of(meeting.lost, meeting.altered);
        start + transmission
    }

    /// Makes all packets whose transmission ends after `free` arrive no earlier than `latest`. The last one before them
    /// arrives at `last`, perhaps late.
    fn keep_order_behind(
        &mut self,
        (latest, last): (Time, Time),
        free: Time,
        (config, seed, name): (&LinkConfig, u64, &str),
        before: &Link<P>,
    ) {
        if self.sky.is_none() && latest.max(last) > free + self.delay {
            self.sky = Some(Sky::new(config, seed, name));
            self.line.be_watched();
        }
        let is_shorter = self.delay < before.delay;
        if let Some(sky) = &mut self.sky {
            sky.follow(latest, is_shorter, before.sky.as_deref());
        }
    }
}

/// When each packet arrives in order, by the order of transmission: a late one arrives after others that were sent behind
/// it. Where jitter lets any packet overtake another, there is no such order: each keeps its arrival.
fn in_order<P>(all: &[InFlight<P>], sky: Option<&Sky>) -> Vec<Time> {
    let mut in_order: Vec<Time> = all.iter().map(|packet| packet.arrives).collect();
    if sky.is_some_and(Sky::overtakes) {
        return in_order;
    }
    let mut first_behind = sky.map_or(Time::NEVER, Sky::last_arrival);
    for at in in_order.iter_mut().rev() {
        first_behind = first_behind.min(*at);
        *at = first_behind;
    }
    in_order
}

#[cfg(test)]
#[path = "retune_tests.rs"]
mod tests;
