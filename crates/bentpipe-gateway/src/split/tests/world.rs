//! Two boxes with hosts on this machine. Their tunnel and its time are simulated.

use std::net::{IpAddr, SocketAddr, TcpStream as Host};

use bentpipe_engine::Step;
use bentpipe_engine::mux::Route;
use bentpipe_engine::units::Rate;
use mio::net::TcpStream;
use mio::{Events, Poll};

use super::super::*;
use crate::carrier::Carried;
use crate::hub::TerminalConfig;
use crate::policy::{Destination, Policy, Prefix};
use crate::test_hosts::server;
use crate::tunnel::{PrivateKey, TunnelConfig};
use crate::{Satellite, for_streams};

pub(super) const PEER: Slot = Slot(0);
pub(super) const BUDGET: u64 = 64 << 20;

pub(super) struct End {
    pub(super) poll: Poll,
    pub(super) hub: Hub,
    pub(super) shape: SplitShape,
}

pub(super) struct World {
    pub(super) ends: [End; 2],
    pub(super) now: Time,
    pub(super) flight: Vec<(usize, Vec<u8>)>,
    /// Datagrams are lost.
    pub(super) is_cut: bool,
}

pub(super) fn address(end: usize) -> SocketAddr {
    ([192, 0, 2, end as u8], 4500).into()
}

impl End {
    /// Number of connections that events could name.
    pub(super) fn named(&self) -> usize {
        let tokens = (0..1000).map(|n| Token(crate::run::FIRST_TOKEN + n));
        tokens.filter(|token| self.shape.common.tokens.of(*token).is_some()).count()
    }

    pub(super) fn waiting(&self) -> u64 {
        self.shape.peers[&PEER].waiting(BUDGET).unsent
    }

    /// Number of descriptors or connections' memory that peers have taken.
    pub(super) fn in_use(&self) -> [u64; 2] {
        [&self.shape.common.memory, &self.shape.common.descriptors].map(crate::pool::Pool::in_use)
    }
}

impl World {
    /// Two boxes whose link is up.
    pub(super) fn new() -> World {
        World::with_streams(10_000)
    }

    pub(super) fn with_streams(max_streams: u32) -> World {
        let now = Time::ZERO + Duration::from_secs(1000);
        let here = Destination { prefix: Some(Prefix::host(IpAddr::from([127, 0, 0, 1]))), ports: 0..=u16::MAX };
        let config = SplitConfig {
            listen: Vec::new(),
            client_address: sockets::ClientAddress::Replace,
            fallback: Fallback::Refuse,
            window: 1 << 20,
            max_streams,
            budget: BUDGET,
            policy: Policy { allow: vec![here], ..Policy::default() },
        };
        let satellite = Satellite {
            rate: Rate::from_bits_per_second(10_000_000).expect("not zero"),
            round_trip: Duration::from_millis(20),
            path_mtu: 1500,
            over_ipv6: false,
            reordering: 3,
            shared: false,
        };
        let keys = [PrivateKey::generate(), PrivateKey::generate()];
        let ends = [0, 1].map(|n| {
            let tunnel = TunnelConfig::new(keys[n].clone(), keys[1 - n].public(), Some(address(1 - n)));
            let mut end = End {
                poll: Poll::new().expect("the system has epoll"),
                hub: Hub::new(None),
                shape: SplitShape::new(config.clone()),
            };
            let terminal = TerminalConfig { tunnel, link: for_streams(&satellite), weight: 1 };
            assert_eq!(end.hub.add(now, terminal), Ok(PEER));
            end.shape.start(&mut Turn { now, hub: &mut end.hub, registry: end.poll.registry() }).expect("descriptors");
            end.shape.join(PEER, Reach::default());
            end
        });
        let mut world = World { ends, now, flight: Vec::new(), is_cut: false };
        world.until(|world| world.is_up([true; 2]));
        world
    }

    pub(super) fn is_up(&self, is_up: [bool; 2]) -> bool {
        [0, 1].map(|n| self.ends[n].hub.is_up(PEER)) == is_up
    }

    /// Lets both boxes work until `check` is true.
    pub(super) fn until(&mut self, check: impl Fn(&World) -> bool) {
        for _ in 0..10_000 {
            if check(self) {
                return;
            }
            self.step(Duration::from_millis(10));
        }
        panic!("{:?}", self.stats());
    }

    /// Lets both boxes work for this long.
    pub(super) fn wait(&mut self, seconds: u64) {
        (0..10 * seconds).for_each(|_| self.step(Duration::from_millis(100)));
    }

    pub(super) fn step(&mut self, time: Duration) {
        self.now += time;
        for (to, mut datagram) in std::mem::take(&mut self.flight) {
            self.ends[to].hub.receive(self.now, address(1 - to), &mut datagram, &mut ());
        }
        for n in [0, 1] {
            self.turn(n).expect("no socket of all connections fails");
        }
    }

    pub(super) fn turn(&mut self, n: usize) -> io::Result<()> {
        let End { poll, hub, shape } = &mut self.ends[n];
        let mut events = Events::with_capacity(100);
        poll.poll(&mut events, Some(std::time::Duration::from_millis(1)))?;
        let mut turn = Turn { now: self.now, hub, registry: poll.registry() };
        for event in &events {
            shape.ready(&mut turn, event.token(), event)?;
        }
        while let Some((slot, event)) = turn.hub.take_event() {
            shape.on_event(&mut turn, slot, event)?;
        }
        shape.fill(&mut turn, None)?;
        let mut out = vec![0; 1 << 16];
        loop {
            match turn.hub.poll(self.now, 1, &mut out, &mut ()) {
                Step::Do((slot, Carried::Send(sealed))) => {
                    if !self.is_cut {
                        self.flight.push((1 - n, out[..sealed.len].to_vec()));
                    }
                    shape.fill(&mut turn, Some(slot))?;
                }
                Step::Do((slot, Carried::Packet(at))) => shape.on_packet(&mut turn, slot, &out[at])?,
                Step::Do((slot, Carried::Event(event))) => shape.on_event(&mut turn, slot, event)?,
                Step::Do((slot, Carried::PathMtu(_))) => shape.on_path_mtu(&mut turn, slot)?,
                Step::Do((_, Carried::Log(_))) => {}
                Step::Wait(_) => {
                    turn.hub.take_touched();
                    shape.fill(&mut turn, None)?;
                    turn.hub.forget_served();
                    if !turn.hub.take_touched() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// A client of the first box connects to a server.
    pub(super) fn come(&mut self, destination: SocketAddr) -> Host {
        let (listener, at) = server();
        let host = Host::connect(at).expect("it listens");
        host.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("not zero");
        let (socket, _) = listener.accept().expect("it has connected");
        socket.set_nonblocking(true).expect("a setting");
        let route = Route { source: ([10, 0, 0, 1], 4000).into(), destination };
        let End { poll, shape, .. } = &mut self.ends[0];
        let (streams, mut cx) = shape.of(self.now, poll.registry(), PEER).expect("it has joined");
        streams.take_in(&mut cx, TcpStream::from_std(socket), route);
        host
    }

    pub(super) fn stats(&self) -> [SplitStats; 2] {
        [0, 1].map(|n| self.ends[n].shape.stats())
    }
}
