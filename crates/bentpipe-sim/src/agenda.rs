//! The agenda: which component is next, and when.
//!
//! It holds components, never packets: one slot each. The order is total: by time, then by the component's number,
//! so it depends neither on how often a timer was re-armed nor on when. A tournament: each inner node holds the
//! winner of its two children, so a change costs one comparison per level and no branch that is hard to predict.

use bentpipe_engine::units::Time;

/// One slot per component, each empty or due at an instant.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// When each component is due; `Time::NEVER` is an empty slot.
    due: Vec<Time>,
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
        Agenda { due: vec![Time::NEVER; leaves], winner }
    }

    /// When `component` is due.
    #[inline(always)]
    pub(crate) fn due(&self, component: usize) -> Time {
        self.due[component]
    }

    /// Makes `component` due at `time`, instead of what was before.
    #[inline(always)]
    pub(crate) fn set(&mut self, component: usize, time: Time) {
        self.due[component] = time;
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
        (self.due[component], component)
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
            slots in 1usize..20, changes in prop::collection::vec((0usize..20, 0u64..12), 1..200)
        ) {
            let mut agenda = Agenda::new(slots);
            let mut plain = vec![Time::NEVER; slots];
            for (component, time) in changes {
                let component = component % slots;
                let time = if time == 11 { Time::NEVER } else { Time::from_nanos(time) };
                agenda.set(component, time);
                plain[component] = time;
                let (n, due) = plain.iter().copied().enumerate().min_by_key(|&(n, t)| (t, n)).expect("not empty");
                prop_assert_eq!(agenda.first(), (due, n));
            }
        }
    }
}
