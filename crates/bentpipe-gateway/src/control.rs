//! The status socket: a unix socket that sends the status to each client and closes the connection.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bentpipe_io::{dial, is_served};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::scrape::PAUSE;

/// The socket. It is removed when this is dropped.
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
    /// there, and with [`io::ErrorKind::PermissionDenied`] if one may be there, whose socket this process may not use.
    pub fn bind(path: &Path) -> io::Result<Control> {
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            make_folder(parent)?;
        }
        // If this fails, whoever has the socket may still answer others.
        if is_served(path)? {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another gateway answers there"));
        }
        match std::fs::symlink_metadata(path) {
            Ok(there) if there.file_type().is_socket() => std::fs::remove_file(path)?,
            // `control` may name a file by mistake.
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "this is not a socket, so it was not replaced",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = UnixListener::bind(path)?;
        // Opens the socket itself: a symbolic link put in its place is not followed. (With musl, the standard library
        // removes `O_PATH` from the flags that it is given.)
        let there = File::from(open(path, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?);
        if !there.metadata()?.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "another process has replaced the socket"));
        }
        std::fs::set_permissions(format!("/proc/self/fd/{}", there.as_raw_fd()), Permissions::from_mode(0o660))?;
        Ok(Control { path: path.to_owned(), listener })
    }

    /// Starts to answer requests. `say` is called for each of them.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn serve(&self, say: impl Fn() -> String + Send + 'static) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        std::thread::Builder::new().name("status".into()).spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else {
                    // Without descriptors, the request stays in the queue and would be reported again at once.
                    std::thread::sleep(PAUSE);
                    continue;
                };
                // A client that does not read gets nothing.
                let _ = stream
                    .set_write_timeout(Some(Duration::from_secs(1)))
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

/// Creates a folder, and those above it, unless they exist. Whoever may use the socket must be able to reach it, whatever the umask: the
/// unit's is 077.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let missing: Vec<_> =
        path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).collect();
    std::fs::create_dir_all(path)?;
    missing.into_iter().try_for_each(|folder| std::fs::set_permissions(folder, Permissions::from_mode(0o755)))
}

/// How long the status is waited for. A gateway answers at once, also while its loop is stuck; a stopped process never does.
const ANSWER: Duration = Duration::from_secs(10);

/// Asks the gateway at `path` for its status.
///
/// # Errors
/// Fails if no gateway answers at the socket within some seconds, or if its answer is cut off.
pub fn ask(path: &Path) -> io::Result<String> {
    ask_within(path, ANSWER)
}

fn ask_within(path: &Path, wait: Duration) -> io::Result<String> {
    let stream = dial(path, wait)?;
    stream.set_read_timeout(Some(wait))?;
    let answer = io::read_to_string(stream).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => {
            let silence = format!("no answer for {} s: is its process stopped?", wait.as_secs_f64());
            io::Error::new(io::ErrorKind::TimedOut, silence)
        }
        _ => error,
    })?;
    // Only the last line is a brace without indentation.
    if !answer.ends_with("\n}\n") {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is cut off"));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The socket of a gateway that has died is replaced; a file that is no socket is not.
    #[test]
    fn only_sockets_are_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("near.sock");
        drop(UnixListener::bind(&path).expect("a socket"));
        let control = Control::bind(&path).expect("nobody answers there");
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        assert_eq!(Control::bind(&path).expect_err("one answers").kind(), io::ErrorKind::AddrInUse);
        drop(control);
        assert!(!path.exists());
        let file = folder.path().join("near.toml");
        std::fs::write(&file, "settings").expect("a file");
        let error = Control::bind(&file).expect_err("it is no socket");
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (io::ErrorKind::AlreadyExists, "this is not a socket, so it was not replaced")
        );
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "settings");
    }

    /// A socket to which this process may not connect may be that of a gateway that runs.
    #[test]
    fn a_socket_out_of_reach_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("near.sock");
        let _running = UnixListener::bind(&path).expect("a socket");
        std::fs::set_permissions(&path, Permissions::from_mode(0o000)).expect("it is ours");
        let at = path.clone();
        let bound = std::thread::spawn(move || {
            // Root may connect to any socket. Capabilities belong to threads.
            let _ = caps::drop(None, caps::CapSet::Effective, caps::Capability::CAP_DAC_OVERRIDE);
            Control::bind(&at).map(drop)
        });
        let error = bound.join().expect("no panic").expect_err("it is not ours to replace");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(path.exists());
    }

    /// The kernel accepts connections to a process that is stopped.
    #[test]
    fn nobody_waits_for_a_stopped_gateway() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("near.sock");
        let stopped = UnixListener::bind(&path).expect("a socket");
        let wait = Duration::from_millis(100);
        let error = ask_within(&path, wait).expect_err("nobody answers");
        assert_eq!(error.to_string(), "no answer for 0.1 s: is its process stopped?");
        // Each one that has given up keeps its place in the kernel's queue. When that was full, the next one waited for ever.
        socket2::SockRef::from(&stopped).listen(1).expect("it listens");
        let _waiting: Vec<_> = std::iter::from_fn(|| dial(&path, wait).ok()).collect();
        let error = ask_within(&path, wait).expect_err("nobody answers");
        assert_eq!(error.to_string(), "its queue of connections is full: is its process stopped?");
        assert_eq!(Control::bind(&path).expect_err("it is another's").kind(), io::ErrorKind::AddrInUse);
    }

    /// A client that does not read for a second, because it is stopped, gets a part.
    #[test]
    fn a_part_of_a_status_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        for (n, status) in ["{\n  \"name\": \"near\"\n}\n", "{\n", "{\n  \"tunnel\": {\n  }\n", ""].iter().enumerate() {
            let path = folder.path().join(n.to_string());
            let control = Control::bind(&path).expect("a free name");
            control.serve(|| (*status).to_owned()).expect("a thread");
            match ask(&path) {
                Ok(answer) => assert_eq!((n, &*answer), (0, *status)),
                Err(error) => {
                    assert_eq!((n > 0, error.to_string().as_str()), (true, "the answer is cut off"));
                }
            }
        }
    }

    /// Members of the socket user's group may ask for the status.
    #[test]
    fn a_new_folder_lets_the_group_through() {
        let folder = tempfile::tempdir().expect("a folder");
        let all = folder.path().join("all");
        let own = all.join("own");
        let before = nix::sys::stat::umask(Mode::from_bits_truncate(0o077));
        let bound = Control::bind(&own.join("control.sock"));
        nix::sys::stat::umask(before);
        let _control = bound.expect("a free name");
        let mode = |of: &Path| std::fs::metadata(of).expect("it is there").permissions().mode() & 0o777;
        assert_eq!([mode(&all), mode(&own)], [0o755; 2]);
    }
}
