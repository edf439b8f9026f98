//! The TPROXY listeners, and the handling of connections for which no descriptor is left.

use std::fs::File;
use std::io;
use std::net::SocketAddr;

use bentpipe_engine::mux::Route;
use bentpipe_engine::units::{Duration, Time};
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use nix::sys::resource::{Resource, getrlimit};

use super::run::FIRST_TOKEN;
use super::sockets;

/// Maximum number of connections accepted before other work gets its turn.
const ACCEPTS: u32 = 64;

/// Descriptors reserved for other uses. An idle gateway has some twenty; scrapers take nine, running `nft` takes eight, a
/// status request one, and so does saving the peers' addresses.
const KEPT: usize = 40;

/// How long listeners rest if even the spare descriptor does not help.
const REST: Duration = Duration::from_secs(1);

/// Limits and counts of a turn.
#[derive(Debug)]
pub(super) struct Accepts {
    left: u32,
    /// Connections refused for lack of a descriptor.
    pub(super) refused: u64,
}

impl Accepts {
    /// The state at the start of a turn.
    pub(super) fn new() -> Self {
        Accepts { left: ACCEPTS, refused: 0 }
    }
}

/// The listeners. They use the first tokens of the loop.
#[derive(Debug)]
pub(super) struct Listeners {
    at: Vec<SocketAddr>,
    /// The sockets, bound whether they listen or not, so that the port stays reserved.
    bound: Vec<TcpListener>,
    is_registered: bool,
    is_open: bool,
    /// Listeners that may have more connections.
    may_accept: Vec<bool>,
    /// When resting listeners may accept again.
    rest_until: Option<Time>,
    /// The listener that had its turn last.
    last: usize,
    /// A spare descriptor. When no others are left, it is closed so that a connection can be accepted and refused.
    reserve: Option<File>,
}

impl Listeners {
    /// Creates the listeners, all of them closed.
    pub(super) fn new(at: Vec<SocketAddr>) -> Self {
        Listeners {
            at,
            bound: Vec::new(),
            is_registered: false,
            is_open: false,
            may_accept: Vec::new(),
            rest_until: None,
            last: 0,
            reserve: None,
        }
    }

    /// The first token that the listeners do not use.
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

    /// Listens once more, which changes nothing but the length of the queues.
    pub(super) fn listen_again(&self) {
        for listener in self.bound.iter().filter(|_| self.is_open) {
            // This cannot fail for an open listener.
            let _ = sockets::listen(listener);
        }
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

    /// Records that a listener is ready. Returns true if the token is a listener's.
    pub(super) fn note(&mut self, token: Token) -> bool {
        let n = token.0 - FIRST_TOKEN;
        if let Some(may_accept) = self.may_accept.get_mut(n) {
            *may_accept = true;
        }
        n < self.at.len()
    }

    /// The number of turns in which all connections that wait now can be accepted, also if others follow them.
    pub(super) fn turns_for_waiting(&mut self) -> u32 {
        self.may_accept.fill(true);
        self.may_accept.len() as u32 * (sockets::BACKLOG as u32).div_ceil(ACCEPTS)
    }

    /// True if there may be more connections to accept.
    pub(super) fn may_accept(&self) -> bool {
        self.may_accept.contains(&true)
    }

    /// Accepts one waiting connection; the listeners take turns. The route is `None` if the client has addressed the
    /// gateway itself and not a host behind it.
    pub(super) fn accept(&mut self, now: Time, accepts: &mut Accepts) -> Option<(TcpStream, Option<Route>)> {
        if self.rest_until.take_if(|until| *until <= now).is_some() {
            self.may_accept.fill(true);
        }
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
                    accepts.refused += u64::from(self.refuse_one(now, n));
                    return None;
                }
                // An error of a single connection, which ended before it was accepted.
                Err(_) => {}
            }
        }
    }

    fn route(&self, socket: &TcpStream, source: SocketAddr) -> Option<Route> {
        let destination = socket.local_addr().ok().filter(|&at| !self.is_own(at))?;
        route_of(source, destination)
    }

    /// True if a destination is the listener itself, so that the client addresses the gateway and not a host behind it.
    fn is_own(&self, at: SocketAddr) -> bool {
        let port = self.at.iter().any(|listen| listen.port() == at.port());
        port && std::net::UdpSocket::bind((at.ip(), 0)).is_ok()
    }

    /// Called when no descriptors are left: accepts one connection with the spare descriptor, and refuses it.
    fn refuse_one(&mut self, now: Time, n: usize) -> bool {
        drop(self.reserve.take());
        let refused = self.bound[n].accept().map(|(socket, _)| sockets::reset(socket));
        self.reserve = File::open("/dev/null").ok();
        self.note_refused(now, n, refused)
    }

    fn note_refused(&mut self, now: Time, n: usize, refused: io::Result<()>) -> bool {
        match refused {
            Ok(()) => return true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.may_accept[n] = false,
            // The machine has run out of descriptors or memory, or another thread has taken the spare one. The waiting
            // connections will not be announced again.
            Err(error) if sockets::is_exhausted(&error) => {
                self.may_accept[n] = false;
                self.rest_until = Some(now + REST);
            }
            Err(_) => {}
        }
        false
    }
}

/// The route of a connection; `None` if its ends belong to two address families, which no message can express.
fn route_of(source: SocketAddr, destination: SocketAddr) -> Option<Route> {
    let canonical = |at: SocketAddr| SocketAddr::new(at.ip().to_canonical(), at.port());
    let route = Route { source: canonical(source), destination: canonical(destination) };
    (route.source.is_ipv4() == route.destination.is_ipv4()).then_some(route)
}

/// The number of connections for which there are descriptors, at `each` descriptors per connection.
///
/// # Errors
/// Fails if there are none for any connection: the gateway would take connections only to reset them.
pub(super) fn max_conns(each: usize) -> io::Result<usize> {
    let limit = usize::try_from(getrlimit(Resource::RLIMIT_NOFILE)?.0).unwrap_or(usize::MAX);
    match limit.saturating_sub(KEPT) / each {
        0 => Err(io::Error::other(format!(
            "the limit of open files is {limit}, and the gateway needs {KEPT} for itself and {each} for each connection: raise it (`ulimit \
             -Hn`, or LimitNOFILE of the service)"
        ))),
        max => Ok(max),
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    /// Without resting, the loop would not sleep until the shortage ends.
    #[test]
    fn without_descriptors_listeners_rest() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        for errno in [Errno::ENFILE, Errno::ENOMEM, Errno::EMFILE] {
            let mut listeners = Listeners::new(vec![([127, 0, 0, 1], 0).into()]);
            listeners.reserve(TcpListener::bind).expect("a listener");
            listeners.may_accept = vec![true];
            let failed = |errno| Err(io::Error::from_raw_os_error(errno as i32));
            assert!(listeners.note_refused(at(0), 0, Ok(())) && listeners.may_accept());
            assert!(!listeners.note_refused(at(0), 0, failed(Errno::ECONNABORTED)) && listeners.may_accept());
            assert!(!listeners.note_refused(at(500), 0, failed(errno)) && !listeners.may_accept());
            assert!(listeners.accept(at(1499), &mut Accepts::new()).is_none() && listeners.rest_until.is_some());
            // Nothing waits, so the listener rests until it is ready again.
            assert!(listeners.accept(at(1500), &mut Accepts::new()).is_none() && listeners.rest_until.is_none());
            listeners.may_accept = vec![true];
            assert!(!listeners.note_refused(at(2000), 0, failed(Errno::EAGAIN)) && !listeners.may_accept());
            assert_eq!(listeners.rest_until, None);
        }
    }

    /// The kernel does not accept such a connection today, and no message could express it.
    #[test]
    fn a_route_has_one_family() {
        let route = |source: &str, destination: &str| {
            let [source, destination] = [source, destination].map(|at| at.parse().expect("an address"));
            route_of(source, destination).is_some()
        };
        assert!(route("192.0.2.1:1", "192.0.2.2:2") && route("[2001:db8::1]:1", "[2001:db8::2]:2"));
        assert!(route("[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:2"));
        assert!(!route("[2001:db8::1]:1", "[::ffff:192.0.2.2]:2"));
    }

    #[test]
    fn a_connection_that_waited_is_accepted_after_the_rest() {
        let mut listeners = Listeners::new(vec![([127, 0, 0, 1], 0).into()]);
        listeners.reserve(TcpListener::bind).expect("a listener");
        listeners.may_accept = vec![true];
        let _client = std::net::TcpStream::connect(listeners.bound[0].local_addr().expect("an address"));
        assert!(!listeners.note_refused(Time::ZERO, 0, Err(io::Error::from_raw_os_error(Errno::ENFILE as i32))));
        assert!(listeners.accept(Time::ZERO, &mut Accepts::new()).is_none());
        assert!(listeners.accept(Time::ZERO + REST, &mut Accepts::new()).is_some());
    }
}
