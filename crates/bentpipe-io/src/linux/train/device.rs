//! A TUN device that keeps trains whole.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use tun_rs::SyncDevice;

use super::gather::Gather;
use super::join::Join;
use super::{LONGEST, Packet, ROOM, Train};
use crate::linux::overruns::Overruns;
use crate::linux::tun::{self, TunConfig};

/// Maximum number of empty buffers kept, of 64 kB each. Further buffers of a burst are freed.
const SPARE: usize = 512;

/// Capacity of short buffers, for a packet of up to 2 kB. As many are kept.
const SHORT: usize = 2048;

/// Empty buffers, for reuse: long ones for whole trains, short ones for most single packets.
#[derive(Debug, Default)]
pub struct Buffers {
    spare: Vec<Vec<u8>>,
    short: Vec<Vec<u8>>,
}

impl Buffers {
    /// Takes back a packet's buffer if no other packet uses it.
    pub fn give(&mut self, packet: Packet) {
        self.give_train(packet.train);
    }

    /// Takes back the buffer of a processed train.
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
        } else if bytes.capacity() == SHORT && self.short.len() < SPARE {
            self.short.push(bytes);
        }
    }

    /// A copy of a packet, in a short buffer if it takes at least a quarter of it.
    fn copy(&mut self, packet: &[u8]) -> Vec<u8> {
        if !(SHORT / 4..=SHORT).contains(&packet.len()) {
            return packet.to_vec();
        }
        let mut bytes = self.short.pop().unwrap_or_else(|| Vec::with_capacity(SHORT));
        bytes.clear();
        bytes.extend_from_slice(packet);
        bytes
    }

    fn take(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_else(|| vec![0; ROOM + LONGEST])
    }
}

/// A TUN device with offloads that reads and writes whole trains. Removed when dropped.
pub struct TrainTun {
    device: SyncDevice,
    join: Join,
    gather: Gather,
    overruns: Overruns,
    refused: u64,
    written: u64,
}

impl TrainTun {
    /// Creates the device in the network namespace of the calling thread and brings it up.
    ///
    /// # Errors
    /// Fails if the device cannot be created: it needs CAP_NET_ADMIN, `/dev/net/tun`, and a free name.
    pub fn create(config: &TunConfig) -> io::Result<Self> {
        Self::over(config.build()?)
    }

    /// Like [`TrainTun::create`], with addresses of either version and their prefix lengths.
    ///
    /// # Errors
    /// Fails in the same cases as [`TrainTun::create`].
    pub fn with_addresses(name: &str, addresses: &[(IpAddr, u8)], mtu: u16) -> io::Result<Self> {
        Self::over(tun::with_addresses(name, addresses, mtu, true)?)
    }

    fn over(device: SyncDevice) -> io::Result<Self> {
        let takes_udp = device.udp_gso();
        let overruns = Overruns::of(device.name()?)?;
        let (join, gather) = (Join::new(takes_udp), Gather::new(takes_udp));
        Ok(TrainTun { device, join, gather, overruns, refused: 0, written: 0 })
    }

    /// Number of trains or single packets of the host that the kernel dropped because the device's queue was full. The
    /// kernel does not count the packets in a train.
    ///
    /// # Errors
    /// Fails if the device no longer exists.
    pub fn overruns(&self) -> io::Result<u64> {
        self.overruns.count()
    }

    /// Changes the device's MTU. The kernel then tells hosts, and clamps the MSS of new connections if a rule says so.
    ///
    /// # Errors
    /// Fails if the device no longer exists, or without CAP_NET_ADMIN.
    pub fn set_mtu(&self, mtu: u16) -> io::Result<()> {
        self.device.set_mtu(mtu)
    }

    /// Number of packets that the host did not accept, and of trains from it that could not be read.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Number of trains passed to the host, including single packets.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Reads the host's next train or packet and passes it to `each`. Returns false if there is none.
    ///
    /// # Errors
    /// Fails if the device cannot be read, because it was removed.
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
        // Short packets are copied, so that they do not hold a long buffer; long ones are not.
        if end < bytes.len() / 4 {
            let short = buffers.copy(&bytes[..end]);
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

    /// Adds a packet to the next train.
    pub fn put(&mut self, packet: Packet) {
        self.join.put(packet);
    }

    /// Adds a packet with full checksums to the next train.
    ///
    /// # Errors
    /// Fails in the same cases as [`TrainTun::hand_over`], which is called if there is no room.
    pub fn put_whole(&mut self, packet: &[u8]) -> io::Result<()> {
        if self.gather.is_full() {
            self.hand_over()?;
        }
        self.gather.put(packet);
        Ok(())
    }

    /// Writes the packets that were added with full checksums.
    ///
    /// # Errors
    /// Fails if the device cannot be written, because it was removed.
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

    /// Writes the added packets.
    ///
    /// # Errors
    /// Fails if the device cannot be written, because it was removed.
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

/// Handles the result of writing a train.
fn note(sent: io::Result<usize>, packets: u16, refused: &mut u64, gone: &mut io::Result<()>) {
    match sent {
        Ok(_) => {}
        Err(error) if is_gone(&error) => *gone = Err(error),
        // The host's queue is full, or the packet is invalid. It is dropped, as by a network card.
        Err(_) => *refused += u64::from(packets),
    }
}

/// True if the device no longer exists.
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

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    #[test]
    fn only_what_takes_any_train_is_kept() {
        let mut buffers = Buffers::default();
        let long = buffers.take();
        buffers.give(Packet::new(&[0x45; 100]));
        assert_eq!(buffers.take().len(), long.len(), "a packet of 100 bytes leaves no room for others");
        for _ in 0..=SPARE {
            buffers.give_bytes(vec![0; ROOM + LONGEST]);
        }
        assert_eq!(buffers.spare.len(), SPARE);
    }

    #[test]
    fn short_buffers_are_used_again() {
        let mut buffers = Buffers::default();
        let first = buffers.copy(&[7; SHORT]);
        let at = first.as_ptr();
        buffers.give_bytes(first);
        let second = buffers.copy(&[8; SHORT / 4]);
        assert_eq!((second.as_ptr(), &second[..]), (at, &[8; SHORT / 4][..]), "nothing of the first is left");
        for len in [SHORT / 4 - 1, SHORT + 1] {
            let copy = buffers.copy(&vec![9; len]);
            assert_eq!((copy.len(), copy.capacity()), (len, len));
            buffers.give_bytes(copy);
        }
        for _ in 0..=SPARE {
            buffers.give_bytes(Vec::with_capacity(SHORT));
        }
        assert_eq!((buffers.short.len(), buffers.spare.len()), (SPARE, 0));
    }

    /// A device that is down (EIO) or whose host has no memory (ENOBUFS) may take the next packet. One that was removed does not.
    #[test]
    fn only_the_end_of_the_device_is_an_error() {
        for (errno, is_gone) in
            [(Errno::EIO, false), (Errno::ENOBUFS, false), (Errno::EINVAL, false), (Errno::EBADFD, true)]
        {
            let (mut refused, mut gone) = (0, Ok(()));
            note(Err(io::Error::from_raw_os_error(errno as i32)), 7, &mut refused, &mut gone);
            assert_eq!((refused, gone.is_err()), (if is_gone { 0 } else { 7 }, is_gone), "{errno}");
        }
    }
}
