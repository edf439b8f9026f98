//! The scenario `starlink` against recordings: round trips of pings, and a TCP download and upload by second. In virtual time, and in
//! real time as measured over `bentpipe shell starlink`.
//!
//! `validation/starlink/README.md` says which part of which recording is used for what.

mod samples;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use bentpipe_engine::link::Moves;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_sim::{Body, Observer, Packet, Passage, run};
use bentpipe_study::report::{Axis, Figure, Panel};
use bentpipe_study::scenario::{ConnectionId, Scenario};

use self::samples::{HEAD, Samples, curve, distance, is_met, quantile, row, sorted};

/// Length in seconds of the blocks by which the pings are divided: derive.py uses the even ones, this program the odd ones.
const BLOCK: u64 = 600;

/// The pings of the recording are 147 ms apart in the median.
const SPACING_MS: u64 = 147;

/// Bytes of a ping with its headers.
const PING: u64 = 84;

/// A transfer by one TCP connection that was recorded, and how often it is simulated.
struct Transfer {
    title: &'static str,
    recording: &'static str,
    from: &'static str,
    to: &'static str,
    /// The satellite link in its direction.
    link: &'static str,
    seconds: u64,
    /// The rates repeat after 120 s and the delays after 900 s, so each start meets another path.
    starts: &'static [u64],
    /// derive.py uses the even minutes of this recording, so only the odd ones are compared.
    is_fitted: bool,
}

const DOWNLOAD: Transfer = Transfer {
    title: "download",
    recording: "mmsys24_iperf3_down_2min.json",
    from: "server",
    to: "terminal",
    link: "sat/forward",
    seconds: 120,
    starts: &[0, 97, 194, 291, 388, 485, 582, 679],
    is_fitted: false,
};

const UPLOAD: Transfer = Transfer {
    title: "upload",
    recording: "mmsys24_iperf3_up_5min.json",
    from: "terminal",
    to: "server",
    link: "sat/backward",
    seconds: 300,
    starts: &[0, 200, 400, 600],
    is_fitted: true,
};

/// The hosts of the recordings: Linux 5.19 with CUBIC.
const HOSTS: &str = "[tcp]\nprofile = \"linux\"\nvariant = \"linux-cubic\"\n";

/// Each start is simulated with these seeds: a few losses decide what a download reaches.
const SEEDS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// Round trips of the recorded pings in the odd or the even blocks: seconds and milliseconds.
fn pings(data: &Path, odd: bool) -> anyhow::Result<Samples> {
    let path = data.join("mmsys24_ping_100ms_60min.txt");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut all = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let (Some(at), Some(_), Some(rtt)) = (words.next(), words.next(), words.next()) else { continue };
        let number = |word: &str| -> anyhow::Result<f64> {
            word.parse().with_context(|| format!("{}:{}: `{word}`: expected a number", path.display(), n + 1))
        };
        let (at, rtt) = (number(at)?, number(rtt)?);
        if rtt > 0.0 && (at as u64 / BLOCK) % 2 == u64::from(odd) {
            all.push((at, rtt));
        }
    }
    Ok(all)
}

/// Mbit/s by second, of an iperf3 recording.
fn recorded_seconds(path: &Path) -> anyhow::Result<Samples> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let recorded: Recording = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let first = recorded.intervals.first().with_context(|| format!("{}: no interval", path.display()))?;
    let in_a_second = (1.0 / first.sum.seconds).round().max(1.0) as usize;
    // A receiver reports what is left at the end as a short interval.
    let is_whole = |interval: &&Interval| interval.sum.seconds > 0.9 * first.sum.seconds;
    let whole = recorded.intervals.iter().filter(is_whole);
    let rates: Vec<f64> = whole.map(|interval| interval.sum.bits_per_second / 1e6).collect();
    let means = rates.chunks_exact(in_a_second).map(|second| second.iter().sum::<f64>() / in_a_second as f64);
    Ok(means.enumerate().map(|(n, mean)| (n as f64, mean)).collect())
}

/// Round trips from the output of `ping -D`: seconds and milliseconds.
fn printed_pings(path: &Path) -> anyhow::Result<Samples> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let number = |line: &str, before: &str, after: char| -> Option<f64> {
        line.split_once(before)?.1.split(after).next()?.parse().ok()
    };
    let samples: Samples =
        text.lines().filter_map(|line| Some((number(line, "[", ']')?, number(line, "time=", ' ')?))).collect();
    if samples.is_empty() { Err(anyhow!("{}: no line as `ping -D` prints it", path.display())) } else { Ok(samples) }
}

#[derive(serde::Deserialize)]
struct Recording {
    intervals: Vec<Interval>,
}

#[derive(serde::Deserialize)]
struct Interval {
    sum: Sum,
}

#[derive(serde::Deserialize)]
struct Sum {
    seconds: f64,
    bits_per_second: f64,
}

/// Follows packets from their first link to their last.
#[derive(Default)]
struct Watch {
    /// By connection and number of a datagram: when it was offered first, and delivered last.
    trips: std::collections::BTreeMap<(ConnectionId, u64), (Time, Time)>,
    /// Bytes of payload that a link delivers in each second.
    seconds: Vec<f64>,
    link: Option<LinkId>,
}

impl Probe for Watch {
    fn event(&mut self, _: Time, _: Who, _: &Event) {}
}

impl Observer for Watch {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        match (packet.body, passage) {
            (Body::Udp(n), Passage::Offered) => {
                _ = self.trips.entry((packet.connection, n)).or_insert((now, Time::NEVER))
            }
            (Body::Udp(n), Passage::Delivered) => {
                if let Some(trip) = self.trips.get_mut(&(packet.connection, n)) {
                    trip.1 = now;
                }
            }
            (Body::Udp(n), Passage::Dropped(_)) => _ = self.trips.remove(&(packet.connection, n)),
            (Body::Tcp(segment), Passage::Delivered) if Some(link) == self.link => {
                let second = now.as_secs_f64() as usize;
                self.seconds.resize(self.seconds.len().max(second + 1), 0.0);
                self.seconds[second] += f64::from(segment.len);
            }
            _ => {}
        }
    }
}

/// Round trips of pings from the terminal for 900 s, in milliseconds: the delay of a datagram up plus that of one sent down at the same
/// time.
fn our_pings(scenario: &Scenario) -> anyhow::Result<Samples> {
    let rate = PING * 8 * 1000 / SPACING_MS;
    let flow = |from: &str, to: &str| {
        format!(
            "[[flows]]\nname = \"{from}\"\nfrom = \"{from}\"\nto = \"{to}\"\ntype = \"udp\"\nrate = \"{rate} bit/s\"\n\
             packet = \"{PING} B\"\nstop = \"900 s\"\n"
        )
    };
    let scenario = with_flows(scenario, &[flow("terminal", "server"), flow("server", "terminal")], 905)?;
    let mut watch = Watch::default();
    run(&scenario, scenario.seed, &mut watch)?;
    let trip = |flow, n| watch.trips.get(&(flow, n)).filter(|trip| trip.1 < Time::NEVER);
    let count = watch.trips.keys().map(|key| key.1).max().unwrap_or(0);
    let both = (0..=count).filter_map(|n| {
        let (up, down) = (trip(ConnectionId(0), n)?, trip(ConnectionId(1), n)?);
        let span = up.1.saturating_since(up.0) + down.1.saturating_since(down.0);
        Some((up.0.as_secs_f64(), span.as_millis_f64()))
    });
    Ok(both.collect())
}

/// Transfers by one connection, each from another start or with another seed: Mbit/s by second.
fn our_seconds(scenario: &Scenario, transfer: &Transfer) -> anyhow::Result<Samples> {
    let &Transfer { from, to, link, seconds, starts, .. } = transfer;
    let link = Some(scenario.link(link).with_context(|| format!("a link `{link}`"))?);
    let mut all = Vec::new();
    for (n, start) in starts.iter().enumerate() {
        let flow = format!(
            "[[flows]]\nname = \"transfer\"\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"{start} s\"\n\
             greedy = {{ duration = \"{seconds} s\" }}\n"
        );
        let scenario = with_flows(scenario, &[flow], start + seconds)?;
        for (k, seed) in SEEDS.into_iter().enumerate() {
            let mut watch = Watch { link, ..Watch::default() };
            run(&scenario, seed, &mut watch)?;
            let seconds = watch.seconds.iter().skip(*start as usize).take(seconds as usize).enumerate();
            let at = |second: usize| apart(n * SEEDS.len() + k, second as f64);
            all.extend(seconds.map(|(second, bytes)| (at(second), bytes * 8.0 / 1e6)));
        }
    }
    Ok(all)
}

/// A time for the second `at` of transfer `n`, so far from those of the other transfers that no two of them are neighbours.
fn apart(n: usize, at: f64) -> f64 {
    (1000 * n) as f64 + at
}

/// True if derive.py uses the second `at` of a recording: it uses even minutes if it uses only a part.
fn is_even_minute(at: f64) -> bool {
    (at as u64 / 60).is_multiple_of(2)
}

/// The distance of each transfer from all others together: minimum, median and maximum. Transfers over the same link differ by this much.
/// If a recording is compared only in part, only the same part of the one transfer is taken.
fn among(transfers: &Samples, count: usize, is_fitted: bool) -> [f64; 3] {
    let far = (0..count).map(|n| {
        let is_of_n = |&(at, _): &(f64, f64)| (apart(n, 0.0)..apart(n + 1, 0.0)).contains(&at);
        let (mut one, others): (Samples, Samples) = transfers.iter().copied().partition(is_of_n);
        one.retain(|&(at, _)| !(is_fitted && is_even_minute(at - apart(n, 0.0))));
        (n as f64, distance(&one, &others))
    });
    let far = sorted(&far.collect());
    [0.0, 0.5, 1.0].map(|p| quantile(&far, p))
}

/// The scenario's links with other flows and the hosts of the recordings.
fn with_flows(scenario: &Scenario, flows: &[String], seconds: u64) -> anyhow::Result<Scenario> {
    let text = scenario.to_toml();
    let links = text.split("[[flows]]").next().unwrap_or_default();
    let sets = [("time_limit".to_owned(), format!("{seconds} s"))];
    let text = format!("{links}\n{HOSTS}\n{}", flows.concat());
    Scenario::parse(&text, "starlink", &sets).map_err(|errors| anyhow!("{errors}"))
}

/// The same links, each with the mean of its rate and its delay.
fn fixed(scenario: &Scenario) -> Scenario {
    let mut fixed = scenario.clone();
    for link in &mut fixed.links {
        let Some(moves) = link.config.moves.take() else { continue };
        let Moves { rate, delay, .. } = &*moves;
        if let Some(delay) = delay {
            link.config.delay = Duration::from_ticks(delay.mean());
        }
        if let Some(rate) = rate {
            link.config.rate = Rate::from_bits_per_second(rate.mean());
        }
    }
    fixed
}

/// What was measured over the emulated links, in files.
pub(crate) struct Emulated {
    /// What `ping -D` printed.
    pub(crate) pings: Option<PathBuf>,
    /// What `iperf3 --json` printed of downloads of 120 s.
    pub(crate) downloads: Vec<PathBuf>,
    /// What it printed of uploads of 300 s.
    pub(crate) uploads: Vec<PathBuf>,
}

/// The throughput of a transfer by second: as recorded, ours, over emulated links, and over links with the mean rate and delay.
struct Throughput {
    title: &'static str,
    /// What is compared: the recording, or the part that derive.py did not use.
    recorded: Samples,
    /// The part of the recording that derive.py used.
    fitted: Samples,
    ours: Samples,
    /// The number of transfers, and their samples.
    real: Option<(usize, Samples)>,
    still: Samples,
    /// Transfers in `ours`.
    count: usize,
}

impl Throughput {
    fn table(&self) -> String {
        let mut text = format!("\nTCP {} (CUBIC), Mbit/s by second\n\n{HEAD}", self.title);
        let recorded = Some(&self.recorded);
        if self.fitted.is_empty() {
            let (first, second) = self.recorded.split_at(self.recorded.len() / 2);
            text += &row("recorded", &self.recorded, None);
            text += &row("its first half against its second", &first.to_vec(), Some(&second.to_vec()));
        } else {
            text += &row("recorded, held out", &self.recorded, None);
            text += &row("recorded, used for the rate", &self.fitted, recorded);
        }
        text += &row(&format!("`starlink`, virtual time, {} transfers", self.count), &self.ours, recorded);
        if let Some((count, real)) = &self.real {
            text += &row(&format!("`starlink`, real time, {count} transfers"), real, recorded);
        }
        text += &row("a fixed rate and delay of the same means", &self.still, recorded);
        if !self.fitted.is_empty() {
            let all = [self.recorded.as_slice(), &self.fitted].concat();
            let _ = write!(text, "\nAgainst all of the recording:\n\n{HEAD}{}", row("recorded", &all, None));
            text += &row("`starlink`, virtual time", &self.ours, Some(&all));
            if let Some((_, real)) = &self.real {
                text += &row("`starlink`, real time", real, Some(&all));
            }
        }
        let [least, median, most] = among(&self.ours, self.count, !self.fitted.is_empty());
        let _ = writeln!(
            text,
            "\nOne of the {} transfers against the others: {least:.3} to {most:.3}, median {median:.3}",
            self.count
        );
        text
    }
}

/// Prints the comparison as Markdown and writes the picture. True if the round trips meet their targets, in virtual time and in real time
/// as far as that was measured: the scenario is made for them.
pub(crate) fn compare(
    scenario: &Path,
    data: &Path,
    emulated: &Emulated,
    picture: Option<&Path>,
) -> anyhow::Result<bool> {
    let scenario = Scenario::load(scenario, &[]).map_err(|errors| anyhow!("{errors}"))?;
    let still = fixed(&scenario);
    let (held_out, fitted) = (pings(data, true)?, pings(data, false)?);
    let (ours, constant) = (our_pings(&scenario)?, our_pings(&still)?);
    let real_pings = emulated.pings.as_deref().map(printed_pings).transpose()?;
    print!("Round trips, ms\n\n{HEAD}{}", row("recorded, held out", &held_out, None));
    let against = Some(&held_out);
    print!("{}", row("recorded, used for the trace", &fitted, against));
    print!("{}", row("`starlink`, virtual time", &ours, against));
    if let Some(real) = &real_pings {
        print!("{}", row("`starlink`, real time", real, against));
    }
    print!("{}", row("a fixed delay of the same mean", &constant, against));

    let throughput = |transfer: &Transfer, emulated: &[PathBuf]| -> anyhow::Result<Throughput> {
        let all = recorded_seconds(&data.join(transfer.recording))?;
        let is_used = |&(at, _): &(f64, f64)| transfer.is_fitted && is_even_minute(at);
        let (fitted, recorded) = all.into_iter().partition(is_used);
        Ok(Throughput {
            title: transfer.title,
            recorded,
            fitted,
            ours: our_seconds(&scenario, transfer)?,
            real: measured(emulated)?,
            still: our_seconds(&still, transfer)?,
            count: transfer.starts.len() * SEEDS.len(),
        })
    };
    let down = throughput(&DOWNLOAD, &emulated.downloads)?;
    let up = throughput(&UPLOAD, &emulated.uploads)?;
    print!("{}{}", down.table(), up.table());
    if let Some(path) = picture {
        let panel =
            |title: &str, x: Axis, recorded: &Samples, ours: &Samples, still: &Samples, real: Option<&Samples>| {
                let others = [curve("recorded", recorded), curve("virtual time", ours), curve("fixed", still)];
                Panel {
                    title: title.to_owned(),
                    x,
                    y: Axis::new("share of samples", "").between(0.0, 1.0),
                    series: others.into_iter().chain(real.map(|real| curve("real time", real))).collect(),
                    spans: None,
                }
            };
        let rates = |of: &Throughput, most: f64| {
            let axis = Axis::new("rate", "Mbit/s").between(0.0, most);
            let real = of.real.as_ref().map(|real| &real.1);
            let held_out = if of.fitted.is_empty() { "" } else { ", held out" };
            let title = format!("TCP {} by second{held_out}", of.title);
            panel(&title, axis, &of.recorded, &of.ours, &of.still, real)
        };
        let trips = Axis::new("round trip", "ms").between(0.0, 150.0);
        let figure = Figure {
            title: "Starlink, recorded and emulated".to_owned(),
            panels: vec![
                panel("pings, held out", trips, &held_out, &ours, &constant, real_pings.as_ref()),
                rates(&down, 150.0),
                rates(&up, 15.0),
            ],
        };
        std::fs::write(path, figure.to_svg().map_err(|error| anyhow!("{error}"))?)?;
    }
    let trips_are_met = is_met(&ours, &held_out) && real_pings.is_none_or(|real| is_met(&real, &held_out));
    println!("\nTargets: a distance under 0.1, p50 and p99 within 10 %. In virtual time:");
    for (name, have, want) in [
        ("round trips", &ours, &held_out),
        ("download", &down.ours, &down.recorded),
        ("upload", &up.ours, &up.recorded),
    ] {
        println!("{name}: {}", if is_met(have, want) { "met" } else { "missed" });
    }
    Ok(trips_are_met)
}

/// The transfers over the emulated links, from the output of iperf3: their number, and Mbit/s by second.
fn measured(files: &[PathBuf]) -> anyhow::Result<Option<(usize, Samples)>> {
    let mut samples = Samples::new();
    for (n, path) in files.iter().enumerate() {
        samples.extend(recorded_seconds(path)?.into_iter().map(|(at, rate)| (apart(n, at), rate)));
    }
    Ok((!files.is_empty()).then_some((files.len(), samples)))
}

#[cfg(test)]
mod tests;
