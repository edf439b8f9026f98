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
    /// interrupted. A SIGHUP that is ignored stays so.
    ///
    /// # Errors
    /// Fails if the signals cannot be blocked, or if no descriptor is left (signalfd).
    pub fn catch() -> io::Result<Self> {
        let stays_ignored = |signal: &Signal| *signal == Signal::SIGHUP && is_ignored(*signal as i32);
        let set: SigSet = CAUGHT.into_iter().filter(|signal| !stays_ignored(signal)).collect();
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

/// True if this process ignores the signal with this number. A program inherits that from the one that started it: `nohup` ignores SIGHUP
/// for its command, so that it outlives the terminal.
pub fn is_ignored(signal: i32) -> bool {
    // Without /proc, the signal is not ignored, as usual.
    ignores(&std::fs::read_to_string("/proc/self/status").unwrap_or_default(), signal)
}

/// Looks into `/proc/PID/status`, whose `SigIgn` has a bit for each signal (proc_pid_status(5)).
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    signal > 0 && mask.checked_shr(signal as u32 - 1).is_some_and(|rest| rest & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_has_its_bit() {
        let status = "Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000011001\nSigCgt:\t0000000000000002\n";
        let ignored: Vec<_> = (-1..100).filter(|&signal| ignores(status, signal)).collect();
        assert_eq!(ignored, [Signal::SIGHUP, Signal::SIGPIPE, Signal::SIGCHLD].map(|signal| signal as i32));
        assert!(!ignores("", 1) && !ignores("SigIgn:\tx\n", 1));
    }
}
