//! Where status is asked for: a unix socket that says what there is to say and closes.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What is said to whoever asks.
pub type Said = Arc<Mutex<String>>;

/// The socket; gone when it is dropped.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
}

impl Control {
    /// Begins to answer at `path` with what `said` holds at the moment of each question. What an earlier gateway left
    /// there is replaced; one that answers is not.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::AddrInUse`] where another gateway answers there.
    pub fn serve(path: &Path, said: Said) -> io::Result<Control> {
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
        std::thread::Builder::new().name("status".into()).spawn(move || {
            for stream in listener.incoming() {
                let text = said.lock().map(|text| text.clone()).unwrap_or_default();
                // Whoever asks and does not listen gets nothing.
                let _ = stream.and_then(|mut stream| {
                    stream.set_write_timeout(Some(std::time::Duration::from_secs(1)))?;
                    stream.write_all(text.as_bytes())
                });
            }
        })?;
        Ok(Control { path: path.to_owned() })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Asks the gateway at `path`.
///
/// # Errors
/// The system's: nobody answers there.
pub fn ask(path: &Path) -> io::Result<String> {
    io::read_to_string(UnixStream::connect(path)?)
}
