//! Settings that a gateway has both in a scenario's `[[gateways]]` and in its own file: their keys, bounds and defaults.

pub mod uplink;

use std::ops::RangeInclusive;

use bentpipe_engine::units::{Bytes, Duration, Rate};

use super::error::Problems;
use super::reader::{Item, View};
use super::shape::{Counted, Field, Shape, field};

/// Default of `reordering`.
pub const REORDERING_DEFAULT: u64 = 3;
/// Default of `max_streams`.
pub const STREAMS_DEFAULT: u32 = 16_384;
/// Default of `memory`.
pub const MEMORY_DEFAULT: Bytes = Bytes::new(256 << 20);
const MTU_DEFAULT: u16 = 1500;

const REORDERED_FRAMES: Counted = Counted::new("frames", 0, 1000);
const CONNECTIONS: Counted = Counted::new("connections", 1, 1_000_000);
/// IPv6's minimum MTU (RFC 8200 §5), and the longest IP packet.
pub const MTU: RangeInclusive<u64> = 1280..=65_535;
/// The minimum for one stream's window, with room for a few.
const MIN_MEMORY: u64 = 4 << 20;

/// The key `reordering`.
pub const REORDERING: Field = field(
    "reordering",
    Shape::Count(REORDERED_FRAMES),
    "A frame counts as lost once another arrives that was sent this many frames later, or more than a quarter of a round trip later. 0 is as 1. Default: 3.",
);
/// The key `shared`.
pub const SHARED: Field = field(
    "shared",
    Shape::Flag,
    "True if the link also carries other traffic: the sender then finds its share, and `rate` is the upper bound. Default: false.",
);

/// A word that `throughput_advice` may be instead of a rate.
const LINE: &[&str] = &["line"];
/// Values of `throughput_advice`.
pub const ADVICE: Shape = Shape::Any(&[Shape::RATE, Shape::Choice(LINE)]);

/// The rate that a box of shape `link` writes into the SCONE packets (draft-ietf-scone-protocol) that it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The rate at which it may send.
    Line,
    /// This rate.
    Rate(Rate),
}

impl Advice {
    /// The rate advised by a box that may send at `line`.
    pub fn rate(self, line: Rate) -> Rate {
        match self {
            Advice::Line => line,
            Advice::Rate(rate) => rate,
        }
    }
}

/// The key `max_streams`, with its description.
pub const fn max_streams_field(doc: &'static str) -> Field {
    field("max_streams", Shape::Count(CONNECTIONS), doc)
}

/// Reads `reordering`.
pub fn reordering(view: &View<'_>, problems: &mut Problems) -> Option<u64> {
    view.get("reordering").map_or(Some(REORDERING_DEFAULT), |item| item.count(REORDERED_FRAMES, problems))
}

/// Reads `shared`.
pub fn shared(view: &View<'_>, problems: &mut Problems) -> Option<bool> {
    view.get("shared").map_or(Some(false), |item| item.flag(problems))
}

/// Reads `max_streams`.
pub fn max_streams(view: &View<'_>, problems: &mut Problems) -> Option<u32> {
    let Some(item) = view.get("max_streams") else { return Some(STREAMS_DEFAULT) };
    item.count(CONNECTIONS, problems).map(|count| count as u32)
}

/// Reads `throughput_advice`.
pub fn throughput_advice(item: &Item<'_>, problems: &mut Problems) -> Option<Advice> {
    match item.as_text() {
        Some(word) if word == LINE[0] => Some(Advice::Line),
        // Text that begins with a digit is reported as a wrong rate, other text as a wrong word.
        Some(word) if !word.starts_with(|c: char| c.is_ascii_digit()) => {
            item.refuse(problems, format!("`{}` cannot be \"{word}\"", item.path), Some(ADVICE.expected()));
            None
        }
        _ => item.rate(problems).map(Advice::Rate),
    }
}

/// Reads `memory`.
pub fn memory(view: &View<'_>, problems: &mut Problems) -> Option<Bytes> {
    let Some(item) = view.get("memory") else { return Some(MEMORY_DEFAULT) };
    let memory = item.size(problems)?;
    if memory.get() < MIN_MEMORY {
        item.refuse(problems, "this is less than one connection needs", Some("4 MiB or more".to_owned()));
        return None;
    }
    Some(memory)
}

/// Reads `mtu`.
pub fn mtu(view: &View<'_>, problems: &mut Problems) -> Option<u16> {
    let Some(item) = view.get("mtu") else { return Some(MTU_DEFAULT) };
    let mtu = item.size(problems)?.get();
    if !MTU.contains(&mtu) {
        let message = format!("`{}` must be from {} B to {} B", item.path, MTU.start(), MTU.end());
        item.refuse(problems, message, Some("a length such as \"1500 B\"".to_owned()));
        return None;
    }
    u16::try_from(mtu).ok()
}

/// A duration above zero.
pub fn positive(item: &Item<'_>, problems: &mut Problems) -> Option<Duration> {
    let duration = item.duration(problems)?;
    if duration == Duration::ZERO {
        item.refuse(problems, format!("`{}` cannot be zero", item.path), Some(Shape::DURATION.expected()));
        return None;
    }
    Some(duration)
}
