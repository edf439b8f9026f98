//! Connections to the sockets of other processes, which may have been stopped.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket};
use nix::sys::time::{TimeVal, TimeValLike};

/// Connects to the unix socket at `path`. The kernel accepts connections to a process that is stopped until its queue is full; then
/// `connect` waits. Here it waits for `patience` at most, and so does each write.
///
/// # Errors
/// Fails if nobody listens there or this process may not connect; with [`io::ErrorKind::TimedOut`] if the queue stays full.
pub fn dial(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let stream = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let micros = i64::try_from(patience.as_micros()).unwrap_or(i64::MAX);
    // Zero would be no limit.
    setsockopt(&stream, SendTimeout, &TimeVal::microseconds(micros.max(1)))?;
    connect(stream.as_raw_fd(), &UnixAddr::new(path)?).map_err(|errno| match errno {
        Errno::EAGAIN => {
            let message = "its queue of connections is full: is its process stopped?";
            io::Error::new(io::ErrorKind::TimedOut, message)
        }
        errno => errno.into(),
    })?;
    Ok(stream.into())
}

/// True if a process listens at the unix socket at `path`, even if it is stopped. A socket that its process has left behind is not served.
///
/// # Errors
/// Fails if that cannot be known: this process may not connect there.
pub fn is_served(path: &Path) -> io::Result<bool> {
    match dial(path, Duration::ZERO) {
        Ok(_) => Ok(true),
        Err(error) => match error.kind() {
            io::ErrorKind::TimedOut => Ok(true),
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(false),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::time::Instant;

    use nix::sys::socket::{Backlog, listen};

    use super::*;

    /// The kernel's queue of a process that accepts nothing fills up. The standard library's `connect` then waits for ever.
    #[test]
    fn a_full_queue_is_waited_for_and_no_longer() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        assert_eq!(is_served(&path).ok(), Some(false));
        let stopped = UnixListener::bind(&path).expect("a free name");
        // Otherwise net.core.somaxconn is the limit.
        listen(&stopped, Backlog::new(3).expect("a limit")).expect("it listens");
        let begin = Instant::now();
        let mut waiting = Vec::new();
        let error = loop {
            match dial(&path, Duration::from_millis(50)) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(waiting.len(), 4, "the kernel allows one more");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert!(begin.elapsed() < Duration::from_secs(20));
        assert_eq!(is_served(&path).ok(), Some(true));
        drop(stopped);
        assert_eq!(is_served(&path).ok(), Some(false));
    }
}
