//! An endpoint, and a peer that is played by hand and writes any segment it likes.

use bentpipe_engine::tcp::{AckPolicy, Flags, SynOptions, Timestamps};

use super::*;

pub(super) const ACK: Flags = Flags::ACK;

/// An endpoint, and a peer that is played by hand.
pub(super) struct Scene {
    pub(super) now: Time,
    pub(super) endpoint: Endpoint,
    /// How the peer writes its segments.
    pub(super) wire: Translation,
}

pub(super) fn plain() -> TcpConfig {
    TcpConfig { receive_buffer: 60_000, window_scaling: false, ack: AckPolicy::IMMEDIATE, ..TcpConfig::default() }
}

impl Scene {
    /// A client whose SYN has gone out.
    pub(super) fn connecting(config: TcpConfig) -> Self {
        let (client, server) = (SocketAddr::from(CLIENT), SocketAddr::from(SERVER));
        let mut cx = Context::silent(Time::ZERO);
        let endpoint = Endpoint::open(&mut cx, config, client, Peer::Connect(server), 30_000);
        let mut scene = Scene { now: Time::ZERO, endpoint, wire: peer_wire(server, client) };
        scene.answers();
        scene
    }

    /// A listener.
    pub(super) fn listening(config: TcpConfig) -> Self {
        let (client, server) = (SocketAddr::from(CLIENT), SocketAddr::from(SERVER));
        let mut cx = Context::silent(Time::ZERO);
        let endpoint = Endpoint::open(&mut cx, config, server, Peer::Accept, 30_000);
        Scene { now: Time::ZERO, endpoint, wire: peer_wire(client, server) }
    }

    /// A client whose handshake is done.
    pub(super) fn established(config: TcpConfig) -> Self {
        let mut scene = Scene::connecting(config);
        let syn = SynOptions { mss: Some(1460), window_scale: None, sack_permitted: true };
        let timestamps = config.timestamps.then_some(Timestamps { value: 1000, echo: 0 });
        scene.inject(Segment { ack: 1, syn, timestamps, window: 60_000, ..Segment::new(Flags::SYN | ACK) }, b"");
        assert!(scene.endpoint.is_connected());
        scene
    }

    pub(super) fn user<R>(&mut self, act: impl FnOnce(&mut Endpoint, &mut Context<'_, NoProbe>) -> R) -> R {
        let mut cx = Context::silent(self.now);
        act(&mut self.endpoint, &mut cx)
    }

    /// What the endpoint sends now, read by the peer.
    pub(super) fn answers(&mut self) -> Vec<Segment> {
        let mut out = [0; 2000];
        let mut sent = Vec::new();
        while let Step::Do(length) = self.user(|e, cx| e.poll(cx, &mut out)).expect("there is room") {
            let ip = ip::parse(&out[..length]).expect("an IP packet");
            let bytes = &out[ip.payload];
            let near = Near { rcv_nxt: 1, snd_una: 1 };
            let (segment, _) = self.wire.parse(bytes, near).expect("a segment");
            if segment.flags.has(Flags::SYN) {
                self.wire.synchronize(bytes, &segment).expect("a segment");
            }
            sent.push(segment);
        }
        sent
    }

    /// The peer sends this. Returns the endpoint's answers.
    pub(super) fn inject(&mut self, segment: Segment, payload: &[u8]) -> Vec<Segment> {
        let packet = self.packet(segment, payload);
        self.user(|e, cx| e.receive(cx, &packet)).expect("a packet");
        self.answers()
    }

    /// A packet of the peer.
    pub(super) fn packet(&mut self, segment: Segment, payload: &[u8]) -> Vec<u8> {
        let segment = Segment { len: payload.len() as u16, ..segment };
        let mut packet = [0; 2000];
        let header = self.wire.addresses.header_len();
        let length = self.wire.emit(&segment, &[payload], &mut packet[header..]).expect("there is room");
        ip::emit(&self.wire.addresses, ip::TCP, length, &mut packet).expect("there is room");
        packet[..header + length].to_vec()
    }

    /// The peer acknowledges `bytes`. The endpoint is not polled.
    pub(super) fn acknowledge(&mut self, bytes: u64) {
        let packet = self.packet(Segment { ack: FIRST_BYTE + bytes, ..at(FIRST_BYTE) }, b"");
        self.user(|e, cx| e.receive(cx, &packet)).expect("a packet");
    }

    pub(super) fn read(&mut self) -> Vec<u8> {
        let mut data = [0; 5000];
        let got = self.user(|e, cx| e.read(cx, &mut data));
        data[..got].to_vec()
    }

    pub(super) fn state(&self) -> State {
        self.endpoint.connection().state()
    }
}

pub(super) fn peer_wire(peer: SocketAddr, ours: SocketAddr) -> Translation {
    let addresses = Addresses::new(peer.ip(), ours.ip()).expect("one IP version");
    Translation::new(addresses, Ports { source: peer.port(), destination: ours.port() }, 77_000)
}

/// A segment of the peer at `seq` that acknowledges everything.
pub(super) fn at(seq: u64) -> Segment {
    Segment { seq, ack: 1, window: 60_000, ..Segment::new(ACK) }
}

pub(super) fn stamped(seq: u64, value: u32) -> Segment {
    Segment { timestamps: Some(Timestamps { value, echo: 0 }), ..at(seq) }
}
