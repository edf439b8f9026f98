//! The connections of a client and a server, and the data between them.

use std::io::{self, Read, Write};
use std::net::Shutdown;

use bentpipe_engine::units::Duration;
use mio::event::Event as Ready;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::pipe::{LENGTH, Pipe};
use super::timeouts;
use crate::buffer::Buffer;
use crate::sockets;

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// Minimum number of bytes that a direction reads at once.
const MIN: usize = 4 << 10;
/// Number of bytes read at once before the receiver's rate is known.
const FIRST: usize = 64 << 10;
/// Number of reads of a direction before others have their turn.
const ROUNDS: usize = 16;

/// The result of a turn.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Bytes moved from the client to the server's kernel, and from the server to the client's.
    pub(super) moved: [u64; 2],
    /// True if the server has accepted.
    pub(super) has_connected: bool,
    /// True if there is more to do now.
    pub(super) more: bool,
    /// True if both directions have ended.
    pub(super) ended: bool,
    /// Set if the connection is over in both directions.
    pub(super) failed: Option<io::Error>,
}

#[derive(Debug)]
pub(super) struct Pair {
    ends: [End; 2],
    /// From the client, and from the server.
    ways: [Way; 2],
    connecting: bool,
}

#[derive(Debug)]
struct End {
    socket: TcpStream,
    readable: bool,
    writable: bool,
    /// True if the end of its data has arrived but not all data has been read.
    closing: bool,
    /// True if the kernel may have an error to report.
    suspect: bool,
}

#[derive(Debug)]
struct Way {
    /// Data that the receiver has not accepted. Nothing more is read until it has.
    held: Buffer,
    /// Number of bytes to read at once: halved if some are left over, doubled if none are.
    max: usize,
    /// True if the sender has finished and the receiver was notified.
    ended: bool,
    told: bool,
}

impl Pair {
    /// A client's connection, and the connection to its server, which is still being opened.
    pub(super) fn new(client: TcpStream, server: TcpStream) -> Pair {
        let end =
            |socket, is_open| End { socket, readable: is_open, writable: is_open, closing: false, suspect: false };
        let way = || Way { held: Buffer::default(), max: FIRST, ended: false, told: false };
        Pair { ends: [end(client, true), end(server, false)], ways: [way(), way()], connecting: true }
    }

    pub(super) fn register(&mut self, registry: &Registry, tokens: [Token; 2]) -> io::Result<()> {
        for (end, token) in self.ends.iter_mut().zip(tokens) {
            registry.register(&mut end.socket, token, Interest::READABLE | Interest::WRITABLE)?;
        }
        Ok(())
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.connecting
    }

    /// Bytes that the receivers have not accepted.
    pub(super) fn held(&self) -> u64 {
        self.ways.iter().map(|way| way.held.len() as u64).sum()
    }

    pub(super) fn note(&mut self, end: usize, ready: &Ready) {
        let end = &mut self.ends[end];
        end.readable |= ready.is_readable() || ready.is_read_closed();
        end.writable |= ready.is_writable() || ready.is_write_closed();
        end.closing |= ready.is_read_closed();
        end.suspect |= ready.is_error();
    }

    /// Moves data in both directions, at most `limit` bytes at once.
    pub(super) fn serve(&mut self, pipe: &mut Pipe, limit: usize) -> Outcome {
        let mut outcome = Outcome::default();
        if let Err(error) = self.try_serve(pipe, limit, &mut outcome) {
            outcome.failed = Some(error);
        }
        outcome
    }

    fn try_serve(&mut self, pipe: &mut Pipe, limit: usize, outcome: &mut Outcome) -> io::Result<()> {
        for end in &mut self.ends {
            // A direction in which nothing moves would not notice the error.
            if std::mem::take(&mut end.suspect) {
                end.socket.take_error()?.map_or(Ok(()), Err)?;
            }
        }
        if self.connecting {
            if !self.is_connected()? {
                return Ok(());
            }
            (self.connecting, outcome.has_connected) = (false, true);
        }
        for way in [CLIENT, SERVER] {
            outcome.more |= self.carry(way, pipe, limit, &mut outcome.moved[way])?;
        }
        outcome.ended = self.ways.iter().all(|way| way.told);
        Ok(())
    }

    fn is_connected(&mut self) -> io::Result<bool> {
        let server = &mut self.ends[SERVER];
        if !server.writable {
            return Ok(false);
        }
        server.socket.take_error()?.map_or(Ok(()), Err)?;
        match server.socket.peer_addr() {
            Ok(_) => server.readable = true,
            Err(error) if error.kind() == io::ErrorKind::NotConnected => server.writable = false,
            Err(error) => return Err(error),
        }
        Ok(server.writable)
    }

    /// Moves data from one end to the other. Returns true if there may be more.
    fn carry(&mut self, from: usize, pipe: &mut Pipe, limit: usize, moved: &mut u64) -> io::Result<bool> {
        let way = &mut self.ways[from];
        let [client, server] = &mut self.ends;
        let is_of_server = from == SERVER;
        let (from, to) = if is_of_server { (server, client) } else { (client, server) };
        for _ in 0..ROUNDS {
            while to.writable && !way.held.is_empty() {
                if let Some(count) = unless_busy(&mut to.writable, to.socket.write(way.held.front()))? {
                    way.held.take(count);
                    *moved += count as u64;
                }
            }
            if way.ended && way.held.is_empty() && !way.told {
                way.told = true;
                to.socket.shutdown(Shutdown::Write)?;
            }
            if way.ended || !to.writable || !from.readable {
                return Ok(false);
            }
            match unless_busy(&mut from.readable, pipe.fill(&from.socket, way.max.min(limit)))? {
                None => {}
                // The end of the data, or urgent data, at which splice(2) stops in the same way.
                Some(0) => {
                    let mut bytes = [0; MIN];
                    match unless_busy(&mut from.readable, from.socket.read(&mut bytes))? {
                        None => {}
                        Some(0) => {
                            way.ended = true;
                            if is_of_server {
                                timeouts::probe_late(&from.socket);
                            }
                        }
                        Some(count) => way.held = bytes[..count].to_vec().into(),
                    }
                }
                Some(count) => {
                    // Sends the FIN with the last bytes instead of in a separate segment.
                    let left = to.give(pipe, count, from.closing)?;
                    *moved += (count - left) as u64;
                    if left > 0 {
                        way.held = pipe.empty(left)?.into();
                    }
                    way.max = if left > 0 { (way.max / 2).max(MIN) } else { (way.max * 2).min(LENGTH) };
                }
            }
        }
        Ok(true)
    }

    /// True if the client has left data or probes unacknowledged for this time.
    pub(super) fn is_client_silent(&self, patience: Duration) -> bool {
        timeouts::is_silent(&self.ends[CLIENT].socket, patience)
    }

    /// Closes both connections. All directions have ended.
    pub(super) fn close(self) {
        timeouts::end(&self.ends[CLIENT].socket);
        self.ends.into_iter().for_each(|end| sockets::close(end.socket));
    }

    /// Resets both connections.
    pub(super) fn reset(self) {
        self.ends.into_iter().for_each(|end| sockets::reset(end.socket));
    }
}

impl End {
    /// Takes `count` bytes out of the pipe. Returns how many are left in it. `more`: other bytes or the end follow at
    /// once.
    fn give(&mut self, pipe: &mut Pipe, count: usize, more: bool) -> io::Result<usize> {
        let mut left = count;
        while left > 0 && self.writable {
            match unless_busy(&mut self.writable, pipe.give(&self.socket, left, more)) {
                Ok(given) => left -= given.unwrap_or(0),
                Err(error) => {
                    // The next pair must find the pipe empty.
                    pipe.empty(left)?;
                    return Err(error);
                }
            }
        }
        Ok(left)
    }
}

/// The result of a call; `None` if it was interrupted, or if the socket is not ready, which is recorded in `is_ready`.
fn unless_busy(is_ready: &mut bool, result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            *is_ready = false;
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
