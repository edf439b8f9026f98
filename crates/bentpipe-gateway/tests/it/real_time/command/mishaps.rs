//! Mishaps on the path and on the machine.

use std::io::{BufRead, Read, Write};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::pair::{Line, NAMES, asks, bytes, echo, inside, send, until};

/// A NAT on the path forgets the tunnel and gives it another port: no connection is affected.
#[test]
fn another_port_on_the_way_is_no_outage() {
    let line = Line::new("20 Mbit/s");
    let seen_at = |port: u16| {
        let _ = std::process::Command::new("ip")
            .args(["netns", "exec", line.near.name(), "nft", "delete", "table", "ip", "street"])
            .output();
        for command in [
            "nft add table ip street".to_owned(),
            "nft add chain ip street out { type filter hook postrouting priority 0 ; }".to_owned(),
            "nft add chain ip street in { type filter hook prerouting priority 0 ; }".to_owned(),
            format!("nft add rule ip street out oifname sat udp sport 4500 udp sport set {port}"),
            format!("nft add rule ip street in iifname sat udp dport {port} udp dport set 4500"),
        ] {
            inside(&line.near, &command);
        }
    };
    seen_at(5001);
    let _both = NAMES.map(|name| line.start(name, 1024));
    line.wait_until_up(&NAMES, true);
    let server = line.serve(80, |mut stream| {
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
        let _ = stream.write_all(&got);
    });
    // Four seconds of transmission.
    let sent = bytes(5_000_000);
    let mut stream = line.connect(server).expect("it connects");
    let sender = send(&stream, sent.clone());
    for port in [5002, 5003] {
        std::thread::sleep(Duration::from_millis(1200));
        seen_at(port);
    }
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("no reset");
    sender.join().expect("all is sent");
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
    let (said, near) = (line.said("far"), line.said("near"));
    assert!(!said.contains("down") && !near.contains("down") && said.matches("is up").count() == 1, "{said}{near}");
}

/// The disk of control socket, state and log is full: the gateway serves, and reports what it could not write as soon as
/// it can.
#[test]
fn a_full_disk_stops_nothing() {
    let line = Line::new("100 Mbit/s");
    let folder = line.folder.path().join("full");
    std::fs::create_dir(&folder).expect("a folder");
    let mount = |arguments: &[&str]| {
        let done = std::process::Command::new(arguments[0]).args(&arguments[1..]).arg(&folder).status();
        assert!(done.expect("mount is there").success(), "{arguments:?}");
    };
    mount(&["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "none"]);
    let _unmount = Unmount(&folder);
    line.edit("near", "state = \"near.state\"", "state = \"full/near.state\"");
    let fill = || {
        let mut file = std::fs::File::create(folder.join("rest")).expect("it is ours");
        while file.write_all(&[0; 4096]).is_ok() {}
    };
    fill();
    let _both = NAMES.map(|name| line.start(name, 1024));
    line.wait_until_up(&NAMES, true);
    let server = line.serve(80, echo);
    let mut stream = line.connect(server).expect("it connects");
    asks(&mut stream).expect("an answer");
    until("it is said", || line.said("near").contains("No space left on device"));
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(line.said("near").matches("No space left").count(), 1, "{}", line.said("near"));
    asks(&mut stream).expect("an answer");
    std::fs::remove_file(folder.join("rest")).expect("it is ours");
    until("it is written", || line.said("near").contains("near.state: can be written again"));
    assert!(std::fs::read_to_string(folder.join("near.state")).is_ok_and(|text| text.contains("10.9.0.2:4500")));
    asks(&mut stream).expect("an answer");
}

/// Nobody reads the log: the journal hangs, or the program behind the pipe has stopped. The gateway serves, reloads, and reports missing
/// lines as soon as it can.
#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let line = Line::new("100 Mbit/s");
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let block = |is_on: bool| {
        let flags = if is_on { OFlag::empty() } else { OFlag::O_NONBLOCK };
        fcntl(&writer, FcntlArg::F_SETFL(flags)).expect("a pipe has flags");
    };
    block(false);
    while (&writer).write_all(b"x").is_ok() {}
    block(true);
    let _far = line.start("far", 1024);
    let near = line.start_saying("near", writer.into());
    line.wait_until_up(&NAMES, true);
    let server = line.serve(80, echo);
    asks(&mut line.connect(server).expect("it connects")).expect("an answer");
    near.signal("HUP");
    std::thread::sleep(Duration::from_secs(2));
    asks(&mut line.connect(server).expect("it connects")).expect("an answer");
    // The rest of the pipe, then the lines written from now on.
    let mut full = vec![0; 65_536];
    reader.read_exact(&mut full).expect("the pipe was full");
    near.signal("HUP");
    let mut said = String::new();
    let mut lines = std::io::BufReader::new(reader);
    while !said.contains("reload: ") {
        lines.read_line(&mut said).expect("text");
    }
    assert!(said.starts_with("(2 lines are missing here: standard error was full)\n"), "{said}");
}

/// One box has `split` and the other `link`: the tunnel comes up, and the box that cannot read the packets says why, once.
#[test]
fn boxes_of_different_shapes_say_so() {
    let say = "packets from the peer cannot be read: do both boxes have the same shape";
    for (link, other) in [("far", "near"), ("near", "far")] {
        let line = Line::new("20 Mbit/s");
        let old = if link == "near" { "[split]\ncapture = [\"lan\"]\n" } else { "[split]\n" };
        line.edit(link, old, "[link]\naddresses = [\"10.8.0.1/24\"]\n");
        let _both = NAMES.map(|name| line.start(name, 1024));
        line.wait_until_up(&NAMES, true);
        if link == "near" {
            inside(&line.near, "ip route replace 10.2.0.0/24 dev bentpipe0");
            line.client.inside(|| {
                let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a port");
                (0..20).for_each(|_| drop(socket.send_to(b"for a box that has streams", "10.2.0.2:9")));
            });
            until("the box with streams says so", || line.said(other).contains(say));
        } else {
            let server = line.serve(80, echo);
            let made: Vec<_> = (0..4).map(|_| line.connect(server)).collect();
            until("the box with packets says so", || line.said(link).contains(say));
            drop(made);
        }
        assert_eq!(line.said("near").matches(say).count() + line.said("far").matches(say).count(), 1);
    }
}

struct Unmount<'a>(&'a std::path::Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").args(["-l"]).arg(self.0).status();
    }
}
