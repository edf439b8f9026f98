//! The world of a run: links and ends of flows, who is wired to whom, and what happens next.

use bentpipe_engine::link::Wire;
use bentpipe_engine::network::{Age, Books, Due, Hop, Network, Tournament};
use bentpipe_engine::probe::Who;
use bentpipe_engine::slacp::classify::Headers;
use bentpipe_engine::units::Time;
use bentpipe_engine::{Context, Step};

use crate::endpoint::Endpoint;
use crate::gateway::Gateway;
use crate::layer::Frames;
use crate::observe::{Observer, Watching};
use crate::packet::{Parcel, Store};

mod build;
mod layers;
mod results;
mod spoofing;
mod wiring;

pub use results::FlowResult;

/// How timers are kept in the agenda. Both give the same run; the literal one is the lazy one's twin in tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timers {
    /// A timer that moves later stays where it is; when its slot comes, the machine is polled and says so.
    #[default]
    Lazy,
    /// Each change is carried over at once.
    Literal,
}

/// What an end waits for.
#[derive(Clone, Copy, Debug)]
struct Waits {
    /// The instant; [`Time::NEVER`] if for nothing.
    until: Time,
    /// Since when.
    begun: Time,
    /// For when it stands on the agenda, which may be earlier.
    on_agenda: Time,
}

impl Waits {
    const FOR_NOTHING: Waits = Waits { until: Time::NEVER, begun: Time::ZERO, on_agenda: Time::NEVER };
}

/// Links, ends and agenda of one run. Components are numbered, links first; the two ends of connection n are 2n and
/// 2n + 1. A flow's connection has the flow's number; the further legs of split ones stand behind all flows.
#[derive(Debug)]
pub(crate) struct World {
    network: Network<Parcel>,
    packets: Store,
    /// The first hop of each end's packets.
    first_hop: Vec<Hop>,
    /// Two for each connection, one for each flow whose TCP ends on the way, then two for each link layer.
    ends: Vec<Endpoint>,
    /// By flow whose TCP ends on the way: its end there.
    spoofers: Vec<usize>,
    /// The ends from here to those of layers are where such flows arrive.
    first_sink: usize,
    /// How many of them belong to flows.
    flow_ends: usize,
    frames: Frames,
    /// By end: what the headers of packets to it say to a link layer; empty where there is none.
    headers: Vec<Headers>,
    gateways: Vec<Gateway>,
    /// When each flow starts.
    starts: Vec<Time>,
    /// The end at which each flow arrives.
    goals: Vec<u32>,
    /// What each end waits for.
    waits: Vec<Waits>,
    /// When ends act by themselves; in the order of events they follow the network's components.
    agenda: Tournament,
    timers: Timers,
    /// Finite ends that are not done; the run is over when none is left of those there were.
    busy: usize,
    has_finite: bool,
    done: Vec<bool>,
    pub(crate) now: Time,
    /// How long ago the event that happens now was begun.
    age: Age,
    /// The event itself, as it stood in the agenda.
    last: Due,
    pub(crate) events: u64,
}

impl World {
    /// Whether all finite flows are done; never true where there are none.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.busy == 0 && self.has_finite
    }

    /// What the network has counted by now, or by `limit`, if nothing more happens until then. The present comes to what
    /// happened last.
    pub(crate) fn close(&mut self, limit: Option<Time>) -> Books {
        let books = self.network.books(limit.map_or(self.last, Due::after));
        let (passages, last) = books.passages;
        self.now = self.now.max(last);
        // On a link in a chain a packet's arrival is an event like any other, though the agenda did not hold it.
        self.events += passages;
        books
    }

    /// Whether some end has something to do yet. Not by the agenda, in which a timer that was called off may still stand.
    pub(crate) fn has_timers(&self) -> bool {
        self.waits.iter().any(|waits| waits.until != Time::NEVER)
    }

    /// Does what is next, if that is not after `limit`. False when nothing is left.
    #[inline]
    pub(crate) fn step<O: Observer>(&mut self, limit: Time, observer: &mut O) -> bool {
        let (network, end) = (self.network.first(), self.agenda.first());
        let due = network.min(end);
        let time = due.at();
        if time > limit || time == Time::NEVER {
            return false;
        }
        debug_assert!(time >= self.now, "time runs forward");
        self.events += 1;
        self.last = due;
        if network < end {
            (self.now, self.age) = (time, due.age());
            self.arrive(due.component(), observer);
            return true;
        }
        let n = due.component() - self.network.components();
        let due = self.due_of_end(n);
        if due.at() > time {
            // A timer that was put off since: nothing happens now, so the present stays where it is.
            self.put_on_agenda(n, due);
        } else {
            (self.now, self.age) = (time, due.age());
            self.run_end(n, observer);
        }
        true
    }

    /// Something has come to its end in the network.
    #[inline]
    fn arrive<O: Observer>(&mut self, component: usize, observer: &mut O) {
        loop {
            let mut watch = Watching::new(observer, &self.packets, self.flow_ends);
            let Some((parcel, fate)) = self.network.take(self.now, &mut watch, component) else { return };
            match fate {
                Ok(Hop::Arrived) => self.deliver(parcel.to.index(), parcel, observer),
                Ok(hop) => self.go(hop, parcel, observer),
                Err(_) => self.lose(parcel, observer),
            }
            if self.network.is_link(component) {
                return;
            }
        }
    }

    /// Brings a packet to where it goes next.
    #[inline]
    fn go<O: Observer>(&mut self, hop: Hop, parcel: Parcel, observer: &mut O) {
        let mut watch = Watching::new(observer, &self.packets, self.flow_ends);
        match hop {
            Hop::Link(link) => {
                let (now, age) = (self.now, self.age);
                if let Err(parcel) = self.network.offer(now, || age.begun(now), &mut watch, link, parcel) {
                    self.lose(parcel, observer);
                }
            }
            Hop::Station(station) => self.network.enter(self.now, &mut watch, station, parcel),
            Hop::Layer { end, .. } => self.enter_layer(end.index(), parcel, observer),
            Hop::Arrived => self.deliver(parcel.to.index(), parcel, observer),
        }
    }

    #[inline(always)]
    fn deliver<O: Observer>(&mut self, to: usize, parcel: Parcel, observer: &mut O) {
        if let Endpoint::Tcp(tcp) = &mut self.ends[to]
            && let Some(segment) = self.packets.plain_segment(parcel)
        {
            // Its slot is the first to be taken again: it is in the cache.
            self.packets.release(parcel);
            let mut cx = Context { now: self.now, who: Who(to as u32), probe: &mut *observer };
            tcp.take_segment(&mut cx, segment);
            self.run_end(to, observer);
        } else {
            self.deliver_elsewhere(to, parcel, observer);
        }
    }

    /// To an end that is no connection, or of a segment with options.
    #[inline(never)]
    fn deliver_elsewhere<O: Observer>(&mut self, to: usize, parcel: Parcel, observer: &mut O) {
        match &mut self.ends[to] {
            Endpoint::UdpSink(sink) => {
                sink.bytes += parcel.wire_len() as u64;
                sink.delays.record(self.now.saturating_since(self.packets.departure(parcel)));
            }
            &mut Endpoint::Port { gateway, leg } => {
                let segment = self.packets.segment(parcel);
                let gateway = &mut self.gateways[gateway as usize];
                let mut cx = Context { now: self.now, who: Who(to as u32), probe: &mut *observer };
                gateway.take(&mut cx, leg, segment);
                let slot = gateway.slot();
                self.run_end(slot, observer);
            }
            Endpoint::Tcp(tcp) => {
                let mut cx = Context { now: self.now, who: Who(to as u32), probe: &mut *observer };
                tcp.take_segment(&mut cx, self.packets.segment(parcel));
                self.run_end(to, observer);
            }
            Endpoint::UdpSource(_) => debug_assert!(false, "nobody answers datagrams"),
            Endpoint::Spoofer(_) => self.reach_spoofer(to, parcel, observer),
            Endpoint::Sink(sink) => {
                sink.take(self.now, parcel.wire_len());
                if !self.done[to] {
                    self.note_done(to);
                }
            }
            Endpoint::Layer(_) => return self.leave_line(to, parcel, observer),
        }
        self.packets.release(parcel);
    }

    /// Polls an end until it waits. Those of TCP have a loop of their own: what they send never leaves the registers.
    fn run_end<O: Observer>(&mut self, n: usize, observer: &mut O) {
        while let Endpoint::Tcp(tcp) = &mut self.ends[n]
            && tcp.is_tcp()
        {
            let mut cx = Context { now: self.now, who: Who(n as u32), probe: &mut *observer };
            let (now, age, hop) = (self.now, self.age, self.first_hop[n]);
            let elsewhere = loop {
                match (tcp.poll(&mut cx, &mut self.packets), hop) {
                    (Step::Do(parcel), Hop::Link(link)) => {
                        let mut watch = Watching::new(&mut *cx.probe, &self.packets, self.flow_ends);
                        if self.network.offer(now, || age.begun(now), &mut watch, link, parcel).is_err() {
                            self.packets.release(parcel);
                        }
                    }
                    (Step::Do(parcel), _) => break parcel,
                    (Step::Wait(until), _) => {
                        let is_done = tcp.is_done();
                        self.wait(n, until);
                        if is_done && !self.done[n] {
                            self.note_done(n);
                        }
                        return;
                    }
                }
            };
            self.go(hop, elsewhere, observer);
        }
        self.run_other(n, observer);
    }

    /// The same for an end of another kind.
    #[inline(never)]
    fn run_other<O: Observer>(&mut self, n: usize, observer: &mut O) {
        loop {
            let mut cx = Context { now: self.now, who: Who(n as u32), probe: &mut *observer };
            let step = match &mut self.ends[n] {
                Endpoint::UdpSource(source) => source.poll(self.now, &mut self.packets),
                &mut Endpoint::Port { gateway, .. } => self.gateways[gateway as usize].poll(&mut cx, &mut self.packets),
                Endpoint::Spoofer(spoofer) => spoofer.poll(&mut cx, &mut self.packets),
                Endpoint::Tcp(stp) => stp.poll_stp(&mut cx, &mut self.packets),
                Endpoint::UdpSink(_) | Endpoint::Sink(_) => Step::Wait(None),
                Endpoint::Layer(_) => return self.run_layer(n, observer),
            };
            match step {
                Step::Do(parcel) => self.send(parcel, observer),
                Step::Wait(until) => break self.wait(n, until),
            }
        }
        if !self.done[n] {
            self.note_done(n);
        }
    }

    /// An end sends a packet: to its first hop.
    #[inline(always)]
    fn send<O: Observer>(&mut self, parcel: Parcel, observer: &mut O) {
        self.go(self.first_hop[self.leaves_by(parcel)], parcel, observer);
    }

    /// The place of an end's timer in the order of events.
    #[inline(always)]
    fn due_of_end(&self, n: usize) -> Due {
        let Waits { until, begun, .. } = self.waits[n];
        if until == Time::NEVER { Due::NEVER } else { Due::new(until, begun, self.network.components() + n) }
    }

    #[inline(always)]
    fn put_on_agenda(&mut self, n: usize, due: Due) {
        self.agenda.set(n, due);
        self.waits[n].on_agenda = due.at();
    }

    /// Keeps what an end waits for. Since when is remembered with it, so that a lazy agenda orders events of one
    /// instant as a literal one does.
    #[inline(always)]
    fn wait(&mut self, n: usize, until: Option<Time>) {
        let until = until.unwrap_or(Time::NEVER);
        let waits = &mut self.waits[n];
        if until != waits.until {
            (waits.until, waits.begun) = (until, self.now);
        }
        // Lazy: a slot that lies in the future but too early only costs a poll.
        let keep = self.timers == Timers::Lazy && waits.on_agenda > self.now && waits.on_agenda < until;
        if !keep {
            self.plan(n);
        }
    }

    #[inline(never)]
    fn plan(&mut self, n: usize) {
        let (due, planned) = (self.due_of_end(n), self.agenda.due(n));
        let keep = self.timers == Timers::Lazy && planned.at() > self.now && planned <= due;
        if !keep && planned != due {
            self.put_on_agenda(n, due);
        }
    }

    #[inline(always)]
    fn note_done(&mut self, n: usize) {
        let done = match &self.ends[n] {
            Endpoint::Tcp(tcp) if tcp.is_done() => {
                tcp.leave();
                true
            }
            Endpoint::Sink(sink) => sink.is_done(),
            _ => false,
        };
        if done {
            self.done[n] = true;
            self.busy -= 1;
        }
    }
}
