//! The peers' preshared keys, as last read from their files.

use std::collections::BTreeMap;
use std::path::Path;

use crate::log::note;

use super::failure::Failure;
use super::plan;
use crate::settings::PeerTable;
use crate::tunnel::{PresharedKey, PublicKey};

/// By public key, for the peers that have a preshared key.
#[derive(Debug)]
pub(super) struct Preshared(BTreeMap<PublicKey, PresharedKey>);

impl Preshared {
    /// Reads the files of all peers.
    pub(super) fn read(path: &Path, tables: &[PeerTable]) -> Result<Self, Failure> {
        let keys = tables.iter().map(|table| Ok(read(path, table)?.map(|key| (table.key, key))));
        Ok(Preshared(keys.filter_map(Result::transpose).collect::<Result<_, Failure>>()?))
    }

    /// Reads them again. If a file that was readable at the start cannot be read by the gateway's current user, its
    /// peer keeps the key that it has.
    pub(super) fn read_again(&self, path: &Path, had: &[PeerTable], has: &[PeerTable]) -> Result<Self, Failure> {
        let files: BTreeMap<_, _> = had.iter().map(|table| (table.key, &table.preshared_key)).collect();
        let mut keys = BTreeMap::new();
        for table in has {
            let special = table.preshared_key.as_deref().filter(|file| plan::is_special(file));
            let read = match special {
                Some(file) => Err(Failure::broken(format!("{} is not a regular file", file.display()))),
                None => read(path, table),
            };
            let key = match (read, self.of(table)) {
                (Err(error), Some(old)) if files.get(&table.key) == Some(&&table.preshared_key) => {
                    error.report();
                    note!("reload: the old preshared key remains");
                    Some(old.clone())
                }
                (key, _) => key?,
            };
            keys.extend(key.map(|key| (table.key, key)));
        }
        Ok(Preshared(keys))
    }

    /// The preshared key of a peer.
    pub(super) fn of(&self, table: &PeerTable) -> Option<&PresharedKey> {
        self.0.get(&table.key)
    }

    /// True if a peer has the same preshared key in `other`.
    pub(super) fn is_as_in(&self, other: &Self, table: &PeerTable) -> bool {
        match (self.of(table), other.of(table)) {
            (Some(one), Some(two)) => one.is(two),
            (one, two) => one.is_none() && two.is_none(),
        }
    }
}

/// The place of a peer's table in the settings.
pub(super) fn place(table: &PeerTable) -> String {
    table.name.as_ref().map_or_else(|| "tunnel".to_owned(), |name| format!("peers.{name}"))
}

fn read(path: &Path, table: &PeerTable) -> Result<Option<PresharedKey>, Failure> {
    let key = format!("{}.preshared_key", place(table));
    table.preshared_key.as_deref().map(|file| plan::secret(path, &key, file)).transpose()
}
