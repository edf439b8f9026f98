//! Properties of `hybrid`'s simulated link layer that are impossible on a real link. All are off by default.
//!
//! [`End`](super::End) uses them to determine the length of a frame and what a damaged frame reveals.

use super::frame::Frame;
use crate::arq::History;
use crate::units::Time;

/// Departures from what is possible on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortcuts {
    /// A frame takes as long on the line as its packet would, and a report takes no time (`hybrid`, H-M10).
    pub weightless: bool,
    /// The receiver knows the number of a frame that arrived damaged, and reports it as lost (`hybrid`'s NAK, H-M01).
    pub hears_damage: bool,
}

impl Shortcuts {
    /// No departures: the layer as it is on the wire.
    pub const NONE: Shortcuts = Shortcuts { weightless: false, hears_damage: false };

    /// Bytes that a frame takes on the line.
    pub(super) fn weight(self, frame: &Frame) -> u32 {
        match (self.weightless, frame) {
            (false, _) => frame.wire_len(),
            (true, Frame::Data { len, .. } | Frame::Repair { len, .. }) => *len,
            (true, Frame::Sync { .. } | Frame::Report(_)) => 0,
        }
    }

    /// Handles a frame that arrived damaged.
    pub(super) fn on_damaged(self, history: &mut History, now: Time, number: u64) {
        if self.hears_damage {
            history.on_damaged(now, number);
        }
    }
}
