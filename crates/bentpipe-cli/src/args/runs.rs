//! Arguments of the commands that run a scenario.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;

use super::{Kind, World};
use crate::complete;
use crate::fail_if::{self, Bound};

fn run_bound(text: &str) -> Result<Bound, String> {
    Bound::parse(text, fail_if::RUN)
}

fn compare_bound(text: &str) -> Result<Bound, String> {
    Bound::parse(text, fail_if::COMPARE)
}

const RUN_MORE: &str = "\
Examples:
  bentpipe run geo
  bentpipe run my.toml --variant newreno --plot why.svg
  bentpipe run geo --plot cwnd.pdf --kind cwnd
  bentpipe run geo-bursts --seed 7 --json | jq '.flows[0].x_limit'
  bentpipe run geo --pcap sender.pcapng           then: wireshark sender.pcapng
  bentpipe run geo --pcap sat.pcapng --tap sat/forward:out
  bentpipe run geo --trace events.parquet
  bentpipe run geo --fail-if 'x_limit > 3' --fail-if 'download.time > 20 s'

x limit is the time divided by the minimum time that the links allow any
transport. For a flow without an end it is the maximum goodput that they allow
divided by the goodput.";

#[derive(Debug, Args)]
#[command(after_help = RUN_MORE)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) world: World,
    /// TCP variant of all flows; settings given explicitly stay
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::variants), help_heading = "Scenario")]
    pub(crate) variant: Option<String>,
    /// Exit with 1 if this holds for a flow: time, goodput, x_limit, bytes, retransmissions, timeouts; or for flows with
    /// requests: response_median, response_p95, response_p99; repeatable
    #[arg(long, value_name = "[FLOW.]FIGURE>VALUE", value_parser = run_bound, help_heading = "Output")]
    pub(crate) fail_if: Vec<Bound>,
    /// Print JSON instead of a table
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write all events as a table, .csv or .parquet
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace: Option<PathBuf>,
    /// Write a packet capture (pcapng)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) pcap: Option<PathBuf>,
    /// Where to capture: a host, a link, LINK:in, LINK:out or all; repeatable [default: the first flow's sender]
    #[arg(long = "tap", value_name = "NAME", requires = "pcap", help_heading = "Output")]
    pub(crate) taps: Vec<String>,
    /// Capture only headers
    #[arg(long, requires = "pcap", help_heading = "Output")]
    pub(crate) headers_only: bool,
    /// Write a plot, .svg, .png or .pdf
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
    /// What to plot
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Kind::Sequence, requires = "plot", help_heading = "Output")]
    pub(crate) kind: Kind,
}

const REPORT_MORE: &str = "\
Examples:
  bentpipe report geo                             writes geo.html
  bentpipe report my.toml --variant cubic --out page.html
  bentpipe report geo --no-recommend              skip comparing systems, which
                                                  takes longest

The page is one file without scripts, to view offline or to print.";

#[derive(Debug, Args)]
#[command(after_help = REPORT_MORE)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) world: World,
    /// TCP variant of all flows; settings given explicitly stay
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::variants), help_heading = "Scenario")]
    pub(crate) variant: Option<String>,
    /// The page [default: the scenario's name with .html]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// TCP of the hosts in the comparison of systems, as for `recommend`
    #[arg(long, value_name = "NAME", default_value = "linux-cubic", add = ArgValueCandidates::new(complete::hosts), help_heading = "Scenario")]
    pub(crate) hosts: String,
    /// Leave out the recommendation
    #[arg(long, help_heading = "Output")]
    pub(crate) no_recommend: bool,
    /// Replications of each system in the recommendation
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = super::count(2, super::MAX_RUNS), allow_negative_numbers = true, help_heading = "Output")]
    pub(crate) reps: u32,
    /// Print the results and the recommendation as JSON, beside the page
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

const COMPARE_MORE: &str = "\
Examples:
  bentpipe compare geo-bursts --variants sack,newreno,tahoe --reps 50
  bentpipe compare leo --variants reno,sack --json \\
      --set links.sat.forward.queue='20 packets'
  bentpipe compare geo-bursts --variants sack,newreno --plot times.png
  bentpipe compare geo --variants sack,newreno --plot windows.svg --kind cwnd
  bentpipe compare geo --variants sack,cubic --junit tests.xml \\
      --fail-if 'ratio > 1.1'

Replication n uses the same seed for all variants, so they meet the same fades.
The ratio to the first variant is the geometric mean over the pairs; its
interval is a paired bootstrap. Ctrl-C stops, and prints the complete
replications.";

#[derive(Debug, Args)]
#[command(after_help = COMPARE_MORE)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) world: World,
    /// Variants; the others are compared with the first
    #[arg(long, value_name = "A,B,..", add = ArgValueCandidates::new(complete::variants), value_delimiter = ',', required = true)]
    pub(crate) variants: Vec<String>,
    /// Number of replications, with successive seeds from the scenario's on
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = super::count(1, super::MAX_RUNS), allow_negative_numbers = true)]
    pub(crate) reps: u32,
    /// Runs in parallel; 0: one per core. Results do not depend on it
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = super::threads, allow_negative_numbers = true)]
    pub(crate) threads: usize,
    /// Exit with 1 if this holds for a variant: median time, goodput or x_limit, ratio to the first, number of unfinished runs;
    /// repeatable
    #[arg(long, value_name = "[VARIANT.]FIGURE>VALUE", value_parser = compare_bound, help_heading = "Output")]
    pub(crate) fail_if: Vec<Bound>,
    /// Write a plot with a curve for each variant, .svg, .png or .pdf
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
    /// What to plot: cdf shows all replications, the other kinds the first one
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Kind::Cdf, requires = "plot", help_heading = "Output")]
    pub(crate) kind: Kind,
    /// Write the variants as tests, for CI systems (JUnit's XML)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) junit: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
