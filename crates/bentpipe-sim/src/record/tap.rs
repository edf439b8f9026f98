//! Capture points: a host, or either end of a link.

use bentpipe_engine::network::LinkId;
use bentpipe_study::scenario::{NodeId, Scenario};
use bentpipe_study::topology::{self, Connection};

/// A capture point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tap {
    /// A node at the end of a flow, or one that splits a flow: captures the packets that it sends, before the first
    /// queue, and those that it receives.
    Host(NodeId),
    /// A link before its queue: captures all offered packets, dropped or not.
    Entrance(LinkId),
    /// The far end of a link: captures all delivered packets.
    Exit(LinkId),
}

/// No tap has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tap `{name}`; there are {}", .known.join(", "))]
pub struct UnknownTap {
    /// The requested name.
    pub name: String,
    /// The available names.
    pub known: Vec<String>,
}

impl Tap {
    /// All taps of a scenario: its hosts, then its links.
    pub fn all(scenario: &Scenario) -> Vec<Tap> {
        let connections = topology::connections(scenario);
        let is_host =
            |node: &NodeId| connections.iter().any(|Connection { leg, .. }| [leg.from, leg.to].contains(node));
        let hosts = NodeId::first(scenario.nodes.len()).filter(is_host).map(Tap::Host);
        hosts
            .chain(LinkId::first(scenario.links.len()).flat_map(|link| [Tap::Entrance(link), Tap::Exit(link)]))
            .collect()
    }

    /// The source of the first flow, which shows a sender's decisions best. Empty without flows.
    pub fn first_sender(scenario: &Scenario) -> Vec<Tap> {
        scenario.flows.first().map(|flow| Tap::Host(flow.from)).into_iter().collect()
    }

    /// Its name: that of the node, or that of the link with `:in` or `:out`.
    pub fn name(&self, scenario: &Scenario) -> String {
        match *self {
            Tap::Host(node) => scenario[node].to_owned(),
            Tap::Entrance(link) => format!("{}:in", scenario[link].name),
            Tap::Exit(link) => format!("{}:out", scenario[link].name),
        }
    }

    /// The taps called `name`: a single one, both of a link (`sat/forward`), or all (`all`).
    ///
    /// # Errors
    /// Fails if nothing has this name.
    pub fn find(scenario: &Scenario, name: &str) -> Result<Vec<Tap>, UnknownTap> {
        let all = Tap::all(scenario);
        if name == "all" {
            return Ok(all);
        }
        let stem = |tap: &Tap| tap.name(scenario).trim_end_matches(":in").trim_end_matches(":out").to_owned();
        let found: Vec<_> = all.iter().copied().filter(|tap| tap.name(scenario) == name || stem(tap) == name).collect();
        if found.is_empty() {
            let known = all.iter().map(|tap| tap.name(scenario)).collect();
            return Err(UnknownTap { name: name.to_owned(), known });
        }
        Ok(found)
    }
}
