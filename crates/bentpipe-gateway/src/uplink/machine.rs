//! The clients' connections, the order in which they send, and the driver's tasks.
//!
//! It has no clock and no I/O. A connection begins with a client's SYN, which waits until the server has accepted. It
//! then becomes an [`Endpoint`]. Segments with data are sent in turns as the pacer has room, all others at once.

mod arriving;
mod ending;
mod turns;
mod waiting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use bentpipe_engine::gateway::{Pacer, UplinkSender};
use bentpipe_engine::mux::{Host, Reason, Route};
use bentpipe_engine::tcp::State;
use bentpipe_engine::units::Time;
use bentpipe_engine::wire::seq::SeqNumber;
use bentpipe_engine::{Context, Step};
use bentpipe_io::Endpoint;

use super::config::{MIN_BUFFER, UplinkConfig, UplinkStats};
use super::opening::reset_for;
use super::standing::{self, Standing};
use crate::half_open::HalfOpen;
use crate::shares::Shares;
use turns::InTurns;

/// The number of a connection. It is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// The verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It belongs to one of the connections here.
    Taken,
    /// It belongs to a foreign connection: pass it on.
    Pass,
    /// It is damaged.
    Malformed,
    /// It is not TCP. The rules do not route such packets here, but hosts send them to every new device.
    Foreign,
}

/// A request to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uplinked {
    /// Send the IP packet of this length in the buffer to the client.
    Send(usize),
    /// Connect to the route's destination, and report the result.
    Connect(ConnectionId, Route),
    /// There may be more to read or room to write, or the client has finished sending.
    Ready(ConnectionId),
    /// Both directions have ended, and all of the client's data has been read. It keeps its place until
    /// [`Uplink::flushed`].
    Closed(ConnectionId),
    /// The connection is over in both directions. Unread data is discarded.
    Reset(ConnectionId),
}

/// Maximum number of waiting resets for SYNs that are refused at once: those of four turns of the driver. Further SYNs
/// are dropped, and the clients repeat them.
const MAX_RESETS: usize = 256;

/// The size of a connection's buffers while it only waits for stray segments.
const NO_BUFFER: usize = 1;

type Key = (SocketAddr, SocketAddr);

#[derive(Debug)]
enum Stage {
    /// The server is being contacted, and the client's latest SYN waits.
    Asking(Vec<u8>),
    Open(Box<Endpoint>),
}

#[derive(Debug)]
struct Entry {
    key: Key,
    stage: Stage,
    /// Its place in a queue. Queue entries with another ticket are stale.
    ticket: Option<u64>,
    timer: Option<Time>,
    /// True if an [`Uplinked::Ready`] for the driver is pending.
    is_told: bool,
    /// The values last reported to the driver: acknowledged, received, ended.
    seen: (u64, u64, bool),
    /// True if the driver was told of its end, or ended it.
    is_over: bool,
    /// True if the server sends no more.
    is_closed: bool,
    /// True if the server has accepted. `is_half_open`: true until the client has acknowledged that.
    is_connected: bool,
    is_half_open: bool,
    memory: u64,
    /// When the client was last heard from, and when it last made progress.
    heard: Time,
    moved: Time,
    /// Whether both SYNs had timestamps; also the client's latest timestamp, once both FINs have arrived.
    has_timestamps: bool,
    last_timestamp: Option<u32>,
    /// The largest sequence number that this end used on the connection that this one replaces.
    above: Option<SeqNumber>,
    /// When its TIME-WAIT ends.
    lingers_until: Option<Time>,
    /// The MTU of the path to the client.
    mtu: u16,
}

impl Entry {
    fn host(&self) -> Host {
        Host::of(self.key.0.ip())
    }
}

/// The machine.
#[derive(Debug)]
pub struct Uplink {
    config: UplinkConfig,
    /// The MTU for connections that are opened next.
    mtu: u16,
    pacer: Pacer,
    standing: Standing,
    ids: BTreeMap<Key, ConnectionId>,
    entries: BTreeMap<ConnectionId, Entry>,
    /// Connections to poll: at once, and when the pacer has room.
    at_once: VecDeque<(ConnectionId, u64)>,
    in_turns: InTurns,
    timers: BTreeSet<(Time, ConnectionId)>,
    half_open: HalfOpen<ConnectionId>,
    /// Connections in TIME-WAIT with which the driver is done, by the end of their TIME-WAIT.
    lingering: BTreeSet<(Time, ConnectionId)>,
    told: VecDeque<Uplinked>,
    /// Resets in answer to SYNs without a connection.
    resets: VecDeque<Vec<u8>>,
    next_id: u64,
    next_ticket: u64,
    /// Number of connections with which the driver is not done.
    live: u64,
    /// Those among them that are closed: their servers have not taken all data.
    unflushed: BTreeMap<ConnectionId, Host>,
    /// Bytes in the driver that wait for servers, by connection, and their clients.
    waiting: BTreeMap<ConnectionId, (Host, u64)>,
    memory: u64,
    /// The clients' shares of connections and memory.
    shares: Shares,
    sweep_at: Time,
    draining: bool,
    stats: UplinkStats,
}

impl Uplink {
    /// A machine without connections.
    pub fn new(config: UplinkConfig) -> Self {
        Uplink {
            pacer: Pacer::new(config.sender.rate),
            standing: Standing::new(config.sender.round_trip),
            half_open: HalfOpen::new(config.max_half_open()),
            mtu: config.sender.mtu,
            config,
            ids: BTreeMap::new(),
            entries: BTreeMap::new(),
            at_once: VecDeque::new(),
            in_turns: InTurns::default(),
            timers: BTreeSet::new(),
            lingering: BTreeSet::new(),
            told: VecDeque::new(),
            resets: VecDeque::new(),
            next_id: 0,
            next_ticket: 0,
            live: 0,
            unflushed: BTreeMap::new(),
            waiting: BTreeMap::new(),
            memory: 0,
            shares: Shares::default(),
            sweep_at: Time::ZERO + ending::SWEEP,
            draining: false,
            stats: UplinkStats::default(),
        }
    }

    /// The current settings.
    pub fn config(&self) -> &UplinkConfig {
        &self.config
    }

    /// The counters.
    pub fn stats(&self) -> UplinkStats {
        let standing_queue = self.standing.queue();
        let mut stats = UplinkStats { open: self.live, memory: self.memory, standing_queue, ..self.stats };
        for entry in self.entries.values() {
            if let Stage::Open(endpoint) = &entry.stage {
                stats.add(endpoint);
            }
        }
        stats
    }

    /// The message to log about a queue in the link, if there is a new one.
    pub(super) fn queue_news(&mut self, now: Time) -> Option<standing::Said> {
        self.standing.news(now)
    }

    /// Number of all connections, including those that only wait for stray segments.
    pub fn held(&self) -> usize {
        self.entries.len()
    }

    /// Lets new connections pass directly from now on. Returns true if no connection is left.
    pub fn drain(&mut self) -> bool {
        self.draining = true;
        self.live == 0
    }

    /// Takes an IP packet from a client to a server.
    pub fn receive(&mut self, now: Time, packet: &[u8]) -> Heard {
        let heard = self.hear(now, packet);
        match heard {
            Heard::Taken | Heard::Foreign => {}
            Heard::Pass => self.stats.passed += 1,
            Heard::Malformed => self.stats.malformed += 1,
        }
        heard
    }

    /// Sets the MTU of the host's route to the client that sends the next packet. The configured MTU is an upper bound.
    pub fn set_mtu(&mut self, route: u16) {
        self.mtu = self.config.sender.mtu.min(route);
    }

    /// Records that the server has accepted.
    pub fn connected(&mut self, now: Time, id: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_connected = true;
            self.stats.connected += 1;
            self.open(now, id);
            self.tell_ready(id);
        }
    }

    /// Records that the server has not accepted. If it was silent, the client gets no answer; otherwise the client is
    /// reset.
    pub fn failed(&mut self, now: Time, id: ConnectionId, reason: Reason) {
        let Some(entry) = self.entries.get(&id) else { return };
        if reason == Reason::NoResources {
            self.stats.refused += 1;
        } else {
            self.stats.failed += 1;
        }
        match &entry.stage {
            Stage::Asking(syn) => {
                if reason != Reason::TimedOut {
                    self.resets.extend(reset_for(syn));
                }
                self.end(id);
                self.forget(id);
            }
            Stage::Open(_) => self.abort(now, id),
        }
    }

    /// The number of bytes that the connection accepts now; 0 after [`Uplink::close`] and after its end. Enlarges its
    /// buffer if there is memory.
    pub fn room(&mut self, id: ConnectionId) -> usize {
        let (max, budget) = (self.config.sender.send_buffer(), self.spare(id));
        let Some(Entry { stage: Stage::Open(endpoint), is_over: false, is_closed: false, .. }) =
            self.entries.get_mut(&id)
        else {
            return 0;
        };
        // Its end may not have been reported yet.
        if endpoint.connection().state() == State::Closed {
            return 0;
        }
        let held = endpoint.unacknowledged() + endpoint.writable();
        if endpoint.writable() < held / 2 && (held as usize) < max {
            endpoint.spare(budget);
            endpoint.grow_outgoing((2 * held as usize).min(max));
        }
        let room = endpoint.writable() as usize;
        self.account(id);
        room
    }

    /// Writes data for the client. Returns the number of bytes accepted.
    pub fn write(&mut self, now: Time, id: ConnectionId, data: &[u8]) -> usize {
        let Some(endpoint) = self.endpoint(id) else { return 0 };
        // A connection that has ended accepts nothing. Its end is reported to the driver.
        let count = endpoint.write(&mut Context::silent(now), data).unwrap_or(0);
        if count > 0 {
            self.enqueue(id);
        }
        count
    }

    /// Reads data from the client. Returns the number of bytes.
    pub fn read(&mut self, now: Time, id: ConnectionId, data: &mut [u8]) -> usize {
        let Some(endpoint) = self.endpoint(id) else { return 0 };
        let count = endpoint.read(&mut Context::silent(now), data);
        if count > 0 {
            self.enqueue(id);
        }
        count
    }

    /// True if the client has finished sending and all its data has been read.
    pub fn has_ended(&self, id: ConnectionId) -> bool {
        match self.entries.get(&id) {
            Some(Entry { stage: Stage::Open(endpoint), .. }) => endpoint.peer_has_closed() && endpoint.readable() == 0,
            _ => false,
        }
    }

    /// Records that the server sends no more.
    pub fn close(&mut self, now: Time, id: ConnectionId) {
        if let Some(endpoint) = self.endpoint(id) {
            let mut cx = Context::silent(now);
            // While the client may still send, the connection is no orphan, which `rto.max_closed_retries` gives up early.
            match endpoint.peer_has_closed() {
                true => endpoint.close(&mut cx),
                false => endpoint.shutdown(&mut cx),
            }
            if let Some(entry) = self.entries.get_mut(&id) {
                (entry.is_closed, entry.moved) = (true, now);
            }
            self.enqueue(id);
        }
    }

    /// Records that the driver has nothing more to do for a closed connection: its server has taken all data, or is
    /// gone.
    pub fn flushed(&mut self, id: ConnectionId) {
        self.set_waiting(id, 0);
        if let Some(host) = self.unflushed.remove(&id) {
            self.live -= 1;
            self.shares.give_back(host);
        }
    }

    /// Resets the client, because the server is gone.
    pub fn abort(&mut self, now: Time, id: ConnectionId) {
        match self.entries.get_mut(&id).map(|entry| &mut entry.stage) {
            Some(Stage::Open(endpoint)) => {
                endpoint.abort(&mut Context::silent(now));
                self.end(id);
                self.enqueue(id);
            }
            Some(Stage::Asking(_)) => {
                self.end(id);
                self.forget(id);
            }
            None => {}
        }
    }

    /// Resets all connections.
    pub fn abort_all(&mut self, now: Time) {
        let ids: Vec<_> = self.entries.iter().filter(|(_, entry)| !entry.is_over).map(|(&id, _)| id).collect();
        ids.into_iter().for_each(|id| self.abort(now, id));
    }

    fn endpoint(&mut self, id: ConnectionId) -> Option<&mut Endpoint> {
        match self.entries.get_mut(&id) {
            Some(Entry { stage: Stage::Open(endpoint), .. }) => Some(endpoint),
            _ => None,
        }
    }

    /// Updates the accounting of the connection's memory.
    fn account(&mut self, id: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && let Stage::Open(endpoint) = &entry.stage
        {
            let memory = endpoint.memory();
            let before = std::mem::replace(&mut entry.memory, memory);
            self.memory = self.memory + memory - before;
            self.shares.set_bytes(entry.host(), before, memory);
        }
    }

    /// The number of bytes that the client of a connection may add.
    fn spare(&self, id: ConnectionId) -> u64 {
        let free = self.config.memory.saturating_sub(self.memory);
        self.entries.get(&id).map_or(0, |entry| self.shares.spare(entry.host(), free))
    }

    fn tell_ready(&mut self, id: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && !entry.is_told
            && !entry.is_over
        {
            entry.is_told = true;
            self.told.push_back(Uplinked::Ready(id));
        }
    }
}
