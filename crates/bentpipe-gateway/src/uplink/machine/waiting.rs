//! Data from clients that waits in the driver, because the servers' kernels have not taken it. It counts as memory.

use bentpipe_engine::gateway::MIN_UNSENT;

use super::{ConnectionId, Uplink};

/// Maximum bytes of a connection that wait before the driver reads no more; after that, the client's window closes.
const MAX_WAITING: usize = 64 << 10;

impl Uplink {
    /// The number of bytes that may wait for a server before the driver reads no more from the client, and the maximum
    /// that it reads at once. Without memory for both they are few, so that each connection goes on.
    pub fn may_wait(&self, id: ConnectionId) -> usize {
        if self.spare(id) < 2 * MAX_WAITING as u64 { MIN_UNSENT } else { MAX_WAITING }
    }

    /// Records how many bytes wait for a connection's server. After [`Uplink::flushed`] none do.
    pub fn set_waiting(&mut self, id: ConnectionId, bytes: usize) {
        let before = self.waiting.get(&id).copied();
        let host = || self.entries.get(&id).map(super::Entry::host).or_else(|| self.unflushed.get(&id).copied());
        let Some(host) = before.map(|(host, _)| host).or_else(host) else { return };
        let (before, now) = (before.map_or(0, |(_, bytes)| bytes), bytes as u64);
        match now {
            0 => _ = self.waiting.remove(&id),
            _ => _ = self.waiting.insert(id, (host, now)),
        }
        self.memory = self.memory + now - before;
        self.shares.set_bytes(host, before, now);
    }
}
