//! What the unmodified hosts do: the kernel's TCP, a stream without period, SHA-256.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::namespace::Namespace;

pub(crate) type Hash = [u8; 32];

/// Bytes that no buffer's length divides, and that differ by `seed`.
pub(crate) fn data(len: usize, seed: u64) -> Vec<u8> {
    let mut x = 0x2545_f491_4f6c_dd1d_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes.extend_from_slice(&x.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

pub(crate) fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// A server on a free port of its host, which treats each connection in a thread of its own.
pub(crate) fn serve<T: Send + 'static>(
    host: &Namespace,
    ip: &str,
    count: usize,
    work: impl Fn(TcpStream, SocketAddr) -> T + Send + Clone + 'static,
) -> (SocketAddr, JoinHandle<Vec<T>>) {
    let ip: std::net::IpAddr = ip.parse().expect("an address");
    // The standard library's backlog of 128 overflows under a thousand connections at once, and the kernel then answers
    // with cookies and resets: the server's doing, not a gateway's.
    let listener: TcpListener = host.inside(move || {
        let socket = socket2::Socket::new(socket2::Domain::for_address((ip, 0).into()), socket2::Type::STREAM, None);
        let socket = socket.expect("the kernel has TCP");
        socket.bind(&SocketAddr::new(ip, 0).into()).expect("a free port");
        socket.listen(4096).expect("it is bound");
        socket.into()
    });
    let at = listener.local_addr().expect("it is bound");
    let thread = std::thread::spawn(move || {
        let workers: Vec<_> = (0..count)
            .map(|_| {
                let (stream, from) = listener.accept().expect("a client comes");
                patient(&stream);
                let work = work.clone();
                std::thread::spawn(move || work(stream, from))
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("the server does not panic")).collect()
    });
    (at, thread)
}

fn patient(stream: &TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("not zero");
    stream.set_write_timeout(Some(Duration::from_secs(60))).expect("not zero");
}

/// A client's connection; its socket lies on that host, whichever thread uses it.
pub(crate) fn connect(host: &Namespace, to: SocketAddr) -> TcpStream {
    let stream = host.inside(move || TcpStream::connect_timeout(&to, Duration::from_secs(20)).expect("it connects"));
    patient(&stream);
    stream
}

/// Reads to the end.
pub(crate) fn take(stream: &mut TcpStream) -> (usize, Hash) {
    let (mut hasher, mut buffer, mut count) = (Sha256::new(), vec![0; 1 << 16], 0);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return (count, hasher.finalize().into()),
            Ok(got) => {
                hasher.update(&buffer[..got]);
                count += got;
            }
            // A socket with a timeout does not go on by itself after a signal (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("no reset, no silence: {error}"),
        }
    }
}

/// Takes everything, then answers with it: half-close has to work for that.
pub(crate) fn echo_after_end(mut stream: TcpStream, _: SocketAddr) {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("no reset");
    stream.write_all(&bytes).expect("the client listens");
}

/// Sends, ends its direction, and takes the answer.
pub(crate) fn send_then_take(mut stream: TcpStream, bytes: &[u8]) -> (usize, Hash) {
    stream.write_all(bytes).expect("the gateway takes it");
    stream.shutdown(Shutdown::Write).expect("it is open");
    take(&mut stream)
}

/// So many connections at once, each with bytes of its own, `step` more than the one before; all come back whole.
pub(crate) fn many_at_once(client: &Namespace, server: &Namespace, ip: &str, count: usize, step: usize) {
    let (at, server) = serve(server, ip, count, echo_after_end);
    let streams =
        client.inside(move || (0..count).map(|_| TcpStream::connect(at).expect("it connects")).collect::<Vec<_>>());
    let threads: Vec<_> = streams
        .into_iter()
        .enumerate()
        .map(|(n, stream)| {
            std::thread::spawn(move || {
                let bytes = data(5_000 + n * step, n as u64);
                assert_eq!(send_then_take(stream, &bytes), (bytes.len(), hash(&bytes)), "{n}");
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("whole"));
    server.join().expect("the server ends");
}
