//! The results of a run by flow, link and layer.

use std::iter::successors;

use bentpipe_engine::network::EndId;
use bentpipe_engine::splice::Leg;
use bentpipe_engine::tcp::{Abort, TcpStats};
use bentpipe_engine::units::Time;
use bentpipe_study::scenario::{ConnectionId, FlowId};

use super::{FlowState, World};
use crate::delays::Delays;
use crate::ended::Outcome;
use crate::endpoint::Endpoint;
use crate::ends;
use crate::gateway::Gateway;
use crate::responses::Responses;
use crate::socket::Socket;

/// The results of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// Its start time.
    pub start: Time,
    /// When the opening was complete at the sender, which then sends data.
    pub connected_at: Option<Time>,
    /// When the ACK of the last byte arrived at the sender.
    pub acked_at: Option<Time>,
    /// When the last missing byte arrived at the receiver.
    pub received_at: Option<Time>,
    /// Bytes that arrived in order at the flow's far end; for UDP, all bytes that arrived, including headers.
    pub delivered: u64,
    /// When the last of them arrived, if the flow's source stops after some time; of UDP also when the first did, which is
    /// the flow's start for others. `None` if none have arrived.
    pub arrivals: Option<(Time, Time)>,
    /// Counters of the sender; for UDP, only `data_segments`, the number of datagrams sent.
    pub stats: TcpStats,
    /// Counters of the receiver.
    pub receiver_stats: TcpStats,
    /// Counters of both ends of each leg of a split flow; empty for others.
    pub legs: Vec<[TcpStats; 2]>,
    /// Why it was aborted, if so: as its ends know, or else, for an unfinished split flow, as a gateway knows.
    pub aborted: Option<Abort>,
    /// Number of segments for which the spoofing gateway had no room.
    pub refused: u64,
    /// One-way delays of its datagrams; `None` if it has none.
    pub delays: Option<Box<Delays>>,
    /// The times of the responses to its requests; `None` if it has made none.
    pub responses: Option<Box<Responses>>,
}

impl World {
    /// The sockets of the box at which a connection ends, of its near and far leg.
    fn sockets(&self, flow: FlowId) -> Option<[&Socket; 2]> {
        let Endpoint::Socket(near) = &self.ends[ends::listener(ConnectionId(flow.0)).index()].kind else { return None };
        let Endpoint::Socket(far) = &self.ends[near.partner.index()].kind else { return None };
        Some([near, far])
    }

    /// When an end has last read data, if its source stops after some time.
    fn read_at(&self, end: EndId) -> Option<Time> {
        match &self.ends[end.index()].kind {
            Endpoint::Tcp(tcp) => tcp.read_at(),
            #[cfg(feature = "quic")]
            Endpoint::Quic(quic) => quic.read_at(),
            _ => None,
        }
    }

    /// The gateways that split a flow, from the opener on.
    fn gateways_of(&self, flow: FlowId) -> impl Iterator<Item = &Gateway> {
        let at = |end: EndId| match self.ends[end.index()].kind {
            Endpoint::Leg { gateway, leg: Leg::Near } => Some(&self.gateways[gateway as usize]),
            _ => None,
        };
        successors(at(ends::listener(ConnectionId(flow.0))), move |gateway| at(ends::peer(gateway.far_end())))
    }

    /// Counters of both ends of each leg, from one gateway to the next.
    fn leg_stats(&self, flow: FlowId, first: TcpStats, last: TcpStats) -> Vec<[TcpStats; 2]> {
        if let Some([near, far]) = self.sockets(flow) {
            return vec![[first, near.stats()], [far.stats(), last]];
        }
        let (mut legs, mut sender) = (Vec::new(), first);
        for gateway in self.gateways_of(flow) {
            legs.push([sender, gateway.splice.leg(Leg::Near).stats()]);
            sender = gateway.splice.leg(Leg::Far).stats();
        }
        if !legs.is_empty() {
            legs.push([sender, last]);
        }
        legs
    }

    /// Why a gateway gave up a leg of a split flow, if so. The flow's own ends do not know it if the resets were lost.
    fn leg_abort(&self, flow: FlowId) -> Option<Abort> {
        let sockets = self.sockets(flow).into_iter().flatten().filter_map(Socket::aborted);
        let broken = self.gateways_of(flow).filter_map(|gateway| gateway.splice.broken());
        let found: Vec<_> = sockets.chain(broken.map(|broken| broken.abort)).collect();
        // The cause; the other gateways pass it on with resets of their own.
        let cause = found.iter().find(|abort| !matches!(abort, Abort::Reset | Abort::Local));
        cause.or(found.first()).copied()
    }

    /// The outcome of the end of a connection; `None` for an end of another kind.
    fn outcome(&self, end: EndId) -> Option<Outcome> {
        match &self.ends[end.index()].kind {
            Endpoint::Tcp(tcp) => Some(tcp.outcome()),
            #[cfg(feature = "quic")]
            Endpoint::Quic(quic) => Some(quic.outcome()),
            &Endpoint::Ended { at } => Some(self.ended[at as usize].outcome),
            &Endpoint::Late { model } => Some(self.models[model as usize].end.outcome()),
            _ => None,
        }
    }

    /// The times of the responses to the requests of an end, if it has made any.
    fn responses(&self, end: EndId) -> Option<&Responses> {
        match &self.ends[end.index()].kind {
            // One that was restored in TIME-WAIT has left them behind.
            Endpoint::Tcp(tcp) => tcp.responses().or_else(|| self.responses.get(&end)),
            #[cfg(feature = "quic")]
            Endpoint::Quic(quic) => quic.responses(),
            Endpoint::Ended { .. } => self.responses.get(&end),
            _ => None,
        }
    }

    pub(crate) fn flow_result(&self, flow: FlowId) -> FlowResult {
        let FlowState { start, goal, ends_with_response, stops } = self.flows[flow.index()];
        let source = ends::opener(ConnectionId(flow.0));
        let kind = |end: EndId| &self.ends[end.index()].kind;
        match (self.outcome(source), self.outcome(goal), kind(source), kind(goal)) {
            (Some(from), Some(to), ..) => {
                let received_at = if ends_with_response { from.received_at } else { to.received_at };
                // A source that stops ends its connection with a reset, which gateways pass on.
                let is_stopped = stops && from.has_stopped();
                let of_ends = from.aborted.or(to.aborted).filter(|_| !is_stopped);
                let is_cause = |abort: &Abort| !(is_stopped && matches!(abort, Abort::Reset | Abort::Local));
                let of_legs = || received_at.is_none().then(|| self.leg_abort(flow)).flatten().filter(is_cause);
                FlowResult {
                    start,
                    connected_at: from.connected_at,
                    acked_at: from.acked_at,
                    received_at,
                    delivered: to.received,
                    arrivals: self.read_at(goal).map(|last| (start, last)),
                    stats: from.stats,
                    receiver_stats: to.stats,
                    legs: self.leg_stats(flow, from.stats, to.stats),
                    aborted: of_ends.or_else(of_legs),
                    refused: 0,
                    delays: None,
                    responses: self.responses(source).cloned().map(Box::new),
                }
            }
            (Some(from), None, _, Endpoint::Spoofer(spoofer)) => {
                let sink = self.sink_of(spoofer);
                FlowResult {
                    start,
                    connected_at: from.connected_at,
                    acked_at: from.acked_at,
                    received_at: sink.received_at,
                    delivered: sink.received,
                    arrivals: (sink.received > 0).then_some((start, sink.read_at)),
                    stats: from.stats,
                    receiver_stats: spoofer.stats(),
                    legs: self.leg_stats(flow, from.stats, spoofer.stats()),
                    aborted: from.aborted.filter(|_| !(stops && from.has_stopped())),
                    refused: spoofer.drops(),
                    delays: None,
                    responses: None,
                }
            }
            (None, None, Endpoint::UdpSource(from), Endpoint::UdpSink(sink)) => FlowResult {
                start,
                connected_at: None,
                acked_at: None,
                received_at: None,
                delivered: sink.bytes,
                arrivals: sink.arrivals,
                stats: TcpStats { data_segments: from.sent, ..TcpStats::default() },
                receiver_stats: TcpStats { data_segments: sink.delays.count(), ..TcpStats::default() },
                legs: Vec::new(),
                aborted: None,
                refused: 0,
                delays: Some(Box::new(sink.delays.clone())),
                responses: None,
            },
            _ => unreachable!("both ends of a flow have its transport"),
        }
    }
}
