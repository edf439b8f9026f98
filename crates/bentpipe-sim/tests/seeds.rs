//! The seeds of the fuzz target `scenario_parse`, played as an ordinary test.

#[path = "../../../fuzz/targets/scenario_parse.rs"]
mod scenario_parse;

#[test]
fn scenario_parse_seeds() {
    let seeds = include_str!("../../../fuzz/seeds/scenario_parse.hex");
    assert!(seeds.lines().count() > 50, "a corpus");
    for (n, line) in seeds.lines().enumerate() {
        let byte = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).expect("two hexadecimal digits");
        let input: Vec<u8> = (0..line.len()).step_by(2).map(byte).collect();
        let result = std::panic::catch_unwind(|| scenario_parse::run(&input));
        assert!(result.is_ok(), "line {} of the seeds fails", n + 1);
    }
}
