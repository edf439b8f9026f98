//! Decides whether a SYN may replace a connection in TIME-WAIT (RFC 6191).

use bentpipe_engine::wire::seq::SeqNumber;

/// The state of the client's direction in TIME-WAIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Incarnation {
    /// One past the number of the FIN.
    pub(super) next: SeqNumber,
    /// True if both SYNs had timestamps.
    pub(super) has_timestamps: bool,
    /// The last timestamp seen; `None` if none has been echoed yet.
    pub(super) last_timestamp: Option<u32>,
}

/// A SYN, with its timestamp if both ends would use timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) seq: SeqNumber,
    pub(super) timestamp: Option<u32>,
}

impl Incarnation {
    /// True if the SYN is not an old duplicate, because its timestamp or its number is beyond all of this connection's.
    pub(super) fn gives_way_to(self, syn: Opening) -> bool {
        //= RFC 6191 §2: "it refers to the sequence number corresponding to the FIN flag of the previous incarnation of the
        //= connection, for that direction of the data transfer."
        let is_beyond = syn.seq.distance_from(self.next) >= 0;
        match (self.has_timestamps, syn.timestamp) {
            //= RFC 6191 §2: "the timestamp contained in the incoming SYN segment is greater than the last timestamp seen on
            //= the previous incarnation of the connection (for that direction of the data transfer), honor the connection
            //= request"
            (true, Some(timestamp)) => self.last_timestamp.is_some_and(|last| {
                let later = timestamp.wrapping_sub(last) as i32;
                later > 0 || (later == 0 && is_beyond)
            }),
            //= RFC 6191 §2: "If TCP Timestamps would be enabled for the new incarnation of the connection, honor the
            //= incoming connection request"
            (false, Some(_)) => true,
            (_, None) => is_beyond,
        }
    }
}
