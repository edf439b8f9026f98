//! Destinations that hosts do not reach through gateways, and sources that the peer may not have.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::hub::Hub;
use super::pair::{Line, asks, echo, inside};
use crate::namespace::Namespace;

/// A server on all addresses of a box. Counts how often it was reached.
fn reached(host: &Namespace, port: u16) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let listener = host.inside(move || TcpListener::bind(("0.0.0.0", port)).expect("a free port"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || echo(stream));
        }
    });
    count
}

/// The far box's own ports, whole prefixes of its own, and the cloud's metadata address; and what the settings of either box
/// deny. What they allow is reached.
#[test]
fn what_is_not_allowed_is_not_reached() {
    let line = Line::new("100 Mbit/s");
    line.edit("near", "capture = [\"lan\"]", "capture = [\"lan\"]\ndeny = [\"10.2.0.2:81\"]");
    // With `client_address = "replace"` the far box connects from its own address.
    line.edit("far", "[split]", "[split]\nclient_address = \"replace\"\ndeny = [\"*:82\"]");
    let own = reached(&line.far, 22);
    for command in ["ip route add local 10.77.0.0/16 dev lo", "ip route add 169.254.169.254 dev lan"] {
        inside(&line.far, command);
    }
    inside(&line.server, "ip addr add 169.254.169.254/32 dev eth");
    let metadata = reached(&line.server, 80);
    let (_near, far) = (line.start("near", 1024), line.start("far", 1024));
    line.wait_until_up(&["near", "far"], true);
    for (to, by) in [
        ("10.2.0.1:22", "far"),
        ("10.9.0.2:22", "far"),
        ("10.77.1.2:22", "far"),
        ("10.2.0.255:22", "far"),
        ("169.254.169.254:80", "near"),
        ("127.0.0.2:22", "nobody"),
        ("10.2.0.2:81", "near"),
        ("10.2.0.2:82", "far"),
    ] {
        let before = ["near", "far"].map(|name| line.fresh_status(name)["split"]["forbidden"].as_u64());
        let to: SocketAddr = to.parse().expect("an address");
        let error = line.connect(to).and_then(|mut stream| asks(&mut stream)).expect_err("it is refused");
        assert!([ErrorKind::ConnectionReset, ErrorKind::ConnectionRefused].contains(&error.kind()), "{to}: {error}");
        let after = ["near", "far"].map(|name| line.fresh_status(name)["split"]["forbidden"].as_u64());
        let counted = ["near", "far"].map(|name| u64::from(name == by));
        assert_eq!(after, [0, 1].map(|n| before[n].map(|count| count + counted[n])), "{to}");
    }
    assert_eq!((own.load(Ordering::SeqCst), metadata.load(Ordering::SeqCst)), (0, 0), "nobody got through");
    let mut stream = line.connect(line.serve(83, echo)).expect("it connects");
    asks(&mut stream).expect("through the gateways");

    // What is refused by default can be opened by name, while it runs.
    line.edit("far", "deny = [\"*:82\"]", "allow = [\"*\", \"10.2.0.1:22\"]");
    far.signal("HUP");
    super::pair::until("it reads again", || line.said("far").contains("reload: "));
    let mut stream = line.connect(([10, 2, 0, 1], 22).into()).expect("it connects");
    asks(&mut stream).expect("the far box's own");
    assert_eq!(own.load(Ordering::SeqCst), 1);
}

/// A single box also refuses.
fn one_box(sender: &str) {
    let hub = Hub::new(&format!("deny = [\"10.2.0.2:81\"]\n{sender}"));
    inside(&hub.hub, "ip route add 169.254.169.254 dev lan");
    inside(&hub.hosts.server, "ip addr add 169.254.169.254/32 dev eth");
    let metadata = reached(&hub.hosts.server, 80);
    let denied = hub.hosts.serve(81, echo);
    let _gateway = hub.run(1024);
    for to in [SocketAddr::from(([169, 254, 169, 254], 80)), denied] {
        let error = hub.hosts.connect(to).and_then(|mut stream| asks(&mut stream)).expect_err("it is refused");
        assert!([ErrorKind::ConnectionReset, ErrorKind::ConnectionRefused].contains(&error.kind()), "{to}: {error}");
    }
    assert_eq!(hub.hosts.fresh_status("hub")["uplink"]["forbidden"], 2);
    assert_eq!(metadata.load(Ordering::SeqCst), 0);
    let mut stream = hub.hosts.connect(hub.hosts.serve(82, echo)).expect("it connects");
    asks(&mut stream).expect("through the gateway");
}

#[test]
fn one_box_refuses_what_is_not_allowed() {
    one_box("");
    one_box("sender = \"kernel\"\n");
}

/// Packets of the peer come from its own prefixes, or are dropped and counted.
#[test]
fn the_peer_speaks_for_its_own_hosts() {
    let line = Line::new("100 Mbit/s");
    line.edit("near", "[split]\ncapture = [\"lan\"]", "[link]\naddresses = [\"10.8.0.1/24\"]");
    line.edit("far", "[split]", "[link]\naddresses = [\"10.8.0.2/24\"]");
    line.edit("far", "[tunnel]", "[tunnel]\npeer_prefixes = [\"10.8.0.1/32\"]");
    // No host on the device asks for routers or groups in between.
    inside(&line.near, "sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
    let (_near, far) = (line.start("near", 1024), line.start("far", 1024));
    line.wait_until_up(&["near", "far"], true);
    let pings = |from: &str| {
        let mut ping = std::process::Command::new("ip");
        ping.args([
            "netns",
            "exec",
            line.near.name(),
            "ping",
            "-q",
            "-c",
            "3",
            "-i",
            "0.2",
            "-W",
            "1",
            "-I",
            from,
            "10.8.0.2",
        ]);
        ping.output().expect("ping is there").status.success()
    };
    assert!(pings("10.8.0.1"));
    // Answers have a route back, over the link between the boxes.
    assert!(!pings("10.1.0.1"), "somebody else's address");
    assert_eq!(line.fresh_status("far")["link"]["forbidden"], 3);
    line.edit("far", "peer_prefixes = [\"10.8.0.1/32\"]", "peer_prefixes = [\"10.8.0.1/32\", \"10.1.0.0/24\"]");
    far.signal("HUP");
    super::pair::until("it reads again", || line.said("far").contains("reload: peer_prefixes"));
    assert!(pings("10.1.0.1"));
    assert_eq!(line.fresh_status("far")["link"]["forbidden"], 3);
}
