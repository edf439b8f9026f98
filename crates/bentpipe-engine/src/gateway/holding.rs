//! How much `split` holds for a connection and for the line.

/// Messages that wait in the layer: enough to keep the line busy until the driver looks again, and so few that a quiet
/// stream's message waits for no more.
pub const ROOM: usize = 8;

/// Bytes of a connection that may wait for the link, as a rule.
pub const MAX_UNSENT: usize = 128 << 10;
/// Bytes of a connection that may wait for the link while memory is short.
pub const MIN_UNSENT: usize = 4 << 10;
/// Bytes that a connection takes besides its buffers: itself, its stream, and their places in tables.
pub const CONNECTION: usize = 1 << 10;

/// Bytes of a connection that may wait for the link when all connections take `all` of `budget` bytes: above half of it less.
pub fn max_unsent(all: u64, budget: u64) -> usize {
    if all > budget / 2 { MIN_UNSENT } else { MAX_UNSENT }
}
