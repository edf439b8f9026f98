//! The timers of an end: keepalives, new keys, and giving up a silent peer.

use bentpipe_engine::Step;
use bentpipe_engine::units::{Duration, Time};

use super::reach::SIGN_OF_LIFE;
use super::{Event, Sealed, Todo, Tunnel, What};
use crate::tunnel::packet::{DATA_HEADER, DATA_OVERHEAD, INIT};

/// How long an end without a configured endpoint calls a peer that it has lost (WireGuard's REKEY-ATTEMPT-TIME). After
/// that, another host may have the peer's address.
pub(super) const CALL_FOR: Duration = Duration::from_secs(90);
/// If a payload is not answered within this time, the peer may have lost the keys, and a handshake follows. The layers
/// above answer within a round trip, and an unnecessary handshake does no harm.
const DOUBT_AFTER: Duration = Duration::from_millis(1500);
/// If an idle peer's keepalive is this late, the peer is asked for a sign of life, and how often until one has come. A
/// keepalive is sent once, so `dead_after` would be over after two or three losses.
const ASK_AFTER: Duration = Duration::from_secs(1);
const ASK_EVERY: Duration = Duration::from_millis(500);

impl Tunnel {
    /// The next request of this end. `wall` is the time of day in nanoseconds, and need not be correct: if it is later
    /// than at the last start, a handshake takes one round trip, otherwise two. `out` must have 1500 bytes.
    pub fn poll(&mut self, now: Time, wall: u64, out: &mut [u8]) -> Step<Todo> {
        // The word under new keys goes before the answer to a handshake that the peer began at the same time: the peer would drop these
        // keys for those of the answer, and the link would be made twice.
        if self.owes_word
            && self.is_up
            && self.reach.allowance() >= DATA_OVERHEAD as u64
            && let Some(sealed) = self.seal(now, What::Frame, 0, out)
        {
            return Step::Do(Todo::Send(sealed));
        }
        if let Some((to, reply)) = self.replies.pop_front() {
            out[..reply.len()].copy_from_slice(&reply);
            return Step::Do(Todo::Send(Sealed { to, len: reply.len() }));
        }
        if let Some(note) = self.notes.next() {
            return Step::Do(Todo::Log(note));
        }
        self.forget_keys(now);
        let dead_at = self.heard_at + self.config.dead_after;
        if self.is_up && dead_at <= now {
            self.give_up(now);
            return Step::Do(Todo::Tell(Event::Down));
        }
        let may_probe = self.is_up && self.current.is_some();
        if let Some((to, id)) = may_probe.then(|| self.reach.probe(now)).flatten() {
            out[DATA_HEADER..][..4].copy_from_slice(&id.to_le_bytes());
            if let Some(sealed) = self.seal_to(now, to, What::Probe, 4, out) {
                return Step::Do(Todo::Send(sealed));
            }
        }
        let keepalive_at = self.sent_at + self.config.keepalive;
        let allowance = self.reach.allowance();
        let may_send = allowance >= DATA_OVERHEAD as u64;
        if self.is_up
            && may_send
            && keepalive_at <= now
            && let Some(sealed) = self.seal(now, What::Frame, 0, out)
        {
            return Step::Do(Todo::Send(sealed));
        }
        let ask_at = self.asks_at();
        if ask_at.is_some_and(|at| at <= now) {
            self.ask_at = now + ASK_EVERY;
            out[DATA_HEADER..][..4].copy_from_slice(&SIGN_OF_LIFE.to_le_bytes());
            if let Some(sealed) = self.seal(now, What::Probe, 4, out) {
                return Step::Do(Todo::Send(sealed));
            }
        }
        let begin_at = self.wants_keys_at(now).map(|at| at.max(self.begin_at)).filter(|_| allowance >= INIT as u64);
        if begin_at.is_some_and(|at| at <= now)
            && let Some(sealed) = self.write_init(now, wall, out)
        {
            return Step::Do(Todo::Send(sealed));
        }
        let alive = self.is_up.then_some(dead_at);
        let keepalive = Some(keepalive_at).filter(|_| self.is_up && may_send && self.current.is_some());
        let probe_at = self.reach.probe_at(now).filter(|_| may_probe);
        let sessions = [&self.current, &self.previous].into_iter().flatten();
        let void_at = sessions.map(super::Session::void_at).min();
        Step::Wait([begin_at, alive, keepalive, probe_at, ask_at, void_at].into_iter().fold(None, Time::earliest))
    }

    /// When a silent peer is to be asked for a sign of life. At an address without proof, other probes are sent.
    fn asks_at(&self) -> Option<Time> {
        let late_at = self.heard_at + self.config.keepalive + ASK_AFTER;
        (self.is_up && self.current.is_some() && self.is_proven()).then_some(late_at.max(self.ask_at))
    }

    /// When this end must make new keys; a time in the past means at once.
    fn wants_keys_at(&self, now: Time) -> Option<Time> {
        self.reach.at()?;
        if !self.is_up {
            return (self.config.endpoint.is_some() || now < self.calls_until).then_some(Time::ZERO);
        }
        let Some(session) = self.current.as_ref().filter(|_| self.bound.is_some()) else { return Some(Time::ZERO) };
        let unanswered = self.asked_at.map(|at| at + DOUBT_AFTER);
        Time::earliest(Some(session.old_at()), unanswered)
    }

    /// Wipes keys that are no longer accepted.
    fn forget_keys(&mut self, now: Time) {
        for session in [&mut self.current, &mut self.previous] {
            session.take_if(|session| session.void_at() <= now);
        }
        self.answered.take_if(|answered| answered.session.void_at() <= now);
    }
}
