//! Sockets.

use std::net::SocketAddr;

use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::tcp::{Abort, Flags, Segment, State};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::Endpoint;

/// The name of an error, as in `errno.h`.
pub type Errno = &'static str;

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Success.
    Value(i64),
    /// -1 and this error.
    Error(Errno),
    /// No result yet.
    Blocks,
}

/// The number of a socket, independent of its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub(super) u32);

/// The current role of a socket.
#[derive(Debug)]
pub(super) enum Role {
    /// Neither connected nor listening.
    Idle,
    /// Listens. Children wait in order. `connected` is the number of those that ever were.
    Listener { backlog: usize, children: Vec<SocketId>, connected: u64 },
    /// A connection.
    Connection(Box<Conn>),
}

/// A connection of the engine, with the kernel's state for it.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) endpoint: Endpoint,
    pub(super) watch: Watch,
    pub(super) timer: Option<Time>,
    pub(super) remote: SocketAddr,
    pub(super) is_active: bool,
    /// Bytes written by the user and passed to the endpoint, and bytes held back.
    pub(super) written: u64,
    pub(super) held: u64,
    /// The last write said that more follows.
    pub(super) more: bool,
    /// End of the last small segment.
    pub(super) small_end: u64,
    pub(super) hold_until: Option<Time>,
    /// Bytes read by the user.
    pub(super) taken: u64,
    /// Its end has been reported as an error.
    pub(super) is_told: bool,
    /// Acknowledged data and the duplicate ACK count when snd_una last moved.
    pub(super) progress: (u64, u64),
    /// When an opening connection is given up.
    pub(super) give_up: Option<Time>,
    /// Ended by the network or by a tool: it sends no more packets.
    pub(super) is_dropped: bool,
    /// Has been connected.
    pub(super) was_connected: bool,
    /// connect() has returned success.
    pub(super) is_connect_told: bool,
}

impl Conn {
    /// True if it still receives packets.
    pub(super) fn is_alive(&self) -> bool {
        !self.is_dropped && self.endpoint.outcome().is_none()
    }

    pub(super) fn state(&self) -> State {
        if self.is_alive() { self.endpoint.connection().state() } else { State::Closed }
    }

    pub(super) fn abort_errno(&self) -> Option<Errno> {
        let abort = self.endpoint.outcome()?.err()?;
        Some(match abort {
            Abort::Refused => "ECONNREFUSED",
            Abort::Reset => "ECONNRESET",
            Abort::RetriesExhausted => "ETIMEDOUT",
            Abort::Local => return None,
        })
    }
}

/// Events of a connection, as the engine reported them.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Congestion window with inflation, at the last ACK.
    pub window: u64,
    /// Bytes outstanding at the last ACK.
    pub flight: u64,
    /// Timeout before backoff, at the last sample.
    pub rto: Duration,
    /// Recoveries started and finished.
    pub recoveries: (u32, u32),
    /// Right edge of the sent data.
    pub sent_edge: u64,
    /// When data last arrived.
    pub last_data: Option<Time>,
    /// Max payload per segment that both SYNs allow, less timestamps.
    pub mss: Option<u16>,
    /// Timestamps, SACK and window scaling are in use.
    pub options: (bool, bool, bool),
    /// The options of our SYN and of the peer's: MSS, timestamps, SACK, window scaling.
    ours: Option<(Option<u16>, bool, bool, bool)>,
    theirs: Option<(Option<u16>, bool, bool, bool)>,
    /// Our initial sequence number, as on the wire.
    pub iss: Option<u32>,
    /// The peer's.
    pub irs: Option<u32>,
}

fn offer(segment: &Segment) -> (Option<u16>, bool, bool, bool) {
    let syn = segment.syn;
    (syn.mss, segment.timestamps.is_some(), syn.sack_permitted, syn.window_scale.is_some())
}

impl Watch {
    fn agree(&mut self) {
        let (Some(ours), Some(theirs)) = (self.ours, self.theirs) else { return };
        self.options = (ours.1 && theirs.1, ours.2 && theirs.2, ours.3 && theirs.3);
        let mss = ours.0.unwrap_or(u16::MAX).min(theirs.0.unwrap_or(536));
        self.mss = Some(mss.saturating_sub(if self.options.0 { 12 } else { 0 }).max(1));
    }
}

impl Probe for Watch {
    fn event(&mut self, now: Time, _: Who, event: &Event) {
        match event {
            Event::Window { cwnd, flight, .. } => (self.window, self.flight) = (*cwnd, *flight),
            Event::Rtt { rto, .. } => self.rto = *rto,
            Event::RecoveryEntered { .. } => self.recoveries.0 += 1,
            Event::RecoveryLeft => self.recoveries.1 += 1,
            Event::Sent { segment, .. } => {
                self.sent_edge = self.sent_edge.max(segment.end());
                if segment.flags.has(Flags::SYN) {
                    self.ours = Some(offer(segment));
                    self.agree();
                }
            }
            Event::Received { segment } => {
                if segment.len > 0 || self.last_data.is_none() {
                    self.last_data = Some(now);
                }
                if segment.flags.has(Flags::SYN) && self.theirs.is_none() {
                    self.theirs = Some(offer(segment));
                    self.agree();
                }
            }
            _ => {}
        }
    }
}

/// A socket.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) role: Role,
    pub(super) local: Option<SocketAddr>,
    pub(super) is_nonblocking: bool,
    /// Held by a descriptor.
    pub(super) is_open: bool,
    pub(super) error: Option<Errno>,
    /// SHUT_RD, SHUT_WR.
    pub(super) shut: (bool, bool),
    pub(super) options: Options,
    /// Its listener, until it is accepted.
    pub(super) parent: Option<SocketId>,
}

/// Options of a socket. Children of a listener inherit them.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) mss: Option<u16>,
    /// TCP_CONGESTION: a row of the engine's table.
    pub(super) control: Option<&'static str>,
    pub(super) no_delay: bool,
    pub(super) cork: bool,
    pub(super) send_buffer: Option<usize>,
    pub(super) receive_buffer: Option<u32>,
    pub(super) linger_zero: bool,
    pub(super) tos: u8,
    pub(super) ttl: u8,
    pub(super) keep: [u32; 4],
    pub(super) notsent_lowat: Option<u64>,
    pub(super) syn_count: Option<u32>,
    pub(super) reuse: bool,
}
