//! Chooses the connection of a capture: the direction with the most data, at one interface.
//!
//! A first pass over the file counts. With several interfaces, or with one that joins them all, a packet is captured more than once;
//! only one interface is used, and the copies at that one are dropped by the [`ledger`](crate::ledger).

use std::collections::HashMap;

use bentpipe_engine::wire::ip::{Addresses, Ports};

use crate::header::Header;

/// Directions of connections that are counted. More are of a scan or an attack, and the largest transfer is early among them or not to
/// be found.
const MAX_FLOWS: usize = 1 << 16;

/// A direction of a connection at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    pub(crate) interface: u32,
    pub(crate) addresses: Addresses,
    pub(crate) ports: Ports,
}

impl Flow {
    pub(crate) fn of(interface: u32, header: &Header) -> Self {
        Flow { interface, addresses: header.addresses, ports: header.ports }
    }

    /// True if the other is the same connection at the same interface, this way or back.
    pub(crate) fn same_connection(&self, other: &Flow) -> bool {
        *self == *other || *self == other.reversed()
    }

    pub(crate) fn reversed(self) -> Self {
        Flow { interface: self.interface, addresses: self.addresses.reversed(), ports: self.ports.reversed() }
    }
}

#[derive(Clone, Copy, Default)]
struct Count {
    /// Order of the first packet.
    place: usize,
    payload: u64,
    /// Longest payload of a packet with its options.
    longest: u32,
    first: i64,
    last: i64,
}

/// Counts of all directions.
#[derive(Default)]
pub(crate) struct Choice {
    flows: HashMap<Flow, Count>,
}

/// The chosen direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    pub(crate) flow: Flow,
    /// Longest payload of a packet with its options, which count for the maximum segment size (RFC 9293 §3.7.1).
    pub(crate) longest: u32,
    /// Connections in the file, without it.
    pub(crate) others: usize,
    /// Share of the payload the same way, at the same interface and during the connection, that others had.
    pub(crate) others_share: f64,
}

impl Choice {
    /// Counts a segment.
    pub(crate) fn count(&mut self, at: i64, flow: Flow, header: &Header) {
        let place = self.flows.len();
        if place >= MAX_FLOWS && !self.flows.contains_key(&flow) {
            return;
        }
        let count = self.flows.entry(flow).or_insert(Count { place, first: at, ..Count::default() });
        count.payload += u64::from(header.payload);
        count.longest = count.longest.max(header.payload + header.options_len());
        count.last = at;
    }

    /// The direction with the most payload, the first of equals; `None` if none has any.
    pub(crate) fn chosen(&self) -> Option<Chosen> {
        let most = |a: &(&Flow, &Count), b: &(&Flow, &Count)| (a.1.payload, b.1.place).cmp(&(b.1.payload, a.1.place));
        let (flow, count) = self.flows.iter().filter(|(_, count)| count.payload > 0).max_by(most)?;
        // The same way: from the same network, which one capture cannot know; so from the same address, or to the same.
        let (source, destination) = (flow.addresses.source(), flow.addresses.destination());
        let beside = self.flows.iter().filter(|(other, others)| {
            let along = other.addresses.source() == source || other.addresses.destination() == destination;
            let during = others.first < count.last && others.last > count.first;
            *other != flow && other.interface == flow.interface && along && during
        });
        let payload: u64 = beside.map(|(_, others)| others.payload).sum();
        let connections = self.flows.keys().filter(|other| !other.same_connection(flow));
        let forward = connections.filter(|other| {
            // Each connection once, though both directions are counted.
            let back = other.reversed();
            self.flows.get(&back).is_none_or(|count| count.place > self.flows[other].place)
        });
        Some(Chosen {
            flow: *flow,
            longest: count.longest,
            others: forward.filter(|other| other.interface == flow.interface).count(),
            others_share: payload as f64 / (payload + count.payload) as f64,
        })
    }
}
