//! The connection of an end, TCP or STP.

use bentpipe_engine::stp;
use bentpipe_engine::tcp::{Connection, Input, TcbCache, TcpStats};
use bentpipe_engine::units::Time;
use bentpipe_engine::{Context, Machine, Probe};

/// A connection. TCP is the hot path; STP is called out of line.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "the large one is the common one, and its end is boxed as a whole")]
pub(crate) enum Transport {
    Tcp(Connection),
    Stp(Box<stp::Connection>),
}

impl Transport {
    /// The TCP connection, if it is one.
    #[inline(always)]
    pub(crate) fn tcp(&mut self) -> Option<&mut Connection> {
        match self {
            Transport::Tcp(connection) => Some(connection),
            Transport::Stp(_) => None,
        }
    }

    /// The STP connection, if it is one.
    pub(crate) fn stp(&mut self) -> Option<&mut stp::Connection> {
        match self {
            Transport::Tcp(_) => None,
            Transport::Stp(connection) => Some(connection),
        }
    }

    #[inline(always)]
    pub(crate) fn handle<P: Probe>(&mut self, cx: &mut Context<'_, P>, input: Input) {
        match self {
            Transport::Tcp(connection) => {
                connection.handle(cx, input);
            }
            Transport::Stp(connection) => handle_stp(connection, cx, input),
        }
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        match self {
            Transport::Tcp(connection) => connection.acknowledged(),
            Transport::Stp(connection) => connection.acknowledged(),
        }
    }

    pub(crate) fn written(&self) -> u64 {
        match self {
            Transport::Tcp(connection) => connection.written(),
            Transport::Stp(connection) => connection.written(),
        }
    }

    /// Bytes of a full segment.
    pub(crate) fn mss(&self) -> u64 {
        u64::from(match self {
            Transport::Tcp(connection) => connection.mss(),
            Transport::Stp(connection) => connection.mss(),
        })
    }

    /// Bytes that the program may write before segments leave.
    pub(crate) fn room(&self) -> u64 {
        match self {
            Transport::Tcp(connection) => connection.room_in_piece(),
            Transport::Stp(connection) => connection.room_in_piece(),
        }
    }

    /// The program has more to write, and waits for room.
    pub(crate) fn wait_for_room(&mut self) {
        match self {
            Transport::Tcp(connection) => connection.wait_for_room(),
            Transport::Stp(connection) => connection.wait_for_room(),
        }
    }

    pub(crate) fn received(&self) -> u64 {
        match self {
            Transport::Tcp(connection) => connection.received(),
            Transport::Stp(connection) => connection.received(),
        }
    }

    pub(crate) fn stats(&self) -> TcpStats {
        match self {
            Transport::Tcp(connection) => connection.stats(),
            Transport::Stp(connection) => connection.stats(),
        }
    }

    /// STP has no state that another connection could use.
    pub(crate) fn inherit(&mut self, cache: &mut TcbCache, now: Time) {
        if let Transport::Tcp(connection) = self {
            connection.inherit(cache, now);
        }
    }

    pub(crate) fn bequeath(&self, cache: &mut TcbCache, now: Time) {
        if let Transport::Tcp(connection) = self {
            connection.bequeath(cache, now);
        }
    }

    /// The local stack says that the path has changed.
    pub(crate) fn on_path_changed(&mut self) {
        if let Transport::Tcp(connection) = self {
            connection.on_path_changed();
        }
    }
}

#[inline(never)]
fn handle_stp<P: Probe>(connection: &mut stp::Connection, cx: &mut Context<'_, P>, input: Input) {
    connection.handle(cx, input);
}
