//! How the tunnel begins and ends: new keys, a link that restarts, and a peer that is lost or refused.

use std::net::SocketAddr;

use bentpipe_engine::units::Time;

use super::{Event, Note, Session, Tunnel, draw, timers};
use crate::tunnel::carries::Carries;

impl Tunnel {
    /// Switches to new keys.
    pub(super) fn begin(&mut self, now: Time, session: Session, theirs: u64, anew: Option<u64>) -> Option<Event> {
        self.stats.handshakes += 1;
        (self.begun, self.answered, self.asked_at, self.other) = (None, None, None, None);
        if let Some(old) = self.current.replace(session) {
            self.previous = Some(old);
        }
        if anew.is_some() {
            // Data under the old keys belongs to the old link.
            self.previous = None;
        }
        self.memory = anew.unwrap_or(self.memory);
        self.bound = Some(theirs);
        self.heard_at = now;
        debug_assert!(self.is_up || anew.is_some(), "a link continues only while the peer is up");
        self.is_up = true;
        anew.map(|_| Event::Up)
    }

    /// Makes new keys before anything else is sent. This process may be a copy of a virtual machine, and no number may
    /// be used twice under one key.
    pub(crate) fn renew(&mut self, now: Time) {
        if let Some(session) = self.current.take() {
            self.previous = Some(session);
        }
        (self.begun, self.answered) = (None, None);
        self.begin_at = self.begin_at.min(now);
    }

    /// Restarts the link at both ends, because it cannot continue.
    pub(crate) fn start_over(&mut self, now: Time) {
        if self.bound.take().is_some() {
            self.memory = draw();
            self.begin_at = self.begin_at.min(now);
        }
    }

    /// Refuses a peer that carries something else. Returns the end of the tunnel, if it was up.
    pub(super) fn refuse(&mut self, now: Time, at: SocketAddr, theirs: Carries) -> Option<Event> {
        let ours = self.config.carries.unwrap_or_default();
        self.notes.add(now, Note::OtherShape { at, theirs, ours });
        self.other = Some(theirs);
        let was_up = self.is_up;
        self.answered = None;
        if was_up {
            self.give_up(now);
        }
        was_up.then_some(Event::Down)
    }

    pub(super) fn give_up(&mut self, now: Time) {
        self.is_up = false;
        self.reach.give_up();
        (self.current, self.previous, self.begun, self.answered) = (None, None, None, None);
        self.attempts = 0;
        self.memory = draw();
        self.bound = None;
        self.calls_until = now + timers::CALL_FOR;
    }
}
