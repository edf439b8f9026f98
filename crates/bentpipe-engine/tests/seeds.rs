//! The seeds of the fuzz targets, played as ordinary tests: each input that found something once is among them.
#![expect(clippy::duplicate_mod, reason = "each target is a file of its own, with the pair that it plays")]

#[path = "../../../fuzz/targets/slacp_parse.rs"]
mod slacp_parse;
#[path = "../../../fuzz/targets/stp_pair.rs"]
mod stp_pair;
#[path = "../../../fuzz/targets/stp_parse.rs"]
mod stp_parse;
#[path = "../../../fuzz/targets/tcp_pair.rs"]
mod tcp_pair;
#[path = "../../../fuzz/targets/wire_parse.rs"]
mod wire_parse;

fn play(seeds: &str, target: fn(&[u8])) {
    assert!(seeds.lines().count() > 50, "a corpus");
    for (n, line) in seeds.lines().enumerate() {
        let byte = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).expect("two hexadecimal digits");
        let input: Vec<u8> = (0..line.len()).step_by(2).map(byte).collect();
        let result = std::panic::catch_unwind(|| target(&input));
        assert!(result.is_ok(), "line {} of the seeds fails", n + 1);
    }
}

#[test]
fn wire_parse_seeds() {
    play(include_str!("../../../fuzz/seeds/wire_parse.hex"), wire_parse::run);
}

#[test]
fn tcp_pair_seeds() {
    play(include_str!("../../../fuzz/seeds/tcp_pair.hex"), tcp_pair::run);
}

#[test]
fn stp_parse_seeds() {
    play(include_str!("../../../fuzz/seeds/stp_parse.hex"), stp_parse::run);
}

#[test]
fn stp_pair_seeds() {
    play(include_str!("../../../fuzz/seeds/stp_pair.hex"), stp_pair::run);
}

#[test]
fn slacp_parse_seeds() {
    play(include_str!("../../../fuzz/seeds/slacp_parse.hex"), slacp_parse::run);
}
