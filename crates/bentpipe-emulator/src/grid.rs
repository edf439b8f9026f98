//! A grid of transfers for comparing the engine's Linux hosts with the kernel's.
//!
//! Each cell combines a link, a mishap on it, and a congestion control. Losses are chosen by packet number and are the
//! same for both. Unless a queue must overflow, queues are long and the receiver limits the window, so that no single
//! packet decides the result.

use bentpipe_engine::stream::Stream;
use bentpipe_study::scenario::{Scenario, ScenarioErrors, UplinkSpec};

/// A link: its rate and one-way delay, the bytes sent over it, and the receiver's window, which is 1.5 times what the
/// link holds.
struct Orbit {
    name: &'static str,
    rate: &'static str,
    /// One-way delay in milliseconds.
    delay: u64,
    bytes: u64,
    window: u64,
    /// Three times the amount that the link holds.
    queue: &'static str,
    /// A queue short enough to overflow.
    short: &'static str,
    /// A send buffer of about a third of what the link holds. With more than half, HyStart's train of ACKs is nearly
    /// long enough, and chance decides.
    buffer: &'static str,
    /// The first packet to lose, after slow start.
    lost: u64,
    /// None over MEO, where the time of the probe depends on whether the last ACK has let a packet out. In the kernel,
    /// that is up to the program, which writes within 200 ms.
    outage: Option<Outage>,
    /// Length of a long transfer in bytes: at least 35 s, during which BBR probes for the round trip two or three
    /// times.
    long: u64,
}

/// A time during which nothing passes. No timer expires near its end.
#[derive(Clone, Copy)]
struct Outage {
    /// When it begins and how long it takes, milliseconds.
    at: u64,
    length: u64,
    /// Maximum total lateness of the kernel's timers during the outage, in seconds. Each is late by up to a step of the
    /// kernel's timer wheel and a jiffy. The steps are 4, 32 and 256 ms for timers below 256 ms, below 2 s, and above.
    late: f64,
}

const ORBITS: [Orbit; 3] = [
    Orbit {
        name: "GEO",
        rate: "20 Mbit/s",
        delay: 300,
        bytes: 10_000_000,
        window: 2_250_000,
        queue: "1800 ms",
        short: "100 packets",
        buffer: "512 KiB",
        lost: 2500,
        // The probe, a timer of 1.2 s, and one of 2.5 s.
        outage: Some(Outage { at: 5500, length: 2000, late: 0.008 + 0.036 + 0.260 }),
        long: 90_000_000,
    },
    Orbit {
        name: "MEO",
        rate: "50 Mbit/s",
        delay: 75,
        bytes: 20_000_000,
        window: 1_400_000,
        queue: "450 ms",
        short: "100 packets",
        buffer: "320 KiB",
        lost: 5000,
        outage: None,
        long: 220_000_000,
    },
    Orbit {
        name: "LEO",
        rate: "50 Mbit/s",
        delay: 20,
        bytes: 20_000_000,
        window: 375_000,
        queue: "120 ms",
        short: "50 packets",
        buffer: "96 KiB",
        lost: 5000,
        // The probe, and three timers of 0.3 to 1.1 s.
        outage: Some(Outage { at: 2000, length: 1000, late: 0.008 + 3.0 * 0.036 }),
        long: 220_000_000,
    },
];

/// A mishap on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mishap {
    None,
    One,
    Five,
    /// The last three segments of a short transfer are lost.
    Tail,
    /// 100 consecutive packets are lost.
    Fade,
    /// Nothing passes for a while in either direction, while the window is full.
    Outage,
    /// The SYN of a short transfer is lost.
    Syn,
    Overflow,
    /// No loss, but the send buffer is the limit.
    Buffer,
    /// 1 % of the packets of a short transfer are lost, drawn by their numbers.
    Random,
    /// An overflow on a link of 128 kbit/s, where the interval between segments is longer than an ACK's initial delay.
    /// GEO only.
    Slow,
    /// No loss, in a long transfer.
    Long,
    /// One packet in 10 000 of a long transfer is lost, evenly spaced.
    Sparse,
}

const MISHAPS: [(&str, Mishap); 13] = [
    ("no loss", Mishap::None),
    ("one loss", Mishap::One),
    ("five losses", Mishap::Five),
    ("tail", Mishap::Tail),
    ("fade", Mishap::Fade),
    ("outage", Mishap::Outage),
    ("SYN lost", Mishap::Syn),
    ("overflow", Mishap::Overflow),
    ("send buffer", Mishap::Buffer),
    ("1 % random", Mishap::Random),
    ("slow", Mishap::Slow),
    ("long", Mishap::Long),
    ("long, losses", Mishap::Sparse),
];

/// The tolerance where nothing random decides, percent.
const BAR: f64 = 1.0;
/// The tolerance for bbr, which draws the phase of its cycle, percent.
const BBR_BAR: f64 = 5.0;
/// The tolerance for medians over random losses, percent. Both lose the same packets, but an additional retransmission
/// shifts the rest.
const RANDOM_BAR: f64 = 3.0;
/// The tolerance for long transfers, percent: BBR may make one more or one fewer round-trip probe, which takes 2.7 % of
/// the time over GEO.
const LONG_BAR: f64 = 3.0;
/// The tolerance if a single timer decides, seconds: timers of 256 ms and more are late by up to 32 ms in a kernel with
/// 250 Hz.
const TICK: f64 = 0.032;
/// 1448 bytes of data in all segments except the last, which has 1000.
const SHORT: u64 = 699 * 1448 + 1000;

/// A cell of the grid.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The link, the mishap and the control, such as "GEO, one loss, cubic".
    pub name: String,
    /// The kernel's name of the control.
    pub control: &'static str,
    /// True if random losses decide; medians over seeds are then compared.
    pub is_random: bool,
    /// Maximum difference that counts as agreement, percent.
    pub bar: f64,
    /// Maximum difference that counts as agreement for transfers of any length, seconds.
    pub bar_s: f64,
    variant: &'static str,
    orbit: usize,
    mishap: Mishap,
}

/// All cells.
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for &(control, variant) in UplinkSpec::KERNEL {
        for (orbit, Orbit { name, outage, .. }) in ORBITS.iter().enumerate() {
            for (what, mishap) in MISHAPS {
                let late = match mishap {
                    Mishap::Tail | Mishap::Syn => TICK,
                    Mishap::Outage => match outage {
                        Some(outage) => outage.late,
                        None => continue,
                    },
                    Mishap::Slow if *name != "GEO" => continue,
                    _ => 0.0,
                };
                let is_random = mishap == Mishap::Random;
                let bar = if control == "bbr" { BBR_BAR } else { BAR };
                let bar = match mishap {
                    Mishap::Random => bar.max(RANDOM_BAR),
                    Mishap::Long | Mishap::Sparse => bar.min(LONG_BAR),
                    _ => bar,
                };
                cells.push(Cell {
                    name: format!("{name}, {what}, {control}"),
                    control,
                    is_random,
                    bar,
                    bar_s: late,
                    variant,
                    orbit,
                    mishap,
                });
            }
        }
    }
    cells
}

impl Cell {
    /// The scenario of the kernel's hosts.
    ///
    /// # Errors
    /// Returns the mistakes if the cell does not make a valid scenario.
    pub fn of_kernel(&self, seed: u64) -> Result<Scenario, ScenarioErrors> {
        Scenario::parse(&self.text(true, seed), "grid.toml", &[])
    }

    /// The scenario of the engine's hosts, with a jitter of some microseconds, the timers of a kernel of 250 Hz, and changes as with
    /// `--set`. Without random losses, `seed` decides only the jitter.
    ///
    /// # Errors
    /// Returns the mistakes if one of the changes does not fit the cell's scenario.
    pub fn of_engine(&self, seed: u64, sets: &[(String, String)]) -> Result<Scenario, ScenarioErrors> {
        Scenario::parse(&self.text(false, seed), "grid.toml", sets)
    }

    fn text(&self, kernel: bool, seed: u64) -> String {
        let Orbit { delay, queue, short, buffer, lost, outage, long, .. } = ORBITS[self.orbit];
        let Orbit { mut rate, mut bytes, mut window, .. } = ORBITS[self.orbit];
        let (mut queue, mut sent) = (queue, None);
        let mut numbers: Vec<u64> = Vec::new();
        match self.mishap {
            Mishap::None => {}
            Mishap::One => numbers.push(lost),
            Mishap::Five => numbers.extend([0, 10, 100, 105, 106].map(|more| lost + more)),
            // Packet 0 is the SYN, so 700 is the last segment. The window is never the limit, so that segments are
            // full.
            Mishap::Tail => (numbers, bytes, window) = (vec![698, 699, 700], SHORT, 3_000_000),
            Mishap::Fade => numbers.extend(lost..lost + 100),
            Mishap::Outage => {}
            Mishap::Buffer => sent = Some(buffer),
            Mishap::Syn => (numbers, bytes, window) = (vec![0], SHORT, 3_000_000),
            Mishap::Overflow => (queue, window) = (short, 2 * window),
            Mishap::Random => {
                bytes = SHORT;
                let mut stream = Stream::named(seed, "grid");
                numbers.extend((1..4000).filter(|_| stream.uniform() < 0.01));
            }
            Mishap::Slow => (rate, queue, bytes, window) = ("128 kbit/s", "20 packets", 600_000, 3_000_000),
            Mishap::Long => bytes = long,
            Mishap::Sparse => {
                bytes = long;
                numbers.extend((lost..bytes / 1448).step_by(10_000));
            }
        }
        // In real time the delay varies by some microseconds. This decides whether a packet that meets a full queue comes before or after
        // the one whose departure makes room; without jitter, ACKs make both happen at the same instant. And now and then a round trip is
        // below `min_rtt`, which puts off BBR's next probe.
        let jitter = if kernel { "" } else { "jitter.delay.exponential = \"10 us\"\n" };
        // Elsewhere the buffer begins with 128 KiB, and grows to four times what the peer can hold, which is never the limit.
        let sent = match sent {
            Some(buffer) => format!("send_buffer = \"{buffer}\""),
            None => format!("send_buffer = \"{} B\"\nfirst_send_buffer = \"128 KiB\"", 4 * window),
        };
        // Timers as in a kernel of 250 Hz. Their times relative to its jiffies differ from run to run.
        let jiffy = if kernel { "" } else { "rto.jiffy = \"4 ms\"\n" };
        // The SYN and the ACK of the handshake are the first packets.
        let shift = |number: &u64| number + u64::from(*number > 0);
        let list: Vec<String> = numbers.iter().map(|number| shift(number).to_string()).collect();
        let loss = match (self.mishap, outage) {
            (Mishap::Outage, Some(Outage { at, length, .. })) => {
                let change = |at: u64, loss: u32| format!("{{ at = \"{at} ms\", loss = \"{loss} %\" }}");
                format!(
                    "loss = \"0 %\"
schedule = [{}, {}]",
                    change(at, 100),
                    change(at + length, 0)
                )
            }
            _ if list.is_empty() => String::new(),
            _ => format!("forward.drop_list = [{}]", list.join(", ")),
        };
        format!(
            "name = \"grid\"\nseed = {seed}\ntime_limit = \"600 s\"\n\
             [tcp]\nprofile = \"linux\"\nvariant = \"{}\"\nreceive_buffer = \"{window} B\"\n{sent}\n{jiffy}\
             [[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"{rate}\"\ndelay = \"{delay} ms\"\n\
             forward.queue = \"{queue}\"\n{loss}\n{jitter}\
             [[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"{bytes} B\"\n",
            self.variant
        )
    }

    /// True if `ours` agrees with the kernel's time. Both are in seconds.
    pub fn agrees(&self, ours: f64, kernel: f64) -> bool {
        let difference = (ours - kernel).abs();
        difference <= self.bar_s || difference * 100.0 <= self.bar * kernel
    }

    /// True if some ratio of our time to the kernel's between `low` and `high` would [agree](Self::agrees).
    pub fn may_agree(&self, (low, high): (f64, f64), kernel: f64) -> bool {
        // The possible ratio that is nearest to 1.
        self.agrees(1f64.clamp(low, high) * kernel, kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cells_are_scenarios() {
        for cell in cells() {
            for read in [cell.of_kernel(1), cell.of_engine(1, &[]), cell.of_engine(20, &[])] {
                assert!(read.is_ok(), "{}: {:?}", cell.name, read.err());
            }
        }
    }

    /// The tolerance is 3 %: an interval that reaches it may agree.
    #[test]
    fn an_interval_that_reaches_the_bar_may_agree() {
        let cell = cells().into_iter().find(|cell| cell.is_random && cell.bar == 3.0).expect("a cell");
        for (interval, may) in [((0.9, 0.98), true), ((0.9, 0.96), false), ((1.02, 1.2), true), ((1.04, 1.2), false)] {
            assert_eq!(cell.may_agree(interval, 10.0), may, "{interval:?}");
        }
    }

    /// 1 % of 5 s is 50 ms. A timer's tick counts only if a timer decides.
    #[test]
    fn the_bars_are_those_written_down() {
        let cell = |name: &str| cells().into_iter().find(|cell| cell.name == name).expect("a cell");
        for (name, ours, agrees) in [
            ("GEO, one loss, cubic", 5.049, true),
            ("GEO, one loss, cubic", 5.051, false),
            ("LEO, tail, reno", 5.049, true),
            ("LEO, 1 % random, reno", 5.149, true),
            ("LEO, 1 % random, reno", 5.151, false),
            ("GEO, overflow, bbr", 5.249, true),
            ("GEO, long, bbr", 5.149, true),
            ("GEO, long, bbr", 5.151, false),
            ("GEO, long, cubic", 5.051, false),
        ] {
            assert_eq!(cell(name).agrees(ours, 5.0), agrees, "{name}");
        }
        assert!(cell("LEO, tail, reno").agrees(0.631, 0.6) && !cell("LEO, one loss, reno").agrees(0.631, 0.6));
    }
}
