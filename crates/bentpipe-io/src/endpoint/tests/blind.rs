//! An adversary who does not see the packets.

use bentpipe_engine::tcp::{Flags, Timestamps};

use super::scene::*;
use super::*;

/// Numbers without a visible period, the same in each run (xorshift, Marsaglia 2003).
fn chance() -> impl FnMut() -> u64 {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x >> 8
    }
}

/// The state that each scene is in, with the scene: the peer has sent `ab`, the user `xy`.
fn in_every_state(config: TcpConfig) -> Vec<Scene> {
    let timestamps = config.timestamps.then_some(Timestamps { value: 1000, echo: 0 });
    let fin = |seq, ack| Segment { timestamps, ack, flags: Flags::FIN | ACK, ..at(seq) };
    let listening = || {
        let mut scene = Scene::listening(config);
        scene.inject(Segment { timestamps, window: 60_000, ..Segment::new(Flags::SYN) }, b"");
        scene
    };
    let flowing = || {
        let mut scene = Scene::established(config);
        scene.inject(Segment { timestamps, ..at(1) }, b"ab");
        scene.user(|e, cx| e.write(cx, b"xy")).expect("it is open");
        scene.answers();
        scene
    };
    let closing = || {
        let mut scene = flowing();
        scene.user(|e, cx| e.close(cx));
        scene.answers();
        scene
    };
    let with = |mut scene: Scene, segment| {
        scene.inject(segment, b"");
        scene
    };
    let last_ack = || {
        let mut scene = with(flowing(), fin(3, 3));
        scene.user(|e, cx| e.close(cx));
        scene.answers();
        scene
    };
    vec![
        Scene::connecting(config),
        listening(),
        flowing(),
        closing(),
        with(closing(), Segment { timestamps, ack: 4, ..at(3) }),
        with(flowing(), fin(3, 3)),
        with(closing(), fin(3, 3)),
        last_ack(),
        with(closing(), fin(3, 4)),
    ]
}

/// An adversary who does not see the packets sends RSTs, SYNs, FINs and text with numbers by chance. None ends a connection,
/// changes its state, or brings a byte.
///
/// He is excluded where he hits. A RST must have the one number RCV.NXT (RFC 5961 §3.2): 10 000 of them hit with a probability
/// of 10 000 / 2^32 = 2.3e-6. A FIN or text must lie in the window of 60 000 bytes, and its ACK within 60 000 below what was
/// sent (§5.2): (60 000 / 2^32)^2 each, 2e-6 for 10 000. A window of 1 GB makes that a quarter of a quarter: only timestamps
/// and the secrecy of ports protect such connections. Before a connection knows its peer's numbers there are fewer: SYN-SENT
/// takes a bare SYN of any number (RFC 9293 §3.5, simultaneous open), and anything with the ACK of its own SYN, 2.3e-6 again.
#[test]
fn blind_segments_end_nothing() {
    let mut next = chance();
    let mut states = Vec::new();
    for timestamps in [false, true] {
        for mut scene in in_every_state(TcpConfig { timestamps, ..plain() }) {
            let connection = scene.endpoint.connection();
            let (state, rcv_nxt, snd_una) = (connection.state(), connection.rcv_nxt(), connection.snd_una());
            let before = (state, rcv_nxt, snd_una, connection.received(), connection.acknowledged());
            states.push(state);
            let kinds = [Flags::RST, Flags::RST | ACK, Flags::SYN, Flags::SYN | ACK, Flags::FIN | ACK, ACK];
            let (mut sent, mut hits) = (0, 0);
            for n in 0..10_000 {
                let flags = kinds[n % kinds.len()];
                // The numbers as distances from those that count, each of 2^32 as likely as any other.
                let (seq, ack) = (next() as u32 as i32, next() as u32 as i32);
                let hit = match state {
                    State::SynSent if flags == Flags::SYN => continue,
                    State::SynSent => ack == 1,
                    _ if flags.has(Flags::RST) => seq == 0,
                    _ if flags.has(Flags::SYN) => false,
                    _ => (-8..60_000).contains(&seq) && (-60_000..8).contains(&ack),
                };
                if hit {
                    hits += 1;
                    continue;
                }
                let place = |from: u64, by: i32| from.wrapping_add_signed(by.into());
                let mut segment = Segment { flags, ..at(place(rcv_nxt, seq)) };
                segment.ack = place(snd_una, ack);
                // A clock of the right time is no secret.
                segment.timestamps = timestamps.then_some(Timestamps { value: 2000, echo: 0 });
                let text: &[u8] = if flags == ACK { b"forged" } else { b"" };
                // Each of them some time after the one before, so that no limit of answers hides anything.
                scene.now += Duration::from_micros(50);
                scene.inject(segment, text);
                sent += 1;
                let connection = scene.endpoint.connection();
                let after = (connection.state(), connection.rcv_nxt(), connection.snd_una());
                let bytes = (connection.received(), connection.acknowledged());
                assert_eq!((after.0, after.1, after.2, bytes.0, bytes.1), before, "{segment:?}");
            }
            assert!(sent > 8000 && hits <= 1, "{state:?}: {sent} sent, {hits} hits");
            assert_eq!(scene.endpoint.outcome(), None, "{state:?}");
        }
    }
    let every = [
        State::SynSent,
        State::SynReceived,
        State::Established,
        State::FinWait1,
        State::FinWait2,
        State::CloseWait,
        State::Closing,
        State::LastAck,
        State::TimeWait,
    ];
    assert_eq!(states, [every, every].concat());
}
