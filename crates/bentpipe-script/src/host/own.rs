//! bentpipe's own settings in a script, `--key=value`: fields of the variant and of [`TcpConfig`].

use bentpipe_engine::tcp::variant::{
    DupThresh, Growth, Recovery, ReentryGuard, Reordering, SlowStartExit, Startup, TimeoutRepair,
};
use bentpipe_engine::tcp::{
    AckPolicy, Compress, Daass, EcnOption, EcnUse, GiveUp, Resume, RtoTiming, RttClock, SsthreshBase, TcbSharing,
    TcpConfig, Variant, WindowUnit,
};
use bentpipe_engine::units::{Duration, Rate};

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("`{value}` is not a number"))
}

/// A number from 1 to `max`: the engine works with nothing less here, and refuses it in scenarios.
fn positive<T: std::str::FromStr + PartialOrd + From<u8> + std::fmt::Display>(
    value: &str,
    max: T,
) -> Result<T, String> {
    let number: T = number(value)?;
    if number >= T::from(1) && number <= max { Ok(number) } else { Err(format!("expected a number from 1 to {max}")) }
}

/// Receive buffers: as much as can be advertised (RFC 7323).
const MAX_BUFFER: u32 = 65_535 << 14;

fn switch(value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{value}` is neither on nor off")),
    }
}

fn millis(value: &str) -> Result<Duration, String> {
    number(value).map(Duration::from_millis)
}

/// Applies `--key=value` of bentpipe's own scripts; `None` if there is no such key.
///
/// # Errors
/// Fails if the value does not suit the key. The message says what was expected.
pub(crate) fn set(config: &mut TcpConfig, key: &str, value: &str) -> Option<Result<(), String>> {
    Some(try_set(config, key, value)).filter(|result| result.as_ref().err().is_none_or(|error| error != UNKNOWN))
}

const UNKNOWN: &str = "no such setting";

fn try_set(config: &mut TcpConfig, key: &str, value: &str) -> Result<(), String> {
    let variant = &mut config.variant;
    match key {
        "variant" => {
            let named = Variant::named(value).ok_or("no such variant")?;
            *variant = Variant { initial_window: variant.initial_window, ..named };
        }
        "iw" => variant.initial_window = positive(value, u32::MAX)?,
        "fixed-window" => variant.startup = Startup::FixedWindow(positive(value, u32::MAX)?),
        "growth" => {
            variant.growth = match value.split_once(':') {
                Some(("bytes", max)) => Growth::Bytes(number(max)?),
                None if value == "per-ack" => Growth::PerAck,
                _ => return Err("per-ack or bytes:N".into()),
            }
        }
        "dupthresh" => variant.dup_thresh = DupThresh { count: number(value)?, ..variant.dup_thresh },
        "limited-transmit" => variant.limited_transmit = switch(value)?,
        "frto" => variant.frto = switch(value)?,
        "tail-probe" => variant.tail_probe = switch(value)?,
        "offload" => variant.offload = switch(value)?,
        "rack-reordering" => {
            variant.rack_reordering = match value {
                "rfc8985" => Reordering::Rfc8985,
                "linux" => Reordering::Linux,
                _ => return Err("rfc8985 or linux".into()),
            }
        }
        "min-rtt-window" => variant.min_rtt_window = Some(millis(value)?),
        "pacing-gain" => variant.pacing.gains = Some((number(value)?, number(value)?)),
        "pacing-max-kbit" => {
            let kbit: u64 = number(value)?;
            variant.pacing.max_rate = Rate::from_bits_per_second(kbit.saturating_mul(1000));
        }
        "pacing-quantum-us" => variant.pacing.quantum = Duration::from_micros(number(value)?),
        "pacing-credit" => variant.pacing.credit = switch(value)?,
        "pacing-unpaced" => variant.pacing.unpaced = number(value)?,
        "once-per-window" => variant.once_per_window = switch(value)?,
        "guard-after-timeout" => variant.guard_after_timeout = switch(value)?,
        "timeout-repair" => {
            variant.timeout_repair = match value {
                "go-back" => TimeoutRepair::GoBack,
                "oldest" => TimeoutRepair::Oldest,
                _ => return Err("go-back or oldest".into()),
            }
        }
        key if key.starts_with("burst-") => {
            let Recovery::BurstEstimate(cells) = &mut variant.recovery else {
                return Err("after --variant=burst".into());
            };
            match key {
                "burst-first-repeats" => cells.first_repeats = number(value)?,
                "burst-skip" => cells.in_burst_skip = switch(value)?,
                "burst-guard" if value == "off" => cells.guard = ReentryGuard::Off,
                "burst-guard" if value == "recover" => cells.guard = ReentryGuard::Recover,
                "burst-guard" if value == "credit" => cells.guard = ReentryGuard::Credit,
                _ => return Err("unknown setting, or value".into()),
            }
        }
        "max-burst" => variant.max_burst = Some(number(value)?),
        "ack" => {
            config.ack = match value {
                "immediate" => AckPolicy::IMMEDIATE,
                "delayed" => AckPolicy::DELAYED,
                "linux" => AckPolicy::LINUX,
                _ => return Err("immediate, delayed or linux".into()),
            }
        }
        "compress" => config.ack.compress = Some(Compress { delay: millis(value)?, ..Compress::LINUX }),
        "quick" => config.ack.quick = number(value)?,
        "gro-us" => config.ack.gro = Duration::from_micros(number(value)?),
        "pushed" => config.ack.pushed = switch(value)?,
        "adapt" => config.ack.adapt = switch(value)?,
        "gaps-take-room" => config.gaps_take_room = switch(value)?,
        "window-follows" => config.window_follows = switch(value)?,
        "first-window" => config.first_window = Some(number(value)?),
        "ack-tick" => config.ack.tick = Some(millis(value)?),
        "additive-constant" => config.shortcuts.bsd_additive_constant = switch(value)?,
        "daass" => {
            config.ack.daass = match value {
                "slow-start" => Daass::SlowStart,
                n => Daass::FirstSegments(number(n)?),
            }
        }
        "rto-min" => config.rto.min = millis(value)?,
        "rto-max" => config.rto.max = millis(value)?,
        "ticks" => {
            config.rto.clock = RttClock::Ticks {
                tick: Duration::from_millis(positive(value, u64::MAX)?),
                phase: Duration::ZERO,
                fire_on_tick: true,
                bsd: false,
            }
        }
        "rto-timing" => {
            config.rto.timing = match value {
                "acks" => RtoTiming::Acks,
                "segments" => RtoTiming::Segments,
                _ => return Err("acks or segments".into()),
            }
        }
        "syn-losses" => config.syn_losses = number(value)?,
        "retries" => config.rto.max_retries = number(value)?,
        "give-up" => {
            config.rto.give_up = match value {
                "count" => GiveUp::Count,
                "time" => GiveUp::Time,
                _ => return Err("count or time".into()),
            }
        }
        "syn-retries" => config.rto.max_syn_retries = Some(number(value)?),
        "syn-ack-retries" => config.rto.max_syn_ack_retries = Some(number(value)?),
        "closed-retries" => config.rto.max_closed_retries = Some(number(value)?),
        "probes" => config.rto.max_probes = Some(number(value)?),
        "linear-syn-timeouts" => config.rto.linear_syn_timeouts = number(value)?,
        "buffer" => config.receive_buffer = positive(value, MAX_BUFFER)?,
        "wscale" => config.window_scaling = switch(value)?,
        "timestamps" => config.timestamps = switch(value)?,
        "echo-repetitions" => config.echo_repetitions = switch(value)?,
        "sack-blocks" => config.sack_blocks = number(value)?,
        "dsack" => config.dsack = switch(value)?,
        "clamp" => config.window_clamp = Some(number(value)?),
        "ssthresh" => config.initial_ssthresh = Some(positive(value, u32::MAX)?),
        "limited-slow-start" => variant.limited_slow_start = Some(number(value)?),
        "slow-start-exit" => {
            variant.slow_start_exit = match value {
                "loss" => SlowStartExit::Loss,
                "hystart++" => SlowStartExit::HyStartPlusPlus,
                "hystart" => SlowStartExit::HyStart,
                "search" => SlowStartExit::Search,
                _ => return Err("loss, hystart++, hystart or search".into()),
            }
        }
        "resume" => {
            let (cwnd, rtt) = value.split_once(':').ok_or("bytes:milliseconds")?;
            config.resume = Some(Resume { cwnd: number(cwnd)?, min_rtt: millis(rtt)? });
        }
        "ecn" => {
            config.ecn = match value {
                "accept" => EcnUse::Accept,
                "accurate" => EcnUse::Accurate,
                "accept-accurate" => EcnUse::AcceptAccurate,
                value if switch(value)? => EcnUse::On,
                _ => EcnUse::Off,
            }
        }
        "ecn-option" => {
            config.ecn_option = match value {
                "off" => EcnOption::Off,
                "changes" => EcnOption::Changes,
                "always" => EcnOption::Always,
                _ => return Err("off, changes or always".into()),
            }
        }
        "abe" => config.abe = switch(value)?,
        "wmem" => config.send_buffer = Some(number(value)?),
        "first-wmem" => config.first_send_buffer = number(value)?,
        "nagle" => config.nagle = switch(value)?,
        "idle-restart" => config.restart_after_idle = switch(value)?,
        "idle-decay" => config.idle_decay = switch(value)?,
        "time-wait" => config.time_wait = millis(value)?,
        "sharing" => {
            config.tcb_sharing = match value {
                "off" => TcbSharing::Off,
                "ssthresh" => TcbSharing::Ssthresh,
                "all" => TcbSharing::SsthreshAndRtt,
                "linux" => TcbSharing::Linux,
                _ => return Err("off, ssthresh, all or linux".into()),
            }
        }
        "unit" if value == "segments" => config.shortcuts.window_unit = WindowUnit::Segments,
        "halve" => {
            config.shortcuts.ssthresh_base = match value {
                "window" => SsthreshBase::Window,
                "whole-window" => SsthreshBase::WholeWindow,
                "in-force" => SsthreshBase::InForce,
                _ => return Err("window, whole-window or in-force".into()),
            }
        }
        _ => return Err(UNKNOWN.into()),
    }
    Ok(())
}
