#![no_main]

#[path = "../targets/mux_parse.rs"]
mod mux_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| mux_parse::run(data));
