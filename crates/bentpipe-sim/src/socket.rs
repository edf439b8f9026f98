//! A TCP socket of a gateway's box: the kernel's connection, and the gateway's buffers in front of it.
//!
//! The gateway reads as much as may wait for the link, and writes as much as the kernel accepts. The rest waits in the
//! kernel, whose window then slows the host.

use std::sync::Arc;

use bentpipe_engine::gateway::{CONNECTION, MAX_UNSENT, MIN_UNSENT};
use bentpipe_engine::mux::{Route, StreamId};
use bentpipe_engine::network::EndId;
use bentpipe_engine::tcp::{Abort, Connection, Input, Output, Role, Segment, TcpConfig, TcpStats};
use bentpipe_engine::units::Time;
use bentpipe_engine::{Context, Machine, Probe, Step};

use crate::ends;
use crate::packet::{self, Parcel, Store};

/// Bytes that the kernel keeps for its peer: Linux's tcp_wmem[2].
const SEND_BUFFER: u64 = 4 << 20;

/// The result of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The connection was opened.
    pub(crate) connected: bool,
    /// Bytes that the host has sent.
    pub(crate) read: u64,
    /// Bytes that the kernel has accepted for the host.
    pub(crate) taken: u64,
    /// True if the host sends no more.
    pub(crate) ended: bool,
    /// Set if the connection failed; true if it had been opened.
    pub(crate) failed: Option<bool>,
    /// True if the connection was given data or a close, so it may have something to send.
    pub(crate) touched: bool,
}

/// A socket.
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    connection: Connection,
    /// Its end.
    end: EndId,
    /// The box to which it belongs.
    pub(crate) side: usize,
    /// The other box's socket for the same flow.
    pub(crate) partner: EndId,
    /// The client and destination of the connection.
    pub(crate) route: Route,
    /// Its stream, if it has one.
    pub(crate) stream: Option<StreamId>,
    is_connected: bool,
    told_connected: bool,
    over: Option<Result<(), Abort>>,
    told_over: bool,
    readable: u64,
    read: u64,
    acknowledged: u64,
    peer_closed: bool,
    host_ended: bool,
    /// Bytes from the host for the link, and from the link for the host.
    to_link: u64,
    to_host: u64,
    /// True if the far host sends no more and the kernel was told so.
    far_ended: bool,
    told_end: bool,
    /// True if there was more to read than room for it.
    held_back: bool,
    memory: u64,
}

impl Socket {
    /// The socket at an end; `partner` is the end of the other box. If it does not open its connection, it listens.
    pub(crate) fn new(config: TcpConfig, end: EndId, side: usize, partner: EndId, route: Route) -> Self {
        let role = if ends::opens(end) { Role::Active } else { Role::Passive };
        let mut connection = Connection::new(Arc::new(config), role);
        // The gateway's sockets have TCP_NODELAY.
        connection.set_nagle(false);
        if role == Role::Passive {
            connection.handle(&mut Context::silent(Time::ZERO), Input::Open);
        }
        Socket {
            connection,
            end,
            side,
            partner,
            route,
            stream: None,
            is_connected: false,
            told_connected: false,
            over: None,
            told_over: false,
            readable: 0,
            read: 0,
            acknowledged: 0,
            peer_closed: false,
            host_ended: false,
            to_link: 0,
            to_host: 0,
            far_ended: false,
            told_end: false,
            held_back: false,
            memory: 0,
        }
    }

    /// True if it opens its connection.
    pub(crate) fn is_active(&self) -> bool {
        ends::opens(self.end)
    }

    pub(crate) fn stats(&self) -> TcpStats {
        self.connection.stats()
    }

    /// The change of its memory since the last call.
    pub(crate) fn memory_change(&mut self) -> i64 {
        let now = CONNECTION as u64 + self.to_link.max(MIN_UNSENT as u64) + self.to_host;
        now as i64 - std::mem::replace(&mut self.memory, now) as i64
    }

    /// Frees the memory of a socket whose stream has ended. Returns the amount.
    pub(crate) fn forget_memory(&mut self) -> u64 {
        std::mem::take(&mut self.memory)
    }

    /// Starts connecting.
    pub(crate) fn connect<P: Probe>(&mut self, cx: &mut Context<'_, P>, stream: StreamId) {
        self.stream = Some(stream);
        self.connection.handle(cx, Input::Open);
    }

    /// Takes a segment that has arrived.
    pub(crate) fn take<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: Segment) {
        self.connection.handle(cx, Input::Segment(segment));
    }

    /// Takes data for the host.
    pub(crate) fn bring(&mut self, bytes: u64) {
        self.to_host += bytes;
    }

    /// Records that no more data follows.
    pub(crate) fn end(&mut self) {
        self.far_ended = true;
    }

    /// Records that the link has accepted data. Returns true if the host has more, for which there is now room.
    pub(crate) fn sent(&mut self, bytes: u64) -> bool {
        self.to_link -= bytes;
        self.held_back && self.to_link < MAX_UNSENT as u64 / 2
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.stream = None;
        self.told_over = true;
        self.connection.handle(cx, Input::Abort);
    }

    /// Why its connection was aborted, if so.
    pub(crate) fn aborted(&self) -> Option<Abort> {
        self.over.and_then(Result::err)
    }

    /// Closes the connection after both directions have ended. The kernel sends what it still has.
    pub(crate) fn close<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.stream = None;
        if self.told_end {
            self.connection.handle(cx, Input::Close);
        }
    }

    /// The next packet to send at `cx.now`, or when to poll again.
    pub(crate) fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>, packets: &mut Store) -> Step<Parcel> {
        loop {
            match self.connection.poll(cx) {
                Step::Do(Output::Transmit(segment)) => {
                    let length = packet::wire_len(&segment, false);
                    return Step::Do(packets.put_segment(self.end, length, &segment));
                }
                Step::Do(Output::Connected) => self.is_connected = true,
                Step::Do(Output::Readable(total)) => self.readable = total,
                Step::Do(Output::Acknowledged(total)) => self.acknowledged = total,
                Step::Do(Output::PeerClosed) => self.peer_closed = true,
                Step::Do(Output::Closed(result)) => self.over = Some(result),
                Step::Wait(until) => return Step::Wait(until),
            }
        }
    }

    /// Moves data in both directions. Up to `limit` bytes may wait for the link.
    pub(crate) fn serve<P: Probe>(&mut self, cx: &mut Context<'_, P>, limit: u64) -> Outcome {
        let mut outcome = Outcome::default();
        if !self.told_over
            && let Some(Err(_)) = self.over
        {
            self.told_over = true;
            outcome.failed = Some(self.is_connected);
            return outcome;
        }
        if !self.is_connected || self.told_over {
            return outcome;
        }
        outcome.connected = !std::mem::replace(&mut self.told_connected, true);
        // The end of an ended stream may still have to be signalled.
        self.write(cx, &mut outcome);
        if self.stream.is_some() || outcome.connected {
            self.read(cx, limit, &mut outcome);
        }
        outcome
    }

    fn write<P: Probe>(&mut self, cx: &mut Context<'_, P>, outcome: &mut Outcome) {
        let queued = self.connection.written() - self.acknowledged.min(self.connection.written());
        let count = self.to_host.min(SEND_BUFFER.saturating_sub(queued));
        if count > 0 {
            self.connection.handle(cx, Input::Write(count));
            self.to_host -= count;
            (outcome.taken, outcome.touched) = (count, true);
        }
        if self.far_ended && self.to_host == 0 && !self.told_end {
            self.told_end = true;
            outcome.touched = true;
            // The gateway's `shutdown`: until both directions have ended, the kernel repeats data as on an open connection.
            self.connection.handle(cx, if self.stream.is_some() { Input::Shutdown } else { Input::Close });
        }
    }

    fn read<P: Probe>(&mut self, cx: &mut Context<'_, P>, limit: u64, outcome: &mut Outcome) {
        self.held_back = false;
        if self.host_ended {
            return;
        }
        let there = self.readable - self.read;
        let count = there.min(limit.saturating_sub(self.to_link));
        if count > 0 {
            self.connection.handle(cx, Input::Read(count));
            self.read += count;
            self.to_link += count;
            (outcome.read, outcome.touched) = (count, true);
        }
        self.held_back = count < there;
        if self.peer_closed && !self.held_back {
            (self.host_ended, outcome.ended) = (true, true);
        }
    }
}
