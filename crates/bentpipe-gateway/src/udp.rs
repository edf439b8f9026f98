//! The tunnel's socket: sends and receives datagrams in batches, with the kernel's segmentation offload if available.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

use bentpipe_engine::units::Time;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::errno::Errno;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

use super::log;
use super::path_mtu::BASE;
use super::trouble::{Refusals, Trouble};

/// Size of the kernel's queues: a burst of one round trip at 50 Mbit/s over GEO.
const KERNEL_BUFFER: usize = 4 << 20;
/// Maximum bytes of one send, near the 64 KiB of a datagram.
const MAX_BATCH: usize = 60_000;
/// Room for any datagram.
const ROOM: usize = 1 << 16;

/// A UDP socket.
pub(super) struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
    buffers: Vec<Vec<u8>>,
    /// True for an IPv6 socket.
    is_v6: bool,
    /// Datagrams of one length to one address, sent by one call; if they fit every path, the last one may be shorter.
    /// There is room for one more behind them.
    batch: Box<[u8]>,
    filled: usize,
    segment: usize,
    to: Option<SocketAddr>,
    /// Datagrams refused by the kernel, which count as lost on the line.
    trouble: Trouble,
    /// The destination and length of a datagram that was too long.
    too_long: Option<(SocketAddr, usize)>,
}

impl Udp {
    pub(super) fn bind(at: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(at), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        if at.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        // The system may grant less.
        socket.set_recv_buffer_size(KERNEL_BUFFER)?;
        socket.set_send_buffer_size(KERNEL_BUFFER)?;
        socket.bind(&at.into())?;
        let socket: UdpSocket = socket.into();
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let room = state.gro_segments() * 1500;
        Ok(Udp {
            socket,
            state,
            buffers: vec![vec![0; room.max(1 << 16)]; BATCH_SIZE],
            is_v6: at.is_ipv6(),
            batch: vec![0; 2 * ROOM].into(),
            filled: 0,
            segment: 0,
            to: None,
            trouble: Trouble::default(),
            too_long: None,
        })
    }

    pub(super) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut SourceFd(&self.socket.as_raw_fd()), token, Interest::READABLE)
    }

    pub(super) fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Receives waiting datagrams, at most a few dozen. Returns true if there may be more.
    pub(super) fn receive(&mut self, mut heard: impl FnMut(SocketAddr, &mut [u8])) -> io::Result<bool> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut slices: Vec<_> = self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let count = match self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut metas) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // An ICMP message about earlier datagrams, or a lack of memory for this one.
            Err(error) if is_passing(&error) => return Ok(true),
            Err(error) => return Err(error),
        };
        for (meta, buffer) in metas[..count].iter().zip(&mut self.buffers) {
            let from = canonical(meta.addr);
            buffer[..meta.len].chunks_mut(meta.stride.max(1)).for_each(|datagram| heard(from, datagram));
        }
        Ok(true)
    }

    /// The buffer for the next datagram: 64 KiB.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.batch[self.filled..][..ROOM]
    }

    /// Sends `length` bytes of the buffer, now or with the next flush.
    pub(super) fn send(&mut self, now: Time, to: SocketAddr, length: usize) {
        let full = self.filled + length > MAX_BATCH
            || self.segment > 0 && self.filled / self.segment >= self.state.max_gso_segments();
        // A virtual device passes the datagrams of one call on as one packet. If the next link takes no packets of their
        // length, all are dropped, also a short one, which may be the probe that would find that out.
        let may_be_last = length == self.segment || length < self.segment && self.segment <= usize::from(BASE);
        let fits = self.to == Some(to) && may_be_last && self.filled.is_multiple_of(self.segment);
        if !fits || full {
            let at = self.filled;
            self.flush(now);
            self.batch.copy_within(at..at + length, 0);
            (self.to, self.segment) = (Some(to), length);
        }
        self.filled += length;
    }

    /// Passes all pending datagrams to the kernel.
    pub(super) fn flush(&mut self, now: Time) {
        if let Some(to) = self.to.take() {
            // A line that is full or briefly down loses datagrams, and the layers above repair that.
            let said = match self.send_pending(to) {
                Ok(()) => self.trouble.on_sent(now),
                Err((error, count)) => {
                    if error.raw_os_error() == Some(Errno::EMSGSIZE as i32) {
                        self.too_long = Some((to, self.segment));
                    }
                    self.trouble.on_refused(now, to, &error, count)
                }
            };
            if let Some(said) = said {
                log::line(said);
            }
            self.filled = 0;
        }
    }

    /// Sends all pending datagrams by one call. Returns the kernel's error and how many were refused.
    fn send_pending(&mut self, to: SocketAddr) -> Result<(), (io::Error, u64)> {
        let (pending, segment) = (&self.batch[..self.filled], self.segment.max(1));
        let count = pending.len().div_ceil(segment) as u64;
        let destination = self.mapped(to);
        let send = |contents, segment_size| {
            let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
            self.state.try_send(UdpSockRef::from(&self.socket), &transmit)
        };
        let offloads = self.state.max_gso_segments() > 1;
        let sent = send(pending, (count > 1).then_some(segment));
        if !offloads || self.state.max_gso_segments() > 1 {
            return sent.map_err(|error| (error, count));
        }
        // `quinn-udp` has given up segmentation offload, for good and for all peers, because of EINVAL or EIO. The kernel also returns
        // EINVAL for a blackhole route. So the datagrams are sent one by one: if these are refused, too, it was not for the offload.
        let mut errors: Vec<_> = pending.chunks(segment).filter_map(|datagram| send(datagram, None).err()).collect();
        let refused = errors.len() as u64;
        if (refused > 0 || count == 1)
            && let Ok(state) = UdpSocketState::new(UdpSockRef::from(&self.socket))
        {
            self.state = state;
        }
        errors.pop().map_or(Ok(()), |error| Err((error, refused)))
    }

    /// Number of datagrams refused by the kernel.
    pub(super) fn refusals(&self) -> Refusals {
        self.trouble.refusals()
    }

    /// The destination and length of a datagram that the kernel refused as too long since the last call.
    pub(super) fn take_too_long(&mut self) -> Option<(SocketAddr, usize)> {
        self.too_long.take()
    }

    /// An IPv6 socket takes IPv4 addresses in their mapped form.
    fn mapped(&self, to: SocketAddr) -> SocketAddr {
        match to {
            SocketAddr::V4(v4) if self.is_v6 => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
            _ => to,
        }
    }
}

/// True if a receive error says nothing about the socket itself, so that receiving may be tried again.
fn is_passing(error: &io::Error) -> bool {
    use Errno::*;
    let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
    matches!(
        errno,
        EINTR
            | ECONNREFUSED
            | EHOSTUNREACH
            | EHOSTDOWN
            | ENETUNREACH
            | ENETDOWN
            | ENOPROTOOPT
            | EPROTO
            | EOPNOTSUPP
            | EMSGSIZE
            | EACCES
            | EPERM
            | ENOMEM
            | ENOBUFS
            | ETIMEDOUT
    )
}

/// The address without IPv4 mapping. A link-local address keeps its scope, without which nothing can be sent to it.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_none() => {
            SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into()
        }
        _ => SocketAddr::new(address.ip().to_canonical(), address.port()),
    }
}

impl std::fmt::Debug for Udp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Udp").field("local", &self.socket.local_addr().ok()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_keeps_its_scope() {
        let heard = |text: &str| canonical(text.parse().expect("an address")).to_string();
        for (address, expected) in [
            ("192.0.2.1:4500", "192.0.2.1:4500"),
            ("[::ffff:192.0.2.1]:4500", "192.0.2.1:4500"),
            ("[2001:db8::1]:4500", "[2001:db8::1]:4500"),
            ("[fe80::1%2]:4500", "[fe80::1%2]:4500"),
        ] {
            assert_eq!(heard(address), expected);
        }
        // The flow label of a datagram is not part of its sender's address.
        let labelled = SocketAddrV6::new("2001:db8::1".parse().expect("an address"), 4500, 7, 0);
        assert_eq!(canonical(labelled.into()), heard("[2001:db8::1]:4500").parse().expect("an address"));
    }

    /// Above the base size, which passes everywhere, only datagrams of the same length are sent by one call.
    #[test]
    fn a_short_datagram_does_not_share_the_fate_of_long_ones() {
        let at = "127.0.0.1:0".parse().expect("an address");
        let mut udp = Udp::bind(at).expect("a socket");
        if udp.state.max_gso_segments() == 1 {
            return;
        }
        let to = Udp::bind(at).and_then(|other| other.local()).expect("an address");
        let pending = [1400, 1400, 1200, 1200, 100, 1300].map(|length| {
            udp.send(Time::ZERO, to, length);
            udp.filled
        });
        assert_eq!(pending, [1400, 2800, 1200, 2400, 2500, 1300]);
    }

    /// The kernel refuses datagrams to port 0, and any whose route is a blackhole, with EINVAL, as if the device had no offload.
    #[test]
    fn a_refusal_does_not_end_segmentation_offload() {
        let at = "127.0.0.1:0".parse().expect("an address");
        let mut udp = Udp::bind(at).expect("a socket");
        let max = udp.state.max_gso_segments();
        for count in 1..4_u64 {
            let before = udp.refusals();
            (0..count).for_each(|_| udp.send(Time::ZERO, at, 1000));
            udp.flush(Time::ZERO);
            let unreachable = before.unreachable + count;
            assert_eq!(udp.refusals(), Refusals { unreachable, ..before });
            assert_eq!(udp.state.max_gso_segments(), max, "{count}");
        }
        let mut other = Udp::bind(at).expect("a socket");
        let to = other.local().expect("an address");
        (0..10).for_each(|_| udp.send(Time::ZERO, to, 1000));
        udp.flush(Time::ZERO);
        let mut heard = 0;
        while heard < 10 {
            other.receive(|_, datagram| heard += u32::from(datagram.len() == 1000)).expect("a socket");
        }
    }
}
