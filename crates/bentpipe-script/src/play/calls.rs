//! System calls of a script, and the blocking one.

mod arguments;
pub(super) mod epoll;

use std::net::SocketAddr;

use super::fails;
use super::seconds;
use super::sent_by_peer;
use super::{PORT, Player, Stop};
use crate::host::calls::{Flags, Shut};
use crate::host::{Reply, SocketId};
use crate::lang::ast::{Call, Expr};
use arguments::{
    address, events, field, flags, has_nonblock, integer, list_number, number, same_errno, show_result, symbols,
};
use epoll::{ALWAYS, check_epoll};

/// A descriptor of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descriptor {
    Socket(SocketId),
    Epoll,
}

/// A call that has not returned.
#[derive(Clone, Debug)]
pub(super) struct Blocked {
    pub(super) line: u32,
    pub(super) until: i64,
    /// When it gives up.
    pub(super) deadline: Option<i64>,
    call: Call,
    work: Work,
}

/// A call, with its progress.
#[derive(Clone, Debug)]
enum Work {
    Connect(SocketId),
    Accept(SocketId, i64),
    Read(SocketId, u64, Flags),
    Write { id: SocketId, length: u64, done: u64, flags: Flags },
    Poll(Vec<(i64, u32)>),
    Epoll(i64, usize),
    Done(Reply),
}

impl Player {
    /// Makes a call. The return time of a blocking call is relative to `origin`.
    pub(super) fn call(&mut self, line: u32, origin: i64, call: &Call) -> Result<(), Stop> {
        if self.blocked.is_some() && call.until.is_some() {
            // One thread makes all blocking calls.
            let until = self.blocked.as_ref().map_or(0, |blocked| blocked.until);
            self.run_to(until + self.pace.tolerance)?;
        }
        let (work, timeout) = self.begin(call)?;
        let deadline =
            timeout.filter(|millis| *millis >= 0).map(|millis| self.now.saturating_add(millis.saturating_mul(1000)));
        let until = call.until.map(|until| origin + until);
        let mut blocked = Blocked { line, until: until.unwrap_or(self.now), deadline, call: call.clone(), work };
        match (self.attempt(&mut blocked), until) {
            (Reply::Blocks, Some(_)) => {
                self.blocked = Some(blocked);
                self.settle()
            }
            (Reply::Blocks, None) => fails(show_result(call), "the call blocks"),
            (reply, None) => {
                self.compare(&blocked, &reply)?;
                self.settle()
            }
            (reply, Some(until)) => {
                self.compare(&blocked, &reply)?;
                if until - self.now > self.pace.tolerance.max(self.pace.share * (until - self.due) / 1000) {
                    return fails(
                        format!("the call returns at {}", seconds(until)),
                        format!("at {}", seconds(self.now)),
                    );
                }
                self.settle()
            }
        }
    }

    /// Retries the blocking call.
    pub(super) fn retry(&mut self) -> Result<(), Stop> {
        let Some(mut blocked) = self.blocked.take() else { return Ok(()) };
        match self.attempt(&mut blocked) {
            Reply::Blocks => {
                self.blocked = Some(blocked);
                Ok(())
            }
            reply => {
                self.compare(&blocked, &reply)?;
                let distance = (self.now - blocked.until).abs();
                let tolerance = self.pace.tolerance.max(self.pace.share * (blocked.until - self.due).abs() / 1000);
                if distance > tolerance {
                    let expected = format!("the call of line {} returns at {}", blocked.line, seconds(blocked.until));
                    return fails(expected, format!("at {}", seconds(self.now)));
                }
                Ok(())
            }
        }
    }

    fn attempt(&mut self, blocked: &mut Blocked) -> Reply {
        let is_late = blocked.deadline.is_some_and(|at| at <= self.now);
        match &mut blocked.work {
            Work::Done(reply) => reply.clone(),
            Work::Connect(id) => self.host.connected(*id),
            Work::Accept(id, fd) => {
                let (reply, child) = self.host.accept(*id);
                if let Some(child) = child {
                    // A flag of accept4(). The new socket does not inherit the listener's.
                    if has_nonblock(&blocked.call.arguments) {
                        self.host.set_nonblocking(child, true);
                    }
                    self.descriptors.insert(*fd, Descriptor::Socket(child));
                    return Reply::Value(*fd);
                }
                reply
            }
            Work::Read(id, length, flags) => self.host.read(*id, *length, *flags, sent_by_peer),
            Work::Write { id, length, done, flags } => loop {
                match self.host.write(*id, *length - *done, *flags) {
                    Reply::Value(count) => {
                        *done += count as u64;
                        let waits = !self.host.is_nonblocking(*id) && !flags.dont_wait;
                        if *done >= *length || !waits {
                            return Reply::Value(*done as i64);
                        }
                    }
                    Reply::Error(_) if *done > 0 => return Reply::Value(*done as i64),
                    other => return other,
                }
            },
            Work::Poll(watched) => {
                let ready = watched.iter().filter(|(fd, events)| self.readiness(*fd) & (events | ALWAYS) != 0).count();
                if ready > 0 || is_late { Reply::Value(ready as i64) } else { Reply::Blocks }
            }
            Work::Epoll(epoll, max) => {
                let (epoll, max) = (*epoll, *max);
                let told = self.epoll_events(epoll, max);
                if !told.events.is_empty() || is_late {
                    let count = told.events.len() as i64;
                    if let Err(reply) = check_epoll(&blocked.call, &told) {
                        return reply;
                    }
                    Reply::Value(count)
                } else {
                    Reply::Blocks
                }
            }
        }
    }

    /// The operation of a call, with its timeout in milliseconds, if any.
    fn begin(&mut self, call: &Call) -> Result<(Work, Option<i64>), Stop> {
        let arguments = &call.arguments;
        let done = |reply| Ok((Work::Done(reply), None));
        let expected = integer(&call.result);
        match call.name.as_str() {
            "socket" => {
                let Some(id) = self.host.create(has_nonblock(arguments)) else { return done(Reply::Error("EMFILE")) };
                match expected {
                    Some(fd) if fd >= 0 => {
                        self.descriptors.insert(fd, Descriptor::Socket(id));
                        done(Reply::Value(fd))
                    }
                    _ => done(Reply::Value(3)),
                }
            }
            "epoll_create" | "epoll_create1" => {
                let fd = expected.unwrap_or(-1);
                self.descriptors.insert(fd, Descriptor::Epoll);
                self.epolls.insert(fd, Vec::new());
                done(Reply::Value(fd))
            }
            "epoll_ctl" => self.epoll_ctl(arguments).map(|reply| (Work::Done(reply), None)),
            "epoll_wait" => {
                let epoll = number(arguments, 0)?;
                let max = number(arguments, 2)?;
                if max <= 0 {
                    return done(Reply::Error("EINVAL"));
                }
                Ok((Work::Epoll(epoll, max as usize), Some(number(arguments, 3)?)))
            }
            "poll" => {
                let Some(Expr::List(list)) = arguments.first() else {
                    return Err(Stop::Needs("poll() of anything but a list".into()));
                };
                let watched: Vec<(i64, u32)> = list
                    .iter()
                    .map(|entry| (field(entry, "fd").and_then(integer).unwrap_or(-1), events(field(entry, "events"))))
                    .collect();
                Ok((Work::Poll(watched), Some(number(arguments, 2)?)))
            }
            _ => self.begin_on_socket(call),
        }
    }

    fn begin_on_socket(&mut self, call: &Call) -> Result<(Work, Option<i64>), Stop> {
        let arguments = &call.arguments;
        let done = |reply| Ok((Work::Done(reply), None));
        let fd = number(arguments, 0)?;
        let id = match self.descriptors.get(&fd) {
            Some(Descriptor::Socket(id)) => *id,
            Some(Descriptor::Epoll) if call.name == "close" => {
                self.descriptors.remove(&fd);
                return done(Reply::Value(0));
            }
            _ => return done(Reply::Error("EBADF")),
        };
        let (here, there) = self.addresses();
        let flags = flags(arguments);
        // An invalid pointer.
        if symbols(arguments).iter().any(|symbol| symbol == "NULL") && call.errno.as_deref() == Some("EFAULT") {
            return done(Reply::Error("EFAULT"));
        }
        match call.name.as_str() {
            "bind" => {
                let address = address(arguments.get(1), here);
                let local = address.unwrap_or_else(|| SocketAddr::new(here, PORT));
                let reply = self.host.bind(id, local);
                self.bound = Some(local.port());
                done(reply)
            }
            "listen" => {
                let length = number(arguments, 1)?;
                let reply = self.host.listen(id, length);
                if reply == Reply::Value(0) {
                    self.listening = self.host.local_port(id).or(Some(PORT));
                    self.current = None;
                }
                done(reply)
            }
            "accept" | "accept4" => Ok((Work::Accept(id, integer(&call.result).unwrap_or(-1)), None)),
            "connect" => {
                if matches!(symbols(arguments).first().map(String::as_str), Some("AF_UNSPEC")) {
                    return Err(Stop::Needs("connect() to nowhere".into()));
                }
                let remote = address(arguments.get(1), there);
                let remote = SocketAddr::new(there, remote.map_or(PORT, |remote| remote.port()));
                match self.host.connect(id, SocketAddr::new(here, 0), remote) {
                    Reply::Blocks => Ok((Work::Connect(id), None)),
                    reply => done(reply),
                }
            }
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => {
                let length = self.length(call)?;
                Ok((Work::Read(id, length, flags), None))
            }
            "write" | "send" | "sendto" | "writev" | "sendmsg" => {
                let length = self.length(call)?;
                Ok((Work::Write { id, length, done: 0, flags }, None))
            }
            "shutdown" => {
                let how = match symbols(arguments).first().map(String::as_str) {
                    Some("SHUT_RD") => Shut::Read,
                    Some("SHUT_WR") => Shut::Write,
                    Some("SHUT_RDWR") => Shut::Both,
                    _ => return done(Reply::Error("EINVAL")),
                };
                done(self.host.shutdown(id, how))
            }
            "close" => {
                self.descriptors.remove(&fd);
                self.epolls.values_mut().for_each(|interests| interests.retain(|interest| interest.fd != fd));
                if self.host.is_listener(id) {
                    self.listening = None;
                }
                done(self.host.close(id))
            }
            "fcntl" => {
                let symbols = symbols(arguments);
                match symbols.first().map(String::as_str) {
                    Some("F_GETFL") => {
                        const O_RDWR: i64 = 2;
                        const O_NONBLOCK: [i64; 2] = [0x800, 0x4];
                        let is_linux = self.host.settings.profile == crate::host::Profile::Linux;
                        let bit = if is_linux { O_NONBLOCK[0] } else { O_NONBLOCK[1] };
                        done(Reply::Value(O_RDWR | if self.host.is_nonblocking(id) { bit } else { 0 }))
                    }
                    Some("F_SETFL") => {
                        self.host.set_nonblocking(id, symbols.iter().any(|symbol| symbol == "O_NONBLOCK"));
                        done(Reply::Value(0))
                    }
                    _ => Err(Stop::Needs("fcntl() beyond F_GETFL and F_SETFL".into())),
                }
            }
            "ioctl" => {
                let queued = match self.host.queued(id) {
                    Ok(queued) => queued,
                    Err(errno) => return done(Reply::Error(errno)),
                };
                let value = match symbols(arguments).first().map(String::as_str) {
                    Some("SIOCINQ" | "FIONREAD") => queued.0,
                    Some("SIOCOUTQ") => queued.1,
                    Some("SIOCOUTQNSD") => queued.2,
                    _ => return Err(Stop::Needs("this ioctl()".into())),
                };
                let wanted = arguments.get(2).and_then(list_number);
                if wanted.is_some_and(|wanted| wanted != value as i64) {
                    return fails(format!("[{}]", wanted.unwrap_or(0)), format!("[{value}]"));
                }
                done(Reply::Value(0))
            }
            "setsockopt" => self.set_option(id, arguments).map(|reply| (Work::Done(reply), None)),
            "getsockopt" => self.get_option(id, arguments).map(|reply| (Work::Done(reply), None)),
            name => Err(Stop::Needs(format!("the call {name}"))),
        }
    }

    fn set_option(&mut self, id: SocketId, arguments: &[Expr]) -> Result<Reply, Stop> {
        let Some(Expr::Word(name)) = arguments.get(2) else {
            return Err(Stop::Needs("a socket option without a name".into()));
        };
        if let ("TCP_CONGESTION", Some(Expr::Text(control))) = (name.as_str(), arguments.get(3)) {
            let reply = self.host.set_congestion(id, control);
            return reply.ok_or_else(|| Stop::Needs("another congestion control".into()));
        }
        let value = match arguments.get(3) {
            Some(structure @ Expr::Struct(_)) if name == "SO_LINGER" => {
                // With time 0, close() resets; another time is not waited for.
                let is_on = field(structure, "onoff").and_then(integer) == Some(1);
                let time = field(structure, "linger").and_then(integer).unwrap_or(1);
                if is_on { time } else { 1 }
            }
            Some(argument) => list_number(argument).or_else(|| integer(argument)).unwrap_or(0),
            None => 0,
        };
        match self.host.set_option(id, name, value) {
            Some(reply) => Ok(reply),
            None => Err(Stop::Needs(format!("socket option {name} on an open connection"))),
        }
    }

    fn get_option(&mut self, id: SocketId, arguments: &[Expr]) -> Result<Reply, Stop> {
        let Some(Expr::Word(name)) = arguments.get(2) else {
            return Err(Stop::Needs("a socket option without a name".into()));
        };
        let Some(value) = self.host.option(id, name) else {
            return Err(Stop::Needs(format!("socket option {name}")));
        };
        let expected = match arguments.get(3) {
            Some(Expr::List(list)) => list.first(),
            other => other,
        };
        let (is_same, shown) = match (&value, expected) {
            (Ok(value), Some(Expr::Int(expected))) => (value == expected, value.to_string()),
            (Err(errno), Some(Expr::Word(expected))) => (errno == expected, (*errno).to_owned()),
            (_, Some(Expr::Any) | None) => (true, String::new()),
            (Ok(value), _) => (false, value.to_string()),
            (Err(errno), _) => (false, (*errno).to_owned()),
        };
        if is_same { Ok(Reply::Value(0)) } else { fails(format!("{name}: {expected:?}"), format!("{name}: {shown}")) }
    }

    /// The number of bytes that a call reads or writes.
    fn length(&self, call: &Call) -> Result<u64, Stop> {
        let arguments = &call.arguments;
        let vector = match call.name.as_str() {
            "readv" | "writev" => arguments.get(1).cloned(),
            "recvmsg" | "sendmsg" => arguments.get(1).and_then(|message| field(message, "msg_iov")).cloned(),
            _ => return number(arguments, 2).map(|length| length.max(0) as u64),
        };
        let Some(Expr::List(vector)) = vector else {
            return Err(Stop::Needs(format!("{} without a vector", call.name)));
        };
        let lengths = vector.iter().map(|entry| match entry {
            Expr::Struct(parts) => parts.get(1).and_then(integer).unwrap_or(0).max(0) as u64,
            _ => 0,
        });
        Ok(lengths.sum())
    }

    fn compare(&mut self, blocked: &Blocked, reply: &Reply) -> Result<(), Stop> {
        let call = &blocked.call;
        let shown = match reply {
            Reply::Value(value) => value.to_string(),
            Reply::Error(errno) => format!("-1 {errno}"),
            Reply::Blocks => "nothing yet".into(),
        };
        let is_same = match (reply, &call.result, call.errno.as_deref()) {
            (Reply::Value(value), Expr::Int(expected), None) => value == expected,
            (Reply::Error(have), Expr::Int(-1), Some(expected)) => same_errno(have, expected),
            (Reply::Error(_), Expr::Int(-1), None) => true,
            (Reply::Value(_), Expr::Any, None) => true,
            _ => false,
        };
        if !is_same {
            return fails(show_result(call), format!("{}(...) = {shown}", call.name));
        }
        if let Work::Poll(watched) = &blocked.work {
            let Some(Expr::List(list)) = call.arguments.first() else { return Ok(()) };
            for ((fd, wanted), entry) in watched.iter().zip(list) {
                let ready = self.readiness(*fd) & (wanted | ALWAYS);
                let expected = events(field(entry, "revents"));
                if field(entry, "revents").is_some() && ready != expected {
                    return fails(format!("revents {expected:#x}"), format!("{ready:#x}"));
                }
            }
        }
        Ok(())
    }
}
