//! A TUN device whose trains stay trains.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use tun_rs::SyncDevice;

use super::join::Join;
use super::{LONGEST, Packet, ROOM, Train};
use crate::tun::TunConfig;

/// Emptied buffers that are kept, of 64 kB each; what a burst needed beyond is given back.
const SPARE: usize = 512;

/// Buffers for whole trains, to be filled again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    spare: Vec<Vec<u8>>,
}

impl Buffers {
    /// Takes back what a packet lay in, if no other lies there.
    pub(crate) fn give(&mut self, packet: Packet) {
        self.give_train(packet.train);
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
    refused: u64,
    written: u64,
}

impl TrainTun {
    /// Makes the device, up, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The system's: without CAP_NET_ADMIN or `/dev/net/tun`, or where the name is taken.
    pub fn create(config: &TunConfig) -> io::Result<Self> {
        let device = config.build(true)?;
        let join = Join::new(device.udp_gso());
        Ok(TrainTun { device, join, refused: 0, written: 0 })
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
    /// The system's.
    pub(crate) fn read(&mut self, buffers: &mut Buffers, each: impl FnOnce(&mut Buffers, Train)) -> io::Result<bool> {
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
    pub(crate) fn put(&mut self, packet: Packet) {
        self.join.put(packet);
    }

    /// Hands over what was put.
    ///
    /// # Errors
    /// The system's, where the device is gone.
    pub(crate) fn flush(&mut self, buffers: &mut Buffers) -> io::Result<()> {
        if self.join.is_empty() {
            return Ok(());
        }
        let TrainTun { device, join, refused, written } = self;
        let mut gone = Ok(());
        join.drain(
            |slices, packets| {
                *written += 1;
                match device.send_vectored(slices) {
                    Ok(_) => {}
                    Err(error) if is_gone(&error) => gone = Err(error),
                    // The queue of the host's stack is full, or the packet is none for it: as a card that drops.
                    Err(_) => *refused += u64::from(packets),
                }
            },
            |train| buffers.give_train(train),
        );
        gone
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
