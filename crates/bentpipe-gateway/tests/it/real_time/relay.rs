//! The `uplink` shape with the kernel's sender.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bentpipe_gateway::{ClientAddress, RelayConfig, RelayGateway, RelayStats};

use crate::hosts::{
    answer, comes_and_goes, connect, data, download, echo, hash, many_at_once, pushed_then_closed, resets_go_through,
    serve, slow_beside_quick, take, times_of_requests, until,
};
use crate::world::{CLIENT, CLIENT6, Path, Running, SERVER, SERVER6, World};

const QUICK: u64 = 400_000_000;

type Relay = (Running, Arc<Mutex<RelayStats>>);

fn relay(world: &World) -> Relay {
    world.relay(world.relay_config())
}

/// With each congestion control that kernels have, over IPv4 and IPv6: a download, an upload, and a download after the client's half-close.
/// The server sees the client's own address.
#[test]
fn bytes_arrive_whole() {
    let world = World::new(Path::lossy(0.01), 1);
    for (congestion, size) in [("bbr", 3_000_003), ("cubic", 300_003)] {
        let (gateway, seen) = world.relay(RelayConfig { congestion: congestion.to_owned(), ..world.relay_config() });
        for (ip, client) in [(SERVER, CLIENT), (SERVER6, CLIENT6)] {
            let [local, seen] = download(&world.client, &world.server, ip, data(size, 7));
            assert_eq!(seen, local, "address and port");
            assert_eq!(local.ip(), client.parse::<IpAddr>().expect("an address"));
            echo(&world.client, &world.server, ip, 200_003);
        }
        let stats = until(&seen, |stats| stats.total == 4 && stats.open == 0);
        let RelayStats { connected, failed, refused, reset, held, .. } = stats;
        assert_eq!((connected, failed, refused, reset, held), (4, 0, 0, 0, 0), "{stats:?}");
        assert_eq!((stats.to_clients, stats.to_servers), (2 * (size as u64 + 200_003), 2 * 200_004));
        drop(gateway);
    }
}

/// 20 kB to 10 MB.
#[test]
fn push_then_close_arrives_whole() {
    let world = World::new(Path::quick(QUICK, 0.0), 2);
    let gateway = relay(&world);
    let sizes: Vec<usize> = (0..100).map(|n| (20_000.0 * 500.0_f64.powf(f64::from(n) / 99.0)) as usize).collect();
    pushed_then_closed(&world.client, &world.server, SERVER, &sizes);
    let stats = until(&gateway.1, |stats| stats.total == 200 && stats.open == 0);
    assert_eq!(stats.reset, 0, "{stats:?}");
    drop(gateway);
}

/// The client is accepted before the server is asked, and is reset as soon as the server refuses.
#[test]
fn a_refused_port_is_a_reset() {
    let world = World::new(Path::quick(QUICK, 0.0), 3);
    let gateway = relay(&world);
    for ip in [SERVER, SERVER6] {
        let at = SocketAddr::new(ip.parse().expect("an address"), 9);
        let mut stream = connect(&world.client, at);
        let result = loop {
            match stream.read(&mut [0]).map_err(|error| error.kind()) {
                // Any signal may interrupt a read.
                Err(ErrorKind::Interrupted) => {}
                result => break result,
            }
        };
        assert_eq!(result, Err(ErrorKind::ConnectionReset));
    }
    until(&gateway.1, |stats| (stats.total, stats.failed, stats.connected, stats.open) == (2, 2, 0, 0));
    drop(gateway);
}

#[test]
fn resets_are_carried_across() {
    let world = World::new(Path::quick(QUICK, 0.0), 4);
    let gateway = relay(&world);
    resets_go_through(&world.client, &world.server, SERVER);
    until(&gateway.1, |stats| stats.reset == 2 && stats.open == 0);
    drop(gateway);
}

/// Resets are carried across even if no data moves that would reveal them: after the client's end, and while the server is blocked.
#[test]
fn resets_of_quiet_connections() {
    let world = World::new(Path::quick(QUICK, 0.0), 11);
    let gateway = relay(&world);
    let abort = |stream: &TcpStream| {
        socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)).expect("a setting");
    };
    let (told, has_ended) = std::sync::mpsc::channel();
    let (at, server) = serve(&world.server, SERVER, 1, move |mut stream, _| {
        assert_eq!(stream.read(&mut [0]).expect("no reset yet"), 0);
        told.send(()).expect("the test waits");
        (0..500).find_map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            stream.take_error().expect("a socket").map(|error| error.kind())
        })
    });
    let stream = connect(&world.client, at);
    stream.shutdown(Shutdown::Write).expect("it is open");
    has_ended.recv().expect("the server is there");
    abort(&stream);
    drop(stream);
    // The kernel reports a reset this way on a connection whose peer has closed its direction (CLOSE-WAIT).
    assert_eq!(server.join().expect("the server ends"), [Some(ErrorKind::BrokenPipe)]);

    let (at, server) = serve(&world.server, SERVER, 1, |mut stream, _| {
        loop {
            if let Err(error) = stream.write(&[7; 1 << 16]) {
                return error.kind();
            }
        }
    });
    let stream = connect(&world.client, at);
    until(&gateway.1, |stats| stats.connected == 2);
    std::thread::sleep(Duration::from_secs(2));
    abort(&stream);
    drop(stream);
    assert_eq!(server.join().expect("the server ends"), [ErrorKind::ConnectionReset]);
    until(&gateway.1, |stats| (stats.reset, stats.open, stats.held) == (2, 0, 0));
    drop(gateway);
}

#[test]
fn a_thousand_connections_at_once() {
    let world = World::new(Path::quick(QUICK, 0.0), 5);
    let gateway = relay(&world);
    many_at_once(&world.client, &world.server, SERVER, 1000, 13);
    let stats = until(&gateway.1, |stats| stats.total == 1000 && stats.open == 0);
    assert_eq!((stats.connected, stats.failed, stats.refused, stats.reset), (1000, 0, 0, 0), "{stats:?}");
    drop(gateway);
}

#[test]
fn it_comes_and_goes_and_connections_live() {
    let world = World::new(Path::quick(QUICK, 0.0), 6);
    let end = |running: &mut Running| {
        running.stop.now();
        running.join();
    };
    let hosts = [&*world.client, &*world.server];
    let counted = |stats: &RelayStats| (stats.total, stats.connected) == (1, 1);
    comes_and_goes(hosts, SERVER, || relay(&world), counted, end);
}

/// A draining gateway completes its open connections. New ones bypass it.
#[test]
fn a_drained_gateway_finishes_its_work() {
    let world = World::new(Path::lossy(0.01), 7);
    let (mut running, seen) = relay(&world);
    let bytes = data(1_000_003, 7);
    let expected = (bytes.len(), hash(&bytes));
    let (at, server) = serve(&world.server, SERVER, 2, answer(bytes));
    let mut stream = connect(&world.client, at);
    stream.write_all(&[1]).expect("it is open");
    until(&seen, |stats| stats.connected == 1);
    running.stop.drain();
    let mut late = connect(&world.client, at);
    late.write_all(&[1]).expect("directly");
    assert_eq!(take(&mut stream), expected);
    drop(stream);
    running.join();
    assert_eq!(take(&mut late), expected);
    server.join().expect("the server ends");
    assert_eq!(seen.lock().expect("nobody panics").total, 1);
}

#[test]
fn replaced_addresses() {
    let world = World::new(Path::quick(QUICK, 0.0), 8);
    let gateway = world.relay(RelayConfig { client_address: ClientAddress::Replace, ..world.relay_config() });
    for (ip, own) in [(SERVER, "10.2.0.1"), (SERVER6, "fd02::1")] {
        let [_, seen] = download(&world.client, &world.server, ip, data(300_003, 7));
        assert_eq!(seen.ip(), own.parse::<IpAddr>().expect("an address"));
    }
    drop(gateway);
}

#[test]
fn a_slow_client_holds_up_its_server_alone() {
    let world = World::new(Path::quick(QUICK, 0.0), 9);
    let gateway = relay(&world);
    let held = slow_beside_quick(&world.client, &world.server, SERVER);
    // At most about 6 MB each for the kernel buffers of the server, the box (two) and the client, plus the gateway's own.
    assert!(held < 30_000_000, "{held}");
    let max = gateway.1.lock().expect("nobody panics").held;
    assert!(max <= 1 << 20, "{max}");
    drop(gateway);
}

/// If the kernel lacks a feature, the error names it and the gateway does not listen.
#[test]
fn an_unknown_congestion_control() {
    let world = World::new(Path::quick(QUICK, 0.0), 10);
    let config = RelayConfig { congestion: "nosuch".to_owned(), ..world.relay_config() };
    let made = world.far.inside(move || RelayGateway::relay(config).map(|_| ()).map_err(|error| error.kind()));
    assert_eq!(made, Err(ErrorKind::NotFound));
}

/// A partial segment waits only for data that is known to follow: otherwise the kernel would hold it for 200 ms.
#[test]
fn requests_wait_for_nothing() {
    let world = World::new(Path::lossy(0.0), 31);
    let gateway = relay(&world);
    let took = times_of_requests(&world.client, &world.server, SERVER, &[0, 0, 0]);
    // Two one-way delays of 30 ms, plus the packets' transmission times. A segment that waits adds 200 ms to each request; a busy machine
    // may delay one.
    assert!(took.iter().min().is_some_and(|took| *took < Duration::from_millis(250)), "{took:?}");
    drop(gateway);
}

#[test]
fn urgent_data_is_kept() {
    let world = World::new(Path::quick(QUICK, 0.0), 30);
    let gateways = world.relay(world.relay_config());
    crate::hosts::urgent_data_is_kept(&world.client, &world.server, SERVER);
    drop(gateways);
}
