//! What the measured programs share: the command line and the request.
//!
//! A request is one bidirectional stream with eight bytes, big-endian: how many bytes the server shall send. The server
//! sends them and closes the stream. The client prints the seconds from before its handshake to the last byte. Flow control windows are [`WINDOW`], so that congestion control decides.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

/// Bytes of each flow control window: 16 times the bandwidth-delay product of 20 Mbit/s and 600 ms is 24 MB.
pub const WINDOW: u32 = 24_000_000;
pub const PROTOCOL: &[u8] = b"measure";
/// The name in the server's certificate.
pub const NAME: &str = "server";

pub enum Task {
    Serve { at: SocketAddr, certificate: PathBuf, key: PathBuf },
    Fetch { from: SocketAddr, bytes: u64, authority: PathBuf },
}

/// Reads `serve ADDRESS CERTIFICATE KEY` or `fetch ADDRESS BYTES AUTHORITY`.
pub fn task() -> Result<Task> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", at, certificate, key] => {
            Ok(Task::Serve { at: at.parse().context("ADDRESS")?, certificate: certificate.into(), key: key.into() })
        }
        ["fetch", from, bytes, authority] => {
            Ok(Task::Fetch { from: from.parse().context("ADDRESS")?, bytes: bytes.parse().context("BYTES")?, authority: authority.into() })
        }
        _ => bail!("usage: serve ADDRESS CERTIFICATE KEY | fetch ADDRESS BYTES AUTHORITY"),
    }
}

/// Prints the time since `start`, once `had` shows that everything came.
pub fn came(start: Instant, had: u64, bytes: u64) -> Result<()> {
    ensure!(had == bytes, "{had} of {bytes} bytes came");
    println!("{:.3}", start.elapsed().as_secs_f64());
    Ok(())
}

/// The number of bytes asked for, once all eight bytes are there.
pub fn asked(request: &[u8]) -> Option<u64> {
    request.try_into().ok().map(u64::from_be_bytes)
}
