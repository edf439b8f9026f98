//! Estimates a path from measurements: a capture of a TCP transfer, or a ping log.
//!
//! Each figure has an interval, is a bound, or comes with the reason why it is unknown. The crate does not depend on a simulator: it is
//! tested with simulated captures, and must not know their true parameters.
//!
//! # Example
//!
//! ```
//! use std::io;
//! use std::path::Path;
//!
//! use bentpipe_fit::{Bytes, Fit, fit_with};
//!
//! // Five pings a second; every tenth is lost.
//! let log: String = (1..=200)
//!     .filter(|number| number % 10 != 0)
//!     .map(|number| format!("[{:.1}] 64 bytes from 192.0.2.1: icmp_seq={number} ttl=50 time=600 ms\n", 0.2 * number as f64))
//!     .collect();
//! let open = || -> io::Result<Bytes> { Ok(Box::new(io::Cursor::new(log.clone()))) };
//! let Fit::Pings(pings) = fit_with(Path::new("pings.txt"), &open).expect("a log of pings") else { panic!("no capture") };
//! assert_eq!(pings.median.value(), Some(0.6));
//! ```
//!
//! # Files
//!
//! [`fit`], [`fit_until`] and [`fit_with`] are the entry points. `capture`, `link_layer` and `header` read packets, `choice` finds the
//! transfer, `ledger` follows its segments, and `view` turns them into times in the queue. `limit` determines what
//! limited the sender. `rate`, `round_trip`, `queue`, `trials` and [`losses`] make the estimates. `ping` reads ping
//! logs, and `scenario` writes a scenario that behaves like the path.
#![forbid(unsafe_code)]

mod capture;
mod choice;
mod empty;
mod error;
mod estimate;
mod header;
mod in_order;
mod ledger;
mod limit;
mod link_layer;
pub mod losses;
mod ping;
mod queue;
mod rate;
mod round_trip;
mod scenario;
mod transfer;
mod trials;
mod view;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Serialize;

pub use error::FitError;
pub use estimate::{CONFIDENCE, Estimate};
pub use ping::{Pings, Steps};
pub use scenario::scenario;
pub use transfer::Transfer;

/// The first bytes of pcapng, and of pcap in either byte order with microseconds or nanoseconds.
const CAPTURES: [[u8; 4]; 6] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0x34, 0xcd, 0xb2, 0xa1],
];

/// First bytes of compressed files, and the tool that unpacks them.
const COMPRESSED: [(&[u8], &str); 3] =
    [(&[0x1f, 0x8b], "gzip"), (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"), (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz")];

/// What a file says of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum Fit {
    /// A capture of a transfer.
    Transfer(Transfer),
    /// A ping log.
    Pings(Pings),
}

impl Fit {
    /// Round trips over time, as pairs of seconds since the start and round trip in seconds.
    pub fn round_trips(&self) -> &[(f64, f64)] {
        match self {
            Fit::Transfer(transfer) => &transfer.round_trips,
            Fit::Pings(pings) => &pings.round_trips,
        }
    }
}

/// Estimates the path behind a capture (pcap, pcapng) or a ping log (`ping -D`). The file is read as often as needed,
/// but never held in memory as a whole.
///
/// # Errors
/// Fails if the file cannot be read, is damaged, or contains nothing that can be used. The message gives the file, the
/// position, and what was expected.
pub fn fit(path: &Path) -> Result<Fit, FitError> {
    fit_until(path, || false)
}

/// Like [`fit`], but reads no further once `stop` returns true.
///
/// # Errors
/// As [`fit`]; [`FitError::Io`] if it was stopped.
pub fn fit_until(path: &Path, stop: fn() -> bool) -> Result<Fit, FitError> {
    let io = |error| FitError::Io { path: path.to_owned(), error };
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        let message = "expected a regular file, which can be read twice".to_owned();
        return Err(FitError::Nothing { path: path.to_owned(), message });
    }
    fit_with(path, &|| Ok(Box::new(Until { file: File::open(path)?, stop })))
}

/// A file that cannot be read any more once `stop` returns true.
struct Until {
    file: File,
    stop: fn() -> bool,
}

impl Read for Until {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if (self.stop)() { Err(io::Error::other("stopped")) } else { self.file.read(bytes) }
    }
}

/// The bytes of a source, from its beginning.
pub type Bytes = Box<dyn Read + Send>;

/// Like [`fit`], for a source that is not a file: each call of `open` returns all its bytes. `path` is its name in
/// messages.
///
/// # Errors
/// Fails if `open` fails, or if the source is damaged or contains nothing that can be used.
pub fn fit_with(path: &Path, open: &dyn Fn() -> io::Result<Bytes>) -> Result<Fit, FitError> {
    let open = || open().map_err(|error| FitError::Io { path: path.to_owned(), error });
    let mut first = Vec::new();
    let read = open()?.take(6).read_to_end(&mut first);
    read.map_err(|error| FitError::Io { path: path.to_owned(), error })?;
    let unusable = |message: String| Err(FitError::Nothing { path: path.to_owned(), message });
    if first.is_empty() {
        return unusable("the file is empty: expected a capture (pcap, pcapng) or a log of `ping -D`".to_owned());
    }
    if let Some((_, tool)) = COMPRESSED.iter().find(|(magic, _)| first.starts_with(magic)) {
        return unusable(format!("the file is compressed: unpack it first (`{tool} -d`)"));
    }
    if CAPTURES.iter().any(|magic| first.starts_with(magic)) {
        return transfer::fit(path, &open).map(Fit::Transfer);
    }
    ping::fit(path, open()?).map(Fit::Pings)
}

/// Opens the source again.
type Open<'a> = &'a dyn Fn() -> Result<Bytes, FitError>;
