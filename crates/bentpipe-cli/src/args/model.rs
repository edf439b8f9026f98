//! The arguments of `bentpipe model`.

use bentpipe_engine::atm::sonet::OpticalCarrier;
use bentpipe_engine::units::Bytes;
use bentpipe_study::scenario::size;
use clap::{Args, Subcommand, ValueEnum};

use super::key_and_value;

/// A calculation.
#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    /// Rates of each layer of IP over ATM over SONET
    Rates(Rates),
    /// TCP split at a satellite gateway: throughput, windows and buffers
    Hybrid(Hybrid),
}

/// Datagrams of IP over ATM (RFC 2225).
const MTU: &str = "9180 B";

const RATES_MORE: &str = "\
Examples:
  bentpipe model rates --line OC-3c --mtu '9180 B'
  bentpipe model rates --line OC-3c --line OC-12c --transport udp --json

Each rate is the maximum for a line full of datagrams of that length.";

#[derive(Debug, Args)]
#[command(after_help = RATES_MORE)]
pub(crate) struct Rates {
    /// A SONET line, OC-1 to OC-768c; repeatable
    #[arg(long = "line", value_name = "OC-N", required = true, value_parser = carrier)]
    pub(crate) lines: Vec<OpticalCarrier>,
    /// Length of the IP datagrams; the default is that of IP over ATM (RFC 2225)
    #[arg(long, value_name = "SIZE", default_value = MTU, value_parser = datagram)]
    pub(crate) mtu: u32,
    /// Transport of the datagrams: TCP (20 B of headers) or UDP (8 B), plus 20 B of IP
    #[arg(long, value_enum, default_value = "tcp")]
    pub(crate) transport: Transport,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

impl Rates {
    /// The arguments with these values; `None` is the default.
    pub(crate) fn of(lines: &[String], mtu: Option<&str>, transport: Option<&str>) -> Result<Rates, String> {
        if lines.is_empty() {
            return Err("there is no line; expected OC-1 to OC-768c".to_owned());
        }
        Ok(Rates {
            lines: lines
                .iter()
                .map(|line| carrier(line).map_err(|why| format!("line `{line}`: {why}")))
                .collect::<Result<_, _>>()?,
            mtu: datagram(mtu.unwrap_or(MTU)).map_err(|why| format!("mtu: {why}"))?,
            transport: Transport::from_str(transport.unwrap_or("tcp"), false)
                .map_err(|_| "transport: expected tcp or udp".to_owned())?,
            json: true,
        })
    }
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

/// A datagram with headers and at least one byte that AAL5 can carry with its LLC/SNAP header.
fn datagram(text: &str) -> Result<u32, String> {
    const MIN: u64 = 41;
    const MAX: u64 = 65_527;
    let bytes = size(text).map(Bytes::get)?;
    if (MIN..=MAX).contains(&bytes) { Ok(bytes as u32) } else { Err(format!("expected {MIN} B to {MAX} B")) }
}

/// Defaults of the hybrid model: the paper's numerical examples.
pub(crate) mod hybrid {
    pub(crate) const RATE: &str = "1 Mbit/s";
    pub(crate) const PACKET: &str = "500 B";
    pub(crate) const SEGMENTS: &str = "1";
}

const HYBRID_MORE: &str = "\
Examples:
  bentpipe model hybrid --buffer '50 packets' --t1 '100 ms' --t2 '250 ms' \\
      --loss '10 %'
  bentpipe model hybrid --t1 '100 ms' --t2 '500 ms' --loss '10 %' \\
      --sweep buffer='10 packets..200 packets:10 packets'
  bentpipe model hybrid --buffer '50 packets' --t1 '100 ms' --t2 '250 ms' \\
      --sweep loss=0.1..0.5:0.05 --json

A sweep is FROM..TO:STEP, both ends included, or A,B,C. Its key is one of
buffer, t1, t2, rate, packet, loss, segments. The equations are those of the
paper `hybrid` (see `bentpipe reproduce --help`).";

#[derive(Debug, Args)]
#[command(after_help = HYBRID_MORE)]
pub(crate) struct Hybrid {
    /// Gateway buffer, for waiting and unacknowledged TCP packets: '50 packets'
    #[arg(long, value_name = "PACKETS", help_heading = "Path")]
    pub(crate) buffer: Option<String>,
    /// Round trip of the terrestrial part: '100 ms'
    #[arg(long, value_name = "TIME", help_heading = "Path")]
    pub(crate) t1: Option<String>,
    /// Round trip of the satellite part: '250 ms'
    #[arg(long, value_name = "TIME", help_heading = "Path")]
    pub(crate) t2: Option<String>,
    /// Probability that a link-layer packet is lost: '10 %'
    #[arg(long, value_name = "PROBABILITY", help_heading = "Path")]
    pub(crate) loss: Option<String>,
    /// Rate of the satellite link
    #[arg(long, value_name = "RATE", default_value = hybrid::RATE, help_heading = "Path")]
    pub(crate) rate: String,
    /// Length of a TCP packet on the satellite link
    #[arg(long, value_name = "BYTES", default_value = hybrid::PACKET, help_heading = "Path")]
    pub(crate) packet: String,
    /// Link-layer packets per TCP packet
    #[arg(long, value_name = "N", default_value = hybrid::SEGMENTS, help_heading = "Path")]
    pub(crate) segments: String,
    /// Evaluate several values of one parameter
    #[arg(long, value_name = "KEY=VALUES", value_parser = key_and_value)]
    pub(crate) sweep: Option<(String, String)>,
    /// Print JSON, {"points": [..]}, instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}
