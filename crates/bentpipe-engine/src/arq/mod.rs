//! Selective-repeat ARQ over a link: transmissions, arrivals, and delivery order.
//!
//! `hybrid`'s link layer and S-LACP share this implementation. Every transmission has its own number, so a repeated
//! frame gets a new one. The receiver reports which numbers arrived. On a link that preserves order, each older number
//! that did not arrive is lost. No transmission is ambiguous, so each is judged once, whatever the window is.
//!
//! Reading order: [`Flight`] (the sender's transmissions), [`History`] (the receiver's record of them), [`Resequencer`]
//! (the order per flow). They handle only numbers; the driver has the frames and their bytes.

mod flight;
mod history;
mod resequencer;

pub(crate) use crate::wire::slacp::Report;
pub(crate) use flight::{Flight, Verdict};
pub(crate) use history::History;
pub(crate) use resequencer::{Resequencer, Skip, Taken};

use alloc::collections::VecDeque;

/// Returns memory that a ring no longer needs after a burst to the system.
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
