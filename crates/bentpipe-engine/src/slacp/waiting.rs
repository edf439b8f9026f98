//! A packet of a channel that waits for its first transmission, and the queue's answer to it.

use crate::units::Time;

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) handle: u32,
    pub(crate) len: u32,
    pub(crate) flow: u64,
    pub(crate) host: u64,
    pub(crate) since: Time,
    pub(crate) acknowledges: Option<u32>,
}

/// What happened to an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    Waits,
    /// Queued in place of the one with this handle.
    Replaces(u32),
    /// Queued, and another flow lost the packet with this handle.
    Evicts(u32),
    /// Refused: the queue is full.
    Refused,
}

impl Waiting {
    /// True if this acknowledgement acknowledges more than `older`, so it may replace `older`.
    //= RFC 3449 §5.2.1: ACK filtering
    pub(super) fn acknowledges_more(&self, older: &Waiting) -> bool {
        let (Some(newer), Some(older)) = (self.acknowledges, older.acknowledges) else { return false };
        //= RFC 9293 §3.4: numbers are compared modulo 2^32
        let ahead = newer.wrapping_sub(older);
        ahead != 0 && ahead <= i32::MAX as u32
    }
}

/// Splits a packet into frames whose lengths add up to its own. If it does not divide evenly, the first frames are a
/// byte longer.
pub(super) fn cut(packet: Waiting, segments: u32) -> impl Iterator<Item = Waiting> {
    let (part, more) = (packet.len / segments, packet.len % segments);
    (0..segments).map(move |n| Waiting { len: part + u32::from(n < more), ..packet })
}
