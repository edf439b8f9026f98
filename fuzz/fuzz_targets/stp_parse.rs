#![no_main]

#[path = "../targets/stp_parse.rs"]
mod stp_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| stp_parse::run(data));
