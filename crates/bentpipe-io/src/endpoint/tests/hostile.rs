//! An endpoint against segments that must have no effect: forged, stale, duplicate, contradictory.
//!
//! The peer is the test itself, which writes any segment it likes. What an endpoint must refuse may change neither the bytes
//! that the user reads nor what later, genuine segments do.

use bentpipe_engine::tcp::{Flags, RtoConfig, SynOptions};

use super::scene::*;
use super::*;

/// A payload used to be stored before its segment was judged.
#[test]
fn a_refused_segment_overwrites_nothing() {
    let config = TcpConfig { timestamps: true, ..plain() };
    let mut scene = Scene::established(config);
    // "world" lies beyond a gap and has been SACKed.
    let sack = scene.inject(stamped(7, 1001), b"world");
    assert_eq!(sack[0].sack.iter(1).collect::<Vec<_>>(), [(7, 12)]);
    let forged = [
        ("ACK of what was never sent", Segment { ack: 500_000, ..stamped(7, 1002) }),
        ("ACK from long ago", Segment { ack: 1u64.wrapping_sub(1 << 30), ..stamped(7, 1002) }),
        ("old timestamp", stamped(7, 900)),
        ("no timestamp", at(7)),
        ("no ACK flag", Segment { flags: Flags::NONE, ..stamped(7, 1002) }),
        ("RST with text", Segment { flags: Flags::RST | ACK, ..stamped(7, 1002) }),
        ("SYN with text", Segment { flags: Flags::SYN | ACK, ..stamped(6, 1002) }),
        ("text that has come before", stamped(7, 1002)),
        ("text over both ends of it", stamped(6, 1002)),
    ];
    for (what, segment) in &forged[..8] {
        scene.inject(*segment, b"FORGE");
        assert_eq!(scene.read(), b"", "{what}");
    }
    // Genuine bytes around it fill the gap; what was SACKed stays as it was, whatever a copy of it says.
    scene.inject(stamped(1, 1003), b"hello FORGE!");
    assert_eq!(String::from_utf8(scene.read()), Ok("hello world!".into()));
    // Where a segment was refused for its ACK, its timestamp was not taken either: see below.
    assert_eq!(forged.len(), 9);
}

#[test]
fn a_segment_over_several_gaps_fills_only_these() {
    let mut scene = Scene::established(plain());
    for (seq, text) in [(3, b"cd"), (7, b"gh"), (11, b"kl")] {
        scene.inject(at(seq), text);
    }
    let ack = scene.inject(at(1), b"abXXefYYijZZmn");
    assert_eq!(scene.read(), b"abcdefghijklmn");
    //= RFC 2883 §4: of several duplicate parts the first is reported
    assert_eq!((ack[0].ack, ack[0].sack.iter(15).collect::<Vec<_>>()), (15, vec![(3, 5)]));
}

/// A second FIN used to deliver a byte that nobody had sent.
#[test]
fn a_second_fin_is_no_byte() {
    let mut scene = Scene::established(plain());
    let fin = |seq| Segment { flags: Flags::FIN | ACK, ..at(seq) };
    scene.inject(fin(1), b"end");
    assert_eq!((scene.state(), scene.endpoint.connection().received()), (State::CloseWait, 3));
    for seq in [5, 6, 4, 1000] {
        let answer = scene.inject(fin(seq), b"");
        assert_eq!(answer.iter().map(|a| a.ack).collect::<Vec<_>>(), [5], "a FIN at {seq}");
    }
    scene.inject(at(5), b"more");
    assert_eq!((scene.endpoint.connection().received(), scene.read()), (3, b"end".to_vec()));
    // The same in TIME-WAIT, where each is acknowledged.
    scene.user(|e, cx| e.close(cx));
    scene.answers();
    scene.inject(Segment { ack: 2, ..at(5) }, b"");
    assert_eq!(scene.state(), State::Closed);
}

#[test]
fn time_wait_acknowledges_a_fin_and_gives_no_byte() {
    let mut scene = Scene::established(TcpConfig { time_wait: Duration::from_secs(60), ..plain() });
    scene.inject(at(1), b"abc");
    scene.user(|e, cx| e.close(cx));
    scene.answers();
    let fin = |seq| Segment { ack: 2, flags: Flags::FIN | ACK, ..at(seq) };
    scene.inject(fin(4), b"");
    assert_eq!(scene.state(), State::TimeWait);
    for seq in [2, 4, 5, 6] {
        let answer = scene.inject(fin(seq), b"");
        assert_eq!(answer.iter().map(|a| a.ack).collect::<Vec<_>>(), [5], "a FIN at {seq}");
    }
    assert_eq!(scene.endpoint.connection().received(), 3);
    // Only the repetition of the FIN restarts the wait: strays do not keep the connection.
    scene.now += Duration::from_secs(59);
    scene.inject(fin(2), b"");
    scene.inject(fin(5), b"");
    scene.now += Duration::from_secs(2);
    scene.answers();
    assert_eq!(scene.state(), State::Closed);
}

/// Data queued beyond a FIN used to make the FIN be skipped.
#[test]
fn a_fin_ends_the_stream_where_it_stands() {
    let fin = |seq| Segment { flags: Flags::FIN | ACK, ..at(seq) };
    // The FIN first, then text that claims to lie behind it.
    let mut scene = Scene::established(plain());
    scene.inject(fin(4), b"def");
    scene.inject(fin(9), b"");
    scene.inject(at(6), b"XYZ");
    scene.inject(at(1), b"abcdeXYZ");
    assert_eq!((scene.read(), scene.state()), (b"abcdef".to_vec(), State::CloseWait));
    // The text first: a FIN before it, out of order, contradicts what has been SACKed, and one in order counts.
    let mut scene = Scene::established(plain());
    scene.inject(at(7), b"XYZ");
    scene.inject(fin(4), b"def");
    assert_eq!(scene.state(), State::Established);
    scene.inject(at(1), b"abc");
    scene.inject(fin(7), b"");
    assert_eq!(scene.endpoint.connection().received(), 9, "everything was there already");
}

/// One SYN|RST used to teach the wrong initial sequence number.
#[test]
fn a_refused_syn_teaches_nothing() {
    let mut scene = Scene::connecting(plain());
    let genuine = scene.wire;
    for flags in [Flags::SYN | Flags::RST, Flags::SYN | Flags::RST | ACK, Flags::SYN | ACK] {
        scene.wire.iss = bentpipe_engine::wire::seq::Numbering::from_isn(123_456);
        // The third acknowledges data that was not sent.
        scene.inject(Segment { ack: if flags == Flags::SYN | ACK { 2 } else { 3 }, ..Segment::new(flags) }, b"");
        assert_eq!(scene.state(), State::SynSent, "{flags:?}");
    }
    scene.wire = genuine;
    let answer = scene.inject(Segment { ack: 1, window: 60_000, ..Segment::new(Flags::SYN | ACK) }, b"");
    assert_eq!((scene.state(), answer[0].ack), (State::Established, 1));
}

/// TS.Recent used to be taken from segments that were then refused.
#[test]
fn a_refused_segment_leaves_ts_recent() {
    let mut scene = Scene::established(TcpConfig { timestamps: true, ..plain() });
    scene.inject(Segment { ack: 999_999, flags: Flags::FIN | ACK, ..stamped(1, 2_000_000) }, b"");
    scene.inject(Segment { flags: Flags::NONE, ..stamped(1, 2_000_000) }, b"x");
    let answer = scene.inject(stamped(1, 1001), b"genuine");
    assert_eq!(scene.read(), b"genuine");
    assert_eq!(answer.last().and_then(|a| a.timestamps).map(|t| t.echo), Some(1001));
}

/// Bytes written after CLOSE used to get the numbers behind the FIN.
#[test]
fn nothing_is_written_behind_a_close() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.user(|e, cx| e.write(cx, b"all")), Ok(3));
    scene.user(|e, cx| e.close(cx));
    assert_eq!(scene.user(|e, cx| e.write(cx, b"more")), Err(Closing));
    let sent: u64 = scene.answers().iter().map(|s| s.sequence_len()).sum();
    assert_eq!(sent, 4, "three bytes and a FIN");
    assert_eq!(scene.endpoint.unacknowledged(), 3);
    scene.user(|e, cx| e.abort(cx));
    assert_eq!(scene.user(|e, cx| e.write(cx, b"more")), Err(Closing));
}

/// After 24 days TS.Recent is out of date (RFC 7323 §5.5).
#[test]
fn an_idle_connection_outlives_the_timestamp_clock() {
    let day = Duration::from_secs(24 * 3600);
    let mut scene = Scene::established(TcpConfig { timestamps: true, ..plain() });
    let later = |days: u32| 1000u32.wrapping_add(days * 24 * 3600 * 1000);
    // The peer's clock of 1 ms has gone half round the circle: its value is older than TS.Recent, modulo 2^32.
    scene.now += day.saturating_mul(23);
    scene.inject(stamped(1, later(25)), b"early");
    assert_eq!(scene.read(), b"", "within 24 days it is refused");
    scene.now += day.saturating_mul(2);
    scene.inject(stamped(1, later(25)), b"late");
    assert_eq!(scene.read(), b"late");
}

/// The option in our SYN is what lets the peer scale, also if our own shift is 0 (RFC 7323 §2.2).
#[test]
fn a_small_buffer_lets_the_peer_scale() {
    let config = TcpConfig { window_scaling: true, ..plain() };
    let mut scene = Scene::listening(config);
    let syn = SynOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: false };
    let answer = scene.inject(Segment { syn, window: 60_000, ..Segment::new(Flags::SYN) }, b"");
    assert_eq!(answer[0].syn.window_scale, Some(0));
    scene.wire.our_scale = Some(7);
    scene.inject(Segment { window: 1 << 20, ..at(1) }, b"");
    assert_eq!(scene.user(|e, cx| e.write(cx, &[0; 30_000])), Ok(30_000));
    // Without the option in the request there is none in the answer.
    let mut scene = Scene::listening(config);
    let answer = scene.inject(Segment { window: 60_000, ..Segment::new(Flags::SYN) }, b"");
    assert_eq!(answer[0].syn.window_scale, None);
}

/// RFC 7323 §3.2.
#[test]
fn timestamps_once_agreed_are_in_every_segment() {
    let mut scene = Scene::established(TcpConfig { timestamps: true, ..plain() });
    assert_eq!(scene.inject(at(1), b"bare"), [], "silently dropped");
    assert_eq!(scene.read(), b"");
    scene.inject(stamped(1, 1001), b"good");
    assert_eq!(scene.read(), b"good");
    scene.user(|e, cx| e.abort(cx));
    let reset = scene.answers();
    assert_eq!((reset[0].flags.has(Flags::RST), reset[0].timestamps.map(|t| t.echo)), (true, Some(1001)));
    // A reset needs none (RFC 7323 §3.2: "in every non-<RST> segment").
    let mut scene = Scene::established(TcpConfig { timestamps: true, ..plain() });
    scene.inject(Segment { flags: Flags::RST, ..at(1) }, b"");
    assert_eq!(scene.endpoint.outcome(), Some(Err(Abort::Reset)));
}

/// RFC 9293 §3.7.1, MUST-15.
#[test]
fn without_an_mss_option_ipv6_assumes_1220() {
    let largest = |local: &str, remote: &str| {
        let (local, remote): (SocketAddr, SocketAddr) = (local.parse().unwrap(), remote.parse().unwrap());
        let mut cx = Context::silent(Time::ZERO);
        let endpoint = Endpoint::open(&mut cx, plain(), local, Peer::Connect(remote), 30_000);
        let mut scene = Scene { now: Time::ZERO, endpoint, wire: peer_wire(remote, local) };
        scene.answers();
        scene.inject(Segment { ack: 1, window: 60_000, ..Segment::new(Flags::SYN | ACK) }, b"");
        scene.user(|e, cx| e.write(cx, &[0; 5000])).expect("it is open");
        scene.answers().iter().map(|s| s.len).max()
    };
    assert_eq!(largest("192.0.2.1:1", "192.0.2.2:2"), Some(536));
    assert_eq!(largest("[2001:db8::1]:1", "[2001:db8::2]:2"), Some(1220));
}

#[test]
fn a_reset_of_a_handshake_returns_to_listen() {
    let mut scene = Scene::listening(plain());
    scene.inject(Segment { window: 1000, ..Segment::new(Flags::SYN) }, b"");
    assert_eq!(scene.state(), State::SynReceived);
    scene.inject(Segment { flags: Flags::RST, ..at(1) }, b"");
    assert_eq!((scene.state(), scene.endpoint.outcome()), (State::Listen, None));
    // Another client, with other numbers, is served.
    scene.wire = peer_wire(SocketAddr::from(([192, 0, 2, 9], 5555)), SocketAddr::from(SERVER));
    let answer = scene.inject(Segment { window: 1000, ..Segment::new(Flags::SYN) }, b"");
    assert_eq!(answer[0].flags, Flags::SYN | ACK);
    scene.inject(at(1), b"hello");
    assert_eq!((scene.state(), scene.read()), (State::Established, b"hello".to_vec()));
}

/// Nobody answers the SYN-ACK. Linux's listener gives it up at the sixth timeout, and serves the next client.
#[test]
fn an_unanswered_handshake_returns_to_listen() {
    let mut scene = Scene::listening(TcpConfig { rto: RtoConfig::LINUX, ..plain() });
    scene.inject(Segment { window: 1000, ..Segment::new(Flags::SYN) }, b"");
    let again: usize = (0..70)
        .map(|second| {
            scene.now = Time::ZERO + Duration::from_secs(second);
            scene.answers().len()
        })
        .sum();
    assert_eq!((again, scene.state(), scene.endpoint.outcome()), (5, State::Listen, None));
    scene.wire = peer_wire(SocketAddr::from(([192, 0, 2, 9], 5555)), SocketAddr::from(SERVER));
    let answer = scene.inject(Segment { window: 1000, ..Segment::new(Flags::SYN) }, b"");
    assert_eq!(answer.first().map(|answer| answer.flags), Some(Flags::SYN | ACK));
    scene.inject(at(1), b"hello");
    assert_eq!((scene.state(), scene.read()), (State::Established, b"hello".to_vec()));
}

#[test]
fn a_repeated_syn_gets_the_syn_ack_again() {
    let mut scene = Scene::listening(plain());
    let syn = Segment { window: 1000, ..Segment::new(Flags::SYN) };
    let first = scene.inject(syn, b"");
    let second = scene.inject(syn, b"");
    assert_eq!((first[0].flags, &first), (Flags::SYN | ACK, &second));
    // The answers are limited: a flood is answered like challenge ACKs.
    let answers: usize = (0..1000).map(|_| scene.inject(syn, b"").len()).sum();
    assert!(answers < 100, "{answers}");
}

#[test]
fn text_and_end_of_a_syn_are_kept() {
    for flags in [Flags::SYN | Flags::PSH, Flags::SYN | Flags::FIN] {
        let mut scene = Scene::listening(plain());
        let answer = scene.inject(Segment { window: 1000, ..Segment::new(flags) }, b"early");
        // RFC 9293 §3.10.7.2: the SYN-ACK acknowledges the SYN; the rest is "queued for processing later".
        assert_eq!((answer[0].flags, answer[0].ack), (Flags::SYN | ACK, 1), "{flags:?}");
        assert_eq!(scene.read(), b"", "not before the handshake is done");
        let answer = scene.inject(at(6 + flags.has(Flags::FIN) as u64), b"");
        let fin = flags.has(Flags::FIN);
        assert_eq!((scene.read(), scene.endpoint.peer_has_closed()), (b"early".to_vec(), fin));
        assert_eq!(answer[0].ack, 6 + u64::from(fin));
    }
}

#[test]
fn a_window_that_rounding_hid_is_announced() {
    // A shift of 11: room for one segment is offered as none.
    let config = TcpConfig { receive_buffer: 64 << 20, window_scaling: true, mss: 1000, ..plain() };
    let mut scene = Scene::connecting(config);
    let syn = SynOptions { mss: Some(1000), window_scale: Some(0), sack_permitted: false };
    scene.inject(Segment { ack: 1, syn, window: 60_000, ..Segment::new(Flags::SYN | ACK) }, b"");
    let mut seq = 1;
    let last = loop {
        let answer = scene.inject(at(seq), &[7; 1000]);
        seq += 1000;
        if let Some(ack) = answer.last().filter(|ack| ack.window == 0) {
            break *ack;
        }
    };
    let room = u64::from(config.receive_buffer) - (last.ack - 1);
    assert!((1000..2048).contains(&room), "room for a segment is rounded down to nothing");
    let mut data = [0; 100];
    scene.user(|e, cx| e.read(cx, &mut data));
    assert_eq!(scene.answers(), [], "what still rounds to nothing is not said");
    let mut data = [0; 2500];
    scene.user(|e, cx| e.read(cx, &mut data));
    let update = scene.answers();
    assert!(update.last().is_some_and(|ack| ack.window >= 1000), "{update:?}");
}

/// Ranges beyond gaps are bounded, and count as memory.
#[test]
fn ranges_beyond_gaps_are_bounded() {
    let mut scene = Scene::established(TcpConfig { receive_buffer: 65_000, ..plain() });
    let before = scene.endpoint.memory();
    for i in 0..30_000 {
        scene.inject(at(3 + 2 * i), b"x");
    }
    let more = scene.endpoint.memory() - before;
    assert!((1..=4096).contains(&more), "{more} bytes for 30 000 gaps");
    assert_eq!(scene.endpoint.connection().beyond_gaps(), 64, "the rest is as lost");
    // Dropped data is sent again, and the stream is complete.
    for i in 0..60 {
        scene.inject(at(1 + 1000 * i), &[b'x'; 1000]);
    }
    assert_eq!(scene.endpoint.readable(), 60_000);
}
