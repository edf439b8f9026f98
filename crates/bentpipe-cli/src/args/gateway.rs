//! The arguments of `bentpipe gateway`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const GATEWAY_MORE: &str = "\
Examples:
  bentpipe gateway keygen /etc/bentpipe/private.key    prints the public key, for the peer
  bentpipe gateway up --dry-run gateway.toml           what the kernel would be told
  bentpipe gateway run gateway.toml                    until SIGTERM, which drains; twice ends at once
  bentpipe gateway status gateway.toml";

#[derive(Debug, Subcommand)]
#[command(after_help = GATEWAY_MORE)]
pub(crate) enum Gateway {
    /// Write a new private key and print its public key
    Keygen(Keygen),
    /// Run a gateway; its rules are installed at the start and removed at the end
    Run(Run),
    /// Install the rules of a gateway without running it
    Up(Up),
    /// Remove the rules of a gateway
    Down(File),
    /// Ask a running gateway how it is
    Status(File),
}

#[derive(Debug, Args)]
pub(crate) struct Keygen {
    /// Where the private key goes; a file that is there is not overwritten
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct File {
    /// The gateway's settings
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The gateway's settings
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Check the settings and the keys, and print what the kernel would be told
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Leave the kernel's rules as they are
    #[arg(long)]
    pub(crate) no_rules: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// The gateway's settings
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}
