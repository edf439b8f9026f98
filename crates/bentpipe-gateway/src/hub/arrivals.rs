//! Received datagrams of several peers take turns by the CPU time that they cost, so that those of one peer do not
//! delay the others'.
//!
//! A datagram is processed as it arrives, without a copy, as long as its peer has time left in the driver's turn.
//! Further datagrams are copied into a queue of their peer. Queues take turns by deficit round robin with time as the
//! cost, for [`QUANTUM`] in each turn of the driver; the driver then looks at the socket again. So a datagram of a peer
//! that costs little time waits at most for one round of the others, in which each takes a quantum plus the datagram
//! that exceeds it.
//!
//! A peer that has been alone for a while has so much time that its datagrams are not copied. First messages of
//! handshakes and other datagrams outside sessions do not take part: it is not known whose they are until they are
//! read, and they are limited in other ways.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bentpipe_engine::units::{Duration, Time};

use super::{Hub, Slot};

/// Measures the driver's work, because the hub has no clock.
pub trait Meter {
    /// The time since the last call.
    fn lap(&mut self) -> Duration;

    /// Called when a datagram of this peer has been processed, except for the packets that it brought.
    fn worked_off(&mut self, slot: Slot) {
        let _ = slot;
    }
}

/// Reports no time, so that no datagram ever waits.
impl Meter for () {
    fn lap(&mut self) -> Duration {
        Duration::ZERO
    }
}

/// CPU time of a peer per round: enough for some hundred datagrams.
pub(super) const QUANTUM: Duration = Duration::from_micros(200);
/// CPU time per turn of a peer that is alone: more than all datagrams take that the socket delivers at once.
const ALONE: Duration = Duration::from_millis(5);
/// A peer is alone if no other peer was heard from for this long.
const ALONE_AFTER: Duration = Duration::from_millis(100);
/// Number of datagrams that are measured together, because reading the clock takes a fiftieth of the time of one.
pub(super) const STRIDE: u32 = 4;
/// If a group takes this long, the other datagrams of the turn are measured one by one.
const COSTLY: Duration = Duration::from_micros(50);
/// Maximum that is charged at once: more than a group of datagrams takes. If the clock says more, the process was stopped meanwhile.
const MAX_CHARGE: Duration = Duration::from_millis(100);
/// Memory in bytes of all waiting datagrams. Each peer may use as much as is free (Choudhury and Hahne 1998): a single
/// peer gets half, and several greedy peers get equal parts.
const ROOM: u64 = 8 << 20;
/// Memory of a datagram besides its bytes.
const OVERHEAD: u64 = 64;

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// The waiting datagrams of a peer.
#[derive(Debug, Default)]
pub(super) struct Queue {
    datagrams: VecDeque<(SocketAddr, Box<[u8]>)>,
    /// Memory of these datagrams.
    bytes: u64,
    /// CPU time that the peer may still use in this round, ns. If negative, it has used more than its share.
    left: i64,
    /// The last turn in which the peer was given time.
    turn: u64,
    /// Number of datagrams for which there was no room.
    dropped: u64,
    /// CPU time that was charged in all.
    spent: Duration,
}

impl Queue {
    /// True if no datagram waits.
    pub(super) fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    fn charge(&mut self, spent: Duration) {
        let spent = spent.min(MAX_CHARGE);
        self.left = self.left.saturating_sub(nanos(spent));
        self.spent += spent;
    }
}

/// State shared by all queues.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Peers whose datagrams wait, in the order of their turns.
    round: VecDeque<Slot>,
    /// Memory of all waiting datagrams.
    bytes: u64,
    /// The instant and the number of the driver's turn.
    now: Option<Time>,
    turn: u64,
    /// CPU time that queues may still use in this turn, ns.
    left: i64,
    /// Number of datagrams processed since the last reading of the clock, and their peer if they all come from the same
    /// one.
    taken: u32,
    taken_of: Option<Slot>,
    /// True if each datagram is measured by itself.
    singly: bool,
    /// True if this turn had more than a few datagrams. The packets that they bring are then measured too.
    measures: bool,
    /// The peer whose packets are being delivered, if that is measured, and whether they come from its queue.
    serving: Option<(Slot, bool)>,
    /// The peer of the last datagram, and the time since which no other peer was heard from.
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

    /// True if a datagram may be processed at once; otherwise it must be kept.
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

    /// Charges a datagram that was processed at once.
    pub(super) fn on_taken(&mut self, slot: Slot, queue: &mut Queue, meter: &mut impl Meter) {
        meter.worked_off(slot);
        self.taken_of = Some(slot).filter(|_| self.taken == 0 || self.taken_of == Some(slot));
        self.taken += 1;
        if self.singly || self.taken == STRIDE {
            let spent = meter.lap();
            // If they come from several peers, it is not known whose took so long. The next ones will show it.
            if spent < COSTLY || self.taken_of.is_some() {
                queue.charge(spent);
            }
            self.singly |= spent >= COSTLY;
            (self.taken, self.measures) = (0, true);
        }
    }

    /// Keeps a datagram until its peer's turn, if there is room.
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

    /// Memory in bytes of all waiting datagrams.
    #[cfg(test)]
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets a peer that is removed.
    pub(super) fn forget(&mut self, slot: Slot, queue: &Queue) {
        self.bytes -= queue.bytes;
        self.round.retain(|other| *other != slot);
    }

    /// Begins the delivery of this peer's packets.
    pub(super) fn deliver(&mut self, slot: Slot, meter: &mut impl Meter) {
        if self.measures && self.serving.is_none_or(|(other, _)| other != slot) {
            if self.serving.is_none() {
                meter.lap();
            }
            self.serving = Some((slot, false));
        }
    }

    /// Ends the delivery of this peer's packets.
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

    /// Number of a terminal's datagrams that were dropped because its earlier ones took too long.
    pub(crate) fn dropped(&self, slot: Slot) -> u64 {
        self.terminals.get(&slot).map_or(0, |terminal| terminal.arrived.dropped())
    }

    /// CPU time that a terminal's datagrams have taken, as far as it was measured; `None` for a single terminal, which is not measured.
    pub(crate) fn spent(&self, slot: Slot) -> Option<Duration> {
        let terminal = self.terminals.get(&slot).filter(|_| self.terminals.len() > 1)?;
        Some(terminal.arrived.spent)
    }

    /// Processes the next waiting datagram. Returns false if none waits, or if no time is left in this turn.
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
