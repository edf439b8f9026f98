//! A hash of a whole run: runs with equal hashes did the same things at the same times.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{DropReason, Event, Probe, QuicPacket, Who};
use bentpipe_engine::tcp::Segment;
use bentpipe_engine::units::Time;

use crate::observe::{Observer, Passage};
use crate::packet::{Body, Packet};

/// Hashes every packet at every link, with FNV-1a over whole numbers only, so that it is the same on every machine.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    hash: u64,
    events: u64,
}

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint { hash: 0xcbf2_9ce4_8422_2325, events: 0 }
    }
}

impl Fingerprint {
    /// The hash.
    pub fn value(&self) -> u64 {
        self.hash
    }

    /// Number of hashed passages.
    pub fn events(&self) -> u64 {
        self.events
    }

    fn add(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.hash = (self.hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn add_quic(&mut self, packet: &QuicPacket) {
        let QuicPacket { kind, number, len, acknowledges, data, at, repeats } = *packet;
        self.add(number);
        self.add(u64::from(len) | (kind as u64) << 32 | u64::from(repeats) << 40);
        self.add(acknowledges.unwrap_or(u64::MAX));
        self.add(u64::from(data));
        let (stream, offset) = at.unwrap_or((u64::MAX, u64::MAX));
        self.add(stream);
        self.add(offset);
    }

    fn add_segment(&mut self, segment: &Segment) {
        self.add(segment.seq);
        self.add(segment.ack);
        self.add(segment.window as u64 | (segment.len as u64) << 32 | (segment.flags.bits() as u64) << 48);
        for (start, end) in segment.sack.iter(segment.ack) {
            self.add(start);
            self.add(end);
        }
        if let Some(timestamps) = segment.timestamps {
            self.add(timestamps.value as u64 | (timestamps.echo as u64) << 32);
        }
    }
}

impl Probe for Fingerprint {
    fn event(&mut self, _: Time, _: Who, _: &Event) {}
}

impl Observer for Fingerprint {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        self.events += 1;
        self.add(now.index());
        let passage = match passage {
            Passage::Offered => 0,
            Passage::Delivered => 1,
            Passage::Dropped(DropReason::QueueFull) => 2,
            Passage::Dropped(DropReason::Early) => 3,
            Passage::Dropped(DropReason::Channel) => 4,
            Passage::Dropped(DropReason::Listed) => 5,
            Passage::Dropped(DropReason::TooLong) => 6,
        };
        self.add(u64::from(link.0) | passage << 32 | (packet.forward as u64) << 40);
        self.add(u64::from(packet.connection.0) | (packet.wire_len as u64) << 32);
        match &packet.body {
            Body::Tcp(segment) => self.add_segment(segment),
            Body::Udp(n) => self.add(*n),
            Body::Quic(packet) => self.add_quic(packet),
        }
    }
}
