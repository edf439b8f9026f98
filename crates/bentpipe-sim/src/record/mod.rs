//! Results of a run: observers that write them, and summaries for people and programs.
//!
//! Reading order: [`Names`] (what is observed); [`Columns`] (every event as a row); [`Pcap`] (every packet as a
//! capture, seen from [`Tap`]s); [`Sequence`] (the points of plots) and [`Plot`] (their kinds); [`Summary`] (one run in
//! a few numbers); [`Comparison`] (variants with the same seeds); [`Outlook`] (the limits of the links before a run).

mod channels;
#[cfg(feature = "files")]
mod columns;
mod comparison;
mod names;
mod outlook;
#[cfg(feature = "files")]
mod pcap;
mod plots;
mod responses;
mod sequence;
mod summary;
mod tap;

pub use channels::{ChannelSummary, channels};
#[cfg(feature = "files")]
pub use columns::Columns;
pub use comparison::{Comparison, Measure, Ratio, VariantRow};
pub use names::Names;
pub use outlook::{FlowOutlook, Outlook, QueueOutlook};
#[cfg(feature = "files")]
pub use pcap::{Pcap, Snap};
pub use plots::{Guides, Measured, Plot, overlay};
pub use responses::{EntrySummary, ResponseSummary, asking};
pub use sequence::{FlowTrace, Point, QueuePoint, Sequence, WindowPoint};
pub use summary::{DelaySummary, Drops, FlowSummary, LegSummary, LinkSummary, Summary};
pub use tap::{Tap, UnknownTap};
