//! The cases: scenarios as text, equal to those of the peers' scripts.

use bentpipe_study::scenario::Scenario;

/// H1 - R1 at 1 Gbit/s, a GEO hop of 255 ms, R2 - H2 at 1 Gbit/s; SACK, MSS 1460, initial window 10, delayed ACK every
/// second segment or after 100 ms, no timestamps: `ns2_geo.tcl` with `sack1`.
fn geo(name: &str, rate: &str, queue: &str, clamp: u32, flows: &str, limit: &str) -> Scenario {
    let text = format!(
        r#"
name = "{name}"
description = "a case of the benchmark"
time_limit = "{limit}"

[[links]]
name = "access-1"
between = ["H1", "R1"]
rate = "1 Gbit/s"
delay = "0.1 ms"

[[links]]
name = "sat"
between = ["R1", "R2"]
rate = "{rate}"
delay = "255 ms"
forward.queue = "{queue}"

[[links]]
name = "access-2"
between = ["R2", "H2"]
rate = "1 Gbit/s"
delay = "0.1 ms"

[tcp]
profile = "rfc"
variant = "sack"
mss = "1460 B"
initial_window = 10
ack.delay = "100 ms"
window_clamp = "{clamp} segments"
receive_buffer = "1 GB"

{flows}
"#
    );
    Scenario::parse(&text, name, &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

/// Case (b): one flow of 1 GB over 100 Mbit/s, no loss.
pub(crate) fn one_fat_flow() -> Scenario {
    let flows = "[[flows]]\nname = \"data\"\nfrom = \"H1\"\nto = \"H2\"\nbytes = \"1000000720 B\"\n";
    geo("geo-1gb", "100 Mbit/s", "100000 packets", 5480, flows, "1000 s")
}

/// Case (c): 100 greedy flows over 155 Mbit/s for 60 s, started within the first second.
pub(crate) fn hundred_flows() -> Scenario {
    let flows =
        "[[flows]]\nname = \"data\"\nfrom = \"H1\"\nto = \"H2\"\ncount = 100\nspread = \"1 s\"\ngreedy = true\n";
    geo("geo-100flows", "155 Mbit/s", "6600 packets", 2740, flows, "60 s")
}

/// Case (b), or with `hundred` case (c), with another row of the table of variants.
pub(crate) fn row(variant: &str, hundred: bool) -> Scenario {
    let base = if hundred { hundred_flows() } else { one_fat_flow() };
    base.with_variant(variant).unwrap_or_else(|error| panic!("{error}"))
}

/// 2 GB over 155 Mbit/s by this many flows, which start within this number of seconds. For the cost per packet against the number
/// of flows.
pub(crate) fn many_flows(count: u32, within: u32) -> Scenario {
    let bytes = 2_000_000_000 / u64::from(count);
    let flows = format!(
        "[[flows]]\nname = \"data\"\nfrom = \"H1\"\nto = \"H2\"\ncount = {count}\nspread = \"{within} s\"\nbytes = \"{bytes} B\"\n"
    );
    geo("geo-flows", "155 Mbit/s", "6600 packets", 2740, &flows, "1000 s")
}

/// One flow with its window clamped to `packets`, over a line that is never the bottleneck, so that this many are
/// always in flight. For the cost per packet against the window.
pub(crate) fn window_of(packets: u32, segments: u64) -> Scenario {
    let flows = format!("[[flows]]\nname = \"data\"\nfrom = \"H1\"\nto = \"H2\"\nbytes = \"{} B\"\n", segments * 1460);
    let mut scenario = geo("geo-window", "40 Gbit/s", "1000000 packets", packets, &flows, "100000 s");
    for link in &mut scenario.links {
        link.config.rate = bentpipe_engine::units::Rate::from_bits_per_second(40_000_000_000);
    }
    scenario
}

/// Datagrams through S-LACP with ARQ and FEC over a link that loses one in a hundred; `packets` are always between
/// transmission and acknowledgement.
pub(crate) fn layer_with(packets: u32, datagrams: u64) -> Scenario {
    // A round trip of 0.5 s and packets of 1500 B give the packets per second; the line has a fifth to spare.
    let per_second = u64::from(packets) * 2;
    let (rate, line) = (per_second * 12_000, per_second * 14_400);
    // Whole seconds. A count that fills them is sent exactly, so that runs with different windows do the same work.
    let stop = datagrams.div_ceil(per_second);
    let text = format!(
        r#"
name = "layer-window"
time_limit = "{} s"
[[links]]
name = "sat"
between = ["a", "b"]
rate = "{line} bit/s"
delay = "250 ms"
queue = "1000000 packets"
loss = "1 %"
[[layers]]
name = "s-lacp"
over = "sat"
[[layers.channels]]
name = "bulk"
fec = {{ block = 10 }}
[[flows]]
name = "data"
type = "udp"
from = "a"
to = "b"
rate = "{rate} bit/s"
packet = "1500 B"
stop = "{stop} s"
"#,
        stop + 10
    );
    Scenario::parse(&text, "layer-window", &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

/// The burst-loss sender with a constant window of `packets`, one in ten thousand lost.
pub(crate) fn burst_window_of(packets: u32, segments: u64) -> Scenario {
    let base = window_of(packets, segments).with_variant("burst").expect("the row is in the engine's table");
    let text = base.to_toml();
    let set = [
        ("flows.data.tcp.fixed_window", format!("{packets} segments")),
        ("links.sat/forward.loss", "0.01 %".to_owned()),
    ];
    let set = set.map(|(key, value)| (key.to_owned(), value));
    Scenario::parse(&text, "burst-window", &set).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

/// Three hosts, each with datagrams that fill an OC-3c line, into one OC-3c port for a minute: 64 million cells arrive, and a third of
/// them leave. Early and partial packet discard, 8192 cells for each.
pub(crate) fn three_lines_of_cells() -> Scenario {
    let mut text = String::from("name = \"atm-minute\"\ntime_limit = \"60 s\"\n");
    for host in ["a", "b", "c"] {
        text += &format!(
            "[[links]]\nname = \"{host}\"\nbetween = [\"{host}\", \"switch\"]\nrate = \"unlimited\"\ndelay = \"1 ms\"\n"
        );
    }
    text += "[[links]]\nname = \"sat\"\nbetween = [\"switch\", \"sink\"]\nrate = \"149.76 Mbit/s\"\ndelay = \"250 ms\"\n\
             framing = \"aal5\"\natm = { line = \"149.76 Mbit/s\", buffer = \"8192 cells\", \
             early_packet_discard = \"80 %\", partial_packet_discard = true }\n";
    for host in ["a", "b", "c"] {
        text += &format!(
            "[[flows]]\nname = \"{host}\"\ntype = \"udp\"\nfrom = \"{host}\"\nto = \"sink\"\nrate = \"135.1 Mbit/s\"\n\
             packet = \"9180 B\"\n"
        );
    }
    Scenario::parse(&text, "atm-minute", &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

#[cfg(test)]
mod tests {
    use bentpipe_engine::NoProbe;
    use bentpipe_sim::run;

    use super::*;

    /// Costs per packet are compared, so the number of packets must not depend on the window.
    #[test]
    fn a_larger_window_sends_no_more_datagrams() {
        let sent = [10, 50].map(|packets| {
            let result = run(&layer_with(packets, 1000), 1, &mut NoProbe).expect("it runs");
            result.flows[0].delivered / 1500
        });
        assert_eq!(sent, [1000, 1000]);
    }
}
