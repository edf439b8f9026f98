//! A gigabyte through each shape while 5 % of the packets are lost and the link fails for 100 to 500 ms every few seconds.
//! Each takes minutes, so they run only on request: `cargo test --release -p bentpipe-gateway --test it gigabyte -- --ignored`.

use std::io::{Read, Write};
use std::time::Instant;

use bentpipe_engine::units::Duration;
use bentpipe_gateway::ClientAddress;
use sha2::{Digest, Sha256};

use crate::hosts::{Hash, connect, data, echo, serve, take};
use crate::world::{Path, SERVER, World};

const SIZE: usize = 1 << 30;
/// The repeated block; each copy is preceded by its number.
const BLOCK: usize = 1 << 20;

fn path(rate: u64) -> Path {
    Path { delay: Duration::from_millis(25), outages: true, ..Path::quick(rate, 0.05) }
}

/// Writes a gigabyte in which no two blocks are alike. Returns its hash.
fn write(stream: &mut impl Write) -> Hash {
    let (block, mut hasher) = (data(BLOCK, 5), Sha256::new());
    for number in 0..(SIZE / BLOCK) as u64 {
        for part in [&number.to_le_bytes()[..], &block[8..]] {
            stream.write_all(part).expect("somebody takes it");
            hasher.update(part);
        }
    }
    hasher.finalize().into()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("there is /proc").count()
}

/// From the client to the server.
fn up(world: &World) {
    // After a first connection, the gateways have opened everything that they open only once.
    echo(&world.client, &world.server, SERVER, 1000);
    std::thread::sleep(std::time::Duration::from_secs(2));
    let (before, start) = (descriptors(), Instant::now());
    let (at, server) = serve(&world.server, SERVER, 1, |mut stream, _| take(&mut stream));
    let expected = write(&mut connect(&world.client, at));
    assert_eq!(server.join().expect("the server ends"), [(SIZE, expected)]);
    eprintln!("{:.1} Mbit/s", SIZE as f64 * 8e-6 / start.elapsed().as_secs_f64());
    // The gateways close their sides in their own time.
    assert!((0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        descriptors() <= before
    }));
}

#[test]
#[ignore = "takes minutes"]
fn split() {
    let world = World::new(path(200_000_000), 1);
    let gateways = world.split();
    up(&world);
    drop(gateways);
}

#[test]
#[ignore = "takes minutes"]
fn link() {
    let world = World::new(path(200_000_000), 2);
    let gateways = world.link();
    up(&world);
    drop(gateways);
}

/// Downloads with the default sender: `uplink` exists for them.
#[test]
#[ignore = "takes minutes"]
fn uplink() {
    let world = World::new(path(100_000_000), 3);
    let config = world.uplink_config("constant-rack");
    let gateway = world.uplink(config, ClientAddress::Keep);
    let start = Instant::now();
    let (at, server) = serve(&world.server, SERVER, 1, |mut stream, _| {
        stream.read_exact(&mut [0]).expect("a request");
        write(&mut stream)
    });
    let mut stream = connect(&world.client, at);
    stream.write_all(&[1]).expect("it is open");
    let got = take(&mut stream);
    let expected = server.join().expect("the server ends")[0];
    assert_eq!(got, (SIZE, expected));
    eprintln!("{:.1} Mbit/s", SIZE as f64 * 8e-6 / start.elapsed().as_secs_f64());
    drop(gateway);
}
