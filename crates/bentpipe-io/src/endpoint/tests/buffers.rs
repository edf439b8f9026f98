//! Buffers that release memory and grow again. Whatever was acknowledged, in order or not, stays, and so does what the
//! peer has not acknowledged.

use bentpipe_engine::tcp::{Flags, SynOptions, Timestamps};
use proptest::prelude::*;

use super::scene::*;
use super::*;

/// The whole stream, in bytes.
const TOTAL: u64 = 100_000;

/// A peer that sends any part of its stream within the window, and believes every acknowledgement.
struct Peer {
    scene: Scene,
    config: TcpConfig,
    /// One past the last byte that the endpoint has allowed.
    edge: u64,
    /// Bytes that were acknowledged, in order or not. The peer does not send these again.
    acknowledged: Vec<bool>,
    read: u64,
    clock: u32,
}

impl Peer {
    fn new(config: TcpConfig) -> Self {
        let mut scene = Scene::connecting(config);
        let syn = SynOptions { mss: Some(1460), window_scale: Some(0), sack_permitted: true };
        let timestamps = config.timestamps.then_some(Timestamps { value: 1000, echo: 0 });
        let segment = Segment { ack: 1, syn, timestamps, window: 60_000, ..Segment::new(Flags::SYN | ACK) };
        let answers = scene.inject(segment, b"");
        let mut peer = Peer { scene, config, edge: 0, acknowledged: vec![false; TOTAL as usize], read: 0, clock: 1000 };
        peer.believe(&answers);
        peer
    }

    /// The peer's view of a window may move back only by what the shift cannot express.
    fn believe(&mut self, answers: &[Segment]) {
        for answer in answers {
            let edge = answer.ack - FIRST_BYTE + u64::from(answer.window);
            let unit = 1 << self.scene.endpoint.connection().rcv_scale();
            assert!(edge + unit > self.edge, "the right edge moved back from {} to {edge}", self.edge);
            self.edge = self.edge.max(edge);
            let (ack, sacks) = (answer.ack, answer.sack.iter(answer.ack));
            for (start, end) in sacks.chain([(FIRST_BYTE, ack)]) {
                self.acknowledged[(start - FIRST_BYTE) as usize..(end - FIRST_BYTE) as usize].fill(true);
            }
        }
    }

    fn send(&mut self, start: u64, end: u64) {
        let payload: Vec<u8> = (start..end).map(byte).collect();
        self.clock += 1;
        self.scene.now += Duration::from_millis(1);
        let segment =
            if self.config.timestamps { stamped(FIRST_BYTE + start, self.clock) } else { at(FIRST_BYTE + start) };
        let answers = self.scene.inject(segment, &payload);
        self.believe(&answers);
    }

    fn read(&mut self, most: usize) {
        let mut data = vec![0; most];
        let got = self.scene.user(|e, cx| e.read(cx, &mut data));
        for value in &data[..got] {
            assert_eq!(*value, byte(self.read), "byte {}", self.read);
            self.read += 1;
        }
        let answers = self.scene.answers();
        self.believe(&answers);
    }

    /// Sends the rest, but nothing that was acknowledged. The user reads everything.
    fn finish(&mut self) {
        self.scene.user(|e, _| e.spare(1 << 30));
        for _ in 0..10_000 {
            self.read(5000);
            let Some(start) = self.acknowledged.iter().position(|is_there| !is_there) else { break };
            let len = self.acknowledged[start..].iter().take(1000).take_while(|is_there| !**is_there).count();
            let end = (start + len) as u64;
            self.send(start as u64, end.min(self.edge));
        }
        self.read(TOTAL as usize);
        assert_eq!(self.read, TOTAL);
    }
}

/// Data beyond a gap has been acknowledged (SACK), so it must survive while memory is released.
#[test]
fn a_shrink_keeps_what_waits_behind_a_gap() {
    let mut peer = Peer::new(TcpConfig { receive_buffer: 20_011, ..plain() });
    peer.send(3000, 4000);
    assert!(peer.acknowledged[3000]);
    peer.scene.user(|e, _| e.shrink(1));
    for start in [0, 1000, 2000] {
        peer.send(start, start + 1000);
    }
    assert_eq!(peer.scene.endpoint.readable(), 4000);
    peer.read(4000);
    // Now nothing waits, and the memory goes.
    let before = peer.scene.endpoint.memory();
    peer.scene.user(|e, _| e.shrink(1));
    assert!(peer.scene.endpoint.memory() < before - 20_000);
    // Without memory a segment is as lost, beyond a gap or not.
    peer.send(6000, 7000);
    peer.send(4000, 5000);
    assert!(!peer.acknowledged[6000] && !peer.acknowledged[4000]);
    assert_eq!(peer.scene.endpoint.no_room(), 2);
    peer.finish();
}

/// Linux rounds a window up to what the shift can express. A peer that uses all of it must not overwrite unread data.
#[test]
fn a_window_rounded_up_overwrites_nothing() {
    let config = TcpConfig {
        receive_buffer: 90_003,
        first_window: Some(90_003),
        window_follows: true,
        window_scaling: true,
        ..plain()
    };
    let mut peer = Peer::new(config);
    assert_eq!(peer.scene.endpoint.connection().rcv_scale(), 2);
    let mut start = 0;
    while start < TOTAL && start < peer.edge {
        let end = (start + if peer.edge - start > 1000 { 1000 } else { 1 }).min(peer.edge).min(TOTAL);
        peer.send(start, end);
        start = end;
    }
    peer.finish();
}

/// What the endpoint sends now: sequence numbers and payloads.
fn payloads(scene: &mut Scene) -> Vec<(u64, Vec<u8>)> {
    let mut out = [0; 2000];
    let mut sent = Vec::new();
    while let Step::Do(length) = scene.user(|e, cx| e.poll(cx, &mut out)).expect("there is room") {
        let ip = ip::parse(&out[..length]).expect("an IP packet");
        let bytes = &out[ip.payload];
        let (segment, payload) = scene.wire.parse(bytes, Near { rcv_nxt: 1, snd_una: 1 }).expect("a segment");
        sent.push((segment.seq - FIRST_BYTE, bytes[payload].to_vec()));
    }
    sent
}

/// Advances to the retransmission timeout, whenever it is, and acknowledges all that comes until `end` was received.
fn receive_all(scene: &mut Scene, mut acknowledged: u64, end: u64) {
    let mut sent = payloads(scene);
    while acknowledged < end {
        assert!(scene.now < Time::ZERO + Duration::from_secs(600), "{acknowledged} of {end}");
        for (start, payload) in &sent {
            let expected: Vec<u8> = (*start..start + payload.len() as u64).map(byte).collect();
            assert_eq!(*payload, expected, "from {start} on");
            if *start <= acknowledged {
                acknowledged = acknowledged.max(start + payload.len() as u64);
            }
        }
        scene.now += Duration::from_secs(1);
        scene.acknowledge(acknowledged);
        sent = payloads(scene);
    }
}

/// Unacknowledged data may have to be sent again, so it survives while memory is released, and while it grows.
#[test]
fn what_is_unacknowledged_stays() {
    let mut scene = Scene::established(plain());
    let before = scene.endpoint.memory();
    let data: Vec<u8> = (0..7000).map(byte).collect();
    assert_eq!(scene.user(|e, cx| e.write(cx, &data[..5000])), Ok(5000));
    // All are lost but the first 2000 bytes.
    assert!(payloads(&mut scene).len() >= 2);
    scene.acknowledge(2000);
    assert_eq!((scene.endpoint.acknowledged(), scene.endpoint.unacknowledged()), (2000, 3000), "without a poll");
    scene.user(|e, _| e.shrink(100));
    assert_eq!((before - scene.endpoint.memory(), scene.endpoint.writable()), (27_000 + 60_000 - 100, 0));
    scene.user(|e, _| e.shrink(4000));
    assert_eq!(before - scene.endpoint.memory(), 27_000 + 60_000 - 100, "nothing grows");
    assert_eq!(scene.user(|e, cx| e.write(cx, &data[5000..])), Ok(0));
    for (spare, capacity, writable) in [(1999, 5000, 0), (2000, 5000, 2000), (2000, 10, 2000)] {
        scene.user(|e, _| {
            e.spare(spare);
            e.grow_outgoing(capacity);
        });
        assert_eq!(scene.endpoint.writable(), writable, "{spare} spare bytes for {capacity}");
    }
    // What has grown is no longer spare.
    scene.user(|e, _| {
        e.spare(100);
        e.grow_outgoing(5060);
        e.grow_outgoing(5120);
    });
    assert_eq!(scene.endpoint.writable(), 2060);
    assert_eq!(scene.user(|e, cx| e.write(cx, &data[5000..])), Ok(2000));
    receive_all(&mut scene, 2000, 7000);
    assert_eq!(scene.endpoint.unacknowledged(), 0);
}

/// A program that has more to write waits until a third of the connection's buffer is free.
#[test]
fn a_full_connection_takes_no_small_pieces() {
    let mut scene = Scene::established(TcpConfig { send_buffer: Some(20_000), ..plain() });
    let data: Vec<u8> = (0..30_000).map(byte).collect();
    let written = scene.user(|e, cx| e.write(cx, &data)).expect("it is open") as u64;
    assert!(written < 30_000, "the ring would take all");
    // More than a third is free only when 22 000 bytes have been acknowledged.
    for (acknowledged, may_write) in [(14_600, false), (22_000, true)] {
        payloads(&mut scene);
        scene.acknowledge(acknowledged);
        assert_eq!(scene.endpoint.writable() > 0, may_write, "{acknowledged} of {written}");
    }
}

/// The receive buffer grows by as much as is spare, and not for what the connection refuses.
#[test]
fn a_receive_buffer_grows_as_it_may() {
    let mut peer = Peer::new(TcpConfig { receive_buffer: 20_011, ..plain() });
    peer.scene.user(|e, _| e.shrink(1000));
    let least = peer.scene.endpoint.memory();
    peer.send(0, 1000);
    peer.read(1000);
    peer.send(1000, 2000);
    assert_eq!((peer.scene.endpoint.readable(), peer.scene.endpoint.memory()), (1000, least), "a lap of the ring");
    // It doubles, or stays.
    peer.scene.user(|e, _| e.spare(999));
    peer.send(2000, 2001);
    assert_eq!((peer.scene.endpoint.readable(), peer.scene.endpoint.memory()), (1000, least));
    // 1500 bytes are left: too few to double again.
    peer.scene.user(|e, _| e.spare(2500));
    peer.send(2000, 2001);
    assert_eq!((peer.scene.endpoint.readable(), peer.scene.endpoint.memory()), (1001, least + 1000));
    peer.send(2001, 3400);
    assert_eq!(peer.scene.endpoint.readable(), 1001);
    let no_room = peer.scene.endpoint.no_room();
    peer.scene.user(|e, _| e.spare(1 << 20));
    let refused = Segment { ack: 500_000, ..at(FIRST_BYTE + 2001) };
    peer.scene.inject(refused, &[7; 1400]);
    assert_eq!((peer.scene.endpoint.memory(), peer.scene.endpoint.no_room()), (least + 1000, no_room));
    // A segment without text needs no room, wherever it stands.
    peer.scene.user(|e, cx| e.write(cx, &[1; 100])).expect("it is open");
    peer.scene.user(|e, _| e.spare(0));
    peer.scene.answers();
    peer.scene.inject(Segment { ack: 101, ..at(FIRST_BYTE + 9000) }, b"");
    assert_eq!(peer.scene.endpoint.unacknowledged(), 0);
    // It never exceeds the settings, and takes what fits of a segment that crosses the edge of the window.
    peer.scene.user(|e, _| e.spare(1 << 20));
    for start in (2001..21_011).step_by(1000) {
        let payload: Vec<u8> = (start..start + 1000).map(byte).collect();
        let answers = peer.scene.inject(Segment { ack: 101, ..at(FIRST_BYTE + start) }, &payload);
        peer.believe(&answers);
    }
    assert_eq!((peer.scene.endpoint.readable(), peer.scene.endpoint.memory()), (20_011, least + 19_011));
    peer.read(30_000);
    assert_eq!(peer.read, 21_011);
}

proptest! {
    #[test]
    fn what_was_acknowledged_arrives(
        (buffer, follows, scaled, timestamps) in (2000u32..90_000, any::<bool>(), any::<bool>(), any::<bool>()),
        steps in prop::collection::vec((0u8..12, any::<u16>(), any::<u16>()), 1..120),
    ) {
        let config = TcpConfig {
            receive_buffer: buffer,
            first_window: follows.then_some(buffer),
            window_follows: follows,
            gaps_take_room: follows,
            window_scaling: scaled,
            timestamps,
            ..plain()
        };
        let mut peer = Peer::new(config);
        for (step, a, b) in steps {
            let (a, b) = (u64::from(a), u64::from(b));
            match step {
                0..8 => {
                    let first = peer.acknowledged.iter().position(|is_there| !is_there).unwrap_or(0) as u64;
                    let edge = peer.edge.min(TOTAL);
                    let start = if step < 3 { first } else { first + a % edge.saturating_sub(first).max(1) };
                    let end = (start + 1 + b % 1400).min(edge);
                    if start < end {
                        peer.send(start, end);
                    }
                }
                8 | 9 => peer.read(1 + a as usize % 4000),
                10 => peer.scene.user(|e, _| e.shrink(1 + a as usize % 4000)),
                _ => peer.scene.user(|e, _| e.spare(a)),
            }
        }
        peer.finish();
    }
}
