//! What passes between an end and its driver.

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
