//! `bentpipe lab`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::key_and_value;
use crate::complete;

const MORE: &str = "\
Examples:
  bentpipe lab                           the page, with its first scenario
  bentpipe lab geo-bursts
  bentpipe lab my.toml --set links.sat.delay='40 ms'
  bentpipe lab my.toml --print           its address, to open it elsewhere

The page is the file bentpipe-lab.html, which `make lab` builds. It is
$BENTPIPE_PAGE, or is searched for beside the command, in ../share/bentpipe from
there, and in out/. The scenario is in the address, with the contents of the
files that it names. The page needs no server and no network. The browser is
$BROWSER, or the first of x-www-browser, firefox, chromium, google-chrome and
others.";

#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub(crate) struct Lab {
    /// A scenario file, the name of a shipped one (see `bentpipe scenarios`), or - for standard input
    #[arg(value_name = "FILE", add = ArgValueCompleter::new(complete::scenarios))]
    pub(crate) file: Option<String>,
    /// Replace a value, e.g. --set links.sat.delay='40 ms'; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value, requires = "file")]
    pub(crate) sets: Vec<(String, String)>,
    /// Seed of all random draws [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = super::seed, allow_negative_numbers = true, requires = "file")]
    pub(crate) seed: Option<u64>,
    /// The page
    #[arg(long, value_name = "HTML")]
    pub(crate) page: Option<PathBuf>,
    /// Print the page's address and open nothing
    #[arg(long)]
    pub(crate) print: bool,
    /// Print the page, its address and the browser as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
