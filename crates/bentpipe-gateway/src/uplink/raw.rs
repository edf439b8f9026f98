//! Sends segments to the clients over raw sockets, including the IP header.
//!
//! The TUN device cannot be used for this. A packet from the device would have a server's address as its source and a
//! client's as its destination. The kernel would assign it to the gateway's own connection to the server that uses the
//! client's address: early demultiplexing finds that socket, and the packet is not forwarded. For packets from a raw
//! socket, there is no such lookup.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::GetSockOpt;
use nix::sys::socket::sockopt::{GetStruct, IpMtu};
use socket2::{Domain, Protocol, Socket, Type};

use super::cut::cut;

/// IPPROTO_RAW: packets include their IP header.
const RAW: i32 = 255;
/// Size of the kernel's queue: the longest that pacing permits, with room for packets that are not paced.
const KERNEL_BUFFER: usize = 1 << 20;

/// nix has this option for IPv4 only.
#[derive(Clone, Copy, Debug)]
struct Ipv6Mtu;

nix::getsockopt_impl!(Ipv6Mtu, libc::IPPROTO_IPV6, libc::IPV6_MTU, libc::c_int, GetStruct<libc::c_int>);

const VERSIONS: [Domain; 2] = [Domain::IPV4, Domain::IPV6];

/// A socket of each IP version.
#[derive(Debug)]
pub(super) struct Raw {
    v4: Socket,
    /// `None` if the host has no IPv6.
    v6: Option<Socket>,
    /// Sockets that send nothing, to ask the kernel for its routes to clients.
    routes: [Option<Socket>; 2],
    mark: u32,
    /// Number of packets refused by the kernel: no room, no route, or no permission. They count as lost on the line.
    pub(super) refused: u64,
}

fn open(domain: Domain, mark: u32) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::RAW.nonblocking(), Some(Protocol::from(RAW))).map_err(|error| {
        io::Error::new(error.kind(), format!("raw sockets, which need CAP_NET_RAW, cannot be opened: {error}"))
    })?;
    socket.set_send_buffer_size(KERNEL_BUFFER)?;
    socket.set_mark(mark)?;
    Ok(socket)
}

/// A socket whose route to an address can be asked for.
fn asking(domain: Domain, mark: u32) -> Option<Socket> {
    let socket = Socket::new(domain, Type::DGRAM, None).ok()?;
    socket.set_mark(mark).ok()?;
    Some(socket)
}

/// The MTU of a socket's route to an address; `None` if there is no route.
fn route_mtu(socket: &Socket, to: IpAddr) -> Option<u16> {
    // Any port: nothing is sent.
    socket.connect(&SocketAddr::new(to, 9).into()).ok()?;
    let mtu = if to.is_ipv4() { IpMtu.get(socket) } else { Ipv6Mtu.get(socket) };
    // Loopback has 65 536.
    mtu.ok().and_then(|mtu| u16::try_from(mtu.min(i32::from(u16::MAX))).ok())
}

impl Raw {
    /// Sockets whose packets carry `mark`.
    pub(super) fn open(mark: u32) -> io::Result<Self> {
        let routes = VERSIONS.map(|domain| asking(domain, mark));
        Ok(Raw { v4: open(Domain::IPV4, mark)?, v6: open(Domain::IPV6, mark).ok(), routes, mark, refused: 0 })
    }

    /// The MTU of the host's route to a client; `None` if there is no route. The kernel refuses longer packets.
    pub(super) fn mtu_to(&mut self, client: IpAddr) -> Option<u16> {
        let version = usize::from(client.is_ipv6());
        let socket = &mut self.routes[version];
        socket.as_ref().and_then(|socket| route_mtu(socket, client)).or_else(|| {
            // A socket keeps the source address of its first route, and has no route any more once the box has lost that address.
            *socket = asking(VERSIONS[version], self.mark);
            route_mtu(socket.as_ref()?, client)
        })
    }

    /// Sends an IP packet. If it is a segment that is longer than the route takes by now, sends it in parts.
    pub(super) fn send(&mut self, packet: &[u8]) {
        let to = match packet.first().map(|first| first >> 4) {
            Some(4) => packet[16..].first_chunk::<4>().map(|to| Ipv4Addr::from(*to).into()),
            Some(6) => packet[24..].first_chunk::<16>().map(|to| Ipv6Addr::from(*to).into()),
            _ => None,
        };
        let mut sent = to.map_or(Err(Errno::EAFNOSUPPORT.into()), |to| self.send_to(packet, to));
        let is_long = |error: &io::Error| error.raw_os_error() == Some(Errno::EMSGSIZE as i32);
        if let Some(to) = to.filter(|_| sent.as_ref().is_err_and(is_long))
            && let Some(mtu) = self.mtu_to(to)
        {
            let mut all = Ok(());
            let is_cut = cut(packet, mtu.into(), |part| {
                if let Err(error) = self.send_to(part, to) {
                    all = Err(error);
                }
            });
            if is_cut {
                sent = all;
            }
        }
        self.refused += u64::from(sent.is_err());
    }

    fn send_to(&self, packet: &[u8], to: IpAddr) -> io::Result<()> {
        let socket = if to.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        let socket = socket.ok_or(io::Error::from(Errno::EAFNOSUPPORT))?;
        socket.send_to(packet, &SocketAddr::new(to, 0).into()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use caps::{CapSet, Capability};

    use super::*;

    /// "Operation not permitted" alone would leave it open what is not.
    #[test]
    fn a_missing_privilege_is_named() {
        let opened = std::thread::spawn(|| {
            // Capabilities belong to threads.
            let _ = caps::drop(None, CapSet::Effective, Capability::CAP_NET_RAW);
            Raw::open(1)
        });
        let error = opened.join().expect("no panic").expect_err("it is not permitted");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
    }
}
