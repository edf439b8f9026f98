//! The agenda: which component is next, and when.
//!
//! It holds components, never packets: one slot each. The order is total: by time, then by the instant at which the
//! event was begun (a transmission, a timer), then by the component's number. That is the order in which ns-2 and
//! most simulators serve events of one instant; but nothing is counted here, so how a driver keeps its timers does not
//! show. A tournament: each inner node holds the winner of its two children, so a change costs one comparison per
//! level.

use bentpipe_engine::units::Time;

/// When a component is due, and since when that has been so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due(u128);

impl Due {
    /// An empty slot.
    pub(crate) const NEVER: Due = Due(u128::MAX);

    #[inline(always)]
    pub(crate) fn new(at: Time, begun: Time) -> Self {
        Due((at.as_nanos() as u128) << 64 | begun.as_nanos() as u128)
    }

    #[inline(always)]
    pub(crate) fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }
}

/// One slot per component, each empty or due at an instant.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    due: Vec<Due>,
    /// Winners; node 1 is the root, the children of n are 2n and 2n + 1, leaves begin at `due.len()`.
    winner: Vec<u32>,
}

impl Agenda {
    /// An agenda of `components` empty slots.
    pub(crate) fn new(components: usize) -> Self {
        let leaves = components.max(2).next_power_of_two();
        let mut winner = vec![0; leaves];
        // With all slots empty the lowest number wins everywhere.
        for node in (1..leaves).rev() {
            winner[node] = if 2 * node < leaves { winner[2 * node] } else { (2 * node - leaves) as u32 };
        }
        Agenda { due: vec![Due::NEVER; leaves], winner }
    }

    /// When `component` is due.
    #[inline(always)]
    pub(crate) fn due(&self, component: usize) -> Due {
        self.due[component]
    }

    /// Makes `component` due then, instead of what was before.
    #[inline(always)]
    pub(crate) fn set(&mut self, component: usize, due: Due) {
        self.due[component] = due;
        let leaves = self.due.len();
        let mut node = (component + leaves) / 2;
        while node >= 1 {
            let (left, right) = if 2 * node < leaves {
                (self.winner[2 * node], self.winner[2 * node + 1])
            } else {
                ((2 * node - leaves) as u32, (2 * node + 1 - leaves) as u32)
            };
            // On a tie the left one, whose number is lower.
            let wins = if self.due[right as usize] < self.due[left as usize] { right } else { left };
            if self.winner[node] == wins && wins != component as u32 {
                // Neither was the component the winner here nor has it become so: nothing changes above.
                return;
            }
            self.winner[node] = wins;
            node /= 2;
        }
    }

    /// The next component and when it is due.
    #[inline(always)]
    pub(crate) fn first(&self) -> (Time, usize) {
        let component = self.winner[1] as usize;
        (self.due[component].at(), component)
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
            slots in 1usize..20, changes in prop::collection::vec((0usize..20, 0u64..12, 0u64..3), 1..200)
        ) {
            let mut agenda = Agenda::new(slots);
            let mut plain = vec![(Time::NEVER, Time::NEVER); slots];
            for (component, at, begun) in changes {
                let component = component % slots;
                let (at, begun) = (Time::from_nanos(at), Time::from_nanos(begun));
                let empty = at == Time::from_nanos(11);
                agenda.set(component, if empty { Due::NEVER } else { Due::new(at, begun) });
                plain[component] = if empty { (Time::NEVER, Time::NEVER) } else { (at, begun) };
                let (n, due) = plain.iter().copied().enumerate().min_by_key(|&(n, due)| (due, n)).expect("not empty");
                prop_assert_eq!(agenda.first(), (due.0, n));
            }
        }
    }
}
