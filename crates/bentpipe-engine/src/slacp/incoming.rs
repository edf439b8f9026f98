//! A channel at the receiver: order, and the blocks that can be completed.

use super::config::ChannelConfig;
use super::fec::Decoder;
use crate::arq::{Resequencer, Skip, Taken};
use crate::units::Time;

#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) order: Resequencer,
    decoder: Option<Decoder>,
}

/// Packets that have to be computed: the block's first one, how many it has, and which are missing.
pub(super) type Recovery = (u64, u8, Vec<u64>);

impl Incoming {
    pub(super) fn new(config: &ChannelConfig, window: u32) -> Self {
        Incoming { order: Resequencer::new(window), decoder: config.fec.map(|_| Decoder::default()) }
    }

    pub(super) fn on_data(&mut self, now: Time, seq: u64, behind: u32, len: u32) -> (Taken, Option<Recovery>) {
        let taken = self.order.on_frame(now, seq, behind, len);
        (taken, if taken == Taken::Refused { None } else { self.completed(seq) })
    }

    pub(super) fn on_repair(&mut self, first: u64, count: u8, index: u8) -> Option<Recovery> {
        if first + (count as u64) <= self.order.next() {
            return None;
        }
        self.decoder.as_mut()?.on_repair(first, count, index);
        self.completed(first)
    }

    fn completed(&mut self, seq: u64) -> Option<Recovery> {
        let order = &self.order;
        self.decoder.as_mut()?.complete(seq, |seq| order.has(seq))
    }

    pub(super) fn skip_to(&mut self, floor: u64, heard: impl FnMut(Skip)) {
        self.order.skip_to(floor, heard);
    }
}
