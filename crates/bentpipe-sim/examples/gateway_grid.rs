//! The grid of `make bench-gateway` in virtual time: an upload of 30 MB and objects on new connections, with the kernel's cubic at
//! both hosts, directly and through gateways. `cargo run -p bentpipe-sim --example gateway_grid`.
//!
//! GEO, 10 Mbit/s, 600 ms, a drop-tail queue of 500 packets, boxes told 99.5 % of the rate. Transfers start within the first minute, each under
//! another sky. Medians of 20 seeds. Options: `--shapes direct,split,link`, `--losses 0,0.01,outages`, `--seeds N`. A shape of
//! `uplink-burst`, `uplink-ROW`, `uplink-ROW-fixed` (a window of one bandwidth-delay product) or `uplink-kernel-NAME` is one box before the link.
//! Its transfer is a download of 30 MB that the client asks for.

use bentpipe_sim::{RunResult, replicate};
use bentpipe_study::scenario::Scenario;

const SKY: &str = r#"
name = "gateway-grid"
time_limit = "2000 s"
[tcp]
profile = "linux"
first_window = "64 kB"
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
spread = "60 s"
FLOW
"#;

const BULK: u64 = 30_000_000;
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn seconds(result: &RunResult) -> f64 {
    let flow = &result.flows[0];
    flow.received_at.map_or(f64::INFINITY, |end| end.saturating_since(flow.start).as_secs_f64())
}

fn runs(shape: &str, loss: &str, flow: &str, seeds: u64) -> Vec<RunResult> {
    replicate(&world(shape, loss, flow), 1..seeds + 1, 0, |_| ()).expect("a path and threads")
}

fn main() {
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let (mut shapes, mut losses) = (list("direct,split,link"), list("0,0.001,0.01,0.05,outages"));
    let mut seeds = 20;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--shapes" => shapes = list(&value),
            "--losses" => losses = list(&value),
            "--seeds" => seeds = value.parse().expect("a number"),
            other => panic!("unknown option {other}"),
        }
    }
    println!("{:8} {:>8}  {:>8} {:>8} {:>9} {:>8}", "", "loss", "Mbit/s", "offered", "100 kB, s", "1 MB, s");
    for shape in &shapes {
        for loss in &losses {
            let asked = |bytes: &str, seeds| {
                let flow = format!("request_response = {{ request = \"100 B\", response = \"{bytes}\", count = 1 }}");
                runs(shape, loss, &flow, seeds)
            };
            let is_down = shape.starts_with("uplink-");
            let bulk = match is_down {
                true => asked(&format!("{BULK} B"), seeds),
                false => runs(shape, loss, &format!("bytes = \"{BULK} B\""), seeds),
            };
            let rate = median(bulk.iter().map(|run| BULK as f64 * 8.0 / 1e6 / seconds(run)).collect());
            // Long and short packets are lost alike.
            let sat = |run: &RunResult| {
                let sat = &run.links[if is_down { 3 } else { 2 }];
                sat.delivered_bytes as f64 * sat.offered as f64 / sat.delivered as f64
            };
            let offered = median(bulk.iter().map(|run| sat(run) / BULK as f64).collect());
            let object = |bytes: &str| median(asked(bytes, 3 * seeds).iter().map(seconds).collect());
            let (small, large) = (object("100 kB"), object("1 MB"));
            println!("{shape:8} {loss:>8}  {rate:8.2} {offered:8.3} {small:9.2} {large:8.2}");
        }
    }
}
