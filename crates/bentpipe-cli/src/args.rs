//! The command line's arguments.

mod fit;
mod lab;
mod manual;
pub(crate) mod mistyped;
mod model;
pub(crate) mod realtime;
mod recommend;
mod runs;
mod scoreboard;
mod script;
mod sweep;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};

use crate::commands::linux::Gateway;
pub(crate) use crate::commands::plots::Kind;
use crate::complete;
pub(crate) use fit::Fit;
pub(crate) use lab::Lab;
pub(crate) use manual::{Completions, Man};
pub(crate) use model::{Hybrid, Model, Rates, hybrid};
pub(crate) use realtime::{Emulate, Link, Shell, Verify, VerifyHosts};
pub(crate) use recommend::Recommend;
pub(crate) use runs::{Compare, Report, Run};
pub(crate) use scoreboard::Scoreboard;
pub(crate) use script::{Host, Script};
pub(crate) use sweep::Sweep;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const MORE: &str = "\
Examples:
  bentpipe demo                                     eight TCPs over one link
  bentpipe run geo                                  run a shipped scenario
  bentpipe run geo --set links.sat.delay='40 ms'    with another delay
  bentpipe compare geo --variants sack,newreno      two variants
  bentpipe sweep loss.toml                          many values, all runs kept
  bentpipe recommend geo --size '5 MB'              what to use on that path
  bentpipe scoreboard --only 250/3,'1 %'            all transports over one link
  bentpipe reproduce transat --table 1              a paper's table next to ours
  bentpipe fit transfer.pcap                        a path from a capture
  bentpipe shell geo -- curl -O http://server/file  a program behind the link
  bentpipe emulate geo                              hosts as network namespaces
  bentpipe verify geo                               virtual against real time
  bentpipe explain geo                              path, BDP, queues, limit
  bentpipe model hybrid --help                      formulas for split TCP

Exit codes:
  0  done
  1  a run failed, a check failed, or a file could not be written
  2  wrong usage, or a mistake in an input file
  130  interrupted
  141  the reader of the output closed it (SIGPIPE)
  `shell` and `emulate` with a command exit with the command's code; 127 if it
  is not found, 126 if it cannot be started.

Documentation: docs/README.md in the repository, or `bentpipe reference`.";

/// Simulate, emulate and accelerate data transfer over satellite links.
#[derive(Debug, Parser)]
#[command(name = "bentpipe", bin_name = "bentpipe", version, styles = STYLES, after_help = MORE)]
#[command(subcommand_required = true, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare eight TCPs over one satellite link
    Demo(Demo),
    /// Run a scenario once
    Run(Run),
    /// Write a page about a scenario: drawing, results, plots, recommendation
    Report(Report),
    /// Compare TCP variants, all over the same fades
    Compare(Compare),
    /// Run a scenario with many values of its keys, and store every run
    Sweep(Sweep),
    /// Recommend a system for a path: other hosts, or a gateway of one or two boxes
    Recommend(Recommend),
    /// Estimate a path from a packet capture of a transfer, or from pings
    Fit(Fit),
    /// Compare every transport over every link, with and without gateways
    Scoreboard(Scoreboard),
    /// Reproduce a paper's tables, figures and claims
    Reproduce(Reproduce),
    /// Show a scenario's paths, settings and limits
    Explain(Explain),
    /// Evaluate formulas, without a simulation
    #[command(subcommand)]
    Model(Model),
    /// Create a scenario's hosts and links as network namespaces, in real time
    Emulate(Emulate),
    /// Run a command, or a shell, behind a scenario's links, in real time
    Shell(Shell),
    /// Change the links of a running emulation
    #[command(subcommand)]
    Link(Link),
    /// Compare virtual time with real time, for the engine's TCP and for Linux's
    Verify(Verify),
    /// Compare the engine's Linux hosts with this machine's kernel, over a grid of links and losses
    VerifyHosts(VerifyHosts),
    /// Accelerate other hosts' traffic over a satellite link
    #[command(subcommand)]
    Gateway(Gateway),
    /// Run packetdrill scripts against the engine's TCP, in virtual time
    Script(Script),
    /// Open the simulator as a page in a browser
    Lab(Lab),
    /// Check what gateways and emulation need on this machine
    Doctor(List),
    /// List the shipped scenarios
    Scenarios(List),
    /// List the TCP variants and their settings
    Variants(Variants),
    /// Print a JSON schema for editors
    Schema(Schema),
    /// Print the reference: scenario and gateway keys, trace columns, metrics, commands
    Reference(Reference),
    /// Print completions for a shell
    Completions(Completions),
    /// Write manual pages
    Man(Man),
}

/// A scenario and changes to it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Scenario")]
pub(crate) struct World {
    /// A scenario file, the name of a shipped one (see `bentpipe scenarios`), or - for standard input
    #[arg(value_name = "FILE", help_heading = None, add = ArgValueCompleter::new(complete::scenarios))]
    pub(crate) file: String,
    /// Replace a value, e.g. --set links.sat.delay='40 ms'; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) sets: Vec<(String, String)>,
    /// Seed of all random draws [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
}

/// Max number of runs of a command: it keeps the results of all.
const MAX_RUNS: u32 = 1_000_000;

/// A whole number between two bounds.
fn count<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display + Copy + Send + Sync + 'static,
{
    move |text| match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("expected a whole number from {least} to {most}")),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    count(0, u64::MAX)(text)
}

fn threads(text: &str) -> Result<usize, String> {
    count(0, usize::MAX)(text)
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, such as links.sat.delay='40 ms'".to_owned()),
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    key_and_value(text).map_err(|_| "expected KEY=VALUE, such as delay='40 ms'".to_owned())
}

const REPRODUCE_MORE: &str = "\
Papers:
  transat   Astuti, Kojo: Simulation Study of TCP Performance in TRANSAT
            Satellite Architecture
  minei     Minei, Cohen: High Speed Internet Access Through Unidirectional
            Geostationary Satellite Channels
  acts      Charalambos, Lazarou, Frost, Evans, Jonkman: Experiments and
            Simulations of TCP/IP over ATM over a High Data Rate Satellite
            Channel
  hybrid    Zhu, Roy, Kim: Performance Modelling of TCP Enhancements in
            Terrestrial-Satellite Hybrid Networks
  stp       Canhoto, Anzaloni: Study of a New Transport Protocol for Satellite
            Links

Verdicts:
  match     our number or ordering is within the bounds
  shape     it is not, but the ordering or the size is right
  differs   neither; the reason names the cause, or says \"not explained\"
  built     a mechanism, a topology or a drawing; the reason names its tests
  decision  our choice where the paper is silent
  missing   absent, or only partly there

Ctrl-C stops and shows the complete rows; a second Ctrl-C exits at once.

Examples:
  bentpipe reproduce transat --table 1
  bentpipe reproduce transat --figure 2 --out figures
  bentpipe reproduce all --json --out results";

#[derive(Debug, Args)]
#[command(after_help = REPRODUCE_MORE)]
pub(crate) struct Reproduce {
    /// The paper
    #[arg(value_enum)]
    pub(crate) paper: Paper,
    /// Only this table
    #[arg(long, value_name = "N", value_parser = count(0, u8::MAX))]
    pub(crate) table: Option<u8>,
    /// Only this figure
    #[arg(long, value_name = "N", value_parser = count(0, u8::MAX))]
    pub(crate) figure: Option<u8>,
    /// Replications for each statistic
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = count(1, MAX_RUNS))]
    pub(crate) reps: u32,
    /// Seed of the first replication
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Runs in parallel; 0: one per core. Results do not depend on it
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = threads, allow_negative_numbers = true)]
    pub(crate) threads: usize,
    /// Write figures to this folder, as SVG and CSV
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON, {"rows": [..]}, instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Write all rows to a document, and print only the counts
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write all rows and figures to a page for a browser, and print only the counts
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "markdown"])]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Paper {
    /// TCP over GEO with error bursts, with and without a repairing link layer
    Transat,
    /// A one-way GEO channel with a modem return path, and a sender for burst losses
    Minei,
    /// TCP over ATM over a GEO link of 155 and 622 Mbit/s
    Acts,
    /// Split connections compared with a repairing link layer
    Hybrid,
    /// A transport protocol without slow start, in bit errors
    Stp,
    /// Every paper
    All,
}

const EXPLAIN_MORE: &str = "\
Examples:
  bentpipe explain geo
  bentpipe explain transat --variant enh
  bentpipe explain --resolved geo --set links.sat.delay='40 ms' > mine.toml";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_MORE)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) world: World,
    /// TCP variant of all flows; settings given explicitly stay
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::variants), help_heading = "Scenario")]
    pub(crate) variant: Option<String>,
    /// Print the scenario with all defaults written out
    #[arg(long, help_heading = "Output")]
    pub(crate) resolved: bool,
    /// Print JSON instead of text
    #[arg(long, conflicts_with = "resolved", help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Variants {
    /// Scenario whose own variants are listed, too
    #[arg(value_name = "FILE", add = ArgValueCompleter::new(complete::scenarios))]
    pub(crate) file: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The kind of file
    #[arg(value_enum, default_value_t = Language::Scenario)]
    pub(crate) language: Language,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// Scenario files
    Scenario,
    /// Gateway files
    Gateway,
    /// Sweep files
    Sweep,
}

#[derive(Debug, Args)]
pub(crate) struct Reference {
    /// Print only this page
    #[arg(value_enum)]
    pub(crate) page: Option<Page>,
    /// Write the pages to this folder as Markdown files
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    /// Keys of scenario files
    Scenario,
    /// Columns of event traces
    Trace,
    /// Keys of gateway files
    Gateway,
    /// Metrics of gateways
    Metrics,
    /// Keys of sweep files
    Sweep,
    /// Commands, options and exit codes
    Cli,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Folder for the picture
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    /// Lines that do not fit are broken in the middle of a sentence's line.
    #[test]
    fn what_stands_below_the_options_fits_the_terminal() {
        fn check(command: &clap::Command) {
            let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in below.lines() {
                assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Arguments::command());
    }
}
