//! The loop's work for boxes with tunnels: a UDP socket, the hub of carriers behind it, and the shape.
//!
//! A box with one peer is a hub with one.

mod peer;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use bentpipe_engine::Step;
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_io::Clock;
use mio::event::Event as Ready;
use mio::{Registry, Token};

use super::carrier::Carried;
use super::hub::{AddError, Hub, Meter, Slot};
use super::log::{self, Limit};
use super::peers::{PeerConfig, Reach};
use super::ports;
use super::readings::Readings;
use super::resume::Resume;
use super::run::{Loop, Work};
use super::shape::{Shape, Turn};
use super::shortfall::Looks;
use super::state::State;
use super::udp::Udp;
use crate::tunnel::{PresharedKey, PublicKey};
use peer::{Name, Peer, Said, path_line};

const UDP: Token = Token(0);
/// Maximum number of datagram batches read in a turn while some wait: a fifth of what the kernel's buffer holds.
const MAX_BATCHES: usize = 64;

/// A shape with tunnels, and the carriers to the other boxes.
#[derive(Debug)]
pub struct Tunnelled<S> {
    udp: Udp,
    udp_is_readable: bool,
    hub: Hub,
    peers: BTreeMap<Slot, Peer>,
    /// The number of times that the peers or their names have changed.
    changes: u64,
    shape: S,
    state: Option<State>,
    resume: Resume,
    jumps: Limit,
    watch: Watch,
    looks: Looks,
}

/// Measures the time that work takes.
#[derive(Debug)]
struct Watch {
    clock: Clock,
    read_at: Time,
}

impl Meter for Watch {
    fn lap(&mut self) -> Duration {
        let now = self.clock.now();
        now.saturating_since(std::mem::replace(&mut self.read_at, now))
    }
}

/// A box with tunnels to other boxes.
pub type Gateway<S> = Loop<Tunnelled<S>>;

impl<S: Shape> Gateway<S> {
    /// A box without peers, whose tunnels send from `local`. `rate` limits them together; `None`: only each peer's own
    /// rate does.
    ///
    /// # Errors
    /// Fails if the UDP address cannot be bound, or if epoll or a listener of the shape cannot be opened.
    pub fn new(local: SocketAddr, rate: Option<Rate>, shape: S) -> io::Result<Self> {
        Loop::begin(|now, registry| {
            let udp = Udp::bind(local).map_err(|error| ports::explained(ports::Kind::Udp, local.port(), error))?;
            udp.register(registry, UDP)?;
            let mut work = Tunnelled {
                udp,
                udp_is_readable: true,
                hub: Hub::new(rate),
                peers: BTreeMap::new(),
                changes: 0,
                shape,
                state: None,
                resume: Resume::new(),
                jumps: Limit::default(),
                watch: Watch { clock: Clock::start(), read_at: Time::ZERO },
                looks: Looks::new(),
            };
            let Tunnelled { hub, shape, .. } = &mut work;
            shape.start(&mut Turn { now, hub, registry })?;
            Ok(work)
        })
    }

    /// Adds a peer without affecting the others.
    ///
    /// # Errors
    /// Fails if another peer has the same key, or if there are too many.
    pub fn add(&mut self, peer: PeerConfig) -> Result<(), AddError> {
        let now = self.now();
        let work = self.work_mut();
        let slot = work.hub.add(now, peer.terminal)?;
        work.changes += 1;
        work.peers.insert(slot, Peer::new(Name(peer.name)));
        work.shape.join(slot, peer.reach);
        Ok(())
    }

    /// Removes a peer: its connections are reset and its keys wiped. Returns its last proven address, if known.
    pub fn remove(&mut self, key: &PublicKey) -> Option<SocketAddr> {
        let work = self.work_mut();
        let slot = work.hub.slot_of(key)?;
        work.changes += 1;
        work.shape.leave(slot);
        work.peers.remove(&slot);
        work.hub.remove(slot).and_then(|carrier| carrier.tunnel().proven_endpoint())
    }

    /// Applies the settings of a peer that can change without affecting its tunnel. Returns false if no peer has this
    /// key.
    pub fn change(&mut self, key: &PublicKey, name: Option<Arc<str>>, weight: u32, reach: Reach) -> bool {
        let work = self.work_mut();
        let Some(slot) = work.hub.slot_of(key) else { return false };
        work.changes += 1;
        if let Some(peer) = work.peers.get_mut(&slot) {
            peer.name = Name(name);
        }
        work.hub.set_weight(slot, weight);
        work.shape.join(slot, reach);
        true
    }

    /// Sets another preshared key, or none, for later handshakes with this peer; its sessions continue.
    pub(crate) fn set_preshared(&mut self, key: &PublicKey, preshared: Option<PresharedKey>) {
        let hub = &mut self.work_mut().hub;
        if let Some(carrier) = hub.slot_of(key).and_then(|slot| hub.carrier_mut(slot)) {
            carrier.set_preshared(preshared);
        }
    }

    /// Changes the rate of the line.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.work_mut().hub.set_rate(rate);
    }

    /// The address at which the tunnels listen.
    ///
    /// # Errors
    /// Fails if the kernel does not return the socket's address.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.work().udp.local()
    }

    /// Saves the peers' addresses in this file.
    pub(crate) fn keep_state(&mut self, path: PathBuf) {
        self.work_mut().state = Some(State::new(path));
    }

    /// The carriers to the other boxes.
    pub fn hub(&self) -> &Hub {
        &self.work().hub
    }

    /// The shape.
    pub fn shape(&self) -> &S {
        &self.work().shape
    }

    /// The shape, to change its settings.
    pub(crate) fn shape_mut(&mut self) -> &mut S {
        &mut self.work_mut().shape
    }
}

impl<S: Shape> Work for Tunnelled<S> {
    fn ready(&mut self, now: Time, registry: &Registry, token: Token, ready: &Ready) -> io::Result<()> {
        if token == UDP {
            self.udp_is_readable = true;
            return Ok(());
        }
        let Tunnelled { hub, shape, .. } = self;
        shape.ready(&mut Turn { now, hub, registry }, token, ready)
    }

    fn turn(&mut self, now: Time, registry: &Registry) -> io::Result<(bool, Option<Time>)> {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let Tunnelled { udp, hub, peers, shape, watch, .. } = self;
        if self.resume.has_jumped() {
            // A clock that is set again and again has few lines.
            if let Some(left_out) = self.jumps.take(now) {
                log::line(format_args!(
                    "this machine has slept, was copied, or its clock was set: the tunnel makes new keys{left_out}"
                ));
            }
            hub.renew(now);
        }
        for _ in 0..MAX_BATCHES {
            if self.udp_is_readable {
                self.udp_is_readable = udp.receive(|from, datagram| hub.receive(now, from, datagram, watch))?;
            }
            // Behind the waiting datagrams there may be some of other peers.
            if !self.udp_is_readable || !hub.has_waiting() {
                break;
            }
        }
        let mut turn = Turn { now, hub, registry };
        while let Some((slot, event)) = turn.hub.take_event() {
            of(peers, slot).say(now, turn.hub.carrier(slot), event);
            shape.on_event(&mut turn, slot, event)?;
        }
        let mut more = shape.fill(&mut turn, None)?;
        let until = loop {
            match turn.hub.poll(now, wall, udp.room(), watch) {
                Step::Do((slot, Carried::Send(sealed))) => {
                    udp.send(now, sealed.to, sealed.len);
                    more |= shape.fill(&mut turn, Some(slot))?;
                }
                Step::Do((slot, Carried::Packet(at))) => shape.on_packet(&mut turn, slot, &udp.room()[at])?,
                Step::Do((slot, Carried::Event(event))) => {
                    of(peers, slot).say(now, turn.hub.carrier(slot), event);
                    shape.on_event(&mut turn, slot, event)?;
                }
                Step::Do((slot, Carried::Log(note))) => log::line(Said(&of(peers, slot).name, note)),
                Step::Do((slot, Carried::PathMtu(change))) => {
                    if let Some(left_out) = of(peers, slot).paths.take(now) {
                        log::line(format_args!("{}{left_out}", path_line(&of(peers, slot).name, &change)));
                    }
                    shape.on_path_mtu(&mut turn, slot)?;
                }
                Step::Wait(until) => {
                    shape.flush()?;
                    // Received datagrams may require an answer.
                    turn.hub.take_touched();
                    more |= shape.fill(&mut turn, None)?;
                    turn.hub.forget_served();
                    if !turn.hub.take_touched() {
                        break until;
                    }
                }
            }
        };
        udp.flush(now);
        if let Some((to, length)) = udp.take_too_long() {
            turn.hub.on_too_long(now, to, length);
            more = true;
        }
        if self.looks.is_due(now) {
            turn.hub.carriers().for_each(|(slot, carrier)| of(peers, slot).look(carrier));
        }
        if let Some(state) = &mut self.state {
            state.note(now, proven(turn.hub));
        }
        Ok((more || self.udp_is_readable || turn.hub.has_waiting(), until))
    }

    fn drain(&mut self, now: Time, registry: &Registry) -> io::Result<bool> {
        let Tunnelled { hub, shape, .. } = self;
        shape.drain(&mut Turn { now, hub, registry })
    }

    fn end(&mut self, _: Time) -> io::Result<()> {
        if let Some(state) = &mut self.state {
            state.end(proven(&self.hub));
        }
        Ok(())
    }

    fn refused_by_kernel(&self) -> u64 {
        self.udp.refusals().sum()
    }

    fn listen_again(&mut self) {
        self.shape.listen_again();
    }

    fn name(&self) -> &'static str {
        self.shape.name()
    }

    fn read(&self, readings: &mut Readings) {
        readings.add_hub(&self.hub, &self.udp.refusals());
        self.shape.read_common(readings);
    }

    fn changes_of_peers(&self) -> u64 {
        self.changes
    }

    fn read_peers(&self, now: Time, readings: &mut Readings, from: Slot, max: usize) -> Option<Slot> {
        let mut carriers = self.hub.carriers_from(from);
        for (slot, carrier) in carriers.by_ref().take(max) {
            readings.of_peer(self.peers[&slot].name.0.clone(), |readings| {
                readings.add_carrier(now, carrier);
                readings.add_dropped(self.hub.dropped(slot));
                readings.add_spent(self.hub.spent(slot));
                self.shape.read(slot, readings);
            });
        }
        carriers.next().map(|(slot, _)| slot)
    }
}

/// The peers whose addresses are proven.
fn proven(hub: &Hub) -> impl Iterator<Item = (PublicKey, SocketAddr)> {
    let tunnels = hub.carriers().map(|(_, carrier)| carrier.tunnel());
    tunnels.filter_map(|tunnel| Some((tunnel.peer(), tunnel.proven_endpoint()?)))
}

fn of(peers: &mut BTreeMap<Slot, Peer>, slot: Slot) -> &mut Peer {
    peers.get_mut(&slot).expect("each carrier has one")
}

#[cfg(test)]
pub(crate) mod tests {
    use bentpipe_io::LinkEndpointConfig;

    use super::*;
    use crate::tunnel::{PrivateKey, TunnelConfig};
    use crate::{ClientAddress, Fallback, Policy, Satellite, SplitConfig, SplitShape, for_streams};

    /// A gateway of `split` that listens for no clients, and the settings of a link to a peer.
    pub(crate) fn idle() -> (Gateway<SplitShape>, LinkEndpointConfig) {
        let shape = SplitShape::new(SplitConfig {
            listen: Vec::new(),
            client_address: ClientAddress::Keep,
            fallback: Fallback::Direct,
            window: 1 << 20,
            max_streams: 10,
            budget: 4 << 20,
            policy: Policy::default(),
        });
        let satellite = Satellite {
            rate: Rate::from_bits_per_second(8_000_000).expect("not zero"),
            round_trip: Duration::from_millis(600),
            path_mtu: 1500,
            over_ipv6: false,
            reordering: 0,
            shared: false,
        };
        let gateway = Gateway::new(([127, 0, 0, 1], 0).into(), None, shape).expect("a free port");
        (gateway, for_streams(&satellite))
    }

    /// A gateway that ends within a second of the last write has saved the addresses that have changed since.
    #[test]
    fn addresses_are_saved_at_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("peers.state");
        let (private, mut count) = (PrivateKey::generate(), 0);
        let (mut gateway, link) = idle();
        gateway.keep_state(path.clone());
        let stop = gateway.stop();
        gateway
            .run(|gateway| {
                let at = SocketAddr::from(([127, 0, 0, 1], 9 + count));
                let tunnel = TunnelConfig::new(private.clone(), PrivateKey::generate().public(), Some(at));
                gateway.add(PeerConfig::alone(tunnel, link.clone())).expect("a key of its own");
                count += 1;
                if count == 1 { stop.wake() } else { stop.now() }
            })
            .expect("it ends");
        assert_eq!(crate::state::LastEndpoints::read(&path).len(), 2);
    }
}
