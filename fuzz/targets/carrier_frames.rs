//! A peer that has the keys and a link of its own, and damages its frames behind the cipher: unlike the payloads of `carrier_peer`, most of
//! them mean something. Whatever comes, the end asks for a bounded number of things, holds bounded memory, and delivers no packet that is
//! longer than the link's.

#[path = "bytes.rs"]
mod bytes;

use bentpipe_engine::slacp::classify::HostAddress;
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_engine::{Context, Step};
use bentpipe_gateway::tunnel::{DATA_HEADER, PrivateKey, Todo, Tunnel, TunnelConfig, What};
use bentpipe_gateway::{Carried, Carrier, Satellite, for_packets, for_streams};
use bentpipe_io::{Emitted, LinkEndpoint, LinkEndpointConfig};

use bytes::Bytes;

/// What an end may do at one instant; far above what it does.
const MAX_STEPS: usize = 20_000;
/// Frames that are remembered, to be sent again.
const OLD: usize = 16;

/// An IP packet of some length, with a header that is right more often than not.
fn packet(bytes: &mut Bytes) -> Vec<u8> {
    let (form, flow) = (bytes.next(), bytes.next());
    let mut packet = vec![flow; [20, 40, 60, 100, 700, 1300, 1400, 1][usize::from(form % 8)]];
    let len = packet.len();
    if let Some(header) = packet.first_chunk_mut::<20>().filter(|_| form & 8 == 0) {
        let protocol = [6, 17, 1, 58][usize::from(flow % 4)];
        header.fill(0);
        if form & 16 == 0 {
            (header[0], header[8], header[9], header[15]) = (0x45, 64, protocol, flow / 4);
            header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        } else {
            (header[0], header[6], header[7]) = (0x60, protocol, 64);
            header[4..6].copy_from_slice(&(len.saturating_sub(40) as u16).to_be_bytes());
        }
    }
    packet
}

struct World {
    now: Time,
    end: Carrier,
    peer: Tunnel,
    port: LinkEndpoint,
    /// The peer's link.
    config: LinkEndpointConfig,
    out: Vec<u8>,
}

impl World {
    fn bring(&mut self, len: usize) {
        let mut datagram = self.out[..len].to_vec();
        self.end.receive(self.now, ([192, 0, 2, 3], 1).into(), &mut datagram);
        assert!(self.end.outputs() < MAX_STEPS, "{} outputs", self.end.outputs());
    }

    fn send(&mut self, what: What, payload: &[u8]) {
        self.out[DATA_HEADER..DATA_HEADER + payload.len()].copy_from_slice(payload);
        if let Some(sealed) = self.peer.seal(self.now, what, payload.len(), &mut self.out) {
            self.bring(sealed.len);
        }
    }

    /// Lets the peer's tunnel do what it wants.
    fn poll_peer(&mut self) {
        while let Step::Do(todo) = self.peer.poll(self.now, 1, &mut self.out) {
            if let Todo::Send(sealed) = todo {
                self.bring(sealed.len);
            }
        }
    }

    /// Steps the end until it waits; returns the packets that it delivered.
    fn settle(&mut self) -> u64 {
        let mut delivered = 0;
        for _ in 0..MAX_STEPS {
            match self.end.poll(self.now, 1, &mut self.out) {
                Step::Wait(_) => {
                    assert!(self.end.held_bytes() < 64 << 20, "{} B", self.end.held_bytes());
                    return delivered;
                }
                Step::Do(Carried::Send(sealed)) => {
                    let mut datagram = self.out[..sealed.len].to_vec();
                    let heard = self.peer.receive(self.now, ([192, 0, 2, 2], 1).into(), &mut datagram);
                    if heard.event.is_some() {
                        self.port = LinkEndpoint::new(&self.config);
                    }
                    if let (What::Frame, Some(at)) = (heard.what, heard.payload) {
                        let _ = self.port.receive(&mut Context::silent(self.now), &datagram[at]);
                    }
                }
                Step::Do(Carried::Packet(at)) => {
                    assert!(at.len() <= 1500, "a packet of {} bytes", at.len());
                    delivered += 1;
                }
                Step::Do(Carried::Event(_) | Carried::Log(_) | Carried::PathMtu(_)) => {}
            }
        }
        panic!("an end that does not wait");
    }
}

/// Answers how many packets were delivered.
pub(crate) fn run(data: &[u8]) -> u64 {
    let mut bytes = Bytes(data);
    let [own, other] = ["4GWIBQGy+ykODPHIYWyxBVtmcmHFZlWbU5BDWJzhc0M=", "EOXVdFLr6cdSWbcCkTa1KrbiNbc5XhUgQcNZXLm1p0s="]
        .map(|text| text.parse::<PrivateKey>().expect("a key"));
    let now = Time::ZERO + Duration::from_secs(1);
    let form = bytes.next();
    let satellite = Satellite {
        rate: Rate::from_bits_per_second([200_000, 50_000_000][usize::from(form & 1)]).expect("not zero"),
        round_trip: Duration::from_millis(20),
        path_mtu: 1500,
        over_ipv6: false,
        reordering: u64::from(form & 2),
        shared: form & 4 != 0,
    };
    let is_streams = form & 8 == 0;
    let link = |host| if is_streams { for_streams(&satellite) } else { for_packets(&satellite, host) };
    let config = link(HostAddress::Destination);
    let mut world = World {
        now,
        end: Carrier::new(TunnelConfig::new(own.clone(), other.public(), None), link(HostAddress::Source), now),
        peer: Tunnel::new(TunnelConfig::new(other, own.public(), Some(([192, 0, 2, 2], 1).into())), now),
        port: LinkEndpoint::new(&config),
        config,
        out: vec![0; 1 << 16],
    };
    if form & 16 != 0 {
        world.end.set_room(50_000);
    }
    let (mut old, mut delivered) = (Vec::new(), 0);
    while !bytes.0.is_empty() {
        world.now += Duration::from_micros([0, 1000, 20_000, 3_000_000][usize::from(bytes.next() % 4)]);
        world.poll_peer();
        delivered += world.settle();
        let counts = bytes.next();
        for n in 0..counts % 8 + counts / 16 {
            let packet = packet(&mut bytes);
            let mut cx = Context::silent(world.now);
            let _ = match (n < counts % 8, is_streams) {
                (true, true) => world.port.send_on(&mut cx, 0, u64::from(n), &packet),
                (true, false) => world.port.send(&mut cx, &packet),
                (false, true) => world.end.send_on(world.now, 0, u64::from(n), &packet),
                (false, false) => world.end.send(world.now, &packet),
            };
        }
        for _ in 0..MAX_STEPS {
            let step = world.port.poll(&mut Context::silent(world.now), &mut world.out);
            let frame = match step {
                Ok(Step::Do(Emitted::Frame(len))) => world.out[..len].to_vec(),
                Ok(Step::Do(Emitted::Packet(_))) => continue,
                // What the end has said may be too odd for a port to go on.
                Ok(Step::Wait(_)) | Err(_) => break,
            };
            let (deed, at, value) = (bytes.next(), usize::from(bytes.next()), bytes.next());
            let mut damaged = frame.clone();
            match deed % 16 {
                1 => continue,
                2 | 3 => damaged.get_mut(at % 40).into_iter().for_each(|byte| *byte = value),
                4 => damaged.get_mut(at % 40).into_iter().for_each(|byte| *byte ^= 1 << (value % 8)),
                5 => damaged.truncate(at),
                6 => damaged.extend(std::iter::repeat_n(value, at % 32)),
                7 => damaged = old.get(at % OLD).cloned().unwrap_or_default(),
                _ => {}
            }
            let what = [What::Frame, What::Part, What::Probe, What::Ack][usize::from(deed / 16).saturating_sub(12)];
            world.send(what, &damaged);
            if old.len() < OLD { old.push(frame) } else { old[at % OLD] = frame }
        }
        delivered += world.settle();
    }
    delivered
}
