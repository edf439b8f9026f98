//! A TCP connection (RFC 9293 §3): one sender, one receiver, and the states between them.

use super::segment::Segment;

/// Connection states (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No connection.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has received and sent a SYN.
    SynReceived,
    /// Data flows.
    Established,
    /// Has sent a FIN.
    FinWait1,
    /// Its FIN is acknowledged; the other direction is open.
    FinWait2,
    /// Has received a FIN; its own direction is open.
    CloseWait,
    /// Both have sent FINs, its own is not acknowledged yet.
    Closing,
    /// Has received a FIN, then sent its own.
    LastAck,
    /// Waits for stray segments to die.
    TimeWait,
}

/// Which side opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the SYN when it is opened.
    Active,
    /// Waits for a SYN.
    Passive,
}

/// Why a connection ended other than by two FINs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// The peer refused the SYN.
    Refused,
    /// The peer sent a reset.
    Reset,
    /// A segment was retransmitted as often as allowed (RFC 9293 §3.8.3).
    RetriesExhausted,
    /// The user aborted.
    Local,
}

/// What the driver brings to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Open: an active connection sends its SYN, a passive one listens.
    Open,
    /// The user has this many more bytes to send.
    Write(u64),
    /// The user has taken this many bytes out of the receive buffer.
    Read(u64),
    /// The user sends no more: a FIN follows the data.
    Close,
    /// Drop everything, send a reset.
    Abort,
    /// A segment has come; where the driver keeps real bytes it has stored them at the segment's span already.
    Segment(Segment),
}

/// What a connection asks of the driver, or tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this segment; its payload is `seq..seq + len` of the bytes written, the first byte being `FIRST_BYTE`.
    Transmit(Segment),
    /// The handshake is done.
    Connected,
    /// So many bytes, in order, can be read from the start on: read and unread ones together.
    Readable(u64),
    /// So many bytes of those written have been acknowledged from the start on: the driver may let go of them.
    Acknowledged(u64),
    /// The peer sends no more.
    PeerClosed,
    /// The end: after both FINs, or by an abort.
    Closed(Result<(), Abort>),
}
