//! How the command ends: exit codes, and errors as they are shown.

use std::fmt::Display;
use std::io::IsTerminal;
use std::process::ExitCode;

use bentpipe_study::scenario::ScenarioErrors;

/// An end that is no error of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All went well.
    Done,
    /// A transfer was given up or did not end in time.
    Failed,
    /// Ctrl-C; what there was has been shown.
    Interrupted,
    /// A command that we ran ended with this code.
    Code(u8),
}

impl End {
    pub(crate) fn code(self) -> ExitCode {
        match self {
            End::Done => ExitCode::SUCCESS,
            End::Failed => ExitCode::from(1),
            End::Interrupted => ExitCode::from(130),
            End::Code(code) => ExitCode::from(code),
        }
    }
}

/// The value that was read, its warnings printed.
pub(crate) fn warned<T>(read: Result<(T, ScenarioErrors), ScenarioErrors>) -> Result<T, Failure> {
    let (value, warnings) = read.map_err(Failure::Scenario)?;
    if !warnings.0.is_empty() {
        eprintln!("{}", warnings.render(has_colour()));
    }
    Ok(value)
}

fn has_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The run, or a file to be written.
    Broken(String),
    /// The arguments: what is wrong, and a way out.
    Usage(String, Option<String>),
    /// The scenario.
    Scenario(ScenarioErrors),
    /// Nobody reads our output any more, which is no failure of ours.
    Pipe,
}

impl Failure {
    /// Something that went wrong on the way.
    pub(crate) fn broken(error: impl Display) -> Self {
        Failure::Broken(error.to_string())
    }

    /// Wrong usage.
    pub(crate) fn usage(message: impl Display, help: Option<String>) -> Self {
        Failure::Usage(message.to_string(), help)
    }

    /// Says it on standard error.
    pub(crate) fn report(self) -> ExitCode {
        let colour = has_colour();
        let error = if colour { "\x1b[1;31merror\x1b[0m" } else { "error" };
        match self {
            Failure::Broken(message) => {
                eprintln!("{error}: {message}");
                ExitCode::from(1)
            }
            Failure::Usage(message, help) => {
                eprintln!("{error}: {message}");
                if let Some(help) = help {
                    eprintln!("  help: {help}");
                }
                ExitCode::from(2)
            }
            Failure::Scenario(errors) => {
                eprintln!("{}", errors.render(colour));
                ExitCode::from(2)
            }
            Failure::Pipe => ExitCode::SUCCESS,
        }
    }
}
