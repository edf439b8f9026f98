//! Writes a scenario that behaves like the measured path.

use std::fmt::Write as _;

use crate::estimate::Estimate;
use crate::losses::{Losses, Prefers};
use crate::{Fit, Pings, Transfer};

/// Number of values in a line of a trace.
const PER_LINE: usize = 24;
/// Maximum number of values in a trace: an hour of pings at ten per second.
const MAX_VALUES: usize = 36_000;
/// Minimum interval of a trace in a scenario, in seconds.
const MIN_INTERVAL: f64 = 1e-3;

/// The text of a scenario with the measured values. `name` is its name, `source` says where the values come from.
pub fn scenario(fit: &Fit, name: &str, source: &str) -> String {
    let clean =
        |text: &str| text.chars().filter(|c| !c.is_control()).collect::<String>().replace('\\', "/").replace('"', "'");
    // `--set` splits names at these.
    let name = clean(name).replace(['.', '='], "-");
    let name = Some(name.trim()).filter(|name| !name.is_empty()).unwrap_or("measured");
    let mut text = format!("name = \"{name}\"\nsource = \"{}\"\nseed = 1\n", clean(source));
    match fit {
        Fit::Transfer(transfer) => of_transfer(&mut text, transfer),
        Fit::Pings(pings) => of_pings(&mut text, pings),
    }
    text
}

/// An estimate as a comment, in a unit that is `scale` times its own.
fn comment(estimate: &Estimate, scale: f64, unit: &str) -> String {
    let show = |value: f64| format!("{} {unit}", number(value * scale));
    match estimate {
        Estimate::Measured { low, high, .. } => format!("{} to {}", show(*low), show(*high)),
        Estimate::AtLeast { why, .. } => format!("at least: {why}"),
        Estimate::AtMost { why, .. } => format!("at most: {why}"),
        Estimate::Unknown { why } => format!("cannot be told: {why}"),
    }
}

/// A number with six digits and no exponent. It has at most six decimals, which are nanoseconds in milliseconds.
fn number(value: f64) -> String {
    digits(value, 6)
}

/// A probability with six digits. It may be that of one loss in millions of packets.
fn probability(value: f64) -> String {
    digits(value, 12)
}

/// A number with six digits and no exponent, and at most so many decimals.
fn digits(value: f64, max_decimals: i32) -> String {
    let digits = if value.abs() < 1e-12 { 0 } else { (5 - value.abs().log10().floor() as i32).clamp(0, max_decimals) };
    let text = format!("{value:.*}", digits as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn ends(text: &mut String) {
    text.push_str(
        "\n[[links]]\nname = \"server-side\"\nbetween = [\"server\", \"near\"]\nrate = \"10 Gbit/s\" # chosen: never the bottleneck\n\
         delay = \"0 ms\" # the whole round trip is the measured link's\n\
         \n[[links]]\nname = \"client-side\"\nbetween = [\"far\", \"client\"]\nrate = \"10 Gbit/s\" # chosen: never the bottleneck\n\
         delay = \"0 ms\"\n",
    );
}

/// Writes the head of the measured link: its rate with a comment, and its delay. Returns the base round trip in
/// seconds; 0 if it is unknown.
fn measured(text: &mut String, (rate, why): (&str, &str), base_round_trip: &Estimate) -> f64 {
    let base = base_round_trip.value().unwrap_or(0.0);
    let _ = writeln!(
        text,
        "\n[[links]]\nname = \"measured\"\nbetween = [\"near\", \"far\"]\nrate = {rate} # {why}\n\
         delay = \"{} ms\" # half of the shortest round trip, {}",
        number(base * 500.0),
        comment(base_round_trip, 1e3, "ms")
    );
    base
}

fn of_transfer(text: &mut String, transfer: &Transfer) {
    text.push_str("time_limit = \"3600 s\" # chosen\n");
    text.push_str("\n[tcp] # of the hosts, which a capture does not name\nprofile = \"linux\"\nvariant = \"cubic\"\n");
    let rate =
        transfer.rate.value().map_or("\"unlimited\"".to_owned(), |rate| format!("\"{} bit/s\"", rate.round().max(1.0)));
    let why = format!("{}; the way back is taken to be alike", comment(&transfer.rate, 1e-6, "Mbit/s"));
    measured(text, (&rate, &why), &transfer.base_round_trip);
    match transfer.queue_bytes.value() {
        Some(bytes) => {
            let bound = comment(&transfer.queue_bytes, 1.0, "B");
            let _ = writeln!(text, "forward.queue = \"{} B\" # {bound}", bytes.max(f64::from(transfer.mss)).round());
        }
        None => {
            let _ = writeln!(text, "# queue: {}", comment(&transfer.queue_bytes, 1.0, "B"));
        }
    }
    lossy(text, &transfer.losses, "forward");
    ends(text);
    let _ = write!(
        text,
        "\n[[flows]]\nname = \"transfer\"\nfrom = \"server\"\nto = \"client\"\nbytes = \"{} B\" # as captured\n",
        transfer.bytes.max(1)
    );
}

fn lossy(text: &mut String, losses: &Losses, way: &str) {
    let Losses { probability: loss, burst_segments, start, .. } = losses;
    match (losses.prefers, loss, burst_segments, start) {
        (
            Prefers::Bursts,
            Estimate::Measured { .. },
            Estimate::Measured { value: length, .. },
            Estimate::Measured { value: start, .. },
        ) => {
            let stay = 1.0 - 1.0 / length;
            let _ = writeln!(
                text,
                "# lost in bursts: {} packets on average, {}\n{way}.packet_bursts = {{ start = {}, burstiness = {} }}",
                number(*length),
                comment(burst_segments, 1.0, "packets"),
                probability(*start),
                probability(stay.max(*start))
            );
        }
        (_, Estimate::Measured { value, .. }, _, _) => {
            let _ = writeln!(text, "{way}.loss = {} # {}", probability(*value), comment(loss, 100.0, "%"));
        }
        _ => {
            let _ = writeln!(text, "# loss: {}", comment(loss, 100.0, "%"));
        }
    }
}

fn of_pings(text: &mut String, pings: &Pings) {
    let interval = pings.spacing.max(MIN_INTERVAL);
    let values = evenly(&pings.round_trips, interval);
    let lasts = values.len() as f64 * interval;
    let (seconds, why) = match lasts < pings.seconds {
        true => (lasts, format!("of {} s: a trace has at most {MAX_VALUES} values", number(pings.seconds))),
        false => (pings.seconds, "as measured".to_owned()),
    };
    let _ = writeln!(text, "time_limit = \"{} s\" # {why}", number(seconds.max(1.0)));
    let base = measured(text, ("\"unlimited\"", &comment(&pings.rate, 1.0, "")), &pings.base_round_trip);
    text.push_str("# All losses are on the way there: a lost ping and a lost answer look the same.\n");
    lossy(text, &pings.losses, "forward");
    // All variation is put on the way back, because its division between the directions is unknown.
    let _ = write!(
        text,
        "\n# Round trips less half of the shortest, in milliseconds: all that varies is on the way back.\n\
         [links.backward.delay_trace]\ninterval = \"{} ms\"\ntext = \"\"\"\n",
        number(interval * 1e3)
    );
    for line in values.chunks(PER_LINE) {
        let values: Vec<String> = line.iter().map(|took| number((took - base / 2.0) * 1e3)).collect();
        let _ = writeln!(text, "{}", values.join(" "));
    }
    text.push_str("\"\"\"\n");
    ends(text);
    let packet = pings.packet.unwrap_or(84);
    let _ = write!(
        text,
        "\n[[flows]]\nname = \"pings\"\ntype = \"udp\"\nfrom = \"server\"\nto = \"client\"\npacket = \"{packet} B\"\n\
         rate = \"{} bit/s\" # one packet in {} ms\n",
        (f64::from(packet) * 8.0 / pings.spacing).round().max(1.0),
        number(pings.spacing * 1e3)
    );
}

/// The last known round trip at evenly spaced times.
fn evenly(trips: &[(f64, f64)], spacing: f64) -> Vec<f64> {
    let (Some(first), Some(last)) = (trips.first(), trips.last()) else { return Vec::new() };
    let count = ((last.0 / spacing) as usize + 1).min(MAX_VALUES);
    let mut next = 0;
    let mut current = first.1;
    let mut values = Vec::with_capacity(count);
    for step in 0..count {
        while trips.get(next).is_some_and(|trip| trip.0 <= step as f64 * spacing + spacing / 2.0) {
            current = trips[next].1;
            next += 1;
        }
        values.push(current);
    }
    values
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::path::Path;

    use bentpipe_engine::link::{LinkConfig, PacketBursts, QueueLimit};
    use bentpipe_engine::units::{Bytes, Duration, Rate};
    use bentpipe_study::scenario::{FlowKind, Scenario, Workload};

    use super::*;

    /// Reads what was written.
    fn read(fit: &Fit, name: &str) -> Scenario {
        let text = scenario(fit, name, "a \"test\" of C:\\x");
        Scenario::parse(&text, "fit.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
    }

    fn link<'s>(scenario: &'s Scenario, name: &str) -> &'s LinkConfig {
        &scenario[scenario.link(name).expect("a link")].config
    }

    /// Pings this many milliseconds apart, with these round trips in milliseconds.
    fn pings(apart: f64, round_trips: &[f64]) -> Fit {
        let line = |(n, took): (usize, &f64)| format!("{:.5} {n} {took}\n", 1000.0 + n as f64 * apart / 1e3);
        let log: String = round_trips.iter().enumerate().map(line).collect();
        Fit::Pings(crate::ping::fit(Path::new("log"), Box::new(Cursor::new(log))).expect("a log"))
    }

    /// The delays of the way back: time and delay in microseconds.
    fn way_back(scenario: &Scenario) -> Vec<(u64, u64)> {
        let moves = link(scenario, "measured/backward").moves.as_ref().expect("a trace");
        let delays = moves.delay.as_ref().expect("delays");
        let micros = |span: Duration| span.as_nanos() / 1000;
        delays.changes().iter().map(|change| (micros(change.at), micros(Duration::from_ticks(change.value)))).collect()
    }

    /// Half of the shortest round trip on the way there, the rest on the way back. A packet of 84 B each 100 ms is 6720 bit/s.
    #[test]
    fn pings_become_a_delay_trace() {
        let scenario = read(&pings(100.0, &[40.0, 52.0, 61.0, 40.0, 40.0]), "log");
        assert_eq!(link(&scenario, "measured/forward").delay, Duration::from_millis(20));
        assert_eq!(way_back(&scenario)[..3], [(0, 20_000), (100_000, 32_000), (200_000, 41_000)]);
        let FlowKind::Udp(flow) = &scenario.flows[0].kind else { panic!("UDP") };
        assert_eq!((flow.rate.bits_per_second(), flow.packet), (6720, 84));
    }

    /// A trace has at most one value in a millisecond. Of pings each 0.4 ms it has the last one known half a millisecond later: those of
    /// 0.4 ms and of 1.2 ms.
    #[test]
    fn pings_faster_than_a_trace_can_be() {
        let scenario = read(&pings(0.4, &[4.0, 5.0, 6.0, 7.0, 8.0]), "log");
        assert_eq!(way_back(&scenario), [(0, 3000), (1000, 5000)]);
    }

    /// Names with what `--set` splits names at, or with nothing else, as files may have them.
    #[test]
    fn names_of_files_become_names_of_scenarios() {
        let names = ["transfer.2026-11-30", "a=b", " x ", "", "tab\there"];
        let fit = pings(100.0, &[40.0, 52.0]);
        assert_eq!(names.map(|name| read(&fit, name).name), ["transfer-2026-11-30", "a-b", "x", "measured", "tabhere"]);
    }

    #[test]
    fn a_trace_has_a_length_that_can_be_read() {
        assert_eq!(evenly(&[(0.0, 1.0), (1e6, 2.0)], 1.0).len(), MAX_VALUES);
        // A scenario lasts no longer than its trace, which would start again.
        let long = vec![40.0; MAX_VALUES + 4];
        let text = scenario(&pings(100.0, &long), "log", "a test");
        assert!(
            text.contains("\ntime_limit = \"3600 s\" # of 3600.3 s: a trace has at most 36000 values\n"),
            "{}",
            &text[..400]
        );
    }

    /// Round trips of a network of a room: half of the shortest is 35 us.
    #[test]
    fn delays_have_the_digits_of_the_log() {
        let scenario = read(&pings(1000.0, &[0.07, 0.082, 0.075]), "log");
        assert_eq!(way_back(&scenario), [(0, 35), (1_000_000, 47), (2_000_000, 40)]);
    }

    fn transfer(losses: Losses, queue_bytes: f64) -> Fit {
        let unknown = || Estimate::unknown("not needed");
        Fit::Transfer(Transfer {
            from: String::new(),
            to: String::new(),
            near: "sender",
            seconds: 1.0,
            bytes: 0,
            mss: 1448,
            rate: Estimate::measured(20e6, 19e6, 21e6),
            rate_spread: 0.0,
            base_round_trip: Estimate::measured(0.6, 0.5, 0.7),
            queue_time: unknown(),
            queue_bytes: Estimate::measured(queue_bytes, 0.0, 1e9),
            queue_losses: 0,
            losses,
            round_trips: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Bursts of four losses end with a probability of a quarter. A capture without data, and a queue shorter than a packet, are
    /// refused by the language.
    #[test]
    fn a_transfer_becomes_a_link() {
        let lost = |fates: &[bool]| crate::losses::losses(fates.iter().copied());
        let mut bursts = vec![false; 1000];
        [100, 101, 102, 103, 500, 501, 502, 503].into_iter().for_each(|n| bursts[n] = true);
        let scenario = read(&transfer(lost(&bursts), 50_000.0), "x");
        let there = link(&scenario, "measured/forward");
        assert_eq!((there.rate, there.delay), (Rate::from_bits_per_second(20_000_000), Duration::from_millis(300)));
        assert_eq!(there.queue.limit, QueueLimit::Bytes(Bytes::new(50_000)));
        let Some(PacketBursts::Conditional { start, again }) = there.packet_bursts else { panic!("{there:?}") };
        // Two of the 991 pairs that begin with an arrival.
        assert_eq!((again.get(), start.get()), (0.75, 0.002_018_16));
        assert_eq!(link(&scenario, "measured/backward").packet_bursts, None);
        let small = read(&transfer(lost(&[false; 10]), 3.0), "x");
        assert_eq!(link(&small, "measured/forward").queue.limit, QueueLimit::Bytes(Bytes::new(1448)));
        assert_eq!(small.flows[0].kind.workload(), Some(Workload::Bulk(Bytes::new(1))));
        // One loss in one and a half million packets, and one burst of two.
        let mut rare = vec![false; 1_500_000];
        rare[7] = true;
        assert_eq!(
            link(&read(&transfer(lost(&rare), 5e4), "x"), "measured/forward").good.packet.get(),
            0.000_000_666_667
        );
        rare[8] = true;
        let rare = read(&transfer(lost(&rare), 5e4), "x");
        let Some(PacketBursts::Conditional { start, again }) = link(&rare, "measured/forward").packet_bursts else {
            panic!("{rare:?}")
        };
        assert_eq!((again.get(), start.get()), (0.5, 0.000_000_666_668));
        // Alternating losses are independent: loss, and no bursts.
        let half = read(&transfer(lost(&[true, false, true, false]), 5e4), "x");
        let there = link(&half, "measured/forward");
        assert_eq!((there.good.packet.get(), &there.packet_bursts), (0.5, &None));
    }
}
