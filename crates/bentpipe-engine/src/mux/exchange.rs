//! What passes between an end and its driver.

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
    /// Limits the bytes that all streams together hold for users.
    Budget(u64),
    /// New streams of the peer are refused from now on.
    Drain,
}

/// What an input did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was accepted.
    Accepted,
    /// Nothing changed: the stream has ended, or a message breaks a rule or needs more resets than the peer may cause.
    Stray,
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
