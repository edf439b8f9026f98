//! A TUN device: IP packets without a header before them (IFF_NO_PI), no offloads.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, SyncDevice};

use crate::linux::overruns::Overruns;

/// The queue length of a device, in packets or trains. Linux's 500 (TUN_READQ_SIZE) are less than what hosts send at
/// 1 Gbit/s while the reader waits 10 ms for a processor.
const QUEUE_LENGTH: u32 = 2048;

/// A loop that reads this many packets or trains in a turn empties the queue, including a few that arrive while it is
/// read.
pub const QUEUE: usize = QUEUE_LENGTH as usize + 12;

/// Checks that TUN devices are available.
///
/// # Errors
/// Fails if `/dev/net/tun` cannot be opened. The error includes a remedy.
pub fn can_be_made() -> Result<(), (io::Error, &'static str)> {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    opened.map(drop).map_err(|error| {
        let help = match error.kind() {
            // The namespace decides what may be created, not the file, which is why udev's rules allow everyone to open
            // it.
            io::ErrorKind::PermissionDenied => "chmod 666 /dev/net/tun, as in most distributions, or run as root",
            _ => "modprobe tun; in a container: --device /dev/net/tun",
        };
        (error, help)
    })
}

/// Settings of a TUN device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunConfig {
    /// Its name, at most 15 bytes.
    pub name: String,
    /// The host's address and its prefix length.
    pub v4: Option<(Ipv4Addr, u8)>,
    /// The host's IPv6 address and its prefix length.
    pub v6: Option<(Ipv6Addr, u8)>,
    /// MTU in bytes.
    pub mtu: u16,
}

impl TunConfig {
    /// Creates the device in the network namespace of the calling thread and brings it up, with GSO and GRO.
    pub(crate) fn build(&self) -> io::Result<SyncDevice> {
        let v4 = self.v4.map(|(address, prefix)| (IpAddr::V4(address), prefix));
        let v6 = self.v6.map(|(address, prefix)| (IpAddr::V6(address), prefix));
        let addresses: Vec<_> = v4.into_iter().chain(v6).collect();
        with_addresses(&self.name, &addresses, self.mtu, true)
    }
}

/// Creates the device `name` in the network namespace of the calling thread and brings it up.
pub fn with_addresses(name: &str, addresses: &[(IpAddr, u8)], mtu: u16, offload: bool) -> io::Result<SyncDevice> {
    let builder = DeviceBuilder::new().name(name).mtu(mtu).offload(offload);
    let builder = addresses.iter().fold(builder, |builder, &(address, prefix)| match address {
        IpAddr::V4(address) => builder.ipv4(address, prefix, None),
        IpAddr::V6(address) => builder.ipv6(address, prefix),
    });
    let device = builder.build_sync().map_err(|error| match can_be_made() {
        // The error itself does not name the file that is missing.
        Err((error, _)) => io::Error::new(error.kind(), format!("/dev/net/tun: {error}")),
        Ok(()) => error,
    })?;
    device.set_nonblocking(true)?;
    // Root in a user namespace may not do this (SIOCSIFTXQLEN), and works with the shorter queue.
    let _ = device.set_tx_queue_len(QUEUE_LENGTH);
    Ok(device)
}

/// A TUN device, removed when dropped. It stays in the network namespace of the thread that created it.
pub struct Tun {
    device: SyncDevice,
    overruns: Overruns,
}

impl Tun {
    /// Creates the device `name` and brings it up, with addresses of either version and their prefix lengths.
    ///
    /// # Errors
    /// Fails if the device cannot be created: it needs CAP_NET_ADMIN, `/dev/net/tun`, and a free name. Also fails if
    /// `/proc/thread-self/net` cannot be read.
    pub fn with_addresses(name: &str, addresses: &[(IpAddr, u8)], mtu: u16) -> io::Result<Self> {
        let device = with_addresses(name, addresses, mtu, false)?;
        let overruns = Overruns::of(device.name()?)?;
        Ok(Tun { device, overruns })
    }

    /// Reads the next packet from the host, if there is one. Returns its length.
    ///
    /// # Errors
    /// Fails if the device cannot be read, because it was removed.
    pub fn read(&self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        match self.device.recv(packet) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Packets of the host that the kernel dropped because the device's queue was full.
    ///
    /// # Errors
    /// Fails if the device is gone.
    pub fn overruns(&self) -> io::Result<u64> {
        self.overruns.count()
    }

    /// Passes a packet to the host; false if the host's queue is full.
    ///
    /// # Errors
    /// Fails if the device cannot be written: it was removed, or the packet is not IP.
    pub fn write(&self, packet: &[u8]) -> io::Result<bool> {
        match self.device.send(packet) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl std::fmt::Debug for Tun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tun").field("name", &self.device.name().ok()).finish_non_exhaustive()
    }
}
