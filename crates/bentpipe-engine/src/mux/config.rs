//! What an end is made of.

/// Which end it is: it fixes whose streams have even numbers.
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
    /// Bytes of a stream between the peer's first transmission and the taking of our user: the link's rate times
    /// several of its round trips, so that lost packets and their repetitions do not empty the line.
    pub window: u64,
    /// Most payload of a message.
    pub max_payload: u32,
    /// Streams of the peer that may be open at a time.
    pub max_streams: u32,
    /// Bytes that all streams may hold for users that do not take them.
    pub budget: u64,
}

impl MuxConfig {
    /// What a stream may send before the peer's hello has come.
    pub(crate) const FIRST_CREDIT: u64 = 64 << 10;
    /// Resets that may wait for the carrier, if [`MuxConfig::max_streams`] is not more: openings beyond are dropped.
    pub(crate) const MIN_ANSWERS: usize = 1024;
    /// Ranges of used numbers of the peer's streams that are kept, if [`MuxConfig::max_streams`] is not more.
    pub(crate) const MIN_RANGES: usize = 1024;
    /// The smallest window under want of memory.
    pub(crate) const MIN_WINDOW: u64 = 16 << 10;
}
