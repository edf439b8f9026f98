//! What passes between an end and its driver, and what an end counts.

use core::ops::AddAssign;

use crate::wire::mux::{Message, Reason, Route, StreamId};

/// An input from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The user of a stream has more bytes for the peer.
    Write {
        /// The stream.
        stream: StreamId,
        /// Their count.
        bytes: u64,
    },
    /// The user of a stream has no more bytes.
    Finish {
        /// The stream.
        stream: StreamId,
    },
    /// The user of a stream has taken bytes of the peer's.
    Taken {
        /// The stream.
        stream: StreamId,
        /// Their count.
        bytes: u64,
    },
    /// Resets a stream in both directions. No more outputs follow for it.
    Reset {
        /// The stream.
        stream: StreamId,
        /// Why.
        reason: Reason,
    },
    /// A message from the carrier.
    Message(Message),
    /// The carrier now has room for this many messages.
    Room(u32),
    /// New streams of the peer are refused from now on.
    Drain,
}

/// A request to the driver, or news for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this message with its bytes. They are not needed again.
    Send(Message),
    /// The peer opened a stream: connect it. Its bytes follow, and may be taken at any time.
    Opened {
        /// The stream.
        stream: StreamId,
        /// Whose connection it is.
        route: Route,
    },
    /// The payload of the last message is the stream's next bytes: keep them for its user.
    Received {
        /// The stream.
        stream: StreamId,
        /// Their count.
        len: u32,
    },
    /// The peer has sent all its bytes.
    Ended {
        /// The stream.
        stream: StreamId,
    },
    /// The stream is closed: both directions ended, and the user has taken everything.
    Closed {
        /// The stream.
        stream: StreamId,
    },
    /// The stream was reset by the peer, or for lack of memory. Bytes not taken are void.
    Reset {
        /// The stream.
        stream: StreamId,
        /// Why.
        reason: Reason,
    },
}

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MuxStats {
    /// Streams opened here.
    pub opened: u64,
    /// Streams opened by the peer.
    pub accepted: u64,
    /// Streams that ended in both directions.
    pub closed: u64,
    /// Streams reset by the peer.
    pub reset_by_peer: u64,
    /// Streams reset here, including those refused because too many were open.
    pub reset_here: u64,
    /// Streams reset for lack of memory, counted above as well.
    pub out_of_memory: u64,
    /// Messages for streams that are closed or unknown; after a reset some are still under way.
    pub stray: u64,
    /// Stream bytes sent.
    pub bytes_sent: u64,
    /// Stream bytes received.
    pub bytes_received: u64,
}

impl AddAssign for MuxStats {
    fn add_assign(&mut self, more: MuxStats) {
        self.opened += more.opened;
        self.accepted += more.accepted;
        self.closed += more.closed;
        self.reset_by_peer += more.reset_by_peer;
        self.reset_here += more.reset_here;
        self.out_of_memory += more.out_of_memory;
        self.stray += more.stray;
        self.bytes_sent += more.bytes_sent;
        self.bytes_received += more.bytes_received;
    }
}
