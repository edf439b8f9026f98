//! The control socket of a running emulation: a client sends one line of text and gets one answer.
//!
//! A thread waits for clients, so the emulation's loop never does. The length of a line, the time that a client may take
//! for it, and the number of waiting requests are bounded.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bentpipe_io::{dial, is_served};
use nix::sys::stat::{Mode, umask};

/// Maximum length of a line.
pub const MAX_LINE: u64 = 4096;

/// A client whose line is not complete after this long is dropped: others wait for it. So is one that takes nothing of its answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum number of waiting requests; further clients wait at the socket.
const WAITING: usize = 16;

/// A request and its client.
#[derive(Debug)]
pub struct Request {
    /// The line, without its end.
    pub line: String,
    client: UnixStream,
}

impl Request {
    /// Answers the request. A client that does not read gets nothing.
    pub fn answer(mut self, text: &str) {
        let _ = self.client.write_all(text.as_bytes());
    }
}

/// The socket. It is removed when this is dropped.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    requests: Receiver<Request>,
    /// Readable when there is a request.
    bell: UnixStream,
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Control {
    /// Opens the socket at `path`, which only its owner may use (mode 0600), and starts a thread. A socket left by an
    /// earlier emulation is replaced. One that answers, and any other file, is not.
    ///
    /// # Errors
    /// Fails if the socket cannot be created, with [`io::ErrorKind::AddrInUse`] if another emulation answers there and
    /// [`io::ErrorKind::AlreadyExists`] if it is another file.
    pub fn open(path: &Path) -> io::Result<Control> {
        if let Ok(there) = std::fs::symlink_metadata(path) {
            if !std::os::unix::fs::FileTypeExt::is_socket(&there.file_type()) {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists and is not a socket"));
            }
            // If this fails, the socket is that of another user, whose emulation may still answer.
            if is_served(path)? {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "another emulation answers there"));
            }
            std::fs::remove_file(path)?;
        }
        // Never accessible to others, not even for an instant.
        let before = umask(Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener?;
        let (sender, requests) = sync_channel(WAITING);
        let (bell, ringer) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        std::thread::Builder::new().name("control".into()).spawn(move || serve(&listener, &sender, &ringer))?;
        Ok(Control { path: path.to_owned(), requests, bell })
    }

    /// The next request, if there is one; never waits. After a wake-up, call it until it returns `None`.
    pub fn request(&mut self) -> Option<Request> {
        let mut rings = [0; WAITING];
        while matches!(self.bell.read(&mut rings), Ok(1..)) {}
        self.requests.try_recv().ok()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn serve(listener: &UnixListener, sender: &SyncSender<Request>, mut ringer: &UnixStream) {
    for client in listener.incoming() {
        let Ok(client) = client else {
            // Without descriptors, the client stays in the queue, and `accept` would be retried at once.
            std::thread::sleep(PATIENCE);
            continue;
        };
        let Some(request) = read(client) else { continue };
        if sender.send(request).is_err() || ringer.write_all(&[1]).is_err() {
            return;
        }
    }
}

/// What a client sends until a time.
struct Until<'a> {
    client: &'a UnixStream,
    end: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.client.set_read_timeout(Some(left))?;
        let mut client = self.client;
        client.read(bytes)
    }
}

/// Reads the line of a client; `None` if the client takes too long.
fn read(client: UnixStream) -> Option<Request> {
    client.set_write_timeout(Some(PATIENCE)).ok()?;
    let mut line = String::new();
    let sent = Until { client: &client, end: Instant::now() + PATIENCE };
    // Reads more than is accepted: a client whose data is left unread would not get its answer.
    let read = BufReader::new(sent.take(16 * MAX_LINE)).read_line(&mut line);
    let request = Request { line: line.trim_end().to_owned(), client };
    match read {
        Ok(_) if line.ends_with('\n') && line.len() as u64 <= MAX_LINE => Some(request),
        Ok(_) => {
            request.answer(&format!("error: expected one line of at most {MAX_LINE} bytes\n"));
            None
        }
        Err(_) => {
            request.answer("error: no line of text arrived in time\n");
            None
        }
    }
}

/// Sends a line to the emulation at `path`. Returns its answer.
///
/// # Errors
/// Fails if no emulation listens at the socket, or if it does not answer within ten seconds.
pub fn ask(path: &Path, line: &str) -> io::Result<String> {
    ask_within(path, line, 10 * PATIENCE)
}

fn ask_within(path: &Path, line: &str, patience: Duration) -> io::Result<String> {
    let mut stream = dial(path, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    io::read_to_string(stream).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => {
            io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", patience.as_secs_f64()))
        }
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    use nix::sys::socket::{Backlog, listen};

    #[test]
    fn a_line_comes_in_and_an_answer_goes_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control");
        let mut control = Control::open(&path).expect("it opens");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(Control::open(&path).expect_err("it answers").kind(), io::ErrorKind::AddrInUse);
        let asking = {
            let path = path.clone();
            std::thread::spawn(move || ask(&path, "hello"))
        };
        let request = loop {
            if let Some(request) = control.request() {
                break request;
            }
            std::thread::yield_now();
        };
        assert_eq!(request.line, "hello");
        request.answer("ok\n");
        assert_eq!(asking.join().expect("it ends").expect("an answer"), "ok\n");
        let long = "x".repeat(MAX_LINE as usize);
        assert!(ask(&path, &long).is_ok_and(|said| said.contains("at most 4096 bytes")));
        // What a client leaves unfinished is no request.
        let mut unfinished = UnixStream::connect(&path).expect("it listens");
        unfinished
            .write_all(b"hello")
            .and_then(|()| unfinished.shutdown(std::net::Shutdown::Write))
            .expect("it is sent");
        assert!(io::read_to_string(unfinished).is_ok_and(|said| said.contains("expected one line")));
        assert!(control.request().is_none());
        drop(control);
        assert!(!path.exists());
        // A socket at which nobody listens any more is replaced.
        drop(UnixListener::bind(&path).expect("a free name"));
        assert!(path.exists());
        drop(Control::open(&path).expect("nobody answers"));
        std::fs::write(&path, "mine").expect("it is written");
        assert_eq!(Control::open(&path).expect_err("no socket").kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).expect("it is left"), "mine");
    }

    /// The socket of another user's emulation, in a folder that both may write.
    #[test]
    fn a_socket_out_of_reach_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control");
        let _running = UnixListener::bind(&path).expect("a free name");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).expect("it is ours");
        let opened = match nix::unistd::geteuid().is_root() {
            // Root may connect to any socket.
            true => {
                std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("it is ours");
                let at = path.clone();
                let other = std::thread::spawn(move || {
                    // User numbers belong to threads in the kernel; the C library's function would change those of all threads.
                    nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65_534));
                    Control::open(&at).map(drop)
                });
                other.join().expect("no panic")
            }
            false => Control::open(&path).map(drop),
        };
        assert_eq!(opened.expect_err("it is not ours to replace").kind(), io::ErrorKind::PermissionDenied);
        assert!(path.exists());
    }

    /// A client that sends its line byte by byte keeps others waiting for a second, not for as long as it likes.
    #[test]
    fn a_slow_client_keeps_nobody_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control");
        let mut control = Control::open(&path).expect("it opens");
        let mut slow = UnixStream::connect(&path).expect("it listens");
        slow.write_all(b"x").expect("it is sent");
        let dropped = std::thread::spawn(move || {
            (0..200).any(|_| {
                std::thread::sleep(PATIENCE / 10);
                slow.write_all(b"x").is_err()
            })
        });
        let asking = std::thread::spawn(move || ask(&path, "hello"));
        while !asking.is_finished() {
            control.request().into_iter().for_each(|request| request.answer("ok\n"));
            std::thread::sleep(PATIENCE / 100);
        }
        assert_eq!(asking.join().expect("no panic").expect("an answer"), "ok\n");
        assert!(dropped.join().expect("no panic"));
    }

    /// An emulation that Ctrl-Z has stopped. The message was "Resource temporarily unavailable".
    #[test]
    fn who_does_not_answer_is_said_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control");
        let silent = UnixListener::bind(&path).expect("a free name");
        let patience = Duration::from_millis(50);
        let error = ask_within(&path, "hello", patience).expect_err("nobody answers");
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::TimedOut, "no answer within 0.05 s"));
        // Each one that has given up keeps its place in the kernel's queue. When that was full, the next one waited for ever.
        listen(&silent, Backlog::new(1).expect("a limit")).expect("it listens");
        let _waiting: Vec<_> = std::iter::from_fn(|| dial(&path, patience).ok()).collect();
        let error = ask_within(&path, "hello", patience).expect_err("nobody answers");
        assert_eq!(error.to_string(), "its queue of connections is full: is its process stopped?");
        assert_eq!(Control::open(&path).expect_err("it is another's").kind(), io::ErrorKind::AddrInUse);
    }
}
