//! One host that asks for too much, and the others.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::Measured;
use crate::hosts::many_descriptors;
use crate::pair::{Line, asks, echo, inside};

/// The address of a second host behind the near box.
const OTHER: [u8; 4] = [10, 1, 0, 3];

/// Begins connections from the second host, so many per second, until it is over; each is reset at once or left open as
/// it is. Returns how many.
fn flood(
    line: &Line,
    to: SocketAddr,
    per_second: u64,
    is_reset: bool,
    is_over: Arc<AtomicBool>,
) -> std::thread::JoinHandle<u64> {
    line.client.spawn(move || {
        let (start, mut begun, mut kept) = (Instant::now(), 0, std::collections::VecDeque::new());
        while !is_over.load(Ordering::Relaxed) {
            let due = (start.elapsed().as_secs_f64() * per_second as f64) as u64;
            while begun < due {
                begun += 1;
                let Ok(socket) = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None) else { continue };
                let from = SocketAddr::from((Ipv4Addr::from(OTHER), 0));
                let _ = socket.bind(&from.into()).and_then(|()| socket.connect(&to.into()));
                let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
                kept.push_back((Instant::now(), socket));
            }
            // One that is closed before the handshake is over was never there: so they live for some milliseconds.
            let patience = Duration::from_millis(if is_reset { 5 } else { 4000 });
            while kept.front().is_some_and(|(since, _)| since.elapsed() > patience) {
                kept.pop_front();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        begun
    })
}

fn resident(line: &Line, name: &str) -> u64 {
    line.fresh_status(name)["process"]["resident_bytes"].as_u64().expect("a number")
}

/// A server that takes all and says nothing; the number of bytes that it has taken.
pub(super) fn counted(line: &Line) -> (SocketAddr, Arc<AtomicU64>) {
    let got = Arc::new(AtomicU64::new(0));
    let counted = got.clone();
    let sink = line.serve(80, move |mut stream: TcpStream| {
        let mut buffer = [0; 1 << 14];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            counted.fetch_add(count as u64, Ordering::Relaxed);
        }
    });
    (sink, got)
}

/// Bytes per second, over so many seconds.
fn rate(got: &AtomicU64, seconds: u64) -> f64 {
    let before = got.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_secs(seconds));
    (got.load(Ordering::Relaxed) - before) as f64 / seconds as f64
}

/// The bulk of one host, in bytes per second, before, while and after another connects and resets.
pub(super) fn resets(is_short: bool) -> Measured {
    many_descriptors();
    let line = Line::new("1 Mbit/s");
    inside(&line.client, "ip addr add 10.1.0.3/24 dev eth");
    let (sink, got) = counted(&line);
    let target = line.serve(81, echo);
    let _both = [line.start("near", 8192), line.start("far", 8192)];
    line.wait_until_up(&["near", "far"], true);
    let mut bulk = line.connect(sink).expect("it connects");
    let is_done = Arc::new(AtomicBool::new(false));
    let is_enough = is_done.clone();
    let sender =
        std::thread::spawn(move || while !is_enough.load(Ordering::Relaxed) && bulk.write_all(&[7; 4096]).is_ok() {});
    std::thread::sleep(Duration::from_secs(3));
    let span = if is_short { 10 } else { 30 };
    let (before, memory) = (rate(&got, span), resident(&line, "near"));
    let is_over = Arc::new(AtomicBool::new(false));
    let flooding = flood(&line, target, 5000, true, is_over.clone());
    let during = rate(&got, span);
    let grown = resident(&line, "near").saturating_sub(memory);
    is_over.store(true, Ordering::Relaxed);
    let begun = flooding.join().expect("no panic");
    std::thread::sleep(Duration::from_secs(2));
    let after = rate(&got, span);
    is_done.store(true, Ordering::Relaxed);
    let _ = sender.join();
    let (share, again) = (during / before, after / before);
    let text = format!(
        "{:.0} % (after: {:.0} %), +{:.1} MB, at {:.0} per second",
        100.0 * share,
        100.0 * again,
        grown as f64 / 1e6,
        begun as f64 / (span + 1) as f64
    );
    Measured { text, is_met: share >= 0.7 && again >= 0.9 && grown <= 8_000_000 }
}

/// SYNs of one host to an address that never answers, and another host's connections to one that does.
pub(super) fn silent(is_short: bool) -> Measured {
    many_descriptors();
    let line = Line::new("10 Mbit/s");
    inside(&line.client, "ip addr add 10.1.0.3/24 dev eth");
    // It is there, and says nothing.
    inside(&line.server, "ip addr add 10.2.0.3/24 dev eth");
    for command in [
        "nft add table inet mute",
        "nft add chain inet mute input { type filter hook input priority 0 ; }",
        "nft add rule inet mute input ip daddr 10.2.0.3 drop",
    ] {
        inside(&line.server, command);
    }
    let server = line.serve(80, echo);
    let _both = [line.start("near", 8192), line.start("far", 8192)];
    line.wait_until_up(&["near", "far"], true);
    let is_over = Arc::new(AtomicBool::new(false));
    let flooding = flood(&line, SocketAddr::from(([10, 2, 0, 3], 80)), 500, false, is_over.clone());
    let (start, mut asked, mut served) = (Instant::now(), 0u32, 0u32);
    while start.elapsed() < Duration::from_secs(if is_short { 15 } else { 120 }) {
        asked += 1;
        served += u32::from(line.connect(server).and_then(|mut stream| asks(&mut stream)).is_ok());
        std::thread::sleep(Duration::from_millis(50));
    }
    is_over.store(true, Ordering::Relaxed);
    let begun = flooding.join().expect("no panic");
    let share = 100.0 * f64::from(served) / f64::from(asked);
    Measured { text: format!("{share:.2} % of {asked}, beside {begun} SYNs"), is_met: share >= 99.0 }
}

/// Bulk in `link`, in bytes per second, before and while another host sends expedited datagrams, datagrams to port 53 and echo
/// requests, together at twice the rate of the line.
pub(super) fn priority(is_short: bool) -> Measured {
    const RATE: f64 = 4e6;
    /// Bytes of an IP packet of the flood.
    const LEN: usize = 500;
    let line = Line::new("4 Mbit/s");
    line.edit("near", "[split]\ncapture = [\"lan\"]", "[link]\naddresses = [\"10.8.0.1/24\"]");
    line.edit("far", "[split]", "[link]\naddresses = [\"10.8.0.2/24\"]");
    inside(&line.client, "ip addr add 10.1.0.3/24 dev eth");
    let _both = [line.start("near", 1024), line.start("far", 1024)];
    line.wait_until_up(&["near", "far"], true);
    inside(&line.near, "ip route replace 10.2.0.0/24 dev bentpipe0");
    inside(&line.far, "ip route replace 10.1.0.0/24 dev bentpipe0");
    let (sink, got) = counted(&line);
    let mut bulk = line.connect(sink).expect("it connects");
    let is_over = Arc::new(AtomicBool::new(false));
    let is_enough = is_over.clone();
    let sender =
        std::thread::spawn(move || while !is_enough.load(Ordering::Relaxed) && bulk.write_all(&[7; 4096]).is_ok() {});
    let is_enough = is_over.clone();
    let (go, waits) = std::sync::mpsc::channel();
    let flood = line.client.spawn(move || {
        let socket = |kind, protocol| {
            let socket = Socket::new(Domain::IPV4, kind, protocol).expect("root");
            socket.bind(&SocketAddr::from((Ipv4Addr::from(OTHER), 0)).into()).expect("an address of ours");
            socket
        };
        let expedited = socket(Type::DGRAM, None);
        expedited.set_tos_v4(46 << 2).expect("a field of six bits");
        let names = socket(Type::DGRAM, None);
        let pings = socket(Type::RAW, Some(Protocol::ICMPV4));
        // An echo request whose checksum is right: the complement of type and code, all else being zero.
        let mut ping = vec![0; LEN - 20];
        ping[..4].copy_from_slice(&[8, 0, 0xf7, 0xff]);
        let [to_expedited, to_names, to_ping] =
            [5000, 53, 0].map(|port| SocketAddr::from((crate::pair::SERVER, port)).into());
        waits.recv().expect("it is told when");
        let (start, mut sent) = (Instant::now(), 0_u64);
        while !is_enough.load(Ordering::Relaxed) {
            let due = (start.elapsed().as_secs_f64() * 2.0 * RATE / (8 * LEN) as f64) as u64;
            while sent < due {
                // What the system refuses is lost, as it would be in a network.
                let _ = match sent % 3 {
                    0 => expedited.send_to(&ping[8..], &to_expedited),
                    1 => names.send_to(&ping[8..], &to_names),
                    _ => pings.send_to(&ping, &to_ping),
                };
                sent += 1;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        sent as f64 / start.elapsed().as_secs_f64()
    });
    let span = if is_short { 10 } else { 30 };
    std::thread::sleep(Duration::from_secs(3));
    let before = rate(&got, span);
    go.send(()).expect("it waits");
    std::thread::sleep(Duration::from_secs(2));
    let during = rate(&got, span);
    is_over.store(true, Ordering::Relaxed);
    let flooded = flood.join().expect("no panic") * (8 * LEN) as f64;
    drop(sender.join());
    let share = during / before;
    let text = format!(
        "{:.0} %: {:.2} Mbit/s before, {:.2} beside a flood of {:.1}",
        100.0 * share,
        8e-6 * before,
        8e-6 * during,
        1e-6 * flooded
    );
    // Two hosts with as much to send have half the line each, which is the bar. The clocks of the two measurements cut off some
    // packets at either end: 8 of 1500 bytes are half a percent of 10 s of half the line.
    Measured { text, is_met: share >= 0.495 && flooded > 1.9 * RATE }
}
