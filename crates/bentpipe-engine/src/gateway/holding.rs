//! How much the boxes hold for connections and for the line.

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

/// Memory of a packet or symbol besides its bytes: 32 bytes of its allocation, up to 63 if it uses that of a longer packet again, and its
/// places in tables of the port and of the machine (a handle, a queue entry, a slot and a transmission), some 150 bytes in tables that
/// may be half empty.
const PACKET: u64 = 256;

/// Memory of a packet or symbol of `len` bytes.
pub const fn packet_memory(len: u64) -> u64 {
    len + PACKET
}

/// Bytes of further packets that a queue may take while packets for the far end hold `given` of `memory` bytes. They have half of it, and
/// five eighths in channels other than the default one; the rest is for what comes from the far end.
pub const fn queue_room(memory: u64, given: u64, is_default_channel: bool) -> u64 {
    let eighths = if is_default_channel { 4 } else { 5 };
    (memory / 8 * eighths).saturating_sub(given + PACKET)
}
