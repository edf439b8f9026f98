//! How much memory the boxes hold for connections and for the line.

/// Maximum number of messages that wait in the layer. It is large enough to keep the line busy until the driver looks
/// again, and small enough that a message of a quiet stream need not wait longer.
pub const ROOM: usize = 8;

/// Maximum bytes of a connection that wait for the link, normally.
pub const MAX_UNSENT: usize = 128 << 10;
/// Maximum bytes of a connection that wait for the link while memory is short.
pub const MIN_UNSENT: usize = 4 << 10;
/// Bytes that a connection takes besides its buffers: the connection, its stream, and their table entries.
pub const CONNECTION: usize = 1 << 10;

/// The memory of a box of shape `split`, in bytes.
///
/// The limit is divided into sixteenths, so that no use can exclude the others:
///
/// - Connections and their data, plus what the link has beyond three sixteenths, may take twelve. Data always gets at
///   least one.
/// - The link may take what connections leave of fifteen sixteenths, and at least one.
/// - New connections are accepted while connections, plus what the link has beyond two sixteenths, take less than
///   fourteen. So data and the link leave one for new connections, as long as connections without data take at most
///   eleven.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The limit of all uses together.
    pub limit: u64,
    /// Memory of connections and their data in both directions.
    pub connections: u64,
    /// Memory of the link's packets.
    pub link: u64,
}

impl Memory {
    const fn sixteenths(self, count: u64) -> u64 {
        self.limit / 16 * count
    }

    /// Maximum bytes of a connection that may wait for the link.
    pub fn max_unsent(self) -> usize {
        if self.connections + self.link > self.limit / 2 { MIN_UNSENT } else { MAX_UNSENT }
    }

    /// Maximum bytes of received data that streams may hold, if they hold `held` of the memory of connections now.
    pub fn for_streams(self, held: u64) -> u64 {
        let elsewhere = self.connections.saturating_sub(held) + self.link.saturating_sub(self.sixteenths(3));
        self.sixteenths(12).saturating_sub(elsewhere).max(self.sixteenths(1))
    }

    /// Maximum memory of the link.
    pub fn for_link(self) -> u64 {
        self.sixteenths(15).saturating_sub(self.connections).max(self.sixteenths(1))
    }

    /// Memory available for new connections.
    pub fn for_connections(self) -> u64 {
        self.sixteenths(14).saturating_sub(self.connections + self.link.saturating_sub(self.sixteenths(2)))
    }
}

/// Memory of a packet or symbol besides its bytes. The allocation takes 32 bytes, and up to 63 more if it reuses that
/// of a longer packet. Entries in tables of the port and the machine (a handle, a queue entry, a slot and a
/// transmission) take some 150 bytes, in tables that may be half empty.
const PACKET: u64 = 256;

/// Memory of a packet or symbol of `len` bytes.
pub const fn packet_memory(len: u64) -> u64 {
    len + PACKET
}

/// Further bytes that a queue may take while packets for the far end hold `given` of `memory` bytes. Such packets may
/// take half of the memory, and five eighths in channels other than the default one. The rest is for packets from the
/// far end.
pub const fn queue_room(memory: u64, given: u64, is_default_channel: bool) -> u64 {
    let eighths = if is_default_channel { 4 } else { 5 };
    (memory / 8 * eighths).saturating_sub(given + PACKET)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Memory = Memory { limit: 1600, connections: 0, link: 0 };

    /// `idle`: bytes of connections without data.
    fn full_of_data(idle: u64) -> Memory {
        let held = Memory { connections: idle, ..NOTHING }.for_streams(0);
        Memory { connections: idle + held, ..NOTHING }
    }

    #[test]
    fn data_leaves_room_for_connections_and_the_link() {
        let full = full_of_data(300);
        assert_eq!((full.connections, full.for_connections(), full.for_link()), (1200, 200, 300));
        let both = Memory { link: full.for_link(), ..full };
        assert_eq!((both.for_connections(), both.for_streams(900), both.connections + both.link), (100, 900, 1500));
    }

    /// Data that waits behind a gap in the link leaves room for connections, and no stream is reset for it.
    #[test]
    fn the_link_leaves_room_for_connections_and_data() {
        for (idle, held) in [(0, 0), (300, 0), (300, 500), (1100, 0), (1100, 100)] {
            let before = Memory { connections: idle + held, ..NOTHING };
            let full = Memory { link: before.for_link(), ..before };
            assert!(full.for_connections() >= 100 && full.for_streams(held) >= held, "{full:?}");
        }
    }

    /// Connections that fill everything allowed leave data and the link a sixteenth each, and the sum is the limit.
    #[test]
    fn connections_leave_room_for_data_and_the_link() {
        let idle = NOTHING.for_connections();
        let full = full_of_data(idle);
        assert_eq!((idle, full.connections, full.for_link(), full.for_connections()), (1400, 1500, 100, 0));
    }

    #[test]
    fn less_is_read_while_memory_is_short() {
        let unsent = |connections, link| Memory { connections, link, ..NOTHING }.max_unsent();
        assert_eq!((unsent(400, 400), unsent(400, 401)), (MAX_UNSENT, MIN_UNSENT));
    }
}
