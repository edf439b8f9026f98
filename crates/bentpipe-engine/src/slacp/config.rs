//! What an S-LACP link can be made of.

use super::shortcuts::Shortcuts;
use crate::atm::aal5;
use crate::link::QueueLimit;
use crate::units::{Duration, Rate};
use crate::wire::slacp::{MAX_BLOCK, MAX_REPAIRS};

/// Retransmission on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arq {
    /// Transmissions of one frame in all, the first included; then it is abandoned and the receiver passes on what
    /// waited for it. `None`: until it is through.
    pub transmissions: Option<u32>,
}

/// Transmissions into an idle line: a packet without an answer goes out again before it can be known to be lost. Frames
/// that nobody else has a use for cost nothing, and a fade that ends before the last of them costs no round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// From one transmission of a packet to the next, at least.
    pub interval: Duration,
    /// Maximum copies of a packet.
    pub max: u8,
}

/// Repair frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fec {
    /// Data frames that are protected together, at most; 1 to [`Fec::MAX_FRAMES`].
    pub block: u8,
    /// A block ends this long after its first frame, however few it has.
    pub interval: Duration,
    /// Maximum repair frames per data frame.
    pub max_overhead: f64,
    /// Which repair frames are sent.
    pub repairs: Repairs,
}

/// When repair frames may take the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repairs {
    /// When data of the same or a higher priority leaves it idle: they never cost throughput.
    Spare,
    /// As soon as their block is complete: they cost the throughput that they take, and spare flows that fill the line
    /// the round trip for which a lost packet holds them up.
    Prompt,
    /// As with [`Repairs::Spare`], and for as long as they come before a repetition could: until a packet of the block is
    /// known to be lost, which is then sent again at once. A transfer that fills the line pays nothing for them, and its
    /// end, where the line falls idle, is protected for a whole round trip. Only with retransmission.
    Idle,
    /// As with [`Repairs::Prompt`] while the channel's queue takes less than a quarter of a round trip, else as with
    /// [`Repairs::Idle`]: flows of which so much waits keep the line busy while a lost packet holds one of them up, and
    /// repair frames would only take their place. Only with retransmission.
    Short,
}

impl Repairs {
    /// Whether a block's repair frames are given up when one of its packets is known to be lost, and not by time.
    pub(super) const fn end_with_a_loss(self) -> bool {
        matches!(self, Repairs::Idle | Repairs::Short)
    }
}

impl Fec {
    /// Maximum data frames of a block.
    pub const MAX_FRAMES: u8 = MAX_BLOCK;
    /// Maximum repair frames of a block.
    pub const MAX_REPAIRS: u8 = MAX_REPAIRS;
}

/// What is kept in order at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nothing: frames pass as they come.
    None,
    /// Each flow by itself.
    Flow,
    /// The whole channel.
    Channel,
}

/// How packets are passed on that waited for an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// At once.
    AtOnce,
    /// At this rate (transat §5).
    Paced(Rate),
    /// At once, except after an outage. Its packets come again one by one at the rate of the line, and are passed on in at
    /// most eight groups per round trip. HyStart (RFC 9406) leaves slow start when eight samples of a round are all above the
    /// minimum; with fewer samples it stays.
    Grouped,
}

/// CoDel (RFC 8289): drops when packets have waited longer than `target` throughout an `interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// The wait that is acceptable as a standing one.
    pub target: Duration,
    /// Time in which senders react: a round trip of the whole path, or more.
    pub interval: Duration,
}

/// How the flows of a channel wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// First in, first out; what finds no room is dropped.
    Fifo,
    /// Each flow has a queue of its own, and they take turns (deficit round robin, Shreedhar and Varghese 1995). Where
    /// there is no room, the flow that takes up most of it loses its newest packet (longest queue drop, McKenney 1990).
    Fair,
}

/// A logical channel: its treatment, its queue, its share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelConfig {
    /// Retransmission; `None` without.
    pub arq: Option<Arq>,
    /// Copies into an idle line; `None` without. Only with retransmission.
    pub copies: Option<Copies>,
    /// Erasure code; `None` without.
    pub fec: Option<Fec>,
    /// Order at the receiver.
    pub order: Order,
    /// Channels of lower number go first, always.
    pub priority: u8,
    /// Share among channels of one priority.
    pub weight: u32,
    /// Room for packets that wait for their first transmission.
    pub limit: QueueLimit,
    /// Whether frames that are not acknowledged yet take room as well (`hybrid`, H-M05).
    pub limit_counts_copies: bool,
    /// Active queue management; `None`: the limit only.
    pub codel: Option<Codel>,
    /// Whether an acknowledgement takes the place of one of its flow that waits and acknowledges less (ACK filtering, RFC
    /// 3449 §5.2.1): a narrow line carries the last of them, and one that was held up is not answered by a burst.
    pub filters_acks: bool,
    /// How flows wait. With [`Queueing::Fair`] there is neither CoDel nor ACK filtering.
    pub queueing: Queueing,
    /// Frames that a packet is cut into, 1 to [`ChannelConfig::MAX_SEGMENTS`] (`hybrid`, S of H-M04). The limit of the
    /// queue counts packets; one of which any frame is not acknowledged takes the room of a whole one. More than one
    /// only in the idealised layer: frames on the wire carry whole packets. There is no FEC and no CoDel then.
    pub segments: u8,
}

impl ChannelConfig {
    /// Maximum frames of a packet: a packet of 500 bytes leaves some to each.
    pub const MAX_SEGMENTS: u8 = 64;

    /// A channel that loses nothing: frames are sent again until they arrive, and each flow keeps its order. The queue is
    /// unlimited; there are no repair frames and no copies.
    pub const fn reliable() -> Self {
        ChannelConfig {
            arq: Some(Arq { transmissions: None }),
            copies: None,
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

    /// As [`ChannelConfig::reliable`], but a frame is given up after so many transmissions.
    pub const fn persistent(transmissions: u32) -> Self {
        ChannelConfig { arq: Some(Arq { transmissions: Some(transmissions) }), ..ChannelConfig::reliable() }
    }

    /// A channel that adds nothing: each frame is sent once and passed on as it arrives, as on a bare link.
    pub const fn unreliable() -> Self {
        ChannelConfig { arq: None, order: Order::None, ..ChannelConfig::reliable() }
    }
}

/// How a sender finds the rate to send at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateControl {
    /// The rate of the line, always.
    Fixed,
    /// The configured rate, on a line that nobody else uses; less while the receiver's reports show that the line carries
    /// less.
    Provisioned,
    /// BBR, on a line that others use too; the configured rate is the maximum.
    Shared,
}

/// What carries frames, and so what they take on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overhead {
    /// This many bytes more than their own: the headers of what carries them.
    Bytes(u32),
    /// Whole ATM cells: LLC/SNAP, AAL5's trailer and padding, the headers of cells.
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

/// One end of the layer; the other end has the same.
#[derive(Clone, Debug, PartialEq)]
pub struct SlacpConfig {
    /// Rate of the line below; `None` takes no time to transmit.
    pub rate: Option<Rate>,
    /// How the sender finds its own rate.
    pub rate_control: RateControl,
    /// Round trip of the link as far as it is known beforehand.
    pub initial_rtt: Duration,
    /// The channels, by number; at least one and at most 256.
    pub channels: Vec<ChannelConfig>,
    /// An arrival is reported at most this long after it.
    pub report_interval: Duration,
    /// Frames that may overtake one before it counts as lost: 0 on a link that keeps the order.
    pub reordering: u64,
    /// How packets are passed on that had waited for a repair.
    pub release: Release,
    /// Most frames of a channel between transmission and acknowledgement, at most [`SlacpConfig::MAX_WINDOW`].
    pub window: u32,
    /// What each frame takes on the line besides its own bytes.
    pub overhead: Overhead,
    /// A late poll makes up for what the line could have sent in at most this time before it. In virtual time no poll is
    /// late. In real time each is, by about 50 µs: without this a line that sends a frame per millisecond loses a twentieth.
    pub catch_up: Duration,
    /// How much longer than a round trip the peer may be silent before frames without a report count as lost: an outage may
    /// have taken the reports only. Unless it is zero, some reports cover more frames. Both ends have the same value.
    pub patience: Duration,
    /// What papers' link layers do and none on a wire can.
    pub shortcuts: Shortcuts,
}

impl SlacpConfig {
    /// Distances between frames have 16 bits on the wire.
    pub const MAX_WINDOW: u32 = 65_535;

    /// An end of a line of this rate and round trip that keeps the order of frames. Arrivals are reported after 20 ms, the
    /// rate is fixed, and packets that waited are passed on at once.
    pub fn new(rate: Option<Rate>, initial_rtt: Duration, channels: Vec<ChannelConfig>) -> Self {
        SlacpConfig {
            rate,
            rate_control: RateControl::Fixed,
            initial_rtt,
            channels,
            report_interval: Duration::from_millis(20),
            reordering: 0,
            release: Release::AtOnce,
            window: SlacpConfig::MAX_WINDOW,
            overhead: Overhead::Bytes(0),
            catch_up: Duration::ZERO,
            patience: Duration::ZERO,
            shortcuts: Shortcuts::NONE,
        }
    }
}
