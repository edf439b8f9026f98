//! The `split` shape: TCP connections end here and go on from the other box.
//!
//! A client's connection comes in by TPROXY: the kernel has accepted it in the destination's name. Its bytes become a
//! stream of the multiplexer, in whose opening the two addresses stand; the other box connects to the destination, in
//! the client's name where it is told to. Both boxes do both: whoever opens is near, the other far.
//!
//! A connection ends as TCP ends: each direction by itself, or both by a reset, and what is reset on one side is reset
//! on the other. A destination that refuses looks like this to the client: a connection that is reset at once, since the
//! kernel accepts before anybody is asked.
//!
//! Memory is bounded: what a client sends ahead of the link by `sockets::MAX_UNSENT` a connection and less when many
//! do, what a user does not take by the multiplexer's window and budget.

mod readings;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use bentpipe_engine::mux::{Input, Mux, MuxConfig, MuxStats, Output, Reason, Route, Side, StreamId};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::mux as wire;
use bentpipe_engine::{Context, Machine, Step};
use mio::Token;
use mio::event::Event as Ready;
use mio::net::TcpStream;
use nix::errno::Errno;

use super::access::Access;
use super::conn::{Conn, Outcome};
use super::listeners::{self, Accepts, Listeners};
use super::policy::Policy;
use super::readings::Readings;
use super::shape::{Shape, Turn};
use super::sockets::{self, ClientAddress};
use crate::tunnel::Event;

/// Bytes of connections, at this moment.
pub(crate) struct Waiting {
    /// Of hosts, for the link.
    pub(crate) unsent: u64,
    /// From the peer, for hosts; and what may.
    pub(crate) held: u64,
    pub(crate) memory: u64,
}

/// What becomes of new connections while there is no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// They pass by: nothing listens, and TPROXY lets through what nobody listens for.
    Direct,
    /// They are reset.
    Refuse,
}

/// What the shape is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitConfig {
    /// Where TPROXY hands connections to: one of each version, or as many as are wanted. None: only the far side.
    pub listen: Vec<SocketAddr>,
    /// In whose name the far side connects.
    pub client_address: ClientAddress,
    /// What becomes of new connections while there is no link.
    pub fallback: Fallback,
    /// The multiplexer; its side is that of the tunnel.
    pub window: u64,
    /// Most payload of a packet, with the message's header.
    pub max_packet: u16,
    /// Streams of the peer that may be open at a time.
    pub max_streams: u32,
    /// Bytes that may wait for users in all.
    pub budget: u64,
    /// Which destinations may be reached, by hosts here and from here by the peer, and who its clients are.
    pub policy: Policy,
}

/// What the shape counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitStats {
    /// Connections accepted here.
    pub accepted: u64,
    /// Connections made for the other box.
    pub connected: u64,
    /// Connections that could not be made.
    pub failed: u64,
    /// Connections refused for want of descriptors, of streams, or of a link.
    pub refused: u64,
    /// Connections reset because the link was lost.
    pub lost_with_link: u64,
    /// Connections that could not have the client's port, and have another.
    pub other_port: u64,
    /// Messages of the peer that could not be read.
    pub malformed: u64,
    /// Connections open at this moment.
    pub open: usize,
    /// Of the multiplexers of all links so far.
    pub mux: MuxStats,
}

/// Messages that wait in the carrier: enough to keep the line busy until the loop looks again, and so few that a quiet
/// stream's message waits for no more.
const ROOM: usize = 8;

/// Besides some round trips, how long a gateway that drains waits for word that its last bytes have come.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The shape.
#[derive(Debug)]
pub struct SplitShape {
    config: SplitConfig,
    access: Access,
    listeners: Listeners,
    mux: Option<Mux>,
    conns: BTreeMap<StreamId, Conn>,
    /// Connections for whose hosts something has come in this turn.
    brought: Vec<StreamId>,
    /// Bytes that connections hold for the link.
    unsent: u64,
    draining: bool,
    /// When the last connection was over, while draining.
    done_at: Option<Time>,
    /// Settings have changed that say whether to listen.
    listens_otherwise: bool,
    /// Connections for which there are descriptors.
    max_conns: usize,
    scratch: Box<[u8]>,
    packet: Box<[u8]>,
    stats: SplitStats,
    past: MuxStats,
}

impl SplitShape {
    /// The shape without connections.
    pub fn new(config: SplitConfig) -> Self {
        SplitShape {
            listeners: Listeners::new(config.listen.clone()),
            access: Access::new(config.policy.clone()),
            config,
            mux: None,
            conns: BTreeMap::new(),
            brought: Vec::new(),
            unsent: 0,
            draining: false,
            done_at: None,
            listens_otherwise: false,
            max_conns: 0,
            scratch: vec![0; sockets::READ].into(),
            packet: vec![0; 1 << 16].into(),
            stats: SplitStats::default(),
            past: MuxStats::default(),
        }
    }

    /// What has been counted so far.
    pub fn stats(&self) -> SplitStats {
        let mut mux = self.past;
        if let Some(now) = &self.mux {
            mux += now.stats();
        }
        SplitStats { open: self.conns.len(), mux, ..self.stats }
    }

    /// Changes what can be changed without touching connections: the rest waits for the next start.
    pub fn reconfigure(&mut self, config: &SplitConfig) {
        self.config.client_address = config.client_address;
        self.config.fallback = config.fallback;
        self.access.set_policy(config.policy.clone());
        self.listens_otherwise = true;
    }

    /// Settings as they are.
    pub fn config(&self) -> &SplitConfig {
        &self.config
    }

    fn give(&mut self, turn: &Turn<'_>, input: Input) {
        if let Some(mux) = &mut self.mux {
            mux.handle(&mut Context::silent(turn.now), input);
        }
    }

    fn poll_mux(&mut self, turn: &Turn<'_>) -> Option<Output> {
        let mux = self.mux.as_mut()?;
        match mux.poll(&mut Context::silent(turn.now)) {
            Step::Do(output) => Some(output),
            Step::Wait(_) => None,
        }
    }

    /// Opens or closes the listeners as the moment demands.
    fn listen(&mut self, turn: &Turn<'_>) -> io::Result<()> {
        if !self.draining && (turn.carrier.is_up() || self.config.fallback == Fallback::Refuse) {
            return self.listeners.open(turn.registry);
        }
        self.listeners.close();
        Ok(())
    }

    fn token(&self, stream: StreamId) -> Token {
        Token(self.listeners.next_token() + stream.0 as usize)
    }

    fn take_in(&mut self, turn: &mut Turn<'_>, socket: TcpStream, route: Option<Route>) {
        if route.is_some_and(|route| self.access.near(route.destination).is_err()) {
            sockets::reset(socket);
            return;
        }
        let has_room = self.conns.len() < self.max_conns;
        let route = route.filter(|_| has_room && turn.carrier.is_up());
        let Some(stream) = route.and_then(|route| self.mux.as_mut()?.open(route)) else {
            sockets::reset(socket);
            self.stats.refused += 1;
            return;
        };
        self.stats.accepted += 1;
        let mut conn = Conn::accepted(socket);
        if conn.register(turn.registry, self.token(stream)).is_err() {
            self.refuse(turn, stream, conn, Reason::NoResources);
            return;
        }
        self.conns.insert(stream, conn);
        self.serve(turn, stream);
    }

    fn refuse(&mut self, turn: &Turn<'_>, stream: StreamId, conn: Conn, reason: Reason) {
        conn.reset();
        self.stats.refused += 1;
        self.give(turn, Input::Reset { stream, reason });
    }

    /// The other box has opened a stream.
    fn connect(&mut self, turn: &Turn<'_>, stream: StreamId, route: Route) {
        let judged = match self.config.client_address {
            ClientAddress::Keep => self.access.of_peer(&route),
            ClientAddress::Replace => self.access.far(route.destination),
        };
        if judged.is_err() {
            self.give(turn, Input::Reset { stream, reason: Reason::Forbidden });
            return;
        }
        let (made, other_port) = match self.conns.len() < self.max_conns {
            true => sockets::connect(route, self.config.client_address, None),
            false => (Err(Errno::EMFILE.into()), false),
        };
        self.stats.other_port += u64::from(other_port);
        let registered = made.and_then(|socket| {
            let mut conn = Conn::connecting(socket);
            conn.register(turn.registry, self.token(stream)).map(|()| conn)
        });
        match registered {
            Ok(conn) => {
                self.conns.insert(stream, conn);
            }
            Err(error) => {
                self.stats.failed += 1;
                self.give(turn, Input::Reset { stream, reason: sockets::reason(&error) });
            }
        }
    }

    /// Moves what can be moved between a connection and its stream.
    fn serve(&mut self, turn: &Turn<'_>, stream: StreamId) {
        let Some(conn) = self.conns.get_mut(&stream) else { return };
        let limit = sockets::max_unsent(self.unsent, self.config.budget);
        let before = conn.unsent();
        let was_connecting = conn.is_connecting();
        let Outcome { read, taken, ended, failed } = conn.serve(&mut self.scratch, limit);
        self.unsent = self.unsent + conn.unsent() - before;
        if was_connecting && !conn.is_connecting() {
            self.stats.connected += 1;
        }
        if read > 0 {
            self.give(turn, Input::Write { stream, bytes: read });
        }
        if taken > 0 {
            self.give(turn, Input::Taken { stream, bytes: taken });
        }
        if ended {
            self.give(turn, Input::Finish { stream });
        }
        if let Some(error) = failed {
            self.stats.failed += u64::from(was_connecting);
            let reason = if was_connecting { sockets::reason(&error) } else { Reason::Peer };
            self.forget(stream, true);
            self.give(turn, Input::Reset { stream, reason });
        }
    }

    /// Hands over to hosts what the last packets brought.
    fn serve_brought(&mut self, turn: &Turn<'_>) {
        let mut brought = std::mem::take(&mut self.brought);
        brought.drain(..).for_each(|stream| self.serve(turn, stream));
        self.brought = brought;
    }

    fn forget(&mut self, stream: StreamId, by_reset: bool) {
        if let Some(conn) = self.conns.remove(&stream) {
            self.unsent -= conn.unsent();
            if by_reset { conn.reset() } else { conn.close() }
        }
    }

    /// What the multiplexer says besides messages; `payload` is that of the message that it has just been given.
    fn follow(&mut self, turn: &Turn<'_>, output: Output, payload: &[u8]) {
        match output {
            Output::Send(_) => unreachable!("without room nothing is sent"),
            Output::Opened { stream, route } => self.connect(turn, stream, route),
            Output::Received { stream, .. } => {
                if let Some(conn) = self.conns.get_mut(&stream) {
                    conn.bring(payload);
                    // Once for all that has come in this turn, not once a message.
                    if self.brought.last() != Some(&stream) {
                        self.brought.push(stream);
                    }
                }
            }
            Output::Ended { stream } => {
                if let Some(conn) = self.conns.get_mut(&stream) {
                    conn.end();
                    self.serve(turn, stream);
                }
            }
            Output::Closed { stream } => self.forget(stream, false),
            Output::Reset { stream, .. } => self.forget(stream, true),
        }
    }

    fn follow_all(&mut self, turn: &Turn<'_>, payload: &[u8]) {
        self.give(turn, Input::Room(0));
        while let Some(output) = self.poll_mux(turn) {
            self.follow(turn, output, payload);
        }
    }

    /// Everything that the old link carried is void: aloud.
    fn lose_all(&mut self) {
        for (_, conn) in std::mem::take(&mut self.conns) {
            self.stats.lost_with_link += 1;
            conn.reset();
        }
        self.unsent = 0;
        if let Some(mux) = self.mux.take() {
            self.past += mux.stats();
        }
    }
}

impl Shape for SplitShape {
    fn name(&self) -> &'static str {
        "split"
    }

    fn read(&self, readings: &mut Readings) {
        let held = self.mux.as_ref().map_or(0, Mux::held);
        let waiting = Waiting { unsent: self.unsent, held, memory: self.config.budget };
        readings.add_split(&self.stats(), &waiting);
        readings.add_forbidden("split", self.access.refused());
    }

    fn start(&mut self, turn: &mut Turn<'_>) -> io::Result<()> {
        self.max_conns = listeners::max_conns(1)?;
        // Whoever has the port is found out now, not when the peer comes.
        self.listeners.reserve(sockets::bind)?;
        self.listen(turn)
    }

    fn ready(&mut self, turn: &mut Turn<'_>, token: Token, ready: &Ready) -> io::Result<()> {
        if !self.listeners.note(token) {
            let stream = StreamId((token.0 - self.listeners.next_token()) as u64);
            if let Some(conn) = self.conns.get_mut(&stream) {
                conn.note(ready);
                self.serve(turn, stream);
            }
        }
        Ok(())
    }

    fn on_event(&mut self, turn: &mut Turn<'_>, event: Event) -> io::Result<()> {
        if event != (Event::Up { fresh: false }) {
            self.lose_all();
        }
        if event == (Event::Up { fresh: true }) {
            let side = if turn.carrier.tunnel().is_initiator() { Side::Initiator } else { Side::Responder };
            let SplitConfig { window, max_packet, max_streams, budget, .. } = self.config;
            let max_payload = u32::from(max_packet) - wire::MAX_DATA_HEADER as u32;
            self.mux = Some(Mux::new(MuxConfig { side, window, max_payload, max_streams, budget }));
            if self.draining {
                self.give(turn, Input::Drain);
            }
        }
        self.listen(turn)
    }

    fn on_packet(&mut self, turn: &mut Turn<'_>, packet: &[u8]) -> io::Result<()> {
        match wire::parse(packet) {
            Ok((message, payload)) => {
                self.give(turn, Input::Message(message));
                self.follow_all(turn, &packet[payload]);
            }
            Err(_) => self.stats.malformed += 1,
        }
        Ok(())
    }

    fn fill(&mut self, turn: &mut Turn<'_>) -> io::Result<bool> {
        if std::mem::take(&mut self.listens_otherwise) {
            self.listen(turn)?;
        }
        let mut accepts = Accepts::new();
        while let Some((socket, route)) = self.listeners.accept(&mut accepts) {
            self.take_in(turn, socket, route);
        }
        self.stats.refused += accepts.refused;
        self.serve_brought(turn);
        self.follow_all(turn, &[]);
        let room = ROOM.saturating_sub(turn.carrier.waiting(0));
        if room > 0 && turn.carrier.is_up() {
            self.give(turn, Input::Room(room as u32));
            while let Some(output) = self.poll_mux(turn) {
                let Output::Send(message) = output else {
                    self.follow(turn, output, &[]);
                    continue;
                };
                let (len, of) = (message.payload() as usize, sockets::stream_of(&message));
                let conn = of.filter(|_| len > 0).and_then(|stream| self.conns.get_mut(&stream));
                let body = conn.as_ref().map_or(&[][..], |conn| conn.next(len));
                let length = wire::emit(&message, &[body], &mut self.packet).expect("messages fit a packet");
                turn.carrier.send_on(turn.now, 0, message.flow(), &self.packet[..length]).expect("packets fit a frame");
                if let Some(conn) = conn {
                    conn.sent(len);
                    self.unsent -= len as u64;
                    if conn.wants_more() {
                        self.serve(turn, of.expect("it has a connection"));
                    }
                }
            }
        }
        Ok(self.listeners.may_accept())
    }

    fn drain(&mut self, turn: &mut Turn<'_>) -> io::Result<bool> {
        if !self.draining {
            self.draining = true;
            self.listen(turn)?;
            self.give(turn, Input::Drain);
        }
        if !self.conns.is_empty() {
            self.done_at = None;
            return Ok(false);
        }
        // The last bytes may have been lost on their way, and nobody else can repeat them; a peer that ends as well may
        // not say any more that they have come.
        let done_at = *self.done_at.get_or_insert(turn.now);
        let round_trip = turn.carrier.stats().srtt.unwrap_or_default();
        let patience = LAST_WORDS + round_trip.saturating_mul(4);
        Ok(turn.carrier.unconfirmed() == 0 || turn.now.saturating_since(done_at) > patience)
    }
}
