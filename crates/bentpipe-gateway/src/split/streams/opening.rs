//! Connections that the peer opens.

use bentpipe_engine::mux::{Input, Reason, Route, StreamId};
use bentpipe_engine::units::{Duration, Time};
use nix::errno::Errno;

use super::{Cx, Streams};
use crate::bucket::Bucket;
use crate::conn::Conn;
use crate::sockets::{self, ClientAddress};

/// Number of connections that one of several peers may open at once, and the time for each further one: 500 per second.
/// Each takes some 0.1 ms of the thread that serves all peers.
const BURST: u32 = 1000;
const REFILL: Duration = Duration::from_millis(2);

pub(super) fn bucket() -> Bucket {
    Bucket::new(BURST, REFILL, Time::ZERO)
}

impl Streams {
    /// Returns false if the peer has opened so many connections that others would have to wait for the thread. An only
    /// peer is not limited.
    fn may_open(&mut self, cx: &Cx<'_>) -> bool {
        !cx.common.memory.is_shared() || self.openings.take(cx.now)
    }

    /// Connects a stream that the peer has opened.
    pub(super) fn connect(&mut self, cx: &mut Cx<'_>, stream: StreamId, route: Route) {
        if !self.may_open(cx) {
            self.stats.throttled += 1;
            self.give(cx.now, Input::Reset { stream, reason: Reason::NoResources });
            return;
        }
        let address = cx.common.config.client_address;
        let from = match address {
            ClientAddress::Keep => {
                let from = route.source.ip();
                self.from.permit(from).and_then(|()| cx.common.access.client(from))
            }
            ClientAddress::Replace => Ok(()),
        };
        // Addresses behind a peer are reached only through its tunnel; the machine's routes lead elsewhere.
        let is_behind_peer = cx.common.routes.by_prefix(route.destination.ip()).is_some();
        if is_behind_peer || from.and_then(|()| cx.common.access.far(route.destination)).is_err() {
            self.forbidden += 1;
            self.give(cx.now, Input::Reset { stream, reason: Reason::Forbidden });
            return;
        }
        let (made, other_port) = match self.has_room(cx.common, route) {
            true => cx.common.dialer.connect(cx.now, route, address, None),
            false => (Err(Errno::EMFILE.into()), false),
        };
        self.stats.other_port += u64::from(other_port);
        let token = cx.common.tokens.take(self.slot, stream);
        let registered = made.and_then(|socket| {
            let mut conn = Conn::connecting(socket);
            conn.register(cx.registry, token).map(|()| conn)
        });
        match registered {
            Ok(conn) => {
                self.insert(stream, token, conn, route);
                if let Some(evicted) = self.half_open.begin(cx.now, stream, route.source.ip()) {
                    self.give_up(cx, evicted);
                }
            }
            Err(error) => {
                cx.common.tokens.give_back(token);
                self.stats.failed += 1;
                self.give(cx.now, Input::Reset { stream, reason: sockets::reason(&error) });
            }
        }
        self.tell_use(cx.common);
    }

    /// Gives up a connection that takes too long to open, or is evicted for another one.
    fn give_up(&mut self, cx: &mut Cx<'_>, stream: StreamId) {
        self.stats.failed += 1;
        self.forget(cx.common, stream, true);
        self.give(cx.now, Input::Reset { stream, reason: Reason::TimedOut });
    }

    /// Gives up connections that take too long to open.
    pub(in crate::split) fn expire(&mut self, cx: &mut Cx<'_>) {
        while let Some(expired) = self.half_open.expired(cx.now) {
            self.give_up(cx, expired);
        }
    }
}
