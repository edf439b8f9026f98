//! A packet of a channel that waits for its first transmission.

use crate::units::Time;

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) handle: u32,
    pub(super) len: u32,
    pub(super) flow: u64,
    pub(super) host: u64,
    pub(super) since: Time,
    pub(super) acknowledges: Option<u32>,
}

/// A packet as so many frames of its length in all; the first ones take what does not divide.
pub(super) fn cut(packet: Waiting, segments: u32) -> impl Iterator<Item = Waiting> {
    let (part, more) = (packet.len / segments, packet.len % segments);
    (0..segments).map(move |n| Waiting { len: part + u32::from(n < more), ..packet })
}
