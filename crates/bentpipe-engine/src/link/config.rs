//! The settings of a link.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::course::{Course, Phases};
use super::dualpi2::DualPi2;
use super::moving::MovingLine;
use super::opportunities::RateTrace;
use super::slots::BurstSchedule;
use super::track::Track;
use crate::units::{Bytes, Duration, Probability, Rate, Time};

/// The limit of a queue, not counting the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Unlimited.
    Unlimited,
    /// A number of packets.
    Packets(u32),
    /// A number of bytes.
    Bytes(Bytes),
}

impl QueueLimit {
    /// True if one more packet may wait. `packets` already wait, and `bytes` is their length including the new
    /// packet's.
    #[inline(always)]
    pub(crate) fn has_room(self, packets: impl FnOnce() -> usize, bytes: u64) -> bool {
        match self {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(limit) => packets() < limit as usize,
            QueueLimit::Bytes(limit) => bytes <= limit.get(),
        }
    }
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
    /// Between `max_threshold` and twice that, the probability rises gradually to 1 instead of jumping (Floyd 2000,
    /// "gentle").
    pub gentle: bool,
    /// Spread drops evenly, with at least 1/p packets between two drops (ns-2's `wait_`), instead of only on average.
    pub wait: bool,
    /// Packet length for converting idle time into packets.
    pub mean_packet: Bytes,
}

/// CoDel (RFC 8289): drops packets when all have waited longer than `target` throughout an `interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// The acceptable standing waiting time.
    pub target: Duration,
    /// The time in which senders react: a round trip of the whole path or more.
    pub interval: Duration,
}

impl Codel {
    /// The settings of RFC 8289 §4.4: 5 ms and 100 ms.
    pub const DEFAULT: Codel = Codel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
}

/// How packets are admitted while there is room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// All packets are admitted.
    DropTail,
    /// RED decides.
    Red(RedConfig),
    /// All packets are admitted; CoDel drops some as they leave. The link is a
    /// [`ManagedLink`](crate::network::ManagedLink).
    Codel(Codel),
    /// All packets are admitted; flows take turns, each with its own CoDel (RFC 8290). The link is also a managed one.
    FqCodel(Codel),
    /// All packets are admitted, to one queue for L4S and one for all others, which are coupled (RFC 9332). The link is
    /// also a managed one.
    DualPi2(DualPi2),
}

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueConfig {
    /// The limit.
    pub limit: QueueLimit,
    /// The admission rule.
    pub discipline: Discipline,
    /// Packets that understand ECN are marked if the discipline would drop them early (RFC 3168 §7). They are still
    /// dropped if there is no room, or if RED would drop all packets. DualPI2 always marks.
    pub marking: bool,
}

/// The order of an arrival and a departure of another packet at the same instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The departure comes first and frees its place for the arrival.
    #[default]
    Departure,
    /// By scheduling time, as in ns-2. A departure's scheduling time is the start of its transmission; an arrival's is
    /// the start of its transmission on the previous link.
    Begun,
}

/// A distribution of durations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Fixed(Duration),
    /// Uniform between the bounds.
    Uniform(Duration, Duration),
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: Duration,
    },
    /// Exponential, clipped to the bounds: `transat`'s bursts.
    ExponentialClipped {
        /// Mean before clipping.
        mean: Duration,
        /// Lower bound.
        min: Duration,
        /// Upper bound.
        max: Duration,
    },
    /// Exponential, with values outside the bounds drawn again.
    ExponentialTruncated {
        /// Mean before truncation.
        mean: Duration,
        /// Lower bound.
        min: Duration,
        /// Upper bound.
        max: Duration,
    },
    /// Normal; values below zero are zero.
    Normal {
        /// Its mean.
        mean: Duration,
        /// Its standard deviation.
        deviation: Duration,
    },
    /// Pareto: a fraction of (min / x) ^ shape of the values is above x, where shape is mean / (mean - min).
    Pareto {
        /// The minimum.
        min: Duration,
        /// The mean, above `min`.
        mean: Duration,
    },
}

/// A delay that varies over time, added to the propagation delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// The added delay.
    pub delay: Distribution,
    /// Correlation of neighbouring slots.
    pub correlation: Probability,
    /// Length of a slot, in which the delay is constant.
    pub every: Duration,
    /// True if packets may overtake each other; otherwise a packet waits for those sent before it.
    pub reorder: bool,
}

/// Packets that others overtake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// The probability that a packet is delayed so.
    pub probability: Probability,
    /// The additional delay.
    pub delay: Duration,
}

/// Settings that change at known times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moves {
    /// The rate in bits per second; zero stops the line. Replaces the link's own rate.
    pub rate: Option<Arc<Track>>,
    /// The propagation delay in ticks. Replaces the link's own delay.
    pub delay: Option<Arc<Track>>,
    /// The loss probability ([`Track::of_probability`]) while the channel is good. Replaces the link's own.
    pub loss: Option<Arc<Track>>,
    /// The queue's limit, as an index into `limits`. When it falls, packets that already wait stay.
    pub queue: Option<Arc<Track>>,
    /// The limits to which `queue` refers.
    pub limits: Vec<QueueLimit>,
}

/// How the channel state changes over time.
#[derive(Clone, Debug, PartialEq)]
pub enum ChannelConfig {
    /// Always good.
    Clear,
    /// Bursts, each after a gap that begins at the end of the previous one. The first gap begins at the start of the
    /// run.
    OnOff {
        /// Length of a gap.
        gap: Distribution,
        /// Length of a burst.
        burst: Distribution,
    },
    /// Bursts at known times (a forced schedule or a recorded trace): start and length, in order of time.
    Schedule(Vec<(Duration, Duration)>),
}

/// The loss of packets in a channel state.
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

/// Losses by packet number instead of time: whether a packet is lost depends on the previous packet (`minei` §5.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PacketBursts {
    /// By the fate of the previous packet: `minei`'s "loss burstiness factor".
    Conditional {
        /// Loss probability after a packet that was not lost.
        start: Probability,
        /// Loss probability after a lost packet; at least `start`.
        again: Probability,
    },
    /// Runs of a fixed length: `minei`'s "constant probability of losing a burst of n packets".
    Runs {
        /// Probability that a packet outside a run starts one.
        start: Probability,
        /// Packets in a run.
        length: u32,
    },
}

/// Longer propagation during a burst: the `transat` paper's approximation of link-layer retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraDelay(pub Duration);

/// Owner of a cell buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One buffer per virtual channel.
    PerChannel,
    /// One buffer for all channels.
    Shared,
}

/// A port that virtual channels share cell by cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellConfig {
    /// Rate of the port's input lines, one line per channel; `None`: all cells of a packet arrive at once.
    pub line: Option<Rate>,
    /// Maximum number of waiting cells, not counting the one in transmission; `None`: unlimited.
    pub buffer: Option<u32>,
    /// Owner of the buffer.
    pub sharing: Sharing,
    /// Early packet discard: a packet is dropped whole if its first cell finds more waiting cells than this.
    pub early_discard: Option<u32>,
    /// Partial packet discard: after a dropped cell, only the last cell of its packet is accepted.
    pub partial_discard: bool,
}

impl CellConfig {
    /// Unlimited buffer; all cells of a packet arrive at once.
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
    /// Line rate; `None`: transmission takes no time. With a trace or a schedule of bursts, the mean rate.
    pub rate: Option<Rate>,
    /// The rate trace of the line, if any.
    pub rate_trace: Option<Arc<RateTrace>>,
    /// The line's TDMA schedule, if any.
    pub tdma: Option<Arc<BurstSchedule>>,
    /// Propagation delay.
    pub delay: Duration,
    /// Size of the link's own header, added to each packet on the line.
    pub header: u32,
    /// MTU without `header`; longer packets are dropped before the queue. `None`: no limit.
    pub mtu: Option<u32>,
    /// Queue before the line.
    pub queue: QueueConfig,
    /// Channel state over time.
    pub channel: ChannelConfig,
    /// Loss while the channel is good.
    pub good: LossConfig,
    /// Loss while the channel is bad.
    pub bad: LossConfig,
    /// Additional delay of packets whose transmission starts while the channel is bad; order is preserved.
    pub extra_delay: ExtraDelay,
    /// Loss by packet number, in addition to the other losses.
    pub packet_bursts: Option<PacketBursts>,
    /// The order of a simultaneous arrival and departure.
    pub ties: Ties,
    /// Packets dropped before the queue, as indices from 0 in order of arrival among the packets that count.
    pub drop_list: Vec<u64>,
    /// Settings that change at known times, if any.
    pub moves: Option<Arc<Moves>>,
    /// Phases with values of their own, if any.
    pub phases: Option<Phases>,
    /// Jitter, if any.
    pub jitter: Option<Jitter>,
    /// Packets that others overtake, if any.
    pub reorder: Option<Reorder>,
    /// Probability that a packet arrives twice.
    pub duplicate: Probability,
    /// Probability that a bit of a packet is flipped; the far host's checksum detects it.
    pub corrupt: Probability,
    /// Set if packets travel in cells, AAL5 with LLC/SNAP. The link is then a [`CellPort`](super::CellPort) and must
    /// have a rate; its `queue` is not used.
    pub cells: Option<CellConfig>,
}

impl LinkConfig {
    /// True if the queue decides when packets leave it: CoDel, FQ-CoDel and DualPI2.
    pub fn has_managed_queue(&self) -> bool {
        !matches!(self.queue.discipline, Discipline::DropTail | Discipline::Red(_))
    }

    /// True if the rate is not constant: it follows a trace, a schedule or phases, or comes in bursts.
    pub fn rate_changes(&self) -> bool {
        let moves = self.moves.as_ref().is_some_and(|moves| moves.rate.is_some());
        let phases = self.phases.as_ref().is_some_and(Phases::moves_the_line);
        moves || phases || self.rate_trace.is_some() || self.tdma.is_some()
    }

    /// True if the delay follows a trace, a schedule or phases.
    pub fn delay_changes(&self) -> bool {
        let moves = self.moves.as_ref().is_some_and(|moves| moves.delay.is_some());
        moves || self.phases.as_ref().is_some_and(|phases| phases.delay.is_some())
    }

    /// True if the limit of the queue follows a schedule.
    pub fn queue_changes(&self) -> bool {
        self.moves.as_ref().is_some_and(|moves| moves.queue.is_some())
    }

    /// True if the loss probability follows a trace or a schedule.
    pub fn loss_changes(&self) -> bool {
        self.moves.as_ref().is_some_and(|moves| moves.loss.is_some())
    }

    /// The mean delay: over the period for a schedule or trace, the middle of the range for phases.
    pub fn mean_delay(&self) -> Duration {
        let tracked = self.moves.as_ref().and_then(|moves| Some(moves.delay.as_ref()?.mean()));
        let drawn = self.phases.as_ref().and_then(|phases| phases.delay);
        let drawn = drawn.map(|(min, max)| min.as_ticks() + (max.as_ticks() - min.as_ticks()) / 2);
        tracked.or(drawn).map_or(self.delay, Duration::from_ticks)
    }

    /// The link at its best, for lower bounds: with its lowest delay, the lowest loss of its schedule or trace, and its
    /// highest rate or, if the rate repeats, the mean rate.
    pub fn at_best(&self) -> Cow<'_, LinkConfig> {
        let moves = self.moves.as_deref();
        let phases = self.phases.as_ref();
        let once = |track: &&Arc<Track>| track.period().is_none();
        let stepped = moves.and_then(|moves| moves.rate.as_ref()).filter(once).and_then(|track| track.values().max());
        let drawn = phases.and_then(|phases| Some(phases.rate?.1.bits_per_second()));
        let rate = stepped.or(drawn).and_then(Rate::from_bits_per_second).or(self.rate);
        let tracked = moves.and_then(|moves| moves.delay.as_ref()).and_then(|track| track.values().min());
        let drawn = phases.and_then(|phases| Some(phases.delay?.0.as_ticks()));
        let delay = tracked.or(drawn).map_or(self.delay, Duration::from_ticks);
        let lowest = moves.and_then(|moves| moves.loss.as_ref()).and_then(|track| track.values().min());
        let packet = lowest.map_or(self.good.packet, Track::probability);
        if (rate, delay, packet) == (self.rate, self.delay, self.good.packet) {
            return Cow::Borrowed(self);
        }
        Cow::Owned(LinkConfig { rate, delay, good: LossConfig { packet, ..self.good }, ..self.clone() })
    }

    /// The period of a rate that repeats (a trace, bursts or a schedule), if there is one.
    pub fn rate_period(&self) -> Option<Duration> {
        let trace = self.rate_trace.as_ref().and_then(|trace| trace.millis().last().copied());
        let scheduled = self.moves.as_ref().and_then(|moves| moves.rate.as_ref()?.period());
        self.tdma.as_ref().map(|schedule| schedule.frame()).or(trace.map(Duration::from_millis)).or(scheduled)
    }

    /// When the line has sent `bytes` if it sends nothing else from `start` on. Only for a rate that follows a schedule
    /// or a trace of rates; otherwise `None`.
    pub fn sent_by(&self, start: Time, bytes: u64) -> Option<Time> {
        if let Some(trace) = &self.rate_trace {
            return Some(trace.sent_by(start, bytes));
        }
        let rates = self.moves.as_ref()?.rate.clone()?;
        let (begun, taken) = MovingLine::new(Course::of_track(rates)).transmit(start, bytes);
        Some(begun + taken)
    }

    /// A clean link with an unlimited queue whose line follows a trace.
    #[cfg(test)]
    pub(crate) fn following(trace: Arc<RateTrace>, delay: Duration) -> Self {
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
            queue: QueueConfig { limit: QueueLimit::Unlimited, discipline: Discipline::DropTail, marking: false },
            channel: ChannelConfig::Clear,
            good: LossConfig::NONE,
            bad: LossConfig::NONE,
            extra_delay: ExtraDelay(Duration::ZERO),
            packet_bursts: None,
            ties: Ties::Departure,
            drop_list: Vec::new(),
            moves: None,
            phases: None,
            jitter: None,
            reorder: None,
            duplicate: Probability::ZERO,
            corrupt: Probability::ZERO,
            cells: None,
        }
    }
}
