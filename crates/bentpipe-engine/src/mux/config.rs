//! The settings of an end.

/// Which of the two ends it is; decides whose streams have even numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that built the tunnel: even numbers.
    Initiator,
    /// The other end: odd numbers.
    Responder,
}

/// One end of the multiplexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MuxConfig {
    /// Which end.
    pub side: Side,
    /// Window of a stream: bytes from the peer's first transmission until our user takes them. The link's rate times
    /// several round trips, so that lost packets and their retransmissions do not idle the line.
    pub window: u64,
    /// Maximum payload of a message, bytes.
    pub max_payload: u32,
    /// Maximum open streams of the peer.
    pub max_streams: u32,
    /// Maximum bytes that all streams hold for users that do not take them.
    pub budget: u64,
}

impl MuxConfig {
    /// What a stream may send before the peer's hello has come.
    pub(crate) const FIRST_CREDIT: u64 = 64 << 10;
    /// A host may have this many times the streams that are free.
    pub(crate) const HOST_SHARE: u64 = 7;
    /// Resets that may wait for the carrier, if [`MuxConfig::max_streams`] is not more: openings beyond are dropped.
    pub(crate) const MIN_ANSWERS: usize = 1024;
    /// Ranges of used numbers of the peer's streams that are kept, if [`MuxConfig::max_streams`] is not more.
    pub(crate) const MIN_RANGES: usize = 1024;
    /// The smallest window under want of memory.
    pub(crate) const MIN_WINDOW: u64 = 16 << 10;
}
