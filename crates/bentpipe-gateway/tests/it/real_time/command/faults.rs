//! Faults known from other gateways: connections, memory and descriptors when something goes wrong.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bentpipe_engine::Step;
use bentpipe_engine::units;
use bentpipe_gateway::tunnel::{PrivateKey, Todo, Tunnel, TunnelConfig};

use super::memory::anonymous;
use super::pair::{Hosts, NAMES, Pair, Running, SERVER, Wanted, asks, bytes, echo, inside, send, until};
use crate::hosts::many_descriptors;
use crate::namespace::Namespace;

/// Without free descriptors, new connections are refused, open ones continue, and status is answered. When some are closed, new ones are
/// accepted again. `max`: seven eighths of the connections that 80 descriptors allow, 40 of which are for other purposes; one host gets no
/// more than that.
pub(crate) fn without_descriptors(hosts: &Hosts, name: &str, table: &str, max: usize) {
    let at = hosts.serve(80, echo);
    let (mut kept, mut refused) = (Vec::new(), 0);
    for _ in 0..100 {
        match hosts.connect(at).and_then(|mut stream| asks(&mut stream).map(|()| stream)) {
            Ok(stream) => kept.push(stream),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                refused += 1;
            }
        }
    }
    assert_eq!((kept.len(), refused), (max, 100 - max));
    let status = hosts.fresh_status(name);
    assert_eq!((&status[table]["open"], &status[table]["refused"]), (&max.into(), &refused.into()));
    assert!(status["process"]["open_fds"].as_u64().is_some_and(|count| count < 80), "{status}");
    for stream in &mut kept {
        asks(stream).expect("it is open");
    }
    kept.drain(..10);
    until("ten are closed", || hosts.status(name).is_some_and(|s| s[table]["open"] == max - 10));
    for _ in 0..10 {
        let mut stream = hosts.connect(at).expect("it connects");
        asks(&mut stream).expect("there is room again");
        kept.push(stream);
    }
}

#[test]
fn without_descriptors_old_connections_live_on() {
    many_descriptors();
    let pair = Pair::new(&Wanted { rate: "100 Mbit/s", descriptors: 80 });
    without_descriptors(&pair, "near", "split", 35);
    pair.end();
}

/// SIGHUP in the middle of a transfer: no byte is lost and the changed keys take effect. A broken file is named and changes nothing.
#[test]
fn settings_are_read_again_while_bytes_move() {
    let pair = Pair::new(&Wanted { rate: "8 Mbit/s", descriptors: 1024 });
    let (told, seen) = std::sync::mpsc::channel();
    let at = pair.serve(80, move |mut stream| {
        told.send(stream.peer_addr().expect("it is connected").ip()).expect("the test waits");
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
        let _ = stream.write_all(&got);
    });
    let from = || seen.recv_timeout(Duration::from_secs(20)).expect("the server was asked");
    let transfer = pair.connect(at).expect("it connects");
    let sent = bytes(2_000_000);
    let sender = send(&transfer, sent.clone());
    assert_eq!(from(), transfer.local_addr().expect("it is connected").ip(), "the client's own");

    let path = pair.folder.path().join("far.toml");
    let old = std::fs::read_to_string(&path).expect("it is there");
    let far = &pair.gateways[1];
    let reload = |text: &str, said: &str| {
        std::fs::write(&path, text).expect("a file");
        far.signal("HUP");
        until(said, || pair.said("far").contains(said));
    };
    reload(&old.replace("[split]", "[split]\nclient_address = \"replace\""), "reload: client_address, without_peer");
    assert!(!pair.said("far").contains("the rest changes"), "{}", pair.said("far"));
    let own = SocketAddr::from(([10, 2, 0, 1], 0)).ip();
    drop(pair.connect(at).expect("it connects"));
    assert_eq!(from(), own, "the gateway's");
    reload(&old.replace("round_trip", "roundtrip"), "reload: the old settings remain");
    let said = pair.said("far");
    assert!(said.contains("far.toml:12:1") && said.contains("did you mean `round_trip`?"), "{said}");
    drop(pair.connect(at).expect("it connects"));
    assert_eq!(from(), own, "as before");
    reload(&old.replace("8 Mbit/s", "9 Mbit/s"), "the rest changes at the next start");
    drop(pair.connect(at).expect("it connects"));
    assert_ne!(from(), own, "the file says nothing of it any more");

    let mut got = Vec::new();
    { &transfer }.read_to_end(&mut got).expect("no reset");
    sender.join().expect("all is sent");
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
    pair.end();
}

/// `without_peer` takes effect at once, even while there is no peer.
#[test]
fn a_reload_while_the_peer_is_gone() {
    let mut pair = Pair::new(&Wanted { rate: "100 Mbit/s", descriptors: 1024 });
    let at = pair.serve(80, echo);
    let asked = |pair: &Pair| pair.connect(at).and_then(|mut stream| asks(&mut stream));
    asked(&pair).expect("through the gateways");
    pair.gateways[1].0.kill().expect("it runs");
    until("the peer is given up", || pair.status("near").is_some_and(|s| s["up"] == false));
    asked(&pair).expect("directly");
    let path = pair.folder.path().join("near.toml");
    let old = std::fs::read_to_string(&path).expect("it is there");
    let reload = |text: &str, count: usize| {
        std::fs::write(&path, text).expect("a file");
        pair.gateways[0].signal("HUP");
        until("it says so", || pair.said("near").matches("reload: ").count() == count);
    };
    reload(&old.replace("[split]", "[split]\nwithout_peer = \"refuse\""), 1);
    until("it refuses", || asked(&pair).is_err());
    // By the listener, or by the rule while there is no listener.
    let kind = asked(&pair).expect_err("it is refused").kind();
    assert!([ErrorKind::ConnectionReset, ErrorKind::ConnectionRefused].contains(&kind), "{kind:?}");
    reload(&old, 2);
    until("they pass by", || asked(&pair).is_ok());
    // The settings of a hub, with which connections would be refused, are for the next start.
    let (mine, peers): (Vec<_>, Vec<_>) = old.lines().partition(|line| !line.starts_with("peer"));
    let key = peers.iter().find_map(|line| line.strip_prefix("peer_key = ")).expect("it has a key");
    let hub = format!("{}\n[[peers]]\nname = \"far\"\nkey = {key}\nprefixes = [\"10.2.0.0/24\"]\n", mine.join("\n"));
    reload(&hub, 3);
    let said = pair.said("near");
    assert!(said.contains("nothing changes before the next start: the file has `[[peers]]`"), "{said}");
    for _ in 0..5 {
        asked(&pair).expect("directly");
        std::thread::sleep(Duration::from_millis(100));
    }
    pair.gateways[0].signal("TERM");
    pair.gateways[0].ends();
}

/// SIGTERM to both in the middle of a transfer: the transfer completes, new connections bypass the gateways, and both exit with 0.
#[test]
fn what_has_begun_is_finished() {
    let mut pair = Pair::new(&Wanted { rate: "8 Mbit/s", descriptors: 1024 });
    let at = pair.serve(80, |mut stream| {
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
        let _ = stream.write_all(&got);
    });
    let aside = pair.serve(81, echo);
    let transfer = pair.connect(at).expect("it connects");
    let sent = bytes(2_000_000);
    let sender = send(&transfer, sent.clone());
    std::thread::sleep(Duration::from_millis(500));
    pair.gateways[1].signal("TERM");
    until("it drains", || pair.status("far").is_some_and(|s| s["draining"] == true));
    // The near box still listens; the far box accepts no more streams.
    let error = pair.connect(aside).and_then(|mut stream| asks(&mut stream)).expect_err("it is refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    pair.gateways[0].signal("TERM");
    until("it drains", || pair.status("near").is_some_and(|s| s["draining"] == true));
    // The listener is closed: new connections pass directly.
    let accepted = pair.status("near").expect("it answers")["split"]["accepted"].clone();
    let mut direct = pair.connect(aside).expect("it connects");
    asks(&mut direct).expect("directly");
    assert_eq!(pair.fresh_status("near")["split"]["accepted"], accepted);
    assert!(!sender.is_finished() || pair.fresh_status("near")["split"]["open"] == 1, "the transfer is not over");
    let mut got = Vec::new();
    { &transfer }.read_to_end(&mut got).expect("no reset");
    sender.join().expect("all is sent");
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
    pair.gateways.iter_mut().for_each(Running::ends);
    asks(&mut direct).expect("it lives on");
}

/// First messages of well-formed handshakes, with keys that the gateway does not know.
fn half_open(peer: &str, count: usize) -> Vec<Vec<u8>> {
    let begin = |_| {
        let at = units::Time::ZERO;
        let config = TunnelConfig {
            keepalive: units::Duration::from_secs(5),
            dead_after: units::Duration::from_secs(15),
            ..TunnelConfig::new(
                PrivateKey::generate(),
                peer.parse().expect("a key"),
                Some(([10, 8, 0, 1], 4500).into()),
            )
        };
        let mut out = vec![0; 1 << 16];
        match Tunnel::new(config, at).poll(at, 1, &mut out) {
            Step::Do(Todo::Send(sealed)) => out[..sealed.len].to_vec(),
            other => panic!("an initiator begins: {other:?}"),
        }
    };
    (0..count).map(begin).collect()
}

/// A third host sends garbage, truncated and altered datagrams, and handshakes that it never finishes, to the tunnel's port, and garbage to
/// the control socket and the metrics port. The gateway continues to serve, and its memory grows by no more than the bound.
#[test]
fn garbage_from_all_sides() {
    // Nothing is stored for strangers. Only the allocator may grow: buffers and stacks of the threads that answer requests.
    const BOUND: u64 = 4 << 20;
    let pair = Pair::new(&Wanted { rate: "100 Mbit/s", descriptors: 1024 });
    let at = pair.serve(80, echo);
    let stranger = Namespace::new().expect("this test needs root and namespaces");
    inside(&pair.far, &format!("ip link add street type veth peer name eth netns {}", stranger.name()));
    for line in ["ip addr add 10.8.0.1/24 dev street", "ip link set street up"] {
        inside(&pair.far, line);
    }
    for line in ["ip addr add 10.8.0.2/24 dev eth", "ip link set eth up"] {
        inside(&stranger, line);
    }
    let mut stream = pair.connect(at).expect("it connects");
    asks(&mut stream).expect("it is open");
    let near = std::fs::read_to_string(pair.folder.path().join("near.toml")).expect("it is there");
    let far_key = near.lines().find_map(|line| line.strip_prefix("peer_key = ")).expect("a key").trim_matches('"');
    let handshakes = half_open(far_key, 1000);
    let whole = handshakes[0].clone();
    let noise = bytes(1 << 20);
    // Memory that the scrapers' threads take once is taken before the measurement.
    let ask = |request: &'static [u8]| {
        let mut stream = pair.far.inside(|| TcpStream::connect(super::pair::METRICS).expect("it listens"));
        let _ = stream.write_all(request);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    };
    (0..20).for_each(|_| ask(b"GET /metrics HTTP/1.1\r\n\r\n"));
    let before = settled(&pair, "far");
    let memory = anonymous(&pair.gateways[1]);

    let socket = stranger.inside(|| {
        let socket = UdpSocket::bind("10.8.0.2:0").expect("a free port");
        socket.connect("10.8.0.1:4500").expect("an address");
        socket
    });
    let throw = |datagram: &[u8]| {
        // A full queue refuses it, which counts as sent.
        let _ = socket.send(datagram);
    };
    let (mut asked, mut worst) = (0, Duration::ZERO);
    for (round, handshake) in handshakes.iter().enumerate() {
        throw(handshake);
        for n in 0..50 {
            let from = (round * 7919 + n * 104_729) % (noise.len() - 1500);
            let mut datagram = noise[from..from + 1 + (round + n * 29) % 1400].to_vec();
            // The first byte is the message type. Half of the datagrams have a valid one.
            if n % 2 == 0 {
                datagram[0] = 1 + (n / 2 % 4) as u8;
            }
            throw(&datagram);
        }
        let mut changed = whole.clone();
        changed[round % whole.len()] ^= 1 << (round % 8);
        throw(&changed);
        throw(&whole[..round % whole.len()]);
        if round % 50 == 0 {
            let start = Instant::now();
            asks(&mut stream).expect("it is open all the while");
            (asked, worst) = (asked + 1, worst.max(start.elapsed()));
            let mut control = UnixStream::connect(pair.folder.path().join("far.sock")).expect("it listens");
            let _ = control.write_all(&noise[round..round + 5000]);
            drop(control);
            ask(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n");
            ask(b"GET /metrics HTT");
        }
    }
    assert_eq!(asked, 20);
    // The wires add no delay. A flood costs the processing of its datagrams, and never a timeout.
    assert!(worst < Duration::from_secs(1), "{worst:?}");
    let after = pair.fresh_status("far");
    let count = |key: &str| after["tunnel"][key].as_u64().expect("a number");
    let told = format!("{}", after["tunnel"]);
    assert!(count("garbage") > 10_000 && count("unknown") > 500, "{told}");
    assert_eq!((count("throttled"), count("cookies")), (0, 0), "{told}");
    socket.set_nonblocking(true).expect("a socket");
    let answer = socket.recv(&mut [0; 2000]).map_err(|error| error.kind());
    assert_eq!(answer, Err(ErrorKind::WouldBlock), "strangers get no answer");
    assert_eq!(after["up"], true);
    assert_eq!(after["tunnel"]["handshakes"], before["tunnel"]["handshakes"], "{told}");
    assert_eq!(after["process"]["open_fds"], before["process"]["open_fds"]);
    let grown = anonymous(&pair.gateways[1]).saturating_sub(memory);
    println!("memory before {} kB, grown by {} kB; worst answer {worst:?}; {told}", memory / 1000, grown / 1000);
    assert!(grown < BOUND, "{grown} B");
    drop(stream);
    pair.end();
}

/// The status of a gateway that has looked at its rules once: a second after its start it listens to the kernel's notifications and runs
/// `nft` and `ip`, which takes descriptors. The number of descriptors has then been the same for three seconds.
fn settled(hosts: &Hosts, name: &str) -> serde_json::Value {
    let mut status = hosts.fresh_status(name);
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_secs(3) {
        let next = hosts.fresh_status(name);
        if next["process"]["open_fds"] != status["process"]["open_fds"] {
            since = Instant::now();
        }
        status = next;
    }
    status
}

/// Idle connections cost almost nothing, and leave nothing behind. `sockets`: of each connection, at each gateway.
pub(crate) fn a_thousand_idle(hosts: &Hosts, names: &[&str], table: &str, sockets: u64) {
    const COUNT: usize = 1000;
    // Memory of the process. The kernel's socket buffers are not counted.
    const BOUND: u64 = 1_000_000;
    let at = SocketAddr::from((SERVER, 80));
    let listener = hosts.server.inside(move || {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("the kernel has TCP");
        socket.bind(&at.into()).expect("a free port");
        socket.listen(4096).expect("it is bound");
        std::net::TcpListener::from(socket)
    });
    // One thread serves all of them: each connection is answered once and then idle.
    let server = std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming().take(COUNT + 20).flatten() {
            let mut stream = stream;
            let mut request = [0; 100];
            stream.read_exact(&mut request).expect("a request");
            stream.write_all(&request).expect("the client listens");
            held.push(stream);
        }
        held
    });
    let open = |count: usize| -> Vec<TcpStream> {
        let asked = |_| {
            let mut stream = hosts.connect(at).expect("it connects");
            asks(&mut stream).expect("it is open");
            stream
        };
        (0..count).map(asked).collect()
    };
    // The first ones include the memory that is allocated once.
    let warm = open(20);
    let before: Vec<_> = names.iter().map(|name| settled(hosts, name)).collect();
    let idle = open(COUNT);
    let there: Vec<_> = names.iter().map(|name| hosts.fresh_status(name)).collect();
    let number = |status: &serde_json::Value, key: &str| status["process"][key].as_u64().expect("a number");
    for ((name, before), there) in names.iter().zip(&before).zip(&there) {
        assert_eq!(there[table]["open"], COUNT + 20);
        assert_eq!(number(there, "open_fds"), number(before, "open_fds") + sockets * COUNT as u64);
        let grown = number(there, "resident_bytes").saturating_sub(number(before, "resident_bytes"));
        println!("{name}: {} kB for {COUNT} idle connections", grown / 1000);
        assert!(grown <= BOUND, "{name}: {grown} B");
    }
    drop(idle);
    drop(warm);
    drop(server.join().expect("the server ends"));
    for (name, before) in names.iter().zip(&before) {
        until("all are closed", || hosts.status(name).is_some_and(|s| s[table]["open"] == 0));
        let after = hosts.fresh_status(name);
        assert_eq!(number(&after, "open_fds") + 20 * sockets, number(before, "open_fds"), "{name}: descriptors stay");
    }
}

#[test]
fn a_thousand_idle_connections() {
    many_descriptors();
    let pair = Pair::new(&Wanted { rate: "100 Mbit/s", descriptors: 4096 });
    a_thousand_idle(&pair, &NAMES, "split", 1);
    pair.end();
}
