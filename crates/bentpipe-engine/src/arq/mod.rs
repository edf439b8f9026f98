//! Selective-repeat ARQ over a link: transmissions, arrivals, and delivery order.
//!
//! One implementation for `hybrid`'s link layer and for S-LACP. Every transmission has a number of its own, so a
//! repeated frame gets a new one. The receiver reports which numbers arrived. On a link that keeps the order, each
//! older number that did not arrive is lost. No transmission is ambiguous, so each is judged once, whatever the window
//! is.
//!
//! Reading order: [`Flight`] the sender's transmissions, [`History`] the receiver's record of them, [`Resequencer`]
//! order per flow. They handle numbers; frames and their bytes are the driver's.

mod flight;
mod history;
mod resequencer;

pub(crate) use crate::wire::slacp::Report;
pub(crate) use flight::{Flight, Verdict};
pub(crate) use history::History;
pub(crate) use resequencer::{Resequencer, Skip, Taken};

use std::collections::VecDeque;

/// Returns to the system what a ring needs no more after a burst.
pub(crate) fn trim<T>(ring: &mut VecDeque<T>) {
    const SMALL: usize = 1024;
    let enough = (2 * ring.len()).max(SMALL);
    if ring.capacity() > 2 * enough {
        ring.shrink_to(enough);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_shrinks_only_when_it_is_nearly_empty() {
        let mut ring: VecDeque<u64> = (0..20_000).collect();
        trim(&mut ring);
        assert!(ring.capacity() >= 20_000);
        ring.truncate(3000);
        trim(&mut ring);
        assert!((6000..10_000).contains(&ring.capacity()), "{}", ring.capacity());
        ring.clear();
        trim(&mut ring);
        assert!((1024..2048).contains(&ring.capacity()), "{}", ring.capacity());
    }
}
