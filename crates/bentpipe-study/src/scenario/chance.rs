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
    let scheduled = link.moves.as_ref().is_some_and(|moves| moves.loss.is_some());
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
}
