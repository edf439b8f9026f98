//! Link layers: packets enter a layer where their path reaches the link, and leave it at the link's far end.

use bentpipe_engine::link::LinkCounters;
use bentpipe_engine::network::{EndId, LinkId};
use bentpipe_engine::probe::DropReason;
use bentpipe_engine::slacp::classify::{Headers, classify};
use bentpipe_engine::slacp::{End, Frame, Input, Output, Released, Stats, Verdict};
use bentpipe_engine::units::Time;
use bentpipe_engine::wire::{ip, stp};
use bentpipe_engine::{Context, Machine, Step};
use bentpipe_study::scenario::{FlowKind, Scenario};
use bentpipe_study::topology::{self, Connection};

use super::{EndState, World};
use crate::boxes::Above;
use crate::endpoint::Endpoint;
use crate::ends;
use crate::layer::{LayerEnd, Taken};
use crate::observe::{Observer, Passage};
use crate::packet::{self, Parcel};

impl World {
    pub(super) fn add_layers(&mut self, scenario: &Scenario) {
        for layer in &scenario.layers {
            for side in 0..2 {
                let end = End::new(&layer.end(&scenario.links, side));
                let segments = layer.channels.iter().map(|channel| channel.config.segments).collect();
                let mtu = scenario[layer.over[side]].config.mtu.unwrap_or(u32::MAX);
                let layer_end = LayerEnd::new(end, mtu, layer.rules(), segments);
                self.ends.push(EndState::new(Endpoint::Layer(Box::new(layer_end))));
            }
        }
        if scenario.lines().next().is_some() {
            for Connection { flow: id, number, .. } in topology::connections(scenario) {
                // The legs of a split flow use its ports.
                let flow = &scenario[id];
                let ports = packet::ports(id);
                let protocol = match &flow.kind {
                    _ if flow.kind.stp_of_leg(number).is_some() => stp::PROTOCOL,
                    FlowKind::Tcp(_) | FlowKind::Stp(_) => ip::TCP,
                    FlowKind::Quic(_) | FlowKind::Udp(_) => ip::UDP,
                };
                let towards = |source, destination| Headers {
                    dscp: flow.dscp,
                    protocol,
                    source_port: Some(source),
                    destination_port: Some(destination),
                    bare_ack: false,
                    acknowledges: None,
                };
                self.headers.push(towards(ports.destination, ports.source));
                self.headers.push(towards(ports.source, ports.destination));
            }
            // Data forwarded by a gateway belongs to its original flow.
            for end in &self.ends[self.first_sink.index()..self.first_layer_end.index()] {
                let Endpoint::Sink(sink) = &end.kind else { continue };
                self.headers.push(self.headers[sink.spoofer.index()]);
            }
        }
    }

    /// True if it is a layer's frame and not a flow's packet.
    #[inline(always)]
    pub(super) fn is_frame(&self, parcel: Parcel) -> bool {
        self.network.layers().index(parcel.to()).is_some()
    }

    pub(super) fn layer(&mut self, end: EndId) -> &mut LayerEnd {
        match &mut self.ends[end.index()].kind {
            Endpoint::Layer(layer) => layer,
            _ => unreachable!("the ends after those of flows are layers'"),
        }
    }

    /// Makes a second parcel with the same packet or frame.
    pub(super) fn copy(&mut self, parcel: Parcel) -> Parcel {
        if !self.is_frame(parcel) {
            return self.packets.copy(parcel);
        }
        Parcel::new(self.frames.copy(parcel.slot()), parcel.to(), bentpipe_engine::link::Wire::wire_len(&parcel))
    }

    /// Handles a packet or frame that does not reach the end of its link.
    pub(super) fn lose<O: Observer>(&mut self, parcel: Parcel, observer: &mut O) {
        if !self.is_frame(parcel) {
            self.packets.release(parcel);
            return;
        }
        if let Some(number) = self.frames.take(parcel.slot()).number() {
            self.bring(parcel.to(), Input::Damaged { number }, observer);
            self.run_layer(parcel.to(), observer);
        }
    }

    pub(super) fn bring<O: Observer>(&mut self, end: EndId, input: Input, observer: &mut O) -> Verdict {
        let mut cx = Context { now: self.now, who: ends::who(end), probe: observer };
        match &mut self.ends[end.index()].kind {
            Endpoint::Layer(layer) => layer.end.handle(&mut cx, input),
            _ => unreachable!("the ends after those of flows are layers'"),
        }
    }

    /// Handles a packet that arrives from above.
    pub(super) fn enter_layer<O: Observer>(&mut self, end: EndId, parcel: Parcel, observer: &mut O) {
        let (now, until) = (self.now, self.ends[end.index()].until);
        let layer = self.layer(end);
        if layer.busy > now {
            layer.unread.push(parcel);
            let until = until.min(layer.busy);
            return self.wait(end, Some(until));
        }
        // It has time from this very instant on, and the timer for that is still to come.
        self.read_waiting(end, observer);
        self.admit(end, parcel, observer);
        if !self.layer(end).is_polled {
            self.run_layer(end, observer);
        }
    }

    /// Reads the packets that came while the box was busy.
    fn read_waiting<O: Observer>(&mut self, end: EndId, observer: &mut O) {
        let now = self.now;
        let layer = self.layer(end);
        if !layer.unread.is_empty() && layer.busy <= now {
            for parcel in std::mem::take(&mut layer.unread) {
                self.admit(end, parcel, observer);
            }
        }
    }

    fn admit<O: Observer>(&mut self, end: EndId, parcel: Parcel, observer: &mut O) {
        let (bare_ack, acknowledges) = (self.packets.is_bare_ack(parcel), self.packets.acknowledges(parcel));
        let headers = Headers { bare_ack, acknowledges, ..self.headers[parcel.to().index()] };
        let now = self.now;
        let len = bentpipe_engine::link::Wire::wire_len(&parcel);
        let sends_on = self.network.layers().sends_on(end);
        let layer = self.layer(end);
        if len > layer.mtu {
            if O::WATCHES {
                observer.packet(now, sends_on, Passage::Offered, &self.packets.get(parcel));
            }
            self.layer(end).too_long += 1;
            return self.drop_packet(sends_on, DropReason::TooLong, parcel, observer);
        }
        let channel = classify(&layer.rules, layer.default_channel, &headers, len);
        let above = layer.above;
        if O::WATCHES {
            observer.packet(now, sends_on, Passage::Offered, &self.packets.get(parcel));
        }
        let flow = u64::from(parcel.to().0);
        let (len, host, base) = match above {
            Above::Packets(side) => {
                let (len, base) = self.compress(side, parcel);
                (len, self.boxes.host(side, parcel.to()), base.map(|base| (side, base)))
            }
            Above::Flows | Above::Streams(_) => (len, 0, None),
        };
        self.layer(end).limit_queue(channel);
        let handle = self.layer(end).hold(parcel, len);
        self.bring(end, Input::Packet { channel, handle, len, flow, host, acknowledges }, observer);
        if let Some((side, base)) = base {
            self.announce(end, side, (flow, host), &base, observer);
        }
    }

    /// Handles a frame that arrives from below.
    pub(super) fn leave_line<O: Observer>(&mut self, end: EndId, parcel: Parcel, observer: &mut O) {
        let frame = self.frames.take(parcel.slot());
        // Without memory, the frame is refused, and the peer retransmits it.
        if !self.layer(end).has_room(&frame) {
            return;
        }
        let packet = match frame {
            Frame::Data { channel, seq, len, .. } => Some((channel, seq, len)),
            _ => None,
        };
        let verdict = self.bring(end, Input::Frame(frame), observer);
        if let (Verdict::Kept, Some((channel, seq, len))) = (verdict, packet) {
            self.layer(end).arrive(channel, seq, len);
        }
        self.run_layer(end, observer);
    }

    /// Polls an end of a layer until it waits, and the box above it.
    pub(super) fn run_layer<O: Observer>(&mut self, end: EndId, observer: &mut O) {
        self.run_line(end, observer);
        if let Above::Streams(side) = self.layer(end).above {
            self.settle(side, observer);
        }
    }

    /// Polls an end of a layer until it waits. A delivered packet may return to the end as an ACK before this returns.
    /// The end is not polled again from there: behind a repaired gap, a whole window is delivered at one instant, and
    /// the stack would grow with each of its packets.
    pub(super) fn run_line<O: Observer>(&mut self, end: EndId, observer: &mut O) {
        let layers = self.network.layers();
        let (far, frames) = (layers.far(end), layers.frames(end));
        let (sends_on, hears) = (layers.sends_on(end), layers.hears(end));
        let was_polled = std::mem::replace(&mut self.layer(end).is_polled, true);
        self.read_waiting(end, observer);
        loop {
            let now = self.now;
            let layer = match &mut self.ends[end.index()].kind {
                Endpoint::Layer(layer) => layer,
                _ => unreachable!("the ends after those of flows are layers'"),
            };
            let mut cx = Context { now, who: ends::who(end), probe: &mut *observer };
            let output = match layer.end.poll(&mut cx) {
                Step::Do(output) => output,
                Step::Wait(until) => {
                    layer.is_polled = was_polled;
                    let reads_at = (!layer.unread.is_empty()).then_some(layer.busy);
                    return self.wait(end, Time::earliest(until, reads_at));
                }
            };
            match output {
                Output::Transmit { frame, handle } => {
                    if let Some(handle) = handle {
                        layer.on_sent(&frame, handle);
                    }
                    let weight = layer.end.weight(&frame) + layer.overhead;
                    let parcel = Parcel::new(self.frames.keep(frame), far, weight);
                    self.go(frames, parcel, observer);
                }
                Output::Deliver { channel, seq } => {
                    layer.deliver(now, channel, seq);
                    let taken = self.layer(far).take(channel, seq, false).expect("a delivered packet was sent");
                    self.done(end, hears, taken, observer);
                }
                Output::Recover { channel, seq, .. } => {
                    let (len, behind) =
                        self.layer(far).look_up(channel, seq).expect("a missing packet was not delivered");
                    let input = Input::Recovered { channel, seq, behind, len };
                    if self.bring(end, input, observer) == Verdict::Kept {
                        self.layer(end).arrive(channel, seq, len);
                    }
                }
                Output::Skip { channel, seqs } => {
                    for seq in seqs {
                        let taken = self.layer(far).take(channel, seq, true).expect("a skipped packet was sent");
                        self.done(end, hears, taken, observer);
                    }
                }
                Output::Release { handle, how } => {
                    let (parcel, above) = (layer.let_go(handle), layer.above);
                    if let Above::Packets(side) = above {
                        self.note_base(side, handle, how);
                    }
                    self.note_released(parcel, observer);
                    let reason = match how {
                        Released::DroppedFull => DropReason::QueueFull,
                        Released::DroppedEarly | Released::Superseded => DropReason::Early,
                        // The far end still has to deliver or skip it.
                        Released::Acknowledged | Released::Sent | Released::Abandoned => continue,
                    };
                    self.drop_packet(sends_on, reason, parcel, observer);
                }
            }
        }
    }

    /// Records that the far end of a layer is done with a frame of a packet.
    fn done<O: Observer>(&mut self, end: EndId, link: LinkId, taken: Taken, observer: &mut O) {
        match taken {
            Taken::InPart => {}
            Taken::Whole(parcel) if self.is_frame(parcel) => self.take_own(end, parcel, observer),
            Taken::Whole(parcel) => self.pass_on(link, parcel, observer),
            Taken::Broken(parcel) => self.drop_packet(link, DropReason::Channel, parcel, observer),
        }
    }

    fn drop_packet<O: Observer>(&mut self, link: LinkId, reason: DropReason, parcel: Parcel, observer: &mut O) {
        if self.is_frame(parcel) {
            // A packet of the boxes, which observers do not see.
            self.boxes.take(parcel.slot());
            return;
        }
        if O::WATCHES {
            observer.packet(self.now, link, Passage::Dropped(reason), &self.packets.get(parcel));
        }
        self.packets.release(parcel);
    }

    /// Passes on a packet that leaves the layer at the far end of a link.
    fn pass_on<O: Observer>(&mut self, link: LinkId, parcel: Parcel, observer: &mut O) {
        if O::WATCHES {
            observer.packet(self.now, link, Passage::Delivered, &self.packets.get(parcel));
        }
        let hop = self.network.behind(link, parcel.to());
        self.go(hop, parcel, observer);
    }

    /// Adds the packets that a layer refused as too long, which never reached its link.
    pub(crate) fn add_too_long(&self, counters: &mut [LinkCounters]) {
        for (n, end) in self.ends.iter().enumerate().skip(self.first_layer_end.index()) {
            if let Endpoint::Layer(layer) = &end.kind {
                let link = &mut counters[self.network.layers().sends_on(EndId::from(n)).index()];
                link.offered += layer.too_long;
                link.dropped_too_long += layer.too_long;
            }
        }
    }

    /// Counters of the layers.
    pub(crate) fn layer_stats(&self) -> Vec<[Stats; 2]> {
        let stats = |end: &EndState| match &end.kind {
            Endpoint::Layer(layer) => layer.end.stats(),
            _ => unreachable!("the ends after those of flows are layers'"),
        };
        self.ends[self.first_layer_end.index()..].chunks(2).map(|pair| [stats(&pair[0]), stats(&pair[1])]).collect()
    }
}
