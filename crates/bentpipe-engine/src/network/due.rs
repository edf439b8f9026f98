//! The order of events: which component is next, and when.
//!
//! An agenda has one slot per component, not per packet. The order is total: by time, then by scheduling time (start of
//! a transmission, setting of a timer), then by component number. ns-2 and most simulators order simultaneous events
//! this way. No counter is used, however, so the driver's handling of timers has no effect on the order. The agenda is
//! a tournament of groups: a change costs one comparison of a group per round, and ends when no winner changes.

use alloc::vec::Vec;

use crate::units::Time;

/// A due component, ordered by due time, scheduling time and number.
///
/// All three are packed into one number: the due time, the age of the event (older first; all ages beyond 2^40 ticks,
/// 17 s, are equal), and the component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due(u128);

const AGE_BITS: u32 = 40;
const COMPONENT_BITS: u32 = 24;
const OLDEST: u64 = (1 << AGE_BITS) - 1;

impl Due {
    /// An empty slot.
    pub const NEVER: Due = Due(u128::MAX);

    /// A component due at `at` by an event scheduled at `begun`.
    #[inline(always)]
    pub fn new(at: Time, begun: Time, component: usize) -> Self {
        let age = at.saturating_since(begun).as_ticks().min(OLDEST);
        let rest = (OLDEST - age) << COMPONENT_BITS | component as u64;
        Due((at.as_ticks() as u128) << 64 | rest as u128)
    }

    /// Later than everything due by `at`.
    pub fn after(at: Time) -> Due {
        Due((at.as_ticks() as u128) << 64 | u64::MAX as u128)
    }

    /// The due time.
    #[inline(always)]
    pub fn at(self) -> Time {
        Time::from_ticks((self.0 >> 64) as u64)
    }

    /// The age of the event when it is due.
    #[inline(always)]
    pub fn age(self) -> Age {
        Age(self.0 as u64)
    }

    /// The component.
    #[inline(always)]
    pub fn component(self) -> usize {
        self.0 as usize & ((1 << COMPONENT_BITS) - 1)
    }
}

/// The lower half of a [`Due`], with the age of the event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Age(u64);

impl Age {
    /// When an event of this age that is due at `at` was scheduled. The age is limited to its maximum.
    pub fn begun(self, at: Time) -> Time {
        Time::from_ticks(at.as_ticks() - (OLDEST - (self.0 >> COMPONENT_BITS)))
    }
}

/// One slot for each component of a kind, empty or with a due time. `FAN` slots, a power of two, are compared at once
/// without branches: 8 slots take two cache lines.
#[derive(Clone, Debug)]
pub struct Tournament<const FAN: usize = 8> {
    slots: Vec<[Due; FAN]>,
    /// Number of slots.
    components: usize,
    /// The winners of each group of slots, then the winners of these, up to a single group; empty if there is only one
    /// group of slots.
    rounds: Vec<Vec<[Due; FAN]>>,
    winner: Due,
}

impl<const FAN: usize> Tournament<FAN> {
    /// A tournament of empty slots.
    pub fn new(components: usize) -> Self {
        let slots = vec![[Due::NEVER; FAN]; components.div_ceil(FAN).max(1)];
        let mut rounds = Vec::new();
        let mut groups = slots.len();
        while groups > 1 {
            groups = groups.div_ceil(FAN);
            rounds.push(vec![[Due::NEVER; FAN]; groups]);
        }
        Tournament { slots, components, rounds, winner: Due::NEVER }
    }

    /// Adds empty slots up to this number. Each call takes amortized constant time.
    pub fn extend(&mut self, components: usize) {
        if components > self.slots.len() * FAN {
            let mut larger = Tournament::new(components.max(2 * self.components));
            for (slot, due) in self.slots.iter().flatten().enumerate().filter(|(_, due)| **due != Due::NEVER) {
                larger.set(slot, *due);
            }
            *self = larger;
        }
        self.components = self.components.max(components);
    }

    /// When a component is due.
    #[inline(always)]
    pub fn due(&self, component: usize) -> Due {
        self.slots[component / FAN][component % FAN]
    }

    /// Sets a component's due time, replacing the previous one.
    #[inline(always)]
    pub fn set(&mut self, component: usize, due: Due) {
        let group = &mut self.slots[component / FAN];
        if self.rounds.is_empty() {
            group[component % FAN] = due;
            // Few slots compete, and the empty slots after them need not be compared. Of two, the one that has just been
            // written is not read back: the processor would wait for it.
            self.winner = if self.components <= 2 {
                due.min(group[(component % FAN) ^ 1])
            } else {
                group.iter().take(self.components).fold(Due::NEVER, |least, due| least.min(*due))
            };
            return;
        }
        let was = core::mem::replace(&mut group[component % FAN], due);
        let winner = self.rounds[0][component / FAN / FAN][component / FAN % FAN];
        if due <= winner {
            self.change(component / FAN, due);
        } else if was == winner {
            let changed = least(group);
            self.change(component / FAN, changed);
        }
    }

    /// Updates the later rounds after the winner of a group of slots has changed.
    fn change(&mut self, group: usize, changed: Due) {
        let (mut at, mut changed) = (group, changed);
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

    /// The first due component, or [`Due::NEVER`].
    #[inline(always)]
    pub fn first(&self) -> Due {
        self.winner
    }
}

/// The minimum of a group, computed as a tree.
#[inline(always)]
fn least<const FAN: usize>(group: &[Due; FAN]) -> Due {
    let (mut winners, mut left) = (*group, FAN);
    while left > 1 {
        left /= 2;
        for n in 0..left {
            winners[n] = winners[n].min(winners[n + left]);
        }
    }
    winners[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The tournament and a walk over all slots find the same component after any changes.
        #[test]
        fn agrees_with_a_walk_over_all_slots(
            components in 1usize..100, changes in prop::collection::vec((0usize..100, 0u64..12, 0u64..3), 1..200)
        ) {
            // Every other run grows with the components that are used.
            let mut tournament = Tournament::<8>::new(if components % 2 == 0 { components } else { 1 });
            let mut plain = vec![None; components];
            for (component, at, begun) in changes {
                let (component, begun) = (component % components, begun.min(at));
                tournament.extend(component + 1);
                let (due_at, due_begun) = (Time::from_ticks(at), Time::from_ticks(begun));
                plain[component] = (at < 11).then_some((due_at, due_begun, component));
                tournament.set(component, if at < 11 { Due::new(due_at, due_begun, component) } else { Due::NEVER });
                let first = tournament.first();
                let told = (first != Due::NEVER).then(|| (first.at(), first.age().begun(first.at()), first.component()));
                prop_assert_eq!(told, plain.iter().flatten().min().copied());
            }
        }
    }
}
