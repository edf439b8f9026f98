//! Key files.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::tunnel::KeyError;

/// Maximum length of a key file.
const MAX_LEN: usize = 255;

/// Why a file gives no key.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Users other than its owner may read or write it.
    #[error("{} is secret, but users other than its owner may read or write it (mode {mode:o})", path.display())]
    Open {
        /// Path of the file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Its content is not a key.
    #[error("{}: {error}", path.display())]
    Key {
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        error: KeyError,
    },
}

/// Reads the key from a file that only its owner may read.
///
/// # Errors
/// Returns [`KeyFileError::Unreadable`] if the file cannot be opened or read, [`KeyFileError::Open`] if users other than its owner may
/// read or write it, and [`KeyFileError::Key`] if its content is not a key.
pub(crate) fn read_key<K: FromStr<Err = KeyError>>(path: &Path) -> Result<K, KeyFileError> {
    let unreadable = |error| KeyFileError::Unreadable { path: path.to_owned(), error };
    let mut file = std::fs::File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Open { path: path.to_owned(), mode });
    }
    // The capacity is sufficient from the start: growing would leave a copy of the key in memory.
    let mut text = Zeroizing::new(String::with_capacity(MAX_LEN + 1));
    file.by_ref().take(MAX_LEN as u64).read_to_string(&mut text).map_err(unreadable)?;
    text.parse().map_err(|error| KeyFileError::Key { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::PrivateKey;

    #[test]
    fn only_the_owner_may_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("private.key");
        let key = PrivateKey::generate();
        std::fs::write(&path, &*key.reveal()).expect("a file");
        for (mode, fits) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
            match read_key::<PrivateKey>(&path) {
                Ok(read) => assert!(fits && read.public() == key.public()),
                Err(error) => {
                    assert!(!fits);
                    let said =
                        format!("is secret, but users other than its owner may read or write it (mode {mode:o})");
                    assert!(error.to_string().ends_with(&said), "{error}");
                }
            }
        }
        std::fs::write(&path, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
        let error = read_key::<PrivateKey>(&path).expect_err("all zero").to_string();
        assert!(error.contains("all bytes of this key are zero"), "{error}");
    }
}
