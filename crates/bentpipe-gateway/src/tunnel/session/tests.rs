use super::super::keys::{PresharedKey, PrivateKey};
use super::super::noise::{PATTERN, Parties};
use super::super::packet::classify;
use super::*;

const KINDS: [What; 4] = [What::Frame, What::Part, What::Probe, What::Ack];

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// Both ends of a session that begins at 1000 s. The first has made it.
fn pair() -> [Session; 2] {
    let keys = [PrivateKey::generate(), PrivateKey::generate()];
    let peer = keys[1].public();
    let preshared = PresharedKey::none();
    let parties = |end: usize| Parties {
        pattern: PATTERN,
        prologue: b"",
        private: &keys[end],
        peer: (end == 0).then_some(&peer),
        preshared: Some(&preshared),
        ephemeral: None,
    };
    let mut ends = [0, 1].map(|end| Handshake::new(&parties(end)));
    for (from, to) in [(0, 1), (1, 0)] {
        let mut message = [0; 200];
        let length = ends[from].write(b"", &mut message).expect("it is its turn");
        assert_eq!(ends[to].read(&message[..length], &mut [0; 200]), Some(0));
    }
    let [first, second] = ends;
    let cipher = Cipher::ChaCha20Poly1305;
    [Session::new(7, 8, true, first, cipher, at(1000)), Session::new(8, 7, false, second, cipher, at(1000))]
}

/// The datagram, and the part of its number that is sent.
fn seal(session: &mut Session, what: What, payload: &[u8]) -> Option<(Vec<u8>, u32)> {
    let mut out = [0; 200];
    out[DATA_HEADER..][..payload.len()].copy_from_slice(payload);
    let length = session.seal(what, payload.len(), &mut out)?;
    let datagram = out[..length].to_vec();
    match classify(&datagram) {
        Some(Kind::Data { what: kind, receiver, number }) if (kind, receiver) == (what, session.theirs) => {
            Some((datagram, number))
        }
        other => panic!("{other:?}"),
    }
}

/// The payload, and whether no later datagram has arrived.
fn open(session: &mut Session, what: What, (datagram, number): &(Vec<u8>, u32)) -> Option<(Vec<u8>, bool)> {
    let mut datagram = datagram.clone();
    let (payload, is_newest) = session.open(what, *number, &mut datagram)?;
    Some((datagram[payload].to_vec(), is_newest))
}

/// The first byte of a datagram says its kind. An attacker who changes it must not turn a probe into data.
#[test]
fn no_kind_passes_for_another() {
    for sealed in KINDS {
        for opened in KINDS {
            let [mut a, mut b] = pair();
            let datagram = seal(&mut a, sealed, b"text").expect("there is room");
            let expected = (sealed == opened).then(|| (b"text".to_vec(), true));
            assert_eq!(open(&mut b, opened, &datagram), expected, "{sealed:?} as {opened:?}");
        }
    }
}

/// Half of the number is sent. The other half follows from the highest number so far.
#[test]
fn numbers_go_on_beyond_32_bits() {
    let [mut a, mut b] = pair();
    for start in [0, (1 << 32) - 2, (1 << 33) - 1, (5 << 32) + 7] {
        a.next = start;
        // Distances of up to half of the sent number are understood.
        start.checked_sub(1 << 30).map(|before| b.replay.note(before));
        let sealed: Vec<_> = (0..4u8).map(|n| seal(&mut a, What::Frame, &[n]).expect("there is room")).collect();
        let numbers: Vec<_> = sealed.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, [0, 1, 2, 3].map(|n| (start + n) as u32), "one after the other");
        for (n, is_newest) in [(1, true), (0, false), (3, true), (2, false)] {
            assert_eq!(open(&mut b, What::Frame, &sealed[n as usize]), Some((vec![n], is_newest)), "{start} + {n}");
            assert_eq!(open(&mut b, What::Frame, &sealed[n as usize]), None, "twice");
        }
    }
}

/// No number is used twice under one key, and none that Noise reserves.
#[test]
fn a_session_has_a_last_number() {
    let [mut a, mut b] = pair();
    (a.next, b.replay) = (MAX_NUMBER - 1, Replay::new());
    b.replay.note(MAX_NUMBER - 2);
    let last = seal(&mut a, What::Frame, b"last").expect("it may");
    assert_eq!(seal(&mut a, What::Frame, b"more"), None);
    assert_eq!(open(&mut b, What::Frame, &last), Some((b"last".to_vec(), true)));
    // A peer that goes on is not understood.
    let mut beyond = vec![0; DATA_OVERHEAD];
    let (header, body) = beyond.split_at_mut(DATA_HEADER);
    header[0] = What::Frame.code();
    a.seals.seal(MAX_NUMBER, &[], body).expect("there is room");
    assert_eq!(open(&mut b, What::Frame, &(beyond, MAX_NUMBER as u32)), None);
}

#[test]
fn a_datagram_without_room_takes_no_number() {
    let [mut a, _] = pair();
    assert_eq!(a.seal(What::Frame, 10, &mut [0; DATA_OVERHEAD + 9]), None);
    assert_eq!(seal(&mut a, What::Frame, b"").map(|(_, number)| number), Some(0));
}

/// WireGuard §6.2: the initiator makes new keys after 120 s. Here the responder does it after 150 s.
#[test]
fn keys_age() {
    let [mut a, b] = pair();
    assert_eq!([a.old_at(), b.old_at()], [at(1120), at(1150)]);
    assert_eq!([a.void_at(), b.void_at()], [at(1240), at(1240)]);
    // Half of the numbers leaves enough of them for the handshake.
    a.next = MAX_NUMBER / 2 - 1;
    assert_eq!(a.old_at(), at(1120));
    seal(&mut a, What::Frame, b"").expect("there is room");
    assert_eq!((a.old_at(), a.void_at()), (Time::ZERO, at(1240)));
}
