//! The door to the kernel: a TUN device, IP packets without any header before them (IFF_NO_PI), no offloads.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, SyncDevice};

/// Whether devices can be asked for.
///
/// # Errors
/// Fails if `/dev/net/tun` cannot be opened; the text says what helps.
pub fn can_be_made() -> Result<(), (io::Error, &'static str)> {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    opened.map(drop).map_err(|error| {
        let help = match error.kind() {
            // What may be asked for is a matter of the namespace, not of the file: udev's rules have it so.
            io::ErrorKind::PermissionDenied => "chmod 666 /dev/net/tun, as distributions have it, or run as root",
            _ => "modprobe tun; in a container: --device /dev/net/tun",
        };
        (error, help)
    })
}

/// What a TUN device is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunConfig {
    /// Its name, at most 15 bytes.
    pub name: String,
    /// The host's address and the bits of its network.
    pub v4: Option<(Ipv4Addr, u8)>,
    /// The same in IPv6.
    pub v6: Option<(Ipv6Addr, u8)>,
    /// Longest packet, bytes.
    pub mtu: u16,
}

impl TunConfig {
    /// Makes the device in the network namespace of the calling thread.
    pub(crate) fn build(&self, offload: bool) -> io::Result<SyncDevice> {
        let mut builder = DeviceBuilder::new().name(&self.name).mtu(self.mtu).offload(offload);
        if let Some((address, prefix)) = self.v4 {
            builder = builder.ipv4(address, prefix, None);
        }
        if let Some((address, prefix)) = self.v6 {
            builder = builder.ipv6(address, prefix);
        }
        let device = builder.build_sync()?;
        device.set_nonblocking(true)?;
        Ok(device)
    }
}

/// Makes the device `name`, up, in the network namespace of the calling thread.
pub fn with_addresses(name: &str, addresses: &[(IpAddr, u8)], mtu: u16, offload: bool) -> io::Result<SyncDevice> {
    let builder = DeviceBuilder::new().name(name).mtu(mtu).offload(offload);
    let builder = addresses.iter().fold(builder, |builder, &(address, prefix)| match address {
        IpAddr::V4(address) => builder.ipv4(address, prefix, None),
        IpAddr::V6(address) => builder.ipv6(address, prefix),
    });
    let device = builder.build_sync()?;
    device.set_nonblocking(true)?;
    Ok(device)
}

/// A TUN device, gone when it is dropped. It is made in the network namespace of the calling thread, and stays there.
pub struct Tun {
    device: SyncDevice,
}

impl Tun {
    /// Makes the device `name`, up, with the host's `address` in a network of `prefix` bits. Endpoints take other
    /// addresses of that network.
    ///
    /// # Errors
    /// Fails if the device cannot be created: CAP_NET_ADMIN and `/dev/net/tun` are needed, and a free name.
    pub fn create(name: &str, address: Ipv4Addr, prefix: u8, mtu: u16) -> io::Result<Self> {
        let v4 = Some((address, prefix));
        let config = TunConfig { name: name.to_owned(), v4, v6: None, mtu };
        Ok(Tun { device: config.build(false)? })
    }

    /// Makes the device `name`, up, with addresses of either version, each in a network of so many bits.
    ///
    /// # Errors
    /// As [`Tun::create`].
    pub fn with_addresses(name: &str, addresses: &[(IpAddr, u8)], mtu: u16) -> io::Result<Self> {
        Ok(Tun { device: with_addresses(name, addresses, mtu, false)? })
    }

    /// The next packet from the host, if there is one; its length.
    ///
    /// # Errors
    /// Fails if the device cannot be read: it was removed.
    pub fn read(&self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        match self.device.recv(packet) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a packet to the host; false where the host's queue has no room, as a full queue on a line.
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
