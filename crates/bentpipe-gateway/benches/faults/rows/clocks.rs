//! Boxes whose time of day is wrong.

use std::time::{Duration, Instant};

use crate::Measured;
use crate::pair::{Line, Running, asks, echo};

/// By so much the clock is wrong, in turn.
const OFFSETS: [&str; 4] = ["+1h", "-1h", "+10y", "-10y"];

/// Debian's libfaketime, which replaces the time of day of a program, and leaves its monotonic clock.
pub(super) fn library() -> Option<String> {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"];
    let paths = folders.map(|folder| format!("{folder}/faketime/libfaketime.so.1"));
    paths.into_iter().find(|path| std::path::Path::new(path).exists())
}

/// Starts a box whose clock is set by the file `NAME.offset`.
pub(super) fn start(line: &Line, name: &str, library: &str) -> Running {
    let offset = line.folder.path().join(format!("{name}.offset"));
    let offset = offset.to_str().expect("a plain path");
    let environment = [
        ("LD_PRELOAD", library),
        ("FAKETIME_TIMESTAMP_FILE", offset),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ];
    let host = if name == "near" { &line.near } else { &line.far };
    Running::start_with(host, line.folder.path(), name, 1024, &environment)
}

/// Sets the clock of a box.
pub(super) fn set(line: &Line, name: &str, offset: &str) {
    // Renamed into place: half an offset would be another time.
    let (new, path) = (line.folder.path().join("offset.new"), line.folder.path().join(format!("{name}.offset")));
    std::fs::write(&new, offset).and_then(|()| std::fs::rename(new, path)).expect("a file");
}

/// The clock of each box jumps while it runs, and is as wrong when the box restarts.
pub(super) fn clocks(is_short: bool) -> Measured {
    let Some(library) = library() else {
        return Measured { text: "libfaketime is not installed".to_owned(), is_met: false };
    };
    let line = Line::new("20 Mbit/s");
    let set = |name: &str, offset: &str| set(&line, name, offset);
    ["near", "far"].iter().for_each(|name| set(name, "+0"));
    let server = line.serve(80, echo);
    let mut boxes = ["near", "far"].map(|name| start(&line, name, &library));
    line.wait_until_up(&["near", "far"], true);
    let offsets = if is_short { &OFFSETS[1..3] } else { &OFFSETS[..] };
    let (mut gap, mut restart, mut most, mut jumps) = (Duration::ZERO, Duration::ZERO, 0, 0);
    let lines = |name: &str| line.said(name).lines().filter(|said| said.contains("clock")).count();
    for (n, name) in ["near", "far"].into_iter().enumerate() {
        for offset in offsets {
            let mut stream = line.connect(server).expect("it connects");
            let before = lines(name);
            set(name, offset);
            let jumped = Instant::now();
            while jumped.elapsed() < Duration::from_secs(6) {
                let asked = Instant::now();
                if asks(&mut stream).is_err() {
                    return Measured { text: format!("{name} by {offset}: a connection was lost"), is_met: false };
                }
                gap = gap.max(asked.elapsed());
                std::thread::sleep(Duration::from_millis(50));
            }
            most = most.max(lines(name) - before);
            jumps += usize::from(lines(name) > before);
            boxes[n].0.kill().expect("it runs");
            boxes[n].0.wait().expect("it ends");
            let restarted = Instant::now();
            boxes[n] = start(&line, name, &library);
            while !super::serves(&line, server) {
                if restarted.elapsed() > Duration::from_secs(60) {
                    return Measured { text: format!("{name} by {offset}: down after a restart"), is_met: false };
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            restart = restart.max(restarted.elapsed());
            most = most.max(lines(name));
        }
    }
    let text = format!(
        "{jumps} jumps noticed, longest answer {:.2} s; after restarts {:.2} s; {most} lines of log at most",
        gap.as_secs_f64(),
        restart.as_secs_f64()
    );
    // The library must have worked: a jump of the running clock is seen and said.
    let is_met = jumps > 0 && gap.as_secs() < 3 && restart.as_secs() < 5 && most <= 1;
    Measured { text, is_met }
}
