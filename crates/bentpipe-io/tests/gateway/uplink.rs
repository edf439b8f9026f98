//! The `uplink` shape.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bentpipe_engine::units;
use bentpipe_io::gateway::{ClientAddress, UplinkConfig, UplinkStats};

use crate::hosts::{connect, data, echo_after_end, hash, many_at_once, send_then_take, serve, take};
use crate::world::{CLIENT, CLIENT6, Path, Running, SERVER, SERVER6, World, run};

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
    for (variant, size) in [("burst", 3_000_003), ("constant-window", 2_000_003), ("reno-super-fast", 200_003)] {
        let (gateway, seen) = world.uplink(world.uplink_config(variant), ClientAddress::Keep);
        for (ip, client) in [(SERVER, CLIENT), (SERVER6, CLIENT6)] {
            let bytes = data(size, 7);
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
        // In segments of 1448 bytes; of 100 one is lost and sent again, which a few hundred may be spared.
        let segments = 2 * size as u64 / 1448;
        assert!(stats.segments > segments, "{stats:?}");
        assert!(size < 1_000_000 || stats.retransmits >= segments / 200, "{stats:?}");
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

/// Ends right behind the last byte, in both directions, many times over.
#[test]
fn push_then_close_arrives_whole() {
    let world = World::new(quick(), 3);
    let gateway = uplink(&world);
    let sizes: Vec<usize> = (0..40).map(|n| 20_000 + n * n * 100).collect();
    let expected: Vec<_> = sizes.iter().map(|&size| (size, hash(&data(size, size as u64)))).collect();
    let (at, server) = serve(&world.server, SERVER, sizes.len(), |mut stream, _| take(&mut stream));
    for &size in &sizes {
        let mut stream = connect(&world.client, at);
        stream.write_all(&data(size, size as u64)).expect("the gateway takes it");
        // Dropped: closed with all of it on its way.
    }
    let mut got = server.join().expect("the server ends");
    got.sort_unstable();
    assert!(got == expected, "{:?}", got.iter().zip(&expected).find(|(got, expected)| got != expected));
    for (&size, expected) in sizes.iter().zip(&expected) {
        let (at, server) = serve(&world.server, SERVER, 1, move |mut stream, _| {
            stream.write_all(&data(size, size as u64)).expect("the gateway takes it");
        });
        assert_eq!(take(&mut connect(&world.client, at)), *expected);
        server.join().expect("the server ends");
    }
    until(&gateway.1, |stats| stats.total == 80 && stats.open == 0);
    drop(gateway);
}

/// The client hears what the server says: its SYN is refused, not a connection that it thought it had.
#[test]
fn a_refused_port_is_refused() {
    let world = World::new(Path { loss: 0.0, ..quick() }, 4);
    let gateway = uplink(&world);
    for ip in [SERVER, SERVER6] {
        let at = SocketAddr::new(ip.parse().expect("an address"), 9);
        let error = world.client.inside(move || TcpStream::connect(at).expect_err("nobody listens there").kind());
        assert_eq!(error, ErrorKind::ConnectionRefused);
    }
    // A host that has been up for a second may still lose an answer, and ask again.
    let stats = until(&gateway.1, |stats| stats.failed >= 2 && stats.open == 0);
    assert_eq!((stats.failed, stats.connected), (stats.total, 0), "{stats:?}");
    drop(gateway);
}

#[test]
fn resets_are_carried_across() {
    let world = World::new(quick(), 5);
    let gateway = uplink(&world);
    let abort = |stream: TcpStream| {
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a setting");
    };
    let (at, server) = serve(&world.server, SERVER, 1, |mut stream, _| {
        stream.write_all(b"hello").expect("it is open");
        stream.read(&mut [0; 10]).expect_err("the client resets").kind()
    });
    let mut stream = connect(&world.client, at);
    stream.read_exact(&mut [0; 5]).expect("the server greets");
    abort(stream);
    assert_eq!(server.join().expect("the server ends"), [ErrorKind::ConnectionReset]);
    let (at, server) = serve(&world.server, SERVER, 1, move |mut stream, _| {
        stream.read_exact(&mut [0; 5]).expect("the client greets");
        abort(stream);
    });
    let mut stream = connect(&world.client, at);
    stream.write_all(b"hello").expect("it is open");
    let error = stream.read(&mut [0; 10]).expect_err("the server resets");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    server.join().expect("the server ends");
    drop(gateway);
}

#[test]
fn two_hundred_connections_at_once() {
    let world = World::new(quick(), 6);
    let gateway = uplink(&world);
    many_at_once(&world.client, &world.server, SERVER, 200, 113);
    let stats = until(&gateway.1, |stats| stats.total == 200 && stats.open == 0);
    assert_eq!((stats.connected, stats.failed, stats.refused, stats.reset), (200, 0, 0, 0), "{stats:?}");
    drop(gateway);
}

/// A connection that is older than the gateway goes through it untouched; when the gateway is gone, new ones pass
/// directly, although its rules are still there.
#[test]
fn it_comes_and_goes_and_connections_live() {
    let world = World::new(Path { loss: 0.0, ..quick() }, 7);
    let (at, server) = serve(&world.server, SERVER, 3, |mut stream: TcpStream, _| {
        let mut byte = [0];
        let mut count = 0;
        while let Ok(1) = stream.read(&mut byte) {
            count += 1;
            if stream.write_all(&byte).is_err() {
                break;
            }
        }
        count
    });
    let talk = |stream: &mut TcpStream, byte: u8| -> Result<u8, ErrorKind> {
        let mut got = [0];
        stream.write_all(&[byte]).and_then(|()| stream.read_exact(&mut got)).map_err(|error| error.kind())?;
        Ok(got[0])
    };
    // As strict as a host can be about where source addresses come from.
    run(&world.far, "sysctl -qw net.ipv4.conf.all.rp_filter=1");
    let mut old = connect(&world.client, at);
    assert_eq!(talk(&mut old, 1), Ok(1));
    let (mut running, seen) = uplink(&world);
    assert_eq!(talk(&mut old, 2), Ok(2));
    let mut through = connect(&world.client, at);
    assert_eq!(talk(&mut through, 3), Ok(3));
    let stats = until(&seen, |stats| stats.connected == 1);
    assert!(stats.total == 1 && stats.passed > 0, "{stats:?}");
    running.stop.now();
    running.join();
    let mut late = connect(&world.client, at);
    assert_eq!(talk(&mut late, 4), Ok(4));
    assert_eq!(talk(&mut old, 5), Ok(5));
    // Those that went through it are told.
    assert_eq!(through.read(&mut [0]).map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
    drop((old, late));
    let mut counts = server.join().expect("the server ends");
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 3]);
    drop(running);
}

/// The box's own address towards the server; the client is answered before the server is asked.
#[test]
fn replaced_addresses_and_early_answers() {
    let world = World::new(Path { loss: 0.0, ..quick() }, 8);
    let config = UplinkConfig { early_accept: true, ..world.uplink_config("burst") };
    let gateway = world.uplink(config, ClientAddress::Replace);
    let bytes = data(300_003, 7);
    let expected = (bytes.len(), hash(&bytes));
    let (at, server) = serve(&world.server, SERVER, 1, answer(bytes));
    let mut stream = connect(&world.client, at);
    stream.write_all(&[1]).expect("it is open");
    assert_eq!(take(&mut stream), expected);
    let seen = server.join().expect("the server ends")[0].ip();
    assert_eq!(seen, "10.2.0.1".parse::<IpAddr>().expect("an address"));
    // A port that is refused is now a connection that is reset, at once or as soon as it is there.
    let refused = SocketAddr::new(at.ip(), 9);
    let said = world.client.inside(move || TcpStream::connect(refused).and_then(|mut stream| stream.read(&mut [0])));
    assert_eq!(said.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
    drop(gateway);
}

/// A client that does not take what it asked for holds up the server, and nobody else.
#[test]
fn a_slow_client_holds_up_its_server_alone() {
    let world = World::new(Path { loss: 0.0, ..quick() }, 9);
    let gateway = uplink(&world);
    let (at, server) = serve(&world.server, SERVER, 1, |mut stream: TcpStream, _| {
        stream.set_write_timeout(Some(Duration::from_millis(500))).expect("not zero");
        let mut count = 0;
        while let Ok(wrote) = stream.write(&[7; 1 << 16]) {
            count += wrote;
        }
        count
    });
    let slow = connect(&world.client, at);
    let bytes = data(2_000_003, 1);
    let expected = (bytes.len(), hash(&bytes));
    let (other, quick) = serve(&world.server, SERVER, 1, answer(bytes));
    let mut stream = connect(&world.client, other);
    stream.write_all(&[1]).expect("it is open");
    assert_eq!(take(&mut stream), expected);
    quick.join().expect("the server ends");
    // The kernels' buffers take some 6 MB each at most, and the gateway two windows.
    let held = server.join().expect("the server ends")[0];
    assert!(held < 30_000_000, "{held}");
    drop((slow, gateway));
}
