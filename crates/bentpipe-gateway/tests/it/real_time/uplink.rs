//! The `uplink` shape.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bentpipe_engine::tcp::EcnUse;
use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_gateway::{ClientAddress, UplinkConfig, UplinkStats};

use crate::hosts::{
    comes_and_goes, connect, data, download, echo, hash, many_at_once, pushed_then_closed, resets_go_through, serve,
    slow_beside_quick, until,
};
use crate::world::{CLIENT, CLIENT6, Path, Running, SERVER, SERVER6, World, run};

const QUICK: u64 = 100_000_000;

type Uplink = (Running, Arc<Mutex<UplinkStats>>);

fn uplink(world: &World) -> Uplink {
    world.uplink(world.uplink_config("constant-rack"), ClientAddress::Keep)
}

/// Senders for a leg without congestion, over IPv4 and IPv6. The server sees the client's own address.
#[test]
fn downloads_arrive_whole() {
    let world = World::new(Path::lossy(0.01), 1);
    let rows = [
        ("constant-rack", 3_000_003),
        ("burst", 3_000_003),
        ("constant-window", 2_000_003),
        ("reno-super-fast", 200_003),
    ];
    for (variant, size) in rows {
        let (gateway, seen) = world.uplink(world.uplink_config(variant), ClientAddress::Keep);
        for (ip, client) in [(SERVER, CLIENT), (SERVER6, CLIENT6)] {
            let [local, seen] = download(&world.client, &world.server, ip, data(size, 7));
            assert_eq!(seen, local, "address and port");
            assert_eq!(local.ip(), client.parse::<IpAddr>().expect("an address"));
        }
        let stats = until(&seen, |stats| stats.total == 2 && stats.open == 0);
        assert_eq!((stats.connected, stats.failed, stats.refused, stats.reset), (2, 0, 0, 0), "{stats:?}");
        // Segments carry 1448 bytes. One in 100 is lost and sent again; a transfer of a few hundred may be lucky and lose none.
        let segments = 2 * size as u64 / 1448;
        assert!(stats.segments > segments, "{stats:?}");
        assert!(size < 1_000_000 || stats.retransmits >= segments / 200, "{stats:?}");
        drop(gateway);
    }
}

/// Every row of the table serves a client with Linux's TCP, over a path that loses packets. Prague asks for accurate ECN.
#[test]
fn every_variant_carries_a_download() {
    let world = World::new(Path::quick(QUICK, 0.002), 1);
    let size = 400_003;
    for (variant, ..) in VARIANTS {
        let mut config = world.uplink_config(variant);
        if *variant == "prague" {
            config.sender.tcp.ecn = EcnUse::Accurate;
        }
        if !config.sender.tcp.is_wire_true() {
            continue;
        }
        let (gateway, seen) = world.uplink(config, ClientAddress::Keep);
        download(&world.client, &world.server, SERVER, data(size, 7));
        let stats = until(&seen, |stats| stats.total == 1 && stats.open == 0);
        assert_eq!((stats.connected, stats.failed, stats.refused, stats.reset), (1, 0, 0, 0), "{variant}: {stats:?}");
        assert!(stats.segments > size as u64 / 1448, "{variant}: {stats:?}");
        drop(gateway);
    }
}

/// The client uploads, closes its direction, and then downloads (half-close).
#[test]
fn uploads_and_half_close() {
    let world = World::new(Path::lossy(0.01), 2);
    let gateway = uplink(&world);
    for ip in [SERVER, SERVER6] {
        echo(&world.client, &world.server, ip, 1_000_003);
    }
    until(&gateway.1, |stats| stats.total == 2 && stats.open == 0);
    drop(gateway);
}

/// Each end closes immediately after its last byte, in both directions, many times.
#[test]
fn push_then_close_arrives_whole() {
    let world = World::new(Path::quick(QUICK, 0.01), 3);
    let gateway = uplink(&world);
    let sizes: Vec<usize> = (0..40).map(|n| 20_000 + n * n * 100).collect();
    pushed_then_closed(&world.client, &world.server, SERVER, &sizes);
    until(&gateway.1, |stats| stats.total == 80 && stats.open == 0);
    drop(gateway);
}

/// If the server refuses, the client's SYN is refused too. It never sees a connection that then breaks.
#[test]
fn a_refused_port_is_refused() {
    let world = World::new(Path::quick(QUICK, 0.0), 4);
    let gateway = uplink(&world);
    for ip in [SERVER, SERVER6] {
        let at = SocketAddr::new(ip.parse().expect("an address"), 9);
        let error = world.client.inside(move || TcpStream::connect(at).expect_err("nobody listens there").kind());
        assert_eq!(error, ErrorKind::ConnectionRefused);
    }
    // A host that has just come up may still lose an answer; the client then asks again.
    let stats = until(&gateway.1, |stats| stats.failed >= 2 && stats.open == 0);
    assert_eq!((stats.failed, stats.connected), (stats.total, 0), "{stats:?}");
    drop(gateway);
}

#[test]
fn resets_are_carried_across() {
    // A reset is sent only once. If it is lost, nothing replaces it.
    let world = World::new(Path::quick(QUICK, 0.0), 5);
    let gateway = uplink(&world);
    resets_go_through(&world.client, &world.server, SERVER);
    drop(gateway);
}

#[test]
fn two_hundred_connections_at_once() {
    let world = World::new(Path::quick(QUICK, 0.01), 6);
    let gateway = uplink(&world);
    many_at_once(&world.client, &world.server, SERVER, 200, 113);
    let stats = until(&gateway.1, |stats| stats.total == 200 && stats.open == 0);
    assert_eq!((stats.connected, stats.failed, stats.refused, stats.reset), (200, 0, 0, 0), "{stats:?}");
    drop(gateway);
}

#[test]
fn it_comes_and_goes_and_connections_live() {
    let world = World::new(Path::quick(QUICK, 0.0), 7);
    // The strictest setting of reverse-path filtering.
    run(&world.far, "sysctl -qw net.ipv4.conf.all.rp_filter=1");
    let end = |running: &mut Running| {
        running.stop.now();
        running.join();
    };
    let hosts = [&*world.client, &*world.server];
    let counted = |stats: &UplinkStats| (stats.total, stats.connected) == (1, 1) && stats.passed > 0;
    comes_and_goes(hosts, SERVER, || uplink(&world), counted, end);
}

/// The box has another address on the interface towards the clients than when the first of them came, and a smaller MTU there: it still
/// finds the route to the next one.
#[test]
fn a_box_with_a_new_address_knows_its_mtu() {
    let world = World::new(Path::quick(QUICK, 0.0), 32);
    let gateway = uplink(&world);
    for address in [false, true] {
        if address {
            for change in ["addr add 10.9.1.2/24", "addr del 10.9.0.2/24"] {
                run(&world.far, &format!("ip {change} dev sat"));
            }
            run(&world.far, "ip link set sat mtu 1300");
        }
        for ip in [SERVER, SERVER6] {
            download(&world.client, &world.server, ip, data(300_003, 7));
        }
    }
    drop(gateway);
}

/// The MTU towards the clients falls in the middle of downloads: their segments are cut.
#[test]
fn a_smaller_mtu_in_mid_transfer_stops_no_download() {
    let world = World::new(Path::quick(QUICK, 0.0), 33);
    let gateway = uplink(&world);
    for ip in [SERVER, SERVER6] {
        run(&world.far, "ip link set sat mtu 1500");
        let bytes = data(3_000_003, 9);
        let sent = bytes.clone();
        let (at, server) = serve(&world.server, ip, 1, move |mut stream, _| stream.write_all(&sent));
        let mut stream = connect(&world.client, at);
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a setting");
        let mut got = vec![0; 300_000];
        stream.read_exact(&mut got).expect("it has come");
        run(&world.far, "ip link set sat mtu 1300");
        stream.read_to_end(&mut got).expect("the rest comes");
        assert_eq!((got.len(), hash(&got)), (bytes.len(), hash(&bytes)));
        server.join().expect("the server ends");
    }
    drop(gateway);
}

/// The server sees the box's own address, and the client is answered before the server is asked.
#[test]
fn replaced_addresses_and_early_answers() {
    let world = World::new(Path::quick(QUICK, 0.0), 8);
    let config = UplinkConfig { early_accept: true, ..world.uplink_config("burst") };
    let gateway = world.uplink(config, ClientAddress::Replace);
    let [_, seen] = download(&world.client, &world.server, SERVER, data(300_003, 7));
    assert_eq!(seen.ip(), "10.2.0.1".parse::<IpAddr>().expect("an address"));
    // The client is accepted first, so a refused port now shows as a reset, at once or a little later.
    let refused = SocketAddr::new(SERVER.parse().expect("an address"), 9);
    let said = world.client.inside(move || TcpStream::connect(refused).and_then(|mut stream| stream.read(&mut [0])));
    assert_eq!(said.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
    drop(gateway);
}

/// A client that does not read its download blocks only its own server.
#[test]
fn a_slow_client_holds_up_its_server_alone() {
    let world = World::new(Path::quick(QUICK, 0.0), 9);
    let gateway = uplink(&world);
    let held = slow_beside_quick(&world.client, &world.server, SERVER);
    // Each kernel buffer holds at most about 6 MB, and the gateway holds two windows.
    assert!(held < 30_000_000, "{held}");
    drop(gateway);
}

#[test]
fn urgent_data_is_kept() {
    let world = World::new(Path::quick(QUICK, 0.0), 30);
    let gateways = uplink(&world);
    crate::hosts::urgent_data_is_kept(&world.client, &world.server, SERVER);
    drop(gateways);
}

/// Clients whose uploads end while their servers read nothing. A connection whose last bytes wait for its server still has a place, so
/// these do not take more descriptors than there are places.
#[test]
fn a_server_that_reads_nothing_keeps_the_place() {
    let world = World::new(Path::quick(QUICK, 0.0), 31);
    // The kernels take less of an upload than the gateway does.
    run(&world.far, "sysctl -qw net.ipv4.tcp_wmem=4096\t16384\t16384");
    run(&world.server, "sysctl -qw net.ipv4.tcp_rmem=4096\t8192\t8192");
    let config = UplinkConfig { max_streams: 4, ..world.uplink_config("constant-rack") };
    let (gateway, seen) = world.uplink(config, ClientAddress::Keep);
    let ip = SERVER.parse().expect("an address");
    let listener = world.server.inside(move || TcpListener::bind(SocketAddr::new(ip, 0)).expect("a free port"));
    let at = listener.local_addr().expect("it is bound");
    let (held, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            stream.shutdown(Shutdown::Write).expect("it is open");
            let _ = held.send(stream);
        }
    });
    let mut refused = 0;
    for _ in 0..12 {
        let ended = world.client.inside(move || {
            let mut stream = TcpStream::connect(at)?;
            stream.set_read_timeout(Some(Duration::from_secs(20)))?;
            stream.write_all(&[7; 70_000])?;
            stream.shutdown(Shutdown::Write)?;
            stream.read(&mut [0])
        });
        match ended {
            Ok(count) => assert_eq!(count, 0, "the server has ended"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
                refused += 1;
            }
        }
        // The client's last acknowledgement arrives.
        std::thread::sleep(Duration::from_millis(100));
    }
    let held: Vec<_> = told.try_iter().collect();
    let stats = *seen.lock().expect("nobody panics");
    assert!(held.len() <= 4 && refused >= 8, "{} held, {refused} refused: {stats:?}", held.len());
    // Servers that are gone leave their places.
    drop(held);
    until(&seen, |stats| stats.open == 0);
    drop(gateway);
}
