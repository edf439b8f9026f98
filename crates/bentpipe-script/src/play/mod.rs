//! Plays a script: its events in order, in virtual time, against a [`Host`].
//!
//! Sequence numbers of the host count from its own initial one; the script's numbers of the peer are used as they are.
//! A timestamp of the host is whatever the script first calls it: the two are remembered together, and so are the window
//! scales. A run of full segments may stand for the one long segment that a script expects of a host with TSO.

mod calls;
mod flow;
mod matching;
pub(crate) mod names;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bentpipe_engine::units::Time;
use bentpipe_engine::wire::ip::{Addresses, Ports};

use crate::host::command::{DEFAULTS, Effect, effects};
use crate::host::{Host, IpVersion, Profile, Settings, SocketId};
use crate::lang::ast::{Action, Body, Event, Icmp, Packet, Script, Tcp, TcpOption, When};
use crate::lang::code::{self, Fault as CodeFault};
use crate::wire::{Seen, flag};
use calls::{Blocked, Descriptor};
use flow::Flow;

/// The host's clock when a script begins: not zero, which as a timestamp would mean none.
const START: u64 = 1_000_000_000_000;

/// An expected packet without a time is awaited this long: longer than any timer.
const PATIENCE: i64 = 3_600_000_000;

/// Where the script's host listens, and where it connects to, if the script does not say.
const PORT: u16 = 8080;

/// How a script differs from what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The script's line.
    pub line: u32,
    /// What it expects.
    pub expected: String,
    /// What happened.
    pub got: String,
}

/// Why a script came to an end early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Something else happened than was expected.
    Fails(String, String),
    /// Something is needed that does not exist here.
    Needs(String),
}

fn fails<T>(expected: impl Into<String>, got: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Fails(expected.into(), got.into()))
}

/// The clock and the tolerance of a script, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) tolerance: i64,
    /// Of the time since the event before, in per mille.
    pub(crate) share: i64,
    /// Length of a tick of the script's timestamps, where they are to be compared.
    pub(crate) tick: Option<i64>,
}

pub(crate) struct Player {
    host: Host,
    strict: bool,
    version: IpVersion,
    pace: Pace,
    descriptors: BTreeMap<i64, Descriptor>,
    epolls: BTreeMap<i64, Vec<calls::Interest>>,
    flows: Vec<Flow>,
    current: Option<usize>,
    next_port: u16,
    listening: Option<u16>,
    bound: Option<u16>,
    blocked: Option<Blocked>,
    variables: BTreeMap<String, f64>,
    /// The event before: its time by the script, if it has one.
    last: Option<i64>,
    now: i64,
    /// The event at hand: its time by the script.
    due: i64,
    pub(crate) log: Vec<String>,
    pub(crate) notes: Vec<String>,
}

impl Player {
    pub(crate) fn new(settings: Settings, pace: Pace) -> Self {
        Player {
            strict: settings.profile == Profile::Rfc,
            version: settings.version,
            host: Host::new(settings, Time::from_nanos(START)),
            pace,
            descriptors: BTreeMap::new(),
            epolls: BTreeMap::new(),
            flows: Vec::new(),
            current: None,
            next_port: 40_000,
            listening: None,
            bound: None,
            blocked: None,
            variables: BTreeMap::new(),
            last: None,
            now: 0,
            due: 0,
            log: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Plays it all.
    pub(crate) fn play(&mut self, script: &Script) -> Result<(), (u32, Stop)> {
        for event in &script.events {
            self.event(event).map_err(|stop| (event.line, stop))?;
        }
        let end = script.events.last().map_or(1, |event| event.line);
        if let Some(blocked) = &self.blocked {
            let (line, until) = (blocked.line, blocked.until + self.pace.tolerance);
            self.run_to(until).map_err(|stop| (line, stop))?;
            if let Some(blocked) = &self.blocked {
                let message = format!("the call returns at {}", seconds(blocked.until));
                return Err((blocked.line, Stop::Fails(message, "it blocks".into())));
            }
        }
        if self.strict {
            self.nothing_is_left().map_err(|stop| (end, stop))?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), Stop> {
        let is_anchored = matches!(event.when, When::At(_) | When::After(_));
        let base = match self.last {
            Some(last) if is_anchored => last,
            _ => self.now,
        };
        let (from, to) = match event.when {
            When::At(at) => (at, at),
            When::After(span) => (base + span, base + span),
            When::Between(from, to) => (from, to),
            When::AfterBetween(from, to) => (base + from, base + to),
            When::Any => (self.now, self.now + PATIENCE),
        };
        let is_any = event.when == When::Any;
        let since = from - self.last.unwrap_or(0);
        self.due = from;
        if let Action::Outbound(packet) = &event.action {
            let tolerance = if is_any { 0 } else { self.pace.tolerance.max(self.pace.share * since / 1000) };
            self.expect(packet, from, to, tolerance, is_any)?;
        } else {
            if is_any && !matches!(event.action, Action::Code(_)) {
                return fails("a time", "`*`, which is for packets from the host");
            }
            self.run_to(from)?;
            match &event.action {
                Action::Outbound(_) => unreachable!("handled above"),
                Action::Inbound(packet) => self.inject(packet)?,
                Action::Call(call) => {
                    let origin = if matches!(event.when, When::At(_)) { 0 } else { base };
                    self.call(event.line, origin, call)?;
                }
                Action::Command(command) => self.command(command)?,
                Action::Code(text) => self.code(text)?,
            }
        }
        self.last = is_anchored.then_some(from);
        Ok(())
    }

    // ---- time ----

    fn at(&self, micros: i64) -> Time {
        Time::from_nanos(START.saturating_add_signed(micros.saturating_mul(1000)))
    }

    fn micros(&self, at: Time) -> i64 {
        (at.as_nanos() as i64 - START as i64).div_euclid(1000)
    }

    /// The next instant at which something happens by itself, in the host or in a call that waits.
    fn timer(&self) -> Option<Time> {
        let deadline = self.blocked.as_ref().and_then(|blocked| blocked.deadline).map(|at| self.at(at));
        Time::earliest(self.host.timer(), deadline)
    }

    fn step(&mut self, at: Time) -> Result<(), Stop> {
        self.now = self.now.max(self.micros(at));
        self.host.advance(at);
        self.settle()
    }

    /// Lets time pass.
    fn run_to(&mut self, micros: i64) -> Result<(), Stop> {
        let until = self.at(micros);
        while let Some(at) = self.timer().filter(|at| *at <= until) {
            self.step(at)?;
        }
        if micros > self.now {
            self.now = micros;
            self.host.advance(until);
        }
        self.settle()
    }

    /// Takes what the host has sent, and lets a call that waits go on.
    fn settle(&mut self) -> Result<(), Stop> {
        self.collect()?;
        self.retry()?;
        self.collect()
    }

    // ---- packets ----

    fn collect(&mut self) -> Result<(), Stop> {
        if let Some(fault) = self.host.fault() {
            return fails("a sound connection", fault);
        }
        while let Some((at, packet)) = self.host.sent() {
            let Some(seen) = Seen::parse(&packet) else { return fails("TCP", "a packet that cannot be read") };
            let ports = (seen.ports.source, seen.ports.destination);
            let index = match self.flows.iter().rposition(|flow| (flow.local, flow.remote) == ports) {
                Some(index) => index,
                None => {
                    self.flows.push(self.flow(ports.0, ports.1, None));
                    self.current = Some(self.flows.len() - 1);
                    self.flows.len() - 1
                }
            };
            let line = format!("{} > {}", seconds(self.micros(at)), self.flows[index].show(&seen));
            self.log.push(line);
            self.flows[index].note_sent(&seen);
            let micros = self.micros(at);
            self.flows[index].queue.push_back((micros, seen));
        }
        Ok(())
    }

    fn nothing_is_left(&self) -> Result<(), Stop> {
        for flow in &self.flows {
            if let Some((at, seen)) = flow.queue.front() {
                return fails("nothing is sent", format!("at {}: {}", seconds(*at), flow.show(seen)));
            }
        }
        Ok(())
    }

    fn addresses(&self) -> (IpAddr, IpAddr) {
        match self.version {
            // packetdrill's own addresses, or the blocks for documentation.
            IpVersion::V4 | IpVersion::V4Mapped => {
                (Ipv4Addr::new(192, 168, 0, 1).into(), Ipv4Addr::new(192, 0, 2, 1).into())
            }
            IpVersion::V6 => (
                Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1).into(),
                Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
            ),
        }
    }

    fn flow(&self, local: u16, remote: u16, script_ports: Option<(u16, u16)>) -> Flow {
        let mut flow = Flow::new(local, remote, script_ports);
        if self.strict {
            // Timestamps are milliseconds since the start of the script.
            flow.first_stamp = Some((0, (START / 1_000_000) as u32));
        }
        flow
    }

    /// The flow that a packet from the peer belongs to. A SYN to a listener begins a new one if the one at hand is over.
    fn flow_for(&mut self, packet: &Packet, tcp: &Tcp) -> usize {
        if let Some(ports) = packet.ports {
            let found = self.flows.iter().rposition(|flow| flow.script_ports == Some(ports));
            if let Some(index) = found {
                return index;
            }
        } else if let Some(index) = self.current {
            let flow = &self.flows[index];
            let (here, there) = self.addresses();
            let ends = (SocketAddr::new(here, flow.local), SocketAddr::new(there, flow.remote));
            let is_opening = tcp.flags & (flag::SYN | flag::ACK) == flag::SYN && self.listening.is_some();
            if !is_opening || flow.is_closed_port || self.host.has_connection(ends.0, ends.1) {
                return index;
            }
        }
        let local = self.listening.or(self.bound).unwrap_or(PORT);
        let mut flow = self.flow(local, self.next_port, packet.ports);
        flow.is_closed_port = self.listening.is_none();
        self.next_port += 1;
        self.flows.push(flow);
        self.current = Some(self.flows.len() - 1);
        self.flows.len() - 1
    }

    fn inject(&mut self, packet: &Packet) -> Result<(), Stop> {
        if self.strict {
            self.nothing_is_left()?;
        }
        match &packet.body {
            Body::Tcp(tcp) => {
                let index = self.flow_for(packet, tcp);
                let seen = self.incoming(index, packet, tcp)?;
                self.log.push(format!("{} < {}", seconds(self.now), self.flows[index].show_incoming(&seen)));
                let Some(bytes) = seen.emit() else {
                    return Err(Stop::Needs("a packet longer than IP allows".into()));
                };
                self.host.receive(&bytes);
            }
            Body::Icmp(icmp) => self.inject_icmp(icmp),
        }
        self.settle()
    }

    /// A packet of the script, with the numbers of this run.
    fn incoming(&mut self, index: usize, packet: &Packet, tcp: &Tcp) -> Result<Seen, Stop> {
        let (here, there) = self.addresses();
        let flow = &mut self.flows[index];
        let seq = tcp.seq.unwrap_or(0);
        if tcp.flags & flag::SYN != 0 && flow.peer_isn.is_none() {
            flow.peer_isn = Some(seq);
        }
        let isn = flow.peer_isn.unwrap_or(0);
        // The SYN's own data follows it.
        let first = seq.wrapping_add(u32::from(tcp.flags & flag::SYN != 0));
        let start = u64::from(first.wrapping_sub(isn).wrapping_sub(1));
        let options = tcp.options.as_deref().unwrap_or_default();
        let options: Vec<TcpOption> = options.iter().map(|option| flow.option_in(option)).collect();
        flow.note_received(tcp);
        let Some(addresses) = Addresses::new(there, here) else {
            return fails("addresses", "of two versions of IP");
        };
        Ok(Seen {
            addresses,
            ports: Ports { source: flow.remote, destination: flow.local },
            tos: packet.tos.unwrap_or(packet.ecn.unwrap_or(0)),
            ttl: packet.ttl.unwrap_or(255),
            flags: tcp.flags,
            seq,
            ack: tcp.ack.map_or(0, |ack| flow.ours(ack)),
            window: tcp.window.unwrap_or(0),
            urgent: tcp.urgent.unwrap_or(0),
            options,
            payload: (start..start + u64::from(tcp.len)).map(sent_by_peer).collect(),
            size: 0,
        })
    }

    fn inject_icmp(&mut self, icmp: &Icmp) {
        let Some(index) = self.current else { return };
        let (here, there) = self.addresses();
        let flow = &self.flows[index];
        let quoted = flow.ours(icmp.quoted.unwrap_or(flow.last_quoted));
        let ends = (SocketAddr::new(here, flow.local), SocketAddr::new(there, flow.remote));
        let is_linux = self.host.settings.profile == Profile::Linux;
        let errno = icmp_error(icmp, self.version, is_linux).filter(|_| self.host.settings.icmp_may_reset);
        self.log.push(format!("{} < icmp {} {}", seconds(self.now), icmp.kind, icmp.code.as_deref().unwrap_or("")));
        self.host.unreachable(ends.0, ends.1, quoted, errno);
    }

    fn expect(&mut self, packet: &Packet, from: i64, to: i64, tolerance: i64, is_any: bool) -> Result<(), Stop> {
        let Body::Tcp(tcp) = &packet.body else {
            return Err(Stop::Needs("ICMP messages from the host".into()));
        };
        let limit = to + tolerance;
        let wanted = || matching::show_expected(packet, tcp);
        loop {
            self.settle()?;
            if self.front(packet).is_some() {
                break;
            }
            match self.timer().filter(|at| self.micros(*at) <= limit) {
                Some(at) => self.step(at)?,
                None => {
                    // What comes later helps to understand.
                    let later = self.timer().map(|at| self.micros(at)).filter(|at| *at < limit + 10_000_000);
                    let mut got = format!("nothing is sent until {}", seconds(limit));
                    if let Some(at) = later {
                        let _ = self.step(self.at(at));
                        if let Some((at, seen)) = self.front(packet) {
                            let flow = &self.flows[self.index_for(packet).unwrap_or(0)];
                            got += &format!("; at {}: {}", seconds(at), flow.show(&seen));
                        }
                    }
                    return fails(format!("at {}: {}", seconds(from), wanted()), got);
                }
            }
        }
        let index = self.index_for(packet).expect("a packet is there");
        let (at, seen) = self.flows[index].take(tcp, self.strict);
        self.now = self.now.max(at);
        let flow = &mut self.flows[index];
        if !self.strict && matching::is_bare_for_repeated_fin(tcp, &seen, flow) {
            self.notes.push("an ACK came without the FIN that the script repeats in it".into());
            return Ok(());
        }
        if let Some(what) = matching::difference(packet, tcp, &seen, flow, self.strict, &self.pace) {
            return fails(wanted(), format!("{} ({what} differs)", flow.show(&seen)));
        }
        flow.learn(tcp, &seen);
        if !is_any && (at < from - tolerance || at > limit) {
            let when = if from == to { seconds(from) } else { format!("{} to {}", seconds(from), seconds(to)) };
            return fails(format!("at {when}: {}", wanted()), format!("at {}: {}", seconds(at), flow.show(&seen)));
        }
        Ok(())
    }

    fn index_for(&self, packet: &Packet) -> Option<usize> {
        match packet.ports {
            Some((source, destination)) => {
                let ports = Some((destination, source));
                self.flows.iter().rposition(|flow| flow.script_ports == ports).or(self.current)
            }
            None => self.current,
        }
    }

    fn front(&self, packet: &Packet) -> Option<(i64, Seen)> {
        self.flows.get(self.index_for(packet)?)?.queue.front().cloned()
    }

    // ---- commands and code ----

    fn command(&mut self, command: &str) -> Result<(), Stop> {
        for effect in effects(command) {
            match effect {
                Effect::Sysctl(name, value) => {
                    self.host.settings.sysctl(&name, &value);
                }
                Effect::Defaults => {
                    for (name, value) in DEFAULTS {
                        self.host.settings.sysctl(name, value);
                    }
                }
                Effect::Count(state, count) => {
                    let have = self.host.count(&state);
                    if have != count {
                        return fails(format!("{count} in {state}"), format!("{have}"));
                    }
                }
                Effect::Drop(state) => self.host.drop_in(&state),
                Effect::Foreign(feature) => return Err(Stop::Needs(feature.into())),
            }
        }
        self.settle()
    }

    fn code(&mut self, text: &str) -> Result<(), Stop> {
        let code = code::compile(text).map_err(Stop::Needs)?;
        let subject = self.subject();
        let is_linux = self.host.settings.profile == Profile::Linux;
        let (host, strict) = (&self.host, self.strict);
        let look = |name: &str| {
            let own = || if strict { host.own_value(subject, name) } else { None };
            crate::host::ready::constant(name, is_linux)
                .or_else(|| subject.and_then(|id| host.value(id, name)))
                .or_else(own)
        };
        match code.run(&mut self.variables, &look) {
            Ok(()) => Ok(()),
            Err(CodeFault::Fails(text, values)) => {
                let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                fails(text, values.join(", "))
            }
            Err(CodeFault::Unknown(name)) => fails(format!("a value of `{name}`"), "there is none"),
            Err(CodeFault::Undefined(what)) => fails("a value", what),
        }
    }

    /// The connection that code is about: the flow's.
    fn subject(&self) -> Option<SocketId> {
        let (here, there) = self.addresses();
        let flow = self.current.map(|index| &self.flows[index]);
        let of_flow = flow.and_then(|flow| {
            self.host.any_connection(SocketAddr::new(here, flow.local), SocketAddr::new(there, flow.remote))
        });
        of_flow.or_else(|| {
            self.descriptors.values().rev().find_map(|descriptor| match descriptor {
                Descriptor::Socket(id) => Some(*id),
                Descriptor::Epoll => None,
            })
        })
    }
}

/// The byte at an offset of the peer's stream.
pub(crate) fn sent_by_peer(offset: u64) -> u8 {
    (offset.wrapping_mul(7).wrapping_add(13) % 253) as u8
}

/// Microseconds as seconds.
pub(crate) fn seconds(micros: i64) -> String {
    format!("{}{}.{:06}", if micros < 0 { "-" } else { "" }, micros.abs() / 1_000_000, micros.abs() % 1_000_000)
}

/// The error that an ICMP message means for a connection that is being opened; `None` for one that means none.
fn icmp_error(icmp: &Icmp, version: IpVersion, is_linux: bool) -> Option<&'static str> {
    let code = icmp.code.as_deref().unwrap_or_default();
    if icmp.mtu.is_some() {
        return None;
    }
    match (icmp.kind.as_str(), code) {
        ("unreachable", "port_unreachable" | "protocol_unreachable") => Some("ECONNREFUSED"),
        ("unreachable", "packet_filtered" | "admin_prohibited" | "net_prohibited" | "host_prohibited") if !is_linux => {
            Some("ECONNREFUSED")
        }
        ("time_exceeded", "ttl_exceeded_in_transit" | "exceeded_hop_limit") if !is_linux => Some("EHOSTUNREACH"),
        ("parameter_problem", "unknown_next_header") if version == IpVersion::V6 => Some("ECONNREFUSED"),
        ("unreachable", _) if is_linux => Some("EHOSTUNREACH"),
        _ => None,
    }
}
