//! The settings of an S-LACP link.

use alloc::vec::Vec;

use super::shortcuts::Shortcuts;
use crate::atm::aal5;
use crate::link::QueueLimit;
use crate::units::{Duration, Rate};
use crate::wire::slacp::{MAX_BLOCK, MAX_REPAIRS};

/// Retransmission on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arq {
    /// Maximum number of transmissions of a packet, including the first. After these, it is abandoned, and the receiver
    /// delivers the packets that waited for it. `None`: unlimited.
    pub transmissions: Option<u32>,
}

/// Copies sent while the line is idle: an unacknowledged packet is repeated before it can be known to be lost. Copies
/// use only spare capacity. If a fade ends before the last copy, it costs no round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Minimum time between two transmissions of a packet.
    pub interval: Duration,
    /// Maximum number of copies of a packet.
    pub max: u8,
    /// True if only retransmitted packets are copied, for channels whose repair frames protect first transmissions.
    pub only_resent: bool,
}

/// Repair frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fec {
    /// Maximum number of data frames in a block, 1 to [`Fec::MAX_FRAMES`].
    pub block: u8,
    /// Maximum number of data frames in a block whose first packet has waited for less than a quarter of `interval`. If one of the first
    /// packets of a flight is lost, the ACKs of all others wait for its block to be repaired. `None`: as in other blocks.
    pub first_block: Option<u8>,
    /// A repair frame is sent if it is expected to complete at least this fraction of blocks. If repair frames cost
    /// throughput, about 0.005 ([`Fec::WORTH`]) is appropriate.
    pub worth: f64,
    /// Maximum age of a block. It ends this long after its first frame, even if it is not full.
    pub interval: Duration,
    /// Maximum number of repair frames per data frame.
    pub max_overhead: f64,
    /// When repair frames are sent.
    pub repairs: Repairs,
}

/// When repair frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repairs {
    /// When no data of the same or a higher priority waits. They cost no throughput.
    Spare,
    /// As soon as their block is complete. They cost throughput, but flows that fill the line save the round trip for
    /// which a lost packet would delay them.
    Prompt,
    /// As [`Repairs::Spare`], until a packet of the block is known to be lost, which is then retransmitted at once. A
    /// transfer that fills the line pays nothing for its repair frames, and its end, when the line becomes idle, is
    /// protected for a whole round trip. Only with retransmission.
    Idle,
    /// As [`Repairs::Prompt`] while the channel's queue is shorter than a quarter of a round trip, otherwise as
    /// [`Repairs::Idle`]: with a longer queue, other flows keep the line busy while a lost packet delays one of them.
    /// Only with retransmission.
    Short,
}

impl Repairs {
    /// True if a block's repair frames are cancelled when one of its packets is known to be lost, instead of after a
    /// time.
    pub(super) const fn end_with_a_loss(self) -> bool {
        matches!(self, Repairs::Idle | Repairs::Short)
    }
}

impl Fec {
    /// A repair frame that completes this fraction of blocks saves a flow one round trip, in which a full line sends
    /// some hundreds of frames. With a lower value, fades cause more repairs than they are worth.
    pub const WORTH: f64 = 0.005;
    /// Maximum number of data frames in a block.
    pub const MAX_FRAMES: u8 = MAX_BLOCK;
    /// Maximum number of repair frames for a block.
    pub const MAX_REPAIRS: u8 = MAX_REPAIRS;
}

/// The order of delivery at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No order: packets pass as they arrive.
    None,
    /// Packets of a flow keep their order.
    Flow,
    /// Packets of the channel keep their order.
    Channel,
}

/// How packets that waited for an earlier one are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// At once.
    AtOnce,
    /// At this rate (transat §5).
    Paced(Rate),
    /// At once, except after an outage. Packets lost in the outage are retransmitted one by one at the rate of the
    /// line, and are delivered in at most eight groups per round trip. HyStart (RFC 9406) leaves slow start when eight
    /// samples of a round are all above the minimum; with fewer samples it stays in slow start.
    Grouped,
}

pub use crate::link::Codel;

/// The queueing of a channel's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// First in, first out. A packet that finds the queue full is dropped.
    Fifo,
    /// Each flow has its own queue, and the flows take turns (deficit round robin, Shreedhar and Varghese 1995). If
    /// there is no room, the flow with the longest queue loses its newest packets (longest queue drop, McKenney 1990).
    Fair,
    /// Hosts take turns, and within a host its flows do. Each flow has its own CoDel and ACK filter if the channel has
    /// these (FQ-CoDel, RFC 8290). If there is no room, the host that occupies the most loses the newest packets of its
    /// longest flow. Packets are whole frames, and the limit counts only waiting ones.
    Hosts,
}

/// A logical channel: how its packets are treated and queued.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelConfig {
    /// Retransmission; `None`: packets are not retransmitted.
    pub arq: Option<Arq>,
    /// Copies sent while the line is idle; `None`: no copies. Only with retransmission.
    pub copies: Option<Copies>,
    /// True to retransmit the oldest packet first instead of the one that was lost first.
    pub resends_oldest_first: bool,
    /// Erasure code; `None`: no repair frames.
    pub fec: Option<Fec>,
    /// Order at the receiver.
    pub order: Order,
    /// Priority: channels with a lower number go first, always or up to [`SlacpConfig::urgent_share`].
    pub priority: u8,
    /// Weight among channels of one priority.
    pub weight: u32,
    /// Limit of the queue.
    pub limit: QueueLimit,
    /// True if unacknowledged frames count towards the limit as well (`hybrid`, H-M05).
    pub limit_counts_copies: bool,
    /// Active queue management; `None`: packets are dropped only when the queue is full.
    pub codel: Option<Codel>,
    /// True if an acknowledgement replaces a queued one of its flow that acknowledges less (ACK filtering, RFC 3449
    /// §5.2.1). A narrow line then carries only the last of them, and delayed acknowledgements do not release a burst.
    pub filters_acks: bool,
    /// Queueing of flows. [`Queueing::Fair`] excludes CoDel and ACK filtering.
    pub queueing: Queueing,
    /// Frames per packet, 1 to [`ChannelConfig::MAX_SEGMENTS`] (`hybrid`, S of H-M04). The queue's limit counts
    /// packets: one with an unacknowledged frame takes the room of a whole one. More than 1 is allowed only in a
    /// weightless layer, since frames on the wire carry whole packets, and only without FEC and CoDel.
    pub segments: u8,
}

impl ChannelConfig {
    /// Maximum number of frames per packet: even a packet of 500 bytes then has some bytes for each frame.
    pub const MAX_SEGMENTS: u8 = 64;

    /// A channel that loses nothing: frames are retransmitted until they arrive, and each flow keeps its order. The
    /// queue is unlimited; there are no repair frames and no copies.
    pub const fn reliable() -> Self {
        ChannelConfig {
            arq: Some(Arq { transmissions: None }),
            copies: None,
            resends_oldest_first: false,
            fec: None,
            order: Order::Flow,
            priority: 0,
            weight: 1,
            limit: QueueLimit::Unlimited,
            limit_counts_copies: false,
            codel: None,
            filters_acks: false,
            queueing: Queueing::Fifo,
            segments: 1,
        }
    }

    /// As [`ChannelConfig::reliable`], but a packet is given up after `transmissions` transmissions.
    pub const fn persistent(transmissions: u32) -> Self {
        ChannelConfig { arq: Some(Arq { transmissions: Some(transmissions) }), ..ChannelConfig::reliable() }
    }

    /// A channel without any treatment: each frame is sent once and passed on as it arrives, as on a bare link.
    pub(crate) const fn unreliable() -> Self {
        ChannelConfig { arq: None, order: Order::None, ..ChannelConfig::reliable() }
    }
}

/// How a sender determines its sending rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateControl {
    /// Always the rate of the line.
    Fixed,
    /// The configured rate, on a line with no other traffic. The rate is lower while the receiver's reports show that
    /// the line carries less.
    Provisioned,
    /// BBR, on a line shared with other traffic; the configured rate is the maximum.
    Shared,
}

/// How a peer is probed that is silent, perhaps because of an outage: one frame is sent at a time, with pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probing {
    /// Each pause is twice as long as the one before, up to 5 s. Each frame counts towards [`Arq::transmissions`].
    Doubling,
    /// Pauses double only until they are this long, so that an outage ends soon for the layer, too. Zero: each pause is a
    /// timeout, about a round trip. The frames do not count towards [`Arq::transmissions`], as nothing else was to be expected.
    Steady(Duration),
}

/// What carries the frames, which determines their size on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overhead {
    /// Headers of this many bytes.
    Bytes(u32),
    /// Whole ATM cells: LLC/SNAP, AAL5's trailer and padding, and the cell headers.
    Cells,
}

impl Overhead {
    /// Bytes on the line of a frame of `len` bytes.
    pub(super) fn on_line(self, len: u32) -> u32 {
        match self {
            Overhead::Bytes(bytes) => len + bytes,
            Overhead::Cells => aal5::line_bytes(len as usize) as u32,
        }
    }
}

/// The settings of one end of the layer; the other end has the same.
#[derive(Clone, Debug, PartialEq)]
pub struct SlacpConfig {
    /// Rate of the line below; `None`: transmission takes no time.
    pub rate: Option<Rate>,
    /// How the sender determines its rate.
    pub rate_control: RateControl,
    /// Round trip of the link, used until one is measured.
    pub initial_rtt: Duration,
    /// The channels, by number; at least one and at most 256.
    pub channels: Vec<ChannelConfig>,
    /// Maximum time from an arrival to its report.
    pub report_interval: Duration,
    /// A frame counts as lost once another arrives that was sent this many frames later, or a quarter of a round trip later. (That is not
    /// less than the time that this many full frames take at `rate`.) 0 is as 1, for a link that preserves order.
    pub reordering: u64,
    /// How packets that waited for an earlier one are delivered.
    pub release: Release,
    /// Share of the line, 1 to 99 percent, that channels above the lowest priority may take while packets of the lowest
    /// one wait. Up to this share, and in short bursts beyond it, they go first. `None`: they always go first.
    pub urgent_share: Option<u8>,
    /// How long after a packet a repair frame for it may arrive: a round trip on a line that delays repairs until it is
    /// idle. The receiver keeps as many packets as arrive in this time, at least [`SlacpConfig::MIN_KEPT`] and at most
    /// [`SlacpConfig::MAX_KEPT`].
    pub repairable: Duration,
    /// Maximum number of unacknowledged frames of a channel, at most [`SlacpConfig::MAX_WINDOW`].
    pub window: u32,
    /// The overhead of each frame on the line.
    pub overhead: Overhead,
    /// Maximum time that a late poll makes up for: it sends what the line could have sent since the poll was due. In
    /// virtual time, no poll is late. In real time, every poll is late by about 50 µs; without this, a line that sends
    /// a frame per millisecond would lose a twentieth of its capacity.
    pub catch_up: Duration,
    /// How much longer than a round trip the peer may be silent before frames without a report count as lost: an outage
    /// may have lost only the reports. Unless this is zero, some reports cover more frames. Both ends must have the
    /// same value.
    pub patience: Duration,
    /// How a silent peer is probed.
    pub probing: Probing,
    /// Behaviour of the papers' link layers that is impossible on a wire.
    pub shortcuts: Shortcuts,
}

impl SlacpConfig {
    /// The maximum window: distances between frames have 16 bits on the wire.
    pub const MAX_WINDOW: u32 = 65_535;
    /// Eight full blocks: a sender that delays repairs rarely sends more frames meanwhile.
    pub const MIN_KEPT: u32 = 8 * Fec::MAX_FRAMES as u32;
    /// Half of the maximum window.
    pub const MAX_KEPT: u32 = SlacpConfig::MAX_WINDOW / 2;

    /// The settings for a line with this rate and round trip that preserves the order of frames. Arrivals are reported
    /// after 20 ms, the rate is fixed, and packets that waited for an earlier one are delivered at once.
    pub fn new(rate: Option<Rate>, initial_rtt: Duration, channels: Vec<ChannelConfig>) -> Self {
        SlacpConfig {
            rate,
            rate_control: RateControl::Fixed,
            initial_rtt,
            channels,
            report_interval: Duration::from_millis(20),
            reordering: 0,
            release: Release::AtOnce,
            urgent_share: None,
            repairable: Duration::ZERO,
            window: SlacpConfig::MAX_WINDOW,
            overhead: Overhead::Bytes(0),
            catch_up: Duration::ZERO,
            patience: Duration::ZERO,
            probing: Probing::Doubling,
            shortcuts: Shortcuts::NONE,
        }
    }
}
