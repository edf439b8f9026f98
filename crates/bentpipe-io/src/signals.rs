//! Signals as something to read: a loop sees them in its turn.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals that end a program, and that of a child which has ended.
const CAUGHT: [Signal; 5] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCHLD];

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// Ctrl-C or its like from the terminal: a program in the foreground gets it too.
    Keyboard,
    /// Somebody wants us to end.
    End,
    /// A child has ended or stopped.
    Child,
}

/// Signals that are read instead of handled.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
}

impl Signals {
    /// From now on they come here. Threads that are there already would still be interrupted: this comes first.
    ///
    /// # Errors
    /// Fails if the signals cannot be blocked, or no descriptor is left for them (signalfd).
    pub fn catch() -> io::Result<Self> {
        let set: SigSet = CAUGHT.into_iter().collect();
        set.thread_block()?;
        let descriptor = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Signals { descriptor })
    }

    /// The next one, if any has come.
    ///
    /// # Errors
    /// Fails if the descriptor of the signals cannot be read.
    pub fn next(&self) -> io::Result<Option<Caught>> {
        let Some(info) = self.descriptor.read_signal()? else { return Ok(None) };
        Ok(Some(match Signal::try_from(info.ssi_signo as i32) {
            Ok(Signal::SIGINT | Signal::SIGQUIT) => Caught::Keyboard,
            Ok(Signal::SIGCHLD) => Caught::Child,
            _ => Caught::End,
        }))
    }

    /// Lets signals through again in the calling thread, for children that it starts.
    pub fn release_thread() {
        let set: SigSet = CAUGHT.into_iter().collect();
        // Fails for impossible sets only.
        let _ = set.thread_unblock();
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
