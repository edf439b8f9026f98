//! The settings of a running gateway, read again for a reload.
//!
//! A thread of their own reads them: those of thousands of peers take a second, and packets must not wait meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use super::plan;
use crate::log::note;
use crate::settings::GatewayFile;

/// A reload waits until its file has not been written for this time.
const REST: Duration = Duration::from_secs(1);

/// The settings' file, and the thread that reads it.
#[derive(Debug)]
pub(super) struct Reread {
    path: PathBuf,
    are_wanted: Arc<AtomicBool>,
    reading: Option<JoinHandle<Option<GatewayFile>>>,
}

impl Reread {
    /// `are_wanted`: set by SIGHUP.
    pub(super) fn new(path: &Path, are_wanted: Arc<AtomicBool>) -> Self {
        Reread { path: path.to_owned(), are_wanted, reading: None }
    }

    /// True while the thread runs, or its result waits.
    pub(super) fn are_being_read(&self) -> bool {
        self.reading.is_some()
    }

    /// The settings, once they have been read. Begins to read them if they are wanted. Does not wait.
    pub(super) fn take(&mut self) -> Option<GatewayFile> {
        if let Some(thread) = self.reading.take_if(|thread| thread.is_finished()) {
            return thread.join().unwrap_or_else(|_| {
                note!("reload: reading the settings has failed: the old ones remain");
                None
            });
        }
        let begins = self.reading.is_none()
            && self.are_wanted.load(Ordering::SeqCst)
            && is_at_rest(&self.path, SystemTime::now())
            && self.are_wanted.swap(false, Ordering::SeqCst);
        if !begins {
            return None;
        }
        let path = self.path.clone();
        match thread::Builder::new().name("settings".into()).spawn(move || read(&path)) {
            Ok(thread) => self.reading = Some(thread),
            // Without memory for a thread, packets wait.
            Err(_) => return read(&self.path),
        }
        None
    }
}

/// True unless the file was written within the last second. A file that is being copied may end before any `[[peers]]` table, and
/// is valid without the peers that follow.
fn is_at_rest(path: &Path, now: SystemTime) -> bool {
    let written = std::fs::metadata(path).and_then(|meta| meta.modified());
    // A time in the future is that of another clock.
    written.ok().and_then(|at| now.duration_since(at).ok()).is_none_or(|age| age >= REST)
}

/// Reads the settings again; if they are wrong, says so.
fn read(path: &Path) -> Option<GatewayFile> {
    if plan::is_special(path) {
        note!("reload: {} is not a regular file: the old settings remain", path.display());
        return None;
    }
    let read = GatewayFile::load(path);
    read.inspect_err(|errors| note!("{}\nreload: the old settings remain", errors.render(false))).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_reload_waits_while_the_file_is_written() {
        let file = tempfile::NamedTempFile::new().expect("room");
        let written = file.as_file().metadata().and_then(|meta| meta.modified()).expect("a file");
        for (age, is_rest) in [(0, false), (999, false), (1000, true), (86_400_000, true)] {
            assert_eq!(is_at_rest(file.path(), written + Duration::from_millis(age)), is_rest, "{age} ms");
        }
        // Neither another clock nor a missing file makes it wait for ever.
        assert!(is_at_rest(file.path(), written - Duration::from_millis(1)));
        assert!(is_at_rest(Path::new("/no/such/file"), written));
    }

    /// The loop goes on while a long file is read, and gets each wish's settings once.
    #[test]
    fn nobody_waits_for_a_long_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hub.toml");
        let text = "name = \"hub\"\n[satellite]\nrate = \"1 Mbit/s\"\nround_trip = \"600 ms\"\n[uplink]\nsatellite = [\"sat0\"]\n";
        std::fs::write(&path, format!("{}{text}", "# A long comment.\n".repeat(1 << 16))).expect("a file");
        let old = SystemTime::now() - 2 * REST;
        std::fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(old)).expect("it is ours");
        let wish = Arc::new(AtomicBool::new(false));
        let mut settings = Reread::new(&path, wish.clone());
        assert!(settings.take().is_none() && !settings.are_being_read());
        for _ in 0..2 {
            wish.store(true, Ordering::SeqCst);
            assert!(settings.take().is_none() && settings.are_being_read() && !wish.load(Ordering::SeqCst));
            let begun = Instant::now();
            let read = loop {
                if let Some(read) = settings.take() {
                    break read;
                }
                assert!(settings.are_being_read() && begun.elapsed() < Duration::from_secs(60));
                thread::sleep(Duration::from_millis(1));
            };
            assert_eq!((read.name.as_str(), settings.are_being_read()), ("hub", false));
            assert!(settings.take().is_none() && !settings.are_being_read());
        }
        // Mistakes are told, and nothing changes.
        std::fs::write(&path, "name = 1\n").expect("it is ours");
        std::fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(old)).expect("it is ours");
        wish.store(true, Ordering::SeqCst);
        assert!(settings.take().is_none());
        while settings.are_being_read() {
            assert!(settings.take().is_none());
        }
    }
}
