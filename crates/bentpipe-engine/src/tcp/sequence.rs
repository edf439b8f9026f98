//! The sender's sequence space (RFC 9293 §3.3.1): acknowledged, sent and written. Shared by TCP's and STP's senders.

use super::peer_window::PeerWindow;
use super::segment::FIRST_BYTE;
use super::span::Span;

/// Minimum number of stored SACKed ranges, whatever the flight: small segments cause more ranges than full ones.
const MIN_SACKED_RANGES: usize = 1024;

/// Sequence numbers of one direction, including SYN and FIN, from 0 on.
#[derive(Clone, Copy, Debug)]
pub struct SequenceSpace {
    /// SND.UNA: the first number not acknowledged.
    pub(crate) snd_una: u64,
    /// SND.NXT: the next number to send. Goes back to `snd_una` at a timeout.
    pub(crate) snd_nxt: u64,
    /// One past the highest number ever sent.
    pub(crate) snd_max: u64,
    /// The window that the peer offers.
    pub(crate) peer: PeerWindow,
    /// One past the last byte written.
    pub(crate) data_end: u64,
    /// A FIN follows the data.
    pub(crate) fin: bool,
    /// The program still waits for the peer's data after its own FIN (`shutdown`).
    pub(crate) is_half: bool,
}

impl SequenceSpace {
    /// A space whose first number to send is `start`, with a peer window of `peer` bytes.
    pub(crate) const fn new(start: u64, peer: u64) -> Self {
        SequenceSpace {
            snd_una: start,
            snd_nxt: start,
            snd_max: start,
            peer: PeerWindow::open(peer),
            data_end: FIRST_BYTE,
            fin: false,
            is_half: false,
        }
    }

    /// Sequence numbers sent and not acknowledged.
    #[inline(always)]
    pub(crate) fn flight(&self) -> u64 {
        self.snd_max - self.snd_una
    }

    /// Maximum number of SACKed ranges to store, with segments of `mss` bytes: from a receiver of full segments, there is
    /// at most one gap per two segments.
    pub(crate) fn max_sacked_ranges(&self, mss: u64) -> usize {
        MIN_SACKED_RANGES.max((self.flight() / mss) as usize)
    }

    /// True if the program has closed and waits for nothing more (Linux's SOCK_DEAD).
    pub(crate) fn is_orphan(&self) -> bool {
        self.fin && !self.is_half
    }

    /// One past everything to send, including the FIN.
    #[inline(always)]
    pub(crate) fn end(&self) -> u64 {
        self.data_end + self.fin as u64
    }

    /// The right edge permitted by both the sender's own window of `allowed` bytes and the peer's window.
    #[inline(always)]
    pub(crate) fn right_edge(&self, allowed: u64) -> u64 {
        self.snd_una + allowed.min(self.peer.now)
    }

    /// The segment that starts at `seq`, ends before `edge` and carries at most `mss` bytes.
    #[inline(always)]
    pub(crate) fn span(&self, seq: u64, edge: u64, mss: u16) -> Span {
        if seq == 0 {
            return Span { syn: true, ..Span::empty(seq) };
        }
        let data = self.data_end.min(edge).saturating_sub(seq).min(mss as u64);
        let end = seq + data;
        let fin = self.fin && end == self.data_end && (edge > end || data == 0);
        Span { len: data as u16, fin, push: data > 0 && end == self.data_end, ..Span::empty(seq) }
    }

    /// Records that the peer has acknowledged everything before `ack`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, ack: u64) {
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
    }

    /// Restarts with nothing outstanding and `seq` as the next number to send.
    pub(crate) fn restart_at(&mut self, seq: u64) {
        (self.snd_una, self.snd_nxt, self.snd_max) = (seq, seq, seq);
    }

    /// Forgets the peer. Written bytes stay.
    pub(crate) fn forget_peer(&mut self) {
        self.restart_at(0);
        self.peer = PeerWindow::open(0);
    }

    /// Bytes written.
    pub(crate) fn written(&self) -> u64 {
        self.data_end - FIRST_BYTE
    }

    /// Bytes written and acknowledged.
    #[inline(always)]
    pub(crate) fn acknowledged(&self) -> u64 {
        self.snd_una.max(FIRST_BYTE).min(self.data_end) - FIRST_BYTE
    }

    /// True once the peer has acknowledged our FIN.
    #[inline(always)]
    pub(crate) fn fin_acknowledged(&self) -> bool {
        self.fin && self.snd_una > self.data_end
    }

    /// The sequence number of a segment without data: SND.NXT. While the peer's window is closed, it is the number that
    /// the peer expects. A probe lies beyond that window, and a segment that starts there is not acceptable (RFC 9293
    /// §3.10.7.4).
    #[inline(always)]
    pub(crate) fn seq_of_bare_ack(&self) -> u64 {
        if self.peer.now == 0 { self.snd_una.max(FIRST_BYTE) } else { self.snd_max }
    }

    /// SND.UNA - MAX.SND.WND: no older ACK is acceptable (RFC 5961 §5.2).
    #[inline(always)]
    pub(crate) fn oldest_acceptable_ack(&self) -> u64 {
        self.snd_una.saturating_sub(self.peer.max)
    }

    /// Checks the invariants that hold between events.
    pub(crate) fn check(&self) {
        debug_assert!(self.snd_una <= self.snd_nxt && self.snd_una <= self.snd_max);
        debug_assert!(self.snd_max <= self.end().max(FIRST_BYTE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fin_takes_the_number_after_the_data() {
        let mut space = SequenceSpace::new(FIRST_BYTE, 5000);
        (space.data_end, space.fin) = (FIRST_BYTE + 1500, true);
        let first = space.span(1, space.right_edge(u64::MAX), 1000);
        assert_eq!((first.len, first.fin, first.push, first.end()), (1000, false, false, 1001));
        let last = space.span(1001, space.right_edge(u64::MAX), 1000);
        assert_eq!((last.len, last.fin, last.push, last.end()), (500, true, true, 1502));
        // A window that ends with the data has no room for the FIN.
        assert!(!space.span(1001, 1501, 1000).fin);
        space.snd_max = 1502;
        space.advance(1502);
        assert_eq!((space.acknowledged(), space.fin_acknowledged(), space.flight()), (1500, true, 0));
    }
}
