//! Inputs and outputs of a connection.

use crate::tcp::abort::Abort;
use crate::tcp::receiver::Fresh;
use crate::tcp::segment::Segment;

/// An input from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Open: an active connection sends its SYN, a passive one listens.
    Open,
    /// The user has this many more bytes to send.
    Write(u64),
    /// The user has read this many bytes from the receive buffer.
    Read(u64),
    /// The receive buffer has this size from now on; an advertised window is not taken back.
    Buffer(u64),
    /// The user ends the stream: a FIN follows the data.
    Close,
    /// Drop all data and send a reset.
    Abort,
    /// A segment has arrived. A driver that stores bytes keeps those of its payload that the verdict names.
    Segment(Segment),
}

/// The result of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was accepted. Of a segment's payload, these bytes are new.
    Accepted(Fresh),
    /// The peer's SYN was accepted: its initial sequence number and its options hold from now on. Of its payload, these
    /// bytes are new.
    Synchronized(Fresh),
    /// An unacceptable segment, on which nothing may act; or bytes written after CLOSE, which are not sent (RFC 9293
    /// §3.10.2: "connection closing").
    Refused,
}

/// A request or a notice to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this segment; its payload is `seq..seq + len` of the bytes written, the first byte being `FIRST_BYTE`.
    Transmit(Segment),
    /// The handshake is done.
    Connected,
    /// This many bytes, counted from the start, have been received in order, including those read.
    Readable(u64),
    /// This many of the bytes written, counted from the start, are acknowledged. The driver may release them.
    Acknowledged(u64),
    /// The peer sends no more.
    PeerClosed,
    /// The connection has ended: after both FINs, or by an abort.
    Closed(Result<(), Abort>),
}

/// The counters of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpStats {
    /// Segments sent that use sequence space: data, SYN, FIN; first transmissions and retransmissions.
    pub data_segments: u64,
    /// Those of them whose first number had been sent before.
    pub retransmits: u64,
    /// Reductions of the window for an echoed mark (RFC 3168).
    pub ecn_reductions: u64,
    /// Our segments that arrived with a mark, as counted by the peer (RFC 9768).
    pub marks_told: u64,
    /// Segments with data that came with a mark of congestion.
    pub marks_received: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Losses found by duplicate ACKs or SACK: fast retransmits.
    pub fast_retransmits: u64,
    /// Timeouts found spurious, by F-RTO, timestamps or D-SACK, while they were being repaired.
    pub spurious_timeouts: u64,
    /// Fast recoveries that D-SACK or timestamps have shown to be needless, and that were undone; also timeouts, after their repair.
    pub spurious_recoveries: u64,
    /// Acceptable ACKs received.
    pub acks_received: u64,
    /// Duplicate ACKs among them.
    pub duplicate_acks: u64,
    /// D-SACK blocks received: retransmissions that were not needed (RFC 2883).
    pub dsacks: u64,
    /// Segments sent without data.
    pub pure_acks: u64,
    /// Segments received without new data.
    pub duplicates_received: u64,
    /// Segments received beyond a gap.
    pub out_of_order_received: u64,
    /// Max outstanding bytes.
    pub max_flight: u64,
    /// Max congestion window, bytes.
    pub max_cwnd: u64,
    /// Max number of segments sent in answer to one event.
    pub max_burst: u32,
}
