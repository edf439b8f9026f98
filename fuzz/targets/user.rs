//! The user of an endpoint: writes bytes that say where they stand, closes behind the last one, and reads what arrives.

use std::net::SocketAddr;

use bentpipe_engine::probe::Who;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::units::Time;
use bentpipe_engine::{Context, NoProbe};
use bentpipe_io::{Endpoint, Peer};

/// The byte that end `n` writes at a place: neighbours, and the same place of the other direction, differ.
pub(crate) fn pattern(n: usize, place: u64) -> u8 {
    (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ (0x55 * n as u8)
}

/// The address of end `n`, which is 0 or 1.
pub(crate) fn address(n: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, n as u8], 4000 + n as u16))
}

/// An endpoint and its user.
pub(crate) struct User {
    n: usize,
    pub(crate) endpoint: Endpoint,
    /// What the endpoint waits for, as its driver knows it.
    pub(crate) timer: Option<Time>,
    /// Bytes to write in all.
    pub(crate) total: u64,
    pub(crate) written: u64,
    pub(crate) read: u64,
    pub(crate) closed: bool,
}

impl User {
    /// End 0 connects, end 1 accepts.
    pub(crate) fn open(n: usize, now: Time, config: TcpConfig, send_buffer: usize, total: u64) -> User {
        let peer = if n == 0 { Peer::Connect(address(1)) } else { Peer::Accept };
        let mut cx = Context { now, who: Who(n as u32), probe: &mut NoProbe };
        let endpoint = Endpoint::open(&mut cx, config, address(n), peer, send_buffer);
        User { n, endpoint, timer: None, total, written: 0, read: 0, closed: false }
    }

    pub(crate) fn call<R>(&mut self, now: Time, act: impl FnOnce(&mut Endpoint, &mut Context<'_, NoProbe>) -> R) -> R {
        let mut cx = Context { now, who: Who(self.n as u32), probe: &mut NoProbe };
        act(&mut self.endpoint, &mut cx)
    }

    /// Writes what there is room for, `chunk` bytes at a time, and closes behind the last byte. It begins when the connection is
    /// open: a CLOSE before that drops what was written (RFC 9293 §3.10.4).
    pub(crate) fn write(&mut self, now: Time, chunk: u64) {
        if !self.endpoint.is_connected() {
            return;
        }
        while self.written < self.total {
            let end = self.total.min(self.written + chunk);
            let bytes: Vec<u8> = (self.written..end).map(|place| pattern(self.n, place)).collect();
            let taken = self.call(now, |e, cx| e.write(cx, &bytes)).unwrap_or(0);
            self.written += taken as u64;
            if taken == 0 {
                break;
            }
        }
        if self.written == self.total && !self.closed {
            self.closed = true;
            self.call(now, |e, cx| e.close(cx));
        }
    }

    /// Reads what there is, `chunk` bytes at a time. `check` is given each byte and its place.
    pub(crate) fn read(&mut self, now: Time, chunk: usize, mut check: impl FnMut(u64, u8)) {
        if !self.endpoint.is_connected() {
            return;
        }
        let mut data = vec![0; chunk];
        while let length @ 1.. = self.call(now, |e, cx| e.read(cx, &mut data)) {
            for &byte in &data[..length] {
                check(self.read, byte);
                self.read += 1;
            }
        }
    }

    /// Grows with everything that the user has done.
    pub(crate) fn progress(&self) -> (u64, bool, u64) {
        (self.written, self.closed, self.read)
    }

    pub(crate) fn describe(&self) -> String {
        let User { endpoint, timer, total, written, read, .. } = self;
        let (state, outcome) = (endpoint.connection().state(), endpoint.outcome());
        format!("{state:?} {outcome:?}, {written} of {total} written, {read} read, timer {timer:?}")
    }
}
