//! `bentpipe model`: what is calculated from formulas.

use bentpipe_engine::atm::sonet::OpticalCarrier;
use bentpipe_engine::units::Bytes;
use bentpipe_study::scenario::size;
use clap::{Args, Subcommand, ValueEnum};

/// A calculation.
#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    /// What ATM over SONET leaves for each layer
    Rates(Rates),
}

const RATES_MORE: &str = "\
Examples:
  bentpipe model rates --line OC-3c --mtu '9180 B'
  bentpipe model rates --line OC-3c --line OC-12c --mtu '1500 B' --transport udp --json

Each rate is the greatest that a line full of datagrams of that length has.";

#[derive(Debug, Args)]
#[command(after_help = RATES_MORE)]
pub(crate) struct Rates {
    /// A SONET line, OC-1 to OC-768c; repeatable
    #[arg(long = "line", value_name = "OC-N", required = true, value_parser = carrier)]
    pub(crate) lines: Vec<OpticalCarrier>,
    /// Length of the IP datagrams; the default is that of IP over ATM (RFC 2225)
    #[arg(long, value_name = "SIZE", default_value = "9180 B", value_parser = datagram)]
    pub(crate) mtu: u32,
    /// What the datagrams carry: 20 B of TCP's headers or 8 B of UDP's, beside 20 B of IP's
    #[arg(long, value_enum, default_value = "tcp")]
    pub(crate) transport: Transport,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    /// Bytes of the headers of IPv4 and of the transport, without options.
    pub(crate) fn headers(self) -> u32 {
        match self {
            Transport::Tcp => 40,
            Transport::Udp => 28,
        }
    }
}

fn carrier(text: &str) -> Result<OpticalCarrier, String> {
    OpticalCarrier::named(text).ok_or_else(|| "expected OC-1, OC-3c, OC-12c, OC-48c, OC-192c or OC-768c".to_owned())
}

/// A datagram that holds headers and at least a byte, and that AAL5 can carry with its LLC/SNAP header.
fn datagram(text: &str) -> Result<u32, String> {
    const LEAST: u64 = 41;
    const MOST: u64 = 65_527;
    let bytes = size(text).map(Bytes::get)?;
    if (LEAST..=MOST).contains(&bytes) { Ok(bytes as u32) } else { Err(format!("expected {LEAST} B to {MOST} B")) }
}
