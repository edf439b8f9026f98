//! The last addresses of peers, kept in a file so that a restarted gateway can contact peers without a configured
//! address.
//!
//! There is one line per peer: its public key and its address. If the file is missing, old or wrong, a call is not
//! answered, and the peers contact the gateway themselves.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bentpipe_engine::units::{Duration, Time};

use super::log;
use crate::tunnel::PublicKey;

/// Minimum time between two writes. A later change is lost on `kill -9`.
const PAUSE: Duration = Duration::from_secs(1);

/// The addresses of peers in the file, by public key. The keys stay text: reading one takes longer than all else, and a reload needs few
/// of thousands.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct LastEndpoints(BTreeMap<String, SocketAddr>);

impl LastEndpoints {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Self {
        let text = read(path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        LastEndpoints(lines.filter_map(|(peer, at)| Some((peer.to_owned(), at.parse().ok()?))).collect())
    }

    /// The address of this peer.
    pub(crate) fn of(&self, peer: &PublicKey) -> Option<SocketAddr> {
        self.0.get(&peer.to_string()).copied()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Maximum length of the file that is read: 65 536 peers with addresses of IPv6.
const MAX_FILE: u64 = 8 << 20;

/// Reads the file. Its folder belongs to the user to which the gateway switches, who could put something else there: a pipe
/// would block the start, and a file without end would take all memory.
fn read(path: &Path) -> io::Result<String> {
    let file = std::fs::OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    io::read_to_string(file.take(MAX_FILE))
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

    /// Writes the addresses of peers if they have changed and the last write was long enough ago.
    pub(crate) fn note(&mut self, now: Time, peers: impl Iterator<Item = (PublicKey, SocketAddr)>) {
        if now < self.next_at {
            return;
        }
        self.next_at = now + PAUSE;
        self.end(peers);
    }

    /// Writes the addresses of peers if they have changed, however short a time ago.
    pub(crate) fn end(&mut self, peers: impl Iterator<Item = (PublicKey, SocketAddr)>) {
        let peers: Vec<_> = peers.collect();
        if peers == self.written {
            return;
        }
        let path = self.path.display();
        match self.write(&peers) {
            Ok(()) => {
                if std::mem::take(&mut self.has_failed) {
                    log::line(format_args!("{path}: can be written again"));
                }
                self.written = peers;
            }
            // This is logged once and tried again, because a disk does not stay full.
            Err(error) if !std::mem::replace(&mut self.has_failed, true) => {
                log::line(format_args!(
                    "{path}: {error}; after a restart, the gateway waits until the peers contact it"
                ));
            }
            Err(_) => {}
        }
    }

    /// Replaces the file atomically.
    fn write(&self, peers: &[(PublicKey, SocketAddr)]) -> io::Result<()> {
        if let Some(parent) = self.path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let text: String = peers.iter().map(|(peer, at)| format!("{peer} {at}\n")).collect();
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        // The folder may belong to another user: a link in it must not redirect the write.
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).custom_flags(nix::libc::O_NOFOLLOW);
        let written = options.open(&beside).and_then(|mut file| file.write_all(text.as_bytes()));
        written.and_then(|()| std::fs::rename(&beside, &self.path)).inspect_err(|_| {
            // A partial file would occupy scarce space.
            let _ = std::fs::remove_file(&beside);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::PrivateKey;

    fn last_endpoints(path: &Path) -> LastEndpoints {
        LastEndpoints::read(path)
    }

    impl<const N: usize> From<[(PublicKey, SocketAddr); N]> for LastEndpoints {
        fn from(all: [(PublicKey, SocketAddr); N]) -> Self {
            LastEndpoints(all.into_iter().map(|(peer, at)| (peer.to_string(), at)).collect())
        }
    }

    #[test]
    fn what_was_noted_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deeper/near.state");
        let keys = [(); 3].map(|()| PrivateKey::generate().public());
        let at = [1, 2].map(|n| SocketAddr::from(([192, 0, 2, n], 4500)));
        let mut state = State::new(path.clone());
        assert_eq!(last_endpoints(&path).of(&keys[0]), None);
        let now = Time::ZERO + Duration::from_secs(1);
        state.note(now, [(keys[0], at[0]), (keys[1], at[1])].into_iter());
        assert_eq!(last_endpoints(&path), [(keys[0], at[0]), (keys[1], at[1])].into());
        state.note(now, [(keys[0], at[1])].into_iter());
        assert_eq!(last_endpoints(&path).of(&keys[0]), Some(at[0]), "not so soon again");
        state.note(now + PAUSE, [(keys[0], at[1])].into_iter());
        assert_eq!(last_endpoints(&path), [(keys[0], at[1])].into());
        state.end([(keys[0], at[0])].into_iter());
        assert_eq!(last_endpoints(&path), [(keys[0], at[0])].into(), "at the end, however soon");
        std::fs::write(&path, b"\xff no such thing\n").expect("a file");
        assert_eq!(last_endpoints(&path), LastEndpoints::default());
    }

    /// If the folder is missing, or the disk is full, the write is repeated even without a change, and no partial file
    /// is left.
    #[test]
    fn what_could_not_be_written_is_written_later() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("near.state");
        let beside = folder.path().join("near.state.new");
        let (key, at) = (PrivateKey::generate().public(), SocketAddr::from(([192, 0, 2, 1], 4500)));
        let mut state = State::new(path.clone());
        let now = Time::ZERO + Duration::from_secs(1);
        std::fs::create_dir_all(path.join("in the way")).expect("a folder");
        state.note(now, [(key, at)].into_iter());
        assert!(state.has_failed && path.is_dir() && !beside.exists());
        std::fs::remove_dir_all(&path).expect("it is ours");
        state.note(now + PAUSE, [(key, at)].into_iter());
        assert_eq!(last_endpoints(&path), [(key, at)].into());
        assert!(!state.has_failed);
    }

    /// A pipe in place of the file does not block the start, and a file without end does not fill the memory.
    #[test]
    fn what_is_no_short_file_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("near.state");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a free name");
        let (told, read) = std::sync::mpsc::channel();
        let pipe = path.clone();
        std::thread::spawn(move || told.send(last_endpoints(&pipe)));
        let read = read.recv_timeout(std::time::Duration::from_secs(5));
        assert_eq!(read.expect("it does not wait"), LastEndpoints::default());
        assert_eq!(last_endpoints(Path::new("/dev/zero")), LastEndpoints::default());
        let (key, at) = (PrivateKey::generate().public(), SocketAddr::from(([192, 0, 2, 1], 4500)));
        std::fs::remove_file(&path).expect("it is ours");
        std::fs::write(&path, format!("{key} {at}\n")).expect("a file");
        std::fs::File::options().append(true).open(&path).and_then(|file| file.set_len(1 << 40)).expect("it is sparse");
        assert_eq!(last_endpoints(&path), [(key, at)].into(), "the first 8 MiB");
    }

    /// Files whose names differ only behind the last dot, such as `site.near` and `site.far`, are written beside each other.
    #[test]
    fn no_other_gateways_file_is_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        let new = |name: &str| folder.path().join(format!("{name}.new"));
        for other in ["site.far", "site", "site.state"] {
            std::fs::write(new(other), "of another").expect("a file");
        }
        let (key, at) = (PrivateKey::generate().public(), SocketAddr::from(([192, 0, 2, 1], 4500)));
        State::new(folder.path().join("site.near")).end([(key, at)].into_iter());
        assert_eq!(last_endpoints(&folder.path().join("site.near")), [(key, at)].into());
        for other in ["site.far", "site", "site.state"] {
            assert_eq!(std::fs::read_to_string(new(other)).ok().as_deref(), Some("of another"), "{other}");
        }
    }

    /// A symbolic link in place of the new file is not followed.
    #[test]
    fn no_link_leads_elsewhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("near.state"), folder.path().join("other"));
        std::fs::write(&other, "somebody's").expect("a file");
        std::os::unix::fs::symlink(&other, folder.path().join("near.state.new")).expect("a link");
        let (key, at) = (PrivateKey::generate().public(), SocketAddr::from(([192, 0, 2, 1], 4500)));
        let mut state = State::new(path.clone());
        for second in 1..3 {
            state.note(Time::ZERO + Duration::from_secs(second), [(key, at)].into_iter());
        }
        assert_eq!(std::fs::read_to_string(&other).expect("it is there"), "somebody's");
        assert_eq!(last_endpoints(&path), [(key, at)].into(), "the link is gone, and the file is there");
    }
}
