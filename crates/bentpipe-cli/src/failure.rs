//! Exit codes and error output.

use std::fmt::Display;

use bentpipe_io::{SIGPIPE_CODE, has_colour, note};
use bentpipe_language::quantity::DURATION;
use bentpipe_study::report::WriteError;
use bentpipe_study::scenario::ScenarioErrors;

/// The end of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Success.
    Done,
    /// A transfer was aborted or did not finish in time.
    Failed,
    /// Ctrl-C; complete results have been shown.
    Interrupted,
    /// The exit code of a command that we ran.
    #[cfg(target_os = "linux")]
    Code(u8),
}

impl End {
    pub(crate) fn code(self) -> u8 {
        match self {
            End::Done => 0,
            End::Failed => 1,
            End::Interrupted => 130,
            #[cfg(target_os = "linux")]
            End::Code(code) => code,
        }
    }
}

/// Returns the value and prints its warnings.
pub(crate) fn warned<T>((value, warnings): (T, ScenarioErrors)) -> T {
    if !warnings.0.is_empty() {
        note!("{}", warnings.render(has_colour()));
    }
    value
}

/// A hint: the option for a time limit of `wanted` seconds, or for the maximum if that is less. `None` if what needs `needed` seconds
/// does not fit the maximum either.
pub(crate) fn longer_limit(wanted: f64, needed: f64) -> Option<String> {
    let max = DURATION.max() as f64 / 1e9;
    (needed < max).then(|| format!("--set time_limit='{:.0} s'", wanted.ceil().min(max)))
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// A run failed, or a file could not be written.
    Broken(String),
    /// Wrong arguments: the error and a hint.
    Usage(String, Option<String>),
    /// A command could not be started, and the exit code that a shell gives for that.
    Command(String, u8),
    /// Errors in the scenario.
    Scenario(ScenarioErrors),
    /// The reader closed our output: the command prints nothing and ends as if by SIGPIPE.
    Pipe,
}

impl Failure {
    /// A runtime failure.
    pub(crate) fn broken(error: impl Display) -> Self {
        Failure::Broken(error.to_string())
    }

    /// An output that could not be written. If its reader closed it, no message is printed.
    pub(crate) fn unwritten(error: impl Into<WriteError>) -> Self {
        match error.into() {
            WriteError::Io(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Failure::Pipe,
            error => Failure::broken(error),
        }
    }

    /// Wrong usage.
    pub(crate) fn usage(message: impl Display, help: Option<String>) -> Self {
        Failure::Usage(message.to_string(), help)
    }

    /// Prints it to standard error.
    pub(crate) fn report(self) -> u8 {
        let colour = has_colour();
        let error = if colour { "\x1b[1;31merror\x1b[0m" } else { "error" };
        match self {
            Failure::Broken(message) => {
                note!("{error}: {message}");
                1
            }
            Failure::Command(message, code) => {
                note!("{error}: {message}");
                code
            }
            Failure::Usage(message, help) => {
                note!("{error}: {message}");
                if let Some(help) = help {
                    note!("  help: {help}");
                }
                2
            }
            Failure::Scenario(errors) => {
                note!("{}", errors.render(colour));
                2
            }
            Failure::Pipe => SIGPIPE_CODE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A duration in a scenario has at most 10^8 s.
    #[test]
    fn a_suggested_limit_is_one_that_a_scenario_takes() {
        let limit = |wanted, needed| longer_limit(wanted, needed).unwrap_or_default();
        assert_eq!(limit(20.2, 10.1), "--set time_limit='21 s'");
        assert_eq!(limit(2e8, 9e7), "--set time_limit='100000000 s'");
        assert_eq!(limit(2e8, 1e8), "");
    }
}
