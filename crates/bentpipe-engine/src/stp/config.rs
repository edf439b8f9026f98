//! The settings of one end of an STP connection, and its window.

use crate::tcp::{AckPolicy, TcpConfig};
use crate::units::{Bytes, Duration, Rate};
use crate::wire::stp::HEADER;

/// Longer than any wait for an acknowledgement.
const NEVER: Duration = Duration::from_secs(1_000_000);

/// When a segment's timer starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arming {
    /// When the segment has left the sender's line. The end computes this from the provisioned rate.
    Departure,
    /// At hand-over. If a window takes longer to send than the timeout, timers expire for segments that still wait to
    /// be sent.
    HandOver,
}

/// The settings of one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StpConfig {
    /// The capacity provisioned for the connection.
    pub rate: Rate,
    /// Round trip of the path, from which the pipe is computed.
    pub rtt: Duration,
    /// Maximum payload of a segment, in both directions.
    pub mss: u16,
    /// Bytes per segment on the line below STP: IP header, framing.
    pub overhead: u32,
    /// The window in bytes of payload, if it differs from the pipe.
    pub window: Option<Bytes>,
    /// Retransmission timeout of a segment. It never changes.
    pub rto: Duration,
    /// When the timer starts.
    pub arming: Arming,
    /// Maximum number of retransmissions of a segment. If its timer expires after the last one, the connection is
    /// aborted.
    pub max_retransmissions: u8,
    /// Receive buffer in bytes, at most [`StpConfig::MAX_BUFFER`].
    pub receive_buffer: u32,
    /// If set, polls at this interval replace timers, as in the SSCOP-based protocol of the same name
    /// ([`polls`](super)).
    pub polls: Option<Duration>,
    /// Time spent in TIME-WAIT: twice the maximum segment lifetime.
    pub time_wait: Duration,
}

impl StpConfig {
    /// Maximum receive buffer: with windows of at most 2^30 bytes, 32-bit sequence numbers stay unambiguous (RFC 7323
    /// §2.3). It holds fifteen GEO round trips at 1 Gbit/s, which is in effect the "infinite receiver buffer" of the
    /// `stp` paper.
    pub const MAX_BUFFER: u32 = 1 << 30;

    /// Settings that fill a path with this rate and round trip, using the `stp` paper's segments and timer (§IV, figure
    /// 2).
    pub const fn for_path(rate: Rate, rtt: Duration) -> Self {
        StpConfig {
            rate,
            rtt,
            mss: 1000,
            // IP 20 bytes, MAC 8 bytes.
            overhead: 28,
            window: None,
            rto: Duration::from_millis(550),
            arming: Arming::Departure,
            max_retransmissions: 6,
            receive_buffer: StpConfig::MAX_BUFFER,
            polls: None,
            time_wait: Duration::from_secs(60),
        }
    }

    /// Bandwidth times round trip (`stp` paper, equation 1).
    pub fn pipe(&self) -> Bytes {
        Bytes::new(self.rate.bytes_in_floor(self.rtt))
    }

    /// The window in bytes of payload: the number of whole segments of `mss` that fit the pipe with their headers
    /// (`stp` paper, figure 2), at least one; or the value that was set. With polls, it is larger by one polling
    /// interval.
    pub fn window(&self, mss: u16) -> u64 {
        let on_line = mss as u64 + HEADER as u64 + self.overhead as u64;
        let wanted = match self.window {
            Some(window) => window.get(),
            None => self.rate.bytes_in_floor(self.rtt + self.polls.unwrap_or(Duration::ZERO)) / on_line * mss as u64,
        };
        wanted.max(mss as u64)
    }

    /// The TCP settings of the connection and the receiver: an ACK for every segment, SACK, no other option.
    pub(super) fn shared(&self) -> TcpConfig {
        TcpConfig {
            mss: self.mss,
            // With polls, the receiver answers polls and gaps; in-order data gets no answer.
            ack: match self.polls {
                None => AckPolicy::IMMEDIATE,
                Some(_) => AckPolicy { delay: NEVER, every: u32::MAX, ..AckPolicy::IMMEDIATE },
            },
            receive_buffer: self.receive_buffer.min(StpConfig::MAX_BUFFER),
            window_scaling: false,
            timestamps: false,
            dsack: false,
            time_wait: self.time_wait,
            ..TcpConfig::default()
        }
    }
}
