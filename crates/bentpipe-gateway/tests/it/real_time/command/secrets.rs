//! Preshared keys that change while gateways run.

use std::os::unix::fs::{PermissionsExt, chown};

use super::pair::{Line, asks, bentpipe, echo, until};

const NOBODY: u32 = 65534;

/// SIGHUP reads the key again: connections continue, and the next handshake uses the new key. An unusable file changes nothing.
#[test]
fn a_preshared_key_is_read_again() {
    let line = Line::new("100 Mbit/s");
    let folder = line.folder.path();
    let make = |name: &str| {
        let _ = std::fs::remove_file(folder.join(name));
        assert!(bentpipe(folder, &["keygen", name]).status.success());
        // The user that the gateways switch to.
        chown(folder.join(name), Some(NOBODY), Some(NOBODY)).expect("root may");
    };
    make("shared.key");
    for name in ["near", "far"] {
        line.edit(name, "[tunnel]", "user = \"nobody\"\n[tunnel]\npreshared_key = \"shared.key\"");
    }
    let (near, far) = (line.start("near", 1024), line.start("far", 1024));
    line.wait_until_up(&["near", "far"], true);
    let server = line.serve(80, echo);
    let mut stream = line.connect(server).expect("it connects");
    asks(&mut stream).expect("an answer");
    let told = "reload: handshakes use another preshared key from now on; ";
    let reload = |count: usize| {
        near.signal("HUP");
        until("it has reloaded", || line.said("near").matches("reload: client_address").count() == count);
    };

    // The old key again.
    reload(1);
    make("shared.key");
    near.signal("HUP");
    until("it is told", || line.said("near").contains(told));
    assert!(!line.said("near").contains("the rest changes"), "{}", line.said("near"));
    asks(&mut stream).expect("the session goes on");
    // The other box has not read the new key yet, and a restart needs a handshake.
    drop(far);
    let far = line.start("far", 1024);
    line.wait_until_up(&["near", "far"], true);
    asks(&mut line.connect(server).expect("it connects")).expect("an answer");

    // A file that others may read is refused.
    make("shared.key");
    let mode = |mode| std::fs::set_permissions(folder.join("shared.key"), std::fs::Permissions::from_mode(mode));
    mode(0o644).expect("it is ours");
    reload(2);
    let said = line.said("near");
    assert!(said.contains("near.toml:6:17") && said.contains("reload: the old preshared key remains"), "{said}");
    asks(&mut line.connect(server).expect("it connects")).expect("an answer");
    drop(far);
    mode(0o600).expect("it is ours");
    // A restart with a key that the other box does not have.
    let _far = line.start("far", 1024);
    until("it is said", || line.said("near").contains("both boxes need the same `preshared_key`, or none"));
    near.signal("HUP");
    until("it is told", || line.said("near").matches(told).count() == 2);
    line.wait_until_up(&["near", "far"], true);
    asks(&mut line.connect(server).expect("it connects")).expect("an answer");
}
