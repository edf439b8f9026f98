//! The arguments of `bentpipe gateway`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const GATEWAY_MORE: &str = "\
Examples:
  bentpipe gateway keygen /etc/bentpipe/private.key    prints the public key
  bentpipe gateway up --dry-run gateway.toml           show the kernel rules
  bentpipe gateway run gateway.toml                    SIGTERM drains; a second one ends it
  bentpipe gateway status gateway.toml";

#[derive(Debug, Subcommand)]
#[command(after_help = GATEWAY_MORE)]
pub(crate) enum Gateway {
    /// Write a new private key and print its public key
    Keygen(Keygen),
    /// Run a gateway, with its kernel rules installed while it runs
    Run(Run),
    /// Install a gateway's kernel rules without running it
    Up(Up),
    /// Remove a gateway's kernel rules
    Down(File),
    /// Print the state of a running gateway as JSON
    Status(File),
}

#[derive(Debug, Args)]
pub(crate) struct Keygen {
    /// File for the private key; an existing file is not overwritten
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct File {
    /// The gateway's settings file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The gateway's settings file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Check the settings and keys, and print the kernel rules
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not change the kernel rules
    #[arg(long)]
    pub(crate) no_rules: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// The gateway's settings file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print the rules without installing them
    #[arg(long)]
    pub(crate) dry_run: bool,
}
