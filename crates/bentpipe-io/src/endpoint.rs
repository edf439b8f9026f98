//! A connection of the engine with its bytes: IP packets in and out, a byte stream for the user.
//!
//! The driver provides the clock and the device. The engine counts bytes, and the two rings here hold them. A payload
//! is stored after the engine has accepted its segment, and only those of its bytes that had not been received before.

use std::net::SocketAddr;

use bentpipe_engine::tcp::{
    ASSUMED_MSS_IPV6, Abort, Connection, FIRST_BYTE, Fresh, Input, Output, Role, Segment, State, TcpConfig, Verdict,
};
use bentpipe_engine::units::Time;
use bentpipe_engine::wire::ip::{self, Addresses, Ports};
use bentpipe_engine::wire::tcp::{Near, Translation};
use bentpipe_engine::wire::{EmitError, WireError};
use bentpipe_engine::{Context, Machine, Probe, Step};

use crate::isn::isn;
use crate::ring::Ring;

/// The peer of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The endpoint at this address; we send the SYN.
    Connect(SocketAddr),
    /// The sender of the first SYN.
    Accept,
}

/// What an endpoint did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It is not for this endpoint.
    Foreign,
    /// It was handled, and made this many more bytes readable.
    Taken(u64),
}

/// The connection accepts no more bytes: it is closed or has ended (RFC 9293 §3.10.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connection closing")]
pub struct Closing;

/// One end of a connection, with buffers.
#[derive(Debug)]
pub struct Endpoint {
    local: SocketAddr,
    connection: Connection,
    /// Set when the peer is known.
    translation: Option<Translation>,
    outgoing: Ring,
    incoming: Ring,
    /// The number of bytes by which the rings may still grow, and of packets dropped because they could not.
    spare: u64,
    no_room: u64,
    /// Byte counts from the start: written by the user, acknowledged by the peer, received in order, read by the user.
    written: u64,
    acknowledged: u64,
    readable: u64,
    taken: u64,
    connected: bool,
    peer_closed: bool,
    outcome: Option<Result<(), Abort>>,
}

impl Endpoint {
    /// Opens an endpoint at `local`. `send_buffer` is the maximum number of written bytes that are unacknowledged; the
    /// receive buffer is that of the config.
    ///
    /// # Panics
    /// Panics if a buffer is empty, or if the local address and the peer have different IP versions.
    pub fn open<P: Probe>(
        cx: &mut Context<'_, P>,
        config: TcpConfig,
        local: SocketAddr,
        peer: Peer,
        send_buffer: usize,
    ) -> Self {
        let whole = config.receive_buffer as usize;
        Endpoint::open_small(cx, config, local, peer, [send_buffer, whole])
    }

    /// As [`Endpoint::open`], with initial memory for `send` and `receive` bytes. It grows as [`Endpoint::spare`] allows,
    /// as after [`Endpoint::shrink`].
    ///
    /// # Panics
    /// As [`Endpoint::open`].
    pub fn open_small<P: Probe>(
        cx: &mut Context<'_, P>,
        config: TcpConfig,
        local: SocketAddr,
        peer: Peer,
        [send, receive]: [usize; 2],
    ) -> Self {
        let (role, translation) = match peer {
            Peer::Connect(remote) => {
                let addresses = Addresses::new(local.ip(), remote.ip()).expect("one IP version on both sides");
                let ports = Ports { source: local.port(), destination: remote.port() };
                (Role::Active, Some(Translation::new(addresses, ports, isn(cx.now, local, remote))))
            }
            Peer::Accept => (Role::Passive, None),
        };
        let assumed_mss = if local.is_ipv6() { ASSUMED_MSS_IPV6 } else { config.assumed_mss };
        let mut connection = Connection::new(TcpConfig { assumed_mss, ..config }, role);
        connection.handle(cx, Input::Open);
        Endpoint {
            local,
            connection,
            translation,
            outgoing: Ring::new(send),
            incoming: Ring::new(receive.min(config.receive_buffer as usize)),
            spare: 0,
            no_room: 0,
            written: 0,
            acknowledged: 0,
            readable: 0,
            taken: 0,
            connected: false,
            peer_closed: false,
            outcome: None,
        }
    }

    /// The engine's connection: states, windows, counters.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// True if the handshake is done.
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// True if the peer has ended its stream; [`Endpoint::readable`] may still be above zero.
    pub fn peer_has_closed(&self) -> bool {
        self.peer_closed
    }

    /// How the connection ended, if it has.
    pub fn outcome(&self) -> Option<Result<(), Abort>> {
        self.outcome
    }

    /// Number of readable bytes.
    pub fn readable(&self) -> u64 {
        self.readable - self.taken
    }

    /// Number of bytes that can be written.
    pub fn writable(&self) -> u64 {
        (self.outgoing.capacity() as u64 - (self.written - self.acknowledged)).min(self.connection.room())
    }

    /// Bytes written that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.written - self.acknowledged
    }

    /// Bytes written that the peer has acknowledged, from the start.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Releases memory that the buffers do not need, down to `min` bytes in each. They grow again as
    /// [`Endpoint::spare`] allows; the windows are unchanged.
    ///
    /// # Panics
    /// Panics if `min` is 0.
    pub fn shrink(&mut self, min: usize) {
        let held = self.written - self.acknowledged;
        if self.outgoing.capacity() > min.max(held as usize) {
            self.outgoing.resize(min.max(held as usize), self.acknowledged..self.written);
        }
        // With data beyond a gap the buffer is left as it is: finding the end of that data is not worth the effort.
        let held = if self.connection.beyond_gaps() == 0 { self.readable() as usize } else { usize::MAX };
        if self.incoming.capacity() > min.max(held) {
            self.incoming.resize(min.max(held), self.taken..self.readable);
        }
    }

    /// Memory in bytes: both buffers, and the lists of ranges beyond gaps on either side.
    pub fn memory(&self) -> u64 {
        (self.outgoing.capacity() + self.incoming.capacity() + self.connection.memory()) as u64
    }

    /// Sets the number of bytes by which both buffers together may grow from now on. A packet that does not fit is then
    /// treated as lost.
    pub fn spare(&mut self, bytes: u64) {
        self.spare = bytes;
    }

    /// Number of packets inside the window that were dropped because the buffer could not grow.
    pub fn no_room(&self) -> u64 {
        self.no_room
    }

    /// Grows the send buffer to `capacity` if [`Endpoint::spare`] allows all of it. Otherwise it stays as it is.
    pub fn grow_outgoing(&mut self, capacity: usize) {
        let more = capacity.saturating_sub(self.outgoing.capacity()) as u64;
        if more > 0 && more <= self.spare {
            self.spare -= more;
            self.outgoing.resize(capacity, self.acknowledged..self.written);
        }
    }

    /// True if the receive buffer has room for a segment's payload, or can grow. It does not grow for a segment that
    /// the connection will refuse.
    fn has_room(&mut self, now: Time, segment: &Segment) -> bool {
        let start = segment.seq.saturating_sub(FIRST_BYTE);
        let have = self.incoming.capacity() as u64;
        let max = u64::from(self.connection.config().receive_buffer);
        // The engine takes no byte beyond its limit.
        let end = (start + u64::from(segment.len)).min(self.connection.rcv_limit().saturating_sub(FIRST_BYTE));
        let needed = end.saturating_sub(self.taken);
        if needed <= have || !self.connection.would_accept(now, segment) {
            return true;
        }
        let capacity = needed.max(2 * have).min(max);
        // Linux rounds a window up to what its shift can express, so it may end beyond the whole buffer.
        if needed > max || capacity - have > self.spare {
            return false;
        }
        self.spare -= capacity - have;
        self.incoming.resize(capacity as usize, self.taken..self.taken + have);
        true
    }

    /// Writes as much of `data` as there is room for. Returns the number of bytes.
    ///
    /// # Errors
    /// Returns [`Closing`] after [`Endpoint::close`] and after the end: nothing was written.
    pub fn write<P: Probe>(&mut self, cx: &mut Context<'_, P>, data: &[u8]) -> Result<usize, Closing> {
        let length = data.len().min(self.writable() as usize);
        if self.connection.handle(cx, Input::Write(length as u64)) == Verdict::Refused {
            return Err(Closing);
        }
        self.outgoing.store(self.written, &data[..length]);
        self.written += length as u64;
        if length < data.len() {
            self.wait_for_room();
        }
        Ok(length)
    }

    /// Records that the program has more to write than can be [written](Self::writable). If the connection's send buffer
    /// is limited, the program waits until a third of it is free. [`Endpoint::write`] calls this when it takes only a
    /// part of the data.
    pub fn wait_for_room(&mut self) {
        self.connection.wait_for_room();
    }

    /// Reads into `data`. Returns the number of bytes.
    pub fn read<P: Probe>(&mut self, cx: &mut Context<'_, P>, data: &mut [u8]) -> usize {
        let length = data.len().min(self.readable() as usize);
        if length > 0 {
            let [first, second] = self.incoming.slices(self.taken..self.taken + length as u64);
            data[..first.len()].copy_from_slice(first);
            data[first.len()..length].copy_from_slice(second);
            self.taken += length as u64;
            self.connection.handle(cx, Input::Read(length as u64));
        }
        length
    }

    /// Ends the stream: a FIN follows the written data.
    pub fn close<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.connection.handle(cx, Input::Close);
    }

    /// Ends the stream, as [`Self::close`], and still waits for the peer's (`shutdown`).
    pub fn shutdown<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.connection.handle(cx, Input::Shutdown);
    }

    /// Switches the Nagle algorithm, which holds small segments while data is outstanding, on or off (TCP_NODELAY).
    pub fn set_nagle(&mut self, on: bool) {
        self.connection.set_nagle(on);
    }

    /// Drops all data and resets the connection.
    pub fn abort<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.connection.handle(cx, Input::Abort);
    }

    /// Handles an IP packet.
    ///
    /// # Errors
    /// Fails if the packet is malformed; the connection is unchanged.
    pub fn receive<P: Probe>(&mut self, cx: &mut Context<'_, P>, packet: &[u8]) -> Result<Receipt, WireError> {
        let ip = ip::parse(packet)?;
        if ip.protocol != ip::TCP || ip.addresses.destination() != self.local.ip() {
            return Ok(Receipt::Foreign);
        }
        let bytes = &packet[ip.payload];
        let ports = Ports::peek(bytes)?;
        if ports.destination != self.local.port() {
            return Ok(Receipt::Foreign);
        }
        let near = Near { rcv_nxt: self.connection.rcv_nxt(), snd_una: self.connection.snd_una() };
        let listens = self.translation.is_none();
        let translation = match self.translation {
            Some(translation) if translation.is_for_us(&ip.addresses, ports) => translation,
            Some(_) => return Ok(Receipt::Foreign),
            // A listener: the first accepted SYN determines the peer.
            None => {
                let remote = SocketAddr::new(ip.addresses.source(), ports.source);
                let iss = isn(cx.now, self.local, remote);
                Translation::new(ip.addresses.reversed(), ports.reversed(), iss)
            }
        };
        let (mut segment, payload) = translation.parse(bytes, near)?;
        segment.ecn = ip.ecn;
        let payload = &bytes[payload];
        if listens && !self.connection.would_accept(cx.now, &segment) {
            return Ok(Receipt::Foreign);
        }
        if !payload.is_empty() && !self.has_room(cx.now, &segment) {
            self.no_room += 1;
            return Ok(Receipt::Taken(0));
        }
        let before = self.connection.received();
        match self.connection.handle(cx, Input::Segment(segment)) {
            Verdict::Refused => {}
            Verdict::Accepted(fresh) => self.store(&segment, fresh, payload),
            Verdict::Synchronized(fresh) => {
                let known = self.translation.insert(translation);
                known.synchronize(bytes, &segment)?;
                self.store(&segment, fresh, payload);
            }
        }
        self.forget_peer();
        // The connection also reports these at the next poll, but that may come later.
        self.readable = self.connection.received();
        self.acknowledged = self.connection.acknowledged();
        Ok(Receipt::Taken(self.readable - before))
    }

    /// Forgets the peer if the connection has returned to LISTEN: the next SYN may come from any host.
    fn forget_peer(&mut self) {
        if self.connection.state() == State::Listen {
            self.translation = None;
        }
    }

    /// Stores the part of a payload that is new.
    fn store(&mut self, segment: &Segment, fresh: Fresh, payload: &[u8]) {
        let first = segment.seq.max(FIRST_BYTE);
        let mut put = |(start, end): (u64, u64)| {
            let part = (start - first) as usize..(end - first) as usize;
            self.incoming.store(start - FIRST_BYTE, &payload[part]);
        };
        match fresh {
            Fresh::None => {}
            Fresh::Span(start, end) => put((start, end)),
            Fresh::Spans => self.connection.fresh_spans().iter().copied().for_each(put),
        }
    }

    /// Polls the connection. After `Do(length)`, send the IP packet in `out` and poll again.
    ///
    /// # Errors
    /// Returns [`EmitError`] if `out` is too small for the packet, which is then lost.
    pub fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>, out: &mut [u8]) -> Result<Step<usize>, EmitError> {
        loop {
            match self.connection.poll(cx) {
                Step::Wait(until) => {
                    self.forget_peer();
                    return Ok(Step::Wait(until));
                }
                Step::Do(Output::Transmit(segment)) => return self.emit(&segment, out).map(Step::Do),
                Step::Do(Output::Connected) => self.connected = true,
                Step::Do(Output::Readable(bytes)) => self.readable = bytes,
                Step::Do(Output::Acknowledged(bytes)) => self.acknowledged = bytes,
                Step::Do(Output::PeerClosed) => self.peer_closed = true,
                Step::Do(Output::Closed(outcome)) => self.outcome = Some(outcome),
            }
        }
    }

    fn emit(&mut self, segment: &Segment, out: &mut [u8]) -> Result<usize, EmitError> {
        let translation = self.translation.as_mut().expect("nothing is sent before the peer is known");
        let start = segment.seq.saturating_sub(FIRST_BYTE);
        let payload = self.outgoing.slices(start..start + u64::from(segment.len));
        let header = translation.addresses.header_len();
        let have = out.len();
        let body = out.get_mut(header..).ok_or(EmitError::NoRoom { needed: header, have })?;
        let length = translation.emit(segment, &payload, body)?;
        ip::emit(&translation.addresses, ip::TCP, length, out)?;
        if segment.ecn.is_capable() {
            segment.ecn.put(out);
        }
        Ok(header + length)
    }
}

mod numbers;
#[cfg(test)]
mod tests;
