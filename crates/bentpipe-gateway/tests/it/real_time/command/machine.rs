//! The gateway and its machine: other gateways, taken ports, missing interfaces.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bentpipe_gateway::Instance;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::hub::Hub;
use super::pair::{Line, METRICS, Running, asks, attach, bentpipe, echo, inside, until};
use crate::namespace::Namespace;
use crate::threads::Threads;

/// Two gateways of different shapes on one machine, each with its own clients. What happens to one does not affect the other.
#[test]
fn two_gateways_share_a_machine() {
    let hub = Hub::new("sender = \"kernel\"\ncongestion = \"cubic\"\n");
    let second = Arc::new(Namespace::new().expect("this test needs root and namespaces"));
    attach(&second, &hub.hub, "sat2", 3);
    let folder = hub.hosts.folder.path();
    let first = std::fs::read_to_string(folder.join("hub.toml")).expect("it is there");
    let other = |settings: &str| {
        let text = first.replace("\"hub", "\"other").replace("\"sat\"", "\"sat2\"");
        let text = text.split("sender").next().expect("before it").to_owned() + settings;
        std::fs::write(folder.join("other.toml"), text).expect("a file");
    };
    let at = hub.hosts.serve(80, echo);
    let connects = |client: &Namespace| {
        client.inside(move || {
            let mut stream = TcpStream::connect(at).expect("it connects");
            asks(&mut stream).expect("it is answered");
        });
    };
    let open = |name: &str| {
        hub.hosts.fresh_status(name)["uplink"]["total"]
            .as_u64()
            .or_else(|| hub.hosts.fresh_status(name)["uplink"]["accepted"].as_u64())
    };
    for settings in ["device = \"bentpipe1\"\n", "sender = \"kernel\"\nport = 4001\ncongestion = \"cubic\"\n"] {
        other(settings);
        let mut one = hub.run(1024);
        let mut two = Running::start(&hub.hub, folder, "other", 1024);
        until("it is up", || hub.hosts.status("other").is_some());
        connects(&hub.hosts.client);
        connects(&second);
        assert_eq!((open("hub"), open("other")), (Some(1), Some(1)), "each has its own");
        one.signal("TERM");
        one.ends();
        connects(&hub.hosts.client);
        connects(&second);
        assert_eq!(open("other"), Some(2), "it goes on");
        assert_eq!(inside(&hub.hub, "nft list tables").trim(), "table inet bentpipe_other");
        let mut one = hub.run(1024);
        two.0.kill().expect("it runs");
        two.0.wait().expect("it ends");
        connects(&hub.hosts.client);
        connects(&second);
        assert_eq!(open("hub"), Some(1), "it goes on");
        one.signal("TERM");
        one.ends();
        inside(&hub.hub, &format!("{} down {}/other.toml", env!("CARGO_BIN_EXE_bentpipe-gateway"), folder.display()));
        assert_eq!(inside(&hub.hub, "nft list tables"), "");
        assert!(!inside(&hub.hub, "ip rule").contains("fwmark"));
    }
}

/// A name whose marks collide with those of another gateway is refused, and nothing is changed.
#[test]
fn names_that_collide_are_refused() {
    let hub = Hub::new("sender = \"kernel\"\ncongestion = \"cubic\"\n");
    let mark = Instance::new("hub").mark();
    let other = (0..).map(|n| format!("box{n}")).find(|name| Instance::new(name).mark() == mark).expect("one of many");
    inside(&hub.hub, &format!("nft add table inet bentpipe_{other}"));
    let mut gateway = Running::start(&hub.hub, hub.hosts.folder.path(), "hub", 1024);
    assert_eq!(gateway.fails(), Some(1));
    let said = hub.hosts.said("hub");
    assert!(said.contains(&format!("the names `hub` and `{other}` give the same packet marks")), "{said}");
    assert_eq!(inside(&hub.hub, "nft list tables").trim(), format!("table inet bentpipe_{other}"));
}

/// A taken port is reported at the start with its owner, even for `split`, which listens only while its peer is there.
#[test]
fn a_taken_port_is_said_with_its_owner() {
    let line = Line::new("100 Mbit/s");
    let taken = line.near.inside(|| TcpListener::bind("0.0.0.0:4000").expect("a free port"));
    let mut near = line.start("near", 1024);
    assert_eq!(near.fails(), Some(1));
    let said = line.said("near");
    let owner = format!("(process {})", std::process::id());
    assert!(said.contains("TCP port 4000 is taken by `") && said.contains(&owner), "{said}");
    assert_eq!(inside(&line.near, "nft list tables"), "", "nothing was changed");
    drop(taken);
    let mut near = line.start("near", 1024);
    line.wait_until_up(&["near"], false);
    let error = line.near.inside(|| TcpListener::bind("0.0.0.0:4000").expect_err("it is the gateway's"));
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    // It ends in order: if it were killed, an `nft` it has just forked could hold the port until its exec.
    near.signal("TERM");
    near.ends();

    let udp = line.near.inside(|| std::net::UdpSocket::bind("0.0.0.0:4500").expect("a free port"));
    let mut near = line.start("near", 1024);
    assert_eq!(near.fails(), Some(1));
    let said = line.said("near");
    assert!(said.contains("UDP port 4500 is taken by `") && said.contains(&owner), "{said}");
    drop(udp);
}

/// A second start with the same settings is refused, and the first gateway continues with its rules.
#[test]
fn a_second_start_harms_nobody() {
    let hub = Hub::new("sender = \"kernel\"\ncongestion = \"cubic\"\n");
    let at = hub.hosts.serve(80, echo);
    let _gateway = hub.run(1024);
    let again = Running::start(&hub.hub, hub.hosts.folder.path(), "hub", 1024).fails();
    assert_eq!(again, Some(1));
    let mut stream = hub.hosts.connect(at).expect("it connects");
    asks(&mut stream).expect("it is answered");
    assert_eq!(hub.hosts.fresh_status("hub")["uplink"]["open"], 1, "by the gateway");
}

/// `up` is true only while the gateway serves.
#[test]
fn an_absent_interface_is_not_up() {
    let line = Line::new("100 Mbit/s");
    let (_near, _far) = (line.start("near", 1024), line.start("far", 1024));
    line.wait_until_up(&["near", "far"], true);
    inside(&line.near, "ip link set lan down");
    until("it is seen", || line.status("near").is_some_and(|s| s["up"] == false && s["absent"] == "lan"));
    assert_eq!(line.status("near").expect("it answers")["link_up"], true);
    assert!(line.said("near").contains("interface lan is absent or down"), "{}", line.said("near"));
    inside(&line.near, "ip link set lan up");
    line.wait_until_up(&["near"], true);
    inside(&line.near, "ip link del lan");
    until("it is seen", || line.status("near").is_some_and(|s| s["up"] == false && s["absent"] == "lan"));
}

/// Kernel rules that other programs remove are installed again, and this is logged: reloading a firewall flushes all tables, network
/// managers delete routing rules, and the kernel deletes the routes when the loopback interface goes down.
#[test]
fn rules_that_others_remove_come_back() {
    let line = Line::new("100 Mbit/s");
    let (near, _far) = (line.start("near", 1024), line.start("far", 1024));
    line.wait_until_up(&["near", "far"], true);
    let at = line.serve(80, echo);
    let accepted = || line.fresh_status("near")["split"]["accepted"].as_u64().expect("a number");
    let instance = Instance::new("near");
    let rule = format!("fwmark {:#x}", instance.mark());
    let rules = inside(&line.near, "ip rule");
    let table = rules.lines().find_map(|line| line.split_once(&rule)?.1.split_whitespace().nth(1)).expect("its table");
    let is_whole = || {
        let is_there = |family: &&str| {
            inside(&line.near, &format!("ip {family} rule")).contains(&rule)
                && inside(&line.near, &format!("ip {family} route show table all")).contains(&format!("table {table}"))
        };
        inside(&line.near, "nft list ruleset").contains("jump ours") && ["-4", "-6"].iter().all(is_there)
    };
    assert!(is_whole());
    let flushed = "nft flush table inet bentpipe_near";
    let [route4, route6] = ["-4", "-6"].map(|family| format!("ip {family} route flush table {table}"));
    for command in
        ["nft flush ruleset", flushed, "ip -4 rule del fwmark MARK", "ip -6 rule del fwmark MARK", &route4, &route6]
    {
        // It fails if there is no such rule. How soon the rule comes back is not known, so it may be there again by now.
        inside(&line.near, &command.replace("MARK", &format!("{:#x}", instance.mark())));
        until(command, is_whole);
        let before = accepted();
        asks(&mut line.connect(at).expect("it connects")).expect("it is answered");
        assert_eq!(accepted(), before + 1, "{command}: through the gateway");
    }
    assert_eq!(line.said("near").matches("another program removed this gateway's rules").count(), 1, "once a minute");
    drop(near);
}

/// Starts the near box. Its `nft` runs this line of a shell first.
fn with_nft(line: &Line, first: &str) -> Running {
    let path = path_with_nft(line, first);
    Running::start_with(&line.near, line.folder.path(), "near", 1024, &[("PATH", &path)])
}

/// A search path whose `nft` runs this line of a shell first.
fn path_with_nft(line: &Line, first: &str) -> String {
    let folder = line.folder.path();
    std::fs::create_dir(folder.join("bin")).expect("a folder");
    let script = format!("#!/bin/sh\n{first}\nPATH=${{PATH#*:}} exec nft \"$@\"\n");
    std::fs::write(folder.join("bin/nft"), script).expect("a file");
    std::fs::set_permissions(folder.join("bin/nft"), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    format!("{}/bin:{}", folder.display(), std::env::var("PATH").expect("it is set"))
}

/// Ctrl-C at the terminal goes to all processes of the foreground: also to the `nft` that removes the rules after the first one.
#[test]
fn ctrl_c_again_leaves_no_rules() {
    let line = Line::new("100 Mbit/s");
    let (slow, busy) = (line.folder.path().join("nft is slow"), line.folder.path().join("nft runs"));
    let path = path_with_nft(&line, &format!("[ -e '{}' ] && : >'{}' && sleep 1", slow.display(), busy.display()));
    let mut command = Command::new("ip");
    command.args(["netns", "exec", line.near.name(), env!("CARGO_BIN_EXE_bentpipe-gateway"), "run", "near.toml"]);
    let said = std::fs::File::create(line.folder.path().join("near.said")).expect("a file");
    command.env("PATH", path).current_dir(line.folder.path()).stderr(said).process_group(0);
    let mut near = Running(command.spawn().expect("iproute2 is there"));
    line.wait_until_up(&["near"], false);
    until("it is ready", || line.said("near").contains("is ready"));
    assert!(inside(&line.near, "nft list tables").contains("bentpipe_near"));
    let group = Pid::from_raw(near.0.id() as i32);
    std::fs::write(&slow, "").expect("a file");
    killpg(group, Signal::SIGINT).expect("it runs");
    until("the rules are being removed", || busy.exists());
    killpg(group, Signal::SIGINT).expect("it runs");
    assert_eq!(near.fails(), Some(0), "{}", line.said("near"));
    assert_eq!(inside(&line.near, "nft list tables"), "");
    assert!(!inside(&line.near, "ip rule").contains("fwmark"));
}

/// Asks again and again for six seconds. Returns the longest time to an answer.
fn longest_answer(stream: &mut TcpStream) -> Duration {
    let begun = Instant::now();
    let mut longest = Duration::ZERO;
    while begun.elapsed().as_secs() < 6 {
        let asked = Instant::now();
        asks(stream).expect("an answer");
        longest = longest.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    longest
}

/// While `nft` takes seconds, as it may beside a program that loads large sets, connections go on: when rules come back, and when a reload
/// changes them.
#[test]
fn a_slow_nft_holds_up_no_connection() {
    let line = Line::new("100 Mbit/s");
    let slow = line.folder.path().join("nft is slow");
    let near = with_nft(&line, &format!("[ -e '{}' ] && sleep 4", slow.display()));
    let _far = line.start("far", 1024);
    line.wait_until_up(&["near", "far"], true);
    let mut stream = line.connect(line.serve(80, echo)).expect("it connects");
    asks(&mut stream).expect("an answer");
    let has = |rule: &str| inside(&line.near, "nft list ruleset").contains(rule);
    // Much longer than a wire and two boxes take, and much shorter than `nft`.
    let max = Duration::from_secs(2);

    std::fs::write(&slow, "").expect("a file");
    inside(&line.near, "nft flush ruleset");
    let longest = longest_answer(&mut stream);
    assert!(longest < max, "{longest:?}");
    std::fs::remove_file(&slow).expect("it is there");
    until("they come back", || has("jump ours"));

    std::fs::write(&slow, "").expect("a file");
    line.edit("near", "[split]", "[split]\nwithout_peer = \"refuse\"");
    near.signal("HUP");
    let longest = longest_answer(&mut stream);
    assert!(longest < max, "{longest:?}");
    std::fs::remove_file(&slow).expect("it is there");
    until("they change", || has("reject with tcp reset"));
    drop(near);
}

/// `nft` fails when a reload changes the rules: the old ones remain, and the new ones follow as soon as it works. Both are logged.
#[test]
fn rules_that_cannot_change_at_once_change_later() {
    let line = Line::new("100 Mbit/s");
    let fails = line.folder.path().join("nft fails");
    let near = with_nft(&line, &format!("[ -e '{}' ] && exit 1", fails.display()));
    let _far = line.start("far", 1024);
    line.wait_until_up(&["near", "far"], true);
    let has = |rule: &str| inside(&line.near, "nft list ruleset").contains(rule);
    let said = |text: &str| line.said("near").matches(text).count();
    std::fs::write(&fails, "").expect("a file");
    line.edit("near", "[split]", "[split]\nwithout_peer = \"refuse\"");
    near.signal("HUP");
    until("it is said", || said("reload: the kernel keeps the old rules for now: nft") == 1);
    std::thread::sleep(Duration::from_secs(3));
    assert!(has("jump ours") && !has("reject with tcp reset"), "the old ones");
    std::fs::remove_file(&fails).expect("it is there");
    until("it is said", || said("reload: the kernel has the new rules") == 1);
    assert!(has("reject with tcp reset"));
    assert_eq!(said("the old rules"), 1, "{}", line.said("near"));
    drop(near);
}

/// `nft` fails while the rules are gone, as on a machine without memory or descriptors. As soon as it works, they come back without
/// another change, and both are logged.
#[test]
fn rules_that_cannot_come_back_at_once_come_back_later() {
    let line = Line::new("100 Mbit/s");
    let folder = line.folder.path();
    let fails = folder.join("nft fails");
    let near = with_nft(&line, &format!("[ -e '{}' ] && exit 1", fails.display()));
    let _far = line.start("far", 1024);
    line.wait_until_up(&["near", "far"], true);
    let is_whole = || inside(&line.near, "nft list ruleset").contains("jump ours");
    assert!(is_whole());
    std::fs::write(&fails, "").expect("a file");
    inside(&line.near, "nft flush ruleset");
    let said = |text: &str| line.said("near").matches(text).count();
    until("it is said", || said("this gateway's may be missing: nft") == 1);
    std::thread::sleep(Duration::from_secs(3));
    assert!(!is_whole());
    std::fs::remove_file(&fails).expect("it is there");
    until("they come back", is_whole);
    until("it is said", || said("they are installed again") == 1);
    assert_eq!(said("another program"), 2, "{}", line.said("near"));
    drop(near);
}

/// Two hosts use up the descriptors for connections, and others hold all places of scrapers. The gateway still has enough to run `nft`.
#[test]
fn rules_come_back_without_descriptors() {
    crate::hosts::many_descriptors();
    let line = Line::new("100 Mbit/s");
    let (_near, _far) = (line.start("near", 80), line.start("far", 1024));
    line.wait_until_up(&["near", "far"], true);
    let at = line.serve(80, echo);
    let mut held = Vec::new();
    for source in [2, 3] {
        inside(&line.client, &format!("ip addr replace 10.1.0.{source}/24 dev eth"));
        inside(&line.client, &format!("ip route replace default via 10.1.0.1 src 10.1.0.{source}"));
        let asked = |_| line.connect(at).and_then(|mut stream| asks(&mut stream).map(|()| stream)).ok();
        held.extend((0..50).filter_map(asked));
    }
    let mut hanging = Threads::default();
    for _ in 0..16 {
        hanging.add(|is_over| {
            line.near.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = TcpStream::connect(METRICS).and_then(|mut stream| stream.read(&mut [0]));
                }
                0
            })
        });
    }
    std::thread::sleep(Duration::from_secs(1));
    let status = line.fresh_status("near");
    inside(&line.near, "nft flush ruleset");
    until("they come back", || inside(&line.near, "nft list ruleset").contains("jump ours"));
    assert!(!line.said("near").contains("may be missing"), "{status} {}", line.said("near"));
    hanging.join();
    assert!(held.len() > 30, "{}", held.len());
}

/// A limit that leaves nothing for connections is refused at the start: the gateway would take connections and reset them all.
#[test]
fn a_limit_without_room_for_connections_is_refused() {
    let line = Line::new("100 Mbit/s");
    for limit in [24, 40] {
        assert_eq!(line.start("near", limit).fails(), Some(1), "{limit}");
        let said = line.said("near");
        assert!(
            said.contains(&format!("the limit of open files is {limit}, and the gateway needs 40 for itself")),
            "{said}"
        );
        assert_eq!(inside(&line.near, "nft list tables"), "", "nothing was changed");
    }
    let mut near = line.start("near", 41);
    line.wait_until_up(&["near"], false);
    near.signal("TERM");
    near.ends();
}

/// If the device is deleted, the gateway ends with a message: its addresses and routes went with it.
#[test]
fn a_deleted_device_is_said() {
    let line = Line::new("100 Mbit/s");
    line.edit("near", "[split]\ncapture = [\"lan\"]", "[link]\naddresses = [\"10.8.0.1/24\"]");
    let mut near = line.start("near", 1024);
    until("it runs", || line.status("near").is_some());
    inside(&line.near, "ip link del bentpipe0");
    assert_eq!(near.fails(), Some(1));
    assert!(line.said("near").contains("the TUN device was deleted"), "{}", line.said("near"));
    assert!(bentpipe(line.folder.path(), &["status", "near.toml"]).status.code() == Some(1));

    let hub = Hub::new("");
    let mut gateway = hub.run(1024);
    inside(&hub.hub, "ip link del bentpipe0");
    assert_eq!(gateway.fails(), Some(1));
    assert!(hub.hosts.said("hub").contains("the TUN device was deleted"), "{}", hub.hosts.said("hub"));
    assert_eq!(inside(&hub.hub, "nft list tables"), "");
}

/// systemd rates the unit file: an exposure of at most 3.0, where 10 is a service without any restriction.
#[test]
fn the_unit_file_is_tight() {
    let unit = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/bentpipe-gateway@.service");
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true", "--no-pager", "--threshold=30"]).arg(&unit);
    let Ok(output) = analyze.output() else {
        eprintln!("SKIPPED, not tested: systemd-analyze is not installed");
        return;
    };
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let verdict = shown.lines().last().unwrap_or_default();
    assert!(output.status.success() && verdict.contains("Overall exposure level"), "{verdict}: {output:?}");
    println!("{verdict}");
    let text = std::fs::read_to_string(&unit).expect("it is there");
    for line in ["User=bentpipe", "LimitCORE=0", "StartLimitIntervalSec=0", "NoNewPrivileges=yes"] {
        assert!(text.lines().any(|it| it == line), "{line}");
    }
}
