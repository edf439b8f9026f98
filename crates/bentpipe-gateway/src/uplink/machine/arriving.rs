//! Segments from clients: finds the connection to which they belong, and opens connections for SYNs.

use bentpipe_engine::tcp::{Flags, Segment, State};
use bentpipe_engine::wire::ip::{self, Ports};
use bentpipe_engine::wire::tcp as wire;
use bentpipe_io::{Peer, Receipt};

use super::*;
use crate::uplink::opening::segment_of;
use crate::uplink::reopening::{Incarnation, Opening};

/// A segment's position in its connection, before its checksum is verified.
struct Arrival<'a> {
    packet: &'a [u8],
    key: Key,
    flags: Flags,
    seq: SeqNumber,
    ack: SeqNumber,
}

impl<'a> Arrival<'a> {
    fn of(packet: &'a [u8]) -> Result<Arrival<'a>, Heard> {
        let ip = ip::parse(packet).map_err(|_| Heard::Malformed)?;
        if ip.protocol != ip::TCP {
            return Err(Heard::Foreign);
        }
        let bytes = &packet[ip.payload];
        let (Ok(ports), Some(header)) = (Ports::peek(bytes), bytes.first_chunk::<{ wire::HEADER }>()) else {
            return Err(Heard::Malformed);
        };
        let source = SocketAddr::new(ip.addresses.source(), ports.source);
        let destination = SocketAddr::new(ip.addresses.destination(), ports.destination);
        let number =
            |at: usize| SeqNumber(u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]));
        let flags = Flags::from_bits_truncate(header[13]).without_ecn();
        Ok(Arrival { packet, key: (source, destination), flags, seq: number(4), ack: number(8) })
    }

    /// True for a SYN that a listener would accept, without other flags.
    fn is_syn(&self) -> bool {
        self.flags == Flags::SYN
    }

    /// The segment; `None` if it is damaged.
    fn segment(&self) -> Option<Segment> {
        segment_of(self.packet)
    }
}

impl Uplink {
    pub(super) fn hear(&mut self, now: Time, packet: &[u8]) -> Heard {
        let arrival = match Arrival::of(packet) {
            Ok(arrival) => arrival,
            Err(heard) => return heard,
        };
        let Some(&id) = self.ids.get(&arrival.key) else {
            if !arrival.is_syn() || self.draining {
                return Heard::Pass;
            }
            let Some(syn) = arrival.segment() else { return Heard::Malformed };
            return self.on_syn(now, &arrival, &syn, None);
        };
        match &self.entries[&id].stage {
            Stage::Asking(_) => self.on_segment_asking(id, &arrival),
            Stage::Open(_) if arrival.is_syn() => self.on_syn_open(now, id, &arrival),
            Stage::Open(_) => self.hand_over(now, id, &arrival),
        }
    }

    /// While the server is being contacted, only the client's first SYN is known, and nothing has been sent to the
    /// client. So a segment must have the client's sequence number.
    fn on_segment_asking(&mut self, id: ConnectionId, arrival: &Arrival<'_>) -> Heard {
        if arrival.segment().is_none() {
            return Heard::Malformed;
        }
        let entry = self.entries.get_mut(&id).expect("ids name entries");
        let Stage::Asking(syn) = &mut entry.stage else { return Heard::Taken };
        let Ok(first) = Arrival::of(syn) else { return Heard::Taken };
        if arrival.is_syn() && arrival.seq == first.seq && arrival.packet.len() == syn.len() {
            // Its timestamp is the one to echo.
            syn.copy_from_slice(arrival.packet);
        } else if arrival.flags.has(Flags::RST) && arrival.seq.distance_from(first.seq) == 1 {
            self.stats.reset += 1;
            self.tell_end(id, Uplinked::Reset(id));
            self.forget(id);
        }
        Heard::Taken
    }

    /// Handles a SYN for an existing connection. It may replace one in TIME-WAIT, or one that a segment of the same turn
    /// has ended; otherwise the connection answers.
    fn on_syn_open(&mut self, now: Time, id: ConnectionId, arrival: &Arrival<'_>) -> Heard {
        let Some(syn) = arrival.segment() else { return Heard::Malformed };
        if let Some(ours) = self.end_closed(now, id) {
            return if self.draining { Heard::Pass } else { self.on_syn(now, arrival, &syn, ours) };
        }
        let entry = &self.entries[&id];
        let Stage::Open(endpoint) = &entry.stage else { return Heard::Taken };
        //= RFC 9293 §3.6.1: "it MAY accept a new SYN from the remote TCP endpoint to reopen the connection directly from
        //= TIME-WAIT state"
        let waits = entry.is_over && endpoint.connection().state() == State::TimeWait;
        let Some((peer, ours)) = endpoint.next_numbers().filter(|_| waits) else {
            return self.hand_over(now, id, arrival);
        };
        let old =
            Incarnation { next: peer, has_timestamps: entry.has_timestamps, last_timestamp: entry.last_timestamp };
        let timestamp = syn.timestamps.filter(|_| self.config.sender.tcp.timestamps).map(|timestamps| timestamps.value);
        if !old.gives_way_to(Opening { seq: arrival.seq, timestamp }) {
            return self.hand_over(now, id, arrival);
        }
        self.forget(id);
        if self.draining {
            return Heard::Pass;
        }
        self.on_syn(now, arrival, &syn, Some(ours))
    }

    /// Ends a connection that is closed, but has not been polled since. If it has ended, returns a sequence number beyond
    /// those of this end, if there are any.
    fn end_closed(&mut self, now: Time, id: ConnectionId) -> Option<Option<SeqNumber>> {
        let endpoint = self.endpoint(id).filter(|endpoint| endpoint.connection().state() == State::Closed)?;
        let ours = endpoint.beyond();
        // It has nothing to send; a packet that it has all the same is lost.
        while let Ok(Step::Do(_)) = endpoint.poll(&mut Context::silent(now), &mut [0; 128]) {}
        self.look(now, id);
        (!self.entries.contains_key(&id)).then_some(ours)
    }

    /// Passes the segment to the connection.
    fn hand_over(&mut self, now: Time, id: ConnectionId, arrival: &Arrival<'_>) -> Heard {
        let budget = self.spare(id);
        let entry = self.entries.get_mut(&id).expect("ids name entries");
        let Stage::Open(endpoint) = &mut entry.stage else { return Heard::Taken };
        endpoint.spare(budget);
        let before = endpoint.acknowledged();
        let flags = arrival.flags;
        let is_plain = flags.has(Flags::ACK) && !flags.has(Flags::SYN) && !flags.has(Flags::RST);
        let is_expected = is_plain && endpoint.expects(arrival.seq, arrival.ack);
        if endpoint.receive(&mut Context::silent(now), arrival.packet).is_err() {
            return Heard::Malformed;
        }
        if is_expected {
            entry.heard = now;
        }
        if endpoint.acknowledged() > before
            && let Some(round_trip) = endpoint.connection().latest_rtt()
            && let Some(until) = self.standing.measured(now, round_trip)
        {
            self.pacer.pause(until);
        }
        self.account(id);
        self.look(now, id);
        self.enqueue(id);
        Heard::Taken
    }

    /// Handles a SYN that opens a connection. `above`: this end's last sequence number in the connection that it
    /// replaces.
    fn on_syn(&mut self, now: Time, arrival: &Arrival<'_>, syn: &Segment, above: Option<SeqNumber>) -> Heard {
        let host = Host::of(arrival.key.0.ip());
        let free = u64::from(self.config.max_streams).saturating_sub(self.live);
        let spare = self.shares.spare(host, self.config.memory.saturating_sub(self.memory));
        // The memory that it needs once open, or the memory that it takes now if that is more.
        let memory = (2 * MIN_BUFFER).max(arrival.packet.len()) as u64;
        if !self.shares.has_place(host, free) || memory > spare || !self.has_place() {
            self.stats.refused += 1;
            if self.resets.len() < MAX_RESETS {
                self.resets.extend(reset_for(arrival.packet));
            }
            return Heard::Taken;
        }
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        let key = arrival.key;
        if let Some(evicted) = self.half_open.begin(now, id, key.0.ip()) {
            self.stats.failed += 1;
            self.give_up(now, evicted);
        }
        let entry = Entry {
            key,
            stage: Stage::Asking(arrival.packet.to_vec()),
            ticket: None,
            timer: None,
            is_told: false,
            seen: (0, 0, false),
            is_over: false,
            is_closed: false,
            is_connected: false,
            is_half_open: true,
            memory,
            heard: now,
            moved: now,
            has_timestamps: self.config.sender.tcp.timestamps && syn.timestamps.is_some(),
            last_timestamp: None,
            above,
            lingers_until: None,
            mtu: self.mtu,
        };
        self.memory += memory;
        self.shares.take(host);
        self.shares.set_bytes(host, 0, memory);
        self.entries.insert(id, entry);
        self.ids.insert(key, id);
        self.live += 1;
        self.stats.total += 1;
        self.told.push_back(Uplinked::Connect(id, Route { source: key.0, destination: key.1 }));
        if self.config.early_accept {
            self.open(now, id);
        }
        Heard::Taken
    }

    /// Opens the connection: the client is answered.
    pub(super) fn open(&mut self, now: Time, id: ConnectionId) {
        let Some(entry) = self.entries.get(&id) else { return };
        let Stage::Asking(syn) = &entry.stage else { return };
        let (local, above, mtu, syn) = (entry.key.1, entry.above, entry.mtu, syn.clone());
        let mss = segment_of(&syn).and_then(|segment| segment.syn.mss);
        let config = UplinkSender { mtu, ..self.config.sender }.settings(local.is_ipv6(), mss);
        let mut cx = Context::silent(now);
        // A whole receive buffer would be megabytes, cleared for each connection.
        let mut endpoint = Endpoint::open_small(&mut cx, config, local, Peer::Accept, [MIN_BUFFER; 2]);
        let taken = endpoint.receive(&mut cx, &syn);
        debug_assert!(matches!(taken, Ok(Receipt::Taken(_))), "the SYN was checked when it came");
        if let Some(last) = above {
            endpoint.begin_above(last);
        }
        self.entries.get_mut(&id).expect("it is there").stage = Stage::Open(Box::new(endpoint));
        self.account(id);
        self.enqueue(id);
    }
}
