//! What an S-LACP link can be made of.

use crate::atm::aal5;
use crate::link::QueueLimit;
use crate::units::{Duration, Rate};

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
    /// Data frames of a block: as many as seven bits of a repair frame's header can say.
    pub const MAX_FRAMES: u8 = 128;
    /// Repair frames of a block, likewise.
    pub const MAX_REPAIRS: u8 = 128;
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
    /// Frames that a packet may be cut into: a packet of 500 bytes leaves some to each.
    pub const MAX_SEGMENTS: u8 = 64;
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
    /// Frames weigh what their packet weighs, and reports nothing: the idealised layer of `hybrid` (H-M10).
    pub weightless: bool,
    /// The receiver can tell which frame arrived damaged (`hybrid`'s NAK, H-M01).
    pub hears_damage: bool,
    /// What each frame takes on the line besides its own bytes.
    pub overhead: Overhead,
    /// What the line could have sent in so much time before a late poll is made up for. In virtual time no poll is late;
    /// in real time each is, by some 50 µs, and without this a line that sends a frame per millisecond loses a twentieth.
    pub catch_up: Duration,
    /// While frames go out, nothing need be heard for so much longer than a round trip before what went out counts as
    /// lost: the reports may have met an outage, and the next one tells. With it, some reports reach back further (both
    /// ends have the same). Zero: as [`crate::arq`] has it otherwise.
    pub patience: Duration,
}

impl SlacpConfig {
    /// Distances between frames have 16 bits on the wire.
    pub const MAX_WINDOW: u32 = 65_535;
}
