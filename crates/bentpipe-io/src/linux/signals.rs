//! Signals as a readable descriptor (signalfd), for loops.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::libc::SI_KERNEL;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals that end a program, and SIGCHLD.
const CAUGHT: [Signal; 5] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCHLD];

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// Ctrl-C or similar from the terminal; a program in the foreground receives it too.
    Keyboard,
    /// A request to end: SIGTERM or SIGHUP, or a SIGINT from another process, which only this program receives.
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
    /// Starts to receive signals here. Call this before starting threads: existing threads would still be
    /// interrupted.
    ///
    /// # Errors
    /// Fails if the signals cannot be blocked, or if no descriptor is left (signalfd).
    pub fn catch() -> io::Result<Self> {
        let set: SigSet = CAUGHT.into_iter().collect();
        set.thread_block()?;
        let descriptor = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Signals { descriptor })
    }

    /// The next signal, if any.
    ///
    /// # Errors
    /// Fails if the descriptor of the signals cannot be read.
    pub fn next(&self) -> io::Result<Option<Caught>> {
        let Some(info) = self.descriptor.read_signal()? else { return Ok(None) };
        // The kernel sends the terminal's signals (`si_code` in sigaction(2)).
        let by_terminal = info.ssi_code == SI_KERNEL;
        Ok(Some(match Signal::try_from(info.ssi_signo as i32) {
            Ok(Signal::SIGINT | Signal::SIGQUIT) if by_terminal => Caught::Keyboard,
            Ok(Signal::SIGCHLD) => Caught::Child,
            _ => Caught::End,
        }))
    }

    /// Unblocks the signals in the calling thread, for children that it starts.
    pub fn release_thread() {
        let set: SigSet = CAUGHT.into_iter().collect();
        // This fails only for invalid sets.
        let _ = set.thread_unblock();
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
