//! The SACK scoreboard (RFC 6675 §3, §4): records SACKed, lost and retransmitted data, without policy.
//!
//! RFC 6675 walks the window octet by octet. Here two cursors with counters advance, so that each SACKed range is
//! visited a constant number of times. Everything below `lost_edge` that is not SACKed is lost (`IsLost` falls with the
//! sequence number, and lost data stays lost). Everything below `high_rxt` that is not SACKed has been retransmitted in
//! this recovery. The tests compare this with the literal walk.
//!
//! With RACK, each segment's loss is known (`rack.rs`), and the cursors are not used.

use alloc::boxed::Box;

use super::Outstanding;
use super::rack::Rack;
use crate::tcp::ranges::Ranges;
use crate::units::{Duration, Time};

/// The peer's SACK information, and what follows from it.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Scoreboard {
    sacked: Ranges,
    /// SACKed bytes: in total, below `lost_edge`, and below `high_rxt`.
    total: u64,
    below_lost: u64,
    below_rxt: u64,
    lost_edge: u64,
    high_rxt: u64,
    /// Bytes first reported by the last ACK.
    newly: u64,
    rack: Option<Box<Rack>>,
}

fn overlap_below(start: u64, end: u64, edge: u64) -> u64 {
    end.min(edge).saturating_sub(start)
}

impl Scoreboard {
    /// A scoreboard on which RACK finds the losses.
    pub(super) fn with_rack() -> Self {
        Scoreboard { rack: Some(Box::default()), ..Scoreboard::default() }
    }

    /// RACK, if it finds the losses.
    #[inline(always)]
    pub(in crate::tcp) fn rack(&mut self) -> Option<&mut Rack> {
        self.rack.as_deref_mut()
    }

    /// Switches RACK off, because the peer sends no SACK blocks.
    pub(super) fn without_rack(&mut self) {
        self.rack = None;
    }

    /// The time at which RACK will next find a loss without an ACK.
    #[inline(always)]
    pub(in crate::tcp) fn deadline(&self) -> Time {
        self.rack.as_ref().map_or(Time::NEVER, |rack| rack.deadline())
    }

    /// What RACK knows about the outstanding segments. `probe`: see [`Rack::outstanding`].
    pub(in crate::tcp) fn outstanding(&self, probe: Option<u64>) -> Outstanding {
        self.rack.as_ref().map_or_else(Outstanding::default, |rack| rack.outstanding(probe))
    }

    /// The round trip of the newest segment delivered, if RACK measures it.
    pub(in crate::tcp) fn latest_rtt(&self) -> Option<Duration> {
        self.rack.as_ref().and_then(|rack| rack.rtt())
    }

    /// When the oldest outstanding segment was last sent, according to RACK.
    pub(in crate::tcp) fn first_sent(&self) -> Option<Time> {
        self.rack.as_ref().and_then(|rack| rack.first_sent())
    }

    /// The round trip that the current ACK measures, according to RACK.
    #[inline(always)]
    pub(in crate::tcp) fn measured(&self, now: Time) -> Option<Duration> {
        self.rack.as_ref().and_then(|rack| rack.measured(now))
    }

    /// The minimum round trip, as measured by RACK.
    pub(in crate::tcp) fn min_rtt(&self) -> Option<Duration> {
        self.rack.as_ref().and_then(|rack| rack.min_rtt())
    }

    /// The largest distance, in bytes, by which a segment came late.
    pub(in crate::tcp) fn reordered(&self) -> u64 {
        self.rack.as_ref().map_or(0, |rack| rack.reordered_bytes())
    }

    /// Bytes that have arrived more often than once, and count as delivered.
    #[inline(always)]
    pub(in crate::tcp) fn repeated_bytes(&self) -> u64 {
        self.rack.as_ref().map_or(0, |rack| rack.repeated_bytes())
    }

    /// Puts what RACK took for lost back in flight, because it was only late.
    pub(in crate::tcp) fn forget_losses(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.forget_losses();
        }
    }

    /// Handles a spurious timeout: nothing is lost. With RACK, what the peer has reported stays valid.
    pub(in crate::tcp) fn on_spurious_timeout(&mut self) {
        match &mut self.rack {
            Some(rack) => rack.forget_losses(),
            None => self.clear(),
        }
    }

    /// Handles the expiry of the retransmission timer.
    pub(in crate::tcp) fn on_timeout(&mut self, now: Time, srtt: Option<Duration>) {
        if let Some(rack) = &mut self.rack {
            rack.on_timeout(now, srtt);
        }
    }

    /// Handles the end of a recovery.
    pub(in crate::tcp) fn on_recovered(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.on_recovered();
        }
    }

    /// Handles a peer that has discarded data it had reported.
    pub(in crate::tcp) fn renege(&mut self) {
        self.clear();
        if let Some(rack) = &mut self.rack {
            rack.on_reneging();
        }
    }

    /// True if nothing is SACKed.
    #[inline]
    pub(in crate::tcp) fn is_empty(&self) -> bool {
        self.sacked.is_empty()
    }

    /// Bytes of memory.
    pub(in crate::tcp) fn memory(&self) -> usize {
        self.sacked.memory() + self.rack.as_ref().map_or(0, |rack| rack.memory())
    }

    /// Forgets everything.
    pub(in crate::tcp) fn clear(&mut self) {
        self.sacked.clear();
        (self.total, self.below_lost, self.below_rxt) = (0, 0, 0);
        (self.lost_edge, self.high_rxt) = (0, 0);
        if let Some(rack) = &mut self.rack {
            rack.forget_losses();
        }
    }

    /// True if adding `start..end` leaves at most `max` ranges.
    #[inline]
    pub(in crate::tcp) fn has_room(&self, start: u64, end: u64, max: usize) -> bool {
        self.sacked.has_room(start, end, max)
    }

    /// Bytes SACKed above the cumulative acknowledgement.
    pub(in crate::tcp) fn sacked_bytes(&self) -> u64 {
        self.rack.as_ref().map_or(self.total, |rack| rack.sacked_bytes())
    }

    /// Bytes first reported by the last ACK.
    pub(in crate::tcp) fn newly_delivered(&self) -> u64 {
        self.newly
    }

    /// Records that an ACK was the first to report these bytes.
    pub(in crate::tcp) fn note_delivered(&mut self, newly: u64) {
        self.newly = newly;
    }

    /// A number that grows whenever more data is found lost.
    pub(in crate::tcp) fn losses(&self) -> u64 {
        self.rack.as_ref().map_or(self.lost_edge, |rack| rack.marked())
    }

    /// Records that the peer has `start..end`. Returns true if that is new.
    pub(in crate::tcp) fn sack(&mut self, start: u64, end: u64) -> bool {
        let (lost_edge, high_rxt) = (self.lost_edge, self.high_rxt);
        let (total, below_lost, below_rxt) = (&mut self.total, &mut self.below_lost, &mut self.below_rxt);
        self.sacked.insert(start, end, |s, e| {
            *total += e - s;
            *below_lost += overlap_below(s, e, lost_edge);
            *below_rxt += overlap_below(s, e, high_rxt);
        })
    }

    /// Moves the cumulative acknowledgement to `una`.
    #[inline]
    pub(in crate::tcp) fn advance(&mut self, una: u64) {
        if self.sacked.is_empty() {
            return;
        }
        let (lost_edge, high_rxt) = (self.lost_edge, self.high_rxt);
        let (total, below_lost, below_rxt) = (&mut self.total, &mut self.below_lost, &mut self.below_rxt);
        self.sacked.remove_below(una, |s, e| {
            *total -= e - s;
            *below_lost -= overlap_below(s, e, lost_edge);
            *below_rxt -= overlap_below(s, e, high_rxt);
        });
    }

    /// True if the first unacknowledged byte is SACKed: the peer has discarded reported data.
    pub(in crate::tcp) fn reneged(&self, una: u64) -> bool {
        self.sacked.first().is_some_and(|r| r.0 <= una)
    }

    /// Starts a recovery: nothing is retransmitted yet.
    pub(in crate::tcp) fn begin_recovery(&mut self, una: u64) {
        self.high_rxt = una;
        self.below_rxt = 0;
    }

    //= RFC 6675 §4: "The routine returns true when either DupThresh discontiguous SACKed sequences have arrived above
    //= 'SeqNum' or more than (DupThresh - 1) * SMSS bytes [...] have been SACKed"
    /// Moves `lost_edge` up after new SACKs: data is lost with `dup_thresh` ranges above it, or more than `bytes`
    /// bytes.
    pub(in crate::tcp) fn find_losses(&mut self, dup_thresh: u32, bytes: u64) {
        let (mut ranges, mut sum) = (0, 0);
        let edge = self.sacked.descending().take(dup_thresh as usize).find_map(|(start, end)| {
            ranges += 1;
            sum += end - start;
            (ranges >= dup_thresh || sum > bytes).then_some(start)
        });
        if let Some(edge) = edge {
            self.raise_lost_edge(edge);
        }
    }

    /// Marks everything below `edge` that is not SACKed as lost: after a timeout, all that was sent.
    pub(in crate::tcp) fn raise_lost_edge(&mut self, edge: u64) {
        if edge > self.lost_edge {
            self.below_lost += self.sacked.count_in(self.lost_edge, edge);
            self.lost_edge = edge;
        }
    }

    /// True if the byte at `seq`, which is not SACKed, is lost.
    pub(in crate::tcp) fn is_lost(&self, seq: u64) -> bool {
        seq < self.lost_edge
    }

    /// SetPipe (RFC 6675 §4): bytes in `una..high_data` assumed to be in the network.
    pub(in crate::tcp) fn pipe(&self, una: u64, high_data: u64) -> u64 {
        if let Some(rack) = &self.rack {
            return rack.pipe(una, high_data);
        }
        let lost_edge = self.lost_edge.clamp(una, high_data);
        let not_lost = (high_data - lost_edge) - (self.total - self.below_lost);
        let resent = self.high_rxt.saturating_sub(una).saturating_sub(self.below_rxt);
        not_lost + resent
    }

    /// NextSeg rules 1 and 3 (RFC 6675 §4): the first gap not yet retransmitted that lies below a SACKed range or below
    /// the lost edge, as `(start, end)`.
    pub(in crate::tcp) fn next_gap(&self, una: u64, only_lost: bool) -> Option<(u64, u64)> {
        if let Some(rack) = &self.rack {
            return rack.first_lost();
        }
        let from = self.high_rxt.max(una);
        let limit = if only_lost { self.lost_edge } else { self.sacked.end().max(self.lost_edge) };
        if from >= limit {
            return None;
        }
        // Above the highest SACKed range, the gap extends to the limit (after a timeout, when everything is lost).
        let (start, end) = match self.sacked.gap_from(from) {
            Some(gap) => gap,
            None => (from.max(self.sacked.end()), limit),
        };
        (start < limit).then_some((start, end.min(limit)))
    }

    //= RFC 2018 §5: "the data sender will skip that segment during any later retransmission"
    /// Where the first range begins that the peer has reported between `seq` and `edge`; `edge` if there is none, or if it begins at `seq`.
    pub(in crate::tcp) fn next_reported(&self, seq: u64, edge: u64) -> u64 {
        self.sacked.first_overlap(seq, edge).filter(|reported| reported.0 > seq).map_or(edge, |reported| reported.0)
    }

    /// Records that everything up to `end` has now been retransmitted.
    pub(in crate::tcp) fn retransmitted(&mut self, end: u64) {
        if end > self.high_rxt {
            self.below_rxt += self.sacked.count_in(self.high_rxt, end);
            self.high_rxt = end;
        }
    }

    /// One past the highest SACKed byte, or 0.
    pub(in crate::tcp) fn end(&self) -> u64 {
        self.sacked.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 6675 §4, octet by octet. Lost data stays lost: when ranges merge, fewer of them lie above a byte than
    /// before, but nothing has been recovered.
    struct Literal {
        sacked: Vec<bool>,
        lost: Vec<bool>,
        una: u64,
        high_rxt: u64,
        dup_thresh: u32,
        smss: u64,
    }

    impl Literal {
        fn is_lost(&self, seq: u64) -> bool {
            self.lost[seq as usize]
        }

        fn find_losses(&mut self) {
            for seq in 0..self.lost.len() {
                self.lost[seq] |= self.meets_is_lost(seq as u64);
            }
        }

        fn meets_is_lost(&self, seq: u64) -> bool {
            let above: Vec<bool> = (seq + 1..self.sacked.len() as u64).map(|s| self.sacked[s as usize]).collect();
            let bytes = above.iter().filter(|s| **s).count() as u64;
            let starts = above.iter().enumerate().filter(|(i, s)| **s && (*i == 0 || !above[i - 1])).count();
            starts as u32 >= self.dup_thresh || bytes > (self.dup_thresh as u64 - 1) * self.smss
        }

        fn pipe(&self) -> u64 {
            (self.una..self.sacked.len() as u64)
                .filter(|s| !self.sacked[*s as usize])
                .map(|s| !self.is_lost(s) as u64 + (s < self.high_rxt) as u64)
                .sum()
        }

        fn next_seg(&self, only_lost: bool) -> Option<u64> {
            let highest = (0..self.sacked.len() as u64).filter(|s| self.sacked[*s as usize]).max()?;
            (self.una.max(self.high_rxt)..highest)
                .find(|s| !self.sacked[*s as usize] && (!only_lost || self.is_lost(*s)))
        }
    }

    proptest! {
        /// The cursors and the literal walk of RFC 6675 agree after any sequence of SACKs, ACKs and retransmissions.
        #[test]
        fn agrees_with_the_literal_scoreboard(
            operations in prop::collection::vec((0u64..76, 1u64..10, 0u8..4), 1..40), smss in 1u64..6
        ) {
            let high_data = 80;
            let mut fast = Scoreboard::default();
            let none = vec![false; high_data as usize];
            let mut slow = Literal { sacked: none.clone(), lost: none, una: 0, high_rxt: 0, dup_thresh: 3, smss };
            for (seq, len, what) in operations {
                match what {
                    0 | 1 if seq > slow.una => {
                        let end = (seq + len).min(high_data);
                        let news = (seq..end).any(|s| !slow.sacked[s as usize]);
                        (seq..end).for_each(|s| slow.sacked[s as usize] = true);
                        prop_assert_eq!(fast.sack(seq, end), news);
                        fast.find_losses(3, 2 * smss);
                        slow.find_losses();
                    }
                    2 => {
                        let Some(start) = slow.next_seg(false) else { continue };
                        let (gap, end) = fast.next_gap(slow.una, false).expect("the literal one has a gap");
                        prop_assert_eq!(gap, start);
                        let end = end.min(start + smss);
                        fast.retransmitted(end);
                        slow.high_rxt = end;
                    }
                    3 if seq > slow.una => {
                        // If the receiver has everything below seq, the ACK jumps to the next gap.
                        let una = (seq..high_data).find(|s| !slow.sacked[*s as usize]).unwrap_or(high_data);
                        (slow.una..una).for_each(|s| slow.sacked[s as usize] = true);
                        slow.una = una;
                        slow.high_rxt = slow.high_rxt.max(una);
                        fast.advance(una);
                        fast.retransmitted(una);
                    }
                    _ => {}
                }
                // Bytes that the ACK covers count as arrived for the literal IsLost. The fast version has dropped them,
                // but only below una, which is never asked for.
                let lost = (slow.una..high_data).filter(|s| !slow.sacked[*s as usize] && slow.is_lost(*s)).count();
                let fast_lost = (slow.una..high_data).filter(|s| !slow.sacked[*s as usize] && fast.is_lost(*s)).count();
                prop_assert_eq!(fast_lost, lost);
                prop_assert_eq!(fast.pipe(slow.una, high_data), slow.pipe());
                for only_lost in [true, false] {
                    prop_assert_eq!(fast.next_gap(slow.una, only_lost).map(|g| g.0), slow.next_seg(only_lost));
                }
            }
        }
    }
}
