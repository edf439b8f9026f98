//! One host that opens all the connections it can, and keeps them or reads nothing from them: others still find places and memory.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::hub::Hub;
use super::pair::{Hosts, Line, NAMES, Pair, Wanted, asks, echo, inside, many_descriptors};

/// A second host behind the box.
const NEIGHBOUR: [u8; 4] = [10, 1, 0, 3];

/// Connections of the neighbour after a first request that succeeds, at most so many.
fn hold(
    hosts: &Hosts,
    to: SocketAddr,
    count: usize,
    first: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + 'static,
) -> Vec<TcpStream> {
    hosts.client.inside(move || {
        let open = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.bind(&SocketAddr::from((NEIGHBOUR, 0)).into())?;
            socket.set_read_timeout(Some(Duration::from_secs(5)))?;
            socket.connect_timeout(&to.into(), Duration::from_secs(5))?;
            let mut stream = TcpStream::from(socket);
            first(&mut stream).map(|()| stream)
        };
        (0..count).filter_map(|_| open().ok()).collect()
    })
}

/// `count`: how many connections there are places for.
fn one_host_leaves_places(hosts: &Hosts, count: usize) {
    many_descriptors();
    inside(&hosts.client, "ip addr add 10.1.0.3/24 dev eth");
    let at = hosts.serve(80, echo);
    let held = hold(hosts, at, count, asks);
    assert!(held.len() > count / 2 && held.len() < count, "{} of {count}", held.len());
    others_are_served(hosts, at);
    drop(held);
}

/// The client has an address of its own.
fn others_are_served(hosts: &Hosts, at: SocketAddr) {
    for n in 0..5 {
        let mut stream = hosts.connect(at).unwrap_or_else(|error| panic!("{n}: {error}"));
        asks(&mut stream).unwrap_or_else(|error| panic!("{n}: {error}"));
    }
}

/// The neighbour begins so many downloads and reads none, or uploads to a server that reads none; others are served, at once and once all
/// has come that comes.
fn stalled_transfers_keep_nobody_out(hosts: &Hosts, count: usize, are_uploads: bool) {
    many_descriptors();
    inside(&hosts.client, "ip addr add 10.1.0.3/24 dev eth");
    let at = hosts.serve(80, |mut stream| {
        let mut request = [0; 100];
        while stream.read_exact(&mut request).is_ok() && stream.write_all(&request).is_ok() {
            while request[0] == b'd' && stream.write_all(&[1; 1 << 16]).is_ok() {}
            if request[0] == b'u' {
                std::thread::park();
            }
        }
    });
    let held = hold(hosts, at, count, move |stream| {
        stream.write_all(&[if are_uploads { b'u' } else { b'd' }; 100])?;
        stream.set_nonblocking(true)?;
        // Until nobody takes any more.
        while are_uploads && stream.write(&[2; 1 << 16]).is_ok() {}
        Ok(())
    });
    others_are_served(hosts, at);
    std::thread::sleep(Duration::from_secs(4));
    others_are_served(hosts, at);
    drop(held);
}

#[test]
fn of_memory_in_uplink() {
    let hub = Hub::new("memory = \"8 MiB\"\n");
    let _gateway = hub.run(1024);
    stalled_transfers_keep_nobody_out(&hub.hosts, 100, false);
}

#[test]
fn of_memory_in_the_relay() {
    let hub = Hub::new("memory = \"8 MiB\"\nsender = \"kernel\"\ncongestion = \"cubic\"\n");
    let _gateway = hub.run(1024);
    stalled_transfers_keep_nobody_out(&hub.hosts, 100, false);
}

fn of_memory_in_split(are_uploads: bool) {
    let line = Line::new("100 Mbit/s");
    for name in NAMES {
        line.edit(name, "[split]", "[split]\nmemory = \"8 MiB\"");
        // For windows of half of it.
        line.edit(name, "20 ms", "600 ms");
    }
    let _gateways = NAMES.map(|name| line.start(name, 1024));
    line.wait_until_up(&NAMES, true);
    stalled_transfers_keep_nobody_out(&line, 100, are_uploads);
}

#[test]
fn of_memory_for_downloads_in_split() {
    of_memory_in_split(false);
}

#[test]
fn of_memory_for_uploads_in_split() {
    of_memory_in_split(true);
}

#[test]
fn of_descriptors_in_split() {
    let pair = Pair::new(&Wanted { rate: "100 Mbit/s", descriptors: 132 });
    one_host_leaves_places(&pair, 100);
    pair.end();
}

/// An idle connection counts as 5 KiB, and seven eighths of the memory are for connections: 1433.
#[test]
fn of_memory_for_idle_connections_in_split() {
    many_descriptors();
    let line = Line::new("100 Mbit/s");
    NAMES.iter().for_each(|name| line.edit(name, "[split]", "[split]\nmemory = \"8 MiB\""));
    let _gateways = NAMES.map(|name| line.start(name, 4096));
    line.wait_until_up(&NAMES, true);
    one_host_leaves_places(&line, 1433);
}

#[test]
fn of_descriptors_in_the_relay() {
    let hub = Hub::new("sender = \"kernel\"\ncongestion = \"cubic\"\n");
    let _gateway = hub.run(232);
    one_host_leaves_places(&hub.hosts, 100);
}

#[test]
fn of_connections_in_uplink() {
    let hub = Hub::new("max_streams = 100\n");
    let _gateway = hub.run(1024);
    one_host_leaves_places(&hub.hosts, 100);
}
