//! Flows whose TCP connection ends at a gateway: arrivals at the gateway, its forwarded data, and the space freed by
//! the far end's acknowledgements.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use bentpipe_engine::Context;
use bentpipe_engine::link::Wire;
use bentpipe_engine::network::EndId;
use bentpipe_engine::spoof::Input;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_study::limit::SegmentSize;
use bentpipe_study::scenario::{BufferSharing, ConnectionId, NodeId, Scenario, Spoof, TcpFlow};

use super::World;
use crate::endpoint::Endpoint;
use crate::ends;
use crate::observe::Observer;
use crate::packet::{IPV4_HEADER, Parcel, TCP_HEADER};
use crate::spoofing::{Buffer, Sink, SpoofEnd};
use crate::workload::Share;

/// Number of spoofed flows.
pub(super) fn count(scenario: &Scenario) -> usize {
    scenario.flows.iter().filter(|flow| flow.kind.spoof().is_some()).count()
}

/// The far ends of such flows, in their order, and the buffers of the gateways.
#[derive(Debug)]
pub(super) struct Sinks {
    /// The end of the first sink.
    first: EndId,
    /// The number of bytes that each sink expects, and the length of its packets' headers.
    sinks: Vec<(u64, u32)>,
    buffers: BTreeMap<NodeId, Rc<RefCell<Buffer>>>,
}

impl Sinks {
    /// An empty list of sinks, whose ends are numbered from `first` on.
    pub(super) fn new(first: EndId) -> Self {
        Sinks { first, sinks: Vec::new(), buffers: BTreeMap::new() }
    }

    /// The gateway's end of a connection.
    pub(super) fn spoofer(&mut self, connection: ConnectionId, tcp: &TcpFlow, spoof: Spoof) -> Endpoint {
        let sink = EndId::from(self.first.index() + self.sinks.len());
        let end = ends::listener(connection);
        let Share { expected, .. } = Share::of(tcp.workload, false);
        let (sender, receiver) =
            tcp.splits.last().map_or((tcp.sender, tcp.receiver), |last| (last.sender, last.receiver));
        let headers = match receiver.shortcuts.ns2_lengths {
            true => IPV4_HEADER + TCP_HEADER,
            false => SegmentSize::between(&sender, &receiver).headers,
        };
        self.sinks.push((expected, headers));
        let capacity = u64::from(spoof.buffer) * u64::from(receiver.mss);
        let shared = self.buffers.entry(spoof.at).or_insert_with(|| {
            let in_parts = spoof.sharing == BufferSharing::Equal;
            Rc::new(RefCell::new(Buffer::new(capacity, in_parts)))
        });
        shared.borrow_mut().ends.push(end);
        // The whole buffer determines the window scale.
        let config = TcpConfig { receive_buffer: u32::try_from(capacity).unwrap_or(u32::MAX), ..receiver };
        Endpoint::Spoofer(Box::new(SpoofEnd::new(config, connection, (sink, headers), shared.clone(), !spoof.reopens)))
    }

    /// The sinks' ends. `spoofers` are the gateways' ends after all splits.
    pub(super) fn into_ends(self, spoofers: Vec<EndId>) -> impl Iterator<Item = Endpoint> {
        let sinks = self.sinks.into_iter().zip(spoofers);
        sinks.map(|((expected, headers), spoofer)| Endpoint::Sink(Box::new(Sink::new(expected, spoofer, headers))))
    }
}

impl World {
    /// The end whose first hop a packet uses: its source or, for forwarded data, a gateway's end.
    #[inline(always)]
    pub(super) fn leaves_by(&self, parcel: Parcel) -> EndId {
        if parcel.to() >= self.first_sink { parcel.to() } else { parcel.from() }
    }

    /// Handles a segment from the source that reaches its gateway.
    pub(super) fn reach_spoofer<O: Observer>(&mut self, end: EndId, parcel: Parcel, observer: &mut O) {
        let segment = self.packets.segment(parcel);
        self.bring_spoofer(end, Input::Segment(segment), observer);
        self.run_end(end, observer);
    }

    fn bring_spoofer<O: Observer>(&mut self, end: EndId, input: Input, observer: &mut O) {
        let mut cx = Context { now: self.now, who: ends::who(end), probe: observer };
        if let Endpoint::Spoofer(gateway) = &mut self.ends[end.index()].kind {
            gateway.handle(&mut cx, input);
        }
    }

    /// Handles a packet that a layer has released: if a gateway forwarded it, its buffer has space again for all that
    /// share it.
    pub(super) fn note_released<O: Observer>(&mut self, parcel: Parcel, observer: &mut O) {
        let Endpoint::Sink(sink) = &self.ends[parcel.to().index()].kind else { return };
        let (end, payload) = (sink.spoofer, sink.payload(parcel.wire_len()));
        self.bring_spoofer(end, Input::Released(payload), observer);
        self.run_end(end, observer);
        let Endpoint::Spoofer(gateway) = &self.ends[end.index()].kind else { return };
        let buffer = gateway.buffer.clone();
        let others = buffer.borrow().ends.len();
        for other in 0..others {
            let other = buffer.borrow().ends[other];
            if other == end {
                continue;
            }
            let mut cx = Context { now: self.now, who: ends::who(other), probe: &mut *observer };
            if let Endpoint::Spoofer(gateway) = &mut self.ends[other.index()].kind {
                gateway.note_room(&mut cx);
            }
            self.run_end(other, observer);
        }
    }

    /// The destination of a gateway's forwarded data.
    pub(super) fn sink_of(&self, gateway: &SpoofEnd) -> &Sink {
        match &self.ends[gateway.sink.index()].kind {
            Endpoint::Sink(sink) => sink,
            _ => unreachable!("a gateway's data goes to a sink"),
        }
    }
}
