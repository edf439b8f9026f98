//! Small systems: images of containers, and what cron starts.

use std::process::Command;

/// nft accepts the rules without /etc/protocols, which Debian's images of containers lack, and is found without its folder in the search
/// path.
#[test]
fn names_of_protocols_and_a_long_path_are_not_needed() {
    let doctor =
        "[ ! -e /etc/protocols ] || mount --bind /dev/null /etc/protocols && PATH=/usr/bin:/bin exec \"$0\" doctor";
    let words = ["--mount", "--net", "sh", "-c", doctor, env!("CARGO_BIN_EXE_bentpipe-gateway")];
    let output = Command::new("unshare").args(words).output().expect("util-linux is there");
    let said = String::from_utf8_lossy(&output.stdout);
    for good in ["nft: runs", "TPROXY: nft accepts the rules", "rules of uplink: nft accepts the rules"] {
        assert!(said.lines().any(|line| line.strip_prefix("ok       ") == Some(good)), "{good}\n{said}");
    }
}
