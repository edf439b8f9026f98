//! epoll: watched descriptors and their events.

use super::Descriptor;
use super::arguments::{EPOLLET, EPOLLONESHOT, events, field, integer, number, symbols};
use crate::host::Reply;
use crate::host::ready::event;
use crate::lang::ast::{Call, Expr};
use crate::play::{Player, Stop};

/// The events that epoll watches on a descriptor.
#[derive(Clone, Debug)]
pub(in crate::play) struct Interest {
    pub(super) fd: i64,
    /// What the program has stored with it, and gets with each event.
    data: Option<i64>,
    events: u32,
    is_edge: bool,
    is_once: bool,
    is_off: bool,
    /// Readiness and arrivals at the last report.
    told: (u32, u64),
}

/// Events that are always reported.
pub(super) const ALWAYS: u32 = event::ERR | event::HUP;

/// What a call of epoll_wait() reports.
pub(super) struct Told {
    /// What is ready, for each event.
    pub(super) events: Vec<u32>,
    /// The data of all descriptors that have an event now, also of those for which the call has no room. Which of them
    /// the kernel reports first depends on when each became ready.
    data: Vec<Option<i64>>,
}

/// The data of an event, by any of its names. `None` if the script leaves it out, or has no number there.
fn data(entry: &Expr) -> Option<i64> {
    ["fd", "ptr", "u32", "u64"].iter().find_map(|name| field(entry, name)).and_then(integer)
}

impl Player {
    pub(super) fn readiness(&self, fd: i64) -> u32 {
        match self.descriptors.get(&fd) {
            Some(Descriptor::Socket(id)) => self.host.ready(*id),
            _ => 0,
        }
    }

    pub(super) fn epoll_events(&mut self, epoll: i64, max: usize) -> Told {
        let mut told = Told { events: Vec::new(), data: Vec::new() };
        let Some(mut interests) = self.epolls.remove(&epoll) else { return told };
        for interest in &mut interests {
            let ready = self.readiness(interest.fd) & (interest.events | ALWAYS);
            let arrivals = match self.descriptors.get(&interest.fd) {
                Some(Descriptor::Socket(id)) => self.host.arrivals(*id),
                _ => 0,
            };
            let before = interest.told;
            // An edge: an event became ready, or more data or another connection has arrived.
            let is_new =
                !interest.is_edge || ready & !before.0 != 0 || (ready & event::IN != 0 && arrivals != before.1);
            if interest.is_edge && ready == 0 {
                interest.told.0 = 0;
            } else if interest.is_edge {
                interest.told.0 &= ready;
            }
            if ready == 0 || interest.is_off || !is_new {
                continue;
            }
            told.data.push(interest.data);
            if told.events.len() == max {
                continue;
            }
            interest.told = (ready, arrivals);
            interest.is_off = interest.is_once;
            told.events.push(ready);
        }
        self.epolls.insert(epoll, interests);
        told
    }

    pub(super) fn epoll_ctl(&mut self, arguments: &[Expr]) -> Result<Reply, Stop> {
        let (epoll, fd) = (number(arguments, 0)?, number(arguments, 2)?);
        let wanted = events(arguments.get(3).and_then(|argument| field(argument, "events")));
        let operation = symbols(&arguments[1..2]);
        let Some(interests) = self.epolls.get_mut(&epoll) else { return Ok(Reply::Error("EBADF")) };
        let at = interests.iter().position(|interest| interest.fd == fd);
        let fresh = Interest {
            fd,
            data: arguments.get(3).and_then(data),
            events: wanted & 0xffff,
            is_edge: wanted & EPOLLET != 0,
            is_once: wanted & EPOLLONESHOT != 0,
            is_off: false,
            told: (0, 0),
        };
        match (operation.first().map(String::as_str), at) {
            (Some("EPOLL_CTL_ADD"), None) => interests.push(fresh),
            (Some("EPOLL_CTL_ADD"), Some(_)) => return Ok(Reply::Error("EEXIST")),
            (Some("EPOLL_CTL_MOD"), Some(at)) => interests[at] = fresh,
            (Some("EPOLL_CTL_DEL"), Some(at)) => {
                interests.remove(at);
            }
            _ => return Ok(Reply::Error("ENOENT")),
        }
        Ok(Reply::Value(0))
    }
}

pub(super) fn check_epoll(call: &Call, told: &Told) -> Result<(), Reply> {
    let Some(expected) = call.arguments.get(1) else { return Ok(()) };
    let entries: Vec<&Expr> = match expected {
        Expr::List(list) => list.iter().collect(),
        one => vec![one],
    };
    for (ready, entry) in told.events.iter().zip(entries) {
        if field(entry, "events").is_some() && events(field(entry, "events")) & !EPOLLET != *ready {
            return Err(Reply::Error("other events"));
        }
        let is_expected = |data| told.data.iter().any(|stored| stored.is_none_or(|stored| stored == data));
        if !data(entry).is_none_or(is_expected) {
            return Err(Reply::Error("other data"));
        }
    }
    Ok(())
}
