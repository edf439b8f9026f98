//! The network: links and stations, and the next packet to leave them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::chain::{Books, Fate, Log, Passing, take_off_what_comes};
use super::due::{Due, Tournament};
use super::layers::LayerEnds;
use super::managed::ManagedLink;
use super::routes::{DIFFERS, ENDS, Routes};
use super::{Bound, EndId, Hop, LINK_BASE, LinkId, Passage, StationId, Watch};
use crate::link::{Altered, CellPort, Link, LinkConfig, LinkCounters, Outcome, Server, Transit};
use crate::machine::Context;
use crate::probe::{DropReason, Probe, Who};
use crate::units::{Duration, Time};

/// A station: any component that is not a plain link.
#[derive(Debug)]
pub enum Station<P> {
    /// The link with this number, in cells.
    Cells {
        /// The link's number; the link itself carries nothing.
        link: LinkId,
        /// Its port.
        port: Box<CellPort<P>>,
    },
    /// A link whose queue decides when a packet leaves it.
    Managed {
        /// The link's number; the link itself carries nothing.
        link: LinkId,
        /// The link with its queue.
        port: Box<ManagedLink<P>>,
    },
    /// A processor of a host.
    Host(Server<P>),
}

impl<P: Bound> Station<P> {
    fn link(&self) -> Option<LinkId> {
        match self {
            Station::Cells { link, .. } | Station::Managed { link, .. } => Some(*link),
            Station::Host(_) => None,
        }
    }

    fn who(&self) -> Who {
        Who(LINK_BASE + self.link().map_or(0, |link| link.0))
    }

    fn offer<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>, channel: u32, packet: P) -> Result<(), DropReason> {
        match self {
            Station::Cells { port, .. } => port.offer(cx, channel, packet),
            Station::Managed { port, .. } => port.offer(cx, packet),
            Station::Host(server) => {
                server.offer(cx.now, packet);
                Ok(())
            }
        }
    }

    fn take<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>) -> Option<(P, Result<Altered, DropReason>)> {
        match self {
            Station::Cells { port, .. } => port.take(cx).map(|(packet, fate)| (packet, fate.map(|()| Altered::NOT))),
            Station::Managed { port, .. } => port.take(cx),
            Station::Host(server) => server.take(cx.now).map(|packet| (packet, Ok(Altered::NOT))),
        }
    }

    fn head(&self) -> Option<(Time, Time)> {
        match self {
            Station::Cells { port, .. } => port.head(),
            Station::Managed { port, .. } => port.head(),
            Station::Host(server) => server.head(),
        }
    }

    fn in_flight(&self) -> usize {
        match self {
            Station::Cells { port, .. } => port.in_flight(),
            Station::Managed { port, .. } => port.in_flight(),
            Station::Host(server) => server.in_flight(),
        }
    }
}

/// A link, with the state that the network keeps for it.
#[derive(Debug)]
struct Node<P> {
    link: Link<P>,
    /// Passages to the next link in the chain.
    log: Log,
    /// The next link in the chain for all packets, [`ENDS`], or [`DIFFERS`].
    onward: u32,
    /// The next hop of packets that leave their chain here, if it is the same for all.
    behind: Option<Hop>,
    /// Its slot in the agenda.
    slot: u32,
}

/// A packet that has passed a component, and its next hop or the reason of its loss.
pub type Taken<P> = (P, Result<Hop, DropReason>);

/// When the event by which a packet reaches a link was scheduled: in a chain as in the literal network, otherwise as
/// the driver says.
fn scheduled(came: Option<Due>, begun: impl Fn() -> Time) -> Time {
    came.map_or_else(begun, |came| came.age().begun(came.at()))
}

/// Links, stations, and the paths over them. In the order of events, links are numbered first, then stations. A
/// driver's own components follow from [`Network::components`] on.
#[derive(Debug)]
pub struct Network<P> {
    links: Vec<Node<P>>,
    stations: Vec<Station<P>>,
    routes: Routes,
    layers: LayerEnds,
    /// The virtual channel of the packets to each end.
    channels: Vec<u32>,
    /// The slot in the agenda, by station.
    slots: Vec<u32>,
    agenda: Tournament<4>,
    /// What happened to the packet taken last.
    altered: Altered,
}

impl<P: Bound> Network<P> {
    /// A network whose paths are all laid, including those of its layers' frames. In cells, packets to an end use that
    /// end's virtual channel. With `chains`, there must be no observer.
    pub fn new(
        links: Vec<Link<P>>,
        stations: Vec<Station<P>>,
        (mut routes, layers): (Routes, LayerEnds),
        channels: Vec<u32>,
        chains: bool,
    ) -> Self {
        if chains {
            let passes = |link: &Link<P>| !link.may_take_no_time() && link.keeps_packets() && !link.marks();
            routes.chain(|link| passes(&links[link.index()]));
            for (n, _) in links.iter().enumerate().filter(|(_, link)| link.may_send_at_once()) {
                routes.cut(LinkId::from(n));
            }
        }
        // Links inside chains need no slot in the agenda.
        let mut used = 0;
        let mut slot = |component: usize| {
            let slot = used;
            used += u32::from(routes.is_exit(component));
            slot
        };
        let nodes = links.into_iter().enumerate().map(|(n, link)| Node {
            link,
            log: Log::new(),
            onward: routes.onward_of_all(n),
            behind: routes.behind_of_all(n),
            slot: slot(n),
        });
        let links: Vec<_> = nodes.collect();
        let slots = (0..stations.len()).map(|station| slot(links.len() + station)).collect();
        let agenda = Tournament::new(used as usize);
        Network { slots, agenda, links, stations, routes, layers, channels, altered: Altered::NOT }
    }

    /// The ends of its layers.
    #[inline(always)]
    pub fn layers(&self) -> &LayerEnds {
        &self.layers
    }

    /// Number of components.
    pub fn components(&self) -> usize {
        self.links.len() + self.stations.len()
    }

    /// True if a component is a link, false if it is a station.
    #[inline(always)]
    pub fn is_link(&self, component: usize) -> bool {
        component < self.links.len()
    }

    /// The next event, or [`Due::NEVER`].
    #[inline(always)]
    pub fn first(&self) -> Due {
        self.agenda.first()
    }

    /// The next hop after a link for packets to `to`.
    #[inline(always)]
    pub fn behind(&self, link: LinkId, to: EndId) -> Hop {
        self.routes.behind(self.routes.row_of(to), link.index())
    }

    /// Offers a packet to a link at `now`. `begun` returns when the event was scheduled, and is called only for ties.
    ///
    /// # Errors
    /// Returns the packet and the reason if it is lost, here or on the way to the end of its chain.
    // Not inlined: inlining it cost TCP's sender its registers.
    #[inline(never)]
    pub fn offer<W: Watch<P>>(
        &mut self,
        now: Time,
        begun: impl Fn() -> Time,
        watch: &mut W,
        link: LinkId,
        packet: P,
    ) -> Result<(), (P, DropReason)> {
        debug_assert!(!W::WATCHES || !self.routes.has_chains(), "with chains, events are out of order");
        watch.packet(now, link, Passage::Offered, &packet);
        let (mut at, mut time, length) = (link.index(), now, packet.wire_len());
        // The previous link of the chain, and when the transmission there began.
        let mut from: Option<(usize, Time)> = None;
        let begun = &begun;
        loop {
            // Links with only a rate, a delay and perhaps a limit. Nothing else happens to the packet there, and the
            // event by which it arrives is computed only for ties and records.
            let came = move || from.map(|(from, begins)| Due::new(time, begins, from));
            let node = &mut self.links[at];
            let (begins, arrives) = if let Some(passed) = node.link.pass_plainly::<W>(time, length) {
                node.link.note_admitted();
                passed
            } else if let Some(passed) = node.link.pass_queue::<W>(time, length, move || scheduled(came(), begun)) {
                let (begins, arrives, waiting) = passed;
                if node.link.note_offered(Ok(waiting))
                    && let Some(came) = came()
                {
                    node.log.note_record(came, waiting, now);
                }
                (begins, arrives)
            } else {
                return self.offer_any((now, came()), begun, watch, at, packet);
            };
            let next = match node.onward {
                DIFFERS => self.routes.onward_of(packet.to(), at),
                next => next,
            };
            if next == ENDS {
                if node.link.carry(Transit::plain(begins, arrives), packet) {
                    self.agenda.set(node.slot as usize, Due::new(arrives, begins, at));
                }
                return Ok(());
            }
            // The next link usually admits the packet; if not, the record is changed.
            let (length, next) = (node.link.note_arrival(length, false), LinkId(next));
            node.log.note(Passing { arrives, begun: begins, length, next, fate: Fate::Admitted }, now);
            (from, at, time) = (Some((at, begins)), next.index(), arrives);
        }
    }

    /// Like [`Network::offer`], for any link, and from any link of a chain on. The packet arrives there by the event
    /// `came`, or is offered to it now.
    #[inline(never)]
    fn offer_any<W: Watch<P>>(
        &mut self,
        (now, mut came): (Time, Option<Due>),
        begun: impl Fn() -> Time,
        watch: &mut W,
        mut at: usize,
        packet: P,
    ) -> Result<(), (P, DropReason)> {
        let length = packet.wire_len();
        loop {
            let id = LinkId::from(at);
            let Node { link, log, onward, slot, .. } = &mut self.links[at];
            let time = came.map_or(now, Due::at);
            let mut cx = Context { now: time, who: Who(LINK_BASE + id.0), probe: &mut *watch };
            let transit = link.transit(&mut cx, &packet, || scheduled(came, &begun));
            let is_record = link.note_offered(transit.map(|transit| transit.waiting));
            let transit = match (transit, came) {
                (Ok(transit), _) => transit,
                (Err(reason), Some(came)) => {
                    self.links[came.component()].log.amend(Fate::Refused(reason));
                    return Err((packet, reason));
                }
                (Err(reason), None) => {
                    watch.packet(now, id, Passage::Dropped(reason), &packet);
                    return Err((packet, reason));
                }
            };
            if is_record && let Some(came) = came {
                log.note_record(came, transit.waiting, now);
            }
            let next = match *onward {
                _ if W::WATCHES => ENDS,
                DIFFERS => self.routes.onward_of(packet.to(), at),
                next => next,
            };
            let Transit { arrives, begun: begins, lost, .. } = transit;
            if next == ENDS {
                if link.carry(transit, packet) {
                    self.agenda.set(*slot as usize, Due::new(arrives, begins, at));
                }
                return Ok(());
            }
            let (next, fate) = (LinkId(next), if lost { Fate::Lost } else { Fate::Admitted });
            let length = link.note_arrival(length, lost);
            log.note(Passing { arrives, begun: begins, length, next, fate }, now);
            if lost {
                return Err((packet, DropReason::Channel));
            }
            (came, at) = (Some(Due::new(arrives, begins, at)), next.index());
        }
    }

    /// Passes a packet to a station.
    ///
    /// # Errors
    /// Returns the reason if the station drops the packet at once. The packet itself is still in the station:
    /// [`Network::take`] returns it with this reason, and is the only one to return other packets that this one displaces.
    pub fn enter<W: Watch<P>>(
        &mut self,
        now: Time,
        watch: &mut W,
        station: StationId,
        packet: P,
    ) -> Result<(), DropReason> {
        let channel = self.channels[packet.to().index()];
        let at = &mut self.stations[station.index()];
        if let Some(link) = at.link() {
            watch.packet(now, link, Passage::Offered, &packet);
        }
        let verdict = at.offer(&mut Context { now, who: at.who(), probe: watch }, channel, packet);
        self.plan(station);
        verdict
    }

    /// Takes the packet that has passed a link, if it arrived unaltered and all packets leave their chain here. Returns
    /// what [`Network::take`] would return, but is a short cut for the most frequent case. In all other cases, and with
    /// an observer, returns `None` and has no effect.
    #[inline(always)]
    pub fn take_arrived<Pr: Probe>(&mut self, now: Time, component: usize) -> Option<P> {
        let Node { link, behind, slot, .. } = self.links.get_mut(component)?;
        if Pr::WATCHES || *behind != Some(Hop::Arrived) {
            return None;
        }
        let packet = link.take_intact(now)?;
        let due = link.head().map_or(Due::NEVER, |(at, begun)| Due::new(at, begun, component));
        self.agenda.set(*slot as usize, due);
        Some(packet)
    }

    /// Takes a packet that has passed a component. A due link returns one packet; call this for a station until it
    /// returns none.
    #[inline]
    pub fn take<W: Watch<P>>(&mut self, now: Time, watch: &mut W, component: usize) -> Option<Taken<P>> {
        if component >= self.links.len() {
            return self.take_of_station(now, watch, StationId::from(component - self.links.len()));
        }
        let Node { link, behind, slot, .. } = &mut self.links[component];
        let id = LinkId::from(component);
        let arrival = link.take(&mut Context { now, who: Who(LINK_BASE + id.0), probe: &mut *watch });
        let due = link.head().map_or(Due::NEVER, |(at, begun)| Due::new(at, begun, component));
        self.agenda.set(*slot as usize, due);
        let arrival = arrival?;
        if arrival.outcome == Outcome::Lost {
            watch.packet(now, id, Passage::Dropped(DropReason::Channel), &arrival.packet);
            return Some((arrival.packet, Err(DropReason::Channel)));
        }
        if let Outcome::Altered(altered) = arrival.outcome {
            self.altered = altered;
            if altered.marked {
                watch.marked();
            }
        }
        watch.packet(now, id, Passage::Delivered, &arrival.packet);
        let hop = match *behind {
            Some(hop) => hop,
            None => self.behind(id, arrival.packet.to()),
        };
        Some((arrival.packet, Ok(hop)))
    }

    /// What the link did to the packet that was taken last; to be called once per packet. The driver copies a packet
    /// that arrives twice and flips a bit of a corrupted one.
    #[inline(always)]
    pub fn altered(&mut self) -> Altered {
        core::mem::take(&mut self.altered)
    }

    #[inline(never)]
    fn take_of_station<W: Watch<P>>(&mut self, now: Time, watch: &mut W, station: StationId) -> Option<Taken<P>> {
        let at = &mut self.stations[station.index()];
        let Some((packet, fate)) = at.take(&mut Context { now, who: at.who(), probe: &mut *watch }) else {
            self.plan(station);
            return None;
        };
        if let Some(link) = at.link() {
            if fate.is_ok_and(|altered| altered.marked) {
                watch.marked();
            }
            watch.packet(now, link, fate.map_or_else(Passage::Dropped, |_| Passage::Delivered), &packet);
        }
        let row = self.routes.row_of(packet.to());
        let hop = self.routes.behind(row, self.links.len() + station.index());
        self.altered = fate.unwrap_or(Altered::NOT);
        Some((packet, fate.map(|_| hop)))
    }

    fn plan(&mut self, station: StationId) {
        let component = self.links.len() + station.index();
        let head = self.stations[station.index()].head();
        let due = head.map_or(Due::NEVER, |(at, begun)| Due::new(at, begun, component));
        self.agenda.set(self.slots[station.index()] as usize, due);
    }

    /// Changes a link's settings at `now`, which must not be before earlier calls. A managed queue stays as it is, and so
    /// does a link in cells. Only without chains. `seed` and `name` are those with which the link was made.
    pub fn retune(&mut self, now: Time, link: LinkId, config: &LinkConfig, seed: u64, name: &str) {
        debug_assert!(!self.routes.has_chains(), "a chain has already decided what comes");
        if let Some(at) = self.stations.iter().position(|station| station.link() == Some(link)) {
            if let Station::Managed { port, .. } = &mut self.stations[at] {
                port.retune(now, config, seed, name);
                self.plan(StationId::from(at));
            }
            return;
        }
        let node = &mut self.links[link.index()];
        node.link.retune(now, config, seed, name);
        let due = node.link.head().map_or(Due::NEVER, |(at, begun)| Due::new(at, begun, link.index()));
        self.agenda.set(node.slot as usize, due);
    }

    /// The links' counters before the event `end`, which must not be before the latest event.
    pub fn books(&self, end: Due) -> Books {
        let mut links: Vec<LinkCounters> = self.links.iter().map(|node| node.link.counters()).collect();
        let passages = take_off_what_comes(self.links.iter().map(|node| &node.log), &mut links, end);
        let on_links: u64 = links.iter().map(|link| link.offered - link.delivered - link.dropped()).sum();
        let in_stations: usize = self.stations.iter().map(Station::in_flight).sum();
        for station in &self.stations {
            match station {
                Station::Cells { link, port } => links[link.index()] = port.counters(),
                Station::Managed { link, port } => links[link.index()] = port.counters(),
                Station::Host(_) => {}
            }
        }
        Books { links, in_flight: on_links + in_stations as u64, passages }
    }

    /// How long a link's line is busy with its queue. Unknown for a link in cells; for a managed link, its own queue is
    /// not included.
    pub fn backlog(&self, link: LinkId, now: Time) -> Option<Duration> {
        match self.stations.iter().find(|station| station.link() == Some(link)) {
            None => Some(self.links[link.index()].link.backlog(now)),
            Some(Station::Managed { port, .. }) => Some(port.busy(now)),
            Some(_) => None,
        }
    }
}
