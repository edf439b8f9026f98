use proptest::prelude::*;

use super::super::cell::CELL;
use super::*;

const CHANNEL: Header = Header::user(0, 100, false);

fn cut(packet: &[u8]) -> Vec<Cell> {
    segment(CHANNEL, &[packet]).expect("a length that fits").collect()
}

/// The packets from the arriving cells; cells with a damaged header do not arrive.
fn together(cells: impl IntoIterator<Item = Cell>) -> Vec<Result<Vec<u8>, Aal5Error>> {
    let mut reassembler = Reassembler::new();
    let mut out = Vec::new();
    for cell in cells {
        let Ok((Header { payload: PayloadType::User { last, .. }, .. }, payload)) = Header::of(&cell) else { continue };
        match reassembler.push(payload, last) {
            Ok(None) => {}
            Ok(Some(packet)) => out.push(Ok(packet.to_vec())),
            Err(error) => out.push(Err(error)),
        }
    }
    out
}

#[test]
fn crc_of_the_examples_in_i_363_5() {
    assert_eq!(CRC.checksum(b"123456789"), 0xfc89_1918, "the catalogue's check value");
    // I.363.5 appendix (examples of AAL type 5 CPCS-PDUs): 40 octets, UU and CPI 0, one cell.
    let counting: Vec<u8> = (1..=40).collect();
    for (packet, crc) in [(&[0; 40][..], 0x864d_7f99u32), (&[0xff; 40], 0xc55e_457a), (&counting, 0xbf67_1ed0)] {
        let [cell] = cut(packet)[..] else { panic!("one cell") };
        assert_eq!(cell[HEADER..][..40], *packet);
        assert_eq!(cell[HEADER..][40..44], [0, 0, 0, 40]);
        assert_eq!(cell[HEADER..][44..], crc.to_be_bytes());
    }
}

#[test]
fn cells_by_hand() {
    // Trailer and 40 bytes fill one cell; a byte more takes another.
    assert_eq!([1, 40, 41, 88, 89].map(cells), [1, 1, 2, 2, 3]);
    assert_eq!([1, 40, 41].map(padding), [39, 0, 47]);
    // A datagram of 9180 bytes with its LLC/SNAP header: (9180 + 8 + 8) / 48 = 191.6. A bare ACK of 40: 56 / 48.
    assert_eq!((cells(9188), cells(48)), (192, 2));
    assert_eq!((line_bytes(9180), line_bytes(40)), (192 * 53, 2 * 53));
    assert_eq!(cells(MAX_SDU), 1366);
}

#[test]
fn lengths_at_the_bounds() {
    for length in [1, 40, 41, MAX_SDU] {
        let packet = vec![0x5a; length];
        assert_eq!(together(cut(&packet)), [Ok(packet)]);
    }
    let too_long = vec![0; MAX_SDU + 1];
    for bad in [&[][..], &too_long] {
        assert_eq!(segment(CHANNEL, &[bad]).err(), Some(Aal5Error::Length(bad.len())));
    }
}

/// A PDU with a right CRC and any length field.
fn with_length(count: usize, length: u16) -> Vec<Cell> {
    let mut body = vec![0; count * PAYLOAD];
    let end = body.len();
    body[end - 6..end - 4].copy_from_slice(&length.to_be_bytes());
    let crc = CRC.checksum(&body[..end - 4]);
    body[end - 4..].copy_from_slice(&crc.to_be_bytes());
    let cell = |(n, payload): (usize, &[u8])| {
        let mut cell = [0; CELL];
        cell[..HEADER].copy_from_slice(&Header::user(0, 100, n + 1 == count).to_bytes());
        cell[HEADER..].copy_from_slice(payload);
        cell
    };
    body.chunks(PAYLOAD).enumerate().map(cell).collect()
}

#[test]
fn the_length_field_is_checked() {
    // I.363.5: the length reveals lost or gained cells if the CRC happens to match.
    assert_eq!(together(with_length(2, 41)), [Ok(vec![0; 41])]);
    assert_eq!(together(with_length(2, 88)), [Ok(vec![0; 88])]);
    for length in [40, 89] {
        assert_eq!(together(with_length(2, length)), [Err(Aal5Error::Mismatch { length: length.into(), cells: 2 })]);
    }
    assert_eq!(together(with_length(2, 0)), [Err(Aal5Error::Aborted)]);
}

#[test]
fn a_packet_without_an_end_is_given_up_and_the_next_one_is_whole() {
    let cell = cut(&[7; 400])[0];
    let mut cells = vec![cell; 1366 + 5];
    cells.push(*cut(&[7; 400]).last().expect("cells"));
    cells.extend(cut(b"next"));
    assert_eq!(together(cells), [Err(Aal5Error::Endless), Ok(b"next".to_vec())]);
}

#[test]
fn a_lost_last_cell_costs_the_next_packet_too() {
    // RFC 2684 has no other delimiter: two packets merge, and neither CRC matches.
    let mut cells = cut(&[1; 400]);
    cells.pop();
    cells.extend(cut(&[2; 400]));
    cells.extend(cut(&[3; 400]));
    assert_eq!(together(cells), [Err(Aal5Error::Crc), Ok(vec![3; 400])]);
}

proptest! {
    #[test]
    fn pieces_are_cut_as_the_whole(packet in prop::collection::vec(any::<u8>(), 1..2000), cuts in prop::collection::vec(0usize..700, 0..4)) {
        let mut pieces = Vec::new();
        let mut rest = &packet[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        let cells: Vec<_> = segment(CHANNEL, &pieces).expect("fits").collect();
        prop_assert_eq!(&cells, &cut(&packet));
        prop_assert_eq!(cells.len(), super::cells(packet.len()));
        prop_assert_eq!(together(cells), [Ok(packet)]);
    }

    /// Under any loss and damage, every delivered packet was sent, and an undamaged packet is delivered if its
    /// predecessor's last cell arrived. (CRC-32 detects all bursts up to 32 bits; longer damage passes with probability
    /// 2^-32, which does not occur in a test.)
    #[test]
    fn whole_or_nothing(
        lengths in prop::collection::vec(1usize..600, 1..6),
        fates in prop::collection::vec(prop_oneof![6 => Just(0u8), 1 => Just(1), 1 => Just(2)], 90),
        bit in 0usize..CELL * 8,
    ) {
        let packets: Vec<Vec<u8>> =
            lengths.iter().enumerate().map(|(n, &length)| (0..length).map(|i| (n * 31 + i * 7) as u8).collect()).collect();
        let mut fates = fates.into_iter();
        let mut sent = Vec::new();
        let mut expected = Vec::new();
        let mut start_is_clean = true;
        for packet in &packets {
            let cells = cut(packet);
            let count = cells.len();
            let mut clean = start_is_clean;
            for (n, mut cell) in cells.into_iter().enumerate() {
                let fate = fates.next().unwrap_or(0);
                // The last cell of a packet must arrive with its header, so that the next packet can start.
                let header_hit = fate == 2 && bit < HEADER * 8;
                if n + 1 == count {
                    start_is_clean = fate != 1 && !header_hit;
                }
                clean &= fate == 0;
                if fate == 2 {
                    cell[bit / 8] ^= 1 << (bit % 8);
                }
                if fate != 1 {
                    sent.push(cell);
                }
            }
            if clean {
                expected.push(packet.clone());
            }
        }
        let delivered: Vec<_> = together(sent).into_iter().flatten().collect();
        // A packet whose predecessor vanished completely is whole too, so the expected ones are a minimum.
        for packet in &delivered {
            prop_assert!(packets.contains(packet));
        }
        let mut rest = delivered.iter();
        for packet in &expected {
            prop_assert!(rest.any(|found| found == packet), "an undamaged packet is missing");
        }
    }
}
