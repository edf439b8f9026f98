//! The pipe through which data passes from one socket to another without being copied into the process (splice(2)).

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use mio::net::TcpStream;
use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice};

/// Its capacity: as much as a socket delivers at once. An unprivileged process cannot have a pipe longer than 1 MiB.
pub(super) const LENGTH: usize = 1 << 20;

/// The pipe. It is empty whenever its user returns.
#[derive(Debug)]
pub(super) struct Pipe {
    out: std::fs::File,
    into: OwnedFd,
}

impl Pipe {
    pub(super) fn new() -> io::Result<Pipe> {
        let (out, into) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        // A shorter pipe also works.
        let _ = fcntl(&into, FcntlArg::F_SETPIPE_SZ(LENGTH as i32));
        Ok(Pipe { out: out.into(), into })
    }

    /// Takes up to `max` received bytes from a socket. Returns 0 at the end of its data.
    pub(super) fn fill(&self, from: &TcpStream, max: usize) -> io::Result<usize> {
        Ok(splice(from.as_fd(), None, self.into.as_fd(), None, max, SpliceFFlags::SPLICE_F_NONBLOCK)?)
    }

    /// Writes some of the pipe's `length` bytes to a socket. `more`: a last partial segment waits for the data that
    /// follows.
    pub(super) fn give(&self, to: &TcpStream, length: usize, more: bool) -> io::Result<usize> {
        let mut flags = SpliceFFlags::SPLICE_F_NONBLOCK;
        flags.set(SpliceFFlags::SPLICE_F_MORE, more);
        Ok(splice(self.out.as_fd(), None, to.as_fd(), None, length, flags)?)
    }

    /// Takes out the remaining `length` bytes.
    pub(super) fn empty(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.out.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
