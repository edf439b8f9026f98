//! One line per shipped scenario, and one per TCP variant: a fingerprint of all its packets, and the figures that a person would look at.
//!
//! A change of the engine or the simulator that moves a result moves a line here. If that is meant, write the table
//! anew with `UPDATE_GOLDENS=1 cargo test -p bentpipe-sim --test it golden::`, and say in `CHANGELOG.md`, under "Changed
//! numbers", which results moved and why. The fingerprint is of whole numbers alone, so it is the same on every machine.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::tcp::variant::VARIANTS;
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

fn row(name: &str, scenario: &Scenario, seed: u64) -> Vec<String> {
    let mut marks = Marks::default();
    let result = run(scenario, seed, &mut marks).expect("a path for each flow");
    let sum = |of: fn(&bentpipe_sim::FlowResult) -> u64| result.flows.iter().map(of).sum::<u64>().to_string();
    vec![
        name.to_owned(),
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

fn table(title: &str, rows: &[Vec<String>]) -> String {
    let mut text = format!(
        "# Fingerprints of {title}; see golden.rs for how to update them.\n\
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
fn explain(scenario: &Scenario, seed: u64, old: &[&str], new: &[String]) -> String {
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
    run(scenario, seed, &mut marks).expect("a path for each flow");
    text + &marks.lines.join("\n")
}

/// Compares the runs with the lines of a file.
fn compare(file: &str, title: &str, runs: &[(String, Scenario)]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(file);
    let runs: Vec<(&str, &Scenario, u64)> =
        runs.iter().flat_map(|(name, scenario)| SEEDS.map(|seed| (name.as_str(), scenario, seed))).collect();
    let rows: Vec<Vec<String>> = runs.iter().map(|(name, scenario, seed)| row(name, scenario, *seed)).collect();
    let new = table(title, &rows);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&file, &new).expect("a writable file");
        return;
    }
    let old = std::fs::read_to_string(&file).expect("the file of this table; UPDATE_GOLDENS=1 writes it");
    if old == new {
        return;
    }
    let old_rows: Vec<Vec<&str>> = old.lines().skip(3).map(|line| line.split_whitespace().collect()).collect();
    let mut report = String::new();
    for ((_, scenario, seed), row) in runs.iter().zip(&rows) {
        match old_rows.iter().find(|old| old.len() > 1 && old[..2] == row[..2]) {
            Some(old) if old.iter().eq(row.iter()) => {}
            Some(old) if old.len() == COLUMNS.len() => report += &(explain(scenario, *seed, old, row) + "\n"),
            _ => report += &format!("{}, seed {seed}: no golden line\n", row[0]),
        }
    }
    panic!(
        "results have moved. If that is meant: UPDATE_GOLDENS=1 cargo test -p bentpipe-sim --test it golden::, and an entry \
         under \"Changed numbers\" in CHANGELOG.md.\n{report}"
    );
}

#[test]
fn shipped_scenarios_give_what_they_gave() {
    let name = |path: &PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let runs: Vec<_> = scenarios().iter().map(|path| (name(path), load(path))).collect();
    compare("fingerprints.txt", "the shipped scenarios, at most 120 s of each", &runs);
}

/// Every row of the table of variants, and settings that no row has, over a link that overflows, loses and reorders packets, and stops.
#[test]
fn variants_give_what_they_gave() {
    let run = |name: &str, tcp: &str| {
        let text = format!(
            r#"
name = "row"
time_limit = "120 s"
[tcp]
{tcp}
[[links]]
name = "sat"
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "150 ms"
loss = "0.3 %"
reorder = {{ probability = "0.3 %", delay = "60 ms" }}
forward.queue = {{ limit = "100 packets", discipline = "dualpi2" }}
schedule_period = "6 s"
[[links.schedule]]
at = "2 s"
delay = "20 ms"
[[links.schedule]]
at = "3 s"
rate = "0 bit/s"
[[links.schedule]]
at = "4500 ms"
rate = "4 Mbit/s"
[[links.schedule]]
at = "5 s"
rate = "10 Mbit/s"
delay = "150 ms"
over = "500 ms"
[[flows]]
name = "data"
from = "A"
to = "B"
bytes = "2 MB"
"#
        );
        let scenario =
            Scenario::parse(&text, "row.toml", &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        (name.to_owned(), scenario)
    };
    let mut runs: Vec<_> = VARIANTS
        .iter()
        .map(|(name, ..)| {
            let is_linux = name.starts_with("linux") || name.starts_with("bbr");
            let ecn = if *name == "prague" { "ecn = \"accurate\"" } else { "" };
            let profile = if is_linux { "linux" } else { "rfc" };
            run(name, &format!("profile = \"{profile}\"\nvariant = \"{name}\"\n{ecn}"))
        })
        .collect();
    for (name, cells) in [
        ("cubic,search", "variant = \"cubic\"\nslow_start_exit = \"search\""),
        ("cubic,limited", "variant = \"cubic\"\nlimited_slow_start = 20"),
        ("cubic,paced", "variant = \"cubic\"\npacing.gain = 120\npacing.quantum = \"2 ms\""),
        ("cubic,resume", "variant = \"cubic\"\nresume = { cwnd = \"400 kB\", min_rtt = \"300 ms\" }"),
        ("cubic,undo", "variant = \"cubic\"\nundo = true"),
        ("cubic,ecn", "variant = \"cubic\"\necn = true\nabe = true"),
    ] {
        runs.push(run(name, &format!("profile = \"rfc\"\n{cells}")));
    }
    compare("variants.txt", "the TCP variants over a link that moves", &runs);
}
