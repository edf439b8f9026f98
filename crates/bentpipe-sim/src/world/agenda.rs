//! The timers of ends, and the first actions of ends that do not exist yet.
//!
//! A timer has a slot only while it is set. Of the ends of 50 000 flows, some thousand are active at a time, so the
//! slots stay in the cache. Slots do not affect the order of events.

use std::collections::VecDeque;

use bentpipe_engine::network::{Due, Tournament};

/// The slot of an end's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u32);

impl Slot {
    /// No slot: the timer is not set.
    pub(super) const NONE: Slot = Slot(u32::MAX);
}

/// Timers by slot. In the order of events, ends follow the network's components.
#[derive(Debug)]
pub(super) struct Agenda {
    timers: Tournament,
    /// Maximum number of slots used at once so far.
    used: u32,
    /// Slots without a timer.
    free: Vec<Slot>,
    /// First actions, the next one last.
    starts: Vec<Due>,
    /// The slot of the next first action.
    start: Slot,
    /// The ends of TIME-WAITs of equal length, the next one first.
    rests: VecDeque<Due>,
    /// The slot of the next end of a TIME-WAIT.
    rest: Slot,
}

impl Agenda {
    pub(super) fn new() -> Self {
        Agenda {
            timers: Tournament::new(1),
            used: 0,
            free: Vec::new(),
            starts: Vec::new(),
            start: Slot::NONE,
            rests: VecDeque::new(),
            rest: Slot::NONE,
        }
    }

    /// The next timer or first action, or [`Due::NEVER`].
    #[inline(always)]
    pub(super) fn first(&self) -> Due {
        self.timers.first()
    }

    /// When the timer in a slot is due.
    #[inline(always)]
    pub(super) fn due(&self, slot: Slot) -> Due {
        if slot == Slot::NONE { Due::NEVER } else { self.timers.due(slot.0 as usize) }
    }

    /// Sets a timer, which takes a slot if it has none. [`Due::NEVER`] stops it and frees its slot.
    #[inline(always)]
    pub(super) fn set(&mut self, slot: &mut Slot, due: Due) {
        if due == Due::NEVER {
            return self.stop(slot);
        }
        if *slot == Slot::NONE {
            *slot = self.take_slot();
        }
        self.timers.set(slot.0 as usize, due);
    }

    #[inline(never)]
    fn stop(&mut self, slot: &mut Slot) {
        if *slot != Slot::NONE {
            self.timers.set(slot.0 as usize, Due::NEVER);
            self.free.push(core::mem::replace(slot, Slot::NONE));
        }
    }

    #[inline(never)]
    fn take_slot(&mut self) -> Slot {
        self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.timers.extend(self.used as usize);
            Slot(self.used - 1)
        })
    }

    /// Adds first actions. Together they need one slot.
    pub(super) fn add_starts(&mut self, starts: Vec<Due>) {
        self.starts.extend(starts);
        self.starts.sort_unstable_by(|one, other| other.cmp(one));
        self.plan_start();
    }

    /// The next first actions, at most `count`.
    pub(super) fn next_starts(&self, count: usize) -> impl Iterator<Item = Due> {
        self.starts.iter().rev().take(count).copied()
    }

    fn plan_start(&mut self) {
        let (next, mut slot) = (self.starts.last().copied().unwrap_or(Due::NEVER), self.start);
        self.set(&mut slot, next);
        self.start = slot;
    }

    /// Removes a due event. If it is the next first action, the one after it is scheduled.
    #[inline(always)]
    pub(super) fn take_start(&mut self, due: Due) {
        if self.starts.last() == Some(&due) {
            self.starts.pop();
            self.plan_start();
        }
    }

    /// Adds the end of a wait after the others, which share one slot. Returns false, and adds nothing, unless it is
    /// later than all of them.
    pub(super) fn add_rest(&mut self, due: Due) -> bool {
        if self.rests.back().is_some_and(|last| *last >= due) {
            return false;
        }
        self.rests.push_back(due);
        if self.rests.len() == 1 {
            self.plan_rest();
        }
        true
    }

    /// Removes the end of a wait that was added by [`Agenda::add_rest`].
    pub(super) fn remove_rest(&mut self, due: Due) {
        if let Ok(place) = self.rests.binary_search(&due) {
            self.rests.remove(place);
            self.plan_rest();
        }
    }

    /// Removes a due event. Returns true if it is the end of a wait; the next one is then scheduled.
    #[inline(always)]
    pub(super) fn take_rest(&mut self, due: Due) -> bool {
        let is_rest = self.rests.front() == Some(&due);
        if is_rest {
            self.rests.pop_front();
            self.plan_rest();
        }
        is_rest
    }

    fn plan_rest(&mut self) {
        let (next, mut slot) = (self.rests.front().copied().unwrap_or(Due::NEVER), self.rest);
        self.set(&mut slot, next);
        self.rest = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_engine::units::Time;
    use proptest::prelude::*;

    fn due(at: u64, component: usize) -> Due {
        Due::new(Time::from_ticks(at), Time::ZERO, component)
    }

    proptest! {
        /// Timers and first actions come in the order of a sorted list, and few timers need few slots.
        #[test]
        fn agrees_with_a_sorted_list(
            starts in prop::collection::vec(0u64..1000, 1..50), spans in prop::collection::vec(1u64..100, 50)
        ) {
            let mut agenda = Agenda::new();
            agenda.add_starts(starts.iter().enumerate().map(|(end, &at)| due(at, end)).collect());
            let mut list: Vec<_> = starts.iter().enumerate().map(|(end, &at)| (due(at, end), true)).collect();
            let mut slots = [Slot::NONE; 50];
            let mut max_set = 0;
            while !list.is_empty() {
                list.sort_unstable();
                let (first, is_start) = list.remove(0);
                prop_assert_eq!(agenda.first(), first);
                let end = first.component();
                agenda.take_start(first);
                // An end acts first, sets a timer, and stops it when it is due.
                let next = if is_start { due(first.at().as_ticks() + spans[end], end) } else { Due::NEVER };
                agenda.set(&mut slots[end], next);
                prop_assert_eq!(agenda.due(slots[end]), next);
                if is_start {
                    list.push((next, false));
                }
                max_set = max_set.max(list.iter().filter(|(_, is_start)| !is_start).count());
            }
            prop_assert_eq!(agenda.first(), Due::NEVER);
            // One more for the first actions.
            prop_assert!(agenda.used as usize <= max_set + 1, "{} slots for {} timers", agenda.used, max_set);
        }

        /// Waits of equal length come in the order of a sorted list and share one slot.
        #[test]
        fn waits_share_a_slot(steps in prop::collection::vec((0u8..4, 0u64..100), 1..200)) {
            let mut agenda = Agenda::new();
            let (mut list, mut now) = (Vec::new(), 0);
            for (kind, number) in steps {
                match kind {
                    // An end after the last one, or before it, which is refused.
                    0 | 1 => {
                        let at = if kind == 0 { now + 100 } else { now + number };
                        let next = due(at, number as usize);
                        let is_last = list.last().is_none_or(|last| *last < next);
                        prop_assert_eq!(agenda.add_rest(next), is_last);
                        if is_last {
                            list.push(next);
                        }
                        now += number / 10;
                    }
                    // One of the waits ends early, or one that was not added.
                    2 if !list.is_empty() => agenda.remove_rest(list.remove(number as usize % list.len())),
                    2 => agenda.remove_rest(due(number, 0)),
                    _ => {
                        prop_assert!(!agenda.take_rest(due(0, 100)));
                        if !list.is_empty() {
                            prop_assert!(agenda.take_rest(list.remove(0)));
                        }
                    }
                }
                prop_assert_eq!(agenda.first(), list.first().copied().unwrap_or(Due::NEVER));
                prop_assert!(agenda.used <= 1);
            }
        }
    }
}
