//! The state of a run: links and ends of flows, their paths, and the next event.

use std::collections::BTreeMap;

use bentpipe_engine::link::{Altered, Wire};
use bentpipe_engine::network::{Age, Books, Due, EndId, Hop, Network};
use bentpipe_engine::slacp::classify::Headers;
use bentpipe_engine::units::Time;
use bentpipe_engine::{Context, Step};

use crate::boxes::Boxes;
use crate::ended::Ended;
use crate::endpoint::{Endpoint, Next};
use crate::ends;
use crate::gateway::Gateway;
use crate::layer::Frames;
use crate::observe::{Observer, Watching};
use crate::packet::{Parcel, Store};
use crate::responses::Responses;

mod agenda;
mod boxes;
mod build;
mod layers;
mod lifetimes;
mod results;
mod spoofing;
mod timers;
mod uplinks;
mod wiring;

pub use results::FlowResult;
pub use timers::Timers;

use agenda::{Agenda, Slot};
use lifetimes::{Former, Model};
use uplinks::UplinkBox;

/// An end and the world's state for it, in one cache line: with many ends, each event would otherwise wait for several.
#[derive(Debug)]
#[repr(align(64))]
struct EndState {
    kind: Endpoint,
    /// The due time of its timer; [`Time::NEVER`] if it has none.
    until: Time,
    /// When the timer was set.
    begun: Time,
    /// Its time in the agenda, which may be earlier than the due time.
    on_agenda: Time,
    /// Its slot in the agenda.
    slot: Slot,
    /// The first hop of its packets.
    first_hop: Hop,
    /// True if nothing more is expected of it.
    is_done: bool,
}

impl EndState {
    /// An end without a timer or a path.
    fn new(kind: Endpoint) -> Self {
        EndState {
            kind,
            until: Time::NEVER,
            begun: Time::ZERO,
            on_agenda: Time::NEVER,
            slot: Slot::NONE,
            first_hop: Hop::Arrived,
            is_done: false,
        }
    }
}

/// The world's state for a flow.
#[derive(Clone, Copy, Debug)]
struct FlowState {
    start: Time,
    /// The end at which its data arrives.
    goal: EndId,
    /// True if it ends with a response, at its other end.
    ends_with_response: bool,
    /// True if its source stops after some time.
    stops: bool,
}

/// Links, ends and agenda of one run. Components are numbered, links first, then ends ([`ends`]). A flow's connection
/// has the flow's number; the further legs of split flows come after all flows.
#[derive(Debug)]
pub(crate) struct World {
    network: Network<Parcel>,
    packets: Store,
    /// Two ends for each connection, one for each spoofed flow, then two for each link layer.
    ends: Vec<EndState>,
    /// The models of ends that are made late: an active and a passive one for flows with equal settings.
    models: Vec<Model>,
    /// What remains of ends whose connection is closed or in TIME-WAIT.
    ended: Vec<Ended>,
    /// The responses that such ends have had.
    responses: BTreeMap<EndId, Responses>,
    former: Former,
    /// The ends from this one up to those of layers are the destinations of spoofed flows.
    first_sink: EndId,
    /// The ends from this one on belong to link layers.
    first_layer_end: EndId,
    frames: Frames,
    /// For each end, the header fields that link layers need of packets to it; empty without layers.
    headers: Vec<Headers>,
    gateways: Vec<Gateway>,
    uplinks: Vec<UplinkBox>,
    /// The boxes of two-box gateways, and the first end of their tunnels.
    boxes: Boxes,
    first_tunnel: EndId,
    flows: Vec<FlowState>,
    agenda: Agenda,
    timers: Timers,
    /// Number of finite ends that are not done. The run is over when the last one is done.
    busy: usize,
    has_finite: bool,
    pub(crate) now: Time,
    /// The age of the current event.
    age: Age,
    /// The current event, as it stood in the agenda.
    last: Due,
    pub(crate) events: u64,
}

impl World {
    /// True if all finite flows are done. Never true without finite flows.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.busy == 0 && self.has_finite
    }

    /// The network's counters up to now, or up to `limit` if nothing more happens until then. Sets the current time to
    /// that of the last event.
    pub(crate) fn close(&mut self, limit: Option<Time>) -> Books {
        let books = self.network.books(limit.map_or(self.last, Due::after));
        let (passages, last) = books.passages;
        self.now = self.now.max(last);
        // On a link in a chain, a packet's arrival is an event although it was not in the agenda.
        self.events += passages;
        books
    }

    /// True if an end has a timer. The agenda cannot tell, because it may contain stopped timers.
    pub(crate) fn has_timers(&self) -> bool {
        self.ends.iter().any(|end| end.until != Time::NEVER)
    }

    /// Runs the next event, if it is not after `limit`. Returns false if there is none.
    #[inline(always)]
    pub(crate) fn step<O: Observer>(&mut self, limit: Time, observer: &mut O) -> bool {
        let (network, end) = (self.network.first(), self.agenda.first());
        let is_network = network < end;
        let due = if is_network { network } else { end };
        let time = due.at();
        if time > limit || time == Time::NEVER {
            return false;
        }
        debug_assert!(time >= self.now, "time runs forward");
        self.last = due;
        if is_network {
            self.events += 1;
            (self.now, self.age) = (time, due.age());
            self.arrive(due.component(), observer);
            return true;
        }
        if self.agenda.take_rest(due) {
            self.events += 1;
            (self.now, self.age) = (time, due.age());
            self.end_rest(EndId::from(due.component() - self.network.components()));
            return true;
        }
        self.agenda.take_start(due);
        let n = EndId::from(due.component() - self.network.components());
        let due = self.due_of_end(n);
        if due.at() > time {
            // This is a postponed timer: nothing happens now, so it is not an event and the current time does not
            // change.
            self.put_on_agenda(n, due);
        } else {
            self.events += 1;
            (self.now, self.age) = (time, due.age());
            self.run_end(n, observer);
        }
        true
    }

    /// Handles a packet that has passed a component of the network.
    #[inline(always)]
    fn arrive<O: Observer>(&mut self, component: usize, observer: &mut O) {
        match self.network.take_arrived::<O>(self.now, component) {
            Some(parcel) => self.deliver(parcel.to(), parcel, observer),
            None => self.arrive_elsewhere(component, observer),
        }
    }

    /// Handles a packet that has passed a component and continues, or that was altered.
    #[inline(never)]
    fn arrive_elsewhere<O: Observer>(&mut self, component: usize, observer: &mut O) {
        loop {
            let mut watch = Watching::new(observer, &self.packets, self.first_layer_end);
            let Some((parcel, fate)) = self.network.take(self.now, &mut watch, component) else { return };
            let altered = self.network.altered();
            if altered != Altered::NOT
                && let Ok(hop) = fate
            {
                self.go_altered(altered, hop, parcel, observer);
                return;
            }
            match fate {
                Ok(Hop::Arrived) => self.deliver(parcel.to(), parcel, observer),
                Ok(hop) => self.go(hop, parcel, observer),
                Err(_) => self.lose(parcel, observer),
            }
            if self.network.is_link(component) {
                return;
            }
        }
    }

    /// Moves a packet that a link has altered: duplicated, marked, or with a flipped bit, which the destination's
    /// checksum detects. A link-layer frame with a flipped bit is lost at the end of its link. Frames are not marked.
    #[cold]
    fn go_altered<O: Observer>(&mut self, altered: Altered, hop: Hop, mut parcel: Parcel, observer: &mut O) {
        if altered.marked {
            parcel = self.packets.mark(parcel);
        }
        let copy = altered.twice.then(|| self.copy(parcel));
        for parcel in std::iter::once(parcel).chain(copy) {
            if !altered.corrupt {
                self.go(hop, parcel, observer);
            } else if self.is_frame(parcel) {
                self.lose(parcel, observer);
            } else {
                self.packets.corrupt(parcel);
                self.go(hop, parcel, observer);
            }
        }
    }

    /// Moves a packet to its next hop.
    #[inline]
    fn go<O: Observer>(&mut self, hop: Hop, parcel: Parcel, observer: &mut O) {
        let mut watch = Watching::new(observer, &self.packets, self.first_layer_end);
        match hop {
            Hop::Link(link) => {
                let (now, age) = (self.now, self.age);
                if let Err((parcel, _)) = self.network.offer(now, || age.begun(now), &mut watch, link, parcel) {
                    self.lose(parcel, observer);
                }
            }
            Hop::Station(station) => {
                // The network returns a dropped packet when its turn comes.
                let _ = self.network.enter(self.now, &mut watch, station, parcel);
            }
            Hop::Layer { end, .. } => self.enter_layer(end, parcel, observer),
            Hop::Arrived => self.deliver(parcel.to(), parcel, observer),
        }
    }

    #[inline(always)]
    fn deliver<O: Observer>(&mut self, to: EndId, parcel: Parcel, observer: &mut O) {
        if let Endpoint::Tcp(tcp) = &mut self.ends[to.index()].kind
            && let Some(segment) = self.packets.plain_segment(parcel)
        {
            // Its slot is reused first, because it is in the cache.
            self.packets.release(parcel);
            let mut cx = Context { now: self.now, who: ends::who(to), probe: &mut *observer };
            // Only what is not predicted goes through memory.
            if !tcp.take_plain(&mut cx, &segment) {
                tcp.take_unpredicted(&mut cx, segment);
            }
            self.run_end(to, observer);
        } else {
            self.deliver_elsewhere(to, parcel, observer);
        }
    }

    /// Delivers to an end that is not a connection, or a segment with options.
    #[inline(never)]
    fn deliver_elsewhere<O: Observer>(&mut self, to: EndId, parcel: Parcel, observer: &mut O) {
        if !self.is_frame(parcel) && self.packets.is_corrupt(parcel) {
            return self.packets.release(parcel);
        }
        match &mut self.ends[to.index()].kind {
            Endpoint::UdpSink(sink) => {
                sink.bytes += parcel.wire_len() as u64;
                sink.arrivals = Some((sink.arrivals.map_or(self.now, |(first, _)| first), self.now));
                sink.delays.record(self.now.saturating_since(self.packets.departure(parcel)));
            }
            &mut Endpoint::Leg { gateway, leg } => {
                let segment = self.packets.segment(parcel);
                let gateway = &mut self.gateways[gateway as usize];
                let mut cx = Context { now: self.now, who: ends::who(to), probe: &mut *observer };
                gateway.take(&mut cx, leg, segment);
                let slot = gateway.slot();
                self.run_end(slot, observer);
            }
            Endpoint::Socket(socket) => {
                let mut cx = Context { now: self.now, who: ends::who(to), probe: &mut *observer };
                socket.take(&mut cx, self.packets.segment(parcel));
                self.run_socket(to, observer);
            }
            Endpoint::Tcp(tcp) => {
                let mut cx = Context { now: self.now, who: ends::who(to), probe: &mut *observer };
                tcp.take_segment(&mut cx, self.packets.segment(parcel));
                self.run_end(to, observer);
            }
            Endpoint::Late { .. } => {
                self.make(to);
                return self.deliver(to, parcel, observer);
            }
            Endpoint::Ended { .. } => return self.reach_ended(to, parcel, observer),
            #[cfg(feature = "quic")]
            Endpoint::Quic(quic) => {
                let datagram = self.packets.take_content(parcel);
                let mut cx = Context { now: self.now, who: ends::who(to), probe: &mut *observer };
                quic.take(&mut cx, datagram);
                self.run_end(to, observer);
            }
            Endpoint::UdpSource(_) => debug_assert!(false, "nobody answers datagrams"),
            Endpoint::Spoofer(_) => self.reach_spoofer(to, parcel, observer),
            Endpoint::Sink(sink) => {
                sink.take(self.now, parcel.wire_len());
                if !self.ends[to.index()].is_done {
                    self.note_done(to);
                }
            }
            Endpoint::Layer(_) => return self.leave_line(to, parcel, observer),
        }
        self.packets.release(parcel);
    }

    /// Polls an end until it waits. TCP ends have a separate loop, so that their segments stay in registers.
    // Not inlined: in one function with the delivery, no fewer values go through the stack.
    #[inline(never)]
    fn run_end<O: Observer>(&mut self, n: EndId, observer: &mut O) {
        loop {
            let state = &mut self.ends[n.index()];
            let Endpoint::Tcp(tcp) = &mut state.kind else { break };
            if !tcp.is_tcp() {
                break;
            }
            let mut cx = Context { now: self.now, who: ends::who(n), probe: &mut *observer };
            let (now, age, hop, mut is_ordinary) = (self.now, self.age, state.first_hop, false);
            let elsewhere = loop {
                match (tcp.poll(&mut cx, &mut self.packets, &mut is_ordinary), hop) {
                    (Next::Send(parcel), Hop::Link(link)) => {
                        let mut watch = Watching::new(&mut *cx.probe, &self.packets, self.first_layer_end);
                        if self.network.offer(now, || age.begun(now), &mut watch, link, parcel).is_err() {
                            self.packets.release(parcel);
                        }
                    }
                    (Next::Send(parcel), _) => break parcel,
                    (Next::Wait(until), _) => {
                        let is_done = tcp.is_done();
                        let is_over = is_done && !O::WATCHES && tcp.is_over();
                        let keeps_slot = state.wait(until, now, self.timers);
                        if is_done && !state.is_done {
                            self.note_done(n);
                        }
                        if !keeps_slot {
                            self.plan(n);
                        }
                        if is_over {
                            self.retire(n);
                        }
                        return;
                    }
                }
            };
            self.go(hop, elsewhere, observer);
        }
        self.run_other(n, observer);
    }

    /// Polls an end of another kind until it waits.
    #[inline(never)]
    fn run_other<O: Observer>(&mut self, n: EndId, observer: &mut O) {
        loop {
            let mut cx = Context { now: self.now, who: ends::who(n), probe: &mut *observer };
            let step = match &mut self.ends[n.index()].kind {
                #[cfg(feature = "quic")]
                Endpoint::Quic(quic) => quic.poll(&mut cx, &mut self.packets),
                Endpoint::UdpSource(source) => source.poll(self.now, &mut self.packets),
                &mut Endpoint::Leg { gateway, .. } if self.gateways[gateway as usize].uplink.is_some() => {
                    return self.run_at_uplink(gateway, observer);
                }
                &mut Endpoint::Leg { gateway, .. } => self.gateways[gateway as usize].poll(&mut cx, &mut self.packets),
                Endpoint::Spoofer(spoofer) => spoofer.poll(&mut cx, &mut self.packets),
                Endpoint::Tcp(stp) => stp.poll_stp(&mut cx, &mut self.packets),
                Endpoint::Late { .. } if ends::opens(n) => {
                    self.make(n);
                    return self.run_end(n, observer);
                }
                &mut Endpoint::Ended { at } => {
                    let ended = &mut self.ended[at as usize];
                    ended.on_time(self.now);
                    Step::Wait(ended.until())
                }
                Endpoint::UdpSink(_) | Endpoint::Sink(_) | Endpoint::Late { .. } => Step::Wait(None),
                Endpoint::Layer(_) => return self.run_layer(n, observer),
                Endpoint::Socket(_) => return self.run_socket(n, observer),
            };
            match step {
                Step::Do(parcel) => self.send(parcel, observer),
                Step::Wait(until) => break self.wait(n, until),
            }
        }
        if !self.ends[n.index()].is_done {
            self.note_done(n);
        }
    }

    /// Sends an end's packet to its first hop.
    #[inline(always)]
    fn send<O: Observer>(&mut self, parcel: Parcel, observer: &mut O) {
        self.go(self.ends[self.leaves_by(parcel).index()].first_hop, parcel, observer);
    }

    #[inline(always)]
    fn note_done(&mut self, n: EndId) {
        let done = match &self.ends[n.index()].kind {
            Endpoint::Tcp(tcp) if tcp.is_done() => {
                tcp.leave(self.now);
                true
            }
            #[cfg(feature = "quic")]
            Endpoint::Quic(quic) => quic.is_done(),
            Endpoint::Sink(sink) => sink.is_done(),
            _ => false,
        };
        if done {
            self.ends[n.index()].is_done = true;
            self.busy -= 1;
        }
    }
}
