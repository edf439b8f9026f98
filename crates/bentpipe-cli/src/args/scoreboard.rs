//! `bentpipe scoreboard`.

use std::path::PathBuf;

use clap::Args;

const MORE: &str = "\
Examples:
  bentpipe scoreboard --list                      the links, transports, boxes
  bentpipe scoreboard --only 250/3,'1 %','10 MB'  one transfer, by all of them
  bentpipe scoreboard --only starlink,plain       one link, without boxes
  bentpipe scoreboard --only meo,hybla --conduct  one transport, and its conduct
  bentpipe scoreboard --markdown board.md         the whole board, as a document

A cell is a transfer over a link, by a transport, with or without a box. All
cells of a transfer meet the same fades. Words of --only of one kind are
alternatives (such as two links); words of different kinds are combined.";

#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub(crate) struct Scoreboard {
    /// Links, losses, sizes, transports and boxes; repeatable [default: all]
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Also measure the transports' behaviour: RFC 9743's list on a link of 10/2 Mbit/s, end to end
    #[arg(long)]
    pub(crate) conduct: bool,
    /// Runs of each cell with random events; at least six for a 95 % interval
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = super::count(1_u32, 1000), allow_negative_numbers = true)]
    pub(crate) runs: u32,
    /// Runs in parallel; 0: one per core. Results do not depend on it
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = super::threads, allow_negative_numbers = true)]
    pub(crate) threads: usize,
    /// List the board's links, transports and boxes, without a run
    #[arg(long, conflicts_with_all = ["json", "markdown", "csv", "conduct"])]
    pub(crate) list: bool,
    /// Print JSON instead of tables
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write the board as a Markdown document
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write every cell as a line of CSV
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,
}
