//! What a channel passes to the line.

/// The kind of a transmission of this channel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sent {
    /// A packet. Its first transmission belongs to a block if the channel has blocks.
    Data { seq: u64, block: Option<u64>, floor: u64 },
    /// A repair frame of a block.
    Repair { block: u64, floor: u64 },
    /// A sync.
    Sync { floor: u64 },
}

/// The packet to send next.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextPacket {
    pub(super) seq: u64,
    pub(super) behind: u32,
    pub(super) len: u32,
    pub(super) handle: u32,
    pub(super) floor: u64,
    pub(super) sent: Sent,
}
