//! What a scenario leaves to chance. If that is nothing, every seed gives the same run, and one run is sufficient.

use bentpipe_engine::link::{ChannelConfig, Discipline, Distribution, LinkConfig, LossConfig, PacketBursts};
use bentpipe_engine::units::{Duration, Probability};

use super::model::{FlowKind, Scenario, UdpPattern, Workload};

impl Scenario {
    /// What is drawn at random, each as `WHERE: WHAT` ("link sat/forward: loss"); empty if every seed gives the same
    /// run.
    ///
    /// It may include draws that a run never makes, such as a loss on a link that no packet uses.
    pub fn random_parts(&self) -> Vec<String> {
        let links = self
            .links
            .iter()
            .flat_map(|link| of_link(&link.config).map(move |what| format!("link {}: {what}", link.name)));
        let hosts = self.nodes.iter().zip(&self.hosts).filter_map(|(name, host)| {
            let times = [host.processing, host.forwarding];
            times.iter().flatten().any(varies).then(|| format!("node {name}: processing"))
        });
        let flows = self.flows.iter().flat_map(|flow| {
            let start = flow.spread.is_some_and(|spread| spread.width > Duration::ZERO).then_some("start");
            let pattern = match &flow.kind {
                FlowKind::Udp(udp) => Some(udp.pattern),
                kind => match kind.workload() {
                    Some(Workload::Paced { pattern, .. }) => Some(pattern),
                    _ => None,
                },
            };
            let pauses = pattern.is_some_and(|pattern| match pattern {
                UdpPattern::OnOff { on, off } => varies(&on) || varies(&off),
                UdpPattern::Cbr | UdpPattern::Mpeg(_) => false,
            });
            // quinn skips packet numbers and updates keys at random.
            let quic = matches!(flow.kind, FlowKind::Quic(_)).then_some("packet numbers");
            let found = start.into_iter().chain(pauses.then_some("on and off")).chain(quic);
            found.map(move |what| format!("flow {}: {what}", flow.name))
        });
        links.chain(hosts).chain(flows).collect()
    }
}

/// True if two draws may differ.
fn varies(distribution: &Distribution) -> bool {
    match *distribution {
        Distribution::Fixed(_) => false,
        Distribution::Uniform(low, high) => low != high,
        _ => true,
    }
}

/// True if a toss may go either way.
fn tossed(probability: Probability) -> bool {
    probability.get() > 0.0 && probability.get() < 1.0
}

fn loses(loss: &LossConfig) -> bool {
    tossed(loss.packet) || tossed(loss.bit)
}

/// The properties of a link that are drawn.
fn of_link(link: &LinkConfig) -> impl Iterator<Item = &'static str> + use<> {
    let bursts = matches!(&link.channel, ChannelConfig::OnOff { gap, burst } if varies(gap) || varies(burst));
    let in_bursts = !matches!(link.channel, ChannelConfig::Clear) && loses(&link.bad);
    let scheduled = link.loss_changes();
    let runs = link.packet_bursts.is_some_and(|bursts| match bursts {
        PacketBursts::Conditional { start, again } => tossed(start) || tossed(again),
        PacketBursts::Runs { start, .. } => tossed(start),
    });
    let phases = link.phases.as_ref();
    let sky = phases.is_some_and(|phases| {
        phases.rate.is_some_and(|(low, high)| low != high)
            || phases.delay.is_some_and(|(low, high)| low != high)
            || phases.loss > 0
    });
    let parts = [
        (bursts, "bursts"),
        (loses(&link.good) || in_bursts || scheduled || runs, "loss"),
        (sky, "phases"),
        (link.jitter.as_ref().is_some_and(|jitter| varies(&jitter.delay)), "jitter"),
        (link.reorder.is_some_and(|reorder| tossed(reorder.probability)), "reordering"),
        (tossed(link.duplicate), "duplicates"),
        (tossed(link.corrupt), "corruption"),
        (matches!(link.queue.discipline, Discipline::Red(_)), "RED"),
    ];
    parts.into_iter().filter_map(|(is_there, what)| is_there.then_some(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "name = \"x\"\n[[links]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n\
                         queue = \"50 packets\"\n[[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"1 MB\"\n";

    fn with(key: &str, value: &str) -> Vec<String> {
        let sets = [(key.to_owned(), value.to_owned())];
        Scenario::parse(PLAIN, "x.toml", &sets).unwrap_or_else(|errors| panic!("{errors}")).random_parts()
    }

    #[test]
    fn what_is_drawn_is_named() {
        assert_eq!(with("seed", "2"), Vec::<String>::new());
        assert_eq!(with("links.l.loss", "1 %"), ["link l/forward: loss", "link l/backward: loss"]);
        assert_eq!(with("links.l.forward.loss", "100 %"), Vec::<String>::new());
        let bursts = |gap: &str| {
            with("links.l.forward.bursts", &format!("{{ gap = {gap}, length = \"1 s\", loss = \"100 %\" }}"))
        };
        assert_eq!(bursts("\"9 s\""), Vec::<String>::new());
        assert_eq!(bursts("{ uniform = [\"1 s\", \"9 s\"] }"), ["link l/forward: bursts"]);
        assert_eq!(with("flows.f.spread", "1 s"), ["flow f: start"]);
        assert_eq!(with("flows.f.type", "quic"), ["flow f: packet numbers"]);
    }

    #[test]
    fn each_draw_of_a_link_is_named() {
        let forward = |key: &str, value: &str| with(&format!("links.l.forward.{key}"), value);
        for (key, value, what) in [
            ("bit_error_rate", "1e-6", "loss"),
            ("packet_bursts", "{ start = \"1 %\", length = \"2 packets\" }", "loss"),
            // Each arrival is followed by a burst of a length that is drawn.
            ("packet_bursts", "{ start = \"100 %\", burstiness = \"50 %\", max = \"50 %\" }", "loss"),
            ("loss_trace", "{ values = [[\"0 s\", \"1 %\"]] }", "loss"),
            ("bursts", "{ schedule = [[\"1 s\", \"1 s\"]], loss = \"50 %\" }", "loss"),
            ("phases", "{ length = \"1 s\", rate = [\"1 Mbit/s\", \"2 Mbit/s\"] }", "phases"),
            ("phases", "{ length = \"1 s\", delay = [\"1 ms\", \"2 ms\"] }", "phases"),
            ("phases", "{ length = \"1 s\", outage = \"10 ms\", loss = \"50 %\" }", "phases"),
            ("jitter", "{ delay = { exponential = \"1 ms\" } }", "jitter"),
            ("reorder", "{ probability = \"1 %\", delay = \"5 ms\" }", "reordering"),
            ("duplicate", "1 %", "duplicates"),
            ("corrupt", "1 %", "corruption"),
            ("queue", "{ limit = \"50 packets\", discipline = \"red\" }", "RED"),
        ] {
            assert_eq!(forward(key, value), [format!("link l/forward: {what}")], "{key} = {value}");
        }
        for (key, value) in [
            ("phases", "{ length = \"1 s\", outage = \"10 ms\", rate = [\"1 Mbit/s\", \"1 Mbit/s\"] }"),
            ("jitter", "{ delay = \"1 ms\" }"),
            ("reorder", "{ probability = \"100 %\", delay = \"5 ms\" }"),
            ("queue", "{ limit = \"50 packets\", discipline = \"codel\" }"),
        ] {
            assert_eq!(forward(key, value), Vec::<String>::new(), "{key} = {value}");
        }
    }

    #[test]
    fn draws_of_hosts_and_flows_are_named() {
        assert_eq!(with("nodes.a.processing", "{ exponential = \"1 ms\" }"), ["node a: processing"]);
        assert_eq!(with("nodes.b.forwarding", "{ uniform = [\"1 ms\", \"2 ms\"] }"), ["node b: processing"]);
        assert_eq!(with("nodes.a.processing", "1 ms"), Vec::<String>::new());
        let drawn = "{ exponential = \"1 s\" }";
        for (on, off, found) in [(drawn, "\"1 s\"", 1), ("\"1 s\"", drawn, 1), ("\"1 s\"", "\"1 s\"", 0)] {
            let paced = format!("paced = {{ rate = \"1 Mbit/s\", pattern = {{ on = {on}, off = {off} }} }}");
            let text = PLAIN.replace("bytes = \"1 MB\"", &paced);
            let scenario = Scenario::parse(&text, "x.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(scenario.random_parts(), vec!["flow f: on and off"; found], "{on} {off}");
        }
    }
}
