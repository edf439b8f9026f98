//! The command from its user's view: what it prints, what it leaves behind, and how it ends.

#[cfg(target_os = "linux")]
mod files;
#[cfg(unix)]
mod interrupts;
mod keys;
mod models;
mod outputs;
mod reports;
mod scoreboard;
mod scripts;
mod sweeps;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// 300 kB over a lossy link: runs in a moment.
pub(crate) const SMALL: &str = r#"
name = "small"
[[links]]
name = "sat"
between = ["A", "B"]
rate = "2 Mbit/s"
delay = "250 ms"
forward.queue = "50 packets"
forward.loss = "2 %"
[[flows]]
name = "data"
from = "A"
to = "B"
bytes = "300 kB"
"#;

/// Like `small`, but it runs for days.
const ENDLESS: [&str; 4] = ["--set", "flows.data.bytes=1 TB", "--set", "time_limit=10000000 s"];

/// The exit code that a shell shows for a program ended by SIGPIPE.
const CLOSED: i32 = 141;

fn bentpipe(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
    command.current_dir(folder).args(arguments).env_remove("NO_COLOR");
    command
}

pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Output {
    bentpipe(folder, arguments).output().expect("the binary starts")
}

pub(crate) fn ok(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {:?}\n{error}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

/// The standard error of a command that must end with this code and print nothing to standard output.
pub(crate) fn refused(folder: &Path, code: i32, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{error}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(!error.contains("panicked"), "{error}");
    error
}

/// What is said of a file that is not there, in the system's words.
fn absent(name: &str) -> String {
    let words = std::fs::read(name).expect_err("it is not there");
    format!("{name}: {words}")
}

pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("small.toml"), SMALL).expect("writable");
    folder
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("readable");
    let mut names: Vec<_> = entries.map(|e| e.expect("readable").file_name().into_string().expect("plain")).collect();
    names.sort();
    names
}

#[test]
fn help_has_examples_that_are_taken() {
    let folder = folder();
    let help = ok(folder.path(), &["--help"]);
    for word in [
        "demo",
        "run",
        "compare",
        "recommend",
        "reproduce",
        "model",
        "explain",
        "scenarios",
        "variants",
        "schema",
        "emulate",
        "shell",
        "verify",
        "Exit codes",
    ] {
        assert!(help.contains(word), "{word}: {help}");
    }
    let others = [&["emulate"][..], &["shell"], &["verify"]];
    let commands = [&["run"][..], &["compare"], &["reproduce"], &["model", "hybrid"], &["explain"]];
    for command in commands.into_iter().chain(others) {
        let help = ok(folder.path(), &[command, &["--help"]].concat());
        assert!(help.contains("Examples:\n  bentpipe"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        // The text below the options is formatted for 80 columns. clap breaks longer lines without aligning them.
        let (_, more) = help.split_once("Examples:").expect("there are examples");
        assert!(more.lines().all(|line| line.chars().count() <= 80), "{more}");
    }
    assert_eq!(ok(folder.path(), &["--version"]), format!("bentpipe {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(run(folder.path(), &[]).status.code(), Some(2));
    assert_eq!(run(folder.path(), &["run"]).status.code(), Some(2));
}

#[test]
fn a_run_says_what_was_and_how_to_make_it_again() {
    let folder = folder();
    let text = ok(folder.path(), &["run", "small.toml", "--seed", "3"]);
    for word in ["data", "x limit", "sat/forward", "channel", "seed 3: bentpipe run small.toml --seed 3"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let run = json(&ok(folder.path(), &["run", "small.toml", "--seed", "3", "--json"]));
    let flow = &run["flows"][0];
    let (time, min) = (flow["time_s"].as_f64().expect("done"), flow["limit_time_s"].as_f64().expect("finite"));
    assert!(time > min && (flow["x_limit"].as_f64().expect("both") - time / min).abs() < 1e-12, "{flow}");
    assert_eq!((&run["seed"], &run["interrupted"], &flow["bytes"]), (&3.into(), &false.into(), &300_000.into()));
    assert_eq!(run["command"], "bentpipe run small.toml --seed 3 --json");
    // The scenario in the file gives the same run.
    std::fs::write(folder.path().join("again.toml"), run["scenario"].as_str().expect("text")).expect("writable");
    let again = json(&ok(folder.path(), &["run", "again.toml", "--json"]));
    assert_eq!((&again["flows"], &again["links"]), (&run["flows"], &run["links"]));
    // So does the printed hint.
    let hint = text.lines().find_map(|line| line.strip_prefix("scenario in full: bentpipe ")).expect("it is there");
    let resolved = ok(folder.path(), &hint.split(' ').collect::<Vec<_>>());
    assert_eq!(resolved, run["scenario"].as_str().expect("text"));
}

#[test]
fn shipped_scenarios_run_by_name_and_a_file_comes_first() {
    let folder = folder();
    let shipped = json(&ok(folder.path(), &["run", "transat", "--json"]));
    assert_eq!(shipped["flows"][0]["variant"], "ref");
    // A folder of that name is no scenario.
    std::fs::create_dir(folder.path().join("transat")).expect("writable");
    let beside = json(&ok(folder.path(), &["run", "transat", "--json"]));
    assert_eq!(beside["flows"], shipped["flows"]);
    std::fs::remove_dir(folder.path().join("transat")).expect("it is empty");
    std::fs::write(folder.path().join("transat"), SMALL).expect("writable");
    let own = json(&ok(folder.path(), &["run", "transat", "--json"]));
    assert_eq!(own["flows"][0]["variant"], "sack");
    let error = refused(folder.path(), 2, &["run", "transit"]);
    assert!(error.contains("did you mean `transat`?"), "{error}");
}

#[test]
fn settings_and_variants_change_the_run() {
    let folder = folder();
    let limit = |arguments: &[&str]| {
        let run = json(&ok(folder.path(), &[&["run", "small.toml", "--json"], arguments].concat()));
        (run["flows"][0]["limit_time_s"].as_f64().expect("finite"), run["flows"][0]["variant"].clone())
    };
    let (far, near) = (limit(&[]), limit(&["--set", "links.sat.delay=20 ms", "--variant", "tahoe"]));
    // Three one-way delays of 230 ms less: SYN, SYN-ACK, data.
    assert!((far.0 - near.0 - 0.690).abs() < 1e-6, "{far:?} {near:?}");
    assert_eq!((far.1, near.1), ("sack".into(), "tahoe".into()));
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let folder = folder();
    let error = refused(folder.path(), 2, &["run", "small.toml", "--variant", "snack"]);
    assert!(error.contains("no variant `snack`") && error.contains("did you mean `sack`?"), "{error}");
    // This once ran QUIC's own control under the name of TCP's.
    let error = refused(folder.path(), 2, &["compare", "geo-quic", "--variants", "bbr", "--reps", "1"]);
    assert!(error.contains("no flow uses TCP, so `bbr` would change nothing") && error.contains("quic-bbr"), "{error}");
    let error = refused(folder.path(), 2, &["run", "small.toml", "--set", "links.sat.dealy=1 ms"]);
    assert!(error.contains("did you mean `delay`?") && error.contains("^^^^^"), "{error}");
    let error = refused(folder.path(), 2, &["run", "small.toml", "--set", "links.sat.delay=1"]);
    assert!(error.contains("--set"), "{error}");
    let error = refused(folder.path(), 2, &["run", "small.toml", "--set", "nonsense"]);
    assert!(error.contains("KEY=VALUE"), "{error}");
    std::fs::write(folder.path().join("bad.toml"), SMALL.replace("250 ms", "250")).expect("writable");
    let error = refused(folder.path(), 2, &["run", "bad.toml"]);
    assert!(error.contains("bad.toml:7") && error.contains("delay"), "{error}");
    let error = refused(folder.path(), 2, &["run", "small.toml", "--pcap", "x.pcapng", "--tap", "sat/forwrd"]);
    assert!(error.contains("sat/forward:in"), "{error}");
    let error = refused(folder.path(), 2, &["run", "small.toml", "--trace", "x.txt"]);
    assert!(error.contains("x.txt") && error.contains(".parquet"), "{error}");
    let error = refused(folder.path(), 2, &["compare", "small.toml", "--variants", "sack,newrno"]);
    assert!(error.contains("did you mean `newreno`?"), "{error}");
    let error = refused(folder.path(), 2, &["reproduce", "transat", "--table", "15"]);
    assert!(error.contains("no table 15"), "{error}");
    let error = refused(folder.path(), 2, &["run", "small.toml", "--set", "links.sat.queue=fq_codel"]);
    assert!(error.contains("is a discipline") && error.contains("discipline = \"fq-codel\""), "{error}");
    assert_eq!(names(folder.path()), ["bad.toml", "small.toml"], "nothing is left of what was refused");
}

#[test]
fn files_are_whole_or_not_there() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("out")).expect("writable");
    let outputs = ["--trace", "out/t.csv", "--pcap", "out/p.pcapng", "--tap", "all", "--plot", "out/s.svg"];
    ok(folder.path(), &[&["run", "small.toml"], &outputs[..]].concat());
    assert_eq!(names(&folder.path().join("out")), ["p.pcapng", "s.svg", "t.csv"]);
    let read = |name: &str| std::fs::read(folder.path().join("out").join(name)).expect("readable");
    let table = String::from_utf8(read("t.csv")).expect("text");
    assert!(table.starts_with("time_ns,who,event") && table.contains(",data/sender,sent,"), "{}", &table[..200]);
    assert!(table.contains(",sat/forward,dropped,"));
    let svg = String::from_utf8(read("s.svg")).expect("text");
    assert!(svg.contains("<desc>bentpipe") && svg.contains("sequence number"));
    assert!(read("p.pcapng").windows(12).any(|at| at == b"bentpipe run"), "the comment says how to make it again");
    // Each run writes the same bytes.
    let before = [read("t.csv"), read("p.pcapng"), read("s.svg")];
    ok(folder.path(), &[&["run", "small.toml"], &outputs[..]].concat());
    assert!(before == [read("t.csv"), read("p.pcapng"), read("s.svg")]);
}

#[test]
fn what_cannot_be_written_is_named() {
    let folder = folder();
    for option in ["--trace=small.toml/t.csv", "--pcap=small.toml/p.pcapng", "--plot=small.toml/s.svg"] {
        let error = refused(folder.path(), 1, &["run", "small.toml", option]);
        assert!(error.contains("small.toml"), "{error}");
    }
    let error = refused(folder.path(), 1, &["demo", "--out", "small.toml"]);
    assert!(error.contains("small.toml"), "{error}");
    assert_eq!(std::fs::read_to_string(folder.path().join("small.toml")).expect("readable"), SMALL);
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_named_and_leaves_nothing() {
    let folder = folder();
    for option in ["--trace=t.csv", "--trace=t.parquet", "--pcap=p.pcapng"] {
        // No file may exceed 8 blocks. The signal for this is ignored, so that a write fails as on a full disk.
        let script =
            format!("trap '' XFSZ; ulimit -f 8; exec \"$0\" run small.toml {option} --set flows.data.bytes='1 MB'");
        let output = Command::new("bash")
            .args(["-c", &script, env!("CARGO_BIN_EXE_bentpipe")])
            .current_dir(folder.path())
            .output()
            .expect("bash");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{option}: {error}");
        assert!(error.contains(option.split_once('=').expect("both").1), "{option}: {error}");
        // The run completes nevertheless, and its result is shown.
        assert!(String::from_utf8_lossy(&output.stdout).contains("x limit"));
        assert_eq!(names(folder.path()), ["small.toml"]);
    }
}

#[test]
fn transfers_that_do_not_end_fail_the_run() {
    let folder = folder();
    let output = run(folder.path(), &["run", "small.toml", "--set", "time_limit=1 s"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("time limit of 1 s"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("data"), "what there is, is shown");
}

#[test]
fn a_comparison_is_paired_and_does_not_depend_on_threads() {
    let folder = folder();
    let compare = |threads: &str| {
        let arguments =
            ["compare", "small.toml", "--variants", "sack,sack,tahoe", "--reps", "10", "--json", "--threads"];
        let mut value = json(&ok(folder.path(), &[&arguments[..], &[threads]].concat()));
        value["command"] = Value::Null;
        value
    };
    let comparison = compare("1");
    assert_eq!(comparison, compare("3"));
    let rows = &comparison["variants"];
    assert_eq!((&comparison["measure"], &comparison["reps"]), (&"slowest-time-s".into(), &10.into()));
    // The same variant in the same fades.
    let same = &rows[1]["ratio_to_first"];
    assert_eq!((&same["estimate"], &same["low"], &same["high"]), (&1.0.into(), &1.0.into(), &1.0.into()));
    let tahoe = &rows[2]["ratio_to_first"];
    let [low, estimate, high] = ["low", "estimate", "high"].map(|key| tahoe[key].as_f64().expect("ten pairs"));
    assert!(low <= estimate && estimate <= high, "{tahoe}");
    assert_ne!(rows[0]["mean"], rows[2]["mean"], "{rows}");
    let text = ok(folder.path(), &["compare", "small.toml", "--variants", "sack,tahoe", "--reps", "3"]);
    assert!(text.contains("over sack") && text.contains("x limit"), "{text}");
}

#[test]
fn a_paper_comes_as_rows() {
    let folder = folder();
    let arguments = ["reproduce", "transat", "--table", "1", "--json"];
    let whole = json(&ok(folder.path(), &arguments));
    let rows = whole["rows"].as_array().expect("a list");
    for verdict in ["match", "shape", "differs", "built", "decision", "missing"] {
        let count = rows.iter().filter(|row| row["verdict"] == verdict).count();
        assert_eq!(whole["counts"][verdict], count, "{verdict}");
    }
    assert!(rows.len() >= 48 && rows.iter().all(|row| row["verdict"].is_string()), "{rows:?}");
    let text = ok(folder.path(), &["reproduce", "transat", "--figure", "2", "--out", "figures"]);
    assert!(text.contains("T-F02"), "{text}");
    assert_eq!(names(&folder.path().join("figures")), ["T-F02.csv", "T-F02.svg"]);
}

#[test]
fn scenarios_are_explained() {
    let folder = folder();
    let text = ok(folder.path(), &["explain", "transat", "--variant", "enh"]);
    for word in ["137.5 kB, 138 packets of 1000 B", "49 packets, 49 kB, 196 ms, 0.36 BDP", "slow start will overshoot"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(text.contains("SACK pipe (ns-2)") && text.contains("the first 10 at once"), "{text}");
    let explained = json(&ok(folder.path(), &["explain", "transat", "--json"]));
    assert_eq!(explained["flows"][0]["rtt_ms"], 550.0);
    let starlink = ok(folder.path(), &["explain", "starlink"]);
    assert!(starlink.contains("6 ms there, 42.118 ms back, 48.118 ms round trip, on average"), "{starlink}");
    let jitter = ["--set", "links.sat.jitter={ delay = { uniform = [\"0 ms\", \"20 ms\"] } }"];
    let jitter = ok(folder.path(), &[&["explain", "geo"][..], &jitter].concat());
    assert!(jitter.contains("sat/forward  jitter adds 0 ms to 20 ms to the delay"), "{jitter}");
    assert_eq!(json(&ok(folder.path(), &["schema"]))["title"], "bentpipe scenario");
    assert!(ok(folder.path(), &["scenarios"]).contains("request-response"));
    let variants = ok(folder.path(), &["variants", "transat"]);
    assert!(variants.contains("newreno-sbs") && variants.contains("ref-iw4"), "{variants}");
    let links = "name = \"links\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let links = format!("{links}[variants.mine]\nbase = \"sack\"\ndescription = \"ours\"\n");
    std::fs::write(folder.path().join("links.toml"), links).expect("writable");
    let variants = ok(folder.path(), &["variants", "links.toml"]);
    assert!(variants.contains("mine") && variants.contains("ours"), "{variants}");
}

#[test]
fn the_demo_shows_eight_and_draws_why() {
    let folder = folder();
    let text = ok(folder.path(), &["demo", "--out", "pictures"]);
    assert!(text.contains("60.81") && text.contains("9.13") && text.contains("SACK today"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("##")).count(), 8, "{text}");
    assert_eq!(names(&folder.path().join("pictures")), ["bentpipe-demo.svg"]);
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let folder = folder();
    for arguments in [&["schema"][..], &["run", "small.toml", "--json"], &["explain", "geo"]] {
        let mut child = bentpipe(folder.path(), arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        let mut error = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(CLOSED), "{arguments:?}: {error}");
        assert_eq!(error, "", "{arguments:?}");
    }
}

#[test]
fn standard_input_is_a_scenario_too() {
    let folder = folder();
    let resolved = ok(folder.path(), &["explain", "--resolved", "small.toml"]);
    let mut child =
        bentpipe(folder.path(), &["run", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), resolved.as_bytes()).expect("it reads");
    let first = BufReader::new(child.stdout.take().expect("piped")).lines().next().expect("a line").expect("text");
    assert_eq!(first, "small");
    child.wait().expect("it ends");
}
