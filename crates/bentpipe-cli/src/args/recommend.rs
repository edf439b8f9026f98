//! `bentpipe recommend`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;

use super::World;
use crate::complete;

const MORE: &str = "\
Examples:
  bentpipe recommend geo-bursts
  bentpipe recommend geo --size '2 MB' --set links.sat.loss='1 %'
  bentpipe recommend geo-bursts --hosts bbr         hosts with BBR
  bentpipe recommend mine.toml --write with.toml    then: bentpipe run with.toml
  bentpipe recommend mine.toml --write boxes        the gateways' own files too

The scenario describes the bare path: hosts, routers, and the satellite link
between them, which is the link with the longest delay. Candidates:
  hosts as they are   --hosts
  BBR at the hosts    Linux with BBR
  uplink              one box before the satellite link ends TCP; over the link
                      it sends with RACK-TLP and a constant window of one
                      bandwidth-delay product
  link                two boxes with S-LACP between them, for all traffic
  split               two boxes that end TCP, with streams over S-LACP between
                      them
Formulas exclude hopeless candidates; the others are simulated with the same
seeds. The recommendation is the first candidate in this list that, with 95 %
confidence, is not shown to be slower than the fastest, or is slower by at most
--margin. Of several flows, the time of the first transfer counts, which --size
resizes; the others run beside it.";

#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub(crate) struct Recommend {
    #[command(flatten)]
    pub(crate) world: World,
    /// Size of the transfer, e.g. '2 MB' [default: the scenario's]
    #[arg(long, value_name = "SIZE", help_heading = "Scenario")]
    pub(crate) size: Option<String>,
    /// TCP of the hosts: a variant of the profile `linux`, or `scenario` for the scenario's own
    #[arg(long, value_name = "NAME", default_value = "linux-cubic", add = ArgValueCandidates::new(complete::hosts), help_heading = "Scenario")]
    pub(crate) hosts: String,
    /// Number of replications, with successive seeds from the scenario's on
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = super::count(2, super::MAX_RUNS), allow_negative_numbers = true)]
    pub(crate) reps: u32,
    /// Max slowdown of the recommended system compared with the fastest
    #[arg(long, value_name = "SHARE", default_value = "5 %", value_parser = share)]
    pub(crate) margin: f64,
    /// Do not search for path changes that would change the recommendation
    #[arg(long)]
    pub(crate) no_flips: bool,
    /// Runs in parallel; 0: one per core. Results do not depend on it
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = super::threads, allow_negative_numbers = true)]
    pub(crate) threads: usize,
    /// Write the scenario with the recommended system: a file with the ending `toml`, or a
    /// folder, which also gets the files of its gateways
    #[arg(long, value_name = "FILE or DIR", help_heading = "Output")]
    pub(crate) write: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("expected a share with its unit, such as '5 %', not `{text}`");
    let number = text.trim().strip_suffix('%').ok_or_else(wrong)?;
    let percent: f64 = number.trim().parse().map_err(|_| wrong())?;
    if (0.0..=100.0).contains(&percent) { Ok(percent / 100.0) } else { Err(wrong()) }
}
