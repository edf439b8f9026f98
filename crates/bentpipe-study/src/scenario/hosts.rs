//! `[nodes.NAME]`: processing times of hosts and switches.

use bentpipe_language::document::Value;
use bentpipe_language::error::{Mistake, Problems};
use bentpipe_language::reader::{Item, View};
use bentpipe_language::shape::Shape;
use bentpipe_language::suggest::did_you_mean;

use super::bursts::distribution;
use super::grammar::HOST;
use super::model::{FlowSpec, HostSpec, NodeId};
use crate::topology;

/// Reads the nodes with settings; all others have defaults.
pub(crate) fn hosts(
    item: &Item<'_>,
    nodes: &[String],
    flows: &[FlowSpec],
    is_whole: bool,
    problems: &mut Problems,
) -> Vec<HostSpec> {
    let mut hosts = vec![HostSpec::default(); nodes.len()];
    let Value::Table(table) = &item.node.value else {
        item.mismatch(problems, &Shape::Named(&Shape::Table(HOST)));
        return hosts;
    };
    for entry in &table.entries {
        let path = format!("{}.{}", item.path, entry.key);
        let host = Item { node: &entry.node, path: path.clone() };
        let read = host.table(HOST, problems).and_then(|view| host_spec(&view, problems));
        match nodes.iter().position(|node| *node == entry.key) {
            Some(node) => {
                hosts[node] = read.unwrap_or_default();
                // If a flow is wrong, an end may be missing only for that
                // reason.
                let ends_here = |leg: &topology::Leg<'_>| [leg.from, leg.to].contains(&NodeId::from(node));
                let is_end = flows.is_empty() || flows.iter().any(|flow| topology::legs(flow).iter().any(ends_here));
                if hosts[node].processing.is_some() && !is_end {
                    let message = format!("no flow starts or ends at `{}`, so nothing is processed there", entry.key);
                    problems.add(entry.key_span, Mistake::new(&path, message).expected("the end of a flow"));
                }
            }
            None if is_whole => {
                let mistake = Mistake::new(&path, format!("no link leads to a node `{}`", entry.key))
                    .expected(format!("one of {}", nodes.join(", ")))
                    .help(did_you_mean(&entry.key, nodes.iter().map(String::as_str)));
                problems.add(entry.key_span, mistake);
            }
            None => {}
        }
    }
    hosts
}

fn host_spec(view: &View<'_>, problems: &mut Problems) -> Option<HostSpec> {
    let processing = match view.get("processing") {
        Some(item) => Some(distribution(&item, problems)?),
        None => None,
    };
    let forwarding = match view.get("forwarding") {
        Some(item) => Some(distribution(&item, problems)?),
        None => None,
    };
    Some(HostSpec { processing, forwarding })
}
