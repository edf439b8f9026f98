//! Compares a packet with the one that a script expects.

use std::fmt::Write;

use super::Pace;
use super::flow::Flow;
use crate::lang::ast::{Packet, Tcp, TcpOption};
use crate::wire::{Seen, flag, show_flags};

/// The name of the first field that differs.
///
/// Options are compared as a set, without padding. PSH is compared only if `strict`.
pub(super) fn difference(
    packet: &Packet,
    tcp: &Tcp,
    seen: &Seen,
    flow: &Flow,
    strict: bool,
    pace: &Pace,
) -> Option<&'static str> {
    //= RFC 9293 §3.9.1.2: "The PSH bit is not a record marker and is independent of segment boundaries."
    let compared = if strict { u16::MAX } else { !flag::PSH };
    if (tcp.flags ^ seen.flags) & compared != 0 {
        return Some("the set of flags");
    }
    let seq = if tcp.is_absolute { seen.seq } else { flow.script(seen.seq) };
    // A script may give the initial number of a SYN any name; what follows counts from it.
    let is_initial = tcp.flags & flag::SYN != 0 && !tcp.is_absolute && seq == 0;
    if !is_initial && tcp.seq.is_some_and(|expected| expected != seq) {
        return Some("the sequence number");
    }
    if tcp.len as usize != seen.payload.len() {
        return Some("the length");
    }
    if tcp.flags & flag::ACK != 0 && tcp.ack.is_some_and(|ack| ack != seen.ack) {
        return Some("the acknowledgement number");
    }
    if tcp.window.is_some_and(|window| !same_window(window, seen, flow, strict)) {
        return Some("the window");
    }
    let services = [(packet.tos, seen.tos), (packet.ttl, seen.ttl), (packet.ecn, seen.tos & 3)];
    if services.iter().any(|(expected, have)| expected.is_some_and(|expected| expected != *have)) {
        return Some("the IP header");
    }
    let expected = tcp.options.as_deref()?;
    options_differ(expected, &seen.options, flow, strict, pace)
}

/// True if the script expects a repeated FIN in the host's ACK of the peer's FIN, and the ACK came without it. FreeBSD
/// repeats the FIN there. RFC 9293 figure 13 (§3.6) does not: `<SEQ=101><ACK=301><CTL=ACK>`.
pub(super) fn is_bare_for_repeated_fin(tcp: &Tcp, seen: &Seen, flow: &Flow) -> bool {
    let fin = flag::FIN | flag::ACK;
    let is_repeated = tcp.flags & !flag::PSH == fin && tcp.len == 0 && tcp.seq.is_some() && tcp.seq == flow.fin_at;
    let is_bare = seen.flags == flag::ACK && seen.payload.is_empty();
    let follows = tcp.seq.is_some_and(|seq| seq.wrapping_add(1) == flow.script(seen.seq));
    is_repeated && is_bare && follows && tcp.ack == Some(seen.ack) && flow.peer_fin == Some(seen.ack)
}

/// Windows are compared in bytes, because the scales may differ: they match if they are within one step of the coarser
/// scale. If not `strict`, they may differ by less than a segment: kernels round their buffers to whole segments,
/// FreeBSD up and Linux down, and the right edge may lag by as much:
///
//= RFC 9293 §3.8.6.2.2: "The suggested SWS avoidance algorithm for the receiver is to keep RCV.NXT+RCV.WND fixed until
//= the reduction satisfies"
fn same_window(window: u16, seen: &Seen, flow: &Flow, strict: bool) -> bool {
    let is_syn = seen.has(flag::SYN);
    if flow.has_untold_scale() && !is_syn && !strict {
        // `<...>` leaves the scale open: any scale that makes them equal matches.
        let live = flow.live_scale();
        return (0..=14).any(|script| are_close(seen.window, live, window, script, flow.segment() - 1));
    }
    let (live, script) = flow.scales(is_syn);
    let slack = if strict || is_syn || seen.window == 0 || window == 0 { 0 } else { flow.segment() - 1 };
    are_close(seen.window, live, window, script, slack)
}

fn are_close(have: u16, live: u32, expected: u16, script: u32, slack: u64) -> bool {
    let (live_bytes, script_bytes) = (u64::from(have) << live, u64::from(expected) << script);
    let step = if live == script { 0 } else { 1u64 << live.max(script) };
    live_bytes.abs_diff(script_bytes) <= step + slack
}

fn options_differ(
    expected: &[TcpOption],
    have: &[TcpOption],
    flow: &Flow,
    strict: bool,
    pace: &Pace,
) -> Option<&'static str> {
    let is_padding = |option: &&TcpOption| matches!(option, TcpOption::Nop | TcpOption::Eol);
    let expected: Vec<&TcpOption> = expected.iter().filter(|option| !is_padding(option)).collect();
    let mut have: Vec<&TcpOption> = have.iter().filter(|option| !is_padding(option)).collect();
    let has_stamps = |all: &[&TcpOption]| all.iter().any(|option| matches!(option, TcpOption::Timestamps(..)));
    if strict && !has_stamps(&expected) {
        // Scripts that are not about timestamps omit them.
        have.retain(|option| !matches!(option, TcpOption::Timestamps(..)));
    }
    for option in expected {
        let same = |other: &&TcpOption| match (option, *other) {
            (TcpOption::Timestamps(value, echo), TcpOption::Timestamps(live, live_echo)) => {
                echo == live_echo && same_stamp(*value, *live, flow, pace, strict)
            }
            // The shift may be any: windows are compared in bytes.
            (TcpOption::WindowScale(shift), TcpOption::WindowScale(live)) => !strict || shift == live,
            (one, other) => one == other,
        };
        match have.iter().position(same) {
            Some(at) => {
                have.remove(at);
            }
            None => return Some("an option"),
        }
    }
    (!have.is_empty()).then_some("the set of options")
}

/// True if a host timestamp can correspond to the script's value, by its distance from the first one.
fn same_stamp(script: u32, live: u32, flow: &Flow, pace: &Pace, strict: bool) -> bool {
    let (Some((first_script, first_live)), Some(tick)) = (flow.first_stamp, pace.tick) else { return true };
    let script = i64::from(script.wrapping_sub(first_script) as i32) * tick;
    // The host's clock ticks once a millisecond.
    let live = i64::from(live.wrapping_sub(first_live) as i32) * 1000;
    (script - live).abs() <= if strict { 0 } else { pace.tolerance + tick.max(1000) }
}

/// The packet in the script's syntax.
pub(super) fn show_expected(packet: &Packet, tcp: &Tcp) -> String {
    let mut text = String::new();
    for (name, value) in [("tos", packet.tos), ("ttl", packet.ttl), ("ecn", packet.ecn)] {
        if let Some(value) = value {
            let _ = write!(text, "({name} {value:#x}) ");
        }
    }
    let _ = match tcp.seq {
        Some(seq) => {
            write!(text, "{} {seq}:{}({})", show_flags(tcp.flags), seq.wrapping_add(tcp.len), tcp.len)
        }
        None => write!(text, "{} ...({})", show_flags(tcp.flags), tcp.len),
    };
    if tcp.is_absolute {
        text.push('!');
    }
    if let Some(ack) = tcp.ack {
        let _ = write!(text, " ack {ack}");
    }
    if let Some(window) = tcp.window {
        let _ = write!(text, " win {window}");
    }
    match &tcp.options {
        None => text += " <...>",
        Some(options) if options.is_empty() => {}
        Some(options) => {
            let options: Vec<String> = options.iter().map(TcpOption::to_string).collect();
            let _ = write!(text, " <{}>", options.join(","));
        }
    }
    text
}
