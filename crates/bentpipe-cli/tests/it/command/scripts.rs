//! `bentpipe script`.

use serde_json::Value;

use super::{absent, folder, ok, refused, run};

/// packetdrill's scripts: one line for each. The exit code tells whether one failed.
#[test]
fn scripts_pass_fail_and_are_refused() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("writable");
    let open = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
        +0 < S 0:0(0) win 100 <mss 1000>\n";
    write("good.pkt", &format!("{open}+0 > S. 0:0(0) ack 1 <...>\n"));
    write("bad.pkt", &format!("{open}+0 > S. 0:0(0) ack 2 <...>\n"));
    write("other.pkt", "0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3\n");
    write("wrong.pkt", "0 soket 3\n");
    let text = ok(folder.path(), &["script", "good.pkt", "other.pkt"]);
    assert!(text.contains("passes       good.pkt") && text.contains("unsupported  other.pkt: UDP"), "{text}");
    let output = run(folder.path(), &["script", "good.pkt", "bad.pkt"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("fails        bad.pkt:5") && text.contains("expected: S. 0:0(0) ack 2"), "{text}");
    assert!(text.contains("got:      S. 0:0(0) ack 1"), "{text}");
    let json: Value =
        serde_json::from_str(&ok(folder.path(), &["script", "good.pkt", "--json", "--verbose"])).expect("JSON");
    assert_eq!((&json[0]["verdict"], json[0]["packets"].as_array().map(Vec::len)), (&Value::from("passes"), Some(2)));
    let error = refused(folder.path(), 2, &["script", "wrong.pkt"]);
    assert!(error.contains("wrong.pkt:1:9: `3`: expected `(`"), "{error}");
    assert!(refused(folder.path(), 2, &["script", "absent.pkt"]).contains(&absent("absent.pkt")));
    std::fs::create_dir_all(folder.path().join("bare/deep")).expect("writable");
    let error = refused(folder.path(), 2, &["script", "bare"]);
    assert!(error.contains("bare: no file in this folder ends in .pkt"), "{error}");
}

/// A link to a script is that script, in a folder too. Links to folders are not followed: a tree may link to its own root.
#[cfg(unix)]
#[test]
fn linked_scripts_are_scripts() {
    use std::os::unix::fs::symlink;
    let folder = folder();
    let tree = folder.path().join("tree");
    std::fs::create_dir(&tree).expect("writable");
    std::fs::write(folder.path().join("real.pkt"), "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n").expect("writable");
    symlink("../real.pkt", tree.join("linked.pkt")).expect("writable");
    symlink(".", tree.join("again")).expect("writable");
    symlink(".", tree.join("again.pkt")).expect("writable");
    assert_eq!(ok(folder.path(), &["script", "tree"]), "passes       tree/linked.pkt\n");
    let json: Value = serde_json::from_str(&ok(folder.path(), &["script", "tree", "--json"])).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(1), "{json}");
    // One whose file is gone is named.
    symlink("gone.pkt", tree.join("dangling.pkt")).expect("writable");
    let error = refused(folder.path(), 2, &["script", "tree"]);
    assert!(error.contains("tree/dangling.pkt: "), "{error}");
}

/// A folder of scripts compared with its expectation file.
#[test]
fn conformance_of_a_folder() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("writable");
    std::fs::create_dir(folder.path().join("tree")).expect("writable");
    write("tree/good.pkt", "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    write("tree/other.pkt", "0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3\n");
    write("tree/bad.pkt", "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n0 > S 0:0(0)\n");
    let head =
        "tree = 't'\nmarker = 'good.pkt'\n[[host]]\nprofile = 'linux'\n[unsupported]\n'UDP' = 'another protocol'\n";
    let allowed = "[[allowed]]\nscripts = ['bad.pkt']\ndifference = 'd'\nrfc = 'RFC 9293 §3'\nsentence = 'a sentence of some length'\n";
    write("e.toml", &format!("{head}{allowed}"));
    let text = ok(folder.path(), &["script", "tree", "--expect", "e.toml"]);
    assert!(text.contains("1 pass, 50.0 % of the 2 supported") && text.contains("1 UDP"), "{text}");
    write("e.toml", head);
    let output = run(folder.path(), &["script", "tree", "--expect", "e.toml"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("unexpected  bad.pkt: fails at line 2"), "{text}");
    write("f.toml", &head.replace("good.pkt", "elsewhere.pkt"));
    let error = refused(folder.path(), 2, &["script", "tree", "--expect", "f.toml", "f.toml"]);
    assert!(error.contains("no expectation file matches"), "{error}");
}
