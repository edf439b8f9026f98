//! Gateways without root's rights: started by an ordinary user with the capabilities of the unit file, or started by root.

use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use nix::unistd::User;

use super::hub::Hub;
use super::pair::{Hosts, Line, Running, asks, bentpipe, echo, inside, until};

const NOBODY: u32 = 65_534;

/// Gives the folder and its contents to the user.
fn hand_over(hosts: &Hosts) {
    let folder = hosts.folder.path();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    for entry in std::fs::read_dir(folder).expect("readable") {
        chown(entry.expect("readable").path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    }
    chown(folder, Some(NOBODY), Some(NOBODY)).expect("root may");
}

/// The values of a line in /proc/PID/status.
fn field(gateway: &Running, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{}/status", gateway.0.id())).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel says it");
    line.split_whitespace().map(str::to_owned).collect()
}

/// The process belongs to this user and holds CAP_NET_ADMIN (bit 12) and nothing else.
fn is_of(gateway: &Running, uid: u32) {
    let [uid, none] = [vec![uid.to_string(); 4], Vec::new()];
    assert_eq!((field(gateway, "Uid:"), field(gateway, "Groups:")), (uid, none));
    for set in ["CapEff:", "CapPrm:", "CapAmb:"] {
        assert_eq!(field(gateway, set), ["0000000000001000"], "{set}");
    }
    assert_eq!(field(gateway, "NoNewPrivs:"), ["1"]);
}

#[test]
fn nobody_runs_each_shape() {
    let line = Line::new("100 Mbit/s");
    hand_over(&line);
    let mut both = [(&line.near, "near"), (&line.far, "far")]
        .map(|(host, name)| Running::start_as_nobody(host, line.folder.path(), name));
    line.wait_until_up(&["near", "far"], true);
    both.iter().for_each(|gateway| is_of(gateway, NOBODY));
    let mut stream = line.connect(line.serve(80, echo)).expect("it connects");
    asks(&mut stream).expect("through the gateways");
    assert_eq!(line.fresh_status("near")["split"]["open"], 1);
    drop(stream);
    for gateway in &mut both {
        gateway.signal("TERM");
        gateway.ends();
    }
    assert_eq!(inside(&line.near, "nft list tables"), "", "he removes his rules");
    assert!(!inside(&line.near, "ip rule").contains("fwmark"));

    for settings in ["", "sender = \"kernel\"\n"] {
        let hub = Hub::new(settings);
        hand_over(&hub.hosts);
        let mut gateway = Running::start_as_nobody(&hub.hub, hub.hosts.folder.path(), "hub");
        until("it is up", || hub.hosts.status("hub").is_some_and(|s| s["up"] == true));
        is_of(&gateway, NOBODY);
        let mut stream = hub.hosts.connect(hub.hosts.serve(80, echo)).expect("it connects");
        asks(&mut stream).expect("through the gateway");
        assert_eq!(hub.hosts.fresh_status("hub")["uplink"]["open"], 1);
        drop(stream);
        gateway.signal("TERM");
        gateway.ends();
        assert_eq!(inside(&hub.hub, "nft list tables"), "", "he removes his rules");
    }
}

/// A user who may have no more than a few threads and processes. A gateway that cannot start leaves no rules behind.
#[test]
fn without_threads_no_rules_are_left() {
    // Nobody else's processes count.
    const ALONE: u32 = 54_321;
    let line = Line::new("100 Mbit/s");
    let folder = line.folder.path();
    for entry in std::fs::read_dir(folder).expect("readable") {
        chown(entry.expect("readable").path(), Some(ALONE), Some(ALONE)).expect("root may");
    }
    let mut failed = 0;
    for limit in 1.. {
        let start = format!(
            "exec prlimit --nproc={limit} setpriv --reuid {ALONE} --regid {ALONE} --clear-groups --inh-caps -all,+net_admin,+net_raw \
             --ambient-caps +net_admin,+net_raw --bounding-set -all,+net_admin,+net_raw --no-new-privs $0 run near.toml"
        );
        let said = std::fs::File::create(folder.join("near.said")).expect("a file");
        let child = Command::new("ip")
            .args(["netns", "exec", line.near.name(), "sh", "-c", &start, env!("CARGO_BIN_EXE_bentpipe-gateway")])
            .current_dir(folder)
            .stderr(said)
            .spawn();
        let mut near = Running(child.expect("iproute2 is there"));
        let is_over = || line.said("near").contains("is ready") || line.said("near").contains("error: ");
        until("it is ready or fails", is_over);
        if line.said("near").contains("is ready") {
            near.signal("TERM");
            near.ends();
            break;
        }
        failed += 1;
        assert_eq!(near.fails(), Some(1), "limit {limit}: {}", line.said("near"));
        assert_eq!(inside(&line.near, "nft list tables"), "", "limit {limit}");
        assert!(!inside(&line.near, "ip rule").contains("fwmark"), "limit {limit}");
    }
    assert!(failed > 1, "it needs threads");
    assert_eq!(inside(&line.near, "nft list tables"), "");
}

/// The user that a gateway switches to if root starts it and the settings name no user.
fn default_user() -> u32 {
    let found = ["bentpipe", "nobody"].into_iter().find_map(|name| User::from_name(name).expect("/etc/passwd"));
    found.expect("every system has nobody").uid.as_raw()
}

/// Started by root in a shell, with keys that only root may read, the gateway switches to an ordinary user before it reads a packet from
/// the network. Everything later works as before: connections, reload, status, the note of its peer, the end.
#[test]
fn roots_gateway_becomes_an_ordinary_users() {
    let line = Line::new("100 Mbit/s");
    // With the kernel's settings as `prepare` leaves them, there is no warning about them.
    inside(&line.near, "sysctl -qw net.core.somaxconn=65536");
    let folder = line.folder.path();
    let mut both = ["near", "far"].map(|name| line.start(name, 1024));
    line.wait_until_up(&["near", "far"], true);
    both.iter().for_each(|gateway| is_of(gateway, default_user()));
    let at = line.serve(80, echo);
    let ask = || line.connect(at).and_then(|mut stream| asks(&mut stream));
    ask().expect("through the gateways");
    line.edit("near", "[split]", "[split]\ndeny = [\"*:80\"]");
    both[0].signal("HUP");
    until("it reads again", || line.said("near").contains("reload: "));
    ask().expect_err("denied by now");
    // The peer's address is written down within ten seconds.
    until("it is noted", || std::fs::read_to_string(folder.join("near.state")).is_ok_and(|text| text.contains("4500")));
    for gateway in &mut both {
        gateway.signal("TERM");
        gateway.ends();
    }
    assert!(!folder.join("near.sock").exists());
    assert_eq!(inside(&line.near, "nft list tables"), "");
    assert!(!inside(&line.near, "ip rule").contains("fwmark"));
    assert!(!line.said("near").contains("warning"), "{}", line.said("near"));

    for settings in ["", "sender = \"kernel\"\n"] {
        let hub = Hub::new(settings);
        let mut gateway = hub.run(1024);
        is_of(&gateway, default_user());
        let mut stream = hub.hosts.connect(hub.hosts.serve(80, echo)).expect("it connects");
        asks(&mut stream).expect("through the gateway");
        drop(stream);
        gateway.signal("TERM");
        gateway.ends();
        assert_eq!(inside(&hub.hub, "nft list tables"), "");
    }
}

/// The settings name the user. What that user may not do is logged.
#[test]
fn settings_name_the_user() {
    let hub = Hub::new("sender = \"kernel\"\n");
    let (folder, path) = (hub.hosts.folder.path(), hub.hosts.folder.path().join("hub.toml"));
    let text = std::fs::read_to_string(&path).expect("it is there");
    let named = |user: &str| std::fs::write(&path, format!("user = \"{user}\"\n{text}")).expect("a file");
    let end = |mut gateway: Running| {
        gateway.signal("TERM");
        gateway.ends();
    };
    named("nobody");
    let gateway = hub.run(1024);
    is_of(&gateway, NOBODY);
    end(gateway);
    named("root");
    let gateway = hub.run(1024);
    assert_eq!(field(&gateway, "Uid:"), ["0"; 4]);
    assert_eq!(field(&gateway, "CapEff:"), ["0000000000001000"]);
    end(gateway);
    named("no-such-user");
    let output = bentpipe(folder, &["run", "--dry-run", "hub.toml"]);
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("hub.toml:1:8") && said.contains("no user `no-such-user`"), "{said}");

    // A file that only root may read: it runs, and logs what will not work.
    std::fs::write(&path, &text).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    let gateway = hub.run(1024);
    let said = hub.hosts.said("hub");
    assert!(said.contains("a reload (SIGHUP) will fail: hub.toml: Permission denied"), "{said}");
    gateway.signal("HUP");
    until("it says so", || hub.hosts.said("hub").contains("the old settings remain"));
    end(gateway);
}

/// The folder for sockets and states exists and belongs to root, as after `bentpipe emulate` as root, or to an earlier user.
#[test]
fn its_own_folder_is_its_users() {
    let line = Line::new("100 Mbit/s");
    // With the kernel's settings as `prepare` leaves them, there is no warning about them.
    inside(&line.near, "sysctl -qw net.core.somaxconn=65536");
    let name = format!("test-{}", std::process::id());
    let own = std::path::Path::new("/run/bentpipe").join(&name);
    line.edit("near", "name = \"near\"\ncontrol = \"near.sock\"\n", &format!("name = \"{name}\"\n"));
    line.edit("near", "state = \"near.state\"\n", "");
    std::fs::create_dir_all(&own).expect("root may");
    let mut both = ["near", "far"].map(|name| line.start(name, 1024));
    line.wait_until_up(&["near", "far"], true);
    is_of(&both[0], default_user());
    until("it is noted", || std::fs::read_to_string(own.join("peers.state")).is_ok_and(|text| text.contains("4500")));
    assert!(own.join("control.sock").exists());
    for gateway in &mut both {
        gateway.signal("TERM");
        gateway.ends();
    }
    assert!(!own.join("control.sock").exists());
    assert!(!line.said("near").contains("warning"), "{}", line.said("near"));

    // A folder named in its settings keeps its owner; it logs the consequence.
    std::fs::create_dir(own.join("roots")).expect("root may");
    line.edit(
        "near",
        &format!("name = \"{name}\"\n"),
        &format!("name = \"{name}\"\ncontrol = \"{}\"\n", own.join("roots/c").display()),
    );
    let mut near = line.start("near", 1024);
    until("it runs", || line.status("near").is_some());
    near.signal("TERM");
    near.ends();
    assert!(
        line.said("near").contains("the gateway cannot remove the socket for `status` when it ends"),
        "{}",
        line.said("near")
    );
    std::fs::remove_dir_all(own).expect("root may");
}
