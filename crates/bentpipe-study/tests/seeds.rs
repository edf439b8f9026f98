//! The seeds of the fuzz target `gateway_parse`, played as an ordinary test.

#[path = "../../../fuzz/targets/gateway_parse.rs"]
mod gateway_parse;
#[path = "../../../fuzz/targets/play.rs"]
mod play;

#[test]
fn gateway_parse_seeds() {
    play::play(include_str!("../../../fuzz/seeds/gateway_parse.hex"), gateway_parse::run);
}
