//! Mishaps on the path and on the machine.

use std::io::{BufRead, Read, Write};
use std::net::UdpSocket;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::pair::{Line, NAMES, asks, bentpipe, bytes, echo, inside, send, until};

/// A NAT on the path forgets the tunnel and assigns another port. No connection notices.
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
    // The data takes four seconds of the line.
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

/// A box that gets no processor for a moment loses nothing of a burst from a host: its device queues 2048 packets, where Linux's default
/// is 500. What it loses of a larger burst it counts.
#[test]
fn a_burst_waits_for_a_box_that_sleeps() {
    let line = Line::new("100 Mbit/s");
    line.edit("near", "[split]\ncapture = [\"lan\"]", "[link]\naddresses = [\"10.8.0.1/24\"]");
    line.edit("far", "[split]", "[link]\naddresses = [\"10.8.0.2/24\"]");
    let [near, _far] = NAMES.map(|name| line.start(name, 1024));
    line.wait_until_up(&NAMES, true);
    inside(&line.near, "ip route replace 10.2.0.0/24 dev bentpipe0");
    let socket = line.client.inside(|| UdpSocket::bind("0.0.0.0:0").expect("a free port"));
    // How many of `count` small datagrams are lost at the device.
    let lost_of = |count: u64| {
        let lost = || line.fresh_status("near")["link"]["overruns"].as_u64().expect("it is counted");
        let before = lost();
        near.signal("STOP");
        (0..count).for_each(|_| assert_eq!(socket.send_to(&[7; 100], "10.2.0.2:9").expect("the host takes it"), 100));
        near.signal("CONT");
        lost() - before
    };
    assert_eq!(lost_of(2000), 0);
    // The kernel may also have sent a few packets of its own.
    assert!((952..962).contains(&lost_of(3000)));
}

/// The folder of the control socket and state is full, and so is the device of the log. The gateway serves, and as soon as it can it logs
/// what it could not write.
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

/// Nobody reads the gateway's log: the journal hangs, or the reader of the pipe has stopped. The gateway serves and reloads, and as soon as
/// it can it logs that lines are missing.
#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let line = Line::new("100 Mbit/s");
    // With the kernel's settings as `prepare` leaves them, there is no warning about them.
    inside(&line.near, "sysctl -qw net.core.somaxconn=65536");
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
    // First everything that the pipe held, then new lines.
    let mut full = vec![0; 65_536];
    reader.read_exact(&mut full).expect("the pipe was full");
    near.signal("HUP");
    let mut said = String::new();
    let mut lines = std::io::BufReader::new(reader);
    while !said.contains("reload: ") {
        lines.read_line(&mut said).expect("text");
    }
    // It is ready, the peer is up, and the first reload.
    assert!(said.starts_with("(3 lines are missing here: standard error was full)\n"), "{said}");
}

/// One box has `split` and the other `link`: the link does not come up, both say what to change, hosts go around the
/// gateway or are refused, and none waits. When one file is changed, all is well.
#[test]
fn boxes_of_different_shapes_refuse_each_other() {
    for link in ["far", "near"] {
        let line = Line::new("20 Mbit/s");
        let old = if link == "near" { "[split]\ncapture = [\"lan\"]\n" } else { "[split]\n" };
        line.edit(link, old, "[link]\naddresses = [\"10.8.0.1/24\"]\n");
        let mut both = NAMES.map(|name| line.start(name, 1024));
        for (name, shapes) in
            [(link, ["split", "link"]), (if link == "far" { "near" } else { "far" }, ["link", "split"])]
        {
            let [theirs, ours] = shapes;
            let say = format!(
                "has the shape `{theirs}` and this box has `{ours}`, so the link stays down: replace `[{theirs}]`"
            );
            until("it says so", || line.said(name).contains(&say));
            let status = line.fresh_status(name);
            assert!(
                status["up"] == false && status["link_up"] == false && status["tunnel"]["peers_up"] == 0,
                "{status}"
            );
            assert_eq!(status["tunnel"]["other_shape"], theirs);
            assert!(!line.said(name).contains("is up"), "{}", line.said(name));
        }
        let server = line.serve(80, echo);
        if link == "near" {
            inside(&line.near, "ip route replace 10.2.0.0/24 dev bentpipe0");
            let refused = line.connect(server).expect_err("nobody can take it").raw_os_error();
            assert_eq!(refused, Some(nix::libc::EHOSTUNREACH));
        } else {
            asks(&mut line.connect(server).expect("directly")).expect("an answer");
            line.edit("near", "[split]", "[split]\nwithout_peer = \"refuse\"");
            both[0].signal("HUP");
            until("it reads again", || line.said("near").contains("reload: "));
            let by_reset = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::ConnectionRefused];
            let asked = || line.connect(server).and_then(|mut stream| asks(&mut stream));
            until("it is refused", || asked().is_err_and(|error| by_reset.contains(&error.kind())));
        }
        line.edit(link, "[link]\naddresses = [\"10.8.0.1/24\"]\n", old);
        let n = NAMES.iter().position(|name| *name == link).expect("one of the two");
        both[n].signal("TERM");
        both[n].ends();
        both[n] = line.start(link, 1024);
        line.wait_until_up(&NAMES, true);
        let mut stream = line.connect(server).expect("through the gateways");
        asks(&mut stream).expect("an answer");
        assert_eq!(line.fresh_status("near")["split"]["open"], 1);
        // It changes back: the other box refuses it at once, and says why the link is down.
        both[n].0.kill().and_then(|()| both[n].0.wait()).expect("it runs");
        line.edit(link, old, "[link]\naddresses = [\"10.8.0.1/24\"]\n");
        both[n] = line.start(link, 1024);
        let other = NAMES[1 - n];
        let refused = "comes back with the shape `link`: the link is down";
        until("the link is down", || line.said(other).contains(refused));
        assert!(!line.said(other).contains("silent"), "{}", line.said(other));
    }
}

struct Unmount<'a>(&'a std::path::Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").args(["-l"]).arg(self.0).status();
    }
}

/// A reload warns if the next start would have another private key, or none. It does not wait for a pipe in place of the settings, and
/// connections do not either.
#[test]
fn a_reload_of_another_key_or_of_a_pipe() {
    let line = Line::new("100 Mbit/s");
    // Another user could not read root's key again.
    line.edit("near", "name = \"near\"\n", "name = \"near\"\nuser = \"root\"\n");
    let (near, _far) = (line.start("near", 1024), line.start("far", 1024));
    line.wait_until_up(&NAMES, true);
    let server = line.serve(80, echo);
    let mut stream = line.connect(server).expect("it connects");
    asks(&mut stream).expect("an answer");

    let folder = line.folder.path();
    std::fs::remove_file(folder.join("near.key")).expect("it is there");
    near.signal("HUP");
    until("a missing key is noticed", || line.said("near").contains("the next start will fail"));
    let other = bentpipe(folder, &["keygen", "near.key"]).stdout;
    let other = String::from_utf8(other).expect("text");
    near.signal("HUP");
    until("another key is noticed", || line.said("near").contains(other.trim()));

    let [settings, aside] = ["near.toml", "aside.toml"].map(|name| folder.join(name));
    std::fs::rename(&settings, &aside).expect("it is there");
    nix::unistd::mkfifo(&settings, nix::sys::stat::Mode::S_IRWXU).expect("a free name");
    near.signal("HUP");
    until("a pipe is noticed", || line.said("near").contains("near.toml is not a regular file"));
    asks(&mut stream).expect("an answer");
    std::fs::rename(&aside, &settings).expect("it is there");
}

/// The files of both keys have become pipes. A reload says so and waits for neither, and connections do not either.
#[test]
fn a_reload_of_keys_that_have_become_pipes() {
    let line = Line::new("100 Mbit/s");
    let folder = line.folder.path();
    let made = bentpipe(folder, &["keygen", "both.key"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for name in NAMES {
        line.edit(name, "state =", "preshared_key = \"both.key\"\nstate =");
        line.edit(name, &format!("name = \"{name}\"\n"), &format!("name = \"{name}\"\nuser = \"root\"\n"));
    }
    let (near, _far) = (line.start("near", 1024), line.start("far", 1024));
    line.wait_until_up(&NAMES, true);
    let mut stream = line.connect(line.serve(80, echo)).expect("it connects");
    asks(&mut stream).expect("an answer");
    for file in ["near.key", "both.key"] {
        std::fs::remove_file(folder.join(file)).expect("it is there");
        nix::unistd::mkfifo(&folder.join(file), nix::sys::stat::Mode::S_IRWXU).expect("a free name");
    }
    near.signal("HUP");
    until("it says so", || {
        ["near.key is not", "both.key is not", "the old preshared key remains", "reload: client_address"]
            .iter()
            .all(|said| line.said("near").contains(said))
    });
    asks(&mut stream).expect("an answer");
    near.signal("HUP");
    until("it reads again", || line.said("near").matches("near.key is not").count() == 2);
    asks(&mut stream).expect("an answer");
}
