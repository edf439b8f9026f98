//! The longest datagram that the path carries, found by probes (RFC 8899, DPLPMTUD). It has no clock and no socket.
//!
//! A probe is a padded datagram that the peer acknowledges. Sizes are those of UDP payloads. ICMP messages are not
//! used, but the kernel's errors about its own interface are.
//!
//! ```text
//! base ── acknowledged ──► searching ── no larger size left ──► complete ── after RAISE_AFTER ──► searching
//!  │ ▲                        │ ▲                                  │
//!  │ └── black hole ──────────┴─│──────────────────────────────────┘
//!  └── only MIN passes ──► error ┘
//! ```
//!
//! Departures. The current size is confirmed while it is in use (RFC 8899 §5.1.1, CONFIRMATION_TIMER, is for
//! layers that do not see losses), since a satellite's losses say nothing about sizes: by the link's acknowledgements of frames of that
//! length, or else by a probe. For the same reason no count of lost probes
//! says that a size does not pass (RFC 8899 §5.1.2, MAX_PROBES). If a probe is lost, three more are sent, each with one of the base size
//! and one of the minimum. If smaller ones pass and none of that size does, it is too large, or there is a black hole; if only those
//! of the minimum pass, so is the base size. If all are lost, there is an outage. A larger size is tried again after a minute, not
//! ten: after a dip ten minutes of smaller datagrams cost more than a probe.

mod paths;

use bentpipe_engine::Step;
use bentpipe_engine::units::{Duration, Time};
pub(crate) use paths::Paths;

/// BASE_PLPMTU (RFC 8899 §5.1.2).
pub(crate) const BASE: u16 = 1200;
/// MIN_PLPMTU: an IPv4 packet of 576 bytes (RFC 791) minus its headers.
const MIN: u16 = 548;
/// MAX_PROBES (RFC 8899 §5.1.2), of the base size while it is not known to pass.
const MAX_PROBES: u32 = 3;
/// Probes of a size that are sent together after one was lost, each with smaller ones.
const ROUND: u32 = 3;
/// The smaller sizes.
const SMALLER: [u16; 2] = [BASE, MIN];
/// A size does not pass if all base-size probes of a round pass, or this many of several rounds, and none of its own. If the size does
/// pass, either kind is as likely to be the next that arrives: then this happens with a probability of 2^-5.
const ENOUGH: u32 = 5;
/// Nor does the base size if this many probes of the minimum pass, those of two rounds, and none above: with a probability of 3^-6.
const MIN_ENOUGH: u32 = 6;
/// A search ends when the remaining range is smaller than this.
const STEP: u16 = 8;
/// PMTU_RAISE_TIMER; the RFC's default is ten minutes.
const RAISE_AFTER: Duration = Duration::from_secs(60);
/// The timer before the first round-trip sample: the round trip over two satellites.
const FIRST_TIMER: Duration = Duration::from_millis(1500);
const MIN_TIMER: Duration = Duration::from_millis(200);
/// The current size is confirmed after this many datagrams above the minimum and this time, or after a longer time if there
/// were any. Large probes are then at most 2 % of the traffic.
const CONFIRM_COUNT: u32 = 50;
const CONFIRM_AFTER: Duration = Duration::from_millis(500);
const CONFIRM_IDLE: Duration = Duration::from_secs(4);
/// Number of probes whose acknowledgements count: those of a few round trips.
const REMEMBERED: usize = 32;

/// A request of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Send a probe of this size.
    Probe { id: u32, size: u16 },
    /// The size for new packets has changed.
    Changed { size: u16, black_hole: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It is not yet known whether the base size passes.
    Base,
    /// Larger sizes are being tried.
    Searching,
    /// No larger size passes; the search is repeated at `until`.
    Complete { until: Option<Time> },
    /// Probes of the base size are lost, and those of the minimum arrive. The base size is tried again at `until`.
    Error { until: Option<Time> },
}

/// An unacknowledged probe: how often it was sent, and when it counts as lost.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    size: u16,
    tries: u32,
    lost_at: Time,
    /// Acknowledged probes of each smaller size, in all rounds and in the last one.
    passed: [u32; 2],
    passed_now: [u32; 2],
}

impl Awaited {
    /// Records that a probe of another size was acknowledged.
    fn note(&mut self, size: u16) {
        let Some(at) = SMALLER.iter().position(|&smaller| smaller == size && smaller < self.size) else { return };
        self.passed[at] += 1;
        self.passed_now[at] += 1;
        // What the minimum passed before says nothing against the base size.
        self.passed[at + 1..].fill(0);
    }

    /// The smallest size that does not pass, if that is now known.
    fn too_large(&self) -> Option<u16> {
        let [base, min] = self.passed;
        if self.size > BASE && (self.passed_now[0] >= ROUND || base >= ENOUGH) {
            return Some(self.size);
        }
        (min >= MIN_ENOUGH).then_some(self.size.min(BASE))
    }
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    id: u32,
    size: u16,
    at: Time,
}

#[derive(Debug)]
pub(crate) struct PathMtu {
    max: u16,
    phase: Phase,
    /// The largest acknowledged size.
    size: u16,
    /// The size that was reported last.
    told: u16,
    /// The smallest size that is known not to pass.
    ceiling: u16,
    awaited: Option<Awaited>,
    sent: std::collections::VecDeque<Sent>,
    asks: std::collections::VecDeque<Ask>,
    next_id: u32,
    rtt: Option<Duration>,
    /// Number of datagrams above the minimum since the size was confirmed, the longest of them, and when it was confirmed.
    in_use: u32,
    longest: usize,
    confirmed_at: Time,
    /// Since when datagrams take this path instead of another; `None` if they never took another.
    since: Option<Time>,
}

impl PathMtu {
    /// `max`: the largest size to probe. It is also reported until a size is known.
    pub(crate) fn new(max: u16, now: Time) -> Self {
        PathMtu {
            max,
            phase: Phase::Base,
            size: BASE.min(max),
            told: max,
            ceiling: max.saturating_add(1),
            awaited: None,
            sent: Default::default(),
            asks: Default::default(),
            next_id: 0,
            rtt: None,
            in_use: 0,
            longest: 0,
            confirmed_at: now,
            since: None,
        }
    }

    /// The longest datagram that may be sent.
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// The datagram size for new packets: the path's size, once it is known.
    pub(crate) fn told(&self) -> u16 {
        self.told
    }

    /// True if the size was searched for and found.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self.phase, Phase::Complete { .. } | Phase::Error { .. })
    }

    /// Datagrams take this path instead of `last`. If its size is known, it remains; packets that are too long for it
    /// are sent in parts, and new ones are made for it at once.
    fn follow(&mut self, now: Time, last: &mut PathMtu) {
        (self.told, self.next_id, self.since) = (last.told, last.next_id, Some(now));
        self.asks.clear();
        // A probe that waits would take the wrong path; a change is still to be told.
        if last.asks.iter().any(|ask| matches!(ask, Ask::Probe { .. })) {
            last.awaited = None;
        }
        self.asks.extend(last.asks.drain(..).filter(|ask| matches!(ask, Ask::Changed { .. })));
        if self.is_known() && self.size < self.told {
            self.tell(false);
        }
    }

    /// Records that a datagram of this size was sent.
    pub(crate) fn on_sent(&mut self, size: usize) {
        self.in_use += u32::from(size > usize::from(MIN));
        self.longest = self.longest.max(size);
    }

    /// Records that the peer has received whole datagrams up to this size. If all since the last confirmation are no longer, this
    /// confirms the path as a probe does, which would take 2 % of a slow link.
    pub(crate) fn on_arrived(&mut self, now: Time, size: usize) {
        // A longer one was sent in parts, and one from before may have taken another path. If new packets are made for another size,
        // a probe has to say that they may be longer.
        let is_whole = size <= usize::from(self.size);
        let is_for_all = self.told == self.size && self.awaited.is_none();
        if is_whole && is_for_all && self.is_settled(now) && size >= self.longest.max(usize::from(MIN)) {
            self.confirm(now);
        }
    }

    /// True if datagrams have taken this path for some time, or always.
    fn is_settled(&self, now: Time) -> bool {
        self.since.is_none_or(|since| since + CONFIRM_IDLE <= now)
    }

    fn confirm(&mut self, now: Time) {
        (self.confirmed_at, self.in_use, self.longest) = (now, 0, 0);
    }

    /// Called when the kernel refused a datagram of this size as too long.
    pub(crate) fn on_too_long(&mut self, now: Time, size: usize) {
        let size = u16::try_from(size).unwrap_or(u16::MAX);
        if size <= MIN || size >= self.ceiling {
            return;
        }
        self.ceiling = size;
        self.awaited.take_if(|awaited| awaited.size >= size);
        // Acknowledgements that are still to come say what passed before.
        self.sent.retain(|sent| sent.size < size);
        if self.size >= size {
            self.fall(now, size);
        }
    }

    /// Records that the peer has received a probe. Returns false if it is not a probe of this path.
    pub(crate) fn on_ack(&mut self, now: Time, id: u32) -> bool {
        let Some(at) = self.sent.iter().position(|sent| sent.id == id) else { return false };
        let sent = self.sent.remove(at).expect("just found");
        let rtt = now.saturating_since(sent.at);
        self.rtt = Some(self.rtt.map_or(rtt, |old| (old.saturating_mul(3) + rtt).div_floor(4)));
        if let Some(awaited) = &mut self.awaited {
            awaited.note(sent.size);
        }
        self.awaited.take_if(|awaited| awaited.size <= sent.size);
        if sent.size >= self.size {
            self.confirm(now);
            // A peer that alternates gets packets that fit all its paths.
            if matches!(self.phase, Phase::Complete { .. }) && self.is_settled(now) {
                self.tell(false);
            }
        }
        match self.phase {
            Phase::Base | Phase::Error { .. } if sent.size >= BASE.min(self.max) => {
                self.size = sent.size;
                self.phase = Phase::Searching;
                if self.ceiling <= sent.size {
                    // A smaller size was refused, but that was before.
                    self.ceiling = self.max.saturating_add(1);
                }
            }
            Phase::Base => {
                self.size = MIN;
                self.phase = Phase::Error { until: Some(now + RAISE_AFTER) };
                self.awaited = None;
                self.tell(false);
            }
            _ if sent.size > self.size => {
                self.size = sent.size;
                self.ceiling = self.ceiling.max(sent.size + 1);
            }
            _ => {}
        }
        true
    }

    fn tell(&mut self, black_hole: bool) {
        if self.told != self.size {
            self.told = self.size;
            self.asks.push_back(Ask::Changed { size: self.size, black_hole });
        }
    }

    /// Lowers the size, because sizes from `ceiling` on no longer pass.
    fn fall(&mut self, now: Time, ceiling: u16) {
        self.ceiling = ceiling;
        let base = BASE.min(self.max);
        (self.size, self.phase) = if ceiling > base { (base, Phase::Searching) } else { (MIN, Phase::Base) };
        self.awaited = None;
        // That the minimum passes is no news.
        self.sent.retain(|sent| sent.size > MIN);
        self.confirm(now);
        self.tell(true);
    }

    /// The next size to try; `None` if the search is over.
    fn candidate(&self) -> Option<u16> {
        match self.phase {
            Phase::Base | Phase::Error { until: None } => Some(BASE.min(self.max)),
            Phase::Complete { .. } | Phase::Error { .. } => None,
            Phase::Searching if self.size >= self.max => None,
            // Usually the maximum passes.
            Phase::Searching if self.ceiling > self.max => Some(self.max),
            Phase::Searching => {
                Some(self.size + (self.ceiling - self.size) / 2).filter(|_| self.ceiling - self.size > STEP)
            }
        }
    }

    fn probe(&mut self, now: Time, size: u16) {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.sent.push_back(Sent { id, size, at: now });
        if self.sent.len() > REMEMBERED {
            self.sent.pop_front();
        }
        self.asks.push_back(Ask::Probe { id, size });
    }

    fn timer(&self) -> Duration {
        self.rtt.map_or(FIRST_TIMER, |rtt| {
            (rtt.saturating_mul(5).div_floor(4) + MIN_TIMER).min(FIRST_TIMER.saturating_mul(2))
        })
    }

    /// True if sizes above the minimum pass, as far as is known.
    fn passes(&self) -> bool {
        matches!(self.phase, Phase::Searching | Phase::Complete { .. })
    }

    fn send(&mut self, now: Time, size: u16, tries: u32, passed: [u32; 2]) {
        let lost_at = now + self.timer();
        self.awaited = Some(Awaited { size, tries, lost_at, passed, passed_now: [0; 2] });
        if tries > 1 && self.passes() {
            for _ in 0..ROUND {
                self.probe(now, size);
                SMALLER.into_iter().filter(|&smaller| smaller < size).for_each(|smaller| self.probe(now, smaller));
            }
            return;
        }
        self.probe(now, size);
        if self.phase == Phase::Base && size == BASE && self.ceiling > self.max {
            // Usually the maximum passes.
            self.probe(now, self.max);
        }
    }

    fn on_lost(&mut self, now: Time, awaited: Awaited) {
        let Awaited { size, tries, passed, passed_now, .. } = awaited;
        if self.passes() {
            let Some(too_large) = awaited.too_large() else {
                // If nothing passes, large or small, there is an outage.
                let tries = if tries > 1 && passed_now == [0; 2] { 1 } else { 2 };
                return self.send(now, size, tries, passed);
            };
            self.awaited = None;
            if too_large <= self.size {
                return self.fall(now, too_large);
            }
            self.ceiling = self.ceiling.min(too_large);
            return;
        }
        if tries < MAX_PROBES {
            return self.send(now, size, tries + 1, [0; 2]);
        }
        self.awaited = None;
        match self.phase {
            // Whether anything passes at all.
            Phase::Base => {
                self.send(now, BASE.min(self.max), 1, [0; 2]);
                self.probe(now, MIN);
            }
            _ => self.phase = Phase::Error { until: Some(now + RAISE_AFTER) },
        }
    }

    /// The next request, or the time of the next poll.
    pub(crate) fn poll(&mut self, now: Time) -> Step<Ask> {
        if let Some(ask) = self.asks.pop_front() {
            return Step::Do(ask);
        }
        if let Phase::Complete { until: Some(until) } = self.phase
            && until <= now
            && self.awaited.is_none()
        {
            self.ceiling = self.max.saturating_add(1);
            self.phase = Phase::Searching;
        }
        if let Phase::Error { until: Some(until) } = self.phase
            && until <= now
        {
            self.phase = Phase::Error { until: None };
        }
        if let Some(awaited) = self.awaited.filter(|awaited| awaited.lost_at <= now) {
            self.on_lost(now, awaited);
        }
        if self.awaited.is_none() {
            match self.candidate() {
                Some(size) => self.send(now, size, 1, [0; 2]),
                None if self.phase == Phase::Searching => {
                    let until = (self.size < self.max).then(|| now + RAISE_AFTER);
                    self.phase = Phase::Complete { until };
                    self.tell(false);
                }
                None if self.confirm_at().is_some_and(|at| at <= now) => self.send(now, self.size, 1, [0; 2]),
                None => {}
            }
        }
        if let Some(ask) = self.asks.pop_front() {
            return Step::Do(ask);
        }
        let raise = match self.phase {
            Phase::Complete { until } | Phase::Error { until } => until,
            _ => None,
        };
        let next = match self.awaited {
            Some(awaited) => Some(awaited.lost_at),
            None => Time::earliest(raise, self.confirm_at()),
        };
        Step::Wait(next)
    }

    /// When the current size must be confirmed.
    fn confirm_at(&self) -> Option<Time> {
        let after = match self.in_use {
            0 => return None,
            CONFIRM_COUNT.. => CONFIRM_AFTER,
            _ => CONFIRM_IDLE,
        };
        (self.size > MIN).then(|| self.confirmed_at + after)
    }
}

#[cfg(test)]
mod tests;
