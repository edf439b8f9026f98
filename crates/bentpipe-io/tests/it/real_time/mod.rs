//! The engine's TCP in real time, behind a TUN device, talks to sockets of a Linux kernel.
//!
//! Needs root, `/dev/net/tun` and iproute2. Without them the tests are skipped with a message, and fail with `CI=true`. All traffic stays
//! in network namespaces that the tests create and remove.

mod namespace;
mod talk;

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration as StdDuration;

use bentpipe_engine::tcp::variant::{Recovery, VARIANTS, Variant};
use bentpipe_engine::tcp::{Abort, TcpConfig};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::Peer;

use self::namespace::Namespace;
use self::talk::{
    DATA, Report, Script, clean, config, engine, hash, lossy, send_then_take, serve, take, take_then_send,
};

/// Both directions are complete, and both ends are closed.
fn assert_whole(name: &str, report: &Report, kernel_got: talk::Hash, upload: &[u8]) {
    assert_eq!(report.outcome, Ok(()), "{name}");
    assert_eq!(report.bytes, DATA.len(), "{name}: bytes down");
    assert!(report.received == hash(&DATA), "{name}: SHA-256 of what came down");
    assert!(kernel_got == hash(upload), "{name}: SHA-256 of what went up");
    assert_eq!(report.malformed, 0, "{name}: every packet of the kernel can be read");
}

/// 10 MB up, our FIN, then 10 MB down: the engine is half closed while the kernel sends.
#[test]
fn each_variant_on_a_clean_path() {
    let Some(namespace) = Namespace::new() else { return };
    for &(name, _, variant) in VARIANTS {
        let door = namespace.door();
        let (peer, server) = serve(&namespace, &door, take_then_send);
        let config = TcpConfig { variant, ..config() };
        let report = engine(door, peer, config, &clean(), Script::upload(&DATA));
        assert_whole(name, &report, server.join().expect("no panic"), &DATA);
    }
}

/// The same with 2 % loss each way. All variants run at once, since they mostly wait.
#[test]
fn each_variant_on_a_lossy_path() {
    let Some(namespace) = Namespace::new() else { return };
    let runs = VARIANTS.iter().enumerate().map(|(seed, &(name, _, variant))| {
        let door = namespace.door();
        let (peer, server) = serve(&namespace, &door, take_then_send);
        let config = TcpConfig { variant, ..config() };
        let run = std::thread::spawn(move || {
            let begin = std::time::Instant::now();
            let report = engine(door, peer, config, &lossy(seed as u64), Script::upload(&DATA));
            println!("{name}: {:.1} s, {:?}", begin.elapsed().as_secs_f64(), report.stats);
            report
        });
        (name, variant, run, server)
    });
    for (name, variant, run, server) in runs.collect::<Vec<_>>() {
        let report = run.join().unwrap_or_else(|_| panic!("{name}"));
        assert_whole(name, &report, server.join().expect("no panic"), &DATA);
        // 2 % of 2 * 7000 packets of data and as many ACKs.
        assert!(report.watch.lost > 200, "{name}: the link loses, {:?}", report.watch);
        assert!(report.stats.retransmits > 100 && report.stats.fast_retransmits > 0, "{name}: {:?}", report.stats);
        let sacks = matches!(variant.recovery, Recovery::Pipe(_));
        assert_eq!(report.watch.sack_received > 0, sacks, "{name}: SACK where it was agreed");
    }
}

#[test]
fn the_kernel_closes_first() {
    let Some(namespace) = Namespace::new() else { return };
    let door = namespace.door();
    let (peer, server) = serve(&namespace, &door, send_then_take);
    let script = Script { peer_closes_first: true, ..Script::upload(&DATA[..1_000_003]) };
    let report = engine(door, peer, config(), &lossy(7), script);
    assert_whole("kernel closes first", &report, server.join().expect("no panic"), script.upload);
}

#[test]
fn the_kernel_connects() {
    let Some(namespace) = Namespace::new() else { return };
    for (path, buffer) in [(clean(), 4 << 20), (lossy(3), 4 << 20), (clean(), 60_000)] {
        let door = namespace.door();
        let address = door.engine;
        let client = namespace.spawn(move || {
            let stream = TcpStream::connect_timeout(&address, StdDuration::from_secs(10)).expect("it listens");
            take_then_send(stream)
        });
        let config = TcpConfig { receive_buffer: buffer, ..config() };
        let report = engine(door, Peer::Accept, config, &path, Script::upload(&DATA));
        assert_whole("kernel connects", &report, client.join().expect("no panic"), &DATA);
    }
}

#[test]
fn options_on_and_off() {
    let Some(namespace) = Namespace::new() else { return };
    let reno = Variant::named("newreno").expect("a row");
    let sack = Variant::named("sack").expect("a row");
    for (ours, theirs) in [(true, true), (true, false), (false, true), (false, false)] {
        let value = if theirs { "1" } else { "0" };
        for name in ["tcp_timestamps", "tcp_window_scaling", "tcp_sack"] {
            namespace.sysctl(name, value);
        }
        let door = namespace.door();
        let (peer, server) = serve(&namespace, &door, take_then_send);
        let variant = if ours { sack } else { reno };
        let config = TcpConfig { timestamps: ours, window_scaling: ours, variant, ..config() };
        let report = engine(door, peer, config, &lossy(9), Script::upload(&DATA[..3_000_017]));
        let name = format!("ours {ours}, theirs {theirs}");
        assert_whole(&name, &report, server.join().expect("no panic"), &DATA[..3_000_017]);
        let both = ours && theirs;
        // Linux sends no timestamps unless the SYN had them. If it may not, it does not answer with them either.
        assert_eq!(report.watch.timestamps_received > 100, both, "{name}: {:?}", report.watch);
        assert_eq!(report.watch.sack_received > 0, both, "{name}: {:?}", report.watch);
        assert_eq!(
            (report.rcv_scale > 0, report.watch.max_window > 65_535),
            (both, both),
            "{name}: {:?}",
            report.watch
        );
    }
}

#[test]
fn a_port_without_listener_refuses() {
    let Some(namespace) = Namespace::new() else { return };
    let door = namespace.door();
    let peer = Peer::Connect(SocketAddr::from((door.host, 9)));
    let report = engine(door, peer, config(), &clean(), Script::upload(b"x"));
    assert_eq!((report.outcome, report.bytes), (Err(Abort::Refused), 0));
}

#[test]
fn a_reset_ends_the_connection() {
    let Some(namespace) = Namespace::new() else { return };
    let door = namespace.door();
    // Linux sends a reset if a socket is closed with unread data.
    let (peer, server) = serve(&namespace, &door, |stream| {
        std::thread::sleep(StdDuration::from_millis(100));
        drop(stream);
        [0; 32]
    });
    let report = engine(door, peer, config(), &clean(), Script::upload(&DATA));
    assert_eq!(report.outcome, Err(Abort::Reset));
    server.join().expect("no panic");
}

#[test]
fn the_kernel_pauses_with_its_window_shut() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.sysctl("tcp_rmem", "4096 65536 131072");
    let door = namespace.door();
    let (peer, server) = serve(&namespace, &door, |mut stream| {
        std::thread::sleep(StdDuration::from_millis(1500));
        let got = take(&mut stream);
        stream.write_all(&DATA).expect("the engine takes it");
        got
    });
    let report = engine(door, peer, config(), &clean(), Script::upload(&DATA));
    assert_whole("kernel pauses", &report, server.join().expect("no panic"), &DATA);
    // The first ACK closes the window, the others answer our probes.
    assert!(report.watch.zero_received > 1, "{:?}", report.watch);
}

#[test]
fn the_engine_pauses_with_its_window_shut() {
    let Some(namespace) = Namespace::new() else { return };
    let door = namespace.door();
    let (peer, server) = serve(&namespace, &door, send_then_take);
    let reads_from = Time::ZERO + Duration::from_millis(1500);
    let script = Script { peer_closes_first: true, reads_from, ..Script::upload(b"done") };
    let config = TcpConfig { receive_buffer: 100_003, ..config() };
    let report = engine(door, peer, config, &clean(), script);
    assert_whole("engine pauses", &report, server.join().expect("no panic"), b"done");
    assert!(report.watch.zero_sent > 1, "{:?}", report.watch);
}

/// A run leaves nothing behind.
#[test]
fn the_device_and_the_namespace_go_away() {
    let Some(namespace) = Namespace::new() else { return };
    let door = namespace.door();
    let host = door.host;
    let bind = move || TcpListener::bind((host, 0)).is_ok();
    assert!(namespace.inside(bind));
    drop(door);
    // A command that another test has just started holds the device until it executes.
    let mut tries = (0..500).inspect(|_| std::thread::sleep(StdDuration::from_millis(20)));
    assert!(tries.any(|_| !namespace.inside(bind)), "the address goes with the device");
}
