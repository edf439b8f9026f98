//! What remains of a connection's end after its connection has ended: its results, and the answer to stray segments.

use bentpipe_engine::network::EndId;
use bentpipe_engine::tcp::{Abort, Closed, Segment, TcpStats};
use bentpipe_engine::units::Time;

use crate::packet::{self, Parcel, Store};

/// What the end of a connection has come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// When the opening was done.
    pub(crate) connected_at: Option<Time>,
    /// When the last byte to be sent was acknowledged, and the last one expected arrived.
    pub(crate) acked_at: Option<Time>,
    pub(crate) received_at: Option<Time>,
    pub(crate) aborted: Option<Abort>,
    /// Bytes received in order.
    pub(crate) received: u64,
    pub(crate) stats: TcpStats,
}

/// An end whose connection is closed.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) closed: Closed,
    pub(crate) ns2_lengths: bool,
}

impl Ended {
    /// The answer of `end` to a segment, if it gets one.
    pub(crate) fn answer(&self, end: EndId, now: Time, segment: &Segment, packets: &mut Store) -> Option<Parcel> {
        let answer = self.closed.answer(now, segment)?;
        let wire_len = packet::wire_len(&answer, self.ns2_lengths);
        Some(packets.put_segment(end, wire_len, &answer))
    }
}
