//! The work of the loop for the pairs.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;

use bentpipe_engine::gateway::{MIN_UNSENT, PATIENCE, max_timeout};
use bentpipe_engine::mux::{Host, Route};
use bentpipe_engine::units::{Duration, Time};
use mio::event::Event as Ready;
use mio::net::{TcpListener, TcpStream};
use mio::{Registry, Token};

use super::config::{RelayConfig, RelayStats};
use super::pair::{CLIENT, Outcome, Pair, SERVER};
use super::pipe::{LENGTH, Pipe};
use super::timeouts;
use crate::access::Access;
use crate::dialer::Dialer;
use crate::half_open::HalfOpen;
use crate::listeners::{self, Accepts, Listeners};
use crate::policy::Policy;
use crate::readings::Readings;
use crate::run::{Loop, Work};
use crate::shares::Shares;
use crate::sockets::{self, ClientAddress};

/// The interval at which silent clients are looked for.
const LOOK: Duration = Duration::from_secs(60);

/// The shape's work for the loop.
#[derive(Debug)]
pub struct Relaying {
    config: RelayConfig,
    access: Access,
    dialer: Dialer,
    listeners: Listeners,
    pairs: BTreeMap<u64, (Host, Pair)>,
    /// The clients' shares of connections and memory.
    shares: Shares,
    next: u64,
    half_open: HalfOpen<u64>,
    /// Pairs that still had data to move when their turn ended. Each has one turn, however many events it had.
    again: BTreeSet<u64>,
    /// When silent clients are looked for next.
    look: Time,
    /// How long a client may leave data unacknowledged.
    patience: Duration,
    pipe: Pipe,
    max_pairs: usize,
    stats: RelayStats,
}

/// The box at the uplink.
pub type RelayGateway = Loop<Relaying>;

impl RelayGateway {
    /// Starts listening.
    ///
    /// # Errors
    /// Fails if a listener cannot be opened because its port is taken; with [`io::ErrorKind::NotFound`] if the kernel
    /// does not have that congestion control.
    pub fn relay(config: RelayConfig) -> io::Result<RelayGateway> {
        // A pair takes two descriptors.
        let max_pairs = listeners::max_conns(2)?.min(config.max_streams as usize);
        Loop::begin(|_, registry| {
            let mut listeners = Listeners::new(config.listen.clone());
            listeners.reserve(|at| listen(at, &config))?;
            listeners.open(registry)?;
            Ok(Relaying {
                listeners,
                access: Access::new(config.policy.clone()),
                dialer: Dialer::default(),
                half_open: HalfOpen::new(max_pairs / 2),
                config,
                pairs: BTreeMap::new(),
                shares: Shares::default(),
                next: 0,
                again: BTreeSet::new(),
                look: Time::ZERO,
                patience: PATIENCE,
                pipe: Pipe::new()?,
                max_pairs,
                stats: RelayStats::default(),
            })
        })
    }

    /// The counters of the relay.
    pub fn counted(&self) -> RelayStats {
        self.work().counted()
    }

    /// Sets the servers that may be reached from now on.
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.work_mut().access.set_policy(policy);
    }

    /// Sets the source address of connections to servers from now on.
    pub(crate) fn set_client_address(&mut self, client_address: ClientAddress) {
        self.work_mut().config.client_address = client_address;
    }
}

/// Opens a listener. Accepted connections inherit its settings, from the SYN-ACK on.
fn listen(at: SocketAddr, config: &RelayConfig) -> io::Result<TcpListener> {
    let listener = sockets::bind(at)?;
    sockets::tune(&listener);
    sockets::send_by(&listener, &config.congestion, config.pacing(), config.mark)?;
    timeouts::limit(&listener, max_timeout(config.round_trip))?;
    Ok(listener)
}

impl Relaying {
    fn counted(&self) -> RelayStats {
        RelayStats { open: self.pairs.len() as u64, ..self.stats }
    }

    fn tokens(&self, id: u64) -> [Token; 2] {
        [CLIENT, SERVER].map(|end| Token(self.listeners.next_token() + 2 * id as usize + end))
    }

    fn take_in(&mut self, now: Time, registry: &Registry, client: TcpStream, route: Option<Route>) {
        let free = self.max_pairs.saturating_sub(self.pairs.len()) as u64;
        let has_room = |route: &Route| self.shares.has_place(Host::of(route.source.ip()), free);
        let Some(route) = route.filter(has_room) else {
            sockets::reset(client);
            self.stats.refused += 1;
            return;
        };
        self.stats.total += 1;
        if self.access.far(route.destination).is_err() {
            sockets::reset(client);
            return;
        }
        let (made, other_port) = self.dialer.connect(now, route, self.config.client_address, Some(self.config.mark));
        self.stats.other_port += u64::from(other_port);
        let server = match made {
            Ok(server) => server,
            Err(error) => {
                sockets::reset(client);
                self.count_failure(&error);
                return;
            }
        };
        sockets::tune(&server);
        let mut pair = Pair::new(client, server);
        if let Err(error) = pair.register(registry, self.tokens(self.next)) {
            pair.reset();
            self.count_failure(&error);
            return;
        }
        let host = Host::of(route.source.ip());
        self.shares.take(host);
        self.pairs.insert(self.next, (host, pair));
        let evicted = self.half_open.begin(now, self.next, route.source.ip());
        self.next += 1;
        evicted.into_iter().for_each(|id| self.give_up(id));
    }

    /// Gives up a connection because its server takes too long, or because it is evicted for another one.
    fn give_up(&mut self, id: u64) {
        if let Some(pair) = self.remove(id) {
            self.stats.failed += 1;
            pair.reset();
        }
    }

    fn remove(&mut self, id: u64) -> Option<Pair> {
        let (host, pair) = self.pairs.remove(&id)?;
        self.half_open.end(id);
        self.shares.give_back(host);
        self.stats.held -= pair.held();
        Some(pair)
    }

    /// Resets the connections of clients that have been silent for too long. (The time after which the kernel gives them
    /// up is longer.) Returns when to look again; `None` if there is nobody.
    fn look_for_silence(&mut self, now: Time) -> Option<Time> {
        if now >= self.look {
            self.look = now + LOOK;
            let is_silent = |(_, pair): &(Host, Pair)| pair.is_client_silent(self.patience);
            let silent: Vec<_> = self.pairs.iter().filter(|(_, pair)| is_silent(pair)).map(|(id, _)| *id).collect();
            self.stats.reset += silent.len() as u64;
            silent.into_iter().filter_map(|id| self.remove(id)).for_each(Pair::reset);
        }
        (!self.pairs.is_empty()).then_some(self.look)
    }

    fn count_failure(&mut self, error: &io::Error) {
        *(if sockets::is_exhausted(error) { &mut self.stats.refused } else { &mut self.stats.failed }) += 1;
    }

    fn serve(&mut self, id: u64) {
        let Some((_, pair)) = self.pairs.get_mut(&id) else { return };
        let limit = if self.stats.held > self.config.memory / 2 { MIN_UNSENT } else { LENGTH };
        let (before, was_connecting) = (pair.held(), pair.is_connecting());
        let Outcome { moved: [to_server, to_client], has_connected, more, ended, failed } =
            pair.serve(&mut self.pipe, limit);
        self.stats.held = self.stats.held + pair.held() - before;
        self.stats.to_servers += to_server;
        self.stats.to_clients += to_client;
        if has_connected {
            self.stats.connected += 1;
            self.half_open.end(id);
        }
        if more {
            self.again.insert(id);
        }
        if !ended && failed.is_none() {
            return;
        }
        let pair = self.remove(id).expect("it was there");
        match failed {
            None => return pair.close(),
            Some(error) if was_connecting && !has_connected => self.count_failure(&error),
            Some(_) => self.stats.reset += 1,
        }
        pair.reset();
    }

    fn accept(&mut self, now: Time, registry: &Registry) {
        let mut accepts = Accepts::new();
        while let Some((client, route)) = self.listeners.accept(now, &mut accepts) {
            self.take_in(now, registry, client, route);
        }
        self.stats.refused += accepts.refused;
    }
}

impl Work for Relaying {
    fn ready(&mut self, _: Time, _: &Registry, token: Token, ready: &Ready) -> io::Result<()> {
        if !self.listeners.note(token) {
            let number = token.0 - self.listeners.next_token();
            let id = number as u64 / 2;
            if let Some((_, pair)) = self.pairs.get_mut(&id) {
                pair.note(number % 2, ready);
                self.serve(id);
            }
        }
        Ok(())
    }

    fn turn(&mut self, now: Time, registry: &Registry) -> io::Result<(bool, Option<Time>)> {
        self.accept(now, registry);
        while let Some(expired) = self.half_open.expired(now) {
            self.give_up(expired);
        }
        for id in std::mem::take(&mut self.again) {
            self.serve(id);
        }
        let look = self.look_for_silence(now);
        let next = self.half_open.next().into_iter().chain(look).min();
        Ok((self.listeners.may_accept() || !self.again.is_empty(), next))
    }

    fn drain(&mut self, now: Time, registry: &Registry) -> io::Result<bool> {
        // Connections that the kernel has already accepted do not count as new.
        for _ in 0..self.listeners.turns_for_waiting() {
            self.accept(now, registry);
        }
        self.listeners.close();
        Ok(self.pairs.is_empty())
    }

    fn end(&mut self, _: Time) -> io::Result<()> {
        std::mem::take(&mut self.pairs).into_values().for_each(|(_, pair)| pair.reset());
        Ok(())
    }

    fn refused_by_kernel(&self) -> u64 {
        0
    }

    fn listen_again(&mut self) {
        self.listeners.listen_again();
    }

    fn name(&self) -> &'static str {
        "uplink"
    }

    fn read(&self, readings: &mut Readings) {
        readings.add_relay(self.config.rate, self.config.memory, &self.counted());
        readings.add_forbidden("uplink", self.access.refused());
    }
}

#[cfg(test)]
mod tests;
