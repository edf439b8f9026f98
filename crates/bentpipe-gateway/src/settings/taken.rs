//! What all shapes say of the connections that end at them: `TakenTable`.

use bentpipe_engine::units::Bytes;
use bentpipe_language::error::Problems;
use bentpipe_language::reader::View;

use super::TakenTable;
use super::grammar::{ADDRESS, INTERFACES, PORT, PORTS, STREAMS};
use super::values::{MAX_NAME, plain_name, written};

const STREAMS_DEFAULT: u32 = 16_384;
const MEMORY_DEFAULT: Bytes = Bytes::new(256 << 20);
/// The minimum for one stream's window, with room for a few.
const MIN_MEMORY: u64 = 4 << 20;

pub(super) fn interfaces(view: &View<'_>, key: &str, problems: &mut Problems) -> Option<Vec<String>> {
    let Some(item) = view.get(key) else { return Some(Vec::new()) };
    let names = item.list(&INTERFACES, problems)?;
    names.iter().map(|item| plain_name(item, MAX_NAME, problems).map(str::to_owned)).collect()
}

/// What is said of the connections that end here, which come in by `interfaces`.
pub(super) fn taken(view: &View<'_>, interfaces: Option<Vec<String>>, problems: &mut Problems) -> Option<TakenTable> {
    let ports = ports(view, problems);
    let list = |key, problems: &mut Problems| match view.get(key) {
        Some(item) => written(&item, problems),
        None => Some(Vec::new()),
    };
    let allow = list("allow", problems);
    let deny = list("deny", problems);
    let keep_client_address = match view.get("client_address") {
        Some(item) => item.choice(ADDRESS, problems).map(|word| word == ADDRESS[0]),
        None => Some(true),
    };
    let max_streams = match view.get("max_streams") {
        Some(item) => item.count(STREAMS, problems).map(|count| count as u32),
        None => Some(STREAMS_DEFAULT),
    };
    let memory = memory(view, problems);
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
    ports.iter().map(|item| item.count(PORT, problems).map(|port| port as u16)).collect()
}

/// The memory that a shape may take.
pub(super) fn memory(view: &View<'_>, problems: &mut Problems) -> Option<Bytes> {
    let Some(item) = view.get("memory") else { return Some(MEMORY_DEFAULT) };
    let memory = item.size(problems)?;
    if memory.get() < MIN_MEMORY {
        item.refuse(problems, "this is less than one connection needs", Some("4 MiB or more".to_owned()));
    }
    Some(memory)
}
