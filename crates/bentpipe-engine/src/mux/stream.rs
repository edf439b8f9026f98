//! One stream at one end: its credit in both directions.

use super::hosts::Host;
use crate::turns::Turn;
use crate::wire::mux as wire;
use crate::wire::mux::{Message, Route, StreamId};

/// How many bytes longer the header of an open message is than that of a data message.
const MORE_IN_OPEN: u32 = (wire::MAX_HEADER - wire::MAX_DATA_HEADER) as u32;

/// A stream.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// Bytes that the user has written, and how many of them were sent.
    pub(super) written: u64,
    pub(super) sent: u64,
    /// The peer accepts bytes below this offset.
    pub(super) limit: u64,
    /// True if the user writes no more, and true if the peer was told so.
    pub(super) finished: bool,
    pub(super) told_end: bool,
    /// Bytes received, bytes taken by the user, and the offset up to which the peer may send.
    pub(super) received: u64,
    pub(super) taken: u64,
    pub(super) granted: u64,
    /// The peer sends no more.
    pub(super) ended: bool,
    /// The ticket of a waiting credit message.
    pub(super) owes_credit: Option<u64>,
    /// The route, until the opening is sent.
    pub(super) opening: Option<Route>,
    /// The host it belongs to.
    pub(super) host: Host,
    /// The peer opened it.
    pub(super) foreign: bool,
    pub(super) turn: Turn,
}

impl Stream {
    /// A stream that is opened here.
    pub(super) fn opening(limit: u64, granted: u64, route: Route) -> Self {
        Stream { opening: Some(route), ..Stream::new(limit, granted, Host::of(route.source.ip()), false) }
    }

    pub(super) fn new(limit: u64, granted: u64, host: Host, foreign: bool) -> Self {
        Stream {
            written: 0,
            sent: 0,
            limit,
            finished: false,
            told_end: false,
            received: 0,
            taken: 0,
            granted,
            ended: false,
            owes_credit: None,
            opening: None,
            host,
            foreign,
            turn: Turn::default(),
        }
    }

    /// Bytes that may be sent now.
    pub(super) fn sendable(&self) -> u64 {
        self.written.min(self.limit).saturating_sub(self.sent)
    }

    /// True if the next message may carry the end of this direction.
    fn may_end(&self) -> bool {
        self.finished && !self.told_end && self.written <= self.limit
    }

    /// True if anything may be sent now.
    pub(super) fn has_something(&self) -> bool {
        self.opening.is_some() || self.sendable() > 0 || self.may_end()
    }

    /// True if its opening was sent, or came from the peer.
    pub(super) fn is_known(&self) -> bool {
        self.opening.is_none()
    }

    /// Makes the next message of the stream `id`, with up to `max` bytes of payload.
    pub(super) fn send(&mut self, id: StreamId, max: u32) -> Message {
        let opening = self.opening.take();
        let max = if opening.is_some() { max.saturating_sub(MORE_IN_OPEN) } else { max };
        let (offset, len) = (self.sent, self.sendable().min(max.into()) as u32);
        self.sent += u64::from(len);
        if let Some(route) = opening {
            return Message::Open { stream: id, route, credit: self.granted, len };
        }
        let last = self.may_end() && self.sent == self.written;
        self.told_end |= last;
        Message::Data { stream: id, offset, len, last }
    }

    /// Received bytes that the user has not taken.
    pub(super) fn held(&self) -> u64 {
        self.received - self.taken
    }

    /// The peer's new limit, if it should be announced: when a quarter of the window has been taken since the last
    /// announcement.
    pub(super) fn due_credit(&self, window: u64) -> Option<u64> {
        let limit = self.taken + window;
        (!self.ended && limit >= self.granted + window / 4).then_some(limit)
    }

    /// True if both directions ended and the user has taken everything.
    pub(super) fn is_over(&self) -> bool {
        self.told_end && self.ended && self.held() == 0
    }
}
