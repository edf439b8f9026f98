//! Kernel sockets: listening for TPROXY, connecting with the client's address, and resetting.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use bentpipe_engine::mux::{Message, Reason, Route, StreamId};
use mio::net::{TcpListener, TcpStream};
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::SetSockOpt;
use nix::sys::socket::sockopt::SetStruct;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use crate::ports;

/// The source address with which a box connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAddress {
    /// The client's address, so that the destination sees it.
    Keep,
    /// The box's own address.
    Replace,
}

/// Maximum bytes per read.
pub(super) const READ: usize = 128 << 10;
/// Maximum number of connections that are being opened or wait to be accepted; net.core.somaxconn also limits it. Above
/// it, the kernel answers with SYN cookies, whose ACKs TPROXY does not match, so those connections are reset.
pub(super) const BACKLOG: i32 = 1 << 16;
/// Number of SYN-ACK retransmissions. A handshake that is never completed then takes its place for 15 s (1 + 2 + 4 +
/// 8), not for the kernel's 63 s.
const SYN_ACKS: i32 = 3;

/// True if the kernel has this family of addresses. With `ipv6.disable=1`, it lacks IPv6.
pub(super) fn has_family(domain: Domain) -> bool {
    let unknown = |error: io::Error| error.raw_os_error() == Some(Errno::EAFNOSUPPORT as i32);
    !Socket::new(domain, Type::STREAM, None).is_err_and(unknown)
}

/// Binds a listener for connections redirected by TPROXY, whatever their destination. It does not listen yet.
pub(super) fn bind(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    // Accepted connections inherit this before their first byte.
    socket.set_out_of_band_inline(true).map_err(named("SO_OOBINLINE"))?;
    if at.is_ipv6() {
        socket.set_only_v6(true).map_err(named("IPV6_V6ONLY"))?;
    }
    transparent(&socket, at).map_err(named("IP_TRANSPARENT"))?;
    SynCount.set(&socket, &SYN_ACKS).map_err(|errno| named("TCP_SYNCNT")(errno.into()))?;
    // Address reuse is off, so that nobody else can listen there. The kernel then also refuses the port while an old
    // connection to it, of any host, is in TIME-WAIT. If it refuses even with reuse, the port is in use.
    if socket.bind(&at.into()).is_err() {
        socket.set_reuse_address(true)?;
        socket.bind(&at.into()).map_err(|error| ports::explained(ports::Kind::Tcp, at.port(), error))?;
    }
    Ok(TcpListener::from_std(socket.into()))
}

/// Begins to listen.
pub(super) fn listen(listener: &TcpListener) -> io::Result<()> {
    let listening = SockRef::from(listener).listen(BACKLOG);
    listening.map_err(|error| match listener.local_addr() {
        Ok(at) => ports::explained(ports::Kind::Tcp, at.port(), error),
        Err(_) => error,
    })
}

/// Stops listening but keeps the port. Connections that have not been accepted are reset.
pub(super) fn stop_listening(listener: &TcpListener) -> io::Result<()> {
    SockRef::from(listener).shutdown(Shutdown::Read)
}

/// No other crate offers this option.
#[derive(Clone, Copy, Debug)]
struct MaxPacingRate;

nix::setsockopt_impl!(MaxPacingRate, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64, SetStruct<'_, u64>);

/// For a listener, it counts SYN-ACKs (tcp(7) documents it only for SYNs).
#[derive(Clone, Copy, Debug)]
struct SynCount;

nix::setsockopt_impl!(SynCount, libc::IPPROTO_TCP, libc::TCP_SYNCNT, i32, SetStruct<'_, i32>);

/// Sets how the connections of a listener send: with this congestion control, with at most `pacing` bytes of payload
/// per second, and with this packet mark.
pub(super) fn send_by(listener: &TcpListener, congestion: &str, pacing: u64, mark: u32) -> io::Result<()> {
    let socket = SockRef::from(listener);
    socket.set_tcp_congestion(congestion.as_bytes())?;
    socket.set_mark(mark)?;
    Ok(MaxPacingRate.set(listener, &pacing)?)
}

/// Adds the name of a listener's option to the kernel's error, which may be just "Protocol not available".
fn named(option: &'static str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{option} cannot be set on a listener: {error}"))
}

fn transparent(socket: &Socket, at: SocketAddr) -> io::Result<()> {
    if at.is_ipv4() { socket.set_ip_transparent_v4(true) } else { socket.set_ip_transparent_v6(true) }
}

/// Connects to the destination of a route. If the client's port is still taken by one of its connections, another port
/// is used, and the second return value is true. Packets with the client's address carry `mark`.
pub(super) fn connect(route: Route, address: ClientAddress, mark: Option<u32>) -> (io::Result<TcpStream>, bool) {
    let Route { source, destination } = route;
    let any: IpAddr = if destination.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    match address {
        ClientAddress::Replace => (connect_from(SocketAddr::new(any, 0), destination, None), false),
        ClientAddress::Keep => match connect_from(source, destination, Some(mark)) {
            Err(error) if is_taken(&error) => {
                (connect_from(SocketAddr::new(source.ip(), 0), destination, Some(mark)), true)
            }
            other => (other, false),
        },
    }
}

fn is_taken(error: &io::Error) -> bool {
    // Ports below 1024 need a privilege.
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable | io::ErrorKind::PermissionDenied)
}

/// `foreign`: connects with the client's address and this mark.
fn connect_from(source: SocketAddr, destination: SocketAddr, foreign: Option<Option<u32>>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(destination), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    if let Some(mark) = foreign {
        socket.set_reuse_address(true)?;
        if let Some(mark) = mark {
            socket.set_mark(mark)?;
        }
        transparent(&socket, destination)?;
        socket.bind(&source.into())?;
    }
    match socket.connect(&destination.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => {}
        Err(error) => return Err(error),
    }
    Ok(TcpStream::from_std(socket.into()))
}

/// Sets the options of every connection. Small writes are sent at once. Urgent data stays in the stream, because by
/// default the kernel removes its last byte. Keepalives detect a user that has vanished. If the gateway dies, the
/// kernel resets the connection, because a FIN would say that the data was complete.
pub(super) fn tune(socket: &impl AsFd) {
    let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(120)).with_interval(Duration::from_secs(30));
    let socket = SockRef::from(socket);
    // A connection also works without these options.
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_out_of_band_inline(true);
    let _ = socket.set_tcp_keepalive(&keepalive);
    let _ = socket.set_linger(Some(Duration::ZERO));
}

/// Ends a connection with a reset.
pub(super) fn reset(socket: TcpStream) {
    // With a linger time of zero, closing sends RST (RFC 9293 §3.10.4).
    let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
}

/// Closes a connection whose directions have both ended. The kernel still sends the remaining data.
pub(super) fn close(socket: TcpStream) {
    let _ = SockRef::from(&socket).set_linger(None);
}

/// True if an error says that descriptors or memory are exhausted.
pub(super) fn is_exhausted(error: &io::Error) -> bool {
    let exhausted = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM].map(|errno| errno as i32);
    error.raw_os_error().is_some_and(|errno| exhausted.contains(&errno))
}

/// The reason of a failed connection attempt, for the other box. An address is not available if no port is free.
pub(super) fn reason(error: &io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Reason::Refused,
        io::ErrorKind::TimedOut => Reason::TimedOut,
        io::ErrorKind::PermissionDenied => Reason::Forbidden,
        io::ErrorKind::AddrNotAvailable => Reason::NoResources,
        _ if is_exhausted(error) => Reason::NoResources,
        _ => Reason::Unreachable,
    }
}

/// The stream whose data a message carries.
pub(super) fn stream_of(message: &Message) -> Option<StreamId> {
    match *message {
        Message::Open { stream, .. } | Message::Data { stream, .. } => Some(stream),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_has_some_families() {
        // AF_UNIX, which is needed for `status`, and a number that is not assigned.
        assert!(has_family(Domain::UNIX) && has_family(Domain::IPV4));
        assert!(!has_family(Domain::from(77)));
    }

    /// Callers look at the kind.
    #[test]
    fn an_error_names_the_option() {
        let error = named("IP_TRANSPARENT")(io::Error::from_raw_os_error(Errno::EPERM as i32));
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().starts_with("IP_TRANSPARENT cannot be set on a listener: "), "{error}");
    }
}
