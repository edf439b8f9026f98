//! Detects Linux's loss recovery in the packets that a script sends and expects.

use crate::host::command::{Effect, effects};
use crate::lang::ast::{Action, Body, Expr, Script, Tcp, TcpOption, When};
use crate::wire::flag;

/// Linux's loss recovery. `defaults.sh` enables RACK and TLP; PRR is always on.
///
/// - TLP: data is sent by a timer while data is outstanding.
/// - RACK: data is retransmitted after an ACK, while RACK is on.
/// - PRR: an ACK within recovery is answered with more data.
/// - CUBIC: data is acknowledged in congestion avoidance, after a recovery, while CUBIC is
///   selected.
pub(super) fn of_recovery(script: &Script, needs: &mut impl FnMut(&str)) {
    let sets_send_buffer = script.events.iter().any(|event| match &event.action {
        Action::Call(call) => matches!(call.arguments.get(2), Some(Expr::Word(option)) if option == "SO_SNDBUF"),
        _ => false,
    });
    // Linux's default is CUBIC.
    let (mut rack, mut tlp, mut cubic) = (false, false, true);
    let (mut edge, mut acked, mut dupacks) = (0u32, 0u32, 0);
    let (mut recovery, mut has_recovered) = (None::<u32>, false);
    let mut last_was_inbound_ack = false;
    for event in &script.events {
        match &event.action {
            Action::Command(command) => {
                for effect in effects(command) {
                    match effect {
                        Effect::Defaults => (rack, tlp, cubic) = (true, true, true),
                        Effect::Sysctl(name, value) => match name.as_str() {
                            "tcp_early_retrans" => tlp = !matches!(value.as_str(), "0" | "1" | "2"),
                            "tcp_recovery" => rack = value != "0",
                            "tcp_congestion_control" => cubic = value == "cubic",
                            _ => {}
                        },
                        _ => {}
                    }
                }
            }
            Action::Call(call) if call.name == "setsockopt" => {
                if let (Some(Expr::Word(option)), Some(value)) = (call.arguments.get(2), call.arguments.get(3))
                    && option == "TCP_CONGESTION"
                {
                    match value {
                        Expr::Text(name) if name == "reno" => cubic = false,
                        Expr::Text(name) if name == "cubic" => cubic = true,
                        _ => needs("another congestion control"),
                    }
                }
            }
            Action::Call(call) => {
                if call.name == "write" || call.name == "send" {
                    last_was_inbound_ack = false;
                }
                let asked = match call.arguments.get(2) {
                    Some(Expr::Int(count)) => *count,
                    _ => 0,
                };
                let is_partial = matches!(call.result, Expr::Int(taken) if 0 < taken && taken < asked);
                let writes = ["write", "send", "sendto"].contains(&call.name.as_str());
                if writes && (is_partial || call.until.is_some() && sets_send_buffer) {
                    needs("send buffers counted in sk_buffs");
                }
            }
            Action::Inbound(packet) => {
                let Body::Tcp(tcp) = &packet.body else { continue };
                if tcp.flags & flag::SYN != 0 {
                    (edge, acked, dupacks, recovery, has_recovered) = (1, 1, 0, None, false);
                    continue;
                }
                let Some(ack) = tcp.ack else { continue };
                last_was_inbound_ack = true;
                if has_recovered && has_sack_below(tcp, ack) {
                    needs("undo by D-SACK");
                }
                if has_sack_above(tcp, ack) || (ack == acked && tcp.len == 0 && edge.wrapping_sub(acked) as i32 > 0) {
                    dupacks += 1;
                } else if ack != acked {
                    dupacks = 0;
                }
                acked = ack;
                if recovery.is_some_and(|upto| ack.wrapping_sub(upto) as i32 >= 0) {
                    (recovery, has_recovered) = (None, true);
                }
            }
            Action::Outbound(packet) => {
                let Body::Tcp(tcp) = &packet.body else { continue };
                let is_fin = tcp.flags & flag::FIN != 0;
                let Some(seq) = tcp.seq.filter(|_| tcp.len > 0 || is_fin) else { continue };
                let end = seq.wrapping_add(tcp.len + u32::from(is_fin));
                let is_again = edge.wrapping_sub(seq) as i32 > 0;
                let is_outstanding = edge.wrapping_sub(acked) as i32 > 0;
                let waits = matches!(event.when, When::After(1..) | When::AfterBetween(1.., _));
                if waits && is_outstanding && tlp {
                    needs("TLP");
                }
                if is_again && !waits {
                    if rack {
                        needs("RACK");
                    }
                    if recovery.is_none() && dupacks > 0 {
                        recovery = Some(edge);
                    } else if recovery.is_some() && last_was_inbound_ack {
                        needs("PRR");
                    }
                } else if recovery.is_some() && last_was_inbound_ack {
                    needs("PRR");
                } else if has_recovered && cubic {
                    needs("CUBIC");
                }
                if end.wrapping_sub(edge) as i32 > 0 {
                    edge = end;
                }
            }
            Action::Code(text) => {
                let looks = text.contains("tcpi_snd_cwnd") || text.contains("tcpi_snd_ssthresh");
                if looks && cubic && (recovery.is_some() || has_recovered) {
                    needs("CUBIC");
                }
            }
        }
    }
}

fn has_sack_below(tcp: &Tcp, ack: u32) -> bool {
    tcp.options.iter().flatten().any(|option| match option {
        TcpOption::Sack(blocks) => blocks.iter().any(|(start, _)| (start.wrapping_sub(ack) as i32) < 0),
        _ => false,
    })
}

fn has_sack_above(tcp: &Tcp, ack: u32) -> bool {
    tcp.options.iter().flatten().any(|option| match option {
        TcpOption::Sack(blocks) => blocks.iter().any(|(start, _)| start.wrapping_sub(ack) as i32 >= 0),
        _ => false,
    })
}
