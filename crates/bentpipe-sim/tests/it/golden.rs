//! One line per shipped scenario: a fingerprint of all its packets, and the figures that a person would look at.
//!
//! A change of the engine or the simulator that moves a result moves a line here. If that is meant, write the table
//! anew with `UPDATE_GOLDENS=1 cargo test -p bentpipe-sim --test it golden::`, and say in `CHANGELOG.md`, under "Changed
//! numbers", which results moved and why. The fingerprint is of whole numbers alone, so it is the same on every machine.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_sim::{Body, Fingerprint, Observer, Packet, Passage, run};
use bentpipe_study::scenario::Scenario;

/// Two seeds, so that a dependence on the seed shows.
const SEEDS: [u64; 2] = [1, 4];
/// Longer runs are cut off at this time.
const LIMIT_S: u64 = 120;

/// The fingerprint, and its values after 1, 2, 4, 8, ... passages, so that a difference can be located.
#[derive(Default)]
struct Marks {
    fingerprint: Fingerprint,
    marks: Vec<u16>,
    /// Passages of this part of the run are written down.
    wanted: std::ops::Range<u64>,
    lines: Vec<String>,
}

impl Probe for Marks {
    fn event(&mut self, _: Time, _: Who, _: &Event) {}
}

impl Observer for Marks {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        self.fingerprint.packet(now, link, passage, packet);
        let n = self.fingerprint.events();
        if n.is_power_of_two() {
            self.marks.push(self.fingerprint.value() as u16);
        }
        if self.wanted.contains(&n) {
            let what = match &packet.body {
                Body::Tcp(s) => {
                    format!("{:?} {}:{}({}) ack {} win {}", s.flags, s.seq, s.end(), s.len, s.ack, s.window)
                }
                Body::Udp(n) => format!("datagram {n}"),
                Body::Quic(packet) => format!("{packet:?}"),
            };
            let secs = now.as_secs_f64();
            self.lines
                .push(format!("  {n:>8} {secs:>12.6} link {} {passage:?} flow {} {what}", link.0, packet.connection.0));
        }
    }
}

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = std::fs::read_dir(folder).expect("the shipped scenarios");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "toml"));
    paths.sort();
    paths
}

fn load(path: &Path) -> Scenario {
    let mut scenario = Scenario::load(path, &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let limit = bentpipe_engine::units::Duration::from_secs(LIMIT_S);
    scenario.time_limit = scenario.time_limit.min(limit);
    scenario
}

const COLUMNS: [&str; 11] = [
    "scenario",
    "seed",
    "fingerprint",
    "passages",
    "end_s",
    "delivered_B",
    "segments",
    "retransmits",
    "timeouts",
    "drops",
    "marks",
];

fn row(path: &Path, seed: u64) -> Vec<String> {
    let scenario = load(path);
    let mut marks = Marks::default();
    let result = run(&scenario, seed, &mut marks).expect("a path for each flow");
    let sum = |of: fn(&bentpipe_sim::FlowResult) -> u64| result.flows.iter().map(of).sum::<u64>().to_string();
    vec![
        path.file_stem().expect("a name").to_string_lossy().into_owned(),
        seed.to_string(),
        format!("{:016x}", marks.fingerprint.value()),
        marks.fingerprint.events().to_string(),
        format!("{}.{:09}", result.end.as_nanos() / 1_000_000_000, result.end.as_nanos() % 1_000_000_000),
        sum(|flow| flow.delivered),
        sum(|flow| flow.stats.data_segments),
        sum(|flow| flow.stats.retransmits),
        sum(|flow| flow.stats.timeouts),
        result.links.iter().map(|link| link.dropped()).sum::<u64>().to_string(),
        marks.marks.iter().map(|mark| format!("{mark:04x}")).collect::<Vec<_>>().join("."),
    ]
}

fn table(rows: &[Vec<String>]) -> String {
    let mut text = String::from(
        "# Fingerprints of the shipped scenarios, at most 120 s of each; see golden.rs for how to update them.\n\
         # marks: the fingerprint's last four digits after 1, 2, 4, 8, ... passages.\n",
    );
    let header: Vec<String> = COLUMNS.iter().map(|name| (*name).to_owned()).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&header).chain(rows).collect();
    for row in &all {
        for (n, cell) in row.iter().enumerate() {
            let width = all.iter().map(|row| row[n].len()).max().unwrap_or(0);
            if n + 1 == row.len() {
                writeln!(text, "{cell}").expect("a string takes everything");
            } else {
                write!(text, "{cell:<width$}  ").expect("a string takes everything");
            }
        }
    }
    text
}

/// The difference, and the packets where the runs part.
fn explain(path: &Path, seed: u64, old: &[&str], new: &[String]) -> String {
    let mut text = format!("{}, seed {seed}:\n", new[0]);
    for (n, name) in COLUMNS.iter().enumerate().take(COLUMNS.len() - 1).skip(2) {
        if old[n] != new[n] {
            writeln!(text, "  {name}: {} -> {}", old[n], new[n]).expect("a string takes everything");
        }
    }
    let (old_marks, new_marks) = (old[COLUMNS.len() - 1].split('.'), new[COLUMNS.len() - 1].split('.'));
    let alike = old_marks.zip(new_marks).take_while(|(old, new)| old == new).count() as u32;
    let from = if alike == 0 { 1 } else { 1u64 << (alike - 1) };
    writeln!(text, "  alike up to passage {from} at least, no more after {}; the new run there:", from * 2)
        .expect("a string takes everything");
    // The first lines of that part; all of it where it is short.
    let mut marks = Marks { wanted: from..(from * 2 + 1).min(from + 40), ..Marks::default() };
    run(&load(path), seed, &mut marks).expect("a path for each flow");
    text + &marks.lines.join("\n")
}

#[test]
fn shipped_scenarios_give_what_they_gave() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/fingerprints.txt");
    let runs: Vec<(PathBuf, u64)> =
        scenarios().into_iter().flat_map(|path| SEEDS.map(|seed| (path.clone(), seed))).collect();
    let rows: Vec<Vec<String>> = runs.iter().map(|(path, seed)| row(path, *seed)).collect();
    let new = table(&rows);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&file, &new).expect("a writable file");
        return;
    }
    let old = std::fs::read_to_string(&file).expect("tests/it/golden/fingerprints.txt; UPDATE_GOLDENS=1 writes it");
    if old == new {
        return;
    }
    let old_rows: Vec<Vec<&str>> = old.lines().skip(3).map(|line| line.split_whitespace().collect()).collect();
    let mut report = String::new();
    for ((path, seed), row) in runs.iter().zip(&rows) {
        match old_rows.iter().find(|old| old.len() > 1 && old[..2] == row[..2]) {
            Some(old) if old.iter().eq(row.iter()) => {}
            Some(old) if old.len() == COLUMNS.len() => report += &(explain(path, *seed, old, row) + "\n"),
            _ => report += &format!("{}, seed {seed}: no golden line\n", row[0]),
        }
    }
    panic!(
        "results have moved. If that is meant: UPDATE_GOLDENS=1 cargo test -p bentpipe-sim --test it golden::, and an entry \
         under \"Changed numbers\" in CHANGELOG.md.\n{report}"
    );
}
