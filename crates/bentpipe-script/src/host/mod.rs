//! What a kernel does around connections: sockets, ports, listeners, orphans, resets to strangers, ICMP.
//!
//! Time is the caller's; packets go in and out as bytes. Left out: keepalive, path MTU discovery, SYN cookies.

pub mod calls;
pub mod command;
pub(crate) mod own;
pub mod ready;
pub mod settings;
mod socket;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use bentpipe_engine::probe::Who;
use bentpipe_engine::tcp::{State, TcpConfig};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::{Context, Step};
use bentpipe_io::{Endpoint, Peer};

pub use settings::{IpVersion, Profile, Settings};
pub use socket::{Errno, Reply, SocketId, Watch};

use crate::lang::ast::TcpOption;
use crate::wire::{Seen, flag, set_service};
use socket::{Conn, Options, Role, Socket};

/// Longest IP packet.
const LONGEST: usize = 65_535 + 40;

/// More packets at one instant than a host has reason to send: a machine that never waits.
const LIVELOCK: u32 = 200_000;

/// Sockets that a host has at the same time: each has its buffers.
const MOST_SOCKETS: usize = 200;

/// Hop limit of packets (RFC 1700).
const TTL: u8 = 64;

/// Bytes that are held back leave after this time (Linux: `TCP_CORK` of tcp(7)).
const CORK: Duration = Duration::from_millis(200);

/// A host.
#[derive(Debug)]
pub struct Host {
    /// The present.
    now: Time,
    /// Settings that new sockets and connections begin with.
    pub settings: Settings,
    sockets: BTreeMap<SocketId, Socket>,
    next: u32,
    sent: VecDeque<(Time, Vec<u8>)>,
    buffer: Vec<u8>,
    /// What went wrong inside: a byte that nobody sent, a packet beyond the MTU.
    faults: Vec<String>,
}

/// The byte that the user writes at this offset of his stream.
pub fn pattern(offset: u64) -> u8 {
    // A prime period, so that no segment boundary falls on it.
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

    /// When something is to be done next.
    pub fn timer(&self) -> Option<Time> {
        let of = |conn: &Conn| Time::earliest(Time::earliest(conn.timer, conn.hold_until), conn.give_up);
        self.connections().filter_map(of).min()
    }

    /// Lets time pass until `now`, which is not beyond [`Host::timer`].
    pub fn advance(&mut self, now: Time) {
        self.now = now;
        for id in self.ids() {
            self.flush(id, false);
            self.poll(id);
            self.give_up(id);
        }
    }

    /// Ends a connection that has taken too long to open.
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

    /// What must not happen, in words.
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

    /// How many sockets are in a state, as `sockstat` names it.
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

    /// Drops all connections in a state, without a word to their peers.
    pub fn drop_in(&mut self, state: &str) {
        for id in self.ids() {
            let is_in = matches!((state, self.conn(id).map(Conn::state)), ("TIME_WAIT", Some(State::TimeWait)));
            if let Some(conn) = self.conn_mut(id).filter(|_| is_in) {
                (conn.is_dropped, conn.timer) = (true, None);
            }
        }
    }

    /// Whether a connection between these ends is open.
    pub fn has_connection(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.find(local, remote).is_some()
    }

    /// The connection between these ends, open or not: the last one.
    pub fn any_connection(&self, local: SocketAddr, remote: SocketAddr) -> Option<SocketId> {
        let of = |socket: &Socket| match &socket.role {
            Role::Connection(conn) => conn.remote == remote && socket.local == Some(local),
            _ => false,
        };
        self.sockets.iter().rev().find(|(_, socket)| of(socket)).map(|(id, _)| *id)
    }

    /// The port that a socket is bound to.
    pub fn local_port(&self, id: SocketId) -> Option<u16> {
        self.socket(id)?.local.map(|local| local.port())
    }

    /// Whether the socket listens.
    pub fn is_listener(&self, id: SocketId) -> bool {
        self.socket(id).is_some_and(|socket| matches!(socket.role, Role::Listener { .. }))
    }

    // ---- packets in ----

    /// Takes a packet from the network.
    pub fn receive(&mut self, packet: &[u8]) {
        let Some(seen) = Seen::parse(packet) else { return };
        let local = SocketAddr::new(seen.addresses.destination(), seen.ports.destination);
        let remote = SocketAddr::new(seen.addresses.source(), seen.ports.source);
        if let Some(id) = self.find(local, remote) {
            if self.reopens(id, &seen) {
                self.forget(id);
            } else {
                self.receive_on(id, &seen, packet);
                return;
            }
        }
        let is_here = |socket: &Socket| {
            socket
                .local
                .is_some_and(|at| at.port() == local.port() && (at.ip().is_unspecified() || at.ip() == local.ip()))
        };
        let listener = self
            .sockets
            .iter()
            .find_map(|(id, socket)| (is_here(socket) && matches!(socket.role, Role::Listener { .. })).then_some(*id));
        match listener {
            Some(id) => self.receive_listening(id, local, remote, &seen, packet),
            None => {
                // A socket that is bound lends its options to the answer.
                let bound = self.sockets.values().find(|socket| is_here(socket) && matches!(socket.role, Role::Idle));
                let (ttl, tos) = bound.map_or((TTL, 0), |socket| (socket.options.ttl, socket.options.tos));
                self.refuse(&seen, ttl, tos);
            }
        }
    }

    fn find(&self, local: SocketAddr, remote: SocketAddr) -> Option<SocketId> {
        let of = |socket: &Socket| match &socket.role {
            Role::Connection(conn) => conn.is_alive() && conn.remote == remote && socket.local == Some(local),
            _ => false,
        };
        self.sockets.iter().find(|(_, socket)| of(socket)).map(|(id, _)| *id)
    }

    //= RFC 9293 §3.6.1: "it MAY accept a new SYN from the remote TCP endpoint to reopen the connection directly"
    /// Whether the segment opens a new connection in the place of one in TIME-WAIT.
    fn reopens(&self, id: SocketId, seen: &Seen) -> bool {
        let Some(conn) = self.conn(id).filter(|conn| conn.state() == State::TimeWait) else { return false };
        let is_opening = seen.flags & (flag::SYN | flag::ACK | flag::RST | flag::FIN) == flag::SYN;
        // Linux and the RFC's advice; FreeBSD's scripts want the challenge ACK of RFC 5961.
        let is_new = conn.watch.irs.is_some_and(|irs| {
            let next = irs.wrapping_add(conn.endpoint.connection().rcv_nxt() as u32);
            seen.seq.wrapping_sub(next) as i32 > 0
        });
        self.settings.profile == Profile::Linux && is_opening && is_new
    }

    fn receive_on(&mut self, id: SocketId, seen: &Seen, packet: &[u8]) {
        let (now, is_open) = (self.now, self.sockets[&id].is_open || self.sockets[&id].parent.is_some());
        let drops_syn_fin = self.settings.drops_syn_fin;
        let discards = self.sockets[&id].shut.0 && self.settings.profile == Profile::FreeBsd;
        let Some(conn) = self.conn_mut(id) else { return };
        if seen.has(flag::SYN | flag::FIN) && drops_syn_fin && conn.state() == State::SynSent {
            return;
        }
        if seen.has(flag::SYN) && conn.watch.irs.is_none() {
            conn.watch.irs = Some(seen.seq);
        }
        let before = conn.endpoint.connection().received();
        let mut cx = Context { now, who: Who(0), probe: &mut conn.watch };
        // What is malformed is dropped.
        let _ = conn.endpoint.receive(&mut cx, packet);
        let has_new = conn.endpoint.connection().received() > before;
        //= RFC 1122 §4.2.2.13: "if new data is received after CLOSE is called, its TCP SHOULD send a RST to show that
        //= data was lost"
        if !is_open && has_new && conn.is_alive() {
            (conn.is_dropped, conn.timer) = (true, None);
            self.refuse(seen, TTL, 0);
            self.sockets.remove(&id);
            return;
        }
        if discards && conn.endpoint.readable() > 0 {
            // FreeBSD: what comes after SHUT_RD is acknowledged and dropped.
            let mut bytes = vec![0; conn.endpoint.readable() as usize];
            let mut cx = Context { now, who: Who(0), probe: &mut conn.watch };
            conn.taken += conn.endpoint.read(&mut cx, &mut bytes) as u64;
        }
        let (acknowledged, duplicates) =
            (conn.endpoint.acknowledged(), conn.endpoint.connection().stats().duplicate_acks);
        if acknowledged != conn.progress.0 {
            conn.progress = (acknowledged, duplicates);
            // MSG_MORE holds until something is acknowledged, a cork longer.
            conn.more = false;
        }
        self.poll(id);
        self.flush(id, false);
        self.poll(id);
    }

    fn receive_listening(&mut self, id: SocketId, local: SocketAddr, remote: SocketAddr, seen: &Seen, packet: &[u8]) {
        let options = self.sockets[&id].options.clone();
        if seen.has(flag::RST) {
            return;
        }
        if seen.has(flag::ACK) {
            self.refuse(seen, options.ttl, options.tos);
            return;
        }
        if !seen.has(flag::SYN) || (seen.has(flag::FIN) && self.settings.drops_syn_fin) {
            return;
        }
        let Role::Listener { backlog, children } = &self.sockets[&id].role else { return };
        if children.len() > *backlog || self.sockets.len() >= MOST_SOCKETS {
            return;
        }
        let mss = seen.options.iter().find_map(|option| match option {
            TcpOption::Mss(mss) => Some(*mss),
            _ => None,
        });
        let has_timestamps = seen.options.iter().any(|option| matches!(option, TcpOption::Timestamps(..)));
        let mut config = self.config(&options, mss, has_timestamps, false);
        let scales = seen.options.iter().any(|option| matches!(option, TcpOption::WindowScale(_)));
        if self.settings.profile == Profile::FreeBsd && !scales {
            // Before accept() the window is what the header can say.
            config.receive_buffer = config.receive_buffer.min(u16::MAX.into());
        }
        let child = self.open(local, remote, Peer::Accept, config, &options);
        if let Some(socket) = self.sockets.get_mut(&child) {
            socket.parent = Some(id);
        }
        if let Some(Role::Listener { children, .. }) = self.sockets.get_mut(&id).map(|socket| &mut socket.role) {
            children.push(child);
        }
        self.receive_on(child, seen, packet);
        // A segment that opened nothing.
        if self.conn(child).is_some_and(|conn| conn.state() == State::Listen) {
            self.forget(child);
        }
    }

    //= RFC 9293 §3.10.7.1: "An incoming segment not containing a RST causes a RST to be sent in response"
    fn refuse(&mut self, seen: &Seen, ttl: u8, tos: u8) {
        if seen.has(flag::RST) {
            return;
        }
        let mut reset = Seen {
            addresses: seen.addresses.reversed(),
            ports: seen.ports.reversed(),
            tos,
            ttl,
            flags: flag::RST,
            seq: seen.ack,
            ack: 0,
            window: 0,
            urgent: 0,
            options: Vec::new(),
            payload: Vec::new(),
            size: 0,
        };
        if !seen.has(flag::ACK) {
            (reset.flags, reset.seq) = (flag::RST | flag::ACK, 0);
            reset.ack = seen.seq.wrapping_add(seen.sequence_len());
        }
        self.sent.extend(reset.emit().map(|packet| (self.now, packet)));
    }

    /// Takes an ICMP error about the segment with this sequence number, which a connection between these sent.
    pub fn unreachable(&mut self, local: SocketAddr, remote: SocketAddr, quoted: u32, errno: Option<Errno>) {
        let Some(id) = self.find(local, remote) else { return };
        let Some(conn) = self.conn_mut(id) else { return };
        //= RFC 5927 §4.1: a message about a segment that is not outstanding is forged or late
        let iss = conn.watch.iss.unwrap_or(quoted);
        let offset = u64::from(quoted.wrapping_sub(iss));
        let is_outstanding = offset >= conn.endpoint.connection().snd_una() && offset < conn.watch.sent_edge.max(1);
        let is_opening = conn.state() == State::SynSent;
        if !is_outstanding || !is_opening {
            return;
        }
        if let Some(errno) = errno {
            (conn.is_dropped, conn.timer) = (true, None);
            if let Some(socket) = self.sockets.get_mut(&id) {
                socket.error = Some(errno);
            }
        }
    }

    // ---- connections ----

    /// The settings of a connection. The peer's MSS is known to a listener.
    fn config(&self, options: &Options, peer_mss: Option<u16>, timestamps: bool, is_active: bool) -> TcpConfig {
        let mut config = self.settings.config;
        config.mss = self.settings.offered_mss().min(options.mss.unwrap_or(u16::MAX));
        // The forms of it that Linux and FreeBSD have are done here.
        config.nagle = config.nagle && !options.no_delay && self.settings.profile == Profile::Rfc;
        let retries = self.settings.syn_retries;
        if self.settings.profile == Profile::Linux {
            config.rto.max_retries = options.syn_count.unwrap_or(if is_active { retries.0 } else { 15 });
        }
        if let Some(buffer) = options.receive_buffer {
            config.receive_buffer = buffer;
        }
        let least = if self.settings.version == IpVersion::V6 { 1220 } else { 536 };
        let mut mss = config.mss.min(peer_mss.unwrap_or(if is_active { u16::MAX } else { least })).max(1);
        if config.timestamps && timestamps && !is_active {
            mss = mss.saturating_sub(12).max(1);
        }
        if self.settings.profile != Profile::Rfc {
            //= RFC 6928 §2: "min (10*MSS, max (2*MSS, 14600))"
            let segments = (14_600 / u32::from(mss)).clamp(2, 10);
            config.variant.initial_window = config.variant.initial_window.min(segments);
        }
        if self.settings.profile == Profile::FreeBsd && is_active {
            // The buffer is rounded up to whole segments once the MSS is known; a listener's is not before accept(), when
            // the engine has settled it.
            config.receive_buffer = config.receive_buffer.div_ceil(u32::from(mss)) * u32::from(mss);
        }
        config
    }

    fn open(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        peer: Peer,
        config: TcpConfig,
        options: &Options,
    ) -> SocketId {
        let mut watch = Watch::default();
        let mut cx = Context { now: self.now, who: Who(0), probe: &mut watch };
        let is_active = matches!(peer, Peer::Connect(_));
        let buffer = options.send_buffer.unwrap_or(self.settings.send_buffer);
        let endpoint = Endpoint::open(&mut cx, config, local, peer, buffer);
        let conn = Conn {
            endpoint,
            watch,
            timer: None,
            remote,
            is_active,
            written: 0,
            held: 0,
            more: false,
            small_end: 0,
            hold_until: None,
            taken: 0,
            is_told: false,
            is_dropped: false,
            progress: (0, 0),
            give_up: (is_active && self.settings.profile == Profile::FreeBsd)
                .then(|| self.now + Duration::from_secs(options.keep[0].into())),
            was_connected: false,
            is_connect_told: false,
        };
        self.add(Socket {
            role: Role::Connection(Box::new(conn)),
            local: Some(local),
            is_nonblocking: false,
            is_open: false,
            error: None,
            shut: (false, false),
            options: options.clone(),
            parent: None,
        })
    }

    /// Takes a socket away, and from its listener's queue.
    fn forget(&mut self, id: SocketId) {
        self.sockets.remove(&id);
        for socket in self.sockets.values_mut() {
            if let Role::Listener { children, .. } = &mut socket.role {
                children.retain(|child| *child != id);
            }
        }
    }

    /// Sends what a connection wants to send, and notes how it ended.
    fn poll(&mut self, id: SocketId) {
        let now = self.now;
        let mtu = self.settings.mtu as usize;
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let options = socket.options.clone();
        let Role::Connection(conn) = &mut socket.role else { return };
        if conn.is_dropped {
            return;
        }
        for round in 0.. {
            if round == LIVELOCK {
                self.faults.push("a connection sends without end at one instant".into());
                return;
            }
            let mut cx = Context { now, who: Who(0), probe: &mut conn.watch };
            match conn.endpoint.poll(&mut cx, &mut self.buffer) {
                Ok(Step::Wait(timer)) => {
                    if timer.is_some_and(|at| at <= now) {
                        self.faults.push("a connection waits for an instant that has passed".into());
                        return;
                    }
                    conn.timer = timer;
                    break;
                }
                Ok(Step::Do(length)) => {
                    let mut packet = self.buffer[..length].to_vec();
                    if length > mtu {
                        self.faults.push(format!("a packet of {length} bytes leaves, and the MTU is {mtu}"));
                    }
                    if (options.tos, options.ttl) != (0, TTL) {
                        set_service(&mut packet, options.tos, options.ttl);
                    }
                    if let Some(seen) = Seen::parse(&packet) {
                        if seen.has(flag::SYN) {
                            conn.watch.iss = Some(seen.seq);
                        }
                        if let Some(fault) = wrong_byte(&seen, conn.watch.iss) {
                            self.faults.push(fault);
                        }
                    }
                    self.sent.push_back((now, packet));
                }
                Err(error) => {
                    self.faults.push(format!("a packet cannot be written: {error}"));
                    return;
                }
            }
        }
        conn.was_connected |= conn.endpoint.is_connected();
        let outcome = conn.endpoint.outcome();
        if outcome.is_some() && !std::mem::replace(&mut conn.is_told, true) {
            (conn.timer, conn.hold_until) = (None, None);
            let errno = conn.abort_errno();
            let had_ended = conn.endpoint.peer_has_closed();
            // Linux: a reset after the peer's FIN is a broken pipe.
            let is_linux = self.settings.profile == Profile::Linux;
            socket.error = match errno {
                Some("ECONNRESET") if had_ended && is_linux => Some("EPIPE"),
                // A connection that was refused before anybody accepted it is gone.
                errno => errno,
            };
        }
        let is_over = outcome.is_some();
        let (is_open, has_parent, was_connected) = (socket.is_open, socket.parent.is_some(), conn.was_connected);
        // Code may ask how it ended.
        let is_kept = self.settings.profile == Profile::Rfc;
        if is_over && !is_open && !is_kept && (!has_parent || !was_connected) {
            self.forget(id);
        }
    }

    /// Hands over what was held back, if it may leave: full segments, or all of it.
    fn flush(&mut self, id: SocketId, all: bool) {
        let now = self.now;
        let profile = self.settings.profile;
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let options = &socket.options;
        let Role::Connection(conn) = &mut socket.role else { return };
        if conn.held == 0 {
            return;
        }
        let mss = u64::from(conn.watch.mss.unwrap_or(conn.endpoint.connection().config().mss)).max(1);
        let is_due = conn.hold_until.is_some_and(|at| at <= now);
        let nagle_holds = !options.no_delay
            && match profile {
                // Minshall's form of Nagle's algorithm: one small segment at a time is on its way.
                Profile::Linux => conn.small_end > conn.endpoint.acknowledged(),
                // BSD's: a write that finds nothing outstanding leaves whole.
                Profile::FreeBsd => conn.endpoint.unacknowledged() > 0,
                // The engine's own.
                Profile::Rfc => false,
            };
        let is_corked = (options.cork || conn.more) && !is_due;
        let tail_may_go = all || is_due || !is_corked && !nagle_holds;
        let count = if tail_may_go { conn.held } else { conn.held / mss * mss };
        if count > 0 {
            let bytes: Vec<u8> = (conn.written..conn.written + count).map(pattern).collect();
            let mut cx = Context { now, who: Who(0), probe: &mut conn.watch };
            let taken = conn.endpoint.write(&mut cx, &bytes).unwrap_or(0) as u64;
            conn.written += taken;
            conn.held -= taken;
            if count % mss != 0 {
                conn.small_end = conn.written;
            }
        }
        let is_held_by_cork = conn.held > 0 && (options.cork || conn.more);
        conn.hold_until = match conn.hold_until {
            Some(at) if at > now && is_held_by_cork => Some(at),
            _ => is_held_by_cork.then_some(now + CORK),
        };
    }
}

/// What is wrong with the bytes of a segment of ours.
fn wrong_byte(seen: &Seen, iss: Option<u32>) -> Option<String> {
    let start = u64::from(seen.seq.wrapping_sub(iss?.wrapping_add(1)));
    let wrong = seen.payload.iter().zip(start..).position(|(byte, at)| *byte != pattern(at))?;
    Some(format!("byte {} of our stream is another than was written", start + wrong as u64))
}
