//! Packets in the store, and what a link layer reads of them.

use super::*;

#[test]
fn a_parcel_is_small() {
    // Rings hold parcels by value, so their size is the cost of a hop.
    assert_eq!((size_of::<Parcel>(), size_of::<Head>()), (12, 32));
}

/// Marks that an ACK echoes do not make it anything else, but it is not replaced by a later one.
#[test]
fn a_bare_ack_may_echo_marks() {
    let ack = |flags, len| {
        let mut store = Store::default();
        let segment = Segment { len, ..Segment::new(flags) };
        let end = Packet { connection: ConnectionId(1), forward: true, wire_len: 40, body: Body::Tcp(segment) }.from();
        let parcel = store.put_segment(end, 40, &segment);
        (store.is_bare_ack(parcel), store.acknowledges(parcel).is_some())
    };
    assert_eq!(ack(Flags::ACK, 0), (true, true));
    for echo in [Flags::ECE, Flags::CWR | Flags::ECE, Flags::AE | Flags::ECE] {
        assert_eq!(ack(Flags::ACK | echo, 0), (true, false), "{echo:?}");
    }
    assert_eq!([ack(Flags::ACK, 1), ack(Flags::ACK | Flags::FIN, 0)], [(false, false); 2]);
}

#[test]
fn a_stored_packet_is_read_back() {
    let mut sack = SackBlocks::NONE;
    sack.push(100, 200, 300);
    let mut plain = Segment::new(Flags::ACK | Flags::PSH);
    (plain.seq, plain.ack, plain.window, plain.len) = (1, 100, 65535, 1460);
    let marked = Segment { ecn: Ecn::Ect0, ..plain };
    let rich = Segment { timestamps: Some(Timestamps { value: 1, echo: 2 }), sack, ..plain };
    let mut syn = Segment::new(Flags::SYN);
    syn.syn = SynOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: true };
    let bodies = [Body::Tcp(plain), Body::Tcp(rich), Body::Udp(7), Body::Tcp(syn), Body::Tcp(marked)];
    let mut store = Store::default();
    for round in 0..3 {
        let forward = |body: &Body| round != 1 || matches!(body, Body::Udp(_));
        let packets = bodies.map(|body| Packet {
            connection: ConnectionId(round),
            forward: forward(&body),
            wire_len: 40 + round,
            body,
        });
        let parcels = packets.each_ref().map(|packet| match &packet.body {
            Body::Udp(number) => store.put_datagram(packet.connection, packet.wire_len, *number, Time::ZERO),
            Body::Tcp(segment) => store.put_segment(packet.from(), packet.wire_len, segment),
            Body::Quic(_) => unreachable!("none of these"),
        });
        assert_eq!(parcels.map(|parcel| store.get(parcel)), packets);
        assert_eq!(parcels.map(|parcel| parcel.from()), packets.each_ref().map(Packet::from));
        assert_eq!(parcels.map(|parcel| parcel.is_ect()), [false, false, false, false, true]);
        assert_eq!((store.plain_segment(parcels[0]), store.plain_segment(parcels[4])), (Some(plain), None));
        let marked = store.mark(parcels[4]);
        assert_eq!((marked.ecn(), marked.slot()), (Ecn::Ce, parcels[4].slot()));
        assert_eq!(store.segment(parcels[4]), Segment { ecn: Ecn::Ce, ..plain });
        // Freed in a different order, the slots mix.
        for n in [3, 0, 4, 2, 1] {
            store.release(parcels[n]);
        }
    }
    // All five packets went forward, and the four segments backward.
    assert_eq!(store.heads.len(), 5 + 4);
}
