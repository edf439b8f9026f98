//! A packet of a channel that waits for its first transmission.

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

/// Splits a packet into frames whose lengths add up to its own. The first ones are a byte longer if it does not divide evenly.
pub(super) fn cut(packet: Waiting, segments: u32) -> impl Iterator<Item = Waiting> {
    let (part, more) = (packet.len / segments, packet.len % segments);
    (0..segments).map(move |n| Waiting { len: part + u32::from(n < more), ..packet })
}
