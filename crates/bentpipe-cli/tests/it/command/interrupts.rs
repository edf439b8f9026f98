//! The state after Ctrl-C.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{ENDLESS, bentpipe, folder, json, names};

/// Sends SIGINT.
fn interrupt(child: &Child) {
    send("-INT", child);
}

fn send(signal: &str, child: &Child) {
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
    assert!(kill.success());
}

/// Starts a run that would take days, waits until it is under way, and presses Ctrl-C.
fn interrupted(folder: &Path, arguments: &[&str]) -> Output {
    let child = start(folder, &[arguments, &ENDLESS].concat());
    // A tenth of a second of the processor is past the start, however long a busy machine takes to grant it.
    let patience = Instant::now();
    while used(&child).is_some_and(|ticks| ticks < 10) && patience.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    press(child)
}

/// Starts a long command, waits until it is under way, and presses Ctrl-C.
fn ctrl_c(folder: &Path, arguments: &[&str]) -> Output {
    press(start(folder, arguments))
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    bentpipe(folder, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn press(child: Child) -> Output {
    // Long enough to have reached the run. The run itself would take hours.
    std::thread::sleep(Duration::from_secs(1));
    let pressed = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert!(pressed.elapsed() < Duration::from_secs(20), "{:?}", pressed.elapsed());
    output
}

/// CPU time that it has used, in ticks of 10 ms; `None` where the system does not show it.
fn used(child: &Child) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    // Behind the name: fields 14 and 15 of proc_pid_stat(5).
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

#[test]
fn ctrl_c_shows_what_there_is() {
    let folder = folder();
    let output = interrupted(folder.path(), &["run", "small.toml", "--json"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("interrupted at"), "{error}");
    let run = json(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(run["interrupted"], true);
    assert!(run["flows"][0]["bytes"].as_u64().expect("a number") > 0, "{run}");
}

/// `nohup` ignores SIGHUP for its command. A sweep over night ended with the terminal even so.
#[cfg(target_os = "linux")]
#[test]
fn what_nohup_starts_outlives_the_terminal() {
    let folder = folder();
    let mut shell = Command::new("sh");
    let nohup = "trap '' HUP; exec \"$0\" \"$@\"";
    shell.args(["-c", nohup, env!("CARGO_BIN_EXE_bentpipe"), "run", "small.toml", "--json"]).args(ENDLESS);
    let mut child = shell.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh");
    std::thread::sleep(Duration::from_secs(1));
    send("-HUP", &child);
    // Without this it ended within some milliseconds.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(child.try_wait().expect("ours"), None);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn ctrl_c_keeps_complete_replications() {
    let folder = folder();
    let arguments = ["compare", "small.toml", "--variants", "sack,tahoe", "--reps", "1000"];
    let output = interrupted(folder.path(), &arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("interrupted: 0 of 1000 replications are complete"), "{error}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("over sack"));
}

#[test]
fn an_interrupted_reproduction_shows_what_is_done() {
    let folder = tempfile::tempdir().expect("a folder");
    // With so many replications, no table is complete before the signal.
    let arguments = ["reproduce", "transat", "--table", "3", "--reps", "1000000", "--threads", "1", "--json"];
    let output = ctrl_c(folder.path(), &arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("interrupted after 0 rows; the rest is missing"), "{error}");
    let json = json(&String::from_utf8_lossy(&output.stdout));
    assert_eq!((&json["interrupted"], &json["rows"]), (&true.into(), &serde_json::json!([])));
}

#[test]
fn an_interrupted_report_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = ["--report", "book.html"];
    let arguments = ["reproduce", "transat", "--table", "3", "--reps", "1000000", "--threads", "1"];
    let output = ctrl_c(folder.path(), &[&arguments[..], &report].concat());
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
}

#[test]
fn ctrl_c_ends_what_only_prepares() {
    let folder = tempfile::tempdir().expect("a folder");
    // One second after its start it is building about two thousand scenarios, which takes ten times as long.
    let began = Instant::now();
    let output = ctrl_c(folder.path(), &["scoreboard"]);
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    // The last of them, for a machine that is ten times as busy.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn ctrl_c_ends_what_waits_for_a_reader() {
    let folder = folder();
    let arguments = [&["run", "small.toml", "--trace", "-"], &ENDLESS[..]].concat();
    // The pipe is open, soon full, and never read.
    let mut child =
        bentpipe(folder.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    std::thread::sleep(Duration::from_secs(1));
    interrupt(&child);
    assert_eq!(ended(&mut child), Some(130));
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_what_cannot_say_so() {
    let folder = folder();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    // It waits for its scenario on standard input.
    let mut child =
        bentpipe(folder.path(), &["run", "-"]).stdin(Stdio::piped()).stderr(full).spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(500));
    interrupt(&child);
    assert_eq!(ended(&mut child), Some(130));
}

#[test]
fn ctrl_c_twice_leaves_no_half_file() {
    let folder = folder();
    let outputs = ["run", "small.toml", "--trace", "t.csv", "--pcap", "p.pcapng", "--kind", "cwnd", "--plot", "p.svg"];
    let mut child = bentpipe(folder.path(), &[&outputs[..], &ENDLESS].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    std::thread::sleep(Duration::from_secs(1));
    assert!(names(folder.path()).iter().any(|name| name.starts_with(".bentpipe-")), "it has begun its files");
    interrupt(&child);
    // The first signal has been handled when the second arrives, and finishing the files takes longer than that.
    std::thread::sleep(Duration::from_millis(1));
    interrupt(&child);
    assert_eq!(ended(&mut child), Some(130));
    let left = names(folder.path());
    assert!(left.iter().all(|name| !name.starts_with(".bentpipe-")), "{left:?}");
}

/// Returns the exit code of a command that must end soon. Kills it otherwise.
fn ended(child: &mut Child) -> Option<i32> {
    // Within a second on an idle machine.
    let patience = Instant::now() + Duration::from_secs(10);
    while Instant::now() < patience {
        if let Some(status) = child.try_wait().expect("ours") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it runs");
    child.wait().expect("ours");
    None
}

/// Judged by the runs until then, another system may be the best.
#[test]
fn an_interrupted_recommendation_writes_nothing() {
    let folder = folder();
    let arguments = ["recommend", "small.toml", "--reps", "100000", "--write", "best.toml"];
    let output = ctrl_c(folder.path(), &arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("uses only the complete runs; best.toml was not written"), "{error}");
    assert_eq!(names(folder.path()), ["small.toml"]);
}
