//! Gateways in words.

use std::fmt::Write;

use bentpipe_engine::gateway::{CONNECTION, MIN_UNSENT, line_overhead};
use bentpipe_engine::tcp::variant::Startup;
use bentpipe_study::scenario::{Carries, PairSpec, Scenario, SenderOf, UplinkSpec};

use super::layers::channel_text;
use super::span;
use crate::output;

/// A gateway: its boxes, the link's properties in their settings, and a line for each channel of S-LACP.
pub(super) fn pair_text(scenario: &Scenario, pair: &PairSpec) -> String {
    let [near, far] = pair.nodes.map(|node| &scenario[node]);
    let [there, back] = pair.over.map(|link| &scenario[link].name);
    let [one, other] = pair.satellite;
    let mut out = format!("Gateway {}: {} between {near} and {far}\n", pair.name, pair.carries.shape());
    let rate = |rate: bentpipe_engine::units::Rate| output::rate(rate.bits_per_second() as f64);
    let finds = if one.shared { "; upper bounds, since each box finds its share" } else { "" };
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<11} {text}");
    };
    line("tunnel", format!("over {there} and {back}, {} B of headers and tag around a frame", line_overhead(false)));
    line("rate", format!("{} from {near}, {} from {far}{finds}", rate(one.rate), rate(other.rate)));
    line("round trip", span(one.round_trip));
    match pair.carries {
        Carries::Streams { max_streams } => {
            line("TCP", format!("ends at both boxes, which are Linux hosts; at most {max_streams} connections"));
            let window = one.window().min(pair.memory.get() / 2);
            line("window", format!("{} per stream", output::bytes(window)));
            let each = output::bytes((CONNECTION + MIN_UNSENT) as u64);
            line("memory", format!("{} per box, at least {each} per connection", output::bytes(pair.memory.get())));
        }
        Carries::Packets => {
            line(
                "packets",
                format!("up to {} B, with compressed headers; TCP stays between the hosts", one.max_packet()),
            );
            line("memory", format!("{} per box", output::bytes(pair.memory.get())));
            if let [Some(near), Some(far)] = pair.advice.map(|advised| advised.map(rate)) {
                line("advice", format!("QUIC hosts with SCONE get {near} and {far}"));
            }
        }
    }
    let layer = match pair.carries {
        Carries::Streams { .. } => one.for_streams(),
        Carries::Packets => one.for_packets(),
    };
    for (name, channel) in pair.carries.channels().iter().zip(&layer.config.channels) {
        line(name, channel_text(channel));
    }
    out
}

/// A gateway of one box: what it is told of the link, and its sender.
pub(super) fn uplink_text(scenario: &Scenario, spec: &UplinkSpec) -> String {
    let mut out = format!("Gateway {}: uplink at {}\n", spec.name, &scenario[spec.at]);
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<11} {text}");
    };
    let [there, back] = spec.over.map(|link| &scenario[link].name);
    line("clients", format!("over {there} and {back}"));
    match &spec.by {
        SenderOf::Engine { variant, .. } => {
            let window = match (spec.sender.window, spec.sender.tcp.variant.startup) {
                (Some(window), _) => format!(", a window of {}", output::bytes(window)),
                (None, Startup::FixedWindow(segments)) => format!(", a window of {segments} segments"),
                (None, Startup::SlowStart) => String::new(),
            };
            line("sender", format!("the engine's {variant}{window}"));
            line("rate", format!("{} over all connections", output::rate(spec.sender.rate.bits_per_second() as f64)));
        }
        SenderOf::Kernel { congestion } => line("sender", format!("Linux with {congestion}")),
    }
    line("round trip", span(spec.sender.round_trip));
    let when = if spec.accepts_early() { "at once" } else { "when the other host has accepted" };
    line("opening", format!("a host is answered {when}"));
    line("memory", format!("{} per connection", output::bytes(spec.send_buffer() as u64)));
    out
}
