//! Bytes as a capture or a log of pings: figures, or an error that names the file; never a panic. What is found can be written and read.

use std::io::Cursor;
use std::path::Path;

use bentpipe_study::scenario::Scenario;

pub(crate) fn run(data: &[u8]) {
    let data = data.to_vec();
    match bentpipe_fit::fit_with(Path::new("input"), &|| Ok(Box::new(Cursor::new(data.clone())))) {
        Ok(found) => {
            let text = bentpipe_fit::scenario(&found, "input", "fuzz");
            if let Err(errors) = Scenario::parse(&text, "input.toml", &[]) {
                panic!("{errors}\n{text}");
            }
        }
        Err(error) => assert!(error.to_string().starts_with("input"), "{error}"),
    }
}
