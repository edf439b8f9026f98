//! What remains of an end after its connection has ended: its results, and the state that answers stray segments.

use bentpipe_engine::network::EndId;
use bentpipe_engine::tcp::{Abort, Closed, Resting, Segment, TcpStats};
use bentpipe_engine::units::Time;

use crate::packet::{self, Parcel, Store};

/// The results of an end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// When the opening was complete.
    pub(crate) connected_at: Option<Time>,
    /// When the last byte to send was acknowledged, and when the last expected byte arrived.
    pub(crate) acked_at: Option<Time>,
    pub(crate) received_at: Option<Time>,
    pub(crate) aborted: Option<Abort>,
    /// Bytes received in order.
    pub(crate) received: u64,
    pub(crate) stats: TcpStats,
}

impl Outcome {
    /// True for an endless source whose time is over and that had not failed before: it ends the connection with a reset, which is no
    /// failure at either end.
    pub(crate) fn has_stopped(&self) -> bool {
        self.acked_at.is_some() && matches!(self.aborted, None | Some(Abort::Local))
    }
}

/// The rest of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Rest {
    /// It is in TIME-WAIT.
    Waits(Box<Resting>),
    /// It is closed.
    Closed(Closed),
}

/// An end whose connection is closed or in TIME-WAIT.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) rest: Rest,
    pub(crate) ns2_lengths: bool,
    /// The model from which it was made, if it is in TIME-WAIT.
    pub(crate) model: u32,
}

impl Ended {
    /// The time at which it next has something to do.
    pub(crate) fn until(&self) -> Option<Time> {
        match &self.rest {
            Rest::Waits(resting) => Some(resting.until()),
            Rest::Closed(_) => None,
        }
    }

    /// Checks at `now` whether TIME-WAIT is over.
    pub(crate) fn on_time(&mut self, now: Time) {
        if let Rest::Waits(resting) = &self.rest
            && resting.until() <= now
        {
            self.rest = Rest::Closed(resting.closed());
        }
    }

    /// The answer of `end`, whose connection is closed, to a segment, if there is one.
    pub(crate) fn answer(&self, end: EndId, now: Time, segment: &Segment, packets: &mut Store) -> Option<Parcel> {
        let Rest::Closed(closed) = &self.rest else { return None };
        let answer = closed.answer(now, segment)?;
        let wire_len = packet::wire_len(&answer, self.ns2_lengths);
        Some(packets.put_segment(end, wire_len, &answer))
    }
}
