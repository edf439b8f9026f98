//! The settings of one end of an STP connection, and its window.

use crate::tcp::{AckPolicy, TcpConfig};
use crate::units::{Bytes, Duration, Rate};
use crate::wire::stp::HEADER;

/// Longer than any connection waits for an acknowledgement.
const NEVER: Duration = Duration::from_secs(1_000_000);

/// From when a segment's timer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arming {
    /// From when the segment has left the sender's line. The end knows the provisioned rate, and so when that is.
    Departure,
    /// From when it is handed down. A window that takes as long to send as the timer runs makes it expire for segments
    /// that still wait to be sent.
    HandOver,
}

/// The settings of one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StpConfig {
    /// The capacity that is provisioned for the connection.
    pub rate: Rate,
    /// Round trip of the path, from which the pipe is computed.
    pub rtt: Duration,
    /// Most bytes of payload in a segment that we send and that we ask for.
    pub mss: u16,
    /// Bytes per segment on the line below STP: IP header, framing.
    pub overhead: u32,
    /// The window in bytes of payload, where it is not to be what fills the pipe.
    pub window: Option<Bytes>,
    /// Retransmission timeout of a segment; it never changes.
    pub rto: Duration,
    /// From when it runs.
    pub arming: Arming,
    /// Retransmissions of a segment; when its timer runs out after the last of them, the connection is given up.
    pub max_retransmissions: u8,
    /// Bytes that the receiver takes beyond what the user has read, at most [`StpConfig::MAX_BUFFER`].
    pub receive_buffer: u32,
    /// Instead of timers: the interval of polls, as in the SSCOP-based protocol of the same name ([`polls`](super)).
    pub polls: Option<Duration>,
    /// Wait in TIME-WAIT: twice the maximum segment lifetime.
    pub time_wait: Duration,
}

impl StpConfig {
    /// The greatest receive buffer: with windows of at most 2^30 bytes 32-bit sequence numbers stay unambiguous (RFC 7323
    /// §2.3). At 1 Gbit/s of GEO that is fifteen round trips, in effect the "infinite receiver buffer" of the `stp` paper.
    pub const MAX_BUFFER: u32 = 1 << 30;

    /// What fills a path of that rate and round trip, with the `stp` paper's segments and timer (§IV, figure 2).
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

    /// The window in bytes of payload: the whole segments of `mss` that the pipe holds with their headers (`stp` paper,
    /// figure 2), one at least, or what was set. Where polls ask for acknowledgements, it lasts for an interval of theirs more.
    pub fn window(&self, mss: u16) -> u64 {
        let on_line = mss as u64 + HEADER as u64 + self.overhead as u64;
        let wanted = match self.window {
            Some(window) => window.get(),
            None => self.rate.bytes_in_floor(self.rtt + self.polls.unwrap_or(Duration::ZERO)) / on_line * mss as u64,
        };
        wanted.max(mss as u64)
    }

    /// What the connection and the receiver take from TCP: an ACK for every segment, SACK, no option besides.
    pub(super) fn shared(&self) -> TcpConfig {
        TcpConfig {
            mss: self.mss,
            // Who is polled answers polls and gaps; data in order alone calls up no answer.
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
