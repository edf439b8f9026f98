//! What passes between an end and its driver, and what an end counts.

use core::ops::AddAssign;

use crate::wire::mux::{Message, Reason, Route, StreamId};

/// What the driver brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The user of a stream has so many more bytes for the peer.
    Write {
        /// The stream.
        stream: StreamId,
        /// How many.
        bytes: u64,
    },
    /// It has no more.
    Finish {
        /// The stream.
        stream: StreamId,
    },
    /// It has taken so many more bytes of the peer's.
    Taken {
        /// The stream.
        stream: StreamId,
        /// How many.
        bytes: u64,
    },
    /// It is over in both directions; nothing is told of it any more.
    Reset {
        /// The stream.
        stream: StreamId,
        /// Why.
        reason: Reason,
    },
    /// A message has come.
    Message(Message),
    /// The carrier has room for so many messages, no matter how many it had before.
    Room(u32),
    /// New streams of the peer are refused from now on.
    Drain,
}

/// What the driver is asked to do, or told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Hand this message to the carrier, with the bytes that it names. They are not asked for again.
    Send(Message),
    /// The peer has opened a stream: connect it. Its bytes follow; they may be taken at any time.
    Opened {
        /// The stream.
        stream: StreamId,
        /// Whose connection it is.
        route: Route,
    },
    /// The payload of the message that came last is the stream's next bytes: keep them for its user.
    Received {
        /// The stream.
        stream: StreamId,
        /// How many.
        len: u32,
    },
    /// The peer sends no more bytes than came.
    Ended {
        /// The stream.
        stream: StreamId,
    },
    /// The stream is over: both directions ended, and the user has taken all.
    Closed {
        /// The stream.
        stream: StreamId,
    },
    /// The stream is over by the peer, or for want of memory. What of it has not been taken is void.
    Reset {
        /// The stream.
        stream: StreamId,
        /// Why.
        reason: Reason,
    },
}

/// What an end counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MuxStats {
    /// Streams that we opened, and those that the peer did.
    pub opened: u64,
    /// Streams that the peer opened.
    pub accepted: u64,
    /// Streams that ended in both directions.
    pub closed: u64,
    /// Streams that were reset by the peer.
    pub reset_by_peer: u64,
    /// Streams that were reset here, those refused for their number among them.
    pub reset_here: u64,
    /// Streams reset for want of memory, counted above as well.
    pub out_of_memory: u64,
    /// Messages of streams that are over or never were; after a reset some are on their way.
    pub stray: u64,
    /// Bytes of streams sent.
    pub bytes_sent: u64,
    /// Bytes of streams received.
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
