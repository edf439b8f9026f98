//! Gateway boxes: connections that end at one box and continue from the other, and packets with compressed headers.
//!
//! A box works like the gateway's loop. The data of a packet or segment is moved as far as possible; then the layer
//! gets as many messages as it has room for.

use bentpipe_engine::compression::Announcement;
use bentpipe_engine::gateway::ROOM;
use bentpipe_engine::mux::{Input as MuxInput, Message, Output as MuxOutput, Reason, Route, StreamId};
use bentpipe_engine::network::EndId;
use bentpipe_engine::slacp::{Input, Released};
use bentpipe_engine::wire::mux;
use bentpipe_engine::{Context, Machine, Step};
use bentpipe_study::scenario::{Carries, ConnectionId, FlowId, Scenario, TcpFlow, Through};
use bentpipe_study::topology::{self, Connection};

use super::{EndState, World};
use crate::boxes::{Above, Boxes, Own};
use crate::bytes;
use crate::endpoint::Endpoint;
use crate::ends;
use crate::layer::LayerEnd;
use crate::observe::Observer;
use crate::packet::{self, Parcel};
use crate::socket::{Outcome, Socket};

/// The stream whose data a message carries.
fn stream_of(message: &Message) -> Option<StreamId> {
    match *message {
        Message::Open { stream, .. } | Message::Data { stream, .. } => Some(stream),
        _ => None,
    }
}

impl World {
    /// The boxes of a scenario, and the ends of their tunnels.
    pub(super) fn add_boxes(&mut self, scenario: &Scenario) {
        for (n, pair) in scenario.gateways.pairs.iter().enumerate() {
            for side in 0..2 {
                let satellite = pair.satellite[side];
                let (layer, above) = match pair.carries {
                    Carries::Streams { .. } => (satellite.for_streams(), Above::Streams(2 * n + side)),
                    Carries::Packets => (satellite.for_packets(), Above::Packets(2 * n + side)),
                };
                let end = LayerEnd::of_box(layer, u32::from(satellite.max_packet()), pair.memory.get(), above);
                self.ends.push(EndState::new(Endpoint::Layer(Box::new(end))));
            }
        }
        if self.boxes.compresses() {
            let ways = topology::connections(scenario).into_iter().map(|Connection { leg, .. }| [leg.from, leg.to]);
            self.boxes.nodes = ways.flat_map(|[from, to]| [[to, from], [from, to]]).collect();
            self.boxes.identifications = vec![0; self.boxes.nodes.len()];
        }
    }

    /// Ends a flow at a box and continues it from the other box as another connection.
    pub(super) fn cross(
        &mut self,
        scenario: &Scenario,
        flow: FlowId,
        connection: ConnectionId,
        tcp: &TcpFlow,
        through: Through,
    ) {
        let near = self.flows[flow.index()].goal;
        let (far, goal) = (ends::opener(connection), ends::listener(connection));
        let ports = packet::ports(flow);
        let spec = &scenario[flow];
        let route = Route {
            source: (bytes::address(spec.from), ports.source).into(),
            destination: (bytes::address(spec.to), ports.destination).into(),
        };
        let meets = 2 * through.pair + through.side;
        let sockets = [
            Socket::new(tcp.receiver, near, meets, far, route),
            Socket::new(tcp.splits[0].sender, far, meets ^ 1, near, route),
        ];
        let [first, second] = sockets.map(|socket| Endpoint::Socket(Box::new(socket)));
        let mut last = core::mem::replace(&mut self.ends[near.index()].kind, first);
        if let Endpoint::Tcp(end) = &mut last {
            end.joins(connection);
        }
        self.ends.extend([second, last].map(EndState::new));
        self.flows[flow.index()].goal = goal;
    }

    fn socket(&mut self, end: EndId) -> &mut Socket {
        match &mut self.ends[end.index()].kind {
            Endpoint::Socket(socket) => socket,
            _ => unreachable!("a stream's end is a socket"),
        }
    }

    /// The end of the tunnel at a box.
    fn tunnel_end(&self, side: usize) -> EndId {
        EndId::from(self.first_tunnel.index() + side)
    }

    fn give<O: Observer>(&mut self, side: usize, input: MuxInput, observer: &mut O) {
        let who = ends::who(self.tunnel_end(side));
        let mut cx = Context { now: self.now, who, probe: observer };
        self.boxes.side(side).mux.handle(&mut cx, input);
    }

    /// Polls a socket until it waits, and moves its data.
    pub(super) fn run_socket<O: Observer>(&mut self, end: EndId, observer: &mut O) {
        let side = self.socket(end).side;
        self.boxes.side(side).dirty.push(end);
        self.settle(side, observer);
    }

    /// Does all work of a box that is possible at this instant.
    pub(super) fn settle<O: Observer>(&mut self, side: usize, observer: &mut O) {
        loop {
            self.note_link(side);
            while let Some(end) = self.boxes.side(side).dirty.pop() {
                self.work(end, observer);
            }
            if !self.fill(side, observer) {
                return;
            }
            self.run_line(self.tunnel_end(side), observer);
        }
    }

    fn work<O: Observer>(&mut self, end: EndId, observer: &mut O) {
        loop {
            let now = self.now;
            let Endpoint::Socket(socket) = &mut self.ends[end.index()].kind else { return };
            let mut cx = Context { now, who: ends::who(end), probe: &mut *observer };
            let until = match socket.poll(&mut cx, &mut self.packets) {
                Step::Do(parcel) => {
                    self.send(parcel, observer);
                    continue;
                }
                Step::Wait(until) => until,
            };
            let state = self.boxes.streams[socket.side].as_ref().expect("a socket is at a box of shape `split`");
            let limit = state.in_memory().max_unsent() as u64;
            let outcome = socket.serve(&mut cx, limit);
            let touched = self.follow_socket(end, outcome, observer);
            if !touched {
                return self.wait(end, until);
            }
        }
    }

    /// Reports the result of a socket's turn to the multiplexer. Returns true if the socket was given something.
    fn follow_socket<O: Observer>(&mut self, end: EndId, outcome: Outcome, observer: &mut O) -> bool {
        let Outcome { connected, read, taken, ended, failed, touched } = outcome;
        let (side, route) = (self.socket(end).side, self.socket(end).route);
        if connected && !self.socket(end).is_active() && !self.open(end, side, route) {
            let mut cx = Context { now: self.now, who: ends::who(end), probe: &mut *observer };
            if let Endpoint::Socket(socket) = &mut self.ends[end.index()].kind {
                socket.reset(&mut cx);
            }
            return true;
        }
        let Some(stream) = self.socket(end).stream else { return touched };
        if read > 0 {
            self.give(side, MuxInput::Write { stream, bytes: read }, observer);
        }
        if taken > 0 {
            self.give(side, MuxInput::Taken { stream, bytes: taken }, observer);
        }
        if ended {
            self.give(side, MuxInput::Finish { stream }, observer);
        }
        if let Some(was_connected) = failed {
            let reason = if was_connected { Reason::Peer } else { Reason::Refused };
            self.forget(end);
            self.give(side, MuxInput::Reset { stream, reason }, observer);
            return touched;
        }
        let change = self.socket(end).memory_change();
        self.boxes.side(side).change_memory(change);
        touched
    }

    /// Opens a stream for a host's connection. Returns false if there is no room for it.
    fn open(&mut self, end: EndId, side: usize, route: Route) -> bool {
        let state = self.boxes.side(side);
        if !state.has_room() {
            return false;
        }
        let Some(stream) = state.mux.open(route) else { return false };
        state.sockets.insert(stream, end);
        let partner = self.socket(end).partner;
        self.socket(end).stream = Some(stream);
        self.boxes.onward.insert((side, stream), partner);
        true
    }

    /// Forgets a socket's stream, which has ended.
    fn forget(&mut self, end: EndId) {
        let socket = self.socket(end);
        let (side, stream, memory) = (socket.side, socket.stream.take(), socket.forget_memory());
        let state = self.boxes.side(side);
        state.memory -= memory;
        if let Some(stream) = stream {
            state.sockets.remove(&stream);
        }
    }

    /// Records the memory of the tunnel's packets and sets its limit. Returns the memory of the packets for the far
    /// end.
    fn note_link(&mut self, side: usize) -> u64 {
        let state = self.boxes.side(side);
        let room = state.in_memory().for_link();
        let end = self.tunnel_end(side);
        let holding = self.layer(end).holding.as_mut().expect("an end of a box");
        holding.set_room(room);
        let (given, bytes) = (holding.given(), holding.bytes());
        self.boxes.side(side).link = bytes;
        given
    }

    /// Fills the layer as far as it has room. Returns true if there was something to do.
    fn fill<O: Observer>(&mut self, side: usize, observer: &mut O) -> bool {
        let given = self.note_link(side);
        let end = self.tunnel_end(side);
        let waiting = self.layer(end).end.waiting(0);
        let state = self.boxes.side(side);
        // Streams may hold the memory that connections and the link do not otherwise use.
        let budget = state.in_memory().for_streams(state.mux.held());
        let room = if given < state.budget / 2 { ROOM.saturating_sub(waiting) } else { 0 };
        self.give(side, MuxInput::Budget(budget), observer);
        self.give(side, MuxInput::Room(room as u32), observer);
        let mut any = false;
        loop {
            let mut cx = Context { now: self.now, who: ends::who(end), probe: &mut *observer };
            match self.boxes.side(side).mux.poll(&mut cx) {
                Step::Do(MuxOutput::Send(message)) => self.send_message(side, message, observer),
                Step::Do(output) => self.follow_mux(side, output, observer),
                Step::Wait(_) => return any,
            }
            any = true;
        }
    }

    fn send_message<O: Observer>(&mut self, side: usize, message: Message, observer: &mut O) {
        let end = self.tunnel_end(side);
        let bytes = u64::from(message.payload());
        if let Some(stream) = stream_of(&message).filter(|_| bytes > 0) {
            let socket = self.boxes.side(side).sockets.get(&stream).copied();
            let socket = socket.expect("a stream with bytes has a socket");
            let wants_more = self.socket(socket).sent(bytes);
            let change = self.socket(socket).memory_change();
            let state = self.boxes.side(side);
            state.change_memory(change);
            if wants_more {
                state.dirty.push(socket);
            }
        }
        let len = mux::len(&message).expect("routes have addresses of one family") as u32;
        self.give_own(end, Own::Message(message), 0, message.flow(), 0, len, observer);
    }

    #[allow(clippy::too_many_arguments, reason = "a packet of the layer is all of this")]
    fn give_own<O: Observer>(
        &mut self,
        end: EndId,
        own: Own,
        channel: u8,
        flow: u64,
        host: u64,
        len: u32,
        observer: &mut O,
    ) -> u32 {
        let far = self.network.layers().far(end);
        let parcel = Parcel::new(self.boxes.keep(own), far, len);
        let handle = self.layer(end).hold(parcel, len);
        self.bring(end, Input::Packet { channel, handle, len, flow, host, acknowledges: None }, observer);
        handle
    }

    fn follow_mux<O: Observer>(&mut self, side: usize, output: MuxOutput, observer: &mut O) {
        let stream = match output {
            MuxOutput::Opened { stream, .. } => return self.connect(side, stream, observer),
            MuxOutput::Send(_) => return,
            MuxOutput::Received { stream, .. }
            | MuxOutput::Ended { stream }
            | MuxOutput::Closed { stream }
            | MuxOutput::Reset { stream, .. } => stream,
        };
        let Some(&end) = self.boxes.side(side).sockets.get(&stream) else { return };
        match output {
            MuxOutput::Received { len, .. } => {
                self.socket(end).bring(u64::from(len));
                let change = self.socket(end).memory_change();
                self.boxes.side(side).change_memory(change);
            }
            MuxOutput::Ended { .. } => self.socket(end).end(),
            MuxOutput::Closed { .. } => {
                self.forget(end);
                let mut cx = Context { now: self.now, who: ends::who(end), probe: observer };
                if let Endpoint::Socket(socket) = &mut self.ends[end.index()].kind {
                    socket.close(&mut cx);
                }
            }
            MuxOutput::Reset { .. } => {
                self.forget(end);
                let mut cx = Context { now: self.now, who: ends::who(end), probe: observer };
                if let Endpoint::Socket(socket) = &mut self.ends[end.index()].kind {
                    socket.reset(&mut cx);
                }
            }
            MuxOutput::Opened { .. } | MuxOutput::Send(_) => {}
        }
        self.boxes.side(side).dirty.push(end);
    }

    /// Connects to the destination of a stream that the other box has opened.
    fn connect<O: Observer>(&mut self, side: usize, stream: StreamId, observer: &mut O) {
        let end = self.boxes.onward.remove(&(side ^ 1, stream)).expect("a stream is opened for a flow");
        if !self.boxes.side(side).has_room() {
            return self.give(side, MuxInput::Reset { stream, reason: Reason::NoResources }, observer);
        }
        let mut cx = Context { now: self.now, who: ends::who(end), probe: observer };
        if let Endpoint::Socket(socket) = &mut self.ends[end.index()].kind {
            socket.connect(&mut cx, stream);
        }
        let change = self.socket(end).memory_change();
        let state = self.boxes.side(side);
        state.change_memory(change);
        state.sockets.insert(stream, end);
        state.dirty.push(end);
    }

    /// Takes a packet of the boxes that has arrived through the tunnel at this end.
    pub(super) fn take_own<O: Observer>(&mut self, end: EndId, parcel: Parcel, observer: &mut O) {
        if let (Own::Message(message), &Above::Streams(side)) = (self.boxes.take(parcel.slot()), &self.layer(end).above)
        {
            self.give(side, MuxInput::Message(message), observer);
        }
    }

    /// The length of a packet with compressed headers, and the header base to be sent with it.
    pub(super) fn compress(&mut self, side: usize, parcel: Parcel) -> (u32, Option<Announcement>) {
        let packet = self.packets.get(parcel);
        let Boxes { bytes, identifications, headers, .. } = &mut self.boxes;
        let (Some(bytes), Some(headers)) = (bytes, &mut headers[side]) else { return (packet.wire_len, None) };
        let to = parcel.to();
        // Counted like a host's identification field for a connection.
        let identification = &mut identifications[to.index()];
        *identification = identification.wrapping_add(1);
        bytes.learn(&packet);
        let Ok(lengths) = bytes.write(&packet, *identification) else { return (packet.wire_len, None) };
        let written = &bytes.written()[..lengths.whole];
        match headers.compress(u64::from(to.0), written) {
            Ok((form, announcement)) => (form.len() as u32, announcement),
            Err(_) => (packet.wire_len, None),
        }
    }

    /// Sends a base of header compression in a separate flow, so that nothing waits for it.
    pub(super) fn announce<O: Observer>(
        &mut self,
        end: EndId,
        side: usize,
        (flow, host): (u64, u64),
        announcement: &Announcement,
        observer: &mut O,
    ) {
        let channel = self.layer(end).default_channel;
        let len = announcement.message.len() as u32;
        let handle = self.give_own(end, Own::Base, channel, !flow, host, len, observer);
        if let Some(headers) = &mut self.boxes.headers[side] {
            headers.announced(handle, announcement.base);
        }
    }

    /// Records that the layer is done with a handle.
    pub(super) fn note_base(&mut self, side: usize, handle: u32, how: Released) {
        if let Some(headers) = &mut self.boxes.headers[side] {
            headers.released(handle, how);
        }
    }
}
