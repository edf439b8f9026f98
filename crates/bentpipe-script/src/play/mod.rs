//! Runs a script: its events in order, in virtual time, against a [`Host`].
//!
//! Sequence numbers of the host are relative to its own initial one; the script's numbers of the peer are used
//! unchanged. A host timestamp takes the value that the script first gives it; the pair is stored, as are the window
//! scales. A run of full segments matches one long segment that a script expects from a host with TSO.

mod calls;
mod flow;
mod matching;
pub(crate) mod names;
mod packets;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bentpipe_engine::units::Time;

use crate::host::command::{DEFAULTS, Effect, effects};
use crate::host::{Host, IpVersion, Profile, Settings, SocketId};
use crate::lang::ast::{Action, Event, Script, When};
use crate::lang::code::{self, Fault as CodeFault};
use calls::{Blocked, Descriptor};
use flow::Flow;

/// The host's clock at the start of a script: not 0, which as a timestamp means none.
const START: u64 = 1_000_000_000_000;

/// How long to wait for an expected packet without a time: longer than any timer.
const PATIENCE: i64 = 3_600_000_000;

/// Default ports on which the script's host listens, and to which it connects.
const PORT: u16 = 8080;

/// The peer's first port. After the last one it is used again.
const FIRST_PORT: u16 = 40_000;

/// A difference between a script and what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The script's line.
    pub line: u32,
    /// What it expects.
    pub expected: String,
    /// What happened.
    pub got: String,
}

/// Why a script ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Something unexpected happened.
    Fails(String, String),
    /// It needs an unsupported feature.
    Needs(String),
}

fn fails<T>(expected: impl Into<String>, got: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Fails(expected.into(), got.into()))
}

/// The clock and the tolerance of a script, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) tolerance: i64,
    /// Relative to the time since the previous event, in per mille.
    pub(crate) share: i64,
    /// Tick of the script's timestamps, if they are compared.
    pub(crate) tick: Option<i64>,
}

pub(crate) struct Player {
    host: Host,
    strict: bool,
    version: IpVersion,
    pace: Pace,
    descriptors: BTreeMap<i64, Descriptor>,
    epolls: BTreeMap<i64, Vec<calls::epoll::Interest>>,
    flows: Vec<Flow>,
    current: Option<usize>,
    next_port: u16,
    listening: Option<u16>,
    bound: Option<u16>,
    blocked: Option<Blocked>,
    variables: BTreeMap<String, f64>,
    /// The previous event's time in the script, if it has one.
    last: Option<i64>,
    now: i64,
    /// The current event's time in the script.
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
            next_port: FIRST_PORT,
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

    /// Runs the whole script.
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
        // packetdrill counts from the moment at which the previous event happened. That may differ from the time in the script, within the
        // tolerance.
        let base = match self.last {
            Some(last) if is_anchored && self.strict => last,
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

    /// The next timer of the host or of the blocking call.
    fn timer(&self) -> Option<Time> {
        let deadline = self.blocked.as_ref().and_then(|blocked| blocked.deadline).map(|at| self.at(at));
        Time::earliest(self.host.timer(), deadline)
    }

    fn step(&mut self, at: Time) -> Result<(), Stop> {
        self.now = self.now.max(self.micros(at));
        self.host.advance(at);
        self.settle()
    }

    /// Advances the time.
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

    /// Collects the packets that the host has sent, and retries the blocking call.
    fn settle(&mut self) -> Result<(), Stop> {
        self.collect()?;
        self.retry()?;
        self.collect()
    }

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
                Effect::DropTimeWait => self.host.drop_time_wait(),
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

    /// The connection that code refers to: the flow's.
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
