//! Gateways, as values.

use bentpipe_engine::gateway::Satellite;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::Bytes;
use bentpipe_language::gateway::{MEMORY_DEFAULT, REORDERING_DEFAULT, STREAMS_DEFAULT};

use super::NodeId;

/// The gateways of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gateways {
    /// Those of two boxes.
    pub pairs: Vec<PairSpec>,
}

impl Gateways {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
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
    /// What the near and the far box are told of the link.
    pub satellite: [Satellite; 2],
    /// Maximum memory of each box for connections, their data, and packets of the link.
    pub memory: Bytes,
}

impl PairSpec {
    /// The gateway's default of `reordering`.
    pub const REORDERING: u64 = REORDERING_DEFAULT;
    /// The gateway's default of `memory`.
    pub const MEMORY: Bytes = MEMORY_DEFAULT;
}

/// What goes through a tunnel: the shape of the gateway.
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

/// A pair of boxes between two legs of a split flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Through {
    /// Index into [`Gateways::pairs`].
    pub pair: usize,
    /// The box at which the leg before ends: 0 is the near one, 1 the far one.
    pub side: usize,
    /// The other box's node, where the next leg starts.
    pub starts_at: NodeId,
    /// The links between the boxes, in the direction of the flow and back.
    pub over: [LinkId; 2],
}
