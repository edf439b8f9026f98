//! `uplink` run by the command, with either sender and curl as the client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;

use bentpipe_gateway::Instance;
use serde_json::Value;

use super::faults::{a_thousand_idle, without_descriptors};
use super::hub::Hub;
use super::pair::{Running, asks, bytes, echo, inside, until};
use crate::hosts::many_descriptors;
use crate::namespace::Namespace;

/// The names of a gateway called `hub`.
fn hub_marks() -> Instance {
    Instance::new("hub")
}

/// Serves one page to every request.
fn serve_page(host: &Namespace, page: &'static [u8]) {
    let listener = host.inside(|| TcpListener::bind("10.2.0.2:80").expect("a free port"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client comes");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", page.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(page));
        }
    });
}

/// Curl's output, or its error.
fn curl(host: &Namespace, url: &str) -> Result<Vec<u8>, Option<i32>> {
    let arguments = ["netns", "exec", host.name(), "curl", "-s", "--noproxy", "*", "--max-time", "20", url];
    let output = Command::new("ip").args(arguments).output().expect("iproute2 is there");
    if output.status.success() { Ok(output.stdout) } else { Err(output.status.code()) }
}

impl Hub {
    fn page(&self, page: &[u8]) {
        let got = curl(&self.hosts.client, "http://10.2.0.2/").expect("a page");
        assert!(got == page, "{} of {} bytes", got.len(), page.len());
    }

    /// What remains after SIGTERM and after SIGKILL: in both cases connections pass directly. `mark` belongs to one of its routing rules.
    fn ends_and_dies(&self, mut gateway: Running, page: &[u8], mark: &str) {
        let text = std::fs::read_to_string(format!("/proc/{}/status", gateway.0.id())).expect("it runs");
        let effective = text.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("the kernel says it");
        assert_eq!(u64::from_str_radix(effective.trim(), 16), Ok(1 << 12), "CAP_NET_ADMIN is all that is left");
        gateway.signal("TERM");
        assert_eq!(gateway.0.wait().expect("it ends").code(), Some(0));
        assert_eq!(inside(&self.hub, "nft list tables"), "", "rules are removed");
        assert!(!inside(&self.hub, "ip rule").contains(mark));
        self.page(page);

        // A killed gateway leaves its rules behind, and connections pass directly. The next start replaces the rules.
        let mut gateway = self.run(1024);
        gateway.0.kill().expect("it runs");
        gateway.0.wait().expect("it ends");
        assert!(inside(&self.hub, "ip rule").contains(mark));
        self.page(page);
        let down = self.bentpipe(&["down", "hub.toml"]);
        assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
        assert!(!inside(&self.hub, "ip rule").contains(mark));
    }
}

/// True if curl is installed. CI has it.
fn has_curl() -> bool {
    let has = Command::new("curl").arg("-V").output().is_ok();
    if !has {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI has curl");
        eprintln!("SKIPPED, not tested: curl is not installed");
    }
    has
}

fn a_page() -> &'static [u8] {
    bytes(1_000_000).leak()
}

/// A download by curl, the gateway's status, and what it leaves behind.
#[test]
fn an_uplink_by_the_command() {
    if !has_curl() {
        return;
    }
    let hub = Hub::new("ports = [80, 81]\n");
    let page = a_page();
    serve_page(&hub.hosts.server, page);
    let shown = hub.rules();
    for part in [
        "iifname { \"sat\" } meta nfproto ipv6 ip6 nexthdr tcp tcp dport { 80, 81 }",
        &format!("fwmark {:#x} lookup", hub_marks().into_mark()),
        "ip -6 route replace default dev bentpipe0 table ",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let gateway = hub.run(1024);
    hub.page(page);
    // CURLE_COULDNT_CONNECT.
    assert_eq!(curl(&hub.hosts.client, "http://10.2.0.2:81/"), Err(Some(7)), "a refused port is refused");
    let counted = |s: &Value| [&s["uplink"]["connected"], &s["uplink"]["failed"], &s["uplink"]["open"]] == [1, 1, 0];
    until("it is counted", || hub.hosts.status("hub").is_some_and(|s| counted(&s)));
    let status = hub.hosts.status("hub").expect("it runs");
    assert_eq!(status["satellite"]["told_bytes_per_second"], 50_000_000 / 8);
    // 691 segments of 1448 bytes.
    assert!(status["satellite"]["segments"].as_u64() > Some(691), "{status}");
    hub.ends_and_dies(gateway, page, &format!("{:#x}", hub_marks().into_mark()));
}

/// A router says that there is no route to a server. The client learns it at once, not after its own timeout: the ICMP message is about a
/// connection of the box, though it goes to the client's address.
#[test]
fn an_unreachable_server_is_refused() {
    if !has_curl() {
        return;
    }
    let hub = Hub::new("");
    inside(&hub.hosts.server, "sysctl -qw net.ipv4.ip_forward=1");
    inside(&hub.hosts.server, "ip route add unreachable 10.3.0.0/24");
    inside(&hub.hub, "ip route add 10.3.0.0/24 via 10.2.0.2");
    let _gateway = hub.run(1024);
    // CURLE_COULDNT_CONNECT; a timeout is another number.
    assert_eq!(curl(&hub.hosts.client, "http://10.3.0.1/"), Err(Some(7)));
}

/// The satellite's interface has a smaller MTU than `mtu` says and than the client's own interface, as behind a modem with PPPoE.
#[test]
fn segments_fit_the_interface() {
    let hub = Hub::new("");
    for (host, device, net) in [(&hub.hosts.client, "sat", 1), (&hub.hosts.server, "lan", 2)] {
        inside(&hub.hub, &format!("ip addr add fd0{net}::1/64 dev {device} nodad"));
        inside(host, &format!("ip addr add fd0{net}::2/64 dev eth nodad"));
        inside(host, &format!("ip route add default via fd0{net}::1"));
    }
    inside(&hub.hub, "sysctl -qw net.ipv6.conf.all.forwarding=1");
    inside(&hub.hub, "ip link set sat mtu 1300");
    let page = bytes(200_000);
    let _gateway = hub.run(1024);
    for address in ["10.2.0.2:80", "[fd02::2]:80"] {
        let at: SocketAddr = address.parse().expect("an address");
        let listener = hub.hosts.server.inside(move || TcpListener::bind(at).expect("a free port"));
        let sent = page.clone();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the gateway comes");
            stream.write_all(&sent).expect("it is taken");
        });
        let mut got = Vec::new();
        let mut stream = hub.hosts.connect(at).expect("it connects");
        stream.read_to_end(&mut got).expect("the page");
        assert!(got == page, "{address}: {} of {} bytes", got.len(), page.len());
        server.join().expect("all is sent");
    }
    let status = hub.hosts.fresh_status("hub");
    assert_eq!(status["satellite"]["refused_by_kernel"], 0, "{status}");
}

/// A download by the kernel's sender; also a congestion control that the kernel lacks.
#[test]
fn the_kernels_sender_by_the_command() {
    if !has_curl() {
        return;
    }
    let wrong = Hub::new("sender = \"kernel\"\ncongestion = \"bbq\"\n");
    for arguments in [&["run", "hub.toml"][..], &["run", "--dry-run", "hub.toml"]] {
        let output = wrong.bentpipe(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in ["hub.toml:9:14", "uplink.congestion", "no congestion control `bbq`", "reno"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    assert_eq!(inside(&wrong.hub, "nft list tables"), "", "nothing was changed");

    let hub = Hub::new("ports = [80, 81]\nsender = \"kernel\"\ncongestion = \"cubic\"\nport = 4001\n");
    let page = a_page();
    serve_page(&hub.hosts.server, page);
    let shown = hub.rules();
    for part in [
        "== syn tcp dport { 80, 81 } fib daddr type != local tproxy ip6 to :4001",
        &format!("fwmark {:#x} lookup", hub_marks().mark()),
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let gateway = hub.run(1024);
    hub.page(page);
    // CURLE_RECV_ERROR or CURLE_SEND_ERROR, or CURLE_COULDNT_CONNECT if the reset arrived before curl looked.
    let said = curl(&hub.hosts.client, "http://10.2.0.2:81/");
    assert!([Err(Some(56)), Err(Some(55)), Err(Some(7))].contains(&said), "a refused port is reset: {said:?}");
    let counted = |s: &Value| [&s["uplink"]["connected"], &s["uplink"]["failed"], &s["uplink"]["open"]] == [1, 1, 0];
    until("it is counted", || hub.hosts.status("hub").is_some_and(|s| counted(&s)));
    let status = hub.hosts.status("hub").expect("it runs");
    assert_eq!(status["satellite"]["told_bytes_per_second"], 50_000_000 / 8);
    assert!(status["uplink"]["bytes_sent"].as_u64() > Some(1_000_000), "{status}");
    // Accepted connections have the configured congestion control and rate.
    let held = hub.hosts.serve(81, echo);
    let mut stream = hub.hosts.connect(held).expect("it connects");
    asks(&mut stream).expect("it is answered");
    let sockets = inside(&hub.hub, "ss -tinH state established sport = :81");
    assert!(sockets.contains(" cubic ") && sockets.contains("10.1.0.2:"), "{sockets}");
    drop(stream);
    hub.ends_and_dies(gateway, page, &format!("{:#x}", hub_marks().mark()));
}

/// Starts the gateway and a download. While `wait` waits, nothing passes between the box and the client. Then the download ends whole.
fn outlives_an_outage(hub: &Hub, wait: impl FnOnce()) {
    let page = a_page();
    let server =
        hub.hosts.serve(80, move |mut stream| drop(stream.write_all(page).and_then(|()| stream.write_all(page))));
    let _gateway = hub.run(1024);
    let mut stream = hub.hosts.connect(server).expect("it connects");
    let mut got = vec![0; 100_000];
    stream.read_exact(&mut got).expect("it begins");
    for command in [
        "nft add table ip hole",
        "nft add chain ip hole in { type filter hook prerouting priority -400 ; policy drop ; }",
        "nft add chain ip hole out { type filter hook postrouting priority 400 ; policy drop ; }",
    ] {
        inside(&hub.hosts.client, command);
    }
    wait();
    inside(&hub.hosts.client, "nft delete table ip hole");
    stream.read_to_end(&mut got).expect("no reset");
    assert_eq!(got.len(), 2 * page.len());
}

/// Nothing passes between the box and the client for much longer than 15 timeouts, as many as a connection may have by default. They are
/// bounded here so that data passes soon after an outage, and not so that the connection is given up in it.
#[test]
fn an_outage_of_many_short_timeouts_is_endured() {
    let hub = Hub::new("[uplink.tcp]\nrto = { initial = \"100 ms\", min = \"50 ms\", max = \"100 ms\" }\n");
    outlives_an_outage(&hub, || std::thread::sleep(std::time::Duration::from_secs(5)));
}

/// In an outage, the timeouts of the kernel's sender double up to 5 s, from Linux 6.15 on. The download survives it.
#[test]
fn timeouts_of_the_kernels_sender_are_limited() {
    let hub = Hub::new("sender = \"kernel\"\ncongestion = \"cubic\"\n");
    // Without a limit it would be 0.2 s times a power of two.
    let is_longest = || inside(&hub.hub, "ss -tinH state established sport = :80").contains(" rto:5000 ");
    outlives_an_outage(&hub, || until("the longest timeout", is_longest));
}

#[test]
fn the_kernels_sender_without_descriptors() {
    many_descriptors();
    let hub = Hub::new("sender = \"kernel\"\n");
    let gateway = hub.run(80);
    without_descriptors(&hub.hosts, "hub", "uplink", 18);
    drop(gateway);
}

#[test]
fn a_thousand_idle_connections_of_the_kernels_sender() {
    many_descriptors();
    let hub = Hub::new("sender = \"kernel\"\n");
    let gateway = hub.run(4096);
    a_thousand_idle(&hub.hosts, &["hub"], "uplink", 2);
    drop(gateway);
}
