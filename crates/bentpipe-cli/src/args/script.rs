//! Arguments of `bentpipe script`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const MORE: &str = "\
Examples:
  bentpipe script my.pkt
  bentpipe script tests/*.pkt --profile freebsd --verbose
  bentpipe script path/to/packetdrill --expect validation/conformance/google.toml

Exit codes: 0 all pass or are unsupported   1 one fails   2 one is not understood";

#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub(crate) struct Script {
    /// Scripts in packetdrill's language, or folders with scripts (*.pkt)
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Whose defaults the host has
    #[arg(long, value_enum, default_value_t = Host::Linux, conflicts_with = "expect")]
    pub(crate) profile: Host,
    /// A name that #ifdef finds, instead of the system's; repeatable
    #[arg(long = "define", value_name = "NAME", conflicts_with = "expect")]
    pub(crate) defined: Vec<String>,
    /// What is expected of a folder of scripts; of several files the one that fits the folder counts
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) expect: Vec<PathBuf>,
    /// Print JSON instead of lines
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print the packets of each script
    #[arg(long, short, help_heading = "Output")]
    pub(crate) verbose: bool,
}

/// Hosts by their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Host {
    /// Linux
    Linux,
    /// FreeBSD
    #[value(name = "freebsd")]
    FreeBsd,
    /// The RFCs' recommended values; every packet and instant counts
    Rfc,
}
