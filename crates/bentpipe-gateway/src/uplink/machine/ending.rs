//! How connections end, and how half-open, silent and orphaned ones and those in TIME-WAIT are ended.
//!
//! A half-open connection ends after 30 s, or when its source, or all sources together, have too many ([`HalfOpen`]).
//! RFC 9293 §3.8.3 wants SYNs to be repeated for three minutes: the client does that, and each of its SYNs begins a new
//! attempt.

use bentpipe_engine::tcp::State;
use bentpipe_engine::units::Duration;

use super::*;
use crate::uplink::opening::segment_of;

/// An open connection is given up if its client is silent for this long, or if the server has ended it and it makes no
/// progress for this long.
//= RFC 5382 §5: "the value of the 'established connection idle-timeout' MUST NOT be less than 2 hours 4 minutes."
const SILENCE: Duration = Duration::from_secs((2 * 60 + 4) * 60);
/// How often the limit above is checked.
pub(super) const SWEEP: Duration = Duration::from_secs(60);
/// TIME-WAIT restarts with each FIN, but lasts at most this many times its length.
const MAX_TIME_WAITS: u64 = 4;

impl Uplink {
    /// Records that the driver is done with it.
    pub(super) fn end(&mut self, id: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && !std::mem::replace(&mut entry.is_over, true)
        {
            self.live -= 1;
            self.shares.give_back(entry.host());
        }
    }

    pub(super) fn tell_end(&mut self, id: ConnectionId, what: Uplinked) {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| !entry.is_over) else { return };
        self.told.push_back(what);
        if let Uplinked::Closed(_) = what {
            entry.is_over = true;
            self.unflushed.insert(id, entry.host());
        } else {
            self.end(id);
        }
    }

    /// Reports news to the driver, and checks whether the connection is over.
    pub(super) fn look(&mut self, now: Time, id: ConnectionId) {
        let is_scarce = self.memory > self.config.memory / 2;
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Stage::Open(endpoint) = &mut entry.stage else { return };
        let seen = (endpoint.acknowledged(), endpoint.connection().received(), endpoint.peer_has_closed());
        let has_news = std::mem::replace(&mut entry.seen, seen) != seen;
        if has_news {
            entry.moved = now;
        }
        let outcome = endpoint.outcome();
        let state = endpoint.connection().state();
        if has_news && state == State::Closing {
            // Both ends have closed: only the client's ACK is waited for.
            endpoint.close(&mut Context::silent(now));
        }
        if entry.is_half_open && entry.is_connected && !matches!(state, State::Listen | State::SynReceived) {
            entry.is_half_open = false;
            self.half_open.end(id);
        }
        let is_done = outcome == Some(Ok(())) || state == State::TimeWait;
        if is_done && endpoint.readable() == 0 {
            endpoint.shrink(NO_BUFFER);
            let longest = endpoint.connection().config().time_wait.saturating_mul(MAX_TIME_WAITS);
            self.account(id);
            self.tell_end(id, Uplinked::Closed(id));
            if outcome.is_some() {
                self.forget(id);
            } else {
                self.linger(id, now + longest);
            }
            return;
        }
        // A passive connection whose opening was reset listens again (RFC 9293 §3.10.7.4), which is of no use here.
        if matches!(outcome, Some(Err(_))) || state == State::Listen {
            if !entry.is_over {
                self.stats.reset += 1;
            }
            self.tell_end(id, Uplinked::Reset(id));
            self.forget(id);
            return;
        }
        if is_scarce && endpoint.unacknowledged() == 0 && endpoint.readable() == 0 {
            endpoint.shrink(MIN_BUFFER);
            self.account(id);
        }
        if has_news {
            self.tell_ready(id);
        }
    }

    /// Called when both FINs have arrived and a packet was sent to the client: that packet echoes the client's latest
    /// timestamp.
    pub(super) fn note_timestamp(&mut self, id: ConnectionId, packet: &[u8]) {
        if let Some(entry) = self.entries.get_mut(&id)
            && entry.has_timestamps
            && let Stage::Open(endpoint) = &entry.stage
            && matches!(endpoint.connection().state(), State::Closing | State::TimeWait)
        {
            let echo = segment_of(packet).and_then(|segment| segment.timestamps).map(|timestamps| timestamps.echo);
            entry.last_timestamp = echo.or(entry.last_timestamp);
        }
    }

    /// Records that a connection is in TIME-WAIT, at most until `until`.
    fn linger(&mut self, id: ConnectionId, until: Time) {
        if let Some(entry) = self.entries.get_mut(&id)
            && entry.lingers_until.is_none()
        {
            entry.lingers_until = Some(until);
            self.lingering.insert((until, id));
        }
    }

    /// Ends connections whose TIME-WAIT is over.
    pub(super) fn end_lingering(&mut self, now: Time) {
        while let Some(&(_, id)) = self.lingering.first().filter(|(until, _)| *until <= now) {
            self.forget(id);
        }
    }

    /// True if there is a place for one more connection. Connections in TIME-WAIT take some memory, so there are at
    /// most as many of them as may be open, and the oldest is evicted.
    pub(super) fn has_place(&mut self) -> bool {
        let max = 2 * u64::from(self.config.max_streams);
        while self.entries.len() as u64 >= max {
            let Some(&(_, oldest)) = self.lingering.first() else { return false };
            self.forget(oldest);
        }
        true
    }

    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.end(id);
        let Some(entry) = self.entries.remove(&id) else { return };
        self.ids.remove(&entry.key);
        if entry.is_half_open {
            self.half_open.end(id);
        }
        self.memory -= entry.memory;
        self.shares.set_bytes(entry.host(), entry.memory, 0);
        if let Some(at) = entry.timer {
            self.timers.remove(&(at, id));
        }
        if let Some(until) = entry.lingers_until {
            self.lingering.remove(&(until, id));
        }
        if let Stage::Open(endpoint) = &entry.stage {
            self.stats.add(endpoint);
        }
    }

    /// Ends a connection from which nothing more is expected. A client that has not been answered gets no reset, and
    /// may repeat its SYN.
    pub(super) fn give_up(&mut self, now: Time, id: ConnectionId) {
        if self.entries.get(&id).is_some_and(|entry| !entry.is_over) {
            self.told.push_back(Uplinked::Reset(id));
        }
        self.abort(now, id);
    }

    /// Ends connections that have been half open for too long: the server is silent, or the client after the server has
    /// accepted.
    pub(super) fn end_half_open(&mut self, now: Time) {
        while let Some(id) = self.half_open.expired(now) {
            match self.entries.get(&id) {
                Some(Entry { is_connected: true, .. }) => self.stats.silent += 1,
                _ => self.stats.failed += 1,
            }
            self.give_up(now, id);
        }
    }

    /// Ends everything that has taken too long.
    pub(super) fn sweep(&mut self, now: Time) {
        self.sweep_at = now + SWEEP;
        let has_expired = |entry: &Entry| {
            matches!(entry.stage, Stage::Open(_))
                && (entry.heard + SILENCE <= now || (entry.is_closed && entry.moved + SILENCE <= now))
        };
        let expired = self.entries.iter().filter(|(_, entry)| has_expired(entry)).map(|(&id, _)| id);
        for id in expired.collect::<Vec<_>>() {
            self.stats.silent += 1;
            self.give_up(now, id);
        }
    }
}
