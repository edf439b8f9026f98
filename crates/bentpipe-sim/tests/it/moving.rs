//! Every transport survives a link that moves: whatever the schedule, all data arrives, and the run ends.

use crate::worlds::{moving, parse};
use bentpipe_engine::probe::NoProbe;
use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_sim::run;
use proptest::prelude::*;

const BYTES: u64 = 150_000;

/// A link that moves both ways, between two that do not, and one transfer over it.
fn world(link: &str, flow: &str, layer: &str) -> String {
    let still = |name: &str, between: &str| {
        format!("[[links]]\nname = \"{name}\"\nbetween = [{between}]\nrate = \"50 Mbit/s\"\ndelay = \"1 ms\"\n")
    };
    format!(
        "name = \"moving\"\ntime_limit = \"300 h\"\n{}{}[[links]]\nname = \"sat\"\nbetween = [\"R1\", \"R2\"]\n\
         rate = \"2 Mbit/s\"\ndelay = \"50 ms\"\n{link}\n{layer}\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\n\
         bytes = \"{BYTES} B\"\n{flow}\n",
        still("near", "\"A\", \"R1\""),
        still("far", "\"R2\", \"B\"")
    )
}

/// Runs it; the error says what is missing.
fn survives(text: &str, seed: u64) -> Result<(), String> {
    let result = run(&parse(text), seed, &mut NoProbe).expect("a path for the flow");
    let flow = &result.flows[0];
    if flow.delivered == BYTES && flow.received_at.is_some() && flow.aborted.is_none() {
        return Ok(());
    }
    Err(format!("{} B of {BYTES}, aborted {:?}, timed out {}\n{text}", flow.delivered, flow.aborted, result.timed_out))
}

/// A host that never gives up: an outage may be longer than its patience.
fn tcp(variant: &str) -> String {
    format!("tcp = {{ profile = \"rfc\", variant = \"{variant}\", rto.max_retries = \"unlimited\" }}")
}

const STP: &str = "type = \"stp\"\nstp = { rate = \"1 Mbit/s\", rtt = \"300 ms\", mss = \"1000 B\", overhead = \"28 B\", \
                   rto = \"900 ms\", max_retransmissions = 60 }";

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_row_of_tcp(link in moving(), seed in 0..1000u64) {
        for (name, ..) in VARIANTS {
            prop_assert_eq!(survives(&world(&link, &tcp(name), ""), seed), Ok(()), "{}", name);
        }
    }

    #[test]
    fn stp(link in moving(), seed in 0..1000u64) {
        prop_assert_eq!(survives(&world(&link, STP, ""), seed), Ok(()));
    }

    #[cfg(feature = "quic")]
    #[test]
    fn every_control_of_quic(link in moving(), seed in 0..1000u64) {
        for name in ["cubic", "reno", "bbr", "linux-cubic", "cubic-rfc9438"] {
            let quic = format!("type = \"quic\"\nquic = {{ congestion_control = \"{name}\", idle_timeout = \"1000000 s\" }}");
            prop_assert_eq!(survives(&world(&link, &quic, ""), seed), Ok(()), "{}", name);
        }
    }

    /// S-LACP's ARQ below TCP; the packets that it delivers are those that it was given.
    #[test]
    fn slacp(link in moving(), seed in 0..1000u64) {
        let layer = "[[layers]]\nname = \"arq\"\nover = \"sat\"\n";
        prop_assert_eq!(survives(&world(&link, &tcp("sack"), layer), seed), Ok(()));
        prop_assert_eq!(survives(&world(&link, &tcp("cubic"), layer), seed), Ok(()));
    }
}
