//! `bentpipe fit`.

use std::path::PathBuf;

use clap::Args;

const MORE: &str = "\
Examples:
  tcpdump -i eth0 -s 128 -w transfer.pcap tcp   then: bentpipe fit transfer.pcap
  ping -D -i 0.2 192.0.2.1 > pings.txt          then: bentpipe fit pings.txt
  bentpipe fit transfer.pcap --write path.toml  then: bentpipe run path.toml
  bentpipe fit transfer.pcap --json | jq .rate

A capture may be taken near the sender or near the receiver; its largest
transfer is used. Each figure has a 95 % interval, or the reason why this file
does not show it. Method and limits: docs/howto/fit.md.";

#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub(crate) struct Fit {
    /// A capture (pcap, pcapng) of a TCP transfer, or the output of `ping -D`
    #[arg(value_name = "CAPTURE")]
    pub(crate) capture: PathBuf,
    /// Write a scenario that behaves like the path, .toml
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Print JSON instead of a table, with the round trips over time
    #[arg(long)]
    pub(crate) json: bool,
}
