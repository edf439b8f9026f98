//! The seeds of the fuzz target, played as ordinary tests: each input that found something once is among them.

#[path = "../../../../fuzz/targets/play.rs"]
mod play;
#[path = "../../../../fuzz/targets/script_parse.rs"]
mod script_parse;

#[test]
fn script_parse_seeds() {
    play::play(include_str!("../../../../fuzz/seeds/script_parse.hex"), script_parse::run_script);
}
