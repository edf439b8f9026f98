//! Frames from the peer: validation, order and delivery.

use alloc::vec::Vec;

use super::{End, MAX_OUTPUTS};
use crate::arq::{Skip, Taken};
use crate::slacp::config::Order;
use crate::slacp::exchange::{Output, Verdict};
use crate::slacp::frame::Frame;
use crate::slacp::incoming::Recovery;
use crate::slacp::releasing::Ready;
use crate::units::{Duration, Time};

impl End {
    pub(super) fn on_frame(&mut self, now: Time, frame: Frame) -> Verdict {
        if self.outputs.len() > MAX_OUTPUTS {
            return Verdict::Refused;
        }
        if let Frame::Report(report) = frame {
            self.on_report(now, &report);
            return Verdict::Accepted;
        }
        let number = frame.number().expect("all but reports have one");
        if self.history.has(number) {
            return Verdict::Refused;
        }
        // This comes before the verdict: if packets are grouped after this silence, those of this frame are too.
        let missing = self.history.newest().map_or(0, |newest| number.saturating_sub(newest + 1));
        self.releasing.heard(now, missing, self.round_trip());
        // A frame that arrives too early, while packets before it wait for their release, or too late for its block is
        // not recorded. It counts as lost, so its sender repeats it.
        if let Frame::Data { channel, seq, .. } = frame
            && self.has(channel, seq)
            && self.history.has_paused(now, self.round_trip().saturating_mul(3).div_floor(4))
        {
            // A probe with a packet that has arrived, and not a copy, which follows sooner: our reports were lost.
            self.history.want_whole();
        }
        let (verdict, whole) = self.take(now, &frame);
        if whole {
            self.history.on_frame(now, number);
        }
        verdict
    }

    /// Handles a frame from the line. Returns true if everything in it was recorded, so that it may be reported as received.
    fn take(&mut self, now: Time, frame: &Frame) -> (Verdict, bool) {
        const REFUSED: (Verdict, bool) = (Verdict::Refused, false);
        match *frame {
            Frame::Data { channel, floor, .. }
            | Frame::Repair { channel, floor, .. }
            | Frame::Sync { channel, floor, .. }
                if !self.incoming.get_mut(usize::from(channel)).is_some_and(|incoming| incoming.allows(floor)) =>
            {
                REFUSED
            }
            Frame::Data { channel, seq, behind, floor, len, .. } => {
                // First, packets that waited for abandoned ones are delivered, since they precede this one.
                self.skip_to(now, channel, floor.min(seq));
                let reaches = self.incoming.get(channel as usize).is_some_and(|incoming| incoming.order.reaches(seq));
                if reaches { (self.on_data(now, channel, seq, behind, len), true) } else { REFUSED }
            }
            Frame::Repair { channel, first, count, index, floor, .. } => {
                let Some(incoming) = self.incoming.get_mut(channel as usize) else { return REFUSED };
                if !incoming.takes_repair(first, count) {
                    return REFUSED;
                }
                let recovery = incoming.on_repair(first, count, index);
                let kept = recovery.is_some();
                self.recover(channel, recovery.flatten());
                let whole = self.skip_to(now, channel, floor);
                (if kept { Verdict::Kept } else { Verdict::Accepted }, whole)
            }
            Frame::Sync { channel, floor, .. } => (Verdict::Accepted, self.skip_to(now, channel, floor)),
            Frame::Report(_) => REFUSED,
        }
    }

    pub(super) fn on_data(&mut self, now: Time, channel: u8, seq: u64, behind: u32, len: u32) -> Verdict {
        let Some(incoming) = self.incoming.get_mut(channel as usize) else { return Verdict::Refused };
        let (taken, recovery) = incoming.on_data(now, seq, behind, len);
        match taken {
            Taken::Passes if self.repeats(channel) && self.releasing.groups(now) => {
                self.releasing.wait(now, (channel, seq), self.round_trip());
            }
            Taken::Passes => self.pass(now, channel, seq),
            Taken::Waits => {}
            Taken::Refused => self.outgoing[channel as usize].stats.refused += 1,
        }
        self.recover(channel, recovery);
        if taken == Taken::Refused { Verdict::Accepted } else { Verdict::Kept }
    }

    fn recover(&mut self, channel: u8, recovery: Option<Recovery>) {
        let Some((first, count, missing)) = recovery else { return };
        self.outputs.extend(missing.into_iter().map(|seq| Output::Recover { channel, seq, first, count }));
    }

    /// Records that no frame below the floor will arrive any more. Returns true if that was recorded for all of them.
    fn skip_to(&mut self, now: Time, channel: u8, floor: u64) -> bool {
        let Some(incoming) = self.incoming.get_mut(channel as usize) else { return false };
        let mut freed = Vec::new();
        let (outputs, stats) = (&mut self.outputs, &mut self.outgoing[channel as usize].stats);
        let whole = incoming.skip_to(floor, |skip| match skip {
            Skip::Skipped(seqs) => {
                stats.skipped += seqs.end - seqs.start;
                outputs.push_back(Output::Skip { channel, seqs });
            }
            Skip::Freed(seq) => freed.push(seq),
        });
        for seq in freed {
            self.release(now, channel, seq);
        }
        whole
    }

    /// Delivers a packet that arrived in order, and those that waited behind it.
    fn pass(&mut self, now: Time, channel: u8, seq: u64) {
        if let Some(follower) = self.deliver(now, channel, seq) {
            self.release(now, channel, follower);
        }
    }

    /// The measured round trip, or the configured one before the first sample.
    pub(super) fn round_trip(&self) -> Duration {
        self.flight.srtt().unwrap_or(self.initial_rtt)
    }

    /// True if a channel retransmits its lost packets and later ones wait for them.
    fn repeats(&self, channel: u8) -> bool {
        let config = &self.outgoing[channel as usize].config;
        config.arq.is_some() && config.order != Order::None
    }

    /// Releases a packet that waited: at its release time, or at once.
    fn release(&mut self, now: Time, channel: u8, seq: u64) {
        if self.releasing.holds(now) {
            self.releasing.wait(now, (channel, seq), self.round_trip());
            return;
        }
        let mut next = Some(seq);
        while let Some(seq) = next {
            next = self.deliver(now, channel, seq);
        }
    }

    fn deliver(&mut self, now: Time, channel: u8, seq: u64) -> Option<u64> {
        let order = &mut self.incoming[channel as usize].order;
        let held = now.saturating_since(order.frame(seq).1);
        let follower = order.passed(seq);
        while let Some(freed) = order.freed() {
            self.releasing.follow((channel, freed));
        }
        let stats = &mut self.outgoing[channel as usize].stats;
        stats.delivered += 1;
        stats.held += held;
        stats.longest_hold = stats.longest_hold.max(held);
        self.outputs.push_back(Output::Deliver { channel, seq });
        follower
    }

    //= transat §5: the burst of packets after a repair should be spread
    pub(super) fn release_due(&mut self, now: Time) {
        let incoming = &self.incoming;
        let length = |(channel, seq): Ready| incoming[channel as usize].order.frame(seq).0;
        if let Some((channel, seq)) = self.releasing.pop(now, length)
            && let Some(follower) = self.deliver(now, channel, seq)
        {
            self.releasing.follow((channel, follower));
        }
    }
}
