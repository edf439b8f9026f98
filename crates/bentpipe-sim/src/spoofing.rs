//! A flow's end at a gateway that acknowledges for the destination, and the buffers that such ends share.

use std::cell::RefCell;
use std::rc::Rc;

use bentpipe_engine::network::EndId;
use bentpipe_engine::spoof::{Input, Output, Spoofer, Verdict};
use bentpipe_engine::tcp::{TcpConfig, TcpStats};
use bentpipe_engine::units::Time;
use bentpipe_engine::{Context, Machine, Probe, Step};
use bentpipe_study::scenario::ConnectionId;

use crate::ends;
use crate::packet::{self, Parcel, Store};

/// The buffer of a gateway, in bytes of payload.
#[derive(Debug)]
pub(crate) struct Buffer {
    capacity: u64,
    used: u64,
    /// True if each end has an equal part of it.
    in_parts: bool,
    /// The ends that share it.
    pub(crate) ends: Vec<EndId>,
}

impl Buffer {
    pub(crate) fn new(capacity: u64, in_parts: bool) -> Self {
        Buffer { capacity, used: 0, in_parts, ends: Vec::new() }
    }

    /// Free space for an end that holds this many bytes: of the whole buffer, or of its equal part.
    fn free(&self, held: u64) -> u64 {
        let all = self.capacity.saturating_sub(self.used);
        if self.in_parts { all.min((self.capacity / self.ends.len() as u64).saturating_sub(held)) } else { all }
    }
}

/// The gateway's end of a flow.
#[derive(Clone, Debug)]
pub(crate) struct SpoofEnd {
    spoofer: Spoofer,
    pub(crate) buffer: Rc<RefCell<Buffer>>,
    connection: ConnectionId,
    /// The destination of the forwarded data.
    pub(crate) sink: EndId,
    /// Length of its headers. It equals that of the connection's headers, so a packet has the same length on both
    /// parts.
    pub(crate) headers: u32,
    ns2_lengths: bool,
    opened: bool,
    sent_on: u64,
}

impl SpoofEnd {
    pub(crate) fn new(
        config: TcpConfig,
        connection: ConnectionId,
        (sink, headers): (EndId, u32),
        buffer: Rc<RefCell<Buffer>>,
        acks_only: bool,
    ) -> Self {
        let ns2_lengths = config.shortcuts.ns2_lengths;
        let spoofer = Spoofer::new(config);
        let spoofer = if acks_only { spoofer.with_acks_only() } else { spoofer };
        SpoofEnd { spoofer, buffer, connection, sink, headers, ns2_lengths, opened: false, sent_on: 0 }
    }

    /// Attaches this end to its connection: the last leg of a split flow.
    pub(crate) fn joins(&mut self, connection: ConnectionId) {
        let (before, now) = (ends::listener(self.connection), ends::listener(connection));
        self.connection = connection;
        for end in self.buffer.borrow_mut().ends.iter_mut().filter(|end| **end == before) {
            *end = now;
        }
    }

    pub(crate) fn stats(&self) -> TcpStats {
        self.spoofer.stats()
    }

    /// Passes an input to the machine, and updates the buffer.
    pub(crate) fn handle<P: Probe>(&mut self, cx: &mut Context<'_, P>, input: Input) {
        let free = self.buffer.borrow().free(self.spoofer.held());
        self.spoofer.handle(cx, Input::Free(free));
        let verdict = self.spoofer.handle(cx, input);
        let used = &mut self.buffer.borrow_mut().used;
        match verdict {
            Verdict::Held(bytes) => *used += bytes,
            Verdict::Freed(bytes) => *used -= bytes,
            // The spoofer counts them.
            Verdict::Dropped => {}
        }
    }

    /// Called when space may have been freed elsewhere: reopens a closed window.
    pub(crate) fn note_room<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        let free = self.buffer.borrow().free(self.spoofer.held());
        self.spoofer.handle(cx, Input::Free(free));
    }

    pub(crate) fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>, packets: &mut Store) -> Step<Parcel> {
        if !self.opened {
            self.opened = true;
            self.handle(cx, Input::Open);
        }
        match self.spoofer.poll(cx) {
            Step::Do(Output::Transmit(segment)) => {
                let wire_len = packet::wire_len(&segment, self.ns2_lengths);
                Step::Do(packets.put_segment(ends::listener(self.connection), wire_len, &segment))
            }
            Step::Do(Output::Forward(bytes)) => {
                let wire_len = bytes + self.headers;
                let parcel = packets.put_datagram(self.connection, wire_len, self.sent_on, cx.now);
                self.sent_on += 1;
                Step::Do(parcel.redirected(self.sink, wire_len))
            }
            Step::Wait(until) => Step::Wait(until),
        }
    }

    /// When it first acts by itself.
    pub(crate) fn first_action(&self) -> Time {
        Time::ZERO
    }

    /// Segments dropped because the buffer was full.
    pub(crate) fn drops(&self) -> u64 {
        self.spoofer.drops()
    }
}

/// The destination of a spoofed flow's data.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    /// Bytes of payload received.
    pub(crate) received: u64,
    /// The gateway's end of the flow.
    pub(crate) spoofer: EndId,
    /// Length of the headers of forwarded data.
    headers: u32,
    expected: u64,
    pub(crate) received_at: Option<Time>,
    /// When the last data arrived.
    pub(crate) read_at: Time,
}

impl Sink {
    /// A sink that expects this many bytes from a gateway's end.
    pub(crate) fn new(expected: u64, spoofer: EndId, headers: u32) -> Self {
        Sink { received: 0, spoofer, headers, expected, received_at: None, read_at: Time::ZERO }
    }

    /// Bytes of payload in a packet of this length.
    pub(crate) fn payload(&self, wire_len: u32) -> u64 {
        u64::from(wire_len - self.headers)
    }

    pub(crate) fn take(&mut self, now: Time, wire_len: u32) {
        self.received += self.payload(wire_len);
        self.read_at = now;
        if self.received >= self.expected && self.received_at.is_none() {
            self.received_at = Some(now);
        }
    }

    /// True if all expected bytes have arrived.
    pub(crate) fn is_done(&self) -> bool {
        self.received_at.is_some()
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.expected != u64::MAX
    }
}
