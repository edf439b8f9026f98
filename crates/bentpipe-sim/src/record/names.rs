//! The names of what is observed: the ends of flows, and links.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::Who;
use bentpipe_study::scenario::{ConnectionId, Scenario};
use bentpipe_study::topology::{Connection, connections, legs};

use crate::ends;
use crate::observe::LINK_BASE;

/// The names of a scenario's machines.
///
/// Ends of flows are called `FLOW/sender` (the end at `from`) and `FLOW/receiver`; those of the legs of a split flow
/// are called `FLOW/leg-1/sender` and so on. Links are called by their names.
#[derive(Clone, Debug)]
pub struct Names {
    /// The ends by their numbers, followed by the links.
    all: Vec<String>,
    /// Number of ends of connections.
    ends: u32,
}

impl Names {
    /// The names of a scenario.
    pub fn of(scenario: &Scenario) -> Names {
        let connections = connections(scenario);
        let ends = connections.iter().flat_map(|&Connection { flow, number, .. }| {
            let flow = &scenario[flow];
            let leg = || format!("{}/leg-{}", flow.name, number + 1);
            let name = if legs(flow).len() == 1 { flow.name.clone() } else { leg() };
            [format!("{name}/sender"), format!("{name}/receiver")]
        });
        let all = ends.chain(scenario.links.iter().map(|link| link.name.clone())).collect();
        Names { all, ends: 2 * connections.len() as u32 }
    }

    /// All names, in the order of [`Names::index`].
    pub fn all(&self) -> &[String] {
        &self.all
    }

    /// The index of a machine in the list of names.
    pub fn index(&self, who: Who) -> Who {
        if who.0 >= LINK_BASE { Who(self.ends + (who.0 - LINK_BASE)) } else { who }
    }

    /// The name of a link.
    pub fn link(&self, link: LinkId) -> &str {
        self.get(Who(LINK_BASE + link.0))
    }

    /// The name of a flow, or of a leg of a split flow.
    pub fn flow(&self, connection: ConnectionId) -> &str {
        let end = self.get(ends::who(ends::opener(connection)));
        end.strip_suffix("/sender").unwrap_or(end)
    }

    /// The name of a machine; empty if the scenario does not have it.
    pub fn get(&self, who: Who) -> &str {
        self.all.get(self.index(who).0 as usize).map_or("", String::as_str)
    }
}
