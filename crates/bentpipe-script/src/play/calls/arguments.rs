//! Arguments and results of system calls: numbers, symbols, fields, flags.

use std::net::{IpAddr, SocketAddr};

use super::super::Stop;
use crate::host::calls::Flags;
use crate::host::ready::event;
use crate::lang::ast::{Call, Expr};

pub(super) const EPOLLET: u32 = 1 << 31;
pub(super) const EPOLLONESHOT: u32 = 1 << 30;

pub(super) fn same_errno(have: &str, expected: &str) -> bool {
    let plain = |name: &str| if name == "EWOULDBLOCK" { "EAGAIN".to_owned() } else { name.to_owned() };
    plain(have) == plain(expected)
}

pub(super) fn show_result(call: &Call) -> String {
    let result = match &call.result {
        Expr::Int(value) => value.to_string(),
        _ => "...".into(),
    };
    format!("{}(...) = {result}{}", call.name, call.errno.as_ref().map(|errno| format!(" {errno}")).unwrap_or_default())
}

pub(super) fn integer(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Int(value) => Some(*value),
        Expr::Word(word) => symbol(word),
        _ => None,
    }
}

/// Named numbers.
pub(super) fn symbol(word: &str) -> Option<i64> {
    if let Some(class) = word.strip_prefix("IPTOS_DSCP_CS") {
        // RFC 2474 §4.2.2.2: class selectors are the three upper bits.
        return class.parse::<i64>().ok().filter(|class| *class < 8).map(|class| class << 5);
    }
    (word == "INT_MAX").then_some(i32::MAX.into())
}

pub(super) fn list_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::List(list) => list.first().and_then(integer),
        _ => None,
    }
}

pub(super) fn number(arguments: &[Expr], at: usize) -> Result<i64, Stop> {
    let found = arguments.get(at).and_then(integer);
    found.ok_or_else(|| Stop::Needs(format!("a call whose argument {} is not a number", at + 1)))
}

/// The value of a field of a structure; `msg_iov(1)=...` is found by its name too.
pub(super) fn field<'a>(expr: &'a Expr, name: &str) -> Option<&'a Expr> {
    let Expr::Struct(parts) = expr else { return None };
    parts.iter().find_map(|part| match part {
        Expr::Field(subject, value) => match &**subject {
            Expr::Word(word) | Expr::Of(word, _) if word == name => Some(&**value),
            _ => None,
        },
        _ => None,
    })
}

/// All symbols of arguments, in order.
pub(super) fn symbols(arguments: &[Expr]) -> Vec<String> {
    fn walk(expr: &Expr, found: &mut Vec<String>) {
        match expr {
            Expr::Word(word) => found.push(word.clone()),
            Expr::Or(all) | Expr::List(all) | Expr::Struct(all) => all.iter().for_each(|one| walk(one, found)),
            Expr::Field(_, value) => walk(value, found),
            _ => {}
        }
    }
    let mut found = Vec::new();
    arguments.iter().for_each(|argument| walk(argument, &mut found));
    found
}

/// True if a new socket does not wait: socket(), accept4().
pub(super) fn has_nonblock(arguments: &[Expr]) -> bool {
    symbols(arguments).iter().any(|symbol| symbol == "SOCK_NONBLOCK")
}

pub(super) fn flags(arguments: &[Expr]) -> Flags {
    let symbols = symbols(arguments);
    let has = |name: &str| symbols.iter().any(|symbol| symbol == name);
    Flags {
        peek: has("MSG_PEEK"),
        dont_wait: has("MSG_DONTWAIT"),
        more: has("MSG_MORE"),
        truncate: has("MSG_TRUNC"),
        wait_all: has("MSG_WAITALL"),
    }
}

pub(super) fn events(expr: Option<&Expr>) -> u32 {
    let Some(expr) = expr else { return 0 };
    let names = symbols(std::slice::from_ref(expr));
    names
        .iter()
        .map(|name| match name.trim_start_matches('E') {
            "POLLIN" | "POLLRDNORM" => event::IN,
            "POLLOUT" | "POLLWRNORM" => event::OUT,
            "POLLERR" => event::ERR,
            "POLLHUP" => event::HUP,
            "POLLRDHUP" => event::RDHUP,
            "POLLET" => EPOLLET,
            "POLLONESHOT" => EPOLLONESHOT,
            _ => 0,
        })
        .fold(0, |all, one| all | one)
}

/// `{sa_family = AF_INET, sin_port = htons(8080), sin_addr = inet_addr("192.0.2.1")}`: only the port counts.
pub(super) fn address(expr: Option<&Expr>, ip: IpAddr) -> Option<SocketAddr> {
    let port = field(expr?, "sin_port").or_else(|| field(expr?, "sin6_port"))?;
    let Expr::Of(_, arguments) = port else { return None };
    let port = arguments.first().and_then(integer)?;
    Some(SocketAddr::new(ip, u16::try_from(port).ok()?))
}
