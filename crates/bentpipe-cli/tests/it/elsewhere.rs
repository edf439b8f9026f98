//! Systems other than Linux: commands that need it say so.

use crate::command::{folder, ok, refused};

#[test]
fn what_needs_linux_stays_in_the_help_and_says_so() {
    let folder = folder();
    let help = ok(folder.path(), &["--help"]);
    let commands = [
        &["shell", "geo"][..],
        &["shell", "geo", "--", "curl", "-O", "http://server/file"],
        &["emulate", "geo"],
        &["link", "fade", "sat", "3 s"],
        &["verify", "geo", "--no-kernel"],
        &["verify-hosts", "--only", "GEO"],
        &["gateway", "run", "--dry-run", "near.toml"],
        &["doctor", "--json"],
        &["schema", "gateway"],
        &["reference", "metrics"],
    ];
    for command in commands {
        let error = refused(folder.path(), 2, command);
        assert!(error.starts_with(&format!("error: `bentpipe {}", command[0])), "{error}");
        assert!(error.contains("needs Linux: ") && error.trim_end().lines().count() == 1, "{error}");
        assert!(help.contains(&format!("\n  {} ", command[0])), "{}: {help}", command[0]);
    }
    let error = refused(folder.path(), 2, &["shell", "geo"]);
    assert_eq!(error.trim_end(), "error: `bentpipe shell` needs Linux: network namespaces and TUN devices");
    // A wrong argument is named as on Linux.
    assert!(refused(folder.path(), 2, &["shell"]).contains("FILE"));
}
