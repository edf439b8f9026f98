//! Agreement with other programs. Exit status 0 only if every row agrees.

mod ns2;
mod reference;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Holds the simulator against other programs", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Against ns-2's results in a table like validation/ns2/reference.csv
    Ns2 {
        /// The table
        csv: PathBuf,
        /// Run the real `ns` again on this many of the rows (0: none)
        #[arg(long, default_value_t = 0)]
        rerun: usize,
        /// The Tcl script for `ns`
        #[arg(long, default_value = "validation/ns2/scenario.tcl")]
        script: PathBuf,
    },
}

fn main() -> ExitCode {
    let Command::Ns2 { csv, rerun, script } = Arguments::parse().command;
    match ns2::validate(&csv, rerun, &script) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
