//! The seeds of the fuzz target `scenario_parse`, run as an ordinary test.

#[path = "../../../../fuzz/targets/play.rs"]
mod play;
#[path = "../../../../fuzz/targets/scenario_parse.rs"]
mod scenario_parse;

#[test]
fn scenario_parse_seeds() {
    play::play(include_str!("../../../../fuzz/seeds/scenario_parse.hex"), scenario_parse::run);
}
