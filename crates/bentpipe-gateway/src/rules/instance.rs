//! The names of a gateway's tables, marks and routes in the kernel, which allow several gateways to share a machine.

use super::words;

/// The names of one gateway. All are derived from the name in its settings, so that a later command finds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    name: String,
    slot: u32,
}

/// A packet mark, the routing table for marked packets, and the priority of the routing rule that joins the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Routed {
    pub(super) mark: u32,
    pub(super) table: u32,
    /// Lower than the priority of the main table's rule, 32766.
    pub(super) preference: u32,
}

/// Number of slots into which names are hashed.
const SLOTS: u32 = 1024;
/// The first mark; each slot has four.
const MARKS: u32 = 0x00b3_0000;
/// The first routing table, and the first priority of a routing rule; each slot has two.
const TABLES: u32 = 179_000;
const PREFERENCES: u32 = 17_900;
/// Prefix of the names of nftables tables.
const PREFIX: &str = "bentpipe_";

impl Instance {
    /// The names derived from a gateway's name.
    pub fn new(name: &str) -> Self {
        // FNV-1a, 32 bits: the same on all machines and in all versions.
        let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Instance { name: name.to_owned(), slot: hash % SLOTS }
    }

    /// The gateway that owns this table, if there is one.
    pub(super) fn of_table(table: &str) -> Option<Self> {
        table.strip_prefix(PREFIX).map(Instance::new)
    }

    /// The gateway's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its table in nftables, of the family `inet`.
    pub fn table(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// True if two gateways would take each other's packets.
    pub(super) fn collides_with(&self, other: &Instance) -> bool {
        self.name != other.name && self.slot == other.slot
    }

    fn routed(&self, n: u32) -> Routed {
        Routed {
            mark: MARKS + 4 * self.slot + n,
            table: TABLES + 2 * self.slot + n,
            preference: PREFERENCES + 2 * self.slot + n,
        }
    }

    /// For packets to deliver on this machine, whatever their destination.
    pub(super) fn local(&self) -> Routed {
        self.routed(0)
    }

    /// For clients' packets to the device of `uplink`. The only route in the table is the device's, which vanishes with
    /// it.
    pub(super) fn device(&self) -> Routed {
        self.routed(1)
    }

    /// The mark of packets to deliver on this machine.
    pub fn mark(&self) -> u32 {
        self.local().mark
    }

    /// The mark of clients' packets that go into the uplink's device.
    pub fn into_mark(&self) -> u32 {
        self.device().mark
    }

    /// The mark of packets that the gateway sends with others' addresses.
    pub fn sent(&self) -> u32 {
        MARKS + 4 * self.slot + 2
    }

    /// The `ip` command that adds or deletes a routing rule.
    pub(super) fn rule(&self, family: &str, verb: &str, routed: Routed) -> Vec<String> {
        let Routed { mark, table, preference } = routed;
        words(&format!("{family} rule {verb} preference {preference} fwmark {mark:#x} lookup {table}"))
    }
}
