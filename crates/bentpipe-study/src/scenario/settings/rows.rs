//! The rows, one per cell of a variant and field of [`TcpConfig`](bentpipe_engine::tcp::TcpConfig).

use super::*;

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
    row!("congestion_control", "What moves the congestion window (Reno: RFC 5681).", CongestionControl::WORDS, Kind::Words,
        c.variant.congestion => Some(Cell::Word(c.word())), cell => CongestionControl::named(cell.word()).expect("the row's words")),
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
        doc: "Repair of losses: from the loss on again (Tahoe), inflated window (Reno, NewReno), SACK pipe, burst estimate.",
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
    Setting {
        key: "burst.first_repeats",
        doc: "Repetitions of the first partial ACK that show another hole (minei §5.3).",
        words: NONE,
        kind: Kind::Count(Counted::new("ACKs", 1, 2)),
        get: |c| estimate_get(c, |cells| Cell::Count(cells.first_repeats as u64)),
        set: |c, cell| estimate(c).map(|cells| cells.first_repeats = cell.count()).is_some(),
    },
    Setting {
        key: "burst.in_burst_skip",
        doc: "No burst for a hole inside the burst sent last (minei §5.3, the example of tight holes).",
        words: NONE,
        kind: Kind::Flag,
        get: |c| estimate_get(c, |cells| Cell::Flag(cells.in_burst_skip)),
        set: |c, cell| estimate(c).map(|cells| cells.in_burst_skip = cell.flag()).is_some(),
    },
    Setting {
        key: "burst.guard",
        doc: "Against a second phase begun by echoes of retransmissions: none, no phase for what ended the last one, or \
              as many duplicate ACKs as retransmissions were in flight.",
        words: &guard::WORDS,
        kind: Kind::Words,
        get: |c| estimate_get(c, |cells| Cell::Word(guard::word(cells.guard))),
        set: |c, cell| estimate(c).map(|cells| cells.guard = guard::value(cell.word())).is_some(),
    },
    row!("sack", "Negotiate SACK (RFC 2018).", flag variant.sack),
    row!("limited_transmit", "A new segment on each of the first two duplicate ACKs (RFC 3042).", flag variant.limited_transmit),
    row!("frto", "Find spurious timeouts (RFC 5682).", flag variant.frto),
    row!("timeout_repair", "What a timeout sends again: as much as the window takes from the loss on, or the oldest segment alone.",
        words repair, variant.timeout_repair),
    row!("once_per_window", "Tahoe, Reno: no second fast retransmit for what was sent before the first (RFC 6582 §3.2); off: 4.3BSD-Reno.",
        flag variant.once_per_window),
    row!("guard_after_timeout", "With once_per_window off: no fast retransmit for what was sent before a timeout; off: 4.3BSD Reno.",
        flag variant.guard_after_timeout),
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
        key: "ack.tick",
        doc: "A free-running clock of this period sends delayed ACKs, instead of a timer of ack.delay (4.3BSD's \
              tcp_fasttimo: 200 ms); off: the timer.",
        words: OFF,
        kind: Kind::Span,
        get: |c| Some(c.ack.tick.map_or(Cell::Word("off"), Cell::Span)),
        set: |c, cell| {
            c.ack.tick = match cell {
                Cell::Span(tick) => Some(tick),
                _ => None,
            };
            true
        },
    },
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
                (Cell::Span(tick), RttClock::Ticks { phase, fire_on_tick, bsd, .. }) => {
                    RttClock::Ticks { tick, phase, fire_on_tick, bsd }
                }
                (Cell::Span(tick), RttClock::Exact) => {
                    RttClock::Ticks { tick, phase: Duration::ZERO, fire_on_tick: false, bsd: false }
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
        key: "rto.bsd",
        doc: "Samples are the ticks that passed, none included (4.3BSD); else one at least (ns-2).",
        words: NONE,
        kind: Kind::Flag,
        get: |c| match c.rto.clock {
            RttClock::Ticks { bsd, .. } => Some(Cell::Flag(bsd)),
            RttClock::Exact => None,
        },
        set: |c, cell| match &mut c.rto.clock {
            RttClock::Ticks { bsd, .. } => {
                *bsd = cell.flag();
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
    row!("restart_after_idle", "Begin again with the initial window after a pause longer than the retransmission timeout (RFC 5681 §4.1).", flag restart_after_idle),
    row!("time_wait", "Wait in TIME-WAIT: twice the maximum segment lifetime.", span time_wait),
    row!("tcb_sharing", "What a connection takes over from earlier ones to the same host (RFC 9040).", words sharing, tcb_sharing),
    row!("shortcuts.window_unit", "Unit in which windows are counted.", words unit, shortcuts.window_unit),
    row!("shortcuts.handshake", "How a connection is opened.", words handshake, shortcuts.handshake),
    row!("shortcuts.ssthresh_base", "From what the window is halved at a loss.", words base, shortcuts.ssthresh_base),
    row!("shortcuts.bsd_additive_constant", "Congestion avoidance adds an eighth of a segment per ACK besides (4.3BSD Reno, RFC 2525).", flag shortcuts.bsd_additive_constant),
    row!("shortcuts.ns2_recovery", "ns-2's behaviour at the edges of recovery.", flag shortcuts.ns2_recovery),
    row!("shortcuts.ns2_inflate_always", "ns-2 before July 2003: inflate also where no fast retransmit is allowed.", flag shortcuts.ns2_inflate_always),
    row!("shortcuts.ns2_lengths", "Segment lengths as ns-2 counts them.", flag shortcuts.ns2_lengths),
    row!("shortcuts.ns2_delayed_syn_ack", "ns-2 before 2010: a one-way SYN is acknowledged late.", flag shortcuts.ns2_delayed_syn_ack),
    row!("shortcuts.ns2_bare_first_segment", "ns-2 counts the first segment of a transfer without SYN at its payload alone.", flag shortcuts.ns2_bare_first_segment),
];
