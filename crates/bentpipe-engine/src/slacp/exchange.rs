//! What an end and its driver pass to each other.

use core::ops::Range;

use super::frame::Frame;

/// An input from the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A packet from above.
    Packet {
        /// Its channel ([`super::classify`]).
        channel: u8,
        /// The driver's number for it.
        handle: u32,
        /// Its length in bytes.
        len: u32,
        /// Its flow: any number that stands for its addresses and ports. Packets of one flow keep their order.
        flow: u64,
        /// Its host: any number. Hosts take turns if the channel's queueing says so.
        host: u64,
        /// The acknowledgement number of a bare ACK ([`super::classify::Headers::acknowledges`]).
        acknowledges: Option<u32>,
    },
    /// A frame from the line.
    Frame(Frame),
    /// A frame arrived damaged; its number could be read.
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
    /// The input was accepted. The driver need not keep its bytes.
    Accepted,
    /// The input was accepted, and the driver keeps its bytes: a packet until [`Output::Deliver`], a repair symbol
    /// until its block waits for no more frames ([`super::End::awaits`]).
    Kept,
    /// The frame is a duplicate, is too early or too late, or gives up a packet of a channel that never gives one up.
    /// It is not reported, and the driver must not act on it.
    Refused,
}

/// Why the driver may drop a packet's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The peer has received it.
    Acknowledged,
    /// It was sent, and its channel does not retransmit.
    Sent,
    /// It was lost in every transmission that its channel allows.
    Abandoned,
    /// The queue was full.
    DroppedFull,
    /// CoDel dropped it.
    DroppedEarly,
    /// A later acknowledgement replaced it.
    Superseded,
}

/// A request to the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this frame; a data frame carries the packet of this handle.
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
    /// Compute this packet from the rest of its block, and pass it in as [`Input::Recovered`].
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
    /// These packets will not arrive.
    Skip {
        /// Their channel.
        channel: u8,
        /// Their numbers.
        seqs: Range<u64>,
    },
    /// Forget the packet of this handle.
    Release {
        /// The driver's number for the packet.
        handle: u32,
        /// Why it may be dropped.
        how: Released,
    },
}
