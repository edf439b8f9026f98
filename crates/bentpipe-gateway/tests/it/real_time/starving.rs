//! One host against the others: it opens and resets connections, or connects to servers that never answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bentpipe_gateway::ClientAddress;
use socket2::{Domain, Socket, Type};

use crate::hosts::{connect, serve};
use crate::threads::Threads;
use crate::world::{Path, SERVER, World, run};

/// A second host behind the near box.
const NEIGHBOUR: &str = "10.1.0.3";
/// No host has this address.
const SILENT: &str = "10.2.0.77";

/// Starts a connection from the neighbour. The caller decides whether to wait for it.
fn begin(to: SocketAddr, waits: bool) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(NEIGHBOUR.parse().expect("an address"), 0).into())?;
    socket.set_linger(Some(Duration::ZERO))?;
    socket.set_nonblocking(!waits)?;
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(nix::errno::Errno::EINPROGRESS as i32) => Err(error),
        _ => Ok(socket),
    }
}

/// Opens connections at a rate per second and resets each, in a thread.
fn opens_and_resets(world: &World, rate: u32) -> Threads {
    let mut threads = Threads::default();
    threads.add(|is_over| {
        world.client.spawn(move || {
            let (start, mut count) = (Instant::now(), 0);
            while !is_over.load(Ordering::Relaxed) {
                if start.elapsed() < count as u32 * Duration::from_secs(1) / rate {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                let port = 10_000 + (count % 100) as u16;
                drop(begin(SocketAddr::new(SERVER.parse().expect("an address"), port), true));
                count += 1;
            }
            count
        })
    });
    threads
}

/// Starts an endless upload. Returns a counter of the bytes that have arrived.
fn upload(world: &World) -> Arc<AtomicU64> {
    let got = Arc::new(AtomicU64::new(0));
    let counts = got.clone();
    let (at, _) = serve(&world.server, SERVER, 1, move |mut stream, _| {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            counts.fetch_add(count as u64, Ordering::Relaxed);
        }
    });
    let mut stream: TcpStream = connect(&world.client, at);
    std::thread::spawn(move || while stream.write_all(&[7; 4096]).is_ok() {});
    got
}

/// Bytes per second in a span.
fn rate(got: &AtomicU64, span: Duration) -> f64 {
    let before = got.load(Ordering::Relaxed);
    std::thread::sleep(span);
    (got.load(Ordering::Relaxed) - before) as f64 / span.as_secs_f64()
}

/// One host opens and resets 1500 connections per second over a line of 1 Mbit/s. The other host's upload keeps at least 70 % of its rate,
/// and all of it two seconds later. (An earlier version kept 3 % at 700 connections per second and had not recovered after a minute.)
/// `mux::host_tests` checks stricter bounds in virtual time; here the load of the machine counts too.
#[test]
fn one_host_starves_nobody_in_split() {
    let world = World::new(Path { rate: 1_000_000, ..Path::lossy(0.0) }, 21);
    run(&world.client, &format!("ip addr add {NEIGHBOUR}/24 dev eth"));
    let gateways = world.split();
    let got = upload(&world);
    std::thread::sleep(Duration::from_secs(1));
    let before = rate(&got, Duration::from_secs(3));
    let flood = opens_and_resets(&world, 1500);
    std::thread::sleep(Duration::from_millis(500));
    let during = rate(&got, Duration::from_secs(5));
    let count = flood.join();
    std::thread::sleep(Duration::from_secs(2));
    let after = rate(&got, Duration::from_secs(2));
    let stats = *gateways[0].1.lock().expect("nobody panics");
    eprintln!("{count} connections; {before:.0}, {during:.0}, {after:.0} B/s; {stats:?}");
    assert!(count > 700 * 5, "{count} in 5.5 s");
    assert!(during > 0.7 * before, "{before} {during} B/s");
    assert!(after > 0.7 * before, "{before} {after} B/s");
    drop(gateways);
}

/// A host sends priority UDP at twice the rate of the line: half of it marked for expedited forwarding, half to port 53. The other host's
/// upload keeps half of the line.
#[test]
fn urgent_packets_leave_half_of_link() {
    let world = World::new(Path { rate: 4_000_000, ..Path::lossy(0.0) }, 25);
    run(&world.client, &format!("ip addr add {NEIGHBOUR}/24 dev eth"));
    let gateways = world.link();
    let got = upload(&world);
    std::thread::sleep(Duration::from_secs(3));
    let before = rate(&got, Duration::from_secs(3));
    let mut flood = Threads::default();
    flood.add(|is_over| {
        world.client.spawn(move || {
            let sockets = [(9, 46 << 2), (53, 0)].map(|(port, tos)| {
                let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("the kernel has UDP");
                socket.bind(&SocketAddr::new(NEIGHBOUR.parse().expect("an address"), 0).into()).expect("a free port");
                socket.set_tos_v4(tos).expect("anyone may");
                socket
                    .connect(&SocketAddr::new(SERVER.parse().expect("an address"), port).into())
                    .expect("UDP asks nobody");
                socket
            });
            let (start, mut count) = (Instant::now(), 0u32);
            while !is_over.load(Ordering::Relaxed) {
                // 1000 bytes of payload are 1028 with headers: 973 per second are 8 Mbit/s.
                if start.elapsed() < count * Duration::from_secs(1) / 973 {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                // The server's "port unreachable" answers do not matter.
                let _ = sockets[count as usize % 2].send(&[0; 1000]);
                count += 1;
            }
            u64::from(count)
        })
    });
    std::thread::sleep(Duration::from_secs(2));
    let during = rate(&got, Duration::from_secs(6));
    let count = flood.join();
    eprintln!("{count} packets; {before:.0}, {during:.0} B/s");
    assert!(count > 973 * 6, "{count} in 8 s");
    // Half of the upload's rate when it is alone, less a tenth for TCP's losses at the change.
    assert!(during > 0.45 * before, "{before} {during} B/s");
    drop(gateways);
}

/// One host has opened this many connections to a silent address. The other host's connections are still accepted, in either shape.
fn silent_servers_keep_nobody_out(world: &World, far_is_ready: impl Fn()) {
    run(&world.client, &format!("ip addr add {NEIGHBOUR}/24 dev eth"));
    // Without this neighbour entry the far box would ask for the address, get no answer, and refuse.
    run(&world.far, &format!("ip neigh add {SILENT} lladdr 02:00:00:00:00:01 dev lan"));
    far_is_ready();
    let mut threads = Threads::default();
    threads.add(|is_over| {
        world.client.spawn(move || {
            let mut held = std::collections::VecDeque::new();
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                let port = 1000 + (count % 60_000) as u16;
                held.extend(begin(SocketAddr::new(SILENT.parse().expect("an address"), port), false).ok());
                if held.len() > 500 {
                    held.pop_front();
                }
                count += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            count
        })
    });
    std::thread::sleep(Duration::from_secs(2));
    let (at, server) = serve(&world.server, SERVER, 100, |mut stream, _| {
        let mut byte = [0];
        stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok()
    });
    let answered = (0..100).filter(|_| {
        let mut stream = connect(&world.client, at);
        stream.write_all(&[1]).expect("it is open");
        stream.read_exact(&mut [0]).is_ok()
    });
    assert_eq!(answered.count(), 100);
    server.join().expect("the server ends");
    let count = threads.join();
    assert!(count > 200, "{count} connections to nobody");
}

#[test]
fn silent_servers_keep_nobody_out_of_split() {
    let world = World::new(Path::quick(100_000_000, 0.0), 22);
    let config = |side| bentpipe_gateway::SplitConfig { max_streams: 400, ..world.split_config(side) };
    let gateways = [1, 0].map(|side| world.split_side(side, config(side)));
    silent_servers_keep_nobody_out(&world, || world.wait_for_listener(true));
    let [far, _] = &gateways;
    let stats = *far.1.lock().expect("nobody panics");
    assert!(stats.failed > 100, "{stats:?}");
}

#[test]
fn silent_servers_keep_nobody_out_of_uplink() {
    let world = World::new(Path::quick(100_000_000, 0.0), 23);
    let config = bentpipe_gateway::UplinkConfig { max_streams: 400, ..world.uplink_config("burst") };
    let gateway = world.uplink(config, ClientAddress::Keep);
    silent_servers_keep_nobody_out(&world, || ());
    drop(gateway);
}

#[test]
fn silent_servers_keep_nobody_out_of_the_relay() {
    let world = World::new(Path::quick(100_000_000, 0.0), 24);
    let config = bentpipe_gateway::RelayConfig { max_streams: 400, ..world.relay_config() };
    let gateway = world.relay(config);
    silent_servers_keep_nobody_out(&world, || ());
    drop(gateway);
}
