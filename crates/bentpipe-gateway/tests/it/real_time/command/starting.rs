//! Signals during a gateway's start, and the report that it has started.

use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};

use super::pair::{Line, Running, inside, until};

/// SIGHUP as soon as its socket exists, before its rules are installed: the gateway continues and has read its settings again. SIGTERM at
/// that moment: it ends with exit code 0 and leaves no rules.
#[test]
fn a_signal_while_it_starts() {
    let line = Line::new("100 Mbit/s");
    let socket = line.folder.path().join("near.sock");
    let until_it_is_seen = || {
        for _ in 0..100_000 {
            if socket.exists() {
                return;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        panic!("it does not start");
    };
    let mut near = line.start("near", 1024);
    until_it_is_seen();
    near.signal("HUP");
    until("it has read again", || line.said("near").contains("reload: "));
    assert_eq!(near.0.try_wait().expect("it is ours"), None);
    assert!(inside(&line.near, "nft list tables").contains("bentpipe_near"));
    near.signal("TERM");
    near.ends();

    let mut near = line.start("near", 1024);
    until_it_is_seen();
    near.signal("TERM");
    near.ends();
    assert_eq!(inside(&line.near, "nft list tables"), "");
    assert!(!inside(&line.near, "ip rule").contains("fwmark"));
}

/// A service manager such as systemd is notified once the rules are installed.
#[test]
fn it_says_when_it_serves() {
    let line = Line::new("100 Mbit/s");
    let name = line.folder.path().join("notify");
    let socket = UnixDatagram::bind(&name).expect("a free name");
    std::fs::set_permissions(&name, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("it is ours");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("not zero");
    let environment = [("NOTIFY_SOCKET", name.to_str().expect("text"))];
    let _near = Running::start_with(&line.near, line.folder.path(), "near", 1024, &environment);
    let mut text = [0; 64];
    let length = socket.recv(&mut text).expect("it says something");
    assert_eq!(&text[..length], b"READY=1");
    assert!(inside(&line.near, "nft list tables").contains("bentpipe_near"));
    assert!(line.status("near").is_some());
}

/// A shell's limit of open files is raised to the service's, or to the hard limit if that is less.
#[test]
fn a_low_limit_of_descriptors_is_raised() {
    let line = Line::new("100 Mbit/s");
    let most = getrlimit(Resource::RLIMIT_NOFILE).expect("there is one").1;
    for (hard, expected) in [(1_000, 1_000), (most, most.min(65_536))] {
        let start = format!("ulimit -Sn 64 && ulimit -Hn {hard} && exec \"$0\" run near.toml");
        let child = Command::new("ip")
            .args(["netns", "exec", line.near.name(), "sh", "-c", &start, env!("CARGO_BIN_EXE_bentpipe-gateway")])
            .current_dir(line.folder.path())
            .stderr(Stdio::null())
            .spawn();
        let mut near = Running(child.expect("iproute2 is there"));
        until("it serves", || line.status("near").is_some());
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", near.0.id())).expect("it runs");
        let open = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("the kernel says it");
        assert_eq!(open.split_whitespace().next(), Some(expected.to_string().as_str()), "{open}");
        near.signal("TERM");
        near.ends();
    }
}
