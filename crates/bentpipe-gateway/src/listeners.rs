//! The listeners of TPROXY, and what happens to a connection for which there is no descriptor.

use std::fs::File;
use std::io;
use std::net::SocketAddr;

use bentpipe_engine::mux::Route;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use nix::sys::resource::{Resource, getrlimit};

use super::run::FIRST_TOKEN;
use super::sockets;

/// Connections accepted before other work gets its turn.
const ACCEPTS: u32 = 64;

/// Descriptors reserved for other uses: sockets, epoll, timers, status requests. The loop itself has some ten, scrapers
/// eight.
const KEPT: usize = 32;

/// Limits and counts of one turn.
#[derive(Debug)]
pub(super) struct Accepts {
    left: u32,
    /// Connections for which there was no descriptor.
    pub(super) refused: u64,
}

impl Accepts {
    /// The start of a turn.
    pub(super) fn new() -> Self {
        Accepts { left: ACCEPTS, refused: 0 }
    }
}

/// The listeners, under the loop's first tokens.
#[derive(Debug)]
pub(super) struct Listeners {
    at: Vec<SocketAddr>,
    /// Bound, whether they listen or not, so that the port stays reserved.
    bound: Vec<TcpListener>,
    is_registered: bool,
    is_open: bool,
    /// Listeners that may have more.
    may_accept: Vec<bool>,
    /// The listener that had its turn last.
    last: usize,
    /// A spare descriptor: when there are no others, it is closed so that a connection can be accepted and refused.
    reserve: Option<File>,
}

impl Listeners {
    /// Creates the listeners, none of them open.
    pub(super) fn new(at: Vec<SocketAddr>) -> Self {
        Listeners {
            at,
            bound: Vec::new(),
            is_registered: false,
            is_open: false,
            may_accept: Vec::new(),
            last: 0,
            reserve: None,
        }
    }

    /// The first token after theirs.
    pub(super) fn next_token(&self) -> usize {
        FIRST_TOKEN + self.at.len()
    }

    /// Reserves their ports, each by `bind`, without listening yet.
    pub(super) fn reserve(&mut self, bind: impl FnMut(SocketAddr) -> io::Result<TcpListener>) -> io::Result<()> {
        self.reserve = Some(File::open("/dev/null")?);
        self.bound = self.at.iter().copied().map(bind).collect::<io::Result<_>>()?;
        Ok(())
    }

    /// Starts to listen, unless it already does.
    pub(super) fn open(&mut self, registry: &Registry) -> io::Result<()> {
        if std::mem::replace(&mut self.is_open, true) {
            return Ok(());
        }
        for (n, listener) in self.bound.iter_mut().enumerate() {
            sockets::listen(listener)?;
            if !self.is_registered {
                registry.register(listener, Token(FIRST_TOKEN + n), Interest::READABLE)?;
            }
        }
        self.is_registered = true;
        self.may_accept = vec![true; self.bound.len()];
        Ok(())
    }

    /// Stops listening.
    pub(super) fn close(&mut self) {
        if std::mem::take(&mut self.is_open) {
            for listener in &self.bound {
                // This cannot fail for an open listener.
                let _ = sockets::stop_listening(listener);
            }
        }
        self.may_accept.clear();
    }

    /// Records that a listener is ready. Returns whether the token is a listener's.
    pub(super) fn note(&mut self, token: Token) -> bool {
        let n = token.0 - FIRST_TOKEN;
        if let Some(may_accept) = self.may_accept.get_mut(n) {
            *may_accept = true;
        }
        n < self.at.len()
    }

    /// Whether there may be more to accept.
    pub(super) fn may_accept(&self) -> bool {
        self.may_accept.contains(&true)
    }

    /// Accepts one waiting connection, of the listeners in turn. Its route is `None` if the client has spoken to the gateway
    /// itself instead of through it.
    pub(super) fn accept(&mut self, accepts: &mut Accepts) -> Option<(TcpStream, Option<Route>)> {
        accepts.left = accepts.left.checked_sub(1)?;
        loop {
            let count = self.may_accept.len();
            let n = (1..=count).map(|step| (self.last + step) % count).find(|&n| self.may_accept[n])?;
            self.last = n;
            match self.bound[n].accept() {
                Ok((socket, source)) => {
                    let route = self.route(&socket, source);
                    return Some((socket, route));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.may_accept[n] = false,
                Err(error) if sockets::is_exhausted(&error) => {
                    accepts.refused += u64::from(self.refuse_one(n));
                    return None;
                }
                // An error of one connection, which ended before it was accepted.
                Err(_) => {}
            }
        }
    }

    fn route(&self, socket: &TcpStream, source: SocketAddr) -> Option<Route> {
        let destination = socket.local_addr().ok().filter(|&at| !self.is_own(at))?;
        let canonical = |at: SocketAddr| SocketAddr::new(at.ip().to_canonical(), at.port());
        Some(Route { source: canonical(source), destination: canonical(destination) })
    }

    /// True if a destination is the listener itself: the client addresses the gateway, not a host behind it.
    fn is_own(&self, at: SocketAddr) -> bool {
        let port = self.at.iter().any(|listen| listen.port() == at.port());
        port && std::net::UdpSocket::bind((at.ip(), 0)).is_ok()
    }

    /// No descriptors are left: accepts one connection with the spare one, and refuses it.
    fn refuse_one(&mut self, n: usize) -> bool {
        drop(self.reserve.take());
        let accepted = self.bound[n].accept();
        let is_one = accepted.is_ok();
        if let Ok((socket, _)) = accepted {
            sockets::reset(socket);
        }
        self.reserve = File::open("/dev/null").ok();
        is_one
    }
}

/// The number of connections for which there are descriptors, with `each` descriptors for one.
pub(super) fn max_conns(each: usize) -> io::Result<usize> {
    let descriptors = usize::try_from(getrlimit(Resource::RLIMIT_NOFILE)?.0).unwrap_or(usize::MAX);
    Ok((descriptors.saturating_sub(KEPT) / each).max(1))
}
