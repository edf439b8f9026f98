//! A peer that has the keys of a box and keeps to no rule: the box goes on, in bounded memory and with few lines of log, and a peer that
//! keeps to them is served as before.

mod peer;

use std::io::Read;
use std::net::SocketAddr;

use bentpipe_engine::Context;
use bentpipe_engine::units::Duration;
use bentpipe_engine::wire::ip;
use bentpipe_engine::wire::mux::{self, Message, Reason, Route, StreamId};
use bentpipe_engine::wire::slacp::{Frame, Report};
use bentpipe_gateway::Carries;
use bentpipe_gateway::tunnel::What;

use self::peer::{Hostile, keys_of, tunnel};
use super::memory::{MEMORY, anonymous};
use super::pair::{Line, NAMES, Running, SERVER, asks, bytes, echo, inside};

/// Two to the power of 62, above all numbers of the multiplexer.
const END: u64 = 1 << 62;

/// The far box alone, with little memory.
fn far_box() -> (Line, Running) {
    let line = Line::new("100 Mbit/s");
    line.edit("far", "[split]", &format!("[split]\nmemory = \"{} MB\"", MEMORY / 1_000_000));
    let far = line.start("far", 1024);
    line.wait_until_up(&["far"], false);
    (line, far)
}

/// The box is as it was: it has grown by no more than it may, it has said little, and its true peer is served.
fn is_unharmed(line: &Line, mut far: Running, before: u64) {
    let grown = anonymous(&far).saturating_sub(before);
    println!("grown by {} kB; {}", grown / 1000, line.status("far").expect("it answers"));
    // As in `a_flood_takes_no_more_than_memory`, and the erasure code's tables, 8.4 MiB.
    assert!(grown < MEMORY / 5 * 6 + (9 << 20), "{grown} B");
    let said = line.said("far");
    assert!(!said.contains("panicked") && said.lines().count() < 25, "{said}");
    let mut near = line.start("near", 1024);
    line.wait_until_up(&NAMES, true);
    asks(&mut line.connect((SERVER, 80).into()).expect("it connects")).expect("an answer");
    for gateway in [&mut near, &mut far] {
        gateway.signal("TERM");
        gateway.ends();
    }
}

/// Datagrams with a valid seal: repeated, out of order, with noise, and with frames whose numbers are as far away as their fields allow.
/// The peer then begins anew, hundreds of times.
#[test]
fn frames_that_lie() {
    let (line, far) = far_box();
    let _server = line.serve(80, echo);
    let mut peer = Hostile::new(&line, Carries::Streams);
    assert!(peer.is_served(0), "{}", line.said("far"));
    let before = anonymous(&far);

    for datagram in peer.old.iter().rev().cycle().take(20_000) {
        let _ = peer.socket.send(datagram);
    }
    assert!(peer.is_served(1), "copies change nothing");
    let noise = bytes(1 << 20);
    for n in 0..20_000 {
        let (from, length) = (n * 7919 % (1 << 19), [0, 1, 4, 20, 300, 1400][n % 6]);
        peer.throw([What::Frame, What::Part, What::Probe, What::Ack][n / 6 % 4], &noise[from..from + length]);
        if n % 100 == 0 {
            peer.work();
        }
    }
    assert!(peer.is_served(2), "noise changes nothing");

    // What follows spoils the link's numbers.
    let (mut number, mut seq) = (1 << 20, 100_u64);
    for n in 0..20_000_u64 {
        number += if n % 3 == 0 { (1 << 31) - 1 } else { n % 5 };
        seq += n % 7;
        let (far_away, channel) = (seq + (1 << 16), [0, 0, 0, 1, 255][n as usize % 5]);
        let (frame, length) = match n % 6 {
            0 => (
                Frame::Data { channel, number, seq, behind: (n % (seq + 1)).min(65_535) as u32, floor: seq, len: 100 },
                100,
            ),
            1 => (Frame::Data { channel, number, seq: far_away, behind: 0, floor: seq + 1, len: 1400 }, 1400),
            2 => (
                Frame::Repair {
                    channel,
                    number,
                    first: seq,
                    count: 128,
                    index: (n % 128) as u8,
                    floor: seq,
                    len: 1000,
                },
                1000,
            ),
            3 => (Frame::Sync { channel, number, floor: u64::from(u32::MAX >> 1) + seq }, 0),
            4 => (
                Frame::Report(Report { newest: number, delay: Duration::from_secs(4000), bits: vec![u64::MAX; 32] }),
                0,
            ),
            _ => {
                (Frame::Report(Report { newest: n, delay: Duration::ZERO, bits: vec![0x5555; 1 + n as usize % 16] }), 0)
            }
        };
        // A report may not reach below the first number.
        if !matches!(&frame, Frame::Report(report) if report.newest < 64 * 16) {
            peer.frame(&frame, &noise[..length]);
        }
        if n % 100 == 0 {
            peer.work();
        }
    }
    for _ in 0..300 {
        let [own, far] = keys_of(&line);
        peer.tunnel = tunnel(own, &far, Carries::Streams);
        peer.pump(3);
    }
    peer.until_up();
    assert!(peer.is_served(0), "{}", line.said("far"));
    drop(peer);
    is_unharmed(&line, far, before);
}

/// Messages that break the rules of the multiplexer, and more connections than the box has room for. The link goes on, and so do streams
/// that keep to the rules.
#[test]
fn messages_that_lie() {
    let (line, far) = far_box();
    let _server = line.serve(80, echo);
    let mut peer = Hostile::new(&line, Carries::Streams);
    assert!(peer.is_served(0), "{}", line.said("far"));
    let before = anonymous(&far);
    let mut next = 1;
    let server = SocketAddr::from((SERVER, 80));
    let mut stream = |peer: &Hostile| {
        next += 1;
        StreamId(peer.first + 2 * (next - 1))
    };

    for (credit, streams) in [(END - 1, 0), (0, u32::MAX), (END - 1, u32::MAX), (1, 1)] {
        (0..50).for_each(|_| peer.say(&Message::Hello { credit, streams }, &[]));
    }
    // Numbers of the other end, the largest ones, and used ones.
    for number in [1 - peer.first, END - 2 + peer.first, END - 1 - peer.first, peer.first, peer.first + 2] {
        for _ in 0..3 {
            peer.open(StreamId(number), server, &[1; 50]);
        }
    }
    // What a stream may be told in each of its states.
    for state in 0..6 {
        for end in 0..8 {
            let id = stream(&peer);
            let (silent, refused) = (([10, 2, 0, 77], 80).into(), (SERVER, 9).into());
            match state {
                0 => {}
                1 => peer.open(id, silent, &[1; 50]),
                2 => peer.open(id, refused, &[1; 50]),
                _ => peer.open(id, server, &[1; 100]),
            }
            if state > 3 {
                peer.pump(5);
                peer.say(&Message::Data { stream: id, offset: 100, len: 0, last: true }, &[]);
            }
            if state > 4 {
                peer.pump(5);
            }
            let data = |offset, last| Message::Data { stream: id, offset, len: 10, last };
            let told = match end {
                0 => data(0, false),
                1 => data(1 << 40, false),
                2 => data(END - 11, true),
                3 => Message::Credit { stream: id, limit: END - 1 },
                4 => Message::Credit { stream: id, limit: 0 },
                5 => Message::Data { stream: id, offset: END - 1, len: 0, last: true },
                _ => Message::Reset { stream: id, reason: [Reason::Protocol, Reason::Peer][end % 2] },
            };
            let body = [2; 10];
            (0..3).for_each(|_| peer.say(&told, &body[..told.payload() as usize]));
        }
    }
    // More than the window, and never an end.
    let id = stream(&peer);
    peer.open(id, server, &[]);
    for n in 0..10_000 {
        peer.say(&Message::Data { stream: id, offset: 1000 * n, len: 1000, last: false }, &[3; 1000]);
    }
    // Messages of which one byte is another one.
    let noise = bytes(1 << 16);
    for n in 0..10_000_usize {
        let id = stream(&peer);
        let route = Route { source: ([10, 1, 0, 2], 7).into(), destination: server };
        let message = match n % 4 {
            0 => Message::Open { stream: id, route, credit: 1 << (n % 60), len: 20 },
            1 => Message::Data {
                stream: StreamId(id.0.saturating_sub(8)),
                offset: (n % 70) as u64,
                len: 20,
                last: n % 8 > 3,
            },
            2 => Message::Credit { stream: StreamId(id.0 / 2), limit: n as u64 },
            _ => Message::Reset { stream: StreamId(id.0 / 2), reason: Reason::Refused },
        };
        let mut packet = [0; 100];
        let length = mux::emit(&message, &[&noise[..message.payload() as usize]], &mut packet).expect("it has a form");
        packet[n % length] ^= noise[n];
        peer.packet(message.flow(), &packet[..length]);
    }
    // Connections without end: to a port that refuses, to a host that is silent, and to the server.
    for to in [(SERVER, 9), ([10, 2, 0, 77], 80), (SERVER, 80)] {
        for _ in 0..3000 {
            let id = stream(&peer);
            peer.open(id, to.into(), &[4; 100]);
        }
        peer.settle(0);
        peer.pump(300);
    }
    assert!(peer.resets.values().any(|reason| *reason == Reason::Protocol), "{:?}", peer.resets.len());
    assert!(line.fresh_status("far")["split"]["open"].as_u64() > Some(800), "its room is used up");
    let last = stream(&peer);
    for number in (peer.first..last.0).step_by(2) {
        peer.say(&Message::Reset { stream: StreamId(number), reason: Reason::Peer }, &[]);
    }
    peer.settle(0);
    // The kernel gives up the silent host after three seconds.
    let served = (0..3).any(|_| {
        let id = stream(&peer);
        peer.is_served((id.0 - peer.first) / 2)
    });
    assert!(served, "{}", line.status("far").expect("it answers"));
    assert_eq!(line.said("far").matches("is up").count(), 1, "one link all the while: {}", line.said("far"));
    drop(peer);
    is_unharmed(&line, far, before);
}

/// The peer names the box's own address as that of a client: servers that trust the box would take it for the box.
#[test]
fn nobody_connects_as_the_box_itself() {
    let (line, _far) = far_box();
    let (told, seen) = std::sync::mpsc::channel();
    let at = line.serve(80, move |mut stream| {
        let _ = told.send(stream.peer_addr().expect("it is connected").ip());
        let _ = stream.read(&mut [0]);
    });
    let mut peer = Hostile::new(&line, Carries::Streams);
    for (n, source) in [[10, 2, 0, 1], [10, 9, 0, 2], [10, 1, 0, 2]].into_iter().enumerate() {
        let stream = StreamId(peer.first + 2 * n as u64);
        let route = Route { source: (source, 40_000).into(), destination: at };
        peer.say(&Message::Open { stream, route, credit: 1 << 20, len: 0 }, &[]);
        peer.pump(300);
        let heard = (peer.resets.get(&stream).copied(), seen.try_recv().ok());
        let is_own = n < 2;
        assert_eq!(heard, (is_own.then_some(Reason::Forbidden), (!is_own).then(|| source.into())), "{source:?}");
    }
}

/// An IPv4 packet with this payload and a right checksum of its header.
fn packet([from, to]: [[u8; 4]; 2], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let addresses = ip::Addresses::new(from.into(), to.into()).expect("of one version");
    let mut whole = vec![0; addresses.header_len()];
    ip::emit(&addresses, protocol, payload.len(), &mut whole).expect("there is room");
    whole.extend(payload);
    whole
}

/// True if the box answers an echo request.
fn answers(peer: &mut Hostile) -> bool {
    // Type 8, and a checksum without which nobody answers.
    let request = packet([[10, 8, 0, 1], [10, 8, 0, 2]], 1, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0]);
    let begun = std::time::Instant::now();
    while begun.elapsed().as_secs() < 5 {
        peer.port.send(&mut Context::silent(peer.now()), &request).expect("it is short enough");
        peer.pump(20);
        if peer.packets.drain(..).any(|packet| packet.len() == 28 && packet[9] == 1 && packet[20] == 0) {
            return true;
        }
    }
    false
}

/// In `link`: packets that are none, whose lengths and headers contradict each other, and compressed headers that nobody compressed.
#[test]
fn packets_that_lie() {
    let line = Line::new("100 Mbit/s");
    for (name, n) in [("near", 1), ("far", 2)] {
        let memory = format!("memory = \"{} MB\"", MEMORY / 1_000_000);
        line.edit(name, "[split]", &format!("[link]\naddresses = [\"10.8.0.{n}/24\"]\n{memory}"));
    }
    line.edit("near", "capture = [\"lan\"]", "");
    let far = line.start("far", 1024);
    line.wait_until_up(&["far"], false);
    let mut peer = Hostile::new(&line, Carries::Packets);
    assert!(answers(&mut peer), "{}", line.said("far"));
    let before = anonymous(&far);
    let noise = bytes(1 << 20);
    for n in 0..30_000_usize {
        let at = n * 7919 % (1 << 19);
        let body = &noise[at..at + [8, 20, 28, 60, 600, 1300][n % 6]];
        let mut lie = packet([[10, 1, 0, 2], [10, 2, 0, 2]], [6, 17, 1, 4, 41, 50][n / 6 % 6], body);
        match n % 4 {
            // One byte of the headers is another one.
            0 => lie[n / 4 % 40 % (20 + body.len())] ^= noise[n],
            // A train of segments that contradict each other.
            1 => (lie[9], lie[32], lie[33]) = (6, noise[n], noise[n + 1]),
            2 => lie.truncate(n / 4 % lie.len()),
            _ => lie = body.to_vec(),
        }
        let now = peer.now();
        let channel = (n / 24 % 4) as u8;
        let _ = match n % 8 {
            // As if its headers were compressed.
            4.. => peer.port.send_on(&mut Context::silent(now), channel, n as u64 % 100, &lie),
            _ => peer.port.send(&mut Context::silent(now), &lie),
        };
        if n % 100 == 0 {
            peer.settle(200);
        }
    }
    assert!(answers(&mut peer), "{}", line.status("far").expect("it answers"));
    let grown = anonymous(&far).saturating_sub(before);
    println!("grown by {} kB; {}", grown / 1000, line.status("far").expect("it answers"));
    // Besides, a link may take 2.6 MB for flows from the peer (`docs/explanation/gateway.md`).
    assert!(grown < MEMORY / 5 * 6 + (9 << 20) + 2_600_000, "{grown} B");
    let said = line.said("far");
    assert!(!said.contains("panicked") && said.lines().count() < 25 && said.matches("is up").count() == 1, "{said}");
    drop(peer);
    let _near = line.start("near", 1024);
    line.wait_until_up(&NAMES, true);
    inside(&line.near, "ping -c 1 -W 5 10.8.0.2");
}
