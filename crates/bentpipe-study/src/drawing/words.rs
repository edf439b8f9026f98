//! Short texts for settings of links and nodes, for drawings and their tables.

use crate::scenario::bursts::mean_secs;
use crate::scenario::{FlowKind, FlowSpec, LinkSpec, Scenario, UdpPattern};
use crate::topology::{mean_rate, rate_range};
use bentpipe_engine::atm::sonet::OpticalCarrier;
use bentpipe_engine::link::{CellConfig, ChannelConfig, Distribution, LinkConfig, LossConfig, QueueLimit, Sharing};
use bentpipe_engine::units::{Duration, Rate};

/// The number without trailing zeros.
pub(super) fn plain(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

pub(super) fn rate(rate: Rate) -> String {
    let bits = rate.bits_per_second() as f64;
    let (scale, unit) = match bits {
        1e9.. => (1e9, "Gbit/s"),
        1e6.. => (1e6, "Mbit/s"),
        _ => (1e3, "kbit/s"),
    };
    format!("{} {unit}", plain((bits / scale * 1e3).round() / 1e3))
}

fn bytes(bytes: u64) -> String {
    match bytes {
        1_000_000.. => format!("{} MB", plain(bytes as f64 / 1e6)),
        1_000.. => format!("{} kB", plain(bytes as f64 / 1e3)),
        _ => format!("{bytes} bytes"),
    }
}

pub(super) fn span(span: Duration) -> String {
    let millis = span.as_millis_f64();
    if millis > 0.0 && millis < 1.0 { format!("{} µs", plain(1e3 * millis)) } else { format!("{} ms", plain(millis)) }
}

/// A queue limit.
pub(super) fn room(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Unlimited => "unlimited queue".into(),
        QueueLimit::Packets(packets) => format!("{packets} packets wait"),
        QueueLimit::Bytes(limit) => format!("{} wait", bytes(limit.get())),
    }
}

/// A port's cell buffer, and its discard rules.
pub(super) fn cell_buffer(cells: &CellConfig) -> Vec<String> {
    let Some(buffer) = cells.buffer else { return vec!["unlimited cells".into()] };
    let whose = match cells.sharing {
        Sharing::PerChannel => "per channel",
        Sharing::Shared => "shared",
    };
    let mut lines = vec![format!("{buffer} cells {whose}")];
    lines.extend(cells.early_discard.map(|threshold| format!("early discard from {threshold}")));
    lines
}

/// The rate of a line; for SONET also its name.
pub(super) fn line_rate(of: Option<Rate>) -> String {
    let Some(of) = of else { return "no line rate".into() };
    let carrier = [1, 3, 12, 48].into_iter().filter_map(OpticalCarrier::new).find(|carrier| carrier.payload() == of);
    carrier.map_or_else(|| rate(of), |carrier| format!("SONET {carrier}"))
}

/// Losses while the channel is good.
pub(super) fn losses(loss: &LossConfig) -> Vec<String> {
    let (packet, bit) = (loss.packet.get(), loss.bit.get());
    let mut lines = Vec::new();
    if packet > 0.0 {
        lines.push(format!("loses {} %", plain(100.0 * packet)));
    }
    if bit > 0.0 {
        lines.push(format!("bit errors {bit:e}"));
    }
    lines
}

/// The properties of a link that change with time, and what its channel does besides losing single packets.
pub(super) fn changes(link: &LinkConfig) -> Vec<String> {
    let mut lines = Vec::new();
    let loses = |loss: &LossConfig| loss.packet.get() > 0.0 || loss.bit.get() > 0.0;
    match &link.channel {
        ChannelConfig::OnOff { gap, burst } if loses(&link.bad) => {
            lines.push(format!(
                "fades: {} each {}",
                seconds(mean_secs(burst)),
                seconds(mean_secs(gap) + mean_secs(burst))
            ));
        }
        ChannelConfig::Schedule(bursts) if loses(&link.bad) => lines.push(format!("fades at {} times", bursts.len())),
        ChannelConfig::Clear | ChannelConfig::OnOff { .. } | ChannelConfig::Schedule(_) => {}
    }
    if link.packet_bursts.is_some() {
        lines.push("losses in bursts".into());
    }
    let all = [
        ("rate", link.rate_changes() && link.tdma.is_none()),
        ("delay", link.delay_changes()),
        ("loss", link.loss_changes()),
        ("queue", link.queue_changes()),
    ];
    let changing: Vec<_> = all.iter().filter(|(_, changes)| *changes).map(|(what, _)| *what).collect();
    match changing[..] {
        [] => {}
        [one] => lines.push(format!("{one} changes")),
        _ => lines.push(format!("{} change", changing.join(", "))),
    }
    if link.jitter.is_some() {
        lines.push("jitter".into());
    }
    lines
}

/// A time in the appropriate unit, with two digits.
fn seconds(secs: f64) -> String {
    let (value, unit) = if secs < 1.0 { (secs * 1e3, "ms") } else { (secs, "s") };
    let scale = 10f64.powi(1 - value.max(1e-9).log10().floor() as i32).min(10.0);
    format!("{} {unit}", plain((value * scale).round() / scale))
}

/// A host's processing time per packet.
pub(super) fn processing(time: &Distribution) -> Vec<String> {
    let time = match time {
        Distribution::Fixed(time) => span(*time),
        Distribution::Uniform(low, high) => {
            let micros = |time: &Duration| plain(1e3 * time.as_millis_f64());
            format!("{} to {} µs", micros(low), micros(high))
        }
        Distribution::Exponential { mean }
        | Distribution::ExponentialClipped { mean, .. }
        | Distribution::ExponentialTruncated { mean, .. }
        | Distribution::Normal { mean, .. }
        | Distribution::Pareto { mean, .. } => format!("{} on average", span(*mean)),
    };
    vec![time, "per packet".into()]
}

/// The flow's transport, or those of its legs in order.
pub(super) fn transport(flow: &FlowSpec) -> String {
    match &flow.kind {
        FlowKind::Tcp(tcp) => {
            let leg = |variant| if variant == "stp" { "STP".to_owned() } else { format!("TCP ({variant})") };
            let mut legs: Vec<_> = tcp.leg_variants().map(leg).collect();
            legs.dedup();
            legs.join(", then ")
        }
        FlowKind::Stp(_) => "STP".to_owned(),
        FlowKind::Quic(quic) => format!("QUIC ({})", quic.congestion_control.word()),
        FlowKind::Udp(udp) => match udp.pattern {
            UdpPattern::Cbr => format!("CBR {}", rate(udp.rate)),
            UdpPattern::OnOff { .. } => format!("UDP {}, on and off", rate(udp.rate)),
            UdpPattern::Mpeg(_) => format!("MPEG {}", rate(udp.rate)),
        },
    }
}

/// A link's name without its direction.
pub(super) fn name(link: &LinkSpec) -> &str {
    let direction = ["/forward", "/backward"].into_iter().find_map(|way| link.name.strip_suffix(way));
    direction.unwrap_or(&link.name)
}

/// True if two links are the two directions of one link.
pub(super) fn is_partner(link: &LinkSpec, other: &LinkSpec) -> bool {
    (other.from, other.to) == (link.to, link.from) && name(link) == name(other)
}

/// The other direction of a link, if there is one.
pub(super) fn partner<'s>(scenario: &'s Scenario, link: &LinkSpec) -> Option<&'s LinkSpec> {
    scenario.links.iter().find(|other| is_partner(link, other))
}

/// The rate of a link (the mean if it changes), or of the cell port after it if that is the data's line.
pub(super) fn data_rate(scenario: &Scenario, link: &LinkSpec) -> Option<Rate> {
    let port = || scenario.links.iter().filter(|next| next.from == link.to).find_map(|next| next.config.cells?.line);
    mean_rate(&link.config).or_else(port)
}

/// The lowest and the highest rate of a link whose rate has no mean.
pub(super) fn range(link: &LinkConfig) -> Option<String> {
    let [low, high] = rate_range(link)?.map(|bits| Rate::from_bits_per_second(bits).map_or("0".to_owned(), rate));
    Some(format!("{low} to {high}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_digits() {
        assert_eq!([0.1504, 0.0304, 9.94, 10.15, 350.2].map(seconds), ["150 ms", "30 ms", "9.9 s", "10 s", "350 s"]);
    }

    /// Each pattern of datagrams and each transport of a leg has its words.
    #[test]
    fn transports_are_named() {
        let of = |flow: &str| {
            let text = format!(
                "name = \"t\"\n[[links]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"2 Mbit/s\"\ndelay = \"1 ms\"\n\
                 [[links]]\nname = \"m\"\nbetween = [\"b\", \"c\"]\nrate = \"2 Mbit/s\"\ndelay = \"1 ms\"\n\
                 [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"c\"\n{flow}\n"
            );
            let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
            transport(&scenario.flows[0])
        };
        let udp = |pattern: &str| {
            of(&format!("type = \"udp\"\nrate = \"64 kbit/s\"\npacket = \"200 B\"\npattern = {pattern}"))
        };
        assert_eq!(udp("\"cbr\""), "CBR 64 kbit/s");
        assert_eq!(udp("{ on = \"1 s\", off = \"1 s\" }"), "UDP 64 kbit/s, on and off");
        let sizes = "group = 15, distance = 3, i = \"20 kB\", p = \"10 kB\", b = \"5 kB\"";
        assert_eq!(udp(&format!("{{ mpeg = {{ interval = \"1 s\", {sizes} }} }}")), "MPEG 64 kbit/s");
        let bulk = |more: &str| of(&format!("bytes = \"1 MB\"\n{more}"));
        assert_eq!(bulk("split = [{ at = \"b\" }]\ntcp.variant = \"sack\""), "TCP (sack)");
        let stp =
            "stp = { rate = \"2 Mbit/s\", rtt = \"4 ms\" }\nsplit = [{ at = \"b\", tcp = { variant = \"reno\" } }]";
        assert_eq!(bulk(stp), "STP, then TCP (reno)");
    }
}
