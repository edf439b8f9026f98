//! Results of a run: observers that write them, and summaries for people and programs.
//!
//! Reading order: [`Columns`] every event as a row; [`Pcap`] every packet as a capture, seen from [`Tap`]s;
//! [`Sequence`] the points of time–sequence plots; [`Summary`] one run in a few numbers; [`Comparison`] variants
//! under the same seeds; [`Outlook`] the limits of the links before a run.

mod channels;
mod columns;
mod comparison;
mod hints;
mod outlook;
mod pcap;
mod sequence;
mod summary;
mod tap;

use std::io;
use std::path::Path;

pub use channels::{ChannelSummary, channels};
pub use columns::Columns;
pub use comparison::{Comparison, Measure, Ratio, VariantRow};
pub use outlook::{FlowOutlook, Outlook, QueueOutlook};
pub use pcap::{Pcap, Snap};
pub use sequence::{FlowTrace, Point, QueuePoint, Sequence, WindowPoint};
pub use summary::{DelaySummary, Drops, FlowSummary, LegSummary, LinkSummary, Summary};
pub use tap::{Tap, UnknownTap};

/// The same error with the file in its message, unless it is already there.
fn named(path: &Path, error: io::Error) -> io::Error {
    let (text, path) = (error.to_string(), path.display().to_string());
    if text.contains(&path) { error } else { io::Error::new(error.kind(), format!("{path}: {text}")) }
}
