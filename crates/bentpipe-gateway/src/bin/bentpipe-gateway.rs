//! The gateway alone, for a box that neither simulates nor draws. `bentpipe gateway` is the same code.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use bentpipe_gateway::command::{self, End, Gateway, doctor, pages};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

const MORE: &str = "\
Examples:
  bentpipe-gateway doctor                            what this machine lacks
  bentpipe-gateway keygen /etc/bentpipe/private.key  prints the public key
  bentpipe-gateway run --dry-run gateway.toml        check the file, show the
                                                     kernel rules
  bentpipe-gateway run gateway.toml                  SIGTERM drains; a second
                                                     SIGTERM ends it
  bentpipe-gateway status gateway.toml";

/// Accelerate other hosts' traffic over a satellite link.
#[derive(Debug, Parser)]
#[command(name = "bentpipe-gateway", version, after_help = MORE, disable_help_subcommand = true)]
#[command(subcommand_required = true, arg_required_else_help = true, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[command(after_help = MORE)]
enum Command {
    #[command(flatten)]
    Gateway(Gateway),
    /// Check what a gateway needs on this machine
    Doctor,
    /// Print the completions of a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Write the manual pages
    Man {
        /// Folder of the pages, one for each command
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    command::keep_children();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Help that was asked for is output like any other.
        Err(asked) if !asked.use_stderr() => {
            return command::print_help(&asked).map_or_else(command::Failure::report, End::code);
        }
        Err(wrong) => wrong.exit(),
    };
    let done = match arguments.command {
        Command::Gateway(gateway) => command::gateway(&gateway),
        Command::Doctor => doctor::doctor(&[]),
        Command::Completions { shell } => pages::completions(Arguments::command(), shell),
        Command::Man { folder } => pages::man(Arguments::command(), &folder),
    };
    done.map_or_else(command::Failure::report, End::code)
}
