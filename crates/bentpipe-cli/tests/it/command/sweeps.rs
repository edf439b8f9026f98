//! `bentpipe sweep`: whatever interrupts it, the final table equals that of an undisturbed sweep.

#[cfg(unix)]
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
#[cfg(unix)]
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use super::{bentpipe, folder, json, ok, refused, run};

/// 3 points, 2 candidates, 30 repetitions: 180 runs of some milliseconds.
const SWEEP: &str = r#"
scenario = "small.toml"
variants = ["sack", "newreno"]
repetitions = 30
[[axes]]
key = "links.sat.forward.loss"
values = ["0.5 %", "1 %", "2 %"]
"#;

const RUNS: u64 = 180;

fn with_sweep(text: &str) -> tempfile::TempDir {
    let folder = folder();
    std::fs::write(folder.path().join("s.toml"), text).expect("writable");
    folder
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    bentpipe(folder, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn table(folder: &Path) -> PathBuf {
    folder.join("s.sweep/table.parquet")
}

/// The table of an undisturbed sweep.
fn undisturbed(text: &str) -> Vec<u8> {
    let folder = with_sweep(text);
    ok(folder.path(), &["sweep", "s.toml"]);
    std::fs::read(table(folder.path())).expect("readable")
}

fn kept(folder: &Path) -> u64 {
    let state = json(&ok(folder, &["sweep", "s.toml", "--status", "--json"]));
    state["runs"].as_u64().expect("a number")
}

/// The size of the journal, bytes.
fn journal(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder.join("s.sweep")).into_iter().flatten().flatten();
    let logs = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".log"));
    logs.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}

/// Starts a sweep and waits until it has stored `runs` more runs, or has ended.
fn start_and_wait(folder: &Path, arguments: &[&str], runs: u64) -> Child {
    let (before, started) = (journal(folder), Instant::now());
    let mut child = start(folder, arguments);
    // A run takes 100 to 300 bytes, and the start of the journal less than 100.
    while journal(folder) < before + 100 + 300 * runs && child.try_wait().expect("ours").is_none() {
        assert!(started.elapsed() < Duration::from_secs(60), "no runs");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

#[test]
fn unfinished_runs_are_counted() {
    for (repetitions, note) in [(1, "1 run did not finish; it counts as"), (2, "2 runs did not finish; they count as")]
    {
        let text = "scenario = \"small.toml\"\n[set]\n\"time_limit\" = \"1 s\"\n\"links.sat.forward.loss\" = \"1 %\"\n";
        let folder = with_sweep(&format!("repetitions = {repetitions}\n{text}"));
        let report = ok(folder.path(), &["sweep", "s.toml"]);
        assert!(report.contains(note), "{report}");
    }
}

#[test]
fn threads_and_a_second_call_change_nothing() {
    let folder = with_sweep(SWEEP);
    let text = ok(folder.path(), &["sweep", "s.toml", "--threads", "1"]);
    assert!(text.contains("minus sack") && text.contains("180 of 180 runs and 3 of 3 points are done"), "{text}");
    let alone = std::fs::read(table(folder.path())).expect("readable");
    // A second time there is nothing to run, and the table is the same.
    let again = json(&ok(folder.path(), &["sweep", "s.toml", "--json"]));
    assert_eq!((&again["finished"], &again["runs"], &again["kept_runs"]), (&true.into(), &RUNS.into(), &RUNS.into()));
    assert!(std::fs::read(table(folder.path())).expect("readable") == alone);
    assert!(undisturbed(SWEEP) == alone, "one thread and all");
}

#[test]
fn where_nothing_is_random_one_run_is_made() {
    let folder = with_sweep(&SWEEP.replace("\"0.5 %\", \"1 %\", ", "\"0 %\", "));
    let text = ok(folder.path(), &["sweep", "s.toml"]);
    assert!(text.contains("Nothing is random at 1 point:") && text.contains("62 of 62 runs"), "{text}");
    let again = json(&ok(folder.path(), &["sweep", "s.toml", "--json"]));
    assert_eq!([&again["points"][0]["repetitions"], &again["points"][1]["repetitions"]], [1, 30], "{again}");
    let first = &again["points"][0]["candidates"][1];
    assert!(first["difference"]["median"].is_number() && first["difference"]["low"].is_null(), "{first}");
}

#[test]
fn the_numbers_are_those_of_compare() {
    let folder = with_sweep(&SWEEP.replace("\"0.5 %\", \"1 %\", ", ""));
    let sweep = json(&ok(folder.path(), &["sweep", "s.toml", "--json"]));
    let compare = ["compare", "small.toml", "--variants", "sack,newreno", "--reps", "30", "--json"];
    let compare = json(&ok(folder.path(), &compare));
    for n in 0..2 {
        let (ours, theirs) = (&sweep["points"][0]["candidates"][n], &compare["variants"][n]);
        assert_eq!((&ours["value"]["median"], &ours["x_limit"]), (&theirs["median"], &theirs["x_limit"]));
        assert_eq!(ours["finished"], 30);
    }
}

/// The scenario's flow ends, but the sweep replaces it by an endless one.
#[test]
fn endless_flows_are_compared_by_their_goodput() {
    let set = "[set]\ntime_limit = \"9 s\"\nflows.data.greedy = true\n";
    let folder =
        with_sweep(&format!("scenario = \"small.toml\"\nvariants = [\"sack\", \"newreno\"]\nrepetitions = 1\n{set}"));
    let text = ok(folder.path(), &["sweep", "s.toml"]);
    assert!(text.starts_with("s: goodput of all flows (Mbit/s)\n"), "{text}");
    let sweep = json(&ok(folder.path(), &["sweep", "s.toml", "--json"]));
    let compare = ["compare", "small.toml", "--variants", "sack,newreno", "--reps", "1", "--json"];
    let same = ["--set", "flows.data.greedy=true", "--set", "time_limit=9 s"];
    let compare = json(&ok(folder.path(), &[&compare[..], &same].concat()));
    assert_eq!(sweep["measure"], compare["measure"]);
    assert_eq!(sweep["points"][0]["candidates"][1]["value"]["median"], compare["variants"][1]["median"]);
}

/// A pipe can be read once.
#[cfg(unix)]
#[test]
fn a_sweep_file_may_be_a_pipe() {
    let folder = folder();
    let mut child = bentpipe(folder.path(), &["sweep", "/dev/stdin", "--out", "out"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let text = "scenario = \"geo\"\nrepetitions = 1\n[set]\nflows.download.bytes = \"10 kB\"\n";
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let table = std::fs::read(folder.path().join("out/table.parquet")).expect("readable");
    // The metadata has the sweep file.
    assert!(table.windows(text.len()).any(|part| part == text.as_bytes()));
}

#[cfg(unix)]
#[test]
fn kill_9_loses_and_repeats_no_run() {
    let folder = with_sweep(SWEEP);
    let mut before = 0;
    for _ in 0..12 {
        let mut child = start_and_wait(folder.path(), &["sweep", "s.toml", "--threads", "2"], 5);
        child.kill().expect("SIGKILL");
        child.wait().expect("it ends");
        let now = kept(folder.path());
        if now == RUNS {
            break;
        }
        assert!(now >= before + 5, "{now} runs, {before} before");
        before = now;
    }
    assert!(before >= 15, "{before} runs were kept over the kills");
    ok(folder.path(), &["sweep", "s.toml"]);
    assert!(std::fs::read(table(folder.path())).expect("readable") == undisturbed(SWEEP));
    // Each run is in the parts exactly once.
    let state = json(&ok(folder.path(), &["sweep", "s.toml", "--status", "--json"]));
    assert_eq!((&state["kept_runs"], &state["in_journal"]), (&RUNS.into(), &0.into()));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_within_a_second_and_keeps_the_work() {
    let text = SWEEP.replace("repetitions = 30", "repetitions = 30000");
    for signal in ["-INT", "-TERM"] {
        let folder = with_sweep(&text);
        let child = start_and_wait(folder.path(), &["sweep", "s.toml"], 20);
        let pressed = Instant::now();
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill").success());
        let output = child.wait_with_output().expect("it ends");
        // One second, and as much again for a busy machine.
        assert!(pressed.elapsed() < Duration::from_secs(2), "{:?}", pressed.elapsed());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{error}");
        assert!(error.contains("interrupted") && error.contains("the same command continues"), "{error}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("newreno"), "the table so far");
        assert!(kept(folder.path()) >= 20 && !table(folder.path()).exists());
    }
}

#[cfg(unix)]
#[test]
fn a_full_disk_loses_and_repeats_no_run() {
    let folder = with_sweep(SWEEP);
    // A limit on file sizes makes a write stop in the middle and then fail, as a full disk does.
    let limited = |blocks: u32| -> Output {
        let command = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" sweep s.toml --threads 2");
        let shell = Command::new("sh")
            .args(["-c", &command, env!("CARGO_BIN_EXE_bentpipe")])
            .current_dir(folder.path())
            .output();
        shell.expect("a shell")
    };
    let mut before = 0;
    // Blocks have 512 B in dash and 1024 B in bash. Both allow less than the 180 runs need.
    for blocks in [4, 8, 12, 16] {
        let output = limited(blocks);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{blocks}: {error}");
        assert!(error.contains("s.sweep/journal-000001.log: File too large"), "{error}");
        assert!(error.contains("the same command continues"), "{error}");
        let now = kept(folder.path());
        assert!(now > before, "{blocks} blocks: {now} runs, {before} before");
        before = now;
    }
    assert!(before < RUNS);
    ok(folder.path(), &["sweep", "s.toml"]);
    assert!(std::fs::read(table(folder.path())).expect("readable") == undisturbed(SWEEP));
}

/// A full disk: a small tmpfs in a mount namespace, which needs root.
#[cfg(target_os = "linux")]
#[test]
fn a_small_disk_loses_and_repeats_no_run() {
    let folder = with_sweep(SWEEP);
    let inner = folder.path().join("s.sweep");
    std::fs::create_dir(&inner).expect("writable");
    let script = "mount -t tmpfs -o size=16k sweep s.sweep || exit 77
        \"$0\" sweep s.toml --threads 2; first=$?
        cp s.sweep/journal-* kept.log
        mount -o remount,size=10m s.sweep && \"$0\" sweep s.toml && cp s.sweep/table.parquet table.parquet
        echo \"$first $?\"";
    let command = ["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_bentpipe")];
    let Ok(output) = Command::new("unshare").args(command).current_dir(folder.path()).output() else { return };
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(77) || error.contains("Operation not permitted") {
        eprintln!("skipped: needs root");
        return;
    }
    assert!(out.ends_with("1 0\n"), "{out}\n{error}");
    assert!(error.contains("No space left on device") && error.contains("the same command continues"), "{error}");
    let journal = std::fs::metadata(folder.path().join("kept.log")).expect("kept").len();
    assert!(journal > 4096, "{journal} B of runs fitted on the disk");
    assert!(std::fs::read(folder.path().join("table.parquet")).expect("readable") == undisturbed(SWEEP));
}

#[test]
fn a_rule_stops_points_that_are_known() {
    let rule = format!("{SWEEP}[stop]\ntolerance = \"3 %\"\nmin = 6\n").replace("repetitions = 30", "repetitions = 60");
    let folder = with_sweep(&rule);
    let text = json(&ok(folder.path(), &["sweep", "s.toml", "--json", "--threads", "1"]));
    let points = text["points"].as_array().expect("a list");
    assert!(points[2]["repetitions"].as_u64().expect("a number") > 6, "{text}");
    for point in points.iter().filter(|point| point["repetitions"] != 60) {
        let half = &point["candidates"][1]["difference"];
        let length = half["high"].as_f64().expect("a number") - half["low"].as_f64().expect("a number");
        let base = point["candidates"][0]["value"]["median"].as_f64().expect("a number");
        assert!(length / 2.0 <= 0.03 * base, "{point}");
    }
    let alone = std::fs::read(table(folder.path())).expect("readable");
    assert!(undisturbed(&rule) == alone, "one thread and all");
}

#[test]
fn two_sweeps_do_not_share_a_folder() {
    let folder = with_sweep(&SWEEP.replace("repetitions = 30", "repetitions = 30000"));
    let mut child = start_and_wait(folder.path(), &["sweep", "s.toml"], 1);
    let error = refused(folder.path(), 1, &["sweep", "s.toml"]);
    assert!(error.contains("another sweep is running here") && error.contains(&child.id().to_string()), "{error}");
    assert!(kept(folder.path()) > 0, "to look is allowed");
    child.kill().expect("SIGKILL");
    child.wait().expect("it ends");
}

#[test]
fn a_changed_file_keeps_the_runs_that_it_still_wants() {
    let folder = with_sweep(SWEEP);
    ok(folder.path(), &["sweep", "s.toml"]);
    let more = SWEEP.replace("\"2 %\"", "\"2 %\", \"3 %\"").replace("repetitions = 30", "repetitions = 20");
    std::fs::write(folder.path().join("s.toml"), &more).expect("writable");
    let state = json(&ok(folder.path(), &["sweep", "s.toml", "--status", "--json"]));
    assert_eq!((&state["runs"], &state["runs_at_most"], &state["points_done"]), (&120.into(), &160.into(), &3.into()));
    ok(folder.path(), &["sweep", "s.toml"]);
    assert!(std::fs::read(table(folder.path())).expect("readable") == undisturbed(&more));
}

#[test]
fn mistakes_are_found_before_a_run() {
    let folder = with_sweep(&SWEEP.replace("links.sat.forward.loss", "links.sat.forward.los"));
    let error = refused(folder.path(), 2, &["sweep", "s.toml"]);
    assert!(error.contains("s.toml:6") && error.contains("did you mean `loss`?"), "{error}");
    assert!(!folder.path().join("s.sweep").exists());
    let output = run(folder.path(), &["sweep", "absent.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("absent.toml"));
    std::fs::write(folder.path().join("s.toml"), SWEEP).expect("writable");
    for status in [&[][..], &["--status"]] {
        let error = refused(folder.path(), 1, &[&["sweep", "s.toml", "--out", "s.toml"], status].concat());
        assert!(error.contains("s.toml: it is no folder"), "{error}");
    }
}

#[test]
fn results_are_shown_where_the_table_cannot_be_written() {
    let folder = with_sweep(SWEEP);
    std::fs::create_dir_all(table(folder.path())).expect("writable");
    let output = run(folder.path(), &["sweep", "s.toml"]);
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(out.contains("newreno") && !out.contains("all runs:"), "{out}");
    assert_eq!(error.matches("table.parquet").count(), 1, "{error}");
    assert!(error.contains("it is a folder") && error.contains("180 runs kept in s.sweep"), "{error}");
    std::fs::remove_dir(table(folder.path())).expect("empty");
    ok(folder.path(), &["sweep", "s.toml"]);
    assert!(std::fs::read(table(folder.path())).expect("readable") == undisturbed(SWEEP));
}

#[test]
fn an_axis_that_changes_nothing_is_refused() {
    let folder = folder();
    let scenario = super::SMALL
        .replace("forward.queue", "forward.rate = \"2 Mbit/s\"\nbackward.rate = \"1 Mbit/s\"\nforward.queue");
    std::fs::write(folder.path().join("small.toml"), scenario).expect("writable");
    let sweep = "scenario = \"small.toml\"\nvariants = [\"sack\"]\n[[axes]]\nkey = \"links.sat.rate\"\nvalues = [\"1 Mbit/s\", \"5 Mbit/s\"]\n";
    std::fs::write(folder.path().join("sweep.toml"), sweep).expect("writable");
    let error = refused(folder.path(), 2, &["sweep", "sweep.toml"]);
    assert!(error.contains("sweep.toml:4:") && error.contains("`links.sat.rate` has no effect"), "{error}");
    std::fs::write(folder.path().join("sweep.toml"), sweep.replace("small.toml", "smal")).expect("writable");
    let error = refused(folder.path(), 2, &["sweep", "sweep.toml"]);
    assert!(error.contains("there is no file `smal` and no shipped scenario `smal`"), "{error}");
}

/// A file that cannot be read is not replaced by the shipped scenario of its name, of which the user would not learn.
#[test]
fn an_unreadable_scenario_is_not_replaced() {
    let folder = folder();
    std::fs::write(folder.path().join("sweep.toml"), "scenario = \"geo\"\nvariants = [\"nonesuch\"]\n")
        .expect("writable");
    std::fs::write(folder.path().join("geo"), b"name = \"\xff\"\n").expect("writable");
    let error = refused(folder.path(), 2, &["sweep", "sweep.toml"]);
    assert!(error.contains("`geo` cannot be read: line 1 is not text"), "{error}");
    // A folder is no file.
    std::fs::remove_file(folder.path().join("geo")).expect("it is there");
    std::fs::create_dir(folder.path().join("geo")).expect("writable");
    let error = refused(folder.path(), 2, &["sweep", "sweep.toml"]);
    assert!(error.contains("nonesuch"), "{error}");
}
