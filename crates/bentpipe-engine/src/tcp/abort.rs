//! Why a connection ended, in words.

use core::fmt;

use super::connection::Abort;

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Abort::Refused => "connection refused by the peer",
            Abort::Reset => "connection reset by the peer",
            Abort::RetriesExhausted => "connection timed out: a segment was retransmitted as often as allowed",
            Abort::Local => "connection aborted",
        })
    }
}

impl core::error::Error for Abort {}
