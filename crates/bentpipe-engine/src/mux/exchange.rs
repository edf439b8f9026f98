//! What an end and its driver pass to each other.

use crate::wire::mux::{Message, Reason, Route, StreamId};

/// An input from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The user of a stream has more bytes for the peer.
    Write {
        /// The stream.
        stream: StreamId,
        /// How many.
        bytes: u64,
    },
    /// The user of a stream has no more bytes to send.
    Finish {
        /// The stream.
        stream: StreamId,
    },
    /// The user of a stream has taken received bytes.
    Taken {
        /// The stream.
        stream: StreamId,
        /// How many.
        bytes: u64,
    },
    /// Resets a stream in both directions. No more outputs follow for it.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The reason given to the peer.
        reason: Reason,
    },
    /// A message from the carrier.
    Message(Message),
    /// The carrier now has room for this many messages.
    Room(u32),
    /// Limits the bytes that all streams together may hold for users.
    Budget(u64),
    /// From now on, new streams of the peer are refused.
    Drain,
}

/// What an input did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was accepted.
    Accepted,
    /// Nothing changed. The stream has ended, or a message breaks a rule or would need more resets than the peer may
    /// cause.
    Stray,
}

/// A request to the driver, or a notice for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this message with its bytes, which are not needed again.
    Send(Message),
    /// The peer opened a stream: connect it. Its bytes follow and may be taken at any time.
    Opened {
        /// The stream.
        stream: StreamId,
        /// The addresses of its connection.
        route: Route,
    },
    /// The payload of the last message is the next bytes of the stream: keep them for its user.
    Received {
        /// The stream.
        stream: StreamId,
        /// How many bytes.
        len: u32,
    },
    /// The peer has sent all bytes of the stream.
    Ended {
        /// The stream.
        stream: StreamId,
    },
    /// The stream is closed: both directions ended, and the user has taken everything.
    Closed {
        /// The stream.
        stream: StreamId,
    },
    /// The stream was reset by the peer, or for lack of memory. Bytes not yet taken are void.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The reason.
        reason: Reason,
    },
}
