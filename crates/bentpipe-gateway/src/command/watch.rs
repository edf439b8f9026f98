//! `bentpipe gateway status --interval`: a table of what the gateway carries, a line for each interval, and sums at the end.
//!
//! It asks for the status at each interval, so the gateway does nothing more for it. Values of several peers are added.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bentpipe_language::quantity::DURATION;
use serde_json::Value as Json;

use super::Failure;

/// The shortest interval: lines of shorter ones cannot be read.
const SHORTEST: Duration = Duration::from_millis(100);

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// Lines under a header before it is repeated: it stays on a terminal of 24 lines.
const REPEAT: usize = 20;

const HEADER: &str = "        seconds             sent         received    packets     lost  dropped  waiting\n";

/// Reads an interval, such as `1s`.
///
/// # Errors
/// Returns what was expected for what is no duration, and for less than 100 ms.
pub fn interval(text: &str) -> Result<Duration, String> {
    match DURATION.parse(text).map(Duration::from_nanos).map_err(|error| error.to_string())? {
        every if every >= SHORTEST => Ok(every),
        _ => Err("expected at least 100 ms".to_owned()),
    }
}

/// What a gateway has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    sent: u64,
    received: u64,
    packets: u64,
    lost: u64,
    dropped: u64,
    /// Packets that wait now.
    waiting: u64,
}

/// The keys of each count: two boxes, one box, and one box with the kernel's TCP.
const SENT: [(&str, &str); 3] = [("satellite", "sent_bytes"), ("satellite", "bytes"), ("streams", "bytes_sent")];
const RECEIVED: [(&str, &str); 2] = [("satellite", "received_bytes"), ("streams", "bytes_received")];
const PACKETS: [(&str, &str); 2] = [("satellite", "packets_sent"), ("satellite", "packets")];
const LOST: [(&str, &str); 2] = [("satellite", "lost"), ("satellite", "retransmits")];
const DROPPED: [(&str, &str); 3] = [("satellite", "dropped"), ("satellite", "no_room"), ("uplink", "no_room")];
const WAITING: [(&str, &str); 1] = [("satellite", "waiting")];

impl Counts {
    /// From a status.
    fn read(status: &str) -> Result<Self, serde_json::Error> {
        let status: Json = serde_json::from_str(status)?;
        let peers = status["peers"].as_object().into_iter().flat_map(|peers| peers.values());
        let all: Vec<&Json> = std::iter::once(&status).chain(peers).collect();
        let sum = |keys: &[(&str, &str)]| {
            let of = |one: &Json| keys.iter().filter_map(|(table, key)| one[table][key].as_u64()).sum::<u64>();
            all.iter().map(|one| of(one)).sum::<u64>()
        };
        Ok(Counts {
            sent: sum(&SENT),
            received: sum(&RECEIVED),
            packets: sum(&PACKETS),
            lost: sum(&LOST),
            dropped: sum(&DROPPED),
            waiting: sum(&WAITING),
        })
    }

    /// What was counted since `before`; nothing if the gateway was started anew.
    fn line(self, before: Counts, from: Duration, to: Duration) -> String {
        let seconds = (to - from).as_secs_f64();
        let rate = |now: u64, before: u64| {
            let rate = if seconds > 0.0 { now.saturating_sub(before) as f64 * 8e-6 / seconds } else { 0.0 };
            format!("{rate:.3} Mbit/s")
        };
        let (sent, received) = (rate(self.sent, before.sent), rate(self.received, before.received));
        let [packets, lost, dropped] =
            [(self.packets, before.packets), (self.lost, before.lost), (self.dropped, before.dropped)]
                .map(|(now, before)| now.saturating_sub(before));
        let span = format!("{:.1} - {:.1}", from.as_secs_f64(), to.as_secs_f64());
        format!("{span:>15}  {sent:>15}  {received:>15}  {packets:>9}  {lost:>7}  {dropped:>7}  {:>7}\n", self.waiting)
    }
}

/// Prints the table until SIGINT, SIGTERM, or the gateway's end.
///
/// # Errors
/// Fails if the gateway does not answer, or if what it says is no status.
pub(super) fn watch(
    every: Duration,
    ask: impl Fn() -> io::Result<String>,
    mut print: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over)).map_err(Failure::broken)?;
    }
    let start = Instant::now();
    let counted = || ask().and_then(|status| Counts::read(&status).map_err(io::Error::other));
    let first = counted().map_err(Failure::broken)?;
    let (mut last, mut since, mut lines, mut turn) = (first, Duration::ZERO, 0, 1);
    loop {
        let due = every.saturating_mul(turn);
        while start.elapsed() < due && !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK.min(due.saturating_sub(start.elapsed())));
        }
        // A gateway that has ended has said its last.
        let Ok(now) = counted() else { break };
        if lines % REPEAT == 0 {
            print(HEADER)?;
        }
        let at = start.elapsed();
        print(&now.line(last, since, at))?;
        (last, since, lines, turn) = (now, at, lines + 1, turn + 1);
        if is_over.load(Ordering::Relaxed) {
            break;
        }
    }
    print(&format!("{}\n{}", "- ".repeat(HEADER.len() / 2).trim_end(), last.line(first, Duration::ZERO, since)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_each_shape_and_of_all_peers() {
        let of = |text: &str| Counts::read(text).expect("a status");
        let link = "{\"satellite\": {\"sent_bytes\": 10, \"received_bytes\": 20, \"packets_sent\": 3, \"lost\": 1, \
                    \"dropped\": 2, \"no_room\": 4, \"waiting\": 5, \"bytes_per_second\": 9}}";
        let counts = Counts { sent: 10, received: 20, packets: 3, lost: 1, dropped: 6, waiting: 5 };
        assert_eq!(of(link), counts);
        let hub = of(&format!("{{\"peers\": {{\"a\": {link}, \"b\": {link}}}}}"));
        assert_eq!(hub, Counts { sent: 20, received: 40, packets: 6, lost: 2, dropped: 12, waiting: 10 });
        let uplink =
            of("{\"satellite\": {\"bytes\": 7, \"packets\": 2, \"retransmits\": 1}, \"uplink\": {\"no_room\": 3}}");
        assert_eq!(uplink, Counts { sent: 7, packets: 2, lost: 1, dropped: 3, ..Counts::default() });
    }

    #[test]
    fn a_line_is_under_its_header() {
        let before = Counts { sent: 1_000_000, packets: 100, ..Counts::default() };
        let now = Counts { sent: 3_500_000, received: 125_000, packets: 350, lost: 2, dropped: 1, waiting: 40 };
        let line = now.line(before, Duration::from_secs(1), Duration::from_secs(3));
        assert_eq!(line, "      1.0 - 3.0    10.000 Mbit/s     0.500 Mbit/s        250        2        1       40\n");
        assert_eq!(line.len(), HEADER.len());
    }

    #[test]
    fn lines_come_until_the_gateway_is_gone() {
        let answers = std::cell::RefCell::new(vec![3_u64, 2, 1]);
        let ask = || {
            let sent = answers.borrow_mut().pop().ok_or_else(|| io::Error::other("gone"))?;
            Ok(format!("{{\"satellite\": {{\"packets\": {sent}}}}}"))
        };
        let mut text = String::new();
        watch(SHORTEST, ask, |more| {
            text.push_str(more);
            Ok(())
        })
        .expect("it answered first");
        let packets: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("Mbit/s"))
            .filter_map(|line| line.split_whitespace().nth(7))
            .collect();
        assert_eq!(packets, ["1", "1", "2"], "two intervals and the sum\n{text}");
    }

    #[test]
    fn an_interval_has_a_unit_and_can_be_read() {
        assert_eq!(interval("1s"), Ok(Duration::from_secs(1)));
        for wrong in ["1", "20 ms", "x"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
