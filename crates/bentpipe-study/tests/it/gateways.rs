//! Gateways that are told more than their links have.

use bentpipe_study::scenario::Scenario;

const LINKS: &str = "name = \"boxes\"\n\
    [[links]]\nname = \"lan\"\nbetween = [\"client\", \"near\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
    [[links]]\nname = \"sat\"\nbetween = [\"near\", \"far\"]\nrate = \"10 Mbit/s\"\nbackward.rate = \"20 Mbit/s\"\ndelay = \"300 ms\"\n\
    [[links]]\nname = \"net\"\nbetween = [\"far\", \"server\"]\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n\
    [[flows]]\nname = \"data\"\nfrom = \"client\"\nto = \"server\"\nbytes = \"1 MB\"\n";

/// The messages of the warnings about this gateway.
fn warnings(gateway: &str) -> Vec<String> {
    let text = format!("{LINKS}[[gateways]]\nname = \"box\"\n{gateway}\n");
    let read = Scenario::parse_with_warnings(&text, "boxes.toml", &[]);
    let (_, warnings) = read.unwrap_or_else(|errors| panic!("{errors}"));
    warnings.0.into_iter().map(|warning| warning.message).collect()
}

#[test]
fn a_rate_above_the_links() {
    let pair = |more: &str| warnings(&format!("shape = \"split\"\nnear = \"near\"\nfar = \"far\"\n{more}"));
    let of_near = "the box sends at 10001 kbit/s, but `sat/forward` has 10 Mbit/s: its queue overflows";
    assert_eq!(pair("rate = [\"10001 kbit/s\", \"20 Mbit/s\"]"), [of_near]);
    assert_eq!(pair("rate = \"30 Mbit/s\"").len(), 1, "one value has one warning");
    // The rate is then only the most that a box tries.
    assert!(pair("rate = \"30 Mbit/s\"\nshared = true").is_empty());
    assert!(pair("").is_empty());
    let uplink = |rate: &str| warnings(&format!("shape = \"uplink\"\nat = \"far\"\nover = \"sat\"\nrate = \"{rate}\""));
    assert_eq!((uplink("20 Mbit/s").len(), uplink("21 Mbit/s").len()), (0, 1));
}
