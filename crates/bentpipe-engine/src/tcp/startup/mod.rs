//! How a connection finds its first operating point: the initial window, slow start, and the window after a pause.
//!
//! Every congestion control starts up by these rules unless it has its own.

use super::variant::Growth;
use crate::units::{Duration, Time};

//= RFC 5681 §3.1: "if the SYN or SYN/ACK is lost, the initial window used by a sender after a correctly transmitted SYN
//= MUST be one segment"
/// The initial window in segments.
pub(in crate::tcp) fn initial_window(configured: u32, syn_lost: bool) -> u32 {
    if syn_lost { 1 } else { configured }
}

/// The bytes by which an ACK of `acked` bytes opens the window in slow start (RFC 5681 §3.1, RFC 3465 §2).
#[inline(always)]
pub(in crate::tcp) fn slow_start(growth: Growth, acked: u64, after_timeout: bool, mss: f64) -> f64 {
    match growth {
        Growth::PerAck => mss,
        Growth::Bytes(limit) => {
            //= RFC 3465 §2.3: L is 1*SMSS in the slow start that follows a timeout
            // An ACK may then cover much that had arrived long before.
            let limit = if after_timeout { limit.min(1) } else { limit };
            (acked as f64).min(limit as f64 * mss)
        }
    }
}

//= RFC 5681 §4.1: "a TCP SHOULD set cwnd to no more than RW before beginning transmission if the TCP has not sent data
//= in an interval exceeding the retransmission timeout", with "RW = min(IW,cwnd)"
/// True if the sender begins again with the restart window at the segment that it sends now.
pub(in crate::tcp) fn restarts_after_idle(now: Time, last_sent: Time, rto: Duration) -> bool {
    now.saturating_since(last_sent) > rto
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_by_hand() {
        // L = 2 segments of 1000 bytes; after a timeout L = 1.
        assert_eq!(slow_start(Growth::Bytes(2), 1500, false, 1000.0), 1500.0);
        assert_eq!(slow_start(Growth::Bytes(2), 5000, false, 1000.0), 2000.0);
        assert_eq!(slow_start(Growth::Bytes(2), 5000, true, 1000.0), 1000.0);
        assert_eq!(slow_start(Growth::PerAck, 5000, true, 1000.0), 1000.0);
    }
}
