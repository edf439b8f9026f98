//! Every cell of a variant and every field of [`TcpConfig`] under the name by which a scenario calls it.
//!
//! One row per setting: what may be written, what it means, how it is read out of a configuration and put into one.
//! Overrides, their checks, the resolved scenario and the schema all come from these rows.

use bentpipe_engine::tcp::variant::{DupThresh, Exit, Growth, PartialAckTimer, PipeForm, Recovery, Startup};
use bentpipe_engine::tcp::{
    Daass, Handshake, MAX_SACK_BLOCKS, RttClock, SsthreshBase, TcbSharing, TcpConfig, WindowUnit,
};
use bentpipe_engine::units::Duration;

use super::shape::Counted;

/// The value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A count.
    Count(u64),
    /// A span of time.
    Span(Duration),
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

    fn count_or_off(self) -> Option<u32> {
        (!matches!(self, Cell::Word(_))).then(|| self.count())
    }
}

fn off_or_count(count: Option<u32>) -> Option<Cell> {
    Some(count.map_or(Cell::Word("off"), |count| Cell::Count(count as u64)))
}

/// What a value that is not one of the row's words can be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Only the words.
    Words,
    Count(Counted),
    Span,
    Size {
        min: u64,
        max: u64,
    },
    Flag,
}

/// A row.
pub(crate) struct Setting {
    /// Path below `tcp`.
    pub(crate) key: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) words: &'static [&'static str],
    pub(crate) kind: Kind,
    /// `None` where the setting means nothing in that configuration.
    pub(crate) get: fn(&TcpConfig) -> Option<Cell>,
    /// False where the setting means nothing in that configuration.
    pub(crate) set: fn(&mut TcpConfig, Cell) -> bool,
}

const OFF: &[&str] = &["off"];
const NONE: &[&str] = &[];
const SEGMENTS: Kind = Kind::Count(Counted::new("segments", 1, u32::MAX as u64));

/// A row for a plain field.
macro_rules! row {
    ($key:literal, $doc:literal, $words:expr, $kind:expr, $config:ident . $($field:ident).+ => $out:expr, $cell:ident => $in:expr) => {
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
                match value { $($value => $word),+ }
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
words!(sharing: TcbSharing, "off" = TcbSharing::Off, "ssthresh" = TcbSharing::Ssthresh, "ssthresh-and-rtt" = TcbSharing::SsthreshAndRtt);
words!(unit: WindowUnit, "bytes" = WindowUnit::Bytes, "segments" = WindowUnit::Segments);
words!(handshake: Handshake, "three-way" = Handshake::ThreeWay, "one-way" = Handshake::OneWay, "none" = Handshake::None);
words!(base: SsthreshBase, "flight-size" = SsthreshBase::FlightSize, "window" = SsthreshBase::Window, "whole-window" = SsthreshBase::WholeWindow);

const RECOVERIES: [&str; 5] = ["restart", "inflate", "pipe-6675", "pipe-3517", "pipe-ns2"];

fn recovery_word(recovery: Recovery) -> &'static str {
    match recovery {
        Recovery::Restart => "restart",
        Recovery::Inflate { .. } => "inflate",
        Recovery::Pipe(PipeForm::Rfc6675) => "pipe-6675",
        Recovery::Pipe(PipeForm::Rfc3517) => "pipe-3517",
        Recovery::Pipe(PipeForm::Ns2) => "pipe-ns2",
    }
}

fn recovery_from(word: &str, before: Recovery) -> Recovery {
    match word {
        "restart" => Recovery::Restart,
        "pipe-6675" => Recovery::Pipe(PipeForm::Rfc6675),
        "pipe-3517" => Recovery::Pipe(PipeForm::Rfc3517),
        "pipe-ns2" => Recovery::Pipe(PipeForm::Ns2),
        // NewReno's cells, unless the row inflates already.
        _ if matches!(before, Recovery::Inflate { .. }) => before,
        _ => Recovery::Inflate { exit: Exit::Recover, deflate: true, timer: PartialAckTimer::Impatient },
    }
}

/// The cells of an inflating recovery.
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

/// All rows. Order matters: a row may depend on what an earlier one has set (`inflate.*` on `recovery`).
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        key: "fixed_window",
        doc: "A window fixed from the first segment on, in segments: no slow start, no congestion avoidance.",
        words: OFF,
        kind: SEGMENTS,
        get: |c| match c.variant.startup {
            Startup::SlowStart => Some(Cell::Word("off")),
            Startup::FixedWindow(window) => Some(Cell::Count(window as u64)),
        },
        set: |c, cell| {
            c.variant.startup = cell.count_or_off().map_or(Startup::SlowStart, Startup::FixedWindow);
            true
        },
    },
    row!("initial_window", "Initial window in segments (RFC 6928: 10).", count SEGMENTS, variant.initial_window),
    Setting {
        key: "byte_counting",
        doc: "Slow start grows by the bytes acknowledged, at most this many segments per ACK (L of RFC 3465); off: by \
              one segment per ACK whatever it acknowledges.",
        words: OFF,
        kind: SEGMENTS,
        get: |c| match c.variant.growth {
            Growth::PerAck => Some(Cell::Word("off")),
            Growth::Bytes(limit) => Some(Cell::Count(limit as u64)),
        },
        set: |c, cell| {
            c.variant.growth = cell.count_or_off().map_or(Growth::PerAck, Growth::Bytes);
            true
        },
    },
    row!("dup_thresh.count", "Duplicate ACKs that mean loss (RFC 5681: 3).",
        count Kind::Count(Counted::new("ACKs", 1, 1000)), variant.dup_thresh.count),
    Setting {
        key: "dup_thresh.window_fraction",
        doc: "ns-2's numdupacksFrac_: at least the congestion window divided by this.",
        words: OFF,
        kind: Kind::Count(Counted::new("", 1, u32::MAX as u64)),
        get: |c| off_or_count(c.variant.dup_thresh.window_fraction),
        set: |c, cell| {
            let DupThresh { window_fraction, .. } = &mut c.variant.dup_thresh;
            *window_fraction = cell.count_or_off();
            true
        },
    },
    Setting {
        key: "recovery",
        doc: "Repair of losses: from the loss on again (Tahoe), inflated window (Reno, NewReno), SACK pipe.",
        words: &RECOVERIES,
        kind: Kind::Words,
        get: |c| Some(Cell::Word(recovery_word(c.variant.recovery))),
        set: |c, cell| {
            c.variant.recovery = recovery_from(cell.word(), c.variant.recovery);
            true
        },
    },
    Setting {
        key: "inflate.exit",
        doc: "What ends the inflated window: Reno's first new ACK, or NewReno's ACK of all that was sent before.",
        words: &exit::WORDS,
        kind: Kind::Words,
        get: |c| inflate_get(c, |exit, _, _| Cell::Word(exit::word(exit))),
        set: |c, cell| inflate(c).map(|(exit, ..)| *exit = exit::value(cell.word())).is_some(),
    },
    Setting {
        key: "inflate.deflate",
        doc: "Take back the inflation by what a partial ACK acknowledges (RFC 6582 §3.2 step 3B).",
        words: NONE,
        kind: Kind::Flag,
        get: |c| inflate_get(c, |_, deflate, _| Cell::Flag(deflate)),
        set: |c, cell| inflate(c).map(|(_, deflate, _)| *deflate = cell.flag()).is_some(),
    },
    Setting {
        key: "inflate.timer",
        doc: "Which partial ACKs restart the retransmission timer (RFC 6582 §4).",
        words: &timer::WORDS,
        kind: Kind::Words,
        get: |c| inflate_get(c, |_, _, timer| Cell::Word(timer::word(timer))),
        set: |c, cell| inflate(c).map(|(.., timer)| *timer = timer::value(cell.word())).is_some(),
    },
    row!("sack", "Negotiate SACK (RFC 2018).", flag variant.sack),
    row!("limited_transmit", "A new segment on each of the first two duplicate ACKs (RFC 3042).", flag variant.limited_transmit),
    row!("frto", "Find spurious timeouts (RFC 5682).", flag variant.frto),
    row!("max_burst", "Most segments sent in answer to one ACK.", optional SEGMENTS, variant.max_burst),
    Setting {
        key: "mss",
        doc: "Most bytes of payload in a segment; 65495 is what an IPv4 packet of 65535 bytes leaves.",
        words: NONE,
        kind: Kind::Size { min: 1, max: 65_495 },
        get: |c| Some(Cell::Size(c.mss as u64)),
        set: |c, cell| {
            c.mss = u16::try_from(cell.count()).unwrap_or(u16::MAX);
            true
        },
    },
    row!("ack.delay", "An ACK waits at most this long; zero acknowledges every segment.", span ack.delay),
    row!("ack.every", "Every n-th in-order segment is acknowledged at once (RFC 5681 §4.2: 2).",
        count Kind::Count(Counted::new("segments", 1, 1_000_000)), ack.every),
    Setting {
        key: "ack.daass",
        doc: "Delayed ACKs after slow start (RFC 2760 §3.2.3): no delay for so many segments, or until the first gap.",
        words: &["off", "slow-start"],
        kind: SEGMENTS,
        get: |c| {
            Some(match c.ack.daass {
                Daass::Off => Cell::Word("off"),
                Daass::SlowStart => Cell::Word("slow-start"),
                Daass::FirstSegments(count) => Cell::Count(count as u64),
            })
        },
        set: |c, cell| {
            c.ack.daass = match cell {
                Cell::Word("slow-start") => Daass::SlowStart,
                Cell::Word(_) => Daass::Off,
                count => Daass::FirstSegments(count.count()),
            };
            true
        },
    },
    row!("rto.initial", "Timeout before the first sample (RFC 6298 §2.1: 1 s).", span rto.initial),
    row!("rto.min", "Least timeout before backoff (RFC 6298 §2.4: 1 s).", span rto.min),
    row!("rto.max", "Greatest timeout (RFC 6298 §2.5: at least 60 s).", span rto.max),
    Setting {
        key: "rto.tick",
        doc: "Measure round trips in whole ticks of this length (4.3BSD: 500 ms); off: exactly.",
        words: OFF,
        kind: Kind::Span,
        get: |c| {
            Some(match c.rto.clock {
                RttClock::Exact => Cell::Word("off"),
                RttClock::Ticks { tick, .. } => Cell::Span(tick),
            })
        },
        set: |c, cell| {
            c.rto.clock = match (cell, c.rto.clock) {
                (Cell::Span(tick), RttClock::Ticks { phase, fire_on_tick, .. }) => {
                    RttClock::Ticks { tick, phase, fire_on_tick }
                }
                (Cell::Span(tick), RttClock::Exact) => {
                    RttClock::Ticks { tick, phase: Duration::ZERO, fire_on_tick: false }
                }
                _ => RttClock::Exact,
            };
            true
        },
    },
    Setting {
        key: "rto.phase",
        doc: "Where in a tick the host was started.",
        words: NONE,
        kind: Kind::Span,
        get: |c| match c.rto.clock {
            RttClock::Ticks { phase, .. } => Some(Cell::Span(phase)),
            RttClock::Exact => None,
        },
        set: |c, cell| match &mut c.rto.clock {
            RttClock::Ticks { phase, .. } => {
                *phase = cell.span();
                true
            }
            RttClock::Exact => false,
        },
    },
    Setting {
        key: "rto.fire_on_tick",
        doc: "Timers too run out on ticks only (BSD's tcp_slowtimo).",
        words: NONE,
        kind: Kind::Flag,
        get: |c| match c.rto.clock {
            RttClock::Ticks { fire_on_tick, .. } => Some(Cell::Flag(fire_on_tick)),
            RttClock::Exact => None,
        },
        set: |c, cell| match &mut c.rto.clock {
            RttClock::Ticks { fire_on_tick, .. } => {
                *fire_on_tick = cell.flag();
                true
            }
            RttClock::Exact => false,
        },
    },
    Setting {
        key: "rto.max_retries",
        doc: "Retransmissions of one segment before the connection is given up (RFC 9293 §3.8.3).",
        words: &["unlimited"],
        kind: Kind::Count(Counted::new("retries", 0, u32::MAX as u64 - 1)),
        get: |c| {
            Some(match c.rto.max_retries {
                u32::MAX => Cell::Word("unlimited"),
                retries => Cell::Count(retries as u64),
            })
        },
        set: |c, cell| {
            c.rto.max_retries = cell.count_or_off().unwrap_or(u32::MAX);
            true
        },
    },
    Setting {
        key: "receive_buffer",
        doc: "Receive buffer; at most 65535 bytes are offered without window scaling, 65535 * 2^14 with it (RFC 7323).",
        words: NONE,
        kind: Kind::Size { min: 1, max: 65_535 << 14 },
        get: |c| Some(Cell::Size(c.receive_buffer as u64)),
        set: |c, cell| {
            c.receive_buffer = cell.count();
            true
        },
    },
    row!("window_scaling", "Offer window scaling (RFC 7323 §2).", flag window_scaling),
    row!("timestamps", "Offer timestamps (RFC 7323 §3).", flag timestamps),
    Setting {
        key: "sack_blocks",
        doc: "Most SACK blocks in a segment (RFC 2018: room for 4, with timestamps 3).",
        words: NONE,
        kind: Kind::Count(Counted::new("blocks", 1, MAX_SACK_BLOCKS as u64)),
        get: |c| Some(Cell::Count(c.sack_blocks as u64)),
        set: |c, cell| {
            c.sack_blocks = cell.count() as u8;
            true
        },
    },
    row!("dsack", "Report duplicates (RFC 2883).", flag dsack),
    row!("window_clamp", "Clamp of the sender's window in segments, whatever the peer offers.", optional SEGMENTS, window_clamp),
    row!("initial_ssthresh", "First slow start threshold in segments; off: as high as it goes.", optional SEGMENTS, initial_ssthresh),
    row!("nagle", "Hold small segments while data is outstanding (RFC 9293 §3.7.4).", flag nagle),
    row!("time_wait", "Wait in TIME-WAIT: twice the maximum segment lifetime.", span time_wait),
    row!("tcb_sharing", "What a connection takes over from earlier ones to the same host (RFC 9040).", words sharing, tcb_sharing),
    row!("shortcuts.window_unit", "Unit in which windows are counted.", words unit, shortcuts.window_unit),
    row!("shortcuts.handshake", "How a connection is opened.", words handshake, shortcuts.handshake),
    row!("shortcuts.ssthresh_base", "From what the window is halved at a loss.", words base, shortcuts.ssthresh_base),
    row!("shortcuts.ns2_recovery", "ns-2's behaviour at the edges of recovery.", flag shortcuts.ns2_recovery),
    row!("shortcuts.ns2_inflate_always", "ns-2 before July 2003: inflate also where no fast retransmit is allowed.", flag shortcuts.ns2_inflate_always),
    row!("shortcuts.ns2_lengths", "Segment lengths as ns-2 counts them.", flag shortcuts.ns2_lengths),
    row!("shortcuts.ns2_delayed_syn_ack", "ns-2 before 2010: a one-way SYN is acknowledged late.", flag shortcuts.ns2_delayed_syn_ack),
    row!("shortcuts.ns2_bare_first_segment", "ns-2 counts the first segment of a transfer without SYN at its payload alone.", flag shortcuts.ns2_bare_first_segment),
];

/// The row of that key.
pub(crate) fn setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_engine::tcp::variant::{VARIANTS, Variant};
    use bentpipe_engine::tcp::{AckPolicy, RtoConfig, Shortcuts};

    /// A field that the engine gains must gain a row: this stops compiling, and the count below stops being right.
    #[test]
    fn every_field_has_a_row() {
        let TcpConfig {
            mss: _,
            variant,
            ack,
            rto,
            receive_buffer: _,
            window_scaling: _,
            timestamps: _,
            sack_blocks: _,
            dsack: _,
            window_clamp: _,
            initial_ssthresh: _,
            nagle: _,
            time_wait: _,
            tcb_sharing: _,
            shortcuts,
        } = TcpConfig::default();
        let Variant {
            startup: _,
            initial_window: _,
            growth: _,
            dup_thresh: DupThresh { count: _, window_fraction: _ },
            recovery: _,
            sack: _,
            limited_transmit: _,
            frto: _,
            max_burst: _,
        } = variant;
        let AckPolicy { delay: _, every: _, daass: _ } = ack;
        let RtoConfig { initial: _, min: _, max: _, clock: _, max_retries: _ } = rto;
        let Shortcuts {
            window_unit: _,
            handshake: _,
            ssthresh_base: _,
            ns2_recovery: _,
            ns2_inflate_always: _,
            ns2_lengths: _,
            ns2_delayed_syn_ack: _,
            ns2_bare_first_segment: _,
        } = shortcuts;
        // 11 plain fields, 10 cells of the variant and 3 of an inflating recovery, 3 of the ACK policy,
        // 5 of the timer and 2 of a ticking clock, 8 shortcuts.
        assert_eq!(SETTINGS.len(), 11 + 10 + 3 + 3 + 5 + 2 + 8);
    }

    #[test]
    fn what_is_put_in_comes_out() {
        let mut configs: Vec<_> =
            VARIANTS.iter().map(|&(.., variant)| TcpConfig { variant, ..TcpConfig::default() }).collect();
        configs.push(super::super::profile::profile("ns2-2003").expect("a profile").config());
        for from in &configs {
            for to in &configs {
                let mut copy = *to;
                for setting in SETTINGS {
                    if let Some(cell) = (setting.get)(from) {
                        assert!((setting.set)(&mut copy, cell), "{}", setting.key);
                    }
                }
                assert_eq!(copy, *from);
            }
        }
    }
}
