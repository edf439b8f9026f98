//! The seeds of the fuzz targets, played as ordinary tests: each input that found something once is among them.
#![expect(clippy::duplicate_mod, reason = "each target is a file of its own, with the pair that it plays")]

#[path = "../../../fuzz/targets/play.rs"]
mod play;
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

use play::play;

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
