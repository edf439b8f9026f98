//! Paths with an MTU below 1500 bytes that send no ICMP error.

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::hosts::{connect, data, hash, serve};
use crate::world::{Path, SERVER, SERVER6, World};

/// The longest stall that a test accepts.
const BAR: Duration = Duration::from_secs(10);

/// A download. `changes`: after this many bytes, the path's MTU becomes this.
fn download(world: &World, ip: &str, len: usize, changes: Option<(usize, usize)>) {
    let bytes = data(len, 9);
    let sent = bytes.clone();
    let (at, server) = serve(&world.server, ip, 1, move |mut stream, _| stream.write_all(&sent));
    let mut stream = connect(&world.client, at);
    let (mut got, mut buffer, mut last, mut longest) = (Vec::new(), [0; 1 << 16], Instant::now(), Duration::ZERO);
    loop {
        let count = match stream.read(&mut buffer) {
            // The machine has slept.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.expect("no reset"),
        };
        longest = longest.max(last.elapsed());
        last = Instant::now();
        if count == 0 {
            break;
        }
        got.extend_from_slice(&buffer[..count]);
        if let Some((_, mtu)) = changes.filter(|(after, _)| got.len() >= *after) {
            world.sky.mtu.store(mtu, Ordering::Relaxed);
        }
    }
    assert_eq!((got.len(), hash(&got)), (len, hash(&bytes)));
    assert!(longest < BAR, "{longest:?}");
    server.join().expect("the server ends");
}

#[test]
fn short_paths_carry_a_megabyte_of_streams() {
    for mtu in [1280, 1499] {
        let world = World::new(Path::lossy(0.01), 4);
        world.sky.mtu.store(mtu, Ordering::Relaxed);
        let gateways = world.split();
        download(&world, SERVER, 1_000_000, None);
        drop(gateways);
    }
}

#[test]
fn short_paths_carry_a_megabyte_of_packets() {
    for mtu in [1280, 1400] {
        let world = World::new(Path::lossy(0.01), 5);
        world.sky.mtu.store(mtu, Ordering::Relaxed);
        let gateways = world.link();
        for ip in [SERVER, SERVER6] {
            download(&world, ip, 1_000_000, None);
        }
        drop(gateways);
    }
}

#[test]
fn a_dip_in_mid_transfer_stops_no_stream() {
    // The second one is below the base size.
    for mtu in [1340, 1100] {
        let world = World::new(Path::lossy(0.0), 6);
        let gateways = world.split();
        download(&world, SERVER, 1_000_000, None);
        download(&world, SERVER, 12_000_000, Some((3_000_000, mtu)));
        drop(gateways);
    }
}

#[test]
fn a_dip_in_mid_transfer_stops_no_packets() {
    let world = World::new(Path::lossy(0.0), 7);
    let gateways = world.link();
    download(&world, SERVER, 1_000_000, None);
    download(&world, SERVER, 12_000_000, Some((3_000_000, 1340)));
    drop(gateways);
}
