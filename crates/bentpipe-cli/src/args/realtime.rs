//! Arguments of the commands that run in real time.

use std::path::PathBuf;

use bentpipe_language::single::interval;
use bentpipe_study::scenario::UplinkSpec;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

use super::World;
use crate::complete;
use crate::fail_if::{self, Bound};

fn shell_bound(text: &str) -> Result<Bound, String> {
    Bound::parse(text, fail_if::SHELL)
}

fn verify_bound(text: &str) -> Result<Bound, String> {
    Bound::parse(text, fail_if::VERIFY)
}

/// How running links are observed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Watch {
    /// Write a packet capture (pcapng) that can be read while it grows
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Which host to capture, or all; repeatable [default: in `shell` the command's, in `emulate` the first flow's sender]
    #[arg(long = "tap", value_name = "NODE", requires = "pcap")]
    pub(crate) taps: Vec<String>,
    /// Print a table line for each link on standard error at this interval, such as 1s
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub(crate) interval: Option<std::time::Duration>,
}

const EMULATE_MORE: &str = "\
Examples:
  bentpipe emulate geo                   `server` and `client`, 600 ms apart
  bentpipe emulate geo-bursts --seed 7   the fades of `run geo-bursts --seed 7`
  bentpipe emulate geo --set links.sat.delay='40 ms'
  bentpipe emulate geo --pcap both.pcapng --tap all
  bentpipe emulate geo --interval 1s     a line for each link every second
  bentpipe emulate geo --host gateway    also give this router a namespace
  bentpipe emulate geo-gateway           with gateways in the boxes
  bentpipe emulate geo -- ./test.sh      until the script ends; it finds the
                                         hosts in BENTPIPE_NS_SERVER,
                                         BENTPIPE_IP_SERVER, ...

Run programs on a host with `ip netns exec NAMESPACE program`. Needs root. The
scenario's flows do not run: the programs are the traffic. Its gateways run in
the namespaces of their boxes. Ctrl-C ends the emulation and removes
everything.";

#[derive(Debug, Args)]
#[command(after_help = EMULATE_MORE)]
pub(crate) struct Emulate {
    #[command(flatten)]
    pub(crate) world: World,
    /// Give this router a namespace, too, in which it forwards; repeatable
    #[arg(long = "host", value_name = "NODE", help_heading = "Scenario")]
    pub(crate) hosts: Vec<String>,
    /// Open a socket at which `bentpipe link` changes the links
    #[arg(long, value_name = "SOCKET", help_heading = "Scenario")]
    pub(crate) control: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) watch: Watch,
    /// Print the hosts and the summary as lines of JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Command to run; the emulation ends with it and returns its exit code
    #[arg(last = true, value_name = "COMMAND", help_heading = None)]
    pub(crate) command: Vec<String>,
}

const SHELL_MORE: &str = "\
Examples:
  bentpipe shell geo                        a shell behind a GEO link
  bentpipe shell geo -- curl -O http://server/file
  bentpipe shell leo -- bentpipe shell geo  two links in a row; delays add up
  bentpipe shell geo-gateway -- curl -O http://server/file
  bentpipe shell geo --pcap mine.pcapng -- ssh host
  bentpipe shell geo --interval 1s -- curl -O http://server/file
  bentpipe shell mine.toml --inside ship --outside teleport
  bentpipe shell geo --fail-if 'time > 20 s' -- ./test.sh

The command runs at the destination of the first flow, or at the client if the
flow has `request_response`. The flow's other end is this machine, with its
routes; the command reaches it by that node's name. The exit code is the
command's. Without root the command runs in a user namespace; it then reaches
other hosts through `pasta` (package passt), if installed. While it runs, the
terminal's title shows the rate, queue, drops, and lateness of wake-ups. The
scenario's gateways run in their boxes; if one of them dies, the exit code is 1
if the command's is 0.";

#[derive(Debug, Args)]
#[command(after_help = SHELL_MORE)]
pub(crate) struct Shell {
    #[command(flatten)]
    pub(crate) world: World,
    /// Node where the command runs [default: an end of the first flow]
    #[arg(long, value_name = "NODE", help_heading = "Scenario")]
    pub(crate) inside: Option<String>,
    /// Node that is this machine [default: its other end]
    #[arg(long, value_name = "NODE", help_heading = "Scenario")]
    pub(crate) outside: Option<String>,
    /// Open a socket at which `bentpipe link` changes the links
    #[arg(long, value_name = "SOCKET", help_heading = "Scenario")]
    pub(crate) control: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) watch: Watch,
    /// Exit with 1 if this holds: `time` of the command, packets `dropped` by a link, `bytes` delivered; repeatable
    #[arg(long, value_name = "[LINK.]FIGURE>VALUE", value_parser = shell_bound, help_heading = "Output")]
    pub(crate) fail_if: Vec<Bound>,
    /// Write the command's time and exit code and the links' counters as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) json: Option<PathBuf>,
    /// Print only errors and warnings
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Command to run [default: $SHELL]
    #[arg(last = true, value_name = "COMMAND", help_heading = None)]
    pub(crate) command: Vec<String>,
}

const LINK_MORE: &str = "\
Examples:
  bentpipe emulate geo --control /run/geo.socket
  bentpipe link set sat rate='5 Mbit/s' --control /run/geo.socket
  BENTPIPE_CONTROL=/run/geo.socket bentpipe link set sat/forward delay='40 ms'
  bentpipe link fade sat '3 s' --control /run/geo.socket

NAME is a link of the scenario, or one direction of it. The keys are those of
`[[links]]`. All values are checked before any is used. Waiting packets are sent
with the new settings; the change drops no packet.";

/// Change links while an emulation runs.
#[derive(Debug, Subcommand)]
pub(crate) enum Link {
    /// Change the settings of a link
    Set(LinkSet),
    /// Drop all packets that leave a link for a time
    Fade(LinkFade),
}

const FADE_MORE: &str = "\
Examples:
  bentpipe link fade sat '3 s' --control /run/geo.socket
  bentpipe link fade sat/forward '400 ms'   with the socket in BENTPIPE_CONTROL

Packets already in flight arrive. Another fade of the link replaces the
first one.";

#[derive(Debug, Args)]
#[command(after_help = FADE_MORE)]
pub(crate) struct LinkFade {
    /// The link, or one of its directions, such as sat/forward
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Duration, from now
    #[arg(value_name = "TIME")]
    pub(crate) time: String,
    /// The socket of the emulation [default: $BENTPIPE_CONTROL]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,
    /// Print the faded links as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = LINK_MORE)]
pub(crate) struct LinkSet {
    /// The link, or one of its directions, such as sat/forward
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Its new settings
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = super::setting)]
    pub(crate) values: Vec<(String, String)>,
    /// The socket of the emulation [default: $BENTPIPE_CONTROL]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,
    /// Print the changed links as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The names of Linux's congestion controls that the engine has.
fn controls() -> PossibleValuesParser {
    PossibleValuesParser::new(UplinkSpec::KERNEL.iter().map(|&(name, _)| name))
}

const VERIFY_MORE: &str = "\
Examples:
  bentpipe verify geo
  bentpipe verify geo --control cubic
  bentpipe verify leo --set flows.download.bytes='5 MB' --json
  bentpipe verify geo-bursts --set flows.download.bytes='20 MB' --no-kernel
  bentpipe verify geo --sysctl tcp_recovery=0 --route 'quickack 1'
  bentpipe verify geo --plot windows.svg
  bentpipe verify geo-gateway --control cubic --tolerance 3

Each flow runs in virtual time, in real time with the engine's own TCP over the
same links, and (as root) with Linux's TCP between network namespaces. This
takes as long as the flows take. Then the engine's real run is repeated --draws
times in virtual time, with wake-ups as late as those measured. If these draws
differ from each other, the result depends on the machine's timing. The command
fails if a real time of the engine differs from virtual time by more than
--tolerance and lies outside the draws.

With [[gateways]] only Linux's TCP is measured, through real gateways between
the namespaces; its times must not differ by more than --tolerance from those
of the nearest variant.";

#[derive(Debug, Args)]
#[command(after_help = VERIFY_MORE)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) world: World,
    /// TCP variant of all flows; settings given explicitly stay
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::variants), help_heading = "Scenario")]
    pub(crate) variant: Option<String>,
    /// Skip the kernel's TCP, which needs root
    #[arg(long)]
    pub(crate) no_kernel: bool,
    /// Maximum difference between the engine's times, or with [[gateways]] between Linux's and virtual ones, percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = percent)]
    pub(crate) tolerance: f64,
    /// Number of repetitions with drawn lateness
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = super::count(0, u64::from(super::MAX_RUNS)))]
    pub(crate) draws: u64,
    /// Congestion control of Linux's hosts
    #[arg(long, value_name = "NAME", value_parser = controls(), default_value = "reno", help_heading = "Linux")]
    pub(crate) control: String,
    /// Setting below net.ipv4, at both ends; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = sysctl, help_heading = "Linux")]
    pub(crate) sysctl: Vec<(String, String)>,
    /// Attributes of the hosts' routes, as in `ip route`
    #[arg(long, value_name = "WORDS", help_heading = "Linux")]
    pub(crate) route: Option<String>,
    /// Write a plot of windows and round trips: the kernel's, as `ss -ti` shows them, and simulated ones; .svg, .png or .pdf
    #[arg(long, value_name = "FILE", conflicts_with = "no_kernel", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
    /// Exit with 1 if this holds for a flow: time, difference, kernel_time, kernel_difference; repeatable
    #[arg(long, value_name = "[FLOW.]FIGURE>VALUE", value_parser = verify_bound, help_heading = "Output")]
    pub(crate) fail_if: Vec<Bound>,
    /// Print JSON instead of a table
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

const HOSTS_MORE: &str = "\
Examples:
  chrt -r 10 bentpipe verify-hosts               the whole grid: 90 minutes
  chrt -r 10 bentpipe verify-hosts --only cubic --only 'one loss'
  chrt -r 10 bentpipe verify-hosts --only GEO --runs 1 --json
  chrt -r 10 bentpipe verify-hosts --only random --seeds 300 --jobs 5
  chrt -r 10 bentpipe verify-hosts --only 'GEO, overflow' --plot windows.svg
  bentpipe verify-hosts --only overflow --set tcp.ack.compress=off \\
      --sysctl tcp_comp_sack_nr=0
  bentpipe verify-hosts --kernel linux-6.18.json  ours, beside that file's times

A cell is a link (GEO, MEO, LEO), a pattern of losses, and a congestion control.
The kernel's hosts run it in real time over the emulated link, --runs times
(--seeds times if losses are random). The engine's hosts run it in virtual time,
with the timers of a kernel of 250 Hz (for 1000 Hz: --set tcp.rto.jiffy='1 ms'),
over a link with a jitter of 10 us, eleven times with other draws of it. The
command fails if the medians of the completion times differ by more than the
cell's bar: 1 %, or 3 % with random losses; for bbr 5 %, or 3 % in long
transfers. Where a timer of the kernel decides, its lateness is allowed, too.
From five runs or seeds on, a cell fails only if the 95 % interval of the
difference does not reach the bar either. Needs root. On a busy machine wake-ups
are late, and the kernel leaves slow start at another window.";

#[derive(Debug, Args)]
#[command(after_help = HOSTS_MORE)]
pub(crate) struct VerifyHosts {
    /// Only cells whose name contains this; repeatable, for names that contain all of them
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
    /// Runs of the kernel per cell
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = super::count(1, super::MAX_RUNS))]
    pub(crate) runs: u32,
    /// Seeds per cell with random losses, for both
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = super::count(1, super::MAX_RUNS))]
    pub(crate) seeds: u32,
    /// Seeds that the kernel runs at once, where losses are random; elsewhere one run at a time. Too many slow each other down:
    /// on two processors 10 of bbr over LEO took 5 % longer, 5 did not
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = super::count(1_u32, 64))]
    pub(crate) jobs: u32,
    /// Replace a value of the engine's hosts, e.g. --set tcp.ack.compress=off; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = super::key_and_value)]
    pub(crate) sets: Vec<(String, String)>,
    /// Setting of the kernel's hosts below net.ipv4; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = sysctl)]
    pub(crate) sysctl: Vec<(String, String)>,
    /// Compare with the kernel's times in this file, printed earlier with --json, of the same grid; needs no root
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "seeds", "jobs", "sysctl", "plot", "captures"])]
    pub(crate) kernel: Option<PathBuf>,
    /// Write a plot of windows and round trips: the kernel's, as `ss -ti` shows them, and ours, of the first run of up to four
    /// cells; .svg, .png or .pdf
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
    /// Write to this folder a capture of each run of the kernel, with both hosts, and each cell's scenario of ours for `bentpipe run`
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) captures: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches(['%', ' ']).parse().ok();
    number.filter(|number| number.is_finite() && *number >= 0.0).ok_or("expected a percentage, such as 2".to_owned())
}

fn sysctl(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("no `=`; expected for example tcp_recovery=0")?;
    let name = name.strip_prefix("net.ipv4.").unwrap_or(name);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name {
        Ok((name.to_owned(), value.to_owned()))
    } else {
        Err(format!("`{name}` is not a setting below net.ipv4"))
    }
}

#[cfg(test)]
mod tests {
    use super::sysctl;

    #[test]
    fn a_setting_has_a_name() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(sysctl("net.ipv4.tcp_recovery=0"), pair("tcp_recovery", "0"));
        assert_eq!(sysctl("tcp_rmem=4096 8192 16384"), pair("tcp_rmem", "4096 8192 16384"));
        for text in ["tcp_recovery", "=0", "net.ipv4.=0", "net.ipv6.conf=0", "../ip_forward=1"] {
            assert!(sysctl(text).is_err(), "{text}");
        }
    }
}
