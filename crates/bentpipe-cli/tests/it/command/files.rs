//! Names of outputs: inputs are kept, missing folders are not created, and endings determine the kind of file.

use super::{bentpipe, folder, ok, refused};

/// Inputs are recognised by device and inode, not by name.
#[cfg(unix)]
#[test]
fn an_input_is_not_overwritten() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("small.toml", path("link.svg")).expect("writable");
    std::fs::hard_link(path("small.toml"), path("same.toml")).expect("writable");
    std::fs::create_dir(path("out")).expect("writable");
    std::fs::hard_link(path("small.toml"), path("out/near.toml")).expect("writable");
    let before = std::fs::read(path("small.toml")).expect("readable");
    for arguments in [
        &["report", "small.toml", "--no-recommend", "--out", "./small.toml"][..],
        &["run", "small.toml", "--plot", "link.svg"],
        &["run", "small.toml", "--pcap", "same.toml"],
        &["compare", "small.toml", "--variants", "sack", "--reps", "1", "--junit", "same.toml"],
        &["recommend", "small.toml", "--no-flips", "--write", "same.toml"],
        &["recommend", "small.toml", "--no-flips", "--write", "out"],
        &["fit", "small.toml", "--write", "same.toml"],
    ] {
        let error = refused(folder.path(), 2, arguments);
        assert!(error.contains("is read by this command, which would overwrite it"), "{arguments:?}: {error}");
        assert_eq!(std::fs::read(path("small.toml")).expect("readable"), before, "{arguments:?}");
    }
    // A trace named by the scenario is an input, too.
    std::fs::write(path("up.csv"), "1\n2\n").expect("writable");
    let text = String::from_utf8(before).expect("text").replace("rate = \"2 Mbit/s\"", "rate_trace = \"up.csv\"");
    std::fs::write(path("traced.toml"), text).expect("writable");
    let error = refused(folder.path(), 2, &["run", "traced.toml", "--trace", "up.csv"]);
    assert!(error.contains("up.csv is read by this command"), "{error}");
}

/// A mistyped name creates no folder and starts no run.
#[test]
fn a_folder_is_made_only_where_one_is_asked_for() {
    let folder = folder();
    for arguments in [
        &["run", "small.toml", "--plot", "missing/a.svg"][..],
        &["run", "small.toml", "--trace", "missing/a.csv"],
        &["run", "small.toml", "--pcap", "missing/a.pcapng"],
        &["report", "small.toml", "--no-recommend", "--out", "missing/a.html"],
        &["compare", "small.toml", "--variants", "sack", "--reps", "1", "--junit", "missing/a.xml"],
        &["recommend", "small.toml", "--no-flips", "--write", "missing/a.toml"],
        &["scoreboard", "--only", "250/3,1 %,2 MB,plain,sack", "--csv", "missing/a.csv"],
        &["reproduce", "stp", "--table", "2", "--reps", "2", "--report", "missing/a.html"],
    ] {
        let error = refused(folder.path(), 1, arguments);
        assert!(error.contains("there is no folder missing"), "{arguments:?}: {error}");
        assert!(!folder.path().join("missing").exists(), "{arguments:?}");
    }
    ok(folder.path(), &["demo", "--out", "deep/pictures"]);
    assert!(folder.path().join("deep/pictures/bentpipe-demo.svg").exists());
    ok(folder.path(), &["man", "deep/pages"]);
    let page = std::fs::read_to_string(folder.path().join("deep/pages/bentpipe-run.1")).expect("it is there");
    assert!(page.contains(".SH EXAMPLES\n.in 2n\n.nf\n  bentpipe run geo\n"), "the examples are in lines: {page}");
}

/// "File exists" was no help, and `recommend` said it after its runs.
#[test]
fn a_file_is_no_folder() {
    let folder = folder();
    std::fs::write(folder.path().join("taken"), "mine").expect("writable");
    for arguments in [&["man", "taken"][..], &["reference", "--out", "taken"], &["demo", "--out", "taken"]] {
        let error = refused(folder.path(), 1, arguments);
        assert!(error.contains("error: taken: it is no folder"), "{arguments:?}: {error}");
        assert_eq!(std::fs::read_to_string(folder.path().join("taken")).expect("readable"), "mine");
    }
    if cfg!(unix) {
        // Endless without the check.
        let recommend = [&["recommend", "small.toml", "--write", "/dev/null"], &super::ENDLESS[..]].concat();
        let error = refused(folder.path(), 1, &recommend);
        assert!(error.contains("error: /dev/null: it is no folder"), "{error}");
        for (path, error) in [("taken/boxes", "taken/boxes: "), ("/proc", "files cannot be written to /proc: ")] {
            let recommend = [&["recommend", "small.toml", "--write", path], &super::ENDLESS[..]].concat();
            let told = refused(folder.path(), 1, &recommend);
            assert!(told.contains(&format!("error: {error}")), "{told}");
        }
    }
}

/// The message named the folder.
#[test]
fn a_page_that_cannot_be_written_is_named() {
    let folder = folder();
    std::fs::create_dir_all(folder.path().join("pages/bentpipe-fit.1")).expect("writable");
    let error = refused(folder.path(), 1, &["man", "pages"]);
    assert!(error.contains("bentpipe-fit.1: it is a folder"), "{error}");
}

/// A path below a file cannot be examined, like one in a closed folder. The file may exist.
#[test]
fn what_cannot_be_looked_at_is_not_said_to_be_missing() {
    let folder = folder();
    let error = refused(folder.path(), 2, &["run", "small.toml/x.toml"]);
    assert!(error.contains("small.toml/x.toml: Not a directory"), "{error}");
    let error = refused(folder.path(), 2, &["run", "none/x.toml"]);
    assert!(error.contains("there is no file `none/x.toml` and no shipped scenario"), "{error}");
    // The name of a scenario, where the file of a sweep is expected.
    let error = refused(folder.path(), 2, &["sweep", "geo"]);
    assert!(error.contains("there is no sweep file `geo`") && error.contains("names a scenario"), "{error}");
    let error = refused(folder.path(), 1, &["demo", "--out", "/proc"]);
    assert!(error.contains("files cannot be written to /proc") && error.contains("help: `--out DIR`"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_text_is_named() {
    use std::os::unix::ffi::OsStringExt;

    let folder = folder();
    let name = std::ffi::OsString::from_vec(b"b\xff.toml".to_vec());
    let output = bentpipe(folder.path(), &["run"]).arg(name).output().expect("the binary starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("\"b\\xFF.toml\" is not UTF-8"), "{error}");
}

#[test]
fn an_ending_says_what_a_file_is() {
    let folder = folder();
    let error = refused(folder.path(), 2, &["report", "small.toml", "--no-recommend", "--out", "page.toml"]);
    assert!(error.contains("page.toml: a page's name must end in .html or .htm"), "{error}");
    ok(folder.path(), &["report", "small.toml", "--no-recommend", "--out", "page.HTM"]);
    ok(folder.path(), &["report", "small.toml", "--no-recommend", "--out", "/dev/null"]);
    let write =
        |name: &str| ["recommend", "small.toml", "--no-flips", "--reps", "2", "--write", name].map(str::to_owned);
    let words = write("x.json");
    let error = refused(folder.path(), 2, &words.each_ref().map(String::as_str));
    assert!(error.contains("x.json: a scenario's name ends in .toml, not .json"), "{error}");
    assert!(!folder.path().join("x.json").exists());
    std::fs::create_dir(folder.path().join("boxes.1")).expect("writable");
    ok(folder.path(), &write("boxes.1").each_ref().map(String::as_str));
    assert!(folder.path().join("boxes.1/scenario.toml").exists());
}
