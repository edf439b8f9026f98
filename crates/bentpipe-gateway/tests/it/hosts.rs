//! The unmodified hosts: the kernel's TCP, a stream that does not repeat, SHA-256.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sha2::{Digest, Sha256};

use crate::namespace::Namespace;

pub(crate) type Hash = [u8; 32];

/// Bytes whose number is no multiple of a buffer's size, and whose values depend on `seed`.
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

/// A server on a free port of its host, with a thread for each connection.
pub(crate) fn serve<T: Send + 'static>(
    host: &Namespace,
    ip: &str,
    count: usize,
    work: impl Fn(TcpStream, SocketAddr) -> T + Send + Clone + 'static,
) -> (SocketAddr, JoinHandle<Vec<T>>) {
    let ip: std::net::IpAddr = ip.parse().expect("an address");
    // The standard library's backlog of 128 overflows under a thousand connections at once. The kernel then answers with cookies and
    // resets, which is the server's fault and not the gateway's.
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

/// A client's connection. Its socket belongs to that host, whichever thread uses it.
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
            // A call on a socket with a timeout is not restarted after a signal (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("no reset, no silence: {error}"),
        }
    }
}

/// Waits for a request of one byte, sends `bytes` and closes. Returns the client's address.
pub(crate) fn answer(bytes: Vec<u8>) -> impl Fn(TcpStream, SocketAddr) -> SocketAddr + Send + Clone + 'static {
    move |mut stream, from| {
        stream.read_exact(&mut [0]).expect("a request");
        stream.write_all(&bytes).expect("the client listens");
        from
    }
}

/// A client requests `bytes` and gets all of them. Returns the client's address and the one that the server saw.
pub(crate) fn download(client: &Namespace, server: &Namespace, ip: &str, bytes: Vec<u8>) -> [SocketAddr; 2] {
    let expected = (bytes.len(), hash(&bytes));
    let (at, server) = serve(server, ip, 1, answer(bytes));
    let mut stream = connect(client, at);
    stream.write_all(&[1]).expect("it is open");
    assert_eq!(take(&mut stream), expected);
    [stream.local_addr().expect("it is connected"), server.join().expect("the server ends")[0]]
}

/// Sends this many bytes, closes, and gets them all back.
pub(crate) fn echo(client: &Namespace, server: &Namespace, ip: &str, size: usize) {
    let (at, server) = serve(server, ip, 1, echo_after_end);
    let bytes = data(size, 8);
    assert_eq!(send_then_take(connect(client, at), &bytes), (bytes.len(), hash(&bytes)));
    server.join().expect("the server ends");
}

/// Reads everything, then sends it back, which needs half-close.
pub(crate) fn echo_after_end(mut stream: TcpStream, _: SocketAddr) {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("no reset");
    stream.write_all(&bytes).expect("the client listens");
}

/// Sends, closes its direction, and reads the answer.
pub(crate) fn send_then_take(mut stream: TcpStream, bytes: &[u8]) -> (usize, Hash) {
    stream.write_all(bytes).expect("the gateway takes it");
    stream.shutdown(Shutdown::Write).expect("it is open");
    take(&mut stream)
}

/// Raises this process's limit of open files. Tests run side by side: two with 1000 connections through gateways in this process have 8000,
/// a third has 2040.
pub(crate) fn many_descriptors() {
    let (_, max) = getrlimit(Resource::RLIMIT_NOFILE).expect("there is one");
    setrlimit(Resource::RLIMIT_NOFILE, max.min(16_384), max).expect("no more than is allowed");
}

/// `count` connections at once, each with `step` more bytes than the previous one. All bytes come back.
pub(crate) fn many_at_once(client: &Namespace, server: &Namespace, ip: &str, count: usize, step: usize) {
    many_descriptors();
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

/// Each end closes immediately after its last byte, in both directions, for each size.
pub(crate) fn pushed_then_closed(client: &Namespace, server: &Namespace, ip: &str, sizes: &[usize]) {
    let mut expected: Vec<_> = sizes.iter().map(|&size| (size, hash(&data(size, size as u64)))).collect();
    let (at, taker) = serve(server, ip, sizes.len(), |mut stream, _| take(&mut stream));
    for &size in sizes {
        let mut stream = connect(client, at);
        stream.write_all(&data(size, size as u64)).expect("the gateway takes it");
        // Dropping the socket closes it with all its data still in flight.
    }
    let mut got = taker.join().expect("the server ends");
    got.sort_unstable();
    expected.sort_unstable();
    assert!(got == expected, "{:?}", got.iter().zip(&expected).find(|(got, expected)| got != expected));
    for (size, hash) in expected {
        let (at, giver) = serve(server, ip, 1, move |mut stream, _| {
            stream.write_all(&data(size, size as u64)).expect("the gateway takes it");
        });
        assert_eq!(take(&mut connect(client, at)), (size, hash));
        giver.join().expect("the server ends");
    }
}

/// A reset on either side becomes a reset on the other.
pub(crate) fn resets_go_through(client: &Namespace, server: &Namespace, ip: &str) {
    let abort = |stream: TcpStream| {
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a setting");
    };
    let (at, listening) = serve(server, ip, 1, |mut stream, _| {
        stream.write_all(b"hello").expect("it is open");
        stream.read(&mut [0; 10]).expect_err("the client resets").kind()
    });
    let mut stream = connect(client, at);
    stream.read_exact(&mut [0; 5]).expect("the server greets");
    abort(stream);
    assert_eq!(listening.join().expect("the server ends"), [ErrorKind::ConnectionReset]);
    let (at, aborting) = serve(server, ip, 1, move |mut stream, _| {
        stream.read_exact(&mut [0; 5]).expect("the client greets");
        abort(stream);
    });
    let mut stream = connect(client, at);
    stream.write_all(b"hello").expect("it is open");
    let error = stream.read(&mut [0; 10]).expect_err("the server resets");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    aborting.join().expect("the server ends");
}

/// A client that does not read its download blocks only its own server. Returns the number of bytes that the server could write.
pub(crate) fn slow_beside_quick(client: &Namespace, server: &Namespace, ip: &str) -> usize {
    let (at, pushing) = serve(server, ip, 1, |mut stream: TcpStream, _| {
        stream.set_write_timeout(Some(Duration::from_millis(500))).expect("not zero");
        let mut count = 0;
        while let Ok(wrote) = stream.write(&[7; 1 << 16]) {
            count += wrote;
        }
        count
    });
    let slow = connect(client, at);
    download(client, server, ip, data(2_000_003, 1));
    let held = pushing.join().expect("the server ends")[0];
    drop(slow);
    held
}

/// How long the answers to small requests on one connection take, each sent after a pause in seconds.
pub(crate) fn times_of_requests(client: &Namespace, server: &Namespace, ip: &str, pauses: &[u64]) -> Vec<Duration> {
    let (at, served) = serve(server, ip, 1, |mut stream, _| {
        let mut request = [0; 100];
        while stream.read_exact(&mut request).is_ok() {
            stream.write_all(&request).expect("the client listens");
        }
    });
    let mut stream = connect(client, at);
    let request = |pause: &u64| {
        std::thread::sleep(Duration::from_secs(*pause));
        let start = Instant::now();
        stream.write_all(&[7; 100]).expect("it is open");
        stream.read_exact(&mut [0; 100]).expect("an answer comes");
        start.elapsed()
    };
    let took = pauses.iter().map(request).collect();
    stream.shutdown(Shutdown::Write).expect("it is open");
    served.join().expect("the server ends");
    took
}

/// Sends a byte and reads one.
pub(crate) fn talk(stream: &mut TcpStream, byte: u8) -> Result<u8, ErrorKind> {
    let mut got = [0];
    stream.write_all(&[byte]).and_then(|()| stream.read_exact(&mut got)).map_err(|error| error.kind())?;
    Ok(got[0])
}

/// Sends each byte back. Returns their number.
pub(crate) fn echo_bytes(mut stream: TcpStream, _: SocketAddr) -> usize {
    let mut byte = [0];
    let mut count = 0;
    while let Ok(1) = stream.read(&mut byte) {
        count += 1;
        if stream.write_all(&byte).is_err() {
            break;
        }
    }
    count
}

/// Waits until `check` accepts the counters, and returns them.
pub(crate) fn until<S: Copy + std::fmt::Debug>(seen: &Mutex<S>, check: impl Fn(&S) -> bool) -> S {
    for _ in 0..400 {
        let stats = *seen.lock().expect("nobody panics");
        if check(&stats) {
            return stats;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{seen:?}");
}

/// A connection older than the gateway of a single box passes through it unchanged. When the gateway is gone, new connections pass
/// directly, although its rules are still installed.
pub(crate) fn comes_and_goes<G, S: Copy + std::fmt::Debug>(
    [client, server]: [&Namespace; 2],
    ip: &str,
    begin: impl FnOnce() -> (G, Arc<Mutex<S>>),
    has_counted: fn(&S) -> bool,
    end: impl FnOnce(&mut G),
) {
    let (at, echoing) = serve(server, ip, 3, echo_bytes);
    let mut old = connect(client, at);
    assert_eq!(talk(&mut old, 1), Ok(1));
    let (mut running, seen) = begin();
    assert_eq!(talk(&mut old, 2), Ok(2));
    let mut through = connect(client, at);
    assert_eq!(talk(&mut through, 3), Ok(3));
    until(&seen, has_counted);
    end(&mut running);
    let mut late = connect(client, at);
    assert_eq!(talk(&mut late, 4), Ok(4));
    assert_eq!(talk(&mut old, 5), Ok(5));
    // Connections through the gateway are reset.
    assert_eq!(through.read(&mut [0]).map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
    drop((old, late));
    let mut counts = echoing.join().expect("the server ends");
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 3]);
    drop(running);
}

/// A byte that a client marks as urgent arrives in its place in the stream.
pub(crate) fn urgent_data_is_kept(client: &Namespace, server: &Namespace, ip: &str) {
    let (at, server) = serve(server, ip, 1, |mut stream, _| {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).map(|_| bytes)
    });
    let mut stream = connect(client, at);
    stream.write_all(b"ab").expect("it is open");
    assert_eq!(socket2::SockRef::from(&stream).send_out_of_band(b"!").expect("it is open"), 1);
    stream.write_all(b"cd").expect("it is open");
    drop(stream);
    let got = server.join().expect("the server ends").swap_remove(0);
    assert_eq!(got.expect("no reset"), b"ab!cd");
}
