//! One end of the multiplexer: the machine.

mod arriving;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use super::config::{MuxConfig, Side};
use super::exchange::{Input, Output, Verdict};
use super::hosts::{Host, Hosts};
use super::stats::MuxStats;
use super::stream::Stream;
use crate::machine::{Context, Machine, Step};
use crate::probe::Probe;
use crate::tcp::ranges::Ranges;
use crate::wire::mux::{Message, Reason, Route, StreamId};

/// What a message costs its host in addition to the payload: about the size of the headers from IP to the multiplexer.
const MESSAGE: i64 = 100;
/// What an opening or a reset costs: as much as four messages. Each makes the peer and a server work and answer. With
/// this cost, a host that sends nothing else gets a fifth of the line beside one that sends data.
const CONTROL: i64 = 4 * MESSAGE;

/// A reset that waits to be sent.
#[derive(Clone, Copy, Debug)]
struct Owed {
    host: Host,
    ticket: u64,
    reason: Reason,
}

/// One end.
#[derive(Clone, Debug)]
pub struct Mux {
    config: MuxConfig,
    next: u64,
    /// Numbers of streams whose opening was cancelled before it was sent. They are reused, so that the peer sees no
    /// gaps.
    cancelled: BTreeSet<StreamId>,
    streams: BTreeMap<StreamId, Stream>,
    hosts: Hosts,
    hello: Option<Message>,
    resets: BTreeMap<StreamId, Owed>,
    /// How many of these resets belong to streams opened here.
    own_resets: u32,
    outputs: VecDeque<Output>,
    room: u32,
    /// The limits in the peer's hello: the largest credit, and the maximum number of streams.
    peer: Option<(u64, u32)>,
    /// Number of hellos that raised the credit.
    raises: u32,
    foreign: u32,
    /// Stream numbers that the peer has used, without their lowest bit.
    used: Ranges,
    held: u64,
    draining: bool,
    stats: MuxStats,
}

impl Mux {
    /// Sets the maximum payload of messages made from now on.
    pub fn set_max_payload(&mut self, max_payload: u32) {
        self.config.max_payload = max_payload;
    }

    /// An end without streams. A window is limited to half of the budget, so that a user who takes nothing stalls its
    /// stream and does not get it reset.
    pub fn new(config: MuxConfig) -> Self {
        let config = MuxConfig { window: config.window.min(config.budget / 2), ..config };
        let hello = Message::Hello { credit: config.window, streams: config.max_streams };
        Mux {
            config,
            next: match config.side {
                Side::Initiator => 0,
                Side::Responder => 1,
            },
            cancelled: BTreeSet::new(),
            streams: BTreeMap::new(),
            hosts: Hosts::default(),
            hello: Some(hello),
            resets: BTreeMap::new(),
            own_resets: 0,
            outputs: VecDeque::new(),
            room: 0,
            peer: None,
            raises: 0,
            foreign: 0,
            used: Ranges::new(),
            held: 0,
            draining: false,
            stats: MuxStats::default(),
        }
    }

    /// Opens a stream. Returns `None` if the peer accepts no more, or if the route's host has too many. A host may have
    /// up to seven times as many streams as are free, so that a single host leaves an eighth to others (dynamic
    /// thresholds, Choudhury and Hahne 1998).
    pub fn open(&mut self, route: Route) -> Option<StreamId> {
        let (credit, max) = self.peer.unwrap_or((MuxConfig::FIRST_CREDIT, u32::MAX));
        // The peer counts a stream until it receives the reset.
        let taken = self.streams.len() as u64 - u64::from(self.foreign) + u64::from(self.own_resets);
        let free = u64::from(max).saturating_sub(taken);
        let host = Host::of(route.source.ip());
        if u64::from(self.hosts.own(host)) >= MuxConfig::HOST_SHARE * free {
            return None;
        }
        let stream = self.cancelled.pop_first().unwrap_or_else(|| {
            self.next += 2;
            StreamId(self.next - 2)
        });
        let granted = self.window();
        self.streams.insert(stream, Stream::opening(credit, granted, route));
        let queue = self.hosts.queue(host);
        (queue.streams, queue.own) = (queue.streams + 1, queue.own + 1);
        self.wake(stream);
        self.stats.opened += 1;
        Some(stream)
    }

    /// Number of open streams.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// True if no stream is open.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Received bytes that users have not taken.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Bytes that a stream's user has written and that have not been sent yet.
    pub fn unsent(&self, stream: StreamId) -> u64 {
        self.streams.get(&stream).map_or(0, |stream| stream.written - stream.sent)
    }

    /// The counters.
    pub fn stats(&self) -> MuxStats {
        self.stats
    }

    /// The current window of a stream: the full window while at most half the budget is used, then less.
    fn window(&self) -> u64 {
        let half = (self.config.budget / 2).max(1);
        let free = self.config.budget.saturating_sub(self.held).min(half);
        let scaled = (self.config.window as u128 * free as u128 / half as u128) as u64;
        scaled.max(MuxConfig::MIN_WINDOW.min(self.config.window))
    }

    fn wake(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id)
            && stream.has_something()
        {
            self.hosts.queue(stream.host).turns.wake(id, &mut stream.turn);
            self.hosts.settle(stream.host);
        }
    }

    fn forget(&mut self, id: StreamId) -> Option<Stream> {
        let mut stream = self.streams.remove(&id)?;
        self.held -= stream.held();
        self.foreign -= u32::from(stream.foreign);
        let queue = self.hosts.queue(stream.host);
        queue.streams -= 1;
        queue.own -= u32::from(!stream.foreign);
        queue.turns.remove(&mut stream.turn);
        if let Some(ticket) = stream.owes_credit {
            queue.credits.remove(ticket);
        }
        self.hosts.settle(stream.host);
        Some(stream)
    }

    fn reset(&mut self, id: StreamId, reason: Reason) -> Verdict {
        match self.forget(id) {
            // Its opening was never sent, so the peer does not know it.
            Some(Stream { opening: Some(_), .. }) => {
                self.stats.cancelled += 1;
                self.cancelled.insert(id);
            }
            Some(stream) => self.refuse(id, stream.host, reason),
            None => return Verdict::Stray,
        }
        Verdict::Accepted
    }

    fn refuse(&mut self, stream: StreamId, host: Host, reason: Reason) {
        self.stats.reset_here += 1;
        let own = u32::from(self.is_own(stream));
        let queue = self.hosts.queue(host);
        let ticket = queue.resets.push(stream);
        queue.own += own;
        self.hosts.settle(host);
        self.own_resets += own;
        self.resets.insert(stream, Owed { host, ticket, reason });
    }

    fn is_own(&self, stream: StreamId) -> bool {
        stream.0 % 2 == self.next % 2
    }

    /// Withdraws a waiting reset. Returns its reason.
    fn unrefuse(&mut self, stream: StreamId) -> Option<Reason> {
        let Owed { host, ticket, reason } = self.resets.remove(&stream)?;
        let own = u32::from(self.is_own(stream));
        let queue = self.hosts.queue(host);
        queue.resets.remove(ticket);
        queue.own -= own;
        self.hosts.settle(host);
        self.own_resets -= own;
        Some(reason)
    }

    /// Resets a stream and tells both its user and the peer.
    fn abort(&mut self, id: StreamId, reason: Reason) {
        self.reset(id, reason);
        self.outputs.push_back(Output::Reset { stream: id, reason });
    }

    fn on_taken(&mut self, id: StreamId, bytes: u64) -> Verdict {
        let window = self.window();
        let Some(stream) = self.streams.get_mut(&id) else { return Verdict::Stray };
        debug_assert!(bytes <= stream.held(), "only what came is taken");
        stream.taken += bytes;
        self.held -= bytes;
        if stream.owes_credit.is_none() && stream.due_credit(window).is_some() {
            stream.owes_credit = Some(self.hosts.queue(stream.host).credits.push(id));
            self.hosts.settle(stream.host);
        }
        self.close_if_over(id);
        Verdict::Accepted
    }

    fn close_if_over(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(Stream::is_over) {
            self.forget(id);
            self.stats.closed += 1;
            self.outputs.push_back(Output::Closed { stream: id });
        }
    }

    /// The next message of the host whose turn it is: resets first, then credit, then the stream whose turn it is.
    fn next_message(&mut self) -> Option<Message> {
        if let Some(hello) = self.hello.take() {
            return Some(hello);
        }
        let window = self.window();
        loop {
            let (host, queue) = self.hosts.next()?;
            if let Some(stream) = queue.resets.front() {
                // Charged before the message is taken, so that a host that has used up its turn is not forgotten.
                self.hosts.charge(host, CONTROL);
                let reason = self.unrefuse(stream)?;
                return Some(Message::Reset { stream, reason });
            }
            if let Some(id) = queue.credits.pop() {
                let stream = self.streams.get_mut(&id)?;
                stream.owes_credit = None;
                if let Some(limit) = stream.due_credit(window) {
                    stream.granted = limit;
                    self.hosts.charge(host, MESSAGE);
                    return Some(Message::Credit { stream: id, limit });
                }
                self.hosts.settle(host);
                continue;
            }
            let id = queue.turns.head()?;
            let stream = self.streams.get_mut(&id)?;
            if !stream.has_something() {
                queue.turns.rest(&mut stream.turn);
                self.hosts.settle(host);
                continue;
            }
            if stream.turn.deficit <= 0 {
                queue.turns.rotate(&mut stream.turn);
                continue;
            }
            let is_opening = stream.opening.is_some();
            let message = stream.send(id, self.config.max_payload);
            let len = i64::from(message.payload());
            let cost = len + if is_opening { CONTROL } else { MESSAGE };
            stream.turn.deficit -= cost;
            self.stats.bytes_sent += len as u64;
            self.hosts.charge(host, cost);
            if let Message::Data { last: true, .. } = message {
                self.close_if_over(id);
            }
            return Some(message);
        }
    }
}

impl Machine for Mux {
    type Input = Input;
    type Output = Output;
    type Verdict = Verdict;

    fn handle<P: Probe>(&mut self, _: &mut Context<'_, P>, input: Input) -> Verdict {
        match input {
            Input::Write { stream: id, bytes } => {
                let Some(stream) = self.streams.get_mut(&id) else { return Verdict::Stray };
                debug_assert!(!stream.finished, "nothing is written behind the end");
                stream.written += bytes;
                self.wake(id);
            }
            Input::Finish { stream: id } => {
                let Some(stream) = self.streams.get_mut(&id) else { return Verdict::Stray };
                stream.finished = true;
                self.wake(id);
            }
            Input::Taken { stream, bytes } => return self.on_taken(stream, bytes),
            Input::Reset { stream, reason } => return self.reset(stream, reason),
            Input::Message(message) => return self.on_message(message),
            Input::Room(room) => self.room = room,
            Input::Budget(budget) => self.config.budget = budget,
            Input::Drain => self.draining = true,
        }
        Verdict::Accepted
    }

    fn poll<P: Probe>(&mut self, _: &mut Context<'_, P>) -> Step<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Step::Do(output);
        }
        if self.room > 0
            && let Some(message) = self.next_message()
        {
            self.room -= 1;
            return Step::Do(Output::Send(message));
        }
        Step::Wait(None)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "host_tests.rs"]
mod host_tests;

#[cfg(test)]
#[path = "window_tests.rs"]
mod window_tests;

#[cfg(test)]
#[path = "hostile_tests.rs"]
mod hostile_tests;
