//! Two connections and an arbitrary channel between them, for property tests and fuzzing.
//!
//! No bytes are stored here, only which numbers have arrived. So an end is caught if it claims bytes that never reached it, sends beyond
//! the window it was offered, waits for an instant in the past, or never waits.

use std::collections::BTreeMap;

use bentpipe_engine::probe::Who;
use bentpipe_engine::tcp::variant::Recovery;
use bentpipe_engine::tcp::{Abort, Duplex, FIRST_BYTE, Flags, Input, Output, Segment, SendingHalf, State};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::{Context, Machine, NoProbe, Step};

/// The fate of a segment.
pub(crate) trait Channel {
    /// The delays after which its copies arrive: none if it is lost, several if it is duplicated.
    fn pass(&mut self, now: Time, from: usize, segment: &Segment) -> Vec<(Duration, Segment)>;
}

/// An action of an end's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Write(u64),
    Close,
    #[allow(dead_code, reason = "only the adversary aborts")]
    Abort,
}

/// How the user of an end reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Everything at once.
    Greedy,
    /// This many bytes at an interval.
    Slow { bytes: u64, every: Duration },
}

pub(crate) struct End<S> {
    pub(crate) connection: Duplex<S>,
    timer: Option<Time>,
    reading: Reading,
    next_read: Option<Time>,
    pub(crate) read: u64,
    pub(crate) readable: u64,
    pub(crate) written: u64,
    closed: bool,
    pub(crate) peer_closed: bool,
    pub(crate) ended: Option<Result<(), Abort>>,
    /// The ranges that have arrived, as start to end, merged.
    arrived: BTreeMap<u64, u64>,
    /// The largest right edge of the window that this end has been offered.
    offered: u64,
}

impl<S: SendingHalf> End<S> {
    fn new(connection: Duplex<S>, reading: Reading) -> Self {
        End {
            connection,
            timer: None,
            reading,
            next_read: None,
            read: 0,
            readable: 0,
            written: 0,
            closed: false,
            peer_closed: false,
            ended: None,
            arrived: BTreeMap::new(),
            offered: 0,
        }
    }

    fn note_arrival(&mut self, segment: &Segment) {
        let window_from = if segment.flags.has(Flags::ACK) { segment.ack } else { FIRST_BYTE };
        self.offered = self.offered.max(window_from + segment.window as u64);
        let (mut start, mut end) = (segment.seq, segment.seq + segment.len as u64);
        if segment.len == 0 || segment.flags.has(Flags::SYN) {
            return;
        }
        while let Some((&s, &e)) = self.arrived.range(..=end).next_back()
            && e >= start
        {
            self.arrived.remove(&s);
            (start, end) = (start.min(s), end.max(e));
        }
        self.arrived.insert(start, end);
    }

    /// The bytes that have arrived without a gap.
    fn contiguous(&self) -> u64 {
        match self.arrived.first_key_value() {
            Some((&start, &end)) if start <= FIRST_BYTE => end - FIRST_BYTE,
            _ => 0,
        }
    }

    fn check_transmission(&self, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        assert!(
            segment.len == 0 || segment.seq + segment.len as u64 <= FIRST_BYTE + self.written,
            "more is sent than was written"
        );
        let max = self.connection.config().mss as u32;
        assert!(
            segment.len == 0 || segment.len as u32 + segment.options_len() <= max,
            "{segment:?} with its options is longer than an MSS of {max} lets it be (RFC 6691 §2)"
        );
        // The probe of a closed window lies beyond it.
        let probe = segment.sequence_len() <= 1;
        assert!(
            probe || segment.flags.has(Flags::SYN) || segment.end() <= self.offered,
            "{segment:?} lies beyond {}, the window offered",
            self.offered
        );
    }
}

/// Maximum number of steps of one machine at one instant; after more, it is assumed never to wait.
const LIVELOCK: u32 = 1_000_000;

/// More segments in flight than any window and its answers need: 60 kB in segments of 28 bytes, each sent twice, and their ACKs.
const STORM_OF_SEGMENTS: usize = 20_000;

pub(crate) struct Pair<C, S> {
    pub(crate) ends: [End<S>; 2],
    channel: C,
    pub(crate) now: Time,
    /// In flight: arrival time, order, destination.
    flying: BTreeMap<(Time, u64), (usize, Segment)>,
    plan: Vec<(Time, usize, Action)>,
    count: u64,
    /// The channel forges segments, so an end's claims about the other's bytes are not checked.
    pub(crate) forged: bool,
}

impl<C: Channel, S: SendingHalf> Pair<C, S> {
    /// End 0 opens actively, end 1 listens. The plan is in order of time.
    pub(crate) fn new(
        [active, passive]: [Duplex<S>; 2],
        reading: [Reading; 2],
        plan: Vec<(Time, usize, Action)>,
        channel: C,
    ) -> Self {
        let ends = [End::new(active, reading[0]), End::new(passive, reading[1])];
        let mut pair = Pair { ends, channel, now: Time::ZERO, flying: BTreeMap::new(), plan, count: 0, forged: false };
        pair.plan.sort_by_key(|(at, ..)| *at);
        pair.plan.reverse();
        pair.handle(1, Input::Open);
        pair.handle(0, Input::Open);
        pair
    }

    fn handle(&mut self, n: usize, input: Input) {
        let mut cx = Context { now: self.now, who: Who(n as u32), probe: &mut NoProbe };
        self.ends[n].connection.handle(&mut cx, input);
        self.poll(n);
    }

    fn poll(&mut self, n: usize) {
        for _ in 0..LIVELOCK {
            let mut cx = Context { now: self.now, who: Who(n as u32), probe: &mut NoProbe };
            match self.ends[n].connection.poll(&mut cx) {
                Step::Do(output) => self.take(n, output),
                Step::Wait(timer) => {
                    assert!(timer.is_none_or(|at| at > self.now), "waits for an instant that is not in the future");
                    self.ends[n].timer = timer;
                    return;
                }
            }
        }
        panic!("never waits");
    }

    fn take(&mut self, n: usize, output: Output) {
        match output {
            Output::Transmit(segment) => {
                if !self.forged {
                    self.ends[n].check_transmission(&segment);
                }
                for (delay, copy) in self.channel.pass(self.now, n, &segment) {
                    self.count += 1;
                    self.flying.insert((self.now + delay, self.count), (1 - n, copy));
                }
            }
            Output::Readable(total) => {
                let end = &mut self.ends[n];
                assert!(total >= end.readable, "bytes are taken back");
                assert!(self.forged || total <= end.contiguous(), "bytes are claimed that never came");
                end.readable = total;
                match end.reading {
                    Reading::Greedy => {
                        let fresh = total - end.read;
                        end.read = total;
                        let mut cx = Context { now: self.now, who: Who(n as u32), probe: &mut NoProbe };
                        self.ends[n].connection.handle(&mut cx, Input::Read(fresh));
                    }
                    Reading::Slow { every, .. } => {
                        end.next_read = end.next_read.or(Some(self.now + every));
                    }
                }
            }
            Output::Acknowledged(total) => {
                let peer = self.ends[1 - n].connection.received();
                assert!(self.forged || total <= peer, "{total} bytes are acknowledged, {peer} have come");
            }
            Output::PeerClosed => {
                let (end, peer) = (&self.ends[n], &self.ends[1 - n]);
                let whole = peer.closed && end.connection.received() == peer.written;
                assert!(self.forged || whole, "the end of a stream that was not closed, or not all of it");
                self.ends[n].peer_closed = true;
            }
            Output::Closed(result) => {
                assert_eq!(self.ends[n].ended, None, "ends twice");
                self.ends[n].ended = Some(result);
            }
            Output::Connected => {}
        }
    }

    fn act(&mut self, n: usize, action: Action) {
        let end = &mut self.ends[n];
        match action {
            _ if end.closed || end.ended.is_some() => {}
            Action::Write(bytes) => {
                end.written += bytes;
                self.handle(n, Input::Write(bytes));
            }
            Action::Close => {
                // A CLOSE in SYN-SENT or LISTEN ends everything: users who want to be heard wait.
                if matches!(end.connection.state(), State::SynSent | State::Listen) {
                    self.plan.push((self.now + Duration::from_millis(700), n, action));
                    self.plan.sort_by_key(|(at, ..)| core::cmp::Reverse(*at));
                    return;
                }
                end.closed = true;
                self.handle(n, Input::Close);
            }
            Action::Abort => {
                end.closed = true;
                self.handle(n, Input::Abort);
            }
        }
    }

    fn slow_read(&mut self, n: usize) {
        let end = &mut self.ends[n];
        let Reading::Slow { bytes, every } = end.reading else { return };
        let fresh = bytes.min(end.readable - end.read);
        end.read += fresh;
        end.next_read = (end.read < end.readable).then(|| self.now + every);
        self.handle(n, Input::Read(fresh));
    }

    /// Handles the next event. Returns false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let timers = [0, 1].map(|n| self.ends[n].timer);
        let reads = [0, 1].map(|n| self.ends[n].next_read);
        let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
        let planned = self.plan.last().map(|(at, ..)| *at);
        let all = [arrival, planned, reads[0], reads[1], timers[0], timers[1]];
        let Some(next) = all.into_iter().flatten().min() else { return false };
        assert!(next >= self.now, "time runs forward");
        self.now = next;
        if arrival == Some(next) {
            let (_, (to, segment)) = self.flying.pop_first().expect("it is there");
            self.ends[to].note_arrival(&segment);
            self.handle(to, Input::Segment(segment));
        } else if planned == Some(next) {
            let (_, n, action) = self.plan.pop().expect("it is there");
            self.act(n, action);
        } else if let Some(n) = (0..2).find(|n| reads[*n] == Some(next)) {
            self.slow_read(n);
        } else {
            let n = (0..2).find(|n| timers[*n] == Some(next)).expect("one of the two");
            self.poll(n);
        }
        true
    }

    #[allow(dead_code, reason = "the fuzz target steps by itself")]
    /// More segments in flight than a correct pair has. The burst estimate may send a burst for each segment acknowledged by a partial ACK,
    /// because a copy of that ACK looks like a hole: with n segments outstanding, at most n bursts of n segments.
    fn storm(&self) -> usize {
        let mss = self.ends.iter().map(|end| end.connection.config().mss).min().unwrap_or(1);
        let of = |end: &End<S>| {
            // Timestamps take 12 bytes of a segment.
            let segments = end.connection.stats().max_flight / u64::from(mss.saturating_sub(12).max(1));
            let bursts = matches!(end.connection.config().variant.recovery, Recovery::BurstEstimate(_));
            if bursts { (segments * segments) as usize } else { 0 }
        };
        STORM_OF_SEGMENTS + self.ends.iter().map(of).sum::<usize>()
    }

    #[allow(dead_code, reason = "the fuzz target steps by itself")]
    /// Runs until nothing is left to do, or until `limit`.
    pub(crate) fn run(&mut self, limit: Time) {
        while self.now < limit && self.step() {
            let is_calm = self.flying.len() < STORM_OF_SEGMENTS || self.flying.len() < self.storm();
            assert!(is_calm, "segments call up more and more: {}", self.describe());
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ends.iter().all(|end| end.ended.is_some())
    }

    /// The state of both ends, for messages.
    pub(crate) fn describe(&self) -> String {
        let one = |end: &End<S>| {
            format!(
                "{:?} wrote {} acked {} received {} read {} ended {:?} timer {:?} {:?}",
                end.connection.state(),
                end.written,
                end.connection.acknowledged(),
                end.connection.received(),
                end.read,
                end.ended,
                end.timer.map(Time::as_secs_f64),
                end.connection.stats()
            )
        };
        format!("at {}: {}\n{}", self.now.as_secs_f64(), one(&self.ends[0]), one(&self.ends[1]))
    }
}
