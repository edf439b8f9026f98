//! Whether anything in a run is drawn: if not, one run says all.

use bentpipe_engine::link::{ChannelConfig, Discipline, LinkConfig};
use bentpipe_engine::units::Probability;
use bentpipe_study::scenario::{FlowKind, FlowSpec, Scenario, UdpPattern, Workload};

/// True if all seeds give the same run.
pub(super) fn is_deterministic(scenario: &Scenario) -> bool {
    let hosts = scenario.hosts.iter().all(|host| host.processing.is_none() && host.forwarding.is_none());
    hosts && scenario.links.iter().all(|link| is_certain(&link.config)) && scenario.flows.iter().all(is_planned)
}

fn is_certain(link: &LinkConfig) -> bool {
    let none = Probability::ZERO;
    let calm = link.good.packet == none && link.good.bit == none && link.channel == ChannelConfig::Clear;
    let moves = link.moves.as_ref().is_none_or(|moves| moves.loss.is_none());
    let others = link.packet_bursts.is_none() && link.phases.is_none() && link.jitter.is_none();
    let copies = link.reorder.is_none() && link.duplicate == none && link.corrupt == none;
    calm && moves && others && copies && !matches!(link.queue.discipline, Discipline::Red(_))
}

fn is_planned(flow: &FlowSpec) -> bool {
    let draws = |pattern: &UdpPattern| matches!(pattern, UdpPattern::OnOff { .. });
    let paced = matches!(flow.kind.workload(), Some(Workload::Paced { pattern, .. }) if draws(&pattern));
    let datagrams = matches!(&flow.kind, FlowKind::Udp(udp) if draws(&udp.pattern));
    flow.spread.is_none() && !paced && !datagrams
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(link: &str, flow: &str) -> Scenario {
        let text = format!(
            "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"280 ms\"\n\
             {link}\n[[flows]]\nfrom = \"a\"\nto = \"b\"\nbytes = \"100 kB\"\n{flow}\n"
        );
        Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn what_is_drawn_is_found() {
        assert!(is_deterministic(&world("queue = \"50 packets\"", "")));
        assert!(is_deterministic(&world("schedule = [{ at = \"1 s\", rate = \"5 Mbit/s\" }]", "")));
        for link in [
            "loss = \"1 %\"",
            "bursts = { gap = \"1 s\", length = { uniform = [\"1 ms\", \"2 ms\"] } }",
            "jitter = { delay = \"1 ms\" }",
            "duplicate = \"1 %\"",
            "corrupt = \"1 %\"",
            "schedule = [{ at = \"1 s\", loss = \"1 %\" }]",
        ] {
            assert!(!is_deterministic(&world(link, "")), "{link}");
        }
        assert!(!is_deterministic(&world("", "spread = \"1 s\"")));
    }

    /// A path that is called certain gives the same run under each seed.
    #[test]
    fn a_certain_path_is_the_same_under_each_seed() {
        let scenario = world("queue = \"50 packets\"", "");
        let run = |seed| crate::run(&scenario, seed, &mut bentpipe_engine::NoProbe).expect("a path").flows;
        assert_eq!(run(1), run(2));
    }
}
