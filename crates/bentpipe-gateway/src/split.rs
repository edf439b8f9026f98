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
//! do, what a user does not take by the multiplexer's window and budget. Buffers and connections count against the same budget;
//! where seven eighths of it are taken there are no new connections.

mod config;
mod readings;

use std::collections::BTreeMap;
use std::io;

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
use super::half_open::HalfOpen;
use super::listeners::{self, Accepts, Listeners};
use super::readings::Readings;
use super::shape::{Shape, Turn};
use super::sockets::{self, ClientAddress};
use crate::tunnel::Event;
pub(crate) use config::Waiting;
pub use config::{Fallback, SplitConfig, SplitStats};

/// Messages that wait in the carrier: enough to keep the line busy until the loop looks again, and so few that a quiet
/// stream's message waits for no more.
const ROOM: usize = 8;

/// Besides some round trips, how long a gateway that drains waits for word that its last bytes have come.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Payload of a message in a packet of that length.
fn max_payload(max_packet: u16) -> u32 {
    u32::from(max_packet) - wire::MAX_DATA_HEADER as u32
}

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
    /// Those that are being made for the other box.
    half_open: HalfOpen<StreamId>,
    /// Bytes that connections hold for the link.
    unsent: u64,
    /// Bytes of memory that connections take.
    memory: u64,
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
            mux: None,
            conns: BTreeMap::new(),
            brought: Vec::new(),
            half_open: HalfOpen::new(config.max_streams as usize / 2),
            config,
            unsent: 0,
            memory: 0,
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

    /// Whether there are descriptors and memory for one connection more.
    fn has_room(&self) -> bool {
        self.conns.len() < self.max_conns && self.memory < self.config.budget / 8 * 7
    }

    fn insert(&mut self, stream: StreamId, mut conn: Conn) {
        self.memory = self.memory.saturating_add_signed(conn.memory_change());
        self.conns.insert(stream, conn);
    }

    fn take_in(&mut self, turn: &mut Turn<'_>, socket: TcpStream, route: Option<Route>) {
        if route.is_some_and(|route| self.access.near(route.destination).is_err()) {
            sockets::reset(socket);
            return;
        }
        let has_room = self.has_room();
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
        self.insert(stream, conn);
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
        let (made, other_port) = match self.has_room() {
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
                self.insert(stream, conn);
                if let Some(evicted) = self.half_open.begin(turn.now, stream, route.source.ip()) {
                    self.give_up(turn, evicted);
                }
            }
            Err(error) => {
                self.stats.failed += 1;
                self.give(turn, Input::Reset { stream, reason: sockets::reason(&error) });
            }
        }
    }

    /// A connection that is being made takes too long, or has to go for another one.
    fn give_up(&mut self, turn: &Turn<'_>, stream: StreamId) {
        self.stats.failed += 1;
        self.forget(stream, true);
        self.give(turn, Input::Reset { stream, reason: Reason::TimedOut });
    }

    /// Moves what can be moved between a connection and its stream.
    fn serve(&mut self, turn: &Turn<'_>, stream: StreamId) {
        let Some(conn) = self.conns.get_mut(&stream) else { return };
        let limit = sockets::max_unsent(self.memory, self.config.budget);
        let before = conn.unsent();
        let was_connecting = conn.is_connecting();
        let Outcome { read, taken, ended, failed } = conn.serve(&mut self.scratch, limit);
        self.unsent = self.unsent + conn.unsent() - before;
        self.memory = self.memory.saturating_add_signed(conn.memory_change());
        if was_connecting && !conn.is_connecting() {
            self.stats.connected += 1;
            self.half_open.end(stream);
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
            self.half_open.end(stream);
            self.unsent -= conn.unsent();
            self.memory -= conn.memory();
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
                    self.memory = self.memory.saturating_add_signed(conn.memory_change());
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
        for (stream, conn) in std::mem::take(&mut self.conns) {
            self.stats.lost_with_link += 1;
            self.half_open.end(stream);
            conn.reset();
        }
        (self.unsent, self.memory) = (0, 0);
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
            let side = if turn.carrier.tunnel().leads() { Side::Initiator } else { Side::Responder };
            let SplitConfig { window, max_streams, budget, .. } = self.config;
            let max_payload = max_payload(turn.carrier.max_packet());
            self.mux = Some(Mux::new(MuxConfig { side, window, max_payload, max_streams, budget }));
            if self.draining {
                self.give(turn, Input::Drain);
            }
        }
        self.listen(turn)
    }

    fn on_path_mtu(&mut self, _: &mut Turn<'_>, max_packet: u16) -> io::Result<()> {
        if let Some(mux) = &mut self.mux {
            mux.set_max_payload(max_payload(max_packet));
        }
        Ok(())
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
        while let Some(expired) = self.half_open.expired(turn.now) {
            self.give_up(turn, expired);
        }
        // What streams may hold is what connections do not take otherwise.
        let elsewhere = self.memory.saturating_sub(self.mux.as_ref().map_or(0, Mux::held));
        self.give(turn, Input::Budget(self.config.budget.saturating_sub(elsewhere)));
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
                    self.memory = self.memory.saturating_add_signed(conn.memory_change());
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
