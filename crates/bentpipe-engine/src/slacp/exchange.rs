//! What passes between an end and its driver.

use super::frame::Frame;

/// What the driver brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A packet from above.
    Packet {
        /// Its channel ([`super::classify`]).
        channel: u8,
        /// The driver's name for it.
        handle: u32,
        /// Its length in bytes.
        len: u32,
        /// Packets of one flow keep their order: any number that stands for its addresses and ports.
        flow: u64,
        /// What it acknowledges, if it does nothing else ([`super::classify::Headers::acknowledges`]).
        acknowledges: Option<u32>,
    },
    /// A frame from the line.
    Frame(Frame),
    /// A frame came damaged; its number could be read.
    Damaged {
        /// Number of the transmission.
        number: u64,
    },
    /// A packet that [`Output::Recover`] asked for.
    Recovered {
        /// Its channel.
        channel: u8,
        /// Its number.
        seq: u64,
        /// Its distance from its predecessor, protected with it.
        behind: u32,
        /// Its length in bytes.
        len: u32,
    },
}

/// What an end did with an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The input counts, but a driver that keeps bytes keeps none of it.
    Accepted,
    /// The bytes that came with it are to be kept: those of a packet until [`Output::Deliver`], those of a repair frame's
    /// symbol until its block waits for no more ([`super::End::awaits`]).
    Kept,
    /// A frame whose transmission was heard before, or that came too early or too late: it is not reported, and nothing in it
    /// may be acted on.
    Refused,
}

/// Why the driver may forget a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The peer has it.
    Acknowledged,
    /// It went out, and its channel does nothing more for it.
    Sent,
    /// It was lost as often as its channel allows.
    Abandoned,
    /// There was no room for it.
    DroppedFull,
    /// CoDel took it out.
    DroppedEarly,
    /// A later acknowledgement has taken its place.
    Superseded,
}

/// What the driver is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Put this frame on the line; a data frame takes the packet of that handle with it.
    Transmit {
        /// The frame.
        frame: Frame,
        /// The packet.
        handle: Option<u32>,
    },
    /// Pass this packet on.
    Deliver {
        /// Its channel.
        channel: u8,
        /// Its number.
        seq: u64,
    },
    /// Compute this packet from the others of its block, and bring it as [`Input::Recovered`].
    Recover {
        /// Its channel.
        channel: u8,
        /// Its number.
        seq: u64,
        /// First packet of the block.
        first: u64,
        /// Packets of the block.
        count: u8,
    },
    /// This packet will not come.
    Skip {
        /// Its channel.
        channel: u8,
        /// Its number.
        seq: u64,
    },
    /// The packet of this handle is not needed here any more.
    Release {
        /// The driver's name for it.
        handle: u32,
        /// Why.
        how: Released,
    },
}
