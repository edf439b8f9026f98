//! `bentpipe gateway status --interval`: a table of the gateway's traffic, one line per interval, with sums at the end.
//!
//! It requests the status once per interval, and costs the gateway nothing else. Values of several peers are added up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::Failure;

/// How often the command checks whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// Number of lines before the header is repeated, so that it stays visible on a terminal with 24 lines.
const REPEAT: usize = 20;

const HEADER: &str = "       seconds  Mbit/s out  Mbit/s in  packets  resent  dropped  waiting   open\n";

/// The counts of a gateway; `None` for what its shape does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    sent: Option<u64>,
    received: Option<u64>,
    packets: Option<u64>,
    resent: Option<u64>,
    dropped: Option<u64>,
    /// Number of packets waiting now.
    waiting: Option<u64>,
    /// Number of connections open now.
    open: Option<u64>,
}

/// Tables and keys of each count: for two boxes, one box, and one box with the kernel's TCP.
const SENT: [(&str, &str); 3] = [("satellite", "sent_bytes"), ("satellite", "bytes"), ("uplink", "bytes_sent")];
const RECEIVED: [(&str, &str); 2] = [("satellite", "received_bytes"), ("uplink", "bytes_received")];
const PACKETS: [(&str, &str); 2] = [("satellite", "packets_sent"), ("satellite", "packets")];
const RESENT: [(&str, &str); 2] = [("satellite", "resent"), ("satellite", "retransmits")];
const DROPPED: [(&str, &str); 3] = [("satellite", "dropped"), ("satellite", "no_room"), ("uplink", "no_room")];
const WAITING: [(&str, &str); 1] = [("satellite", "waiting")];
const OPEN: [(&str, &str); 2] = [("split", "open"), ("uplink", "open")];

impl Counts {
    /// Reads the counts from a status.
    fn read(status: &str) -> Result<Self, serde_json::Error> {
        let status: Json = serde_json::from_str(status)?;
        let peers = status["peers"].as_object().into_iter().flat_map(|peers| peers.values());
        let all: Vec<&Json> = std::iter::once(&status).chain(peers).collect();
        let sum = |keys: &[(&str, &str)]| {
            let of = |one: &Json| keys.iter().filter_map(|(table, key)| one[table][key].as_u64()).reduce(|a, b| a + b);
            all.iter().filter_map(|one| of(one)).reduce(|a, b| a + b)
        };
        Ok(Counts {
            sent: sum(&SENT),
            received: sum(&RECEIVED),
            packets: sum(&PACKETS),
            resent: sum(&RESENT),
            dropped: sum(&DROPPED),
            waiting: sum(&WAITING),
            open: sum(&OPEN),
        })
    }

    /// The line of the counts since `before`; nothing if the gateway was restarted.
    fn line(self, before: Counts, from: Duration, to: Duration) -> String {
        let seconds = (to - from).as_secs_f64();
        let since = |now: Option<u64>, before: Option<u64>| now.map(|now| now.saturating_sub(before.unwrap_or(0)));
        let rate = |now, before| match since(now, before) {
            Some(bytes) if seconds > 0.0 => format!("{:.3}", bytes as f64 * 8e-6 / seconds),
            _ => "–".to_owned(),
        };
        let (sent, received) = (rate(self.sent, before.sent), rate(self.received, before.received));
        let shown = |count: Option<u64>| count.map_or("–".to_owned(), |count| count.to_string());
        let [packets, resent, dropped] =
            [(self.packets, before.packets), (self.resent, before.resent), (self.dropped, before.dropped)]
                .map(|(now, before)| shown(since(now, before)));
        let (waiting, open) = (shown(self.waiting), shown(self.open));
        let span = format!("{:.1} - {:.1}", from.as_secs_f64(), to.as_secs_f64());
        format!(
            "{span:>14}  {sent:>10}  {received:>9}  {packets:>7}  {resent:>6}  {dropped:>7}  {waiting:>7}  {open:>5}\n"
        )
    }
}

/// The first multiple of the interval after this time: if the gateway answers late, the lines that would have come meanwhile are left out.
fn next_due(at: Duration, every: Duration) -> Duration {
    let before = at.as_nanos() / every.as_nanos().max(1);
    every.saturating_mul(u32::try_from(before + 1).unwrap_or(u32::MAX))
}

/// Prints the table until SIGINT, SIGTERM, or the gateway's end.
///
/// # Errors
/// Fails if the gateway does not answer at its socket, at first or without having ended, or if its answer is not a valid status.
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
    let (mut last, mut since, mut lines, mut due) = (first, Duration::ZERO, 0, every);
    let ended = loop {
        while start.elapsed() < due && !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK.min(due.saturating_sub(start.elapsed())));
        }
        let now = match counted() {
            Ok(now) => now,
            Err(error) => break if has_ended(&error) { Ok(()) } else { Err(Failure::broken(error)) },
        };
        if lines % REPEAT == 0 {
            print(HEADER)?;
        }
        let at = start.elapsed();
        print(&now.line(last, since, at))?;
        (last, since, lines, due) = (now, at, lines + 1, next_due(at, every));
        if is_over.load(Ordering::Relaxed) {
            break Ok(());
        }
    };
    print(&format!("{}\n{}", "- ".repeat(HEADER.len() / 2).trim_end(), last.line(first, Duration::ZERO, since)))?;
    ended
}

/// True if an error means that the gateway has ended, before it was asked or while it answered.
fn has_ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use bentpipe_engine::slacp::ChannelStats;
    use bentpipe_engine::units::Rate;

    use super::*;
    use crate::carrier::readings::layer_readings;
    use crate::command::status;
    use crate::relay::RelayStats;
    use crate::split::Waiting;
    use crate::uplink::UplinkStats;
    use crate::{CarrierStats, Readings, SplitStats};

    /// The counts of readings with these values, as status prints them.
    fn of(add: impl FnOnce(&mut Readings)) -> Counts {
        let mut readings = Readings::new("hub", "uplink");
        add(&mut readings);
        Counts::read(&status::tests::text(&readings)).expect("a status")
    }

    #[test]
    fn counts_of_one_box_with_either_sender() {
        let rate = Rate::from_bits_per_second(8_000_000).expect("not zero");
        let counted =
            UplinkStats { bytes: 7, packets: 2, retransmits: 1, no_room: 3, open: 4, ..UplinkStats::default() };
        let expected = Counts {
            sent: Some(7),
            packets: Some(2),
            resent: Some(1),
            dropped: Some(3),
            open: Some(4),
            ..Counts::default()
        };
        assert_eq!(of(|readings| readings.add_uplink(rate, &counted, 0, 0)), expected);
        let counted = RelayStats { to_clients: 9, to_servers: 8, open: 1, ..RelayStats::default() };
        let expected = Counts { sent: Some(9), received: Some(8), open: Some(1), ..Counts::default() };
        assert_eq!(of(|readings| readings.add_relay(rate, 0, &counted)), expected, "what the kernel sends is not seen");
    }

    #[test]
    fn counts_of_two_boxes_and_of_all_peers() {
        let channel = ChannelStats {
            sent: 3,
            sent_bytes: 10,
            resent: 1,
            dropped_full: 1,
            dropped_early: 1,
            ..Default::default()
        };
        let layer =
            CarrierStats { channels: vec![channel; 2], received_bytes: 20, no_room: 4, ..CarrierStats::default() };
        let one = |readings: &mut Readings| {
            layer_readings(readings, &layer);
            readings.add_split(
                &SplitStats { open: 5, ..SplitStats::default() },
                &Waiting { unsent: 0, held: 0, memory: 0 },
            );
        };
        let counts = |n: u64| Counts {
            sent: Some(n * 20),
            received: Some(n * 20),
            packets: Some(n * 6),
            resent: Some(n * 2),
            dropped: Some(n * 8),
            waiting: None,
            open: Some(n * 5),
        };
        assert_eq!(of(one), counts(1));
        let hub = |readings: &mut Readings| {
            readings.of_peer(Some("a".into()), one);
            readings.of_peer(Some("b".into()), one);
        };
        assert_eq!(of(hub), counts(2));
    }

    #[test]
    fn a_line_is_under_its_header() {
        let before = Counts { sent: Some(1_000_000), packets: Some(100), ..Counts::default() };
        let now = Counts {
            sent: Some(3_500_000),
            received: Some(125_000),
            packets: Some(350),
            resent: Some(2),
            open: Some(40),
            ..Counts::default()
        };
        let line = now.line(before, Duration::from_secs(1), Duration::from_secs(3));
        assert_eq!(line, "     1.0 - 3.0      10.000      0.500      250       2        –        –     40\n");
        assert_eq!(line.chars().count(), HEADER.chars().count());
        assert!(HEADER.len() <= 80, "it fits a terminal");
    }

    /// A gateway that is stopped for some intervals answers late. The lines that would have come meanwhile are left out.
    #[test]
    fn a_late_answer_is_one_line() {
        let every = Duration::from_millis(100);
        for (at_ms, due_ms) in [(100, 200), (199, 200), (200, 300), (550, 600)] {
            assert_eq!(next_due(Duration::from_millis(at_ms), every), Duration::from_millis(due_ms));
        }
        assert_eq!(next_due(Duration::MAX, every), every * u32::MAX);
        assert_eq!(next_due(Duration::ZERO, Duration::MAX), Duration::MAX);
    }

    #[test]
    fn lines_come_until_the_gateway_is_gone() {
        let answers = std::cell::RefCell::new(vec![3_u64, 2, 1]);
        let ask = || {
            let sent = answers.borrow_mut().pop().ok_or(io::ErrorKind::ConnectionRefused)?;
            Ok(format!("{{\"satellite\": {{\"packets\": {sent}}}}}"))
        };
        let mut text = String::new();
        watch(bentpipe_language::single::SHORTEST, ask, |more| {
            text.push_str(more);
            Ok(())
        })
        .expect("it answered first");
        let packets: Vec<&str> = text
            .lines()
            .filter(|line| line.contains(" - ") && !line.starts_with("- "))
            .filter_map(|line| line.split_whitespace().nth(5))
            .collect();
        assert_eq!(packets, ["1", "1", "2"], "two intervals and the sum\n{text}");
    }

    /// A gateway that does not answer has not ended. The sum is printed even so.
    #[test]
    fn silence_is_no_end() {
        let asked = std::cell::Cell::new(0);
        let ask = || {
            asked.set(asked.get() + 1);
            if asked.get() < 3 {
                Ok("{}".to_owned())
            } else {
                Err(io::Error::new(io::ErrorKind::TimedOut, "no answer"))
            }
        };
        let mut text = String::new();
        let ended = watch(bentpipe_language::single::SHORTEST, ask, |more| {
            text.push_str(more);
            Ok(())
        });
        let Err(Failure::Broken(message)) = ended else { panic!("{ended:?}\n{text}") };
        assert!(message.contains("no answer") && text.contains("- - -"), "{message}\n{text}");
    }
}
