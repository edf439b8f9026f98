//! Many carriers behind one socket: a hub and its terminals. No clock and no socket.
//!
//! A datagram finds its carrier by the mark of a first message, or by the lower half of its session number. What the carriers
//! send shares one line by deficit round robin (Shreedhar and Varghese 1995) with a weight each: a carrier keeps to its own
//! rate, and the sum to the line's. A terminal is added or removed without touching the others.
//!
//! Not here: shapes. Whoever drives the hub keeps one for each slot.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use bentpipe_engine::Step;
use bentpipe_engine::units::{Rate, Time};
use bentpipe_io::LinkPortConfig;

use super::carrier::{Carried, Carrier};
use crate::tunnel::{Kind, PublicKey, TunnelConfig, classify};

/// Bytes that a carrier of weight 1 may send in one turn: a full datagram, so that no turn is empty.
const QUANTUM: i64 = 1500;

/// A carrier's place among the others. It is the lower half of its session numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u16);

/// A terminal, as the hub's settings have it.
#[derive(Clone, Debug)]
pub struct TerminalConfig {
    /// Who it is.
    pub tunnel: TunnelConfig,
    /// The link to it, with its rate.
    pub link: LinkPortConfig,
    /// Its share of the line, against others'; at least 1.
    pub weight: u32,
}

#[derive(Debug)]
struct Terminal {
    carrier: Carrier,
    weight: u32,
    /// Bytes that it may send before the next one's turn.
    deficit: i64,
    /// Whether it stands in the line of those that have something to do.
    is_active: bool,
    /// When it wants to be asked again.
    wake_at: Option<Time>,
}

/// The carriers of a hub.
#[derive(Debug)]
pub struct Hub {
    rate: Rate,
    terminals: BTreeMap<Slot, Terminal>,
    marks: BTreeMap<[u8; 8], Slot>,
    /// Those that may have something to do, in turn.
    active: VecDeque<Slot>,
    /// The others, by the time that they want to be asked.
    waiting: BTreeSet<(Time, Slot)>,
    /// When the line is free again.
    free_at: Time,
    /// Datagrams that belong to no terminal.
    garbage: u64,
}

/// Why a terminal cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddError {
    /// Another one has its key.
    SameKey,
    /// There are 65536 already.
    Full,
}

impl Hub {
    /// A hub without terminals, on a line of that rate.
    pub fn new(rate: Rate) -> Self {
        Hub {
            rate,
            terminals: BTreeMap::new(),
            marks: BTreeMap::new(),
            active: VecDeque::new(),
            waiting: BTreeSet::new(),
            free_at: Time::ZERO,
            garbage: 0,
        }
    }

    /// Adds a terminal.
    ///
    /// # Errors
    /// Fails if another terminal has its key, or no slot is free.
    pub fn add(&mut self, now: Time, config: TerminalConfig) -> Result<Slot, AddError> {
        let slot = (0..=u16::MAX).map(Slot).find(|slot| !self.terminals.contains_key(slot)).ok_or(AddError::Full)?;
        let carrier = Carrier::new(config.tunnel, config.link, now).in_slot(slot.0);
        let mark = carrier.tunnel().mark();
        if self.marks.contains_key(&mark) {
            return Err(AddError::SameKey);
        }
        self.marks.insert(mark, slot);
        let weight = config.weight.max(1);
        self.terminals.insert(slot, Terminal { carrier, weight, deficit: 0, is_active: false, wake_at: None });
        self.touch(slot);
        Ok(slot)
    }

    /// Removes a terminal: its keys are wiped, and its datagrams belong to nobody.
    pub fn remove(&mut self, slot: Slot) -> Option<Carrier> {
        let terminal = self.terminals.remove(&slot)?;
        self.marks.remove(&terminal.carrier.tunnel().mark());
        self.active.retain(|other| *other != slot);
        if let Some(at) = terminal.wake_at {
            self.waiting.remove(&(at, slot));
        }
        Some(terminal.carrier)
    }

    /// The slot of a terminal.
    pub fn slot_of(&self, peer: &PublicKey) -> Option<Slot> {
        self.terminals.iter().find(|(_, terminal)| terminal.carrier.tunnel().peer() == *peer).map(|(slot, _)| *slot)
    }

    /// The terminals.
    pub fn carriers(&self) -> impl Iterator<Item = (Slot, &Carrier)> {
        self.terminals.iter().map(|(slot, terminal)| (*slot, &terminal.carrier))
    }

    /// A terminal's carrier, to give it packets.
    pub fn carrier_mut(&mut self, slot: Slot) -> Option<&mut Carrier> {
        self.touch(slot);
        self.terminals.get_mut(&slot).map(|terminal| &mut terminal.carrier)
    }

    /// Datagrams that belonged to no terminal.
    pub fn garbage(&self) -> u64 {
        self.garbage
    }

    /// It may have something to do.
    fn touch(&mut self, slot: Slot) {
        let Some(terminal) = self.terminals.get_mut(&slot) else { return };
        if !terminal.is_active {
            terminal.is_active = true;
            self.active.push_back(slot);
        }
        if let Some(at) = terminal.wake_at.take() {
            self.waiting.remove(&(at, slot));
        }
    }

    /// Takes a datagram from the socket.
    pub fn receive(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) {
        let slot = match classify(datagram) {
            Some(Kind::Init { mark, .. }) => self.marks.get(&mark).copied(),
            Some(Kind::Response { receiver, .. } | Kind::Data { receiver, .. } | Kind::Cookie { receiver }) => {
                Some(Slot(receiver as u16))
            }
            // Its mac is under the hub's key only: any terminal's tunnel can name it.
            Some(Kind::Init3) => self.terminals.keys().next().copied(),
            None => None,
        };
        let terminal = slot.and_then(|slot| Some((slot, self.terminals.get_mut(&slot)?)));
        let Some((slot, terminal)) = terminal else {
            self.garbage += 1;
            return;
        };
        terminal.carrier.receive(now, from, datagram);
        self.touch(slot);
    }

    /// What a carrier wants, or when one will: as [`Carrier::poll`]. While the line is busy nobody is asked.
    pub fn poll(&mut self, now: Time, wall: u64, out: &mut [u8]) -> Step<(Slot, Carried)> {
        while let Some(&(_, slot)) = self.waiting.first().filter(|(at, _)| *at <= now) {
            self.touch(slot);
        }
        if now < self.free_at {
            let next = self.waiting.first().map(|(at, _)| *at);
            return Step::Wait(if self.active.is_empty() { next } else { Some(self.free_at) });
        }
        while let Some(&slot) = self.active.front() {
            let terminal = self.terminals.get_mut(&slot).expect("those that are removed leave the line");
            if terminal.deficit <= 0 {
                terminal.deficit += QUANTUM * i64::from(terminal.weight);
                self.active.rotate_left(1);
                continue;
            }
            match terminal.carrier.poll(now, wall, out) {
                Step::Wait(until) => {
                    // Who has nothing to send saves nothing up.
                    (terminal.deficit, terminal.is_active, terminal.wake_at) = (0, false, until);
                    self.active.pop_front();
                    self.waiting.extend(until.map(|at| (at, slot)));
                }
                Step::Do(carried) => {
                    if let Carried::Send(sealed) = &carried {
                        let bytes = sealed.len as u64 + if sealed.to.is_ipv6() { 48 } else { 28 };
                        terminal.deficit -= bytes as i64;
                        self.free_at = self.free_at.max(now) + self.rate.time_for_ceil(bytes);
                    }
                    return Step::Do((slot, carried));
                }
            }
        }
        Step::Wait(self.waiting.first().map(|(at, _)| *at))
    }
}

#[cfg(test)]
mod tests;
