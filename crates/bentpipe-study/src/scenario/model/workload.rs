//! What flows transfer, and when.

use bentpipe_engine::link::Distribution;
use bentpipe_engine::units::{Bytes, Duration, Rate};

/// The workload of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// A number of bytes, then the end.
    Bulk(Bytes),
    /// As much as possible.
    Greedy {
        /// The duration; `None`: until the scenario ends.
        duration: Option<Duration>,
    },
    /// An application writes at a rate, independent of delivery.
    Paced {
        /// Rate while it writes.
        rate: Rate,
        /// Length of a write.
        write: Bytes,
        /// When it writes.
        pattern: UdpPattern,
        /// Total amount; `None`: until the scenario ends.
        total: Option<Bytes>,
    },
    /// Requests from `from`, each answered by `to`, one after the other.
    RequestResponse {
        /// Length of a request.
        request: Bytes,
        /// Length of a response.
        response: Bytes,
        /// Pause between a response and the next request.
        think: Duration,
        /// Number of requests.
        count: u32,
    },
}

impl Workload {
    /// True if it has an end of its own; otherwise it lasts until the scenario ends, or is stopped.
    pub fn ends(self) -> bool {
        !matches!(self, Workload::Greedy { .. } | Workload::Paced { total: None, .. })
    }
}

/// Packets without feedback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdpFlow {
    /// Rate on the wire while it sends.
    pub rate: Rate,
    /// Packet length on the wire in bytes, including 28 bytes of IPv4 and UDP headers.
    pub packet: u32,
    /// When it sends.
    pub pattern: UdpPattern,
    /// When it stops, from the scenario's start; `None`: when the scenario ends.
    pub stop: Option<Duration>,
}

/// When a UDP flow sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UdpPattern {
    /// Always: constant bit rate.
    Cbr,
    /// On and off.
    OnOff {
        /// Lengths of sending periods.
        on: Distribution,
        /// Lengths of pauses.
        off: Distribution,
    },
    /// Video frames, each at its own time.
    Mpeg(Mpeg),
}

/// MPEG video (ISO/IEC 11172-2): groups of pictures with one independent frame (I), frames predicted from earlier ones
/// (P), and frames in between predicted from both sides (B). All frames of a kind have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mpeg {
    /// Time from the start of a frame to the next.
    pub interval: Duration,
    /// Frames per group.
    pub group: u8,
    /// Frames from one I or P frame to the next.
    pub distance: u8,
    /// Bytes of an I frame.
    pub i: u32,
    /// Bytes of a P frame.
    pub p: u32,
    /// Bytes of a B frame.
    pub b: u32,
}

impl Mpeg {
    /// Bytes of the n-th frame, from 0, in the order in which they are sent.
    pub fn bytes(&self, n: u64) -> u32 {
        match n % u64::from(self.group) {
            0 => self.i,
            at if at % u64::from(self.distance) == 0 => self.p,
            _ => self.b,
        }
    }
}
