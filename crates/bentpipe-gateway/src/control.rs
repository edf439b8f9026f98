//! The status socket: a unix socket that sends the status to each client and closes the connection.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bentpipe_io::{dial, is_served};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::scrape::PAUSE;

/// How long a client may take nothing, and how long all waits for it may be together: meanwhile, others are not answered.
const UNREAD: Duration = Duration::from_secs(1);
const SLOW: Duration = if cfg!(test) { Duration::from_secs(2) } else { Duration::from_secs(10) };
/// Bytes written at once. The kernel waits for a client again after each 32 KiB or so, whatever the timeout.
const PIECE: usize = 32 << 10;

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

    /// Starts to answer requests. `say` is called for each of them, to write the answer. A client that takes nothing for a
    /// second, or that takes longer than 10 s for all, is left with a part.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn serve(&self, say: impl Fn(&mut dyn Write) -> io::Result<()> + Send + 'static) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        std::thread::Builder::new().name("status".into()).spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else {
                    // Without descriptors, the request stays in the queue and would be reported again at once.
                    std::thread::sleep(PAUSE);
                    continue;
                };
                let mut client = BufWriter::with_capacity(PIECE, Client { stream, left: SLOW });
                let _ = say(&mut client).and_then(|()| client.flush());
                // What it has not taken is not written once more.
                let _ = client.into_parts();
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

/// A client that is being answered.
struct Client {
    stream: UnixStream,
    /// How long it may still be waited for.
    left: Duration,
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let since = Instant::now();
        self.stream.set_write_timeout(Some(UNREAD.min(self.left)))?;
        let written = self.stream.write(bytes);
        self.left = self.left.saturating_sub(since.elapsed());
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
            control.serve(|out| out.write_all(status.as_bytes())).expect("a thread");
            match ask(&path) {
                Ok(answer) => assert_eq!((n, &*answer), (0, *status)),
                Err(error) => {
                    assert_eq!((n > 0, error.to_string().as_str()), (true, "the answer is cut off"));
                }
            }
        }
    }

    /// A client that takes a few bytes every now and then held up all others for hours: the kernel's timeout is for each 32 KiB.
    #[test]
    fn a_slow_client_holds_up_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hub.sock");
        let control = Control::bind(&path).expect("a free name");
        // 300 MB, as of a hub with 65 536 peers.
        let all = |out: &mut dyn Write| (0..10_000).try_for_each(|_| out.write_all(&[b' '; 30_000]));
        control.serve(all).expect("a thread");
        let mut slow = dial(&path, ANSWER).expect("it listens");
        let (begun, mut buffer) = (Instant::now(), vec![0; 200_000]);
        let mut taken = 0;
        loop {
            match io::Read::read(&mut slow, &mut buffer).expect("no reset") {
                0 => break,
                count => taken += count,
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{taken} B so far");
            std::thread::sleep(Duration::from_millis(300));
        }
        assert!(begun.elapsed() >= SLOW, "{taken} B in {:?}", begun.elapsed());
        // Now another one is answered.
        let mut next = dial(&path, ANSWER).expect("it listens");
        next.set_read_timeout(Some(Duration::from_secs(10))).expect("not zero");
        io::Read::read_exact(&mut next, &mut [0; 1000]).expect("an answer");
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
