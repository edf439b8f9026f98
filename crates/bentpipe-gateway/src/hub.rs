//! Many carriers behind one socket: a hub and its terminals. It has no clock and no socket.
//!
//! A datagram's carrier is found by the mark in a first message, or by the lower half of the session number. The
//! carriers share one line by deficit round robin (Shreedhar and Varghese 1995), each with a weight. Each carrier is
//! also limited to its own rate. Adding or removing a terminal does not affect the others.
//!
//! A box with one peer is a hub with one terminal, whose carrier has the rate of the line.
//!
//! The shapes decide to which slot a packet goes.

mod arrivals;
mod readings;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use bentpipe_engine::Step;
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_io::LinkEndpointConfig;
use thiserror::Error;

use super::carrier::{Carried, Carrier};
use crate::tunnel::{Event, Kind, PublicKey, TunnelConfig, classify};
pub use arrivals::Meter;
use arrivals::{Arrivals, Queue};

/// Bytes that a carrier of weight 1 may send in one turn: a full datagram, so that every turn sends something.
const QUANTUM: i64 = 1500;
/// Maximum line time lost by a late poll that is made up for. Carriers have the same allowance.
const CATCH_UP: Duration = Duration::from_millis(5);

/// A carrier's index: the lower half of its session numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u16);

/// A terminal in the hub's settings.
#[derive(Clone, Debug)]
pub struct TerminalConfig {
    /// The identity of this end and of the terminal.
    pub tunnel: TunnelConfig,
    /// The link to the terminal, with its rate.
    pub link: LinkEndpointConfig,
    /// The terminal's weight when the line is shared; at least 1.
    pub weight: u32,
}

#[derive(Debug)]
struct Terminal {
    carrier: Carrier,
    weight: u32,
    /// Bytes that it may still send before the next terminal's turn.
    deficit: i64,
    /// True if it is in the queue of carriers that have something to do.
    is_active: bool,
    /// When it must be polled again.
    wake_at: Option<Time>,
    /// Datagrams from it that wait for their turn.
    arrived: Queue,
}

/// The carriers of a hub.
#[derive(Debug)]
pub struct Hub {
    rate: Option<Rate>,
    terminals: BTreeMap<Slot, Terminal>,
    /// Slots of terminals that were removed. If there are none, the used ones are the lowest.
    gaps: BTreeSet<Slot>,
    marks: BTreeMap<[u8; 8], Slot>,
    keys: BTreeMap<PublicKey, Slot>,
    /// Carriers that may have something to do, in the order of their turns.
    active: VecDeque<Slot>,
    /// The other carriers, by the time at which they must be polled.
    waiting: BTreeSet<(Time, Slot)>,
    /// Carriers that have received a datagram and may have something to deliver.
    heard: BTreeSet<Slot>,
    /// Carriers that were since given datagrams that had waited.
    served: BTreeSet<Slot>,
    arrivals: Arrivals,
    /// When the line is free again.
    free_at: Time,
    /// Number of datagrams that belong to no terminal.
    garbage: u64,
    /// True if a carrier was given something since the last call.
    was_touched: bool,
}

/// Why a terminal cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AddError {
    /// Another terminal has the same key.
    #[error("another peer has the same key")]
    SameKey,
    /// There are 65536 terminals already.
    #[error("there are 65536 peers already")]
    Full,
}

impl Hub {
    /// A hub without terminals, on a line of this rate; `None`: the line itself has no limit.
    pub fn new(rate: Option<Rate>) -> Self {
        Hub {
            rate,
            terminals: BTreeMap::new(),
            gaps: BTreeSet::new(),
            marks: BTreeMap::new(),
            keys: BTreeMap::new(),
            active: VecDeque::new(),
            waiting: BTreeSet::new(),
            heard: BTreeSet::new(),
            served: BTreeSet::new(),
            arrivals: Arrivals::default(),
            free_at: Time::ZERO,
            garbage: 0,
            was_touched: false,
        }
    }

    /// Adds a terminal.
    ///
    /// # Errors
    /// Fails if another terminal has the same key, or if no slot is free.
    pub fn add(&mut self, now: Time, config: TerminalConfig) -> Result<Slot, AddError> {
        let next = || u16::try_from(self.terminals.len()).ok().map(Slot);
        let slot = self.gaps.first().copied().or_else(next).ok_or(AddError::Full)?;
        let carrier = Carrier::new(config.tunnel, config.link, now).in_slot(slot.0);
        let mark = carrier.tunnel().mark();
        if self.marks.contains_key(&mark) {
            return Err(AddError::SameKey);
        }
        self.gaps.remove(&slot);
        self.marks.insert(mark, slot);
        self.keys.insert(carrier.tunnel().peer(), slot);
        let weight = config.weight.max(1);
        let arrived = Queue::default();
        let terminal = Terminal { carrier, weight, deficit: 0, is_active: false, wake_at: None, arrived };
        self.terminals.insert(slot, terminal);
        self.touch(slot);
        Ok(slot)
    }

    /// Removes a terminal and wipes its keys. Its later datagrams then belong to no terminal.
    pub fn remove(&mut self, slot: Slot) -> Option<Carrier> {
        let terminal = self.terminals.remove(&slot)?;
        self.gaps.insert(slot);
        self.marks.remove(&terminal.carrier.tunnel().mark());
        self.keys.remove(&terminal.carrier.tunnel().peer());
        self.active.retain(|other| *other != slot);
        self.heard.remove(&slot);
        self.served.remove(&slot);
        self.arrivals.forget(slot, &terminal.arrived);
        if let Some(at) = terminal.wake_at {
            self.waiting.remove(&(at, slot));
        }
        Some(terminal.carrier)
    }

    /// The slot of a terminal.
    pub(crate) fn slot_of(&self, peer: &PublicKey) -> Option<Slot> {
        self.keys.get(peer).copied()
    }

    /// The terminals.
    pub fn carriers(&self) -> impl Iterator<Item = (Slot, &Carrier)> {
        self.carriers_from(Slot(0))
    }

    /// All carriers from this slot on, with their slots.
    pub(crate) fn carriers_from(&self, from: Slot) -> impl Iterator<Item = (Slot, &Carrier)> {
        self.terminals.range(from..).map(|(slot, terminal)| (*slot, &terminal.carrier))
    }

    /// Changes the rate of the line.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
    }

    /// Changes a terminal's share of the line.
    pub(crate) fn set_weight(&mut self, slot: Slot, weight: u32) {
        if let Some(terminal) = self.terminals.get_mut(&slot) {
            terminal.weight = weight.max(1);
        }
    }

    /// A terminal's carrier.
    pub fn carrier(&self, slot: Slot) -> Option<&Carrier> {
        self.terminals.get(&slot).map(|terminal| &terminal.carrier)
    }

    /// True if a terminal's link is up.
    pub fn is_up(&self, slot: Slot) -> bool {
        self.carrier(slot).is_some_and(Carrier::is_up)
    }

    /// True if a carrier may have something new to do since the last call.
    pub(crate) fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.was_touched)
    }

    /// Makes new keys for all carriers before anything else is sent: [`Carrier::renew`].
    pub(crate) fn renew(&mut self, now: Time) {
        self.terminals.values_mut().for_each(|terminal| terminal.carrier.renew(now));
        let slots: Vec<_> = self.terminals.keys().copied().collect();
        slots.into_iter().for_each(|slot| self.touch(slot));
    }

    /// Called when the kernel refused a datagram of this size to this address as too long.
    pub(crate) fn on_too_long(&mut self, now: Time, to: SocketAddr, size: usize) {
        let is_there = |terminal: &Terminal| terminal.carrier.tunnel().endpoint() == Some(to);
        let there = self.terminals.iter().filter(|(_, terminal)| is_there(terminal));
        let slots: Vec<_> = there.map(|(slot, _)| *slot).collect();
        for slot in slots {
            if let Some(carrier) = self.carrier_mut(slot) {
                carrier.on_too_long(now, size);
            }
        }
    }

    /// A terminal's carrier, mutable.
    pub(crate) fn carrier_mut(&mut self, slot: Slot) -> Option<&mut Carrier> {
        self.touch(slot);
        self.terminals.get_mut(&slot).map(|terminal| &mut terminal.carrier)
    }

    /// Limits the memory of a terminal's packets: [`Carrier::set_room`].
    pub fn set_room(&mut self, slot: Slot, bytes: u64) {
        if let Some(terminal) = self.terminals.get_mut(&slot) {
            terminal.carrier.set_room(bytes);
        }
    }

    /// Terminals whose datagrams may have changed the memory that their links hold.
    pub fn heard(&self) -> impl Iterator<Item = Slot> {
        self.heard.union(&self.served).copied()
    }

    /// Called when the memory held by the links of [`Hub::heard`] has been recorded.
    pub(crate) fn forget_served(&mut self) {
        self.served.clear();
    }

    /// The next change of a link caused by received datagrams. It must be taken before packets are given to the
    /// carriers; otherwise packets of the old link would go out on the new one.
    pub(crate) fn take_event(&mut self) -> Option<(Slot, Event)> {
        let mut heard = self.heard.iter();
        heard.find_map(|slot| Some((*slot, self.terminals.get_mut(slot)?.carrier.take_event()?)))
    }

    /// The number of datagrams that belong to no terminal.
    pub fn garbage(&self) -> u64 {
        self.garbage
    }

    /// Records that a carrier may have something to do.
    fn touch(&mut self, slot: Slot) {
        let Some(terminal) = self.terminals.get_mut(&slot) else { return };
        self.was_touched = true;
        if !terminal.is_active {
            terminal.is_active = true;
            self.active.push_back(slot);
        }
        if let Some(at) = terminal.wake_at.take() {
            self.waiting.remove(&(at, slot));
        }
    }

    /// Takes a datagram received by the socket. If its peer has used up its share of CPU time, the datagram waits for
    /// [`Hub::poll`].
    pub fn receive(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8], meter: &mut impl Meter) {
        let kind = classify(datagram);
        let slot = match kind {
            Some(Kind::Init { mark, .. }) => self.marks.get(&mark).copied(),
            Some(Kind::Response { receiver, .. } | Kind::Data { receiver, .. } | Kind::Cookie { receiver }) => {
                Some(Slot(receiver as u16))
            }
            // Its MAC is keyed by the hub alone, so the tunnel of any terminal can tell whose it is.
            Some(Kind::Init3) => self.terminals.keys().next().copied(),
            None => None,
        };
        // A datagram from a stranger or of an old session. A single terminal's tunnel can tell which.
        let is_only = self.terminals.len() == 1;
        let only = || self.terminals.keys().next().copied().filter(|_| is_only);
        let slot = slot.filter(|slot| self.terminals.contains_key(slot)).or_else(only);
        // Port 0 cannot be answered: the kernel refuses each such send, and `quinn-udp` then gives up segmentation
        // offload for all peers.
        let slot = slot.filter(|_| from.port() != 0);
        let terminal = slot.and_then(|slot| Some((slot, self.terminals.get_mut(&slot)?)));
        let Some((slot, terminal)) = terminal else {
            self.garbage += 1;
            return;
        };
        let takes_turns = match kind {
            Some(Kind::Data { receiver, .. }) if !is_only || !terminal.arrived.is_empty() => {
                terminal.carrier.tunnel().has_session(receiver)
            }
            _ => false,
        };
        if takes_turns && !self.arrivals.admits(now, slot, &mut terminal.arrived, meter) {
            return self.arrivals.keep(slot, &mut terminal.arrived, from, datagram);
        }
        terminal.carrier.receive(now, from, datagram);
        if takes_turns {
            self.arrivals.on_taken(slot, &mut terminal.arrived, meter);
        }
        self.heard.insert(slot);
        self.touch(slot);
    }

    /// The next request of a carrier, or the time of the next poll, as with [`Carrier::poll`]. While the line is busy,
    /// only received data is delivered.
    pub fn poll(&mut self, now: Time, wall: u64, out: &mut [u8], meter: &mut impl Meter) -> Step<(Slot, Carried)> {
        loop {
            while let Some(&slot) = self.heard.first() {
                self.arrivals.deliver(slot, meter);
                let mut terminal = self.terminals.get_mut(&slot);
                let arrived = terminal.as_mut().filter(|terminal| terminal.carrier.has_arrived());
                if let Some(Step::Do(carried)) = arrived.map(|terminal| terminal.carrier.poll(now, wall, out)) {
                    return Step::Do(self.charge(now, slot, carried));
                }
                self.heard.remove(&slot);
                self.arrivals.delivered(terminal.map(|terminal| &mut terminal.arrived), meter);
            }
            if !self.work_off(now, meter) {
                break;
            }
        }
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
                    // An idle terminal accumulates no credit.
                    (terminal.deficit, terminal.is_active, terminal.wake_at) = (0, false, until);
                    self.active.pop_front();
                    self.waiting.extend(until.map(|at| (at, slot)));
                }
                Step::Do(carried) => return Step::Do(self.charge(now, slot, carried)),
            }
        }
        Step::Wait(self.waiting.first().map(|(at, _)| *at))
    }

    /// Charges a sent datagram to the line and to the terminal's share.
    fn charge(&mut self, now: Time, slot: Slot, carried: Carried) -> (Slot, Carried) {
        if let Carried::Send(sealed) = &carried {
            let bytes = sealed.len as u64 + if sealed.to.is_ipv6() { 48 } else { 28 };
            if let Some(terminal) = self.terminals.get_mut(&slot) {
                terminal.deficit -= bytes as i64;
            }
            if let Some(rate) = self.rate {
                self.free_at = self.free_at.max(now.saturating_sub(CATCH_UP)) + rate.time_for_ceil(bytes);
            }
        }
        (slot, carried)
    }
}

#[cfg(test)]
mod tests;
