//! The grid of `make bench-gateway` in virtual time: an upload of 30 MB and objects on new connections, with the kernel's cubic at
//! both hosts, directly and through gateways. `cargo run -p bentpipe-sim --example gateway_grid`.
//!
//! GEO, 10 Mbit/s, 600 ms, a drop-tail queue of 500 packets, boxes configured for 99.5 % of the rate. Hosts join
//! packets that arrive together, as behind a TUN device that receives trains. Transfers start within the first minute,
//! each at a different phase of the channel. Medians are over 20 seeds. Options: `--shapes direct,split,link`,
//! `--losses 0,0.01,outages`, `--seeds N`, `--out FILE`, which writes all runs as JSON, and `--measured FILE`, the `--out` of
//! `make bench-gateway`: each figure is then followed by its difference from the measured one in percent, with a 95 %
//! interval (bootstrap). A shape of
//! `uplink-burst`, `uplink-ROW`, `uplink-ROW-fixed` (a window of one bandwidth-delay product) or `uplink-kernel-NAME`
//! is a single box before the link. Its transfer is a download of 30 MB that the client requests.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, NoProbe, Probe, Who};
use bentpipe_engine::stream::Stream;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_sim::{Observer, Packet, Passage, RunResult, in_parallel, run};
use bentpipe_study::scenario::Scenario;
use bentpipe_study::stats::{Sample, median_ratio_interval};
use bentpipe_study::topology;

const SKY: &str = r#"
name = "gateway-grid"
time_limit = "2000 s"
[tcp]
profile = "linux"
first_window = "64 kB"
ack.gro = "20 us"
[[links]]
name = "lan"
between = ["client", "near"]
rate = "10 Gbit/s"
delay = "10 us"
[[links]]
name = "sat"
between = ["near", "far"]
rate = "10 Mbit/s"
delay = "300 ms"
queue = "500 packets"
LOSS
[[links]]
name = "net"
between = ["far", "server"]
rate = "10 Gbit/s"
delay = "10 us"
BOXES
[[flows]]
name = "transfer"
from = "client"
to = "server"
FLOW
"#;

const BULK: u64 = 30_000_000;
/// As in the measurement, the reader gives up after [`PATIENCE`], or if nothing has arrived for [`SILENCE`].
const PATIENCE: Duration = Duration::from_secs(40);
const SILENCE: Duration = Duration::from_secs(5);
/// Milliseconds between the starts of consecutive objects.
const SPACING: u64 = 4000;
const OUTAGES: &str =
    "bursts = { gap = { uniform = [\"1 s\", \"10 s\"] }, length = { uniform = [\"100 ms\", \"500 ms\"] } }";

fn world(shape: &str, loss: &str, flow: &str) -> Scenario {
    let boxes = match shape {
        "direct" => String::new(),
        shape if shape.starts_with("uplink-") => {
            let row = &shape["uplink-".len()..];
            let sender = match (row.strip_prefix("kernel-"), row.strip_suffix("-fixed")) {
                (Some(name), _) => format!("sender = \"kernel\"\ncongestion = \"{name}\""),
                (None, Some(row)) => format!("variant = \"{row}\"\ntcp.fixed_window = 518"),
                (None, None) => format!("variant = \"{row}\""),
            };
            let head = "[[gateways]]\nname = \"box\"\nshape = \"uplink\"\nat = \"far\"\nrate = \"9.95 Mbit/s\"";
            format!("{head}\n{sender}\n")
        }
        shape => format!(
            "[[gateways]]\nname = \"box\"\nshape = \"{shape}\"\nnear = \"near\"\nfar = \"far\"\nrate = \"9.95 Mbit/s\"\n"
        ),
    };
    let loss = if loss == "outages" { OUTAGES.to_owned() } else { format!("loss = {loss}") };
    let text = SKY.replace("LOSS", &loss).replace("BOXES", &boxes).replace("FLOW", flow);
    Scenario::parse(&text, "gateway-grid", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn median(values: Vec<f64>) -> f64 {
    Sample::with_infinite(values).map_or(f64::NAN, |sample| sample.median())
}

fn seconds(result: &RunResult) -> f64 {
    let flow = &result.flows[0];
    flow.received_at.map_or(f64::INFINITY, |end| end.saturating_since(flow.start).as_secs_f64())
}

/// The time that objects on new connections take, in seconds. As in the measurement, three of 100 kB precede one of 1
/// MB, so that the boxes have learned the losses.
fn objects(shape: &str, loss: &str, bytes: &str, seeds: u64) -> Vec<f64> {
    let times = in_parallel((1..seeds + 1).collect(), 0, |seed| {
        let start = (60_000.0 * Stream::named(seed, "start").uniform()) as u64;
        let before = if bytes == "1 MB" { 3 } else { 0 };
        let asked = |bytes: &str, at: u64| {
            format!(
                "start = \"{at} ms\"\nrequest_response = {{ request = \"100 B\", response = \"{bytes}\", count = 1 }}\n"
            )
        };
        let mut flows = asked(bytes, start + SPACING * before);
        for n in 0..before {
            let small = asked("100 kB", start + SPACING * n);
            flows += &format!("[[flows]]\nname = \"before-{n}\"\nfrom = \"client\"\nto = \"server\"\n{small}");
        }
        Ok(seconds(&run(&world(shape, loss, &flows), seed, &mut NoProbe)?))
    });
    times.expect("a path and threads")
}

/// The reader of a bulk transfer.
struct Reader {
    /// The end that reads.
    who: Who,
    start: Option<Time>,
    /// Number of bytes read, and when the last of them were read.
    read: u64,
    last: Time,
    gave_up: Option<Time>,
}

impl Reader {
    /// Checks the time. Returns true while the reader still waits.
    fn is_patient(&mut self, now: Time) -> bool {
        let start = *self.start.get_or_insert(now);
        let end = (start + PATIENCE).min(self.last.max(start) + SILENCE);
        if self.gave_up.is_none() && now >= end {
            self.gave_up = Some(end);
        }
        self.gave_up.is_none()
    }

    /// The rate in Mbit/s.
    fn rate(&self) -> f64 {
        let took = self.gave_up.unwrap_or(self.last).saturating_since(self.start.unwrap_or(Time::ZERO));
        self.read as f64 * 8.0 / 1e6 / took.as_secs_f64()
    }
}

impl Probe for Reader {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        if let Event::Sent { segment, .. } = event
            && self.is_patient(now)
            && who == self.who
            && segment.ack > self.read
        {
            (self.read, self.last) = (segment.ack, now);
        }
    }
}

impl Observer for Reader {
    fn packet(&mut self, now: Time, _: LinkId, _: Passage, _: &Packet) {
        self.is_patient(now);
    }
}

/// What the reader of each bulk transfer saw: the rate in Mbit/s, and the bytes offered to the satellite link per byte
/// read.
fn bulk(shape: &str, loss: &str, seeds: u64) -> (Vec<f64>, Vec<f64>) {
    let is_down = shape.starts_with("uplink-");
    let flow = match is_down {
        true => format!("request_response = {{ request = \"1 B\", response = \"{BULK} B\", count = 1 }}"),
        false => format!("bytes = \"{BULK} B\""),
    };
    let flow = format!("spread = \"60 s\"\n{flow}");
    let world = world(shape, loss, &flow);
    let last = topology::connections(&world).len() as u32 - 1;
    let (who, sat) = if is_down { (Who(0), 3) } else { (Who(2 * last + 1), 2) };
    let figures = in_parallel((1..seeds + 1).collect(), 0, |seed| {
        let mut reader = Reader { who, start: None, read: 0, last: Time::ZERO, gave_up: None };
        let whole = run(&world, seed, &mut reader)?;
        // The links' counters are those at the end of a run.
        let ended = match reader.gave_up {
            Some(end) => run(&Scenario { time_limit: end - Time::ZERO, ..world.clone() }, seed, &mut NoProbe)?,
            None => whole,
        };
        let sat = &ended.links[sat];
        // Long and short packets are equally likely to be lost.
        let offered = sat.delivered_bytes as f64 * sat.offered as f64 / sat.delivered as f64;
        Ok((reader.rate(), offered / reader.read as f64))
    });
    figures.expect("a path and threads").into_iter().unzip()
}

/// The median of a figure, and its difference from the median of the measurement.
fn shown(ours: &[f64], measured: Option<Vec<f64>>) -> String {
    let Some(measured) = measured else { return format!("{:8.3}", median(ours.to_vec())) };
    let ratio = median(ours.to_vec()) / median(measured.clone());
    let mut stream = Stream::named(1, "bootstrap");
    let range = match median_ratio_interval([ours, &measured], false, 0.95, 2000, &mut stream) {
        Ok(interval) => format!("{:+.1} to {:+.1}", 100.0 * (interval.low - 1.0), 100.0 * (interval.high - 1.0)),
        Err(_) => "?".to_owned(),
    };
    format!("{:8.3} {:+5.1} % ({range})", median(ours.to_vec()), 100.0 * (ratio - 1.0))
}

/// The runs in a row of the measurement: rates, offered bytes, and the seconds that objects of 100 kB and 1 MB took.
fn measured_row(file: &serde_json::Value, shape: &str, loss: &str) -> [Option<Vec<f64>>; 4] {
    let rows = file.as_array().expect("the output of make bench-gateway");
    let row = rows.iter().find(|row| row["mode"] == shape && row["loss"] == loss);
    let list = |value: &serde_json::Value| {
        // A transfer that delivered nothing has rate 0 and no ratio.
        let values =
            |list: &Vec<serde_json::Value>| list.iter().filter_map(|value| Some(value.as_f64()?.max(1e-9))).collect();
        value.as_array().map(values)
    };
    let object = |row: &serde_json::Value, bytes: u64| {
        let place = row["object_bytes"].as_array()?.iter().position(|value| value == bytes)?;
        list(&row["object_s_runs"][place])
    };
    [
        row.and_then(|row| list(&row["mbits_runs"])),
        row.and_then(|row| list(&row["offered_runs"])),
        row.and_then(|row| object(row, 100_000)),
        row.and_then(|row| object(row, 1_000_000)),
    ]
}

fn main() {
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let (mut shapes, mut losses) = (list("direct,split,link"), list("0,0.001,0.01,0.05,outages"));
    let mut seeds = 20;
    let mut measured = serde_json::Value::Array(Vec::new());
    let (mut out, mut written) = (None, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--shapes" => shapes = list(&value),
            "--losses" => losses = list(&value),
            "--seeds" => seeds = value.parse().expect("a number"),
            "--measured" => {
                let text = std::fs::read_to_string(&value).unwrap_or_else(|error| panic!("{value}: {error}"));
                measured = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{value}: {error}"));
            }
            "--out" => out = Some(value),
            other => panic!("unknown option {other}"),
        }
    }
    for shape in &shapes {
        for loss in &losses {
            let (rate, offered) = bulk(shape, loss, seeds);
            let object = |bytes: &str| objects(shape, loss, bytes, 3 * seeds);
            let found = [rate, offered, object("100 kB"), object("1 MB")];
            if out.is_some() {
                let [rate, offered, small, large] = &found;
                written.push(serde_json::json!({
                    "mode": shape, "loss": loss, "mbits_runs": rate, "offered_runs": offered,
                    "object_bytes": [100_000, 1_000_000], "object_s_runs": [small, large],
                }));
            }
            let names = ["Mbit/s", "offered", "100 kB, s", "1 MB, s"];
            println!("{shape}, {loss}");
            for ((name, ours), measured) in names.iter().zip(&found).zip(measured_row(&measured, shape, loss)) {
                println!("    {name:10} {}", shown(ours, measured));
            }
        }
    }
    if let Some(out) = out {
        let text = serde_json::Value::Array(written).to_string();
        std::fs::write(&out, text).unwrap_or_else(|error| panic!("{out}: {error}"));
    }
}
