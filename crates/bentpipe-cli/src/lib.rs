//! The `bentpipe` command: arguments, files and exit codes. The crates below do the computing.
//!
//! It is a library so that the Python package can also contain the command: [`main_with`]. [`library`] has the parts that the package
//! shares with the command: scenarios, checks and messages.
//!
//! Reading order: `args`, the arguments; `complete`, shell completion; `commands`, one file per command; `source` and `shipped`, which load
//! scenarios; `output`, which prints results and how to reproduce them; `fail_if`, which judges them; `failure`, exit codes; `interrupt`,
//! Ctrl-C.
#![forbid(unsafe_code)]
// They panic if the output cannot be written: see `note!` and `output::print`.
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod args;
mod commands;
mod complete;
mod fail_if;
mod failure;
mod interrupt;
pub mod library;
mod output;
mod progress;
mod shipped;
mod source;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Arguments, Command};
use commands::linux;
use failure::{End, Failure};

/// Runs the command with these arguments, of which the first is the program's name, and returns its exit code. It handles the
/// process's signals and prints to its standard output: call it once, from the process's only thread.
pub fn main_with(arguments: Vec<OsString>) -> u8 {
    #[cfg(target_os = "linux")]
    bentpipe_gateway::command::keep_children();
    if let Some(code) = commands::manual::answer(&arguments) {
        return code;
    }
    output::remember(&arguments);
    let arguments = match Arguments::try_parse_from(&arguments) {
        Ok(arguments) => arguments,
        Err(asked) if asked.kind() == ErrorKind::InvalidUtf8 => return not_text(&arguments).report(),
        Err(mut asked) => {
            args::mistyped::suggest(&mut asked, &Arguments::command(), &arguments);
            return match asked.print() {
                // Help that was asked for is output like any other.
                Err(error) if !asked.use_stderr() => output::unprinted(&error).report(),
                _ => u8::try_from(asked.exit_code()).unwrap_or(2),
            };
        }
    };
    match dispatch(arguments.command) {
        Ok(end) => end.code(),
        Err(failure) => failure.report(),
    }
}

/// Names the arguments that are not text: clap does not.
fn not_text(arguments: &[OsString]) -> Failure {
    let bad: Vec<_> = arguments.iter().filter(|word| word.to_str().is_none()).map(|word| format!("{word:?}")).collect();
    let help = "rename the file; names of outputs may have any bytes";
    Failure::usage(format!("{} is not UTF-8", bad.join(" or ")), Some(help.to_owned()))
}

fn dispatch(command: Command) -> Result<End, Failure> {
    // Commands in real time handle signals themselves, before there is a second thread.
    let command = match command {
        Command::Emulate(emulate) => return linux::emulate(&emulate),
        Command::Shell(shell) => return linux::shell(&shell),
        Command::Gateway(gateway) => return linux::gateway(&gateway),
        other => other,
    };
    interrupt::install()?;
    match command {
        Command::Emulate(_) | Command::Shell(_) | Command::Gateway(_) => unreachable!("they have returned"),
        Command::Demo(demo) => commands::demo::demo(&demo),
        Command::Run(run) => commands::run::run(&run),
        Command::Report(report) => commands::report::report(&report),
        Command::Compare(compare) => commands::compare::compare(&compare),
        Command::Sweep(sweep) => commands::sweep::sweep(&sweep),
        Command::Recommend(recommend) => commands::recommend::run(&recommend),
        Command::Fit(fit) => commands::fit::fit(&fit),
        Command::Scoreboard(scoreboard) => commands::scoreboard::scoreboard(&scoreboard),
        Command::Reproduce(reproduce) => commands::reproduce::reproduce(&reproduce),
        Command::Link(link) => linux::link(&link),
        Command::Verify(verify) => linux::verify(&verify),
        Command::VerifyHosts(hosts) => linux::verify_hosts(&hosts),
        Command::Explain(explain) => commands::explain::explain(&explain),
        Command::Model(model) => commands::model::model(&model),
        Command::Script(script) => commands::script::script(&script),
        Command::Lab(lab) => commands::lab::lab(&lab),
        Command::Doctor(doctor) => linux::doctor(&doctor),
        Command::Scenarios(list) => commands::lists::scenarios(&list),
        Command::Variants(variants) => commands::lists::variants(&variants),
        Command::Schema(schema) => commands::lists::schema(&schema),
        Command::Reference(reference) => commands::reference::reference(&reference),
        Command::Completions(completions) => commands::manual::completions(&completions),
        Command::Man(man) => commands::manual::man(&man),
    }
}
