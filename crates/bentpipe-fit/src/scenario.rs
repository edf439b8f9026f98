//! Writes a scenario that behaves like the measured path.

use std::fmt::Write as _;

use crate::estimate::Estimate;
use crate::losses::{Losses, Prefers};
use crate::{Fit, Pings, Transfer};

/// Number of values in a line of a trace.
const PER_LINE: usize = 24;
/// Maximum number of values in a trace: an hour of pings at ten per second.
const MAX_VALUES: usize = 36_000;

/// The text of a scenario with the measured values. `name` is its name, `source` says where the values come from.
pub fn scenario(fit: &Fit, name: &str, source: &str) -> String {
    let clean =
        |text: &str| text.chars().filter(|c| !c.is_control()).collect::<String>().replace('\\', "/").replace('"', "'");
    let mut text = format!("name = \"{}\"\nsource = \"{}\"\nseed = 1\n", clean(name), clean(source));
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
    let digits = if value.abs() < 1e-12 { 0 } else { (5 - value.abs().log10().floor() as i32).clamp(0, 6) };
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
    let Losses { probability, burst_segments, start, .. } = losses;
    match (losses.prefers, probability, burst_segments, start) {
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
                number(*start),
                number(stay.max(*start))
            );
        }
        (_, Estimate::Measured { value, .. }, _, _) => {
            let _ = writeln!(text, "{way}.loss = {} # {}", number(*value), comment(probability, 100.0, "%"));
        }
        _ => {
            let _ = writeln!(text, "# loss: {}", comment(probability, 100.0, "%"));
        }
    }
}

fn of_pings(text: &mut String, pings: &Pings) {
    let _ = writeln!(text, "time_limit = \"{} s\" # as measured", number(pings.seconds.max(1.0)));
    let base = measured(text, ("\"unlimited\"", &comment(&pings.rate, 1.0, "")), &pings.base_round_trip);
    text.push_str("# All losses are on the way there: a lost ping and a lost answer look the same.\n");
    lossy(text, &pings.losses, "forward");
    // All variation is put on the way back, because its division between the directions is unknown.
    let _ = write!(
        text,
        "\n# Round trips less half of the shortest, in milliseconds: all that varies is on the way back.\n\
         [links.backward.delay_trace]\ninterval = \"{} ms\"\ntext = \"\"\"\n",
        number(pings.spacing * 1e3)
    );
    for line in evenly(&pings.round_trips, pings.spacing).chunks(PER_LINE) {
        let values: Vec<String> = line.iter().map(|took| format!("{:.1}", (took - base / 2.0) * 1e3)).collect();
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
