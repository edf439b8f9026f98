//! The rows, one per field of a variant and of [`TcpConfig`](bentpipe_engine::tcp::TcpConfig).

use super::*;
use bentpipe_engine::tcp::Pacing;

/// The saved round trip of a geostationary path, unless it is given.
const DEFAULT_MIN_RTT: Duration = Duration::from_millis(600);

/// All rows. Order matters: a row may depend on an earlier one (`inflate.*` on `recovery`).
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        key: "fixed_window",
        doc: "Constant window in segments, from the first segment on: no slow start and no congestion avoidance.",
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
    row!("congestion_control", CongestionControl::MEANINGS, CongestionControl::WORDS, Kind::Words,
        c.variant.congestion => Some(Cell::Word(c.word())), cell => CongestionControl::named(cell.word()).expect("the row's words")),
    Setting {
        key: "byte_counting",
        doc: "Slow start grows by the number of bytes acknowledged, at most this many segments per ACK (L of RFC 3465). \"all\": by all acknowledged bytes, up to the threshold, also after a timeout (Linux). Off: by one segment per ACK.",
        words: &["off", "all"],
        kind: SEGMENTS,
        get: |c| match c.variant.growth {
            Growth::PerAck => Some(Cell::Word("off")),
            Growth::All => Some(Cell::Word("all")),
            Growth::Bytes(limit) => Some(Cell::Count(limit as u64)),
        },
        set: |c, cell| {
            c.variant.growth = match cell {
                Cell::Word("all") => Growth::All,
                cell => cell.count_or_off().map_or(Growth::PerAck, Growth::Bytes),
            };
            true
        },
    },
    row!("slow_start_exit", "End of the first slow start. \"loss\": a loss. \"hystart++\": also growing round trips, before the queue overflows (RFC 9406); needs timestamps or `recovery = \"rack\"`. \"hystart\": also half a round trip of closely spaced ACKs, or growing round trips (Ha and Rhee 2011, Linux); needs `recovery = \"rack\"`. \"search\": also deliveries that no longer double per round trip (SEARCH, draft-chung-ccwg-search); needs timestamps or `recovery = \"rack\"`.",
        words slow_start_exit, variant.slow_start_exit),
    row!("limited_slow_start", "Limited slow start: windows larger than this grow by about half of it per round trip (max_ssthresh of RFC 3742: 100 segments).", optional SEGMENTS, variant.limited_slow_start),
    row!("dup_thresh.count", "Number of duplicate ACKs that indicate a loss (RFC 5681: 3).",
        count Kind::Count(Counted::new("ACKs", 1, 1000)), variant.dup_thresh.count),
    Setting {
        key: "dup_thresh.window_fraction",
        doc: "Lower bound of the duplicate ACK threshold: the congestion window divided by this (ns-2's numdupacksFrac_).",
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
        doc: "Loss recovery. \"restart\": go back to the loss (Tahoe). \"inflate\": fast recovery with window inflation (Reno, NewReno). \"rack\": SACK recovery by time (RFC 8985). \"pipe-6675\", \"pipe-3517\": SACK recovery by that RFC. \"pipe-ns2\": ns-2's Sack1. \"burst-estimate\": the burst-loss sender of Minei and Cohen.",
        words: RECOVERIES,
        kind: Kind::Words,
        get: |c| Some(Cell::Word(recovery_word(c.variant.recovery))),
        set: |c, cell| {
            c.variant.recovery = recovery_from(cell.word(), c.variant.recovery);
            true
        },
    },
    Setting {
        key: "inflate.exit",
        doc: "`inflate`: end of recovery. \"first-new-ack\": the first ACK of new data (Reno). \"recover\": the ACK of all data sent before the loss was detected (NewReno).",
        words: &exit::WORDS,
        kind: Kind::Words,
        get: |c| inflate_get(c, |exit, _, _| Cell::Word(exit::word(exit))),
        set: |c, cell| inflate(c).map(|(exit, ..)| *exit = exit::value(cell.word())).is_some(),
    },
    Setting {
        key: "inflate.deflate",
        doc: "`inflate`: deflate the window by the amount that a partial ACK acknowledges (RFC 6582 §3.2).",
        words: NONE,
        kind: Kind::Flag,
        get: |c| inflate_get(c, |_, deflate, _| Cell::Flag(deflate)),
        set: |c, cell| inflate(c).map(|(_, deflate, _)| *deflate = cell.flag()).is_some(),
    },
    Setting {
        key: "inflate.timer",
        doc: "`inflate`: partial ACKs that restart the retransmission timer (RFC 6582 §4). \"impatient\": only the first. \"slow-but-steady\": every one.",
        words: &timer::WORDS,
        kind: Kind::Words,
        get: |c| inflate_get(c, |_, _, timer| Cell::Word(timer::word(timer))),
        set: |c, cell| inflate(c).map(|(.., timer)| *timer = timer::value(cell.word())).is_some(),
    },
    Setting {
        key: "burst.first_repeats",
        doc: "`burst-estimate`: number of repetitions of the first partial ACK that indicate another hole (minei §5.3).",
        words: NONE,
        kind: Kind::Count(Counted::new("ACKs", 1, 2)),
        get: |c| estimate_get(c, |cells| Cell::Count(cells.first_repeats as u64)),
        set: |c, cell| estimate(c).map(|cells| cells.first_repeats = cell.count()).is_some(),
    },
    Setting {
        key: "burst.in_burst_skip",
        doc: "`burst-estimate`: send no burst for a hole inside the previous burst (minei §5.3, the example of tight holes).",
        words: NONE,
        kind: Kind::Flag,
        get: |c| estimate_get(c, |cells| Cell::Flag(cells.in_burst_skip)),
        set: |c, cell| estimate(c).map(|cells| cells.in_burst_skip = cell.flag()).is_some(),
    },
    Setting {
        key: "burst.guard",
        doc: "`burst-estimate`: protection from a second recovery caused by duplicates of retransmissions. \"off\": none. \"recover\": ignore duplicate ACKs of the number that ended the previous recovery (RFC 6582 §3.2). \"credit\": ignore as many of them as retransmissions were in flight.",
        words: &guard::WORDS,
        kind: Kind::Words,
        get: |c| estimate_get(c, |cells| Cell::Word(guard::word(cells.guard))),
        set: |c, cell| estimate(c).map(|cells| cells.guard = guard::value(cell.word())).is_some(),
    },
    row!("prr", "SACK recovery: shrink the window in proportion to what is delivered, over one round trip (RFC 9937). False: at once.", flag variant.prr),
    row!("sack", "Negotiate SACK (RFC 2018).", flag variant.sack),
    row!("limited_transmit", "Send a new segment on each of the first two duplicate ACKs (RFC 3042).", flag variant.limited_transmit),
    row!("frto", "Detect spurious timeouts with F-RTO (RFC 5682).", flag variant.frto),
    row!("undo", "`rack`: give the window back after a fast recovery or a timeout that D-SACK, timestamps or F-RTO show to be needless (RFC 3522, RFC 4015).", flag variant.undo),
    row!("tail_probe", "`rack`: send a probe if no ACK arrives for two round trips (RFC 8985 §7).", flag variant.tail_probe),
    row!("rack_slack", "`rack`: time by which the timers of the tail probe and of reordering are longer than in RFC 8985 (Linux: 2 ms).", span variant.rack_slack),
    row!("rack_reordering", "`rack`: consequences of reordering. \"rfc8985\": a D-SACK widens the reordering window, which also counts at a timeout. \"linux\": a D-SACK widens it only if reordering was seen and the tail loss probe did not cause the D-SACK; the window is zero at a timeout; a recovery that timestamps show to be needless counts as reordering; duplicates count as delivered again; with `byte_counting = \"all\"`, once a segment was more than three segments late, ACKs with only SACK blocks also open the window.",
        words reordering, variant.rack_reordering),
    row!("min_rtt_window", "`rack`: how long a minimum round trip counts (Linux's tcp_min_rtt_wlen: 300 s). Off: for the whole connection.",
        OFF, Kind::Span, c.variant.min_rtt_window => Some(c.map_or(Cell::Word("off"), Cell::Span)),
        cell => match cell { Cell::Span(window) => Some(window), _ => None }),
    row!("timeout_repair", "Retransmission after a timeout. \"go-back\": everything from the loss on, as the window allows (RFC 5681 §3.1). \"oldest\": only the oldest segment.",
        words repair, variant.timeout_repair),
    row!("timeout_window", "Window after a timeout. \"one\": one segment (RFC 5681 §3.1). \"in-flight\": one segment more than the data in flight that is not lost; a timeout in a recovery leaves `ssthresh` as it is (Linux, with `recovery = \"rack\"`).",
        words timeout_window, variant.timeout_window),
    row!("once_per_window", "Tahoe, Reno: no second fast retransmit for data sent before the first one (RFC 6582 §3.2). False: like 4.3BSD Reno.",
        flag variant.once_per_window),
    row!("guard_after_timeout", "With `once_per_window = false`: no fast retransmit for data sent before a timeout. False: like 4.3BSD Reno.",
        flag variant.guard_after_timeout),
    row!("max_burst", "Maximum number of segments sent in response to one ACK.", optional SEGMENTS, variant.max_burst),
    Setting {
        key: "pacing.gain",
        doc: "Pacing rate of a control that sets no rate of its own, in percent of a window per round trip (Linux's tcp_pacing_ca_ratio: 120). Off: only ACKs clock it.",
        words: OFF,
        kind: PERCENT,
        get: |c| Some(c.variant.pacing.gains.map_or(Cell::Word("off"), |(_, gain)| Cell::Count(u64::from(gain)))),
        set: |c, cell| {
            let slow_start = c.variant.pacing.gains.map(|(slow_start, _)| slow_start);
            let gains = |gain| (slow_start.unwrap_or(Pacing::LINUX_GAINS.0), gain);
            c.variant.pacing.gains = cell.count_or_off().map(gains);
            true
        },
    },
    Setting {
        key: "pacing.slow_start_gain",
        doc: "With `pacing.gain`: the same below half of the slow start threshold (Linux's tcp_pacing_ss_ratio). Default: 200.",
        words: NONE,
        kind: PERCENT,
        get: |c| c.variant.pacing.gains.map(|(slow_start, _)| Cell::Count(u64::from(slow_start))),
        set: |c, cell| match &mut c.variant.pacing.gains {
            Some((slow_start, _)) => {
                *slow_start = cell.count();
                true
            }
            None => false,
        },
    },
    Setting {
        key: "pacing.max_rate",
        doc: "Maximum rate at which segments leave, counted without headers (Linux's SO_MAX_PACING_RATE, iperf3's --fq-rate). A control that sets no rate of its own is then paced, by `pacing.gain` or 120 % of a window per round trip, and 200 % in slow start.",
        words: OFF,
        kind: Kind::Rate,
        get: |c| Some(c.variant.pacing.max_rate.map_or(Cell::Word("off"), Cell::Rate)),
        set: |c, cell| {
            c.variant.pacing.max_rate = match cell {
                Cell::Rate(rate) => Some(rate),
                _ => None,
            };
            true
        },
    },
    row!("pacing.quantum", "Paced segments that take at most this long at the rate leave together: at least two, or one below 1.2 Mbit/s if the control sets the rate (Linux: 1/1024 s). 0 s: each leaves separately.", span variant.pacing.quantum),
    row!("pacing.credit", "A paced segment that leaves late shortens the wait of the next one, by at most half of its own time (Linux). False: the time is lost.", flag variant.pacing.credit),
    row!("pacing.unpaced", "Pacing begins with this segment; those before it leave at once (Linux: 10).", count Kind::Count(Counted::new("segments", 0, u32::MAX as u64)), variant.pacing.unpaced),
    row!("offload", "`rack`: segments leave in packets that take 1/1024 s at the rate, as from a host whose network card divides packets into segments. The last segment of several has PSH. A packet that the window would cut short waits for the next ACK, unless none is near, 1 ms has passed, or a third of the window is free (Linux).", flag variant.offload),
    Setting {
        key: "mss",
        doc: "Maximum segment size (payload). At most 65495 B, the payload of an IPv4 packet of 65535 B.",
        words: NONE,
        kind: Kind::Size { min: 1, max: 65_495 },
        get: |c| Some(Cell::Size(c.mss as u64)),
        set: |c, cell| {
            c.mss = u16::try_from(cell.count()).unwrap_or(u16::MAX);
            true
        },
    },
    row!("ack.delay", "Maximum delay of an ACK. 0 s acknowledges every segment at once.", span ack.delay),
    row!("ack.every", "Every n-th in-order segment is acknowledged without delay (RFC 5681 §4.2: 2).",
        count Kind::Count(Counted::new("segments", 1, 1_000_000)), ack.every),
    Setting {
        key: "ack.tick",
        doc: "Delayed ACKs are sent by a free-running clock with this period, instead of a timer of `ack.delay` (4.3BSD's tcp_fasttimo: 200 ms).",
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
        doc: "Delayed ACKs after slow start (RFC 2760 §3.2.3): the first segments are acknowledged without delay. A number of segments, or \"slow-start\" for all up to the first gap.",
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
    row!("ack.before_reading", "The ACK of a segment that fills a gap is sent before the program reads the data behind the gap, with the window left at that time, and the ACK of a SYN-ACK before the program writes (Linux).", flag ack.before_reading),
    Setting {
        key: "ack.compress",
        doc: "Maximum wait of an ACK of data beyond a gap, so that one ACK can report more data; also at most a twentieth of the round trip. The first three ACKs of a gap are sent at once, and so is an ACK whose SACK blocks would not fit together with those of later data (Linux: 1 ms). Off: each is sent at once (RFC 5681 §4.2).",
        words: OFF,
        kind: Kind::Span,
        get: |c| Some(c.ack.compress.map_or(Cell::Word("off"), |compress| Cell::Span(compress.delay))),
        set: |c, cell| {
            c.ack.compress = match cell {
                Cell::Span(delay) => Some(Compress { delay, ..c.ack.compress.unwrap_or(Compress::LINUX) }),
                _ => None,
            };
            true
        },
    },
    Setting {
        key: "ack.compress_slack",
        doc: "With `ack.compress`: slack that the timer adds to the wait (Linux's tcp_comp_sack_slack_ns: 100 us). Default: 100 us.",
        words: NONE,
        kind: Kind::Span,
        get: |c| c.ack.compress.map(|compress| Cell::Span(compress.slack)),
        set: |c, cell| match &mut c.ack.compress {
            Some(compress) => {
                compress.slack = cell.span();
                true
            }
            None => false,
        },
    },
    Setting {
        key: "ack.compress_max",
        doc: "With `ack.compress`: when this many ACKs wait, the next one is sent at once (Linux's tcp_comp_sack_nr: 44). 0: no ACK waits. Default: 44.",
        words: NONE,
        kind: Kind::Count(Counted::new("ACKs", 0, 255)),
        get: |c| c.ack.compress.map(|compress| Cell::Count(u64::from(compress.max))),
        set: |c, cell| match &mut c.ack.compress {
            Some(compress) => {
                compress.max = cell.count();
                true
            }
            None => false,
        },
    },
    row!("ack.quick", "Number of ACKs that are sent at once at the start, and after data that had already arrived, even if `ack.every` or `ack.compress` would delay them; ACKs that announce a larger window are not counted (Linux: 16). 0: only the ACK of such data.",
        count Kind::Count(Counted::new("ACKs", 0, 1000)), ack.quick),
    row!("ack.pushed", "A segment with PSH, which ends a group that the peer sent together, is acknowledged at once, unless this end has answered data with data (Linux, where the program reads at once).", flag ack.pushed),
    row!("ack.adapt", "ACKs adapt to the traffic (Linux): the delay follows the time between segments, from `ack.delay` up to 200 ms or a round trip; bytes are counted, not segments; there are fewer quick ACKs with a small window, none while more than half of the buffer is taken, and none while this end answers data within the delay.", flag ack.adapt),
    row!("ack.gro", "In-order segments that each arrive within this time of the previous one are acknowledged together: this long after the first that asks for an ACK, or with the 44th. 20 us model a host with generic receive offload, which joins segments up to 64 kB. 0 s: each segment counts separately.", span ack.gro),
    row!("rto.initial", "Retransmission timeout before the first RTT sample (RFC 6298 §2.1: 1 s).", span rto.initial),
    row!("rto.min", "Minimum retransmission timeout, before backoff (RFC 6298 §2.4: 1 s).", span rto.min),
    row!("rto.floor", "The value that `rto.min` bounds. \"timeout\": the timeout (RFC 6298 §2.4). \"variance\": the part that is added to the round trip (Linux).",
        words floor, rto.floor),
    row!("rto.timing", "Events that restart the timer and measure the round trip. \"acks\": ACKs of new data, outside of recoveries (RFC 6298). \"segments\" (Linux): the timer also restarts when the oldest segment is retransmitted; with RACK, each ACK that delivers a segment measures the round trip, even by SACK blocks alone, and a tail loss probe is sent at most a timeout after the oldest segment.",
        words timing, rto.timing),
    row!("rto.max", "Maximum retransmission timeout (RFC 6298 §2.5: at least 60 s).", span rto.max),
    Setting {
        key: "rto.tick",
        doc: "Measure round trips in whole ticks of this length (4.3BSD: 500 ms). Off: exactly.",
        words: OFF,
        kind: Kind::Span,
        get: |c| {
            Some(match c.rto.clock {
                RttClock::Exact | RttClock::Wheel(_) => Cell::Word("off"),
                RttClock::Ticks { tick, .. } => Cell::Span(tick),
            })
        },
        set: |c, cell| {
            c.rto.clock = match (cell, c.rto.clock) {
                (Cell::Span(tick), RttClock::Ticks { phase, fire_on_tick, bsd, .. }) => {
                    RttClock::Ticks { tick, phase, fire_on_tick, bsd }
                }
                (Cell::Span(tick), RttClock::Exact | RttClock::Wheel(_)) => {
                    RttClock::Ticks { tick, phase: Duration::ZERO, fire_on_tick: false, bsd: false }
                }
                (_, RttClock::Wheel(jiffy)) => RttClock::Wheel(jiffy),
                _ => RttClock::Exact,
            };
            true
        },
    },
    Setting {
        key: "rto.jiffy",
        doc: "Retransmission timers and tail loss probes expire late, as with Linux's timer wheel and jiffies of this length: by up to 1 jiffy if they are shorter than 63 jiffies, 8 if shorter than 504, 64 if shorter than 4032, and 512 if longer. Round trips are measured exactly. Cannot be combined with `rto.tick`.",
        words: OFF,
        kind: Kind::Span,
        get: |c| {
            Some(match c.rto.clock {
                RttClock::Wheel(jiffy) => Cell::Span(jiffy),
                RttClock::Exact | RttClock::Ticks { .. } => Cell::Word("off"),
            })
        },
        set: |c, cell| {
            c.rto.clock = match (cell, c.rto.clock) {
                (Cell::Span(_), RttClock::Ticks { .. }) => return false,
                (Cell::Span(jiffy), _) => RttClock::Wheel(jiffy),
                (_, RttClock::Wheel(_)) => RttClock::Exact,
                (_, clock) => clock,
            };
            true
        },
    },
    Setting {
        key: "rto.phase",
        doc: "With `rto.tick`: phase of the host's clock within a tick at the start of the run.",
        words: NONE,
        kind: Kind::Span,
        get: |c| match c.rto.clock {
            RttClock::Ticks { phase, .. } => Some(Cell::Span(phase)),
            RttClock::Exact | RttClock::Wheel(_) => None,
        },
        set: |c, cell| match &mut c.rto.clock {
            RttClock::Ticks { phase, .. } => {
                *phase = cell.span();
                true
            }
            RttClock::Exact | RttClock::Wheel(_) => false,
        },
    },
    Setting {
        key: "rto.fire_on_tick",
        doc: "With `rto.tick`: timers expire only on ticks (BSD's tcp_slowtimo).",
        words: NONE,
        kind: Kind::Flag,
        get: |c| match c.rto.clock {
            RttClock::Ticks { fire_on_tick, .. } => Some(Cell::Flag(fire_on_tick)),
            RttClock::Exact | RttClock::Wheel(_) => None,
        },
        set: |c, cell| match &mut c.rto.clock {
            RttClock::Ticks { fire_on_tick, .. } => {
                *fire_on_tick = cell.flag();
                true
            }
            RttClock::Exact | RttClock::Wheel(_) => false,
        },
    },
    Setting {
        key: "rto.bsd",
        doc: "With `rto.tick`: a sample is the number of ticks that passed, possibly 0 (4.3BSD). False: at least 1 (ns-2).",
        words: NONE,
        kind: Kind::Flag,
        get: |c| match c.rto.clock {
            RttClock::Ticks { bsd, .. } => Some(Cell::Flag(bsd)),
            RttClock::Exact | RttClock::Wheel(_) => None,
        },
        set: |c, cell| match &mut c.rto.clock {
            RttClock::Ticks { bsd, .. } => {
                *bsd = cell.flag();
                true
            }
            RttClock::Exact | RttClock::Wheel(_) => false,
        },
    },
    Setting {
        key: "rto.max_retries",
        doc: "Maximum number of retransmissions of a segment before the connection is aborted (RFC 9293 §3.8.3).",
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
    row!("rto.give_up", "Limit of the retransmissions of data. \"count\": `rto.max_retries` (RFC 9293 §3.8.3). \"time\" (Linux): the time that this number would take if timeouts doubled from `rto.min` to `rto.max`, counted from the first retransmission.",
        words give_up, rto.give_up),
    row!("rto.max_syn_retries", "Maximum number of retransmissions of a SYN, not counting those of `rto.linear_syn_timeouts` (Linux's tcp_syn_retries: 6). \"data\": as `rto.max_retries`.",
        DATA, RETRIES, c.rto.max_syn_retries => Some(data_or_count(c)), cell => cell.retries()),
    row!("rto.max_syn_ack_retries", "Maximum number of retransmissions of a SYN-ACK. The end then listens again (Linux's tcp_synack_retries: 5). \"data\": as `rto.max_retries`, and the connection is aborted.",
        DATA, RETRIES, c.rto.max_syn_ack_retries => Some(data_or_count(c)), cell => cell.retries()),
    row!("rto.max_closed_retries", "Like `rto.max_retries`, after the program has closed (Linux's tcp_orphan_retries: 8). \"data\": as `rto.max_retries`.",
        DATA, RETRIES, c.rto.max_closed_retries => Some(data_or_count(c)), cell => cell.retries()),
    row!("rto.max_probes", "Maximum number of probes of a closed window without an answer before the connection is aborted (Linux's tcp_retries2: 15). After the program has closed, the maximum is `rto.max_closed_retries`, and no probe follows once their interval has reached `rto.max`. \"unlimited\": probes never stop (RFC 9293 §3.8.6.1).",
        &["unlimited"], Kind::Count(Counted::new("probes", 0, 255)), c.rto.max_probes => Some(c.map_or(Cell::Word("unlimited"), |max| Cell::Count(max.into()))),
        cell => cell.retries()),
    row!("rto.linear_syn_timeouts", "Number of SYN timeouts that do not double the timer (RFC 6298 §5.5: 0; Linux: 4). Their retransmissions do not count towards `rto.max_syn_retries`.",
        NONE, Kind::Count(Counted::new("timeouts", 0, 127)), c.rto.linear_syn_timeouts => Some(Cell::Count(u64::from(c))),
        cell => u8::try_from(cell.count()).unwrap_or(u8::MAX)),
    Setting {
        key: "receive_buffer",
        doc: "Receive buffer. Without window scaling at most 65535 B of it are advertised, with it 65535 * 2^14 B (RFC 7323).",
        words: NONE,
        kind: Kind::Size { min: 1, max: 65_535 << 14 },
        get: |c| Some(Cell::Size(c.receive_buffer as u64)),
        set: |c, cell| {
            c.receive_buffer = cell.count();
            true
        },
    },
    Setting {
        key: "first_window",
        doc: "Initial receive window, which grows to `receive_buffer` as data arrives (Fisk and Feng 2001; Linux). Off: the whole buffer from the start.",
        words: OFF,
        kind: Kind::Size { min: 1, max: 65_535 << 14 },
        get: |c| Some(c.first_window.map_or(Cell::Word("off"), |first| Cell::Size(first as u64))),
        set: |c, cell| {
            c.first_window = match cell {
                Cell::Word(_) => None,
                size => Some(size.count()),
            };
            true
        },
    },
    row!("window_follows", "With `first_window`: the window starts at 64 kB and grows by twice the arriving data, up to the free buffer; ACKs that announce a larger window do not wait (Linux). False: the whole free buffer is offered.", flag window_follows),
    row!("gaps_take_room", "Data beyond a gap reduces the receive window, whose right edge does not move while a gap is open (Linux).",
        flag gaps_take_room),
    row!("window_scaling", "Offer window scaling (RFC 7323 §2).", flag window_scaling),
    row!("timestamps", "Offer timestamps (RFC 7323 §3).", flag timestamps),
    row!("echo_repetitions", "Echo the timestamp of a repetition of the data acknowledged last (Linux). False: such a segment is rejected first (RFC 7323 §5.3), so its ACK seems to answer the first transmission.", flag echo_repetitions),
    Setting {
        key: "sack_blocks",
        doc: "Maximum number of SACK blocks in a segment (RFC 2018: 4 fit, with timestamps 3).",
        words: NONE,
        kind: Kind::Count(Counted::new("blocks", 1, MAX_SACK_BLOCKS as u64)),
        get: |c| Some(Cell::Count(c.sack_blocks as u64)),
        set: |c, cell| {
            c.sack_blocks = cell.count() as u8;
            true
        },
    },
    row!("dsack", "Report duplicate segments (D-SACK, RFC 2883).", flag dsack),
    row!("window_clamp", "Maximum send window in segments.", optional SEGMENTS, window_clamp),
    row!("initial_ssthresh", "Initial slow start threshold in segments. Off: unlimited.", optional SEGMENTS, initial_ssthresh),
    Setting {
        key: "ecn",
        doc: "Explicit congestion notification (RFC 3168). True: ask for it and accept it. \"accept\": only if the peer asks (Linux). \"accurate\": ask for accurate ECN (RFC 9768), or accept either. \"accept-accurate\": either, only if the peer asks. Both ends need it.",
        words: &["accept", "accept-accurate", "accurate"],
        kind: Kind::Flag,
        get: |c| {
            Some(match c.ecn {
                EcnUse::Off => Cell::Flag(false),
                EcnUse::Accept => Cell::Word("accept"),
                EcnUse::On => Cell::Flag(true),
                EcnUse::AcceptAccurate => Cell::Word("accept-accurate"),
                EcnUse::Accurate => Cell::Word("accurate"),
            })
        },
        set: |c, cell| {
            c.ecn = match cell {
                Cell::Word("accurate") => EcnUse::Accurate,
                Cell::Word("accept-accurate") => EcnUse::AcceptAccurate,
                Cell::Word(_) => EcnUse::Accept,
                cell if cell.flag() => EcnUse::On,
                _ => EcnUse::Off,
            };
            true
        },
    },
    Setting {
        key: "ecn_retries",
        doc: "Number of retransmissions of a SYN that still ask for ECN; later ones do not (RFC 3168 §6.1.1.1).",
        words: NONE,
        kind: Kind::Count(Counted::new("", 0, 255)),
        get: |c| Some(Cell::Count(u64::from(c.ecn_retries))),
        set: |c, cell| {
            c.ecn_retries = cell.count();
            true
        },
    },
    row!("ecn_option", "With `ecn = \"accurate\"`, when segments have the option with counters of bytes (RFC 9768 §3.2.3): `changes`, in the handshake and in ACKs after data that came with an ECN field; `always`, in every segment once the peer has sent one (Linux); `off`.", words ecn_option, ecn_option),
    row!("ecn_control", "With `ecn = \"accurate\"`: ACKs without data and retransmissions are ECN-capable, too (Linux). RFC 3168 §6.1.4 and §6.1.5 forbid it.", flag ecn_control),
    row!("abe", "With `ecn`: reduce the window less at a mark than at a loss, to 0.8 (Reno) or 0.85 (CUBIC) of it (RFC 8511).", flag abe),
    row!("send_buffer", "Maximum memory for written data that is not yet acknowledged, counted like Linux's tcp_wmem: with 832 bytes for each packet. It starts at two windows of ten segments, and grows with the window while the program waits. The program writes again once a third is free. Off: unlimited.",
        OFF, Kind::Size { min: 1, max: 1 << 40 }, c.send_buffer => Some(c.map_or(Cell::Word("off"), Cell::Size)),
        cell => match cell { Cell::Size(bytes) => Some(bytes), _ => None }),
    row!("first_send_buffer", "With `send_buffer`: its initial size (Linux's tcp_wmem, the second value), but at least two windows of ten segments.",
        NONE, Kind::Size { min: 1, max: u32::MAX as u64 }, c.first_send_buffer => Some(Cell::Size(c)), cell => u64::from(cell.count())),
    row!("nagle", "Nagle's algorithm: hold back small segments while data is outstanding (RFC 9293 §3.7.4).", flag nagle),
    row!("syn_losses", "Number of lost SYNs or SYN-ACKs that leave the initial window unchanged; one more reduces it to one segment (RFC 5681 §3.1: 0; Linux: 1).",
        NONE, Kind::Count(Counted::new("losses", 0, 255)), c.syn_losses => Some(Cell::Count(u64::from(c))),
        cell => u8::try_from(cell.count()).unwrap_or(u8::MAX)),
    row!("restart_after_idle", "Restart from the initial window after an idle time longer than the retransmission timeout (RFC 5681 §4.1).", flag restart_after_idle),
    row!("idle_decay", "With `restart_after_idle`: halve the window for each timeout that the idle time has lasted, and keep three quarters of it as `ssthresh`; if the application does not fill the window for a timeout, the window loses half of the unused part (RFC 2861, Linux). False: the initial window at once.", flag idle_decay),
    row!("time_wait", "Time in TIME-WAIT: twice the maximum segment lifetime.", span time_wait),
    row!("tcb_sharing", "State that a connection inherits from earlier ones to the same host (RFC 9040): nothing; `ssthresh`; `ssthresh` and the RTT estimate; for careful resume (RFC 9959), the window that was used and the minimum round trip, which needs `recovery = \"rack\"` and does not work with BBR; or what Linux remembers (tcp_metrics): the round trip, for the first timeout, and the amount of reordering.", words sharing, tcb_sharing),
    Setting {
        key: "resume.cwnd",
        doc: "The window that an earlier connection used. After a round trip the window jumps to half of it, paced, and retreats at a loss (RFC 9959).",
        words: OFF,
        kind: Kind::Size { min: 1, max: u32::MAX as u64 },
        get: |c| Some(c.resume.map_or(Cell::Word("off"), |resume| Cell::Size(resume.cwnd))),
        set: |c, cell| {
            let min_rtt = c.resume.map_or(DEFAULT_MIN_RTT, |resume| resume.min_rtt);
            c.resume = match cell {
                Cell::Size(cwnd) => Some(Resume { cwnd, min_rtt }),
                _ => None,
            };
            true
        },
    },
    Setting {
        key: "resume.min_rtt",
        doc: "With `resume.cwnd`: the minimum round trip of the earlier connection. If this connection's round trip is at most half of it, or more than ten times as long, the path counts as a different one. Default: 600 ms.",
        words: NONE,
        kind: Kind::Span,
        get: |c| c.resume.map(|resume| Cell::Span(resume.min_rtt)),
        set: |c, cell| match &mut c.resume {
            Some(resume) => {
                resume.min_rtt = cell.span();
                true
            }
            None => false,
        },
    },
    row!("resume_lifetime", "With `tcb_sharing = \"resume\"`: how long a connection may use what an earlier one has measured (RFC 9959 §4.3.1: minutes where the path varies or many share it, hours where it is stable).", span resume_lifetime),
    row!("max_jump", "Careful resume: upper bound of the window after the jump (RFC 9959 §3.3). Off: half of the saved window.",
        OFF, Kind::Size { min: 1, max: 1 << 40 }, c.max_jump => Some(c.map_or(Cell::Word("off"), Cell::Size)),
        cell => match cell { Cell::Size(bytes) => Some(bytes), _ => None }),
    row!("shortcuts.window_unit", "Unit of windows: \"bytes\" (RFC 5681), or whole \"segments\" (ns-2).", words unit, shortcuts.window_unit),
    row!("shortcuts.handshake", "Opening of a connection. \"three-way\": RFC 9293 §3.5. \"one-way\": a SYN and its ACK, as ns-2's one-way agents. \"none\": both ends begin established.", words handshake, shortcuts.handshake),
    row!("shortcuts.ssthresh_base", "Value that is reduced at a loss, and to which PRR's reduction is proportional. \"flight-size\": outstanding data (RFC 5681). \"window\": the send window, with inflation (ns-2). \"whole-window\": the same, rounded down to segments (ns-2 before 2006). \"in-force\": the smaller of send window and advertised window (4.3BSD).", words base, shortcuts.ssthresh_base),
    row!("shortcuts.bsd_additive_constant", "Congestion avoidance adds another eighth of a segment per ACK (4.3BSD Reno, RFC 2525 §2.6).", flag shortcuts.bsd_additive_constant),
    #[cfg(feature = "ns2")]
    row!("shortcuts.ns2_recovery", "ns-2's behaviour when recovery begins and ends; docs/specs/ns2.md lists the departures from the RFCs.", flag shortcuts.ns2_recovery),
    #[cfg(feature = "ns2")]
    row!("shortcuts.ns2_inflate_always", "ns-2 before July 2003: the third duplicate ACK inflates the window even if no fast retransmit is allowed.", flag shortcuts.ns2_inflate_always),
    #[cfg(feature = "ns2")]
    row!("shortcuts.ns2_lengths", "Segment lengths as in ns-2: a SACK block takes 8 B without padding, the options of a SYN take none.", flag shortcuts.ns2_lengths),
    #[cfg(feature = "ns2")]
    row!("shortcuts.ns2_delayed_syn_ack", "ns-2 before 2010: the ACK of a one-way SYN is delayed like that of a data segment.", flag shortcuts.ns2_delayed_syn_ack),
    #[cfg(feature = "ns2")]
    row!("shortcuts.ns2_bare_first_segment", "ns-2: without a SYN, the first segment of a transfer takes only the length of its payload on the line.", flag shortcuts.ns2_bare_first_segment),
];
