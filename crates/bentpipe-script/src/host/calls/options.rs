//! Socket options and queries.

use crate::host::socket::{Errno, Reply, Role, SocketId};
use crate::host::{Host, Profile, linux};

impl Host {
    /// fcntl(F_SETFL).
    pub fn set_nonblocking(&mut self, id: SocketId, is_nonblocking: bool) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.is_nonblocking = is_nonblocking;
        }
    }

    /// Whether O_NONBLOCK is set.
    pub(crate) fn is_nonblocking(&self, id: SocketId) -> bool {
        self.socket(id).is_some_and(|socket| socket.is_nonblocking)
    }

    /// Bytes that are readable, sent but not acknowledged, and not sent.
    pub fn queued(&self, id: SocketId) -> Result<(u64, u64, u64), Errno> {
        let socket = self.socket(id).ok_or("EBADF")?;
        match &socket.role {
            Role::Listener { .. } => Err("EINVAL"),
            Role::Idle => Ok((0, 0, 0)),
            Role::Connection(conn) => {
                let unacknowledged = conn.endpoint.unacknowledged() + conn.held;
                let sent = conn.watch.sent_edge.saturating_sub(1).min(conn.written);
                Ok((conn.endpoint.readable(), unacknowledged, conn.written + conn.held - sent))
            }
        }
    }

    /// setsockopt() with a number. `None` if the option is unsupported.
    pub(crate) fn set_option(&mut self, id: SocketId, name: &str, value: i64) -> Option<Reply> {
        let is_linux = self.settings.profile == Profile::Linux;
        let is_connected = self.conn(id).is_some();
        let socket = self.sockets.get_mut(&id)?;
        let options = &mut socket.options;
        match name {
            "SO_REUSEADDR" | "SO_REUSEPORT" => options.reuse = value != 0,
            "TCP_NODELAY" => {
                options.no_delay = value != 0;
                if self.settings.profile != Profile::Rfc {
                    // It sends the corked data, once.
                    self.flush(id, value != 0 && is_linux);
                    self.poll(id);
                } else if is_connected {
                    // The engine fixes it when a connection is opened.
                    return None;
                }
            }
            "TCP_CORK" | "TCP_NOPUSH" => {
                options.cork = value != 0;
                if value == 0 {
                    self.flush(id, is_linux);
                    self.poll(id);
                }
            }
            "TCP_MAXSEG" => {
                // Linux accepts 88 to 32767, and 0 for none; elsewhere it must not exceed the default.
                if value != 0 && is_linux && !(88..=32_767).contains(&value) {
                    return Some(Reply::Error("EINVAL"));
                }
                options.mss = (value != 0).then_some(value.clamp(1, 65_535) as u16);
            }
            // Linux doubles the value, for its own bookkeeping.
            "SO_SNDBUF" => {
                let bytes = if is_linux { value.saturating_mul(2).max(4608) } else { value.max(1) };
                options.send_buffer = Some(bytes.clamp(1, 1 << 22) as usize);
            }
            "SO_RCVBUF" => {
                let bytes = if is_linux { value.saturating_mul(2).max(2304) } else { value.max(1) };
                options.receive_buffer = Some(bytes.clamp(1, 1 << 22) as u32);
            }
            "IP_TOS" | "IPV6_TCLASS" => options.tos = value as u8,
            "IP_TTL" | "IPV6_UNICAST_HOPS" => options.ttl = value as u8,
            "TCP_KEEPINIT" => options.keep[0] = value as u32,
            "TCP_KEEPIDLE" => options.keep[1] = value as u32,
            "TCP_KEEPINTVL" => options.keep[2] = value as u32,
            "TCP_KEEPCNT" => options.keep[3] = value as u32,
            "TCP_SYNCNT" => options.syn_count = Some(value as u32),
            "TCP_NOTSENT_LOWAT" => options.notsent_lowat = Some(value as u64),
            "SO_LINGER" => options.linger_zero = value == 0,
            // Scripts that ask for it are refused before they run.
            "IP_MTU_DISCOVER" => {}
            _ => return None,
        }
        Some(Reply::Value(0))
    }

    /// setsockopt(TCP_CONGESTION). `None` if the control is unknown, or the connection is open with another one.
    pub(crate) fn set_congestion(&mut self, id: SocketId, name: &str) -> Option<Reply> {
        // Only Linux's are known.
        if self.settings.profile == Profile::Linux {
            let row = linux::row(name)?;
            let kernel = self.settings.kernel;
            let is_connected = self.conn(id).is_some();
            let options = &mut self.sockets.get_mut(&id)?.options;
            if is_connected && kernel.control(options.control) != row {
                return None;
            }
            options.control = Some(row);
        }
        Some(Reply::Value(0))
    }

    /// getsockopt(): the number, or the error of SO_ERROR. `None` if the option is unsupported.
    pub fn option(&mut self, id: SocketId, name: &str) -> Option<Result<i64, Errno>> {
        let settings = self.settings.clone();
        let is_linux = settings.profile == Profile::Linux;
        let socket = self.sockets.get_mut(&id)?;
        let options = &socket.options;
        let conn = match &socket.role {
            Role::Connection(conn) => Some(conn),
            _ => None,
        };
        Some(Ok(match name {
            "SO_ERROR" => return Some(socket.error.take().map_or(Ok(0), Err)),
            "SO_RCVBUF" => match conn {
                // Until the handshake is done, the peer's MSS is unknown and the buffer is not rounded.
                Some(conn) if conn.watch.mss.is_some() => {
                    let buffer = conn.endpoint.connection().config().receive_buffer;
                    let mss = u32::from(conn.watch.mss.unwrap_or(1)) + if conn.watch.options.0 { 12 } else { 0 };
                    let whole = buffer.div_ceil(mss) * mss;
                    i64::from(if is_linux { options.receive_buffer.unwrap_or(buffer) } else { whole })
                }
                _ => options.receive_buffer.unwrap_or(settings.config.receive_buffer).into(),
            },
            "SO_SNDBUF" => options.send_buffer.unwrap_or(settings.send_buffer) as i64,
            "TCP_NODELAY" => options.no_delay.into(),
            "TCP_CORK" | "TCP_NOPUSH" => options.cork.into(),
            "TCP_MAXSEG" => match conn.filter(|conn| conn.was_connected) {
                Some(conn) => {
                    let mss = conn.watch.mss.unwrap_or(conn.endpoint.connection().config().mss);
                    // Linux subtracts the timestamps, FreeBSD does not.
                    i64::from(mss) + if conn.watch.options.0 && !is_linux { 12 } else { 0 }
                }
                None => {
                    if let (true, Some(mss)) = (settings.tells_own_mss, options.mss) {
                        i64::from(mss)
                    } else if settings.version == crate::host::IpVersion::V6 && !is_linux {
                        1220
                    } else {
                        536
                    }
                }
            },
            "TCP_KEEPINIT" => options.keep[0].into(),
            "TCP_KEEPIDLE" => options.keep[1].into(),
            "TCP_KEEPINTVL" => options.keep[2].into(),
            "TCP_KEEPCNT" => options.keep[3].into(),
            "IP_TOS" | "IPV6_TCLASS" => options.tos.into(),
            "IP_TTL" | "IPV6_UNICAST_HOPS" => options.ttl.into(),
            "TCP_NOTSENT_LOWAT" => options.notsent_lowat.unwrap_or(0) as i64,
            _ => return None,
        }))
    }
}
