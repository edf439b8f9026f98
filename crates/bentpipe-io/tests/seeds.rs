//! The seeds of the fuzz targets, played as ordinary tests: each input that found something once is among them.

#[path = "../../../fuzz/targets/io_pair.rs"]
mod io_pair;
#[path = "../../../fuzz/targets/mux_parse.rs"]
mod mux_parse;
#[path = "../../../fuzz/targets/play.rs"]
mod play;
#[path = "../../../fuzz/targets/slacp_pair.rs"]
mod slacp_pair;
#[path = "../../../fuzz/targets/tunnel_parse.rs"]
mod tunnel_parse;
#[path = "../../../fuzz/targets/uplink_parse.rs"]
mod uplink_parse;

use play::play;

#[test]
fn io_pair_seeds() {
    play(include_str!("../../../fuzz/seeds/io_pair.hex"), io_pair::run);
}

#[test]
fn slacp_pair_seeds() {
    play(include_str!("../../../fuzz/seeds/slacp_pair.hex"), slacp_pair::run);
}

/// The two targets over bytes that look like the peer's: lengths and types that are right more often than by chance.
#[test]
fn bytes_from_outside() {
    let mut x = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x >> 8
    };
    for _ in 0..3000 {
        let mut input = Vec::new();
        for _ in 0..next() % 20 {
            let length = [3, 4, 20, 29, 82, 141][next() as usize % 6];
            input.extend([length, (next() % 6) as u8]);
            input.extend((1..length).map(|_| if next() % 2 == 0 { (next() % 8) as u8 } else { next() as u8 }));
        }
        mux_parse::run(&input);
        tunnel_parse::run(&input);
    }
}

#[test]
fn uplink_parse_by_chance() {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    let mut opened = 0;
    for _ in 0..2000 {
        let mut input = Vec::new();
        while input.len() < 600 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            // Numbers and places are small more often than not.
            input.extend(x.to_le_bytes().map(|byte| if byte % 2 == 0 { byte % 16 } else { byte }));
        }
        opened += uplink_parse::run(&input);
    }
    assert!(opened > 500, "what is tested is more than refusals: {opened}");
}
