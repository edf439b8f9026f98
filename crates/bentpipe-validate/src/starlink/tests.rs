use bentpipe_engine::units::Duration;
use bentpipe_study::scenario::{FlowKind, Scenario};

use super::with_flows;

const STARLINK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/starlink.toml");

/// With the scenario's own hosts, another congestion control was compared with the recorded CUBIC.
#[test]
fn a_transfer_has_the_hosts_of_the_recordings() {
    let starlink = Scenario::load(STARLINK, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let flow = "[[flows]]\nname = \"transfer\"\nfrom = \"server\"\nto = \"terminal\"\nbytes = \"1 MB\"\n".to_owned();
    let compared = with_flows(&starlink, &[flow], 7).expect("a scenario");
    let [transfer] = compared.flows.as_slice() else { panic!("one flow: {:?}", compared.flows) };
    let FlowKind::Tcp(tcp) = &transfer.kind else { panic!("TCP: {:?}", transfer.kind) };
    assert_eq!((tcp.profile_name.as_str(), tcp.variant_name.as_str()), ("linux", "linux-cubic"));
    // Not only by name: both ends are those of the row, without settings beside it.
    assert_eq!(compared, compared.with_hosts("linux", "linux-cubic").expect("both are known"));
    assert_eq!((compared.time_limit, &compared.links), (Duration::from_secs(7), &starlink.links));
}
