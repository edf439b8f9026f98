//! The seeds of the fuzz target, played as an ordinary test: each input that found something once is among them.

#[path = "../../../fuzz/targets/io_pair.rs"]
mod io_pair;

#[test]
fn io_pair_seeds() {
    for (n, line) in include_str!("../../../fuzz/seeds/io_pair.hex").lines().enumerate() {
        let byte = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).expect("two hexadecimal digits");
        let input: Vec<u8> = (0..line.len()).step_by(2).map(byte).collect();
        let result = std::panic::catch_unwind(|| io_pair::run(&input));
        assert!(result.is_ok(), "line {} of the seeds fails", n + 1);
    }
}
