//! `bentpipe recommend`.

use std::path::PathBuf;

use clap::Args;

use super::World;

const MORE: &str = "\
Examples:
  bentpipe recommend geo-bursts
  bentpipe recommend geo --size '2 MB' --set links.sat.loss='1 %'
  bentpipe recommend my-link.toml --write with.toml   then: bentpipe run with.toml

The scenario describes the bare path: hosts, gateways, and the satellite link between them,
which is the link with the longest delay. What is tried on it:
  plain TCP        as the scenario has it
  S-LACP           a layer under IP over the satellite link, for all traffic
  split            connections split at the gateways, over the satellite a sender that
                   repairs bursts, with a window of one bandwidth-delay product
  split + S-LACP   both
Formulas leave out what is hopeless; the others are simulated under the same seeds. Chosen is
the one highest in this list that is as good as the fastest: not slower by more than the
margin, with 95 % confidence.";

#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub(crate) struct Recommend {
    #[command(flatten)]
    pub(crate) world: World,
    /// Length of the transfer, e.g. '2 MB', instead of the scenario's
    #[arg(long, value_name = "SIZE", help_heading = "Scenario")]
    pub(crate) size: Option<String>,
    /// Replications: seeds from the scenario's on
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) reps: u32,
    /// What a system may be slower than the fastest and still be as good, e.g. '5 %'
    #[arg(long, value_name = "SHARE", default_value = "5 %", value_parser = share)]
    pub(crate) margin: f64,
    /// Do not look for where the answer turns
    #[arg(long)]
    pub(crate) no_flips: bool,
    /// Runs at the same time; 0: as many as there are cores. Results do not depend on it
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Write the scenario with what is recommended
    #[arg(long, value_name = "FILE", help_heading = "Output")]
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
