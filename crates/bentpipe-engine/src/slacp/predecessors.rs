//! Finds the packet that precedes a packet of a channel.

use alloc::collections::BTreeMap;

use super::config::{Order, SlacpConfig};

const MAX_WINDOW: u64 = SlacpConfig::MAX_WINDOW as u64;

/// The last packet of each flow of a channel.
#[derive(Clone, Debug)]
pub(super) struct Predecessors {
    order: Order,
    flows: BTreeMap<u64, u64>,
    next_purge: u64,
    /// The next packet at the last [`Predecessors::forget`].
    sent_before: u64,
}

impl Predecessors {
    pub(super) fn new(order: Order) -> Self {
        Predecessors { order, flows: BTreeMap::new(), next_purge: MAX_WINDOW, sent_before: 0 }
    }

    /// Records that packet `seq` of a flow is sent. Returns the distance back to its predecessor; 0 if there is none within
    /// a window.
    pub(super) fn of(&mut self, seq: u64, flow: u64) -> u32 {
        let before = match self.order {
            Order::None => None,
            Order::Channel => seq.checked_sub(1),
            Order::Flow => {
                // A receiver that paces deliveries may still hold packets that were acknowledged long ago, so a flow is
                // forgotten only when its last packet is a whole window back. The flows are checked once per window.
                if seq >= self.next_purge {
                    self.next_purge = seq + MAX_WINDOW;
                    self.flows.retain(|_, &mut last| seq - last <= MAX_WINDOW);
                }
                self.flows.insert(flow, seq)
            }
        };
        before.map(|before| seq - before).filter(|&distance| distance <= MAX_WINDOW).map_or(0, |d| d as u32)
    }

    /// Forgets the flows whose last packet was sent before the last call and is below `first`, so that the peer has it.
    /// Returns true if other flows remain. `next`: the number of the next packet.
    pub(super) fn forget(&mut self, first: u64, next: u64) -> bool {
        let from = core::mem::replace(&mut self.sent_before, next).min(first);
        self.flows.retain(|_, &mut last| last >= from);
        !self.flows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_forgotten_when_it_was_silent_and_is_done() {
        let mut predecessors = Predecessors::new(Order::Flow);
        assert_eq!([(0, 7), (1, 8), (2, 7)].map(|(seq, flow)| predecessors.of(seq, flow)), [0, 0, 2]);
        // All are acknowledged, but were sent recently.
        assert!(predecessors.forget(3, 3));
        assert_eq!(predecessors.of(3, 8), 2);
        assert!(predecessors.forget(3, 4));
        assert_eq!((predecessors.of(4, 7), predecessors.of(5, 8)), (0, 2), "7 was silent");
        // The last two are not acknowledged.
        assert!(predecessors.forget(4, 6) && predecessors.forget(4, 6));
        assert_eq!((predecessors.of(6, 7), predecessors.of(7, 8)), (2, 2));
        predecessors.forget(8, 8);
        assert!(!predecessors.forget(8, 8));
    }

    #[test]
    fn a_predecessor_is_a_window_back_at_most() {
        let mut predecessors = Predecessors::new(Order::Flow);
        assert_eq!([(0, 7), (1, 8)].map(|(seq, flow)| predecessors.of(seq, flow)), [0, 0]);
        assert_eq!(predecessors.of(MAX_WINDOW, 7), MAX_WINDOW as u32);
        assert_eq!(predecessors.of(MAX_WINDOW + 2, 8), 0);
    }
}
