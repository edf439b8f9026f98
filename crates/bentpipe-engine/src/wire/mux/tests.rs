use proptest::prelude::*;

use super::*;

fn v4() -> Route {
    Route { source: ([192, 0, 2, 1], 40_000).into(), destination: ([198, 51, 100, 7], 80).into() }
}

fn written(message: &Message, body: &[u8]) -> Vec<u8> {
    let mut out = [0; 2000];
    let len = emit(message, &[body], &mut out).expect("it fits");
    out[..len].to_vec()
}

/// The bytes of `docs/specs/mux.md`.
#[test]
fn each_message_byte_by_byte() {
    let stream = StreamId(6);
    let open = Message::Open { stream, route: v4(), credit: 16_384, len: 2 };
    let cases: [(Message, &[u8], &[u8]); 6] = [
        (Message::Hello { credit: 100, streams: 7 }, b"", &[0, 1, 0x40, 100, 7]),
        (open, b"hi", &[1, 6, 4, 192, 0, 2, 1, 0x9c, 0x40, 198, 51, 100, 7, 0, 80, 0x80, 0, 0x40, 0, b'h', b'i']),
        (Message::Data { stream, offset: 64, len: 1, last: false }, b"x", &[2, 6, 0x40, 64, b'x']),
        (Message::Data { stream, offset: 0, len: 0, last: true }, b"", &[3, 6, 0]),
        (Message::Credit { stream, limit: 1 }, b"", &[4, 6, 1]),
        (Message::Reset { stream, reason: Reason::Refused }, b"", &[5, 6, 1]),
    ];
    for (message, body, expected) in cases {
        assert_eq!(written(&message, body), expected);
        assert_eq!(len(&message), Some(expected.len()), "{message:?}");
        assert_eq!(parse(expected), Ok((message, expected.len() - body.len()..expected.len())));
        for short in 0..expected.len() - body.len() {
            assert!(parse(&expected[..short]).is_err(), "{short} bytes of {message:?}");
        }
    }
}

#[test]
fn what_is_refused() {
    assert_eq!(parse(&[0, 2, 0, 0]), Err(MuxError::Version(2)));
    assert_eq!(parse(&[9, 0]), Err(MuxError::Type(9)));
    assert_eq!(parse(&[1, 0, 5, 0]), Err(MuxError::Family(5)));
    assert_eq!(parse(&[5, 0, 99]), Err(MuxError::Reason(99)));
    let many = [&[0, 1, 0][..], &(0xc000_0001_0000_0000_u64).to_be_bytes()].concat();
    assert_eq!(parse(&many), Err(MuxError::Streams(1 << 32)));
    assert_eq!(parse(&[2, 0, 0]), Err(MuxError::Length(0)), "data without data");
    assert_eq!(parse(&[4, 0, 0, 1]), Err(MuxError::Length(1)), "bytes behind a credit");
    let beyond = [&[2, 0][..], &[0xff; 8], b"x"].concat();
    assert_eq!(parse(&beyond), Err(MuxError::Offset(varint::MAX + 1)));
    let mixed = Route { source: ([1; 16], 1).into(), ..v4() };
    let open = Message::Open { stream: StreamId(0), route: mixed, credit: 0, len: 0 };
    assert!(matches!(emit(&open, &[], &mut [0; 100]), Err(EmitError::NotInProtocol(_))));
    let data = Message::Data { stream: StreamId(0), offset: 0, len: 2, last: false };
    assert_eq!(emit(&data, &[b"x"], &mut [0; 100]), Err(EmitError::PayloadLength { expected: 2, have: 1 }));
    for room in 0..5 {
        assert!(matches!(emit(&data, &[b"xy"], &mut vec![0; room]), Err(EmitError::NoRoom { .. })), "{room}");
    }
}

proptest! {
    /// Whatever is taken has one form.
    #[test]
    fn there_is_one_form(kind in 0u8..6, rest in prop::collection::vec(any::<u8>(), 0..80)) {
        let form = [&[kind][..], &rest].concat();
        if let Ok((message, body)) = parse(&form) {
            prop_assert_eq!(written(&message, &form[body]), form);
        }
    }

    #[test]
    fn open_of_version_6(source: [u8; 16], destination: [u8; 16], ports: [u16; 2], credit in 0..varint::MAX) {
        let route = Route { source: (source, ports[0]).into(), destination: (destination, ports[1]).into() };
        let open = Message::Open { stream: StreamId(1), route, credit, len: 3 };
        let form = written(&open, b"abc");
        prop_assert!(form.len() <= MAX_HEADER + 3);
        prop_assert_eq!(parse(&form), Ok((open, form.len() - 3..form.len())));
    }
}
