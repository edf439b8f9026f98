//! Received datagrams of several peers take turns by the CPU time that they take, so that one peer's do not hold up the others'.
//!
//! A datagram is worked off as it comes, without a copy, as long as its peer has time left in the driver's turn. What comes beyond that
//! is copied into a queue of its peer. Queues take turns by deficit round robin with time as the cost, for [`QUANTUM`] in each
//! turn of the driver; then the driver looks at the socket again. So a datagram of a peer that takes little time waits at most for a round
//! of the others, each with a quantum and the datagram that exceeds it.
//!
//! A peer that is alone for a while has so much time that its datagrams are not copied. First messages of handshakes and others that
//! belong to no session do not take part: whose they are is not known before they are read, and they are limited otherwise.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bentpipe_engine::units::{Duration, Time};

use super::{Hub, Slot};

/// What a driver measures work with: the hub has no clock.
pub trait Meter {
    /// The time since the last call.
    fn lap(&mut self) -> Duration;

    /// A datagram of this peer was worked off, except for the packets that it brought.
    fn worked_off(&mut self, slot: Slot) {
        let _ = slot;
    }
}

/// Takes no time: nothing waits.
impl Meter for () {
    fn lap(&mut self) -> Duration {
        Duration::ZERO
    }
}

/// CPU time of a peer in a round: some hundred datagrams.
pub(super) const QUANTUM: Duration = Duration::from_micros(200);
/// That of a peer that is alone, in a turn: more than all datagrams take that the socket gives at once.
const ALONE: Duration = Duration::from_millis(5);
/// A peer is alone when no other one was heard for so long.
const ALONE_AFTER: Duration = Duration::from_millis(100);
/// Datagrams that are measured together, for a reading of the clock takes a fiftieth of the time of one.
pub(super) const STRIDE: u32 = 4;
/// If they take as long as this, the others of the turn are measured one by one.
const COSTLY: Duration = Duration::from_micros(50);
/// Memory of all datagrams that wait, bytes. Each peer may have as much as is free (Choudhury and Hahne 1998): alone half, among greedy
/// ones an equal part.
const ROOM: u64 = 8 << 20;
/// Memory of a datagram besides its bytes.
const OVERHEAD: u64 = 64;

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// What waits of a peer's datagrams.
#[derive(Debug, Default)]
pub(super) struct Queue {
    datagrams: VecDeque<(SocketAddr, Box<[u8]>)>,
    /// Memory of them.
    bytes: u64,
    /// CPU time that it may take in this round, ns. Below zero it has taken more than its part.
    left: i64,
    /// The last turn in which it was given time.
    turn: u64,
    /// Datagrams for which there was no room.
    dropped: u64,
    /// CPU time that was charged in all.
    spent: Duration,
}

impl Queue {
    /// True if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    fn charge(&mut self, spent: Duration) {
        self.left = self.left.saturating_sub(nanos(spent));
        self.spent += spent;
    }
}

/// What all queues have in common.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Peers whose datagrams wait, in the order of their turns.
    round: VecDeque<Slot>,
    /// Memory of all that wait.
    bytes: u64,
    /// The instant and the number of the driver's turn.
    now: Option<Time>,
    turn: u64,
    /// CPU time that queues may still take in it, ns.
    left: i64,
    /// Datagrams worked off since the last reading, and the peer whose they all are.
    taken: u32,
    taken_of: Option<Slot>,
    /// Each datagram is measured by itself.
    singly: bool,
    /// There was more than a few datagrams in this turn: the packets that they bring are measured, too.
    measures: bool,
    /// Whose packets are being delivered, if that is measured, and whether they come from its queue.
    serving: Option<(Slot, bool)>,
    /// The peer of the last datagram, and since when no other one was heard.
    last: Option<Slot>,
    alone_since: Time,
}

impl Arrivals {
    fn begin(&mut self, now: Time, meter: &mut impl Meter) {
        if self.now != Some(now) {
            (self.now, self.turn, self.left) = (Some(now), self.turn + 1, nanos(QUANTUM));
            (self.taken, self.singly, self.measures, self.serving) = (0, false, false, None);
            meter.lap();
        }
    }

    /// True if a datagram may be worked off at once; otherwise it is to be kept.
    pub(super) fn admits(&mut self, now: Time, slot: Slot, queue: &mut Queue, meter: &mut impl Meter) -> bool {
        self.begin(now, meter);
        if self.last != Some(slot) {
            (self.last, self.alone_since) = (Some(slot), now);
        }
        if !queue.is_empty() {
            return false;
        }
        let is_alone = now.saturating_since(self.alone_since) >= ALONE_AFTER;
        let quantum = nanos(if is_alone { ALONE } else { QUANTUM });
        let turns = i64::try_from(self.turn - queue.turn).unwrap_or(i64::MAX);
        queue.left = queue.left.saturating_add(turns.saturating_mul(quantum)).min(quantum);
        queue.turn = self.turn;
        queue.left > 0
    }

    /// Charges a datagram that was worked off at once.
    pub(super) fn on_taken(&mut self, slot: Slot, queue: &mut Queue, meter: &mut impl Meter) {
        meter.worked_off(slot);
        self.taken_of = Some(slot).filter(|_| self.taken == 0 || self.taken_of == Some(slot));
        self.taken += 1;
        if self.singly || self.taken == STRIDE {
            let spent = meter.lap();
            // If they are of several peers, it is not known whose took so long. The next ones show it.
            if spent < COSTLY || self.taken_of.is_some() {
                queue.charge(spent);
            }
            self.singly |= spent >= COSTLY;
            (self.taken, self.measures) = (0, true);
        }
    }

    /// Keeps a datagram until it is its peer's turn, if there is room.
    pub(super) fn keep(&mut self, slot: Slot, queue: &mut Queue, from: SocketAddr, datagram: &[u8]) {
        let bytes = datagram.len() as u64 + OVERHEAD;
        if self.bytes + queue.bytes + bytes > ROOM {
            queue.dropped += 1;
            return;
        }
        if queue.is_empty() {
            self.round.push_back(slot);
        }
        self.bytes += bytes;
        queue.bytes += bytes;
        queue.datagrams.push_back((from, datagram.into()));
        self.measures = true;
    }

    /// Memory of all datagrams that wait, bytes.
    #[cfg(test)]
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.bytes
    }

    /// A peer is removed.
    pub(super) fn forget(&mut self, slot: Slot, queue: &Queue) {
        self.bytes -= queue.bytes;
        self.round.retain(|other| *other != slot);
    }

    /// Packets of this peer are delivered from now on.
    pub(super) fn deliver(&mut self, slot: Slot, meter: &mut impl Meter) {
        if self.measures && self.serving.is_none_or(|(other, _)| other != slot) {
            if self.serving.is_none() {
                meter.lap();
            }
            self.serving = Some((slot, false));
        }
    }

    /// All packets of this peer were delivered.
    pub(super) fn delivered(&mut self, queue: Option<&mut Queue>, meter: &mut impl Meter) {
        if let Some((_, is_queued)) = self.serving.take() {
            let spent = meter.lap();
            if is_queued {
                self.left = self.left.saturating_sub(nanos(spent));
            }
            if let Some(queue) = queue {
                queue.charge(spent);
            }
        }
    }
}

impl Hub {
    /// True if datagrams wait for their peer's turn: the driver should look at the socket again and poll before it sleeps.
    pub fn has_waiting(&self) -> bool {
        !self.arrivals.round.is_empty()
    }

    /// Datagrams of a terminal that were dropped because its earlier ones took too long.
    pub(crate) fn dropped(&self, slot: Slot) -> u64 {
        self.terminals.get(&slot).map_or(0, |terminal| terminal.arrived.dropped())
    }

    /// CPU time that a terminal's datagrams have taken, as far as it was measured; `None` for a single terminal, which is not measured.
    pub(crate) fn spent(&self, slot: Slot) -> Option<Duration> {
        let terminal = self.terminals.get(&slot).filter(|_| self.terminals.len() > 1)?;
        Some(terminal.arrived.spent)
    }

    /// Works off the next datagram that waits. False if there is none, or no time left in this turn.
    pub(super) fn work_off(&mut self, now: Time, meter: &mut impl Meter) -> bool {
        if self.arrivals.round.is_empty() {
            return false;
        }
        self.arrivals.begin(now, meter);
        if self.arrivals.left <= 0 {
            return false;
        }
        while let Some(&slot) = self.arrivals.round.front() {
            let terminal = self.terminals.get_mut(&slot).expect("those that are removed leave the round");
            let queue = &mut terminal.arrived;
            if queue.left <= 0 {
                queue.left += nanos(QUANTUM);
                self.arrivals.round.rotate_left(1);
                continue;
            }
            let Some((from, mut datagram)) = queue.datagrams.pop_front() else { break };
            let bytes = datagram.len() as u64 + OVERHEAD;
            queue.bytes -= bytes;
            self.arrivals.bytes -= bytes;
            if queue.is_empty() {
                queue.turn = self.arrivals.turn;
                queue.datagrams.shrink_to(0);
                self.arrivals.round.pop_front();
            }
            meter.lap();
            self.arrivals.serving = Some((slot, true));
            terminal.carrier.receive(now, from, &mut datagram);
            meter.worked_off(slot);
            self.heard.insert(slot);
            self.served.insert(slot);
            self.touch(slot);
            return true;
        }
        false
    }
}
