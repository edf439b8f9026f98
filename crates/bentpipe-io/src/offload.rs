//! A TUN device with offloads: the kernel hands over trains of TCP or UDP packets in one call, and takes them so.
//!
//! A train is cut into packets before anything else sees it, so that each can be lost by itself; `tun-rs` does it, and
//! writes each packet's checksum. What leaves at one instant and follows on each other in one flow is joined again,
//! as a network card does on receive (GRO): a receiver then acknowledges a train at once.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{GROTable, SyncDevice, VIRTIO_NET_HDR_LEN};

use crate::tun::{self, TunConfig};

/// Room before each packet for what the kernel wants to know of a train.
const HEAD: usize = VIRTIO_NET_HDR_LEN;

/// The largest IP packet.
const MAX_PACKET: usize = 65_535;

/// Most packets of a train: the kernel's trains have 64 kB, and less than 1280 bytes of MTU come with short trains.
const TRAIN: usize = 256;

/// Emptied buffers that are kept; what a burst needed beyond is given back.
const SPARE: usize = 1 << 16;

/// An IP packet with room before it.
#[derive(Clone, PartialEq, Eq)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// A packet of these bytes.
    pub fn new(packet: &[u8]) -> Self {
        let mut bytes = vec![0; HEAD];
        bytes.extend_from_slice(packet);
        Buffer(bytes)
    }

    /// The IP packet.
    pub fn packet(&self) -> &[u8] {
        &self.0[HEAD..]
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} B)", self.packet().len())
    }
}

/// Buffers to be filled again.
#[derive(Debug, Default)]
pub struct Pool {
    spare: Vec<Vec<u8>>,
}

impl Pool {
    /// Takes a buffer back.
    pub fn give(&mut self, buffer: Buffer) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer.0);
        }
    }

    /// A packet of these bytes.
    pub fn copy(&mut self, packet: &[u8]) -> Buffer {
        let mut bytes = self.take(0);
        bytes.resize(HEAD, 0);
        bytes.extend_from_slice(packet);
        Buffer(bytes)
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.resize(length, 0);
        bytes
    }
}

/// A TUN device whose packets come and go in trains. Gone when it is dropped.
pub struct OffloadTun {
    device: SyncDevice,
    /// As long as a packet can be, with its head.
    slot: usize,
    train: Vec<u8>,
    slots: Vec<Vec<u8>>,
    sizes: Vec<usize>,
    outgoing: Vec<Vec<u8>>,
    /// Buffers that whole trains fit in.
    long: Vec<Vec<u8>>,
    table: GROTable,
    refused: u64,
}

impl OffloadTun {
    /// Makes the device, up, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The system's: without CAP_NET_ADMIN or `/dev/net/tun`, or where the name is taken.
    pub fn create(config: &TunConfig) -> io::Result<Self> {
        Ok(Self::over(config.build(true)?, config.mtu))
    }

    /// As [`OffloadTun::create`], with addresses of either version, each in a network of so many bits.
    ///
    /// # Errors
    /// As there.
    pub fn with_addresses(name: &str, addresses: &[(IpAddr, u8)], mtu: u16) -> io::Result<Self> {
        Ok(Self::over(tun::with_addresses(name, addresses, mtu, true)?, mtu))
    }

    fn over(device: SyncDevice, mtu: u16) -> Self {
        let slot = HEAD + usize::from(mtu);
        OffloadTun {
            device,
            slot,
            train: vec![0; HEAD + MAX_PACKET],
            slots: (0..TRAIN).map(|_| vec![0; slot]).collect(),
            sizes: vec![0; TRAIN],
            outgoing: Vec::new(),
            long: Vec::new(),
            table: GROTable::new(),
            refused: 0,
        }
    }

    /// Packets for which the host had no use or room.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// What the host sends next, one packet or a train, to `each`; false if there is nothing.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&mut self, pool: &mut Pool, mut each: impl FnMut(&mut Pool, Buffer)) -> io::Result<bool> {
        let count = match self.device.recv_multiple(&mut self.train, &mut self.slots, &mut self.sizes, HEAD) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            // A train that cannot be cut is lost; what the device itself refuses has a number of the system.
            Err(error) if error.raw_os_error().is_none() => {
                self.refused += 1;
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        for (slot, size) in self.slots.iter_mut().zip(&self.sizes).take(count) {
            let mut bytes = std::mem::replace(slot, pool.take(self.slot));
            bytes.truncate(HEAD + size);
            each(pool, Buffer(bytes));
        }
        Ok(true)
    }

    /// Puts a packet into the next train.
    pub fn put(&mut self, buffer: Buffer) {
        self.outgoing.push(buffer.0);
    }

    /// Hands over what was put.
    ///
    /// # Errors
    /// The system's, where the device is gone.
    pub fn flush(&mut self, pool: &mut Pool) -> io::Result<()> {
        if self.outgoing.is_empty() {
            return Ok(());
        }
        if self.outgoing.len() > 1 {
            self.give_room();
        }
        let count = self.outgoing.len();
        let sent = self.device.send_multiple(&mut self.table, &mut self.outgoing, HEAD);
        for bytes in self.outgoing.drain(..) {
            if bytes.capacity() > MAX_PACKET {
                self.long.push(bytes);
            } else {
                pool.give(Buffer(bytes));
            }
        }
        match sent {
            Ok(_) => Ok(()),
            // The queue of the host's stack is full, or the packet is none for it: as a card that drops.
            Err(error) if gone(&error) => Err(error),
            Err(_) => {
                self.refused += count as u64;
                Ok(())
            }
        }
    }

    /// Joining packets does not allocate: the first of each run moves to where the others have room behind it.
    fn give_room(&mut self) {
        let (mut key, mut filled) = ([0; KEY], MAX_PACKET);
        for i in 0..self.outgoing.len() {
            let here = flow(&self.outgoing[i][HEAD..]);
            let length = self.outgoing[i].len();
            let follows = here == key && filled + length <= MAX_PACKET;
            (key, filled) = (here, if follows { filled + length } else { length });
            let begins = !follows
                && self.outgoing.get(i + 1).is_some_and(|next| next.len() > LONG && flow(&next[HEAD..]) == here);
            if begins {
                let mut long = self.long.pop().unwrap_or_else(|| Vec::with_capacity(4 * HEAD + MAX_PACKET));
                long.clear();
                long.extend_from_slice(&self.outgoing[i]);
                // The short one is as good as new when its turn comes; a train needs it no more.
                self.outgoing[i] = long;
            }
        }
    }
}

/// Packets below this are acknowledgements mostly, which are not joined.
const LONG: usize = 200;

/// Bytes that tell one flow from another, addresses and ports of IPv6.
const KEY: usize = 36;

/// Addresses and ports of a packet without options; two packets of one flow have the same.
fn flow(packet: &[u8]) -> [u8; KEY] {
    let mut key = [0; KEY];
    let range = if packet.first().is_some_and(|first| first >> 4 == 6) { 8..44 } else { 12..24 };
    if let Some(bytes) = packet.get(range) {
        key[..bytes.len()].copy_from_slice(bytes);
    }
    key
}

/// Whether the device does not exist any more.
fn gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::errno::Errno::EBADFD as i32)
}

impl AsFd for OffloadTun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl std::fmt::Debug for OffloadTun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OffloadTun").field("name", &self.device.name().ok()).finish_non_exhaustive()
    }
}
