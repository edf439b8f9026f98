//! Handles packets from the network: for connections, for listeners, unknown ones, ICMP.

use std::net::SocketAddr;

use bentpipe_engine::Context;
use bentpipe_engine::probe::Who;
use bentpipe_engine::tcp::State;
use bentpipe_io::{Peer, Receipt};

use super::socket::{Errno, Role, Socket, SocketId};
use super::{Host, MAX_SOCKETS, Profile, TTL};
use crate::lang::ast::TcpOption;
use crate::wire::{Seen, flag};

impl Host {
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
                // The answer uses the options of a bound socket.
                let bound = self.sockets.values().find(|socket| is_here(socket) && matches!(socket.role, Role::Idle));
                let (ttl, tos) = bound.map_or((TTL, 0), |socket| (socket.options.ttl, socket.options.tos));
                self.refuse(&seen, ttl, tos);
            }
        }
    }

    pub(super) fn find(&self, local: SocketAddr, remote: SocketAddr) -> Option<SocketId> {
        let of = |socket: &Socket| match &socket.role {
            Role::Connection(conn) => conn.is_alive() && conn.remote == remote && socket.local == Some(local),
            _ => false,
        };
        self.sockets.iter().find(|(_, socket)| of(socket)).map(|(id, _)| *id)
    }

    //= RFC 9293 §3.6.1: "it MAY accept a new SYN from the remote TCP endpoint to reopen the connection directly"
    /// True if the segment opens a new connection in place of one in TIME-WAIT.
    pub(super) fn reopens(&self, id: SocketId, seen: &Seen) -> bool {
        let Some(conn) = self.conn(id).filter(|conn| conn.state() == State::TimeWait) else { return false };
        let is_opening = seen.flags & (flag::SYN | flag::ACK | flag::RST | flag::FIN) == flag::SYN;
        // As Linux, and as the RFC advises; FreeBSD's scripts expect the challenge ACK of RFC 5961.
        let is_new = conn.watch.irs.is_some_and(|irs| {
            let next = irs.wrapping_add(conn.endpoint.connection().rcv_nxt() as u32);
            seen.seq.wrapping_sub(next) as i32 > 0
        });
        self.settings.profile == Profile::Linux && is_opening && is_new
    }

    pub(super) fn receive_on(&mut self, id: SocketId, seen: &Seen, packet: &[u8]) {
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
        let mut cx = Context { now, who: Who(0), probe: &mut conn.watch };
        // Malformed packets are dropped.
        let receipt = conn.endpoint.receive(&mut cx, packet);
        let has_new = matches!(receipt, Ok(Receipt::Taken(bytes)) if bytes > 0);
        //= RFC 1122 §4.2.2.13: "if new data is received after CLOSE is called, its TCP SHOULD send a RST to show that
        //= data was lost"
        if !is_open && has_new && conn.is_alive() {
            (conn.is_dropped, conn.timer) = (true, None);
            self.refuse(seen, TTL, 0);
            self.sockets.remove(&id);
            return;
        }
        if discards && conn.endpoint.readable() > 0 {
            // FreeBSD: data after SHUT_RD is acknowledged and dropped.
            let mut bytes = vec![0; conn.endpoint.readable() as usize];
            let mut cx = Context { now, who: Who(0), probe: &mut conn.watch };
            conn.taken += conn.endpoint.read(&mut cx, &mut bytes) as u64;
        }
        let (acknowledged, duplicates) =
            (conn.endpoint.acknowledged(), conn.endpoint.connection().stats().duplicate_acks);
        if acknowledged != conn.progress.0 {
            conn.progress = (acknowledged, duplicates);
            // MSG_MORE holds data until the next acknowledgement, a cork longer.
            conn.more = false;
        }
        self.poll(id);
        self.flush(id, false);
        self.poll(id);
        // A reset has ended the handshake, or a segment opened nothing: the listener answers what follows.
        let is_child = self.sockets.get(&id).is_some_and(|socket| socket.parent.is_some());
        if is_child && self.conn(id).is_some_and(|conn| conn.state() == State::Listen) {
            self.forget(id);
        }
    }

    pub(super) fn receive_listening(
        &mut self,
        id: SocketId,
        local: SocketAddr,
        remote: SocketAddr,
        seen: &Seen,
        packet: &[u8],
    ) {
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
        let Role::Listener { backlog, children, .. } = &self.sockets[&id].role else { return };
        if children.len() > *backlog || self.sockets.len() >= MAX_SOCKETS {
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
            // Before accept() the window is at most what the header can hold.
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
    }

    //= RFC 9293 §3.10.7.1: "An incoming segment not containing a RST causes a RST to be sent in response"
    pub(super) fn refuse(&mut self, seen: &Seen, ttl: u8, tos: u8) {
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

    /// Handles an ICMP error about a segment of the connection between these ends, with this sequence number.
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
}
