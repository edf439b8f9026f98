//! The command and its files, between hosts in namespaces: what it prints, what it carries, what it leaves behind.

mod away;
mod backlog;
mod faults;
mod guard;
mod hostile;
mod hub;
mod machine;
mod memory;
mod metrics;
mod mishaps;
mod mixed;
mod older;
mod pair;
mod peers;
mod places;
mod policy;
mod roaming;
mod scone;
mod secrets;
mod small;
mod star;
mod starting;
mod unprivileged;
mod uplink;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use bentpipe_gateway::Instance;

use self::pair::{Pair, Wanted, bentpipe, bytes, inside, keys, send, settings, until};

/// Creates the key's folder if needed. If the file cannot grow, as on a full disk, no key is left behind, not even half of one.
#[test]
fn keys_are_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = bentpipe(folder.path(), &["keygen", "new/folder/near.key"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(std::fs::read(folder.path().join("new/folder/near.key")).expect("it is there").len(), 45);
    let full = "ulimit -f 0; trap '' XFSZ; exec \"$0\" keygen full.key";
    let mut shell = Command::new("sh");
    shell.args(["-c", full, env!("CARGO_BIN_EXE_bentpipe-gateway")]).current_dir(folder.path());
    let output = shell.output().expect("a shell");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("full.key: File too large"));
    assert!(!folder.path().join("full.key").exists());
}

/// Prints the kernel rules without installing them; names a misspelt key with its line.
#[test]
fn settings_are_checked_and_rules_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let [_, far] = keys(folder.path());
    let again = bentpipe(folder.path(), &["keygen", "near.key"]);
    assert_eq!(again.status.code(), Some(1), "a key is not overwritten");
    let text = settings("near", &far, ["", "", "capture = [\"lan0\"]"], "100 Mbit/s");
    std::fs::write(folder.path().join("near.toml"), &text).expect("a file");
    for arguments in [["up", "--dry-run", "near.toml"], ["run", "--dry-run", "near.toml"]] {
        let output = bentpipe(folder.path(), &arguments);
        let shown = String::from_utf8(output.stdout).expect("text");
        assert!(shown.contains("iifname { \"lan0\" }") && shown.contains("tproxy ip6 to :4000"), "{shown}");
        let mark = format!("{:#x}", Instance::new("near").mark());
        assert!(shown.contains("ip -4 rule add preference ") && shown.contains(&format!(" fwmark {mark} ")), "{shown}");
        assert!(shown.contains("do not pass the FORWARD chain"), "{shown}");
    }
    // A link of 100 Mbit/s and this many milliseconds: eight of its bandwidth-delay products.
    let hint = |round_trip: &str, memory: &str| {
        let text = text.replace("[split]", &format!("[split]\n{memory}")).replace("20 ms", round_trip);
        std::fs::write(folder.path().join("fat.toml"), text).expect("a file");
        let said = String::from_utf8(bentpipe(folder.path(), &["run", "--dry-run", "fat.toml"]).stderr).expect("text");
        said.lines().find(|line| line.contains("`split.memory`")).map(str::to_owned)
    };
    // 60 MB are 57.2 MiB.
    let small = hint("600 ms", "memory = \"56 MiB\"").expect("it is too small");
    assert!(small.starts_with("warning: `split.memory` is 56 MiB") && small.contains("needs 58 MiB"), "{small}");
    assert_eq!(hint("600 ms", "memory = \"58 MiB\""), None);
    assert!(hint("2600 ms", "").is_none() && hint("2700 ms", "").is_some(), "248 and 258 MiB; the default is 256");
    // A key that others may read is refused, and so is one of zeros.
    let key = folder.path().join("near.key");
    let refused = |expected: &str| {
        let output = bentpipe(folder.path(), &["run", "--dry-run", "near.toml"]);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2));
        assert!(said.contains(expected), "{said}");
    };
    let mode = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    mode(0o644);
    // The settings name the file.
    refused("near.toml:5:15");
    refused("near.key is secret, but users other than its owner may read or write it (mode 644)");
    mode(0o600);
    // Longer than the address of a socket.
    let long = text.replace("near.sock", &"x".repeat(200));
    std::fs::write(folder.path().join("near.toml"), long).expect("a file");
    refused("near.toml:2:11");
    refused("the path of this socket has 200 bytes: ");
    std::fs::write(folder.path().join("near.toml"), &text).expect("a file");
    std::fs::write(&key, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").expect("a file");
    refused("near.key: all bytes of this key are zero");
    std::fs::write(folder.path().join("near.toml"), text.replace("round_trip", "roundtrip")).expect("a file");
    let output = bentpipe(folder.path(), &["run", "near.toml"]);
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("near.toml:11:1") && said.contains("did you mean `round_trip`?"), "{said}");
}

/// If the reader of its output goes away, it ends quietly with 141, as `bentpipe` does. A full disk is an error, and there is no panic even
/// if the error cannot be printed.
#[test]
fn an_output_that_is_closed_or_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let [_, far] = keys(folder.path());
    let text = settings("near", &far, ["", "", "capture = [\"lan0\"]"], "100 Mbit/s");
    std::fs::write(folder.path().join("near.toml"), &text).expect("a file");
    let command = |file: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe-gateway"));
        command.current_dir(folder.path()).args(["run", "--dry-run", file]);
        command
    };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let closed = command("near.toml").stdout(writer).output().expect("it starts");
    // There may be a warning about this machine's settings.
    let said = String::from_utf8_lossy(&closed.stderr);
    assert!(closed.status.code() == Some(141) && !said.contains("error") && !said.contains("panicked"), "{said}");
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = command("near.toml").stdout(full()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("error: standard output: No space left"), "{said}");
    // Help and manual pages are output, too.
    let of = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe-gateway"));
        command.current_dir(folder.path()).args(words);
        command
    };
    assert_eq!(of(&["--help"]).stdout(full()).stderr(full()).status().expect("it starts").code(), Some(1));
    let page = folder.path().join("pages/bentpipe-gateway.8");
    std::fs::create_dir_all(&page).expect("a folder");
    for (at, expected) in [("near.toml", "near.toml: it is no folder"), ("pages", "pages/bentpipe-gateway.8: ")] {
        let output = of(&["man", at]).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(expected), "{said}");
    }
    let unsaid = command("absent.toml").stderr(full()).status().expect("it starts");
    assert_eq!(unsaid.code(), Some(2));
}

/// A program that ignores SIGCHLD starts it, and it inherits that. "nft: No child processes" was the end of each start.
#[test]
fn children_are_waited_for_whoever_starts_it() {
    // A shell does not pass it on.
    let mut env = Command::new("env");
    let output = env.args(["--ignore-signal=CHLD", env!("CARGO_BIN_EXE_bentpipe-gateway"), "doctor"]).output();
    let output = output.expect("coreutils");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("ok       nft: runs\n") && said.contains("ok       ip: runs\n"), "{said}");
}

#[test]
fn a_pair_of_gateways_by_the_command() {
    let pair = Pair::new(&Wanted { rate: "100 Mbit/s", descriptors: 1024 });
    let (told, seen) = std::sync::mpsc::channel();
    let at = pair.serve(80, move |mut stream| {
        told.send(stream.peer_addr().expect("it is connected")).expect("the test waits");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("no reset");
        stream.write_all(&bytes).expect("the client listens");
    });
    let sent = bytes(3_000_000);
    let mut stream = pair.connect(at).expect("it connects");
    let sender = send(&stream, sent.clone());
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("no reset");
    sender.join().expect("all is sent");
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
    let local = stream.local_addr().expect("it is connected");
    assert_eq!(seen.recv().expect("the server was asked"), local, "the client's own address");

    until("it is counted", || {
        pair.status("near").is_some_and(|s| s["split"]["closed"] == 1 && s["split"]["open"] == 0)
    });
    // The only privilege left is CAP_NET_ADMIN, bit 12, in each thread.
    let threads = std::fs::read_dir(format!("/proc/{}/task", pair.gateways[1].0.id())).expect("it runs");
    for thread in threads {
        let text = std::fs::read_to_string(thread.expect("it runs").path().join("status")).expect("it runs");
        let effective = text.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("the kernel says it");
        assert_eq!(u64::from_str_radix(effective.trim(), 16), Ok(1 << 12));
    }
    assert!(inside(&pair.near, "nft list tables").contains("inet bentpipe_near"));
    let (near, socket) = (pair.near.clone(), pair.folder.path().join("near.sock"));
    pair.end();
    assert_eq!(inside(&near, "nft list tables"), "", "rules are removed");
    assert!(!inside(&near, "ip rule").contains("fwmark 0xb3"));
    assert!(!socket.exists());
}
