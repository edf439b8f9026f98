//! A gateway of a user who is not root, with the capabilities that the unit file gives.

use std::os::unix::fs::{PermissionsExt, chown};

use super::hub::Hub;
use super::pair::{Hosts, Line, Running, asks, echo, inside, until};

const NOBODY: u32 = 65_534;

/// The folder and what is in it becomes his.
fn hand_over(hosts: &Hosts) {
    let folder = hosts.folder.path();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    for entry in std::fs::read_dir(folder).expect("readable") {
        chown(entry.expect("readable").path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    }
    chown(folder, Some(NOBODY), Some(NOBODY)).expect("root may");
}

fn is_nobodys(gateway: &Running) {
    let text = std::fs::read_to_string(format!("/proc/{}/status", gateway.0.id())).expect("it runs");
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel says it");
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(field("Uid:"), vec![NOBODY.to_string(); 4]);
    assert_eq!(field("Groups:"), Vec::<String>::new());
    // CAP_NET_ADMIN, bit 12.
    assert_eq!(field("CapEff:"), ["0000000000001000"]);
    assert_eq!(field("CapPrm:"), ["0000000000001000"]);
    assert_eq!(field("NoNewPrivs:"), ["1"]);
}

#[test]
fn nobody_runs_each_shape() {
    let line = Line::new("100 Mbit/s");
    hand_over(&line);
    let mut both = [(&line.near, "near"), (&line.far, "far")]
        .map(|(host, name)| Running::start_as_nobody(host, line.folder.path(), name));
    line.wait_until_up(&["near", "far"], true);
    both.iter().for_each(is_nobodys);
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
        is_nobodys(&gateway);
        let mut stream = hub.hosts.connect(hub.hosts.serve(80, echo)).expect("it connects");
        asks(&mut stream).expect("through the gateway");
        assert_eq!(hub.hosts.fresh_status("hub")["uplink"]["open"], 1);
        drop(stream);
        gateway.signal("TERM");
        gateway.ends();
        assert_eq!(inside(&hub.hub, "nft list tables"), "", "he removes his rules");
    }
}
