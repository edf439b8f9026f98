//! RACK (RFC 8985): a segment is lost if another that was sent sufficiently later has been delivered.
//!
//! The RFC visits all segments in transmission order at each ACK. Here each transmission is visited a constant number
//! of times. First transmissions are in order of sequence number, so one number tells how far they have been processed;
//! other transmissions are in a queue. The tests compare this with the literal version.

mod delivered;
mod detection;
mod min_rtt;
mod reordering;
mod runs;

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};

use self::min_rtt::MinRtt;
use self::runs::Runs;
use super::Outstanding;
use crate::tcp::delivery::DeliveryRate;
use crate::tcp::variant::Reordering;
use crate::units::{Duration, Time};

/// With this many SACKed segments, RACK does not wait for reordering (RFC 8985 §6.2 step 4). In Linux, also the number
/// of segments by which a late segment must lag before ACKs with SACK blocks open the window.
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
    /// When it was last transmitted.
    at: Time,
    retransmitted: bool,
    state: State,
}

impl Sent {
    /// True if it is in flight and was sent only once.
    #[inline(always)]
    fn is_ordinary(&self) -> bool {
        self.state == State::InFlight && !self.retransmitted
    }

    fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// What an ACK shows. Times are when a segment was sent; [`Time::NEVER`] if there is no such segment.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Among segments sent once: the first that the ACK acknowledges, and the first that its SACK blocks report.
    acked: Time,
    sacked: Time,
    /// It acknowledges a retransmitted segment.
    again: bool,
    /// It shows that a retransmitted segment was lost again.
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
    /// The segments from `snd_una` on, in order.
    segments: VecDeque<Sent>,
    /// The segments after them, up to `snd_max`: nothing has happened to them since they were sent.
    runs: Runs,
    /// No segment below this number is in flight by its first transmission. From here on, first transmissions are in
    /// order of time.
    first: u64,
    /// Other transmissions in order of time: when they were made, and where the segment starts.
    again: VecDeque<(Time, u64)>,
    /// Where lost segments start.
    lost: BTreeSet<u64>,
    lost_bytes: u64,
    sacked_bytes: u64,
    sacked_segments: usize,
    /// Segments and bytes that the peer has reported as received twice, if they count as delivered.
    repeats: u64,
    repeated: u64,
    /// Bytes ever marked lost.
    marked: u64,
    /// For the delivered segment that was sent last: when it was sent, its end, and its round trip.
    xmit_ts: Time,
    end_seq: u64,
    rtt: Option<Duration>,
    min_rtt: MinRtt,
    /// Where the last segment ends that was sent while nothing else was outstanding; 0 if it was full.
    lone: u64,
    /// The payload of a full segment.
    full: u16,
    /// The highest sequence number delivered.
    fack: u64,
    /// What the current ACK has delivered, if it is recorded.
    notes: bool,
    measured: Measured,
    /// The lowest end of a segment that was delivered without retransmission, since the last timeout or
    /// [`Self::take_original`].
    original: Option<u64>,
    rules: Reordering,
    reordering_seen: bool,
    /// The largest distance, in bytes, by which a segment arrived late.
    reordered: u64,
    /// The reordering window in quarters of `min_rtt`, and the number of recoveries for which it stays so.
    reo_wnd_mult: u64,
    reo_wnd_persist: u32,
    /// D-SACKs count once per round trip. The round of the last one that counted ends when this number is acknowledged.
    dsack_round_end: u64,
    /// When a segment still awaited must be marked lost, and how much later than the RFC says.
    deadline: Option<Time>,
    slack: Duration,
    /// The delivery rate, which few controls need.
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

    /// True if exactly one segment is outstanding.
    pub(in crate::tcp) fn has_one(&self) -> bool {
        match self.segments.len() {
            0 => self.runs.is_one(),
            1 => self.runs.first().is_none(),
            _ => false,
        }
    }

    /// When the first segment was last sent.
    pub(in crate::tcp) fn first_sent(&self) -> Option<Time> {
        let at = self.segments.front().map_or_else(|| self.runs.head().sent().0, |first| first.at);
        (at != Time::NEVER).then_some(at)
    }

    #[inline(always)]
    fn last_segment(&self) -> Option<Sent> {
        self.runs.last().or_else(|| self.segments.back().copied())
    }

    /// Lists all segments one by one, because something other than cumulative acknowledgement may happen to one of
    /// them.
    pub(in crate::tcp) fn list_all(&mut self) {
        self.segments.extend(self.runs.drain());
    }

    /// Bytes ever marked lost.
    pub(in crate::tcp) fn marked(&self) -> u64 {
        self.marked
    }

    /// What is known about the outstanding segments. `probe`: the end of a tail loss probe that is a retransmission of
    /// data not known to be lost.
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

    /// When [`Self::detect`] must be called again.
    pub(in crate::tcp) fn deadline(&self) -> Time {
        self.deadline.unwrap_or(Time::NEVER)
    }

    /// The round trip of the delivered segment that was sent last.
    pub(in crate::tcp) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// The round trip that the current ACK measures. It is that of the first acknowledged segment, unless the ACK
    /// acknowledges a retransmitted one; otherwise that of the first segment that its SACK blocks report (Linux's
    /// `tcp_ack_update_rtt`).
    #[inline(always)]
    pub(in crate::tcp) fn measured(&self, now: Time) -> Option<Duration> {
        let Measured { acked, sacked, again, .. } = self.measured;
        let sent = if acked == Time::NEVER || again { sacked } else { acked };
        (sent != Time::NEVER).then(|| now.saturating_since(sent))
    }

    /// True if the current ACK has reported a segment that was sent before the last transmission of the oldest
    /// outstanding one.
    pub(in crate::tcp) fn has_seen_older(&self) -> bool {
        self.first_sent().is_some_and(|first| self.measured.sacked < first)
    }

    /// True if the current ACK has shown that a retransmitted segment was lost again.
    pub(in crate::tcp) fn has_lost_again(&self) -> bool {
        self.measured.lost_again
    }

    /// Makes the reordering timer expire `slack` later than the RFC says.
    pub(in crate::tcp) fn wait_longer(&mut self, slack: Duration) {
        self.slack = slack;
    }

    /// Records from now on what each ACK delivers, for [`Self::measured`], [`Self::has_seen_older`] and
    /// [`Self::has_lost_again`].
    pub(in crate::tcp) fn note_deliveries(&mut self) {
        self.notes = true;
    }

    /// Limits the validity of a minimum round trip to `window`.
    pub(in crate::tcp) fn forget_round_trips_after(&mut self, window: Duration) {
        self.min_rtt = MinRtt::of_last(window);
    }

    /// A full segment has so many bytes of payload. What earlier connections have left of reordering is counted in segments.
    pub(in crate::tcp) fn set_full(&mut self, full: u16) {
        self.reordered = self.reordered / u64::from(self.full).max(1) * u64::from(full);
        self.full = full;
    }

    /// Measures the rate of delivery from now on.
    pub(in crate::tcp) fn measure_rate(&mut self) {
        self.rate = Some(Box::default());
    }

    /// The delivery rate, if it is measured.
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
        // This is usually the first one: segments sent first are delivered first.
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
        let last = self.last_segment();
        if last.is_none() {
            self.lone = if end - start < u64::from(self.full) { end } else { 0 };
        }
        if self.rate.is_none() && last.is_none_or(|last| last.end <= start) {
            return self.runs.begin(start, end, now);
        }
        self.list_all();
        if let Some(rate) = &mut self.rate {
            let is_first = self.segments.is_empty();
            let first = self.segments.front().map_or(start, |first| first.start);
            let last = self.segments.back().map_or(end, |last| last.end.max(end));
            // A retransmission consists of bytes that have counted as lost until now.
            let again = if self.segments.back().is_some_and(|last| start < last.end) { end - start } else { 0 };
            let out = (last - first).saturating_sub(self.sacked_bytes + self.lost_bytes) + again;
            rate.on_sent(start, now, out, is_first);
            if again > 0 {
                rate.on_joined(start, end);
            }
        }
        let known = self.segments.back().map_or(start, |last| last.end);
        if start >= known {
            self.segments.push_back(Sent { start, end, at: now, retransmitted: false, state: State::InFlight });
            return;
        }
        for at in self.index(start).. {
            let Some(segment) = self.segments.get(at).copied().filter(|segment| segment.start < end) else { break };
            if segment.end > end {
                // A retransmission smaller than the original: the rest keeps its state.
                self.segments.insert(at + 1, Sent { start: end, ..segment });
                match segment.state {
                    State::Lost => drop(self.lost.insert(end)),
                    State::Sacked => self.sacked_segments += 1,
                    State::InFlight => self.await_again(at + 1),
                }
                self.segments[at].end = end;
            }
            self.unlose(at);
            let segment = &mut self.segments[at];
            if segment.state == State::InFlight {
                (segment.at, segment.retransmitted) = (now, true);
                self.again.push_back((now, segment.start));
            }
        }
        if end > known {
            self.segments.push_back(Sent { start: known, end, at: now, retransmitted: false, state: State::InFlight });
        }
    }

    /// Puts a lost segment back in flight.
    fn unlose(&mut self, at: usize) {
        let segment = &mut self.segments[at];
        if segment.state == State::Lost {
            segment.state = State::InFlight;
            self.lost_bytes -= segment.len();
            self.lost.remove(&segment.start);
        }
    }

    /// Takes the SYN's round trip. On a path with slow lines it is the shortest of a connection, because data takes
    /// longer. Without it, the ACK of a short probe would seem too early to be the probe's, and so would prove nothing
    /// (test `a_short_probe_is_no_earlier_than_the_syn`).
    pub(in crate::tcp) fn on_syn_acked(&mut self, rtt: Duration, now: Time) {
        self.min_rtt.take(rtt, now);
    }

    /// The lowest end of a segment that was delivered without retransmission, since the last call and the last timeout.
    pub(in crate::tcp) fn take_original(&mut self) -> Option<u64> {
        self.original.take()
    }

    /// Number of segments in flight that are retransmissions.
    pub(in crate::tcp) fn resent(&self) -> u64 {
        let is_resent = |segment: &&Sent| segment.state == State::InFlight && segment.retransmitted;
        self.segments.iter().filter(is_resent).count() as u64
    }

    /// Handles the expiry of the retransmission timer: the first segment is lost, and so are those at least a round
    /// trip old. The RFC adds the reordering window to the round trip (RFC 8985 §6.3).
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

    /// Handles a peer that has discarded data it had reported: nothing is SACKed any more, and all of it can be lost.
    pub(super) fn on_reneging(&mut self) {
        for index in 0..self.segments.len() {
            if self.segments[index].state == State::Sacked {
                self.segments[index].state = State::InFlight;
                self.await_again(index);
            }
        }
        (self.sacked_bytes, self.sacked_segments) = (0, 0);
    }

    /// Handles a spurious timeout: nothing is lost.
    pub(super) fn forget_losses(&mut self) {
        while let Some(&start) = self.lost.first() {
            let index = self.index(start);
            self.unlose(index);
            self.await_again(index);
        }
    }

    /// Lets [`Self::detect`] find a segment that is in flight (again) by an earlier transmission.
    fn await_again(&mut self, index: usize) {
        let segment = self.segments[index];
        if segment.retransmitted {
            let place = self.again.partition_point(|&(at, _)| at <= segment.at);
            self.again.insert(place, (segment.at, segment.start));
        } else {
            self.first = self.first.min(segment.start);
        }
    }
}

#[cfg(test)]
#[path = "rack_tests.rs"]
mod tests;
