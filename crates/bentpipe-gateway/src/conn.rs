//! One connection of the host, and the data buffered in both directions.

use std::io::{self, Read, Write};
use std::net::Shutdown;

use bentpipe_engine::gateway::{CONNECTION, MAX_UNSENT, MIN_UNSENT};
use mio::event::Event as Ready;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::buffer::Buffer;
use super::sockets;

/// The result of a turn.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Bytes received from the user.
    pub(super) read: u64,
    /// Bytes that the user's kernel has accepted.
    pub(super) taken: u64,
    /// True if the user sends no more.
    pub(super) ended: bool,
    /// Set if the connection is over in both directions.
    pub(super) failed: Option<io::Error>,
}

/// Bytes for the user that are written at once. A turn may bring several times as much, which would otherwise take new
/// memory each time.
const AT_ONCE: usize = 32 << 10;

#[derive(Debug)]
pub(super) struct Conn {
    socket: TcpStream,
    connecting: bool,
    readable: bool,
    writable: bool,
    /// From the user to the link, and from the link to the user.
    to_link: Buffer,
    to_user: Buffer,
    /// Whether the user has finished sending; whether the far user has; and whether the near user was told so.
    user_ended: bool,
    peer_ended: bool,
    told_end: bool,
    /// True if the kernel may have an error to report.
    suspect: bool,
    /// True if there was more to read than room for it.
    held_back: bool,
    /// The memory that was reported last.
    memory: u64,
}

impl Conn {
    pub(super) fn accepted(socket: TcpStream) -> Self {
        sockets::tune(&socket);
        Conn {
            socket,
            connecting: false,
            readable: true,
            writable: true,
            to_link: Buffer::default(),
            to_user: Buffer::default(),
            user_ended: false,
            peer_ended: false,
            told_end: false,
            suspect: false,
            held_back: false,
            memory: 0,
        }
    }

    /// The change of the connection's memory since the last call. The amount that it may always read counts as already
    /// read, so that memory is reserved for it.
    pub(super) fn memory_change(&mut self) -> i64 {
        let memory = (CONNECTION + self.to_link.memory().max(MIN_UNSENT) + self.to_user.memory()) as u64;
        memory as i64 - std::mem::replace(&mut self.memory, memory) as i64
    }

    /// The memory that was reported last.
    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    pub(super) fn connecting(socket: TcpStream) -> Self {
        Conn { connecting: true, readable: false, writable: false, ..Conn::accepted(socket) }
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.socket, token, Interest::READABLE | Interest::WRITABLE)
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.connecting
    }

    /// Bytes that the link has not accepted yet.
    pub(super) fn unsent(&self) -> u64 {
        self.to_link.len() as u64
    }

    /// True if the user had more data than there was room for, and there is room now.
    pub(super) fn wants_more(&self) -> bool {
        self.held_back && self.to_link.len() < MAX_UNSENT / 2
    }

    /// Bytes that the user's kernel has not accepted yet.
    pub(super) fn waiting(&self) -> usize {
        self.to_user.len()
    }

    /// True if the user's kernel has accepted all data and the end of the stream.
    pub(super) fn is_flushed(&self) -> bool {
        self.told_end
    }

    pub(super) fn note(&mut self, ready: &Ready) {
        self.readable |= ready.is_readable() || ready.is_read_closed() || ready.is_error();
        self.writable |= ready.is_writable() || ready.is_write_closed() || ready.is_error();
        self.suspect |= ready.is_error();
    }

    /// Takes data for the user.
    pub(super) fn bring(&mut self, bytes: &[u8]) {
        self.to_user.push(bytes);
    }

    /// True if data for the user should be written before more arrives.
    pub(super) fn is_due(&self) -> bool {
        self.writable && self.to_user.len() >= AT_ONCE
    }

    /// Records that no more data follows for the user.
    pub(super) fn end(&mut self) {
        self.peer_ended = true;
    }

    /// The next bytes for the link.
    pub(super) fn next(&self, len: usize) -> &[u8] {
        &self.to_link.front()[..len]
    }

    /// Records that the link has accepted `len` bytes.
    pub(super) fn sent(&mut self, len: usize) {
        self.to_link.take(len);
    }

    /// Moves data in both directions. Up to `limit` bytes may wait for the link.
    pub(super) fn serve(&mut self, scratch: &mut [u8], limit: usize) -> Outcome {
        let mut outcome = Outcome::default();
        if let Err(error) = self.try_serve(scratch, limit, &mut outcome) {
            outcome.failed = Some(error);
        }
        outcome
    }

    fn try_serve(&mut self, scratch: &mut [u8], limit: usize, outcome: &mut Outcome) -> io::Result<()> {
        if self.connecting {
            if !self.writable {
                return Ok(());
            }
            if let Some(error) = self.socket.take_error()? {
                return Err(error);
            }
            match self.socket.peer_addr() {
                Ok(_) => (self.connecting, self.readable) = (false, true),
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    self.writable = false;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.write(outcome)?;
        self.read(scratch, limit, outcome)?;
        // After the end of the user's data, nothing is read that would report it.
        if std::mem::take(&mut self.suspect) && self.user_ended {
            self.socket.take_error()?.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    fn write(&mut self, outcome: &mut Outcome) -> io::Result<()> {
        while self.writable && !self.to_user.is_empty() {
            match self.socket.write(self.to_user.front()) {
                Ok(count) => {
                    self.to_user.take(count);
                    outcome.taken += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.peer_ended && self.to_user.is_empty() && !self.told_end {
            self.told_end = true;
            self.socket.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    fn read(&mut self, scratch: &mut [u8], limit: usize, outcome: &mut Outcome) -> io::Result<()> {
        self.held_back = false;
        while self.readable && !self.user_ended {
            let room = limit.saturating_sub(self.to_link.len()).min(scratch.len());
            if room == 0 {
                self.held_back = true;
                return Ok(());
            }
            match self.socket.read(&mut scratch[..room]) {
                Ok(0) => (self.user_ended, outcome.ended) = (true, true),
                Ok(count) => {
                    self.to_link.push(&scratch[..count]);
                    outcome.read += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Closes a connection whose directions have both ended.
    pub(super) fn close(self) {
        sockets::close(self.socket);
    }

    /// Resets the connection.
    pub(super) fn reset(self) {
        sockets::reset(self.socket);
    }
}

#[cfg(test)]
mod tests;
