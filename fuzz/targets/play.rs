//! Plays seeds, an input in hexadecimal digits per line, as an ordinary test.

pub(crate) fn play(seeds: &str, target: fn(&[u8])) {
    assert!(seeds.lines().count() > 50, "a corpus");
    for (n, line) in seeds.lines().enumerate() {
        let byte = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).expect("two hexadecimal digits");
        let input: Vec<u8> = (0..line.len()).step_by(2).map(byte).collect();
        let result = std::panic::catch_unwind(|| target(&input));
        assert!(result.is_ok(), "line {} of the seeds fails", n + 1);
    }
}
