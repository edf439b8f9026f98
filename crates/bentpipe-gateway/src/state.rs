//! The last addresses of peers, in a file, so that a restarted gateway can contact peers without a configured address.
//!
//! A line for each peer: its public key and its address. If the file is missing, old or wrong, peers contact the gateway
//! themselves, or a call to an old address gets no answer.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bentpipe_engine::units::{Duration, Time};

use super::log;
use crate::tunnel::PublicKey;

/// Between two times that the file is written. What has changed since is not known after `kill -9`.
const PAUSE: Duration = Duration::from_secs(1);

/// Where peers were when the file was written, by their public keys.
pub(crate) fn last_endpoints(path: &Path) -> BTreeMap<PublicKey, SocketAddr> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(peer, at)| Some((peer.parse().ok()?, at.parse().ok()?))).collect()
}

/// The file and its content.
#[derive(Debug)]
pub(crate) struct State {
    path: PathBuf,
    written: Vec<(PublicKey, SocketAddr)>,
    next_at: Time,
    has_failed: bool,
}

impl State {
    pub(crate) fn new(path: PathBuf) -> Self {
        State { path, written: Vec::new(), next_at: Time::ZERO, has_failed: false }
    }

    /// Writes the addresses of peers if they have changed and the last write is long enough ago.
    pub(crate) fn note(&mut self, now: Time, peers: impl Iterator<Item = (PublicKey, SocketAddr)>) {
        if now < self.next_at {
            return;
        }
        self.next_at = now + PAUSE;
        let peers: Vec<_> = peers.collect();
        if peers == self.written {
            return;
        }
        let failed = self.write(&peers).err();
        if let Some(error) = failed.as_ref().filter(|_| !self.has_failed) {
            log::line(format_args!("{}: {error}; a restart may take longer to be noticed", self.path.display()));
        }
        self.has_failed = failed.is_some();
        self.written = peers;
    }

    /// The file is the old one or the new one, and never half of it.
    fn write(&self, peers: &[(PublicKey, SocketAddr)]) -> io::Result<()> {
        if let Some(parent) = self.path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let text: String = peers.iter().map(|(peer, at)| format!("{peer} {at}\n")).collect();
        let beside = self.path.with_extension("state.new");
        std::fs::write(&beside, text)?;
        std::fs::rename(&beside, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::PrivateKey;

    #[test]
    fn what_was_noted_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deeper/near.state");
        let keys = [(); 3].map(|()| PrivateKey::generate().public());
        let at = [1, 2].map(|n| SocketAddr::from(([192, 0, 2, n], 4500)));
        let mut state = State::new(path.clone());
        assert_eq!(last_endpoints(&path).get(&keys[0]), None);
        let now = Time::ZERO + Duration::from_secs(1);
        state.note(now, [(keys[0], at[0]), (keys[1], at[1])].into_iter());
        assert_eq!(last_endpoints(&path), [(keys[0], at[0]), (keys[1], at[1])].into());
        state.note(now, [(keys[0], at[1])].into_iter());
        assert_eq!(last_endpoints(&path)[&keys[0]], at[0], "not so soon again");
        state.note(now + PAUSE, [(keys[0], at[1])].into_iter());
        assert_eq!(last_endpoints(&path), [(keys[0], at[1])].into());
        std::fs::write(&path, b"\xff no such thing\n").expect("a file");
        assert_eq!(last_endpoints(&path), BTreeMap::new());
    }
}
