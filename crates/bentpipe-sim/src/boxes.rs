//! The boxes of two-box gateways, and the packets that they exchange with each other.

use std::collections::BTreeMap;

use bentpipe_engine::compression::Headers;
use bentpipe_engine::gateway::{self, Memory};
use bentpipe_engine::mux::{Input, Message, Mux, MuxConfig, Output, Side, StreamId};
use bentpipe_engine::network::EndId;
use bentpipe_engine::units::Time;
use bentpipe_engine::{Context, Machine, Step};
use bentpipe_study::scenario::{Carries, NodeId, PairSpec, Scenario};

use crate::bytes::Bytes;

/// A packet that the boxes themselves exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// A message of the multiplexer.
    Message(Message),
    /// A base of header compression.
    Base,
}

/// One box of shape `split`.
#[derive(Debug)]
pub(crate) struct StreamBox {
    pub(crate) mux: Mux,
    /// The socket of each stream, identified by its end.
    pub(crate) sockets: BTreeMap<StreamId, EndId>,
    /// Sockets with new data.
    pub(crate) dirty: Vec<EndId>,
    /// Memory of connections, bytes.
    pub(crate) memory: u64,
    /// Memory of the tunnel's packets, bytes.
    pub(crate) link: u64,
    /// Maximum total memory in bytes.
    pub(crate) budget: u64,
}

impl StreamBox {
    fn new(pair: &PairSpec, side: usize, max_streams: u32) -> Self {
        let (satellite, budget) = (pair.satellite[side], pair.memory.get());
        let config = MuxConfig {
            // The near box opens the tunnel.
            side: if side == 0 { Side::Initiator } else { Side::Responder },
            window: satellite.window(),
            max_payload: gateway::max_payload(satellite.max_packet()),
            max_streams,
            budget,
        };
        StreamBox { mux: Mux::new(config), sockets: BTreeMap::new(), dirty: Vec::new(), memory: 0, link: 0, budget }
    }

    pub(crate) fn change_memory(&mut self, change: i64) {
        self.memory = self.memory.saturating_add_signed(change);
    }

    pub(crate) fn in_memory(&self) -> Memory {
        Memory { limit: self.budget, connections: self.memory, link: self.link }
    }

    /// True if there is memory for another connection.
    pub(crate) fn has_room(&self) -> bool {
        self.in_memory().for_connections() > 0
    }

    /// The message that this end sends when the tunnel comes up.
    fn hello(&mut self) -> Option<Message> {
        let mut cx = Context::silent(Time::ZERO);
        self.mux.handle(&mut cx, Input::Room(1));
        match self.mux.poll(&mut cx) {
            Step::Do(Output::Send(message)) => Some(message),
            _ => None,
        }
    }

    fn hear(&mut self, message: Message) {
        self.mux.handle(&mut Context::silent(Time::ZERO), Input::Message(message));
    }
}

/// Exchanges messages until neither end has more: the end with the smaller window sends a second hello.
fn greet(both: &mut [Option<StreamBox>; 2]) {
    loop {
        let hellos = both.each_mut().map(|one| one.as_mut().and_then(StreamBox::hello));
        if hellos == [None; 2] {
            return;
        }
        for (side, hello) in hellos.into_iter().enumerate() {
            if let (Some(hello), Some(hearer)) = (hello, &mut both[1 - side]) {
                hearer.hear(hello);
            }
        }
    }
}

/// All boxes.
#[derive(Debug, Default)]
pub(crate) struct Boxes {
    /// Two entries for each pair; only for shape `split`.
    pub(crate) streams: Vec<Option<StreamBox>>,
    /// The socket that continues a stream opened by a box.
    pub(crate) onward: BTreeMap<(usize, StreamId), EndId>,
    own: Vec<Option<Own>>,
    free: Vec<u32>,
    /// Two entries for each pair; only for shape `link`.
    pub(crate) headers: Vec<Option<Headers>>,
    /// Writes packets for header compression, if a pair has shape `link`.
    pub(crate) bytes: Option<Bytes>,
    /// For each end of a flow, the nodes at which packets to it start and end, and the number of its packets so far.
    pub(crate) nodes: Vec<[NodeId; 2]>,
    pub(crate) identifications: Vec<u16>,
}

impl Boxes {
    /// The boxes of a scenario, with their tunnels up and their hellos exchanged.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let pairs = &scenario.gateways.pairs;
        let mut streams = Vec::new();
        for pair in pairs {
            let mut both = [0, 1].map(|side| match pair.carries {
                Carries::Streams { max_streams } => Some(StreamBox::new(pair, side, max_streams)),
                Carries::Packets => None,
            });
            greet(&mut both);
            streams.extend(both);
        }
        let of = |pair: &PairSpec| (pair.carries == Carries::Packets).then(Headers::default);
        let headers: Vec<_> = pairs.iter().flat_map(|pair| [of(pair), of(pair)]).collect();
        let compresses = headers.iter().any(Option::is_some);
        Boxes { streams, headers, bytes: compresses.then(|| Bytes::new(scenario)), ..Boxes::default() }
    }

    /// True if a pair has shape `link`.
    pub(crate) fn compresses(&self) -> bool {
        self.bytes.is_some()
    }

    /// The host to which a box attributes a packet to this end: the one on the near side.
    pub(crate) fn host(&self, side: usize, to: EndId) -> u64 {
        u64::from(self.nodes[to.index()][side % 2].0)
    }

    /// A box of shape `split`, by its number: twice that of its pair, plus one for the far box.
    pub(crate) fn side(&mut self, side: usize) -> &mut StreamBox {
        self.streams[side].as_mut().expect("only boxes of shape `split` have sockets")
    }

    /// Stores a packet of the boxes. Returns its slot.
    pub(crate) fn keep(&mut self, own: Own) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.own[slot as usize] = Some(own);
                slot
            }
            None => {
                self.own.push(Some(own));
                self.own.len() as u32 - 1
            }
        }
    }

    /// Takes a packet of the boxes that has arrived or was dropped.
    pub(crate) fn take(&mut self, slot: u32) -> Own {
        self.free.push(slot);
        self.own[slot as usize].take().expect("a packet is taken once")
    }
}

/// The user of an S-LACP end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Above {
    /// The scenario's layer: packets of flows.
    Flows,
    /// A box of shape `link`, with its number: packets of flows, whose headers are compressed.
    Packets(usize),
    /// A box of shape `split`, with its number.
    Streams(usize),
}
