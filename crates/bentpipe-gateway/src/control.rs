//! The status socket: a unix socket that sends the status and closes.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use super::scrape::PAUSE;

/// The socket; gone when it is dropped.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    listener: UnixListener,
}

impl Control {
    /// Binds the socket at `path`. Replaces the socket of a gateway that has died; fails if one answers there.
    ///
    /// # Errors
    /// Fails if the socket cannot be created at `path`; with [`io::ErrorKind::AddrInUse`] if another gateway answers
    /// there.
    pub fn bind(path: &Path) -> io::Result<Control> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another gateway answers there"));
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
        Ok(Control { path: path.to_owned(), listener })
    }

    /// Starts to answer requests. `say` is called for each.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn serve(&self, say: impl Fn() -> String + Send + 'static) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        std::thread::Builder::new().name("status".into()).spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else {
                    // Without descriptors the request stays in the queue and would be reported again at once.
                    std::thread::sleep(PAUSE);
                    continue;
                };
                // Whoever asks and does not listen gets nothing.
                let _ = stream
                    .set_write_timeout(Some(std::time::Duration::from_secs(1)))
                    .and_then(|()| stream.write_all(say().as_bytes()));
            }
        })?;
        Ok(())
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Asks the gateway at `path` for its status.
///
/// # Errors
/// Fails if no gateway answers at the socket, or if the answer is cut off.
pub fn ask(path: &Path) -> io::Result<String> {
    io::read_to_string(UnixStream::connect(path)?)
}
