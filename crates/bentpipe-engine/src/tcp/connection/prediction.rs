//! Header prediction: the short way of the two segments that come by the million (V. Jacobson, "4BSD TCP header prediction",
//! Computer Communication Review 20(2), 1990).
//!
//! On a connection without losses a segment is either the next data in order, or an ACK of new data without data. Few
//! questions tell such a segment, and then most checks of the long way are known to pass. What a predicted segment does is a
//! part of what the long way does; the tests run both on the same segments.

use super::{Duplex, Pending, State, Verdict};
use crate::machine::Context;
use crate::probe::Probe;
use crate::tcp::receiver::Fresh;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sender::Sender;
use crate::tcp::sending::SendingHalf;

impl Duplex<Sender> {
    /// Takes a segment that has been predicted; `None` for any other, with which nothing has been done.
    #[inline(always)]
    pub(in crate::tcp) fn take_predicted<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
    ) -> Option<Verdict> {
        // Whoever watches sees the long way.
        if P::WATCHES
            || segment.flags != Flags::ACK
            || !segment.sack.is_empty()
            || self.timestamps
            || !matches!(self.state, State::Established | State::FinWait1)
            || segment.seq != self.receiver.rcv_nxt()
            || self.peer_fin.is_some()
            || !self.sender.is_calm()
        {
            return None;
        }
        if segment.len == 0 {
            if segment.ack <= self.sender.snd_una() || segment.ack > self.sender.snd_max() {
                return None;
            }
            self.on_acceptable_ack(cx, segment);
            return Some(Verdict::Accepted(Fresh::None));
        }
        let end = segment.seq + u64::from(segment.len);
        if segment.ack != self.sender.snd_una() || !self.receiver.expects(end) {
            return None;
        }
        self.sender.update_window(segment);
        self.sender.on_ack_beside_data();
        self.receiver.on_expected_data(cx.now, end);
        self.pending.set(Pending::READABLE);
        Some(Verdict::Accepted(Fresh::Span(segment.seq, end)))
    }
}
