//! Hosts on this machine for unit tests.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Socket, Type};

pub(crate) fn server() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    (listener, at)
}

/// A server whose backlog is full, so that it does not answer.
pub(crate) fn silent() -> (Socket, Vec<Socket>, SocketAddr) {
    let socket = || Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None).expect("descriptors");
    let listener = socket();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
    listener.listen(0).expect("it is bound");
    let at = listener.local_addr().expect("it is bound");
    let waiting = (0..3).map(|_| socket()).inspect(|socket| drop(socket.connect(&at))).collect();
    (listener, waiting, at.as_socket().expect("of IP"))
}

pub(crate) fn is_reset(mut host: impl Read) -> bool {
    matches!(host.read(&mut [0]), Err(error) if error.kind() == ErrorKind::ConnectionReset)
}
