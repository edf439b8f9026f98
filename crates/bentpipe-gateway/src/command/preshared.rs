//! The peers' preshared keys, as last read from their files.

use std::collections::BTreeMap;
use std::path::Path;

use crate::key_file::{KeyFileError, read_key};
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
        let (read, kept) = self.again(path, had, has)?;
        if let Some((table, why)) = kept.first() {
            why.said(path, table).report();
            match kept.len() {
                1 => note!("reload: the old preshared key remains"),
                count => note!("reload: the old preshared keys of {count} peers remain; this is the first of them"),
            }
        }
        Ok(read)
    }

    /// As [`Preshared::read_again`], without a word. Also returns the peers that keep their keys, and why. Only one of them is told, with
    /// its place in the settings: these would be read again for each.
    fn again<'a>(&self, path: &Path, had: &[PeerTable], has: &'a [PeerTable]) -> Result<(Self, Kept<'a>), Failure> {
        let files: BTreeMap<_, _> = had.iter().map(|table| (table.key, &table.preshared_key)).collect();
        let (mut keys, mut kept) = (BTreeMap::new(), Vec::new());
        for table in has {
            let Some(file) = table.preshared_key.as_deref() else { continue };
            let read = match plan::is_special(file) {
                true => Err(Unread::Special),
                false => read_key(file).map_err(Unread::Key),
            };
            let is_same_file = || files.get(&table.key) == Some(&&table.preshared_key);
            let key = match (read, self.of(table)) {
                (Ok(key), _) => key,
                (Err(why), Some(old)) if is_same_file() => {
                    kept.push((table, why));
                    old.clone()
                }
                (Err(why), _) => return Err(why.said(path, table)),
            };
            keys.insert(table.key, key);
        }
        Ok((Preshared(keys), kept))
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

/// Peers that keep their keys.
type Kept<'a> = Vec<(&'a PeerTable, Unread)>;

/// Why a file gives no key.
#[derive(Debug)]
enum Unread {
    /// It is no regular file.
    Special,
    Key(KeyFileError),
}

impl Unread {
    /// The error about the key of this peer.
    fn said(&self, path: &Path, table: &PeerTable) -> Failure {
        match self {
            Unread::Special => {
                let file = table.preshared_key.as_deref().unwrap_or(Path::new(""));
                Failure::broken(format!("{} is not a regular file", file.display()))
            }
            Unread::Key(error) => plan::no_key(path, &key_of(table), error).unwrap_or_else(|failure| failure),
        }
    }
}

/// The place of a peer's table in the settings.
pub(super) fn place(table: &PeerTable) -> String {
    table.name.as_ref().map_or_else(|| "tunnel".to_owned(), |name| format!("peers.{name}"))
}

/// The place of the name of its file.
fn key_of(table: &PeerTable) -> String {
    format!("{}.preshared_key", place(table))
}

fn read(path: &Path, table: &PeerTable) -> Result<Option<PresharedKey>, Failure> {
    let key = key_of(table);
    table.preshared_key.as_deref().map(|file| plan::secret(path, &key, file)).transpose()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::settings::GatewayFile;
    use crate::tunnel::PrivateKey;

    /// The files of root's keys cannot be read by the user to which the gateway has switched. The settings were read again for each of
    /// them, and no packet passed meanwhile.
    #[test]
    fn keys_that_remain_are_told_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut text = "name = \"hub\"\n[tunnel]\nprivate_key = \"key\"\n[satellite]\nrate = \"1 Mbit/s\"\nround_trip = \"600 ms\"\n\
                        [split]\n"
            .to_owned();
        for n in 0..100 {
            let (own, file) = (PrivateKey::generate(), folder.path().join(format!("{n}.key")));
            std::fs::write(&file, &*own.reveal()).expect("a file");
            std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("it is ours");
            text += &format!(
                "[[peers]]\nname = \"a{n}\"\nkey = \"{}\"\nprefixes = [\"10.1.{n}.0/24\"]\npreshared_key = \"{n}.key\"\n",
                own.public()
            );
        }
        let path = folder.path().join("hub.toml");
        std::fs::write(&path, text).expect("a file");
        let file = GatewayFile::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
        let before = Preshared::read(&path, &file.peers).expect("they are keys");
        let (after, kept) = before.again(&path, &file.peers, &file.peers).expect("they are keys");
        assert!(kept.is_empty() && file.peers.iter().all(|table| after.is_as_in(&before, table)));
        for n in 1..100 {
            let file = folder.path().join(format!("{n}.key"));
            std::fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("it is ours");
        }
        let (after, kept) = before.again(&path, &file.peers, &file.peers).expect("they have keys");
        assert_eq!((kept.len(), kept[0].0.name.as_deref()), (99, Some("a1")));
        assert!(file.peers.iter().all(|table| after.is_as_in(&before, table)));
        let Failure::Settings(errors) = kept[0].1.said(&path, kept[0].0) else { panic!("it has a place") };
        let said = errors.render(false);
        assert!(said.contains("hub.toml:17:17") && said.contains("1.key is secret"), "{said}");
        // A new peer has no old key.
        let Err(Failure::Settings(errors)) = before.again(&path, &file.peers[..1], &file.peers) else {
            panic!("no key")
        };
        assert!(errors.render(false).contains("1.key is secret"));
    }
}
