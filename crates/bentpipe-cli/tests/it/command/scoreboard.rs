//! `bentpipe scoreboard`.

use super::{folder, json, ok, refused};

const PART: [&str; 3] = ["scoreboard", "--only", "meo,2MB,linux-cubic,hybla,quic-bbr"];

#[test]
fn threads_change_nothing() {
    let folder = folder();
    let cells =
        |threads| json(&ok(folder.path(), &[&PART[..], &["--json", "--threads", threads]].concat()))["cells"].clone();
    let one = cells("1");
    // Two TCP variants and QUIC, each with four shapes; QUIC does not fit two of them.
    assert_eq!(one.as_array().map(Vec::len), Some(12));
    assert_eq!(one.as_array().expect("a list").iter().filter(|cell| cell["unfit"].is_string()).count(), 2);
    assert_eq!(cells("2"), one);
}

#[test]
fn files_have_what_was_run() {
    let folder = folder();
    let text = ok(folder.path(), &[&PART[..], &["--markdown", "board.md", "--csv", "board.csv"]].concat());
    assert!(text.contains("hybla") && text.contains("x limit"), "{text}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("it was written");
    assert!(read("board.md").contains("\n## meo\n") && !read("board.md").contains("## starlink"));
    let lines: Vec<String> = read("board.csv").lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 13);
    assert!(lines[1].starts_with("meo,own,2 MB,linux-cubic,plain,1,0,"), "{}", lines[1]);
}

#[test]
fn a_word_that_names_nothing_is_refused() {
    let folder = folder();
    let error = refused(folder.path(), 2, &["scoreboard", "--only", "250/3,starlnk"]);
    assert!(error.contains("`starlnk`") && error.contains("did you mean `starlink`?"), "{error}");
    let error = refused(folder.path(), 1, &["scoreboard", "--only", "meo,2MB", "--markdown", "."]);
    assert!(error.contains("it is a folder"), "{error}");
}
