//! Plays a script: a connection under a virtual clock, the lines as its peer and its user.

use std::collections::VecDeque;
use std::fmt::Write;

use bentpipe_engine::probe::{Event, Who};
use bentpipe_engine::tcp::{Abort, Connection, Flags, Input, Output, Role, Segment, SynOptions, TcbCache, TcpConfig};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::{Context, Machine, Probe, Step};

use crate::check::check;
use crate::grammar::{Action, Packet, Script, When};
use crate::settings;

/// What the probe has seen.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) window: u64,
    pub(crate) flight: u64,
    pub(crate) rto: Duration,
    pub(crate) recoveries: u32,
    pub(crate) recoveries_left: u32,
}

impl Probe for Watch {
    fn event(&mut self, _: Time, _: Who, event: &Event) {
        match *event {
            Event::Window { cwnd, flight, .. } => (self.window, self.flight) = (cwnd, flight),
            Event::Rtt { rto, .. } => self.rto = rto,
            Event::RecoveryEntered { .. } => self.recoveries += 1,
            Event::RecoveryLeft => self.recoveries_left += 1,
            _ => {}
        }
    }
}

pub(crate) struct Player {
    config: TcpConfig,
    connection: Connection,
    role: Role,
    watch: Watch,
    now: Time,
    timer: Option<Time>,
    sent: VecDeque<(Time, Segment)>,
    log: Vec<String>,
    pub(crate) connected: u32,
    pub(crate) peer_closed: u32,
    pub(crate) ended: Option<Result<(), Abort>>,
}

/// More outputs at one instant than any connection can have: a machine that never waits.
const LIVELOCK: u32 = 100_000;

impl Player {
    fn new(config: TcpConfig) -> Self {
        let role = Role::Passive;
        Player {
            config,
            connection: Connection::new(config, role),
            role,
            watch: Watch::default(),
            now: Time::ZERO,
            timer: None,
            sent: VecDeque::new(),
            log: Vec::new(),
            connected: 0,
            peer_closed: 0,
            ended: None,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    fn handle(&mut self, input: Input) -> Result<(), String> {
        let mut cx = Context { now: self.now, who: Who(0), probe: &mut self.watch };
        self.connection.handle(&mut cx, input);
        self.poll()
    }

    fn poll(&mut self) -> Result<(), String> {
        for _ in 0..LIVELOCK {
            let mut cx = Context { now: self.now, who: Who(0), probe: &mut self.watch };
            match self.connection.poll(&mut cx) {
                Step::Do(Output::Transmit(segment)) => {
                    self.log.push(format!("{:>12.6} > {}", self.now.as_secs_f64(), show(&segment)));
                    self.sent.push_back((self.now, segment));
                }
                Step::Do(Output::Connected) => self.connected += 1,
                Step::Do(Output::PeerClosed) => self.peer_closed += 1,
                Step::Do(Output::Closed(result)) => self.ended = Some(result),
                Step::Do(Output::Readable(_) | Output::Acknowledged(_)) => {}
                Step::Wait(timer) => {
                    if timer.is_some_and(|at| at <= self.now) {
                        return Err("waits for an instant that is not in the future".into());
                    }
                    self.timer = timer;
                    return Ok(());
                }
            }
        }
        Err("never waits".into())
    }

    /// Lets time pass until `until`; timers act on the way.
    fn run_to(&mut self, until: Time) -> Result<(), String> {
        while let Some(at) = self.timer.filter(|at| *at <= until) {
            self.now = at;
            self.poll()?;
        }
        self.now = until;
        Ok(())
    }

    fn receive(&mut self, packet: &Packet) -> Result<(), String> {
        self.nothing_is_left()?;
        self.log.push(format!("{:>12.6} < {}", self.now.as_secs_f64(), show(&packet.segment)));
        self.handle(Input::Segment(packet.segment))
    }

    fn nothing_is_left(&self) -> Result<(), String> {
        match self.sent.front() {
            Some((at, segment)) => {
                Err(format!("a segment that nobody expects, at {}: {}", at.as_secs_f64(), show(segment)))
            }
            None => Ok(()),
        }
    }

    fn expect(&mut self, when: Option<Time>, packet: &Packet) -> Result<(), String> {
        if self.sent.is_empty() {
            // Not before an hour: the longest timer is a minute.
            let limit = when.unwrap_or(self.now + Duration::from_secs(3600));
            while self.sent.is_empty()
                && let Some(at) = self.timer.filter(|at| *at <= limit)
            {
                self.run_to(at)?;
            }
        }
        let (at, segment) = self.sent.pop_front().ok_or("no segment comes")?;
        if when.is_some_and(|when| when != at) {
            return Err(format!("comes at {}: {}", at.as_secs_f64(), show(&segment)));
        }
        self.now = self.now.max(at);
        match difference(packet, &segment) {
            Some(what) => Err(format!("another {what}: {}", show(&segment))),
            None => Ok(()),
        }
    }

    fn open(&mut self, role: Role) -> Result<(), String> {
        if self.role != role {
            (self.connection, self.role) = (Connection::new(self.config, role), role);
        }
        self.handle(Input::Open)
    }

    fn establish(&mut self, rtt: u64, answer: &Packet) -> Result<(), String> {
        self.open(Role::Active)?;
        self.sent.pop_front().filter(|(_, syn)| syn.flags == Flags::SYN).ok_or("no SYN")?;
        self.run_to(self.now + Duration::from_nanos(rtt))?;
        self.receive(answer)?;
        self.sent.pop_front().filter(|(_, ack)| ack.flags == Flags::ACK).ok_or("no ACK of the SYN-ACK")?;
        Ok(())
    }

    fn successor(&mut self) {
        let mut cache = TcbCache::default();
        self.connection.bequeath(&mut cache);
        self.connection = Connection::new(self.config, self.role);
        self.connection.inherit(&cache);
        (self.ended, self.timer) = (None, None);
    }

    fn act(&mut self, when: When, action: &Action) -> Result<(), String> {
        let at = match when {
            When::After(span) => Some(self.now + Duration::from_nanos(span)),
            When::At(at) => Some(Time::from_nanos(at)),
            When::Any => None,
        };
        if let Action::Expect(packet) = action {
            return self.expect(at, packet);
        }
        let at = at.ok_or("only segments from the connection come at any time")?;
        if at < self.now {
            return Err(format!("it is {} already", self.now.as_secs_f64()));
        }
        self.run_to(at)?;
        match action {
            Action::Expect(_) => unreachable!("handled above"),
            Action::Receive(packet) => self.receive(packet),
            Action::Connect => self.open(Role::Active),
            Action::Listen => self.open(Role::Passive),
            Action::Establish { rtt, answer } => self.establish(*rtt, answer),
            Action::Write(bytes) => self.handle(Input::Write(*bytes)),
            Action::Read(bytes) => self.handle(Input::Read(*bytes)),
            Action::Close => self.handle(Input::Close),
            Action::Abort => self.handle(Input::Abort),
            Action::Successor => {
                self.successor();
                Ok(())
            }
            Action::Check(text) => check(text, self),
        }
    }
}

/// Plays the whole script; the error says which line failed, and shows the packets so far.
pub(crate) fn play(script: &Script) -> Result<(), String> {
    let mut player = Player::new(settings::config(&script.settings)?);
    let mut failed = None;
    for line in &script.lines {
        if let Err(message) = player.act(line.when, &line.action) {
            failed = Some(format!("line {}: {}\n  {message}", line.number, line.text));
            break;
        }
    }
    let failed = failed.or_else(|| player.nothing_is_left().err().map(|message| format!("after the end: {message}")));
    match failed {
        None => Ok(()),
        Some(message) => {
            let log = player.log.iter().rev().take(24).rev().fold(String::new(), |mut all, line| {
                writeln!(all, "  {line}").expect("a string takes everything");
                all
            });
            Err(format!("{message}\npackets so far:\n{log}"))
        }
    }
}

/// The first field in which a segment is not what was expected.
fn difference(expected: &Packet, got: &Segment) -> Option<&'static str> {
    let want = &expected.segment;
    let options_differ = !expected.any_options
        && (want.syn != got.syn
            || !want.sack.iter(0).eq(got.sack.iter(0))
            || want.timestamps.is_some_and(|timestamps| got.timestamps != Some(timestamps)));
    let checks = [
        (want.flags != got.flags, "kind of segment"),
        (want.seq != got.seq, "sequence number"),
        (want.len != got.len, "length"),
        (got.flags.has(Flags::ACK) && want.ack != got.ack, "acknowledgement"),
        (expected.window.is_some_and(|window| window != got.window), "window"),
        (options_differ, "set of options"),
    ];
    checks.into_iter().find_map(|(differs, what)| differs.then_some(what))
}

/// A segment in the language of scripts.
fn show(segment: &Segment) -> String {
    let s = segment;
    let mut text = format!("{:?} {}:{}({})", s.flags, s.seq, s.seq + s.len as u64, s.len);
    if s.flags.has(Flags::ACK) {
        write!(text, " ack {}", s.ack).expect("a string takes everything");
    }
    write!(text, " win {}", s.window).expect("a string takes everything");
    let SynOptions { mss, window_scale, sack_permitted } = s.syn;
    let mut options: Vec<String> = Vec::new();
    options.extend(mss.map(|mss| format!("mss {mss}")));
    options.extend(sack_permitted.then(|| "sackOK".to_owned()));
    options.extend(s.timestamps.map(|t| format!("TS val {} ecr {}", t.value, t.echo)));
    options.extend(window_scale.map(|shift| format!("wscale {shift}")));
    if !s.sack.is_empty() {
        let blocks: Vec<String> = s.sack.iter(s.ack).map(|(start, end)| format!("{start}:{end}")).collect();
        options.push(format!("sack {}", blocks.join(" ")));
    }
    if !options.is_empty() {
        write!(text, " <{}>", options.join(",")).expect("a string takes everything");
    }
    text
}
