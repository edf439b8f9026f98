//! The expectation files that ship are sound.

use bentpipe_script::expect::Expectations;

#[test]
fn expectation_files_are_sound() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation/conformance");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|end| end == "toml") {
            let text = std::fs::read_to_string(&path).expect("text");
            Expectations::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            count += 1;
        }
    }
    assert_eq!(count, 6);
}
