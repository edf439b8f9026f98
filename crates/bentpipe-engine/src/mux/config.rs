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
    /// Window of a stream: bytes that the peer has sent and the user here has not taken. Should be the link's rate times
    /// several round trips, so that the line stays busy while lost packets are retransmitted. A peer that announces a larger one gets as
    /// much: it sends faster than this end. Either has at most half of the budget.
    pub window: u64,
    /// Maximum payload of a message, bytes.
    pub max_payload: u32,
    /// Maximum open streams of the peer.
    pub max_streams: u32,
    /// Maximum bytes that all streams hold for users that do not take them.
    pub budget: u64,
}

impl MuxConfig {
    /// Bytes that a stream may send before the peer's hello arrives.
    pub(crate) const FIRST_CREDIT: u64 = 64 << 10;
    /// A host may have this many times the streams that are free.
    pub(crate) const HOST_SHARE: u64 = 7;
    /// Resets that may wait for the carrier, if [`MuxConfig::max_streams`] is not more: openings beyond are dropped.
    pub(crate) const MIN_ANSWERS: usize = 1024;
    /// Ranges of used numbers of the peer's streams that are kept, if [`MuxConfig::max_streams`] is not more.
    pub(crate) const MIN_RANGES: usize = 1024;
    /// Hellos that may raise the credit, each of which concerns all streams: a peer sends one, and another one if this end's credit is
    /// larger than its own.
    pub(crate) const MAX_RAISES: u32 = 16;
    /// The minimum window when memory is short.
    pub(crate) const MIN_WINDOW: u64 = 16 << 10;
}
