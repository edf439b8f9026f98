//! Child processes beside or behind the links.

use std::io;
use std::process::{Child, Command, ExitStatus};

use std::os::unix::process::ExitStatusExt;

use crate::linux::signals::Signals;

/// Starts a program in the namespaces of the calling thread, with this program's blocked signals unblocked for it. This
/// happens in a separate thread, so that the signals stay blocked in the caller's thread.
///
/// # Errors
/// Fails if the program is missing or may not be run, or if no process or thread can be started.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            Signals::release_thread();
            command.spawn()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// How a program is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// SIGTERM.
    Terminate,
    /// SIGHUP, as when the terminal is closed: an interactive shell ignores SIGTERM.
    HangUp,
}

/// Asks a program to end; has no effect if it has already ended. Then it is waited for here: its number may be another process's.
pub fn ask(child: &mut Child, how: Ask) {
    if !matches!(child.try_wait(), Ok(None)) {
        return;
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    let signal = match how {
        Ask::Terminate => nix::sys::signal::Signal::SIGTERM,
        Ask::HangUp => nix::sys::signal::Signal::SIGHUP,
    };
    let _ = nix::sys::signal::kill(pid, signal);
}

/// The exit code as in a shell: the program's own, or 128 plus the number of the signal that ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;
    use nix::sys::wait::{Id, WaitPidFlag, waitid};

    use super::*;

    #[test]
    fn codes_are_those_of_a_shell() {
        let code = |script: &str| {
            let mut child = spawn(Command::new("sh").args(["-c", script])).expect("a shell");
            exit_code(child.wait().expect("ours"))
        };
        assert_eq!((code("exit 7"), code("kill -9 $$"), code("true")), (7, 137, 0));
    }

    #[test]
    fn a_program_that_has_ended_is_waited_for_before_its_number_is_used() {
        let mut child = spawn(&mut Command::new("true")).expect("it is there");
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        let look = || waitid(Id::Pid(pid), flags).map(|_| ());
        assert_eq!(look(), Ok(()), "it ends");
        ask(&mut child, Ask::Terminate);
        assert_eq!(look(), Err(Errno::ECHILD), "it has been waited for");
        ask(&mut child, Ask::Terminate);
        assert!(child.wait().expect("ours").success());
    }
}
