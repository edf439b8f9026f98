//! One host opens all the connections it can and keeps them, or reads nothing from them. Others still get connections and memory.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bentpipe_engine::tcp::{Flags, Segment};
use bentpipe_engine::wire::ip;
use bentpipe_engine::wire::tcp::Translation;
use socket2::{Domain, Protocol, Socket, Type};

use super::hub::Hub;
use super::pair::{Hosts, Line, NAMES, Pair, SERVER, Wanted, asks, echo, inside};
use crate::hosts::many_descriptors;
use crate::namespace::Namespace;

/// A second host behind the box.
const NEIGHBOUR: [u8; 4] = [10, 1, 0, 3];

/// The neighbour's connections, at most `count`, after a first request that succeeds.
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

/// `count`: how many connections the gateway has room for.
fn one_host_leaves_places(hosts: &Hosts, count: usize) {
    many_descriptors();
    inside(&hosts.client, "ip addr add 10.1.0.3/24 dev eth");
    let at = hosts.serve(80, echo);
    let held = hold(hosts, at, count, asks);
    assert!(held.len() > count / 2 && held.len() < count, "{} of {count}", held.len());
    others_are_served(hosts, at);
    drop(held);
}

/// The server sees the client's own address.
fn others_are_served(hosts: &Hosts, at: SocketAddr) {
    for n in 0..5 {
        let asked = hosts.connect(at).and_then(|mut stream| asks(&mut stream));
        asked.unwrap_or_else(|error| panic!("{n}: {error}\n{}", hosts.all_said()));
    }
}

/// The neighbour starts `count` downloads and reads none, or uploads to a server that reads none. Other hosts are served at once, and also
/// after all data that can arrive has arrived.
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
        // Until no more data is accepted.
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
        // Enough for windows of half the memory.
        line.edit(name, "20 ms", "600 ms");
    }
    // Unread data must wait in the boxes.
    for host in if are_uploads { [&line.far, &line.server] } else { [&line.near, &line.client] } {
        host.inside(|| {
            for buffer in ["tcp_rmem", "tcp_wmem"] {
                std::fs::write(format!("/proc/sys/net/ipv4/{buffer}"), "4096 16384 16384").expect("root may");
            }
        });
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

/// An idle connection counts as 5 KiB, and seven eighths of the memory are for connections: at most 1433.
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

/// A SYN with the source address of a host that never completes the handshake.
fn spoofed(n: u32) -> Vec<u8> {
    let addresses = ip::Addresses::new([10, 1, 0, 4 + (n % 240) as u8].into(), SERVER.into()).expect("of one version");
    let ports = ip::Ports { source: 1024 + (n / 240) as u16, destination: 80 };
    let mut packet = vec![0; 64];
    let header = addresses.header_len();
    let mut translation = Translation::new(addresses, ports, n.wrapping_mul(0x9e37_79b9));
    let length = translation.emit(&Segment::new(Flags::SYN), &[], &mut packet[header..]).expect("there is room");
    ip::emit(&addresses, ip::TCP, length, &mut packet).expect("there is room");
    packet.truncate(header + length);
    packet
}

/// 8192 SYNs from 240 hosts that never continue, at 4000 per second. The client's connections are accepted meanwhile and afterwards.
fn spoofed_syns_keep_nobody_out(hosts: &Hosts, gate: &Namespace, device: &str) {
    // Otherwise the kernel would send neighbour requests for these hosts, and drop their packets.
    for n in 0..240 {
        inside(gate, &format!("ip neigh add 10.1.0.{} lladdr 02:00:00:00:00:01 dev {device}", 4 + n));
    }
    let at = hosts.serve(80, echo);
    let flood = hosts.client.spawn(|| {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).expect("root may");
        let to = SocketAddr::from((SERVER, 0)).into();
        for n in 0..8192 {
            socket.send_to(&spoofed(n), &to).expect("there is a way");
            if n % 4 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    while !flood.is_finished() {
        others_are_served(hosts, at);
    }
    flood.join().expect("no panic");
    others_are_served(hosts, at);
}

#[test]
fn of_openings_in_split() {
    let line = Line::new("100 Mbit/s");
    inside(&line.near, "sysctl -qw net.core.somaxconn=4096");
    let settings = line.folder.path().join("near.toml");
    inside(&line.near, &format!("{} prepare {}", env!("CARGO_BIN_EXE_bentpipe-gateway"), settings.display()));
    let _gateways = NAMES.map(|name| line.start(name, 1024));
    line.wait_until_up(&NAMES, true);
    spoofed_syns_keep_nobody_out(&line, &line.near, "lan");
}

#[test]
fn of_openings_in_the_relay() {
    let hub = Hub::new("sender = \"kernel\"\ncongestion = \"cubic\"\n");
    inside(&hub.hub, "sysctl -qw net.core.somaxconn=4096");
    assert!(hub.bentpipe(&["prepare", "hub.toml"]).status.success());
    let _gateway = hub.run(1024);
    spoofed_syns_keep_nobody_out(&hub.hosts, &hub.hub, "sat");
}

#[test]
fn of_openings_in_uplink() {
    let hub = Hub::new("");
    let _gateway = hub.run(1024);
    spoofed_syns_keep_nobody_out(&hub.hosts, &hub.hub, "sat");
}
