//! Trains: runs of packets that the kernel passes as a single one.
//!
//! Data that TCP or UDP sends at once arrives from a device with offloads as one long packet, after a virtio-net header
//! with the segment size (TSO, USO). A train stays in the buffer into which it was read. A [`Packet`] is an index into
//! a train and passes the links by itself, so queues and losses apply to packets. Packets that leave together and are
//! consecutive form one train again. No payload is checksummed, and no long payload is copied.
//!
//! Reading order: `headers` (the headers and how they differ between packets); this file (a train and its packets);
//! `join` (makes trains of packets); `gather` (makes trains of packets that arrive one by one); `device` (reads and
//! writes them).

mod device;
mod gather;
mod headers;
mod join;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use tun_rs::{VIRTIO_NET_HDR_LEN, VirtioNetHdr};

pub use device::{Buffers, TrainTun};
use headers::{Headers, Part};

/// Space before a train for the kernel's header.
const ROOM: usize = VIRTIO_NET_HDR_LEN;

/// Maximum length of an IP packet, and so of a train.
const LONGEST: usize = 65_535;

/// One read from a device: a train or a single packet.
#[derive(Debug)]
pub struct Train {
    /// The IP packet starts at `ROOM`. The bytes after `end` are space for longer ones.
    bytes: Vec<u8>,
    end: usize,
    headers: Headers,
    /// Number of packets.
    count: u16,
}

impl Train {
    /// Parses what the kernel wrote to `bytes` up to `end`. Returns the buffer if it cannot be split.
    fn read(bytes: Vec<u8>, end: usize) -> Result<Train, Vec<u8>> {
        let headers = VirtioNetHdr::decode(&bytes).ok().and_then(|kernel| {
            let packet = bytes.get(ROOM..end)?;
            Headers::read(kernel, packet)
        });
        match headers {
            Some(headers) => {
                let payload = end - ROOM - usize::from(headers.length);
                let count = if headers.part == Part::Alone { 1 } else { payload.div_ceil(headers.size.into()) as u16 };
                Ok(Train { bytes, end, headers, count })
            }
            None => Err(bytes),
        }
    }

    fn whole(&self) -> &[u8] {
        &self.bytes[ROOM..self.end]
    }

    fn payload(&self) -> &[u8] {
        &self.whole()[self.headers.length.into()..]
    }

    /// The payload of `count` packets starting at this index.
    fn payload_of(&self, index: u16, count: u16) -> &[u8] {
        let payload = self.payload();
        let size = usize::from(self.headers.size);
        let [from, to] = [index, index + count].map(|n| (usize::from(n) * size).min(payload.len()));
        &payload[from..to]
    }

    /// The destination address.
    pub fn destination(&self) -> Option<IpAddr> {
        let packet = self.whole();
        match packet.first()? >> 4 {
            4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?).into()),
            6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?).into()),
            _ => None,
        }
    }

    /// Passes each packet in order, in its wire form with checksums, built in `scratch`.
    pub fn each(&self, scratch: &mut Vec<u8>, mut each: impl FnMut(&mut [u8])) {
        for index in 0..self.count {
            scratch.clear();
            self.write(index, scratch);
            each(scratch);
        }
    }

    /// Writes one packet into an empty buffer.
    fn write(&self, index: u16, to: &mut Vec<u8>) {
        let (whole, headers) = (self.whole(), &self.headers);
        match headers.part {
            Part::Alone => to.extend_from_slice(whole),
            Part::Tcp | Part::Udp => {
                let payload = self.payload_of(index, 1);
                headers.write(whole, index, payload.len(), headers.flags(whole, index), to);
                to.extend_from_slice(payload);
            }
        }
        headers.finish_checksum(to);
    }

    /// Its packets, in order.
    pub fn packets(self) -> impl Iterator<Item = Packet> {
        let train = Arc::new(self);
        (0..train.count).map(move |index| Packet {
            length: match train.headers.part {
                Part::Alone => train.whole().len(),
                Part::Tcp | Part::Udp => usize::from(train.headers.length) + train.payload_of(index, 1).len(),
            } as u16,
            train: Arc::clone(&train),
            index,
        })
    }
}

/// An IP packet, either part of a train or single.
#[derive(Clone)]
pub struct Packet {
    train: Arc<Train>,
    index: u16,
    length: u16,
}

impl Packet {
    /// A packet of these bytes, with full checksums.
    ///
    /// # Panics
    /// Panics if there are more bytes than an IP packet can have.
    pub fn new(packet: &[u8]) -> Self {
        assert!(packet.len() <= LONGEST, "an IP packet");
        let bytes = [&[0; ROOM], packet].concat();
        let (end, length) = (bytes.len(), packet.len() as u16);
        Packet { train: Arc::new(Train { bytes, end, headers: Headers::ALONE, count: 1 }), index: 0, length }
    }

    /// Length in bytes, including the IP header.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.length.into()
    }

    /// Number of bytes behind the headers that the train's packets share.
    fn payload(&self) -> u16 {
        self.length - self.train.headers.length
    }

    /// TCP's flags, if the packet can be part of a train.
    fn flags(&self) -> u8 {
        self.train.headers.flags(self.train.whole(), self.index)
    }

    /// The wire form, with checksums.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.train.write(self.index, &mut bytes);
        bytes
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Self) -> bool {
        self.to_bytes() == other.to_bytes()
    }
}

impl Eq for Packet {}

impl std::fmt::Debug for Packet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packet({} of {}, {} B)", self.index, self.train.count, self.length)
    }
}

#[cfg(test)]
mod tests;
