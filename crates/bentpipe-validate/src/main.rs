//! Agreement with other programs. Exit status 0 only if every row agrees.

mod draw;
mod ns2;
mod reference;
mod rfc;
mod show;
mod starlink;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Holds the simulator against other programs", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare with ns-2's results in a table like validation/ns2/reference.csv
    Ns2 {
        /// The table
        csv: PathBuf,
        /// Rerun the real `ns` on this many of the rows (0: none)
        #[arg(long, default_value_t = 0)]
        rerun: usize,
        /// The Tcl script for `ns`
        #[arg(long, default_value = "validation/ns2/scenario.tcl")]
        script: PathBuf,
        /// Print only the events of the scenario with this id
        #[arg(long)]
        show: Option<String>,
    },
    /// Compare with the real `ns` on scenarios of round numbers and on random ones
    Ns2Explore {
        /// Number of random scenarios
        #[arg(long, default_value_t = 100)]
        count: u64,
        /// Seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Print only the events of this one, and the command that runs it in `ns`
        #[arg(long)]
        show: Option<u64>,
        /// Start time on ns's clock, seconds; 0 shows how its rounding breaks ties
        #[arg(long, default_value_t = ns2::EPOCH)]
        epoch: f64,
        /// The Tcl script for `ns`
        #[arg(long, default_value = "validation/ns2/scenario.tcl")]
        script: PathBuf,
    },
    /// Compare the scenario `starlink` with recordings; exit status 0 if round trips are as recorded
    Starlink {
        /// Folder with the recordings (validation/starlink/README.md)
        data: PathBuf,
        /// The scenario
        #[arg(long, default_value = "scenarios/starlink.toml")]
        scenario: PathBuf,
        /// What `ping -D` printed over `bentpipe shell starlink`
        #[arg(long)]
        pings: Option<PathBuf>,
        /// What `iperf3 --json` printed of a download over it; repeatable
        #[arg(long)]
        download: Vec<PathBuf>,
        /// What `iperf3 --json` printed of an upload over it; repeatable
        #[arg(long)]
        upload: Vec<PathBuf>,
        /// Draw the distributions into this SVG file
        #[arg(long)]
        picture: Option<PathBuf>,
    },
    /// Check the quotations of RFCs in this repository against digests of the RFCs
    Quotations {
        /// The repository
        #[arg(default_value = ".")]
        root: PathBuf,
    },
    /// Make the digests for checking quotations
    RfcDigest {
        /// Folder with texts from the RFC editor, rfcN.txt
        texts: PathBuf,
        /// Output folder
        #[arg(long, default_value = "validation/rfc")]
        out: PathBuf,
    },
}

fn main() -> ExitCode {
    let agrees = match Arguments::parse().command {
        Command::Ns2 { csv, show: Some(id), .. } => ns2::show(&csv, &id),
        Command::Ns2 { csv, rerun, script, show: None } => ns2::validate(&csv, rerun, &script),
        Command::Starlink { data, scenario, pings, download, upload, picture } => {
            let emulated = starlink::Emulated { pings, downloads: download, uploads: upload };
            starlink::compare(&scenario, &data, &emulated, picture.as_deref())
        }
        Command::Quotations { root } => rfc::check(&root),
        Command::RfcDigest { texts, out } => rfc::make(&texts, &out),
        Command::Ns2Explore { seed, show: Some(n), epoch, script, .. } => ns2::show_drawn(seed, n, epoch, &script),
        Command::Ns2Explore { count, seed, epoch, script, show: None } => ns2::explore(count, seed, epoch, &script),
    };
    match agrees {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
