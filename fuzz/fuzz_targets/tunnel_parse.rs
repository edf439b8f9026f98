#![no_main]

#[path = "../targets/tunnel_parse.rs"]
mod tunnel_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| tunnel_parse::run(data));
