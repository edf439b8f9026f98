//! A TUN device whose trains stay trains.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use tun_rs::SyncDevice;

use super::gather::Gather;
use super::join::Join;
use super::{LONGEST, Packet, ROOM, Train};
use crate::overruns::Overruns;
use crate::tun::{self, TunConfig};

/// Emptied buffers that are kept, of 64 kB each; what a burst needed beyond is given back.
const SPARE: usize = 512;

/// Buffers for whole trains, to be filled again.
#[derive(Debug, Default)]
pub struct Buffers {
    spare: Vec<Vec<u8>>,
}

impl Buffers {
    /// Takes back what a packet lay in, if no other lies there.
    pub fn give(&mut self, packet: Packet) {
        self.give_train(packet.train);
    }

    /// Takes back a train whose packets are read.
    pub fn give_read(&mut self, train: Train) {
        self.give_bytes(train.bytes);
    }

    fn give_train(&mut self, train: Arc<Train>) {
        if let Some(train) = Arc::into_inner(train) {
            self.give_bytes(train.bytes);
        }
    }

    fn give_bytes(&mut self, bytes: Vec<u8>) {
        if bytes.len() == ROOM + LONGEST && self.spare.len() < SPARE {
            self.spare.push(bytes);
        }
    }

    fn take(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_else(|| vec![0; ROOM + LONGEST])
    }
}

/// A TUN device with offloads that reads and writes whole trains. Gone when it is dropped.
pub struct TrainTun {
    device: SyncDevice,
    join: Join,
    gather: Gather,
    overruns: Overruns,
    refused: u64,
    written: u64,
}

impl TrainTun {
    /// Makes the device, up, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Fails if the device cannot be created: CAP_NET_ADMIN and `/dev/net/tun` are needed, and a free name.
    pub fn create(config: &TunConfig) -> io::Result<Self> {
        Self::over(config.build(true)?)
    }

    /// As [`TrainTun::create`], with addresses of either version, each in a network of so many bits.
    ///
    /// # Errors
    /// As there.
    pub fn with_addresses(name: &str, addresses: &[(IpAddr, u8)], mtu: u16) -> io::Result<Self> {
        Self::over(tun::with_addresses(name, addresses, mtu, true)?)
    }

    fn over(device: SyncDevice) -> io::Result<Self> {
        let takes_udp = device.udp_gso();
        let overruns = Overruns::of(device.name()?)?;
        let (join, gather) = (Join::new(takes_udp), Gather::new(takes_udp));
        Ok(TrainTun { device, join, gather, overruns, refused: 0, written: 0 })
    }

    /// Sends of the host that the kernel dropped because the device's queue was full. Each is a train of packets, or one
    /// packet alone: the kernel counts no packets of trains.
    ///
    /// # Errors
    /// Fails if the device is gone.
    pub fn overruns(&self) -> io::Result<u64> {
        self.overruns.count()
    }

    /// Changes the device's MTU: the kernel then tells hosts, and clamps the MSS of new connections where a rule says so.
    ///
    /// # Errors
    /// Fails if the device is gone, or without CAP_NET_ADMIN.
    pub fn set_mtu(&self, mtu: u16) -> io::Result<()> {
        self.device.set_mtu(mtu)
    }

    /// Packets for which the host had no use or room.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Trains handed to the host, packets alone among them.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// What the host sends next, to `each`; false if there is nothing.
    ///
    /// # Errors
    /// Fails if the device cannot be read: it was removed.
    pub fn read(&mut self, buffers: &mut Buffers, each: impl FnOnce(&mut Buffers, Train)) -> io::Result<bool> {
        let mut bytes = buffers.take();
        let end = match self.device.recv(&mut bytes) {
            Ok(end) => end,
            Err(error) => {
                buffers.give_bytes(bytes);
                return match error.kind() {
                    io::ErrorKind::WouldBlock => Ok(false),
                    io::ErrorKind::Interrupted => Ok(true),
                    _ => Err(error),
                };
            }
        };
        // What is short does not keep a long buffer for as long as it is on its way; what is not is not copied.
        if end < bytes.len() / 4 {
            let short = bytes[..end].to_vec();
            buffers.give_bytes(bytes);
            bytes = short;
        }
        match Train::read(bytes, end) {
            Ok(train) => each(buffers, train),
            Err(bytes) => {
                self.refused += 1;
                buffers.give_bytes(bytes);
            }
        }
        Ok(true)
    }

    /// Puts a packet into the next train.
    pub fn put(&mut self, packet: Packet) {
        self.join.put(packet);
    }

    /// Puts a packet with all its checksums into the next train.
    ///
    /// # Errors
    /// As [`TrainTun::hand_over`], which makes room.
    pub fn put_whole(&mut self, packet: &[u8]) -> io::Result<()> {
        if self.gather.is_full() {
            self.hand_over()?;
        }
        self.gather.put(packet);
        Ok(())
    }

    /// Hands over what was put whole.
    ///
    /// # Errors
    /// Fails if the device cannot be written: it was removed.
    pub fn hand_over(&mut self) -> io::Result<()> {
        if self.gather.is_empty() {
            return Ok(());
        }
        let TrainTun { device, gather, refused, written, .. } = self;
        let mut gone = Ok(());
        gather.drain(|bytes, packets| {
            *written += 1;
            note(device.send(bytes), packets, refused, &mut gone);
        });
        gone
    }

    /// Hands over what was put.
    ///
    /// # Errors
    /// Fails if the device cannot be written: it was removed.
    pub fn flush(&mut self, buffers: &mut Buffers) -> io::Result<()> {
        if self.join.is_empty() {
            return Ok(());
        }
        let TrainTun { device, join, refused, written, .. } = self;
        let mut gone = Ok(());
        join.drain(
            |slices, packets| {
                *written += 1;
                note(device.send_vectored(slices), packets, refused, &mut gone);
            },
            |train| buffers.give_train(train),
        );
        gone
    }
}

/// What became of a train.
fn note(sent: io::Result<usize>, packets: u16, refused: &mut u64, gone: &mut io::Result<()>) {
    match sent {
        Ok(_) => {}
        Err(error) if is_gone(&error) => *gone = Err(error),
        // The queue of the host's stack is full, or the packet is none for it: as a card that drops.
        Err(_) => *refused += u64::from(packets),
    }
}

/// Whether the device does not exist any more.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::errno::Errno::EBADFD as i32)
}

impl AsFd for TrainTun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl std::fmt::Debug for TrainTun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrainTun").field("name", &self.device.name().ok()).finish_non_exhaustive()
    }
}
