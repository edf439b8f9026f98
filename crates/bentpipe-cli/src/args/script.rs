//! Arguments of `bentpipe script`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const MORE: &str = "\
Examples:
  bentpipe script my.pkt
  bentpipe script tests/*.pkt --profile freebsd --verbose
  bentpipe script path/to/packetdrill \\
      --expect validation/conformance/google.toml

Exit codes: 0 no script fails   1 a script fails   2 a script has a syntax error";

#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub(crate) struct Script {
    /// packetdrill scripts, or folders with scripts (*.pkt)
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Defaults of the host
    #[arg(long, value_enum, default_value_t = Host::Linux, conflicts_with = "expect")]
    pub(crate) profile: Host,
    /// Name defined for #ifdef, instead of those of the profile; repeatable
    #[arg(long = "define", value_name = "NAME", conflicts_with = "expect")]
    pub(crate) defined: Vec<String>,
    /// Expectation file for a folder of scripts; if there are several, the one of the folder is
    /// used
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) expect: Vec<PathBuf>,
    /// Print JSON instead of lines
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print the packets of each script
    #[arg(long, short, help_heading = "Output")]
    pub(crate) verbose: bool,
}

/// Sets of defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Host {
    /// Linux
    Linux,
    /// FreeBSD
    #[value(name = "freebsd")]
    FreeBsd,
    /// The RFCs' recommended values; every packet and time is compared exactly
    Rfc,
}
