//! Every field of a variant and of [`TcpConfig`], under its name in scenarios.
//!
//! One row per setting: its values, its description, and how to read it from and write it to a configuration.
//! Overrides, their checks, the resolved scenario and the schema all come from these rows.

use bentpipe_engine::tcp::variant::{
    BurstEstimate, CongestionControl, DupThresh, Exit, Growth, PartialAckTimer, PipeForm, Recovery, ReentryGuard,
    Reordering, SlowStartExit, Startup, TimeoutRepair, TimeoutWindow,
};
use bentpipe_engine::tcp::{
    Compress, Daass, EcnOption, EcnUse, GiveUp, Handshake, MAX_SACK_BLOCKS, Resume, RtoFloor, RtoTiming, RttClock,
    SsthreshBase, TcbSharing, TcpConfig, Variant, WindowUnit,
};
use bentpipe_engine::units::{Duration, Rate};

use crate::shape::Counted;

/// The value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A count.
    Count(u64),
    /// A duration.
    Span(Duration),
    /// A rate.
    Rate(Rate),
    /// Bytes.
    Size(u64),
    /// On or off.
    Flag(bool),
    /// A word of the language.
    Word(&'static str),
}

impl Cell {
    fn count(self) -> u32 {
        match self {
            Cell::Count(count) | Cell::Size(count) => u32::try_from(count).unwrap_or(u32::MAX),
            _ => unreachable!("the row's shape lets only counts through"),
        }
    }

    fn span(self) -> Duration {
        match self {
            Cell::Span(span) => span,
            _ => unreachable!("the row's shape lets only spans through"),
        }
    }

    fn flag(self) -> bool {
        match self {
            Cell::Flag(flag) => flag,
            _ => unreachable!("the row's shape lets only flags through"),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Cell::Word(word) => word,
            _ => unreachable!("the row's shape lets only words through"),
        }
    }

    fn retries(self) -> Option<u8> {
        self.count_or_off().map(|count| u8::try_from(count).unwrap_or(u8::MAX))
    }

    fn count_or_off(self) -> Option<u32> {
        (!matches!(self, Cell::Word(_))).then(|| self.count())
    }
}

fn data_or_count(retries: Option<u8>) -> Cell {
    retries.map_or(Cell::Word("data"), |retries| Cell::Count(retries.into()))
}

fn off_or_count(count: Option<u32>) -> Option<Cell> {
    Some(count.map_or(Cell::Word("off"), |count| Cell::Count(count as u64)))
}

/// The allowed values besides the row's words.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Only the words.
    Words,
    /// A whole number.
    Count(Counted),
    /// A duration.
    Span,
    /// A rate.
    Rate,
    /// An amount of data.
    Size {
        /// Least, in bytes.
        min: u64,
        /// Most, in bytes.
        max: u64,
    },
    /// True or false.
    Flag,
}

/// A row.
pub struct Setting {
    /// Path below `tcp`.
    pub key: &'static str,
    /// Its description.
    pub doc: &'static str,
    /// The allowed words.
    pub words: &'static [&'static str],
    /// The other allowed values.
    pub kind: Kind,
    /// Reads the setting; `None` if it has no effect in that configuration.
    pub get: fn(&TcpConfig) -> Option<Cell>,
    /// Writes the setting; false if it has no effect in that configuration.
    pub set: fn(&mut TcpConfig, Cell) -> bool,
}

/// The tables below `tcp`: the part of a key before the dot.
pub(crate) const GROUPS: &[(&str, &str)] = &[
    ("ack", "Delayed ACKs."),
    ("burst", "With `recovery = \"burst-estimate\"`: the burst-loss sender of Minei and Cohen."),
    ("dup_thresh", "Threshold of duplicate ACKs for fast retransmit."),
    ("inflate", "With `recovery = \"inflate\"`: Reno and NewReno."),
    ("pacing", "Pacing: segments leave at a rate instead of in bursts."),
    ("resume", "Careful resume (RFC 9959): what an earlier connection has measured of the path. Not for BBR."),
    ("rto", "Retransmission timeout."),
    ("shortcuts", "Departures from the RFCs in the simulators behind published results. Default: none."),
];

const OFF: &[&str] = &["off"];
const NONE: &[&str] = &[];
const DATA: &[&str] = &["data"];
const RETRIES: Kind = Kind::Count(Counted::new("retries", 0, 255));
const SEGMENTS: Kind = Kind::Count(Counted::new("segments", 1, u32::MAX as u64));
const PERCENT: Kind = Kind::Count(Counted::new("percent", 1, 100_000));

/// A row for a plain field.
macro_rules! row {
    ($key:literal, $doc:expr, $words:expr, $kind:expr, $config:ident . $($field:ident).+ => $out:expr, $cell:ident => $in:expr) => {
        Setting {
            key: $key, doc: $doc, words: $words, kind: $kind,
            get: |$config| { let $config = $config.$($field).+; $out },
            set: |$config, $cell| { $config.$($field).+ = $in; true },
        }
    };
    ($key:literal, $doc:literal, flag $($field:ident).+) => {
        row!($key, $doc, NONE, Kind::Flag, c.$($field).+ => Some(Cell::Flag(c)), cell => cell.flag())
    };
    ($key:literal, $doc:literal, count $kind:expr, $($field:ident).+) => {
        row!($key, $doc, NONE, $kind, c.$($field).+ => Some(Cell::Count(c as u64)), cell => cell.count())
    };
    ($key:literal, $doc:literal, optional $kind:expr, $($field:ident).+) => {
        row!($key, $doc, OFF, $kind, c.$($field).+ => off_or_count(c), cell => cell.count_or_off())
    };
    ($key:literal, $doc:literal, span $($field:ident).+) => {
        row!($key, $doc, NONE, Kind::Span, c.$($field).+ => Some(Cell::Span(c)), cell => cell.span())
    };
    ($key:literal, $doc:literal, words $table:ident, $($field:ident).+) => {
        row!($key, $doc, &$table::WORDS, Kind::Words, c.$($field).+ => Some(Cell::Word($table::word(c))),
            cell => $table::value(cell.word()))
    };
}

/// The words of an enumeration without fields.
macro_rules! words {
    ($table:ident: $type:ty, $($word:literal = $value:path),+) => {
        mod $table {
            use super::*;
            pub(super) const WORDS: [&str; [$($word),+].len()] = [$($word),+];
            pub(super) fn word(value: $type) -> &'static str {
                match value {
                    $($value => $word,)+
                    // Without the feature `ns2`, in a build in which another crate turns on the engine's.
                    #[allow(unreachable_patterns)]
                    _ => unreachable!("no row and no profile has it"),
                }
            }
            pub(super) fn value(word: &str) -> $type {
                $(if word == $word { return $value; })+
                unreachable!("the row's shape lets only its words through")
            }
        }
    };
}

words!(exit: Exit, "first-new-ack" = Exit::FirstNewAck, "recover" = Exit::Recover);
words!(timer: PartialAckTimer, "impatient" = PartialAckTimer::Impatient, "slow-but-steady" = PartialAckTimer::SlowButSteady);
words!(ecn_option: EcnOption, "off" = EcnOption::Off, "changes" = EcnOption::Changes, "always" = EcnOption::Always);
words!(sharing: TcbSharing, "off" = TcbSharing::Off, "ssthresh" = TcbSharing::Ssthresh, "ssthresh-and-rtt" = TcbSharing::SsthreshAndRtt, "resume" = TcbSharing::Resume, "linux" = TcbSharing::Linux);
words!(unit: WindowUnit, "bytes" = WindowUnit::Bytes, "segments" = WindowUnit::Segments);
words!(handshake: Handshake, "three-way" = Handshake::ThreeWay, "one-way" = Handshake::OneWay, "none" = Handshake::None);
#[cfg(feature = "ns2")]
words!(base: SsthreshBase, "flight-size" = SsthreshBase::FlightSize, "window" = SsthreshBase::Window, "whole-window" = SsthreshBase::WholeWindow, "in-force" = SsthreshBase::InForce);
#[cfg(not(feature = "ns2"))]
words!(base: SsthreshBase, "flight-size" = SsthreshBase::FlightSize, "window" = SsthreshBase::Window, "in-force" = SsthreshBase::InForce);

words!(guard: ReentryGuard, "off" = ReentryGuard::Off, "recover" = ReentryGuard::Recover, "credit" = ReentryGuard::Credit);
words!(repair: TimeoutRepair, "go-back" = TimeoutRepair::GoBack, "oldest" = TimeoutRepair::Oldest);
words!(slow_start_exit: SlowStartExit, "loss" = SlowStartExit::Loss, "hystart++" = SlowStartExit::HyStartPlusPlus, "hystart" = SlowStartExit::HyStart, "search" = SlowStartExit::Search);
words!(timeout_window: TimeoutWindow, "one" = TimeoutWindow::One, "in-flight" = TimeoutWindow::InFlight);
words!(timing: RtoTiming, "acks" = RtoTiming::Acks, "segments" = RtoTiming::Segments);
words!(give_up: GiveUp, "count" = GiveUp::Count, "time" = GiveUp::Time);
words!(reordering: Reordering, "rfc8985" = Reordering::Rfc8985, "linux" = Reordering::Linux);
words!(floor: RtoFloor, "timeout" = RtoFloor::Timeout, "variance" = RtoFloor::Variance);

const RECOVERIES: &[&str] = &[
    "restart",
    "inflate",
    "rack",
    "pipe-6675",
    "pipe-3517",
    #[cfg(feature = "ns2")]
    "pipe-ns2",
    "burst-estimate",
];

fn recovery_word(recovery: Recovery) -> &'static str {
    match recovery {
        Recovery::Restart => "restart",
        Recovery::Inflate { .. } => "inflate",
        Recovery::Pipe(PipeForm::Rack) => "rack",
        Recovery::Pipe(PipeForm::Rfc6675) => "pipe-6675",
        Recovery::Pipe(PipeForm::Rfc3517) => "pipe-3517",
        #[cfg(feature = "ns2")]
        Recovery::Pipe(PipeForm::Ns2) => "pipe-ns2",
        Recovery::BurstEstimate(_) => "burst-estimate",
        // As in `words!`.
        #[allow(unreachable_patterns)]
        _ => unreachable!("no row and no profile has it"),
    }
}

fn recovery_from(word: &str, before: Recovery) -> Recovery {
    match word {
        "restart" => Recovery::Restart,
        "rack" => Recovery::Pipe(PipeForm::Rack),
        "pipe-6675" => Recovery::Pipe(PipeForm::Rfc6675),
        "pipe-3517" => Recovery::Pipe(PipeForm::Rfc3517),
        #[cfg(feature = "ns2")]
        "pipe-ns2" => Recovery::Pipe(PipeForm::Ns2),
        "burst-estimate" if matches!(before, Recovery::BurstEstimate(_)) => before,
        "burst-estimate" => Variant::named("burst").expect("a row of the table").recovery,
        // NewReno's fields, unless the row already inflates.
        _ if matches!(before, Recovery::Inflate { .. }) => before,
        _ => Recovery::Inflate { exit: Exit::Recover, deflate: true, timer: PartialAckTimer::Impatient },
    }
}

/// The fields of an inflating recovery.
fn inflate(config: &mut TcpConfig) -> Option<(&mut Exit, &mut bool, &mut PartialAckTimer)> {
    match &mut config.variant.recovery {
        Recovery::Inflate { exit, deflate, timer } => Some((exit, deflate, timer)),
        _ => None,
    }
}

fn inflate_get(config: &TcpConfig, cell: fn(Exit, bool, PartialAckTimer) -> Cell) -> Option<Cell> {
    match config.variant.recovery {
        Recovery::Inflate { exit, deflate, timer } => Some(cell(exit, deflate, timer)),
        _ => None,
    }
}

/// The fields of a burst estimate.
fn estimate(config: &mut TcpConfig) -> Option<&mut BurstEstimate> {
    match &mut config.variant.recovery {
        Recovery::BurstEstimate(cells) => Some(cells),
        _ => None,
    }
}

fn estimate_get(config: &TcpConfig, cell: fn(BurstEstimate) -> Cell) -> Option<Cell> {
    match config.variant.recovery {
        Recovery::BurstEstimate(cells) => Some(cell(cells)),
        _ => None,
    }
}

mod rows;

pub(crate) use rows::SETTINGS;

/// The row with that key.
pub fn setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

#[cfg(test)]
mod tests;
