//! The same seed gives the same run of QUIC.

use std::ffi::OsString;

use bentpipe_engine::NoProbe;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_sim::{Fingerprint, Observer, Packet, Passage, Timers, in_parallel, run, run_with};

use super::{CONTROLS, bulk, fingerprint, flow, geo, results};

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

/// The run is the same in another process: this test starts itself, and compares. `make test-arm` names what runs the programs of another
/// processor: the kernel itself cannot.
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
    let runner = std::env::var("BENTPIPE_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace().map(OsString::from).chain([program.into_os_string()]);
    let mut again = std::process::Command::new(words.next().expect("the program"));
    let output = again.args(words).args(arguments).env(ASKED, "1").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(&line), "{}: {line}\n{said}", output.status);
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

/// A transfer of 300 kB in writes of this size, one behind the other.
fn written(write: &str, settings: &str) -> bentpipe_study::scenario::Scenario {
    let workload = format!("paced = {{ rate = \"1 Tbit/s\", bytes = \"300 kB\", write = \"{write}\" }}");
    geo("", &flow("data", &workload, settings))
}

/// Several writes without a pause are one write: what is written before the connection is open leaves at once, and so does a write that
/// is not shorter than the first window.
#[test]
fn writes_without_a_pause_are_one() {
    for (settings, writes) in [("", ["150 kB", "30 kB", "1 kB"]), ("zero_rtt = true", ["150 kB", "30 kB", "12 kB"])] {
        let one = fingerprint(&written("300 kB", settings));
        for write in writes {
            assert_eq!(fingerprint(&written(write, settings)), one, "{write}, {settings}");
        }
    }
}

/// Counts the datagrams offered to the first link in the first 100 ms.
#[derive(Default)]
struct Flight(u32);

impl Probe for Flight {
    fn event(&mut self, _: Time, _: Who, _: &Event) {}
}

impl Observer for Flight {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, _: &Packet) {
        self.0 += u32::from(link == LinkId(0) && passage == Passage::Offered && now.as_secs_f64() < 0.1);
    }
}

/// With 0-RTT the first write leaves by itself, and its last datagram is short. quinn sends a datagram only if a full one leaves room in
/// the window, so nine of 1200 bytes leave in a window of 12 000, and ten if one of them is short or the window has a byte more.
#[test]
fn a_short_write_leaves_room_for_a_datagram() {
    let first = |write, settings| {
        let mut flight = Flight::default();
        run(&written(write, settings), 1, &mut flight).expect("a path");
        flight.0
    };
    let window = "zero_rtt = true, initial_window = \"12001 B\"";
    assert_eq!([first("300 kB", "zero_rtt = true"), first("7500 B", "zero_rtt = true")], [9, 10]);
    assert_eq!([first("300 kB", window), first("7500 B", window)], [10, 10]);
}
