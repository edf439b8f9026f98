//! The `split` shape: TCP connections are terminated and continue from the other box.
//!
//! A client's connection arrives by TPROXY: the kernel has accepted it on behalf of the destination. Its data becomes a
//! stream of the multiplexer to the peer whose prefixes contain the destination. The stream's open message contains the
//! two addresses. The other box connects to the destination, with the client's address if the settings say so. Each box
//! is the near one for the streams that it opens, and the far one for the others.
//!
//! A connection ends as in TCP: either each direction separately, or both by a reset, which is passed on. The kernel
//! accepts before the destination is contacted, so if the destination refuses, the client's connection is reset at
//! once.
//!
//! Memory is bounded. Data that a client sends ahead of the link is limited to `bentpipe_engine::gateway::MAX_UNSENT`
//! per connection, and to less with many connections. Data that a user does not accept is limited by the multiplexer's
//! window and budget. Buffers and connections count against the same budget, and so do the packets in the link, which
//! may take half of it in flight to the peer. [`Memory`](bentpipe_engine::gateway::Memory) describes how they share it.
//! Peers share it by a [`Pool`](super::pool::Pool).

mod common;
mod config;
mod readings;
mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use bentpipe_engine::units::{Duration, Time};
use mio::event::Event as Ready;
use mio::{Registry, Token};

use super::hub::{Hub, Slot};
use super::listeners::{self, Accepts, Listeners};
use super::peers::Reach;
use super::readings::Readings;
use super::shape::{Shape, Turn};
use super::sockets;
use crate::tunnel::Event;
use common::Common;
pub(crate) use config::Waiting;
pub use config::{Fallback, SplitConfig, SplitStats};
use streams::{Cx, Streams};

/// The interval at which all peers are checked for connections that take too long to open, and for memory that others
/// have freed.
const SWEEP: Duration = Duration::from_secs(1);

/// The `split` shape.
#[derive(Debug)]
pub struct SplitShape {
    common: Common,
    listeners: Listeners,
    peers: BTreeMap<Slot, Streams>,
    /// Peers whose multiplexers may have something to send.
    busy: BTreeSet<Slot>,
    sweep_at: Time,
    /// True if settings that decide whether to listen have changed.
    listens_otherwise: bool,
    /// Connections refused before their peer was known.
    turned_away: u64,
}

impl SplitShape {
    /// A shape without peers.
    pub fn new(config: SplitConfig) -> Self {
        let listeners = Listeners::new(config.listen.clone());
        SplitShape {
            common: Common::new(config, listeners.next_token()),
            listeners,
            peers: BTreeMap::new(),
            busy: BTreeSet::new(),
            sweep_at: Time::ZERO,
            listens_otherwise: false,
            turned_away: 0,
        }
    }

    /// The counters so far, summed over all peers.
    pub fn stats(&self) -> SplitStats {
        let none = SplitStats { refused: self.turned_away, ..SplitStats::default() };
        self.peers.values().map(Streams::stats).fold(none, |sum, more| sum + more)
    }

    /// Applies the settings that can change without affecting connections. The others take effect at the next start.
    pub(crate) fn reconfigure(&mut self, config: &SplitConfig) {
        self.common.config.client_address = config.client_address;
        self.common.config.fallback = config.fallback;
        self.common.config.window = config.window;
        self.common.access.set_policy(config.policy.clone());
        self.listens_otherwise = true;
    }

    /// The current settings.
    pub fn config(&self) -> &SplitConfig {
        &self.common.config
    }

    /// Opens or closes the listeners as required.
    fn listen(&mut self, hub: &Hub, registry: &Registry) -> io::Result<()> {
        let any_up = || self.peers.keys().any(|slot| hub.is_up(*slot));
        if !self.common.draining && (self.common.config.fallback == Fallback::Refuse || any_up()) {
            return self.listeners.open(registry);
        }
        self.listeners.close();
        Ok(())
    }

    /// A peer's connections, and their context.
    fn of<'a>(&'a mut self, now: Time, registry: &'a Registry, slot: Slot) -> Option<(&'a mut Streams, Cx<'a>)> {
        let streams = self.peers.get_mut(&slot)?;
        self.busy.insert(slot);
        Some((streams, Cx { now, registry, common: &mut self.common }))
    }

    fn accept(&mut self, turn: &Turn<'_>) {
        let mut accepts = Accepts::new();
        while let Some((socket, route)) = self.listeners.accept(turn.now, &mut accepts) {
            let to = route.and_then(|route| Some((route, self.common.routes.of(route.destination.ip())?)));
            let of = to.and_then(|(route, slot)| Some((route, self.of(turn.now, turn.registry, slot)?)));
            match of {
                Some((route, (streams, mut cx))) => {
                    streams.take_in(&mut cx, socket, route);
                }
                None => {
                    sockets::reset(socket);
                    self.turn_away(1);
                }
            }
        }
        self.turn_away(accepts.refused);
    }

    /// Counts connections that were refused before their peer was known.
    fn turn_away(&mut self, count: u64) {
        match self.common.routes.only().and_then(|slot| self.peers.get_mut(&slot)) {
            Some(streams) => streams.count_refused(count),
            None => self.turned_away += count,
        }
    }

    fn sweep(&mut self, turn: &Turn<'_>) {
        let slots: Vec<_> = self.peers.keys().copied().collect();
        for slot in slots {
            if let Some((streams, mut cx)) = self.of(turn.now, turn.registry, slot) {
                streams.expire(&mut cx);
            }
        }
    }

    fn fill_one(&mut self, turn: &mut Turn<'_>, slot: Slot) {
        let (Some(streams), Some(carrier)) = (self.peers.get_mut(&slot), turn.hub.carrier_mut(slot)) else { return };
        streams.fill(&mut Cx { now: turn.now, registry: turn.registry, common: &mut self.common }, carrier);
    }
}

impl Shape for SplitShape {
    fn name(&self) -> &'static str {
        "split"
    }

    fn read(&self, slot: Slot, readings: &mut Readings) {
        if let Some(streams) = self.peers.get(&slot) {
            readings.add_split(&streams.stats(), &streams.waiting(self.common.memory.limit(slot)));
            readings.add_forbidden("split", streams.forbidden());
        }
    }

    fn read_common(&self, readings: &mut Readings) {
        readings.add_split_common(self.turned_away, self.common.memory.in_use());
    }

    fn start(&mut self, turn: &mut Turn<'_>) -> io::Result<()> {
        self.common.descriptors.set_total(listeners::max_conns(1)? as u64);
        // A port that is taken is reported now, not when the peer comes up.
        self.listeners.reserve(sockets::bind)?;
        self.listen(turn.hub, turn.registry)
    }

    fn listen_again(&mut self) {
        self.listeners.listen_again();
    }

    fn join(&mut self, slot: Slot, reach: Reach) {
        self.common.routes.set(slot, reach.to.as_deref());
        self.common.memory.join(slot);
        self.common.descriptors.join(slot);
        let Common { config, .. } = &self.common;
        self.peers.entry(slot).or_insert_with(|| Streams::new(slot, config)).set_sources(reach.from);
    }

    fn leave(&mut self, slot: Slot) {
        self.common.routes.remove(slot);
        if let Some(mut streams) = self.peers.remove(&slot) {
            streams.lose_all(&mut self.common);
        }
        self.common.memory.leave(slot);
        self.common.descriptors.leave(slot);
        self.busy.remove(&slot);
        self.listens_otherwise = true;
    }

    fn ready(&mut self, turn: &mut Turn<'_>, token: Token, ready: &Ready) -> io::Result<()> {
        if !self.listeners.note(token)
            && let Some((slot, stream)) = self.common.tokens.of(token)
            && let Some((streams, mut cx)) = self.of(turn.now, turn.registry, slot)
        {
            streams.ready(&mut cx, stream, ready);
        }
        Ok(())
    }

    fn on_event(&mut self, turn: &mut Turn<'_>, slot: Slot, event: Event) -> io::Result<()> {
        if let (Some((streams, mut cx)), Some(carrier)) =
            (self.of(turn.now, turn.registry, slot), turn.hub.carrier(slot))
        {
            streams.on_event(&mut cx, carrier, event);
        }
        self.listen(turn.hub, turn.registry)
    }

    fn on_path_mtu(&mut self, turn: &mut Turn<'_>, slot: Slot) -> io::Result<()> {
        if let (Some(streams), Some(carrier)) = (self.peers.get_mut(&slot), turn.hub.carrier(slot)) {
            streams.set_max_packet(carrier.max_packet());
        }
        Ok(())
    }

    fn on_packet(&mut self, turn: &mut Turn<'_>, slot: Slot, packet: &[u8]) -> io::Result<()> {
        if let Some((streams, mut cx)) = self.of(turn.now, turn.registry, slot)
            && !streams.on_packet(&mut cx, packet)
            && let Some(carrier) = turn.hub.carrier_mut(slot)
        {
            carrier.doubt_shape();
        }
        Ok(())
    }

    fn fill(&mut self, turn: &mut Turn<'_>, sent: Option<Slot>) -> io::Result<bool> {
        // While this peer sends, no other peer is served, which would leave the line idle.
        if let Some(slot) = sent {
            self.fill_one(turn, slot);
            // The link has taken data of connections, which counts from the end of this turn.
            self.busy.insert(slot);
            return Ok(false);
        }
        if std::mem::take(&mut self.listens_otherwise) {
            self.listen(turn.hub, turn.registry)?;
        }
        self.accept(turn);
        if turn.now >= self.sweep_at {
            self.sweep_at = turn.now + SWEEP;
            self.sweep(turn);
        }
        // Frames without a packet also change the memory of the link.
        self.busy.extend(turn.hub.heard().filter(|slot| self.peers.contains_key(slot)));
        for slot in std::mem::take(&mut self.busy) {
            if let (Some(streams), Some(carrier)) = (self.peers.get_mut(&slot), turn.hub.carrier_mut(slot)) {
                streams.settle(&mut self.common, carrier);
            }
            self.fill_one(turn, slot);
        }
        Ok(self.listeners.may_accept())
    }

    fn drain(&mut self, turn: &mut Turn<'_>) -> io::Result<bool> {
        if !self.common.draining {
            // Connections that the kernel has already accepted do not count as new.
            for _ in 0..self.listeners.turns_for_waiting() {
                self.accept(turn);
            }
            self.common.draining = true;
            self.listen(turn.hub, turn.registry)?;
            self.peers.values_mut().for_each(|streams| streams.begin_drain(turn.now));
            self.busy.extend(self.peers.keys());
        }
        // Each is called without short-circuiting, because each records when it was done.
        let drained = self
            .peers
            .iter_mut()
            .filter_map(|(slot, streams)| turn.hub.carrier(*slot).map(|carrier| streams.is_drained(turn.now, carrier)));
        Ok(drained.fold(true, |all, one| all & one))
    }
}

#[cfg(test)]
mod tests;
