//! The seeds of the fuzz targets, run as ordinary tests. Each input that once found a fault is among them.

#[path = "../../../../fuzz/targets/carrier_frames.rs"]
mod carrier_frames;
#[path = "../../../../fuzz/targets/carrier_peer.rs"]
mod carrier_peer;
#[path = "../../../../fuzz/targets/chance.rs"]
mod chance;
#[path = "../../../../fuzz/targets/gateway_parse.rs"]
mod gateway_parse;
#[path = "../../../../fuzz/targets/mux_parse.rs"]
mod mux_parse;
#[path = "../../../../fuzz/targets/play.rs"]
mod play;
#[path = "../../../../fuzz/targets/tunnel_parse.rs"]
mod tunnel_parse;
#[path = "../../../../fuzz/targets/uplink_parse.rs"]
mod uplink_parse;

use chance::chance;
use play::play;

#[test]
fn gateway_parse_seeds() {
    play(include_str!("../../../../fuzz/seeds/gateway_parse.hex"), gateway_parse::run);
}

#[test]
fn mux_parse_seeds() {
    play(include_str!("../../../../fuzz/seeds/mux_parse.hex"), mux_parse::run);
}

/// The two targets with bytes like a peer's: lengths and types are right more often than by chance.
#[test]
fn bytes_from_outside() {
    let mut next = chance();
    for _ in 0..3000 {
        let mut input = Vec::new();
        for _ in 0..next() % 20 {
            let length = [3, 4, 24, 29, 68, 82, 181][next() as usize % 7];
            input.extend([length, (next() % 8) as u8]);
            input.extend((1..length).map(|_| if next().is_multiple_of(2) { (next() % 8) as u8 } else { next() as u8 }));
        }
        mux_parse::run(&input);
        tunnel_parse::run(&input);
    }
}

/// A peer that has the keys and sends arbitrary bytes, mostly small numbers: types, channels and counts.
#[test]
fn a_peer_that_sends_anything() {
    let mut next = chance();
    for _ in 0..300 {
        let mut input = vec![next() as u8];
        for _ in 0..next() % 60 {
            let length = next() as u8;
            input.extend([next() as u8, length]);
            input.extend((0..length).map(|_| if next().is_multiple_of(2) { (next() % 8) as u8 } else { next() as u8 }));
        }
        carrier_peer::run(&input);
    }
}

#[test]
fn uplink_parse_by_chance() {
    let mut next = chance();
    let mut opened = 0;
    for _ in 0..2000 {
        let mut input = Vec::new();
        while input.len() < 600 {
            // Numbers and positions are mostly small.
            input.extend(next().to_le_bytes()[..7].iter().map(|&byte| if byte % 2 == 0 { byte % 16 } else { byte }));
        }
        opened += uplink_parse::run(&input);
    }
    assert!(opened > 500, "what is tested is more than refusals: {opened}");
}

/// Frames of a real link, altered by a peer that has the keys. Some of them still deliver packets.
#[test]
fn a_peer_that_damages_its_frames() {
    let mut next = chance();
    let mut delivered = 0;
    for _ in 0..100 {
        let input: Vec<u8> = (0..next() % 800).map(|_| (next() >> 3) as u8).collect();
        delivered += carrier_frames::run(&input);
    }
    assert!(delivered > 500, "what is tested is more than refusals: {delivered}");
}
