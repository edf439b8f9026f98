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
    /// The receive buffer now has this size. An already advertised window is not withdrawn.
    Buffer(u64),
    /// The user ends the stream: a FIN follows the data.
    Close,
    /// The user ends the stream, and still waits for the peer's. Retransmissions are given up as on an open connection. A
    /// later `Close` ends that.
    Shutdown,
    /// Drop all data and send a reset.
    Abort,
    /// A segment has arrived. A driver that stores bytes keeps those payload bytes that the verdict names.
    Segment(Segment),
}

/// The result of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accepted. These bytes of a segment's payload are new.
    Accepted(Fresh),
    /// The peer's SYN was accepted: its initial sequence number and options apply from now on. These bytes of its
    /// payload are new.
    Synchronized(Fresh),
    /// Refused: an unacceptable segment, which must have no effect, or bytes written after CLOSE, which are not sent
    /// (RFC 9293 §3.10.2: "connection closing").
    Refused,
}

/// A request or a notice to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this segment. Its payload is `seq..seq + len` of the written bytes, the first of which is `FIRST_BYTE`.
    Transmit(Segment),
    /// The handshake is done.
    Connected,
    /// The total number of bytes received in order, counted from the start, including those already read.
    Readable(u64),
    /// The total number of written bytes that are acknowledged, counted from the start. The driver may release them.
    Acknowledged(u64),
    /// The peer has ended its stream.
    PeerClosed,
    /// The connection has ended, after both FINs or by an abort.
    Closed(Result<(), Abort>),
}

/// The counters of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpStats {
    /// Segments sent that use sequence space (data, SYN or FIN), counting both first transmissions and retransmissions.
    pub data_segments: u64,
    /// The number of these whose first sequence number had been sent before.
    pub retransmits: u64,
    /// Reductions of the window for an echoed mark (RFC 3168).
    pub ecn_reductions: u64,
    /// Our segments that arrived with a mark, as reported by the peer (RFC 9768).
    pub marks_told: u64,
    /// Received segments with data and a congestion mark.
    pub marks_received: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Losses found by duplicate ACKs or SACK: fast retransmits.
    pub fast_retransmits: u64,
    /// Timeouts found to be spurious during their repair, by F-RTO, timestamps or D-SACK.
    pub spurious_timeouts: u64,
    /// Fast recoveries that D-SACK or timestamps have shown to be needless and that were undone. Also counts timeouts
    /// found to be spurious after their repair.
    pub spurious_recoveries: u64,
    /// Acceptable ACKs received.
    pub acks_received: u64,
    /// The number of these that are duplicate ACKs.
    pub duplicate_acks: u64,
    /// D-SACK blocks received: they report needless retransmissions (RFC 2883).
    pub dsacks: u64,
    /// Segments sent without data.
    pub pure_acks: u64,
    /// Segments received without new data.
    pub duplicates_received: u64,
    /// Segments received beyond a gap.
    pub out_of_order_received: u64,
    /// Maximum number of outstanding bytes.
    pub max_flight: u64,
    /// Maximum congestion window, bytes.
    pub max_cwnd: u64,
    /// Maximum number of segments sent in response to one event.
    pub max_burst: u32,
}
