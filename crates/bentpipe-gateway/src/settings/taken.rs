//! The settings of the connections to terminate: `TakenTable`.

use bentpipe_language::error::Problems;
use bentpipe_language::gateway;
use bentpipe_language::reader::View;

use super::TakenTable;
use super::grammar::{ADDRESS, INTERFACES, PORT, PORTS};
use super::values::{DESTINATIONS, all, interface, written};

pub(super) fn interfaces(view: &View<'_>, key: &str, problems: &mut Problems) -> Option<Vec<String>> {
    let Some(item) = view.get(key) else { return Some(Vec::new()) };
    let names = item.list(&INTERFACES, problems)?;
    all(names.iter().map(|item| interface(item, problems).map(str::to_owned)))
}

/// The settings of the connections to terminate, which arrive at `interfaces`.
pub(super) fn taken(view: &View<'_>, interfaces: Option<Vec<String>>, problems: &mut Problems) -> Option<TakenTable> {
    let ports = ports(view, problems);
    let list = |key, problems: &mut Problems| match view.get(key) {
        Some(item) => written(&item, DESTINATIONS, problems),
        None => Some(Vec::new()),
    };
    let allow = list("allow", problems);
    let deny = list("deny", problems);
    let keep_client_address = match view.get("client_address") {
        Some(item) => item.choice(ADDRESS, problems).map(|word| word == ADDRESS[0]),
        None => Some(true),
    };
    let (max_streams, memory) = (gateway::max_streams(view, problems), gateway::memory(view, problems));
    Some(TakenTable {
        interfaces: interfaces?,
        ports: ports?,
        allow: allow?,
        deny: deny?,
        keep_client_address: keep_client_address?,
        max_streams: max_streams?,
        memory: memory?,
    })
}

fn ports(view: &View<'_>, problems: &mut Problems) -> Option<Vec<u16>> {
    let Some(item) = view.get("ports") else { return Some(Vec::new()) };
    let ports = item.list(&PORTS, problems)?;
    all(ports.iter().map(|item| item.count(PORT, problems).map(|port| port as u16)))
}
