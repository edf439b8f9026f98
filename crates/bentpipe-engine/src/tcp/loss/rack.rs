//! RACK (RFC 8985): a segment is lost if one that was sent later, and long enough later, has been delivered.
//!
//! The RFC visits all segments in the order of transmission at each ACK. Here each transmission is visited a constant number of
//! times. First transmissions are in the order of sequence numbers, so a number tells which of them are done; the others are
//! in a queue. The tests compare it with the literal version.

mod delivered;
mod detection;
mod min_rtt;
mod reordering;
mod runs;

use std::collections::{BTreeSet, VecDeque};

use self::min_rtt::MinRtt;
use self::runs::Runs;
use super::Outstanding;
use crate::tcp::delivery::DeliveryRate;
use crate::tcp::variant::Reordering;
use crate::units::{Duration, Time};

/// Number of SACKed segments beyond which RACK does not wait for reordering (RFC 8985 §6.2 step 4); in Linux also the number of segments beyond which
/// one that is later has come out of order.
pub(in crate::tcp) const DUP_THRESH: usize = 3;

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Sacked,
    Lost,
}

/// A segment that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    end: u64,
    /// Of the last transmission.
    at: Time,
    retransmitted: bool,
    state: State,
}

impl Sent {
    /// True if it is in flight by its first transmission.
    #[inline(always)]
    fn is_ordinary(&self) -> bool {
        self.state == State::InFlight && !self.retransmitted
    }

    fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// What an ACK shows. Times are those at which a segment was sent; [`Time::NEVER`] without such a segment.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// The first segment that it acknowledges, and the first that its SACK blocks report, of those sent once.
    acked: Time,
    sacked: Time,
    /// It acknowledges a segment that was sent again.
    again: bool,
    /// It shows that a segment sent again is lost again.
    lost_again: bool,
}

impl Default for Measured {
    fn default() -> Self {
        Measured { acked: Time::NEVER, sacked: Time::NEVER, again: false, lost_again: false }
    }
}

/// The state of one sender.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Rack {
    /// From `snd_una` on, in order.
    segments: VecDeque<Sent>,
    /// Those after them, up to `snd_max`: nothing has happened to them since they were sent.
    runs: Runs,
    /// No segment below is in flight by its first transmission; from here on first transmissions are in the order of time.
    first: u64,
    /// Other transmissions in the order of time: when, and where the segment starts.
    again: VecDeque<(Time, u64)>,
    /// Where lost segments start.
    lost: BTreeSet<u64>,
    lost_bytes: u64,
    sacked_bytes: u64,
    sacked_segments: usize,
    /// Segments and bytes that the peer has reported to have come twice, if they count as delivered.
    repeats: u64,
    repeated: u64,
    /// Bytes ever marked lost.
    marked: u64,
    /// Of the delivered segment that was sent last: when it was sent, its end, and its round trip.
    xmit_ts: Time,
    end_seq: u64,
    rtt: Option<Duration>,
    min_rtt: MinRtt,
    /// The highest sequence number delivered.
    fack: u64,
    /// What the current ACK has delivered, if that is noted.
    notes: bool,
    measured: Measured,
    /// The lowest end of a segment that was delivered without being retransmitted, since the last timeout or [`Self::take_original`].
    original: Option<u64>,
    rules: Reordering,
    reordering_seen: bool,
    /// The largest distance, in bytes, by which a segment came late.
    reordered: u64,
    /// The reordering window in quarters of `min_rtt`, and the recoveries for which it stays so.
    reo_wnd_mult: u64,
    reo_wnd_persist: u32,
    /// D-SACKs count once per round trip. The round of the last one that counted ends when this is acknowledged.
    dsack_round_end: u64,
    /// When a segment still awaited is to be marked lost, and what that time is later than the RFC says.
    deadline: Option<Time>,
    slack: Duration,
    /// Few controls need it.
    rate: Option<Box<DeliveryRate>>,
}

impl Rack {
    /// Bytes outstanding: sent, neither delivered nor lost.
    pub(in crate::tcp) fn pipe(&self, una: u64, high_data: u64) -> u64 {
        (high_data - una).saturating_sub(self.sacked_bytes + self.lost_bytes)
    }

    /// The first lost segment, `(start, end)`.
    pub(in crate::tcp) fn first_lost(&self) -> Option<(u64, u64)> {
        let start = *self.lost.first()?;
        self.segments.get(self.index(start)).map(|segment| (segment.start, segment.end))
    }

    /// Bytes SACKed above the cumulative acknowledgement.
    pub(in crate::tcp) fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// The segment sent with the highest numbers, `(start, end)`.
    pub(in crate::tcp) fn last(&self) -> Option<(u64, u64)> {
        self.last_segment().map(|segment| (segment.start, segment.end))
    }

    /// True if one segment is outstanding.
    pub(in crate::tcp) fn has_one(&self) -> bool {
        match self.segments.len() {
            0 => self.runs.is_one(),
            1 => self.runs.first().is_none(),
            _ => false,
        }
    }

    /// When the first segment was sent last.
    pub(in crate::tcp) fn first_sent(&self) -> Option<Time> {
        let at = self.segments.front().map_or_else(|| self.runs.head().sent().0, |first| first.at);
        (at != Time::NEVER).then_some(at)
    }

    #[inline(always)]
    fn last_segment(&self) -> Option<Sent> {
        self.runs.last().or_else(|| self.segments.back().copied())
    }

    /// Lists all segments one by one: something else than the acknowledgement of all before it may happen to one of them.
    pub(in crate::tcp) fn list_all(&mut self) {
        self.segments.extend(self.runs.drain());
    }

    /// Bytes ever marked lost.
    pub(in crate::tcp) fn marked(&self) -> u64 {
        self.marked
    }

    /// What is known of the outstanding segments. `probe`: the end of a tail loss probe that is a retransmission, of data that is not
    /// known to be lost.
    pub(in crate::tcp) fn outstanding(&self, probe: Option<u64>) -> Outstanding {
        let mut counts = Outstanding { reordered: self.reordered, ..Outstanding::default() };
        for segment in &self.segments {
            let is_again = segment.state == State::InFlight && segment.retransmitted;
            counts.sacked += u64::from(segment.state == State::Sacked);
            counts.retransmitted += u64::from(is_again);
            counts.lost += u64::from(segment.state == State::Lost || is_again && probe != Some(segment.end));
        }
        counts
    }

    /// When [`Self::detect`] is to be called again.
    pub(in crate::tcp) fn deadline(&self) -> Time {
        self.deadline.unwrap_or(Time::NEVER)
    }

    /// The round trip of the delivered segment that was sent last.
    pub(in crate::tcp) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// The round trip that the current ACK measures: of the first segment that it acknowledges, unless it acknowledges one that was sent
    /// again; else of the first that its SACK blocks report (Linux's `tcp_ack_update_rtt`).
    #[inline(always)]
    pub(in crate::tcp) fn measured(&self, now: Time) -> Option<Duration> {
        let Measured { acked, sacked, again, .. } = self.measured;
        let sent = if acked == Time::NEVER || again { sacked } else { acked };
        (sent != Time::NEVER).then(|| now.saturating_since(sent))
    }

    /// True if the current ACK has reported a segment that was sent before the oldest outstanding one was sent last.
    pub(in crate::tcp) fn has_seen_older(&self) -> bool {
        self.first_sent().is_some_and(|first| self.measured.sacked < first)
    }

    /// True if the current ACK has shown that a segment sent again is lost again.
    pub(in crate::tcp) fn has_lost_again(&self) -> bool {
        self.measured.lost_again
    }

    /// The timer of reordering expires by `slack` later than the RFC says.
    pub(in crate::tcp) fn wait_longer(&mut self, slack: Duration) {
        self.slack = slack;
    }

    /// Notes from now on what each ACK delivers: [`Self::measured`], [`Self::has_seen_older`] and [`Self::has_lost_again`] ask for it.
    pub(in crate::tcp) fn note_deliveries(&mut self) {
        self.notes = true;
    }

    /// A minimum round trip counts for `window`.
    pub(in crate::tcp) fn forget_round_trips_after(&mut self, window: Duration) {
        self.min_rtt = MinRtt::of_last(window);
    }

    /// Measures the rate of delivery from now on.
    pub(in crate::tcp) fn measure_rate(&mut self) {
        self.rate = Some(Box::default());
    }

    /// The rate of delivery, if it is measured.
    pub(in crate::tcp) fn rate(&mut self) -> Option<&mut DeliveryRate> {
        self.rate.as_deref_mut()
    }

    /// The minimum round trip.
    pub(in crate::tcp) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.get()
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.rate.as_ref().map_or(0, |rate| rate.memory())
            + self.segments.capacity() * size_of::<Sent>()
            + self.runs.memory()
            + self.min_rtt.memory()
            + self.again.capacity() * size_of::<(Time, u64)>()
    }

    /// Index of the first segment that ends after `seq`.
    fn index(&self, seq: u64) -> usize {
        // Mostly the first one is asked for: what was sent first is delivered first.
        if self.segments.front().is_none_or(|first| first.end > seq) {
            return 0;
        }
        self.segments.partition_point(|segment| segment.end <= seq)
    }

    //= RFC 8985 §6.1: "Upon transmitting a new segment or retransmitting an old segment, record the time in Segment.xmit_ts"
    /// `start..end` is transmitted now, for the first time or again.
    #[inline(always)]
    pub(in crate::tcp) fn on_sent(&mut self, start: u64, end: u64, now: Time) {
        if !self.runs.extend(start, end, now) {
            self.on_any_sent(start, end, now);
        }
    }

    #[inline(never)]
    fn on_any_sent(&mut self, start: u64, end: u64, now: Time) {
        if start == end {
            return;
        }
        if self.rate.is_none() && self.last_segment().is_none_or(|last| last.end <= start) {
            return self.runs.begin(start, end, now);
        }
        self.list_all();
        if let Some(rate) = &mut self.rate {
            let is_first = self.segments.is_empty();
            let first = self.segments.front().map_or(start, |first| first.start);
            let last = self.segments.back().map_or(end, |last| last.end.max(end));
            // A retransmission is of bytes that count as lost until now.
            let again = if self.segments.back().is_some_and(|last| start < last.end) { end - start } else { 0 };
            let out = (last - first).saturating_sub(self.sacked_bytes + self.lost_bytes) + again;
            rate.on_sent(start, now, out, is_first);
        }
        let known = self.segments.back().map_or(start, |last| last.end);
        if start >= known {
            self.segments.push_back(Sent { start, end, at: now, retransmitted: false, state: State::InFlight });
            return;
        }
        self.again.push_back((now, start));
        for at in self.index(start).. {
            let Some(segment) = self.segments.get(at).copied().filter(|segment| segment.start < end) else { break };
            if segment.end > end {
                // A smaller segment than before: the rest keeps its state.
                self.segments.insert(at + 1, Sent { start: end, ..segment });
                match segment.state {
                    State::Lost => drop(self.lost.insert(end)),
                    State::Sacked => self.sacked_segments += 1,
                    State::InFlight => {}
                }
                self.segments[at].end = end;
            }
            self.unlose(at);
            let segment = &mut self.segments[at];
            if segment.state == State::InFlight {
                (segment.at, segment.retransmitted) = (now, true);
            }
        }
        if end > known {
            self.segments.push_back(Sent { start: known, end, at: now, retransmitted: false, state: State::InFlight });
        }
    }

    /// A lost segment is in flight again.
    fn unlose(&mut self, at: usize) {
        let segment = &mut self.segments[at];
        if segment.state == State::Lost {
            segment.state = State::InFlight;
            self.lost_bytes -= segment.len();
            self.lost.remove(&segment.start);
        }
    }

    /// The SYN's round trip. On a path with slow lines it is the shortest of a connection, because data takes longer. Without it
    /// the ACK of a short probe looks too early for the probe, and so says nothing (the test
    /// `a_short_probe_is_no_earlier_than_the_syn`).
    pub(in crate::tcp) fn on_syn_acked(&mut self, rtt: Duration, now: Time) {
        self.min_rtt.take(rtt, now);
    }

    /// The lowest end of a segment that was delivered without being retransmitted, since the last call and the last timeout.
    pub(in crate::tcp) fn take_original(&mut self) -> Option<u64> {
        self.original.take()
    }

    /// Segments in flight by a retransmission.
    pub(in crate::tcp) fn resent(&self) -> u64 {
        let is_resent = |segment: &&Sent| segment.state == State::InFlight && segment.retransmitted;
        self.segments.iter().filter(is_resent).count() as u64
    }

    /// The retransmission timer has expired: the first segment is lost, and those as old as a round trip, to which the RFC adds the reordering
    /// window (RFC 8985 §6.3).
    pub(super) fn on_timeout(&mut self, now: Time, srtt: Option<Duration>) {
        (self.deadline, self.original) = (None, None);
        self.list_all();
        let reo_wnd = match self.rules {
            Reordering::Rfc8985 => self.reo_wnd(true, srtt),
            Reordering::Linux => Duration::ZERO,
        };
        let patience = self.rtt.map(|rtt| rtt + reo_wnd);
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            let is_old = patience.is_none_or(|patience| segment.at + patience <= now);
            if segment.state == State::InFlight && (index == 0 || is_old) {
                self.lose(index);
            }
        }
    }

    /// The peer has discarded data that it had reported: nothing is SACKed.
    pub(super) fn on_reneging(&mut self) {
        for segment in self.segments.iter_mut().filter(|segment| segment.state == State::Sacked) {
            segment.state = State::InFlight;
        }
        (self.sacked_bytes, self.sacked_segments) = (0, 0);
    }

    /// The timeout was spurious: nothing is lost.
    pub(super) fn forget_losses(&mut self) {
        while let Some(&start) = self.lost.first() {
            let index = self.index(start);
            self.unlose(index);
            // It can be lost again.
            let segment = self.segments[index];
            if segment.retransmitted {
                let place = self.again.partition_point(|&(at, _)| at <= segment.at);
                self.again.insert(place, (segment.at, segment.start));
            } else {
                self.first = self.first.min(segment.start);
            }
        }
    }
}

#[cfg(test)]
#[path = "rack_tests.rs"]
mod tests;
