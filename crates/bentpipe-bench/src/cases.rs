//! The cases: scenarios as text, the same worlds that the peers' scripts build.

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

/// One flow held at a window of `packets` by its clamp, over a line that is never the bottleneck: so many are in flight
/// throughout. For the cost per packet against the window.
pub(crate) fn window_of(packets: u32, segments: u64) -> Scenario {
    let flows = format!("[[flows]]\nname = \"data\"\nfrom = \"H1\"\nto = \"H2\"\nbytes = \"{} B\"\n", segments * 1460);
    let mut scenario = geo("geo-window", "40 Gbit/s", "1000000 packets", packets, &flows, "100000 s");
    for link in &mut scenario.links {
        link.config.rate = bentpipe_engine::units::Rate::from_bits_per_second(40_000_000_000);
    }
    scenario
}

/// Three hosts, each with datagrams that fill an OC-3c line, into one OC-3c port for a minute: 64 million cells come, a
/// third of them goes. Early and partial packet discard, 8192 cells for each.
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
