//! Departures of `hybrid`'s simulated link layer that are impossible on a real link. All are off by default.
//!
//! [`End`](super::End) asks here how long a frame is and what a damaged frame reveals.

use super::frame::Frame;
use crate::arq::History;
use crate::units::Time;

/// Departures from the wire, each named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortcuts {
    /// A frame takes the time of its packet on the line, and a report none (`hybrid`, H-M10).
    pub weightless: bool,
    /// The receiver knows the number of a frame that arrived damaged, and reports it as lost (`hybrid`'s NAK, H-M01).
    pub hears_damage: bool,
}

impl Shortcuts {
    /// None: the layer as it is on the wire.
    pub const NONE: Shortcuts = Shortcuts { weightless: false, hears_damage: false };

    /// Bytes that a frame takes on the line.
    pub(super) fn weight(self, frame: &Frame) -> u32 {
        match (self.weightless, frame) {
            (false, _) => frame.wire_len(),
            (true, Frame::Data { len, .. } | Frame::Repair { len, .. }) => *len,
            (true, Frame::Sync { .. } | Frame::Report(_)) => 0,
        }
    }

    /// A frame arrived damaged.
    pub(super) fn on_damaged(self, history: &mut History, now: Time, number: u64) {
        if self.hears_damage {
            history.on_damaged(now, number);
        }
    }
}
