//! One end of the multiplexer: the machine.

use std::collections::{BTreeMap, VecDeque};

use super::config::{MuxConfig, Side};
use super::exchange::{Input, Output};
use super::stats::MuxStats;
use super::stream::Stream;
use super::turns::Turns;
use crate::machine::{Context, Machine, Step};
use crate::probe::Probe;
use crate::tcp::ranges::Ranges;
use crate::wire::mux as wire;
use crate::wire::mux::{Message, Reason, Route, StreamId};

/// Bytes by which the header of an open is longer than that of data.
const MORE_IN_OPEN: u32 = (wire::MAX_HEADER - wire::MAX_DATA_HEADER) as u32;

/// One end.
#[derive(Clone, Debug)]
pub struct Mux {
    config: MuxConfig,
    next: u64,
    streams: BTreeMap<StreamId, Stream>,
    turns: Turns,
    /// Messages that go before data. A credit message gets its limit when it is sent.
    control: VecDeque<Message>,
    /// Resets among them.
    resets: usize,
    outputs: VecDeque<Output>,
    room: u32,
    /// What the peer's hello said.
    peer: Option<(u64, u32)>,
    foreign: u32,
    /// Numbers that the peer has used, without their lowest bit.
    used: Ranges,
    held: u64,
    draining: bool,
    stats: MuxStats,
}

impl Mux {
    /// Messages that are made from now on have at most so many bytes of payload.
    pub fn set_max_payload(&mut self, max_payload: u32) {
        self.config.max_payload = max_payload;
    }

    /// An end without streams.
    pub fn new(config: MuxConfig) -> Self {
        let hello = Message::Hello { credit: config.window, streams: config.max_streams };
        Mux {
            config,
            next: match config.side {
                Side::Initiator => 0,
                Side::Responder => 1,
            },
            streams: BTreeMap::new(),
            turns: Turns::default(),
            control: [hello].into(),
            resets: 0,
            outputs: VecDeque::new(),
            room: 0,
            peer: None,
            foreign: 0,
            used: Ranges::new(),
            held: 0,
            draining: false,
            stats: MuxStats::default(),
        }
    }

    /// Opens a stream; `None` if the peer accepts no more.
    pub fn open(&mut self, route: Route) -> Option<StreamId> {
        let (credit, max) = self.peer.unwrap_or((MuxConfig::FIRST_CREDIT, u32::MAX));
        if self.streams.len() - self.foreign as usize >= max as usize {
            return None;
        }
        let stream = StreamId(self.next);
        self.next += 2;
        let granted = self.window();
        self.streams.insert(stream, Stream::new(credit, granted, false));
        self.control.push_back(Message::Open { stream, route, credit: granted, len: 0 });
        self.stats.opened += 1;
        Some(stream)
    }

    /// Open streams.
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

    /// Bytes that a stream's user has written and that were not sent yet.
    pub fn unsent(&self, stream: StreamId) -> u64 {
        self.streams.get(&stream).map_or(0, |stream| stream.written - stream.sent)
    }

    /// The counters.
    pub fn stats(&self) -> MuxStats {
        self.stats
    }

    /// The current window of a stream: full up to half the budget, then less.
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
            self.turns.wake(id, &mut stream.turn);
        }
    }

    fn forget(&mut self, id: StreamId) -> bool {
        let Some(stream) = self.streams.remove(&id) else { return false };
        self.held -= stream.held();
        self.foreign -= u32::from(stream.foreign);
        true
    }

    fn reset(&mut self, id: StreamId, reason: Reason) {
        if self.forget(id) {
            self.refuse(id, reason);
        }
    }

    fn refuse(&mut self, stream: StreamId, reason: Reason) {
        self.stats.reset_here += 1;
        self.resets += 1;
        self.control.push_back(Message::Reset { stream, reason });
    }

    /// Resets a stream and tells both its user and the peer.
    fn abort(&mut self, id: StreamId, reason: Reason) {
        self.reset(id, reason);
        self.outputs.push_back(Output::Reset { stream: id, reason });
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::Hello { credit, streams } => {
                // Limits only grow: a stream that was opened before is not cut short.
                for stream in self.streams.values_mut().filter(|stream| !stream.foreign) {
                    stream.limit = stream.limit.max(credit);
                }
                self.peer = Some((credit, streams));
                let own: Vec<_> = self.streams.keys().copied().collect();
                own.into_iter().for_each(|id| self.wake(id));
            }
            Message::Open { stream, route, credit, len } => self.on_open(stream, route, credit, len),
            Message::Data { stream, offset, len, last } => self.on_data(stream, offset, len, last),
            Message::Credit { stream, limit } => match self.streams.get_mut(&stream) {
                Some(known) => {
                    known.limit = known.limit.max(limit);
                    self.wake(stream);
                }
                None => self.stats.stray += 1,
            },
            Message::Reset { stream, reason } if self.forget(stream) => {
                self.stats.reset_by_peer += 1;
                self.outputs.push_back(Output::Reset { stream, reason });
            }
            Message::Reset { .. } => self.stats.stray += 1,
        }
    }

    fn on_open(&mut self, id: StreamId, route: Route, credit: u64, len: u32) {
        let theirs = id.0 % 2 != self.next % 2;
        // A peer that keeps to its limit never has so many resets on their way: its openings are dropped unanswered.
        let is_flood = self.resets >= MuxConfig::MIN_ANSWERS.max(self.config.max_streams as usize);
        let number = id.0 / 2;
        // Openings overtake each other, so there are gaps, but no more than the peer has streams.
        let max_ranges = MuxConfig::MIN_RANGES.max(self.config.max_streams as usize);
        let has_room = self.used.len() <= max_ranges || self.used.touches(number, number + 1);
        if !theirs || is_flood || !has_room || !self.used.insert(number, number + 1, |_, _| ()) {
            self.stats.stray += 1;
        } else if self.draining {
            self.refuse(id, Reason::Draining);
        } else if self.foreign >= self.config.max_streams {
            self.refuse(id, Reason::NoResources);
        } else {
            // What the hello promised: it may have been more than the window is by now.
            self.streams.insert(id, Stream::new(credit, self.config.window, true));
            self.foreign += 1;
            self.stats.accepted += 1;
            self.outputs.push_back(Output::Opened { stream: id, route });
            if len > 0 {
                self.on_data(id, 0, len, false);
            }
        }
    }

    fn on_data(&mut self, id: StreamId, offset: u64, len: u32, last: bool) {
        let Some(stream) = self.streams.get_mut(&id) else {
            self.stats.stray += 1;
            return;
        };
        let end = offset + u64::from(len);
        if offset != stream.received || stream.ended || end > stream.granted.max(MuxConfig::FIRST_CREDIT) {
            self.abort(id, Reason::Protocol);
            return;
        }
        stream.received = end;
        stream.ended = last;
        self.held += u64::from(len);
        self.stats.bytes_received += u64::from(len);
        if len > 0 {
            self.outputs.push_back(Output::Received { stream: id, len });
        }
        if last {
            self.outputs.push_back(Output::Ended { stream: id });
            self.close_if_over(id);
        }
        if self.held > self.config.budget {
            self.shed();
        }
    }

    /// Resets the stream that holds most: memory is bounded whatever users do, and the others go on.
    fn shed(&mut self) {
        let max = self.streams.iter().max_by_key(|(_, stream)| stream.held());
        if let Some((&id, _)) = max {
            self.stats.out_of_memory += 1;
            self.abort(id, Reason::NoResources);
        }
    }

    fn on_taken(&mut self, id: StreamId, bytes: u64) {
        let window = self.window();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        debug_assert!(bytes <= stream.held(), "only what came is taken");
        stream.taken += bytes;
        self.held -= bytes;
        if !stream.owes_credit && stream.due_credit(window).is_some() {
            stream.owes_credit = true;
            self.control.push_back(Message::Credit { stream: id, limit: 0 });
        }
        self.close_if_over(id);
    }

    fn close_if_over(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(Stream::is_over) {
            self.forget(id);
            self.stats.closed += 1;
            self.outputs.push_back(Output::Closed { stream: id });
        }
    }

    fn next_control(&mut self) -> Option<Message> {
        let window = self.window();
        loop {
            match self.control.pop_front()? {
                Message::Credit { stream: id, .. } => {
                    let Some(stream) = self.streams.get_mut(&id) else { continue };
                    stream.owes_credit = false;
                    let Some(limit) = stream.due_credit(window) else { continue };
                    stream.granted = limit;
                    return Some(Message::Credit { stream: id, limit });
                }
                Message::Open { stream: id, route, credit, .. } => {
                    // One that was reset before it went out is still opened, and reset at once behind: the peer would
                    // not know the number else. Its bytes are gone.
                    let max = self.config.max_payload.saturating_sub(MORE_IN_OPEN);
                    let len = self.streams.get_mut(&id).map_or(0, |stream| {
                        let len = stream.sendable().min(u64::from(max)) as u32;
                        stream.sent += u64::from(len);
                        len
                    });
                    self.stats.bytes_sent += u64::from(len);
                    return Some(Message::Open { stream: id, route, credit, len });
                }
                Message::Reset { stream, reason } => {
                    self.resets -= 1;
                    return Some(Message::Reset { stream, reason });
                }
                other => return Some(other),
            }
        }
    }

    fn next_data(&mut self) -> Option<Message> {
        loop {
            let id = self.turns.head()?;
            let Some(stream) = self.streams.get_mut(&id) else {
                self.turns.drop_head();
                continue;
            };
            if !stream.has_something() {
                self.turns.rest(&mut stream.turn);
                continue;
            }
            if stream.turn.deficit <= 0 {
                self.turns.rotate(&mut stream.turn);
                continue;
            }
            let (offset, len, last) = stream.send(self.config.max_payload);
            stream.turn.deficit -= i64::from(len.max(1));
            self.stats.bytes_sent += u64::from(len);
            if last {
                self.close_if_over(id);
            }
            return Some(Message::Data { stream: id, offset, len, last });
        }
    }
}

impl Machine for Mux {
    type Input = Input;
    type Output = Output;
    type Verdict = ();

    fn handle<P: Probe>(&mut self, _: &mut Context<'_, P>, input: Input) {
        match input {
            Input::Write { stream: id, bytes } => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    debug_assert!(!stream.finished, "nothing is written behind the end");
                    stream.written += bytes;
                    self.wake(id);
                }
            }
            Input::Finish { stream: id } => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.finished = true;
                    self.wake(id);
                }
            }
            Input::Taken { stream, bytes } => self.on_taken(stream, bytes),
            Input::Reset { stream, reason } => self.reset(stream, reason),
            Input::Message(message) => self.on_message(message),
            Input::Room(room) => self.room = room,
            Input::Drain => self.draining = true,
        }
    }

    fn poll<P: Probe>(&mut self, _: &mut Context<'_, P>) -> Step<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Step::Do(output);
        }
        if self.room > 0
            && let Some(message) = self.next_control().or_else(|| self.next_data())
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
