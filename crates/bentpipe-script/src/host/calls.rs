//! The socket calls, one attempt each. A call that would wait returns [`Reply::Blocks`] and is retried after the next
//! event.

mod options;

use std::net::SocketAddr;

use bentpipe_engine::Context;
use bentpipe_engine::probe::Who;
use bentpipe_engine::tcp::State;
use bentpipe_io::Peer;

use super::socket::{Options, Reply, Role, Socket, SocketId};
use super::{Host, MAX_SOCKETS, Profile, TTL};

/// First ephemeral port (RFC 6335 §6).
const EPHEMERAL: u16 = 49_152;

/// Flags of a read or write call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// MSG_PEEK.
    pub peek: bool,
    /// MSG_DONTWAIT.
    pub dont_wait: bool,
    /// MSG_MORE.
    pub more: bool,
    /// MSG_TRUNC: the bytes are dropped, not copied.
    pub truncate: bool,
    /// MSG_WAITALL.
    pub wait_all: bool,
}

/// The directions that shutdown() ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shut {
    /// SHUT_RD.
    Read,
    /// SHUT_WR.
    Write,
    /// SHUT_RDWR.
    Both,
}

impl Host {
    /// socket(); `None` if there are too many.
    pub fn create(&mut self, is_nonblocking: bool) -> Option<SocketId> {
        if self.sockets.len() >= MAX_SOCKETS {
            return None;
        }
        let options = Options {
            mss: None,
            control: None,
            no_delay: false,
            cork: false,
            send_buffer: None,
            receive_buffer: None,
            linger_zero: false,
            tos: 0,
            ttl: TTL,
            keep: self.settings.keep,
            notsent_lowat: None,
            syn_count: None,
            reuse: false,
        };
        Some(self.add(Socket {
            role: Role::Idle,
            local: None,
            is_nonblocking,
            is_open: true,
            error: None,
            shut: (false, false),
            options,
            parent: None,
        }))
    }

    /// bind().
    pub fn bind(&mut self, id: SocketId, local: SocketAddr) -> Reply {
        let is_taken = self.sockets.iter().any(|(other, socket)| {
            let is_listening = matches!(socket.role, Role::Listener { .. });
            *other != id && is_listening && socket.local.is_some_and(|at| at.port() == local.port())
        });
        let Some(socket) = self.sockets.get_mut(&id) else { return Reply::Error("EBADF") };
        if socket.local.is_some() {
            return Reply::Error("EINVAL");
        }
        if is_taken {
            return Reply::Error("EADDRINUSE");
        }
        socket.local = Some(local);
        Reply::Value(0)
    }

    /// listen().
    pub fn listen(&mut self, id: SocketId, length: i64) -> Reply {
        let is_linux = self.settings.profile == Profile::Linux;
        let Some(socket) = self.sockets.get_mut(&id) else { return Reply::Error("EBADF") };
        // The smallest queue has room for one connection; FreeBSD adds a half.
        let length = length.clamp(0, 4096) as usize;
        let length = if is_linux { length } else { length.max(1) * 3 / 2 };
        match &mut socket.role {
            Role::Idle => socket.role = Role::Listener { backlog: length, children: Vec::new(), connected: 0 },
            Role::Listener { backlog, .. } => *backlog = length,
            Role::Connection(_) => return Reply::Error("EINVAL"),
        }
        Reply::Value(0)
    }

    /// accept(): the new socket, once a connection is there.
    pub fn accept(&mut self, id: SocketId) -> (Reply, Option<SocketId>) {
        let Some(socket) = self.sockets.get(&id) else { return (Reply::Error("EBADF"), None) };
        let is_nonblocking = socket.is_nonblocking;
        let Role::Listener { children, .. } = &socket.role else { return (Reply::Error("EINVAL"), None) };
        // After RFC 9293's passive OPEN, a connection can be written to and closed before its handshake is done.
        let early = self.settings.profile == Profile::Rfc;
        let is_ready = |child: &SocketId| self.conn(*child).is_some_and(|conn| conn.was_connected || early);
        let ready = children.iter().copied().find(is_ready);
        let Some(child) = ready else {
            return (if is_nonblocking { Reply::Error("EAGAIN") } else { Reply::Blocks }, None);
        };
        if let Some(Role::Listener { children, .. }) = self.sockets.get_mut(&id).map(|socket| &mut socket.role) {
            children.retain(|other| *other != child);
        }
        if let Some(socket) = self.sockets.get_mut(&child) {
            (socket.parent, socket.is_open) = (None, true);
        }
        (Reply::Value(0), Some(child))
    }

    /// connect(), first call or a repeated one.
    pub fn connect(&mut self, id: SocketId, here: SocketAddr, there: SocketAddr) -> Reply {
        let is_linux = self.settings.profile == Profile::Linux;
        let Some(socket) = self.sockets.get_mut(&id) else { return Reply::Error("EBADF") };
        let is_nonblocking = socket.is_nonblocking;
        match &mut socket.role {
            Role::Listener { .. } => Reply::Error(if is_linux { "EISCONN" } else { "EOPNOTSUPP" }),
            Role::Idle => {
                if let Some(errno) = socket.error.take() {
                    return Reply::Error(errno);
                }
                let (options, local) = (socket.options.clone(), socket.local);
                let port = EPHEMERAL + (self.next % 10_000) as u16;
                let local = local.unwrap_or_else(|| SocketAddr::new(here.ip(), port));
                let local = SocketAddr::new(here.ip(), if local.port() == 0 { port } else { local.port() });
                if self.find(local, there).is_some() {
                    return Reply::Error("EADDRNOTAVAIL");
                }
                let config = self.config(&options, None, true, true);
                let fresh = self.open(local, there, Peer::Connect(there), config, &options);
                // The descriptor's socket becomes the connection.
                if let Some(fresh) = self.sockets.remove(&fresh)
                    && let Some(socket) = self.sockets.get_mut(&id)
                {
                    (socket.role, socket.local) = (fresh.role, fresh.local);
                }
                self.poll(id);
                if is_nonblocking { Reply::Error("EINPROGRESS") } else { Reply::Blocks }
            }
            Role::Connection(conn) => {
                if let Some(errno) = socket.error.take() {
                    return Reply::Error(errno);
                }
                if conn.was_connected {
                    // Linux reports success once.
                    let is_told = std::mem::replace(&mut conn.is_connect_told, true);
                    return if conn.is_active && !is_told { Reply::Value(0) } else { Reply::Error("EISCONN") };
                }
                if !conn.is_alive() {
                    return Reply::Error("ECONNABORTED");
                }
                if is_nonblocking { Reply::Error("EALREADY") } else { Reply::Blocks }
            }
        }
    }

    /// The result of a blocking connect(), if it has finished.
    pub fn connected(&mut self, id: SocketId) -> Reply {
        let Some(socket) = self.sockets.get_mut(&id) else { return Reply::Error("EBADF") };
        if let Some(errno) = socket.error.take() {
            return Reply::Error(errno);
        }
        match &mut socket.role {
            Role::Connection(conn) if conn.was_connected => {
                conn.is_connect_told = true;
                Reply::Value(0)
            }
            Role::Connection(conn) if conn.is_alive() => Reply::Blocks,
            _ => Reply::Error("ECONNABORTED"),
        }
    }

    /// read() and its variants. The data is compared with `sent`, which returns the byte at an offset of the peer's
    /// stream.
    pub fn read(&mut self, id: SocketId, length: u64, flags: Flags, sent: impl Fn(u64) -> u8) -> Reply {
        let now = self.now;
        let Some(socket) = self.sockets.get_mut(&id) else { return Reply::Error("EBADF") };
        let is_nonblocking = socket.is_nonblocking || flags.dont_wait;
        let is_shut = socket.shut.0;
        let error = &mut socket.error;
        let Role::Connection(conn) = &mut socket.role else { return Reply::Error("ENOTCONN") };
        let count = conn.endpoint.readable().min(length);
        if flags.wait_all && count < length && !conn.endpoint.peer_has_closed() && conn.is_alive() && error.is_none() {
            return if is_nonblocking { Reply::Error("EAGAIN") } else { Reply::Blocks };
        }
        if count == 0 {
            if let Some(errno) = error.take() {
                return Reply::Error(errno);
            }
            if is_shut || conn.endpoint.peer_has_closed() || !conn.is_alive() || length == 0 {
                return Reply::Value(0);
            }
            if !conn.was_connected && conn.state() == State::SynSent && !is_nonblocking {
                return Reply::Blocks;
            }
            return if is_nonblocking { Reply::Error("EAGAIN") } else { Reply::Blocks };
        }
        if flags.peek {
            return Reply::Value(count as i64);
        }
        let mut bytes = vec![0; count as usize];
        let mut cx = Context { now, who: Who(0), probe: &mut conn.watch };
        conn.endpoint.read(&mut cx, &mut bytes);
        let start = conn.taken;
        conn.taken += count;
        let wrong = bytes.iter().zip(start..).find(|(byte, at)| **byte != sent(*at));
        if let Some((_, at)) = wrong {
            self.faults.push(format!("byte {at} of the data read differs from the one sent"));
        }
        self.poll(id);
        Reply::Value(count as i64)
    }

    /// write() and its variants: the number of bytes accepted of `length`.
    pub fn write(&mut self, id: SocketId, length: u64, flags: Flags) -> Reply {
        let Some(socket) = self.sockets.get_mut(&id) else { return Reply::Error("EBADF") };
        let is_nonblocking = socket.is_nonblocking || flags.dont_wait;
        let is_shut = socket.shut.1;
        let error = &mut socket.error;
        let Role::Connection(conn) = &mut socket.role else {
            return Reply::Error(if matches!(socket.role, Role::Idle) { "EPIPE" } else { "ENOTCONN" });
        };
        if let Some(errno) = error.take() {
            return Reply::Error(errno);
        }
        if is_shut || !conn.is_alive() {
            return Reply::Error("EPIPE");
        }
        //= RFC 9293 §3.10.2: "Queue the data for transmission after entering ESTABLISHED state."
        if !conn.was_connected && self.settings.profile != Profile::Rfc {
            return if is_nonblocking { Reply::Error("EAGAIN") } else { Reply::Blocks };
        }
        let room = conn.endpoint.writable().saturating_sub(conn.held);
        let count = length.min(room);
        if count == 0 && length > 0 {
            conn.endpoint.wait_for_room();
            return if is_nonblocking { Reply::Error("EAGAIN") } else { Reply::Blocks };
        }
        conn.held += count;
        conn.more = flags.more;
        self.flush(id, false);
        if count < length
            && let Some(Role::Connection(conn)) = self.sockets.get_mut(&id).map(|socket| &mut socket.role)
        {
            conn.endpoint.wait_for_room();
        }
        self.poll(id);
        Reply::Value(count as i64)
    }

    /// shutdown().
    pub fn shutdown(&mut self, id: SocketId, how: Shut) -> Reply {
        let now = self.now;
        self.flush(id, true);
        let Some(socket) = self.sockets.get_mut(&id) else { return Reply::Error("EBADF") };
        let Role::Connection(conn) = &mut socket.role else { return Reply::Error("ENOTCONN") };
        if !conn.is_alive() {
            return Reply::Error("ENOTCONN");
        }
        if how != Shut::Write {
            socket.shut.0 = true;
        }
        if how != Shut::Read && !socket.shut.1 {
            socket.shut.1 = true;
            let mut cx = Context { now, who: Who(0), probe: &mut conn.watch };
            conn.endpoint.shutdown(&mut cx);
        }
        self.poll(id);
        Reply::Value(0)
    }

    /// close() of the last descriptor.
    pub fn close(&mut self, id: SocketId) -> Reply {
        let now = self.now;
        self.flush(id, true);
        let Some(socket) = self.sockets.get_mut(&id) else { return Reply::Error("EBADF") };
        socket.is_open = false;
        let linger_zero = socket.options.linger_zero;
        match &mut socket.role {
            Role::Idle => {
                self.sockets.remove(&id);
            }
            Role::Listener { children, .. } => {
                let children = std::mem::take(children);
                self.sockets.remove(&id);
                // Nobody will accept them.
                for child in children {
                    if let Some(socket) = self.sockets.get_mut(&child) {
                        socket.parent = None;
                    }
                    let is_opening = self.conn(child).is_some_and(|conn| !conn.was_connected);
                    if is_opening {
                        self.sockets.remove(&child);
                    } else {
                        self.abort(child);
                    }
                }
            }
            Role::Connection(conn) => {
                let is_over = !conn.is_alive();
                //= RFC 1122 §4.2.2.13: "If such a host issues a CLOSE call while received data is still pending in TCP
                //= [...] its TCP SHOULD send a RST to show that data was lost"
                let loses_data = conn.endpoint.readable() > 0;
                if is_over && self.settings.profile != Profile::Rfc {
                    self.sockets.remove(&id);
                } else if linger_zero || loses_data {
                    self.abort(id);
                } else {
                    let mut cx = Context { now, who: Who(0), probe: &mut conn.watch };
                    conn.endpoint.close(&mut cx);
                    self.poll(id);
                }
            }
        }
        Reply::Value(0)
    }

    fn abort(&mut self, id: SocketId) {
        let now = self.now;
        if let Some(conn) = self.conn_mut(id) {
            let mut cx = Context { now, who: Who(0), probe: &mut conn.watch };
            conn.endpoint.abort(&mut cx);
        }
        self.poll(id);
    }
}
