//! The next hop of packets by destination. Equal paths share a row, so a hundred thousand ends behind the same links
//! cost one row.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{EndId, Hop, LinkId};

/// Entry in the table of chains: the packet leaves its chain here.
pub(super) const ENDS: u32 = u32::MAX;
/// Not a link: the next hop depends on the destination.
pub(super) const DIFFERS: u32 = u32::MAX - 1;

/// The paths over links and stations.
#[derive(Clone, Debug)]
pub struct Routes {
    links: usize,
    components: usize,
    /// For each end, the index of its row in the tables.
    rows: Vec<u32>,
    /// For each row and component, the next hop after the component.
    hops: Vec<Hop>,
    /// For each row and component, the next link in the same chain, or [`ENDS`].
    onward: Vec<u32>,
    /// For each row and component, true if packets pass the component.
    passes: Vec<bool>,
    known: BTreeMap<Vec<Hop>, u32>,
    /// For each link, true if packets enter it from anything other than a link.
    is_entered: Vec<bool>,
}

impl Routes {
    /// Routes without paths: packets to all `ends` count as arrived everywhere.
    pub fn new(links: usize, stations: usize, ends: usize) -> Self {
        let components = links + stations;
        let mut routes = Routes {
            links,
            components,
            rows: Vec::new(),
            hops: Vec::new(),
            onward: Vec::new(),
            passes: Vec::new(),
            known: BTreeMap::new(),
            is_entered: vec![false; links],
        };
        let row = routes.row(vec![Hop::Arrived; components]);
        routes.rows = vec![row; ends];
        routes
    }

    /// The index of a row in the tables.
    fn row(&mut self, row: Vec<Hop>) -> u32 {
        if let Some(&place) = self.known.get(&row) {
            return place;
        }
        let place = self.hops.len() as u32;
        self.hops.extend(&row);
        self.onward.resize(self.hops.len(), ENDS);
        self.passes.resize(self.hops.len(), false);
        self.known.insert(row, place);
        place
    }

    /// Lays the path of all packets to `to`, replacing any previous one. Returns its first hop.
    pub fn lead(&mut self, to: EndId, way: &[Hop]) -> Hop {
        let mut row = vec![Hop::Arrived; self.components];
        let mut from_link = false;
        for (n, hop) in way.iter().enumerate() {
            let behind = way.get(n + 1).copied().unwrap_or(Hop::Arrived);
            match *hop {
                // After a layer, packets continue from the link that it sends on.
                Hop::Layer { link, .. } => row[link.index()] = behind,
                Hop::Link(link) => {
                    self.is_entered[link.index()] |= !from_link;
                    row[link.index()] = behind;
                }
                Hop::Station(station) => row[self.links + station.index()] = behind,
                Hop::Arrived => {}
            }
            from_link = matches!(hop, Hop::Link(_));
        }
        let place = self.row(row);
        for hop in way {
            match *hop {
                Hop::Link(link) => self.passes[place as usize + link.index()] = true,
                Hop::Station(station) => self.passes[place as usize + self.links + station.index()] = true,
                Hop::Layer { .. } | Hop::Arrived => {}
            }
        }
        self.rows[to.index()] = place;
        way.first().copied().unwrap_or(Hop::Arrived)
    }

    /// Gives packets to `to` the same path as packets to `other`.
    pub fn lead_like(&mut self, to: EndId, other: EndId) {
        self.rows[to.index()] = self.rows[other.index()];
    }

    /// Finds the chains. If only one other link feeds a link, packets on both are decided together, provided that
    /// `may_pass` allows this for the feeding link.
    pub(super) fn chain(&mut self, may_pass: impl Fn(LinkId) -> bool) {
        // For each link, the one that feeds it; `Err` if there are several.
        let mut feeders: Vec<Result<Option<usize>, ()>> = vec![Ok(None); self.links];
        for (place, hop) in self.hops.iter().enumerate() {
            let (Hop::Link(to), from) = (*hop, place % self.components) else { continue };
            let feeder = &mut feeders[to.index()];
            *feeder = match *feeder {
                Ok(None) => Ok(Some(from)),
                Ok(Some(other)) if other == from => Ok(Some(from)),
                _ => Err(()),
            };
        }
        for (place, hop) in self.hops.iter().enumerate() {
            let (Hop::Link(to), from) = (*hop, place % self.components) else { continue };
            let alone = feeders[to.index()] == Ok(Some(from)) && !self.is_entered[to.index()];
            self.onward[place] = if alone && from < self.links && may_pass(LinkId::from(from)) { to.0 } else { ENDS };
        }
    }

    /// Makes a link the end of its chain for all packets if it is the end for some. Two packets may leave such a link
    /// by events that only their order on the link distinguishes, so both must be events.
    pub(super) fn cut(&mut self, link: LinkId) {
        if self.is_exit(link.index()) {
            for place in (link.index()..self.onward.len()).step_by(self.components) {
                self.onward[place] = ENDS;
            }
        }
    }

    /// The row of packets to an end.
    #[inline(always)]
    pub(super) fn row_of(&self, to: EndId) -> usize {
        self.rows[to.index()] as usize
    }

    /// The next hop after a component: a link, or a station, numbered after the links.
    #[inline(always)]
    pub(super) fn behind(&self, row: usize, component: usize) -> Hop {
        self.hops[row + component]
    }

    /// The next link in the same chain for packets to `to`, or [`ENDS`].
    // Not inlined: in the common case, where all packets go on the same way, its values would occupy registers.
    #[inline(never)]
    pub(super) fn onward_of(&self, to: EndId, link: usize) -> u32 {
        self.onward[self.row_of(to) + link]
    }

    /// The next link in the same chain for all packets that pass the link; [`DIFFERS`] if it depends on the packet.
    pub(super) fn onward_of_all(&self, link: usize) -> u32 {
        let mut all = self.rows_that_pass(link).map(|place| self.onward[place]);
        let first = all.next().unwrap_or(ENDS);
        if all.all(|next| next == first) { first } else { DIFFERS }
    }

    /// The next hop of packets that leave their chain after a link, if it is the same for all.
    pub(super) fn behind_of_all(&self, link: usize) -> Option<Hop> {
        let mut all =
            self.rows_that_pass(link).filter(|&place| self.onward[place] == ENDS).map(|place| self.hops[place]);
        let first = all.next()?;
        all.all(|hop| hop == first).then_some(first)
    }

    /// The table indices of a component in the rows over it.
    fn rows_that_pass(&self, component: usize) -> impl Iterator<Item = usize> + '_ {
        (component..self.hops.len()).step_by(self.components).filter(|&place| self.passes[place])
    }

    /// True if any links form a chain.
    pub(super) fn has_chains(&self) -> bool {
        self.onward.iter().any(|next| *next != ENDS)
    }

    /// True if some packets leave their chain after a component.
    pub(super) fn is_exit(&self, component: usize) -> bool {
        self.rows_that_pass(component).any(|place| self.onward[place] == ENDS)
    }
}
