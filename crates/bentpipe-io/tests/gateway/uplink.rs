//! The `uplink` shape.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bentpipe_engine::units;
use bentpipe_io::gateway::{ClientAddress, UplinkConfig, UplinkStats};

use crate::hosts::{connect, data, echo_after_end, hash, send_then_take, serve, take};
use crate::world::{CLIENT, CLIENT6, Path, Running, SERVER, SERVER6, World};

fn lossy() -> Path {
    Path { rate: 20_000_000, delay: units::Duration::from_millis(30), loss: 0.01, outages: false }
}

/// A path that costs a test little time.
fn quick() -> Path {
    Path { rate: 100_000_000, delay: units::Duration::from_millis(5), loss: 0.01, outages: false }
}

type Uplink = (Running, Arc<Mutex<UplinkStats>>);

fn uplink(world: &World) -> Uplink {
    world.uplink(world.uplink_config("burst"), ClientAddress::Keep)
}

/// What was counted, when `check` is content with it.
fn until(seen: &Mutex<UplinkStats>, check: impl Fn(&UplinkStats) -> bool) -> UplinkStats {
    for _ in 0..400 {
        let stats = *seen.lock().expect("nobody panics");
        if check(&stats) {
            return stats;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{seen:?}");
}

/// Sends `bytes` after one byte of request, and ends.
fn answer(bytes: Vec<u8>) -> impl Fn(TcpStream, SocketAddr) -> SocketAddr + Send + Clone + 'static {
    move |mut stream, from| {
        stream.read_exact(&mut [0]).expect("a request");
        stream.write_all(&bytes).expect("the client listens");
        from
    }
}

/// Each row that is meant for it, both versions; the server sees the client's own address.
#[test]
fn downloads_arrive_whole() {
    let world = World::new(lossy(), 1);
    for variant in ["burst", "constant-window", "reno-super-fast", "sack"] {
        let (gateway, seen) = world.uplink(world.uplink_config(variant), ClientAddress::Keep);
        for (ip, client) in [(SERVER, CLIENT), (SERVER6, CLIENT6)] {
            let bytes = data(2_000_003, 7);
            let expected = (bytes.len(), hash(&bytes));
            let (at, server) = serve(&world.server, ip, 1, answer(bytes));
            let mut stream = connect(&world.client, at);
            let local = stream.local_addr().expect("it is connected");
            stream.write_all(&[1]).expect("it is open");
            assert_eq!(take(&mut stream), expected, "{variant}");
            assert_eq!(server.join().expect("the server ends"), [local], "address and port");
            assert_eq!(local.ip(), client.parse::<IpAddr>().expect("an address"));
        }
        let stats = until(&seen, |stats| stats.total == 2 && stats.open == 0);
        assert_eq!((stats.connected, stats.failed, stats.refused, stats.reset), (2, 0, 0, 0), "{stats:?}");
        // 2 * 1382 segments of 1448 bytes, and 1 % at least again.
        assert!(stats.segments > 2764 && stats.retransmits >= 10, "{stats:?}");
        drop(gateway);
    }
}

/// Up, and down again after the client's end: half-close.
#[test]
fn uploads_and_half_close() {
    let world = World::new(lossy(), 2);
    let gateway = uplink(&world);
    for ip in [SERVER, SERVER6] {
        let (at, server) = serve(&world.server, ip, 1, echo_after_end);
        let bytes = data(1_000_003, 7);
        assert_eq!(send_then_take(connect(&world.client, at), &bytes), (bytes.len(), hash(&bytes)));
        server.join().expect("the server ends");
    }
    until(&gateway.1, |stats| stats.total == 2 && stats.open == 0);
    drop(gateway);
}
