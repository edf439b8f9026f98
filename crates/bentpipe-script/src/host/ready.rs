//! Readiness of sockets for poll() and epoll, and the values of TCP_INFO.

use bentpipe_engine::tcp::{Abort, EcnMode, Phase, State};
use bentpipe_engine::units::Duration;

use super::socket::{Role, SocketId};
use super::{Host, Profile};

/// Events, with Linux's numbers.
pub mod event {
    /// There is something to read.
    pub(crate) const IN: u32 = 0x001;
    /// There is room to write.
    pub(crate) const OUT: u32 = 0x004;
    /// An error is pending.
    pub(crate) const ERR: u32 = 0x008;
    /// Both directions have ended.
    pub const HUP: u32 = 0x010;
    /// The peer has ended its direction.
    pub(crate) const RDHUP: u32 = 0x2000;
}

impl Host {
    /// The events that a socket is ready for.
    pub fn ready(&self, id: SocketId) -> u32 {
        use event::{ERR, HUP, IN, OUT, RDHUP};
        let Some(socket) = self.socket(id) else { return 0 };
        let error = if socket.error.is_some() { ERR } else { 0 };
        match &socket.role {
            Role::Idle => OUT | HUP,
            Role::Listener { children, .. } => {
                let has = children.iter().any(|child| self.conn(*child).is_some_and(|conn| conn.was_connected));
                if has { IN } else { 0 }
            }
            Role::Connection(conn) => {
                let is_over = !conn.is_alive();
                let reads_end = conn.endpoint.peer_has_closed() || socket.shut.0 || is_over;
                let writes_end = socket.shut.1 || is_over;
                let mut ready = error;
                if conn.endpoint.readable() > 0 || reads_end {
                    ready |= IN;
                }
                if reads_end {
                    ready |= RDHUP;
                }
                if reads_end && writes_end {
                    ready |= HUP;
                }
                let used = conn.endpoint.unacknowledged() + conn.held;
                let has_room = 3 * conn.endpoint.writable().saturating_sub(conn.held) >= used;
                let limit = socket.options.notsent_lowat.filter(|limit| *limit > 0);
                let sent = conn.watch.sent_edge.saturating_sub(1).min(conn.written);
                let is_below = conn.written + conn.held - sent < limit.unwrap_or(self.settings.notsent_lowat);
                if writes_end || (conn.was_connected && has_room && is_below) {
                    ready |= OUT;
                }
                ready
            }
        }
    }

    /// A number that grows with the data that arrives, and with the connections of a listener: edges for epoll.
    pub fn arrivals(&self, id: SocketId) -> u64 {
        match self.socket(id).map(|socket| &socket.role) {
            Some(Role::Connection(conn)) => {
                conn.endpoint.connection().received() + u64::from(conn.endpoint.peer_has_closed())
            }
            Some(Role::Listener { connected, .. }) => *connected,
            _ => 0,
        }
    }

    /// The connection of a descriptor's socket, or else the first connection.
    pub fn value(&self, id: SocketId, name: &str) -> Option<f64> {
        let is_linux = self.settings.profile == Profile::Linux;
        if let ("tcpi_state", None) = (name, self.conn(id)) {
            let state = if self.is_listener(id) { State::Listen } else { State::Closed };
            return Some(if is_linux { linux_state(state) } else { freebsd_state(state) });
        }
        let conn = self.conn(id)?;
        let connection = conn.endpoint.connection();
        let stats = connection.stats();
        let mss = f64::from(conn.watch.mss.unwrap_or(connection.config().mss));
        let state = conn.state();
        let known = || self.settings.kernel.counts_segments().then(|| connection.outstanding());
        let disorder = stats.duplicate_acks > conn.progress.1 || connection.outstanding().sacked > 0;
        let micros = |duration: Duration| (duration.as_nanos() / 1000) as f64;
        let threshold = |bytes: u64| if bytes == u64::MAX { f64::from(0x7fff_ffffu32) } else { bytes as f64 / mss };
        let outstanding = conn.watch.sent_edge.saturating_sub(connection.snd_una());
        Some(match name {
            "tcpi_state" if is_linux => linux_state(state),
            "tcpi_state" => freebsd_state(state),
            "tcpi_snd_cwnd" if is_linux => (connection.cwnd() as f64 / mss).floor(),
            "tcpi_snd_cwnd" => connection.cwnd() as f64,
            "tcpi_snd_ssthresh" => threshold(connection.ssthresh()).floor(),
            "tcpi_snd_mss" => mss,
            "tcpi_advmss" => f64::from(connection.config().mss),
            "tcpi_unacked" => (outstanding as f64 / mss).ceil(),
            "tcpi_ca_state" => match connection.phase() {
                Phase::Loss => 4.0,
                Phase::Recovery => 3.0,
                Phase::Open => f64::from(u8::from(disorder)),
            },
            "tcpi_sacked" => known()?.sacked as f64,
            "tcpi_lost" => known()?.lost as f64,
            "tcpi_retrans" => known()?.retransmitted as f64,
            // In segments, and at least the number of duplicates that mean a loss.
            "tcpi_reordering" => {
                let least = f64::from(connection.config().variant.dup_thresh.count);
                (connection.outstanding().reordered as f64 / mss).ceil().max(least)
            }
            "tcpi_rtt" => micros(connection.srtt()?),
            "tcpi_rto" if conn.watch.rto == Duration::ZERO => micros(connection.config().rto.initial),
            "tcpi_rto" => micros(conn.watch.rto),
            "tcpi_delivered_ce" => stats.marks_told as f64,
            "tcpi_delivered_e0_bytes" => connection.bytes_told()[0] as f64,
            "tcpi_delivered_ce_bytes" => connection.bytes_told()[1] as f64,
            "tcpi_delivered_e1_bytes" => connection.bytes_told()[2] as f64,
            "tcpi_total_retrans" => stats.retransmits as f64,
            "tcpi_last_data_recv" => {
                let last = conn.watch.last_data?;
                (self.now.saturating_since(last).as_nanos() / 1_000_000) as f64
            }
            "tcpi_options" => {
                let (timestamps, sack, scale) = conn.watch.options;
                let bits = [(timestamps, 1), (sack, 2), (scale, 4), (connection.ecn() != EcnMode::Off, 8)];
                f64::from(bits.iter().filter(|(is_set, _)| *is_set).map(|(_, bit)| bit).sum::<i32>())
            }
            _ => return None,
        })
    }

    /// The names of bentpipe's own scripts: bytes, segments and milliseconds.
    pub(crate) fn own_value(&self, id: Option<SocketId>, name: &str) -> Option<f64> {
        if let Some(value) = own_constant(name) {
            return Some(value);
        }
        let Some(conn) = id.and_then(|id| self.conn(id)) else {
            // No connection exists yet.
            let state = if id.is_some_and(|id| self.is_listener(id)) { State::Listen } else { State::Closed };
            return match name {
                "state" => Some(freebsd_state(state)),
                "ended" => ended("none"),
                "connected" | "peer_closed" => Some(0.0),
                _ => None,
            };
        };
        let connection = conn.endpoint.connection();
        let stats = connection.stats();
        let whole = |value: u64| if value == u64::MAX { f64::INFINITY } else { value as f64 };
        let millis = |duration: Duration| (duration.as_nanos() / 1_000_000) as f64;
        Some(match name {
            "mss" => f64::from(connection.config().mss),
            "cwnd" => whole(connection.cwnd()),
            "ssthresh" => whole(connection.ssthresh()),
            // With the inflation of fast recovery, at the last ACK.
            "window" => whole(conn.watch.window),
            "flight" => whole(conn.watch.flight),
            "srtt" => connection.srtt().map_or(-1.0, millis),
            // Before backoff, at the last sample.
            "rto" => millis(conn.watch.rto),
            "received" => whole(connection.received()),
            "acked" => whole(connection.acknowledged()),
            "snd_una" => whole(connection.snd_una()),
            "rcv_nxt" => whole(connection.rcv_nxt()),
            "recoveries" => f64::from(conn.watch.recoveries.0),
            "recoveries_left" => f64::from(conn.watch.recoveries.1),
            "retransmits" => whole(stats.retransmits),
            "timeouts" => whole(stats.timeouts),
            "spurious_timeouts" => whole(stats.spurious_timeouts),
            "spurious_recoveries" => whole(stats.spurious_recoveries),
            "fast_retransmits" => whole(stats.fast_retransmits),
            "duplicate_acks" => whole(stats.duplicate_acks),
            "dsacks" => whole(stats.dsacks),
            "max_burst" => f64::from(stats.max_burst),
            "connected" => f64::from(u8::from(conn.was_connected)),
            "peer_closed" => f64::from(u8::from(conn.endpoint.peer_has_closed())),
            "state" => freebsd_state(connection.state()),
            "ended" => match conn.endpoint.outcome() {
                None => ended("none")?,
                Some(Ok(())) => ended("ok")?,
                Some(Err(Abort::Refused)) => ended("refused")?,
                Some(Err(Abort::Reset)) => ended("reset")?,
                Some(Err(Abort::RetriesExhausted)) => ended("retries_exhausted")?,
                Some(Err(Abort::Local)) => ended("local")?,
            },
            _ => return None,
        })
    }
}

/// Ways to end, in the language of our scripts.
fn ended(name: &str) -> Option<f64> {
    let names = ["none", "ok", "refused", "reset", "retries_exhausted", "local"];
    names.iter().position(|known| *known == name).map(|at| 100.0 + at as f64)
}

fn own_constant(name: &str) -> Option<f64> {
    if name == "infinite" {
        return Some(f64::INFINITY);
    }
    ended(name).or_else(|| constant(&format!("TCPI_{}", name.to_ascii_uppercase()), false))
}

fn linux_state(state: State) -> f64 {
    f64::from(match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    })
}

fn freebsd_state(state: State) -> f64 {
    f64::from(match state {
        State::Closed => 0,
        State::Listen => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::Established => 4,
        State::CloseWait => 5,
        State::FinWait1 => 6,
        State::Closing => 7,
        State::LastAck => 8,
        State::FinWait2 => 9,
        State::TimeWait => 10,
    })
}

/// Symbols of code, for any connection.
pub fn constant(name: &str, is_linux: bool) -> Option<f64> {
    let state = match name.strip_prefix("TCPI_").or_else(|| name.strip_prefix("TCP_")).unwrap_or_default() {
        "CLOSED" | "CLOSE" => Some(State::Closed),
        "LISTEN" => Some(State::Listen),
        "SYN_SENT" => Some(State::SynSent),
        "SYN_RECEIVED" | "SYN_RECV" => Some(State::SynReceived),
        "ESTABLISHED" => Some(State::Established),
        "CLOSE_WAIT" => Some(State::CloseWait),
        "FIN_WAIT_1" | "FIN_WAIT1" => Some(State::FinWait1),
        "CLOSING" => Some(State::Closing),
        "LAST_ACK" => Some(State::LastAck),
        "FIN_WAIT_2" | "FIN_WAIT2" => Some(State::FinWait2),
        "TIME_WAIT" => Some(State::TimeWait),
        _ => None,
    };
    if let Some(state) = state {
        return Some(if is_linux { linux_state(state) } else { freebsd_state(state) });
    }
    Some(match name {
        "TCP_INFINITE_SSTHRESH" => f64::from(0x7fff_ffffu32),
        "TCP_CA_Open" => 0.0,
        "TCP_CA_Disorder" => 1.0,
        "TCP_CA_CWR" => 2.0,
        "TCP_CA_Recovery" => 3.0,
        "TCP_CA_Loss" => 4.0,
        "TCPI_OPT_TIMESTAMPS" => 1.0,
        "TCPI_OPT_SACK" => 2.0,
        "TCPI_OPT_WSCALE" => 4.0,
        "TCPI_OPT_ECN" => 8.0,
        _ => return None,
    })
}
