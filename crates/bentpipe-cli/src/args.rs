//! What can be asked for on the command line.

mod gateway;
mod model;
mod recommend;
mod script;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use gateway::{Gateway, Keygen, Run as RunGateway};
pub(crate) use model::{Hybrid, Model, Rates};
pub(crate) use recommend::Recommend;
pub(crate) use script::{Host, Script};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const MORE: &str = "\
Examples:
  bentpipe demo                                        see eight TCPs on one satellite link
  bentpipe run geo                                     run a shipped scenario
  bentpipe run geo --set links.sat.delay='40 ms'       the same on a lower orbit
  bentpipe compare geo-bursts --variants sack,newreno  two variants in the same fades
  bentpipe recommend geo --size '5 MB'                 plain TCP, split, S-LACP, or both
  bentpipe reproduce transat --table 1                 a paper's table beside ours
  bentpipe shell geo -- curl -O http://server/file     any program behind a link, in real time
  bentpipe emulate geo                                 hosts as network namespaces, in real time
  bentpipe verify geo                                  virtual time against real time
  bentpipe explain geo                                 path, round trip, queue, limit
  bentpipe model hybrid --help                         what splitting TCP at a gateway brings

Exit codes:
  0 done   1 a run or a file failed   2 wrong usage or scenario   130 interrupted
  `shell` and `emulate` with a command: the command's";

/// Simulate, emulate and accelerate data transfer over satellite links.
#[derive(Debug, Parser)]
#[command(name = "bentpipe", version, styles = STYLES, after_help = MORE, disable_help_subcommand = true)]
#[command(subcommand_required = true, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show in seconds what a satellite link does to eight TCPs
    Demo(Demo),
    /// Run a scenario once
    Run(Run),
    /// Compare TCP variants, each replication in the same fades
    Compare(Compare),
    /// Say what to put on a path: plain TCP, a split connection, S-LACP, or both
    Recommend(Recommend),
    /// Set a paper's tables and figures beside ours
    Reproduce(Reproduce),
    /// Say what a scenario is made of and what its links promise
    Explain(Explain),
    /// Calculate without running anything
    #[command(subcommand)]
    Model(Model),
    /// Put a scenario's links between network namespaces, in real time
    Emulate(Emulate),
    /// Run a command, or a shell, behind a scenario's links
    Shell(Shell),
    /// Hold virtual time against real time, with the engine's and the kernel's TCP
    Verify(Verify),
    /// Carry other hosts' traffic over a satellite link, between two boxes or from one at the uplink
    #[command(subcommand)]
    Gateway(Gateway),
    /// Play packetdrill's scripts against the engine's TCP, in virtual time
    Script(Script),
    /// Say what this machine lacks for gateways and emulation, and how to give it
    Doctor,
    /// List the scenarios that come with bentpipe
    Scenarios,
    /// List the TCP variants and what they are made of
    Variants(Variants),
    /// Print a JSON schema for editors
    Schema(Schema),
    /// Print the reference: scenario and gateway keys, trace columns, metrics, commands
    Reference(Reference),
}

/// A scenario and what is changed in it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Scenario")]
pub(crate) struct World {
    /// A scenario file, the name of a shipped one (see `bentpipe scenarios`), or - for standard input
    #[arg(value_name = "FILE", help_heading = None)]
    pub(crate) file: String,
    /// Change a value; repeatable, e.g. --set links.sat.delay='40 ms'
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) sets: Vec<(String, String)>,
    /// Seed of all random draws, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, such as links.sat.delay='40 ms'".to_owned()),
    }
}

const RUN_MORE: &str = "\
Examples:
  bentpipe run geo
  bentpipe run my.toml --variant newreno --plot why.svg
  bentpipe run geo-bursts --seed 7 --json | jq '.flows[0].x_limit'
  bentpipe run geo --pcap sender.pcapng           then: wireshark sender.pcapng
  bentpipe run geo --pcap sat.pcapng --tap sat/forward:out
  bentpipe run geo --trace events.parquet

x limit is the time over the least time that the links allow any transport;
for a flow without an end, the greatest goodput that they allow over the goodput.";

#[derive(Debug, Args)]
#[command(after_help = RUN_MORE)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) world: World,
    /// Give all TCP flows this variant; what is set explicitly stays
    #[arg(long, value_name = "NAME", help_heading = "Scenario")]
    pub(crate) variant: Option<String>,
    /// Print JSON instead of a table
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write every event as a row, .csv or .parquet
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace: Option<PathBuf>,
    /// Write packets as a capture for Wireshark, tshark and tcpdump
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) pcap: Option<PathBuf>,
    /// Where to capture: a host, a link, LINK:in, LINK:out, or all; repeatable [default: the first flow's sender]
    #[arg(long = "tap", value_name = "NAME", requires = "pcap", help_heading = "Output")]
    pub(crate) taps: Vec<String>,
    /// Keep only the headers of captured packets
    #[arg(long, requires = "pcap", help_heading = "Output")]
    pub(crate) headers_only: bool,
    /// Draw sequence numbers over time, .svg
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
}

const EMULATE_MORE: &str = "\
Examples:
  bentpipe emulate geo                            hosts `server` and `client`, 600 ms apart
  bentpipe emulate geo-bursts --seed 7            the fades of `bentpipe run geo-bursts --seed 7`
  bentpipe emulate geo --set links.sat.delay='40 ms' --pcap both.pcapng
  bentpipe emulate geo --host gateway --host terminal    these forward in namespaces of their own
  bentpipe emulate geo -- ./test.sh               runs it, ends with it; BENTPIPE_NS_SERVER,
                                                  BENTPIPE_IP_SERVER and so on say where hosts are

Programs run on a host with `ip netns exec NAMESPACE program`. Needs root. Flows of the scenario
do not run: the programs are the traffic. Ctrl-C ends it and removes all that was made.";

#[derive(Debug, Args)]
#[command(after_help = EMULATE_MORE)]
pub(crate) struct Emulate {
    #[command(flatten)]
    pub(crate) world: World,
    /// Make a host of this node, too: it forwards for the others; repeatable
    #[arg(long = "host", value_name = "NODE", help_heading = "Scenario")]
    pub(crate) hosts: Vec<String>,
    /// Write packets as a capture, one interface per host
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) pcap: Option<PathBuf>,
    /// Print the hosts, and at the end the summary, as lines of JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// A command to run beside the hosts; its end is ours, and its exit code too
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

const SHELL_MORE: &str = "\
Examples:
  bentpipe shell geo                              a shell on the far side of a GEO link
  bentpipe shell geo -- curl -O http://server/file
  bentpipe shell leo -- bentpipe shell geo        one behind the other: the delays add up
  bentpipe shell geo --pcap both.pcapng -- ssh host
  bentpipe shell mine.toml --inside ship --outside teleport

Behind the link is the node that the first flow leads to, before it, with the machine's routes,
the one that it comes from. The exit code is the command's. Without root it runs in a user
namespace, where the outside is reached through `pasta` (package passt) if that is installed.
While it runs, the terminal's title says: rate, queue, drops, how late wake-ups are.";

#[derive(Debug, Args)]
#[command(after_help = SHELL_MORE)]
pub(crate) struct Shell {
    #[command(flatten)]
    pub(crate) world: World,
    /// The node that the command is at [default: where the first flow leads to]
    #[arg(long, value_name = "NODE", help_heading = "Scenario")]
    pub(crate) inside: Option<String>,
    /// The node that this machine is [default: where the first flow comes from]
    #[arg(long, value_name = "NODE", help_heading = "Scenario")]
    pub(crate) outside: Option<String>,
    /// Write packets at both ends as a capture
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) pcap: Option<PathBuf>,
    /// Say nothing but what is wrong
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// The command [default: $SHELL]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

const VERIFY_MORE: &str = "\
Examples:
  bentpipe verify geo
  bentpipe verify leo --set flows.download.bytes='5 MB' --json
  bentpipe verify geo-bursts --set flows.download.bytes='20 MB' --no-kernel
  bentpipe verify geo --sysctl tcp_recovery=0 --route 'quickack 1'

Each flow is run in virtual time, in real time by the engine's own TCP with its bytes over the same
links, and, as root, by Linux's reno between network namespaces. It takes as long as the flows take.
Then the engine's real run is drawn again in virtual time, --draws times, each wake-up as late as one
that was measured: where these differ, the machine's timing decides and no model can.
Fails where an engine's time differs from virtual time by more than --tolerance, and from what was
drawn, too.";

#[derive(Debug, Args)]
#[command(after_help = VERIFY_MORE)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) world: World,
    /// Give all TCP flows this variant; what is set explicitly stays
    #[arg(long, value_name = "NAME", help_heading = "Scenario")]
    pub(crate) variant: Option<String>,
    /// Leave out the kernel's TCP, which needs root
    #[arg(long)]
    pub(crate) no_kernel: bool,
    /// Greatest difference of the engine's times, percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    pub(crate) tolerance: f64,
    /// How often the real run is drawn again with its lateness
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) draws: u64,
    /// A setting of the kernel's TCP below net.ipv4, at both ends
    #[arg(long, value_name = "NAME=VALUE", value_parser = sysctl, help_heading = "Linux")]
    pub(crate) sysctl: Vec<(String, String)>,
    /// Attributes of the hosts' routes, as `ip route` takes them
    #[arg(long, value_name = "WORDS", help_heading = "Linux")]
    pub(crate) route: Option<String>,
    /// Print JSON instead of a table
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

fn sysctl(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has no `=`; expected for example tcp_recovery=0")?;
    let name = name.strip_prefix("net.ipv4.").unwrap_or(name);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name { Ok((name.to_owned(), value.to_owned())) } else { Err(format!("`{name}` is no name below net.ipv4")) }
}

const COMPARE_MORE: &str = "\
Examples:
  bentpipe compare geo-bursts --variants sack,newreno,tahoe --reps 50
  bentpipe compare leo --variants reno,sack --set links.sat.forward.queue='20 packets' --json

Replication n of every variant has the same seed and meets the same fades.
The ratio to the first variant is the geometric mean over the pairs, its interval
a paired bootstrap. Ctrl-C keeps the replications that are complete.";

#[derive(Debug, Args)]
#[command(after_help = COMPARE_MORE)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) world: World,
    /// The variants, the first being what the others are measured by
    #[arg(long, value_name = "A,B,..", value_delimiter = ',', required = true)]
    pub(crate) variants: Vec<String>,
    /// Replications: seeds from the scenario's on
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) reps: u32,
    /// Runs at the same time; 0: as many as there are cores. Results do not depend on it
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

const REPRODUCE_MORE: &str = "\
Papers:
  transat   Astuti, Kojo: Simulation Study of TCP Performance in TRANSAT Satellite
            Architecture
  minei     Minei, Cohen: High Speed Internet Access Through Unidirectional
            Geostationary Satellite Channels
  acts      Charalambos, Lazarou, Frost, Evans, Jonkman: Experiments and Simulations of
            TCP/IP over ATM over a High Data Rate Satellite Channel
  hybrid    Zhu, Roy, Kim: Performance Modelling of TCP Enhancements in
            Terrestrial-Satellite Hybrid Networks
  stp       Canhoto, Anzaloni: Study of a New Transport Protocol for Satellite Links

Verdicts:
  match     a number or an ordering of ours was compared and is within the bounds
  shape     it is not, but the ordering or the size is right
  differs   neither; the reason gives the cause, or says that it is not explained
  built     a mechanism, a topology or a drawing; the reason names what exercises it
  decision  what we chose where the paper is silent
  missing   not there, or only in part

Ctrl-C stops and shows what is done; once more ends at once.

Examples:
  bentpipe reproduce transat --table 1
  bentpipe reproduce transat --figure 2 --out figures
  bentpipe reproduce all --json --out results";

#[derive(Debug, Args)]
#[command(after_help = REPRODUCE_MORE)]
pub(crate) struct Reproduce {
    /// Which paper
    #[arg(value_enum)]
    pub(crate) paper: Paper,
    /// Only this table
    #[arg(long, value_name = "N")]
    pub(crate) table: Option<u8>,
    /// Only this figure
    #[arg(long, value_name = "N")]
    pub(crate) figure: Option<u8>,
    /// Replications behind each of our statistics
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) reps: u32,
    /// Seed of the first replication
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Runs at the same time; 0: as many as there are cores. Results do not depend on it
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Where figures go, as SVG and CSV
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON, {"rows": [..]}, instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Write all rows into a document and print the counts alone
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Paper {
    /// TCP over GEO with error bursts, with and without a link layer that repairs them
    Transat,
    /// A unidirectional GEO channel with a modem for the way back, and a sender for burst losses
    Minei,
    /// TCP over ATM over a GEO link of 155 and 622 Mbit/s
    Acts,
    /// Split connections against a link layer that repairs losses
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
    /// Give all TCP flows this variant; what is set explicitly stays
    #[arg(long, value_name = "NAME", help_heading = "Scenario")]
    pub(crate) variant: Option<String>,
    /// Print the scenario with everything written out; it runs as the same
    #[arg(long, help_heading = "Output")]
    pub(crate) resolved: bool,
    /// Print JSON instead of text
    #[arg(long, conflicts_with = "resolved", help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Variants {
    /// A scenario, to list its own variants too
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<String>,
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
    /// Commands, options and exit codes
    Cli,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Where the picture goes
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) out: PathBuf,
}
