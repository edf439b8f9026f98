//! A peer for tests: in place of the near box, with its keys, its tunnel and its link, and a driver that also sends what no box does.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use bentpipe_engine::gateway::INTEGRITY;
use bentpipe_engine::slacp::classify::HostAddress;
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_engine::wire::mux::{self, Message, Reason, Route, StreamId};
use bentpipe_engine::wire::slacp::{self, Frame};
use bentpipe_engine::{Context, Step};
use bentpipe_gateway::tunnel::{DATA_HEADER, PrivateKey, Todo, Tunnel, TunnelConfig, What};
use bentpipe_gateway::{Carries, Satellite, for_packets, for_streams};
use bentpipe_io::{Emitted, LinkEndpoint, LinkEndpointConfig};

use crate::real_time::command::pair::{Line, NAMES, SERVER};

/// The addresses of the two boxes' tunnels, as [`Line`] has them.
const OWN: &str = "10.9.0.1:4500";
const FAR: &str = "10.9.0.2:4500";
/// The peer.
pub(super) struct Hostile {
    pub(super) socket: UdpSocket,
    start: Instant,
    pub(super) tunnel: Tunnel,
    config: LinkEndpointConfig,
    pub(super) port: LinkEndpoint,
    out: Vec<u8>,
    /// The latest datagrams, to be sent again.
    pub(super) old: Vec<Vec<u8>>,
    /// The number of bytes that have come on each stream, and the reasons of resets.
    pub(super) came: BTreeMap<StreamId, u64>,
    pub(super) resets: BTreeMap<StreamId, Reason>,
    /// Packets that have come in `link`.
    pub(super) packets: Vec<Vec<u8>>,
    /// The first number of its own streams.
    pub(super) first: u64,
    carries: Carries,
}

pub(super) fn keys_of(line: &Line) -> [PrivateKey; 2] {
    NAMES.map(|name| {
        let text = std::fs::read_to_string(line.folder.path().join(format!("{name}.key"))).expect("it is there");
        text.parse().expect("a key")
    })
}

impl Hostile {
    /// Takes the near box's place and waits until the link is up.
    pub(super) fn new(line: &Line, carries: Carries) -> Hostile {
        let [own, far] = keys_of(line);
        let socket = line.near.inside(|| UdpSocket::bind(OWN).expect("a free port"));
        socket.connect(FAR).expect("an address");
        socket.set_nonblocking(true).expect("a socket");
        let satellite = Satellite {
            rate: Rate::from_bits_per_second(100_000_000).expect("not zero"),
            round_trip: Duration::from_millis(20),
            path_mtu: 1500,
            over_ipv6: false,
            reordering: 0,
            shared: false,
        };
        let config = match carries {
            Carries::Streams => for_streams(&satellite),
            Carries::Packets => for_packets(&satellite, HostAddress::Source),
        };
        let mut peer = Hostile {
            socket,
            start: Instant::now(),
            tunnel: tunnel(own, &far, carries),
            port: LinkEndpoint::new(&config),
            config,
            out: vec![0; 1 << 16],
            old: Vec::new(),
            came: BTreeMap::new(),
            resets: BTreeMap::new(),
            packets: Vec::new(),
            first: 0,
            carries,
        };
        peer.until_up();
        peer
    }

    pub(super) fn now(&self) -> Time {
        Time::ZERO + Duration::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    pub(super) fn until_up(&mut self) {
        let begun = Instant::now();
        while !self.tunnel.is_up() {
            assert!(begun.elapsed().as_secs() < 20, "the tunnel comes up");
            self.pump(20);
        }
        self.first = u64::from(!self.tunnel.leads());
    }

    /// Does what a box does, for so many milliseconds.
    pub(super) fn pump(&mut self, milliseconds: u64) {
        let until = Instant::now() + std::time::Duration::from_millis(milliseconds);
        while Instant::now() < until {
            self.work();
            std::thread::sleep(std::time::Duration::from_micros(300));
        }
    }

    pub(super) fn work(&mut self) {
        let mut datagram = [0; 2048];
        while let Ok(length) = self.socket.recv(&mut datagram) {
            let now = self.now();
            let heard = self.tunnel.receive(now, FAR.parse().expect("an address"), &mut datagram[..length]);
            if heard.event.is_some() {
                self.begin();
            }
            match (heard.what, heard.payload) {
                (What::Frame, Some(at)) => drop(self.port.receive(&mut Context::silent(now), &datagram[at])),
                // All lengths pass.
                (What::Probe, Some(at)) => self.throw(What::Ack, &datagram[at][..4]),
                _ => {}
            }
        }
        let now = self.now();
        let wall = std::time::UNIX_EPOCH.elapsed().expect("it is later").as_nanos() as u64;
        while let Step::Do(todo) = self.tunnel.poll(now, wall, &mut self.out) {
            match todo {
                Todo::Send(sealed) => drop(self.socket.send(&self.out[..sealed.len])),
                Todo::Tell(_) => self.begin(),
                Todo::Log(_) => {}
            }
        }
        while let Ok(Step::Do(emitted)) = self.port.poll(&mut Context::silent(now), &mut self.out[DATA_HEADER..]) {
            match emitted {
                Emitted::Frame(length) => self.seal(What::Frame, length),
                Emitted::Packet(length) => self.note(length),
            }
        }
    }

    /// The link begins anew.
    fn begin(&mut self) {
        self.port = LinkEndpoint::new(&self.config);
        (self.came, self.resets) = (BTreeMap::new(), BTreeMap::new());
    }

    fn note(&mut self, length: usize) {
        let packet = &self.out[DATA_HEADER..DATA_HEADER + length];
        if self.carries == Carries::Packets {
            return self.packets.push(packet.to_vec());
        }
        match mux::parse(packet) {
            Ok((Message::Data { stream, len, .. }, _)) => *self.came.entry(stream).or_insert(0) += u64::from(len),
            Ok((Message::Reset { stream, reason }, _)) => drop(self.resets.insert(stream, reason)),
            Ok(_) => {}
            Err(error) => panic!("a box that keeps to the rules: {error}"),
        }
    }

    /// Seals and sends what is in the buffer.
    fn seal(&mut self, what: What, length: usize) {
        let now = self.now();
        if let Some(sealed) = self.tunnel.seal(now, what, length, &mut self.out) {
            let _ = self.socket.send(&self.out[..sealed.len]);
            if self.old.len() < 1000 {
                self.old.push(self.out[..sealed.len].to_vec());
            }
        }
    }

    /// Sends a payload of this kind past the link.
    pub(super) fn throw(&mut self, what: What, payload: &[u8]) {
        self.out[DATA_HEADER..DATA_HEADER + payload.len()].copy_from_slice(payload);
        self.seal(what, payload.len());
    }

    /// Sends a frame past the link.
    pub(super) fn frame(&mut self, frame: &Frame, body: &[u8]) {
        let length = slacp::emit(frame, 0, &[body], INTEGRITY, &mut self.out[DATA_HEADER..]).expect("it has a form");
        self.seal(What::Frame, length);
    }

    /// Sends a message over the link.
    pub(super) fn say(&mut self, message: &Message, body: &[u8]) {
        let mut packet = [0; 1500];
        let length = mux::emit(message, &[body], &mut packet).expect("it has a form");
        self.packet(message.flow(), &packet[..length]);
    }

    /// Sends a packet over the link, whatever is in it.
    pub(super) fn packet(&mut self, flow: u64, packet: &[u8]) {
        self.port.send_on(&mut Context::silent(self.now()), 0, flow, packet).expect("it is short enough");
        self.settle(500);
    }

    /// Waits until at most so many packets are not known to have arrived.
    pub(super) fn settle(&mut self, most: usize) {
        let begun = Instant::now();
        while self.port.unconfirmed() > most {
            assert!(begun.elapsed().as_secs() < 10, "the link carries what it is given");
            self.pump(1);
        }
    }

    pub(super) fn open(&mut self, stream: StreamId, to: SocketAddr, body: &[u8]) {
        let source = SocketAddr::from(([10, 1, 0, 2], 1024 + (stream.0 / 2 % 60_000) as u16));
        let route = Route { source, destination: to };
        self.say(&Message::Open { stream, route, credit: 1 << 20, len: body.len() as u32 }, body);
    }

    /// True if a new stream is answered, as by a server that echoes.
    pub(super) fn is_served(&mut self, stream: u64) -> bool {
        let stream = StreamId(self.first + 2 * stream);
        self.open(stream, (SERVER, 80).into(), &[7; 100]);
        let begun = Instant::now();
        while begun.elapsed().as_secs() < 5 && self.came.get(&stream) != Some(&100) {
            self.pump(5);
        }
        self.came.get(&stream) == Some(&100)
    }
}

pub(super) fn tunnel(own: PrivateKey, far: &PrivateKey, carries: Carries) -> Tunnel {
    let config = TunnelConfig::new(own, far.public(), Some(FAR.parse().expect("an address")));
    Tunnel::new(TunnelConfig { carries: Some(carries), ..config }, Time::ZERO)
}
