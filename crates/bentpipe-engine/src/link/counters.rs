//! The counters of a link.

use crate::probe::DropReason;

/// Counters. Every offered packet is either in one of them or in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered.
    pub offered: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Lost because the queue was full.
    pub dropped_full: u64,
    /// Dropped before the queue was full: by RED, CoDel, FQ-CoDel, DualPI2 or early packet discard.
    pub dropped_early: u64,
    /// Lost on the channel.
    pub dropped_channel: u64,
    /// Lost because the drop list names them.
    pub dropped_listed: u64,
    /// Dropped because they exceed the link's MTU.
    pub dropped_too_long: u64,
    /// Delivered with a flipped bit; also counted as delivered.
    pub corrupted: u64,
    /// Delivered twice; counted once as delivered.
    pub duplicated: u64,
    /// Marked by the queue instead of dropped (RFC 3168).
    pub marked: u64,
    /// Bytes delivered, including the link's own headers. Not beside `delivered`: the compiler would then add to both at once by vector
    /// instructions, six instead of two.
    pub delivered_bytes: u64,
    /// Maximum number of waiting packets, if the queue can refuse packets; otherwise 0.
    pub max_waiting: u32,
}

impl LinkCounters {
    /// The sum of all losses.
    pub const fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_early + self.dropped_channel + self.dropped_listed + self.dropped_too_long
    }

    /// Counts an offered packet, either admitted with this many waiting or dropped for this reason. Returns true at a
    /// new maximum.
    #[inline(always)]
    pub(super) fn note_offered(&mut self, admitted: Result<u32, DropReason>) -> bool {
        self.offered += 1;
        match admitted {
            Ok(waiting) => {
                let is_record = waiting > self.max_waiting;
                self.max_waiting = self.max_waiting.max(waiting);
                return is_record;
            }
            Err(reason) => *self.dropped_for(reason) += 1,
        }
        false
    }

    /// The counter of a drop reason.
    pub(crate) fn dropped_for(&mut self, reason: DropReason) -> &mut u64 {
        match reason {
            DropReason::QueueFull => &mut self.dropped_full,
            DropReason::Early => &mut self.dropped_early,
            DropReason::Channel => &mut self.dropped_channel,
            DropReason::Listed => &mut self.dropped_listed,
            DropReason::TooLong => &mut self.dropped_too_long,
        }
    }
}
