//! The connections of one peer: a multiplexer, and a connection of the host for each of its streams.

mod drain;
mod opening;

use std::collections::BTreeMap;

use bentpipe_engine::gateway::{CONNECTION, MIN_UNSENT, Memory, ROOM, max_payload, packet_memory};
use bentpipe_engine::mux::{Host, Input, Mux, MuxConfig, MuxStats, Output, Reason, Route, Side, StreamId};
use bentpipe_engine::units::Time;
use bentpipe_engine::wire::mux as wire;
use bentpipe_engine::{Context, Machine, Step};
use mio::event::Event as Ready;
use mio::net::TcpStream;
use mio::{Registry, Token};

use super::common::Common;
use super::config::{SplitConfig, SplitStats, Waiting};
use crate::bucket::Bucket;
use crate::carrier::Carrier;
use crate::conn::{Conn, Outcome};
use crate::half_open::HalfOpen;
use crate::hub::Slot;
use crate::policy::Sources;
use crate::shares::Shares;
use crate::sockets;
use crate::tunnel::Event;

/// The context of a peer's connections during one turn.
pub(super) struct Cx<'a> {
    pub(super) now: Time,
    pub(super) registry: &'a Registry,
    pub(super) common: &'a mut Common,
}

/// The connections of one peer.
#[derive(Debug)]
pub(super) struct Streams {
    slot: Slot,
    from: Sources,
    mux: Option<Mux>,
    conns: BTreeMap<StreamId, (Token, Host, Conn)>,
    /// The clients' shares of streams and memory.
    shares: Shares,
    /// Connections for whose hosts data has arrived in this turn.
    brought: Vec<StreamId>,
    /// Connections being opened for the peer.
    half_open: HalfOpen<StreamId>,
    /// Bytes that connections hold for the link.
    unsent: u64,
    /// Memory of connections, bytes.
    memory: u64,
    /// Memory of the link in bytes, and the part that the link needs. The rest is freed as soon as connections need it.
    link: u64,
    needed: u64,
    /// While draining, when the last connection ended.
    done_at: Option<Time>,
    stats: SplitStats,
    past: MuxStats,
    /// Connections refused by the policy.
    forbidden: u64,
    /// How many connections the peer may open now, if there are other peers.
    openings: Bucket,
}

impl Streams {
    pub(super) fn new(slot: Slot, config: &SplitConfig) -> Self {
        Streams {
            slot,
            from: Sources::default(),
            mux: None,
            conns: BTreeMap::new(),
            shares: Shares::default(),
            brought: Vec::new(),
            half_open: HalfOpen::new(config.max_streams as usize / 2),
            unsent: 0,
            memory: 0,
            link: 0,
            needed: 0,
            done_at: None,
            stats: SplitStats::default(),
            past: MuxStats::default(),
            forbidden: 0,
            openings: opening::bucket(),
        }
    }

    pub(super) fn set_sources(&mut self, from: Sources) {
        self.from = from;
    }

    pub(super) fn stats(&self) -> SplitStats {
        let mut mux = self.past;
        if let Some(now) = &self.mux {
            mux += now.stats();
        }
        SplitStats { open: self.conns.len(), mux, ..self.stats }
    }

    /// Counts connections that were refused before they reached this peer.
    pub(super) fn count_refused(&mut self, count: u64) {
        self.stats.refused += count;
    }

    pub(super) fn forbidden(&self) -> u64 {
        self.forbidden
    }

    pub(super) fn waiting(&self, memory: u64) -> Waiting {
        Waiting { unsent: self.unsent, held: self.held(), memory }
    }

    /// Memory of connections, and of the link.
    #[cfg(test)]
    pub(super) fn taken(&self) -> [u64; 2] {
        [self.memory, self.link]
    }

    /// True if nothing counts as taken by connections.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        let has_shares = format!("{:?}", self.shares) != format!("{:?}", Shares::default());
        self.conns.is_empty() && self.unsent == 0 && self.memory == 0 && !has_shares
    }

    fn held(&self) -> u64 {
        self.mux.as_ref().map_or(0, Mux::held)
    }

    fn give(&mut self, now: Time, input: Input) {
        if let Some(mux) = &mut self.mux {
            mux.handle(&mut Context::silent(now), input);
        }
    }

    fn poll_mux(&mut self, now: Time) -> Option<Output> {
        let mux = self.mux.as_mut()?;
        match mux.poll(&mut Context::silent(now)) {
            Step::Do(output) => Some(output),
            Step::Wait(_) => None,
        }
    }

    /// True if there are descriptors and memory for another connection of this client.
    fn has_room(&self, common: &Common, route: Route) -> bool {
        let descriptors = common.descriptors.limit(self.slot).saturating_sub(self.conns.len() as u64);
        let memory = self.in_memory(common).for_connections();
        let free = descriptors.min(memory.div_ceil((CONNECTION + MIN_UNSENT) as u64));
        self.shares.has_place(Host::of(route.source.ip()), free)
    }

    /// The memory in use. Packets that the link can drop do not count.
    fn in_memory(&self, common: &Common) -> Memory {
        Memory { limit: common.memory.limit(self.slot), connections: self.memory, link: self.needed }
    }

    /// Reports the memory in use to the pools that peers share.
    fn tell_use(&self, common: &mut Common) {
        common.memory.set(self.slot, self.memory + self.link);
        common.descriptors.set(self.slot, self.conns.len() as u64);
    }

    fn count_memory(&mut self, change: i64) {
        self.memory = self.memory.saturating_add_signed(change);
    }

    fn insert(&mut self, stream: StreamId, token: Token, mut conn: Conn, route: Route) {
        self.count_memory(conn.memory_change());
        let host = Host::of(route.source.ip());
        self.shares.take(host);
        self.conns.insert(stream, (token, host, conn));
    }

    /// Takes a host's connection to the peer.
    pub(super) fn take_in(&mut self, cx: &mut Cx<'_>, socket: TcpStream, route: Route) {
        if cx.common.access.near(route.destination).is_err() {
            self.forbidden += 1;
            sockets::reset(socket);
            return;
        }
        // Without a link there is no multiplexer.
        let may = self.has_room(cx.common, route);
        let Some(stream) = self.mux.as_mut().filter(|_| may).and_then(|mux| mux.open(route)) else {
            sockets::reset(socket);
            self.stats.refused += 1;
            return;
        };
        self.stats.accepted += 1;
        let mut conn = Conn::accepted(socket);
        let token = cx.common.tokens.take(self.slot, stream);
        if conn.register(cx.registry, token).is_err() {
            cx.common.tokens.give_back(token);
            conn.reset();
            self.stats.refused += 1;
            self.give(cx.now, Input::Reset { stream, reason: Reason::NoResources });
            return;
        }
        self.insert(stream, token, conn, route);
        self.serve(cx, stream);
        self.tell_use(cx.common);
    }

    /// Called when a connection is ready.
    pub(super) fn ready(&mut self, cx: &mut Cx<'_>, stream: StreamId, ready: &Ready) {
        if let Some((.., conn)) = self.conns.get_mut(&stream) {
            conn.note(ready);
            self.serve(cx, stream);
            self.tell_use(cx.common);
        }
    }

    /// Moves data between a connection and its stream.
    fn serve(&mut self, cx: &mut Cx<'_>, stream: StreamId) {
        let limit = self.in_memory(cx.common).max_unsent();
        let Some((.., conn)) = self.conns.get_mut(&stream) else { return };
        let before = conn.unsent();
        let was_connecting = conn.is_connecting();
        let Outcome { read, taken, ended, failed } = conn.serve(&mut cx.common.scratch, limit);
        self.unsent = self.unsent + conn.unsent() - before;
        let (change, is_connecting) = (conn.memory_change(), conn.is_connecting());
        self.count_memory(change);
        if was_connecting && !is_connecting {
            self.stats.connected += 1;
            self.half_open.end(stream);
        }
        if read > 0 {
            self.give(cx.now, Input::Write { stream, bytes: read });
        }
        if taken > 0 {
            self.give(cx.now, Input::Taken { stream, bytes: taken });
        }
        if ended {
            self.give(cx.now, Input::Finish { stream });
        }
        if let Some(error) = failed {
            self.stats.failed += u64::from(was_connecting);
            let reason = if was_connecting { sockets::reason(&error) } else { Reason::Peer };
            self.forget(cx.common, stream, true);
            self.give(cx.now, Input::Reset { stream, reason });
        }
    }

    /// Passes the data of the last packets on to hosts.
    fn serve_brought(&mut self, cx: &mut Cx<'_>) {
        let mut brought = std::mem::take(&mut self.brought);
        brought.drain(..).for_each(|stream| self.serve(cx, stream));
        self.brought = brought;
    }

    fn forget(&mut self, common: &mut Common, stream: StreamId, by_reset: bool) {
        if let Some((token, host, conn)) = self.conns.remove(&stream) {
            common.tokens.give_back(token);
            self.shares.give_back(host);
            self.half_open.end(stream);
            self.unsent -= conn.unsent();
            self.memory -= conn.memory();
            if by_reset { conn.reset() } else { conn.close() }
        }
    }

    /// Handles an output of the multiplexer other than a message. `payload` belongs to the message that it has just
    /// received.
    fn follow(&mut self, cx: &mut Cx<'_>, output: Output, payload: &[u8]) {
        match output {
            Output::Send(_) => unreachable!("without room nothing is sent"),
            Output::Opened { stream, route } => self.connect(cx, stream, route),
            Output::Received { stream, .. } => {
                if let Some((.., conn)) = self.conns.get_mut(&stream) {
                    conn.bring(payload);
                    let (change, is_due) = (conn.memory_change(), conn.is_due());
                    self.count_memory(change);
                    // This is not done for each message, but once per turn or before its buffer becomes long.
                    if is_due {
                        self.serve(cx, stream);
                    } else if self.brought.last() != Some(&stream) {
                        self.brought.push(stream);
                    }
                }
            }
            Output::Ended { stream } => {
                if let Some((.., conn)) = self.conns.get_mut(&stream) {
                    conn.end();
                    self.serve(cx, stream);
                }
            }
            Output::Closed { stream } => self.forget(cx.common, stream, false),
            Output::Reset { stream, .. } => self.forget(cx.common, stream, true),
        }
    }

    fn follow_all(&mut self, cx: &mut Cx<'_>, payload: &[u8]) {
        self.give(cx.now, Input::Room(0));
        while let Some(output) = self.poll_mux(cx.now) {
            self.follow(cx, output, payload);
        }
    }

    /// Called when the link came up or went down.
    pub(super) fn on_event(&mut self, cx: &mut Cx<'_>, carrier: &Carrier, event: Event) {
        self.lose_all(cx.common);
        if event == Event::Up {
            let side = if carrier.tunnel().leads() { Side::Initiator } else { Side::Responder };
            let SplitConfig { window, max_streams, .. } = cx.common.config;
            let budget = cx.common.memory.limit(self.slot);
            let max_payload = max_payload(carrier.max_packet());
            self.mux = Some(Mux::new(MuxConfig { side, window, max_payload, max_streams, budget }));
            if cx.common.draining {
                self.give(cx.now, Input::Drain);
            }
        }
    }

    /// Resets all connections of the old link.
    pub(super) fn lose_all(&mut self, common: &mut Common) {
        self.shares = Shares::default();
        for (stream, (token, _, conn)) in std::mem::take(&mut self.conns) {
            common.tokens.give_back(token);
            self.stats.lost_with_link += 1;
            self.half_open.end(stream);
            conn.reset();
        }
        (self.unsent, self.memory, self.link, self.needed) = (0, 0, 0, 0);
        if let Some(mux) = self.mux.take() {
            self.past += mux.stats();
        }
        self.tell_use(common);
    }

    pub(super) fn set_max_packet(&mut self, max_packet: u16) {
        if let Some(mux) = &mut self.mux {
            mux.set_max_payload(max_payload(max_packet));
        }
    }

    /// Called when a packet has arrived from the peer. Returns false if it cannot be read.
    pub(super) fn on_packet(&mut self, cx: &mut Cx<'_>, packet: &[u8]) -> bool {
        let parsed = wire::parse(packet);
        let is_readable = parsed.is_ok();
        match parsed {
            Ok((message, payload)) => {
                // The packet has left the link, which had counted it. Packets behind a gap are delivered together, up
                // to a window of them.
                self.needed = self.needed.saturating_sub(packet_memory(packet.len() as u64));
                self.give_budget(cx);
                self.give(cx.now, Input::Message(message));
                self.follow_all(cx, &packet[payload]);
                self.tell_use(cx.common);
            }
            Err(_) => self.stats.malformed += 1,
        }
        is_readable
    }

    /// Records the link's use of memory, and sets its limit.
    pub(super) fn settle(&mut self, common: &mut Common, carrier: &mut Carrier) {
        carrier.set_room(self.in_memory(common).for_link());
        (self.link, self.needed) = (carrier.held_bytes(), carrier.needed_bytes());
        self.tell_use(common);
    }

    /// Gives streams the memory that connections and the link do not use. Returns the total limit.
    fn give_budget(&mut self, cx: &Cx<'_>) -> u64 {
        let memory = self.in_memory(cx.common);
        self.give(cx.now, Input::Budget(memory.for_streams(self.held())));
        memory.limit
    }

    /// Fills the carrier as far as it has room.
    pub(super) fn fill(&mut self, cx: &mut Cx<'_>, carrier: &mut Carrier) {
        let limit = self.give_budget(cx);
        self.serve_brought(cx);
        self.follow_all(cx, &[]);
        let room = ROOM.saturating_sub(carrier.waiting(0));
        if room > 0 && carrier.is_up() && carrier.given_bytes() < limit / 2 {
            self.give(cx.now, Input::Room(room as u32));
            while let Some(output) = self.poll_mux(cx.now) {
                let Output::Send(message) = output else {
                    self.follow(cx, output, &[]);
                    continue;
                };
                let (len, of) = (message.payload() as usize, sockets::stream_of(&message));
                let conn = of.filter(|_| len > 0).and_then(|stream| self.conns.get_mut(&stream));
                let mut conn = conn.map(|(.., conn)| conn);
                let body = conn.as_ref().map_or(&[][..], |conn| conn.next(len));
                let packet = &mut cx.common.packet;
                let length = wire::emit(&message, &[body], packet).expect("messages fit a packet");
                carrier.send_on(cx.now, 0, message.flow(), &packet[..length]).expect("packets fit a frame");
                if let Some(conn) = &mut conn {
                    conn.sent(len);
                    let (change, wants_more) = (conn.memory_change(), conn.wants_more());
                    self.unsent -= len as u64;
                    self.count_memory(change);
                    if wants_more {
                        self.serve(cx, of.expect("it has a connection"));
                    }
                }
            }
        }
        self.tell_use(cx.common);
    }
}

#[cfg(test)]
mod tests;
