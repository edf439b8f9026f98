//! Client, splice, server, and a channel on each leg that loses, repeats and reorders packets for a while and then stops.
//!
//! The driver keeps real bytes: a payload is stored at its span when it arrives, read when a leg sends it, and overwritten once the splice
//! has released it. Whatever is sent must be what was written.

use std::collections::BTreeMap;

use bentpipe_engine::probe::Who;
use bentpipe_engine::splice::{Broken, Leg, Splice, SpliceInput, SpliceOutput};
use bentpipe_engine::stream::Stream;
use bentpipe_engine::tcp::{
    Abort, Connection, FIRST_BYTE, Flags, Fresh, Input, Output, Role, Segment, State, TcpConfig, Verdict,
};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::{Context, Machine, NoProbe, Step};

/// Byte k written by the client (0) or the server (1); never the value of an empty place.
pub(crate) fn byte(side: usize, k: u64) -> u8 {
    ((k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8 | 1).wrapping_add(2 * side as u8)
}

const GONE: u8 = 0;
/// From turn to turn of data that waits for one.
const TURN: Duration = Duration::from_millis(1);

/// A leg's path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    /// From this instant on, nothing passes.
    pub(crate) dies: Option<Time>,
}

pub(crate) struct Host {
    pub(crate) connection: Connection,
    timer: Option<Time>,
    pub(crate) written: u64,
    pub(crate) received: Vec<u8>,
    read: u64,
    /// Reads this much at this interval. Otherwise it reads everything at once.
    slow: Option<(u64, Duration)>,
    next_read: Option<Time>,
    closed: bool,
    pub(crate) peer_closed: bool,
    pub(crate) ended: Option<Result<(), Abort>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Write(u64),
    Close,
    Abort,
    /// The gateway itself gives up.
    AbortSplice,
}

/// Client and server are hosts 0 and 1; the legs of the splice are places 2 and 3.
pub(crate) struct Chain {
    pub(crate) hosts: [Host; 2],
    pub(crate) splice: Splice,
    splice_timer: Option<Time>,
    /// The next turn for data that waits for one, if any waits.
    turn: Option<Time>,
    /// The leg of turns, and the instants at which segments took theirs.
    paced: Option<Leg>,
    pub(crate) turns: Vec<Time>,
    pub(crate) splice_ended: Option<Result<(), Broken>>,
    /// The bytes that arrived on each leg, as the driver stores them.
    rings: [Vec<u8>; 2],
    buffers: [u32; 2],
    paths: [Path; 2],
    stream: Stream,
    calm: Time,
    pub(crate) now: Time,
    flying: BTreeMap<(Time, u64), (usize, Segment)>,
    plan: Vec<(Time, usize, Act)>,
    count: u64,
}

impl Host {
    fn new(config: TcpConfig, role: Role, slow: Option<(u64, Duration)>) -> Self {
        Host {
            connection: Connection::new(config, role),
            timer: None,
            written: 0,
            received: Vec::new(),
            read: 0,
            slow,
            next_read: None,
            closed: false,
            peer_closed: false,
            ended: None,
        }
    }
}

/// Stores a payload at its place.
fn store(ring: &mut Vec<u8>, segment: &Segment, from: usize) {
    let start = segment.seq - FIRST_BYTE;
    let end = (start + segment.len as u64) as usize;
    if ring.len() < end {
        ring.resize(end, GONE);
    }
    for k in start..end as u64 {
        ring[k as usize] = byte(from, k);
    }
}

impl Chain {
    pub(crate) fn new(
        configs: [TcpConfig; 4],
        paths: [Path; 2],
        slow: [Option<(u64, Duration)>; 2],
        mut plan: Vec<(Time, usize, Act)>,
        seed: u64,
        calm: Time,
    ) -> Self {
        plan.sort_by_key(|(at, ..)| core::cmp::Reverse(*at));
        let [client, near, far, server] = configs;
        let mut chain = Chain {
            hosts: [Host::new(client, Role::Active, slow[0]), Host::new(server, Role::Passive, slow[1])],
            splice: Splice::new(near, far, [Who(2), Who(3)]),
            splice_timer: None,
            turn: None,
            paced: None,
            turns: Vec::new(),
            splice_ended: None,
            rings: [Vec::new(), Vec::new()],
            buffers: [near.receive_buffer, far.receive_buffer],
            paths,
            stream: Stream::named(seed, "storm"),
            calm,
            now: Time::ZERO,
            flying: BTreeMap::new(),
            plan,
            count: 0,
        };
        chain.splice_takes(SpliceInput::Open);
        chain.host_takes(1, Input::Open);
        chain.host_takes(0, Input::Open);
        chain
    }

    /// The same, where the client is answered after the server.
    pub(crate) fn asking_first(mut self) -> Self {
        self.splice = self.splice.asking_first();
        self
    }

    /// The same, where data on this leg leaves in turns.
    pub(crate) fn in_turns(mut self, leg: Leg) -> Self {
        self.splice = self.splice.in_turns(leg);
        self.paced = Some(leg);
        self
    }

    /// A segment leaves place `from` on leg `leg`.
    fn send(&mut self, from: usize, leg: usize, segment: Segment) {
        let to = match (from, leg) {
            (0, 0) => 2,
            (2, 0) => 0,
            (3, 1) => 1,
            (1, 1) => 3,
            other => unreachable!("{other:?} is no way"),
        };
        let path = self.paths[leg];
        let stormy = self.now < self.calm;
        let lost = stormy && self.stream.uniform() < path.loss || path.dies.is_some_and(|at| self.now >= at);
        let late = if stormy { self.stream.uniform_in(0.0, path.jitter.as_secs_f64()) } else { 0.0 };
        if !lost {
            self.count += 1;
            let at = self.now + path.delay + Duration::from_secs_f64_rounded(late);
            self.flying.insert((at, self.count), (to, segment));
        }
    }

    fn host_takes(&mut self, n: usize, input: Input) {
        let mut cx = Context { now: self.now, who: Who(n as u32), probe: &mut NoProbe };
        self.hosts[n].connection.handle(&mut cx, input);
        self.poll_host(n);
    }

    fn poll_host(&mut self, n: usize) {
        loop {
            let mut cx = Context { now: self.now, who: Who(n as u32), probe: &mut NoProbe };
            match self.hosts[n].connection.poll(&mut cx) {
                Step::Do(Output::Transmit(segment)) => self.send(n, n, segment),
                Step::Do(Output::Readable(total)) => {
                    let host = &mut self.hosts[n];
                    let peer = 1 - n;
                    let wrong = (host.read..total).find(|k| host.received[*k as usize] != byte(peer, *k));
                    assert_eq!(wrong, None, "a byte is not what was written");
                    match host.slow {
                        None => {
                            let fresh = total - host.read;
                            host.read = total;
                            host.connection.handle(&mut cx, Input::Read(fresh));
                        }
                        Some((_, every)) => host.next_read = host.next_read.or(Some(self.now + every)),
                    }
                }
                Step::Do(Output::PeerClosed) => self.hosts[n].peer_closed = true,
                Step::Do(Output::Closed(result)) => self.hosts[n].ended = Some(result),
                Step::Do(Output::Connected | Output::Acknowledged(_)) => {}
                Step::Wait(timer) => {
                    assert!(timer.is_none_or(|at| at > self.now), "waits for the past");
                    self.hosts[n].timer = timer;
                    return;
                }
            }
        }
    }

    fn splice_takes(&mut self, input: SpliceInput) {
        let mut cx = Context { now: self.now, who: Who(9), probe: &mut NoProbe };
        self.splice.handle(&mut cx, input);
        self.poll_splice();
    }

    fn poll_splice(&mut self) {
        self.poll_splice_with(Splice::poll);
        if self.splice.waits_for_turn() {
            self.turn = self.turn.or(Some(self.now + TURN));
        }
    }

    fn take_turn(&mut self) {
        self.turn = self.poll_splice_with(Splice::poll_turn).then(|| self.now + TURN);
    }

    /// Polls it until it waits or something has taken its turn. Returns true in the latter case.
    fn poll_splice_with(&mut self, poll: fn(&mut Splice, &mut Context<'_, NoProbe>) -> Step<SpliceOutput>) -> bool {
        loop {
            let mut cx = Context { now: self.now, who: Who(9), probe: &mut NoProbe };
            let may_wait = self.splice.waits_for_turn();
            match poll(&mut self.splice, &mut cx) {
                Step::Do(SpliceOutput::Transmit(leg, segment)) => {
                    self.check_transmission(leg, &segment);
                    self.send(2 + leg as usize, leg as usize, segment);
                    if may_wait && self.paced == Some(leg) {
                        self.turns.push(self.now);
                        self.check_buffers();
                        return true;
                    }
                }
                Step::Do(SpliceOutput::Passed(leg, total)) => {
                    let ring = &mut self.rings[leg as usize];
                    ring[..total as usize].fill(GONE);
                }
                Step::Do(SpliceOutput::Closed(result)) => {
                    assert_eq!(self.splice_ended, None, "ends twice");
                    self.splice_ended = Some(result);
                }
                Step::Wait(timer) => {
                    assert!(timer.is_none_or(|at| at > self.now), "waits for the past");
                    self.splice_timer = timer;
                    self.check_buffers();
                    return false;
                }
            }
        }
    }

    fn check_buffers(&self) {
        for leg in Leg::BOTH {
            let buffered = self.splice.buffered(leg);
            assert!(buffered <= self.buffers[leg as usize] as u64, "{buffered} B are kept of the {leg:?} leg");
        }
    }

    /// Data that a leg sends must have arrived in order on the other one, and must not have been released.
    fn check_transmission(&self, leg: Leg, segment: &Segment) {
        if segment.flags.has(Flags::RST) || segment.len == 0 {
            return;
        }
        let other = leg.other();
        let start = segment.seq - FIRST_BYTE;
        let end = start + segment.len as u64;
        assert!(end <= self.splice.leg(other).received(), "sends what has not come");
        let ring = &self.rings[other as usize];
        let wrong = (start..end).find(|k| ring[*k as usize] != byte(other as usize, *k));
        assert_eq!(wrong, None, "sends a byte that is not what was written");
    }

    fn arrive(&mut self, to: usize, segment: Segment) {
        // Nothing beyond the window is stored. These peers send there only to probe.
        match to {
            0 | 1 => {
                if segment.len > 0 {
                    store(&mut self.hosts[to].received, &segment, 1 - to);
                }
                self.host_takes(to, Input::Segment(segment));
            }
            _ => {
                let leg = Leg::BOTH[to - 2];
                let mut cx = Context { now: self.now, who: Who(9), probe: &mut NoProbe };
                let verdict = self.splice.handle(&mut cx, SpliceInput::Segment(leg, segment));
                // Like a driver with real bytes: exactly the bytes that the verdict names are stored.
                let spans = match verdict {
                    Verdict::Accepted(Fresh::Span(start, end)) | Verdict::Synchronized(Fresh::Span(start, end)) => {
                        vec![(start, end)]
                    }
                    Verdict::Accepted(Fresh::Spans) | Verdict::Synchronized(Fresh::Spans) => {
                        self.splice.leg(leg).fresh_spans().to_vec()
                    }
                    _ => Vec::new(),
                };
                for (start, end) in spans {
                    let part = Segment { seq: start, len: (end - start) as u16, ..segment };
                    store(&mut self.rings[leg as usize], &part, leg as usize);
                }
                self.poll_splice();
            }
        }
    }

    fn act(&mut self, n: usize, act: Act) {
        if let Act::AbortSplice = act {
            return self.splice_takes(SpliceInput::Abort);
        }
        let host = &mut self.hosts[n];
        if host.closed || host.ended.is_some() {
            return;
        }
        match act {
            Act::Write(bytes) => {
                host.written += bytes;
                self.host_takes(n, Input::Write(bytes));
            }
            // A CLOSE before the opening ends everything: users who want to be heard wait.
            Act::Close if matches!(host.connection.state(), State::SynSent | State::Listen) => {
                self.plan.push((self.now + Duration::from_millis(700), n, act));
                self.plan.sort_by_key(|(at, ..)| core::cmp::Reverse(*at));
            }
            Act::Close => {
                host.closed = true;
                self.host_takes(n, Input::Close);
            }
            Act::Abort => {
                host.closed = true;
                self.host_takes(n, Input::Abort);
            }
            Act::AbortSplice => {}
        }
    }

    fn read_slowly(&mut self, n: usize) {
        let host = &mut self.hosts[n];
        let Some((bytes, every)) = host.slow else { return };
        let readable = host.connection.received();
        let fresh = bytes.min(readable - host.read);
        host.read += fresh;
        host.next_read = (host.read < readable).then(|| self.now + every);
        self.host_takes(n, Input::Read(fresh));
    }

    /// Runs until nothing is left to do, or until the limit.
    pub(crate) fn run(&mut self, limit: Time) {
        loop {
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let planned = self.plan.last().map(|(at, ..)| *at);
            let [first, second] = [0, 1].map(|n| [self.hosts[n].timer, self.hosts[n].next_read]);
            let all = [[arrival, planned], first, second, [self.splice_timer, self.turn]];
            let Some(next) = all.into_iter().flatten().flatten().min() else { return };
            if next > limit {
                return;
            }
            assert!(next >= self.now, "time runs forward");
            self.now = next;
            if self.turn == Some(next) {
                self.take_turn();
            } else if arrival == Some(next) {
                let (_, (to, segment)) = self.flying.pop_first().expect("it is there");
                self.arrive(to, segment);
            } else if planned == Some(next) {
                let (_, n, act) = self.plan.pop().expect("it is there");
                self.act(n, act);
            } else if let Some(n) = (0..2).find(|n| self.hosts[*n].next_read == Some(next)) {
                self.read_slowly(n);
            } else if let Some(n) = (0..2).find(|n| self.hosts[*n].timer == Some(next)) {
                self.poll_host(n);
            } else {
                self.poll_splice();
            }
        }
    }

    pub(crate) fn describe(&self) -> String {
        let one = |host: &Host| {
            let c = &host.connection;
            format!("{:?} wrote {} received {} ended {:?}", c.state(), host.written, c.received(), host.ended)
        };
        let leg = |leg| {
            let c = self.splice.leg(leg);
            format!("{:?} received {} acked {} of {}", c.state(), c.received(), c.acknowledged(), c.written())
        };
        format!(
            "at {}: client {}; near {}; far {}; server {}; splice {:?}",
            self.now.as_secs_f64(),
            one(&self.hosts[0]),
            leg(Leg::Near),
            leg(Leg::Far),
            one(&self.hosts[1]),
            self.splice_ended
        )
    }
}
