//! A kernel's part around connections: sockets, ports, listeners, orphans, resets to unknown peers, ICMP.
//!
//! The caller provides the time; packets go in and out as bytes. Not implemented: keepalive, path MTU
//! discovery, SYN cookies.

mod arrival;
pub mod calls;
pub mod command;
mod connection;
pub(crate) mod linux;
pub(crate) mod own;
pub mod ready;
pub mod settings;
mod socket;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use bentpipe_engine::tcp::State;
use bentpipe_engine::units::{Duration, Time};

pub use settings::{IpVersion, Profile, Settings};
pub use socket::{Errno, Reply, SocketId, Watch};

use socket::{Conn, Role, Socket};

/// Longest IP packet.
const LONGEST: usize = 65_535 + 40;

/// Max packets at one instant; more mean a machine that never waits.
const LIVELOCK: u32 = 200_000;

/// Max sockets of a host; each has buffers.
const MAX_SOCKETS: usize = 200;

/// Hop limit of packets (RFC 1700).
const TTL: u8 = 64;

/// Max time that data is held back (Linux: `TCP_CORK` in tcp(7)).
const CORK: Duration = Duration::from_millis(200);

/// A host.
#[derive(Debug)]
pub struct Host {
    /// The current time.
    now: Time,
    /// Initial settings of new sockets and connections.
    pub settings: Settings,
    sockets: BTreeMap<SocketId, Socket>,
    next: u32,
    sent: VecDeque<(Time, Vec<u8>)>,
    buffer: Vec<u8>,
    /// Internal errors: a byte that was never sent, a packet above the MTU.
    faults: Vec<String>,
}

/// The byte that the user writes at this offset of the stream.
pub fn pattern(offset: u64) -> u8 {
    // A prime period, so that it never aligns with segments.
    (offset % 251) as u8
}

impl Host {
    /// A host without sockets.
    pub fn new(settings: Settings, now: Time) -> Self {
        Host {
            now,
            settings,
            sockets: BTreeMap::new(),
            next: 0,
            sent: VecDeque::new(),
            buffer: vec![0; LONGEST],
            faults: Vec::new(),
        }
    }

    /// The time of the next event.
    pub fn timer(&self) -> Option<Time> {
        let of = |conn: &Conn| Time::earliest(Time::earliest(conn.timer, conn.hold_until), conn.give_up);
        self.connections().filter_map(of).min()
    }

    /// Advances to `now`, which is not after [`Host::timer`].
    pub fn advance(&mut self, now: Time) {
        self.now = now;
        for id in self.ids() {
            self.flush(id, false);
            self.poll(id);
            self.give_up(id);
        }
    }

    /// Ends a connection that takes too long to open.
    fn give_up(&mut self, id: SocketId) {
        let now = self.now;
        let Some(conn) = self.conn_mut(id) else { return };
        if conn.was_connected || !conn.is_alive() {
            conn.give_up = None;
        } else if conn.give_up.is_some_and(|at| at <= now) {
            (conn.is_dropped, conn.timer, conn.give_up) = (true, None, None);
            if let Some(socket) = self.sockets.get_mut(&id) {
                socket.error = Some("ETIMEDOUT");
            }
        }
    }

    /// The next packet sent, and when.
    pub fn sent(&mut self) -> Option<(Time, Vec<u8>)> {
        self.sent.pop_front()
    }

    /// The description of an internal error, if any is left. Removes it.
    pub fn fault(&mut self) -> Option<String> {
        self.faults.pop()
    }

    fn ids(&self) -> Vec<SocketId> {
        self.sockets.keys().copied().collect()
    }

    fn connections(&self) -> impl Iterator<Item = &Conn> {
        self.sockets.values().filter_map(|socket| match &socket.role {
            Role::Connection(conn) => Some(&**conn),
            _ => None,
        })
    }

    fn socket(&self, id: SocketId) -> Option<&Socket> {
        self.sockets.get(&id)
    }

    fn conn(&self, id: SocketId) -> Option<&Conn> {
        match &self.sockets.get(&id)?.role {
            Role::Connection(conn) => Some(conn),
            _ => None,
        }
    }

    fn conn_mut(&mut self, id: SocketId) -> Option<&mut Conn> {
        match &mut self.sockets.get_mut(&id)?.role {
            Role::Connection(conn) => Some(conn),
            _ => None,
        }
    }

    fn add(&mut self, socket: Socket) -> SocketId {
        let id = SocketId(self.next);
        self.next += 1;
        self.sockets.insert(id, socket);
        id
    }

    /// The number of sockets in a state, with `sockstat`'s names.
    pub fn count(&self, state: &str) -> u32 {
        let named = |have: State| match have {
            State::Closed => "CLOSED",
            State::Listen => "LISTEN",
            State::SynSent => "SYN_SENT",
            State::SynReceived => "SYN_RCVD",
            State::Established => "ESTABLISHED",
            State::FinWait1 => "FIN_WAIT_1",
            State::FinWait2 => "FIN_WAIT_2",
            State::CloseWait => "CLOSE_WAIT",
            State::Closing => "CLOSING",
            State::LastAck => "LAST_ACK",
            State::TimeWait => "TIME_WAIT",
        };
        let states = self.sockets.values().map(|socket| match &socket.role {
            Role::Connection(conn) => named(conn.state()),
            Role::Listener { .. } => "LISTEN",
            Role::Idle => "CLOSED",
        });
        states.filter(|have| *have == state).count() as u32
    }

    /// Drops all connections in TIME-WAIT, without notifying their peers.
    pub(crate) fn drop_time_wait(&mut self) {
        for id in self.ids() {
            let is_dropped = |conn: &&mut Conn| conn.state() == State::TimeWait;
            if let Some(conn) = self.conn_mut(id).filter(is_dropped) {
                (conn.is_dropped, conn.timer) = (true, None);
            }
        }
    }

    /// True if a connection between these ends is open.
    pub(crate) fn has_connection(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.find(local, remote).is_some()
    }

    /// The last connection between these ends, open or not.
    pub(crate) fn any_connection(&self, local: SocketAddr, remote: SocketAddr) -> Option<SocketId> {
        let of = |socket: &Socket| match &socket.role {
            Role::Connection(conn) => conn.remote == remote && socket.local == Some(local),
            _ => false,
        };
        self.sockets.iter().rev().find(|(_, socket)| of(socket)).map(|(id, _)| *id)
    }

    /// The port that a socket is bound to.
    pub(crate) fn local_port(&self, id: SocketId) -> Option<u16> {
        self.socket(id)?.local.map(|local| local.port())
    }

    /// True if the socket listens.
    pub(crate) fn is_listener(&self, id: SocketId) -> bool {
        self.socket(id).is_some_and(|socket| matches!(socket.role, Role::Listener { .. }))
    }
}
