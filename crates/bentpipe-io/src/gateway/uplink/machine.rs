//! The connections of the clients: who is who, whose turn it is, and what the driver has to do.
//!
//! No clock and no I/O. A connection begins with a client's SYN, which waits until the server has accepted; from then on
//! it is an [`Endpoint`]. What can carry data goes out in turns as the pacer has room; what cannot goes at once.

mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use bentpipe_engine::mux::{Reason, Route};
use bentpipe_engine::probe::Who;
use bentpipe_engine::tcp::{Flags, State};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::ip::{self, Addresses, Ports};
use bentpipe_engine::wire::tcp as wire;
use bentpipe_engine::{Context, NoProbe, Step};

use super::config::{UplinkConfig, UplinkStats};
use super::opening::{reset_for, syn_of};
use super::pacer::Pacer;
use crate::endpoint::{Endpoint, Peer};

/// One of the connections, for good: no other one is ever called so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is ours.
    Taken,
    /// It is none of ours: it goes on as if we were not there.
    Pass,
    /// It is damaged.
    Malformed,
    /// It is no TCP, and not what the rules send here: what a host says to every new device.
    Foreign,
}

/// What the driver has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uplinked {
    /// Send the IP packet of so many bytes that lies in the buffer to the client.
    Send(usize),
    /// Connect to the route's destination, and say how it went.
    Connect(ConnectionId, Route),
    /// There may be more to read or room to write, or the client sends no more.
    Ready(ConnectionId),
    /// Both directions are done, and all that the client sent has been read.
    Closed(ConnectionId),
    /// It is over in both directions, and what has not been read is void.
    Reset(ConnectionId),
}

/// Least bytes of each of a connection's buffers.
pub(super) const LEAST_BUFFER: usize = 16 << 10;
/// What is left of them while a connection only waits for stray segments.
const NO_BUFFER: usize = 1;
/// A client that is gone without a word: RFC 5382 §5 REQ-5, "a value of 2 hours 4 minutes or more".
const SILENCE: Duration = Duration::from_secs((2 * 60 + 4) * 60);
const SWEEP: Duration = Duration::from_secs(60);

type Key = (SocketAddr, SocketAddr);

#[derive(Debug)]
enum Stage {
    /// The server is being asked; the client's latest SYN waits.
    Asking(Vec<u8>),
    Open(Box<Endpoint>),
}

#[derive(Debug)]
struct Entry {
    key: Key,
    stage: Stage,
    /// Its place in a queue; one that has another ticket is void.
    ticket: Option<u64>,
    timer: Option<Time>,
    /// The driver has a [`Uplinked::Ready`] to come.
    is_told: bool,
    /// What the driver was told of last: acknowledged, received, ended.
    seen: (u64, u64, bool),
    /// The driver has nothing to do with it any more.
    is_over: bool,
    memory: u64,
    heard: Time,
}

/// The machine.
#[derive(Debug)]
pub struct Uplink {
    config: UplinkConfig,
    pacer: Pacer,
    ids: BTreeMap<Key, ConnectionId>,
    entries: BTreeMap<ConnectionId, Entry>,
    /// Connections to be polled: at once, and as the pacer has room.
    at_once: VecDeque<(ConnectionId, u64)>,
    in_turns: VecDeque<(ConnectionId, u64)>,
    timers: BTreeSet<(Time, ConnectionId)>,
    told: VecDeque<Uplinked>,
    /// Resets of connections that never were.
    resets: VecDeque<Vec<u8>>,
    next_id: u64,
    next_ticket: u64,
    /// Entries that the driver has to do with.
    live: u64,
    memory: u64,
    sweep_at: Time,
    draining: bool,
    stats: UplinkStats,
}

fn cx(now: Time, probe: &mut NoProbe) -> Context<'_, NoProbe> {
    Context { now, who: Who(0), probe }
}

impl Uplink {
    /// A machine without connections.
    pub fn new(config: UplinkConfig) -> Self {
        Uplink {
            pacer: Pacer::new(config.rate),
            config,
            ids: BTreeMap::new(),
            entries: BTreeMap::new(),
            at_once: VecDeque::new(),
            in_turns: VecDeque::new(),
            timers: BTreeSet::new(),
            told: VecDeque::new(),
            resets: VecDeque::new(),
            next_id: 0,
            next_ticket: 0,
            live: 0,
            memory: 0,
            sweep_at: Time::ZERO + SWEEP,
            draining: false,
            stats: UplinkStats::default(),
        }
    }

    /// Settings as they are.
    pub fn config(&self) -> &UplinkConfig {
        &self.config
    }

    /// What has been counted so far.
    pub fn stats(&self) -> UplinkStats {
        let mut stats = UplinkStats { open: self.live, memory: self.memory, ..self.stats };
        for entry in self.entries.values() {
            if let Stage::Open(endpoint) = &entry.stage {
                stats.add(endpoint);
            }
        }
        stats
    }

    /// New connections pass directly from now on. Whether none is left.
    pub fn drain(&mut self) -> bool {
        self.draining = true;
        self.live == 0
    }

    /// Takes an IP packet that was meant for a server.
    pub fn receive(&mut self, now: Time, packet: &[u8]) -> Heard {
        let heard = self.hear(now, packet);
        match heard {
            Heard::Taken | Heard::Foreign => {}
            Heard::Pass => self.stats.passed += 1,
            Heard::Malformed => self.stats.malformed += 1,
        }
        heard
    }

    fn hear(&mut self, now: Time, packet: &[u8]) -> Heard {
        let Ok(ip) = ip::parse(packet) else { return Heard::Malformed };
        if ip.protocol != ip::TCP {
            return Heard::Foreign;
        }
        let bytes = &packet[ip.payload.clone()];
        let (Ok(ports), Some(header)) = (Ports::peek(bytes), bytes.first_chunk::<{ wire::HEADER }>()) else {
            return Heard::Malformed;
        };
        let source = SocketAddr::new(ip.addresses.source(), ports.source);
        let destination = SocketAddr::new(ip.addresses.destination(), ports.destination);
        let flags = Flags::from_bits_truncate(header[13]);
        // As a listener of ours wants it: what else may stand beside it opens nothing.
        let is_syn = flags == Flags::SYN;
        let Some(&id) = self.ids.get(&(source, destination)) else {
            if !is_syn || self.draining {
                return Heard::Pass;
            }
            return self.on_syn(now, &ip.addresses, ports, packet, bytes);
        };
        let budget = self.config.memory.saturating_sub(self.memory);
        let entry = self.entries.get_mut(&id).expect("ids name entries");
        match &mut entry.stage {
            Stage::Asking(syn) => {
                if syn_of(&ip.addresses, ports, bytes).is_none() {
                    return Heard::Malformed;
                }
                if is_syn {
                    // Its timestamp is the one to be echoed.
                    *syn = packet.to_vec();
                } else if flags.has(Flags::RST) {
                    self.stats.reset += 1;
                    self.tell_end(id, Uplinked::Reset(id));
                    self.forget(id);
                }
            }
            //= RFC 9293 §3.10.7.4: in TIME-WAIT a SYN may "allow [...] a new incarnation of the connection"
            Stage::Open(_) if is_syn && entry.is_over => {
                self.forget(id);
                return self.on_syn(now, &ip.addresses, ports, packet, bytes);
            }
            Stage::Open(endpoint) => {
                endpoint.spare(budget);
                if endpoint.receive(&mut cx(now, &mut NoProbe), packet).is_err() {
                    return Heard::Malformed;
                }
                entry.heard = now;
                self.account(id);
                self.look(id);
                self.enqueue(id);
            }
        }
        Heard::Taken
    }

    fn on_syn(&mut self, now: Time, addresses: &Addresses, ports: Ports, packet: &[u8], bytes: &[u8]) -> Heard {
        if syn_of(addresses, ports, bytes).is_none() {
            return Heard::Malformed;
        }
        let most = u64::from(self.config.most_streams);
        // Those that wait for stray segments take little, but not nothing.
        let is_full = self.live >= most || self.entries.len() as u64 >= 2 * most;
        // What it will need when it is open.
        let memory = 2 * LEAST_BUFFER as u64;
        if is_full || self.memory + memory > self.config.memory {
            self.stats.refused += 1;
            self.resets.extend(reset_for(packet));
            return Heard::Taken;
        }
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        let source = SocketAddr::new(addresses.source(), ports.source);
        let destination = SocketAddr::new(addresses.destination(), ports.destination);
        let key = (source, destination);
        let entry = Entry {
            key,
            stage: Stage::Asking(packet.to_vec()),
            ticket: None,
            timer: None,
            is_told: false,
            seen: (0, 0, false),
            is_over: false,
            memory,
            heard: now,
        };
        self.memory += memory;
        self.entries.insert(id, entry);
        self.ids.insert(key, id);
        self.live += 1;
        self.stats.total += 1;
        self.told.push_back(Uplinked::Connect(id, Route { source, destination }));
        if self.config.early_accept {
            self.open(now, id);
        }
        Heard::Taken
    }

    /// The client is answered.
    fn open(&mut self, now: Time, id: ConnectionId) {
        let Some(entry) = self.entries.get(&id) else { return };
        let Stage::Asking(syn) = &entry.stage else { return };
        let (local, syn) = (entry.key.1, syn.clone());
        let mss = ip::parse(&syn).ok().and_then(|ip| {
            let bytes = &syn[ip.payload];
            syn_of(&ip.addresses, Ports::peek(bytes).ok()?, bytes)?.syn.mss
        });
        let config = self.config.settings(local.is_ipv6(), mss);
        let mut probe = NoProbe;
        let mut cx = cx(now, &mut probe);
        let mut endpoint = Endpoint::open(&mut cx, config, local, Peer::Accept, LEAST_BUFFER);
        endpoint.shrink(LEAST_BUFFER);
        let taken = endpoint.receive(&mut cx, &syn);
        debug_assert_eq!(taken, Ok(true), "the SYN was looked at when it came");
        self.entries.get_mut(&id).expect("it is there").stage = Stage::Open(Box::new(endpoint));
        self.account(id);
        self.enqueue(id);
    }

    /// The server has accepted.
    pub fn connected(&mut self, now: Time, id: ConnectionId) {
        if self.entries.contains_key(&id) {
            self.stats.connected += 1;
            self.open(now, id);
            self.tell_ready(id);
        }
    }

    /// The server has not. The client hears what the server said: nothing where it said nothing, else a reset.
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

    /// How many bytes the connection takes now; its buffer grows for it where there is memory.
    pub fn room(&mut self, id: ConnectionId) -> usize {
        let (most, budget) = (self.config.send_buffer(), self.config.memory.saturating_sub(self.memory));
        let Some(Entry { stage: Stage::Open(endpoint), is_over: false, .. }) = self.entries.get_mut(&id) else {
            return 0;
        };
        let held = endpoint.unacknowledged() + endpoint.writable();
        if endpoint.writable() < held / 2 && (held as usize) < most {
            endpoint.spare(budget);
            endpoint.grow_outgoing((2 * held as usize).min(most));
        }
        let room = endpoint.writable() as usize;
        self.account(id);
        room
    }

    /// Takes bytes for the client; how many.
    pub fn write(&mut self, now: Time, id: ConnectionId, data: &[u8]) -> usize {
        let Some(endpoint) = self.endpoint(id) else { return 0 };
        // A connection that has ended takes no more: the driver is told of its end.
        let count = endpoint.write(&mut cx(now, &mut NoProbe), data).unwrap_or(0);
        if count > 0 {
            self.enqueue(id);
        }
        count
    }

    /// Gives bytes of the client; how many.
    pub fn read(&mut self, now: Time, id: ConnectionId, data: &mut [u8]) -> usize {
        let Some(endpoint) = self.endpoint(id) else { return 0 };
        let count = endpoint.read(&mut cx(now, &mut NoProbe), data);
        if count > 0 {
            self.enqueue(id);
        }
        count
    }

    /// Whether the client sends no more and all of it has been read.
    pub fn has_ended(&self, id: ConnectionId) -> bool {
        match self.entries.get(&id) {
            Some(Entry { stage: Stage::Open(endpoint), .. }) => endpoint.peer_has_closed() && endpoint.readable() == 0,
            _ => false,
        }
    }

    /// The server sends no more.
    pub fn close(&mut self, now: Time, id: ConnectionId) {
        if let Some(endpoint) = self.endpoint(id) {
            endpoint.close(&mut cx(now, &mut NoProbe));
            self.enqueue(id);
        }
    }

    /// The server is gone: the client is reset.
    pub fn abort(&mut self, now: Time, id: ConnectionId) {
        match self.entries.get_mut(&id).map(|entry| &mut entry.stage) {
            Some(Stage::Open(endpoint)) => {
                endpoint.abort(&mut cx(now, &mut NoProbe));
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

    /// Everybody is reset.
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

    /// Counts its memory anew.
    fn account(&mut self, id: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && let Stage::Open(endpoint) = &entry.stage
        {
            let memory = endpoint.memory();
            self.memory = self.memory + memory - std::mem::replace(&mut entry.memory, memory);
        }
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

    /// The driver has nothing to do with it from now on.
    fn end(&mut self, id: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && !std::mem::replace(&mut entry.is_over, true)
        {
            self.live -= 1;
        }
    }

    fn tell_end(&mut self, id: ConnectionId, what: Uplinked) {
        if self.entries.get(&id).is_some_and(|entry| !entry.is_over) {
            self.told.push_back(what);
            self.end(id);
        }
    }

    /// Finds out what is new for the driver, and whether it is over.
    fn look(&mut self, id: ConnectionId) {
        let is_scarce = self.memory > self.config.memory / 2;
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Stage::Open(endpoint) = &mut entry.stage else { return };
        let seen = (endpoint.acknowledged(), endpoint.connection().received(), endpoint.peer_has_closed());
        let has_news = std::mem::replace(&mut entry.seen, seen) != seen;
        let outcome = endpoint.outcome();
        let is_done = outcome == Some(Ok(())) || endpoint.connection().state() == State::TimeWait;
        if is_done && endpoint.readable() == 0 {
            endpoint.shrink(NO_BUFFER);
            self.account(id);
            self.tell_end(id, Uplinked::Closed(id));
            if outcome.is_some() {
                self.forget(id);
            }
            return;
        }
        // A reset of a handshake returns the endpoint to LISTEN (RFC 9293 §3.10.7.4): here it is the end.
        if matches!(outcome, Some(Err(_))) || endpoint.connection().state() == State::Listen {
            if !entry.is_over {
                self.stats.reset += 1;
            }
            self.tell_end(id, Uplinked::Reset(id));
            self.forget(id);
            return;
        }
        if is_scarce && endpoint.unacknowledged() == 0 && endpoint.readable() == 0 {
            endpoint.shrink(LEAST_BUFFER);
            self.account(id);
        }
        if has_news {
            self.tell_ready(id);
        }
    }

    fn forget(&mut self, id: ConnectionId) {
        self.end(id);
        let Some(entry) = self.entries.remove(&id) else { return };
        self.ids.remove(&entry.key);
        self.memory -= entry.memory;
        if let Some(at) = entry.timer {
            self.timers.remove(&(at, id));
        }
        if let Stage::Open(endpoint) = &entry.stage {
            self.stats.add(endpoint);
        }
    }

    fn sweep(&mut self, now: Time) {
        self.sweep_at = now + SWEEP;
        let is_silent = |entry: &Entry| matches!(entry.stage, Stage::Open(_)) && entry.heard + SILENCE <= now;
        let silent: Vec<_> = self.entries.iter().filter(|(_, entry)| is_silent(entry)).map(|(&id, _)| id).collect();
        for id in silent {
            self.stats.silent += 1;
            if self.entries.get(&id).is_some_and(|entry| !entry.is_over) {
                self.told.push_back(Uplinked::Reset(id));
            }
            self.abort(now, id);
        }
    }
}
