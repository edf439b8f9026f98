//! A drawing of a scenario's nodes and links, laid out in a row along the data's path.

use std::fmt::Write;

use bentpipe_engine::link::{LinkConfig, QueueLimit};
use bentpipe_study::scenario::{FlowKind, LinkSpec, Scenario};

const STEP: usize = 220;
const MARGIN: usize = 70;

fn queue(config: &LinkConfig) -> String {
    match config.queue.limit {
        QueueLimit::Unlimited => "unlimited queue".into(),
        QueueLimit::Packets(packets) => format!("{packets} packets wait"),
        QueueLimit::Bytes(bytes) => format!("{} bytes wait", bytes.get()),
    }
}

fn rate(config: &LinkConfig) -> String {
    match config.rate {
        Some(rate) => format!("{} Mbit/s", rate.bits_per_second() as f64 / 1e6),
        None => "no line rate".into(),
    }
}

/// Links to the next node, the rightward one of each pair.
fn rightward(scenario: &Scenario) -> impl Iterator<Item = &LinkSpec> {
    scenario.links.iter().filter(|link| link.to == link.from + 1)
}

/// The scenario as an SVG document.
pub(crate) fn topology_svg(scenario: &Scenario, title: &str) -> String {
    let width = 2 * MARGIN + STEP * (scenario.nodes.len() - 1);
    let x = |node: usize| MARGIN + STEP * node;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"230\" font-family=\"sans-serif\" \
         font-size=\"13\" text-anchor=\"middle\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{}\" y=\"26\" font-size=\"17\">{title}</text>\n",
        width / 2
    );
    for link in rightward(scenario) {
        let (from, to) = (x(link.from), x(link.to));
        let delay = link.config.delay.as_millis_f64();
        let middle = (from + to) / 2;
        let _ = write!(
            out,
            "<line x1=\"{from}\" y1=\"110\" x2=\"{to}\" y2=\"110\" stroke=\"#0072b2\" stroke-width=\"2\"/>\n\
             <text x=\"{middle}\" y=\"78\">{}</text>\n<text x=\"{middle}\" y=\"96\">{delay} ms</text>\n\
             <text x=\"{middle}\" y=\"132\" fill=\"#666666\">{}</text>\n",
            rate(&link.config),
            queue(&link.config)
        );
    }
    for (n, name) in scenario.nodes.iter().enumerate() {
        let centre = x(n);
        let _ = write!(
            out,
            "<circle cx=\"{centre}\" cy=\"110\" r=\"24\" fill=\"#f4f4f4\" stroke=\"#333333\"/>\n\
             <text x=\"{centre}\" y=\"115\">{name}</text>\n"
        );
    }
    for (n, flow) in scenario.flows.iter().enumerate() {
        let what = match &flow.kind {
            FlowKind::Tcp(_) => "TCP".to_owned(),
            FlowKind::Stp(_) => "STP".to_owned(),
            FlowKind::Udp(udp) => format!("CBR {} Mbit/s", udp.rate.bits_per_second() as f64 / 1e6),
        };
        let (from, to) = (&scenario.nodes[flow.from], &scenario.nodes[flow.to]);
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"start\" fill=\"#666666\">{}: {what}, {from} to {to}</text>",
            20 + 150 * n,
            190,
            flow.name
        );
    }
    out.push_str("</svg>\n");
    out
}

/// All links as CSV.
pub(crate) fn topology_csv(scenario: &Scenario) -> String {
    let mut out = String::from("link,from,to,rate (bit/s),delay (ms),queue\n");
    for link in &scenario.links {
        let bits = link.config.rate.map_or(String::new(), |r| r.bits_per_second().to_string());
        let (from, to) = (&scenario.nodes[link.from], &scenario.nodes[link.to]);
        let delay = link.config.delay.as_millis_f64();
        let _ = writeln!(out, "{},{from},{to},{bits},{delay},{}", link.name, queue(&link.config));
    }
    out
}
