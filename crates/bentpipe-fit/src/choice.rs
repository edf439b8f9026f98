//! Chooses the connection of a capture to analyse: the direction with the most data, at one interface.
//!
//! A first pass over the file counts. With several interfaces, or with one that joins them all, a packet is captured
//! more than once. Only one interface is used, and copies at that interface are dropped by the
//! [`ledger`](crate::ledger).

use std::collections::HashMap;

use bentpipe_engine::wire::ip::{Addresses, Ports};

use crate::header::Header;

/// Maximum number of counted directions of connections. If there are more, they belong to a scan or an attack. The
/// largest transfer is then either early among them or cannot be found.
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

    /// True if `other` is the same connection at the same interface, in either direction.
    pub(crate) fn same_connection(&self, other: &Flow) -> bool {
        *self == *other || *self == other.reversed()
    }

    pub(crate) fn reversed(self) -> Self {
        Flow { interface: self.interface, addresses: self.addresses.reversed(), ports: self.ports.reversed() }
    }
}

#[derive(Clone, Copy, Default)]
struct Count {
    /// Rank of the first packet among all directions.
    place: usize,
    payload: u64,
    /// Length of the longest payload of a packet, including its options.
    longest: u32,
    first: i64,
    last: i64,
}

/// The counts of all directions.
#[derive(Default)]
pub(crate) struct Choice {
    flows: HashMap<Flow, Count>,
}

/// The chosen direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    pub(crate) flow: Flow,
    /// Length of the longest payload of a packet, including its options, which count towards the maximum segment size
    /// (RFC 9293 §3.7.1).
    pub(crate) longest: u32,
    /// Number of other connections in the file.
    pub(crate) others: usize,
    /// Share of the payload that other connections sent in the same direction, at the same interface and during this
    /// connection.
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

    /// The direction with the most payload, the first among equals; `None` if no direction has any.
    pub(crate) fn chosen(&self) -> Option<Chosen> {
        let most = |a: &(&Flow, &Count), b: &(&Flow, &Count)| (a.1.payload, b.1.place).cmp(&(b.1.payload, a.1.place));
        let (flow, count) = self.flows.iter().filter(|(_, count)| count.payload > 0).max_by(most)?;
        // The same direction means from the same network, which a single capture cannot know. So it is taken to mean
        // from the same address, or to the same address.
        let (source, destination) = (flow.addresses.source(), flow.addresses.destination());
        let beside = self.flows.iter().filter(|(other, others)| {
            let along = other.addresses.source() == source || other.addresses.destination() == destination;
            let during = others.first < count.last && others.last > count.first;
            !other.same_connection(flow) && other.interface == flow.interface && along && during
        });
        let payload: u64 = beside.map(|(_, others)| others.payload).sum();
        let connections = self.flows.keys().filter(|other| !other.same_connection(flow));
        let forward = connections.filter(|other| {
            // Each connection counts once, though both its directions are counted.
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// A packet to port 80 between the hosts with these numbers.
    fn header(from: u8, to: u8, port: u16, payload: u32) -> Header {
        let address = |host: u8| Ipv4Addr::new(10, 0, 0, host);
        Header {
            addresses: Addresses::V4 { source: address(from), destination: address(to) },
            ports: Ports { source: port, destination: 80 },
            seq: 0,
            ack: 0,
            flags: Header::ACK,
            window: 0,
            payload,
            headers: 40,
            id: 0,
            options: Default::default(),
            is_cut: false,
        }
    }

    /// Two packets at the first and the last of these times.
    fn count(choice: &mut Choice, times: [i64; 2], interface: u32, header: Header) {
        times.into_iter().for_each(|at| choice.count(at, Flow::of(interface, &header), &header));
    }

    /// The transfer from 1 to 2 has 2000 bytes between 10 and 20. What goes from 1 or to 2 meanwhile shares its path: two connections of
    /// 500 bytes. What ends before or begins after it, goes elsewhere, or is seen at another interface, does not.
    #[test]
    fn others_count_if_they_share_path_and_time() {
        let mut choice = Choice::default();
        count(&mut choice, [10, 20], 0, header(1, 2, 1, 1000));
        let answer = Header { ports: Ports { source: 80, destination: 1 }, ..header(2, 1, 80, 0) };
        count(&mut choice, [10, 20], 0, answer);
        for (times, interface, from, to) in [
            ([12, 15], 0, 1, 3),
            ([5, 11], 0, 4, 2),
            ([12, 15], 0, 4, 5),
            ([0, 10], 0, 1, 6),
            ([20, 30], 0, 1, 7),
            ([12, 15], 1, 1, 3),
        ] {
            count(&mut choice, times, interface, header(from, to, 9, 250));
        }
        let chosen = choice.chosen().expect("a transfer");
        assert_eq!((chosen.flow.ports.source, chosen.longest), (1, 1000));
        assert_eq!(chosen.others_share, 1000.0 / 3000.0);
        // At the same interface, the connection's own acknowledgements do not count.
        assert_eq!(chosen.others, 5);
    }

    /// On a loopback device both ends have one address. The connection's own answers are still not another connection's.
    #[test]
    fn its_own_answers_do_not_share_the_path() {
        let mut choice = Choice::default();
        count(&mut choice, [10, 20], 0, header(1, 1, 9, 1000));
        let answer = Header { ports: Ports { source: 80, destination: 9 }, ..header(1, 1, 80, 300) };
        count(&mut choice, [10, 20], 0, answer);
        let chosen = choice.chosen().expect("a transfer");
        assert_eq!((chosen.others, chosen.others_share), (0, 0.0));
    }

    /// Of equal transfers the first is chosen. With as many directions as are kept, known ones still count and new ones do not.
    #[test]
    fn the_first_of_many() {
        let mut choice = Choice::default();
        for port in 0..MAX_FLOWS {
            choice.count(0, Flow::of(0, &header(1, 2, port as u16, 1)), &header(1, 2, port as u16, 1));
        }
        assert_eq!(choice.chosen().expect("a transfer").flow.ports.source, 0);
        let late = header(1, 3, 1, 1_000_000);
        choice.count(1, Flow::of(0, &late), &late);
        let known = header(1, 2, 7, 1);
        choice.count(1, Flow::of(0, &known), &known);
        let chosen = choice.chosen().expect("a transfer");
        assert_eq!((chosen.flow.ports.source, chosen.longest, choice.flows.len()), (7, 1, MAX_FLOWS));
    }
}
