//! Finds unsupported features in the text of a script: its calls, options, flags, settings and packets. The result does
//! not depend on whether the script passes.

use std::collections::BTreeSet;

use crate::host::command::{Effect, effects, without_prefix};
use crate::host::{Profile, Settings, linux};
use crate::lang::ast::{Action, Body, Call, Expr, Script, TcpOption};
use crate::lang::code;
use crate::play::names;
use crate::wire::flag;

/// Supported calls.
const CALLS: [&str; 26] = [
    "socket",
    "bind",
    "listen",
    "accept",
    "accept4",
    "connect",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmsg",
    "write",
    "writev",
    "send",
    "sendto",
    "sendmsg",
    "fcntl",
    "ioctl",
    "poll",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "close",
    "shutdown",
    "getsockopt",
];

/// Those that return a new descriptor.
const MAKE_DESCRIPTORS: [&str; 5] = ["socket", "accept", "accept4", "epoll_create", "epoll_create1"];

/// Supported socket options, read or set.
const OPTIONS: [&str; 21] = [
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_ERROR",
    "SO_RCVBUF",
    "SO_SNDBUF",
    "SO_LINGER",
    "TCP_NODELAY",
    "TCP_CORK",
    "TCP_NOPUSH",
    "TCP_MAXSEG",
    "TCP_KEEPINIT",
    "TCP_KEEPIDLE",
    "TCP_KEEPINTVL",
    "TCP_KEEPCNT",
    "TCP_SYNCNT",
    "TCP_NOTSENT_LOWAT",
    "IP_TOS",
    "IP_TTL",
    "IPV6_TCLASS",
    "IPV6_UNICAST_HOPS",
    "TCP_CONGESTION",
];

/// Kernel settings that have no effect on a host here.
const NEUTRAL: [&str; 24] = [
    "tcp.hostcache.purgenow",
    "tcp.blackhole",
    "tcp.syncookies",
    "kern.ipc.maxsockbuf",
    "tcp.path_mtu_discovery",
    "tcp.udp_tunneling_port",
    "tcp.udp_tunneling_overhead",
    "tcp.rexmit_slop",
    "tcp.fastopen.client_enable",
    "tcp_fack",
    "tcp_fastopen",
    "tcp_fastopen_key",
    "tcp_fastopen_cookies",
    "tcp_fastopen_blackhole_timeout_sec",
    "tcp_tso_win_divisor",
    "tcp_min_tso_segs",
    "tcp_pacing_ss_ratio",
    "tcp_pacing_ca_ratio",
    "tcp_syncookies",
    "tcp_ecn_option_beacon",
    "tcp_base_mss",
    "tcp_moderate_rcvbuf",
    "tcp_no_metrics_save",
    "vm.old_mlock",
];

/// The names of the unsupported features of a script.
pub fn missing(script: &Script, profile: Profile) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    let mut needs = |feature: &str| {
        missing.insert(feature.to_owned());
    };
    for setting in &script.settings {
        match setting.name.as_str() {
            "udp_encapsulation" => needs("UDP encapsulation"),
            "tcp_md5_secret" => needs("TCP MD5 signatures"),
            _ => {}
        }
    }
    let mut is_connected = false;
    for event in &script.events {
        is_connected |= matches!(event.action, Action::Inbound(_) | Action::Outbound(_));
        match &event.action {
            Action::Command(command) => {
                for effect in effects(command) {
                    let is_live = matches!(&effect, Effect::Sysctl(name, _) if name == "tcp_ecn_option");
                    if is_connected && is_live {
                        needs("a setting that changes while connected");
                    }
                    of_effect(&effect, &mut needs);
                }
            }
            Action::Call(call) => of_call(call, &mut needs),
            Action::Code(text) => match code::compile(text) {
                Err(_) => needs("Python beyond assertions"),
                Ok(code) => {
                    let unknown = |name: &&String| name.starts_with("tcpi_") && !names::is_known(name);
                    for name in code.names().iter().filter(unknown) {
                        needs(&format!("TCP_INFO: {name}"));
                    }
                    if code.names().iter().any(|name| name.starts_with("SK_MEMINFO_")) {
                        needs("the memory of a socket");
                    }
                    // Linux's state between a mark and the end of its window.
                    if code.names().iter().any(|name| *name == "TCP_CA_CWR") {
                        needs("TCP_INFO: TCP_CA_CWR");
                    }
                }
            },
            Action::Inbound(packet) | Action::Outbound(packet) => {
                if let Body::Tcp(tcp) = &packet.body
                    && (tcp.flags & flag::URG != 0 || tcp.urgent.is_some())
                {
                    needs("urgent data");
                }
            }
        }
    }
    of_path(script, &mut needs);
    of_descriptors(script, &mut needs);
    of_insecure(script, &mut needs);
    if profile == Profile::Linux {
        of_send_buffer(script, &mut needs);
    }
    missing
}

fn of_effect(effect: &Effect, needs: &mut impl FnMut(&str)) {
    match effect {
        Effect::Foreign(feature) => needs(feature),
        Effect::Sysctl(name, value) => match (name.as_str(), value.trim()) {
            // Only where it makes a difference, see below.
            ("tcp.insecure_rst" | "tcp.insecure_syn", _) => {}
            ("tcp.ecn.enable" | "tcp_ecn", "0" | "1" | "2" | "3" | "5") | ("tcp_ecn", "4") => {}
            ("tcp.ecn.enable" | "tcp_ecn", _) => needs("accurate ECN"),
            ("tcp.syncookies_only" | "tcp.rexmit_drop_options" | "tcp.pmtud_blackhole_detection", "0") => {}
            ("tcp.syncookies_only", _) => needs("SYN cookies"),
            ("tcp.rexmit_drop_options", _) => needs("dropping options of a repeated SYN"),
            ("tcp.pmtud_blackhole_detection", _) => needs("path MTU discovery"),
            // 0: no ACK is held back because another one has left shortly before.
            ("tcp_mtu_probing" | "tcp_invalid_ratelimit", "0") => {}
            ("tcp_mtu_probing", _) => needs("path MTU discovery"),
            ("tcp_early_retrans", "1" | "2") | ("tcp.rfc5827", "1") => needs("early retransmit"),
            ("tcp_early_retrans" | "tcp.rfc5827", _) => {}
            ("tcp_congestion_control", value) if linux::row(value).is_none() => needs("another congestion control"),
            (name, value) => {
                if !has_sysctl(Profile::Linux, name, value) {
                    needs(&format!("sysctl {name}"));
                }
            }
        },
        _ => {}
    }
}

/// True if a host has this kernel setting, with `sysctl`'s name, or if it makes no difference here.
pub(crate) fn has_sysctl(profile: Profile, name: &str, value: &str) -> bool {
    let name = without_prefix(name);
    NEUTRAL.contains(&name) || Settings::new(profile).sysctl(name, value)
}

fn words<'a>(expr: &'a Expr, found: &mut Vec<&'a str>) {
    match expr {
        Expr::Word(word) => found.push(word),
        Expr::List(all) | Expr::Struct(all) | Expr::Or(all) | Expr::Of(_, all) => {
            all.iter().for_each(|one| words(one, found));
        }
        Expr::Field(name, value) => {
            words(name, found);
            words(value, found);
        }
        Expr::Any | Expr::Int(_) | Expr::Text(_) => {}
    }
}

/// How much a socket takes from a write depends on the size of Linux's sk_buff.
fn of_send_buffer(script: &Script, needs: &mut impl FnMut(&str)) {
    let sets_size = script.events.iter().any(|event| match &event.action {
        Action::Call(call) => matches!(call.arguments.get(2), Some(Expr::Word(option)) if option == "SO_SNDBUF"),
        _ => false,
    });
    for event in &script.events {
        let Action::Call(call) = &event.action else { continue };
        let asked = match call.arguments.get(2) {
            Some(Expr::Int(count)) => *count,
            _ => 0,
        };
        let is_partial = matches!(call.result, Expr::Int(taken) if 0 < taken && taken < asked);
        let writes = ["write", "send", "sendto"].contains(&call.name.as_str());
        if writes && (is_partial || call.until.is_some() && sets_size) {
            return needs("send buffers counted in sk_buffs");
        }
    }
}

fn of_call(call: &Call, needs: &mut impl FnMut(&str)) {
    let mut symbols = Vec::new();
    call.arguments.iter().for_each(|argument| words(argument, &mut symbols));
    for symbol in &symbols {
        match *symbol {
            "MSG_ZEROCOPY" | "SO_ZEROCOPY" => needs("MSG_ZEROCOPY"),
            "MSG_EOR" => needs("MSG_EOR"),
            "MSG_OOB" => needs("urgent data"),
            "MSG_ERRQUEUE" => needs("the error queue of a socket"),
            "SO_TIMESTAMPING" => needs("time stamps of packets"),
            "TCP_INQ" => needs("TCP_INQ"),
            _ => {}
        }
    }
    let option = call.arguments.get(2);
    // Without path MTU discovery, which is what a host here does.
    let is_plain = symbols.contains(&"IP_PMTUDISC_DONT");
    match call.name.as_str() {
        "setsockopt" if is_plain => {}
        "setsockopt" | "getsockopt" => {
            let Some(Expr::Word(option)) = option else { return needs("a socket option without a name") };
            let known = OPTIONS.contains(&option.as_str());
            if !known && !["SO_ZEROCOPY", "SO_TIMESTAMPING", "TCP_INQ"].contains(&option.as_str()) {
                needs(&format!("socket option {option}"));
            }
            if let ("TCP_CONGESTION", Some(Expr::Text(control))) = (option.as_str(), call.arguments.get(3))
                && linux::row(control).is_none()
            {
                needs("another congestion control");
            }
        }
        name if !CALLS.contains(&name) => needs(&format!("the call {name}")),
        _ => {}
    }
}

/// FreeBSD's `insecure_rst` and `insecure_syn` restore RFC 793's handling: a RST or SYN anywhere in the window ends the
/// connection. A script needs this if it enables it and sends such a segment; one at RCV.NXT is a reset in any case.
fn of_insecure(script: &Script, needs: &mut impl FnMut(&str)) {
    let (mut insecure_rst, mut insecure_syn) = (false, false);
    // What the host has acknowledged, and the end of its window: the end of the buffer, if the script gives its size.
    let (mut next, mut window) = (None::<u32>, 65_535u32);
    for event in &script.events {
        match &event.action {
            Action::Command(command) => {
                for effect in effects(command) {
                    match effect {
                        Effect::Sysctl(name, value) if name == "tcp.insecure_rst" => insecure_rst = value != "0",
                        Effect::Sysctl(name, value) if name == "tcp.insecure_syn" => insecure_syn = value != "0",
                        _ => {}
                    }
                }
            }
            Action::Call(call) => {
                let is_buffer = matches!(call.arguments.get(2), Some(Expr::Word(option)) if option == "SO_RCVBUF");
                if let (true, Some(Expr::List(list))) = (is_buffer, call.arguments.get(3))
                    && let Some(Expr::Int(buffer)) = list.first()
                {
                    window = window.max(u32::try_from(*buffer).unwrap_or(0));
                }
            }
            Action::Outbound(packet) => {
                let Body::Tcp(tcp) = &packet.body else { continue };
                if tcp.flags & flag::RST == 0 {
                    next = tcp.ack.or(next);
                }
            }
            Action::Inbound(packet) => {
                let (Body::Tcp(tcp), Some(next)) = (&packet.body, next) else { continue };
                let Some(distance) = tcp.seq.map(|seq| seq.wrapping_sub(next)) else { continue };
                let is_rst = tcp.flags & flag::RST != 0;
                let resets = insecure_rst && is_rst && (1..window).contains(&distance);
                let is_syn = tcp.flags & flag::SYN != 0 && !is_rst;
                if resets || insecure_syn && is_syn && (0..window).contains(&distance) {
                    return needs("RFC 793's handling of RST and SYN");
                }
            }
            Action::Code(_) => {}
        }
    }
}

/// A call that is expected to succeed on a closed descriptor: no host does that.
fn of_descriptors(script: &Script, needs: &mut impl FnMut(&str)) {
    let mut closed = BTreeSet::new();
    for event in &script.events {
        let Action::Call(call) = &event.action else { continue };
        let first = match call.arguments.first() {
            Some(Expr::Int(fd)) => Some(*fd),
            _ => None,
        };
        if let (Expr::Int(fd), true) = (&call.result, MAKE_DESCRIPTORS.contains(&call.name.as_str())) {
            closed.remove(fd);
        }
        match first {
            Some(fd) if call.name == "close" && call.errno.is_none() => {
                closed.insert(fd);
            }
            Some(fd) if closed.contains(&fd) && call.errno.is_none() => needs("calls on closed descriptors"),
            _ => {}
        }
    }
}

/// Path MTU discovery: an ICMP message with an MTU, before data or a SYN with another MSS is sent.
fn of_path(script: &Script, needs: &mut impl FnMut(&str)) {
    let (mut told, mut offered) = (false, None);
    for event in &script.events {
        match &event.action {
            Action::Inbound(packet) => {
                if let Body::Icmp(icmp) = &packet.body {
                    told |= icmp.mtu.is_some();
                }
            }
            Action::Outbound(packet) => {
                let Body::Tcp(tcp) = &packet.body else { continue };
                let mss = tcp.options.iter().flatten().find_map(|option| match option {
                    TcpOption::Mss(mss) => Some(*mss),
                    _ => None,
                });
                let is_smaller = mss.is_some() && offered.is_some() && mss != offered;
                offered = offered.or(mss);
                if told && (tcp.len > 0 || is_smaller) {
                    return needs("path MTU discovery");
                }
            }
            _ => {}
        }
    }
}
