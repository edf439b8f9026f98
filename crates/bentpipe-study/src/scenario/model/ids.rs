//! Typed indices into a scenario's lists, and the lookups by them.

use std::ops::Index;

use bentpipe_engine::network::LinkId;

use super::{FlowSpec, LinkSpec, Scenario};

bentpipe_engine::ids! {
    /// A node: its index in [`Scenario::nodes`].
    NodeId,
    /// A flow: its index in [`Scenario::flows`].
    FlowId,
    /// A connection: a whole flow, or one leg of a split flow; its index in
    /// [`connections`](crate::topology::connections).
    ConnectionId,
}

impl Index<NodeId> for Scenario {
    type Output = str;

    /// The name of a node.
    fn index(&self, node: NodeId) -> &str {
        &self.nodes[node.index()]
    }
}

impl Index<LinkId> for Scenario {
    type Output = LinkSpec;

    fn index(&self, link: LinkId) -> &LinkSpec {
        &self.links[link.index()]
    }
}

impl Index<FlowId> for Scenario {
    type Output = FlowSpec;

    fn index(&self, flow: FlowId) -> &FlowSpec {
        &self.flows[flow.index()]
    }
}
