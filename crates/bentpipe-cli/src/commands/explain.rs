//! `bentpipe explain`: the settings of a scenario, and the limits of its paths.

mod boxes;
mod layers;
mod moving;

use std::fmt::Write;

use bentpipe_engine::stp::StpConfig;
use bentpipe_engine::tcp::variant::{Exit, PartialAckTimer, PipeForm, Recovery, Startup};
use bentpipe_engine::tcp::{Daass, Handshake, RttClock, TcpConfig};
use bentpipe_engine::units::Duration;
use bentpipe_sim::record::{FlowOutlook, Outlook};
use bentpipe_study::report::listed;
use bentpipe_study::scenario::{FlowKind, QuicFlow, Scenario, TcpFlow};
use serde::Serialize;

use crate::args::Explain;
use crate::failure::{End, Failure};
use crate::output::{self, Inputs, Remake};
use crate::source;

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    #[serde(flatten)]
    outlook: &'a Outlook,
    scenario: String,
}

pub(crate) fn explain(args: &Explain) -> Result<End, Failure> {
    let scenario = source::load_with_variant(&args.world, args.variant.as_deref(), &mut Inputs::default())?;
    if args.resolved {
        output::print(&scenario.to_toml())?;
        return Ok(End::Done);
    }
    let outlook = Outlook::new(&scenario).map_err(Failure::broken)?;
    let remake = Remake::new(scenario.seed);
    if args.json {
        output::print_json(&Json { remake: &remake, outlook: &outlook, scenario: scenario.to_toml() })?;
    } else {
        output::print(&format!("{}\n{}\n", output::prose(&text(&scenario, &outlook)), remake.line()))?;
    }
    Ok(End::Done)
}

/// All of it, as the command prints it, but for how to make it again.
pub(super) fn text(scenario: &Scenario, outlook: &Outlook) -> String {
    let mut out = format!("{}\n", scenario.headline());
    if let Some(source) = &scenario.source {
        let _ = writeln!(out, "Source: {source}");
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (flow, look) in scenario.flows.iter().zip(&outlook.flows) {
        let transport = match &flow.kind {
            FlowKind::Tcp(tcp) => Some(tcp_text(scenario, tcp)),
            FlowKind::Stp(stp) => Some(format!("  {}\n", stp_text(&stp.config))),
            FlowKind::Quic(quic) => Some(format!("  {}\n", quic_text(quic))),
            FlowKind::Udp(_) => None,
        };
        let nameless = FlowOutlook { name: String::new(), ..look.clone() };
        match groups.iter_mut().find(|group| group.look == nameless && group.transport == transport) {
            Some(group) => group.names.push(&look.name),
            None => groups.push(Group { names: vec![&look.name], look: nameless, transport }),
        }
    }
    for group in groups {
        let _ = write!(out, "\n{}", flow_text(&listed(&group.names), &group.look));
        if let Some(transport) = group.transport {
            let _ = write!(out, "\n{transport}");
        }
    }
    let moving = moving::moving_text(scenario);
    if !moving.is_empty() {
        let _ = write!(out, "\n{moving}");
    }
    for layer in &scenario.layers {
        let _ = write!(out, "\n{}", layers::layer_text(scenario, layer));
    }
    for uplink in &scenario.gateways.uplinks {
        let _ = write!(out, "\n{}", boxes::uplink_text(scenario, uplink));
    }
    for pair in &scenario.gateways.pairs {
        let _ = write!(out, "\n{}", boxes::pair_text(scenario, pair));
    }
    out
}

/// Flows that differ only in name.
struct Group<'a> {
    names: Vec<&'a str>,
    /// Without a name.
    look: FlowOutlook,
    /// The settings of the transport, in words.
    transport: Option<String>,
}

fn flow_text(names: &str, look: &FlowOutlook) -> String {
    let mut lines = vec![
        ("path", format!("{} over {}", look.nodes.join(" → "), look.links.join(", "))),
        ("delay", {
            let mean = if look.delay_changes { ", on average" } else { "" };
            let (there, back) = (look.one_way_ms, look.rtt_ms - look.one_way_ms);
            let ways = match (there - back).abs() < 0.001 {
                true => format!("{} ms one way", short(there)),
                false => format!("{} ms there, {} ms back", short(there), short(back)),
            };
            format!("{ways}, {} ms round trip{mean}", short(look.rtt_ms))
        }),
    ];
    if let Some((link, rate)) = look.bottleneck.as_ref().zip(look.bottleneck_bit_s) {
        let rate = output::rate(rate as f64);
        let rate = match look.rate_range_bit_s {
            Some(range) => {
                let [low, high] = range.map(|bits| output::rate(bits as f64));
                format!("{low} to {high}, at first {rate}")
            }
            None if look.rate_changes => format!("mean {rate}"),
            None => rate,
        };
        lines.push(("bottleneck", format!("{link}, {rate}")));
    }
    if let Some((bytes, packets)) = look.bdp_bytes.zip(look.bdp_packets) {
        let packet = look.packet_bytes;
        let at = if look.rate_range_bit_s.is_some() { ", at the first rate" } else { "" };
        lines.push(("BDP", format!("{}, {packets:.0} packets of {packet} B{at}", output::bytes(bytes))));
    }
    lines.push(match &look.queue {
        Some(queue) => {
            let bytes = output::bytes(queue.bytes);
            let text = format!("{:.0} packets, {bytes}, {} ms, {:.2} BDP", queue.packets, short(queue.ms), queue.bdps);
            ("queue", text)
        }
        None => ("queue", "unlimited".to_owned()),
    });
    let goodput = look.limit_goodput_bit_s.map(|bits| format!("goodput {}", output::rate(bits)));
    let time = look.limit_time_s.map(|seconds| format!("time {seconds:.3} s"));
    let limit: Vec<_> = time.into_iter().chain(goodput).collect();
    if !limit.is_empty() {
        lines.push(("limit", limit.join(", ")));
    }
    let mut out = format!("Flow {names}\n");
    for (name, text) in lines {
        let _ = writeln!(out, "  {name:<11} {text}");
    }
    for hint in &look.hints {
        let _ = writeln!(out, "  • {hint}");
    }
    out
}

/// A number without trailing zeros.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The settings of an STP leg, in one line.
fn stp_text(config: &StpConfig) -> String {
    let window = output::bytes(config.window(config.mss));
    format!("STP, a window of {window}, timers of {}, MSS {} B", span(config.rto), config.mss)
}

/// The congestion control of a QUIC flow, and what is not usual.
fn quic_text(quic: &QuicFlow) -> String {
    let streams = (quic.streams > 1).then(|| format!("{} streams", quic.streams));
    let zero_rtt = quic.zero_rtt.then(|| "data at once (0-RTT)".to_owned());
    let repair = quic.repair.map(|share| format!("{} % repair symbols", short(share.get() * 100.0)));
    let parts = [Some(quic.congestion_control.word().to_owned()), streams, zero_rtt, repair];
    format!("QUIC: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// The first leg of a split flow, or a whole flow, and a line for each further leg.
fn tcp_text(scenario: &Scenario, tcp: &TcpFlow) -> String {
    let mut out = match &tcp.stp {
        Some(config) => format!("  first leg: {}\n", stp_text(config)),
        None => cells_text(scenario, tcp),
    };
    if let Some(spoof) = &tcp.spoof {
        let _ = writeln!(out, "  {}", layers::spoof_text(scenario, spoof));
    }
    for leg in &tcp.splits {
        let text = match &leg.stp {
            Some(config) => stp_text(config),
            None => {
                let follows = scenario.window_follows_path(&leg.variant_name, &leg.explicit);
                let startup = startup(&leg.sender, follows);
                format!("TCP, variant {}, profile {}, {startup}", leg.variant_name, leg.profile_name)
            }
        };
        let _ = writeln!(out, "  leg from {}: {text}", &scenario[leg.leaves()]);
    }
    out
}

fn cells_text(scenario: &Scenario, tcp: &TcpFlow) -> String {
    let follows = scenario.window_follows_path(&tcp.variant_name, &tcp.explicit);
    let mut out = format!("  TCP: variant {}, profile {}\n", tcp.variant_name, tcp.profile_name);
    let (sender, receiver) = (cells(&tcp.sender, follows), cells(&tcp.receiver, follows));
    for ((name, sender), (_, receiver)) in sender.into_iter().zip(receiver) {
        let receives = matches!(name, "ACKs" | "receive buffer" | "SACK blocks");
        let value = if receives { receiver } else { sender };
        let _ = writeln!(out, "    {name:<18} {value}");
    }
    out
}

/// The settings of one end: name and value, in words.
fn cells(config: &TcpConfig, follows_path: bool) -> Vec<(&'static str, String)> {
    let on = |flag: bool| if flag { "on" } else { "off" }.to_owned();
    let variant = &config.variant;
    let segments = |count: Option<u32>, none: &str| count.map_or(none.to_owned(), |n| format!("{n} segments"));
    let dup = &variant.dup_thresh;
    let fraction = dup.window_fraction.map_or(String::new(), |n| format!(", at least 1/{n} of the window"));
    vec![
        ("startup", startup(config, follows_path)),
        ("initial ssthresh", segments(config.initial_ssthresh, "unlimited")),
        ("growth", variant.congestion.describe(variant.growth)),
        ("dupthresh", format!("{} duplicate ACKs{fraction}", dup.count)),
        ("recovery", recovery(variant.recovery)),
        ("limited transmit", on(variant.limited_transmit)),
        ("SACK", on(variant.sack)),
        ("SACK blocks", config.sack_blocks.to_string()),
        ("F-RTO", on(variant.frto)),
        ("max burst", segments(variant.max_burst, "none")),
        ("ACKs", acks(config)),
        ("timer", timer(config)),
        ("MSS", format!("{} B", config.mss)),
        ("send buffer", config.send_buffer.map_or("unlimited".to_owned(), output::bytes)),
        ("receive buffer", output::bytes(u64::from(config.receive_buffer))),
        ("window scaling", on(config.window_scaling)),
        ("window clamp", segments(config.window_clamp, "none")),
        ("timestamps", on(config.timestamps)),
        (
            "handshake",
            match config.shortcuts.handshake {
                Handshake::ThreeWay => "three-way",
                Handshake::OneWay => "SYN and its ACK alone (ns-2)",
                Handshake::None => "none",
            }
            .to_owned(),
        ),
    ]
}

/// How a connection starts; `follows_path`: a fixed window defaults to the path's capacity.
fn startup(config: &TcpConfig, follows_path: bool) -> String {
    let path = if follows_path { ", the path's capacity (`fixed_window` sets another)" } else { "" };
    match config.variant.startup {
        Startup::SlowStart => match config.variant.initial_window {
            1 => "slow start from one segment".to_owned(),
            window => format!("slow start from {window} segments"),
        },
        Startup::FixedWindow(window) => format!("a fixed window of {window} segments{path}"),
    }
}

pub(super) fn recovery(recovery: Recovery) -> String {
    match recovery {
        Recovery::Restart => "restart (Tahoe)".to_owned(),
        Recovery::Inflate { exit: Exit::FirstNewAck, .. } => "Reno (RFC 5681)".to_owned(),
        Recovery::Inflate { exit: Exit::Recover, timer, .. } => match timer {
            PartialAckTimer::Impatient => "NewReno, impatient (RFC 6582)".to_owned(),
            PartialAckTimer::SlowButSteady => "NewReno, slow but steady (RFC 6582)".to_owned(),
        },
        Recovery::Pipe(PipeForm::Rack) => "RACK (RFC 8985)".to_owned(),
        Recovery::Pipe(PipeForm::Rfc6675) => "SACK pipe (RFC 6675)".to_owned(),
        Recovery::Pipe(PipeForm::Rfc3517) => "SACK pipe (RFC 3517)".to_owned(),
        Recovery::Pipe(PipeForm::Ns2) => "SACK pipe (ns-2)".to_owned(),
        Recovery::BurstEstimate(_) => "burst estimate (minei)".to_owned(),
    }
}

fn span(span: Duration) -> String {
    if span < Duration::from_secs(1) {
        format!("{} ms", short(span.as_millis_f64()))
    } else {
        format!("{} s", short(span.as_secs_f64()))
    }
}

fn acks(config: &TcpConfig) -> String {
    let ack = &config.ack;
    let quick = match ack.daass {
        Daass::Off if ack.quick > 0 => format!(", the first {} at once", ack.quick),
        Daass::Off => String::new(),
        Daass::FirstSegments(count) => format!(", the first {count} at once"),
        Daass::SlowStart => ", all at once until the first gap".to_owned(),
    };
    match (ack.every, ack.delay) {
        (_, Duration::ZERO) | (1, _) => "every segment".to_owned(),
        (every, delay) => format!("every {every} segments, or after {}{quick}", span(delay)),
    }
}

fn timer(config: &TcpConfig) -> String {
    let rto = &config.rto;
    let tick = match rto.clock {
        RttClock::Ticks { tick, .. } => format!(", ticks of {}", span(tick)),
        RttClock::Wheel(jiffy) => format!(", jiffies of {}", span(jiffy)),
        RttClock::Exact => String::new(),
    };
    format!("initial {}, min {}, max {}{tick}", span(rto.initial), span(rto.min), span(rto.max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(flows: &str) -> String {
        let link = |name: &str, ends: &str| {
            format!("[[links]]\nname = \"{name}\"\nbetween = {ends}\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n")
        };
        let links = [link("near", "[\"A\", \"R\"]"), link("far", "[\"R\", \"B\"]")].concat();
        let scenario = Scenario::parse(&format!("name = \"t\"\n{links}{flows}"), "t.toml", &[]);
        let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
        text(&scenario, &Outlook::new(&scenario).expect("it is connected"))
    }

    /// Flows that differ in a further leg alone were one, with the leg of the first.
    #[test]
    fn flows_that_differ_are_not_one() {
        let flow = |name: &str, leg: &str| {
            format!(
                "[[flows]]\nname = \"{name}\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n\
                 split = [{{ at = \"R\", buffer = \"1 MB\", tcp.variant = \"{leg}\" }}]\n"
            )
        };
        let text = explained(&[flow("one", "sack"), flow("two", "tahoe"), flow("three", "sack")].concat());
        assert!(text.contains("Flow one, three\n") && text.contains("Flow two\n"), "{text}");
        assert!(text.contains("leg from R: TCP, variant tahoe"), "{text}");
    }

    #[test]
    fn quic_and_stp_are_named() {
        let flow = |name: &str, keys: &str| {
            format!("[[flows]]\nname = \"{name}\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n{keys}\n")
        };
        let quic = |name: &str, control: &str| {
            flow(name, &format!("type = \"quic\"\nquic.congestion_control = \"{control}\""))
        };
        let text = explained(
            &[
                quic("one", "cubic"),
                quic("two", "reno"),
                quic("three", "cubic"),
                flow("old", "type = \"stp\"\nstp = { rate = \"10 Mbit/s\", rtt = \"40 ms\" }"),
            ]
            .concat(),
        );
        for words in
            ["Flow one, three\n", "Flow two\n", "\n  QUIC: cubic\n", "\n  QUIC: reno\n", "\n  STP, a window of "]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn the_send_buffer_is_that_of_the_sender() {
        let flow = |tcp: &str| format!("[[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n{tcp}\n");
        let limited = explained(&flow("tcp.sender.send_buffer = \"256 kB\""));
        assert!(limited.contains("    send buffer        256 kB\n"), "{limited}");
        assert!(explained(&flow("")).contains("    send buffer        unlimited\n"));
    }
}
