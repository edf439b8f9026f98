//! A connection of the engine with its bytes: IP packets in and out, a byte stream for the user.
//!
//! No clock and no device: the driver brings both. The engine counts bytes, the two rings here hold them. Payload is
//! stored where it belongs before the engine judges the segment; what the engine then does not accept is overwritten
//! by what it does.

use std::net::SocketAddr;
use std::ops::Range;

use bentpipe_engine::tcp::{Abort, Connection, FIRST_BYTE, Flags, Input, Output, Role, Segment, TcpConfig};
use bentpipe_engine::wire::ip::{self, Addresses, Ports};
use bentpipe_engine::wire::tcp::{Near, Translation};
use bentpipe_engine::wire::{EmitError, WireError};
use bentpipe_engine::{Context, Machine, Probe, Step};

use crate::clock::isn;
use crate::ring::Ring;

/// Whom an endpoint talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// This one; we send the SYN.
    Connect(SocketAddr),
    /// Whoever sends the first SYN.
    Accept,
}

/// One end of a connection, with buffers.
#[derive(Debug)]
pub struct Endpoint {
    local: SocketAddr,
    connection: Connection,
    /// Known as soon as the peer is.
    translation: Option<Translation>,
    outgoing: Ring,
    incoming: Ring,
    /// Bytes by which the rings may grow, and a packet for which they may not.
    spare: u64,
    no_room: u64,
    /// Bytes so far: written by the user, acknowledged by the peer, readable in order, taken by the user.
    written: u64,
    acknowledged: u64,
    readable: u64,
    taken: u64,
    connected: bool,
    peer_closed: bool,
    outcome: Option<Result<(), Abort>>,
}

impl Endpoint {
    /// An endpoint at `local`, opened. `send_buffer` is how many bytes may be written ahead of the peer's
    /// acknowledgement; the receive buffer is that of the config.
    ///
    /// # Panics
    /// If a buffer is empty, or local address and peer are of different IP versions.
    pub fn open<P: Probe>(
        cx: &mut Context<'_, P>,
        config: TcpConfig,
        local: SocketAddr,
        peer: Peer,
        send_buffer: usize,
    ) -> Self {
        let (role, translation) = match peer {
            Peer::Connect(remote) => {
                let addresses = Addresses::new(local.ip(), remote.ip()).expect("one IP version on both sides");
                let ports = Ports { source: local.port(), destination: remote.port() };
                (Role::Active, Some(Translation::new(addresses, ports, isn(cx.now, local, remote))))
            }
            Peer::Accept => (Role::Passive, None),
        };
        let mut connection = Connection::new(config, role);
        connection.handle(cx, Input::Open);
        Endpoint {
            local,
            connection,
            translation,
            outgoing: Ring::new(send_buffer),
            incoming: Ring::new(config.receive_buffer as usize),
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

    /// The engine's side: states, windows, counters.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether the handshake is done.
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether the peer has sent all that it will; [`Endpoint::readable`] may still be above zero.
    pub fn peer_has_closed(&self) -> bool {
        self.peer_closed
    }

    /// How the connection ended, once it has.
    pub fn outcome(&self) -> Option<Result<(), Abort>> {
        self.outcome
    }

    /// Bytes that can be read.
    pub fn readable(&self) -> u64 {
        self.readable - self.taken
    }

    /// Bytes that can be written.
    pub fn writable(&self) -> u64 {
        self.outgoing.capacity() as u64 - (self.written - self.acknowledged)
    }

    /// Bytes written that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.written - self.acknowledged
    }

    /// Bytes written that the peer has acknowledged, from the start.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Gives back the memory that the buffers do not need, down to `least` bytes in each. They grow again as
    /// [`Endpoint::spare`] allows; the windows stay.
    ///
    /// # Panics
    /// If `least` is 0.
    pub fn shrink(&mut self, least: usize) {
        let held = self.written - self.acknowledged;
        if self.outgoing.capacity() > least.max(held as usize) {
            self.outgoing.resize(least.max(held as usize), self.acknowledged..self.written);
        }
        // What lies beyond a gap is not worth a search.
        let held = if self.connection.beyond_gaps() == 0 { self.readable() as usize } else { usize::MAX };
        if self.incoming.capacity() > least.max(held) {
            self.incoming.resize(least.max(held), self.taken..self.readable);
        }
    }

    /// Bytes that the buffers take.
    pub fn memory(&self) -> u64 {
        (self.outgoing.capacity() + self.incoming.capacity()) as u64
    }

    /// By how many bytes buffers that were shrunk may grow from now on. A packet that does not fit then is as good as
    /// lost.
    pub fn spare(&mut self, bytes: u64) {
        self.spare = bytes;
    }

    /// Packets dropped because no buffer had room for what the window had let in.
    pub fn no_room(&self) -> u64 {
        self.no_room
    }

    /// Lets the send buffer grow to `capacity`, as far as [`Endpoint::spare`] allows.
    pub fn grow_outgoing(&mut self, capacity: usize) {
        let more = capacity.saturating_sub(self.outgoing.capacity()) as u64;
        if more > 0 && more <= self.spare {
            self.spare -= more;
            self.outgoing.resize(capacity, self.acknowledged..self.written);
        }
    }

    /// Whether the receive buffer has room for the payload at `span`, or can be given it.
    fn has_room(&mut self, span: Range<u64>) -> bool {
        let have = self.incoming.capacity() as u64;
        let most = u64::from(self.connection.config().receive_buffer);
        // Beyond the whole buffer is beyond the window: the engine takes nothing of it.
        let needed = span.end.saturating_sub(self.taken).min(most);
        if needed <= have || span.start >= self.taken + most {
            return true;
        }
        let capacity = needed.max(2 * have).min(most);
        if capacity - have > self.spare {
            return false;
        }
        self.spare -= capacity - have;
        self.incoming.resize(capacity as usize, self.taken..self.taken + have);
        true
    }

    /// Takes as much of `data` as there is room for; how much that is.
    pub fn write<P: Probe>(&mut self, cx: &mut Context<'_, P>, data: &[u8]) -> usize {
        let length = data.len().min(self.writable() as usize);
        if length > 0 {
            self.outgoing.store(self.written, &data[..length]);
            self.written += length as u64;
            self.connection.handle(cx, Input::Write(length as u64));
        }
        length
    }

    /// Fills `data` with what can be read; how much that is.
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

    /// Sends no more: a FIN follows what was written.
    pub fn close<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.connection.handle(cx, Input::Close);
    }

    /// Drops everything and resets.
    pub fn abort<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.connection.handle(cx, Input::Abort);
    }

    /// Takes an IP packet; false if it is for somebody else.
    ///
    /// # Errors
    /// What is wrong with it. The connection has not seen it then.
    pub fn receive<P: Probe>(&mut self, cx: &mut Context<'_, P>, packet: &[u8]) -> Result<bool, WireError> {
        let ip = ip::parse(packet)?;
        if ip.protocol != ip::TCP || ip.addresses.destination() != self.local.ip() {
            return Ok(false);
        }
        let bytes = &packet[ip.payload];
        let ports = Ports::peek(bytes)?;
        if ports.destination != self.local.port() {
            return Ok(false);
        }
        let near = Near { rcv_nxt: self.connection.rcv_nxt(), snd_una: self.connection.snd_una() };
        match &mut self.translation {
            Some(translation) if translation.is_for_us(&ip.addresses, ports) => {
                let (segment, payload) = translation.parse(bytes, near)?;
                let start = segment.seq.saturating_sub(FIRST_BYTE);
                if !payload.is_empty() && !self.has_room(start..start + payload.len() as u64) {
                    self.no_room += 1;
                    return Ok(true);
                }
                self.store(&segment, &bytes[payload]);
                self.connection.handle(cx, Input::Segment(segment));
                // The connection says the same when it is polled next, which may be later.
                self.readable = self.connection.received();
                self.acknowledged = self.connection.acknowledged();
            }
            Some(_) => return Ok(false),
            None => {
                // A listener: the first SYN decides who the peer is.
                let remote = SocketAddr::new(ip.addresses.source(), ports.source);
                let iss = isn(cx.now, self.local, remote);
                let mut translation = Translation::new(ip.addresses.reversed(), ports.reversed(), iss);
                let (segment, _) = translation.parse(bytes, near)?;
                if segment.flags != Flags::SYN {
                    return Ok(false);
                }
                self.translation = Some(translation);
                self.connection.handle(cx, Input::Segment(segment));
            }
        }
        Ok(true)
    }

    /// Stores what the user has not got yet and the window has room for.
    fn store(&mut self, segment: &Segment, payload: &[u8]) {
        let Some(start) = segment.seq.checked_sub(FIRST_BYTE) else { return };
        let skip = self.connection.received().saturating_sub(start);
        let room = (self.taken + self.incoming.capacity() as u64).saturating_sub(start);
        let keep = skip.min(payload.len() as u64) as usize..room.min(payload.len() as u64) as usize;
        if keep.start < keep.end {
            self.incoming.store(start + keep.start as u64, &payload[keep]);
        }
    }

    /// What the connection wants: `Do(length)` is an IP packet in `out`, to be sent; then poll again.
    ///
    /// # Errors
    /// [`EmitError`] where `out` is too small for the packet; the packet is then as good as lost.
    pub fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>, out: &mut [u8]) -> Result<Step<usize>, EmitError> {
        loop {
            match self.connection.poll(cx) {
                Step::Wait(until) => return Ok(Step::Wait(until)),
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
        Ok(header + length)
    }
}

mod numbers;
#[cfg(test)]
mod tests;
