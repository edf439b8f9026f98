//! Several connections at one gateway (§V.D).

/// Min window in TCP packets for three duplicate ACKs to follow a loss (RFC 5681 §3.2).
const FAST_RETRANSMIT_WINDOW: u32 = 4;

/// True if splitting leaves each of `connections` a window in which fast retransmit works, B/N ≥ 4 (Eq. 60). End to end
/// there is no such limit: the more connections, the fewer packets wait for each other, and the throughput of one
/// connection (Eq. 39) is a lower bound of their total.
pub fn fast_retransmit_possible(buffer: u32, connections: u32) -> bool {
    buffer >= FAST_RETRANSMIT_WINDOW.saturating_mul(connections)
}

/// Max number of connections that splitting serves with a buffer of this many TCP packets (Eq. 60).
pub fn max_connections(buffer: u32) -> u32 {
    buffer / FAST_RETRANSMIT_WINDOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_packets_serve_seven_connections() {
        assert_eq!(max_connections(30), 7);
        assert!(fast_retransmit_possible(30, 7) && !fast_retransmit_possible(30, 8));
    }
}
