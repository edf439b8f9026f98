//! `bentpipe emulate`: what its links do to programs, and what it leaves behind.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::support::{
    DATAGRAMS, Emulation, SIZES, bentpipe, bound, file, is_heard, of_link, output, possible, socket_drops, talk,
};

pub(super) fn link(more: &str) -> String {
    format!(
        "name = \"test\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"20 Mbit/s\"\n\
         delay = \"100 ms\"\n{more}\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n"
    )
}

/// Receives the next datagram. If the machine was paused, calls with a time limit return early.
fn received(socket: &UdpSocket, buffer: &mut [u8]) -> std::io::Result<(usize, SocketAddr)> {
    loop {
        match socket.recv_from(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Sends a datagram, waits for it to come back, and returns the time that took.
pub(super) fn round_trip(socket: &UdpSocket, to: SocketAddr) -> std::io::Result<Duration> {
    let begin = Instant::now();
    socket.send_to(&[1; 100], to)?;
    received(socket, &mut [0; 200])?;
    Ok(begin.elapsed())
}

pub(super) fn echo(socket: &UdpSocket) -> std::io::Result<()> {
    let mut buffer = [0; 200];
    let (length, from) = received(socket, &mut buffer)?;
    socket.send_to(&buffer[..length], from).map(drop)
}

#[test]
fn a_round_trip_takes_what_the_links_say() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(&link(""));
    let emulation = Emulation::start(&[&path]);
    let (a, b) = (emulation.host("A"), emulation.host("B"));
    for (from, to) in a.addresses().into_iter().zip(b.addresses()) {
        let (near, far) = (a.inside(|| bound(from)), b.inside(|| bound(to)));
        let address = far.local_addr().expect("bound");
        let best = (0..5).map(|_| {
            std::thread::scope(|scope| {
                scope.spawn(|| echo(&far).expect("it comes"));
                round_trip(&near, address).expect("it comes back")
            })
        });
        let best = best.min().expect("five").as_secs_f64() * 1e3;
        // 200 ms plus two datagrams of 128 or 148 bytes at 20 Mbit/s, 0.1 ms. The best of five wake-ups is less than 3 ms late even on a
        // busy machine.
        assert!((200.1..203.0).contains(&best), "{from}: {best} ms");
    }
    let summary = emulation.stop();
    assert_eq!(of_link(&summary, "sat/forward", "delivered"), 10);
    assert_eq!((&summary["kept_up"], &summary["overruns"]), (&true.into(), &0.into()), "{summary}");
}

/// 1500 bytes each 50 ms, at unknown instants of the emulator's clock: ten datagrams leave two at a time.
#[test]
fn a_trace_sets_the_pace() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(&link("forward.rate_trace = [50]"));
    let emulation = Emulation::start(&[&path]);
    let (a, b) = (emulation.host("A"), emulation.host("B"));
    let (near, far) = (a.inside(|| bound(a.v4.into())), b.inside(|| bound(b.v4.into())));
    let to = far.local_addr().expect("bound");
    for _ in 0..10 {
        near.send_to(&[0; 722], to).expect("a route");
    }
    let mut came = Vec::new();
    for _ in 0..10 {
        received(&far, &mut [0; 1000]).expect("it comes");
        came.push(Instant::now());
    }
    // 750 bytes with headers. Three in one opportunity would come at once. Wake-ups are less than 25 ms late on a busy machine.
    let millis = |from: usize, to: usize| (came[to] - came[from]).as_secs_f64() * 1e3;
    for n in 0..8 {
        assert!(millis(n, n + 2) > 25.0, "{n}: three within {} ms", millis(n, n + 2));
    }
    // Five opportunities, or six if one came while the first datagram was sent.
    assert!((190.0..260.0).contains(&millis(0, 9)), "{} ms", millis(0, 9));
    emulation.stop();
}

#[test]
fn listed_packets_are_lost_and_no_others() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(&link("forward.drop_list = [0, 3, 4, 117]"));
    let emulation = Emulation::start(&[&path]);
    let (a, b) = (emulation.host("A"), emulation.host("B"));
    let (near, far) = (a.inside(|| bound(a.v4.into())), b.inside(|| bound(b.v4.into())));
    let to = far.local_addr().expect("bound");
    for number in 0..200_u32 {
        near.send_to(&number.to_be_bytes(), to).expect("a route");
    }
    let mut buffer = [0; 4];
    let got: Vec<u32> = (0..196)
        .map(|_| {
            received(&far, &mut buffer).expect("it comes");
            u32::from_be_bytes(buffer)
        })
        .collect();
    let kept: Vec<u32> = (0..200).filter(|number| ![0, 3, 4, 117].contains(number)).collect();
    assert_eq!(got, kept);
    let summary = emulation.stop();
    assert_eq!(of_link(&summary, "sat/forward", "dropped_listed"), 4);
    assert_eq!(of_link(&summary, "sat/forward", "delivered"), 196);
}

/// The kernel's TCP with its offloads fills the line and no more than that.
#[test]
fn a_download_of_the_kernels_runs_at_the_rate_of_the_line() {
    if !possible() {
        return;
    }
    let text = link("queue = \"300 ms\"").replace("100 ms", "5 ms");
    let (_folder, path) = file(&text);
    let emulation = Emulation::start(&[&path]);
    let (a, b) = (emulation.host("A"), emulation.host("B"));
    let listener = b.inside(|| TcpListener::bind((b.v4, 0)));
    let to = listener.local_addr().expect("bound");
    let bytes = 5_000_000;
    let span = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = a.inside(|| TcpStream::connect(to));
            stream.write_all(&vec![7; bytes]).expect("it is taken");
        });
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut first = [0; 1];
        stream.read_exact(&mut first).expect("data");
        let begin = Instant::now();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("data");
        assert_eq!(all.len(), bytes - 1);
        begin.elapsed().as_secs_f64()
    });
    // 1448 of 1500 bytes are data: 19.31 Mbit/s, 2.072 s. Slow start over a round trip of 10 ms costs less than 0.1 s. It cannot be faster
    // than the line.
    assert!((2.06..2.25).contains(&span), "{span} s");
    let summary = emulation.stop();
    let offered = of_link(&summary, "sat/forward", "offered");
    // 3454 segments of 1448 bytes, not the kernel's trains of up to 45.
    assert!((3454..3700).contains(&offered), "{summary}");
}

/// S-LACP below the kernel's TCP: every byte arrives unchanged, at the rate of a line that loses one frame in twenty. TCP alone would reach
/// 1.22 * 1448 B / (0.2 s * sqrt(0.05)) there (Mathis), 0.3 Mbit/s.
#[test]
fn a_layer_mends_what_the_link_loses() {
    if !possible() {
        return;
    }
    let layer = "[[layers]]\nname = \"arq\"\nover = \"sat\"";
    let (_folder, path) = file(&link(&format!("loss = \"5 %\"\nqueue = \"400 ms\"\n{layer}")));
    let emulation = Emulation::start(&[&path]);
    let (a, b) = (emulation.host("A"), emulation.host("B"));
    let (near, far) = (a.inside(|| bound(a.v4.into())), b.inside(|| bound(b.v4.into())));
    for _ in 0..3 {
        let took = std::thread::scope(|scope| {
            scope.spawn(|| echo(&far).expect("a layer repeats what is lost"));
            round_trip(&near, far.local_addr().expect("bound")).expect("it comes back")
        });
        assert!(took >= Duration::from_millis(200), "{took:?}");
    }
    let listener = b.inside(|| TcpListener::bind((b.v4, 0)));
    let to = listener.local_addr().expect("bound");
    let sent: Vec<u8> = (0..4_000_000_u32).map(|n| n.wrapping_mul(0x9e37_79b9).to_be_bytes()[0]).collect();
    let begin = Instant::now();
    let got = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = a.inside(|| TcpStream::connect(to));
            stream.write_all(&sent).expect("it is taken");
        });
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("data");
        all
    });
    let span = begin.elapsed().as_secs_f64();
    assert!(got == sent, "{} bytes of {}", got.len(), sent.len());
    // 1.7 s of the line, and slow start over about ten round trips of 200 ms, each of which may wait for a repair.
    assert!(span < 8.0, "{span} s");
    let summary = emulation.stop();
    let channels = summary["channels"].as_array().expect("a list");
    let bulk = channels.iter().find(|channel| channel["link"] == "sat/forward" && channel["channel"] == "bulk");
    let count = |key: &str| bulk.and_then(|bulk| bulk[key].as_u64()).unwrap_or_else(|| panic!("no {key}: {summary}"));
    // TCP may fill the queue, and CoDel drops a few packets. The line loses none for good.
    let dropped = count("dropped_early") + count("dropped_full");
    assert_eq!((count("delivered") + dropped, count("skipped")), (count("packets"), 0), "{summary}");
    // 2763 segments of 1448 bytes, of which 138 are lost on average; the standard deviation is 11, so it is never this few.
    assert!(count("lost_frames") > 50 && count("recovered") + count("resent_frames") > 50, "{summary}");
}

/// Datagrams of several sizes, sent faster than the link takes them: each that arrives is unchanged.
#[test]
fn datagrams_keep_their_sizes_and_bytes() {
    if !possible() {
        return;
    }
    // Also through the kernel of a router, which receives each train and forwards it.
    for hosts in [&[][..], &["--host", "terminal"]] {
        let emulation = Emulation::start(&[&["geo", "--set", "links.sat.rate='100 Mbit/s'"], hosts].concat());
        let (a, b) = (emulation.host("server"), emulation.host("client"));
        let mut lost = 0;
        for (from, to) in a.addresses().into_iter().zip(b.addresses()) {
            let (near, far) = (a.inside(|| bound(from)), b.inside(|| bound(to)));
            lost += DATAGRAMS - talk(&near, &far, &SIZES);
        }
        // Datagrams that the client's socket had no room for are counted there.
        assert_eq!(lost, b.inside(socket_drops));
        let summary = emulation.stop();
        for link in ["internet/forward", "sat/forward", "lan/forward"] {
            assert_eq!(of_link(&summary, link, "offered"), 2 * DATAGRAMS, "{summary}");
            assert_eq!(of_link(&summary, link, "delivered"), 2 * DATAGRAMS, "{summary}");
        }
        // An overrun can only be one of the kernel's own packets: all datagrams were offered.
        assert_eq!(summary["refused"], 0, "{summary}");
    }
}

/// While the device is not read, its queue overflows. Each datagram reaches the link or is counted.
#[test]
fn overruns_of_the_device_are_counted() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(&link("queue = \"10 s\""));
    let emulation = Emulation::start(&[&path]);
    let (a, b) = (emulation.host("A"), emulation.host("B"));
    let near = a.inside(|| bound(a.v4.into()));
    emulation.signal(Signal::SIGSTOP);
    // The device queues 4096 packets.
    let count = 6000;
    for number in 0..count {
        near.send_to(&[1; 10], (b.v4, 9)).unwrap_or_else(|error| panic!("{number}: {error}"));
    }
    emulation.signal(Signal::SIGCONT);
    // 4096 packets of 38 bytes at 20 Mbit/s: 62 ms.
    std::thread::sleep(Duration::from_millis(1500));
    let summary = emulation.stop();
    let overruns = summary["overruns"].as_u64().unwrap_or_else(|| panic!("{summary}"));
    let accounted = of_link(&summary, "sat/forward", "offered") + overruns;
    // The kernel may also have sent a few IPv6 packets of its own.
    assert!((count..count + 10).contains(&accounted), "{summary}");
    assert!(overruns > 1800, "{summary}");
    assert_eq!(summary["kept_up"], false, "{summary}");
}

#[test]
fn ctrl_c_leaves_nothing() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(&link(""));
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().filter(is_heard) {
        let mut emulation = Emulation::start(&[&path]);
        let (a, b) = (emulation.host("A"), emulation.host("B"));
        assert!(a.exists() && b.exists());
        emulation.signal(signal);
        emulation.child.wait().expect("ours");
        assert!(!a.exists() && !b.exists(), "{signal}");
    }
}

/// A script that is ended, or ends, leaves processes: in the background, in sessions of their own, and such as ignore
/// SIGTERM or do not run. `emulate` and `shell` end them all, and not what ran before.
#[test]
fn nothing_that_a_command_has_started_outlives_it() {
    if !possible() {
        return;
    }
    let (folder, path) = file(&link(""));
    let pids = folder.path().join("pids");
    let script = "say() { echo $1 >> \"$0\"; }; sleep 1000 & say $!; setsid sh -c 'echo $$ >> \"$1\"; (sleep 1000 & echo $! >> \"$1\"); \
                  trap \"\" TERM INT HUP; sleep 1000' sh \"$0\" & sleep 1000 & kill -STOP $!; say $!; sleep 1; echo on";
    let alive = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    let mut stranger = Command::new("sleep").arg("1000").spawn().expect("sleep is there");
    for command in ["emulate", "shell"] {
        for signal in [Some(Signal::SIGTERM), Some(Signal::SIGINT), Some(Signal::SIGHUP), None] {
            if !signal.as_ref().is_none_or(is_heard) {
                continue;
            }
            let _ = std::fs::remove_file(&pids);
            let script = if signal.is_some() { format!("{script}; wait") } else { script.to_owned() };
            let words = [command, &path, "--", "sh", "-c", &script, pids.to_str().expect("plain")];
            let mut child =
                bentpipe(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts");
            child.stdout.as_mut().expect("piped").read_exact(&mut [0; 2]).expect("it is on");
            if let Some(signal) = signal {
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).expect("it runs");
            }
            let code = child.wait().expect("ours").code();
            assert_eq!(code, Some(if signal.is_some() { 143 } else { 0 }), "{command} {signal:?}");
            let text = std::fs::read_to_string(&pids).expect("it is written");
            let started: Vec<i32> = text.lines().map(|line| line.parse().expect("a number")).collect();
            assert_eq!(started.len(), 4, "{text}");
            let left: Vec<_> = started.into_iter().filter(alive).collect();
            for pid in &left {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(*pid), Signal::SIGKILL);
            }
            assert!(left.is_empty(), "{command} {signal:?}: {left:?}");
        }
    }
    assert!(matches!(stranger.try_wait(), Ok(None)), "it is nobody's business");
    stranger.kill().and_then(|()| stranger.wait()).expect("ours");
}

#[test]
fn what_a_killed_one_left_the_next_removes() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(&link(""));
    let mut killed = Emulation::start(&[&path]);
    let living = Emulation::start(&[&path]);
    let (dead, alive) = (killed.host("A"), living.host("A"));
    killed.child.kill().expect("it runs");
    killed.child.wait().expect("ours");
    assert!(dead.exists(), "nobody can clean up after SIGKILL at once");
    // Root of a container cannot remove it, and must not delete the record of it.
    let lesser =
        ["--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", env!("CARGO_BIN_EXE_bentpipe"), "emulate"];
    let refused = Command::new("setpriv").args(lesser).args([&path, "--", "true"]).output().expect("util-linux");
    assert_eq!((refused.status.code(), dead.exists()), (Some(2), true));
    let next = Emulation::start(&[&path]);
    assert!(!dead.exists());
    assert!(alive.exists(), "what lives stays");
    next.stop();
    living.stop();
}

#[test]
fn the_commands_exit_code_is_passed_on() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(&link(""));
    let run = |script: &str| output(&["emulate", &path, "--", "sh", "-c", script]);
    assert_eq!(run("exit 7").status.code(), Some(7));
    assert_eq!(run("kill -TERM $$").status.code(), Some(143));
    let hosts = run("ip netns exec $BENTPIPE_NS_A true && echo $BENTPIPE_IP_B $BENTPIPE_IP6_B");
    let text = String::from_utf8_lossy(&hosts.stdout).into_owned();
    assert!(hosts.status.success() && text == "198.18.0.2 fd62:656e:7470::2\n", "{text}");
}

/// One of two hosts would get the other's address.
#[test]
fn two_hosts_with_the_same_variable_are_refused() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(&link("").replace("\"A\"", "\"a-b\"").replace("\"B\"", "\"A_b\""));
    let said = output(&["emulate", &path, "--", "true"]);
    let text = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{text}");
    assert!(text.contains("two nodes share the variable BENTPIPE_NS_A_B of the command"), "{text}");
}

#[test]
fn names_of_hosts_resolve_in_their_namespaces() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(&link(""));
    let script = "echo $BENTPIPE_NS_A; ip netns exec $BENTPIPE_NS_A getent ahosts B | awk '{ print $1 }' | uniq";
    let said = output(&["emulate", &path, "--", "sh", "-c", script]);
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let Some((namespace, addresses)) = text.split_once('\n') else { panic!("{text:?}") };
    let announced = String::from_utf8_lossy(&said.stderr);
    assert_eq!(addresses, "198.18.0.2\n", "{announced}");
    assert!(
        announced.contains(&format!("ip netns exec {} ping -c 3 A\n", namespace.replace("-A", "-B"))),
        "{announced}"
    );
    assert!(!std::path::Path::new("/etc/netns").join(namespace).exists(), "the file of names is left");
}
