//! How the command ends: its exit code, and how errors are shown.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use bentpipe_io::{SIGPIPE_CODE, has_colour};
use bentpipe_language::error::ScenarioErrors;

use crate::log::note;

/// The result of a command that ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Success.
    Done,
    /// `doctor` found that something required is missing.
    Lacking,
}

impl End {
    /// The exit code of the process.
    pub fn code(self) -> ExitCode {
        match self {
            End::Done => ExitCode::SUCCESS,
            End::Lacking => ExitCode::from(1),
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The gateway failed, or something on the machine that it needs did.
    Broken(String),
    /// Wrong arguments, or a machine that is set up wrongly: the mistake, and a remedy.
    Usage(String, Option<String>),
    /// Mistakes in the settings.
    Settings(ScenarioErrors),
    /// The reader closed the output: the command prints nothing and ends as if by SIGPIPE.
    Pipe,
}

impl Failure {
    pub(super) fn broken(error: impl Display) -> Self {
        Failure::Broken(error.to_string())
    }

    pub(super) fn usage(message: impl Display, help: Option<&str>) -> Self {
        Failure::Usage(message.to_string(), help.map(str::to_owned))
    }

    /// Prints the message to standard error. Returns the exit code.
    pub fn report(self) -> ExitCode {
        let error = if has_colour() { "\x1b[1;31merror\x1b[0m" } else { "error" };
        match self {
            Failure::Broken(message) => {
                note!("{error}: {message}");
                ExitCode::from(1)
            }
            Failure::Usage(message, help) => {
                note!("{error}: {message}");
                if let Some(help) = help {
                    note!("  help: {help}");
                }
                ExitCode::from(2)
            }
            Failure::Settings(errors) => {
                note!("{}", errors.render(has_colour()));
                ExitCode::from(2)
            }
            Failure::Pipe => ExitCode::from(SIGPIPE_CODE),
        }
    }
}

/// Prints the warnings and returns the value that was read.
pub(super) fn warned<T>(read: Result<(T, ScenarioErrors), ScenarioErrors>) -> Result<T, Failure> {
    let (value, warnings) = read.map_err(Failure::Settings)?;
    if !warnings.0.is_empty() {
        note!("{}", warnings.render(has_colour()));
    }
    Ok(value)
}

/// Prints to standard output.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| unprinted(&error))
}

/// What an error of standard output means.
pub(super) fn unprinted(error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::Pipe,
        _ => Failure::broken(format!("standard output: {error}")),
    }
}
