//! Gateways, as values.

use bentpipe_engine::gateway::{Satellite, UplinkSender, kernel_pacing, limit_timeouts};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::tcp::{Pacing, TcpConfig};
use bentpipe_engine::units::{Bytes, Duration, Rate};
use bentpipe_language::gateway::{MEMORY_DEFAULT, REORDERING_DEFAULT, STREAMS_DEFAULT};
use bentpipe_language::tcp::{TcpOverrides, Variants, resolve_tcp};

use super::NodeId;

/// The gateways of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gateways {
    /// Gateways with two boxes.
    pub pairs: Vec<PairSpec>,
    /// Gateways with one box.
    pub uplinks: Vec<UplinkSpec>,
}

impl Gateways {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.uplinks.is_empty()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|pair| pair.name.as_str()).chain(self.uplinks.iter().map(|uplink| uplink.name.as_str()))
    }
}

/// Two boxes at the ends of a satellite link, with a tunnel over it.
#[derive(Clone, Debug, PartialEq)]
pub struct PairSpec {
    /// Its name.
    pub name: String,
    /// What goes through the tunnel.
    pub carries: Carries,
    /// The nodes of the near and the far box. The near one opens the tunnel.
    pub nodes: [NodeId; 2],
    /// The links from the near to the far box and back.
    pub over: [LinkId; 2],
    /// What the near and the far box are told about the link.
    pub satellite: [Satellite; 2],
    /// Maximum memory of each box for connections, their data, and packets of the link.
    pub memory: Bytes,
    /// The rates that the near and the far box write into SCONE packets that they send on.
    pub advice: [Option<Rate>; 2],
}

impl PairSpec {
    /// True if TCP connections end at the boxes.
    pub(crate) fn ends_connections(&self) -> bool {
        matches!(self.carries, Carries::Streams { .. })
    }

    /// The gateway's default for `reordering`.
    pub const REORDERING: u64 = REORDERING_DEFAULT;
    /// The gateway's default for `memory`.
    pub const MEMORY: Bytes = MEMORY_DEFAULT;
}

/// What is carried through a tunnel, which is the shape of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// `split`: TCP connections end at the boxes, and their bytes are streams.
    Streams {
        /// Maximum number of open connections of each box.
        max_streams: u32,
    },
    /// `link`: packets of any kind.
    Packets,
}

impl Carries {
    /// `split` with the gateway's defaults.
    pub const STREAMS: Carries = Carries::Streams { max_streams: STREAMS_DEFAULT };

    /// The name of the shape.
    pub const fn shape(self) -> &'static str {
        match self {
            Carries::Streams { .. } => "split",
            Carries::Packets => "link",
        }
    }

    /// Names of the layer's channels, by number.
    pub const fn channels(self) -> &'static [&'static str] {
        match self {
            Carries::Streams { .. } => &["streams"],
            Carries::Packets => &["urgent", "acks", "bulk"],
        }
    }
}

/// One box before the satellite link, which terminates TCP connections: shape `uplink`.
#[derive(Clone, Debug, PartialEq)]
pub struct UplinkSpec {
    /// Its name.
    pub name: String,
    /// Its node.
    pub at: NodeId,
    /// The link towards the clients, and the link back.
    pub over: [LinkId; 2],
    /// The sender towards the clients.
    pub sender: UplinkSender,
    /// Whose sender it is.
    pub by: SenderOf,
}

/// Whose TCP sends to the clients of an `uplink`.
#[derive(Clone, Debug, PartialEq)]
pub enum SenderOf {
    /// The engine's, paced across all connections.
    Engine {
        /// Name of its row.
        variant: String,
        /// Settings given by the scenario.
        explicit: TcpOverrides,
        /// True if a client is answered before the server has accepted.
        early_accept: bool,
    },
    /// The kernel's, with this congestion control. It answers a client at once.
    Kernel {
        /// The kernel's name for it.
        congestion: &'static str,
    },
}

impl UplinkSpec {
    /// Linux's congestion controls for which there is a row that computes as Linux does: the kernel's name, and the
    /// row.
    pub const KERNEL: &'static [(&'static str, &'static str)] =
        &[("reno", "linux-reno"), ("cubic", "linux-cubic"), ("bbr", "bbr")];

    /// The settings of the kernel's TCP with this congestion control, whose sockets send with at most `rate`, as the
    /// gateway configures them (SO_MAX_PACING_RATE), and with its limit of timeouts for this round trip; `None` if it is
    /// unknown.
    pub fn kernel(congestion: &str, rate: Rate, round_trip: Duration) -> Option<TcpConfig> {
        let (_, row) = Self::KERNEL.iter().find(|(name, _)| *name == congestion)?;
        let (mut tcp, _) = resolve_tcp("linux", row, &Variants::new(), &TcpOverrides::default()).ok()?;
        let max_rate = Rate::from_bits_per_second((8 * kernel_pacing(rate)).max(1));
        tcp.variant.pacing = Pacing { max_rate, ..Pacing::LINUX };
        limit_timeouts(&mut tcp.rto, round_trip);
        // The box gives closed connections the same time as open ones (TCP_USER_TIMEOUT).
        tcp.rto.max_closed_retries = None;
        Some(tcp)
    }

    /// The settings of a connection to a client that accepts segments of `peer_mss`.
    pub fn settings(&self, peer_mss: u16) -> TcpConfig {
        match self.by {
            SenderOf::Engine { .. } => self.sender.settings(false, Some(peer_mss)),
            SenderOf::Kernel { .. } => self.sender.tcp,
        }
    }

    /// Bytes from a server that the box holds for a client.
    pub fn send_buffer(&self) -> usize {
        match self.by {
            SenderOf::Engine { .. } => self.sender.send_buffer(),
            SenderOf::Kernel { .. } => self.sender.tcp.send_buffer.map_or(usize::MAX, |bytes| bytes as usize),
        }
    }

    /// True if clients are answered before servers have accepted.
    pub fn accepts_early(&self) -> bool {
        matches!(self.by, SenderOf::Kernel { .. } | SenderOf::Engine { early_accept: true, .. })
    }

    /// True if data of all connections leaves in turns, at the box's rate.
    pub fn is_paced(&self) -> bool {
        matches!(self.by, SenderOf::Engine { .. })
    }
}

/// The gateway at which a leg of a flow begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// Two boxes.
    Pair(Through),
    /// One box.
    Uplink {
        /// Index into [`Gateways::uplinks`].
        number: usize,
        /// True if the host that opens the connection is the client; otherwise, the other host is.
        client_opens: bool,
    },
}

/// A pair of boxes between two legs of a split flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Through {
    /// Index into [`Gateways::pairs`].
    pub pair: usize,
    /// The box at which the previous leg ends: 0 is the near one, 1 the far one.
    pub side: usize,
    /// The other box's node, where the next leg starts.
    pub starts_at: NodeId,
    /// The links between the boxes, in the direction of the flow and back.
    pub over: [LinkId; 2],
}
