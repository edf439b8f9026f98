//! Timers of ends: when they are due, and where they stand in the agenda.

use bentpipe_engine::network::{Due, EndId};
use bentpipe_engine::units::Time;

use super::{EndState, World};

/// How timers are handled in the agenda. Both ways give the same run; tests compare the lazy one with the literal one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timers {
    /// A timer that moves later keeps its slot. When the slot is due, the machine is polled and returns the new time.
    #[default]
    Lazy,
    /// Each change updates the agenda at once.
    Literal,
}

impl EndState {
    /// Sets its timer, and when it was set, so that a lazy agenda orders simultaneous events like a literal one. Returns true if its
    /// place in the agenda may stay.
    #[inline(always)]
    pub(super) fn wait(&mut self, until: Time, now: Time, timers: Timers) -> bool {
        if until != self.until {
            (self.until, self.begun) = (until, now);
        }
        // Lazy: a slot that is due in the future but too early only costs a poll.
        timers == Timers::Lazy && self.on_agenda > now && self.on_agenda < until
    }
}

impl World {
    /// The position of an end's timer in the order of events.
    #[inline(always)]
    pub(super) fn due_of_end(&self, n: EndId) -> Due {
        let EndState { until, begun, .. } = self.ends[n.index()];
        if until == Time::NEVER { Due::NEVER } else { Due::new(until, begun, self.network.components() + n.index()) }
    }

    #[inline(always)]
    pub(super) fn put_on_agenda(&mut self, n: EndId, due: Due) {
        let state = &mut self.ends[n.index()];
        state.on_agenda = due.at();
        self.agenda.set(&mut state.slot, due);
    }

    /// Sets the timer of an end.
    #[inline(always)]
    pub(super) fn wait(&mut self, n: EndId, until: Option<Time>) {
        if !self.ends[n.index()].wait(until.unwrap_or(Time::NEVER), self.now, self.timers) {
            self.plan(n);
        }
    }

    /// Plans the timer of an end that does not keep its slot.
    #[inline(never)]
    pub(super) fn plan(&mut self, n: EndId) {
        let (due, planned) = (self.due_of_end(n), self.agenda.due(self.ends[n.index()].slot));
        let keep = self.timers == Timers::Lazy && planned.at() > self.now && planned <= due;
        if !keep && planned != due {
            self.put_on_agenda(n, due);
        }
    }
}
