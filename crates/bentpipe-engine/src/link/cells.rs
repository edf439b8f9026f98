//! A port that virtual channels share cell by cell: AAL5 packets enter, and whole packets leave.
//!
//! Each channel's cells arrive over their own line, equally spaced: one train per packet. They wait in buffers, one per
//! channel or one for all, and leave in order of arrival (UBR, FIFO). A packet is delivered when its last cell has
//! arrived, and is lost if any of its cells was. Discard by packet can be early (EPD) or partial (PPD), Romanow and
//! Floyd 1995.
//!
//! Trains are computed arithmetically. All lines have the same rate, so the pattern of trains repeats every cell time
//! of the lines, which is a *round*. One round determines all rounds up to the next start or end of a train, whether
//! the port is saturated or idle between cells. Only cells that need a decision are processed one by one: the first and
//! last of a train, and all cells while a buffer may overflow. `cells_tests.rs` has the literal twin, one event per
//! cell.
//!
//! After the port, a packet is whole: at a second port in a row, it starts when it has left the first.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::config::{CellConfig, LinkConfig, Sharing};
use super::link::{LinkCounters, Wire};
use super::sky::Sky;
use crate::atm::{aal5, cell};
use crate::machine::Context;
use crate::probe::{DropReason, Event, Probe};
use crate::units::{Duration, Rate, Time};

/// Time within a busy period, in units of 2^-16 ns. The rounding of an OC-3c cell time is below 3 parts in 10^9, and 78
/// hours fit: the time that is counted, and what waits.
type Fine = u64;
const FINE_BITS: u32 = 10;
/// When a port that is never empty counts from the present again: after 19 hours.
const COUNTED: Fine = 1 << 62;

fn cell_time(rate: Rate) -> Fine {
    let bits = (cell::CELL as u128 * 8 * Duration::from_secs(1).as_ticks() as u128) << FINE_BITS;
    let rate = rate.bits_per_second() as u128;
    ((bits + rate / 2) / rate).max(1) as Fine
}

/// The state of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Its first cell has not arrived.
    Fresh,
    /// All cells so far were accepted.
    Whole,
    /// A cell was dropped; the others are still tried.
    Broken,
    /// A cell was dropped. Of the rest, only the last cell is accepted, as packet delimiter (PPD).
    Tail,
    /// The whole packet is dropped (EPD).
    Refused,
}

/// A packet whose cells are arriving.
#[derive(Clone, Debug)]
struct Train<P> {
    packet: P,
    /// Arrival of the next cell, and the number of cells still to come.
    next: Fine,
    left: u32,
    total: u32,
    fate: Fate,
    /// Number of accepted cells.
    entered_cells: u32,
}

/// Cells of one channel whose transmissions start at equal intervals.
#[derive(Clone, Copy, Debug)]
struct Run {
    begins: Fine,
    spacing: Fine,
    count: u32,
}

/// A virtual channel.
#[derive(Clone, Debug)]
struct Channel<P> {
    /// Packets behind the one that is arriving.
    behind: VecDeque<P>,
    train: Option<Train<P>>,
    /// Waiting cells in order, if each channel has its own buffer.
    runs: VecDeque<Run>,
    waiting: u32,
    /// Set if cells of a packet were sent without its last cell: the next packet is then corrupted too.
    spoilt: Option<DropReason>,
}

impl<P> Channel<P> {
    /// Removes the cells whose transmission has begun by `now`.
    fn expire(&mut self, now: Fine) {
        while let Some(run) = self.runs.front_mut() {
            if run.begins > now {
                return;
            }
            let gone =
                (now - run.begins).checked_div(run.spacing).map_or(run.count, |n| (n + 1).min(run.count as u64) as u32);
            self.waiting -= gone;
            if gone < run.count {
                run.begins += gone as u64 * run.spacing;
                run.count -= gone;
                return;
            }
            self.runs.pop_front();
        }
    }

    fn wait(&mut self, begins: Fine, spacing: Fine, count: u32) {
        self.waiting += count;
        if let Some(last) = self.runs.back_mut() {
            let end = last.begins + (last.count - 1) as u64 * last.spacing;
            if last.count == 1 && count == 1 {
                last.spacing = begins - last.begins;
            }
            if begins == end + last.spacing && (count == 1 || spacing == last.spacing) {
                last.count += count;
                return;
            }
        }
        self.runs.push_back(Run { begins, spacing, count });
    }
}

/// A packet in flight after the port.
#[derive(Clone, Copy, Debug)]
struct InFlight<P> {
    arrives: Time,
    begun: Time,
    packet: P,
    lost: Option<DropReason>,
}

/// A port's cell counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellCounters {
    /// Cells that arrived.
    pub offered: u64,
    /// Cells dropped for lack of room, or discarded with their packet.
    pub dropped: u64,
    /// Cells sent although their packet was lost.
    pub wasted: u64,
}

/// A port.
#[derive(Clone, Debug)]
pub struct CellPort<P> {
    config: CellConfig,
    /// Cell times of the port and of its input lines; 0 if all cells of a packet arrive at once.
    cell: Fine,
    spacing: Fine,
    delay: Duration,
    sky: Option<Box<Sky>>,
    drop_list: Vec<u64>,

    /// The instant at which `Fine` starts.
    epoch: Time,
    /// When all accepted cells are sent.
    busy_until: Fine,
    channels: Vec<Channel<P>>,
    /// Channels with a train, ordered by the arrival of their next cells.
    active: Vec<u32>,
    in_flight: VecDeque<InFlight<P>>,
    /// Packets lost at the port and not yet reported.
    refused: VecDeque<(P, DropReason)>,
    now: Time,
    held: usize,
    counters: LinkCounters,
    cells: CellCounters,
}

impl<P: Wire> CellPort<P> {
    /// The port of the component `name` under `seed`, for `channels` virtual channels.
    ///
    /// # Panics
    /// Panics if the link has no rate or is not in cells.
    pub fn new(config: &LinkConfig, seed: u64, name: &str, channels: usize) -> Self {
        let cells = config.cells.expect("a link in cells");
        let channel =
            || Channel { behind: VecDeque::new(), train: None, runs: VecDeque::new(), waiting: 0, spoilt: None };
        CellPort {
            config: cells,
            cell: cell_time(config.rate.expect("a port has a rate")),
            spacing: cells.line.map_or(0, cell_time),
            delay: config.delay,
            sky: Sky::of(config, seed, name),
            drop_list: config.drop_list.clone(),
            epoch: Time::ZERO,
            busy_until: 0,
            channels: (0..channels).map(|_| channel()).collect(),
            active: Vec::with_capacity(channels),
            in_flight: VecDeque::new(),
            refused: VecDeque::new(),
            now: Time::ZERO,
            held: 0,
            counters: LinkCounters::default(),
            cells: CellCounters::default(),
        }
    }

    /// Packet counters.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// Cell counters.
    pub fn cell_counters(&self) -> CellCounters {
        self.cells
    }

    /// Number of packets offered that are neither delivered nor lost yet.
    pub fn in_flight(&self) -> usize {
        self.held
    }

    /// The time of the next event, and when it was scheduled.
    pub fn head(&self) -> Option<(Time, Time)> {
        if !self.refused.is_empty() {
            return Some((self.now, self.now));
        }
        let delivery = self.in_flight.front().map(|head| (head.arrives, head.begun));
        let end = self.active.iter().filter_map(|&vc| self.channels[vc as usize].train.as_ref());
        let end = end.map(|train| train.next + (train.left - 1) as u64 * self.spacing).min();
        let end = end.map(|end| (self.coarse(end), self.now));
        match (delivery, end) {
            (Some(delivery), Some(end)) => Some(delivery.min(end)),
            (one, other) => one.or(other),
        }
    }

    /// Offers a packet on a channel. [`take`](CellPort::take) returns its fate.
    ///
    /// # Errors
    /// Returns the reason if the packet is dropped at once. If its cells arrive one by one over their own line, the port
    /// decides later, so only [`take`](CellPort::take) tells.
    pub fn offer<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>, vc: u32, packet: P) -> Result<(), DropReason> {
        self.advance(cx.now);
        self.counters.offered += 1;
        self.held += 1;
        if self.drop_list.binary_search(&(self.counters.offered - 1)).is_ok() {
            self.refused.push_back((packet, DropReason::Listed));
            return Err(DropReason::Listed);
        }
        if self.is_idle() {
            self.epoch = cx.now;
            self.busy_until = 0;
            for channel in &mut self.channels {
                channel.runs.clear();
                channel.waiting = 0;
            }
        }
        let now = self.fine(cx.now);
        cx.emit(|| {
            let cells = self.waiting_in_all(now);
            Event::Queue { packets: cells, bytes: cells as u64 * cell::CELL as u64, average: None }
        });
        if self.channels[vc as usize].train.is_some() {
            self.channels[vc as usize].behind.push_back(packet);
            return Ok(());
        }
        self.begin(vc, packet, now);
        if self.spacing > 0 {
            return Ok(());
        }
        // No other train is under way, so only this packet can be dropped now.
        let before = self.refused.len();
        self.advance(cx.now);
        self.refused.get(before).map_or(Ok(()), |&(_, reason)| Err(reason))
    }

    /// The next packet whose fate is known by `cx.now`: delivered, or the reason of its loss.
    pub fn take<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>) -> Option<(P, Result<(), DropReason>)> {
        let due = |head: Option<&InFlight<P>>| head.is_some_and(|head| head.arrives <= cx.now);
        if self.refused.is_empty() && !due(self.in_flight.front()) {
            self.advance(cx.now);
        }
        let (packet, lost) = match self.refused.pop_front() {
            Some((packet, reason)) => (packet, Some(reason)),
            None if due(self.in_flight.front()) => {
                let InFlight { packet, lost, .. } = self.in_flight.pop_front()?;
                (packet, lost)
            }
            None => return None,
        };
        self.held -= 1;
        let Some(reason) = lost else {
            self.counters.delivered += 1;
            self.counters.delivered_bytes += packet.wire_len() as u64;
            return Some((packet, Ok(())));
        };
        *self.counters.dropped_for(reason) += 1;
        cx.emit(|| Event::Dropped { reason });
        Some((packet, Err(reason)))
    }

    fn fine(&self, at: Time) -> Fine {
        (at - self.epoch).as_ticks() << FINE_BITS
    }

    /// The instant of `at`, rounded up.
    fn coarse(&self, at: Fine) -> Time {
        self.epoch + Duration::from_ticks(at.div_ceil(1 << FINE_BITS))
    }

    /// The number of waiting cells of all channels at `at`: until `busy_until`, they are sent without gaps.
    fn waiting_in_all(&self, at: Fine) -> u32 {
        (self.busy_until.saturating_sub(at).div_ceil(self.cell)).saturating_sub(1) as u32
    }

    /// Starts a train on a line that is free from `start` on.
    fn begin(&mut self, vc: u32, packet: P, start: Fine) {
        let datagram = packet.wire_len() as usize;
        let total = aal5::cells(datagram + crate::wire::llc_snap::HEADER) as u32;
        let next = start + self.spacing;
        self.channels[vc as usize].train =
            Some(Train { packet, next, left: total, total, fate: Fate::Fresh, entered_cells: 0 });
        let at = self.active.iter().position(|&other| (next, vc) < (self.next_of(other), other));
        self.active.insert(at.unwrap_or(self.active.len()), vc);
    }

    fn next_of(&self, vc: u32) -> Fine {
        self.channels[vc as usize].train.as_ref().map_or(Fine::MAX, |train| train.next)
    }

    /// Processes all cells that have arrived by `now`.
    fn advance(&mut self, now: Time) {
        self.now = now;
        let now = self.fine(now);
        while let Some(&vc) = self.active.first()
            && self.next_of(vc) <= now
        {
            if !self.rounds(now) {
                self.one_cell(vc);
            }
        }
        if now > COUNTED && !self.is_idle() {
            self.count_from(now);
        }
    }

    /// True if all cells have been sent. Since then, more time may have passed than fits into `Fine`.
    fn is_idle(&self) -> bool {
        self.active.is_empty() && self.coarse(self.busy_until) <= self.now
    }

    /// Makes `now`, by which all cells have been processed, the instant at which `Fine` starts.
    #[cold]
    #[inline(never)]
    fn count_from(&mut self, now: Fine) {
        self.epoch = self.now;
        self.busy_until = self.busy_until.saturating_sub(now);
        for channel in &mut self.channels {
            channel.expire(now);
            channel.runs.iter_mut().for_each(|run| run.begins -= now);
            if let Some(train) = &mut channel.train {
                train.next -= now;
            }
        }
    }
}

#[path = "cells_trains.rs"]
mod trains;

#[cfg(test)]
#[path = "cells_tests.rs"]
mod tests;
