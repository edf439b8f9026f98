//! The full cross: each transport over each kind of link, with and without a link layer, whole, split and spoofed.
//!
//! Each combination either completes its transfer in a plausible time that physics allows, or the scenario language refuses it and says
//! why. The refusals are listed here, so a combination that stops working, or starts to work, turns a test red.

use std::collections::BTreeMap;

use bentpipe_engine::NoProbe;
use bentpipe_engine::units::Time;
use bentpipe_sim::run;
use bentpipe_study::limit::flow_limit;
use bentpipe_study::scenario::{FlowKind, Scenario};

/// The transfer.
const BYTES: u64 = 200_000;

/// A name, and its text in the scenario.
type Part = (&'static str, &'static str);

/// Settings of the flow: TCP's profiles and variants, STP, UDP.
const TRANSPORTS: &[Part] = &[
    ("tahoe", "tcp = { variant = \"tahoe\" }"),
    ("reno", "tcp = { variant = \"reno\" }"),
    ("newreno", "tcp = { variant = \"newreno\" }"),
    ("newreno-sbs", "tcp = { variant = \"newreno-sbs\" }"),
    ("sack", "tcp = { variant = \"sack\" }"),
    ("sack-3517", "tcp = { variant = \"sack-3517\" }"),
    ("sack-frto", "tcp = { variant = \"sack-frto\" }"),
    ("reno-super-fast", "tcp = { variant = \"reno-super-fast\" }"),
    ("constant-window", "tcp = { variant = \"constant-window\" }"),
    ("constant-rack", "tcp = { variant = \"constant-rack\" }"),
    ("burst", "tcp = { variant = \"burst\" }"),
    ("burst-ca", "tcp = { variant = \"burst-ca\" }"),
    ("rack", "tcp = { variant = \"rack\" }"),
    ("cubic", "tcp = { variant = \"cubic\" }"),
    ("linux-reno", "tcp = { profile = \"linux\", variant = \"linux-reno\" }"),
    ("linux-cubic", "tcp = { profile = \"linux\", variant = \"linux-cubic\" }"),
    ("bbr", "tcp = { profile = \"linux\", variant = \"bbr\" }"),
    ("bsd-reno", "tcp = { profile = \"bsd-reno\" }"),
    ("ns2", "tcp = { profile = \"ns2\", variant = \"sack-ns2\" }"),
    ("stp", "type = \"stp\"\nstp = { rate = \"2 Mbit/s\", rtt = \"520 ms\", rto = \"650 ms\" }"),
    ("polls", "type = \"stp\"\nstp = { rate = \"2 Mbit/s\", rtt = \"520 ms\", poll_interval = \"100 ms\" }"),
    ("udp", "type = \"udp\"\nrate = \"1 Mbit/s\"\npacket = \"1000 B\"\nstop = \"1.6 s\""),
];

/// The satellite link, both directions.
const LINKS: &[Part] = &[
    ("plain", "rate = \"2 Mbit/s\"\nqueue = \"100 packets\""),
    ("no rate", "rate = \"unlimited\""),
    ("red", "rate = \"2 Mbit/s\"\nqueue = { limit = \"100 packets\", discipline = \"red\" }"),
    ("header and mtu", "rate = \"2 Mbit/s\"\nheader = \"8 B\"\nmtu = \"1500 B\""),
    ("lossy", "rate = \"2 Mbit/s\"\nloss = \"1 %\""),
    ("bit errors", "rate = \"2 Mbit/s\"\nbit_error_rate = \"1e-6\""),
    ("bursts", "rate = \"2 Mbit/s\"\nbursts = { schedule = [[\"900 ms\", \"200 ms\"]] }"),
    (
        "late bursts",
        "rate = \"2 Mbit/s\"\nbursts = { schedule = [[\"1 s\", \"1 s\"]], loss = \"0 %\", extra_delay = \"1 s\" }",
    ),
    ("two states", "rate = \"2 Mbit/s\"\ngilbert_elliott = { good = \"2 s\", bad = \"50 ms\", loss_bad = \"50 %\" }"),
    ("by packets", "rate = \"2 Mbit/s\"\npacket_bursts = { start = \"1 %\", burstiness = \"50 %\" }"),
    ("drop list", "rate = \"2 Mbit/s\"\ndrop_list = [20, 21, 60]"),
    ("trace", "rate_trace = [4, 9, 12, 20, 26, 31]"),
    (
        "tdma",
        "rate = \"8 Mbit/s\"\ntdma = { frame = \"20 ms\", bursts = [[\"1 ms\", \"2 ms\"], [\"9 ms\", \"3 ms\"]] }",
    ),
    ("cells", "rate = \"2 Mbit/s\"\nframing = \"aal5\""),
    (
        "cells with a buffer",
        "rate = \"2 Mbit/s\"\nframing = \"aal5\"\natm = { line = \"8 Mbit/s\", buffer = \"4000 cells\", \
         early_packet_discard = \"80 %\", partial_packet_discard = true }",
    ),
    ("lossy cells", "rate = \"2 Mbit/s\"\nframing = \"aal5\"\nbit_error_rate = \"1e-6\""),
];

/// The layer over the satellite link.
const LAYERS: &[Part] = &[
    ("no layer", ""),
    ("s-lacp", "[[layers]]\nname = \"layer\"\nover = \"sat\""),
    (
        "hybrid",
        "[[layers]]\nname = \"layer\"\nover = \"sat\"\nreport_interval = \"0 s\"\nrelease = \"unlimited\"\nweightless \
         = true\nhears_damage = true\nchannels = [{ name = \"all\", transmissions = \"unlimited\", queue = \"unlimited\" }]",
    ),
    (
        "arq",
        "[[layers]]\nname = \"layer\"\nover = \"sat\"\nchannels = [{ name = \"all\", transmissions = \"unlimited\", queue \
         = \"unlimited\" }]",
    ),
];

/// How the connection is treated on its way.
const SPLITS: &[Part] = &[
    ("whole", ""),
    ("split", "split = [{ at = \"G1\", buffer = \"1 MB\" }]"),
    (
        "twice split",
        "split = [{ at = \"G1\", buffer = \"1 MB\", tcp = { variant = \"constant-window\" } }, { at = \"G2\" }]",
    ),
    ("to stp", "split = [{ at = \"G1\", stp = { rate = \"2 Mbit/s\", rtt = \"520 ms\" } }]"),
    (
        "stp between",
        "split = [{ at = \"G1\", buffer = \"1 MB\", stp = { rate = \"2 Mbit/s\", rtt = \"510 ms\" } }, { at = \"G2\", \
         buffer = \"1 MB\" }]",
    ),
    ("spoofed", "spoof = { at = \"G1\", buffer = \"300 packets\" }"),
    (
        "split and spoofed",
        "split = [{ at = \"G0\", buffer = \"1 MB\" }]\nspoof = { at = \"G1\", buffer = \"300 packets\" }",
    ),
];

/// One combination.
#[derive(Clone, Copy)]
struct Case {
    transport: Part,
    link: Part,
    layer: Part,
    split: Part,
}

impl Case {
    fn name(&self) -> String {
        format!("{} / {} / {} / {}", self.transport.0, self.link.0, self.layer.0, self.split.0)
    }

    fn text(&self) -> String {
        let Case { transport, link, layer, split } = self;
        let ends = |name: &str, from: &str, to: &str| {
            format!(
                "[[links]]\nname = \"{name}\"\nbetween = [\"{from}\", \"{to}\"]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\n"
            )
        };
        let carries = if transport.0 == "udp" { "" } else { "bytes = \"200 kB\"" };
        format!(
            "name = \"cross\"\ntime_limit = \"600 s\"\n{}{}{}[[links]]\nname = \"sat\"\nbetween = [\"G1\", \"G2\"]\ndelay = \
             \"250 ms\"\n{}\n{}\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\n{carries}\n{}\n{}\n",
            ends("access", "A", "G0"),
            ends("ground", "G0", "G1"),
            ends("tail", "G2", "B"),
            link.1,
            layer.1,
            transport.1,
            split.1
        )
    }

    /// The reason if the language refuses the combination.
    fn refusal(&self) -> Option<&'static str> {
        let tcp = !matches!(self.transport.0, "stp" | "polls" | "udp");
        let in_cells = self.link.0.contains("cells");
        let spoofed = self.split.0.contains("spoofed");
        match (self.split.0, self.layer.0) {
            _ if !tcp && self.split.0 != "whole" => Some("applies to tcp flows"),
            (_, "hybrid") if in_cells => Some("a cell has a weight"),
            (_, "no layer") if spoofed => Some("does not acknowledge"),
            (_, "s-lacp") if spoofed => Some("gives up after some transmissions"),
            _ => None,
        }
    }

    /// The longest plausible time, in units of the limit. Without losses, slow start from two segments (bsd-reno) needs nine round trips
    /// for 200 kB where the limit counts 2.5 at 2 Mbit/s. With losses, a timeout costs seconds where the limit is 1.3 s, and its backoff
    /// doubles them: a hundred limits, 130 s, allow six timeouts in a row and no more.
    fn max_factor(&self) -> f64 {
        match self.link.0 {
            "plain" | "no rate" | "red" | "header and mtu" | "trace" | "tdma" | "cells" | "cells with a buffer" => 12.0,
            _ => 100.0,
        }
    }
}

fn cases() -> impl Iterator<Item = Case> {
    TRANSPORTS.iter().flat_map(|&transport| {
        LINKS.iter().flat_map(move |&link| {
            LAYERS
                .iter()
                .flat_map(move |&layer| SPLITS.iter().map(move |&split| Case { transport, link, layer, split }))
        })
    })
}

/// The fault of a combination, if it has one.
fn fault(case: &Case) -> Result<Option<f64>, String> {
    let read = Scenario::parse(&case.text(), "cross.toml", &[]);
    let scenario = match (read, case.refusal()) {
        (Ok(scenario), None) => scenario,
        (Ok(_), Some(reason)) => return Err(format!("is no longer refused for `{reason}`")),
        (Err(errors), None) => return Err(format!("is refused:\n{}", errors.render(false))),
        (Err(errors), Some(reason)) => {
            let said = errors.render(false);
            let is_said = said.contains(reason) && said.contains("cross.toml:");
            return if is_said { Ok(None) } else { Err(format!("is refused without `{reason}`:\n{said}")) };
        }
    };
    let result = run(&scenario, 3, &mut NoProbe).map_err(|error| error.to_string())?;
    let flow = &result.flows[0];
    for link in &result.links {
        // Packets in flight are those that the end of the run cut off.
        if link.offered < link.delivered + link.dropped() {
            return Err(format!("a link delivered more than it was offered: {link:?}"));
        }
    }
    if let FlowKind::Udp(_) = scenario.flows[0].kind {
        let (sent, received) = (flow.stats.data_segments, flow.receiver_stats.data_segments);
        // 200 packets, and of 200 with a loss of 5 % (the worst of these links, the outages apart) 10 on average.
        let min = if case.link.0 == "bursts" { 150 } else { 170 };
        return if sent == 200 && (min..=200).contains(&received) {
            Ok(None)
        } else {
            Err(format!("{received} of {sent}"))
        };
    }
    if result.timed_out || flow.aborted.is_some() || flow.delivered != BYTES {
        return Err(format!("{} of {BYTES} bytes, {:?}, {:?}", flow.delivered, flow.aborted, flow.stats));
    }
    let received = flow.received_at.ok_or("not received")?.saturating_since(Time::ZERO).as_secs_f64();
    let limit = flow_limit(&scenario, &scenario.flows[0]).expect("joined").and_then(|limit| limit.time);
    let factor = received / limit.expect("it has an end").as_secs_f64();
    match factor {
        // Nine digits: the limit rounds to whole nanoseconds.
        _ if factor < 1.0 - 1e-9 => Err(format!("{received} s is {factor:.3} of the limit: faster than physics")),
        _ if factor > case.max_factor() => Err(format!("{received} s is {factor:.1} of the limit; {:?}", flow.stats)),
        _ => Ok(Some(factor)),
    }
}

#[test]
fn every_mechanism_works_with_every_other_or_says_why_not() {
    let mut faults = String::new();
    let mut worst: BTreeMap<&str, (f64, String)> = BTreeMap::new();
    let (mut ran, mut refused) = (0, 0);
    for case in cases() {
        match fault(&case) {
            Ok(Some(factor)) => {
                ran += 1;
                let worst = worst.entry(case.link.0).or_insert((0.0, String::new()));
                if factor > worst.0 {
                    *worst = (factor, case.name());
                }
            }
            Ok(None) => refused += case.refusal().is_some() as u32,
            Err(error) => faults.push_str(&format!("{}: {error}\n", case.name())),
        }
    }
    println!("{ran} transfers, {refused} refusals; slowest by link: {worst:#?}");
    assert!(faults.is_empty(), "{faults}");
}
