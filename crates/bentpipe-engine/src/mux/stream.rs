//! One stream at one end: what may still be sent, and what may still come.

use super::turns::Turn;

/// A stream.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// Bytes that the user has written, and those of them that were sent.
    pub(super) written: u64,
    pub(super) sent: u64,
    /// The peer takes bytes below this offset.
    pub(super) limit: u64,
    /// The user writes no more; the peer has been told.
    pub(super) finished: bool,
    pub(super) told_end: bool,
    /// Bytes that came, those that the user has taken, and up to where the peer may send.
    pub(super) received: u64,
    pub(super) taken: u64,
    pub(super) granted: u64,
    /// The peer sends no more.
    pub(super) ended: bool,
    /// A credit message waits for its turn.
    pub(super) owes_credit: bool,
    /// The peer opened it.
    pub(super) foreign: bool,
    pub(super) turn: Turn,
}

impl Stream {
    pub(super) fn new(limit: u64, granted: u64, foreign: bool) -> Self {
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
            owes_credit: false,
            foreign,
            turn: Turn::default(),
        }
    }

    /// Bytes that may go out now.
    pub(super) fn sendable(&self) -> u64 {
        self.written.min(self.limit).saturating_sub(self.sent)
    }

    /// Whether the end of our direction may go out with the next bytes.
    fn may_end(&self) -> bool {
        self.finished && !self.told_end && self.written <= self.limit
    }

    /// Whether anything may go out now.
    pub(super) fn has_something(&self) -> bool {
        self.sendable() > 0 || self.may_end()
    }

    /// Takes up to `most` bytes out: where they begin, how many they are, whether they are the last.
    pub(super) fn send(&mut self, max: u32) -> (u64, u32, bool) {
        let (offset, len) = (self.sent, self.sendable().min(max.into()) as u32);
        self.sent += u64::from(len);
        let last = self.may_end() && self.sent == self.written;
        self.told_end |= last;
        (offset, len, last)
    }

    /// Bytes that the user has not taken.
    pub(super) fn held(&self) -> u64 {
        self.received - self.taken
    }

    /// Up to where the peer may send now, if it should be told: when a quarter of the window has been taken since.
    pub(super) fn due_credit(&self, window: u64) -> Option<u64> {
        let limit = self.taken + window;
        (!self.ended && limit >= self.granted + window / 4).then_some(limit)
    }

    /// Whether both directions are over and the user has all.
    pub(super) fn is_over(&self) -> bool {
        self.told_end && self.ended && self.held() == 0
    }
}
