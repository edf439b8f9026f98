//! The order of sending: segments with data are sent when the pacer has room, in turns by client and then by
//! connection. All others are sent at once.

use bentpipe_engine::tcp::State;

use super::*;

/// A place in a queue: the connection, and its ticket.
type Place = (ConnectionId, u64);

/// Connections that wait for the pacer, by client.
#[derive(Debug, Default)]
pub(super) struct InTurns {
    /// Clients whose connections wait, in the order of their turns.
    hosts: VecDeque<Host>,
    of: BTreeMap<Host, VecDeque<Place>>,
}

impl InTurns {
    fn push(&mut self, host: Host, place: Place) {
        let queue = self.of.entry(host).or_insert_with(|| {
            self.hosts.push_back(host);
            VecDeque::new()
        });
        queue.push_back(place);
    }

    fn pop(&mut self) -> Option<Place> {
        let host = self.hosts.pop_front()?;
        let queue = self.of.get_mut(&host)?;
        let place = queue.pop_front();
        if queue.is_empty() {
            self.of.remove(&host);
        } else {
            self.hosts.push_back(host);
        }
        place
    }

    fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }
}

/// True if polling it may return a segment that has to wait for its turn.
fn takes_turns(endpoint: &Endpoint) -> bool {
    let state = endpoint.connection().state();
    endpoint.unacknowledged() > 0 && !matches!(state, State::Closed | State::Listen | State::SynReceived)
}

impl Uplink {
    /// Queues a connection for polling.
    pub(super) fn enqueue(&mut self, id: ConnectionId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Stage::Open(endpoint) = &entry.stage else { return };
        let waits = takes_turns(endpoint);
        if entry.ticket.is_some() && waits {
            return;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        entry.ticket = Some(ticket);
        match waits {
            true => self.in_turns.push(entry.host(), (id, ticket)),
            false => self.at_once.push_back((id, ticket)),
        }
    }

    fn set_timer(&mut self, id: ConnectionId, at: Option<Time>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let before = std::mem::replace(&mut entry.timer, at);
        if before != at {
            before.map(|at| self.timers.remove(&(at, id)));
            at.map(|at| self.timers.insert((at, id)));
        }
    }

    /// Uses up a place in a queue. Returns false if the place is stale.
    fn redeem(&mut self, (id, ticket): Place) -> bool {
        let entry = self.entries.get_mut(&id).filter(|entry| entry.ticket == Some(ticket));
        entry.map(|entry| entry.ticket = None).is_some()
    }

    /// Polls a connection once.
    fn poll_one(&mut self, now: Time, id: ConnectionId, out: &mut [u8]) -> Option<usize> {
        let endpoint = self.endpoint(id)?;
        match endpoint.poll(&mut Context::silent(now), out) {
            Ok(Step::Do(length)) => {
                self.note_timestamp(id, &out[..length]);
                self.look(now, id);
                self.enqueue(id);
                Some(length)
            }
            Ok(Step::Wait(until)) => {
                self.set_timer(id, until);
                self.look(now, id);
                None
            }
            // A packet for which there is no room is lost; the timer continues.
            Err(_) => {
                self.enqueue(id);
                None
            }
        }
    }

    fn count(&mut self, now: Time, length: usize) -> Step<Uplinked> {
        self.pacer.sent(now, length);
        self.stats.packets += 1;
        self.stats.bytes += length as u64;
        Step::Do(Uplinked::Send(length))
    }

    /// The next task at `now`. A packet is written to `out`, of at least 64 KiB.
    pub fn poll(&mut self, now: Time, out: &mut [u8]) -> Step<Uplinked> {
        if self.sweep_at <= now {
            self.sweep(now);
        }
        self.end_lingering(now);
        self.end_half_open(now);
        loop {
            if let Some(told) = self.told.pop_front() {
                if let Uplinked::Ready(id) = told
                    && let Some(entry) = self.entries.get_mut(&id)
                {
                    entry.is_told = false;
                }
                return Step::Do(told);
            }
            if let Some(packet) = self.resets.pop_front() {
                out[..packet.len()].copy_from_slice(&packet);
                return self.count(now, packet.len());
            }
            while let Some(&(at, id)) = self.timers.first().filter(|(at, _)| *at <= now) {
                self.timers.remove(&(at, id));
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.timer = None;
                }
                self.enqueue(id);
            }
            if let Some(place) = self.at_once.pop_front() {
                if !self.redeem(place) {
                    continue;
                }
                // Data written in the meantime may mean that the connection has to wait for its turn.
                if self.endpoint(place.0).is_some_and(|endpoint| takes_turns(endpoint)) {
                    self.enqueue(place.0);
                } else if let Some(length) = self.poll_one(now, place.0, out) {
                    return self.count(now, length);
                }
                continue;
            }
            if self.pacer.has_room(now)
                && let Some(place) = self.in_turns.pop()
            {
                if self.redeem(place)
                    && let Some(length) = self.poll_one(now, place.0, out)
                {
                    return self.count(now, length);
                }
                continue;
            }
            let line = (!self.in_turns.is_empty()).then(|| self.pacer.next());
            let sweep = (!self.entries.is_empty()).then_some(self.sweep_at);
            let timer = self.timers.first().map(|&(at, _)| at);
            let half_open = self.half_open.next();
            let linger = self.lingering.first().map(|&(until, _)| until);
            return Step::Wait([line, timer, linger, half_open, sweep].into_iter().flatten().min());
        }
    }
}
