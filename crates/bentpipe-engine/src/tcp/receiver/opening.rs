//! The receiver while the connection opens.

use super::{Fresh, Receiver};
use crate::tcp::segment::FIRST_BYTE;
use crate::units::Time;

impl Receiver {
    /// Sets the negotiated options.
    pub(in crate::tcp) fn negotiated(&mut self, sack_blocks: usize, dsack: bool, max_window: u64) {
        self.sack.negotiated(sack_blocks, dsack);
        self.window.set_max(max_window);
    }

    /// Begins to offer a window to a peer whose SYN has arrived, with segments of `mss` bytes.
    pub(in crate::tcp) fn begin_window(&mut self, mss: u16) {
        self.window.begin(mss);
    }

    /// Called as the handshake ends: the first round of the window's tuning begins (Linux, `tcp_init_buffer_space`).
    pub(in crate::tcp) fn begin_tuning(&mut self, now: Time) {
        if let Some(tuning) = &mut self.tuning {
            tuning.begin(now);
        }
    }

    /// Called when the peer's SYN has arrived (or it sends none): data starts here.
    pub(in crate::tcp) fn synchronize(&mut self) {
        self.rcv_nxt = FIRST_BYTE;
    }

    /// Stores the payload of a SYN, `FIRST_BYTE..end`, until the handshake is done (RFC 9293 §3.10.7.2).
    pub(in crate::tcp) fn keep_until_open(&mut self, end: u64) -> Fresh {
        let end = end.min(self.limit());
        if end <= self.rcv_nxt || !self.beyond.is_empty() {
            return Fresh::None;
        }
        self.beyond.insert(self.rcv_nxt, end, |_, _| ());
        self.window.hold(end - self.rcv_nxt, 0);
        Fresh::Span(self.rcv_nxt, end)
    }

    /// Completes the handshake: data of the SYN now counts as in-order data. Returns true if there was any.
    pub(in crate::tcp) fn open(&mut self, now: Time) -> bool {
        let any = !self.beyond.is_empty() && self.advance();
        if any {
            self.on_in_order(now, 0);
        }
        any
    }
}
