//! The same seed gives the same run of QUIC.

use bentpipe_engine::NoProbe;
use bentpipe_sim::{Fingerprint, Timers, in_parallel, run, run_with};

use super::{CONTROLS, bulk, fingerprint, geo, results};

/// Losses and all controls: the same seed is the same run beside others, in other threads, with lazy and literal timers, with and
/// without an observer; another seed is another run. TLS draws other keys each time, so these change nothing.
#[test]
fn a_seed_is_a_run() {
    for control in CONTROLS {
        let settings = format!("congestion_control = \"{control}\", streams = 3");
        let scenario = geo("loss = \"1 %\"", &bulk("500 kB", &settings));
        let alone = fingerprint(&scenario);
        let beside = in_parallel(vec![(); 4], 4, |()| Ok(fingerprint(&scenario))).expect("threads");
        assert_eq!(beside, [alone; 4], "{control}");
        let plain = results(&scenario);
        let watched = run(&scenario, 1, &mut Fingerprint::default()).expect("a path");
        let literal = run_with(&scenario, 1, &mut NoProbe, Timers::Literal, |_| true).expect("a path");
        assert_eq!(plain, watched, "{control}");
        assert_eq!(plain, literal, "{control}");
        assert_ne!(fingerprint(&scenario.with_seed(2)), alone, "{control}");
    }
}

/// The run is the same in another process: this test starts itself, and compares.
#[test]
fn another_process_has_the_same_run() {
    const ASKED: &str = "BENTPIPE_QUIC_FINGERPRINT";
    let all: Vec<String> = CONTROLS
        .iter()
        .map(|control| {
            let settings = format!("congestion_control = \"{control}\", zero_rtt = true");
            format!("{:016x}", fingerprint(&geo("loss = \"2 %\"", &bulk("300 kB", &settings))))
        })
        .collect();
    let line = format!("fingerprints {}", all.join(" "));
    if std::env::var_os(ASKED).is_some() {
        println!("{line}");
        return;
    }
    let program = std::env::current_exe().expect("this test");
    let arguments = ["quic::same::another_process_has_the_same_run", "--exact", "--nocapture"];
    let output = std::process::Command::new(program).args(arguments).env(ASKED, "1").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(&line), "{line}\n{said}");
}

/// Without encryption all packets have the same lengths, numbers and times.
#[test]
fn packets_in_the_clear_are_the_same() {
    for settings in ["", ", zero_rtt = true"] {
        let run =
            |on: bool| fingerprint(&geo("loss = \"1 %\"", &bulk("500 kB", &format!("encryption = {on}{settings}"))));
        assert_eq!(run(true), run(false), "{settings}");
    }
}
