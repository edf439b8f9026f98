//! `bentpipe sweep`.

use std::path::PathBuf;

use clap::Args;

const MORE: &str = "\
Examples:
  bentpipe sweep loss.toml           does the missing runs, prints a table
  bentpipe sweep loss.toml --status  shows the progress, also while it runs
  bentpipe sweep loss.toml --json > loss.json

A sweep file, loss.toml:
  scenario = \"geo\"
  variants = [\"sack\", \"newreno\"]
  repetitions = 100
  [set]
  \"flows.download.bytes\" = \"1 MB\"
  [[axes]]
  key = \"links.sat.loss\"
  values = [\"0 %\", \"0.1 %\", \"1 %\"]
  [stop]
  tolerance = \"2 %\"

`bentpipe reference sweep` describes all keys. Each run is stored in the folder
loss.sweep when it ends: Ctrl-C, `kill -9` and a full disk lose none, and the
same command continues. At the end table.parquet in that folder has a line for
each flow of each run. Repetition n has the same seed for all candidates, so
they meet the same fades.";

#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub(crate) struct Sweep {
    /// The sweep file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Folder of the results [default: the file's `output`, or its name with .sweep]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Runs in parallel; 0: one per core. Results do not depend on it
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = super::threads, allow_negative_numbers = true)]
    pub(crate) threads: usize,
    /// Show which runs are done, without a run
    #[arg(long, help_heading = "Output")]
    pub(crate) status: bool,
    /// Print JSON instead of a table
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
