//! The data of both sides: a stream that does not repeat, its SHA-256, and the engine's side of the exchange.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::thread::JoinHandle;

use bentpipe_engine::Probe;
use bentpipe_engine::link::{LinkConfig, LossConfig};
use bentpipe_engine::probe::{Event, Who};
use bentpipe_engine::tcp::{Abort, AckPolicy, TcpConfig, TcpStats};
use bentpipe_engine::units::{Duration, Probability, Time};
use bentpipe_io::{Driver, Endpoint, Path, Peer, Turn};
use sha2::{Digest, Sha256};

use super::namespace::{Door, Namespace};

/// 10 MB, a size that is no multiple of a ring's or a segment's.
pub(crate) static DATA: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut x = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    };
    (0..10_000_019).map(|_| next()).collect()
});

pub(crate) type Hash = [u8; 32];

pub(crate) fn hash(data: &[u8]) -> Hash {
    Sha256::digest(data).into()
}

/// The longest that a run may take.
const LIMIT: Time = Time::from_nanos(40_000_000_000);

/// Settings for a path of a few milliseconds. Timers made for the Internet would only slow the test down.
pub(crate) fn config() -> TcpConfig {
    let mut config = TcpConfig { time_wait: Duration::from_millis(20), ..TcpConfig::default() };
    config.ack = AckPolicy { delay: Duration::from_millis(20), ..AckPolicy::DELAYED };
    config.rto.min = Duration::from_millis(50);
    config.receive_buffer = 4 << 20;
    config
}

/// No delay, no loss.
pub(crate) fn clean() -> Path {
    let link = LinkConfig::clean(None, Duration::ZERO);
    Path { up: link.clone(), down: link, seed: 1 }
}

/// 2 ms and 2 % loss in each direction, by the engine's own link.
pub(crate) fn lossy(seed: u64) -> Path {
    let mut link = LinkConfig::clean(None, Duration::from_millis(2));
    link.good = LossConfig { packet: Probability::new(0.02).expect("a probability"), bit: Probability::ZERO };
    Path { up: link.clone(), down: link, seed }
}

/// Counters on the engine's side of the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    /// Zero windows received and sent, after the handshake.
    pub(crate) zero_received: u32,
    pub(crate) zero_sent: u32,
    pub(crate) timestamps_received: u32,
    pub(crate) sack_received: u32,
    /// The largest window received.
    pub(crate) max_window: u32,
    /// Packets lost by the links.
    pub(crate) lost: u32,
}

impl Probe for Watch {
    fn event(&mut self, _: Time, _: Who, event: &Event) {
        match event {
            Event::Sent { segment, .. } => self.zero_sent += u32::from(segment.window == 0),
            Event::Received { segment } => {
                self.zero_received += u32::from(segment.window == 0);
                self.timestamps_received += u32::from(segment.timestamps.is_some());
                self.sack_received += u32::from(!segment.sack.is_empty());
                self.max_window = self.max_window.max(segment.window);
            }
            Event::Dropped { .. } => self.lost += 1,
            _ => {}
        }
    }
}

/// The script of the engine's side.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    /// The data that it sends.
    pub(crate) upload: &'static [u8],
    /// True if it sends only after the peer has closed. Otherwise it closes first.
    pub(crate) peer_closes_first: bool,
    /// It reads nothing before this instant.
    pub(crate) reads_from: Time,
}

impl Script {
    pub(crate) fn upload(upload: &'static [u8]) -> Self {
        Script { upload, peer_closes_first: false, reads_from: Time::ZERO }
    }
}

/// The outcome.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) received: Hash,
    pub(crate) bytes: usize,
    pub(crate) outcome: Result<(), Abort>,
    pub(crate) stats: TcpStats,
    pub(crate) rcv_scale: u8,
    pub(crate) watch: Watch,
    pub(crate) malformed: u64,
}

/// Runs the script to the end of the connection.
pub(crate) fn engine(door: Door, peer: Peer, config: TcpConfig, path: &Path, script: Script) -> Report {
    let mut driver =
        Driver::new(door.tun, path, Watch::default(), |cx| Endpoint::open(cx, config, door.engine, peer, 1 << 20))
            .expect("descriptors");
    let (mut hasher, mut bytes, mut written, mut closed) = (Sha256::new(), 0, 0, false);
    let mut buffer = vec![0; 1 << 16];
    let run = driver.run(|user| {
        if user.now() >= script.reads_from {
            while let got @ 1.. = user.read(&mut buffer) {
                hasher.update(&buffer[..got]);
                bytes += got;
            }
        }
        let may_send = user.endpoint().peer_has_closed() || !script.peer_closes_first;
        if user.endpoint().is_connected() && may_send && !closed {
            written += user.write(&script.upload[written..]).expect("it is open");
            if written == script.upload.len() {
                user.close();
                closed = true;
            }
        }
        if user.endpoint().outcome().is_some() || user.now() > LIMIT {
            return Turn::Done;
        }
        Turn::Until(if user.now() < script.reads_from { script.reads_from } else { LIMIT + Duration::from_millis(1) })
    });
    run.expect("the device works");
    let connection = driver.endpoint().connection();
    let (stats, rcv_scale) = (connection.stats(), connection.rcv_scale());
    let malformed = driver.counters().malformed;
    let Some(outcome) = driver.endpoint().outcome() else {
        panic!(
            "no end after {LIMIT:?}: {bytes} bytes came, {written} written, {} acknowledged, {stats:?}, {connection:#?}",
            driver.endpoint().acknowledged(),
        );
    };
    Report {
        received: hasher.finalize().into(),
        bytes,
        outcome,
        stats,
        rcv_scale,
        watch: driver.into_probe(),
        malformed,
    }
}

/// The kernel's side of a connection.
pub(crate) type Kernel = fn(TcpStream) -> Hash;

/// Reads everything, then sends everything.
pub(crate) fn take_then_send(mut stream: TcpStream) -> Hash {
    let got = take(&mut stream);
    stream.write_all(&DATA).expect("the engine takes it");
    got
}

/// Sends everything, closes its direction, then reads to the end.
pub(crate) fn send_then_take(mut stream: TcpStream) -> Hash {
    stream.write_all(&DATA).expect("the engine takes it");
    stream.shutdown(Shutdown::Write).expect("it is open");
    take(&mut stream)
}

/// Reads to the end.
pub(crate) fn take(stream: &mut TcpStream) -> Hash {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match stream.read(&mut buffer).expect("the engine does not reset") {
            0 => return hasher.finalize().into(),
            got => hasher.update(&buffer[..got]),
        }
    }
}

/// A kernel server for one connection. Returns its address and, at the end, the bytes that it has read.
pub(crate) fn serve(namespace: &Namespace, door: &Door, kernel: Kernel) -> (Peer, JoinHandle<Hash>) {
    let host = door.host;
    let listener = namespace.inside(move || TcpListener::bind((host, 0)).expect("a free port"));
    let peer = Peer::Connect(listener.local_addr().expect("it is bound"));
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("the engine connects");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(40))).expect("not zero");
        stream.set_write_timeout(Some(std::time::Duration::from_secs(40))).expect("not zero");
        kernel(stream)
    });
    (peer, server)
}
