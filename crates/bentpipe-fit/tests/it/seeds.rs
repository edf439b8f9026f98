//! The seeds of the fuzz target `fit_capture`, played as an ordinary test.

#[path = "../../../../fuzz/targets/fit_capture.rs"]
mod fit_capture;
#[path = "../../../../fuzz/targets/play.rs"]
mod play;

#[test]
fn fit_capture_seeds() {
    play::play(include_str!("../../../../fuzz/seeds/fit_capture.hex"), fit_capture::run);
}
