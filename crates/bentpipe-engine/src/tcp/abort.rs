//! Why a connection ended early.

use core::error::Error;
use core::fmt;

/// Why a connection ended other than by an exchange of FINs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// The peer refused the SYN.
    Refused,
    /// The peer sent a reset.
    Reset,
    /// A segment was retransmitted the maximum number of times (RFC 9293 §3.8.3).
    RetriesExhausted,
    /// The user aborted the connection, or closed it while written data was still undelivered.
    Local,
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Abort::Refused => "connection refused by the peer",
            Abort::Reset => "connection reset by the peer",
            Abort::RetriesExhausted => "connection timed out: the peer does not acknowledge",
            Abort::Local => "connection aborted by this end",
        })
    }
}

impl Error for Abort {}
