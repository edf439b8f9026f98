//! The gateway alone, for a box that neither simulates nor draws. `bentpipe gateway` is the same code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use bentpipe_gateway::command::{self, End, Gateway, doctor};
use clap::{Parser, Subcommand};

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
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Gateway(gateway) => command::gateway(&gateway),
        Command::Doctor => doctor::doctor(&[]),
    };
    done.map_or_else(command::Failure::report, End::code)
}
