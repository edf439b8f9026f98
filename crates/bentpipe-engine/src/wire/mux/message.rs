//! A message as a value.

use core::fmt;
use core::net::SocketAddr;

/// Number of a stream. The initiating side opens the even ones, the other side the odd ones; none is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// The addresses of the connection that a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The client's address.
    pub source: SocketAddr,
    /// The address to which the client connected; of the same family.
    pub destination: SocketAddr,
}

/// Why a stream was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The host at that end reset its connection.
    Peer = 0,
    /// The destination refused the connection.
    Refused = 1,
    /// The destination, or its network, cannot be reached.
    Unreachable = 2,
    /// The destination did not answer in time.
    TimedOut = 3,
    /// The gateway at that end has no descriptors or memory left for it.
    NoResources = 4,
    /// The gateway at that end no longer accepts new streams.
    Draining = 5,
    /// The gateway's rules do not allow that destination.
    Forbidden = 6,
    /// Something was wrong with the messages of this stream.
    Protocol = 7,
    /// The gateway at the other end was restarted, or is no longer heard; never on the wire.
    LinkLost = 8,
}

impl Reason {
    /// The reasons that may occur on the wire, by their numbers.
    const WIRE: [Reason; 8] = [
        Reason::Peer,
        Reason::Refused,
        Reason::Unreachable,
        Reason::TimedOut,
        Reason::NoResources,
        Reason::Draining,
        Reason::Forbidden,
        Reason::Protocol,
    ];

    /// The reason with this number.
    pub(crate) fn from_wire(number: u8) -> Option<Reason> {
        Reason::WIRE.get(usize::from(number)).copied()
    }

    /// A single word, for counters.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Peer => "peer",
            Reason::Refused => "refused",
            Reason::Unreachable => "unreachable",
            Reason::TimedOut => "timed_out",
            Reason::NoResources => "no_resources",
            Reason::Draining => "draining",
            Reason::Forbidden => "forbidden",
            Reason::Protocol => "protocol",
            Reason::LinkLost => "link_lost",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A message; the bytes of its payload are the driver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The first message of each end.
    Hello {
        /// Bytes that the receiver of this message may send on each stream that it opens, until it is granted more.
        credit: u64,
        /// Number of streams that the receiver of this message may have open at a time.
        streams: u32,
    },
    /// A new stream, and its first bytes.
    Open {
        /// Its number.
        stream: StreamId,
        /// The addresses of its connection.
        route: Route,
        /// Bytes that the receiver of this message may send on it.
        credit: u64,
        /// Bytes of payload, from offset 0.
        len: u32,
    },
    /// Bytes of a stream.
    Data {
        /// The stream.
        stream: StreamId,
        /// Offset of the first one.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// True if no bytes follow.
        last: bool,
    },
    /// The receiver of this message may send up to this offset.
    Credit {
        /// The stream.
        stream: StreamId,
        /// The offset.
        limit: u64,
    },
    /// The stream is over in both directions, at once.
    Reset {
        /// The stream.
        stream: StreamId,
        /// Why.
        reason: Reason,
    },
}

impl Message {
    /// Bytes of its payload.
    pub fn payload(&self) -> u32 {
        match *self {
            Message::Open { len, .. } | Message::Data { len, .. } => len,
            _ => 0,
        }
    }

    /// A number that is equal for messages that must stay in order. Credit has a number of its own: only the
    /// largest limit counts, and credit may overtake data that waits for a lost packet.
    pub fn flow(&self) -> u64 {
        match *self {
            Message::Hello { .. } => u64::MAX,
            Message::Open { stream, .. } | Message::Data { stream, .. } | Message::Reset { stream, .. } => {
                stream.0.wrapping_mul(2)
            }
            Message::Credit { stream, .. } => stream.0.wrapping_mul(2).wrapping_add(1),
        }
    }
}
