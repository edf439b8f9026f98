//! The command line and the request of the measured programs.
//!
//! A request is one bidirectional stream with eight bytes, big-endian: the number of bytes that the server sends. The
//! server sends them and closes the stream. The client prints the time in seconds from before its handshake to the last
//! byte. Flow-control windows are [`WINDOW`], so that only congestion control limits the transfer.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

/// Flow-control window in bytes: 16 times the bandwidth-delay product of 20 Mbit/s and 600 ms.
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
        ["fetch", from, bytes, authority] => Ok(Task::Fetch {
            from: from.parse().context("ADDRESS")?,
            bytes: bytes.parse().context("BYTES")?,
            authority: authority.into(),
        }),
        _ => bail!("usage: serve ADDRESS CERTIFICATE KEY | fetch ADDRESS BYTES AUTHORITY"),
    }
}

/// For each option that the program knows, whether it is set in `QUIC_STACK_OPTIONS`, which lists options with commas
/// between them.
///
/// # Errors
/// Fails if an option is set that the program does not know.
pub fn options<const N: usize>(known: [&str; N]) -> Result<[bool; N]> {
    let set = std::env::var("QUIC_STACK_OPTIONS").unwrap_or_default();
    let set: Vec<&str> = set.split(',').filter(|option| !option.is_empty()).collect();
    if let Some(unknown) = set.iter().find(|option| !known.contains(option)) {
        bail!("this stack has no option `{unknown}`");
    }
    Ok(known.map(|option| set.contains(&option)))
}

/// Prints the time since `start`.
///
/// # Errors
/// Fails if `had` is not `bytes`: not all data arrived.
pub fn came(start: Instant, had: u64, bytes: u64) -> Result<()> {
    ensure!(had == bytes, "{had} of {bytes} bytes arrived");
    println!("{:.3}", start.elapsed().as_secs_f64());
    Ok(())
}

/// The requested number of bytes; `None` unless the request has eight bytes.
pub fn asked(request: &[u8]) -> Option<u64> {
    request.try_into().ok().map(u64::from_be_bytes)
}
