//! Memory of a gateway: at the start, and under a flood.

use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::pair::{Line, Running, SERVER, inside};

/// Anonymous memory of a gateway, bytes. Pages of the program that are read for the first time are not among it.
pub(crate) fn anonymous(gateway: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.0.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("the kernel tells");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes << 10
}

/// `memory` of the boxes under a flood, bytes.
pub(crate) const MEMORY: u64 = 8_000_000;

/// The largest growth of a box's memory, bytes, while the other box is stopped and hosts send 100 Mbit/s for three seconds: 37 MB, which
/// is what the link's queue and the packets in flight would hold.
pub(crate) fn flooded(shape: &str) -> u64 {
    let line = Line::new("100 Mbit/s");
    let memory = format!("memory = \"{} MB\"", MEMORY / 1_000_000);
    for (name, address) in [("near", "10.8.0.1/24"), ("far", "10.8.0.2/24")] {
        line.edit(name, "20 ms", "2 s");
        match shape {
            "link" => line.edit(name, "[split]", &format!("[link]\naddresses = [\"{address}\"]\n{memory}")),
            _ => line.edit(name, "[split]", &format!("[split]\n{memory}")),
        }
    }
    if shape == "link" {
        line.edit("near", "capture = [\"lan\"]", "");
    }
    let [near, far] = [line.start("near", 1024), line.start("far", 1024)];
    line.wait_until_up(&["near", "far"], true);
    if shape == "link" {
        inside(&line.near, "ip route replace 10.2.0.0/24 dev bentpipe0");
    }
    let before = anonymous(&near);
    far.signal("STOP");
    let mut most = before;
    let start = Instant::now();
    let mut watch = || most = most.max(anonymous(&near));
    let is_over = || start.elapsed() > Duration::from_secs(3);
    match shape {
        "link" => {
            let socket = line.client.inside(|| UdpSocket::bind("0.0.0.0:0").expect("a free port"));
            let to = SocketAddr::from((SERVER, 9));
            let mut sent = 0_u32;
            while !is_over() {
                // Datagrams that the system refuses are lost, as in a network.
                let due = start.elapsed().as_micros() * 100 / 8 / 1400;
                while u128::from(sent) < due {
                    let _ = socket.send_to(&[7; 1372], to);
                    sent += 1;
                }
                watch();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        _ => {
            let connect = |_| line.connect(SocketAddr::from((SERVER, 80))).expect("the gateway accepts");
            let mut streams: Vec<_> = (0..100).map(connect).collect();
            streams.iter().for_each(|stream| stream.set_nonblocking(true).expect("a socket"));
            while !is_over() {
                // Connections that were reset for lack of memory, and full ones, accept nothing.
                streams.iter_mut().for_each(|stream| drop(stream.write(&[7; 16_384])));
                watch();
            }
        }
    }
    far.signal("CONT");
    most - before
}

/// The erasure code's tables (8.4 MiB) are allocated when the link comes up, not at the first lost packet.
#[test]
fn memory_is_there_from_the_start() {
    // An eighth of the tables. A first connection's own memory is some 100 kB.
    const BOUND: u64 = 1 << 20;
    let line = Line::new("100 Mbit/s");
    let gateways = [line.start("near", 1024), line.start("far", 1024)];
    line.wait_until_up(&["near", "far"], true);
    let before = gateways.each_ref().map(anonymous);
    let at = line.serve(80, super::pair::echo);
    let mut stream = line.connect(at).expect("it connects");
    // The line falls idle after each answer, so repair frames go out.
    for _ in 0..20 {
        super::pair::asks(&mut stream).expect("it is open");
        std::thread::sleep(Duration::from_millis(50));
    }
    for (gateway, before) in gateways.iter().zip(before) {
        let grown = anonymous(gateway).saturating_sub(before);
        assert!(grown < BOUND, "{grown} B");
    }
}

/// At most base + 1.2 x `memory`: a fifth is for the allocator's overhead and for items that are not counted one by one.
#[test]
fn a_flood_takes_no_more_than_memory() {
    for shape in ["link", "split"] {
        let grown = flooded(shape);
        println!("{shape}: {grown} B");
        assert!(grown <= MEMORY / 5 * 6, "{shape}: {grown} B");
    }
}
