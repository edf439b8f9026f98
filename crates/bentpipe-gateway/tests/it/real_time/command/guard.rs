//! What happens to new connections when a gateway dies.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::pair::{Line, Running, SERVER, asks, echo, inside, until};
use crate::threads::Threads;

/// The number of SYNs that the near box has forwarded unencrypted so far.
fn leaked(line: &Line) -> u64 {
    let text = inside(&line.near, "nft list chain inet watch forward");
    let count = text.split_whitespace().skip_while(|&word| word != "packets").nth(1);
    count.and_then(|count| count.parse().ok()).expect("a counter")
}

/// With `without_peer = "refuse"` no SYN leaves unencrypted: not while the gateway is dead, not while its remains are cleaned up, and not
/// while it starts again.
#[test]
fn a_dead_gateway_leaks_nothing() {
    let line = Line::new("100 Mbit/s");
    line.edit("near", "capture = [\"lan\"]", "capture = [\"lan\"]\nwithout_peer = \"refuse\"");
    for command in [
        "nft add table inet watch",
        "nft add chain inet watch forward { type filter hook forward priority 0 ; }",
        "nft add rule inet watch forward iifname lan tcp flags syn counter",
    ] {
        inside(&line.near, command);
    }
    let server = line.serve(80, echo);
    let asked = || line.connect(server).and_then(|mut stream| asks(&mut stream));
    asked().expect("directly: no gateway has run yet");
    let before = leaked(&line);
    assert!(before > 0, "the watch sees what passes");

    let mut near = line.start("near", 1024);
    line.wait_until_up(&["near"], false);
    asked().expect_err("there is no peer");
    let _far = line.start("far", 1024);
    line.wait_until_up(&["near", "far"], true);
    asked().expect("through the gateways");

    // A client that tries all the time.
    let mut trying = Threads::default();
    trying.add(|is_over| {
        line.client.spawn(move || {
            let mut tries = 0;
            while !is_over.load(Ordering::SeqCst) {
                let _ = std::net::TcpStream::connect_timeout(&server, Duration::from_millis(200));
                tries += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            tries
        })
    });
    near.0.kill().expect("it runs");
    near.0.wait().expect("it ends");
    asked().expect_err("it is refused");
    // The unit file's step after a failure.
    let folder = line.folder.path().display().to_string();
    let command = env!("CARGO_BIN_EXE_bentpipe-gateway");
    inside(&line.near, &format!("{command} down --keep-guard {folder}/near.toml"));
    let rules = inside(&line.near, "nft list table inet bentpipe_near");
    assert!(rules.contains("reject with tcp reset") && !rules.contains("tproxy"), "{rules}");
    assert!(!inside(&line.near, "ip rule").contains("fwmark"), "all else is cleaned up");
    asked().expect_err("it is refused");
    let mut near = line.start("near", 1024);
    line.wait_until_up(&["near"], true);
    asked().expect("through the gateways");
    let tries = trying.join();
    println!("{tries} tries, {} of them in clear", leaked(&line) - before);
    assert!(tries > 20, "{tries}");
    assert_eq!(leaked(&line), before, "none of {tries} leaked");

    // After an ordinary stop, connections pass directly.
    near.signal("TERM");
    near.ends();
    asked().expect("directly");
    assert_eq!(inside(&line.near, "nft list tables").trim(), "table inet watch");
    inside(&line.near, &format!("{command} down --keep-guard {folder}/near.toml"));
    asked().expect("what is stopped in order leaves nothing that refuses");
}

/// Without that setting they pass directly, whichever process dies.
#[test]
fn a_dead_gateway_lets_pass() {
    let line = Line::new("100 Mbit/s");
    let server = line.serve(80, echo);
    let (mut near, _far) = (line.start("near", 1024), line.start("far", 1024));
    line.wait_until_up(&["near", "far"], true);
    near.0.kill().expect("it runs");
    near.0.wait().expect("it ends");
    let mut stream = line.connect(server).expect("it connects");
    asks(&mut stream).expect("directly");
    let near = line.start("near", 1024);
    line.wait_until_up(&["near"], true);
    asks(&mut stream).expect("it is older");
    let status = line.fresh_status("near");
    assert_eq!(status["split"]["open"], 0);
    drop(near);
}

/// A SYN with its flags in the second fragment does not leave either, neither while the gateway is dead nor while it waits for its peer.
#[test]
fn a_dead_gateway_leaks_no_fragments() {
    let line = Line::new("100 Mbit/s");
    line.edit("near", "capture = [\"lan\"]", "capture = [\"lan\"]\nwithout_peer = \"refuse\"");
    for command in [
        "nft add table inet watch",
        "nft add chain inet watch forward { type filter hook forward priority 0 ; }",
        "nft add rule inet watch forward iifname lan meta l4proto tcp counter",
    ] {
        inside(&line.near, command);
    }
    // Two fragments: ports and sequence number, then the rest. The checksum is not checked on the way.
    let send = || {
        line.client.inside(|| {
            let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).expect("root may");
            let tcp = [[40, 0, 0, 80, 0, 0, 0, 1], [0, 0, 0, 0, 0x50, 2, 0xff, 0xff], [0; 8]].concat();
            for (at, more) in [(0, 0x20), (8, 0)] {
                let payload = if at == 0 { &tcp[..8] } else { &tcp[8..20] };
                let header = [0x45, 0, 0, 20 + payload.len() as u8, 0, 9, more, at / 8, 64, 6, 0, 0, 10, 1, 0, 2];
                let packet = [&header[..], &SERVER, payload].concat();
                socket.send_to(&packet, &std::net::SocketAddr::from((SERVER, 0)).into()).expect("there is a way");
            }
        });
        std::thread::sleep(Duration::from_millis(200));
        leaked(&line)
    };
    assert!(send() > 0, "without a gateway they pass");
    let before = leaked(&line);
    let mut near = line.start("near", 1024);
    line.wait_until_up(&["near"], false);
    assert_eq!(send(), before, "it waits for its peer");
    near.0.kill().expect("it runs");
    near.0.wait().expect("it ends");
    assert_eq!(send(), before, "it is dead");
    let path = line.folder.path().join("near.toml");
    inside(&line.near, &format!("{} down --keep-guard {}", env!("CARGO_BIN_EXE_bentpipe-gateway"), path.display()));
    assert_eq!(send(), before, "it is dead, and was cleaned up after");
}

/// `ip` fails for a while, as for lack of memory. Neither the repair of rules that somebody has deleted nor a restart takes away those that
/// refuse connections.
#[test]
fn a_failed_repair_leaks_nothing() {
    let line = Line::new("100 Mbit/s");
    line.edit("near", "capture = [\"lan\"]", "capture = [\"lan\"]\nwithout_peer = \"refuse\"");
    let folder = line.folder.path();
    let (flag, fake) = (folder.join("fails"), folder.join("ip"));
    let script = format!(
        "#!/bin/sh\nif [ -e {} ] && [ \"$3\" = add ]; then echo 'RTNETLINK answers: Cannot allocate memory' >&2; exit 2; fi\n\
         exec \"$(PATH=${{PATH#*:}} command -v ip)\" \"$@\"\n",
        flag.display()
    );
    std::fs::write(&fake, script).expect("a file");
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("it is set"));
    let start = || Running::start_with(&line.near, folder, "near", 1024, &[("PATH", &path)]);
    let refuses = || inside(&line.near, "nft list table inet bentpipe_near").contains("reject with tcp reset");
    let rule = || inside(&line.near, "ip rule").lines().find(|line| line.contains("fwmark")).map(str::to_owned);

    let mut near = start();
    line.wait_until_up(&["near"], false);
    let preference = rule().expect("it is installed").split(':').next().map(str::to_owned).expect("a number");
    std::fs::write(&flag, "").expect("a file");
    inside(&line.near, &format!("ip rule del preference {preference}"));
    until("it cannot repair that", || line.said("near").contains("it tries again every second"));
    for _ in 0..20 {
        assert!(refuses(), "{}", line.said("near"));
        std::thread::sleep(Duration::from_millis(100));
    }
    std::fs::remove_file(&flag).expect("it is there");
    until("it repairs that", || rule().is_some());

    near.0.kill().expect("it runs");
    near.0.wait().expect("it ends");
    std::fs::write(&flag, "").expect("a file");
    inside(&line.near, &format!("ip rule del preference {preference}"));
    assert_eq!(start().fails(), Some(1));
    assert!(refuses(), "{}", line.said("near"));

    // Without remains of an earlier gateway, a failed start leaves nothing.
    inside(&line.near, "nft delete table inet bentpipe_near");
    assert_eq!(start().fails(), Some(1));
    assert_eq!(inside(&line.near, "nft list tables"), "");
}
