//! The engine's connections in a host: their settings, what they send, and what is held back.

use std::net::SocketAddr;

use bentpipe_engine::probe::Who;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::units::Duration;
use bentpipe_engine::wire::ecn::Ecn;
use bentpipe_engine::{Context, Step};
use bentpipe_io::{Endpoint, Peer};

use super::socket::{Conn, Options, Role, Socket, SocketId, Watch};
use super::{CORK, Host, IpVersion, LIVELOCK, Profile, TTL, pattern};
use crate::wire::{Seen, flag, set_service};

impl Host {
    /// The settings of a connection. A listener knows the peer's MSS.
    pub(super) fn config(
        &self,
        options: &Options,
        peer_mss: Option<u16>,
        timestamps: bool,
        is_active: bool,
    ) -> TcpConfig {
        let mut config = self.settings.config;
        config.mss = self.settings.offered_mss().min(options.mss.unwrap_or(u16::MAX));
        // Linux's and FreeBSD's forms of it are implemented here.
        config.nagle = config.nagle && !options.no_delay && self.settings.profile == Profile::Rfc;
        let retries = self.settings.syn_retries;
        if self.settings.profile == Profile::Linux {
            let kernel = &self.settings.kernel;
            config.variant = kernel.sender(kernel.control(options.control), &config.variant);
            let syn = options.syn_count.unwrap_or(retries.0);
            config.rto.max_syn_retries = Some(u8::try_from(syn).unwrap_or(u8::MAX));
            // Each connection to a listener is one of its own.
            config.rto.max_syn_ack_retries = None;
            if let (Some(ecn), true) = (self.settings.connect_ecn, is_active) {
                config.ecn = ecn;
            }
        }
        if let Some(buffer) = options.receive_buffer {
            // Linux keeps half of it for its own bookkeeping.
            config.receive_buffer = if self.settings.profile == Profile::Linux { buffer / 2 } else { buffer };
        }
        let min = if self.settings.version == IpVersion::V6 { 1220 } else { 536 };
        let mut mss = config.mss.min(peer_mss.unwrap_or(if is_active { u16::MAX } else { min })).max(1);
        if config.timestamps && timestamps && !is_active {
            mss = mss.saturating_sub(12).max(1);
        }
        if self.settings.profile != Profile::Rfc {
            //= RFC 6928 §2: "min (10*MSS, max (2*MSS, 14600))"
            let segments = (14_600 / u32::from(mss)).clamp(2, 10);
            config.variant.initial_window = config.variant.initial_window.min(segments);
        }
        if self.settings.profile == Profile::FreeBsd && is_active {
            // The buffer is rounded up to whole segments once the MSS is known; a listener's only at accept(), when the
            // engine has fixed the MSS.
            config.receive_buffer = config.receive_buffer.div_ceil(u32::from(mss)) * u32::from(mss);
        }
        config
    }

    pub(super) fn open(
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

    /// Removes a socket, also from its listener's queue.
    pub(super) fn forget(&mut self, id: SocketId) {
        self.sockets.remove(&id);
        for socket in self.sockets.values_mut() {
            if let Role::Listener { children, .. } = &mut socket.role {
                children.retain(|child| *child != id);
            }
        }
    }

    /// Sends a connection's pending packets, and records how it ended.
    pub(super) fn poll(&mut self, id: SocketId) {
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
                        self.faults.push("a connection waits for a time that has passed".into());
                        return;
                    }
                    conn.timer = timer;
                    break;
                }
                Ok(Step::Do(length)) => {
                    let mut packet = self.buffer[..length].to_vec();
                    if length > mtu {
                        self.faults.push(format!("a packet of {length} bytes is sent, but the MTU is {mtu}"));
                    }
                    if (options.tos, options.ttl) != (0, TTL) {
                        // The two bits of ECN are the connection's.
                        let service = options.tos & 0xfc | Ecn::of(&packet).bits();
                        set_service(&mut packet, service, options.ttl);
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
        let connects = conn.endpoint.is_connected() && !std::mem::replace(&mut conn.was_connected, true);
        let outcome = conn.endpoint.outcome();
        if outcome.is_some() && !std::mem::replace(&mut conn.is_told, true) {
            (conn.timer, conn.hold_until) = (None, None);
            let errno = conn.abort_errno();
            let had_ended = conn.endpoint.peer_has_closed();
            // Linux: a reset after the peer's FIN is a broken pipe.
            let is_linux = self.settings.profile == Profile::Linux;
            socket.error = match errno {
                Some("ECONNRESET") if had_ended && is_linux => Some("EPIPE"),
                // A connection that was refused before accept() is gone.
                errno => errno,
            };
        }
        let is_over = outcome.is_some();
        let (is_open, parent, was_connected) = (socket.is_open, socket.parent, conn.was_connected);
        // Code may query how it ended.
        let is_kept = self.settings.profile == Profile::Rfc;
        if is_over && !is_open && !is_kept && (parent.is_none() || !was_connected) {
            self.forget(id);
        }
        let listener = parent.filter(|_| connects).and_then(|parent| self.sockets.get_mut(&parent));
        if let Some(Role::Listener { connected, .. }) = listener.map(|listener| &mut listener.role) {
            *connected += 1;
        }
    }

    /// Passes on the data held back, if it may leave: full segments, or all of it.
    pub(super) fn flush(&mut self, id: SocketId, all: bool) {
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
                // Minshall's form of Nagle's algorithm: at most one small segment in flight.
                Profile::Linux => conn.small_end > conn.endpoint.acknowledged(),
                // BSD's form: a write with nothing outstanding is sent completely.
                Profile::FreeBsd => conn.endpoint.unacknowledged() > 0,
                // The engine's form.
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

/// The error in the bytes of one of our segments, if any.
fn wrong_byte(seen: &Seen, iss: Option<u32>) -> Option<String> {
    let start = u64::from(seen.seq.wrapping_sub(iss?.wrapping_add(1)));
    let wrong = seen.payload.iter().zip(start..).position(|(byte, at)| *byte != pattern(at))?;
    Some(format!("byte {} of our stream differs from the one written", start + wrong as u64))
}
