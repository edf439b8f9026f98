//! Events for observers. An observer changes nothing: a run is the same with or without one.

mod quic;

use crate::tcp::{Segment, State};
use crate::units::{Duration, Time};

pub use quic::{QuicKind, QuicPacket};

/// The driver's number of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who(pub u32);

/// Why a link lost a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The queue had no room.
    QueueFull,
    /// The queue chose the packet: RED, CoDel, or a filter of ACKs.
    Early,
    /// The channel lost or damaged it.
    Channel,
    /// It is on the scenario's drop list.
    Listed,
    /// It is longer than the link's MTU.
    TooLong,
}

/// Something that happened inside a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A connection changed its state (RFC 9293 §3.3.2).
    State {
        /// The state left.
        from: State,
        /// The state entered.
        to: State,
    },
    /// A segment was sent.
    Sent {
        /// The segment.
        segment: Segment,
        /// True if its first byte had been sent before.
        retransmission: bool,
    },
    /// A segment was received.
    Received {
        /// The segment.
        segment: Segment,
    },
    /// A QUIC packet was sent.
    QuicSent(QuicPacket),
    /// A QUIC packet was received.
    QuicReceived(QuicPacket),
    /// The sender's windows after an ACK or a loss.
    Window {
        /// Congestion window in bytes, including inflation.
        cwnd: u64,
        /// Slow start threshold, bytes.
        ssthresh: u64,
        /// `snd_max - snd_una`, bytes.
        flight: u64,
    },
    /// A round-trip sample was taken (RFC 6298 §2).
    Rtt {
        /// The sample.
        sample: Duration,
        /// The resulting timeout, without backoff.
        rto: Duration,
    },
    /// The sender entered loss recovery.
    RecoveryEntered {
        /// `snd_una` at that time.
        snd_una: u64,
        /// The highest sequence number sent; its ACK ends the recovery.
        recover: u64,
    },
    /// The sender left loss recovery.
    RecoveryLeft,
    /// The retransmission timer expired.
    Timeout {
        /// The first byte not acknowledged.
        snd_una: u64,
        /// Consecutive timeouts.
        backoffs: u32,
    },
    /// A timeout was found spurious (RFC 5682).
    SpuriousTimeout,
    /// The window was reduced, because the receiver echoed a mark (RFC 3168 §6.1.2).
    MarkEchoed {
        /// The first byte not acknowledged.
        snd_una: u64,
    },
    /// A packet arrived at the queue of a link.
    Queue {
        /// Packets that wait ahead of it, not counting the one in transmission.
        packets: u32,
        /// Bytes that wait ahead of it.
        bytes: u64,
        /// RED's average in packets, if the queue uses RED.
        average: Option<f64>,
    },
    /// The queue of a link marked a packet instead of dropping it (RFC 3168 §5).
    Marked,
    /// The link lost a packet.
    Dropped {
        /// Why.
        reason: DropReason,
    },
}

/// An observer of events.
pub trait Probe {
    /// If false, events are not constructed.
    const WATCHES: bool = true;

    /// Receives one event.
    fn event(&mut self, now: Time, who: Who, event: &Event);
}

/// No observer.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    const WATCHES: bool = false;
    #[inline(always)]
    fn event(&mut self, _: Time, _: Who, _: &Event) {}
}
