//! What ACKs and SACK blocks have delivered (RFC 8985 §6.2, steps 1 to 3).

use super::{Measured, Rack, Sent, State};
use crate::units::{Duration, Time};

impl Rack {
    /// Begins an ACK, which has delivered nothing yet.
    #[inline(always)]
    pub(in crate::tcp) fn begin_ack(&mut self) {
        if self.notes {
            self.measured = Measured::default();
        }
    }

    /// Everything before `una` is acknowledged.
    #[inline(always)]
    pub(in crate::tcp) fn on_ack(&mut self, una: u64, now: Time) {
        self.begin_ack();
        if self.rate.is_none() {
            if !self.segments.is_empty() {
                self.take_ordinary(una, now);
            }
            if self.segments.is_empty() {
                self.take_runs(una, now);
            }
        }
        let start = self.segments.front().map_or_else(|| self.runs.head().start(), |first| first.start);
        if self.rate.is_some() || start < una {
            self.on_any_ack(una, now);
        }
    }

    #[inline(never)]
    fn on_any_ack(&mut self, una: u64, now: Time) {
        self.list_all();
        while let Some(&first) = self.segments.front() {
            if first.start >= una {
                break;
            }
            if first.end <= una && first.is_ordinary() && self.rate.is_none() {
                self.take_ordinary(una, now);
                continue;
            }
            let done = first.end.min(una);
            if done == first.end {
                self.unlose(0);
            } else if first.state == State::Lost {
                self.lost.remove(&first.start);
                self.lost.insert(done);
                self.lost_bytes -= done - first.start;
            }
            if first.state == State::Sacked {
                self.sacked_bytes -= done - first.start;
                self.sacked_segments -= (done == first.end) as usize;
            }
            if done < first.end {
                self.segments[0].start = done;
                break;
            }
            self.measured.again |= self.notes && first.retransmitted;
            if first.state != State::Sacked {
                if self.notes && !first.retransmitted {
                    self.measured.acked = self.measured.acked.min(first.at);
                }
                self.delivered(first, now);
            }
            self.segments.pop_front();
        }
        if let Some(rate) = &mut self.rate {
            rate.advance(una);
        }
    }

    /// Takes the first acknowledged segments that were sent once. Only the first of these can show reordering. The last
    /// one was sent last and has the minimum round trip.
    fn take_ordinary(&mut self, una: u64, now: Time) {
        let is_done = |segment: &&Sent| segment.end <= una && segment.is_ordinary();
        let Some(&first) = self.segments.front().filter(is_done) else { return };
        let mut last = first;
        self.segments.pop_front();
        while let Some(&next) = self.segments.front().filter(is_done) {
            last = next;
            self.segments.pop_front();
        }
        if first.end < self.fack {
            self.note_reordering(first.start);
        }
        self.note_ordinary((first.at, first.end), (last.at, last.end), now);
    }

    /// Does the same for [runs](super::runs): nothing sent after them has been delivered, so they show no reordering.
    #[inline(always)]
    fn take_runs(&mut self, una: u64, now: Time) {
        let Some([first, last]) = self.runs.take(una) else { return };
        debug_assert!(first.1 > self.fack);
        self.note_ordinary(first, last, now);
    }

    /// Records the delivery of segments that were sent once, from the first one to the last one: of each, when it was sent
    /// and its end.
    #[inline(always)]
    fn note_ordinary(&mut self, (at, end): (Time, u64), last: (Time, u64), now: Time) {
        if self.notes && self.measured.acked == Time::NEVER {
            self.measured.acked = at;
        }
        self.note_original(end);
        let rtt = now.saturating_since(last.0);
        self.take_min_rtt(last.1, rtt, now);
        self.note_delivered(last, rtt);
    }

    /// Records that the peer has `start..end`. A segment counts once all of it has arrived. `fin`: the number of our
    /// FIN, which has arrived with the data of its segment, though blocks need not say so.
    pub(in crate::tcp) fn on_sack(&mut self, start: u64, end: u64, fin: Option<u64>, now: Time) {
        self.list_all();
        for at in self.segments.partition_point(|segment| segment.start < start).. {
            let has = |segment: &&Sent| segment.end <= end || (segment.end == end + 1 && fin == Some(end));
            let Some(&segment) = self.segments.get(at).filter(has).filter(|segment| segment.start < end) else {
                return;
            };
            if segment.state == State::Sacked {
                continue;
            }
            self.unlose(at);
            self.segments[at].state = State::Sacked;
            self.sacked_bytes += segment.len();
            self.sacked_segments += 1;
            if self.notes && !segment.retransmitted && self.measured.sacked == Time::NEVER {
                self.measured.sacked = segment.at;
            }
            self.delivered(segment, now);
        }
    }

    /// RFC 8985 §6.2 steps 1 to 3: round trip, the delivered segment that was sent last, reordering.
    // Not inlined: the loop of `on_sack` passes over many segments that were delivered before.
    #[inline(never)]
    fn delivered(&mut self, segment: Sent, now: Time) {
        if let Some(rate) = &mut self.rate {
            rate.on_delivered(segment.start, segment.len(), now);
        }
        let rtt = now.saturating_since(segment.at);
        if segment.retransmitted {
            //= RFC 8985 §6.2 step 2: "The segment was last retransmitted less than RACK.min_rtt ago."
            // The original has arrived, which proves nothing about segments sent after it.
            if self.min_rtt.get().is_some_and(|min| rtt < min) {
                self.fack = self.fack.max(segment.end);
                return;
            }
        } else {
            self.note_original(segment.end);
            self.delivered_once(&segment, rtt, now);
        }
        self.note_delivered((segment.at, segment.end), rtt);
    }

    /// Records that a segment that was sent once has been delivered after `rtt`.
    #[inline(always)]
    fn delivered_once(&mut self, segment: &Sent, rtt: Duration, now: Time) {
        //= RFC 8985 §6.2 step 1: "Use the RTT measurements obtained via [RFC6298] or [RFC7323] to update the estimated minimum RTT
        //= in RACK.min_RTT"
        self.take_min_rtt(segment.end, rtt, now);
        //= RFC 8985 §6.2 step 3: "The sender looks for original data segments being delivered out of order"
        if segment.end < self.fack {
            self.note_reordering(segment.start);
        }
    }

    /// Takes the round trip of a segment that ends at `end` for the minimum. If the segment was not full and was sent while nothing
    /// else was outstanding, the receiver may have delayed its ACK: then it does not replace a shorter one (Linux's
    /// `tcp_update_rtt_min`).
    #[inline(always)]
    fn take_min_rtt(&mut self, end: u64, rtt: Duration, now: Time) {
        let may_be_delayed = end == self.lone && self.min_rtt.get().is_some_and(|min| rtt > min);
        if !may_be_delayed {
            self.min_rtt.take(rtt, now);
        }
    }

    /// The segment that begins at `start`, sent once, has come behind a later one.
    fn note_reordering(&mut self, start: u64) {
        self.reordering_seen = true;
        self.reordered = self.reordered.max(self.fack - start);
    }

    /// Records the delivery of a segment that was last sent at `sent.0`, `rtt` ago, and ends at `sent.1`.
    #[inline(always)]
    fn note_delivered(&mut self, sent: (Time, u64), rtt: Duration) {
        self.fack = self.fack.max(sent.1);
        self.rtt = Some(rtt);
        if sent > (self.xmit_ts, self.end_seq) {
            (self.xmit_ts, self.end_seq) = sent;
        }
    }

    #[inline(always)]
    fn note_original(&mut self, end: u64) {
        self.original = Some(self.original.map_or(end, |lowest| lowest.min(end)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// RFC 8985 §6.2 step 3: "The sender tracks the highest sequence selectively or cumulatively acknowledged", also that of a segment that
    /// was sent again, here as a tail loss probe, 10 ms before the original was reported. The one before it has come behind it.
    #[test]
    fn a_segment_behind_a_needless_retransmission_is_reordered() {
        let mut rack = Rack::default();
        for n in 0..3 {
            rack.on_sent(1000 * n, 1000 * (n + 1), at(n));
        }
        rack.on_ack(1000, at(100));
        rack.on_sent(2000, 3000, at(300));
        rack.on_sack(2000, 3000, None, at(310));
        assert!(!rack.reordering_seen);
        rack.on_ack(3000, at(311));
        assert!(rack.reordering_seen);
    }

    /// Two short segments of a hundred are lost, which are 2 % of what was in flight when they were sent. They are sent again as one, and
    /// lost again: since then, 2 % have been lost, not 4 %.
    #[test]
    fn segments_that_are_sent_again_as_one_share_its_stamp() {
        let mut rack = Rack::default();
        rack.measure_rate();
        (0..100).for_each(|n| rack.on_sent(500 * n, 500 * (n + 1), at(0)));
        for repetition in 1..3 {
            rack.lose(98);
            rack.lose(99);
            let rate = rack.rate().expect("it is measured");
            assert_eq!(rate.take_too_high(), None, "{repetition}");
            rack.on_sent(49_000, 50_000, at(100 * repetition));
        }
    }
}
