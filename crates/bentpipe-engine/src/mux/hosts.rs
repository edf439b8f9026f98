//! Hosts, what each of them has to send, and whose turn it is.
//!
//! A host is charged for everything that it causes: data, openings, credit and resets. A host that opens and resets
//! streams in a loop thus uses up only its own turns.

use alloc::collections::BTreeMap;
use core::net::{IpAddr, Ipv6Addr};

use crate::turns::{Line, Turn, Turns};
use crate::wire::mux::StreamId;

/// A client's host. For IPv6 it is the /64 network, in which a host may use any address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host(IpAddr);

impl Host {
    /// The host with this address.
    pub fn of(address: IpAddr) -> Host {
        Host(match address.to_canonical() {
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
            ip => ip,
        })
    }
}

/// What a host or stream may send in one turn: TCP's initial window (RFC 6928), so that a short answer fits into one
/// turn.
const QUANTUM: i64 = 14_600;

/// What a host has to send.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Number of its streams, and how many of them were opened here, counted until their reset is sent.
    pub(super) streams: u32,
    pub(super) own: u32,
    pub(super) resets: Line<StreamId>,
    pub(super) credits: Line<StreamId>,
    pub(super) turns: Turns<StreamId, QUANTUM>,
    turn: Turn,
}

impl Queue {
    fn has_something(&self) -> bool {
        !self.resets.is_empty() || !self.credits.is_empty() || !self.turns.is_empty()
    }
}

/// All hosts that have streams or something to send.
#[derive(Clone, Debug, Default)]
pub(super) struct Hosts {
    queues: BTreeMap<Host, Queue>,
    turns: Turns<Host, QUANTUM>,
}

impl Hosts {
    /// Known hosts.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.queues.len()
    }

    /// The queue of a host, mutable; [`Hosts::settle`] must follow.
    pub(super) fn queue(&mut self, host: Host) -> &mut Queue {
        self.queues.entry(host).or_default()
    }

    /// Number of a host's streams that were opened here.
    pub(super) fn own(&self, host: Host) -> u32 {
        self.queues.get(&host).map_or(0, |queue| queue.own)
    }

    /// To be called when a host's queue has changed: schedules the host, or forgets it if it has nothing left. A host
    /// that has used part of its turn is remembered until all others have had theirs. Otherwise it would immediately
    /// count as a new host again and go first.
    pub(super) fn settle(&mut self, host: Host) {
        let Some(queue) = self.queues.get_mut(&host) else { return };
        if queue.has_something() {
            self.turns.wake(host, &mut queue.turn);
        } else if queue.streams == 0 && Turns::<Host, QUANTUM>::is_unused(&queue.turn) {
            self.turns.remove(&mut queue.turn);
            self.queues.remove(&host);
        }
    }

    /// The host that may send next, with its queue.
    pub(super) fn next(&mut self) -> Option<(Host, &mut Queue)> {
        loop {
            let host = self.turns.head()?;
            let queue = self.queues.get_mut(&host)?;
            if !queue.has_something() {
                self.turns.rest(&mut queue.turn);
                self.settle(host);
            } else if queue.turn.deficit <= 0 {
                self.turns.rotate(&mut queue.turn);
            } else {
                break;
            }
        }
        let host = self.turns.head()?;
        self.queues.get_mut(&host).map(|queue| (host, queue))
    }

    /// Charges a host for something that it has sent.
    pub(super) fn charge(&mut self, host: Host, cost: i64) {
        if let Some(queue) = self.queues.get_mut(&host) {
            queue.turn.deficit -= cost;
        }
        self.settle(host);
    }
}
