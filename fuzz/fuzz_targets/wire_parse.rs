#![no_main]

#[path = "../targets/wire_parse.rs"]
mod wire_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| wire_parse::run(data));
