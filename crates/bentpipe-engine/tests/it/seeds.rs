//! The seeds of the fuzz targets, run as ordinary tests. Each input that once found a fault is among them.

#[path = "../../../../fuzz/targets/chance.rs"]
mod chance;
#[path = "../../../../fuzz/targets/compression.rs"]
mod compression;
#[path = "../../../../fuzz/targets/play.rs"]
mod play;
#[path = "../../../../fuzz/targets/slacp_parse.rs"]
mod slacp_parse;
#[path = "../../../../fuzz/targets/stp_pair.rs"]
mod stp_pair;
#[path = "../../../../fuzz/targets/stp_parse.rs"]
mod stp_parse;
#[path = "../../../../fuzz/targets/tcp_pair.rs"]
mod tcp_pair;
#[path = "../../../../fuzz/targets/wire_parse.rs"]
mod wire_parse;

use bentpipe_engine::tcp::variant::VARIANTS;
use chance::chance;
use play::play;

#[test]
fn wire_parse_seeds() {
    play(include_str!("../../../../fuzz/seeds/wire_parse.hex"), wire_parse::run);
}

#[test]
fn tcp_pair_seeds() {
    play(include_str!("../../../../fuzz/seeds/tcp_pair.hex"), tcp_pair::run);
}

/// Each row, with and without forgery and an abort.
#[test]
fn tcp_pair_by_chance() {
    let mut next = chance();
    let heads = 0..=u8::MAX;
    let rows: std::collections::BTreeSet<usize> = heads.clone().map(tcp_pair::row).collect();
    assert!(rows.into_iter().eq(0..VARIANTS.len()), "all rows are tried");
    for head in heads {
        for _ in 0..4 {
            let length = 50 + next() as usize % 250;
            let input: Vec<u8> = std::iter::once(head).chain((0..length).map(|_| next() as u8)).collect();
            tcp_pair::run(&input);
        }
    }
}

#[test]
fn stp_parse_seeds() {
    play(include_str!("../../../../fuzz/seeds/stp_parse.hex"), stp_parse::run);
}

#[test]
fn stp_pair_seeds() {
    play(include_str!("../../../../fuzz/seeds/stp_pair.hex"), stp_pair::run);
}

#[test]
fn slacp_parse_seeds() {
    play(include_str!("../../../../fuzz/seeds/slacp_parse.hex"), slacp_parse::run);
}

#[test]
fn compression_seeds() {
    play(include_str!("../../../../fuzz/seeds/compression.hex"), |input| _ = compression::run(input));
}

#[test]
fn compression_by_chance() {
    let mut next = chance();
    let mut shorter = 0;
    for _ in 0..3000 {
        let mut input = Vec::new();
        for _ in 0..next() % 20 {
            // A new packet, or changes of the last one.
            if next().is_multiple_of(5) {
                let length = 28 + next() as u8 % 100;
                input.extend([next() as u8 & !3, length]);
                let mut packet: Vec<u8> = (0..length).map(|_| next() as u8).collect();
                packet[0] = [0x45, 0x60][next() as usize % 2];
                (packet[6], packet[9]) = ([6, 17][next() as usize % 2], [6, 17][next() as usize % 2]);
                input.extend(packet);
            } else {
                let length = 2 * (next() as u8 % 6);
                input.extend([next() as u8, length]);
                input.extend(
                    (0..length).map(|_| if next().is_multiple_of(2) { next() as u8 % 64 } else { next() as u8 }),
                );
            }
        }
        shorter += compression::run(&input);
    }
    assert!(shorter > 1000, "what is tested is more than packets as they are: {shorter}");
}
