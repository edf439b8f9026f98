//! A channel at the receiver: the order of delivery, and the blocks that can be restored.

use alloc::vec::Vec;

use super::config::ChannelConfig;
use super::fec::Decoder;
use crate::arq::{Resequencer, Skip, Taken};
use crate::units::{Duration, Time};

#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) order: Resequencer,
    /// True if the sender never gives up a packet.
    is_whole: bool,
    /// Number of consecutive frames whose floor lies above a missing packet, although the sender never gives one up.
    impossible: u32,
    decoder: Option<Decoder>,
}

/// Number of consecutive impossible frames after which a channel cannot continue.
const MAX_IMPOSSIBLE: u32 = 1000;

/// A block to restore: its first packet, its number of packets, and the missing ones.
pub(super) type Recovery = (u64, u8, Vec<u64>);

impl Incoming {
    pub(super) fn new(config: &ChannelConfig, window: u32, repairable: Duration, paced: bool) -> Self {
        let order = if paced { Resequencer::paced(window) } else { Resequencer::new(window) };
        let is_whole = config.arq.is_some_and(|arq| arq.transmissions.is_none());
        Incoming { order, is_whole, impossible: 0, decoder: config.fec.map(|_| Decoder::new(repairable)) }
    }

    pub(super) fn on_data(&mut self, now: Time, seq: u64, behind: u32, len: u32) -> (Taken, Option<Recovery>) {
        let taken = self.order.on_frame(now, seq, behind, len);
        if taken != Taken::Refused
            && let Some(decoder) = &mut self.decoder
        {
            decoder.on_data(now, seq);
        }
        (taken, if taken == Taken::Refused { None } else { self.completed(seq) })
    }

    /// True if a repair frame may still be useful.
    pub(super) fn takes_repair(&mut self, first: u64, count: u8) -> bool {
        let (next, end) = (self.order.next(), first + count as u64);
        let Some(decoder) = &mut self.decoder else { return true };
        end <= next || self.order.reaches(end - 1) && decoder.takes(first, count, next)
    }

    /// True if the block that begins at `first` waits for more frames.
    pub(super) fn waits_for(&self, first: u64) -> bool {
        self.decoder.as_ref().is_some_and(|decoder| decoder.waits_for(first, self.order.next()))
    }

    /// True if a packet may be needed to restore others.
    pub(super) fn needs(&self, seq: u64) -> bool {
        self.decoder.as_ref().is_some_and(|decoder| decoder.needs(seq))
    }

    /// Takes a repair frame that has arrived. Returns `None` if it is useless.
    pub(super) fn on_repair(&mut self, first: u64, count: u8, index: u8) -> Option<Option<Recovery>> {
        if first + (count as u64) <= self.order.next() {
            return None;
        }
        self.decoder.as_mut()?.on_repair(first, count, index);
        Some(self.completed(first))
    }

    fn completed(&mut self, seq: u64) -> Option<Recovery> {
        let order = &self.order;
        self.decoder.as_mut()?.complete(seq, |seq| order.has(seq))
    }

    /// True if a frame may claim that no packet below `floor` will arrive any more. If the sender never gives up
    /// packets, all of them must have arrived.
    pub(super) fn allows(&mut self, floor: u64) -> bool {
        let allows = !self.is_whole || self.order.rise_to(floor);
        self.impossible = if allows { 0 } else { self.impossible.saturating_add(1) };
        allows
    }

    /// True if so many consecutive frames made an impossible claim that no valid one can be expected.
    pub(super) fn is_stuck(&self) -> bool {
        self.impossible >= MAX_IMPOSSIBLE
    }

    /// Records that no packet below the floor will arrive any more. Returns true if that was recorded for all of them.
    pub(super) fn skip_to(&mut self, floor: u64, heard: impl FnMut(Skip)) -> bool {
        self.order.skip_to(floor, heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slacp::config::{Fec, Repairs};

    const FEC: Fec = Fec {
        block: 20,
        first_block: None,
        worth: 0.0,
        interval: Duration::from_millis(100),
        max_overhead: 1.0,
        repairs: Repairs::Spare,
    };

    /// A thousand impossible frames in a row, not some in the course of time.
    #[test]
    fn a_valid_frame_ends_the_doubt() {
        let mut incoming = Incoming::new(&ChannelConfig::reliable(), 100, Duration::ZERO, false);
        for _ in 0..2 {
            assert!((0..999).all(|_| !incoming.allows(1) && !incoming.is_stuck()));
            assert!(incoming.allows(0));
        }
        assert!((0..999).all(|_| !incoming.allows(1)) && !incoming.is_stuck());
        assert!(!incoming.allows(1) && incoming.is_stuck());
    }

    /// A repair frame of packets that are done is no loss, though it is useless; one of packets beyond the window is refused.
    #[test]
    fn repairs_of_the_window_are_taken() {
        let config = ChannelConfig { fec: Some(FEC), ..ChannelConfig::reliable() };
        let mut incoming = Incoming::new(&config, 100, Duration::ZERO, false);
        for seq in 0..10 {
            assert_eq!(incoming.on_data(Time::ZERO, seq, 0, 100).0, Taken::Passes);
            incoming.order.passed(seq);
        }
        // The window ends before 110. 64 incomplete blocks leave no room for more.
        for (first, count, taken) in [(0, 10, true), (0, 11, true), (100, 10, true), (100, 11, false)] {
            assert_eq!(incoming.takes_repair(first, count), taken, "{first} {count}");
        }
        let decoder = incoming.decoder.as_mut().expect("repairs");
        (0..64).for_each(|n| decoder.on_repair(1000 + 10 * n, 10, 0));
        assert_eq!([(0, 10), (0, 11)].map(|(first, count)| incoming.takes_repair(first, count)), [true, false]);
        assert_eq!(incoming.on_repair(0, 10, 0), None);
    }
}
