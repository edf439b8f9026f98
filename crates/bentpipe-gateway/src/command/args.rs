//! The arguments of `bentpipe gateway` and of `bentpipe-gateway`.

use std::path::PathBuf;
use std::time::Duration;

use bentpipe_language::single::interval;
use clap::{Args, Subcommand};

const GATEWAY_MORE: &str = "\
Examples:
  bentpipe gateway keygen /etc/bentpipe/private.key  prints the public key
  bentpipe gateway up --dry-run gateway.toml         show the kernel rules
  bentpipe gateway run gateway.toml                  SIGTERM drains; a second
                                                     SIGTERM ends it
  bentpipe gateway status gateway.toml
  bentpipe gateway status gateway.toml --interval 1s";

/// The subcommands.
#[derive(Debug, Subcommand)]
#[command(after_help = GATEWAY_MORE)]
pub enum Gateway {
    /// Write a new private key and print its public key
    Keygen(Keygen),
    /// Print the public key of a private key again
    Pubkey(Pubkey),
    /// Run a gateway, with its kernel rules installed while it runs
    Run(Run),
    /// Install a gateway's kernel rules without running it
    Up(Up),
    /// Remove a gateway's kernel rules
    Down(Down),
    /// Set the kernel settings that a gateway needs but may not change itself
    Prepare(File),
    /// Print the state of a running gateway as JSON, or its traffic as a table
    Status(Status),
}

/// Arguments of `keygen`.
#[derive(Debug, Args)]
pub struct Keygen {
    /// File for the private key; an existing file is not overwritten
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// The argument of `pubkey`.
#[derive(Debug, Args)]
pub struct Pubkey {
    /// The file that `keygen` has written
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// The argument of `prepare`.
#[derive(Debug, Args)]
pub struct File {
    /// The gateway's settings file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// The gateway's settings file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print a table line at this interval, such as 1s, until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The gateway's settings file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Check the settings and keys, and print the kernel rules
    #[arg(long)]
    pub dry_run: bool,
    /// Do not change the kernel rules
    #[arg(long)]
    pub no_rules: bool,
}

/// Arguments of `down`.
#[derive(Debug, Args)]
pub struct Down {
    /// The gateway's settings file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Keep refusing new connections if the gateway failed and `without_peer` is `"refuse"`
    #[arg(long)]
    pub keep_guard: bool,
}

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct Up {
    /// The gateway's settings file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print the rules without installing them
    #[arg(long)]
    pub dry_run: bool,
}
