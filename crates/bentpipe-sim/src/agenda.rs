//! The agenda: which component is next, and when.
//!
//! It holds components, never packets: one slot each. The order is total: by time, then by the instant at which the
//! event was begun (a transmission, a timer), then by the component's number. That is the order in which ns-2 and
//! most simulators serve events of one instant; but nothing is counted here, so how a driver keeps its timers does not
//! show. A tournament of groups: a change costs one look at its group per round, and ends where no winner changes.

use bentpipe_engine::units::Time;

/// When a component is due, since when that has been so, and which one it is, in the order in which they are served.
///
/// One number: the instant, how long ago the event was begun (the longer the earlier; beyond 2^40 ticks, 17 s, all are
/// alike), the component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due(u128);

const AGE_BITS: u32 = 40;
const COMPONENT_BITS: u32 = 24;
const OLDEST: u64 = (1 << AGE_BITS) - 1;

impl Due {
    /// An empty slot.
    pub(crate) const NEVER: Due = Due(u128::MAX);

    #[inline(always)]
    pub(crate) fn new(at: Time, begun: Time, component: usize) -> Self {
        let age = at.saturating_since(begun).as_ticks().min(OLDEST);
        let rest = (OLDEST - age) << COMPONENT_BITS | component as u64;
        Due((at.as_ticks() as u128) << 64 | rest as u128)
    }

    #[inline(always)]
    pub(crate) fn at(self) -> Time {
        Time::from_ticks((self.0 >> 64) as u64)
    }

    /// How long before it is due the event was begun.
    #[inline(always)]
    pub(crate) fn age(self) -> Age {
        Age(self.0 as u64)
    }

    #[inline(always)]
    fn component(self) -> usize {
        self.0 as usize & ((1 << COMPONENT_BITS) - 1)
    }
}

/// The lower half of a [`Due`], which holds how long ago an event was begun.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Age(u64);

impl Age {
    /// When an event of this age that is due at `at` was begun; as far back as is kept.
    pub(crate) fn begun(self, at: Time) -> Time {
        Time::from_ticks(at.as_ticks() - (OLDEST - (self.0 >> COMPONENT_BITS)))
    }
}

/// Slots that are compared at once: two cache lines, and no branch among them.
const FAN: usize = 8;

/// One slot per component of a kind, each empty or due at an instant.
#[derive(Clone, Debug)]
struct Tournament {
    /// The slots, then the winners of each group of slots, then theirs, up to one group.
    rounds: Vec<Vec<[Due; FAN]>>,
    winner: Due,
}

impl Tournament {
    fn new(components: usize) -> Self {
        let mut rounds = Vec::new();
        let mut groups = components.max(1);
        while rounds.is_empty() || groups > 1 {
            groups = groups.div_ceil(FAN);
            rounds.push(vec![[Due::NEVER; FAN]; groups]);
        }
        Tournament { rounds, winner: Due::NEVER }
    }

    #[inline(always)]
    fn due(&self, component: usize) -> Due {
        self.rounds[0][component / FAN][component % FAN]
    }

    #[inline(always)]
    fn set(&mut self, component: usize, due: Due) {
        let (mut at, mut changed) = (component, due);
        for round in 0..self.rounds.len() {
            let winner = match self.rounds.get(round + 1) {
                Some(above) => above[at / FAN / FAN][at / FAN % FAN],
                None => self.winner,
            };
            let group = &mut self.rounds[round][at / FAN];
            let was = core::mem::replace(&mut group[at % FAN], changed);
            if changed > winner {
                if was != winner {
                    return;
                }
                changed = least(group);
            }
            at /= FAN;
        }
        self.winner = changed;
    }
}

/// The least of a group, as a tree: three comparisons deep.
#[inline(always)]
fn least(group: &[Due; FAN]) -> Due {
    let [a, b, c, d, e, f, g, h] = *group;
    a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
}

/// The agenda of a run: links and ends, each in a tournament of their own, since links change with every packet and
/// the timers of ends hardly ever.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// How many links there are: the number of the first end.
    first_end: usize,
    links: Tournament,
    ends: Tournament,
}

/// What is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The head of this link arrives.
    Link(usize),
    /// This end acts by itself.
    End(usize),
}

impl Agenda {
    /// An agenda of empty slots.
    pub(crate) fn new(links: usize, ends: usize) -> Self {
        Agenda { first_end: links, links: Tournament::new(links), ends: Tournament::new(ends) }
    }

    /// Makes a link due then, instead of what was before.
    #[inline(always)]
    pub(crate) fn set_link(&mut self, link: usize, at: Time, begun: Time) {
        self.links.set(link, Due::new(at, begun, link));
    }

    /// Empties the slot of a link.
    #[inline(always)]
    pub(crate) fn clear_link(&mut self, link: usize) {
        self.links.set(link, Due::NEVER);
    }

    /// The order number of an end that acts at `at`, begun at `begun`.
    #[inline(always)]
    pub(crate) fn due_of_end(&self, end: usize, at: Time, begun: Time) -> Due {
        Due::new(at, begun, self.first_end + end)
    }

    /// Makes an end due then, instead of what was before.
    #[inline(always)]
    pub(crate) fn set_end(&mut self, end: usize, due: Due) {
        self.ends.set(end, due);
    }

    /// When an end is due.
    #[inline(always)]
    pub(crate) fn end_due(&self, end: usize) -> Due {
        self.ends.due(end)
    }

    /// What is next and when.
    #[inline(always)]
    pub(crate) fn first(&self) -> (Due, Next) {
        let (link, end) = (self.links.winner, self.ends.winner);
        if end < link {
            (end, Next::End(end.component().wrapping_sub(self.first_end)))
        } else {
            (link, Next::Link(link.component()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The tournament and a walk over all slots name the same component after any changes.
        #[test]
        fn agrees_with_a_walk_over_all_slots(
            links in 1usize..20, ends in 1usize..80,
            changes in prop::collection::vec((0usize..100, 0u64..12, 0u64..3), 1..200)
        ) {
            let mut agenda = Agenda::new(links, ends);
            let mut plain = vec![(u64::MAX, 0); links + ends];
            for (component, at, begun) in changes {
                let component = component % (links + ends);
                let (empty, begun) = (at == 11, begun.min(at));
                plain[component] = if empty { (u64::MAX, 0) } else { (at, begun) };
                let (at, begun) = (Time::from_ticks(at), Time::from_ticks(begun));
                match (component.checked_sub(links), empty) {
                    (None, true) => agenda.clear_link(component),
                    (None, false) => agenda.set_link(component, at, begun),
                    (Some(end), true) => agenda.set_end(end, Due::NEVER),
                    (Some(end), false) => agenda.set_end(end, agenda.due_of_end(end, at, begun)),
                }
                let (n, due) = plain.iter().copied().enumerate().min_by_key(|&(n, due)| (due, n)).expect("not empty");
                if due.0 == u64::MAX {
                    prop_assert_eq!(agenda.first().0.at(), Time::NEVER);
                } else {
                    let next = if n < links { Next::Link(n) } else { Next::End(n - links) };
                    let (first, what) = agenda.first();
                    prop_assert_eq!((first.at(), first.age().begun(first.at()), what), (Time::from_ticks(due.0), Time::from_ticks(due.1), next));
                }
            }
        }
    }
}
