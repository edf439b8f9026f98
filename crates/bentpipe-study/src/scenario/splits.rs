//! `split` of a flow: the nodes at which its connection is split, and the settings of their outgoing legs.

use bentpipe_engine::units::Bytes;
use bentpipe_language::error::Problems;
use bentpipe_language::reader::Item;
use bentpipe_language::shape::Shape;
use bentpipe_language::tcp::{End, TcpOverrides, TcpTable, read_buffer, tcp_table};

use super::grammar::{FLOW, SPLIT};
use super::model::{NodeId, Split};
use super::stp;
use super::world::{World, node, route};

/// The settings of one split, before its leg has a receiver.
struct Said<'a> {
    at: NodeId,
    item: Item<'a>,
    buffer: Option<Buffer<'a>>,
    table: TcpTable,
}

/// A buffer, and where it is written.
#[derive(Clone)]
struct Buffer<'a> {
    bytes: Bytes,
    item: Item<'a>,
}

impl Buffer<'_> {
    fn set(&self, end: End, table: &mut TcpTable) {
        table.settings.receive_buffer(end, self.bytes, (self.item.node.span, self.item.path.clone()));
    }
}

/// Reads `split`. Legs without settings use those of `[tcp]`; the flow's own settings are for its first leg. Returns
/// three values: the changed settings of the first leg, whose receive buffer is that of the first split; the splits;
/// and the buffer of the first one.
pub(super) fn read(
    item: &Item<'_>,
    world: &World<'_>,
    [from, to]: [Option<NodeId>; 2],
    problems: &mut Problems,
) -> Option<(TcpTable, Vec<Split>, Option<Bytes>)> {
    let shape = FLOW.iter().find(|field| field.key == "split").map_or(Shape::Text, |field| field.shape);
    let entries = item.list(&shape, problems)?;
    if entries.is_empty() {
        item.refuse(problems, format!("`{}` is empty", item.path), Some("nodes at which the flow is split".to_owned()));
        return None;
    }
    let mut said: Vec<Said<'_>> = Vec::new();
    for entry in entries {
        let view = entry.table(SPLIT, problems)?;
        let place = view.require("at", problems)?;
        let at = node(&place, world.network, problems)?;
        let taken = said.iter().any(|split| split.at == at) || [from, to].contains(&Some(at));
        if taken {
            let message = format!("the connection already has an end at `{}`", world.network.nodes[at.index()]);
            place.refuse(problems, message, Some("a node between `from` and `to`, each once".to_owned()));
            return None;
        }
        let buffer = match view.get("buffer") {
            Some(item) => Some(Buffer { bytes: read_buffer(&item, problems)?, item }),
            None => None,
        };
        let table = view.get("tcp").map(|item| tcp_table(&item, problems)).unwrap_or_default();
        if let (true, Some(item)) = (table.gives("tcb_sharing"), view.get("tcp")) {
            let message = "connections from the node of a split share nothing";
            let expected = "no `tcb_sharing`; `resume` says what is known of the path".to_owned();
            item.refuse(problems, message, Some(expected));
        }
        said.push(Said { at, item: entry, buffer, table });
    }
    let mut first = TcpTable::default();
    let mut splits = Vec::new();
    let ends: Vec<_> = said.iter().map(|split| Some(split.at)).skip(1).chain([to]).collect();
    let buffers: Vec<_> = said.iter().map(|split| split.buffer.clone()).chain([None]).collect();
    let bytes = |n: usize| buffers[n].as_ref().map(|buffer: &Buffer<'_>| buffer.bytes);
    if let Some(buffer) = &buffers[0] {
        buffer.set(End::Receiver, &mut first);
    }
    for (index, split) in said.into_iter().enumerate() {
        let mut table = world.tcp.overlaid(&split.table);
        // What the hosts' connections share does not apply to its own.
        let TcpOverrides { both, sender, .. } = &mut table.settings.overrides;
        both.remove("tcb_sharing");
        sender.remove("tcb_sharing");
        if let Some(buffer) = &buffers[index] {
            buffer.set(End::Sender, &mut table);
        }
        if let Some(buffer) = &buffers[index + 1] {
            buffer.set(End::Receiver, &mut table);
        }
        let path = format!("{}.tcp", split.item.path);
        let view = split.item.table(SPLIT, problems)?;
        let stp = stp::leg(&view, bytes(index + 1), problems)?;
        if stp.is_some() {
            // TCP settings do not apply to this leg.
            table = TcpTable::default();
        }
        let (sender, receiver) = table.resolve(world.variants, (split.item.node.span, &path), problems)?;
        let next = ends[index]?;
        splits.push(Split {
            at: split.at,
            gateway: None,
            stp,
            sender,
            receiver,
            variant_name: table.variant().to_owned(),
            profile_name: table.profile().name.to_owned(),
            route: route(view.get("route"), split.at, next, world.network, problems)?,
            return_route: route(view.get("return_route"), next, split.at, world.network, problems)?,
            explicit: table.settings.overrides,
        });
    }
    Some((first, splits, bytes(0)))
}
