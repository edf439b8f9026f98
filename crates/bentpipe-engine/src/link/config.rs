//! What a link can be made of.

use std::sync::Arc;

use super::opportunities::RateTrace;
use super::slots::BurstSchedule;
use crate::units::{Bytes, Duration, Probability, Rate};

/// How much may wait, the packet in transmission not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// As much as comes.
    Unlimited,
    /// So many packets.
    Packets(u32),
    /// So many bytes.
    Bytes(Bytes),
}

/// Random Early Detection (Floyd and Jacobson 1993), in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Average below which nothing is dropped, packets.
    pub min_threshold: f64,
    /// Average at which `max_probability` is reached, packets.
    pub max_threshold: f64,
    /// Drop probability at `max_threshold`.
    pub max_probability: Probability,
    /// Weight of a new sample in the average.
    pub weight: f64,
    /// From `max_threshold` to twice that, the probability rises to 1 instead of jumping (Floyd 2000, "gentle").
    pub gentle: bool,
    /// Spread drops evenly: at least 1/p packets between two of them (ns-2's `wait_`), not only on average.
    pub wait: bool,
    /// Packet length from which an idle period is counted in packet times.
    pub mean_packet: Bytes,
}

/// Which packets are admitted while there is room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// All.
    DropTail,
    /// RED's choice.
    Red(RedConfig),
}

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueConfig {
    /// Room.
    pub limit: QueueLimit,
    /// Admission.
    pub discipline: Discipline,
}

/// What comes first of a packet's arrival and the departure of another in one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The departure, which leaves its place to the arrival.
    #[default]
    Departure,
    /// What was begun first, as in ns-2: a departure with its transmission, an arrival with the one on the link before.
    Begun,
}

/// A distribution of time spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Fixed(Duration),
    /// Each span between the bounds alike.
    Uniform(Duration, Duration),
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: Duration,
    },
    /// Exponential, values beyond a bound set to the bound: `transat`'s bursts.
    ExponentialClipped {
        /// Mean before clipping.
        mean: Duration,
        /// Lower bound.
        min: Duration,
        /// Upper bound.
        max: Duration,
    },
    /// Exponential, values beyond a bound drawn again.
    ExponentialTruncated {
        /// Mean before truncation.
        mean: Duration,
        /// Lower bound.
        min: Duration,
        /// Upper bound.
        max: Duration,
    },
}

/// How the state of the channel moves in time.
#[derive(Clone, Debug, PartialEq)]
pub enum ChannelConfig {
    /// Always good.
    Clear,
    /// Bursts, begun after a gap from the end of the one before; the first gap runs from the start.
    OnOff {
        /// Length of a gap.
        gap: Distribution,
        /// Length of a burst.
        burst: Distribution,
    },
    /// Bursts at known times: a forced schedule, or a recorded trace. Start and length, in order of time.
    Schedule(Vec<(Duration, Duration)>),
}

/// What the channel does to a packet, in each of its states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossConfig {
    /// Probability that a packet is lost.
    pub packet: Probability,
    /// Probability that a bit is wrong; a packet with a wrong bit is lost.
    pub bit: Probability,
}

impl LossConfig {
    /// Loses nothing.
    pub const NONE: LossConfig = LossConfig { packet: Probability::ZERO, bit: Probability::ZERO };
}

/// Losses that follow the packets, not the time: a packet is lost because the one before it was (`minei` §5.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PacketBursts {
    /// By the state of the packet before: `minei`'s "loss burstiness factor".
    Conditional {
        /// Probability of a loss after a packet that was not lost.
        start: Probability,
        /// Probability of a loss after a loss; at least `start` is used.
        again: Probability,
    },
    /// Runs of a fixed length: `minei`'s "constant probability of losing a burst of n packets".
    Runs {
        /// Probability that a packet outside a run begins one.
        start: Probability,
        /// Packets in a run.
        length: u32,
    },
}

/// Longer propagation in a burst: the `transat` paper's approximation of link-layer retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraDelay(pub Duration);

/// Whose a buffer for cells is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each virtual channel has one of its own.
    PerChannel,
    /// All channels take from one, as they need.
    Shared,
}

/// A port that virtual channels share cell by cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellConfig {
    /// Rate of the lines over which the cells come to the port, one line per channel; `None`: all cells of a packet at
    /// once.
    pub line: Option<Rate>,
    /// Room for cells that wait, the one in transmission not counted; `None`: for all.
    pub buffer: Option<u32>,
    /// Whose the buffer is.
    pub sharing: Sharing,
    /// Early packet discard: a packet whose first cell finds more cells than this waiting is thrown away whole.
    pub early_discard: Option<u32>,
    /// Partial packet discard: once a cell has found no room, of its packet only the last cell is let in.
    pub partial_discard: bool,
}

impl CellConfig {
    /// Nothing is ever refused, and cells come in at once.
    pub const OPEN: CellConfig = CellConfig {
        line: None,
        buffer: None,
        sharing: Sharing::PerChannel,
        early_discard: None,
        partial_discard: false,
    };
}

/// A link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Line rate; `None` takes no time to transmit. Where there is a trace or a schedule of bursts, its mean.
    pub rate: Option<Rate>,
    /// What the line carries when, where that is recorded.
    pub rate_trace: Option<Arc<RateTrace>>,
    /// When the line may send, where it shares a channel by time.
    pub tdma: Option<Arc<BurstSchedule>>,
    /// Propagation delay.
    pub delay: Duration,
    /// Bytes that the link's own header adds to each packet on the line.
    pub header: u32,
    /// A longer packet, `header` not counted, is dropped before the queue; `None`: no limit.
    pub mtu: Option<u32>,
    /// Queue before the line.
    pub queue: QueueConfig,
    /// State of the channel over time.
    pub channel: ChannelConfig,
    /// Loss while the channel is good.
    pub good: LossConfig,
    /// Loss while it is bad.
    pub bad: LossConfig,
    /// Delay added to what starts transmission while it is bad; order is kept.
    pub extra_delay: ExtraDelay,
    /// Loss by the sequence of packets, beside the other kinds.
    pub packet_bursts: Option<PacketBursts>,
    /// The order of an arrival and a departure of one instant.
    pub ties: Ties,
    /// Packets lost before the queue: indices, from 0, in order of arrival among the packets that can be listed.
    pub drop_list: Vec<u64>,
    /// Packets travel in cells, AAL5 with LLC/SNAP: the link is a [`CellPort`](super::CellPort), has a rate, and its
    /// `queue` is not used.
    pub cells: Option<CellConfig>,
}

impl LinkConfig {
    /// A clean link with an unlimited queue whose line follows a trace.
    pub fn following(trace: Arc<RateTrace>, delay: Duration) -> Self {
        LinkConfig { rate_trace: Some(trace.clone()), ..LinkConfig::clean(Some(trace.mean()), delay) }
    }

    /// A clean link with an unlimited queue.
    pub fn clean(rate: Option<Rate>, delay: Duration) -> Self {
        LinkConfig {
            rate,
            rate_trace: None,
            tdma: None,
            delay,
            header: 0,
            mtu: None,
            queue: QueueConfig { limit: QueueLimit::Unlimited, discipline: Discipline::DropTail },
            channel: ChannelConfig::Clear,
            good: LossConfig::NONE,
            bad: LossConfig::NONE,
            extra_delay: ExtraDelay(Duration::ZERO),
            packet_bursts: None,
            ties: Ties::Departure,
            drop_list: Vec::new(),
            cells: None,
        }
    }
}
