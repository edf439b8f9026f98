//! Where packets go next, by what they are bound for. Ways that are alike share a row, so that a hundred thousand ends
//! behind the same links cost one.

use std::collections::BTreeMap;

use super::{EndId, Hop, LinkId};

/// In the table of chains: the packet leaves its chain here.
pub(super) const ENDS: u32 = u32::MAX;
/// No link: where packets go on depends on what they are bound for.
pub(super) const DIFFERS: u32 = u32::MAX - 1;

/// The ways of packets over links and stations.
#[derive(Clone, Debug)]
pub struct Routes {
    links: usize,
    components: usize,
    /// By end, the place of its row in the tables.
    rows: Vec<u32>,
    /// By row and component: where packets go behind it.
    hops: Vec<Hop>,
    /// By row and component: the link behind it in the same chain, or [`ENDS`].
    onward: Vec<u32>,
    /// By row and component: packets pass it.
    passes: Vec<bool>,
    known: BTreeMap<Vec<Hop>, u32>,
    /// By link: packets come onto it otherwise than from another link.
    is_entered: Vec<bool>,
}

impl Routes {
    /// No ways yet: from everywhere to all `ends`, packets have arrived.
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

    /// The place in the tables of a row.
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

    /// Lays the way of all packets bound for `to`, instead of the one before; answers where they enter it.
    pub fn lead(&mut self, to: EndId, way: &[Hop]) -> Hop {
        let mut row = vec![Hop::Arrived; self.components];
        let mut from_link = false;
        for (n, hop) in way.iter().enumerate() {
            let behind = way.get(n + 1).copied().unwrap_or(Hop::Arrived);
            match *hop {
                // Behind a layer packets go on from the link that it sends on.
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

    /// Finds the chains: a link that only one other feeds is decided together with it, if `may_pass` allows that of the
    /// feeding one.
    pub(super) fn chain(&mut self, may_pass: impl Fn(LinkId) -> bool) {
        // By link: the one that feeds it; `Err` where there are several.
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

    /// Makes a link the end of its chain for all packets, if it is that for some. Two packets may leave such a link by events
    /// that nothing but their order on it tells apart, so both must be events.
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

    /// Where packets go behind a component: a link, or a station, which stand behind the links.
    #[inline(always)]
    pub(super) fn behind(&self, row: usize, component: usize) -> Hop {
        self.hops[row + component]
    }

    /// The link behind a link in the same chain, or [`ENDS`].
    #[inline(always)]
    pub(super) fn onward(&self, row: usize, link: usize) -> u32 {
        self.onward[row + link]
    }

    /// The same for all packets that pass the link; [`DIFFERS`] if it is not.
    pub(super) fn onward_of_all(&self, link: usize) -> u32 {
        let mut all = self.rows_that_pass(link).map(|place| self.onward[place]);
        let first = all.next().unwrap_or(ENDS);
        if all.all(|next| next == first) { first } else { DIFFERS }
    }

    /// Where all packets go that leave their chain behind a link, if that is the same for all.
    pub(super) fn behind_of_all(&self, link: usize) -> Option<Hop> {
        let mut all =
            self.rows_that_pass(link).filter(|&place| self.onward[place] == ENDS).map(|place| self.hops[place]);
        let first = all.next()?;
        all.all(|hop| hop == first).then_some(first)
    }

    /// The places of a component in the rows that lead over it.
    fn rows_that_pass(&self, component: usize) -> impl Iterator<Item = usize> + '_ {
        (component..self.hops.len()).step_by(self.components).filter(|&place| self.passes[place])
    }

    /// Whether any links form a chain.
    pub(super) fn has_chains(&self) -> bool {
        self.onward.iter().any(|next| *next != ENDS)
    }

    /// Whether some packets leave their chain behind a component.
    pub(super) fn is_exit(&self, component: usize) -> bool {
        self.rows_that_pass(component).any(|place| self.onward[place] == ENDS)
    }
}
