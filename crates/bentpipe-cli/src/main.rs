//! The `bentpipe` command: arguments, files and exit codes. The crates below do the computing.
//!
//! Reading order: [`args`] the arguments; [`commands`] one file each; [`source`] and [`shipped`] load scenarios;
//! [`output`] prints results with how to reproduce them; [`fail_if`] judges them; [`failure`] exit codes; [`interrupt`] Ctrl-C.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod fail_if;
mod failure;
mod interrupt;
mod output;
mod progress;
mod shipped;
mod source;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command, Link};
use failure::{End, Failure};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let end = dispatch(arguments.command);
    match end {
        Ok(end) => end.code(),
        Err(failure) => failure.report(),
    }
}

fn dispatch(command: Command) -> Result<End, Failure> {
    // Commands in real time handle signals themselves, before there is a second thread.
    let command = match command {
        Command::Emulate(emulate) => return commands::emulate::emulate(&emulate),
        Command::Shell(shell) => return commands::shell::shell(&shell),
        Command::Gateway(gateway) => return commands::gateway::gateway(&gateway),
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
        Command::Reproduce(reproduce) => commands::reproduce::reproduce(&reproduce),
        Command::Link(Link::Set(set)) => commands::control::set(&set),
        Command::Verify(verify) => commands::verify::verify(&verify),
        Command::VerifyHosts(hosts) => commands::verify_hosts::verify_hosts(&hosts),
        Command::Explain(explain) => commands::explain::explain(&explain),
        Command::Model(model) => commands::model::model(&model),
        Command::Script(script) => commands::script::script(&script),
        Command::Lab(lab) => commands::lab::lab(&lab),
        Command::Doctor => commands::doctor::doctor(),
        Command::Scenarios => commands::lists::scenarios(),
        Command::Variants(variants) => commands::lists::variants(&variants),
        Command::Schema(schema) => commands::lists::schema(&schema),
        Command::Reference(reference) => commands::reference::reference(&reference),
        Command::Completions(completions) => commands::manual::completions(&completions),
        Command::Man(man) => commands::manual::man(&man),
    }
}
