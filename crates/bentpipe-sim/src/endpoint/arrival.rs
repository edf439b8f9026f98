//! Segments that arrive at an end.

use bentpipe_engine::tcp::{Flags, Input, Segment};
use bentpipe_engine::{Context, Probe};

use super::TcpEnd;
use crate::transport::Transport;

impl TcpEnd {
    /// Handles a segment. Its notifications are handled by the next poll, or here if nothing else must be done.
    #[inline(always)]
    pub(crate) fn take_segment<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: Segment) {
        if let Transport::Tcp(connection) = &mut self.connection
            && connection.take_predicted(cx, &segment).is_some()
        {
            self.notice(cx);
        } else {
            self.take_unpredicted(cx, segment);
        }
    }

    /// The same for a segment without options that the connection predicts. For any other, returns false and has no effect.
    #[inline(always)]
    pub(crate) fn take_plain<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> bool {
        debug_assert!(!segment.has_options(), "a plain segment: {segment:?}");
        let &Segment { seq, ack, window, len, flags, .. } = segment;
        match len {
            0 => self.take_plain_ack(cx, (seq, ack), window, flags),
            _ => self.take_plain_data(cx, (seq, ack), window, len, flags),
        }
    }

    // These two are functions of their own, so that the address of the end stays in a register: in one function with the
    // loop over events it was read from the stack for each field. They get values, because a segment would go through
    // memory.

    #[inline(never)]
    fn take_plain_data<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        (seq, ack): (u64, u64),
        window: u32,
        len: u16,
        flags: Flags,
    ) -> bool {
        let Transport::Tcp(connection) = &mut self.connection else { return false };
        let segment = Segment { seq, ack, window, len, ..Segment::new(flags) };
        let is_predicted = connection.take_predicted_data(cx, &segment).is_some();
        if is_predicted {
            self.notice(cx);
        }
        is_predicted
    }

    #[inline(never)]
    fn take_plain_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        (seq, ack): (u64, u64),
        window: u32,
        flags: Flags,
    ) -> bool {
        let Transport::Tcp(connection) = &mut self.connection else { return false };
        let segment = Segment { seq, ack, window, ..Segment::new(flags) };
        let is_predicted = connection.take_predicted_ack(cx, &segment).is_some();
        if is_predicted {
            self.notice(cx);
        }
        is_predicted
    }

    /// The same for a segment that the connection does not predict.
    #[inline(never)]
    pub(crate) fn take_unpredicted<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: Segment) {
        match &mut self.connection {
            Transport::Tcp(connection) => {
                connection.take_unpredicted(cx, &segment);
                self.notice(cx);
            }
            Transport::Stp(_) => self.connection.handle(cx, Input::Segment(segment)),
        }
    }

    /// Handles the connection's notification, if there is one and nothing else must be done.
    #[inline(always)]
    fn notice<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        let Transport::Tcp(connection) = &mut self.connection else { return };
        if self.next_action <= cx.now {
            return;
        }
        if let Some(total) = connection.take_readable() {
            self.on_readable(cx, total);
        } else if let Some(total) = connection.take_acknowledged() {
            self.on_acknowledged(cx, total);
        }
    }
}
