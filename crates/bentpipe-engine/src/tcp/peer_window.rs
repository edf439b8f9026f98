//! The window that the peer offers (RFC 9293 §3.10.7.4).

use super::segment::Segment;

/// SND.WND, and the segment that updated it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerWindow {
    /// SND.WND in bytes, counted from SND.UNA.
    pub(crate) now: u64,
    /// MAX.SND.WND: the largest window ever offered.
    pub(crate) max: u64,
    /// SND.WL1 and SND.WL2: `seq` and `ack` of the segment that updated it last.
    wl1: u64,
    wl2: u64,
}

impl PeerWindow {
    /// A window of `bytes`, used before the peer has offered one.
    pub(crate) const fn open(bytes: u64) -> Self {
        PeerWindow { now: bytes, max: 0, wl1: 0, wl2: 0 }
    }

    /// Takes the window of a segment. Returns whether it changed, or `None` if the segment is older than the last update.
    #[inline(always)]
    pub(crate) fn update(&mut self, snd_una: u64, segment: &Segment) -> Option<bool> {
        // An advancing ACK also counts: retransmitted data has an old number but the newest ACK, from which the window
        // counts.
        let fresh =
            snd_una < segment.ack || self.wl1 < segment.seq || (self.wl1 == segment.seq && self.wl2 <= segment.ack);
        if !fresh {
            return None;
        }
        (self.wl1, self.wl2) = (segment.seq, segment.ack);
        let window = segment.window as u64;
        // The first window is not a change: without a handshake, a duplicate ACK can be the first segment to arrive.
        let changed = window != self.now && self.max > 0;
        self.now = window;
        self.max = self.max.max(window);
        Some(changed)
    }
}
