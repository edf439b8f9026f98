//! The settings of an end.

/// Which of the two ends this is. It decides whose streams have even numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that built the tunnel: even numbers.
    Initiator,
    /// The other end: odd numbers.
    Responder,
}

/// The settings of one end of the multiplexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MuxConfig {
    /// Which end.
    pub side: Side,
    /// Window of a stream: the maximum number of bytes that the peer has sent and the user here has not taken. It
    /// should be the link's rate times several round trips, so that the line stays busy while lost packets are
    /// retransmitted. A peer that announces a larger window gets the same, because it sends faster than this end.
    /// Either is limited to half of the budget.
    pub window: u64,
    /// Maximum payload of a message in bytes.
    pub max_payload: u32,
    /// Maximum number of open streams of the peer.
    pub max_streams: u32,
    /// Maximum number of bytes that all streams together hold for users who do not take them.
    pub budget: u64,
}

impl MuxConfig {
    /// Bytes that a stream may send before the peer's hello arrives.
    pub(crate) const FIRST_CREDIT: u64 = 64 << 10;
    /// A host may have this many times as many streams as are free.
    pub(crate) const HOST_SHARE: u64 = 7;
    /// Maximum number of resets that may wait for the carrier, unless [`MuxConfig::max_streams`] is larger. Openings
    /// beyond it are dropped.
    pub(crate) const MIN_ANSWERS: usize = 1024;
    /// Maximum number of ranges of stream numbers used by the peer that are kept, unless [`MuxConfig::max_streams`] is
    /// larger.
    pub(crate) const MIN_RANGES: usize = 1024;
    /// Maximum number of hellos that may raise the credit, since each affects all streams. A peer sends one, and
    /// another if this end's credit is larger than its own.
    pub(crate) const MAX_RAISES: u32 = 16;
    /// The minimum window when memory is short.
    pub(crate) const MIN_WINDOW: u64 = 16 << 10;
}
