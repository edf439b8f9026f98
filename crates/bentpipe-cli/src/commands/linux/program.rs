//! A program of the user's beside an emulation: whether it has ended, and how it is asked to.

use std::process::Child;

use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::Descendants;
use bentpipe_io::child::{Ask, ask, exit_code};

use crate::failure::{End, Failure};
use crate::interrupt;

/// Interval of checks whether it runs: the signal of one that ends at once may be delivered to the thread that started it.
const LOOK: Duration = Duration::from_millis(100);

/// Max time for it to end when asked. With what we remove ourselves, all is over within a second.
const GRACE: Duration = Duration::from_millis(700);

/// The failure of a program that could not be started: 127 if there is none of this name, else 126.
pub(super) fn not_started(program: &str, error: &std::io::Error) -> Failure {
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    Failure::Command(format!("`{program}` cannot be started: {error}"), code)
}

/// A node's name in an environment variable.
pub(super) fn in_capitals(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// A program that was started.
pub(super) struct Program {
    child: Child,
    /// The processes that it has started, and theirs. They end with it.
    descendants: Option<Descendants>,
    /// How it is asked to end.
    ask: Ask,
    looked: Time,
    kill_at: Option<Time>,
}

impl Program {
    /// `descendants` are those of this process from before the program was started; `None`: they are left running.
    pub(super) fn new(child: Child, descendants: Option<Descendants>, ask: Ask) -> Self {
        Program { child, descendants, ask, looked: Time::ZERO, kill_at: None }
    }

    /// When [`Program::look`] is due.
    pub(super) fn next(&self, now: Time) -> Time {
        let look = now + LOOK;
        self.kill_at.map_or(look, |at| at.min(look))
    }

    /// Looks after it, at times. Returns how it ended.
    pub(super) fn look(&mut self, now: Time) -> Result<Option<End>, Failure> {
        if self.kill_at.is_some_and(|at| at <= now) {
            // It may have just ended.
            let _ = self.child.kill();
            self.kill_at = Some(now + GRACE);
        }
        if self.looked + LOOK > now {
            return Ok(None);
        }
        self.looked = now;
        // The signal may have been delivered to the thread that started it.
        if interrupt::asked() {
            self.ask_to_end(now);
        }
        self.ended()
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<End>, Failure> {
        let ended = self.child.try_wait().map_err(Failure::broken)?;
        if let Some(descendants) = self.descendants.as_ref().filter(|_| ended.is_none()) {
            descendants.reap(self.child.id());
        }
        Ok(ended.map(|status| End::Code(exit_code(status))))
    }

    /// Ends what it has left running, such as daemons. Call it when it has ended and the links have been counted: no packet
    /// passes them meanwhile.
    pub(super) fn clear(&self) {
        if let Some(descendants) = &self.descendants {
            descendants.end(std::time::Duration::from_nanos(GRACE.as_nanos()));
        }
    }

    /// Asks it to end, once, and kills it if it does not.
    pub(super) fn ask_to_end(&mut self, now: Time) {
        if self.kill_at.is_none() {
            ask(&mut self.child, self.ask);
            self.kill_at = Some(now + GRACE);
        }
    }
}
