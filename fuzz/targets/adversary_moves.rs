//! What the adversary may do, as a fuzzer draws it.

use arbitrary::Arbitrary;

#[derive(Debug, Arbitrary)]
pub(crate) struct Settings {
    pub(crate) variant: u8,
    pub(crate) timestamps: bool,
    pub(crate) nagle: bool,
    pub(crate) delayed_ack: bool,
    pub(crate) scaling: bool,
    /// He is of the second kind.
    pub(crate) knows: bool,
    /// The clock of the timestamps wraps during the run.
    pub(crate) wraps: bool,
    pub(crate) buffers: [u16; 2],
    /// Windows are smaller by so many powers of two, as far as a segment.
    pub(crate) small: u8,
    pub(crate) mss: [u8; 2],
    pub(crate) totals: [u16; 2],
}

/// What he does when a packet goes out.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(crate) enum Move {
    Deliver,
    Drop,
    Double { late: u8 },
    Delay { late: u8 },
    Cut { length: u16 },
    Shorten { length: u8 },
    Replay { which: u8, late: u8 },
    Inject { back: bool, late: u8, forged: Forged },
    Barrage { back: bool, forged: Forged, times: u8 },
}

/// A segment of his own: what it says is worked out when it arrives.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(crate) struct Forged {
    pub(crate) flags: u8,
    pub(crate) seq: Place,
    pub(crate) ack: Place,
    pub(crate) window: u16,
    pub(crate) stamp: Stamp,
    pub(crate) sack: Option<(Place, i8)>,
    pub(crate) syn: (u16, u8),
    pub(crate) len: u8,
}

/// A number: of text, from RCV.NXT of the end that gets it; of an ACK, from its SND.UNA.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(crate) enum Place {
    Next,
    Near(i8),
    /// From the right edge of its window; of an ACK, from SND.MAX.
    Edge(i8),
    /// The start of a block that it has SACKed; of an ACK, one below SND.UNA, or below the oldest that is acceptable.
    Known(u8),
    Anywhere(u32),
}

#[derive(Clone, Copy, Debug, Arbitrary)]
pub(crate) enum Stamp {
    Now,
    /// Older than TS.Recent by more than this, in ms.
    Old(u16),
    /// In the future, by up to 2^30 ms.
    New(u32),
    Missing,
}
