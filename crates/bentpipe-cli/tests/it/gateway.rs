//! `bentpipe gateway` runs the gateway crate's command, which has its own tests. This one only checks that it is reached.

use std::process::{Command, Output};

fn bentpipe(folder: &std::path::Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
    command.current_dir(folder).arg("gateway").args(arguments).output().expect("the binary starts")
}

#[test]
fn the_gateways_command_is_reached() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| bentpipe(folder.path(), arguments);
    let [near, far] = ["near.key", "far.key"].map(|file| {
        let output = run(&["keygen", file]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    });
    assert_ne!(near, far);
    assert_eq!(run(&["keygen", "near.key"]).status.code(), Some(1), "a key is not overwritten");
    let again = run(&["pubkey", "near.key"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout).trim(), near, "the public key can be had again");
    std::fs::write(folder.path().join("bad.key"), "x").expect("a file");
    for (file, why) in [("none.key", "none.key: No such file"), ("bad.key", "bad.key is secret")] {
        let refused = run(&["pubkey", file]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && refused.stdout.is_empty() && said.contains(why), "{said}");
    }
    let text = format!(
        "name = \"near\"\n[tunnel]\nprivate_key = \"near.key\"\npeer_key = \"{far}\"\n[satellite]\nrate = \"1 Mbit/s\"\n\
         round_trip = \"600 ms\"\n[split]\ncapture = [\"lan0\"]\n"
    );
    std::fs::write(folder.path().join("near.toml"), &text).expect("a file");
    let shown = run(&["run", "--dry-run", "near.toml"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("tproxy ip6 to :4000"), "{shown:?}");
    std::fs::write(folder.path().join("near.toml"), text.replace("round_trip", "roundtrip")).expect("a file");
    let wrong = run(&["run", "near.toml"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(said.contains("near.toml:7:1") && said.contains("did you mean `round_trip`?"), "{said}");
}
