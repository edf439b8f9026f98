//! The other box, the way to it, and strangers on it.

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::Measured;
use crate::namespace::Namespace;
use crate::pair::{Line, asks, bytes, echo, inside, send};

/// Datagrams of all lengths and of the tunnel's kinds, from a third host; what the box sends back, whatever it is.
pub(super) fn strangers(_: bool) -> Measured {
    const COUNT: usize = 10_000;
    let line = Line::new("100 Mbit/s");
    let stranger = Namespace::new().expect("this needs root and namespaces");
    inside(&line.far, &format!("ip link add street type veth peer name eth netns {}", stranger.name()));
    for (host, command) in [
        (&*line.far, "ip addr add 10.8.0.1/24 dev street"),
        (&*line.far, "ip link set street up"),
        (&stranger, "ip addr add 10.8.0.2/24 dev eth"),
        (&stranger, "ip link set eth up"),
    ] {
        inside(host, command);
    }
    for command in [
        "nft add table inet watch",
        "nft add chain inet watch output { type filter hook output priority 0 ; }",
        "nft add rule inet watch output ip daddr 10.8.0.2 counter",
    ] {
        inside(&line.far, command);
    }
    let _both = [line.start("near", 1024), line.start("far", 1024)];
    line.wait_until_up(&["near", "far"], true);
    let noise = bytes(1 << 20);
    stranger.inside(move || {
        let socket = UdpSocket::bind("10.8.0.2:0").expect("a free port");
        socket.connect("10.8.0.1:4500").expect("an address");
        for n in 0..COUNT {
            let from = n * 104_729 % (noise.len() - 1500);
            let mut datagram = noise[from..from + 1 + n * 29 % 1400].to_vec();
            // Half of them with the form of the tunnel's kinds.
            if n % 2 == 0 {
                datagram[0] = 1 + (n / 2 % 4) as u8;
            }
            let _ = socket.send(&datagram);
            if n % 100 == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
    std::thread::sleep(Duration::from_secs(1));
    let shown = inside(&line.far, "nft list chain inet watch output");
    let count = |word: &str| -> u64 {
        let after = shown.split_whitespace().skip_while(|&it| it != word).nth(1);
        after.and_then(|count| count.parse().ok()).expect("a counter")
    };
    let heard = &line.fresh_status("far")["tunnel"];
    let heard =
        ["garbage", "refused", "unknown", "throttled"].iter().filter_map(|key| heard[*key].as_u64()).sum::<u64>();
    let text = format!("{} bytes out in {} packets; {heard} of {COUNT} counted", count("bytes"), count("packets"));
    Measured { text, is_met: count("packets") == 0 && heard > 0 }
}

/// From the start of the far box's gateway to an answer on a new connection through it, after it was killed.
pub(super) fn returns(is_short: bool) -> Measured {
    let line = Line::new("100 Mbit/s");
    let server = line.serve(80, echo);
    let (_near, mut far) = (line.start("near", 1024), line.start("far", 1024));
    line.wait_until_up(&["near", "far"], true);
    let mut took = Vec::new();
    for _ in 0..if is_short { 1 } else { 5 } {
        far.0.kill().expect("it runs");
        far.0.wait().expect("it ends");
        let start = Instant::now();
        far = line.start("far", 1024);
        let accepted = |line: &Line| line.status("far").is_some_and(|s| s["split"]["connected"].as_u64() > Some(0));
        while start.elapsed() < Duration::from_secs(60) {
            let asked = line.connect(server).and_then(|mut stream| asks(&mut stream));
            if asked.is_ok() && accepted(&line) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        took.push(start.elapsed().as_secs_f64());
    }
    let worst = took.iter().copied().fold(0.0, f64::max);
    // What the far box counts is looked at once a second.
    Measured { text: format!("worst of {}: {worst:.2} s", took.len()), is_met: worst < 3.0 + 1.0 }
}

/// The interfaces between the boxes take less than the settings say, from the start and from the middle of a transfer on.
pub(super) fn mtu(is_short: bool) -> Measured {
    let all: &[u32] = if is_short { &[1400] } else { &[1280, 1300, 1350, 1400, 1450, 1499] };
    let mut worst = 0.0_f64;
    for mtu in all {
        let line = Line::new("4 Mbit/s");
        let server = line.serve(80, |mut stream| {
            let mut got = Vec::new();
            let _ = stream.read_to_end(&mut got);
            let _ = stream.write_all(&got);
        });
        let _both = [line.start("near", 1024), line.start("far", 1024)];
        line.wait_until_up(&["near", "far"], true);
        for is_first in [true, false] {
            let mut stream = line.connect(server).expect("it connects");
            let sent = bytes(1_000_000);
            let sender = send(&stream, sent.clone());
            if is_first {
                std::thread::sleep(Duration::from_millis(700));
                for gate in [&line.near, &line.far] {
                    inside(gate, &format!("ip link set sat mtu {mtu}"));
                }
            }
            let (mut got, mut last, mut buffer) = (Vec::new(), Instant::now(), vec![0; 1 << 16]);
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => {
                        // The first bytes come when all have gone there: 2 s of the line.
                        let stall = last.elapsed().as_secs_f64() - if got.is_empty() { 2.2 } else { 0.0 };
                        worst = worst.max(stall);
                        (last, _) = (Instant::now(), got.extend_from_slice(&buffer[..count]));
                    }
                    Err(error) => {
                        let text = format!("MTU {mtu}: {} of {} bytes, then {:?}", got.len(), sent.len(), error.kind());
                        return Measured { text, is_met: false };
                    }
                }
            }
            let _ = sender.join();
            if got != sent {
                return Measured { text: format!("MTU {mtu}: {} of {} bytes", got.len(), sent.len()), is_met: false };
            }
        }
    }
    Measured { text: format!("{} MTUs, all bytes; longest stall {worst:.1} s", all.len()), is_met: worst < 10.0 }
}
