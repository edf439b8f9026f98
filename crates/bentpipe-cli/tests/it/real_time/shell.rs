//! `bentpipe shell`: a command behind the link, the machine in front of it, and networks beyond that machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::support::{DATAGRAMS, SIZES, bentpipe, bound, file, is_heard, output, possible, socket_drops, talk};

const LINK: &str = r#"
name = "test"
[[links]]
name = "sat"
between = ["net", "me"]
rate = "10 Mbit/s"
delay = "150 ms"
[[flows]]
name = "data"
from = "net"
to = "me"
bytes = "1 MB"
"#;

/// A command that prints the mean round trip to an address, in milliseconds.
fn ping(address: &str) -> String {
    format!("ping -c 3 -i 0.2 -q {address} | sed -n 's|.*= [0-9.]*/\\([0-9.]*\\)/.*|\\1|p'")
}

fn has_ping() -> bool {
    let found = Command::new("ping").arg("-V").output().is_ok();
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "CI must have ping (iputils-ping)");
    if !found {
        eprintln!("SKIPPED, not tested: ping (iputils-ping) is not there");
    }
    found
}

/// The milliseconds that a command printed.
fn millis(arguments: &[&str]) -> f64 {
    let output = output(arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    text.trim().parse().unwrap_or_else(|_| panic!("{text}\n{error}"))
}

#[test]
fn the_machine_is_a_round_trip_away_and_nested_links_add_up() {
    if !possible() || !has_ping() {
        return;
    }
    let (_folder, path) = file(LINK);
    let one = millis(&["shell", &path, "--", "sh", "-c", &ping("net")]);
    // 300 ms plus two packets of 84 bytes at 10 Mbit/s, 0.13 ms. On average over three pings, wake-ups are less than 5 ms late.
    assert!((300.1..305.0).contains(&one), "{one} ms");
    // From behind both links to the machine in front of the outer one.
    let binary = env!("CARGO_BIN_EXE_bentpipe");
    let inner = ping("$FAR").replace('\\', "\\\\").replace('$', "\\$");
    let outer = format!("FAR=$BENTPIPE_OUTER {binary} shell {path} --quiet -- sh -c \"{inner}\"");
    let two = millis(&["shell", &path, "--quiet", "--", "sh", "-c", &outer]);
    assert!((600.2..610.0).contains(&two), "{two} ms");
}

#[test]
fn the_exit_code_and_the_end_by_signals_are_the_commands() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(LINK);
    assert_eq!(output(&["shell", &path, "--", "sh", "-c", "exit 9"]).status.code(), Some(9));
    assert_eq!(output(&["shell", &path, "--", "sh", "-c", "kill -KILL $$"]).status.code(), Some(137));
    let missing = output(&["shell", &path, "--", "no-such-program"]);
    let error = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(missing.status.code() == Some(127) && error.contains("`no-such-program` cannot be started"), "{error}");
    let folder = output(&["shell", &path, "--", "/"]);
    assert_eq!(folder.status.code(), Some(126));
}

#[test]
fn the_summary_goes_to_a_file() {
    if !possible() {
        return;
    }
    let (folder, path) = file(LINK);
    let json = folder.path().join("summary.json");
    let words = ["shell", &path, "--json", json.to_str().expect("plain"), "--", "sh", "-c", "ping -c 1 net; exit 3"];
    assert_eq!(output(&words).status.code(), Some(3));
    let text = std::fs::read_to_string(&json).expect("it is written");
    let summary: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(summary["exit_code"], 3);
    assert!(summary["time_s"].as_f64().is_some_and(|time| time > 0.3), "a ping takes a round trip: {text}");
    let forward = summary["links"].as_array().into_iter().flatten().find(|link| link["name"] == "sat/forward");
    assert_eq!(forward.expect("the link")["delivered"], 1, "{text}");
    // A file is not a folder. This is reported before the command starts.
    let within = json.join("s.json");
    let refused = output(&["shell", &path, "--json", within.to_str().expect("plain"), "--", "echo", "started"]);
    assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(1), &b""[..]));
}

/// Killed from outside, it ends its command within a second and returns the signal's exit code.
#[test]
fn a_signal_to_it_alone_ends_the_command() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(LINK);
    let signal = |arguments: &[&str], signal: Signal| {
        let mut child = bentpipe(arguments)
            .env("SHELL", "/bin/bash")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        // A shell says `on` once it runs; a plain program runs at once. The end of its input would end the shell.
        let mut input = child.stdin.take().expect("piped");
        let _ = input.write_all(b"echo on\n");
        child.stdout.as_mut().expect("piped").read_exact(&mut [0; 2]).expect("it is on");
        let begin = Instant::now();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).expect("it runs");
        let code = child.wait().expect("ours").code();
        // One second, and as much again for a busy machine.
        assert!(begin.elapsed().as_secs() < 2, "{arguments:?}, {signal}: {:?}", begin.elapsed());
        code
    };
    let sleeps = ["sh", "-c", "echo on; exec sleep 60"];
    let stays = ["sh", "-c", "trap '' TERM INT; echo on; while :; do sleep 0.1; done"];
    for command in ["shell", "emulate"] {
        for kind in [Signal::SIGINT, Signal::SIGTERM] {
            assert_eq!(signal(&[&[command, &path, "--"], &sleeps[..]].concat(), kind), Some(143), "{command}");
            assert_eq!(signal(&[&[command, &path, "--"], &stays[..]].concat(), kind), Some(137), "{command}");
        }
    }
    // A shell without a command gets SIGHUP: an interactive one ignores SIGTERM.
    let code = if is_heard(&Signal::SIGHUP) { 129 } else { 137 };
    assert_eq!(signal(&["shell", &path], Signal::SIGTERM), Some(code));
}

/// A command that deletes the device behind it. The message was "File descriptor in bad state (os error 77)".
#[test]
fn a_device_that_is_deleted_is_said_to_be() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(LINK);
    let ended = output(&["shell", &path, "--", "sh", "-c", "ip link del bentpipe0; sleep 5"]);
    let error = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{error}");
    assert!(error.contains("error: the device of a host was deleted"), "{error}");
}

/// Ctrl-C at the terminal goes to the command, which may continue.
#[test]
fn ctrl_c_at_the_terminal_is_the_commands() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(LINK);
    for command in ["shell", "emulate"] {
        // The shell itself waits: Ctrl-C would end a program that it waits for, even one that it is just starting. A signal to end would
        // arrive while that program sleeps.
        let stays = r#"trap "echo kept" INT; echo on; read line; sleep 0.5; exit 7"#;
        // `script` starts a shell for the command. Without `exec`, Ctrl-C would end that shell if it is dash.
        let line = format!("exec '{}' {command} '{path}' -- sh -c '{stays}'", env!("CARGO_BIN_EXE_bentpipe"));
        // `script` gives it a terminal.
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bsdutils");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.trim_end().ends_with("on")), "{command}");
        child.stdin.as_mut().expect("piped").write_all(b"\x03\n").expect("it reads");
        let rest: Vec<String> = lines.collect();
        assert_eq!(child.wait().expect("ours").code(), Some(7), "{command}: {rest:?}");
        assert!(rest.iter().any(|line| line.contains("kept")), "{command}: {rest:?}");
    }
}

/// The same user by another number, so that it has to become root.
const ORDINARY: [&str; 3] = ["-U", "--map-user=1000", "--map-group=1000"];

/// True if a user who is not root can be tested.
fn possible_without_root() -> bool {
    if !possible() {
        return false;
    }
    let found = Command::new("unshare").args(ORDINARY).arg("true").status().is_ok_and(|status| status.success());
    assert!(
        found || std::env::var("CI").as_deref() != Ok("true"),
        "CI must have user namespaces and `unshare --map-user`"
    );
    if !found {
        eprintln!("SKIPPED, not tested: `unshare {}` fails", ORDINARY.join(" "));
    }
    found
}

/// Puts a script in place of `pasta`, and returns the search path with it. `$last`, the last argument of the real one, is the process
/// whose network it joins.
fn pasta(folder: &Path, script: &str) -> String {
    let file = folder.join("pasta");
    std::fs::write(&file, format!("#!/bin/sh\nfor last; do :; done\n{script}\n")).expect("writable");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&file, all).expect("it is ours");
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}

/// A default route says that `pasta` is ready.
const READY: &str = "nsenter -t $last -U -n --preserve-credentials ip route add default dev lo";

/// Without root, `pasta` is the way to the outside. Ctrl-C at the terminal is for the command, which may continue and need it.
#[test]
fn ctrl_c_leaves_the_way_to_the_outside() {
    if !possible_without_root() {
        return;
    }
    let (folder, path) = file(LINK);
    let folders = pasta(folder.path(), &format!("echo $$ > '{path}.pid'; {READY}\nexec sleep 60"));
    let runs = format!("read pid name state rest < /proc/$(cat {path}.pid)/stat; test \"$state\" = S");
    let stays = format!(r#"trap "" INT; echo on; read line; sleep 0.5; {runs}"#);
    let binary = env!("CARGO_BIN_EXE_bentpipe");
    let line = format!("exec unshare {} '{binary}' shell '{path}' -- sh -c '{stays}'", ORDINARY.join(" "));
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env("PATH", folders)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bsdutils");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.trim_end().ends_with("on")), "it does not start");
    child.stdin.as_mut().expect("piped").write_all(b"\x03\n").expect("it reads");
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("ours").code(), Some(0), "{rest:?}");
}

/// `pasta` may be installed and fail, at once or later.
#[test]
fn the_end_of_the_way_to_the_outside_is_told() {
    if !possible_without_root() {
        return;
    }
    let (folder, path) = file(LINK);
    let says = |script: &str, command: &str| {
        let folders = pasta(folder.path(), script);
        let ended = Command::new("unshare")
            .args(ORDINARY)
            .args([env!("CARGO_BIN_EXE_bentpipe"), "shell", &path, "--", "sh", "-c", command])
            .env("PATH", folders)
            .stdin(Stdio::null())
            .output()
            .expect("util-linux");
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(0), "{told}");
        told
    };
    let told = says("exit 3", "true");
    assert!(told.contains("not available: the outside: not root, and `pasta` has ended (exit status: 3)\n"), "{told}");
    let told = says("exit 127", "true");
    assert!(told.contains("and `pasta` (package passt) is not installed\n"), "{told}");
    // It ends when the command wants it to. The command then waits until it is no zombie either.
    let later = format!("echo $$ > '{path}.pid'; {READY}\nwhile test ! -e '{path}.go'; do sleep 0.05; done");
    let gone = format!(
        "touch '{path}.go'; pid=$(cat '{path}.pid'); for n in $(seq 200); do test -e /proc/$pid || exit 0; sleep 0.05; done; exit 1"
    );
    let told = says(&later, &gone);
    assert!(told.contains("not available any more: the outside: `pasta` has ended\n"), "{told}");
}

/// The command may work in another folder than the one from which the socket was named.
#[test]
fn the_command_finds_the_control_socket() {
    if !possible() {
        return;
    }
    let (folder, path) = file(LINK);
    let fade = format!("cd / && exec '{}' link fade sat '10 ms'", env!("CARGO_BIN_EXE_bentpipe"));
    for command in ["shell", "emulate"] {
        let mut command = bentpipe(&[command, &path, "--control", "socket", "--", "sh", "-c", &fade]);
        let ended = command.current_dir(folder.path()).output().expect("the binary starts");
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(0), "{told}");
        assert!(String::from_utf8_lossy(&ended.stdout).contains("all packets are lost for 0.01 s"), "{told}");
    }
}

/// A machine with a default route and a host behind it. From behind the link both are reached, and afterwards the machine is as before.
#[test]
fn the_outside_is_there_and_the_machine_is_as_before() {
    if !possible() || !has_ping() {
        return;
    }
    if Command::new("nft").arg("-v").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must have nft (nftables)");
        return eprintln!("SKIPPED, not tested: nft (nftables) is not there");
    }
    let (_folder, path) = file(LINK);
    // `unshare` gives the test a network of its own, which goes away with it.
    let script = format!(
        "set -e
         ip link set lo up; echo 0 > /proc/sys/net/ipv4/ip_forward
         unshare -n sleep 30 & sleep 0.3
         ip link add out type veth peer name in netns $!
         ip addr add 203.0.113.1/24 dev out; ip link set out up; ip route add default via 203.0.113.2
         nsenter -n -t $! sh -c 'ip addr add 203.0.113.2/24 dev in; ip link set in up; ip link set lo up; \
             ip addr add 198.51.100.1/32 dev lo'
         {binary} shell {path} --quiet -- sh -c \"{ping}\"
         kill $!
         cat /proc/sys/net/ipv4/ip_forward
         nft list tables | wc -l
         ip -o link | grep -c bp || true",
        binary = env!("CARGO_BIN_EXE_bentpipe"),
        ping = ping("198.51.100.1").replace('\\', "\\\\"),
    );
    let output = Command::new("unshare").args(["-n", "sh", "-c", &script]).output().expect("util-linux");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let [millis, forwarding, tables, devices] = lines[..] else { panic!("{text}\n{error}") };
    let millis: f64 = millis.parse().unwrap_or_else(|_| panic!("{text}\n{error}"));
    assert!((300.1..305.0).contains(&millis), "{millis} ms");
    assert_eq!((forwarding, tables.trim(), devices), ("0", "0", "0"), "{text}\n{error}");
}

/// Runs a closure in the network namespace of a process.
fn beside<T: Send>(pid: u32, work: impl FnOnce() -> std::io::Result<T> + Send) -> T {
    let done = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let namespace = std::fs::File::open(format!("/proc/{pid}/ns/net"))?;
            nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET)?;
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    done.expect("the process runs, and its stack works")
}

/// As in `emulate`, in a network that `unshare` makes for the test: datagrams of several sizes, IPv4 and IPv6.
#[test]
fn datagrams_keep_their_sizes_and_bytes() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(&LINK.replace("10 Mbit/s", "100 Mbit/s").replace("150 ms", "20 ms\"\nqueue = \"1 s"));
    let mut shell = Command::new("unshare")
        .args(["-n", env!("CARGO_BIN_EXE_bentpipe"), "shell", &path, "--", "sh", "-c", "echo $$; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("util-linux");
    let mut line = String::new();
    BufReader::new(shell.stdout.take().expect("piped")).read_line(&mut line).expect("text");
    let inside: u32 = line.trim().parse().expect("the command's process");
    let mut lost = 0;
    for network in ["198.18.0.", "fd62:656e:7470::"] {
        let [from, to] = ["1", "2"].map(|host| format!("{network}{host}").parse().expect("an address"));
        let (near, far) = (beside(shell.id(), || bound(from)), beside(inside, || bound(to)));
        lost += DATAGRAMS - talk(&near, &far, &SIZES);
    }
    assert_eq!(lost, beside(inside, socket_drops));
    drop(shell.stdin.take());
    let output = shell.wait_with_output().expect("ours");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let row = text.lines().find(|line| line.contains("sat/forward")).unwrap_or_else(|| panic!("{text}"));
    let count = (2 * DATAGRAMS).to_string();
    assert_eq!(row.matches(&count).count(), 2, "offered and delivered: {text}");
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let layered = format!("{LINK}\n[[layers]]\nname = \"arq\"\nover = \"sat\"\nweightless = true\n");
    let (_folder, path) = file(&layered);
    for command in [&["shell", &path, "--", "true"][..], &["emulate", &path]] {
        let output = output(command);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        let line = 1 + layered.lines().position(|line| line == "weightless = true").expect("there");
        for part in [format!("link.toml:{line}:1"), "key: layers.arq.weightless".into(), "expected false".into()] {
            assert!(error.contains(&part), "{part}: {error}");
        }
    }
    let (_folder, path) = file(LINK);
    let output = output(&["shell", &path, "--inside", "mee", "--", "true"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && error.contains("did you mean `me`?"), "{error}");
}

/// Another user, who may not even open the TUN device.
#[test]
fn without_root_it_is_said_what_is_missing() {
    if !possible() {
        return;
    }
    let (folder, path) = file(LINK);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("ours");
    // The binary may be in a folder that only root can read.
    let binary = folder.path().join("bentpipe");
    std::fs::copy(env!("CARGO_BIN_EXE_bentpipe"), &binary).expect("room");
    let binary = binary.to_str().expect("plain");
    let run = |command: &[&str]| {
        let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups", binary];
        let output = Command::new("setpriv").args(user).args(command).output().expect("util-linux");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, error) = run(&["emulate", &path]);
    assert!(code == Some(2) && error.contains("need root") && error.contains("help: run it with sudo"), "{error}");
    let (code, error) = run(&["shell", &path, "--", "true"]);
    // It works if the machine lets everybody create devices.
    assert!(code == Some(0) || code == Some(2) && error.contains("help: "), "{error}");
}
