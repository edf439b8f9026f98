//! The network: links and stations, and the next packet to leave them.

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

/// A station: anything but a plain link.
#[derive(Debug)]
pub enum Station<P> {
    /// The link with this number, in cells.
    Cells {
        /// The link, which carries nothing itself.
        link: LinkId,
        /// Its port.
        port: Box<CellPort<P>>,
    },
    /// A link whose queue decides when a packet leaves it.
    Managed {
        /// The link with this number, which carries nothing itself.
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

    /// A port reports a refused packet when its turn comes.
    fn offer<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>, channel: u32, packet: P) {
        match self {
            Station::Cells { port, .. } => port.offer(cx, channel, packet),
            Station::Managed { port, .. } => port.offer(cx, packet),
            Station::Host(server) => server.offer(cx.now, packet),
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

/// A link with the network's state for it.
#[derive(Debug)]
struct Node<P> {
    link: Link<P>,
    /// Passages to the next link of the chain.
    log: Log,
    /// The next link of the chain for all packets, [`ENDS`], or [`DIFFERS`].
    onward: u32,
    /// The next hop of packets that leave their chain here, if it is the same for all.
    behind: Option<Hop>,
    /// Its slot in the agenda.
    slot: u32,
}

/// A packet that has passed a component, and its next hop or the reason of its loss.
pub type Taken<P> = (P, Result<Hop, DropReason>);

/// Links and stations, and the paths over them. Their numbers in the order of events are: links, then stations; a
/// driver's own components follow from [`Network::components`] on.
#[derive(Debug)]
pub struct Network<P> {
    links: Vec<Node<P>>,
    stations: Vec<Station<P>>,
    routes: Routes,
    layers: LayerEnds,
    /// The virtual channel of the packets to each end.
    channels: Vec<u32>,
    /// By station, its slot in the agenda.
    slots: Vec<u32>,
    agenda: Tournament<4>,
    /// What happened to the packet that was taken last.
    altered: Altered,
}

impl<P: Bound> Network<P> {
    /// A network with all paths laid, those of its layers' frames included. Packets to an end use its virtual channel in cells. With `chains` there must be
    /// no observer.
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

    /// The next hop of packets to `to` after a link.
    #[inline(always)]
    pub fn behind(&self, link: LinkId, to: EndId) -> Hop {
        self.routes.behind(self.routes.row_of(to), link.index())
    }

    /// Offers a packet to a link at `now`, by an event scheduled at `begun`, which is called only for ties.
    ///
    /// # Errors
    /// Returns the packet if it is lost, here or on its way to the end of its chain.
    // Not inlined: where it was, the sender of TCP lost its registers.
    #[inline(never)]
    pub fn offer<W: Watch<P>>(
        &mut self,
        now: Time,
        begun: impl Fn() -> Time,
        watch: &mut W,
        link: LinkId,
        packet: P,
    ) -> Result<(), P> {
        debug_assert!(!W::WATCHES || !self.routes.has_chains(), "with chains, events are out of order");
        watch.packet(now, link, Passage::Offered, &packet);
        let (mut at, length) = (link.index(), packet.wire_len());
        let entry = &mut self.links[at].link;
        let mut altered = Altered::NOT;
        let (mut begins, mut arrives, mut lost) = if let Some((begins, arrives)) = entry.pass_plainly::<W>(now, length)
        {
            entry.note_admitted();
            (begins, arrives, false)
        } else {
            let mut cx = Context { now, who: Who(LINK_BASE + link.0), probe: &mut *watch };
            let transit = entry.transit(&mut cx, &packet, begun);
            entry.note_offered(transit.map(|transit| transit.waiting));
            match transit {
                Ok(Transit { begun, arrives, lost, altered: what, .. }) => {
                    altered = what;
                    (begun, arrives, lost)
                }
                Err(reason) => {
                    watch.packet(now, link, Passage::Dropped(reason), &packet);
                    return Err(packet);
                }
            }
        };
        loop {
            let node = &mut self.links[at];
            let next = match node.onward {
                _ if W::WATCHES => ENDS,
                DIFFERS => self.routes.onward(self.routes.row_of(packet.to()), at),
                next => next,
            };
            if next == ENDS {
                if node.link.carry(Transit { arrives, begun: begins, lost, altered, waiting: 0 }, packet) {
                    self.agenda.set(node.slot as usize, Due::new(arrives, begins, at));
                }
                return Ok(());
            }
            // The next link usually admits it; if not, the record is changed.
            let (from, fate) = (at, if lost { Fate::Lost } else { Fate::Admitted });
            let length_on_line = node.link.note_arrival(length, lost);
            let next = LinkId(next);
            node.log.note(Passing { arrives, begun: begins, length: length_on_line, next, fate }, now);
            if lost {
                return Err(packet);
            }
            at = next.index();
            let came = Due::new(arrives, begins, from);
            let Node { link, log, .. } = &mut self.links[at];
            if let Some((begins_next, arrives_next)) = link.pass_plainly::<W>(arrives, length) {
                link.note_admitted();
                (begins, arrives, altered) = (begins_next, arrives_next, Altered::NOT);
            } else if let Some(passed) = link.pass_queue::<W>(arrives, length, || came.age().begun(arrives)) {
                let (begins_next, arrives_next, waiting) = passed;
                if link.note_offered(Ok(waiting)) {
                    log.note_record(came, waiting, now);
                }
                (begins, arrives, altered) = (begins_next, arrives_next, Altered::NOT);
            } else {
                let Some(transit) = self.pass_on(came, next, &packet, watch, now) else { return Err(packet) };
                (begins, arrives, lost, altered) = (transit.begun, transit.arrives, transit.lost, transit.altered);
            }
        }
    }

    /// A packet comes to a link by the event `came`, which ended its way on the link before in the same chain. `None` if it is
    /// refused.
    #[inline(never)]
    fn pass_on<W: Watch<P>>(
        &mut self,
        came: Due,
        link: LinkId,
        packet: &P,
        probe: &mut W,
        now: Time,
    ) -> Option<Transit> {
        let Node { link: at, log, .. } = &mut self.links[link.index()];
        let mut cx = Context { now: came.at(), who: Who(LINK_BASE + link.0), probe };
        // As old as an event of the literal network would say.
        match at.transit(&mut cx, packet, || came.age().begun(came.at())) {
            Ok(transit) => {
                if at.note_offered(Ok(transit.waiting)) {
                    log.note_record(came, transit.waiting, now);
                }
                Some(transit)
            }
            Err(reason) => {
                at.note_offered(Err(reason));
                self.links[came.component()].log.amend(Fate::Refused(reason));
                None
            }
        }
    }

    /// Passes a packet to a station.
    pub fn enter<W: Watch<P>>(&mut self, now: Time, watch: &mut W, station: StationId, packet: P) {
        let channel = self.channels[packet.to().index()];
        let at = &mut self.stations[station.index()];
        if let Some(link) = at.link() {
            watch.packet(now, link, Passage::Offered, &packet);
        }
        at.offer(&mut Context { now, who: at.who(), probe: watch }, channel, packet);
        self.plan(station);
    }

    /// Takes the packet that has passed a link, if it has arrived as it was sent, as all packets that leave their chain
    /// here: what [`Network::take`] would return, by a short way for the most frequent case. `None` without any effect in
    /// all other cases, and with an observer.
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

    /// Takes a packet that has passed a component. A due link returns one packet; call a station until it returns none.
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
        watch.packet(now, id, Passage::Delivered, &arrival.packet);
        if let Outcome::Altered(altered) = arrival.outcome {
            self.altered = altered;
        }
        let hop = match *behind {
            Some(hop) => hop,
            None => self.behind(id, arrival.packet.to()),
        };
        Some((arrival.packet, Ok(hop)))
    }

    /// What the link did to the packet that was taken last; to be called once. A driver copies a packet that arrives
    /// twice, and flips a bit of a corrupt one.
    #[inline(always)]
    pub fn altered(&mut self) -> Altered {
        std::mem::take(&mut self.altered)
    }

    #[inline(never)]
    fn take_of_station<W: Watch<P>>(&mut self, now: Time, watch: &mut W, station: StationId) -> Option<Taken<P>> {
        let at = &mut self.stations[station.index()];
        let Some((packet, fate)) = at.take(&mut Context { now, who: at.who(), probe: &mut *watch }) else {
            self.plan(station);
            return None;
        };
        if let Some(link) = at.link() {
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

    /// Changes a link's settings at `now`, which must not be before earlier calls; without chains. `seed` and `name` are those
    /// with which the link was made.
    pub fn retune(&mut self, now: Time, link: LinkId, config: &LinkConfig, seed: u64, name: &str) {
        debug_assert!(!self.routes.has_chains(), "a chain has already decided what comes");
        let node = &mut self.links[link.index()];
        node.link.retune(now, config, seed, name);
        let due = node.link.head().map_or(Due::NEVER, |(at, begun)| Due::new(at, begun, link.index()));
        self.agenda.set(node.slot as usize, due);
    }

    /// Counters of the links before the event `end`, which must not be before the latest event.
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

    /// How long a link's line is busy with its queue; unknown for a link in cells, and without the queue for a managed one.
    pub fn backlog(&self, link: LinkId, now: Time) -> Option<Duration> {
        match self.stations.iter().find(|station| station.link() == Some(link)) {
            None => Some(self.links[link.index()].link.backlog(now)),
            Some(Station::Managed { port, .. }) => Some(port.busy(now)),
            Some(_) => None,
        }
    }
}
