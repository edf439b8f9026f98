//! The `uplink` shape by the command, with curl for a client.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::namespace::Namespace;
use crate::pair::{Running, bentpipe, inside};

/// A server of one page, as often as it is asked.
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

/// What curl gets, and what went wrong if nothing.
fn curl(host: &Namespace, url: &str) -> Result<Vec<u8>, Option<i32>> {
    let arguments = ["netns", "exec", host.name(), "curl", "-s", "--noproxy", "*", "--max-time", "20", url];
    let output = Command::new("ip").args(arguments).output().expect("iproute2 is there");
    if output.status.success() { Ok(output.stdout) } else { Err(output.status.code()) }
}

/// One box between a client and a server: curl through it, what status says, what it leaves when it is asked to end and
/// when it is killed.
#[test]
fn an_uplink_by_the_command() {
    if Command::new("curl").arg("-V").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI has curl");
        eprintln!("SKIPPED, not tested: curl is not installed");
        return;
    }
    let [client, hub, server] = [(); 3].map(|()| Namespace::new().expect("this test needs root and namespaces"));
    for (host, net, name) in [(&client, 1, "sat"), (&server, 2, "lan")] {
        inside(&hub, &format!("ip link add {name} type veth peer name eth netns {}", host.name()));
        for line in [format!("ip addr add 10.{net}.0.1/24 dev {name}"), format!("ip link set {name} up")] {
            inside(&hub, &line);
        }
        let route = format!("ip route add default via 10.{net}.0.1");
        for line in [&format!("ip addr add 10.{net}.0.2/24 dev eth"), "ip link set eth up", "ip link set lo up", &route]
        {
            inside(host, line);
        }
    }
    inside(&hub, "ip link set lo up");
    inside(&hub, "sysctl -qw net.ipv4.ip_forward=1");
    let page: &'static [u8] =
        (0..1_000_000u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect::<Vec<_>>().leak();
    serve_page(&server, page);

    let folder = tempfile::tempdir().expect("a folder");
    let text = "name = \"hub\"\ncontrol = \"hub.sock\"\n[satellite]\nrate = \"50 Mbit/s\"\nround_trip = \"20 ms\"\n\
                [uplink]\nsatellite = [\"sat\"]\nports = [80, 81]\n";
    std::fs::write(folder.path().join("hub.toml"), text).expect("a file");
    let shown = bentpipe(folder.path(), &["gateway", "run", "--dry-run", "hub.toml"]);
    let shown = String::from_utf8(shown.stdout).expect("text");
    for part in [
        "iifname { \"sat\" } meta nfproto ipv6 meta l4proto tcp tcp dport { 80, 81 }",
        "ip -4 rule add preference 17901 fwmark 0xb4 lookup 180",
        "ip -6 route replace default dev bentpipe0 table 180",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let status = || -> Option<Value> {
        let output = bentpipe(folder.path(), &["gateway", "status", "hub.toml"]);
        serde_json::from_slice(&output.stdout).ok()
    };
    let until = |what: &str, check: &dyn Fn() -> bool| {
        let waited = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            check()
        });
        assert!(waited, "{what}: {:?}", status());
    };
    let mut gateway = Running::start(&hub, folder.path(), "hub", 1024);
    until("it is up", &|| status().is_some());
    let got = curl(&client, "http://10.2.0.2/").expect("a page");
    assert!(got == page, "{} of {} bytes", got.len(), page.len());
    // CURLE_COULDNT_CONNECT.
    assert_eq!(curl(&client, "http://10.2.0.2:81/"), Err(Some(7)), "a refused port is refused");
    until("it is counted", &|| {
        status().is_some_and(|s| {
            let uplink = &s["uplink"];
            uplink["connected"] == 1 && uplink["failed"] == 1 && uplink["open"] == 0
        })
    });
    let counted = status().expect("it runs");
    assert_eq!(counted["satellite"]["told_bytes_per_second"], 50_000_000 / 8);
    // 691 segments of 1448 bytes.
    assert!(counted["satellite"]["segments"].as_u64() > Some(691), "{counted}");
    let text = std::fs::read_to_string(format!("/proc/{}/status", gateway.0.id())).expect("it runs");
    let effective = text.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("the kernel says it");
    assert_eq!(u64::from_str_radix(effective.trim(), 16), Ok(1 << 12), "CAP_NET_ADMIN is all that is left");

    gateway.signal("TERM");
    assert_eq!(gateway.0.wait().expect("it ends").code(), Some(0));
    assert_eq!(inside(&hub, "nft list tables"), "", "rules are removed");
    assert!(!inside(&hub, "ip rule").contains("0xb4"));
    assert_eq!(curl(&client, "http://10.2.0.2/").map(|got| got == page), Ok(true), "directly");

    // Killed, it leaves its rules, and connections pass directly; the next start replaces them.
    let mut gateway = Running::start(&hub, folder.path(), "hub", 1024);
    until("it is up again", &|| status().is_some());
    gateway.0.kill().expect("it runs");
    gateway.0.wait().expect("it ends");
    assert!(inside(&hub, "ip rule").contains("0xb4"));
    assert_eq!(curl(&client, "http://10.2.0.2/").map(|got| got == page), Ok(true), "past the rules of the dead");
    let down = bentpipe_inside(&hub, folder.path(), &["gateway", "down", "hub.toml"]);
    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    assert!(!inside(&hub, "ip rule").contains("0xb4"));
}

fn bentpipe_inside(host: &Namespace, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", host.name(), env!("CARGO_BIN_EXE_bentpipe")]).current_dir(folder).args(arguments);
    command.output().expect("iproute2 is there")
}
